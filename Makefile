# Two promises: `make demo` and `make test` work in a fresh clone with nothing but Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test fast check docs bench clean

demo: $(VENV)/.installed
	$(BIN)/unbag demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest

fast: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m "not slow"

check: $(VENV)/.installed-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pyright

docs: $(VENV)/.installed-docs
	$(BIN)/python docs/build.py
	$(BIN)/zensical build --clean --strict
	@echo "open site/index.html"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "unbag needs Python 3.11 or newer, and $(PYTHON) is " + sys.version.split()[0] + "; run: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	@echo "setting up $(VENV) (once)"
	$(PIP) -e .
	@touch $@

$(VENV)/.installed-%: pyproject.toml | $(VENV)/.installed
	$(PIP) -e '.[$*]'
	@touch $@

clean:
	rm -rf $(VENV)
