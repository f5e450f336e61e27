#!/usr/bin/env bash
# What a job's warm-up timed is kept for the next one with the same model, draft, ranks and number of sequences, and for no other; what the next one does
# not time itself stays. The file is one that a job may find damaged, missing, or in a folder that it may not write to.
. "$(dirname "$0")/job.sh"
export XDG_CACHE_HOME=$WORK/cache
KEPT=$XDG_CACHE_HOME/tandem/times.json

# decodes NAME OPTION...: a job that ends well.
decodes() {
    local name=$1
    shift
    checks=$((checks + 1))
    job "$name" --prompts "$FEW" --max-tokens 16 --ignore-eos --verifiers 1 "$@" || fail "$name: exit $?, $(cat "$WORK/$name.err")"
}

# has COUNT PATTERN [ROWS]: so many kinds of job in the file are like that, and have timed ROWS rows and fewer.
has() {
    checks=$((checks + 1))
    [ "$(grep -Eo "\"of\": \"[^\"]*$2[^\"]*\", \"step_us\": \[\[1, [0-9.]+\][^{]*" "$KEPT" | grep -c "\[${3:-2}, [0-9.]*\]")" = "$1" ] || fail "not $1 jobs like '$2', ${3:-2} rows, in $(cat "$KEPT" 2>&1)"
}

decodes first
has 1 "1 drafters, 1 verifiers, 1 threads, 4 sequences"
sed -i 's/]]}/], [96, 12345.5]]}/' "$KEPT" # which no warm-up of 4 sequences times
has 1 "4 sequences" 96
decodes second
has 1 "4 sequences" 96
decodes fewer --max-sequences 2
has 1 "2 sequences"
has 0 "2 sequences" 96
decodes lookup --draft lookup
decodes more --verifiers 2
has 4 ""
decodes alone --solo
has 4 ""
same second first

printf '[{"of": 7' >"$KEPT"
decodes damaged
has 1 "4 sequences"
has 0 "4 sequences" 96
rm -r "$XDG_CACHE_HOME"
touch "$XDG_CACHE_HOME" # no folder can be made there
decodes unkept
checks=$((checks + 1))
[ -f "$XDG_CACHE_HOME" ] && [ ! -s "$XDG_CACHE_HOME" ] || fail "what stood in the way of the folder was touched"
unset HOME XDG_CACHE_HOME
decodes homeless
finish
