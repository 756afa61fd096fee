"""The parameters of an estimator: what they are, their plan, and how tables are read.

Tables are checked in the words of scikit-learn, then read as any other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from edgegraft.config import GraftingSettings, Plan, ReadingOptions, TableOptions, settings_of
from edgegraft.config.learning import Aim, DeviceName, WeightMeaning
from edgegraft.config.reading import Unseen
from edgegraft.core.threads import resolve_jobs
from edgegraft.errors import DataError, SettingError, listing
from edgegraft.ingest.kinds import TableKind, column_labels, library_of, table_kind

if TYPE_CHECKING:
    from edgegraft.ingest.options import ReadOptions
    from edgegraft.table import Schema

_RECORDS: dict[str, type] = {"search": GraftingSettings, "reading": ReadingOptions}
#: Parameters of reading that tables given to a fitted estimator need; the rest is in the schema.
_ALWAYS = ("missing_values", "unseen", "drop")


class _Transformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What scikit-learn, which has no types, gives to transformers."""


@dataclass(kw_only=True, eq=False, repr=False)
class Parameters(_Transformer):
    """The parameters that users set, and two records: of the method and of rare ways to read.

    ``get_params(deep=True)`` and ``set_params`` take a record's settings as ``search__penalty``,
    as scikit-learn does with estimators in estimators; a changed record takes the old one's place.
    """

    kinds: str | Mapping[str, str] = TableOptions.kinds
    order: Sequence[str] | None = None
    missing_values: Collection[Any] = ()
    unseen: Unseen = TableOptions.unseen
    drop: Sequence[str | int] | None = None
    schema: Schema | None = None
    weights_are: WeightMeaning = Plan.weights_are
    fdr: float | None = Plan.fdr
    fwer: float | Literal["auto"] | None = None
    aim: Aim = Plan.aim
    rules: Sequence[str] | None = None
    device: DeviceName = Plan.device
    n_jobs: int | None = None
    random_state: Any = None
    max_time: float | None = None
    max_memory: int | str | None = None
    search: GraftingSettings | None = None
    reading: ReadingOptions | None = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; with `deep` also the settings of the records."""
        params: dict[str, Any] = super().get_params(deep=False)
        for name, record in _RECORDS.items() if deep else ():
            values = params[name] if isinstance(params[name], record) else record()
            params |= {f"{name}__{key}": getattr(values, key) for key in settings_of(record)}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, settings of the records as ``search__penalty``."""
        nested: dict[str, dict[str, Any]] = {name: {} for name in _RECORDS}
        for name in list(params):
            record, _, setting = name.partition("__")
            if setting and record in _RECORDS:
                nested[record][setting] = params.pop(name)
        super().set_params(**params)
        for record, settings in nested.items():
            if settings:
                setattr(self, record, replace(self._record(record), **settings))
        return self

    def _record(self, name: str) -> Any:
        """Return a record of settings, of the defaults if there is none."""
        given, record = getattr(self, name), _RECORDS[name]
        if given is not None and not isinstance(given, record):
            raise SettingError(name, f"must be {record.__name__} or None, found {given!r}")
        return given or record()

    def _make_plan(self) -> Plan:
        """Return the plan of the parameters."""
        n_jobs = self.n_jobs
        jobs = resolve_jobs(int(n_jobs) if isinstance(n_jobs, Integral) else n_jobs)
        seed = make_seed(self.random_state)
        return Plan.from_options(self._record("search"), self, random_state=seed, n_jobs=jobs)

    def _table(self, X: Any, *, fitting: bool = False) -> Any:
        """Return `X` as a table that can be read, without the columns to drop."""
        table = as_table(X, type(self).__name__)
        return table if self.drop is None else without_columns(table, self.drop, strict=fitting)

    def _read_options(self, X: Any, *, fitting: bool = False, n_jobs: int = 1) -> ReadOptions:
        """Return how a table is read; after the fit, with the bins of the fit.

        Columns of tables in memory are left out by :meth:`_table`.
        """
        from edgegraft.ingest.options import ReadOptions

        options = {name: getattr(self, name) for name in _ALWAYS}
        if fitting:
            names = settings_of(TableOptions).keys() & vars(self).keys()
            options = vars(self._record("reading")) | {name: getattr(self, name) for name in names}
        checked = ReadOptions(**options, n_jobs=n_jobs)
        in_files = table_kind(X) in (TableKind.PATH, TableKind.STREAM)
        return checked if in_files else replace(checked, drop=None)


