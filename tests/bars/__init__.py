"""Bars of quality: bounds that every version of the library has to keep, whatever its digits."""
