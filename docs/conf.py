"""Sphinx configuration. `make docs` treats warnings as errors and runs every gallery script."""

import importlib
import inspect
import re
import shutil
import sys
import warnings
from pathlib import Path

from sphinx.domains.python import PyObject

import edgegraft

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
for generated in ("api", "tutorials"):  # stale pages would remain otherwise
    shutil.rmtree(HERE / generated, ignore_errors=True)

from command_line import write_command_line  # noqa: E402 - beside this file

write_command_line(HERE / "command_line.md")

project = "edgegraft"
author = "The edgegraft developers"
release = edgegraft.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "gallery", "**/GALLERY_HEADER.rst"]
templates_path = ["_templates"]
suppress_warnings = ["ref.python"]  # short names such as n_rows are ambiguous
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"edgegraft {release}"
html_static_path = ["_static"]
html_css_files = ["gallery.css"]
html_show_sourcelink = False
html_show_copyright = False
highlight_language = "text"

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = True
autosummary_imported_members = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True  # otherwise fields of NamedTuples are described twice

sphinx_gallery_conf = {
    "examples_dirs": ["gallery/guide", "gallery/extending"],
    "gallery_dirs": ["tutorials/guide", "tutorials/extending"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "order.ReadingOrder",
    "run_stale_examples": True,  # a page always shows the output of this version
    "doc_module": ("edgegraft",),
    "capture_repr": ("_repr_html_", "__repr__"),
    "ignore_repr_types": r"matplotlib|list|tuple",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "remove_config_comments": True,
    "plot_gallery": True,
}
warnings.filterwarnings("error", category=DeprecationWarning, module="edgegraft")


def _homes():
    """Map the defining name of every public object to its public name."""
    homes = {}
    packages = [name for name in edgegraft.__all__ if inspect.ismodule(getattr(edgegraft, name))]
    for package in packages:
        module = importlib.import_module(f"edgegraft.{package}")
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                homes[f"{value.__module__}.{value.__qualname__}"] = f"edgegraft.{package}.{name}"
    return homes | {
        f"edgegraft.{name}": f"edgegraft.{home}.{name}" for name, home in edgegraft._HOME.items()
    }


HOMES = _homes()


def _resolve(app, env, node, contnode):
    """Link names of private modules, and those of `edgegraft` itself, to the public names."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py":
        return None
    whole, _, last = target.rpartition(".")
    public = HOMES.get(target) or (f"{HOMES[whole]}.{last}" if whole in HOMES else None)
    if public is None:
        return None
    domain = env.domains["py"]
    return domain.resolve_xref(
        env, node["refdoc"], app.builder, node["reftype"], public, node, contnode
    )


def _skip(app, what, name, value, skip, options):
    """Skip the fields of NamedTuples, which their class describes."""
    return True if str(getattr(value, "__doc__", "")).startswith("Alias for field") else None


def _underscores(app, what, name, value, options, lines):
    """Escape the trailing underscore of fitted attributes, which would be parsed as a link."""
    for k, line in reversed(list(enumerate(lines))):
        found = re.match(r":(ivar|vartype) ((?:\w+_(?:, )?)+):(.*)", line)
        if found:
            kind, names, rest = found.groups()
            lines[k : k + 1] = [rf":{kind} {one[:-1]}\_:{rest}" for one in names.split(", ")]


def setup(app):
    for field in PyObject.doc_field_types:
        if field.name == "variable":
            field.label = "Attributes"
    app.connect("autodoc-process-docstring", _underscores, priority=900)  # after napoleon
    app.connect("missing-reference", _resolve)
    app.connect("autodoc-skip-member", _skip)
