"""The operations of a device, as :class:`edgegraft.core.backend.Backend` has them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgegraft.core import Layout
from edgegraft.device import pair_fit, partners, products
from edgegraft.device.chains import DeviceChains
from edgegraft.device.device import Device, find_device


class TorchBackend(Device):
    """A device with its operations: functions of the device and what they work on."""

    count = products.count
    evaluate = products.evaluate
    score = products.score
    partners = partners.partners
    fit_pairs = pair_fit.fit_pairs

    def chains(self, layout: Layout, start: NDArray[np.uint16], seed: int) -> DeviceChains:
        """Return chains of a model in the states `start`, shape (n, n_chains)."""
        return DeviceChains(layout, self, start, seed)


def find(name: str) -> TorchBackend | None:
    """Return the backend of "cuda", "auto" or "torch"; None for the processor's kernels."""
    device = find_device(name)
    return None if device is None else TorchBackend(device.name)
