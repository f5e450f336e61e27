#!/usr/bin/env bash
# Whatever happens to drafters, the job ends with 0 and the output of solo decoding, says once what was lost, and counts it.
# drafter.sh BIN default|small: small is for builds that run fifty times slower; checks, which compute most, are left out of it.
. "$(dirname "$0")/inject.sh"
prompts=60 tokens=32
[ "$2" = small ] && prompts=40 tokens=8
head -n $prompts "$PROMPTS" >"$WORK/some.in"
some=(--prompts "$WORK/some.in" --max-tokens $tokens --max-sequences 2 --hash-logits)
greedy=("${some[@]}")
coupled=("${some[@]}" --temperature 0.8 --top-p 0.95 --seed 3 --accept coupled)

# survived NAME REFERENCE: it ended well, with the reference's output, and nothing of it is left.
survived() {
    ended 120
    expect "$1" "expected exit 0" '[ $CODE = 0 ]'
    same "$1" "$2"
    gone $everybody
}

job greedy --solo --verifiers 1 "${greedy[@]}" || fail "solo greedy: exit $?"
job coupled --solo --verifiers 1 "${coupled[@]}" || fail "solo coupled: exit $?"

# Takes everything, answers nothing.
job silent --verifiers 2 --drafters 1 --silent-drafter yes --draft-length 4 "${greedy[@]}" || fail "silent: exit $?"
same silent greedy
lost silent "does not answer in time"
said silent 1 "does not answer in time"
expect silent "no fallback round was counted" '[ "0$(figure silent fallback_rounds)" -gt 0 ]'

# Too slow for its deadline, again and again.
job late --verifiers 1 --drafters 2 --draft-deadline 0.2 --draft-length 4 "${greedy[@]}" || fail "late: exit $?"
same late greedy

# struck SIGNAL NAME OPTION...: a job whose drafters get the signal after some results.
struck() {
    local way=$1 name=$2
    shift 2
    start "$name" "$@"
    await_results "$name" $((prompts / 5))
    everybody=$(everybody)
    kill "-$way" $(ranks_of tandem-drafter)
}

# Dies, in several ways; with one verifier and with two; alone and as one of two.
for way in KILL SEGV TERM; do
    for mode in greedy coupled; do
        declare -n options=$mode
        name=$way-$mode verifiers=$((RANDOM % 2 + 1))
        struck $way $name --verifiers $verifiers --drafters 1 "${options[@]}"
        survived $name $mode
        said $name 1 "drafter rank 0 .*: decoding goes on without it"
        lost $name "has ended"
    done
done
struck KILL copies --verifiers 1 --drafters 1 --draft lookup "${greedy[@]}"
survived copies greedy
lost copies "has ended"
start one-of-two --verifiers 1 --drafters 2 --draft-length 4 "${coupled[@]}" # a length of the lead's choice may be 0
await_results one-of-two $((prompts / 5))
everybody=$(everybody)
kill -KILL $(ranks_of tandem-drafter | head -n 1)
survived one-of-two coupled
# The other one may be too late now and then where three ranks share a busy machine's cores.
expect one-of-two "the figures do not say that a drafter has ended" 'grep -q "\"reason\": \"has ended\"" "$WORK/one-of-two.json"'
after=$(tail -n $((prompts / 2)) "$WORK/one-of-two.jsonl" | grep -c '"accepted":[1-9]')
expect one-of-two "the other drafter was not used" '[ "$after" -gt 0 ]'

# One of two kinds whose proposals are merged dies: the other one's go on.
start merged --verifiers 1 --drafters 2 --draft-length 4 --merge lookup "${coupled[@]}"
await_results merged $((prompts / 5))
everybody=$(everybody)
kill -KILL $(ranks_of tandem-drafter | head -n 1)
survived merged coupled
expect merged "the figures do not say that a drafter has ended" 'grep -q "\"reason\": \"has ended\"" "$WORK/merged.json"'
after=$(tail -n $((prompts / 2)) "$WORK/merged.jsonl" | grep -c '"accepted":[1-9]')
expect merged "the other kind was not used" '[ "$after" -gt 0 ]'

# The same over TCP, where a peer that dies breaks a connection.
CHANGE='s/--mca btl vader,self --mca btl_vader_single_copy_mechanism none/--mca btl tcp,self --mca btl_tcp_if_include lo/' \
    struck KILL tcp --verifiers 2 --drafters 1 "${greedy[@]}"
survived tcp greedy

