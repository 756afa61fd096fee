"""Results over seeds: means with intervals, first places and speed ratios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from benchmarks.rivals.harness import Result
from benchmarks.rivals.registry import RIVALS

OURS, DENSE = "edgegraft", "edgegraft-dense"
#: Largest difference in average precision, F1 or relative pseudolikelihood that counts as equal.
EQUAL = 0.005
FASTER = 10.0
NOT_FIGURES = ("variant",)
#: Figures compared only on the seeds that both tools have.
PAIRED = (
    "average_precision", "f1_true_number", "f1_own_cut", "held_out", "held_out_conditionals",
)  # fmt: skip


class Spread(NamedTuple):
    """A mean over seeds and half of its 95 % interval (Student's t), None for one seed."""

    mean: float
    half: float | None = None


class Line(NamedTuple):
    """A tool, or a variant of it, on one data set; `ended` states why it has no figures.

    `ours` and `theirs` are means over the seeds that both tools have: of each of our tools, by
    name, and of this tool.
    """

    label: str
    rival: str
    figures: dict[str, Spread]
    ended: str | None = None
    ours: Mapping[str, Mapping[str, float]] = MappingProxyType({})
    theirs: Mapping[str, Mapping[str, float]] = MappingProxyType({})

    def score(self, key: str, own: str) -> float:
        """Return the mean of a figure over the seeds that one of our tools also has."""
        return self.theirs.get(own, {}).get(key, self.figures[key].mean)


def summarise(results: Sequence[Result], data: str) -> list[Line]:
    """Return the lines of one data set: ours first, then by quality; failures last."""
    lines: list[Line] = []
    here = [each for each in results if each["data"] == data]
    ours = {
        name: {
            each["seed"]: each["outcomes"][0]
            for each in here
            if each["rival"] == name and each["status"] == "done"
        }
        for name in (OURS, DENSE)
    }
    for name in RIVALS:
        mine = [each for each in here if each["rival"] == name]
        done = [each for each in mine if each["status"] == "done"]
        if done:
            lines += lines_of(name, done, ours)
        elif mine and mine[0]["status"] not in ("absent", "binary only"):
            lines.append(Line(name, name, {}, failure_of(mine[0])))
    return sorted(lines, key=place)


def lines_of(
    name: str, done: Sequence[Result], ours: dict[str, dict[int, dict[str, Any]]]
) -> list[Line]:
    """Return one line per variant.

    Seeds of a generator differ far more in predictability than tools do. The interval of a held-out
    score is therefore that of its difference from ours, seed by seed.
    """
    lines = []
    paired = name != OURS and all(each["seed"] in ours[OURS] for each in done)
    means = {
        own: means_of([found[each["seed"]] for each in done if each["seed"] in found])
        for own, found in ours.items()
    }
    for k, first in enumerate(done[0]["outcomes"]):
        variant = first["variant"]
        columns = {key: [each[key] for each in done] for key in ("cpu_s", "wall_s", "peak_mb")}
        if RIVALS[name].gpu:  # its CPU time is not informative
            columns["cpu_s"] = columns["wall_s"]
        columns |= {
            key: [each["outcomes"][k][key] for each in done]
            for key in first
            if key not in NOT_FIGURES
        }
        figures = {key: spread(values) for key, values in columns.items()}
        for key in {"held_out", "held_out_conditionals"} & set(figures):
            half = None
            if paired:
                gaps = [
                    value - ours[OURS][each["seed"]]["held_out"]
                    for value, each in zip(columns[key], done, strict=True)
                ]
                half = spread(gaps).half
            figures[key] = Spread(figures[key].mean, half)
        if all(figures != line.figures for line in lines):  # variants may rank differently
            theirs = {
                own: means_of([each["outcomes"][k] for each in done if each["seed"] in found])
                for own, found in ours.items()
            }
            lines.append(Line(f"{name} {variant}".strip(), name, figures, None, means, theirs))
    return lines


def means_of(outcomes: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return the means of outcomes of one tool."""
    return {
        key: float(np.mean([each[key] for each in outcomes]))
        for key in PAIRED
        if outcomes and key in outcomes[0]
    }


def spread(values: Sequence[float]) -> Spread:
    """Return the mean and half of the interval."""
    if len(values) < 2:
        return Spread(float(values[0]))
    error = float(np.std(values, ddof=1)) / len(values) ** 0.5
    return Spread(float(np.mean(values)), float(stats.t.ppf(0.975, len(values) - 1)) * error)


def failure_of(result: Result) -> str:
    """Return how a fit without figures ended."""
    if result["status"] == "timed out":
        return f"timed out ({result['limit_s']:.0f} s)"
    return f"failed: {result.get('message', '')}".replace("|", "/")


def place(line: Line) -> tuple[bool, bool, float]:
    figures = line.figures
    if "average_precision" in figures:
        quality = -figures["average_precision"].mean
    else:
        quality = likelihood(line) if likelihood(line) is not None else np.inf
    return line.label != OURS, line.ended is not None, quality


def likelihood(line: Line) -> float | None:
    """Return the better (lower) of the two held-out scores."""
    found = [
        line.figures[key].mean
        for key in ("held_out", "held_out_conditionals")
        if key in line.figures
    ]
    return min(found) if found else None


def verdict(lines: Sequence[Line]) -> list[str]:
    """Return one sentence per figure: our place, and our speed compared with equal tools."""
    ours = next((line for line in lines if line.label == OURS and line.ended is None), None)
    rest = [line for line in lines if not line.rival.startswith(OURS) and line.ended is None]
    if ours is None or not rest:
        return []
    sentences = []
    for key, head in (
        ("average_precision", "Average precision"),
        ("f1_true_number", "F1 at the true number of edges"),
        ("f1_own_cut", "F1 of its own cut"),
    ):
        if key in ours.figures:
            scores = {line.label: line.score(key, OURS) for line in rest if key in line.figures}
            sentences.append(compare(head, ours, key, scores, rest))
    for own in [line for line in lines if line.label in (OURS, DENSE) and line.ended is None]:
        for key, what in (("held_out", "one model"), ("held_out_conditionals", "conditionals")):
            scores = {
                line.label: line.score(key, own.label) for line in rest if key in line.figures
            }
            if scores:
                head = f"Held out, `{own.label}` against {what}"
                sentences.append(compare(head, own, "held_out", scores, rest))
    return sentences


def compare(head: str, ours: Line, key: str, scores: dict[str, float], rest: Sequence[Line]) -> str:
    """Return a sentence on first place and speed in one figure, by differences on common seeds."""
    if not scores:
        return f"{head}: no other tool provides one."
    seconds = {line.label: line.figures["cpu_s"].mean for line in rest}
    mine = {
        line.label: line.ours.get(ours.label, {}).get(key, ours.figures[key].mean) for line in rest
    }
    ahead = {label: value - mine[label] for label, value in scores.items()}
    if key == "held_out":  # lower is better; relative to the scale of the data
        ahead = {label: -value / mine[label] for label, value in ahead.items()}
    best = max(ahead, key=lambda label: ahead[label])
    shown = f"{scores[best]:.3f} to our {mine[best]:.3f}"
    first = "first" if ahead[best] <= 0.0 else f"**not first**: {best} has {shown}"
    mine_s = ours.figures["cpu_s"].mean
    equals = [label for label, value in ahead.items() if value >= -EQUAL]
    if not equals:
        return (
            f"{head}: {first}; none of the others is as good. The best, {best}, has {shown} and "
            f"takes {seconds[best]:,.3g} s to our {mine_s:,.3g}."
        )
    fastest = min(equals, key=lambda label: seconds[label])
    ratio = seconds[fastest] / mine_s
    mark = "" if ratio >= FASTER else f" (**less than {FASTER:g}**)"
    return (
        f"{head}: {first}; {ratio:.2g} times as fast as {fastest}, the fastest that is as good "
        f"within {EQUAL:g}{mark}."
    )
