# Everything from a fresh clone: `make run` opens a map, `make test` checks the code.
# On Windows, and for use without make, see the README.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.PHONY: setup run docs test test-versions test-lowest test-newest lint clean system

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
# Empty: the newest versions that pyproject.toml allows.
CONSTRAINTS ?= constraints.txt
# pyqt6 or pyside6
QT ?= pyqt6
export PYTHON
# Stamps, so that the second time is quick: all that a window needs, what tests and
# checks need as well, loops that are as new as their sources, all of them compiled.
RUNS := $(VENV)/.runs
INSTALLED := $(VENV)/.installed
LOOPS := $(VENV)/.loops
WARM := $(VENV)/.warm
# uv is several times as quick as pip, which comes in where an institute's certificates
# or mirror are known to pip alone.  torch comes by pip, whose settings may name a build
# without gigabytes for GPUs.  Python compiles a module when it is first imported:
# of 22,000 that is a quarter.
PINNED := $(CONSTRAINTS:%=--constraint %)
PIP := $(BIN)/python -m pip install --quiet --no-compile $(PINNED)
install = $(PIP) torch uv && \
  { $(BIN)/uv pip install --quiet --python $(BIN)/python $(PINNED) --editable '.[$(1)]' \
    || $(PIP) --editable '.[$(1)]'; }
# Each process of the tests would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

setup: $(INSTALLED) $(WARM)

# A window where there is a display; else one that nobody sees, kept as a picture.
run: $(RUNS) $(LOOPS)
	@if [ "$$(uname)" != Linux ] || [ -n "$${DISPLAY:-}$${WAYLAND_DISPLAY:-}" ]; then \
	  $(BIN)/napari-embedding-game --sample pbmc; \
	else \
	  mkdir -p out; \
	  xvfb-run --auto-servernum --server-args='-screen 0 1600x1000x24' \
	    $(BIN)/napari-embedding-game --sample pbmc \
	      --screenshot out/pbmc.png --out out/pbmc.h5ad --quit-after-run; \
	  echo 'No display here: the map is in out/pbmc.png, the result in out/pbmc.h5ad.'; \
	fi

# pytest-xvfb gives each process a display of its own; tests/conftest.py says what
# comes first.
test: setup
	@tools/system_libraries.sh browser
	$(BIN)/lint-imports
	$(BIN)/python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder

# The lowest versions that pyproject.toml allows, and the newest there are.
test-versions: test-lowest test-newest

test-lowest test-newest: | system
	tools/test_versions.sh $(@:test-%=%)

# Compiles nothing, so that it answers in seconds.
lint: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/lint-imports

# The site, into build/docs; each warning is an error.
docs: $(RUNS)
	$(call install,docs)
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet docs build/docs
	@echo 'The site is in build/docs/index.html.'

clean:
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-newest out build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	rm -rf src/napari_embedding_game/napari.yaml src/napari_embedding_game/resources
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

system:
	@tools/system_libraries.sh

$(BIN)/python: | system
	$(PYTHON) -m venv $(VENV)

SOURCES := pyproject.toml constraints.txt tools/hatch_build.py
ifeq ($(QT),pyside6)
define OTHER_QT
	$(BIN)/python -m pip install --quiet 'napari[pyside6]'
	$(BIN)/python -m pip uninstall --quiet --yes PyQt6 PyQt6-Qt6 PyQt6-sip
endef
endif

$(RUNS): $(SOURCES) | system $(BIN)/python
	$(call install,all)
	$(OTHER_QT)
	touch $@

$(INSTALLED): $(SOURCES) | system $(BIN)/python
	$(call install,dev)
	$(OTHER_QT)
	touch $(RUNS) $@

# numba's cache does not see that a loop calls one of another file that has changed.
$(LOOPS): $(shell find src/napari_embedding_game/core -name '*.py') | $(BIN)/python
	find src/napari_embedding_game/core -name '*.nb[ci]' -delete
	touch $@

# A window compiles what it needs; tests would wait for one another.
$(WARM): $(INSTALLED) $(LOOPS)
	$(BIN)/python tools/warm_up.py
	touch $@
