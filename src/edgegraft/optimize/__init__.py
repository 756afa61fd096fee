"""Solvers of the penalised problem."""
