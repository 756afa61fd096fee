"""Rows beyond memory, attached to the core by :mod:`edgegraft.plugins`: on disk, on a cluster."""
