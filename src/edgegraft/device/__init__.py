"""A backend of PyTorch, for a GPU: three operations, which the core asks for by one protocol.

Products of indicators and residuals of all rows (:mod:`~edgegraft.device.products`, and the sweep
over all pairs in :mod:`~edgegraft.device.partners`), the penalised fit of all pairs
(:mod:`~edgegraft.device.pair_fit`), and chains (:mod:`~edgegraft.device.chains`). PyTorch, the
extra ``gpu``, is imported when a device is first found.
"""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from edgegraft.core import Layout
from edgegraft.device import pair_fit, partners, products
from edgegraft.device.chains import DeviceChains
from edgegraft.device.device import Device, has_gpu, torch_module
from edgegraft.errors import MissingExtraError, SettingError


class TorchBackend(Device):
    """A device with its operations, as :class:`edgegraft.core.backend.Backend` has them."""

    count = products.count
    evaluate = products.evaluate
    score = products.score
    partners = partners.partners
    fit_pairs = pair_fit.fit_pairs

    def chains(self, layout: Layout, start: NDArray[np.uint16], seed: int) -> DeviceChains:
        """Return chains of a model in the states `start`, shape (n, n_chains)."""
        return DeviceChains(layout, self, start, seed)


def find(name: str) -> TorchBackend | None:
    """Return the backend of "cuda", "auto" or "torch"; None for the processor's kernels.

    "auto" is a GPU, "cuda", if PyTorch finds one. "torch" is PyTorch on the processor: slower than
    "cpu", with the same results as on a GPU but for rounding.
    """
    if name == "auto" and not has_gpu():
        return None
    if find_spec("torch") is None:
        raise MissingExtraError("torch", "gpu", f"device={name!r}")
    if name == "torch":
        torch_module().set_num_threads(1)  # so that results do not depend on their number
        return TorchBackend("cpu")
    if not has_gpu():
        problem = "must not be 'cuda' here, PyTorch finds no GPU: 'auto' takes one if there is one"
        raise SettingError("device", problem)
    return TorchBackend("cuda")
