"""A classifier for every column of a survey: one joint model beside a logistic regression of each.

Ours is one ``GraftedMRF(aim="prediction")`` per fold, asked for each column given the others
(``predict``); the rival is scikit-learn's multinomial ``LogisticRegression`` on indicators of all
categories of the other columns, fitted anew for each column. Missing cells have no indicator; rows
whose target is missing are not scored. Its ``C``, one per survey, is the best of .01 to 3 by the
accuracy on a fifth of the first fold's training rows. Three folds, the same for both; accuracy and
log loss (nats) are means over all known cells, and the error of a difference is that of its means
per row. Levels are ordered columns for ours. Numbers of the bundled survey are not targets.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from benchmarks.rows import Row
from edgegraft import GraftedMRF
from edgegraft.datasets import load_survey

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"
SURVEYS = ("jonas", "house_votes_84", "wenchuan", "survey", "bfi")
LEVELS = ("wenchuan", "bfi")
FOLDS = 3
GRID = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
FLOOR = 1e-6  # of a probability

Scores = NDArray[np.float64]


def run(scale: float = 1.0) -> list[Row]:
    """Return one row per survey; `scale` is the share of the rows."""
    names = SURVEYS if FOLDER.is_dir() else ("survey",)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [compare(name, scale) for name in names]


def read(name: str) -> pd.DataFrame:
    """Return a survey as categories, levels in order; numbers of the bundled one stay numbers."""
    if name == "survey":
        frame = pd.DataFrame(load_survey())
        texts = [column for column in frame if not pd.api.types.is_numeric_dtype(frame[column])]
        return frame.astype(dict.fromkeys(texts, "category"))
    frame = pd.read_csv(FOLDER / f"{name}.csv.gz", na_values="?")
    if name not in LEVELS:
        return frame.astype("category")
    levels = range(1, int(frame.max().max()) + 1)
    return frame.astype("Int64").astype(pd.CategoricalDtype(levels, ordered=True))


def compare(name: str, scale: float) -> Row:
    """Return the accuracies of both, over the columns of a survey."""
    frame = read(name)
    frame = frame.iloc[: max(60, round(scale * len(frame)))]
    targets = [column for column in frame if isinstance(frame[column].dtype, pd.CategoricalDtype)]
    fold = np.random.default_rng(0).permutation(len(frame)) % FOLDS
    level = choose(frame[fold != 0], targets)
    seconds, folds = np.zeros(2), []
    for k in range(FOLDS):
        train, test = frame[fold != k], frame[fold == k]
        sides = []
        for side, score in enumerate((joint, lambda *given: regress(*given, level))):
            began = process_time()
            sides.append(score(train, test, targets))
            seconds[side] += process_time() - began
        folds.append(np.stack(sides))
    found = np.concatenate(folds, axis=2)  # sides, accuracy and loss, rows, columns
    (ours, our_loss), (theirs, their_loss) = np.nanmean(found, axis=(2, 3))
    difference = np.nanmean(found[0, 0] - found[1, 0], axis=1)
    error = np.nanstd(difference) / len(difference) ** 0.5
    note = (
        f"difference {100 * (ours - theirs):+.2f} +- {100 * error:.2f}; "
        f"log loss {our_loss:.4f} and {their_loss:.4f}; {seconds[0]:.1f} and {seconds[1]:.1f} s "
        f"of three folds, the choice of C = {level:g} not counted"
    )
    work = f"{name}: {len(targets)} columns, {len(frame):,} rows"
    rival = "logistic regressions"
    return Row(work, 100 * ours, rival, 100 * theirs, "%", 1.0, note, higher_is_better=True)


def joint(train: pd.DataFrame, test: pd.DataFrame, targets: list[Any]) -> Scores:
    """Return whether one joint model is right and its log loss, for all rows and columns."""
    fitted = GraftedMRF(aim="prediction", random_state=0).fit(train)
    scores = []
    for target in targets:
        codes = test[target].cat.codes.to_numpy()
        known = fitted.model_.schema[target].categories
        order = [list(known).index(c) if c in known else -1 for c in test[target].cat.categories]
        shares = fitted.predict_proba(test, target)
        whole = np.where(np.array(order) >= 0, shares[:, order], 0.0)
        scores.append(judge(whole, codes))
    return np.stack(scores, axis=2)


def regress(train: pd.DataFrame, test: pd.DataFrame, targets: list[Any], level: float) -> Scores:
    """Return whether regressions are right and their log loss, for all rows and columns."""
    features, fitted = indicators(train, train), indicators(test, train)
    scores = []
    for target in targets:
        codes = train[target].cat.codes.to_numpy()
        X = np.hstack([part for name, part in features.items() if name != target])
        held = np.hstack([part for name, part in fitted.items() if name != target])
        known = codes >= 0
        rule = LogisticRegression(C=level, max_iter=300).fit(X[known], codes[known])
        shares = np.zeros((len(test), len(test[target].cat.categories)))
        shares[:, rule.classes_] = rule.predict_proba(held)
        scores.append(judge(shares, test[target].cat.codes.to_numpy()))
    return np.stack(scores, axis=2)


def indicators(frame: pd.DataFrame, train: pd.DataFrame) -> dict[Any, Scores]:
    """Return the features of every column: indicators of categories, or the scaled number."""
    found = {}
    for name in frame:
        if isinstance(frame[name].dtype, pd.CategoricalDtype):
            codes = frame[name].cat.codes.to_numpy()
            found[name] = (codes[:, None] == np.arange(len(frame[name].cat.categories))) * 1.0
        else:
            scaled = (frame[name] - train[name].mean()) / train[name].std()
            found[name] = scaled.fillna(0.0).to_numpy(float)[:, None]
    return found


def judge(shares: Scores, codes: NDArray[np.integer[Any]]) -> Scores:
    """Return per row whether the likeliest category is right and the log loss; nan if unknown."""
    own = np.where(codes >= 0, shares[np.arange(len(codes)), codes], np.nan)
    right = np.where(codes >= 0, shares.argmax(axis=1) == codes, np.nan)
    return np.stack((right, -np.log(np.maximum(own, FLOOR))))


def choose(train: pd.DataFrame, targets: list[Any]) -> float:
    """Return the ``C`` with the best accuracy on a fifth of the rows."""
    held = np.random.default_rng(1).permutation(len(train)) % 5 == 0
    found = [np.nanmean(regress(train[~held], train[held], targets, c)[0]) for c in GRID]
    return GRID[int(np.argmax(found))]
