"""Build and check a release.

- ``python -m release dist``: the sdist and this platform's wheels, each installed and tried
- ``python -m release pythons``: the test suite on every Python that is found
- ``python -m release oldest``: the test suite on the oldest dependencies
- ``python -m release check``: both
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from edgegraft.kernels.compiler import LEVELS, supported_levels
from release.environments import BUILD, ROOT, environment, interpreters, oldest, run, say

DIST = ROOT / "dist"
TOUR = ROOT / "release" / "tour.py"
TESTS = os.environ.get("TESTS", "tests").split()
SELECTION = "not browser and not levels and not cluster"


def dist() -> None:
    """Build the sdist, the pure wheel and the wheels with compiled kernels; try each of them."""
    for folder in (DIST, BUILD):
        shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    (sdist,), (pure,) = DIST.glob("*.tar.gz"), DIST.glob("*-py3-none-any.whl")
    found = interpreters()
    wheels = {version: platform_wheel(version, found[version], pure) for version in found}
    run(sys.executable, "-m", "twine", "check", "--strict", *DIST.glob("*"))
    for version, wheel in wheels.items():
        python = environment(f"wheel-{version}", found[version], f"{wheel}[cli]")
        for level in supported_levels():
            say(f"tour of {wheel.name} at {level}: nothing may be compiled")
            run(python, TOUR, "--compiled", EDGEGRAFT_KERNELS=level)
    newest = max(found, key=lambda version: tuple(map(int, version.split("."))))
    say(f"tour of {sdist.name} on {newest}")
    run(environment("sdist", found[newest], f"{sdist}[cli]"), TOUR)


def platform_wheel(version: str, interpreter: str, pure: Path) -> Path:
    """Compile the kernels for every level and return the wheel that holds them."""
    python = environment(f"compile-{version}", interpreter, f"{pure}[cli]", "build", "hatchling")
    compiled = BUILD / f"compiled-{version}"

    def compile_level(level: str) -> None:
        say(f"compiling the kernels of Python {version} for {level}")
        cache = BUILD / f"cache-{version}-{level}"
        target = {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": "", "EDGEGRAFT_KERNELS": "native"}
        run(python, TOUR, **target, NUMBA_CACHE_DIR=str(cache))
        compiled.mkdir(exist_ok=True)
        (cache / "edgegraft").rename(compiled / level)

    levels = supported_levels()
    unsupported = LEVELS.get(platform.machine(), {}).keys() - set(levels)
    if unsupported:
        say(f"this processor cannot compile for {sorted(unsupported)}: not shipped")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_level, levels))
    before = set(DIST.glob("*.whl"))
    build = ("-m", "build", "--wheel", "--no-isolation", "--outdir", DIST, ROOT)
    run(python, *build, EDGEGRAFT_COMPILED=str(compiled))
    (wheel,) = set(DIST.glob("*.whl")) - before
    return wheel


def pure_wheel() -> Path:
    """Return the wheel of pure Python, built if `make dist` has not."""
    if not [*DIST.glob("*-py3-none-any.whl")]:
        run(sys.executable, "-m", "build", "--wheel", "--outdir", DIST, ROOT)
    (found,) = DIST.glob("*-py3-none-any.whl")
    return found


def pythons() -> None:
    """Run the test suite on every Python, with its own wheel if there is one."""
    pure = pure_wheel()
    for version, interpreter in interpreters().items():
        own = DIST.glob(f"*-cp{version.replace('.', '')}-*.whl")
        run_tests(f"test-{version}", interpreter, f"{next(own, pure)}[test]")


def on_oldest() -> None:
    """Run the test suite on the oldest dependencies, with the oldest Python."""
    found, pure = interpreters(), pure_wheel()
    first = min(found, key=lambda version: tuple(map(int, version.split("."))))
    pins = BUILD / "oldest.txt"
    pins.write_text("\n".join(oldest()))
    # Old packages are beside new ones that warn of what they call.
    quiet = ("-W", "ignore::DeprecationWarning", "-W", "ignore::FutureWarning")
    packages = (f"{pure}[test]", "--constraint", str(pins))
    run_tests("test-oldest", found[first], *packages, options=quiet)


def check() -> None:
    """Run the test suite on every Python, and on the oldest dependencies."""
    pythons()
    on_oldest()


def run_tests(name: str, interpreter: str, *packages: str, options: tuple[str, ...] = ()) -> None:
    """Run the tests in a new environment."""
    python = environment(name, interpreter, *packages)
    say(f"{name}: tests")
    paths = [ROOT / path for path in TESTS]
    chosen = (
        "-q",
        "-n",
        "2",
        "--dist",
        "loadfile",
        *options,
        "-m",
        SELECTION,
        "-c",
        ROOT / "pyproject.toml",
    )
    run(python, "-m", "pytest", *chosen, *paths, PYTHONPATH=str(ROOT))  # for the package `tests`


if __name__ == "__main__":
    targets = {"dist": dist, "pythons": pythons, "oldest": on_oldest, "check": check}
    targets[sys.argv[1]]()
