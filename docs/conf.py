"""Sphinx configuration; `make docs` builds with warnings as errors."""

from edgegraft import __version__

project = "edgegraft"
author = "The edgegraft developers"
release = __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"edgegraft {release}"
autosummary_generate = True
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_rtype = False
myst_heading_anchors = 3
