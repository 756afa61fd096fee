"""The inverse of a shrunk correlation matrix on a device."""

from __future__ import annotations

from edgegraft.core.types import Floats
from edgegraft.device.columns import to_host
from edgegraft.device.device import Device, torch_module


def invert_on_device(matrix: Floats, device: Device, smallest: float) -> Floats | None:
    """Return the inverse of a symmetric matrix, None if a pivot is below `smallest`."""
    torch = torch_module()
    device.check(3 * matrix.nbytes, "the inverse of all correlations")
    factor, failed = torch.linalg.cholesky_ex(device.put(matrix))
    if int(failed) or float(factor.diagonal().min()) <= smallest:
        return None
    return to_host(torch.cholesky_inverse(factor))
