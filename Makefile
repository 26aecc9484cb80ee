# The targets people use. Each one first makes sure that .venv holds what it needs; the second time that costs nothing.

VENV := .venv
PYTHON := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed

# One thread per process: the tests already run in as many processes as there are cores to use.
TEST := OMP_NUM_THREADS=1 $(PYTHON) -m pytest -q -n 2 --dist worksteal

.PHONY: install demo test test-all test-whole shares lint bench docs release clean
.DEFAULT_GOAL := test

install: $(INSTALLED)
	@:

$(INSTALLED): pyproject.toml tools/install
	@tools/install $(VENV)
	@touch $@

demo: $(INSTALLED)
	@$(PYTHON) -m stillgraph demo --out demo-out

test: $(INSTALLED)
	@$(TEST) -m "not slow"

test-all: $(INSTALLED)
	@tools/install-browser
	@$(TEST)

test-whole: $(INSTALLED)
	@tools/install-browser
	@$(TEST) --whole

shares: $(INSTALLED)
	@$(TEST) --junitxml=build/measured.xml || true
	@$(PYTHON) tools/shares build/measured.xml

lint: $(INSTALLED)
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m mypy --strict src
	@$(VENV)/bin/lint-imports

bench: $(INSTALLED)
	@$(PYTHON) -m bench.capture
	@$(PYTHON) -m bench.overhead
	@$(PYTHON) -m bench.loops
	@$(PYTHON) -m bench.training
	@$(PYTHON) -m bench.deploy

# The site needs neither torch nor .venv: it has an environment of its own, and fails on a broken link.
DOCS := .venv-docs

$(DOCS)/.installed: pyproject.toml tools/install-docs
	@tools/install-docs $(DOCS)
	@touch $@

docs: $(DOCS)/.installed
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/python -m mkdocs build --strict --quiet
	@echo "build/site/index.html"

release: $(INSTALLED)
	@tools/release $(PYTHON)

clean:
	@rm -rf build dist demo-out .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find src tests bench examples -name __pycache__ -type d -prune -exec rm -rf {} +
