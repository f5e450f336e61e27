#!/usr/bin/env bash
# The launcher between a user and mpirun: signals reach the job, exit codes the user, and a job that broke leaves its story, no other one
# anything. launcher.sh BIN default|small
. "$(dirname "$0")/inject.sh"
mkdir "$WORK/bin" "$WORK/tmp"
cp "$SOURCE/launch/tandem" "$BIN/tandem-verifier" "$BIN/tandem-drafter" "$WORK/bin/" # as installed
prompts=60 tokens=32
[ "$2" = small ] && prompts=40 tokens=8
head -n $prompts "$PROMPTS" >"$WORK/some.in"
some=(--prompts "$WORK/some.in" --max-tokens $tokens --max-sequences 2 --verifiers 2)

# launch NAME OPTION...: the launcher in the background, in a group of its own: a shell's other children ignore SIGINT.
launch() {
    local name=$1
    shift
    set -m
    TMPDIR=$WORK/tmp timeout -k 5 300 "$WORK/bin/tandem" run --output "$WORK/$name.jsonl" "${some[@]}" "$@" >"$WORK/$name.out" 2>"$WORK/$name.err" &
    TIMEOUT_PID=$!
    set +m
    await_results "$name" $((prompts / 10))
    LAUNCHER_PID=$(children_of $TIMEOUT_PID)
    MPIRUN_PID=$(for child in $(children_of "$LAUNCHER_PID"); do [ "$(program_of "$child")" = mpirun ] && echo "$child"; done)
    everybody="$(everybody) $MPIRUN_PID"
}

# clean NAME: neither processes nor folders are left.
clean() {
    gone $everybody
    expect "$1" "it left something: $(find "$WORK/tmp" -name 'rank-*' | head -n 3)" '[ -z "$(find "$WORK/tmp" -name "rank-*")" ]'
}

launch undisturbed
ended 120
expect undisturbed "expected exit 0" '[ $CODE = 0 ]'
clean undisturbed

for way in INT:130 TERM:143; do
    name=${way%:*}
    launch "$name"
    kill "-$name" "$LAUNCHER_PID"
    ended 20
    expect "$name" "expected exit ${way#*:}" "[ \$CODE = ${way#*:} ]"
    clean "$name"
done

launch drained
kill -USR1 "$LAUNCHER_PID"
ended 60
expect drained "expected exit 75" '[ $CODE = 75 ]'
clean drained

launch broken
kill -KILL "$(ranks_of tandem-verifier | tail -n 1)"
ended 20
expect broken "expected exit 137" '[ $CODE = 137 ]'
said broken 1 "what each rank did last: $WORK/tmp/tandem-"
story=$(sed -n 's/^tandem: what each rank did last: //p' "$WORK/broken.err")
expect broken "the story does not tell how two ranks ended" '[ "$(grep -c "^  rank [01] .*: SIGTERM" "$story")" = 2 ]'
expect broken "the story has no round of the lead and no draft" 'grep -q "rank 1 verifier: begins a round" "$story" && grep -q "rank 0 drafter: drafts for" "$story"'
expect broken "the story is not in order of time" 'grep -E "^ +-?[0-9]+\.[0-9]+ rank" "$story" | sort -c -s -g -k 1,1'
gone $everybody
rm -rf "$WORK"/tmp/tandem-*

# A drafter less: the job ends well, and the drafter's last words are told.
launch crashed
kill -SEGV "$(ranks_of tandem-drafter)"
ended 120
expect crashed "expected exit 0" '[ $CODE = 0 ]'
said crashed 1 "drafter rank 0 has ended: decoding goes on without it"
said crashed 1 "what each rank did last"
gone $everybody
finish