def make_seed(random_state: Any) -> int:
    """Return a seed: of a generator its next draw, of None one that no other call gets."""
    if isinstance(random_state, Integral):
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if random_state is None or isinstance(random_state, np.random.Generator):
        return int(np.random.default_rng(random_state).integers(2**31 - 1))
    raise SettingError(
        "random_state",
        f"must be an integer, a RandomState, a Generator or None, found {random_state!r}",
    )


def without_columns(X: Any, drop: Sequence[str | int], *, strict: bool = False) -> Any:
    """Return a table in memory without some columns, given by name or position.

    Columns that it does not have are passed over, or refused if `strict`. Files and streams are
    returned as they are: they are read without the columns.

    >>> without_columns({"id": [1, 2], "smoker": ["no", "yes"]}, ["id"])
    {'smoker': ['no', 'yes']}
    >>> without_columns(np.eye(2, dtype=int), [0]).tolist()
    [[0], [1]]
    """
    kind = table_kind(X)
    if kind in (TableKind.PATH, TableKind.STREAM):
        return X
    labels = column_labels(X)
    names = [f"x{i}" for i in range(X.shape[1])] if labels is None else list(map(str, labels))
    places = dict(enumerate(names))
    unwanted = {name if isinstance(name, str) else places.get(int(name), name) for name in drop}
    unknown = unwanted.difference(names)
    if strict and unknown:
        raise DataError(
            f"drop= names {listing(sorted(unknown, key=str))}, which the table does not have"
        )
    kept = [k for k, name in enumerate(names) if name not in unwanted]
    if kind is TableKind.COLUMNS:
        return {labels[k]: X[labels[k]] for k in kept}  # type: ignore[index]
    if kind is TableKind.PANDAS:
        return X.iloc[:, kept]
    if kind in (TableKind.POLARS, TableKind.ARROW):
        return X.select([names[k] for k in kept])
    if kind is TableKind.ARRAY:
        return X[:, kept]
    raise DataError(
        f"columns of a {type(X).__name__} cannot be dropped by an estimator: leave them out when "
        "it is made"
    )


def as_table(X: Any, estimator: str) -> Any:
    """Return `X` as a table that can be read; arrays are checked as scikit-learn does.

    Messages call the estimator by the name `estimator`.
    """
    arrays = (TableKind.ARRAY, TableKind.OTHER)
    if table_kind(X) not in arrays or isinstance(X, np.ma.MaskedArray):
        return X
    if library_of(X) in ("pandas", "polars", "pyarrow"):
        return X  # refused in their own words
    if isinstance(X, list | tuple):
        # As objects if types differ: numbers next to text stay numbers, and every column finds its
        # own type.
        lengths = [len(row) if isinstance(row, list | tuple) else None for row in X]
        for k, length in enumerate(lengths):
            if length is not None and lengths[0] is not None and length != lengths[0]:
                raise DataError(f"row {k} has {length} cells where row 0 has {lengths[0]}")
        cells = np.array(X, dtype=object)
        kinds = {type(cell) for cell in cells.ravel().tolist()}
        X = np.array(X) if kinds in ({int}, {float}) else cells
    from sklearn.utils.validation import check_array  # slow to load, and files do without

    return check_array(X, dtype=None, ensure_all_finite=False, estimator=estimator, input_name="X")
