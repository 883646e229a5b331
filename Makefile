# Short names for everything one does with hubbub. Needs Python 3.11+, pip and make.
PYTHON ?= python3
BIN := .venv/bin
ALL_EXTRAS := service,postgresql,spark,vi,experiments,real,dev

.PHONY: demo test test-all test-fast lint format bench setup packages clean

demo: .venv/demo.stamp
	$(BIN)/hubbub demo

# Four processes on two cores: many tests wait for others, Computes that they kill among them.
test: .venv/dev.stamp packages
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 4 -m "not long"

test-all: .venv/dev.stamp packages
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 4

test-fast: .venv/dev.stamp packages
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 4 -m "not slow and not long"

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: .venv/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Java for Spark, PostgreSQL and a browser for the service.
packages:
	@sh tests/packages.sh

bench: .venv/demo.stamp
	$(BIN)/python benchmarks/local_engine.py

setup: .venv/setup.stamp

# Debian splits ensurepip off python3: without it, the system's pip fills the environment.
$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "hubbub needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv >/dev/null 2>&1 || { rm -rf .venv && $(PYTHON) -m venv --without-pip .venv \
	  && $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; }

.venv/demo.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[experiments]'
	@touch $@

.venv/dev.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[experiments,service,spark,vi,dev]'
	@touch $@ .venv/demo.stamp

.venv/setup.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[$(ALL_EXTRAS)]'
	@touch $@ .venv/dev.stamp .venv/demo.stamp

clean:
	rm -rf .venv build dist *.egg-info src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
