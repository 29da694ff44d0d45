# Two commands do all the set-up on a machine with Python 3.11 or later, pip, make and a C compiler:
#   make audit    audits a dataset that comes with scikit-learn, and writes a report of it
#   make test     runs the whole suite
# Set PYTHON to choose the interpreter, for example: make test PYTHON=python3.12

.DEFAULT_GOAL := help
SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
PYTHON :=
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help audit serve figures test test-environment test-lowest style lint docs docs-check benchmark clean

help:
	@echo "make audit       set up, then audit scikit-learn's diabetes dataset and write a report"
	@echo "make serve       set up, then the page that composes and runs the commands of this folder"
	@echo "make figures     set up, then make every figure of the papers at its quick size (10 minutes)"
	@echo "make test        set up, then run the whole suite (style, types, documentation included)"
	@echo "make test-lowest run the tests with the oldest versions that are allowed"
	@echo "make lint        ruff and mypy only"
	@echo "make docs        build the documentation site into site/"
	@echo "make docs-check  run every example in the documentation"
	@echo "make benchmark   time the audit against one Cholesky factorisation and against refitting"
	@echo "make clean       remove $(VENV) and what tools leave behind"

audit: $(VENV)/.installed
	@run=leakscope-runs/make-audit-$$(date +%Y%m%dT%H%M%S) \
	  && $(BIN)/leakscope audit --example diabetes --run-dir $$run \
	  && $(BIN)/leakscope report $$run

serve: $(VENV)/.installed
	@$(PIP) --editable '.[web]'
	@$(BIN)/leakscope serve

# Algorithm 1's exact networks are a conic programme.  What is in the folder already is not made again.
figures: $(VENV)/.installed
	@$(PIP) --editable '.[conic,images,jax]'
	@$(BIN)/leakscope reproduce all --output leakscope-runs/figures

test-environment: $(VENV)/.installed-test

# Types are checked beside the tests, on whatever core is free, and told after them; either fails it.
# One thread for each worker's linear algebra: pytest already runs one worker for each core.
# Memory that was freed is kept by the process: to fetch it again costs a page fault for each 4 kB.
# Tests that share a costly fixture go to one worker (loadgroup; tests/conftest.py says which).
test: style
	@$(BIN)/mypy >$(VENV)/mypy.log 2>&1 & types=$$!; \
	trap 'kill $$types 2>/dev/null' INT TERM; \
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
	MALLOC_MMAP_THRESHOLD_=67108864 MALLOC_TRIM_THRESHOLD_=268435456 \
	$(BIN)/python -m pytest -n auto --dist loadgroup --durations=15; \
	tested=$$?; \
	wait $$types; typed=$$?; \
	echo "mypy:"; cat $(VENV)/mypy.log; \
	if [ $$tested -ne 0 ]; then echo "make test: pytest failed." >&2; fi; \
	if [ $$typed -ne 0 ]; then echo "make test: mypy failed." >&2; fi; \
	[ $$tested -eq 0 ] && [ $$typed -eq 0 ]

# All tests with the oldest versions that pyproject.toml allows, in an environment of their own.
test-lowest: $(VENV)/.created
	@$(PIP) uv
	@$(BIN)/uv pip compile --quiet --resolution lowest-direct --extra test pyproject.toml -o $(VENV)/lowest.txt
	@$(BIN)/uv venv --quiet --seed --clear --python $(BIN)/python $(VENV)/lowest
	@$(BIN)/uv pip install --quiet --python $(VENV)/lowest/bin/python -r $(VENV)/lowest.txt
	@$(BIN)/uv pip install --quiet --no-deps --python $(VENV)/lowest/bin/python --editable .
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(VENV)/lowest/bin/python -m pytest -n auto --dist loadgroup \
	  -W ignore::DeprecationWarning

style: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

lint: style
	$(BIN)/mypy

docs-check: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n auto tests/house/test_documentation.py tests/house/test_commands.py

docs: $(VENV)/.installed-docs
	$(BIN)/python -m mkdocs build

benchmark: $(VENV)/.installed
	$(BIN)/python benchmarks/audit_cholesky.py

# Debian leaves ensurepip out of python3; the system's pip then puts pip into the environment.
$(VENV)/.created:
	@found=; \
	for candidate in $(PYTHON) python3.11 python3 python3.12 python3.13 python3.14 python; do \
	  if $$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	    found=$$candidate; break; \
	  fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "leakscope needs Python 3.11 or later, and none was found; install one, or name it: make PYTHON=/path/to/python" >&2; \
	  exit 1; \
	fi; \
	echo "Setting up $(VENV) with $$($$found --version)"; \
	$$found -m venv $(VENV) >/dev/null 2>&1 \
	  || { $$found -m venv --without-pip --clear $(VENV) \
	       && $$found -m pip --python $(BIN)/python install --quiet pip; }
	@touch $@

# Python compiles what it imports when it does; to compile all of every library beforehand takes longer
# than all the rest of the first audit.
$(VENV)/.installed: $(VENV)/.created pyproject.toml
	@echo "Installing leakscope"
	@$(PIP) --no-compile --editable .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed pyproject.toml
	@echo "Installing what the tests need"
	@$(PIP) --editable '.[test]'
	@touch $@

$(VENV)/.installed-docs: $(VENV)/.installed-test pyproject.toml
	@echo "Installing what the documentation site needs"
	@$(PIP) --editable '.[docs]'
	@touch $@

clean:
	rm -rf $(VENV) build dist site src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
