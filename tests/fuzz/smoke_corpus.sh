#!/usr/bin/env bash
# What replays a corpus fails where there is none, or a file that was not read whole, and makes inputs of its own where it is asked to.
# smoke_corpus.sh PROGRAM
set -u
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# expect NAME LONG CODE PATTERN: the corpus of this name, with TANDEM_LONG=LONG.
expect() {
    local said code=0
    said=$(TANDEM_LONG=$2 "$program" "$work/$1" 2>&1) || code=$?
    [ $code = "$3" ] && grep -q "$4" <<<"$said" && return
    echo "FAILED: $1, TANDEM_LONG=$2: expected exit $3 and '$4', had $code and '$said'"
    failures=$((failures + 1))
}

mkdir "$work/empty" "$work/hidden" "$work/long" "$work/two"
echo x >"$work/hidden/.file"
head -c 4097 /dev/zero >"$work/long/file"
head -c 4096 /dev/zero >"$work/two/longest"
: >"$work/two/shortest"
for corpus in missing empty hidden long; do expect $corpus '' 1 'expected CORPUS, a folder of 1 to 512 files of at most 4096 bytes'; done
expect two '' 0 '^2 files of the corpus, 0 inputs'
expect two 1 0 '^2 files of the corpus, 20000 inputs'
[ $failures = 0 ]
