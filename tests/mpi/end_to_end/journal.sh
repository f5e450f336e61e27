#!/usr/bin/env bash
# Jobs that may not go on from what they find, two jobs on one output, and disks that fail. Each refusal is one line and leaves the journal
# alone. journal.sh BIN default|small FAILING_DISK: the library to preload.
. "$(dirname "$0")/job.sh"
. "$(dirname "$0")/batch.sh"
DISK=$3
INPUT=$WORK/in.jsonl
options=(--solo --verifiers 1 --max-tokens 16)
head -n 24 "$PROMPTS" >"$INPUT"
run reference "${options[@]}"
check "the reference: exit $CODE" [ "$CODE" = 0 ]

# A journal to go on from.
paused 4 "${options[@]}" --drain-seconds 0
resume_with USR1
ended 60
check "a drained job: exit $CODE, expected 75" [ "$CODE" = 75 ]
cp "$WORK/job.jsonl.journal" "$WORK/kept"
held=$(grep -c '^{"index"' "$WORK/kept")

# refused CODE TEXT OPTION...: and the journal is as it was.
refused() {
    local code=$1 text=$2
    shift 2
    run job "$@"
    exits "$code" "$text"
    check "$text: the journal was changed" cmp -s "$WORK/job.jsonl.journal" "$WORK/kept"
}

refused 64 "holds $held results of 24: add --resume to go on, or remove it" "${options[@]}"
refused 65 'seed is "0" there and "7" here' "${options[@]}" --resume --seed 7
refused 65 'max-tokens is 16 there and 17 here; others, too: seed; expected the same prompts and options to go on, or another --output to begin anew' "${options[@]}" --resume \
    --max-tokens 17 --seed 7
refused 65 'quantise is not given there and q8_0 here' "${options[@]}" --resume --quantise q8_0
refused 65 'cache is f32 there and bf16 here' "${options[@]}" --resume --cache bf16
sed -i '3s/"prompt"/ "prompt"/' "$INPUT"
refused 65 'their prompts were others' "${options[@]}" --resume
head -n 24 "$PROMPTS" >"$INPUT"
cp "$SOURCE/launch/demo/target" "$WORK/model" -r
sed -i 's/"transformers_version": *"[^"]*"/"transformers_version": "0"/; $s/$/ /' "$WORK/model/config.json"
refused 65 'their target model was another one' "${options[@]}" --resume --target "$WORK/model"
cut=$(head -n 2 "$WORK/kept" | wc -c)
{ head -c "$((cut + 40))" "$WORK/kept"; printf '#'; tail -c +"$((cut + 42))" "$WORK/kept"; } >"$WORK/job.jsonl.journal"
cp "$WORK/job.jsonl.journal" "$WORK/damaged"
mv "$WORK/kept" "$WORK/whole"
cp "$WORK/damaged" "$WORK/kept"
refused 74 "is damaged at byte $cut: its checksum is wrong" "${options[@]}" --resume
cp "$WORK/whole" "$WORK/job.jsonl.journal"

# Where a text depends on the drafts, what made them is a part of the job, by whatever name.
copies=(--verifiers 1 --temperature 0.8 --max-tokens 16)
mv "$WORK/job.jsonl.journal" "$WORK/whole"
paused 4 "${copies[@]}" --draft lookup:min=1 --drain-seconds 0
resume_with USR1
ended 60
check "a drained job of copies: exit $CODE, expected 75" [ "$CODE" = 75 ]
cp "$WORK/job.jsonl.journal" "$WORK/kept"
refused 65 'their draft was another one' "${copies[@]}" --resume --draft lookup:max=3
refused 65 'their draft was another one' "${copies[@]}" --resume --draft self:layers=3
refused 65 'their draft was another one' "${copies[@]}" --resume --draft self:bits=4
refused 65 'draft-temperature is not given there and 2.0 here' "${copies[@]}" --resume --draft lookup:max=4 --draft-temperature 2
refused 65 'draft-vocabulary' "${copies[@]}" --resume --draft lookup:max=4 --draft-vocabulary 600
run job "${copies[@]}" --resume --draft lookup:max=4
check "copies: exit $CODE, expected 0" [ "$CODE" = 0 ]
rm -f "$WORK"/job.jsonl*
cp "$WORK/whole" "$WORK/job.jsonl.journal"

