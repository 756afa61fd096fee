"""Comparative measurements; ``python -m benchmarks`` runs them and rewrites docs/benchmarks.md."""
