# Two promises: `make demo` and `make test` work in a fresh clone with nothing but Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test fast fuzz check docs wheel bench clean

demo: $(VENV)/.installed
	$(BIN)/unbag demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest

fast: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m "not slow"

# minutes of damaged files, options, models, checkpoints and pages, and kills; see docs/reliability.md
fuzz: $(VENV)/.installed-test
	PYTHONPATH=src:tests nice -n 19 $(BIN)/python tests/fuzz/long.py

check: $(VENV)/.installed-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/docstrings.py
	$(BIN)/lint-imports
	$(BIN)/pyright

docs: $(VENV)/.installed-docs
	$(BIN)/python docs/build.py
	$(BIN)/zensical build --clean --strict
	@echo "open site/index.html; its search needs a server: python3 -m http.server -d site"

# The wheel in an environment of its own with all its dependencies, from an empty folder.
wheel:
	rm -rf build/wheel && mkdir -p build/wheel/empty
	$(PYTHON) -m venv build/wheel/venv
	build/wheel/venv/bin/python -m pip wheel --quiet --no-deps -w build/wheel .
	build/wheel/venv/bin/python -m pip install --quiet build/wheel/unbag-*.whl
	cd build/wheel/empty && ../venv/bin/python -c "from unbag.datasets import load_adult; print(load_adult().X.shape)"
	cd build/wheel/empty && ../venv/bin/unbag demo --help

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
