# Every target can be the first command in a fresh clone: it sets up what it needs, once.

VENV ?= .venv
BIN  := $(VENV)/bin

# A Spark or packages of someone else's would shadow those of the virtual environment.
unexport SPARK_HOME PYTHONPATH PYTHONHOME

# Spark starts many Pythons: without bytecode, each of them would compile all sources again.
unexport PYTHONDONTWRITEBYTECODE

# The first that is new enough and can make a virtual environment (Debian's needs python3-venv for that).
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
  $$python -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)

# Prefix of whatever starts Spark.
WITH_JAVA = JAVA_HOME=$$(scripts/java) && export JAVA_HOME &&

.PHONY: help demo picture check test durations kernels archive bench bench-engine bench-growth bench-slides bench-windows bench-aggregates bench-patterns bench-relations soak lint venv clean java

help: ## list the targets (default)
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: java venv ## see Millstream at work
	@$(WITH_JAVA) $(BIN)/millstream demo

picture: java venv ## draw the demo's screen into docs/demo.svg
	@$(WITH_JAVA) $(BIN)/python scripts/picture.py

check: venv ## lint and all tests that need no Spark, in a few minutes and without Java
	@$(MAKE) --no-print-directory -j 2 lint kernels
	@echo "== pytest"
	@$(BIN)/pytest -n 2 -m "not spark" --hypothesis-profile=quick

test: java venv ## all checks: lint, then the tests and the examples in docstrings
	@$(MAKE) --no-print-directory -j 2 lint archive
	@echo "== pytest"
	@$(WITH_JAVA) $(BIN)/pytest -n 2

durations: archive ## renew tests/durations.json, which the order of tests is made from
	@$(WITH_JAVA) $(BIN)/pytest -n 2 --record-durations

bench: java $(VENV)/.installed-bench ## measure, for some minutes
	@$(WITH_JAVA) $(BIN)/python -m benchmarks

bench-engine: java $(VENV)/.installed-bench ## measure the engine beside Spark's operators and Flink, for hours
	@$(WITH_JAVA) $(BIN)/python -m benchmarks engine

bench-growth: java $(VENV)/.installed-bench ## measure what should not grow with windows and streams
	@$(WITH_JAVA) $(BIN)/python -m benchmarks growth

bench-slides: java $(VENV)/.installed-bench ## measure memory and rate of windows that slide
	@$(WITH_JAVA) $(BIN)/python -m benchmarks slides

bench-windows: java $(VENV)/.installed-bench ## the papers' experiments on windows, growth by kind, and peers
	@$(WITH_JAVA) $(BIN)/python -m benchmarks windows

bench-aggregates: java $(VENV)/.installed-bench ## aggregates of the user's beside built-ins, Python and Flink
	@$(WITH_JAVA) $(BIN)/python -m benchmarks aggregates

bench-patterns: java $(VENV)/.installed-bench ## searches for sequence patterns, their memory, and peers
	@$(WITH_JAVA) $(BIN)/python -m benchmarks patterns

bench-relations: java $(VENV)/.installed-bench ## results maintained at every instant: a paper's experiments, and joins beside peers
	@$(WITH_JAVA) $(BIN)/python -m benchmarks relations

soak: java venv ## the long tests: every program compiled, many kills, millions of rows, hours of stream time
	@$(WITH_JAVA) $(BIN)/pytest -n 2 -m "soak or not spark" --hypothesis-profile=nightly --timeout=3600
	@$(WITH_JAVA) $(BIN)/python -m soak

# Compiled once, and not by each of the processes that run tests.
kernels: venv
	@echo "== kernels"
	@$(BIN)/python -c "from millstream.stage.precompile_stages import warm_up; warm_up(print)"

archive: java kernels
	@echo "== class archive"
	@$(WITH_JAVA) $(BIN)/python -m millstream.runtime.build_class_archive

lint: venv ## style, types and import direction
	@echo "== ruff"
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@echo "== mypy"
	@$(BIN)/mypy
	@echo "== import-linter"
	@$(BIN)/lint-imports --no-logo

venv: $(VENV)/.installed-dev ## set up the virtual environment, .venv or VENV=...

# One stamp per group of optional dependencies, older than its sources when there is something to install again.
# pip itself comes first: only newer ones can pin what packages are built with.
$(VENV)/.installed-%: pyproject.toml constraints.txt
	@[ -n "$(PYTHON)" ] || { echo "Millstream needs Python 3.11 or newer with its venv module. Install it (Debian:" \
	  "apt-get install python3-venv), or name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "== $(VENV): installing Millstream and its group '$*'." \
	  "The first time this takes minutes: PySpark alone is 450 MB"
	@[ -x $(BIN)/pip ] || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt pip
	@$(BIN)/python -m pip install --quiet -c constraints.txt --build-constraint constraints.txt -e '.[$*]'
	@touch $@

# First of all prerequisites, so that a missing Java is known before the download, not after it.
java:
	@scripts/java >/dev/null

clean: ## remove the virtual environments, caches and what Spark left behind
	rm -rf .venv .ci/venv build dist artifacts metastore_db spark-warehouse derby.log \
	  .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src oracle tests benchmarks -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
