# Everything runs from a fresh machine with Python 3.11 or later, pip and make:
# the first target creates .venv and installs into it; afterwards no network is needed.
#
#   make demo      mask a made-up business survey and read the account
#   make test      the tests, without the slow ones
#   make test-slow the slow ones alone, without the heavy; installs Java for Spark where there is none
#   make test-all  all tests but those in a browser, the heavy ones as well: an hour
#   make test-e2e  the app and the site in a real browser; installs Chromium where there is none
#   make fuzz      10,000 random tables with rules, checked without tessella; ARGS="--cases 500 --seed 1"
#   make lint      ruff and mypy; workflows and CITATION.cff by their schemas
#   make bench     the figures we publish, measured here
#   make docs      the documentation as a site, in site/; a broken link is an error, and so is a load from outside
#   make dist      sdist and wheels in dist/, one wheel for all platforms and one with machine code for
#                  this one; checked by twine
#   make clean     remove .venv, dist/ and caches
#
# Another Python: make test PYTHON=python3.12

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable

# Hundreds of tests start an interpreter; without bytecode each would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-all test-e2e fuzz lint lint-style lint-format lint-types lint-github format bench docs dist clean

help:
	@sed -n 's/^#   //p' Makefile

demo: $(VENV)/.first
	$(BIN)/tessella demo --overwrite

# A file of tests stays with one worker: what it prepares is prepared once, and not in both.
test: $(VENV)/.test $(VENV)/.kernels
	$(BIN)/python -m pytest -m "not slow and not e2e" --numprocesses=auto --dist=loadfile $(ARGS)

test-slow: $(VENV)/.docs $(VENV)/.java $(VENV)/.kernels
	$(BIN)/python -m pytest -m "slow and not heavy and not e2e" --numprocesses=auto --dist=load $(ARGS)

test-all: $(VENV)/.docs $(VENV)/.java $(VENV)/.kernels
	$(BIN)/python -m pytest -m "not e2e" --numprocesses=auto --dist=loadfile $(ARGS)

test-e2e: $(VENV)/.e2e $(VENV)/.kernels
	$(BIN)/python -m pytest -m e2e tests/e2e $(ARGS)

fuzz: $(VENV)/.test
	$(BIN)/python -m tests.fuzz $(ARGS)

lint: lint-style lint-format lint-types lint-github

lint-style: $(VENV)/.test
	$(BIN)/ruff check .

lint-format: $(VENV)/.test
	$(BIN)/ruff format --check .

lint-types: $(VENV)/.test
	$(BIN)/mypy

# Both know the schemas without a network. zizmor finds what an attacker could use in a workflow.
SCHEMA := $(BIN)/check-jsonschema --quiet --builtin-schema
lint-github: $(VENV)/.test
	$(SCHEMA) vendor.github-workflows .github/workflows/*.yml
	$(SCHEMA) vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml
	$(SCHEMA) vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(SCHEMA) vendor.dependabot .github/dependabot.yml
	$(SCHEMA) vendor.citation-file-format CITATION.cff
	$(BIN)/zizmor --offline --quiet --no-progress .github

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.bench $(VENV)/.kernels
	$(BIN)/python -m benchmarks $(ARGS)

docs: $(VENV)/.docs
	$(BIN)/python -m website

# The wheels are built from the sdist. Files get the time of the last commit.
dist: $(VENV)/.test
	rm -rf dist
	export SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)}; \
	$(BIN)/python -m build --no-isolation --outdir dist . && \
	TESSELLA_KERNELS=1 $(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation \
		--wheel-dir dist dist/*.tar.gz
	$(BIN)/twine check --strict dist/*

$(VENV)/.made:
	@test -n "$(PYTHON)" || { echo "tessella needs Python 3.11 or later: make PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# Only what a user installs, and what compiles the kernels.
$(VENV)/.run: $(VENV)/.made pyproject.toml src/tessella/__init__.py
	$(INSTALL) . "setuptools>=68"
	@touch $@

# Kernels are compiled ahead of time, those alone that were edited. Without a C compiler numba compiles
# them when they are first called.
KERNELS := $(wildcard src/tessella/kernels/*.py) src/tessella/kernels/signatures.txt
# Another failure is tried again next time.
COMPILE := $(BIN)/python build_kernels.py
OR_NOT = && touch $@ || { test $$? = 3 && touch $@; \
	echo "No machine code was made ahead; numba compiles on first use."; }
$(VENV)/.first: $(VENV)/.run build_kernels.py $(KERNELS)
	@echo "Compiling the kernels that the demo uses; that takes less than a minute."
	@$(COMPILE) --first $(OR_NOT)

$(VENV)/.kernels: $(VENV)/.run build_kernels.py $(KERNELS)
	@echo "Compiling the kernels; that takes a minute or two."
	@$(COMPILE) $(OR_NOT)

# The version is read from the package when it is installed.
$(VENV)/.test: $(VENV)/.made pyproject.toml src/tessella/__init__.py
	$(INSTALL) ".[test]"
	@touch $@

# Spark runs on it.
$(VENV)/.java: $(VENV)/.test
	@command -v java > /dev/null || { sudo=; test "$$(id -u)" = 0 || sudo=sudo; \
	$$sudo apt-get update && { $$sudo apt-get install -y openjdk-17-jre-headless || \
	$$sudo apt-get install -y default-jre-headless; }; }
	@touch $@

$(VENV)/.e2e: $(VENV)/.test pyproject.toml
	$(INSTALL) ".[test,docs,e2e]"
	@for b in chromium chromium-browser google-chrome; do command -v $$b && exit 0; done; \
	sudo=; test "$$(id -u)" = 0 || sudo=sudo; \
	$$sudo apt-get update && $$sudo apt-get install -y chromium
	@touch $@

$(VENV)/.docs: $(VENV)/.test pyproject.toml
	$(INSTALL) ".[test,docs]"
	@touch $@

$(VENV)/.bench: $(VENV)/.test pyproject.toml
	$(INSTALL) ".[test,bench]"
	@touch $@

clean:
	rm -rf $(VENV) site dist src/tessella/kernels/compiled .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
