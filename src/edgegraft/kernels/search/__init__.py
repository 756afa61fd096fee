"""Ranking, candidates, activation."""
