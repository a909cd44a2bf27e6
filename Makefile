# Harrier's two commands: `make run` and `make test`. Everything else is a part of them.
# Continuous integration calls `make test`, so what passes here passes there.

PROFILE_QUICK = target/quick/harrier

.PHONY: help run test tools compiler fmt clippy unit outside bench

help:
	@echo "make run    build and start examples/quickstart.cfg"
	@echo "make test   install missing test tools and run all tests"
	@echo "make bench  how to measure"

compiler:
	@command -v cargo >/dev/null || { echo "Rust is missing. Install it with:"; \
	  echo "  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y && . \"\$$HOME/.cargo/env\""; exit 1; }
	@command -v cc >/dev/null || { echo "A C compiler is missing. Install it with:"; \
	  echo "  sudo apt-get install -y build-essential"; exit 1; }

# Colours where somebody looks. INT is left to the program, so that Ctrl-C ends it without a word from make.
run: compiler
	cargo build --release --locked -p harrier
	@if [ -t 1 ] && [ -z "$$NO_COLOR" ]; then b='\033[1m'; c='\033[36m'; z='\033[0m'; fi; \
	printf "\n$${b}Harrier is about to serve examples/quickstart.cfg. Try, from another terminal:$$z\n"; \
	printf "  $${c}curl http://127.0.0.1:8080/$$z     four times: red and blue take turns\n"; \
	printf "and in a browser:\n"; \
	printf "  $${c}http://127.0.0.1:8404/$$z          the statistics page\n"; \
	printf "Each request to port 8080 becomes a log line below. Ctrl-C stops it.\n\n"
	@trap '' INT; exec target/release/harrier -db -f examples/quickstart.cfg

tools: compiler
	@cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt
	@cargo clippy --version >/dev/null 2>&1 || rustup component add clippy
	@cargo deny --version >/dev/null 2>&1 || CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=off \
	  CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 cargo install --quiet --locked cargo-deny || \
	  echo "cargo deny can't be installed, its check is skipped."
	@command -v python3 >/dev/null || if [ "$$(id -u)" = 0 ]; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3; \
	else echo "python3 is missing. Install it with:"; echo "  sudo apt-get install -y python3"; exit 1; fi
	@command -v varnishtest >/dev/null && command -v socat >/dev/null && command -v strace >/dev/null && command -v ss >/dev/null || if [ "$$(id -u)" = 0 ]; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends varnish socat strace iproute2; \
	else echo "varnishtest, socat, strace or ss is missing. Install them with:"; echo "  sudo apt-get install -y varnish socat strace iproute2"; exit 1; fi
	@command -v curl >/dev/null && command -v h2load >/dev/null && command -v openssl >/dev/null \
	  && /usr/bin/python3 -c 'import grpc' 2>/dev/null || if [ "$$(id -u)" = 0 ]; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	    curl nghttp2-client openssl python3-grpcio; \
	else echo "Real clients are missing, their tests are skipped. Install them with:"; \
	  echo "  sudo apt-get install -y curl nghttp2-client openssl python3-grpcio chromium"; fi

# The parts run in order of cost; all of them run even if an early one fails, and one line closes the whole.
test: tools
	@sh tests/all.sh

fmt:
	cargo fmt --all --check
clippy:
	cargo clippy --workspace --all-targets --locked -- -D warnings
unit:
	cargo test --workspace --locked
outside:
	cargo build --profile quick --locked -p harrier
	tests/run.sh $(PROFILE_QUICK)

bench:
	@echo "Build both programs with optimisation, then compare their CPU time per request on one machine in one run;"
	@echo "see bench/README.md for the loads, the command and the last figures."
	cargo build --release --locked -p harrier
