# make lab [LANGUAGE=zh] [ARGS="--no-browser --port 8899"]   open the lab
# make test                                                  set up and run everything
# Needs Python 3.11, 3.12 or 3.13 and make; everything else goes into .venv.

SHELL := /bin/sh
LANGUAGE ?=
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	if $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then echo $$p; exit; fi; done)
WORKERS ?= $(shell nproc 2>/dev/null || echo 2)
PYTEST := $(BIN)/python -m pytest -q

.PHONY: lab test lint types floors unit golden notebooks grading browser realcluster record clean help

help:
	@sed -n '1,3s/^# //p' Makefile

lab: $(VENV)/.installed
	@$(BIN)/labkit lab $(if $(LANGUAGE),--lang $(LANGUAGE)) $(ARGS)

test: lint types floors unit notebooks grading browser
	@echo "everything passed"

$(VENV)/bin/python:
	@if [ -z "$(PYTHON)" ]; then echo "Python 3.11, 3.12 or 3.13 is needed and none was found. Install one, or say PYTHON=/path/to/python3.11"; exit 1; fi
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot make virtual environments: its modules venv and ensurepip are missing."; \
		echo "On Debian or Ubuntu: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-test: pyproject.toml $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@ $(VENV)/.installed

lint: $(VENV)/.installed-test
	$(BIN)/ruff check labkit tests clusters

types: $(VENV)/.installed-test
	$(BIN)/mypy

floors: $(VENV)/.installed-test
	$(BIN)/lint-imports

unit: $(VENV)/.installed-test
	$(PYTEST) -n $(WORKERS) -m "not browser and not nbgrader and not realcluster" tests

# Every module, both languages, outputs compared with the recorded ones.
notebooks: $(VENV)/.installed-test
	rm -rf .cache/nbval
	$(BIN)/python -m labkit.course.record --check .cache/nbval
	LABKIT_LANG=en $(PYTEST) -n $(WORKERS) --dist loadfile -p no:cacheprovider --nbval --nbval-current-env .cache/nbval/en
	LABKIT_LANG=zh $(PYTEST) -n $(WORKERS) --dist loadfile -p no:cacheprovider --nbval --nbval-current-env .cache/nbval/zh

grading: $(VENV)/.installed-test
	$(PYTEST) -n $(WORKERS) --dist loadfile -m nbgrader tests

browser: $(VENV)/.installed-test
	$(PYTEST) -m browser tests

# Starts the real etcd, kube-apiserver and kube-scheduler; see tests/realcluster/README.md.
realcluster: $(VENV)/.installed-test
	$(PYTEST) -m realcluster tests

# Run every module's solutions in both languages and keep the outputs in the notebooks.
record: $(VENV)/.installed-test
	$(BIN)/python -m labkit.course.record

clean:
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
