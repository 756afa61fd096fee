"""Codes, bit planes, counts of pairs."""
