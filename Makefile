# Each target is one command of its own tool; setup.sh installs and builds what is missing.
.PHONY: study test soak bench lint setup manual dist clean

study: setup
	@.venv/bin/twinbed run studies/quickstart.yaml

test:
	@./setup.sh test
	@code=0; \
	cargo test --quiet --workspace --locked --no-fail-fast || code=$$?; \
	.venv/bin/python -m pytest -n 4 --dist loadscope || code=$$?; \
	exit $$code

# What is too long for the tests, for as long as is asked: make soak SOAK=2h
SOAK ?= 20m
soak: setup
	@.venv/bin/python -m benchmarks.soak --for $(SOAK)

bench: setup
	@.venv/bin/python -m benchmarks

lint: setup
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/lint-imports
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

setup:
	@./setup.sh

# The manual as pages that open from disk: dist/manual/index.html.
manual: setup
	.venv/bin/zensical build --strict

# A wheel for others, tried where there is neither this checkout nor a compiler; as root a study is run from it.
dist:
	@packaging/wheel.sh
	@packaging/try.sh dist/*.whl

# The image stays: other checkouts share it (twinbed image list says where it is).
clean:
	rm -rf target .venv .setup .cache results dist src/twinbed/bin src/twinbed/_core*.so
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
