# `make reproduce` and `make test` work on a fresh machine: Python 3.11, pip and make are enough.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
OUT    ?= reproduction
SITE   := build/site

.PHONY: reproduce test lint site bench setup clean

reproduce: setup
	$(BIN)/separatrix reproduce --out $(OUT)

test: setup
	$(BIN)/python -m pytest -n auto

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs $(SITE)

site: setup
	$(BIN)/python -m sphinx --fail-on-warning --quiet docs $(SITE)
	@echo "open $(SITE)/index.html"

bench: setup
	$(BIN)/python -m benchmarks

setup: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) $(OUT)
