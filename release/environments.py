"""Interpreters and the clean environments that are made with them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build"
SUPPORTED = ("3.11", "3.12", "3.13")
CHECKED = (*SUPPORTED, "3.14")  # numba has wheels for it; it is declared once its tests have passed


def interpreters() -> dict[str, str]:
    """Return the interpreters to check that can be run, by version.

    Those that the variable ``PYTHONS`` names, else those found as ``python3.x`` and those of pyenv.
    """
    named = os.environ.get("PYTHONS", "").split() or [
        *map(str, sorted(_pyenv().glob("versions/3.*/bin/python"))),
        *(f"python{version}" for version in CHECKED),
    ]
    found: dict[str, str] = {}
    for name in named:
        path = shutil.which(name)
        show = "import sys; print('%d.%d' % sys.version_info[:2])"
        done = path and subprocess.run([path, "-c", show], capture_output=True, text=True)
        if path and done and done.returncode == 0 and done.stdout.strip() in CHECKED:
            found[done.stdout.strip()] = path
    missing = [version for version in CHECKED if version not in found]
    say(f"interpreters: {', '.join(sorted(found)) or 'none'}; not found: {missing or 'none'}")
    if not found:
        sys.exit("no supported interpreter: set PYTHONS to the paths of some")
    return found


def _pyenv() -> Path:
    return Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")


def environment(name: str, interpreter: str, *packages: str) -> Path:
    """Return the interpreter of a new environment that has these packages."""
    folder = BUILD / "environments" / name
    shutil.rmtree(folder, ignore_errors=True)
    run(interpreter, "-m", "venv", folder)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return python


def run(*command: object, **variables: str) -> None:
    """Run a command in the build folder, so that sources are not imported; stop if it fails."""
    BUILD.mkdir(exist_ok=True)
    hidden = ("PYTHONPATH", "NUMBA_CACHE_DIR")
    inherited = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run([*map(str, command)], cwd=BUILD, env=inherited | variables, check=False)
    if done.returncode:
        sys.exit(f"failed with {done.returncode}: {' '.join(map(str, command))}")


def oldest() -> list[str]:
    """Return every dependency that the project declares, at the oldest version that it allows."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    declared = [*project["dependencies"], *(line for name in extras for line in extras[name])]
    bounds = [line.split(",")[0].split(">=") for line in declared if ">=" in line]
    # Where a name is declared twice, the first counts: what users install comes before our tools.
    pins = {name.split("[")[0].strip(): bound.strip() for name, bound in reversed(bounds)}
    return [f"{name}=={bound}" for name, bound in pins.items()]


def say(line: str) -> None:
    """Report what is done."""
    print(f"release: {line}", file=sys.stderr, flush=True)
