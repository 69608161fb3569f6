# A bare machine needs python3 and make; every target sets up .venv by itself (quick the second time: a stamp file).
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.stamp
# Two test processes, one thread each: small matrices, no fighting for cores.
export OMP_NUM_THREADS ?= 1

.DELETE_ON_ERROR:
.PHONY: help setup demo test test-all check format bench docs figures wheel clean

help:
	@echo "make setup | demo | test | test-all | check | format | bench | docs | figures | wheel | clean"

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	@touch $@

demo: setup
	$(BIN)/python examples/demo.py

test: setup
	$(BIN)/python -m pytest -n 2 -m "not long"

test-all: setup
	$(BIN)/python -m pytest -n 2

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup
	$(BIN)/python benchmarks/forward.py
	$(BIN)/python benchmarks/size.py --readme
	$(BIN)/python benchmarks/certificates.py
	$(BIN)/python benchmarks/fast.py --page
	$(BIN)/python benchmarks/float32.py
	$(BIN)/python benchmarks/estimators.py --page
	$(BIN)/python benchmarks/export.py --page

# The site, docs/_build/html: every page afresh, and a warning is an error.
docs: setup
	$(BIN)/python docs/commands.py
	$(BIN)/python -m sphinx -q -E -a -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

wheel: setup
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

figures: setup
	$(BIN)/python benchmarks/figures.py
	$(BIN)/python benchmarks/sweeps.py --draw

clean:
	rm -rf $(VENV) dist docs/_build .mypy_cache .pytest_cache .ruff_cache .hypothesis
