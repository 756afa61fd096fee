"""Sphinx configuration; `make docs` builds with warnings as errors."""

from edgegraft import __version__

project = "edgegraft"
author = "The edgegraft developers"
release = __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"edgegraft {release}"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True  # fields of NamedTuples would be described twice otherwise
suppress_warnings = ["ref.python"]  # short names such as n_rows have several homes
myst_heading_anchors = 3
