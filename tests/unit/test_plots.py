"""Pictures: what is drawn is what the model and the run have."""

from __future__ import annotations

import sys

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_hex
from scipy.spatial.distance import cdist

from edgegraft.core import all_pairs
from edgegraft.errors import DataError, MissingExtraError, ModelError
from edgegraft.model import PairwiseMRF
from edgegraft.report import plot_edge, plot_marginals, plot_network, plot_trace
from edgegraft.report.layout import bend_edges, curve_points, lay_out, place_labels
from edgegraft.report.network import build_network, edge_signs
from edgegraft.report.style import NEGATIVE, POSITIVE
from edgegraft.table import Schema


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    plt.close("all")


@pytest.fixture
def model():
    """Two cliques of four, joined by one weak negative edge; a variable of three; one alone."""
    names = [*"abcdefgh", "three", "alone"]
    tables = {}
    for clique in ("abcd", "efgh"):
        for k, first in enumerate(clique):
            for second in clique[k + 1 :]:
                tables[first, second] = [[1.0, 0.0], [0.0, 1.0]]
    tables["d", "e"] = [[-0.1, 0.0], [0.0, 0.0]]
    tables["h", "three"] = [[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    categories = {name: ["no", "yes"] for name in names} | {"three": ["$x$", "low", "high"]}
    return PairwiseMRF.from_potentials(categories, edges=tables)


def lines_of(ax):
    return next(c for c in ax.collections if isinstance(c, LineCollection))


def dots_of(ax):
    return np.concatenate(
        [c.get_offsets() for c in ax.collections if isinstance(c, PathCollection)]
    )


def texts_of(ax):
    return {text.get_text() for text in ax.texts}


def test_network_draws_every_edge_with_its_width_and_sign(model):
    ax = plot_network(model, names=True)
    lines = lines_of(ax)
    assert len(lines.get_segments()) == model.n_edges
    assert texts_of(ax) == set(model.names)
    assert np.isfinite(dots_of(ax)).all()
    assert np.isfinite(lines.get_colors()).all()
    order = np.argsort(model.edge_strengths(), kind="stable")
    widths = np.asarray(lines.get_linewidths())
    assert (np.diff(widths) >= 0).all()
    assert widths[-1] > widths[0]
    colours = [to_hex(colour).upper() for colour in lines.get_colors()]
    signs = edge_signs(model)[order]
    assert [c == POSITIVE for c in colours] == [s == 1 for s in signs]
    assert [c == NEGATIVE for c in colours] == [s == -1 for s in signs]
    assert sorted(signs.tolist()) == [-1, 0] + [1] * 12


def test_edges_keep_clear_of_dots_that_they_do_not_join():
    straight = bent = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        n, m = 20, 28
        edges = np.array(all_pairs(n))[np.sort(rng.choice(n * (n - 1) // 2, m, replace=False))]
        spots = lay_out(n, edges)
        middle = spots[edges].mean(axis=1)
        for bends in (middle, bend_edges(spots, edges)):
            gaps = cdist(curve_points(spots[edges], bends).reshape(-1, 2), spots)
            gaps = gaps.reshape(m, -1, n).min(axis=1)
            np.put_along_axis(gaps, edges, np.inf, axis=1)
            met = int((gaps < 0.1).sum())  # a dot and half a line
            straight, bent = (straight + met, bent) if bends is middle else (straight, bent + met)
    assert straight >= 5
    assert bent == 0


def test_a_legend_explains_width_size_and_colour(model):
    legend = [text.get_text() for text in plot_network(model).get_legend().get_texts()]
    strengths = model.edge_strengths()
    assert legend[:2] == [f"strength {strengths.min():.2g}", f"strength {strengths.max():.2g}"]
    total = model.adjacency().sum(axis=0)
    sums = [total[total > 0].min(), total.max()]
    assert legend[2:4] == [f"sum of strengths {value:.2g}" for value in sums]
    ax = plot_network(model, signs=-np.ones(model.n_edges))
    assert {to_hex(colour).upper() for colour in lines_of(ax).get_colors()} == {NEGATIVE}
    assert {"positive", "negative", "no sign", "colours: communities"} <= set(legend)


def test_network_uses_the_axes_given(model):
    _, ax = plt.subplots()
    assert plot_network(model, ax) is ax
    assert len(plt.get_fignums()) == 1


def test_network_finds_the_communities(model):
    network = build_network(model)
    group = dict(zip(network.names, network.group.tolist(), strict=True))
    assert len({group[v] for v in "abcd"}) == 1
    assert len({group[v] for v in "efgh"}) == 1
    assert group["a"] != group["e"]


def test_network_can_be_a_part(model):
    assert len(lines_of(plot_network(model, top=3)).get_segments()) == 3
    strong = model.edge_strengths() >= 0.5
    assert len(lines_of(plot_network(model, min_strength=0.5)).get_segments()) == strong.sum()
    around = build_network(model, around="d")
    assert set(around.names) == {*"abcde"}
    assert len(around.edges) == 7
    assert build_network(model, around="alone").names == ("alone",)
    assert texts_of(plot_network(model, around="alone")) == {"alone"}


def test_network_takes_groups_and_strengths_from_the_caller(model):
    groups = dict.fromkeys("abcd", "left $1$") | dict.fromkeys("efg", "right")
    network = build_network(model, colour_by=groups)
    assert network.group_names == ("left $1$", "right")
    assert network.group[network.names.index("h")] == -1
    ax = plot_network(model, colour_by=groups)
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend[-3:] == ["left $1$", "right", "other"]
    own = np.arange(model.n_edges, dtype=float)
    assert build_network(model, strengths=own, top=2).which.tolist() == [
        model.n_edges - 2,
        model.n_edges - 1,
    ]


def test_network_without_edges_says_so():
    model = PairwiseMRF.from_potentials({"a": ["no", "yes"], "b": ["no", "yes"]})
    assert texts_of(plot_network(model)) == {"no edges to draw"}


def test_network_with_forbidden_pairs():
    both = {"a": ["no", "yes"], "b": ["no", "yes"], "c": ["no", "yes"]}
    never = [[0.0, -np.inf], [0.0, 0.0]]
    model = PairwiseMRF.from_potentials(both, edges={("a", "b"): never, ("b", "c"): never})
    assert edge_signs(model).tolist() == [1, 1]
    assert np.isfinite(lines_of(plot_network(model)).get_linewidths()).all()
    contradiction = [[-np.inf, -np.inf], [0.0, 0.0]]
    model = PairwiseMRF.from_potentials(both, edges={("a", "b"): contradiction})
    assert edge_signs(model).tolist() == [0]


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"around": "z"}, ModelError, "no variable 'z'"),
        ({"colour_by": {"z": 1}}, ModelError, "no variable 'z'"),
        ({"colour_by": "size"}, ValueError, "colour_by must be"),
        ({"top": 0}, ValueError, "top must be"),
        ({"strengths": [1.0]}, ModelError, "one number for each"),
        ({"names": "some"}, ValueError, "names must be"),
    ],
)
def test_network_refuses(model, wrong, error, message):
    with pytest.raises(error, match=message):
        plot_network(model, **wrong)
    assert not plt.get_fignums()


@pytest.mark.parametrize(
    ("package", "extra"), [("matplotlib", "plot"), ("graspologic_native", "report")]
)
def test_missing_packages_are_named(model, package, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"edgegraft\[{extra}\]"):
        plot_network(model)


def random_graph(n, n_edges, seed):
    rng = np.random.default_rng(seed)
    pairs = np.stack(np.triu_indices(n, 1), axis=1)
    return rng.permutation(pairs)[:n_edges].astype(np.int64)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 40), st.integers(0, 60), st.integers(0, 5))
