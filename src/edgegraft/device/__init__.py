"""Sums over rows on a GPU: the same sums as on the processor, by matrix products of PyTorch.

Rows know where they are computed: a block of rows with a `device` hands its work to this package,
whatever asks for it. PyTorch, the extra ``gpu``, is imported when a device is first found.
"""

from edgegraft.device.device import Device, find_device

__all__ = ["Device", "find_device"]
