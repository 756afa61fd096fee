"""Bit planes, counts of pairs, hashing."""