def test_layout_is_finite_spread_and_repeatable(n, n_edges, seed):
    edges = random_graph(n, n_edges, seed)
    spots = lay_out(n, edges)
    assert spots.shape == (n, 2)
    assert np.isfinite(spots).all()
    apart = np.linalg.norm(spots[:, None] - spots[None], axis=2) + np.eye(n) * 9
    assert apart.min() > 0.3
    np.testing.assert_array_equal(spots, lay_out(n, edges))


def test_layout_of_a_large_component_keeps_neighbours_near():
    n = 600
    ring = np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1)
    ring.sort(axis=1)
    spots = lay_out(n, ring)
    lengths = np.linalg.norm(spots[ring[:, 0]] - spots[ring[:, 1]], axis=1)
    across = np.linalg.norm(spots[: n // 2] - spots[n // 2 :], axis=1)
    assert lengths.max() < 3.0
    assert across.min() > 100.0


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 60), st.integers(0, 9))
def test_names_never_cover_each_other(n, seed):
    rng = np.random.default_rng(seed)
    dots, frame = rng.random((n, 2)) * 100, np.array([[0.0, 0.0], [100.0, 100.0]])
    sizes = rng.random((n, 2)) * (30, 8) + 1
    middles, kept = place_labels(dots, np.full(n, 1.0), sizes, frame)
    low, high = (middles - sizes / 2)[kept], (middles + sizes / 2)[kept]
    assert (low >= -1e-9).all()
    assert (high <= 100 + 1e-9).all()
    for k in range(len(low)):
        covers = ((low[k] < high - 1e-4) & (low < high[k] - 1e-4)).all(axis=1)
        assert covers.sum() == 1  # itself
    assert place_labels(dots, np.full(n, 1.0), sizes, frame, keep_all=True)[1].all()