# Stopped in the middle for good.
struck STOP stopped --verifiers 2 --drafters 1 --draft-length 4 "${coupled[@]}" # a length of the lead's choice may be 0, and nobody is waited for
survived stopped coupled
said stopped 1 "does not answer in time"
lost stopped "does not answer in time"
expect stopped "a job that ended well wrote its recorders" '! [ -d "$WORK/stopped.rec" ]'

# Stopped, and let go on: its sequences are opened anew. The job is long and the deadline short, so that the drafter's rest ends long before
# the job does.
long=(--prompts "$WORK/some.in" --max-tokens $((4 * tokens)) --max-sequences 2 --hash-logits --draft-deadline 20 --draft-length 4)
job greedy-long --solo --verifiers 1 "${long[@]}" || fail "solo greedy: exit $?"
start resumed --verifiers 1 --drafters 1 "${long[@]}"
await_results resumed $((prompts / 10))
drafter=$(ranks_of tandem-drafter) everybody=$(everybody)
kill -STOP "$drafter"
await_results resumed $((prompts / 4))
kill -CONT "$drafter"
survived resumed greedy-long
after=$(tail -n $((prompts / 2)) "$WORK/resumed.jsonl" | grep -c '"accepted":[1-9]')
expect resumed "a drafter that went on was not used again" '[ "$after" -gt 0 ]'

# A check is patient with a drafter that stands still for longer than a job would wait for it: without drafts it would show nothing.
if [ "$2" != small ]; then
    start patient --check brief --verifiers 1 --law-contexts 1 --law-samples 400
    await "the check's first step" "grep -q 'checking equality: 1 of' '$WORK/patient.err'"
    drafter=$(ranks_of tandem-drafter)
    kill -STOP "$drafter"
    sleep 2.6
    kill -CONT "$drafter"
    ended 240
    expect patient "a drafter that stood still is lost to a check" '[ $CODE = 0 ] && grep -q "^lossless.*: 3 checks hold" "$WORK/patient.out"'
fi

# A tenth of its speed: it is let run for 5 ms of every 50.
start slow --verifiers 1 --drafters 1 --draft-length 4 "${coupled[@]}"
await_results slow 1
drafter=$(ranks_of tandem-drafter) everybody=$(everybody)
( while kill -STOP "$drafter" && sleep 0.045 && kill -CONT "$drafter" && sleep 0.005; do :; done 2>/dev/null ) &
braking=$!
survived slow coupled
kill $braking 2>/dev/null
wait $braking

# Killed where it has nothing to do: the job is solo, and must notice at its end.
start idle --solo --mpirun-options "-np 1 $BIN/tandem-drafter --solo :" --verifiers 1 "${greedy[@]}"
await_results idle 1
everybody=$(everybody)
kill -KILL $(ranks_of tandem-drafter)
survived idle greedy

# A check whose drafter dies as the second one begins has not shown what it did not see, and a fault that nobody saw is not lossless.
unseen=("" "--break residual-p")
[ "$2" != small ] || unseen=()
for broken in ${unseen[@]+"${unseen[@]}"}; do
    start unseen --check brief --json "$WORK/unseen.check" --terminal 2 --verifiers 1 --drafters 1 --law-contexts 3 --law-samples 200 $broken
    await "the law's check" "grep -aq 'checking law and draws: 1 of 3' '$WORK/unseen.err'"
    everybody=$(everybody)
    kill -KILL $(ranks_of tandem-drafter)
    ended 120
    expect unseen "expected exit 10: $(cat "$WORK/unseen.out")" '[ $CODE = 10 ]'
    expect unseen "what was not drafted was called lossless: $(cat "$WORK/unseen.out")" \
        '! grep -q "^lossless" "$WORK/unseen.out" && grep -q "^NOT .*too few drafts came for law, draws (1 of 1 drafters lost)" "$WORK/unseen.out"'
    expect unseen "its object does not say so: $(head -n 5 "$WORK/unseen.check")" 'grep -q "\"lossless\": false" "$WORK/unseen.check" && grep -q "\"lost_drafters\": 1" "$WORK/unseen.check"'
    gone $everybody
done

# Its keeper, too, may die: then the job ends at once, and nothing is left.
start keeper --verifiers 2 --drafters 1 "${greedy[@]}"
await_results keeper $((prompts / 10))
everybody=$(everybody)
kill -KILL "$(parent_of "$(ranks_of tandem-drafter)")"
ended 10
expect keeper "expected exit 137" '[ $CODE = 137 ]'
gone $everybody
finish
