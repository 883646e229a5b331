# Short names for everything one does with hubbub. Needs Python 3.11+, pip and make.
PYTHON ?= python3
BIN := .venv/bin
ALL_EXTRAS := service,postgresql,spark,vi,experiments,dev

.PHONY: demo test test-all test-fast lint format bench setup java clean

demo: .venv/demo.stamp
	$(BIN)/hubbub demo

# Four processes on two cores: many tests wait for others, Computes that they kill among them.
test: .venv/dev.stamp java
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 4 -m "not long"

test-all: .venv/dev.stamp java
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 4

test-fast: .venv/dev.stamp java
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 4 -m "not slow and not long"

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: .venv/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The tests of the Spark engine need Java.
java:
	@command -v java >/dev/null || [ -x "$$JAVA_HOME/bin/java" ] || { \
	  if command -v apt-get >/dev/null && { [ "$$(id -u)" = 0 ] || command -v sudo >/dev/null; }; then \
	    sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
	    { $$sudo apt-get install -y -q openjdk-17-jre-headless || { $$sudo apt-get update -q && $$sudo apt-get install -y -q openjdk-17-jre-headless; }; } >/dev/null; \
	  fi; command -v java >/dev/null; } || { echo 'java must be on the path for the Spark engine, got none; install Java 17 (openjdk-17-jre-headless)' >&2; exit 1; }

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
