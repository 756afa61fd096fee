# Every target installs what it needs into .venv; only Python >= 3.11 and make are required.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
DEMO ?= edgegraft-demo
EXPERIMENTS ?= all
SCALE ?= 1

.DEFAULT_GOAL := help
.PHONY: help demo test test-cluster test-hostile test-browser test-gpu test-levels test-paper fast lint types imports format bench paper docs examples dist test-pythons test-oldest release-check clean

help: ## show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 15

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "edgegraft needs Python 3.11 or newer; select one with: make PYTHON=/path/to/python3.x $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# One stamp per set of extras, so that `make demo` installs only what it needs.
$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@

demo: $(VENV)/.installed-demo ## install and learn from the bundled survey, into the folder edgegraft-demo
	$(BIN)/edgegraft demo $(DEMO) --force

test: lint types imports ## lint, types, import rules, the test suite and the doctests
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not browser and not levels and not (cluster and slow)"

test-cluster: $(VENV)/.installed-dev ## tests of clusters whose workers and scheduler are killed
	$(BIN)/python -m pytest -m cluster tests/cluster

test-hostile: $(VENV)/.installed-dev ## attacks on files, runs and processes; rewrite docs/reliability.md (minutes)
	$(BIN)/python -m tests.hostile.campaign --size 200 --write docs/reliability.md

test-browser: $(VENV)/.installed-browser ## tests of the pages in headless Chromium (apt-get install chromium chromium-driver)
	$(BIN)/python -m pytest -m browser tests/browser

test-gpu: $(VENV)/.installed-dev ## tests of the device package on a GPU
	EDGEGRAFT_TEST_DEVICE=cuda $(BIN)/python -m pytest tests/protocol/test_backend.py tests/protocol/test_objectives.py tests/unit/test_chains.py

test-paper: $(VENV)/.installed-dev ## tests of the paper's experiments at small size
	$(BIN)/python -m pytest paper

test-levels: $(VENV)/.installed-dev ## rates of false edges and F1 over many seeds (about an hour of one core; SCALE=0.1)
	EDGEGRAFT_LEVELS_SCALE=$(SCALE) $(BIN)/python -m pytest -m levels tests/bars/test_levels.py

fast: $(VENV)/.installed-dev ## the quick tests only
	$(BIN)/python -m pytest -m "not slow and not browser and not levels"

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

imports: $(VENV)/.installed-dev
	$(BIN)/lint-imports

format: $(VENV)/.installed-dev ## apply the formatter and the safe lint fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.installed-dev ## run the benchmarks and rewrite docs/benchmarks.md
	$(BIN)/python -m benchmarks

paper: $(VENV)/.installed-dev ## run the paper's experiments (EXPERIMENTS="NAME --quick ..." selects some; see docs/paper.md)
	$(BIN)/python -m paper $(EXPERIMENTS)

docs: $(VENV)/.installed-docs ## build the documentation into docs/_build; warnings are errors
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build

examples: $(VENV)/.installed-browser ## run the commands of docs/examples.md; update its output, its pictures and the screenshots
	$(BIN)/python docs/examples/make.py
	$(BIN)/python docs/examples/screenshots.py

dist: $(VENV)/.installed-release ## build sdist and wheels with compiled kernels, install each into a clean environment and try it
	$(BIN)/python -m release dist

test-pythons: $(VENV)/.installed-release ## the tests on every Python that is found (PYTHONS, TESTS)
	$(BIN)/python -m release pythons

test-oldest: $(VENV)/.installed-release ## the tests on the oldest supported dependencies (TESTS)
	$(BIN)/python -m release oldest

release-check: dist docs ## dist and docs, then the tests on every Python found and on the oldest dependencies (PYTHONS, TESTS)
	$(BIN)/python -m release check

clean: ## remove everything that make has created
	rm -rf $(VENV) docs/_build docs/api docs/tutorials docs/command_line.md build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis $(DEMO)
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