def test_edge_is_a_heat_map_centred_at_zero(model):
    _, ax = plt.subplots()
    assert plot_edge(model, "three", "h", ax) is ax
    (image,) = ax.images
    np.testing.assert_allclose(image.get_array(), model.zero_sum().edge_potential("three", "h"))
    low, high = image.get_clim()
    assert low == -high
    assert [t.get_text() for t in ax.get_yticklabels()] == ["$x$", "low", "high"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["no", "yes"]
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("three", "h")
    ax.figure.canvas.draw()  # a dollar sign is not the start of a formula


def test_edge_with_forbidden_pairs_and_many_categories():
    table = np.zeros((2, 50))
    table[0, 0] = -np.inf
    states = {"a": ["no", "yes"], "b": list(range(50))}
    model = PairwiseMRF.from_potentials(states, edges={("a", "b"): table})
    ax = plot_edge(model, "a", "b")
    assert ax.images[0].get_array().mask.sum() == 1
    assert len(ax.get_xticklabels()) == 25
    small = PairwiseMRF.from_potentials(
        {"a": [0, 1], "b": [0, 1]}, edges={("a", "b"): [[0, -np.inf], [0, 0]]}
    )
    assert "never" in texts_of(plot_edge(small, "a", "b"))


def test_edge_refuses_what_does_not_exist(model):
    with pytest.raises(ModelError, match="no variable 'z'"):
        plot_edge(model, "a", "z")
    with pytest.raises(ModelError, match="no edge between 'a' and 'h'"):
        plot_edge(model, "a", "h")


TRACE = {"seconds": [0.0, 0.5, 2.0], "objective": [9.0, 7.0, 6.0], "n_edges": [0, 4, 9]}


def test_trace_has_objective_and_edges_or_recall():
    _, ax = plt.subplots()
    assert plot_trace(TRACE, ax) is ax
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), TRACE["objective"])
    right = ax.figure.axes[1]
    np.testing.assert_array_equal(right.lines[0].get_ydata(), TRACE["n_edges"])
    more = TRACE | {"held_out": [9.0, 8.0, 7.5], "recall": [0.0, 0.5, 1.0]}
    ax = plot_trace(more)
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), more["held_out"])
    np.testing.assert_array_equal(ax.figure.axes[1].lines[0].get_ydata(), more["recall"])


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        ({"seconds": [0.0]}, "no column 'objective'"),
        (TRACE | {"n_edges": [1]}, r"'n_edges' of the trace has shape \(1,\)"),
    ],
)
def test_trace_refuses(trace, message):
    with pytest.raises(DataError, match=message):
        plot_trace(trace)


def test_marginals_are_the_models(model):
    _, ax = plt.subplots()
    assert plot_marginals(model, ["three", "a"], ax=ax) is ax
    answer = model.marginals()
    wanted = [*answer.array("three"), *answer.array("a")]
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], wanted)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["$x$", "low", "high", "no", "yes"]
    assert "exact" in ax.get_xlabel()
    ax.figure.canvas.draw()


def test_marginals_with_evidence_show_the_change_most_first(model):
    ax = plot_marginals(model, given={"a": "yes"})
    given, first = [text.get_text() for text in ax.texts][:2]
    assert given == "a (given)"
    assert [bar.get_width() for bar in ax.patches[:2]] == [0.0, 1.0]
    assert first in "bcd"
    answer, prior = model.marginals({"a": "yes"}), model.marginals()
    assert ax.patches[3].get_width() == pytest.approx(answer[first]["yes"])
    assert ax.lines[0].get_xdata()[1] == pytest.approx(prior["a"]["yes"])
    assert ax.lines[0].get_xdata()[3] == pytest.approx(prior[first]["yes"])
    assert len(plot_marginals(model, ["a"], {"a": "yes"}).patches) == 2
    assert plot_marginals(answer, "b").patches[1].get_width() == pytest.approx(answer["b"]["yes"])


def test_marginals_of_many_categories_are_summed():
    model = PairwiseMRF(Schema.from_states([200] + [2] * 60), [], np.zeros(320))
    ax = plot_marginals(model)
    labels = [t.get_text() for t in ax.get_yticklabels()]
    assert labels[9] == "191 others"
    assert len(labels) == 40
    assert ax.patches[9].get_width() == pytest.approx(191 / 200)


def test_marginals_refuse(model):
    with pytest.raises(ModelError, match="no marginal of 'z'"):
        plot_marginals(model, ["z"], {"a": "yes"})
    with pytest.raises(ValueError, match="evidence needs a model"):
        plot_marginals(model.marginals(), given={"a": "yes"})
