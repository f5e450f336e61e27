#!/usr/bin/env bash
# No work is taken for a hang, however long it takes: with --watchdog 2 jobs load, read prompts and compute for many seconds, on one rank while the
# others wait for it, and end well; where one thing never ends, they end with 76 and a line that says which. slow.sh BIN default|small
. "$(dirname "$0")/../mpi/end_to_end/job.sh"
watchdog=2 unit=1 AT_ONCE=4
[ "$2" = small ] && watchdog=10 unit=5
head -n 4 "$PROMPTS" >"$WORK/some.in"
some=(--prompts "$WORK/some.in" --draft-length 4 --max-tokens 3 --max-sequences 4 --drafters 1 --verifiers 2 --hash-logits)
DRAFTER=0 LEAD=1 FOLLOWER=2
job plain "${some[@]}" || fail "plain: exit $?: $(cat "$WORK/plain.err")"

# slow NAME RANK VARIABLE=VALUE: a job on which that rank is; CODE and TOOK (ms).
slow() {
    local began=$(date +%s%3N)
    CODE=0
    mkdir "$WORK/$1.tmp" # Open MPI's folder of its own: jobs that begin and end at once remove each other's
    (export SLOW_RANK="$2" "$3" TMPDIR="$WORK/$1.tmp" && job "$1" "${some[@]}" --watchdog $watchdog) || CODE=$?
    TOOK=$(($(date +%s%3N) - began))
}

expect() {
    checks=$((checks + 1))
    eval "$3" || fail "$1: $2 (exit $CODE, $TOOK ms): $(head -n 5 "$WORK/$1.err")"
}

# ends_well NAME RANK VARIABLE MS: whatever takes so long on that rank.
ends_well() {
    slow "$1" "$2" "$3=$(awk "BEGIN { print $4 * $unit }")"
    expect "$1" "expected exit 0" '[ $CODE = 0 ]'
    expect "$1" "it was not slow" "[ $TOOK -gt $((1000 * watchdog)) ]"
    same "$1" plain
}

# ends NAME RANK WHAT CODE PATTERN: it never ends on that rank, and the first to say so says why.
ends() {
    slow "$1" "$2" "SLOW_STUCK=$3"
    expect "$1" "expected exit $4" "[ $CODE = $4 ]"
    expect "$1" "expected '$5'" "grep -m 1 'error: ' '$WORK/$1.err' | grep -q '$5'"
}

# tells: a check says how far it is within its first pass, which takes longer than the pause between two lines; it need not end.
tells() {
    local line pid
    line=$("$BIN/tandem-verifier" --dry-run --check quick --prompts "$WORK/some.in" --max-tokens 32 --drafters 1 --verifiers 2) || fail "tells: no line"
    mkdir "$WORK/tells.tmp"
    (export SLOW_RANK=$LEAD SLOW_LAYER=150 TMPDIR="$WORK/tells.tmp" && eval "exec timeout -k 5 120 $line") >"$WORK/tells.out" 2>"$WORK/tells.err" &
    pid=$!
    checks=$((checks + 1))
    await "progress within a pass" "grep -qE 'checking equality: 1 of [0-9]+, [0-9]+ of [0-9]+ tokens' '$WORK/tells.err'" 90
    kill -TERM $pid 2>/dev/null
    wait $pid
}

beside tells
beside ends_well packs-drafter $DRAFTER SLOW_PACK 900
beside ends_well packs-lead $LEAD SLOW_PACK 300
beside ends_well packs-follower $FOLLOWER SLOW_PACK 300
beside ends_well computes-drafter $DRAFTER SLOW_LAYER 1200
beside ends_well computes-lead $LEAD SLOW_LAYER 600
beside ends_well computes-follower $FOLLOWER SLOW_LAYER 600
beside ends_well widens $DRAFTER SLOW_WIDEN 1.5
beside ends_well reads $LEAD SLOW_ENCODE 1300
for rank in $DRAFTER $LEAD $FOLLOWER; do
    beside ends never-packed-$rank $rank pack 76 "no progress for $watchdog s while packing the weights"
    beside ends never-widened-$rank $rank widen 76 "no progress for $watchdog s while widening the weights"
done
beside ends never-computed-lead $LEAD layer 76 "no progress for $watchdog s while"
beside ends never-computed-follower $FOLLOWER layer 76 "no progress for $watchdog s while"
finish
