# Everything runs inside .venv, which is made on first use from requirements.txt.
PYTHON ?= python3
# The cores that this process may use; nproc would take OMP_NUM_THREADS, the threads of one stage.
JOBS ?= $(shell env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc 2>/dev/null || echo 1)
BIN := .venv/bin

export PATH := $(abspath $(BIN)):$(PATH)

.PHONY: install quick repro bench test format prune

install: .venv/installed

# Every experiment at a tenth of the paper's size, in a copy of its own (folder quick).
quick: .venv/installed
	python -m scripts.quick --jobs $(JOBS)

# The pipeline as params.yaml stands, JOBS stages at once.
repro: .venv/installed
	python -m scripts.repro --jobs $(JOBS)

# Speed of training beside a plain TransformerLens loop and the machine's floor, as ratios.
bench: .venv/installed
	python -m scripts.bench

# Format, lint and tests.
test: .venv/installed
	ruff format --check .
	ruff check .
	python -m pytest -n $(JOBS) --dist loadscope

format: .venv/installed
	ruff format .
	ruff check --fix .

# Remove what is left of runs that params.yaml no longer names.
prune: .venv/installed
	python -m scripts.prune

.venv/installed: requirements.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --requirement requirements.txt
	touch $@
