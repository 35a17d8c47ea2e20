# `make reproduce` and `make test` work on a fresh machine: Python 3.11, pip and make are enough.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
OUT    ?= reproduction
WORKERS ?= auto
# Each worker starts with tests of neighbouring files, so that expensive fixtures are computed by few workers.
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
SITE   := build/site
LOWEST := build/lowest
LOCK   := build/lock
MUTANTS := build/mutants
COSMIC_RAY := cosmic-ray==8.7.0
PIP    := -m pip --disable-pip-version-check install --quiet
NO_TORCH = No CPU build of torch was found. Set PIP_EXTRA_INDEX_URL to the address that PyTorch's install page gives \
for pip and CPU, and run make again. For CUDA, or another torch, install without make: see docs/install.md.

.PHONY: reproduce test test-all test-exhaustive test-typed test-lowest lint site bench mutants setup lock clean

reproduce: setup
	$(BIN)/separatrix reproduce --out $(OUT)

test: setup
	$(PYTEST) -m "not exhaustive"

test-all: test-exhaustive test-typed

# All tests, in one run: short forms of exhaustive tests would only repeat the beginning of these.
test-exhaustive: setup
	$(PYTEST) -m "not brief"

# The tests that call every mechanism, with the shapes in signatures checked.
test-typed: setup
	$(PYTEST) --typed-shapes tests/mechanisms/test_extras.py tests/mechanisms/test_mechanisms.py tests/exact/reader

# Tests with the oldest allowed release of every dependency. Deprecation warnings are raised inside these old releases,
# so they are not treated as errors.
test-lowest: $(LOWEST)/.installed
	$(LOWEST)/bin/python -m pytest -p no:cacheprovider --disable-warnings \
	  -W default::DeprecationWarning -W default::PendingDeprecationWarning \
	  tests/test_smoke.py tests/exact/engines/test_golden.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy benchmarks
	$(BIN)/lint-imports
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs $(SITE)

site: setup
	$(BIN)/python -m sphinx --fail-on-warning --quiet docs $(SITE)
	@echo "open $(SITE)/index.html"

bench: setup
	$(BIN)/python -m benchmarks

# Mutation tests in a copy of the source. cosmic-ray has its own environment, so that its dependencies do not mix with
# those of the project.
mutants: setup $(MUTANTS)/.installed
	$(MUTANTS)/bin/python tests/mutants.py $(ARGS)

setup: $(VENV)/.installed

# torch is installed first: if only the CUDA build is available, this fails before anything else is downloaded.
$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	@$(BIN)/python $(PIP) --constraint constraints.txt torch || { echo "$(NO_TORCH)" >&2; exit 2; }
	$(BIN)/python $(PIP) --constraint constraints.txt --editable ".[dev]"
	touch $@

$(MUTANTS)/.installed:
	$(PYTHON) -m venv $(MUTANTS)
	$(MUTANTS)/bin/python $(PIP) $(COSMIC_RAY)
	touch $@

$(LOWEST)/.installed: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv --clear $(LOWEST)
	@$(LOWEST)/bin/python $(PIP) --constraint constraints-lowest.txt torch || { echo "$(NO_TORCH)" >&2; exit 2; }
	$(LOWEST)/bin/python $(PIP) --constraint constraints-lowest.txt --editable ".[dask,explore,postgres]" \
	  beartype hypothesis pytest
	touch $@

# Rewrite constraints.txt: the newest releases that pyproject.toml allows, but the current release of torch.
lock:
	$(PYTHON) -m venv --clear $(LOCK)
	grep '^torch==' constraints.txt > $(LOCK)/torch.txt
	$(LOCK)/bin/python $(PIP) --constraint $(LOCK)/torch.txt ".[dev]"
	{ sed '/^[^#]/d' constraints.txt; cat $(LOCK)/torch.txt; \
	  $(LOCK)/bin/python -m pip freeze --all --exclude pip --exclude separatrix --exclude torch; } > $(LOCK)/constraints.txt
	mv $(LOCK)/constraints.txt constraints.txt

clean:
	rm -rf $(VENV) $(OUT) $(LOWEST) $(LOCK)
