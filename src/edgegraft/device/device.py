"""Where sums over rows are computed, the memory there, and operations that several sums share."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from edgegraft.core.types import Floats, Integers
from edgegraft.errors import MemoryBudgetError, MissingExtraError, SettingError

Tensor = Any  # of PyTorch, which need not be installed

_HOST_BYTES = 1 << 28  # that PyTorch may take on the processor for one step


@dataclass(frozen=True)
class Device:
    """A device of PyTorch."""

    name: str  # "cuda", or "cpu" for PyTorch on the processor

    @property
    def is_gpu(self) -> bool:
        """Whether it is a GPU, with memory of its own."""
        return self.name != "cpu"

    @property
    def free_bytes(self) -> int:
        """Memory that may be taken."""
        if not self.is_gpu:
            return _HOST_BYTES
        # What PyTorch holds and does not use is left out: counting it takes longer than the work.
        return int(torch_module().cuda.mem_get_info()[0])

    def check(self, n_bytes: float, what: str) -> None:
        """Refuse what would not fit, before it is allocated."""
        free = self.free_bytes
        if self.is_gpu and n_bytes > free:
            raise MemoryBudgetError(
                f"{what} would take {n_bytes / 2**30:.1f} GiB of the GPU's memory, of which "
                f"{free / 2**30:.1f} GiB are free: use device='cpu', or close other programs "
                "that use the GPU"
            )

    def put(self, values: Any) -> Tensor:
        """Return a copy of an array on the device."""
        torch = torch_module()
        array = np.ascontiguousarray(values)
        if array.dtype == np.uint16:
            array = array.astype(np.int32)  # which PyTorch can compare
        return torch.tensor(array, device=self.name)


def find_device(asked: str) -> Device | None:
    """Return the device of a setting; None for the processor with kernels of its own, "cpu".

    "auto" is a GPU, "cuda", if PyTorch finds one. "torch" is PyTorch on the processor: slower than
    "cpu", with the same results as on a GPU but for rounding.

    >>> find_device("cpu") is None
    True
    """
    if asked == "cpu" or (asked == "auto" and not _has_gpu()):
        return None
    if asked != "auto" and find_spec("torch") is None:
        raise MissingExtraError("torch", "gpu", f"device={asked!r}")
    if asked == "torch":
        torch_module().set_num_threads(1)  # so that results do not depend on their number
        return Device("cpu")
    if not _has_gpu():
        problem = "must not be 'cuda' here, PyTorch finds no GPU: 'auto' takes one if there is one"
        raise SettingError("device", problem)
    return Device("cuda")


@cache
def _has_gpu() -> bool:
    return find_spec("torch") is not None and bool(torch_module().cuda.is_available())


@cache
def torch_module() -> Any:
    """Return PyTorch, which says once that its sparse matrices are in beta state."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.sparse_csr_tensor(torch.tensor([0, 0]), torch.tensor([]).long(), [], (1, 1))
    return torch


class EdgeMatrix:
    """The tables of all edges as one sparse matrix: their cells, and mirrored.

    Products add in the order of the columns: the same device gives the same bits.
    """

    def __init__(self, row: Integers, column: Integers, size: int, device: Device) -> None:
        rows, columns = np.concatenate((row, column)), np.concatenate((column, row))
        order = np.lexsort((columns, rows))
        self._size = size
        self._begin = np.searchsorted(rows[order], np.arange(size + 1))
        self._starts, self._columns = device.put(self._begin), device.put(columns[order])
        self._cell_of = device.put(order % max(1, len(row)))

    def values(self, cells: Tensor) -> Tensor:
        """Return the values of the matrix, from those of the tables' cells."""
        return cells[self._cell_of]

    def times(self, values: Tensor, shown: Tensor, rows: slice = slice(None)) -> Tensor:
        """Return some rows of the product with an array that has a row per state."""
        begin, stop, _ = rows.indices(self._size)
        first, end = int(self._begin[begin]), int(self._begin[stop])
        matrix = torch_module().sparse_csr_tensor(
            self._starts[begin : stop + 1] - first,
            self._columns[first:end],
            values[first:end],
            (stop - begin, self._size),
            check_invariants=False,
        )
        return matrix @ shown


def slices(first: int, stop: int, size: int) -> list[slice]:
    """Return the numbers from `first` to `stop` in slices of at most `size`, or of one.

    >>> slices(0, 5, 3)
    [slice(0, 3, None), slice(3, 5, None)]
    """
    size = max(1, size)
    return [slice(at, min(at + size, stop)) for at in range(first, stop, size)]


def to_host(values: Tensor) -> Floats:
    """Return values as a double precision array."""
    found: Floats = values.double().cpu().numpy()
    return found


def half_product(left: Tensor, right: Tensor) -> Tensor:
    """Return ``left right'`` of arrays in half precision, with sums in single precision."""
    if left.is_cuda:
        return torch_module().mm(left, right.T, out_dtype=torch_module().float32)
    return left.float() @ right.float().T


def invert_on_device(matrix: Floats, device: Device, smallest: float) -> Floats | None:
    """Return the inverse of a symmetric matrix, None if a pivot is below `smallest`."""
    torch = torch_module()
    device.check(3 * matrix.nbytes, "the inverse of all correlations")
    factor, failed = torch.linalg.cholesky_ex(device.put(matrix))
    if int(failed) or float(factor.diagonal().min()) <= smallest:
        return None
    return to_host(torch.cholesky_inverse(factor))
