"""Files of other programs, attached to the core by :mod:`edgegraft.plugins`."""
