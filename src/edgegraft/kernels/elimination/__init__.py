"""Elimination orders and bucket trees."""
