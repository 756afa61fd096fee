"""Scores of edges in the conditionals of their ends, on a device, many conditionals at a time.

The sums of :mod:`edgegraft.learn.effective_score` as matrix products over the rows, in double
precision. The design of a conditional is a list of states: each of its columns shows where a
variable is in one of them; the first column is one everywhere. Conditionals with as many logits
and about as many columns are computed together, columns of zeros added to the smaller ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from edgegraft.core.types import Floats, Integers
from edgegraft.device.columns import columns_on
from edgegraft.device.device import Tensor, to_host, torch_module
from edgegraft.kernels.conditionals.effective_scores import logit_pairs
from edgegraft.table.blocks import TableRows

if TYPE_CHECKING:
    from edgegraft.learn.conditional import Conditional

_SHARE = 24  # of the free memory that the arrays of a batch may take
_ALIKE = 1.25  # columns of the largest conditional of a batch over those of the smallest

_T = TypeVar("_T")
Ends = Sequence[Sequence[tuple["Conditional", int]]]
Wanted = tuple["Conditional", list[tuple[int, int]]]


class Rules(NamedTuple):
    """How conditionals are settled before their scores are taken."""

    newton_steps: int  # from the given coefficients, for rows of which some are not used
    pull: float  # weight of the given coefficients in these steps, in rows
    max_move: float  # largest change of a coefficient in a step
    margin_steps: int  # of intercepts that are moved until the states have their shares
    margin_tol: float
    min_information: float  # added to the diagonal, as a share of the largest


class EdgeSums(NamedTuple):
    """Sums over the rows for one edge, over its sides."""

    sums: Floats  # (2, size) of the scores of each side
    whole: Floats  # (size, size) products of the sum of both sides with itself
    across: Floats  # (size, size) products of one side with the other
    information: Floats  # (size, size)
    shift: Floats  # (size,) information times parameters


class _Batch(NamedTuple):
    """Conditionals that are computed together."""

    shown: Tensor  # (batch, columns, rows)
    own: Tensor  # (batch, logits, rows)
    coefficients: Tensor  # (batch, columns, logits)
    weights: Tensor  # (batch or 1, rows)
    empty: Tensor  # (batch, columns) columns that were added


class ConditionalsOnDevice:
    """Sums over the rows of a table for the conditionals of its variables.

    `variances` are factors of the squares of rows' scores in the variance of their sum.
    """

    def __init__(self, block: TableRows, weights: Floats, variances: Floats, rules: Rules) -> None:
        self._columns = columns_on(block, np.float64)
        self._device, self._rules = self._columns.device, rules
        self._weights, self._variances = self._device.put(weights), self._device.put(variances)
        self._whole = weights

    def edge_sums(
        self,
        edges: Ends,
        bases: Sequence[Floats],
        *,
        settle: bool = False,
        move: bool = False,
    ) -> list[EdgeSums | int]:
        """Return the sums of edges; the number of the variable where information is not finite.

        `edges` are the conditionals of one or both ends, and the other end of each; `bases` lead
        from an edge's contrasts to coordinates in which all states are alike. With `settle`
        coefficients are refitted to the rows used, with `move` intercepts are moved until the
        states have their shares.
        """
        found: dict[int, EdgeSums | int] = {}
        for chosen in self._chunks(edges):
            scores: dict[tuple[int, int], _Score] = {}
            failed: dict[int, EdgeSums | int] = {}
            wanted: dict[int, Wanted] = {}
            for k in chosen:
                for side, (node, _) in enumerate(edges[k]):
                    wanted.setdefault(id(node), (node, []))[1].append((k, side))
            for batch in self._batches(list(wanted.values())):
                nodes = [node for node, _ in batch]
                made = self._make(nodes)
                made, residuals, inverse, finite = self._solve(made, settle, move)
                asked = [(b, k, side) for b, (_, sides) in enumerate(batch) for k, side in sides]
                for b, k, _ in asked:
                    if not finite[b]:
                        failed[k] = int(nodes[b].design.target)
                for group in _alike(asked, edges):
                    self._score(group, edges, bases, made, residuals, inverse, scores)
            found |= failed | self._sum([k for k in chosen if k not in failed], edges, scores)
        return [found[k] for k in range(len(edges))]

    def _chunks(self, edges: Ends) -> Iterator[list[int]]:
        """Yield the edges in runs whose scores fit the memory."""
        room = self._device.free_bytes // _SHARE
        sizes = [sum(_size(node, other) for node, other in sides) for sides in edges]
        used = 8 * self._columns.n_rows * np.cumsum([0, *sizes])
        return _runs(range(len(edges)), lambda run, k: bool(used[k + 1] - used[run[0]] <= room))

    def _batches(self, wanted: list[Wanted]) -> Iterator[list[Wanted]]:
        """Yield conditionals with as many logits, about as many columns, that fit the memory."""
        room = self._device.free_bytes // _SHARE

        def joins(batch: list[Wanted], each: Wanted) -> bool:
            columns, logits = each[0].coefficients.shape
            smallest, logits_there = batch[0][0].coefficients.shape
            needed = 8 * (self._columns.n_rows * 2 * (columns + 2 * logits))
            needed += 8 * 3 * (columns * logits) ** 2
            alike = logits == logits_there and bool(columns <= _ALIKE * smallest + 4)
            return alike and needed * (len(batch) + 1) <= room

        return _runs(sorted(wanted, key=lambda each: each[0].coefficients.shape[::-1]), joins)

    def _make(self, nodes: list[Conditional]) -> _Batch:
        widest = max(len(node.coefficients) for node in nodes)
        logits = nodes[0].coefficients.shape[1]
        index = np.full((len(nodes), widest), self._columns.zeros)
        coefficients = np.zeros((len(nodes), widest, logits))
        own = np.empty((len(nodes), logits), np.int64)
        for b, node in enumerate(nodes):
            design = node.design
            k, state = np.nonzero(design.column >= 0)
            order = np.argsort(design.column[k, state])
            shown = self._columns.start[design.sources[k[order]]] + state[order]
            index[b, : len(node.coefficients)] = np.concatenate(([self._columns.ones], shown))
            coefficients[b, : len(node.coefficients)] = node.coefficients
            states = np.flatnonzero(design.own >= 0)
            states = states[np.argsort(design.own[states])]
            own[b] = self._columns.start[design.target] + states
        if all(node.weights is self._whole for node in nodes):
            weights = self._weights[None]
        else:
            weights = self._device.put(np.stack([node.weights for node in nodes]))
        return _Batch(
            self._columns.of_states(index),
            self._columns.of_states(own),
            self._device.put(coefficients),
            weights,
            self._device.put(index == self._columns.zeros),
        )

    def _solve(
        self, made: _Batch, settle: bool, move: bool
    ) -> tuple[_Batch, Tensor, Tensor, Integers]:
        """Return settled conditionals, their residuals and the inverses of their information."""
        rules = self._rules
        if move:
            made = made._replace(coefficients=self._with_margins(made))
        given = made.coefficients
        for _ in range(rules.newton_steps if settle else 0):
            residuals, p = _residuals(made)
            score = (made.shown * made.weights[:, None]) @ residuals.mT
            score -= rules.pull * (made.coefficients - given)
            inverse, _ = self._inverse(made, p, rules.pull)
            step = (inverse @ score.flatten(1)[:, :, None]).view_as(score)
            step = step.clamp(-rules.max_move, rules.max_move)
            made = made._replace(coefficients=made.coefficients + step)
        residuals, p = _residuals(made)
        inverse, failed = self._inverse(made, p, 0.0)
        return made, residuals, inverse, to_host(failed == 0).astype(np.int64)

    def _inverse(self, made: _Batch, p: Tensor, ridge: float) -> tuple[Tensor, Tensor]:
        """Return the inverse of the expected information of all parameters."""
        torch = torch_module()
        logits, n_columns = p.shape[1], made.shown.shape[1]
        one, other = np.triu_indices(logits)
        weighted = p * made.weights[:, None]
        found = p.new_empty(len(p), len(one), n_columns, n_columns)
        for t, (a, b) in enumerate(zip(one.tolist(), other.tolist(), strict=True)):
            curvature = weighted[:, a] * (float(a == b) - p[:, b])
            torch.matmul(made.shown * curvature[:, None], made.shown.mT, out=found[:, t])
        pairs = self._device.put(logit_pairs(logits))
        whole = found[:, pairs]  # (batch, logits, logits, columns, columns)
        whole = whole.permute(0, 3, 1, 4, 2).reshape(len(p), n_columns * logits, -1)
        diagonal = whole.diagonal(dim1=1, dim2=2)
        largest = diagonal.amax(1, keepdim=True).clamp(min=1.0)
        diagonal += torch.clamp(self._rules.min_information * largest, min=ridge)
        diagonal += made.empty.repeat_interleave(logits, 1)
        factor, failed = torch.linalg.cholesky_ex(whole)
        return torch.cholesky_inverse(factor), failed

    def _with_margins(self, made: _Batch) -> Tensor:
        torch = torch_module()
        out = made.coefficients.clone()
        slopes = out[:, 1:].mT @ made.shown[:, 1:]
        total = made.weights.sum(1, keepdim=True)
        observed = (made.own * made.weights[:, None]).sum(2)
        for _ in range(self._rules.margin_steps):
            p = _softmax(slopes + out[:, 0, :, None])
            expected = (p * made.weights[:, None]).sum(2)
            ratio = _log_ratio(observed, expected)
            rest = _log_ratio(
                total - observed.sum(1, keepdim=True), total - expected.sum(1, keepdim=True)
            )
            off = (observed - expected).abs().amax(1, keepdim=True)
            moving = off > self._rules.margin_tol * total
            out[:, 0] += torch.where(moving, ratio - rest, 0.0)
        return out

    def _score(
        self,
        group: list[tuple[int, int, int]],
        edges: Ends,
        bases: Sequence[Floats],
        made: _Batch,
        residuals: Tensor,
        inverse: Tensor,
        scores: dict[tuple[int, int], _Score],
    ) -> None:
        """Add the scores of sides whose tables have the same shape."""
        torch = torch_module()
        b = self._device.put(np.array([at for at, _, _ in group]))
        ends = [edges[k][side] for _, k, side in group]
        cells = self._device.put(np.stack([node.cells_of(other) for node, other in ends]))
        basis = self._device.put(bases[group[0][1]])
        logits, size = residuals.shape[1], cells.shape[1]
        across = inverse[b].gather(2, cells[:, None].expand(-1, inverse.shape[1], -1))
        inner = across.gather(1, cells[:, :, None].expand(-1, -1, size))
        information = torch.linalg.inv(inner)
        information = (information + information.mT) / 2
        projection = across @ information @ basis.T  # (sides, columns * logits, size)
        table = made.coefficients.flatten(1)[b].gather(1, cells)[:, :, None]
        shift = (basis @ (information @ table))[:, :, 0]
        flat = projection.view(len(b), -1, logits, size).permute(0, 2, 3, 1)
        information = basis @ information @ basis.T
        for own, together in groupby(range(len(group)), lambda at: group[at][0]):
            sides = list(together)
            part = slice(sides[0], sides[-1] + 1)
            rows = sum(
                (flat[part, a].reshape(-1, flat.shape[3]) @ made.shown[own]) * residuals[own, a]
                for a in range(logits)
            )
            for at, u in zip(sides, rows.view(len(sides), size, -1), strict=True):
                scores[group[at][1:]] = _Score(u, information[at], shift[at])

    def _sum(
        self,
        chosen: list[int],
        edges: Ends,
        scores: dict[tuple[int, int], _Score],
    ) -> dict[int, EdgeSums | int]:
        """Return the sums of edges over both sides."""
        torch = torch_module()
        key = lambda k: (len(edges[k]), len(scores[k, 0].shift))  # noqa: E731
        found: dict[int, EdgeSums | int] = {}
        for (n_sides, size), group in groupby(sorted(chosen, key=key), key):
            which = list(group)
            sides = [[scores[k, side] for k in which] for side in range(n_sides)]
            u = [torch.stack([each.u for each in side]) for side in sides]
            sums = torch.stack([part @ self._weights for part in u], 1)
            across = (u[0] * self._variances) @ u[-1].mT
            both = u[0] + u[1] if n_sides == 2 else u[0]
            whole = (both * self._variances) @ both.mT
            information = sum(torch.stack([each.information for each in side]) for side in sides)
            shift = sum(torch.stack([each.shift for each in side]) for side in sides)
            parts = sums, whole, across, information, shift[:, None]
            host = to_host(torch.cat(parts, 1))
            for k, values in zip(which, host, strict=True):
                by_side = np.zeros((2, size))
                by_side[:n_sides] = values[:n_sides]
                rest = values[n_sides:]
                crossed = rest[size : 2 * size] if n_sides == 2 else np.zeros((size, size))
                info = rest[2 * size : 3 * size]
                found[k] = EdgeSums(by_side, rest[:size], crossed, info, rest[3 * size])
        return found


def _runs(items: Iterable[_T], joins: Callable[[list[_T], _T], bool]) -> Iterator[list[_T]]:
    """Yield items in runs; one ends before an item that does not join it."""
    run: list[_T] = []
    for item in items:
        if run and not joins(run, item):
            yield run
            run = []
        run.append(item)
    if run:
        yield run


class _Score(NamedTuple):
    """The score of an edge in the conditional of one end."""

    u: Tensor  # (size, rows)
    information: Tensor
    shift: Tensor


def _size(node: Conditional, other: int) -> int:
    columns = node.columns_of(other)
    return int((columns.stop - columns.start) * node.coefficients.shape[1])


def _alike(asked: list[tuple[int, int, int]], edges: Ends) -> Iterator[list[tuple[int, int, int]]]:
    """Yield sides whose tables have the same shape, in the same order of the ends."""

    def key(each: tuple[int, int, int]) -> tuple[int, bool]:
        node, other = edges[each[1]][each[2]]
        return _size(node, other), other < node.design.target

    for _, group in groupby(sorted(asked, key=key), key):
        yield list(group)


def _residuals(made: _Batch) -> tuple[Tensor, Tensor]:
    """Return what rows show less what is expected, none for rows that are not used."""
    p = _softmax(made.coefficients.mT @ made.shown)
    residuals = made.own - p
    residuals *= made.weights[:, None] > 0
    return residuals, p


def _softmax(logits: Tensor) -> Tensor:
    """Return the probabilities of all states but the reference, whose logit is zero."""
    torch = torch_module()
    zero = logits.new_zeros(len(logits), 1, logits.shape[2])
    return torch.softmax(torch.cat((logits, zero), 1), 1)[:, :-1]


def _log_ratio(observed: Tensor, expected: Tensor) -> Tensor:
    """Return the logarithm of a ratio of rows, of which there is half a one at least."""
    return (observed.clamp(min=0.5) / expected.clamp(min=1e-12)).log()
