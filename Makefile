# A bare machine needs python3 and make. Every target sets up .venv with what it needs and no more; a stamp file in .venv for
# each set of packages makes the second time quick.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Two test processes, one thread each: small matrices, no fighting for cores.
export OMP_NUM_THREADS ?= 1

.DELETE_ON_ERROR:
.PHONY: help setup demo test test-all check format formal bench docs figures wheel clean

help:
	@echo "make setup | demo | test | test-all | check | format | formal | bench | docs | figures | wheel | clean"

setup: $(VENV)/.dev

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# The package alone: all that the demo needs.
$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	@touch $@

# .venv/.dev, .venv/.docs: the extra of that name as well.
$(VENV)/.%: $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[$*]"
	@touch $@

demo: $(VENV)/.demo
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

# The Coq development, and what its theorems assume; skipped with a line where there is no Coq.
formal:
	@$(MAKE) --no-print-directory -C formal

bench: setup $(VENV)/.peers
	$(BIN)/python benchmarks/measure/forward.py
	$(BIN)/python benchmarks/measure/size.py
	$(BIN)/python benchmarks/measure/size.py --readme
	$(BIN)/python benchmarks/measure/certificates.py
	$(BIN)/python benchmarks/measure/fast.py --page
	$(BIN)/python benchmarks/measure/formats.py
	$(BIN)/python benchmarks/measure/estimators.py --page
	$(BIN)/python benchmarks/measure/export.py --page

# The site, docs/_build/html: every page afresh, and a warning is an error.
docs: $(VENV)/.docs
	$(BIN)/python docs/commands.py
	$(BIN)/python docs/language.py
	$(BIN)/python -m sphinx -q -E -a -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

wheel: | $(BIN)/python
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

figures: setup
	$(BIN)/python benchmarks/draw/figures.py
	$(BIN)/python benchmarks/draw/curves.py
	$(BIN)/python benchmarks/measure/sweeps.py --draw

clean:
	@$(MAKE) --no-print-directory -C formal clean
	rm -rf $(VENV) dist docs/_build .mypy_cache .pytest_cache .ruff_cache .hypothesis
