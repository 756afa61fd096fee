"""The tools that are compared."""

from __future__ import annotations

from typing import NamedTuple

TOOLS = "benchmarks.rivals.tools"


class Rival(NamedTuple):
    """A tool and one way of using it.

    Attributes
    ----------
    function : str
        ``module:function`` with the signature of :class:`benchmarks.rivals.outcome.Fit`.
    packages : tuple of str
        Distributions whose versions are reported.
    about : str
        Description of what is run, for the page.
    warm : bool
        Fit a small table first in the same process, because the tool compiles on the first call.
    cold : bool
        Compile everything from scratch, in an empty cache.
    gpu : bool
        Runs on a GPU: its time is wall-clock time, and its address space is not limited.
    """

    name: str
    function: str
    packages: tuple[str, ...]
    about: str
    warm: bool = False
    cold: bool = False
    binary_only: bool = False
    gpu: bool = False


_ALL = (
    Rival(
        "edgegraft", f"{TOOLS}.grafted:fit", ("edgegraft",),
        "`GraftedMRF()` with defaults; kernels compiled beforehand. The ranking contains all edges "
        "that the search found, the cut is `edges_`; \"all pairs\" appends the other pairs in the "
        "order of `search.rank_pairs`.", warm=True,
    ),
    Rival(
        "edgegraft-cold", f"{TOOLS}.grafted:fit", ("edgegraft",),
        "The same in a process that compiles every kernel: the cost of the first fit after "
        "installation.", cold=True,
    ),
    Rival(
        "edgegraft-dense", f"{TOOLS}.grafted:fit_dense", ("edgegraft",),
        "`fit_parameters` of all pairs with the ridge or penalty of `choose_penalty`: a model for "
        "prediction, not a network.", warm=True,
    ),
    Rival(
        "edgegraft-rank", f"{TOOLS}.grafted:fit_rank", ("edgegraft",),
        "Only `search.rank_pairs`: the order in which the search tests pairs.", warm=True,
    ),
    Rival(
        "mean-field", f"{TOOLS}.mean_field:fit", ("numpy",),
        "Ten lines of NumPy: block norms of a regularised inverse of the one-hot correlations.",
    ),
    Rival(
        "mutual-information", f"{TOOLS}.mutual_information:fit", ("numpy",),
        "Ten lines of NumPy: all pairs by mutual information.",
    ),
    Rival(
        "sklearn-l2", f"{TOOLS}.nodewise:fit_l2", ("scikit-learn",),
        "`LogisticRegression(C=1)` of each variable on the one-hot columns of the others (sparse "
        "matrix, lbfgs, multinomial). Blocks in zero-sum gauge; the joint model is the mean of "
        "both directions.",
    ),
    Rival(
        "sklearn-l1", f"{TOOLS}.nodewise:fit_l1", ("scikit-learn",),
        "`LogisticRegression(l1_ratio=1)` with liblinear, one state against the rest, `C` for each "
        "regression by the extended BIC (gamma .5); AND and OR of the two directions.",
    ),
    Rival(
        "sklearn-l1-fixed", f"{TOOLS}.nodewise:fit_l1_fixed", ("scikit-learn",),
        "The same with one penalty, .4 sqrt(log p / N): the multiple that cut best on small tables "
        "of these generators.",
    ),
    Rival(
        "sklearn-l1-validated", f"{TOOLS}.nodewise:fit_l1_validated", ("scikit-learn",),
        "The same with `C` chosen by the score of a fifth of the rows, then fitted to all rows: "
        "the choice for prediction.",
    ),
    Rival(
        "skglm", f"{TOOLS}.skglm_groups:fit", ("skglm",),
        "Group lasso (`LogisticGroup`, `WeightedGroupL2`, `GroupProxNewton`), one state against "
        "the rest, one group per variable, the penalty by the extended BIC along a path of warm "
        "starts; AND and OR. Compiled beforehand.", warm=True,
    ),
    Rival(
        "pgmpy", f"{TOOLS}.pgmpy_tree:fit", ("pgmpy",),
        "`TreeSearch` (Chow-Liu) and its conditional tables with a Dirichlet prior.",
    ),
    Rival(
        "pomegranate", f"{TOOLS}.pomegranate_tree:fit", ("pomegranate", "torch"),
        "`BayesianNetwork(algorithm=\"chow-liu\")`.",
    ),
    Rival(
        "pyGMs", f"{TOOLS}.pygms_models:fit_tree", ("pyGMs",),
        "`fit_chowliu`.",
    ),
    Rival(
        "pyGMs-l1", f"{TOOLS}.pygms_models:fit_l1", ("pyGMs", "scikit-learn"),
        "`ising.fit_logregL1` with its default `C=.01`; binary variables only.", binary_only=True,
    ),
    Rival(
        "edgeDCA", f"{TOOLS}.adabmdca:fit_edge", ("adabmDCA", "torch"),
        "adabmDCA's `train_model(model_type=\"edgeDCA\")` to its default correlation of .95, "
        "10,000 chains, on the CPU.",
    ),
    Rival(
        "eaDCA", f"{TOOLS}.adabmdca:fit_elements", ("adabmDCA", "torch"),
        "edgeDCA with `model_type=\"eaDCA\"`, which activates single couplings.",
    ),
    Rival(
        "edgeDCA-gpu", f"{TOOLS}.adabmdca_gpu:fit_edge", ("adabmDCA", "torch"),
        "edgeDCA on a GPU, warmed up; wall-clock time.", warm=True, gpu=True,
    ),
    Rival(
        "eaDCA-gpu", f"{TOOLS}.adabmdca_gpu:fit_elements", ("adabmDCA", "torch"),
        "eaDCA on a GPU; wall-clock time.", gpu=True,
    ),
    Rival(
        "pxpy", f"{TOOLS}.pxpy_tree:fit", ("pxpy",),
        "`train(graph=GraphType.auto_tree)`: a Chow-Liu tree.",
    ),
    Rival(
        "plgpm", f"{TOOLS}.plgpm_potts:fit", ("plgpm", "scikit-learn"),
        "`PLGPM` with defaults (elastic net of each variable by saga, `C=.1`); its cut contains "
        "all non-zero pairs.",
    ),
)  # fmt: skip
RIVALS = {rival.name: rival for rival in _ALL}
