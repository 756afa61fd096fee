"""UAI model files, written so that reading them back gives the same energies.

A UAI file contains potentials, the library stores their logs, and ``exp`` leaves the range of a
double beyond about 709. A factor is written unchanged if all its finite logs are within +-700;
otherwise it is divided by its largest entry, and the removed constants, together with that of the
caller, form one factor without variables:

    f(x) = exp(w(x) - max w)        c = log_constant + sum of the max w taken out

An entry that is still outside the range is written with its true decimal exponent, such as
``1e-400``. `read_uai` reads it exactly; other programs read zero.
"""

from __future__ import annotations

import math
import os

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core import Layout
from edgegraft.core.atomic import replace_file
from edgegraft.core.checks import check_theta
from edgegraft.core.types import Floats, Integers
from edgegraft.errors import ModelError
from edgegraft.model import PairwiseMRF

_SAFE_LOG = 700.0
_LARGEST_LOG = 1e15  # a larger log has no digits left for the mantissa


def write_uai(
    path: str | os.PathLike[str],
    layout: Layout,
    theta: ArrayLike,
    *,
    log_constant: float = 0.0,
) -> None:
    r"""Write a pairwise model as a UAI ``MARKOV`` file.

    The file is written atomically. It has one factor per variable, one per edge, and one without
    variables if there is a constant. Numbers have enough digits to be read back exactly. Some
    programs cannot read a factor without variables: none is written for a model without a constant
    and with potentials between ``exp(-700)`` and ``exp(700)``.

    Parameters
    ----------
    path : path-like
        The file; compressed if its name ends in ``.gz``.
    layout : Layout
        The variables' states and the edges.
    theta : array of float, shape (layout.n_parameters,)
        Natural logs of the potentials; minus infinity writes zero.
    log_constant : float
        Natural log of a constant factor.

    Raises
    ------
    ModelError
        `theta` has the wrong length, or an entry that is not the log of a finite potential.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "two.uai")
    ...     write_uai(path, Layout([2, 2], [(0, 1)]), np.log([1, 2, 1, 1, 1, 2, 4, 0.5]))
    ...     path.read_text().split("\n\n")
    ['MARKOV\n2\n2 2\n3\n1 0\n1 1\n2 0 1', '2\n1.0 2.0', '2\n1.0 1.0', '4\n1.0 2.0\n4.0 0.5\n']
    """
    logs = _checked(layout, theta, log_constant)
    scopes = [(i,) for i in range(layout.n_variables)] + [tuple(e) for e in layout.edges.tolist()]
    bounds = np.concatenate((layout.node_offset[:-1], layout.edge_offset))
    shifted, constant = _take_out_constants(logs, bounds, log_constant)
    if constant:
        scopes.append(())
        bounds = np.append(bounds, bounds[-1] + 1)
        shifted = np.append(shifted, constant)
    preamble = [
        "MARKOV",
        str(layout.n_variables),
        " ".join(map(str, layout.states.tolist())),
        str(len(scopes)),
        *(" ".join(map(str, (len(scope), *scope))) for scope in scopes),
    ]
    tables = _tables(layout, scopes, bounds, _decimals(shifted))
    replace_file(path, "\n".join([*preamble, *tables]) + "\n")


def model_to_uai(path: str | os.PathLike[str], model: PairwiseMRF) -> None:
    """Write a model as a UAI file; names and categories are lost, their order is kept."""
    write_uai(path, model.layout, model.theta)


def _checked(layout: Layout, theta: ArrayLike, log_constant: float) -> Floats:
    logs = check_theta(theta, layout)
    bad = (np.abs(logs) > _LARGEST_LOG) & ~np.isneginf(logs)
    if bad.any():
        k = int(np.argmax(bad))
        raise ModelError(
            f"theta[{k}] is {logs[k]}: a log-potential must be minus infinity or lie within "
            f"+-{_LARGEST_LOG:g}"
        )
    if not (abs(log_constant) <= _LARGEST_LOG or log_constant == -math.inf):
        raise ModelError(f"log_constant is {log_constant}, not the log of a finite constant")
    return logs


def _take_out_constants(logs: Floats, bounds: Integers, constant: float) -> tuple[Floats, float]:
    """Divide factors outside the safe range by their largest entries."""
    if not len(logs):
        return logs, constant
    starts, sizes = bounds[:-1], np.diff(bounds)
    largest = np.maximum.reduceat(logs, starts)
    smallest = np.minimum.reduceat(np.where(np.isneginf(logs), 0.0, logs), starts)
    unsafe = ~np.isneginf(largest) & ((largest > _SAFE_LOG) | (smallest < -_SAFE_LOG))
    shift = np.where(unsafe, largest, 0.0)
    return logs - np.repeat(shift, sizes), constant + math.fsum(shift)


def _decimals(logs: Floats) -> list[str]:
    safe = np.abs(logs) <= _SAFE_LOG
    with np.errstate(under="ignore"):
        texts = [repr(value) for value in np.exp(np.where(safe, logs, -np.inf)).tolist()]
    for k in np.flatnonzero(~safe & ~np.isneginf(logs)).tolist():
        log = float(logs[k])
        exponent = math.floor(log / math.log(10))
        # math.log(10) is off by 2e-16: removing all decades in one product makes an error that the
        # reader, which multiplies by the same constant, reverses.
        texts[k] = f"{math.exp(log - exponent * math.log(10))!r}e{exponent}"
    return texts


def _tables(
    layout: Layout,
    scopes: list[tuple[int, ...]],
    bounds: Integers,
    texts: list[str],
) -> list[str]:
    """Return the lines of the tables; the table of a pair has one line per row."""
    states, edges_of = layout.states.tolist(), bounds.tolist()
    lines = []
    for scope, start, stop in zip(scopes, edges_of, edges_of[1:], strict=False):
        width = states[scope[-1]] if scope else 1
        lines += ["", str(stop - start)]
        lines += [" ".join(texts[row : row + width]) for row in range(start, stop, width)]
    return lines
