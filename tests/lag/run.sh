#!/bin/sh
# Run the VTC files while system calls of the tests' own clients and servers, or of the program, are held back at random.
#   tests/lag/run.sh PROGRAM [ROUNDS]         PROGRAM may be harrier or real HAProxy; five rounds see each kind of delay once
# A file that fails here depends on which of two things comes first, in itself or in the program. It is no part of `make test`:
# run it after writing tests, for what fails here once in ten rounds fails on a busy machine some day.
set -u
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { echo "usage: tests/lag/run.sh PROGRAM [ROUNDS]" >&2; exit 2; }
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
cc -O1 -Wall -shared -fPIC -o "$work/lag.so" "$here/lag.c" -ldl || exit 2
printf '#!/bin/sh\nLD_PRELOAD=%s/lag.so exec varnishtest "$@"\n' "$work" > "$work/vtest"
chmod +x "$work/vtest"
program=$1
name=$(basename "$program")
rounds=${2:-5}
round=0
while [ $round -lt "$rounds" ]; do
    round=$((round + 1))
    case $((round % 5)) in
        0) delays="LAG_PROG=varnishtest LAG_CLOSE=30 LAG_ACCEPT=10" ;;
        1) delays="LAG_PROG=$name LAG_RANDOM=1 LAG_EPOLL=40" ;;
        2) delays="LAG_PROG=$name LAG_RANDOM=1 LAG_WRITE=20 LAG_READ=10" ;;
        3) delays="LAG_PROG=$name LAG_RANDOM=1 LAG_CLOSE=60 LAG_CONNECT=60 LAG_ACCEPT=60" ;;
        4) delays="LAG_PROG=varnishtest LAG_RANDOM=1 LAG_CLOSE=60 LAG_ACCEPT=60 LAG_WRITE=30 LAG_CONNECT=30" ;;
    esac
    echo "round $round of $rounds: $delays"
    # The words are meant to be split.
    env $delays VTEST="$work/vtest" "$here/../run.sh" "$program" vtc > "$work/said" || echo round $round >> "$work/failed"
    grep -a '^FAIL\|^outside' "$work/said"
done
[ ! -e "$work/failed" ]
