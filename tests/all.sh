#!/bin/sh
# All tests in order of cost, with one closing line. Called by `make test`.
cd "$(dirname "$0")/.." || exit 2
log=$(mktemp) || exit 2
trap 'rm -f "$log"' EXIT
passed=0; failed=0; skipped=0

# A step is one check that passes or fails as a whole.
step() {
    echo "== $*"
    if "$@" < /dev/null; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "== FAILED: $*"; fi
}
# A counted step prints its own results; `sums` turns them into "passed failed skipped".
counted() {
    sums=$1; shift
    echo "== $*"
    { "$@" < /dev/null 2>&1; echo $? > "$log.code"; } | tee "$log"
    code=$(cat "$log.code"); rm -f "$log.code"
    set -- $($sums)
    passed=$((passed + $1)); failed=$((failed + $2)); skipped=$((skipped + $3))
    # A compiler error or a crash counts, too.
    if [ "$code" != 0 ] && [ "$2" = 0 ]; then failed=$((failed + 1)); fi
}
cargo_sums() { awk '/^test result:/ { p += $4; f += $6; s += $8 } END { print p + 0, f + 0, s + 0 }' "$log"; }
fuzz_sums() { awk '/^fuzz: / { p = $2; f = $4; s = $6 } END { print p + 0, f + 0, s + 0 }' "$log"; }
# Its thousands of requests are one check.
soak_sums() { awk '/^soak: / { p = $4 == 0; f = $4 } END { print p + 0, f + 0, 0 }' "$log"; }
outside_sums() { awk '/^outside: / { p = $2; f = $4; s = $6 } END { print p + 0, f + 0, s + 0 }' "$log"; }

step cargo fmt --all --check
step cargo clippy --workspace --all-targets --locked -- -D warnings
counted cargo_sums cargo test --workspace --locked --no-fail-fast
# Advisories are in a repository that not every machine reaches; licences, duplicates and sources need nothing but the lock files.
if cargo deny --version > /dev/null 2>&1; then
    step cargo deny --locked check bans licenses sources
    for part in tests/soak fuzz; do step cargo deny --locked --manifest-path $part/Cargo.toml check licenses sources; done
else
    echo "== cargo deny is missing, skipped"; skipped=$((skipped + 3))
fi
step cargo build --profile quick --locked -p harrier
counted outside_sums tests/run.sh target/quick/harrier
step python3 tests/coverage.py --binary target/quick/harrier
counted outside_sums python3 tests/readme.py --binary target/quick/harrier
counted outside_sums python3 tests/differential/run.py --binary target/quick/harrier
counted outside_sums python3 tests/differential/program/run.py --replay --binary target/quick/harrier
counted outside_sums python3 tests/differential/broken.py --binary target/quick/harrier
counted outside_sums python3 tests/differential/commands.py --binary target/quick/harrier
counted outside_sums python3 tests/differential/tls/tls.py --binary target/quick/harrier
step python3 tests/differential/promex/promex.py --binary target/quick/harrier
counted outside_sums python3 tests/differential/frames/frames.py --binary target/quick/harrier --jobs 4
counted outside_sums python3 tests/differential/fates/fates.py --binary target/quick/harrier --jobs 4
counted outside_sums python3 tests/mail.py --binary target/quick/harrier
counted outside_sums python3 tests/fcgi.py --binary target/quick/harrier --size 20
counted outside_sums python3 tests/spoe.py --binary target/quick/harrier
counted outside_sums python3 tests/clients/run.py --binary target/quick/harrier
soak="--release --locked --manifest-path tests/soak/Cargo.toml --target-dir target/soak"
counted cargo_sums cargo test $soak
step cargo build $soak
counted soak_sums target/soak/release/harrier-soak target/quick/harrier --seconds "${SOAK_SECONDS:-120}"
counted fuzz_sums fuzz/run.sh all "${FUZZ_SECONDS:-15}"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
