"""A backend of PyTorch, for a GPU: three operations, which the core asks for by one protocol.

Products of indicators and residuals of all rows (:mod:`~edgegraft.device.products`, and the sweep
over all pairs in :mod:`~edgegraft.device.partners`), the penalised fit of all pairs
(:mod:`~edgegraft.device.pair_fit`), and chains (:mod:`~edgegraft.device.chains`). PyTorch, the
extra ``gpu``, is imported when a device is first found.
"""

from __future__ import annotations

from edgegraft.device.backend import TorchBackend, find

__all__ = ["TorchBackend", "find"]
