#!/bin/sh
# Unit tests and VTC files under the sanitizers of the stable compiler.
#   tests/sanitize.sh address [CRATE...]        default: all crates, then the VTCs
#   tests/sanitize.sh thread [CRATE...]         default: rt balance stick model; needs `rustup component add rust-src`
# For addresses the standard library is not instrumented; allocation and copying are intercepted all the same. Threads can only be
# judged with an instrumented one, for `Arc` orders its last drop by a fence, which the sanitizer does not see: so it is built along
# (-Zbuild-std). Tests in one thread that take minutes are left out there. All interleavings of the small parts are tested with
# loom (`rt`, `balance`). What is known and no fault stands in tests/tsan.txt, each with its reason.
set -u
cd "$(dirname "$0")/.." || exit 2
kind=${1:-}; [ $# -gt 0 ] && shift
case $kind in
    address) ;;
    thread) [ -d "$(rustc --print sysroot)/lib/rustlib/src/rust/library" ] || { echo "sanitize: rustup component add rust-src" >&2; exit 2; } ;;
    *) echo "usage: tests/sanitize.sh address|thread [CRATE...]" >&2; exit 2 ;;
esac
triple=$(rustc -vV | sed -n 's/^host: //p')
if [ "$kind" = thread ]; then
    # Tests unwind, and a library that aborts beside it would be a second one.
    export RUSTC_BOOTSTRAP=1 CARGO_PROFILE_DEV_PANIC=unwind RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer"
    export TSAN_OPTIONS="exitcode=66 suppressions=$PWD/tests/tsan.txt"
    crates=
    for crate in ${*:-rt balance stick model}; do crates="$crates -p $crate"; done
    exec cargo test -Zbuild-std --locked --target "$triple" --target-dir "${CARGO_TARGET_DIR:-target}/thread" $crates --lib --tests \
        --no-fail-fast -- --skip map:: --skip leastconn --skip ring::
fi
RUSTC_BOOTSTRAP=1
# Without any optimising the worlds take an hour.
CARGO_PROFILE_DEV_OPT_LEVEL=1
RUSTFLAGS="-Zsanitizer=address -Cunsafe-allow-abi-mismatch=sanitizer"
# A leak at the end of a test process is no finding: threads of the runtime outlive main.
ASAN_OPTIONS="detect_leaks=0:abort_on_error=1"
export RUSTC_BOOTSTRAP CARGO_PROFILE_DEV_OPT_LEVEL RUSTFLAGS ASAN_OPTIONS
# A folder of its own, and the triple, so that build scripts stay as they are.
target=${CARGO_TARGET_DIR:-target}/address
build="--locked --target $triple --target-dir $target"
crates=--workspace
[ $# -eq 0 ] || crates=
for crate; do crates="$crates -p $crate"; done
# The sanitizer reserves terabytes of address space: a process that limits its own (-m) can't start with it. Its allocator gives
# no memory back to the kernel when asked (malloc_trim).
cargo test $build $crates --tests --no-fail-fast -- --skip limits_of_the_command_line --skip memory_of_the_start || exit 1
[ $# -eq 0 ] || exit 0
cargo build $build -p harrier || exit 1
exec env WITHOUT=process/chroot-auto tests/run.sh "$target/$triple/debug/harrier" vtc
