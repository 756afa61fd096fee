"""Every error and warning of the library, in one place.

A message names the column, row or edge, says what was found, and what to do about it. The
classes derive from the built-in ones that callers already catch.
"""

from __future__ import annotations

__all__ = [
    "ClusterError",
    "ConvergenceWarning",
    "DataError",
    "DataTypeError",
    "EdgeError",
    "EncodingWarning",
    "FileFormatError",
    "ImpossibleEvidenceError",
    "MemoryBudgetError",
    "MissingExtraError",
    "ModelError",
    "ModelFileError",
    "TreewidthError",
    "UnseenCategoryError",
]


class DataError(ValueError):
    """The table cannot be used as it is: its content is at fault."""


class DataTypeError(TypeError):
    """The kind of an input, or the type of a column, is not one that can be encoded."""


class UnseenCategoryError(DataError):
    """A fixed schema met a category that it does not know."""


class FileFormatError(DataError):
    """A file is malformed, truncated, of a foreign format or of a newer version."""


class ModelFileError(FileFormatError):
    """A file is no model of edgegraft, is damaged, or was written by a newer release."""


class EdgeError(ValueError):
    """An edge names a variable that does not exist, or joins a variable to itself."""


class MemoryBudgetError(ValueError):
    """A request was refused because its result would not fit the memory allowed for it."""


class TreewidthError(MemoryBudgetError):
    """Exact inference was refused: its largest table would not fit the budget."""


class ModelError(ValueError):
    """A model is malformed, or a question names a variable or category that it does not have."""


class ImpossibleEvidenceError(ModelError):
    """The evidence has probability zero under the model."""


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package '{package}': install it with "
            f"`pip install 'edgegraft[{extra}]'`",
            name=package,
        )


class ClusterError(RuntimeError):
    """A cluster was lost or could not finish its work; the message says how to go on."""


class EncodingWarning(UserWarning):
    """Something was decided about a column that the user should know of."""


class ConvergenceWarning(UserWarning):
    """An iteration ended before it converged; the answer may be far from the exact one."""
