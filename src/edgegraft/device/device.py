"""A device of PyTorch: its memory, and how arrays come there and back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from edgegraft.core.types import Floats
from edgegraft.errors import MemoryBudgetError

Tensor = Any  # of PyTorch, which need not be installed

_HOST_BYTES = 1 << 28  # budget: what PyTorch may take on the processor, where it checks the code
#: Matrices of all pairs of states, in double precision, at the peak of a fit.
_MATRICES = 6


@dataclass(frozen=True)
class Device:
    """A device of PyTorch."""

    name: str  # "cuda", or "cpu" for PyTorch on the processor

    @property
    def is_gpu(self) -> bool:
        """Whether it is a GPU, with memory of its own."""
        return self.name != "cpu"

    @property
    def total_bytes(self) -> int:
        """Memory of the device: what goes where depends on it, not on what is free."""
        if not self.is_gpu:
            return _HOST_BYTES
        return int(torch_module().cuda.get_device_properties(self.name).total_memory)

    @property
    def at_once(self) -> int:
        """Bytes of one array of a step: a sixteenth of the memory, since steps hold several."""
        return self.total_bytes // 16

    def holds(self, n_states: int) -> bool:
        """Return whether products of all pairs of these states fit, in half of the memory."""
        return 8 * _MATRICES * n_states**2 <= self.total_bytes // 2

    def check(self, n_bytes: float, what: str) -> None:
        """Refuse what would not fit, before it is allocated."""
        if not self.is_gpu:
            return
        free = int(torch_module().cuda.mem_get_info()[0])
        if n_bytes > free:
            raise MemoryBudgetError(
                f"{what} would take {n_bytes / 2**30:.1f} GiB of the GPU's memory, of which "
                f"{free / 2**30:.1f} GiB are free: use device='cpu', or close other programs "
                "that use the GPU"
            )

    def put(self, values: Any) -> Tensor:
        """Return a copy of an array on the device."""
        array = np.ascontiguousarray(values)
        if array.dtype == np.uint16:
            array = array.astype(np.int32)  # which PyTorch can compare
        return torch_module().tensor(array, device=self.name)


@cache
def has_gpu() -> bool:
    """Return whether PyTorch is installed and finds a GPU."""
    return find_spec("torch") is not None and bool(torch_module().cuda.is_available())


def torch_module() -> Any:
    """Return PyTorch."""
    import torch

    return torch


def slices(first: int, stop: int, size: int) -> list[slice]:
    """Return the numbers from `first` to `stop` in slices of at most `size`, or of one.

    >>> slices(0, 5, 3)
    [slice(0, 3, None), slice(3, 5, None)]
    """
    size = max(1, size)
    return [slice(at, min(at + size, stop)) for at in range(first, stop, size)]


def to_host(values: Tensor) -> Floats:
    """Return values as a double precision array."""
    on_host: Floats = values.double().cpu().numpy()
    return on_host
