"""`GraftedMRF`: the network and the model of a table's columns, as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from numpy.typing import ArrayLike

from edgegraft.estimators.network import NetworkEstimator


@dataclass(kw_only=True, eq=False, repr=False)
class GraftedMRF(NetworkEstimator):
    """A pairwise Markov random field over categorical columns, grown edge by edge.

    A search adds edges until no pair of columns shows dependence that the model does not
    explain; every edge is then tested, those below the false discovery rate are kept, and the
    model of the kept edges is fitted once more. The defaults are intended to work without tuning.

    Parameters
    ----------
    kinds : {"auto", "nominal", "ordinal", "count", "numeric"} or dict, default "auto"
        What columns are, all or by name; see :func:`edgegraft.pack` and ``schema_[name].reason``.
    order : list of str, optional
        Orders of text categories, such as ``"low<middle<high"`` or ``"size=S<M<L"``.
    missing_values : collection, default ()
        Cells that mean missing, besides NaN and nulls.
    unseen : {"error", "missing"}
        What a category is that the fit did not see. With "missing", cross-validation of a table
        with rare categories scores all folds.
    drop : list of str or int, optional
        Columns to leave out, by name or position, in the fit and in tables given to other methods.
    schema : Schema, optional
        Columns and their categories, instead of those found in the data.
    weights_are : {"auto", "frequency", "sampling"}
        What `sample_weight` is; by default whole numbers are frequencies, others a sample's. A row
        of frequency weight 2 counts as two rows. Sampling weights, as surveys have them, have no
        scale: they count as the effective number of rows, and tests allow for the variance that
        unequal weights add.
    fdr : float or None
        Expected share of false edges among ``edges_``, 0.005 by default. None keeps all that the
        search ended with.
    fwer : float, "auto" or None
        Chance of any false edge among ``edges_``; if given, it replaces `fdr`. "auto" is the
        smaller of 0.05 and 10 / rows: as rows are added, it gives the exact graph, which no fixed
        rate of false discoveries does.
    aim : {"network", "prediction", "rows"}
        What ``model_`` is for. The model of the network has the edges that passed their tests.
        "prediction" also fits a second model, with all pairs that help to predict held-out rows and
        the shrinkage that predicts them best: use it to predict, impute and score.
        "rows" fits that model again by likelihood, as far as held-out rows gain by it: use it to
        sample, and for probabilities of whole rows or of columns of which few others are given. It
        takes minutes. ``edges_`` is the same network for all.
    rules : list of str, optional
        What is known of pairs: ``"require A -- B"``, ``"forbid mood* -- age"``,
        ``"only q* -- q*"``, ``"tiers A, B < C"``, ``"gap 4"``, ``"weight 3 A -- B"``,
        ``"file rules.txt"``; see :mod:`edgegraft.grafting.pair_rules`.
    device : {"cpu", "cuda", "auto", "torch"}
        Where sums over rows are computed: on the processor; on a GPU by PyTorch (the extra
        ``gpu``); on a GPU if there is one; or by PyTorch on the processor, which is slower than
        "cpu" and serves to check the others. Results agree but for rounding.
    n_jobs : int, optional
        Threads; -1 for all cores. The result does not depend on it.
    random_state : int, RandomState, Generator or None
        Seed of the search. None draws a new seed for every fit.
    max_time : float, optional
        Seconds after which the search ends. Tests and fits of its edges are completed.
    max_memory : int or str, optional
        Bytes of memory that fitting a table may take, such as ``"2 GiB"``; an array or a frame
        takes its own besides, and a packed table that does not fit is an error. If the rows do
        not fit, their codes are kept on disk and read in blocks: the search begins on a
        sample and ends over all rows, edges are tested on the sample (see
        :mod:`edgegraft.learn.stages`). By default files up to an eighth of the machine's memory
        are read as they are, and larger ones within half of it.
    search : GraftingSettings, optional
        Settings of the method, such as ``GraftingSettings(penalty=0.1, max_edges=20)``; a grid
        search varies ``search__penalty``. See :class:`edgegraft.GraftingSettings`.
    reading : ReadingOptions, optional
        Rare options of reading: bins, limits of categories, text files, and the folder of rows
        that do not fit in memory. See :class:`edgegraft.ReadingOptions`.

    Attributes
    ----------
    edges_ : array of int, shape (m, 2)
        The network: pairs of column positions, strongest first.
    edge_strengths_ : array of float, shape (m,)
        Strengths of these edges, from 0 to 1, on the scale of a correlation
        (docs/kinds.md). :meth:`edges_frame` has both as a frame, ``model_.adjacency()`` as a
        matrix.
    edge_table_ : dict of str to array
        All edges that the search ended with, the network before the others and each sorted by
        strength: ``first``, ``second`` (names), ``strength`` (``edge_strengths_``), ``weight``
        (the same with the sign of the edge), ``sign`` (0 if the interval has both or the pair has
        none), ``effect`` with its interval ``effect_low`` to ``effect_high`` (docs/kinds.md), all
        of them NaN for edges that were cut; ``search_norm`` (norm of the table in the model that
        the search ended with), ``statistic``, ``dof``, ``p_value``, ``q_value`` and ``kept``; with
        ordered columns also ``p_linear``, ``p_rest``, ``linear_is_enough`` and ``p_table``.
        ``edges_frame(kept=False)`` makes a frame of it.
    model_ : PairwiseMRF
        Answers questions, and the methods of the estimator; with ``aim="prediction"`` or "rows" it
        has more edges than the network. :meth:`save` writes it with how it was learned,
        ``model_.save(path)`` the model alone.
    network_model_ : PairwiseMRF
        The model of ``edges_`` alone: ``model_`` itself with ``aim="network"``.
    prediction_ : Prediction or None
        How the model for prediction was chosen: its penalty and ridge, and all that were tried;
        and with ``aim="rows"`` what held-out rows gained by the likelihood (``refit``).
    trace_ : dict of str to array
        The trajectory of the search, a value per event.
    pair_ranking_ : dict of str to array, or None
        All pairs, the most likely edges first: ``first`` and ``second`` (names), ``kept``, and
        ``score`` of those that are not edges. None if edges were not cut by tests.
    copies_ : list of lists of str
        Columns that are copies of each other; their links are shown at the first of them.
    certificate_ : Certificate
        How many pairs that the search left out violate optimality, and by how much, before the
        cut.
    n_tables_ : int
        Different pairs that were scored.
    n_iter_ : int
        Steps of the search that added edges.
    converged_ : bool
        Whether the last fit of the search reached its tolerance.
    reason_ : str
        Why the search ended.
    penalty_, ridge_ : float
        What was used.
    schema_ : Schema
        Names and categories of the columns.
    n_features_in_ : int
    feature_names_in_ : array of str
        Column names, if the table has any.

    Notes
    -----
    Ctrl-C during the search ends it after the current step: the estimator is fitted with the
    edges found so far, ``reason_`` is "interrupted", and a ConvergenceWarning reports it. After the
    search, tests and fits are completed. A second Ctrl-C, or one before there is an edge, raises
    KeyboardInterrupt and leaves the estimator as it was before the call.

    Rows of weight zero do not count, but their categories belong to the schema.

    Tables of named columns are matched by name, in any order; arrays by position.

    Examples
    --------
    >>> from edgegraft import GraftedMRF
    >>> from edgegraft.datasets import make_chain
    >>> rows = make_chain(5, n_states=3, n_rows=2000, random_state=0).X
    >>> network = GraftedMRF(random_state=0).fit(rows)
    >>> sorted(map(tuple, network.edges_.tolist()))
    [(0, 1), (1, 2), (2, 3), (3, 4)]
    >>> network.predict_proba(rows[:2], target=0).shape
    (2, 3)
    >>> network.sample(2, random_state=0).shape
    (2, 5)
    """

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        strata: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
    ) -> Self:
        """Learn the network and the model.

        Parameters
        ----------
        X : table
            A pandas or polars DataFrame, an Arrow table, a NumPy array, a dict of columns, a
            PackedTable, a RecordBatchReader, or the path of a CSV or Parquet file, of a folder of
            them, or a pattern (``"rows/*.parquet"``): whatever :func:`edgegraft.ingest.pack` takes.
            Of a Dask frame, or :class:`~edgegraft.scale.cluster.ClusterRows`, the rows stay
            with the workers.
            NaN and nulls are missing cells.
        y : ignored
        sample_weight : array of float, shape (n_rows,), optional
            Whole numbers are frequencies: a row of weight 2 counts as two rows. Others are
            sampling weights, whose scale does not matter (`weights_are`).
        strata, clusters : array of labels, shape (n_rows,), optional
            The design of a survey: rows of a stratum were drawn separately from the others, rows
            of a cluster together. Tests of edges then use the variance between clusters.

        Returns
        -------
        GraftedMRF
            Itself.
        """
        from edgegraft.conditional.survey_design import SurveyDesign
        from edgegraft.core.backend import find_backend
        from edgegraft.grafting.pair_rules import PairRules
        from edgegraft.ingest.rows import open_rows
        from edgegraft.learn import discover

        plan = self._make_plan()
        find_backend(plan.device)  # refused before the table is read, as are rules
        PairRules.read(plan.rules, ())
        options = self._read_options(X, fitting=True, n_jobs=plan.n_jobs or 1)
        X = self._table(X, fitting=True)
        with open_rows(X, self.schema, options, sample_weight) as given:
            found = discover(
                given.rows,
                plan,
                weights=given.weights,
                design=SurveyDesign.of(given.rows.n_rows, strata, clusters),
                sample_rows=given.sample_rows,
            )
            self._take(found, X, given)
        return self
