"""Answers in the format of the UAI competitions, read by the definition of the format."""

from __future__ import annotations

import math

import numpy as np


def numbers(text, word):
    """Return the numbers of an answer after its word."""
    first, *rest = text.split()
    assert first == word
    return [float(token) for token in rest]


def pr(text):
    """Return the natural log of the partition function."""
    (value,) = numbers(text, "PR")
    return value * math.log(10)


def mar(text):
    """Return the distribution of each variable."""
    n, *rest = numbers(text, "MAR")
    found = []
    while rest:
        size = int(rest[0])
        found.append(np.array(rest[1 : 1 + size]))
        assert len(found[-1]) == size
        rest = rest[1 + size :]
    assert len(found) == n
    return found
