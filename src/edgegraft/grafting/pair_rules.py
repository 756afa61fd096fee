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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

import numpy as np

from edgegraft.core.pairs import pair_ids, pairs_of_ids
from edgegraft.core.types import Edges, Floats, Ids, Integers, Mask
from edgegraft.counts.pair_counts import all_pair_blocks
from edgegraft.errors import SettingError, suggestion

_BLOCK_BYTES = 1 << 25  # of pairs that are counted at a time


@dataclass(frozen=True)
class _Among:
    """Pairs between two sets of columns."""

    first: Mask
    second: Mask

    def has(self, pairs: Edges) -> Mask:
        i, j = pairs[:, 0], pairs[:, 1]
        return (self.first[i] & self.second[j]) | (self.first[j] & self.second[i])


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
    likely: tuple[tuple[float, _Among], ...] = ()

    @classmethod
    def read(cls, rules: Sequence[str] | None, names: Sequence[str]) -> PairRules:
        """Return the rules that texts stand for; a text or name that is unknown is refused.

        Without names only the texts are checked, before a table is read.
        """
        n, required = len(names), [np.empty(0, np.int64)]
        parts: dict[str, list[_Among]] = {"forbid": [], "only": []}
        likely: list[tuple[float, _Among]] = []
        tiers, gap = None, 0
        for text in _lines(rules or ()):
            word, _, rest = text.strip().partition(" ")
            if word == "gap" and rest.strip().isdigit():
                gap = int(rest)
            elif word == "tiers":
                tiers = _tiers(rest, names, text)
            elif word == "weight":
                number, _, pair = rest.strip().partition(" ")
                likely.append((_weight(number, text), _pair(pair, names, text)))
            elif word == "require":
                required.append(_ids(_pair(rest, names, text), n))
            elif word in parts:
                parts[word].append(_pair(rest, names, text))
            else:
                raise SettingError(
                    "rules",
                    f"must begin with require, forbid, only, tiers, gap, weight or file, "
                    f"found {text!r}",
                )
        edges = pairs_of_ids(np.unique(np.concatenate(required)), n)
        found = cls(
            n, edges, tuple(parts["forbid"]), tuple(parts["only"]), tiers, gap, tuple(likely)
        )
        _check_required(found, names)
        return found

    def __bool__(self) -> bool:
        limits = self.forbidden or self.only or self.likely or self.gap
        return bool(limits or len(self.required) or self.tiers is not None)

    @property
    def limits(self) -> bool:
        """Whether any pair is excluded."""
        return bool(self.forbidden or self.only or self.gap or self.tiers is not None)

    def allows(self, pairs: Edges) -> Mask:
        """Return which pairs may be edges."""
        allowed = np.ones(len(pairs), bool)
        if not len(pairs) or not self.limits:
            return allowed
        if self.only:
            allowed = np.logical_or.reduce([rule.has(pairs) for rule in self.only])
        for rule in self.forbidden:
            allowed &= ~rule.has(pairs)
        if self.gap:
            allowed &= np.abs(pairs[:, 0] - pairs[:, 1]) > self.gap
        if self.tiers is not None:
            first, second = self.tiers[pairs[:, 0]], self.tiers[pairs[:, 1]]
            allowed &= (first < 0) | (second < 0) | (np.abs(first - second) <= 1)
        return allowed | self.is_required(pairs)

    def is_required(self, pairs: Edges) -> Mask:
        """Return which pairs are edges whatever their tests say."""
        return np.isin(pair_ids(pairs, self.n), pair_ids(self.required, self.n))

    @cached_property
    def n_allowed(self) -> int:
        """Number of pairs that may be edges."""
        if not self.limits:
            return self.n * (self.n - 1) // 2
        blocks = all_pair_blocks(np.ones(self.n, np.int64), _BLOCK_BYTES)
        return sum(int(self.allows(block).sum()) for block in blocks)

    @cached_property
    def _mean_weight(self) -> float:
        blocks = all_pair_blocks(np.ones(self.n, np.int64), _BLOCK_BYTES)
        total = sum(float(self._raw(block)[self.allows(block)].sum()) for block in blocks)
        return total / max(self.n_allowed, 1)

    def weights(self, pairs: Edges) -> Floats:
        """Return the weights of pairs, whose mean over all allowed pairs is 1."""
        if not self.likely:
            return np.ones(len(pairs))
        return self._raw(pairs) / self._mean_weight

    def _raw(self, pairs: Edges) -> Floats:
        out = np.ones(len(pairs))
        for weight, rule in self.likely:
            out[rule.has(pairs)] = weight
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


def _columns(pattern: str, names: Sequence[str], text: str) -> Mask:
    """Return which columns a name or a pattern means; exact names come first."""
    pattern = pattern.strip()
    if not len(names):
        return np.zeros(0, bool)
    found = np.array([name == pattern for name in names], bool)
    if not found.any():
        found = np.array([fnmatchcase(name, pattern) for name in names], bool)
    if not found.any():
        hint = suggestion(pattern, list(names))
        raise SettingError("rules", f"has {text!r}, but no column is called '{pattern}': {hint}")
    return found


def _pair(text: str, names: Sequence[str], rule: str) -> _Among:
    first, found, second = text.partition(" -- ")
    if not found:
        raise SettingError("rules", f"must name a pair as 'A -- B', found {rule!r}")
    return _Among(_columns(first, names, rule), _columns(second, names, rule))


def _tiers(text: str, names: Sequence[str], rule: str) -> Integers:
    tiers = np.full(len(names), -1, np.int64)
    for k, part in enumerate(text.split("<")):
        for pattern in part.split(","):
            tiers[_columns(pattern, names, rule)] = k
    return tiers


def _weight(text: str, rule: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = np.nan
    if not (weight > 0 and np.isfinite(weight)):
        raise SettingError("rules", f"must have a weight above 0, found {rule!r}")
    return weight


def _ids(among: _Among, n: int) -> Ids:
    first, second = np.meshgrid(
        np.flatnonzero(among.first), np.flatnonzero(among.second), indexing="ij"
    )
    pairs = np.column_stack((first.ravel(), second.ravel()))
    return pair_ids(pairs[pairs[:, 0] != pairs[:, 1]].astype(np.int64), n)


def _check_required(rules: PairRules, names: Sequence[str]) -> None:
    for rule in rules.forbidden:
        both = rules.required[rule.has(rules.required)] if len(rules.required) else rules.required
        if len(both):
            i, j = both[0]
            raise SettingError(
                "rules", f"both require and forbid the pair '{names[i]}' -- '{names[j]}'"
            )
