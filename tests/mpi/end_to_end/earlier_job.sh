#!/usr/bin/env bash
# What a job measured of its rounds is there for the next one with the same model, draft, ranks and number of sequences, and for no other. The file is
# one that a job may find damaged, missing, or in a folder that it may not write to.
. "$(dirname "$0")/job.sh"
export XDG_CACHE_HOME=$WORK/cache
KEPT=$XDG_CACHE_HOME/tandem/times.json

# decodes NAME KNOWS OPTION...: a job that ends well, and knows of an earlier one or not.
decodes() {
    local name=$1 knows=$2
    shift 2
    checks=$((checks + 2))
    job "$name" --prompts "$FEW" --max-tokens 64 --ignore-eos --verbose --verifiers 1 "$@" || fail "$name: exit $?, $(cat "$WORK/$name.err")"
    case $knows-$(grep -c "what rounds take is known from an earlier job" "$WORK/$name.err") in
    yes-[1-9]* | no-0) ;;
    *) fail "$name: knows of an earlier job: expected $knows; $(cat "$WORK/$name.err")" ;;
    esac
}

# has PATTERN: one kind of job in the file is like that, and all of the file is JSON.
has() {
    checks=$((checks + 1))
    [ "$(grep -Eo "\"of\": \"[^\"]*$1[^\"]*\", \"step_us\": [0-9.]+, \"with_drafts\": [0-9.]+, \"round_us\": \[\[1, [0-9.]+\]" "$KEPT" | wc -l)" = 1 ] ||
        fail "not one job like '$1' in $(cat "$KEPT" 2>&1)"
}

decodes first no
has "1 drafters, 1 verifiers, 1 threads, 4 sequences"
decodes second yes
decodes fewer no --max-sequences 2
has "2 sequences"
has "4 sequences"
decodes lookup no --draft lookup
decodes more no --verifiers 2
decodes alone no --solo
checks=$((checks + 1))
[ "$(grep -o '"of"' "$KEPT" | wc -l)" = 4 ] || fail "a job without drafts left its times, or another did not: $(cat "$KEPT")"
same second first

printf '[{"of": 7' >"$KEPT"
decodes damaged no
has "4 sequences"
decodes mended yes
rm -r "$XDG_CACHE_HOME"
touch "$XDG_CACHE_HOME" # no folder can be made there
decodes unkept no
checks=$((checks + 1))
[ -f "$XDG_CACHE_HOME" ] && [ ! -s "$XDG_CACHE_HOME" ] || fail "what stood in the way of the folder was touched"
unset HOME XDG_CACHE_HOME
decodes homeless no
finish
