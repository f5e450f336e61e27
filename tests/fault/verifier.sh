#!/usr/bin/env bash
# A verifier that dies ends the job at once; one that is stopped, by the watchdog: exit 76. The journal stays, each rank that can leaves its
# last events, and no process is left. verifier.sh BIN default|small
. "$(dirname "$0")/inject.sh"
prompts=60 tokens=32 watchdog=5
[ "$2" = small ] && prompts=40 tokens=8 watchdog=20
head -n $prompts "$PROMPTS" >"$WORK/some.in"
some=(--prompts "$WORK/some.in" --max-tokens $tokens --max-sequences 2 --watchdog $watchdog)
job solo --solo --verifiers 1 "${some[@]}" || fail "solo: exit $?"
results_of "$WORK/solo.jsonl" >"$WORK/solo.results"

# left NAME: nothing is left of the job but its journal, and a second job that resumes from it gives what the reference gives.
left() {
    gone $everybody
    expect "$1" "there are results, though the job did not come to its end" "! [ -e '$WORK/$1.jsonl' ]"
    resumed "$1"
}

# resumed NAME: the job goes on, and gives what the reference gives.
resumed() {
    job "$1" --resume --verifiers 1 "${some[@]}" || fail "$1, resumed: exit $?"
    results_of "$WORK/$1.jsonl" >"$WORK/$1.results"
    expect "$1" "what was resumed is not the reference" "cmp -s '$WORK/solo.results' '$WORK/$1.results'"
}

# told NAME COUNT: so many ranks told their last events, in order of time.
told() {
    expect "$1" "expected the recorders of $2 ranks, got $(ls "$WORK/$1.rec" 2>&1 | paste -sd' ')" "[ \$(ls '$WORK/$1.rec' | wc -l) = $2 ]"
    expect "$1" "a recorder does not say how it ended" "[ \$(tail -qn 1 '$WORK/$1.rec'/* | grep -c ': ends: ') = $2 ]"
    expect "$1" "a recorder is out of order" "( for file in '$WORK/$1.rec'/*; do sort -c \"\$file\" || exit 1; done )"
}

# timed_alone NAME: the drafter took the time of its steps when no rank was loading any more, which would have made them several times as slow: behind
# what all agree on of the command line, of the files, and of what was loaded.
timed_alone() {
    if [ "$(wc -l <"$WORK/$1.rec/rank-0000")" -ge 256 ]; then # RECORDER_EVENTS: the first ones are gone
        echo "$1: when the drafter timed its steps is not looked at: it has had more events since than a recorder keeps"
        return
    fi
    expect "$1" "the drafter did not time its steps behind the loading" \
        "[ \$(sed '/times its steps/q' '$WORK/$1.rec/rank-0000' | grep -c 'agree on status') = 3 ] && grep -q 'times its steps' '$WORK/$1.rec/rank-0000'"
}

# ended_or_left NAME: whoever was left may have come to the end of the job in the moment that was left to it.
ended_or_left() {
    gone $everybody
    if [ -e "$WORK/$1.jsonl" ]; then
        results_of "$WORK/$1.jsonl" >"$WORK/$1.results"
        expect "$1" "what it ended with is not the reference" "cmp -s '$WORK/solo.results' '$WORK/$1.results'"
    fi
    resumed "$1"
}

# hit NAME SIGNAL WHICH OPTION...: WHICH of the verifiers, from 1, gets the signal.
hit() {
    local name=$1 signal=$2 which=$3
    shift 3
    start "$name" "${some[@]}" "$@"
    await_results "$name" $((prompts / 10))
    everybody=$(everybody)
    kill "-$signal" "$(ranks_of tandem-verifier | sed -n "${which}p")"
}

# 2 s is what mpirun takes to end the others, and a little for a machine that has other work.
for which in 1 2; do
    hit killed$which KILL $which --verifiers 2 --drafters 1
    ended 20
    expect killed$which "expected exit 137" '[ $CODE = 137 ]'
    told killed$which 2
    timed_alone killed$which
    left killed$which
done

for which in 1 2; do
    hit stopped$which STOP $which --verifiers 2 --drafters 1
    ended $((watchdog + 15))
    expect stopped$which "expected exit 76" '[ $CODE = 76 ]'
    expect stopped$which "it ended before its deadline" "[ \$TOOK -ge $((watchdog * 1000 - 500)) ]"
    said stopped$which 1 "no progress for $watchdog s while"
    told stopped$which 3
    left stopped$which
done

# The only verifier: its drafter notices. mpirun wakes who is stopped a second before it ends him, so that the verifier may come to its end.
hit alone STOP 1 --verifiers 1 --drafters 1
ended $((watchdog + 15))
expect alone "expected exit 76" '[ $CODE = 76 ]'
said alone 1 "the lead (rank 1) is silent for"
ended_or_left alone

# mpirun itself: the ranks notice that they are alone, soon.
start orphans "${some[@]}" --verifiers 2 --drafters 1
await_results orphans $((prompts / 10))
everybody=$(everybody)
kill -KILL "$MPIRUN_PID"
ended 10
ended_or_left orphans
finish
