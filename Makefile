# `make demo` needs Python 3.10 or newer with pip; `make test` installs everything else the tests need.
PYTHON ?= python3
VENV := .venv
DEMO := .venv-demo
PYTEST_FLAGS ?= -n 2 -q

.PHONY: help demo test check lint types layers format rule clean

help:
	@echo "make demo    check the example modules with the static half alone (no torch)"
	@echo "make test    the whole suite"
	@echo "make check   ruff, mypy --strict, the layer test"
	@echo "make rule CODE=MSA999 NAME=my-rule    a new rule with its fixtures"

demo: $(DEMO)/.installed
	@echo "$$ msalint fixtures/articles/"
	@$(DEMO)/bin/msalint fixtures/articles/; status=$$?; test $$status -le 1

test: $(VENV)/.installed
	$(VENV)/bin/python -m pytest $(PYTEST_FLAGS)

check: lint types layers

lint: $(VENV)/.installed
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: $(VENV)/.installed
	$(VENV)/bin/mypy

layers: $(VENV)/.installed
	$(VENV)/bin/python -m pytest -q tests/test_layers.py

format: $(VENV)/.installed
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

rule:
	@$(PYTHON) scripts/new_rule.py "$(CODE)" "$(NAME)"

clean:
	rm -rf $(VENV) $(DEMO) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@

$(DEMO)/.installed: pyproject.toml $(wildcard msalint/*.py msalint/*/*.py rules/*/*.py)
	$(PYTHON) -m venv $(DEMO)
	$(DEMO)/bin/python -m pip install --quiet --disable-pip-version-check .
	@touch $@
