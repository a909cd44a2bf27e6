#!/bin/sh
# Fuzz the parsers with stable Rust and a C++ compiler: the flags are those of cargo-fuzz, without a sanitizer, because
# there is no unsafe code to watch. Debug assertions and overflow checks are on.
#   fuzz/run.sh [TARGET|all] [SECONDS]      default: all targets, 15 s each, two at a time
# What a run finds is kept in fuzz/artifacts/TARGET/, its corpus in fuzz/corpus/TARGET/; the seeds are never changed.
# Exits 1 if a target had a finding; the last line counts them.
set -u
cd "$(dirname "$0")/.." || exit 2
here=$PWD/fuzz
target=${1:-all}
seconds=${2:-15}
triple=$(rustc -vV | sed -n 's/^host: //p')
build=${CARGO_TARGET_DIR:-$PWD/target}/fuzz

RUSTFLAGS="--cfg fuzzing -C passes=sancov-module -C llvm-args=-sanitizer-coverage-level=4 \
-C llvm-args=-sanitizer-coverage-inline-8bit-counters -C llvm-args=-sanitizer-coverage-pc-table \
-C llvm-args=-sanitizer-coverage-trace-compares"
export RUSTFLAGS
# The triple is named so that build scripts are compiled without these flags.
case $target in
    all) bin="" ;;
    cache_keys|compile|compression|cli|states|master|tls|handshake|fields|lua) bin="--bin $target" ;;
    *) bin="--bin $target --no-default-features" ;;
esac
cargo build --release --quiet --manifest-path fuzz/Cargo.toml --target "$triple" --target-dir "$build" $bin || {
    echo "fuzz: 0 passed, 1 failed, 0 skipped"; exit 1; }
unset RUSTFLAGS

# One target; the configuration may name files, so each runs in an empty folder.
run_one() {
    mkdir -p "$here/corpus/$1" "$here/artifacts/$1" "$work/$1"
    case $1 in config|compile) dictionary=-dict=$here/config.dict ;; *) dictionary= ;; esac
    if (cd "$work/$1" && exec "$build/$triple/release/$1" "-max_total_time=$seconds" -timeout=10 -rss_limit_mb=2048 \
        -max_len=2048 -verbosity=1 -print_final_stats=1 "-artifact_prefix=$here/artifacts/$1/" $dictionary \
        "$here/corpus/$1" "$here/seeds/$1") > "$work/$1.log" 2>&1 < /dev/null
    then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/$1.log")
        coverage=$(grep -ao 'cov: [0-9]*' "$work/$1.log" | tail -1 | cut -c6-)
        echo "ok   fuzz/$1: $runs runs, $coverage edges"
    else
        echo "FAIL fuzz/$1"; grep -av -e '^#' -e '^INFO' -e '^WARNING' "$work/$1.log" | head -40
    fi
}

work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
names=$target
[ "$target" != all ] || names=$(sed -n 's,^path = "fuzz_targets/\(.*\)\.rs"$,\1,p' fuzz/Cargo.toml)
set -- $names
while [ $# -gt 0 ]; do
    run_one "$1" > "$work/first" & first=$!
    shift
    if [ $# -gt 0 ]; then run_one "$1" > "$work/second"; cat "$work/second" >> "$work/results"; cat "$work/second"; shift; fi
    wait "$first"
    cat "$work/first" >> "$work/results"; cat "$work/first"
done
passed=$(grep -c '^ok ' "$work/results"); failed=$(grep -c '^FAIL ' "$work/results")
echo "fuzz: $passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
