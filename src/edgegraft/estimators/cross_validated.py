"""`GraftedMRFCV`, the former name of ``GraftedMRF(aim="prediction")``."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

from numpy.typing import ArrayLike

from edgegraft.config import Aim
from edgegraft.estimators.grafted import GraftedMRF


@dataclass(kw_only=True, eq=False, repr=False)
class GraftedMRFCV(GraftedMRF):
    """``GraftedMRF(aim="prediction")``, which replaces it and will remain.

    The parameters `penalties`, `ridges` and `cv` are gone: the strengths are found by rows held
    out, and ``prediction_.trials`` lists what was tried instead of ``cv_results_``.
    """

    aim: Aim = "prediction"

    def fit(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None, **design: Any
    ) -> Self:
        """Learn as :meth:`GraftedMRF.fit` does, with a FutureWarning."""
        warnings.warn(
            "GraftedMRFCV will be removed: use GraftedMRF(aim='prediction')",
            FutureWarning,
            stacklevel=2,
        )
        return super().fit(X, y, sample_weight, **design)