# Other ranks, threads and slots are the same job.
run job "${options[@]}" --resume --verifiers 2 --max-sequences 2 --threads 1
check "other ranks: exit $CODE, expected 0" [ "$CODE" = 0 ]
check "other ranks: the output differs" cmp -s "$WORK/job.jsonl" "$WORK/reference.jsonl"
run job "${options[@]}" --resume
check "a complete output: exit $CODE, expected 0" [ "$CODE" = 0 ]
check "a complete output was changed" cmp -s "$WORK/job.jsonl" "$WORK/reference.jsonl"

# Two jobs on one output. The first is held up, shortly before its end, for which another does not wait long; the second waits, and is refused by its name.
rm -f "$WORK"/job.jsonl*
paused 23 "${options[@]}" --max-tokens 64
first=$PID
lead=$LEAD
cp "$WORK/job.jsonl.journal" "$WORK/kept"
refused 74 "job.jsonl is being written by another job, process $lead on $(hostname | tr -c 'a-zA-Z0-9.\n-' _)" "${options[@]}" --resume --max-tokens 64
# A third waits, too, and then judges what the first has left.
third=$("$BIN/tandem-verifier" --dry-run --prompts "$INPUT" --plain-results --output "$WORK/job.jsonl" "${options[@]}" --resume --max-tokens 63)
eval "$third" >"$WORK/third.out" 2>"$WORK/third.err" </dev/null &
third=$!
await "the third to wait" "grep -q 'waiting up to' '$WORK/third.err'"
kill -CONT "$lead"
PID=$first
ended 60
check "the first of two jobs: exit $CODE, expected 0" [ "$CODE" = 0 ]
mv "$WORK/job.err" "$WORK/first.err"
PID=$third
ended 60
mv "$WORK/third.err" "$WORK/job.err"
check "who waited did not wait" grep -q 'waiting up to' "$WORK/job.err"
exits 65 "job.jsonl is complete, but of another job: max-tokens is 64 there and 63 here"
mv "$WORK/job.jsonl" "$WORK/first.jsonl"
run job "${options[@]}" --max-tokens 64
check "the first of two jobs: its output differs" cmp -s "$WORK/job.jsonl" "$WORK/first.jsonl"

# Places that take no results when the job begins.
for place in /dev/full /proc/out.jsonl "$WORK/none/out.jsonl"; do
    line "${options[@]}" --output "$WORK/place.jsonl" # of the places --dry-run refuses some
    LINE=("${LINE[@]/#$WORK\/place.jsonl/$place}")
    "${LINE[@]}" >"$WORK/job.out" 2>"$WORK/job.err" </dev/null
    CODE=$?
    exits 74 "$place"
done

# failing CALL AT ERRNO TEXT: the job ends with 74 and one line; with room again, it goes on and nothing is lost.
failing() {
    local text=$4
    rm -f "$WORK"/job.jsonl*
    line "${options[@]}" --output "$WORK/job.jsonl"
    LD_PRELOAD="$DISK" FAILING_CALL="$1" FAILING_AT="$2" FAILING_ERRNO="$3" "${LINE[@]}" >"$WORK/job.out" 2>"$WORK/job.err" </dev/null
    CODE=$?
    exits 74 "$text"
    run job "${options[@]}" --resume
    check "$*: going on: exit $CODE, expected 0" [ "$CODE" = 0 ]
    check "$*: the output differs" cmp -s "$WORK/job.jsonl" "$WORK/reference.jsonl"
}

for case in "write 1 28 No space left" "write 5 28 No space left" "short 4 28 No space left" "fdatasync 1 5 Input/output error" "fdatasync 2 5 Input/output error" \
    "fsync 2 5 Input/output error" "fsync 3 5 Input/output error" "rename 1 28 No space left"; do
    read -r call at error text <<<"$case"
    failing "$call" "$at" "$error" "$text"
done

# A file may not grow beyond what it is allowed.
rm -f "$WORK"/job.jsonl*
paused 3 "${options[@]}"
prlimit --pid "$LEAD" --fsize=3000
kill -CONT "$LEAD"
ended 60
exits 74 "File too large"
run job "${options[@]}" --resume
check "beyond a limit: the output differs" cmp -s "$WORK/job.jsonl" "$WORK/reference.jsonl"
finish
