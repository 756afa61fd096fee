"""Estimators in the manner of scikit-learn, thin over :mod:`edgegraft.learn`."""

from edgegraft.estimators.cross_validated import GraftedMRFCV
from edgegraft.estimators.grafted import GraftedMRF

__all__ = ["GraftedMRF", "GraftedMRFCV"]
