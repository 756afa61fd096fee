"""The penalised fit of all pairs at once, by accelerated proximal steps on a device.

    min over u, W   L(u, W) + sum_e threshold_e ||W_e||_2

``L`` is the mean negative log-pseudolikelihood per row, ``W_e`` the table of a pair. Indicators are
centred, which takes the node vectors out of the curvature: with ``C`` their covariance it is at
most ``1/2`` in ``u`` and the largest eigenvalue of ``C`` in ``W``, since that of a softmax is at
most ``1/2`` and a table is in the conditionals of both ends. Steps are of that length, with
Nesterov's momentum, which begins again when a step goes against it (O'Donoghue and Candes 2015).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edgegraft.core.types import Floats
from edgegraft.device.columns import DeviceColumns, Step, columns_on
from edgegraft.device.device import Device, Tensor, to_host, torch_module
from edgegraft.device.products import residuals_of
from edgegraft.table.blocks import TableRows


@dataclass(frozen=True)
class _Rule:
    matrix_bytes: int = 1 << 28  # budget: of one matrix, beyond which products take seconds a step
    steps: int = 200  # budget: at most
    tol: float = 1e-2  # of the tables' norm: what a last step moves; an order needs no more digits
    power_steps: int = 20  # for the largest eigenvalue, which comes within 5 % from below ...
    margin: float = 1.1  # ... and is raised by this


_RULE = _Rule()


def fit_pairs(device: Device, block: TableRows, threshold: Floats) -> Floats | None:
    """Return the strength of every pair: above one if its table is not zero.

    `threshold` is symmetric, shape (n, n). The strength of a table of zeros is the norm of its
    gradient over the threshold, of others one more than their norm. None if the rows, or
    products of all pairs, do not fit the memory.
    """
    torch = torch_module()
    columns = columns_on(device, block)
    n_states = columns.n_states
    if 4 * n_states**2 > _RULE.matrix_bytes or 4 * n_states * columns.n_rows > device.at_once:
        return None
    order = columns.order
    bound = device.put(threshold[np.ix_(order, order)]).float()
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")  # 10 binary digits of each factor: for an order
    try:
        strengths = to_host(_Fit(columns, block.weight, bound).run())
    finally:
        torch.set_float32_matmul_precision(precision)
    out = np.empty_like(strengths)
    out[np.ix_(order, order)] = strengths
    return out


class _Fit:
    """Node vectors and tables of all pairs, in single precision."""

    def __init__(self, columns: DeviceColumns, total: float, bound: Tensor) -> None:
        torch = torch_module()
        self._columns, self._total, self._bound = columns, total, bound
        shown = columns.shown(torch.float32)
        weights = None if columns.weights is None else columns.weights.float()
        self._step = Step(shown, weights)
        sums = shown.sum(1, keepdim=True) if weights is None else (shown @ weights)[:, None]
        share = sums / total
        self._centred = shown - share
        if not columns.complete:  # a missing neighbour counts as its mean: an approximation
            for group in columns.groups:
                known = group.of(shown).sum(1, keepdim=True)
                group.of(self._centred).mul_(known)
        self._owner = columns.owner
        self._of = torch.nn.functional.one_hot(self._owner, len(columns.order)).float()
        self._bias = share.clamp(min=0.5 / total).log()
        self._slope = 1 / (self._largest_eigenvalue() * _RULE.margin)

    def run(self) -> Tensor:
        """Minimise, and return the strengths."""
        torch = torch_module()
        bias = ahead_bias = self._bias
        tables = ahead = torch.zeros(len(self._owner), len(self._owner), device=bias.device)
        pace = 1.0
        for _ in range(_RULE.steps):
            by_bias, by_tables = self._gradient(ahead_bias, ahead)
            moved = ahead - self._slope * by_tables
            norms = self._norms(moved)
            kept = (1 - self._slope * self._bound / norms.clamp(min=1e-30)).clamp(min=0)
            kept.fill_diagonal_(0)
            new = moved * kept[self._owner][:, self._owner]
            new_bias = ahead_bias - 2 * by_bias
            step = (new - tables).norm()
            if float(step) <= _RULE.tol * float(new.norm()):
                break
            against = torch.vdot((ahead - new).view(-1), (new - tables).view(-1))
            pace = 1.0 if float(against) > 0 else pace
            next_pace = (1 + (1 + 4 * pace**2) ** 0.5) / 2
            momentum, pace = (pace - 1) / next_pace, next_pace
            ahead = new + momentum * (new - tables)
            ahead_bias = new_bias + momentum * (new_bias - bias)
            tables, bias = new, new_bias
        at_zero = norms / (self._slope * self._bound)
        return torch.where(kept > 0, 1 + norms * kept, at_zero.clamp(max=1))

    def _gradient(self, bias: Tensor, tables: Tensor) -> tuple[Tensor, Tensor]:
        residuals, _ = residuals_of(self._columns, tables @ self._centred + bias, self._step)
        pairs = residuals @ self._centred.T
        return residuals.sum(1, keepdim=True) / -self._total, (pairs + pairs.T) / -self._total

    def _norms(self, tables: Tensor) -> Tensor:
        return (self._of.T @ tables.square() @ self._of).sqrt()

    def _largest_eigenvalue(self) -> float:
        vector = torch_module().ones_like(self._bias)
        weights = 1.0 if self._step.weights is None else self._step.weights[:, None]
        value = 1.0
        vector[::2] = 0.5
        for _ in range(_RULE.power_steps):
            vector = self._centred @ (weights * (self._centred.T @ vector)) / self._total
            value = float(vector.norm())
            vector /= max(value, 1e-30)
        return value
