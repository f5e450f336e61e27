#!/usr/bin/env bash
# What a job's warm-up timed is kept for the next one with the same model, draft, ranks and number of sequences, and for no other; what the next one does
# not time itself stays. So is what drafts gave, for the next one that drafts by the same rule at the same temperature, where the draft length is left to
# the job and nothing is measured or drawn. The file is one that a job may find damaged, missing, or in a folder that it may not write to.
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
sed -i 's/]], "drafts"/], [96, 12345.5]], "drafts"/' "$KEPT" # which no warm-up of 4 sequences times
has 1 "4 sequences" 96
decodes second
has 1 "4 sequences" 96
decodes fewer --max-sequences 2
has 1 "2 sequences"
has 0 "2 sequences" 96
decodes lookup --draft lookup
decodes more --verifiers 2
decodes narrow --cache fp8
has 1 "4 sequences, cache E4M3"
has 5 ""
decodes alone --solo
has 5 ""
same second first

# An earlier job's file says that drafts give nothing, or that they give all: so the next job drafts never, or from its first rounds on.
of=$(grep -o '"of": "[^"]*drafted by its own[^"]* 1 verifiers[^"]*4 sequences, cache F32[^"]*"' "$KEPT" | head -n 1)
# keep BY RATIO REST_US: so it is kept, of an idle host as of a busy one.
keep() {
    local host terms between='['
    printf '[{%s, "step_us": [[1, 300], [2, 310]], "drafts": ' "$of" >"$KEPT"
    for host in '' ', on a busy host'; do
        terms="$1, run-ahead auto, rounded 0, copies of 0 after 0$host"
        printf '%s{"by": "%s", "accepted": [[40, 39]], "wait_us": [[1, 9, 1]], "ratio": [4, 8, %s], "rest_us": %s, "alone_us": 0, "rests": 1}' "$between" "$terms" "$2" "$3" >>"$KEPT"
        between=', '
    done
    printf ']}]' >>"$KEPT"
}
# drafted NAME TEST: of the job's figure of drafted tokens.
drafted() {
    checks=$((checks + 1))
    [ "$(figure "$1" drafted)" $2 ] || fail "$1 drafted $(figure "$1" drafted) tokens, expected $2"
}
keep "greedy, temperature 0" 16 1e10
decodes never
drafted never "= 0"
keep "greedy, temperature 0" 0.5 0
decodes always
drafted always "-gt 0"
keep "greedy, temperature 0" 16 1e10
for other in "fixed --draft-length 2" "drawn --synthetic-acceptance 0.5"; do
    decodes $other
    checks=$((checks + 1))
    grep -Eq '"ratio": \[4, 8, 16(.0)?\], "rest_us": 1e10, "alone_us": 0(.0)?,' "$KEPT" || fail "$other changed what earlier jobs saw of drafts: $(cat "$KEPT")"
done
decodes rejection --temperature 0.8 # its text depends on its drafts, and those may not depend on coins that an equal job has seen
checks=$((checks + 1))
! grep -q '"by": "rejection' "$KEPT" || fail "what drafts gave is kept where the text depends on them: $(cat "$KEPT")"
sed 's/}$/, "temperature": 0.8}/' "$FEW" >"$WORK/hot.in"
job hot --prompts "$WORK/hot.in" --max-tokens 16 --ignore-eos --verifiers 1 || fail "hot: exit $?, $(cat "$WORK/hot.err")"
checks=$((checks + 1))
grep -Eq '"ratio": \[4, 8, 16(.0)?\], "rest_us": 1e10, "alone_us": 0(.0)?,' "$KEPT" || fail "lines whose text depends on drafts changed what is kept: $(cat "$KEPT")"
keep "rejection, temperature 0" 0.5 0
decodes coupled --temperature 0.8 --accept coupled
checks=$((checks + 1))
grep -q '"by": "rejection, temperature 0,' "$KEPT" || fail "what drafts gave by another rule is lost: $(cat "$KEPT")"

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
