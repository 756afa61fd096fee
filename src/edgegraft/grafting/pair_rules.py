"""What is known of pairs before the search: which are edges, which cannot be, which are likely.

A rule is a line of text. Columns are names or patterns (``mood*``), a pair is ``A -- B``.

    require A -- B          an edge whatever its test says
    forbid A -- B           not an edge; not even looked at
    only A -- B             with such rules, only pairs that one of them names are looked at
    tiers A, B < C* < D     no edges between tiers that are not neighbours
    gap 4                   no edges between columns at most 4 places apart
    weight 3 A -- B         three times as likely as others: p-values are divided by the weight
    file PATH               further rules, one per line; or a CSV with first, second, rule, weight

Pairs that rules exclude are not scored, tested or certified, and do not count among the tests that
q-values allow for. Weights are scaled to the mean 1 over all allowed pairs, which keeps the false
discovery rate (Genovese, Roeder and Wasserman 2006).
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgegraft.core.pairs import pair_ids, pairs_of_ids
from edgegraft.core.types import Edges, Floats, Integers, Mask
from edgegraft.counts.pair_counts import all_pair_blocks
from edgegraft.errors import SettingError, suggestion

_BLOCK_BYTES = 1 << 25  # budget: of pairs that are counted at a time


class _Among(NamedTuple):
    """Pairs between two sets of columns, and the weight of each."""

    first: Mask
    second: Mask
    weight: float = 1.0

    def has(self, pairs: Edges) -> Mask:
        i, j = pairs.T
        return np.asarray((self.first[i] & self.second[j]) | (self.first[j] & self.second[i]))


@dataclass(frozen=True, eq=False)
class PairRules:
    """Rules about the pairs of `n` columns.

    >>> rules = PairRules.read(["forbid mood* -- age", "require mood1 -- sleep"],
    ...                        ["mood1", "mood2", "sleep", "age"])
    >>> rules.allows(np.array([(0, 3), (0, 1), (2, 3)])).tolist(), rules.required.tolist()
    ([False, True, True], [[0, 2]])
    >>> rules.n_allowed
    4
    """

    n: int
    required: Edges
    forbidden: tuple[_Among, ...] = ()
    only: tuple[_Among, ...] = ()
    tiers: Integers | None = None  # of each column, -1 for those without one
    gap: int = 0
    likely: tuple[_Among, ...] = ()

    @classmethod
    def read(cls, rules: Sequence[str] | None, names: Sequence[str]) -> PairRules:
        """Return the rules that texts stand for; a text or name that is unknown is refused.

        Without names only the texts are checked, before a table is read.
        """
        parts: dict[str, list[Any]] = defaultdict(list)
        for text in _lines(rules or ()):
            word, _, rest = text.strip().partition(" ")
            if word not in _WORDS:
                raise SettingError(
                    "rules", f"must begin with {', '.join(_WORDS)} or file, found {text!r}"
                )
            parts[word].append(_WORDS[word](rest.strip(), names, text))
        n, ends = len(names), [np.empty((2, 0), np.int64)]
        for rule in parts["require"]:
            both = np.meshgrid(np.flatnonzero(rule.first), np.flatnonzero(rule.second))
            ends.append(np.reshape(both, (2, -1)))
        pairs = np.concatenate(ends, axis=1).T
        ids = pair_ids(pairs[pairs[:, 0] != pairs[:, 1]], n)
        required = pairs_of_ids(np.unique(ids), n)
        tiers, gap = [None, *parts["tiers"]][-1], [0, *parts["gap"]][-1]
        forbidden, only, likely = (tuple(parts[word]) for word in ("forbid", "only", "weight"))
        for rule in forbidden:
            for i, j in required[rule.has(required)][:1]:
                raise SettingError(
                    "rules", f"both require and forbid the pair '{names[i]}' -- '{names[j]}'"
                )
        return cls(n, required, forbidden, only, tiers, gap, likely)

    def allows(self, pairs: Edges) -> Mask:
        """Return which pairs may be edges."""
        allowed = np.ones(len(pairs), bool)
        if self.only:
            allowed = np.logical_or.reduce([rule.has(pairs) for rule in self.only])
        for rule in self.forbidden:
            allowed &= ~rule.has(pairs)
        if self.gap:
            allowed &= np.abs(pairs[:, 0] - pairs[:, 1]) > self.gap
        if self.tiers is not None:
            first, second = self.tiers[pairs.T]
            allowed &= (first < 0) | (second < 0) | (np.abs(first - second) <= 1)
        return allowed if allowed.all() else allowed | self.is_required(pairs)

    def is_required(self, pairs: Edges) -> Mask:
        """Return which pairs are edges whatever their tests say."""
        return np.isin(pair_ids(pairs, self.n), pair_ids(self.required, self.n))

    @property
    def n_allowed(self) -> int:
        """Number of pairs that may be edges."""
        return self._totals[0]

    def weights(self, pairs: Edges) -> Floats:
        """Return the weights of pairs, whose mean over all allowed pairs is 1."""
        n_allowed, total = self._totals
        return self._raw(pairs) * (n_allowed / total) if self.likely else np.ones(len(pairs))

    @cached_property
    def _totals(self) -> tuple[int, float]:
        """Number of the allowed pairs, and the sum of their weights."""
        n_allowed, total = 0, 0.0
        if not (self.only or self.forbidden or self.gap or self.likely or self.tiers is not None):
            n_pairs = self.n * (self.n - 1) // 2
            return n_pairs, float(n_pairs)
        for block in all_pair_blocks(np.ones(self.n, np.int64), _BLOCK_BYTES):
            allowed = block[self.allows(block)]
            n_allowed, total = n_allowed + len(allowed), total + float(self._raw(allowed).sum())
        return n_allowed, total

    def _raw(self, pairs: Edges) -> Floats:
        out = np.ones(len(pairs))
        for rule in self.likely:
            out[rule.has(pairs)] = rule.weight
        return out


def _lines(rules: Sequence[str]) -> Iterator[str]:
    """Yield the rules, those of files in their places."""
    for text in rules:
        word, _, rest = text.strip().partition(" ")
        if word != "file":
            yield text
            continue
        path = Path(rest.strip())
        if not path.is_file():
            raise SettingError("rules", f"names the file '{path}', which does not exist")
        lines = path.read_text(encoding="utf-8").splitlines()
        if path.suffix.lower() == ".csv":
            for row in csv.DictReader(lines):
                weight = f" {row['weight']}" if row["rule"] == "weight" else ""
                yield f"{row['rule']}{weight} {row['first']} -- {row['second']}"
        else:
            yield from _lines([line for line in map(str.strip, lines) if line and line[0] != "#"])


def _columns(pattern: str, names: Sequence[str], rule: str) -> Mask:
    """Return which columns a name or a pattern means; exact names come first."""
    pattern = pattern.strip()
    for match in (str.__eq__, fnmatchcase):
        columns = np.array([match(name, pattern) for name in names], bool)
        if columns.any() or not len(names):
            return columns
    hint = suggestion(pattern, list(names))
    raise SettingError("rules", f"has {rule!r}, but no column is called '{pattern}': {hint}")


def _pair(text: str, names: Sequence[str], rule: str) -> _Among:
    first, dashes, second = text.partition(" -- ")
    if not dashes:
        raise SettingError("rules", f"must name a pair as 'A -- B', found {rule!r}")
    return _Among(_columns(first, names, rule), _columns(second, names, rule))


def _tiers(text: str, names: Sequence[str], rule: str) -> Integers:
    tiers = np.full(len(names), -1, np.int64)
    for k, part in enumerate(text.split("<")):
        for pattern in part.split(","):
            tiers[_columns(pattern, names, rule)] = k
    return tiers


def _gap(text: str, names: Sequence[str], rule: str) -> int:
    if not text.isdigit():
        raise SettingError("rules", f"must have a whole number of places, found {rule!r}")
    return int(text)


def _weighted(text: str, names: Sequence[str], rule: str) -> _Among:
    number, _, pair = text.partition(" ")
    try:
        weight = float(number)
    except ValueError:
        weight = np.nan
    if not (weight > 0 and np.isfinite(weight)):
        raise SettingError("rules", f"must have a weight above 0, found {rule!r}")
    return _pair(pair, names, rule)._replace(weight=weight)


_WORDS: dict[str, Callable[[str, Sequence[str], str], Any]] = {
    "require": _pair,
    "forbid": _pair,
    "only": _pair,
    "tiers": _tiers,
    "gap": _gap,
    "weight": _weighted,
}
