# What a fresh machine with Rust and Python 3 needs: `make demo` and `make test`.
# Build products and virtualenvs live outside the checkout, so that a second run is quick.
CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/unflake
PYTHON ?= python3
export CARGO_TARGET_DIR ?= $(CACHE)/target

# One virtualenv per list of packages, so that a changed list makes a new one.
venv = $(CACHE)/venv-$(1)-$(shell cksum < requirements/$(1).txt | cut -d' ' -f1)
TEST_VENV := $(call venv,test)
PLUGINS_VENV := $(call venv,plugins)
DEMO_VENV := $(CACHE)/venv-demo
# A virtualenv without pytest, for the error that a newcomer meets first.
BARE_VENV := $(CACHE)/venv-bare

.PHONY: build demo test lint doc check
build:
	cargo build --release --locked

demo: build $(DEMO_VENV)/ready
	@rm -f $(CACHE)/shop.json
	@echo; echo "--- unflake run in examples/shop ---"
	@cd examples/shop && SHOP_COUNTERS=$(CACHE)/shop.json \
		$(CARGO_TARGET_DIR)/release/unflake run --python $(DEMO_VENV); \
		code=$$?; echo; echo "exit code $$code: one test is really broken, three are flaky"; test $$code -eq 1

test: $(TEST_VENV)/ready $(PLUGINS_VENV)/ready $(BARE_VENV)/ready
	UNFLAKE_TEST_PYTHON=$(TEST_VENV)/bin/python \
	UNFLAKE_PLUGINS_PYTHON=$(PLUGINS_VENV)/bin/python \
	UNFLAKE_BARE_PYTHON=$(BARE_VENV)/bin/python \
		cargo test --workspace --locked
	cd runners/pytest && $(TEST_VENV)/bin/python -m pytest -q -p no:cacheprovider tests

lint: $(TEST_VENV)/ready
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cd runners/pytest && $(TEST_VENV)/bin/ruff check . && $(TEST_VENV)/bin/ruff format --check .
	cd runners/pytest && $(TEST_VENV)/bin/mypy --cache-dir=$(CACHE)/mypy .
	$(TEST_VENV)/bin/ruff check --config runners/pytest/pyproject.toml bench

doc:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --locked

check: lint doc test

$(TEST_VENV)/ready $(PLUGINS_VENV)/ready: packages = requirements/$(word 2,$(subst -, ,$(notdir $(@D)))).txt
$(TEST_VENV)/ready $(PLUGINS_VENV)/ready:
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
