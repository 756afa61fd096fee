"""Gibbs chains."""
