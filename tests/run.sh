#!/bin/sh
# Run the tests that look at the program from outside.
#   tests/run.sh PROGRAM [vtc|config]...      PROGRAM may be harrier or real HAProxy
# VTC files named in tests/vtc/known-failures.txt are run too: one that fails is counted as skipped, one that
# passes is a failure until its line is taken out, so the list can only tell the truth. VTEST names another
# runner than varnishtest; JOBS says how many run at once; ORACLE=1 says that PROGRAM is real HAProxy. Exits 1 if anything failed.
# A file that failed runs once more when nothing else does: one that passes then is shown as shaky, for a machine that stands still for
# a second breaks the runner's own steps. STRICT=1 lets nothing pass so. WITHOUT is a regular expression of files that are left out.
set -u
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { echo "usage: tests/run.sh PROGRAM [vtc|config]..." >&2; exit 2; }
HAPROXY_PROGRAM=$(realpath "$1") || exit 2
export HAPROXY_PROGRAM
shift
[ $# -gt 0 ] || set -- vtc config
vtest=${VTEST:-varnishtest}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
# Real HAProxy has no known failures.
known=$here/vtc/known-failures.txt
[ -z "${ORACLE:-}" ] || known=/dev/null

run_vtc() {
    (cd "$here/vtc" && find . -name '*.vtc' | sed 's,^\./,,' | sort | grep -vE -- "${WITHOUT:-^$}") > "$work/files"
    export here vtest work known
    vtcs_of "$work/files" "${JOBS:-2}" | tee "$work/tries"
    grep -v '^FAIL ' "$work/tries" >> "$work/results"
    sed -n 's/^FAIL \([^ ]*\.vtc\): .*/\1/p' "$work/tries" > "$work/failed"
    if [ -n "${STRICT:-}" ] || [ "$(wc -l < "$work/failed")" -gt 12 ]; then grep '^FAIL ' "$work/tries" >> "$work/results"; return; fi
    vtcs_of "$work/failed" 1 | sed 's/^ok  \(.*\)/ok  \1 (shaky: failed beside others, passed alone)/' | tee -a "$work/results"
}

# Runs the files that the list FILE names, N at once.
vtcs_of() {
    [ -s "$1" ] || return 0
    xargs -P "$2" -n 1 sh -c '
        log=$work/$(echo "$1" | tr / _).log
        # Long enough for a machine that is busy with ten other things; half of it is what each step may take.
        limit=60; word=FAIL
        if grep -qxF "$1" "$known"; then limit=6; word=known; fi
        timeout 80 "$vtest" -k -t $limit "$here/vtc/$1" > "$log" 2>&1 < /dev/null; code=$?
        # 77: what a "feature" line asks for is not there.
        if [ $code = 0 ] || [ $code = 77 ]; then
            if [ $code = 77 ] || grep -q "[1-9][0-9]* tests skipped" "$log"; then echo "skip $1"
            elif [ $word = known ]; then echo "FAIL $1: passes now, take it out of known-failures.txt"
            else echo "ok   $1"; fi
        elif [ $word = known ]; then echo "skip $1 (known failure)"
        else echo "FAIL $1: $(grep -am1 -e "^---- " "$log" | cut -c1-200)"
        fi' sh < "$1"
}

# Each tests/config/*.case is one wrong configuration: lines "#! exit N" and "#! error TEXT", then
# the file. The text must stand in the output, with FILE for the path of the configuration. With "#! silent" nothing may.
# What stands behind a line "#! file NAME" is another file beside it.
run_config() {
    for case in "$here"/config/*.case; do
        [ -e "$case" ] || continue
        name=${case##*/}; name=${name%.case}
        want=$(sed -n 's/^#! exit //p' "$case")
        text=$(sed -n 's/^#! error //p' "$case")
        sed '/^#! file /,$d; /^#! /d' "$case" > "$work/FILE"
        awk -v work="$work/" '/^#! file / { out = work $3; next } out { print > out }' "$case"
        out=$(cd "$work" && timeout 10 "$HAPROXY_PROGRAM" -c -f FILE 2>&1 < /dev/null); code=$?
        if [ "$code" != "$want" ]; then echo "FAIL config/$name: exit code $code, not $want"
        elif [ -n "$text" ] && ! printf '%s\n' "$out" | grep -qF -- "$text"; then
            echo "FAIL config/$name: does not say: $text"
        elif [ -n "$out" ] && grep -qx '#! silent' "$case"; then echo "FAIL config/$name: is not silent: $out"
        else echo "ok   config/$name"; fi | {
            read -r line
            short=config/$name
            if ! grep -qxF "$short" "$known"; then echo "$line"
            else case $line in
                ok*) echo "FAIL $short: passes now, take it out of known-failures.txt" ;;
                *) echo "skip $short (known failure)" ;;
            esac; fi
        }
    done | tee -a "$work/results"
}

: > "$work/results"
for part; do
    case $part in
        vtc) command -v "$vtest" > /dev/null || { echo "FAIL $vtest is missing: apt-get install varnish" | tee -a "$work/results"; continue; }
             run_vtc ;;
        config) run_config ;;
        *) echo "unknown part: $part" >&2; exit 2 ;;
    esac
done
passed=$(grep -c '^ok ' "$work/results"); failed=$(grep -c '^FAIL ' "$work/results"); skipped=$(grep -c '^skip ' "$work/results")
echo "outside: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
