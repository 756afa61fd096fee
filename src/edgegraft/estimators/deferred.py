"""Modules that scikit-learn imports and that an estimator does not use, left for their first use.

Importing ``sklearn.base`` imports ``scipy.stats`` and, where it is installed, pandas: two thirds of
the time that importing an estimator would take.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


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
