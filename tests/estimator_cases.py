"""Small surveys with missing cells, shared by the tests of the estimators."""

from __future__ import annotations

import numpy as np
import pandas as pd


def survey(n_rows=600, missing=0.0, seed=0) -> pd.DataFrame:
    """Return a chain smoker - cough - visits, with independent columns.

    The columns are text, ordered categories of which one never occurs, small numbers, booleans and
    a continuous column that follows `visits`.
    """
    rng = np.random.default_rng(seed)

    def follow(codes, n_states):
        return np.where(
            rng.random(n_rows) < 0.7, codes % n_states, rng.integers(0, n_states, n_rows)
        )

    smoker = rng.integers(0, 2, n_rows)
    cough = follow(smoker, 3)
    visits = follow(cough, 3)
    frame = pd.DataFrame(
        {
            "smoker": np.array(["no", "yes"])[smoker],
            "cough": pd.Categorical.from_codes(
                np.array([0, 1, 3])[cough], ["none", "some", "unheard of", "much"], ordered=True
            ),
            "visits": visits,
            "insured": rng.random(n_rows) < 0.6,
            "score": visits + rng.normal(size=n_rows),
        }
    )
    for name in ("smoker", "cough", "score"):
        holes = rng.random(n_rows) < missing
        frame.loc[holes, name] = None
    return frame
