"""Estimators in the manner of scikit-learn, thin over :mod:`edgegraft.learn`.

They are loaded when they are first used: reading a table for a fit does without scikit-learn.
Importing ``sklearn.base`` imports ``scipy.stats`` and, if it is installed, pandas: two thirds of
the time that importing an estimator would take. They wait for their first use.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgegraft.estimators.grafted import GraftedMRF

__all__ = ["GraftedMRF"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'edgegraft.estimators' has no attribute {name!r}")
    with deferring("scipy.stats", "pandas"):
        import sklearn.base  # noqa: F401
    return getattr(import_module("edgegraft.estimators.grafted"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


class _Deferred(ModuleType):
    """Stands for a module, which is imported when something is asked of it."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


@contextmanager
def deferring(*names: str) -> Iterator[None]:
    """Let imports of these modules inside of the block cost nothing; afterwards all is as before.

    >>> with deferring("this"):
    ...     import this
    >>> "this" in sys.modules
    False
    """
    absent = [name for name in names if name not in sys.modules and find_spec(name) is not None]
    stand_ins = {name: _Deferred(name) for name in absent}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name, module in stand_ins.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]
