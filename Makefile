# What a fresh machine with Rust and Python 3 needs: `make demo` and `make test`.
# Build products and virtualenvs live outside the checkout, so that a second run is quick.
CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/unflake
PYTHON ?= python3
PYENV := $(or $(PYENV_ROOT),$(HOME)/.pyenv)
PYTHON312 ?= $(firstword $(wildcard $(PYENV)/versions/3.12.*/bin/python3) $(shell command -v python3.12))
export CARGO_TARGET_DIR ?= $(CACHE)/target

# One virtualenv per list of packages, so that a changed list makes a new one.
venv = $(CACHE)/venv-$(1)-$(shell cksum < requirements/$(1).txt | cut -d' ' -f1)
TEST_VENV := $(call venv,test)
PLUGINS_VENV := $(call venv,plugins)
BROWSER_VENV := $(call venv,browser)
DEMO_VENV := $(CACHE)/venv-demo
# A virtualenv without pytest, for the error that a newcomer meets first.
BARE_VENV := $(CACHE)/venv-bare

.PHONY: build demo board test blame-sample chromium lint doc check
build:
	cargo build --release --locked

demo: build $(DEMO_VENV)/ready
	@rm -f $(CACHE)/shop.json
	@echo; echo "--- unflake run in examples/shop ---"
	@cd examples/shop && SHOP_COUNTERS=$(CACHE)/shop.json \
		$(CARGO_TARGET_DIR)/release/unflake run --python $(DEMO_VENV); \
		code=$$?; echo; echo "exit code $$code: one test is really broken, three are flaky"; test $$code -eq 1
	@echo; echo "the triage board: make board"

# The triage board on a made-up history.
board: build
	$(CARGO_TARGET_DIR)/release/unflake serve --demo

test: $(TEST_VENV)/ready $(PLUGINS_VENV)/ready $(BARE_VENV)/ready $(BROWSER_VENV)/ready chromium
	UNFLAKE_TEST_PYTHON=$(TEST_VENV)/bin/python \
	UNFLAKE_PLUGINS_PYTHON=$(PLUGINS_VENV)/bin/python \
	UNFLAKE_BARE_PYTHON=$(BARE_VENV)/bin/python \
		cargo test --workspace --locked
	cd runners/pytest && $(TEST_VENV)/bin/python -m pytest -q -p no:cacheprovider tests
	cargo build -p unflake --locked
	$(MAKE) blame-sample
	cd crates/dashboard/tests/browser && UNFLAKE_BINARY=$(CARGO_TARGET_DIR)/debug/unflake \
		$(BROWSER_VENV)/bin/python -m pytest -q -p no:cacheprovider .

# 30 planted changes in public projects: none that breaks a test is forgiven. It takes Python 3.12.
blame-sample:
	@if [ -n "$(PYTHON312)" ]; then \
		$(PYTHON312) bench/blame.py --sample --jobs 2 --unflake $(CARGO_TARGET_DIR)/debug/unflake --work $(CACHE)/blame; \
	elif [ -n "$(CI)" ]; then echo "the sample of planted changes needs Python 3.12"; exit 1; \
	else echo "there is no Python 3.12: the sample of planted changes is skipped"; fi

# A browser for the board's tests. Without one they are skipped on a laptop, and fail in CI.
chromium:
	@if ! { command -v chromium || command -v chromium-browser || command -v google-chrome; } > /dev/null; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
			apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium > /dev/null; \
		else echo "there is no chromium: the board's tests are skipped (install chromium)"; fi; \
	fi

lint: $(TEST_VENV)/ready
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cd runners/pytest && $(TEST_VENV)/bin/ruff check . && $(TEST_VENV)/bin/ruff format --check .
	cd runners/pytest && $(TEST_VENV)/bin/mypy --cache-dir=$(CACHE)/mypy .
	$(TEST_VENV)/bin/ruff check --config runners/pytest/pyproject.toml bench crates/dashboard/tests/browser
	$(TEST_VENV)/bin/ruff format --check --config runners/pytest/pyproject.toml crates/dashboard/tests/browser

doc:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --locked

check: lint doc test

$(TEST_VENV)/ready $(PLUGINS_VENV)/ready $(BROWSER_VENV)/ready: packages = requirements/$(word 2,$(subst -, ,$(notdir $(@D)))).txt
$(TEST_VENV)/ready $(PLUGINS_VENV)/ready $(BROWSER_VENV)/ready:
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check -r $(packages)
	touch $@

$(DEMO_VENV)/ready:
	$(PYTHON) -m venv $(DEMO_VENV)
	$(DEMO_VENV)/bin/pip install --quiet --disable-pip-version-check "pytest>=8"
	touch $@

$(BARE_VENV)/ready:
	$(PYTHON) -m venv --without-pip $(BARE_VENV)
	touch $@
