#!/usr/bin/env bash
# bench_one_process is the same engine: the tokens and logits of a job of several processes, and its rounds. launch/dev/cost compares the two.
# one_process.sh BIN
. "$(dirname "$0")/job.sh"

# one NAME DRAFT_THREADS OPTION...: as job, in one process.
one() {
    local name=$1 threads=$2
    shift 2
    "$BIN/bench_one_process" "$threads" --stats "$WORK/$name.json" "$@" >"$WORK/$name.jsonl" 2>"$WORK/$name.err"
}

# drafted NAME OPTION...: as a job does it. Where the job's drafter missed a deadline, on a machine that is busy, its rounds are others, and by most rules
# its text.
drafted() {
    local name=$1 key
    shift
    one "one_$name" 2 "${over[@]}" "$@" || fail "one_$name: exit $?"
    job "job_$name" --drafters 1 --verifiers 1 --draft-deadline 60000 "${over[@]}" "$@" || fail "job_$name: exit $?"
    case "$(figure "job_$name" fallback_rounds) $*" in
    0\ * | *--accept\ coupled*) same "one_$name" "job_$name" ;;
    *--accept\ *) echo "$name: texts not compared: the job's drafter missed a deadline" ;;
    *) same "one_$name" "job_$name" ;;
    esac
    checks=$((checks + 2))
    [ "0$(figure "one_$name" accepted)" -gt 0 ] || fail "$name: no draft was ever accepted"
    [ "$(figure "one_$name" fallback_rounds)" = 0 ] || fail "$name: the drafter, whose turn it is, missed a deadline"
    if [ "$(figure "job_$name" fallback_rounds)" != 0 ]; then
        echo "$name: rounds not compared: the job's drafter missed $(figure "job_$name" fallback_rounds) deadlines"
        return
    fi
    for key in tokens rounds drafted accepted alpha empty_rounds; do
        checks=$((checks + 1))
        [ "$(figure "one_$name" $key)" = "$(figure "job_$name" $key)" ] ||
            fail "$name: $key $(figure "one_$name" $key) in one process, $(figure "job_$name" $key) in two"
    done
}

# As drafted, where TANDEM_WIDE=1 asks for more.
more() { [ -z "${TANDEM_WIDE:-}${TANDEM_LONG:-}" ] || drafted "$@"; }

head -n 8 "$PROMPTS" >"$WORK/eight.in"
over=(--prompts "$WORK/eight.in" --max-tokens 40 --hash-logits --draft-length 4)
job solo --solo --verifiers 1 "${over[@]}" || fail "solo: exit $?"
drafted model
same one_model solo
drafted together --max-sequences 5
drafted lookup --draft lookup
# What a job has written before is copied where it comes again: the tokens of the job that does not copy it, in less than two thirds of the rounds. Which drafts
# there are depends on when a text ends.
cat "$WORK/eight.in" "$WORK/eight.in" "$WORK/eight.in" >"$WORK/again.in"
again=(--drafters 1 --verifiers 1 --draft-deadline 60000 "${over[@]}" --prompts "$WORK/again.in" --max-sequences 1)
job again_own "${again[@]}" --draft lookup || fail "again_own: exit $?"
job again_job "${again[@]}" --draft lookup:job=1 || fail "again_job: exit $?"
same again_own again_job
checks=$((checks + 1))
[ $((3 * $(figure again_job rounds))) -lt $((2 * $(figure again_own rounds))) ] ||
    fail "lookup:job=1 has $(figure again_job rounds) rounds, lookup $(figure again_own rounds)"
# With two drafts there is room for an n-gram, with ten for a window, too: n-grams that no text has had come of what the target says behind it.
drafted few_guesses --draft lookahead:guesses=1 --draft-length 2
drafted guesses --draft lookahead:guesses=1 --draft-length 10
checks=$((checks + 1))
[ $((20 * $(figure one_guesses rounds))) -lt $((19 * $(figure one_few_guesses rounds))) ] ||
    fail "lookahead has $(figure one_guesses rounds) rounds with a window, $(figure one_few_guesses rounds) without"
drafted tree_of_copies --draft lookup --tree top-k --draft-length 8 --max-sequences 3
drafted layers --draft self:layers=3 --threads 2
# Fewer steps of the draft model, and what they are is told; the same rounds.
drafted cascade --cascade lookup --draft-length 8 --verbose
checks=$((checks + 1))
grep -qE 'cascade: [1-9][0-9]* tokens drafted in [0-9]+ steps; [0-9]+ of [1-9][0-9]* copies' "$WORK/job_cascade.err" || fail "cascade: nothing is told of copies"
drafted copies --copy-first 2 --verbose
drafted after --copy-after 2 --draft-length 6
checks=$((checks + 1))
grep -qE '[1-9][0-9]* proposals were copies' "$WORK/job_copies.err" || fail "copies: none was proposed"
more fewer_bits --quantise q8_0 --draft self:bits=4
drafted narrow --cache bf16
drafted rounded --draft-quantise q4_0
! grep -q "rounds nothing" "$WORK/job_rounded.err" || fail "rounded: $(cat "$WORK/job_rounded.err")"
job in_vain --drafters 1 --verifiers 1 "${over[@]}" --draft lookup --draft-quantise q4_0 || fail "in_vain: exit $?"
checks=$((checks + 2))
grep -q -- "--draft-quantise rounds nothing here: what drafts has no weights" "$WORK/in_vain.err" ||
    fail "in_vain: $(cat "$WORK/in_vain.err")"
drafted frequent --draft-vocabulary 600
drafted lenient --accept lenience --lenience 0.2
more lenient_drawn --accept lenience --temperature 0.8 --seed 5
drafted threshold --accept threshold --threshold 0.03
more typical --accept typical --typical-epsilon 0.02 --temperature 0.8 --seed 5
drafted stopping --stop-drafting confidence=0.6
# Of the lead, which one process has not.
job heuristic --drafters 1 --verifiers 1 --prompts "$WORK/eight.in" --max-tokens 40 --hash-logits --stop-drafting heuristic || fail "heuristic: exit $?"
same heuristic solo
job by_price --drafters 1 --verifiers 1 --prompts "$WORK/eight.in" --max-tokens 40 --hash-logits --stop-drafting batch --draft-length 12 || fail "by_price: exit $?"
same by_price solo
checks=$((checks + 1))
[ "$(figure by_price drafted)" -lt $(($(figure by_price rounds) * 9)) ] || fail "by_price: $(figure by_price drafted) drafts in $(figure by_price rounds) rounds of 12 at most"
drafted tree --tree dynamic --draft-length 10
drafted siblings --accept without-replacement --temperature 0.8 --seed 5 --tree top-k --draft-length 12 --max-sequences 2
more again --accept multistep --temperature 1.2 --top-k 30 --seed 5 --tree top-k --draft-length 9
drafted leaves --accept traversal --temperature 0.9 --seed 5 --tree top-k --draft-length 10
more sequential --accept k-sequential --temperature 0.9 --top-p 0.9 --seed 5 --tree iid --draft-length 8 --max-sequences 3
drafted trees --tree top-k:depth=4 --draft-length 9 --max-sequences 5 --cache bf16
one one_no_word 1 "${over[@]}" --draft-vocabulary 1 || fail "one_no_word: exit $?"
echo '{"prompt": "The sea", "bad_words": [[0], [1]]}' >"$WORK/banned.in" # all that may be drafted
job banned --solo --verifiers 1 --prompts "$WORK/banned.in" --max-tokens 8 --accept coupled --temperature 0.8 --hash-logits || fail "banned: exit $?"
one one_banned 1 --prompts "$WORK/banned.in" --max-tokens 8 --accept coupled --temperature 0.8 --hash-logits --draft-length 4 --draft-vocabulary 2 ||
    fail "one_banned: exit $?"
same one_banned banned
drafted coupled --accept coupled --temperature 0.8 --seed 5
drafted tree_coupled --accept coupled --temperature 0.8 --seed 5 --tree dynamic --max-sequences 3
same one_tree_coupled one_coupled
walked=(--accept walk --temperature 0.8 --seed 5 --repetition-penalty 1.2 --top-p 0.9) # what a node's penalties count is its own path
job walked --solo --verifiers 1 "${over[@]}" "${walked[@]}" || fail "walked: exit $?"
drafted tree_walk "${walked[@]}" --tree dynamic --draft-length 16
same one_tree_walk walked
drafted guesses_walk "${walked[@]}" --draft lookahead
same one_guesses_walk walked
same one_together one_model
same one_lookup one_model
same one_guesses one_model
same one_tree_of_copies one_model
same one_layers one_model
same one_frequent one_model
same one_stopping one_model
same one_tree one_model
same one_trees one_narrow
same one_no_word one_model
checks=$((checks + 2))
[ "$(figure one_no_word accepted)" = 0 ] && [ "$(figure one_no_word drafted)" -gt 0 ] || fail "no text has id 0, and yet a draft of nothing else stood"
checks=$((checks + 1)) # what p and q have in common is not known where their noise is
grep -q alpha_expected "$WORK/one_model.json" && ! grep -q alpha_expected "$WORK/one_coupled.json" || fail "coupled: $(grep -A2 alpha_expected "$WORK/one_coupled.json")"
for name in lenient threshold; do
    checks=$((checks + 1))
    [ "$(figure one_$name accepted)" -gt "$(figure one_model accepted)" ] && ! cmp -s <(grep -o '"tokens":[^]]*' "$WORK/one_$name.jsonl") <(grep -o '"tokens":[^]]*' "$WORK/one_model.jsonl") ||
        fail "$name at temperature 0 accepts no more than greedy, or comes to the same text"
done
[ "$(figure one_frequent accepted)" -lt "$(figure one_model accepted)" ] || fail "600 ids draft no worse than all"

# What is wrong ends it.
checks=$((checks + 2))
cp -r "$SOURCE/launch/demo/draft" "$WORK/words" && sed -i 's/"!": 4,/"!": 6,/; s/"#": 6,/"#": 4,/' "$WORK/words/tokenizer.json"
one words 1 --target "$SOURCE/launch/demo/target" --draft "$WORK/words" --prompt Hello
code=$?
if [ $code != 65 ] || ! grep -q "words has another tokenizer than the target" "$WORK/words.err"; then fail "another tokenizer: exit $code, $(cat "$WORK/words.err")"; fi
for threads in 0 1x 1025; do
    one none $threads --prompt Hello
    code=$?
    checks=$((checks + 1))
    [ $code = 64 ] || fail "$threads threads: exit $code"
done
for other in --solo "--check quick" --dry-run "--target $SOURCE/launch/demo/target" --help; do
    one other 1 --prompt Hello $other
    code=$?
    checks=$((checks + 1))
    [ $code = 64 ] && [ ! -s "$WORK/other.jsonl" ] || fail "$other: exit $code, $(cat "$WORK/other.err")"
done
one missing 1 "${over[@]}" --prompts "$WORK/missing"
code=$?
[ $code = 66 ] || fail "prompts that are missing: exit $code"

# refused CODE PATTERN OPTION...: by `cost`, before anything is measured.
refused() {
    local code=$1 pattern=$2 found
    shift 2
    "$SOURCE/launch/dev/cost" --build "$BIN" "$@" >"$WORK/cost.out" 2>"$WORK/cost.err"
    found=$?
    checks=$((checks + 1))
    [ $found = "$code" ] && [ ! -s "$WORK/cost.out" ] && grep -qF -- "$pattern" "$WORK/cost.err" && [ "$(wc -l <"$WORK/cost.err")" = 1 ] ||
        fail "cost $*: exit $found, $(cat "$WORK/cost.err")"
}
refused 64 "--tokens 0, expected 1 or more" --tokens 0
refused 64 "--repeat x, expected 1 or more" --repeat x
refused 64 "--cores 4096, expected some of this machine" --cores 4096
refused 64 "--pairs names none" --pairs " "
refused 64 "--pairs has 'smollm2', expected TARGET:DRAFT or embedded" --pairs smollm2
refused 66 "--prompts $WORK/missing cannot be read" --prompts "$WORK/missing"

# The figures mean nothing here, but that they are there.
head -n 2 "$PROMPTS" >"$WORK/two.in"
"$SOURCE/launch/dev/cost" --build "$BIN" --repeat 1 --tokens 3 --prompts "$WORK/two.in" --pairs "embedded $SOURCE/launch/demo/target:self:bits=4" --tsv "$WORK/cost.tsv" >"$WORK/cost.out" 2>"$WORK/cost.err"
code=$?
checks=$((checks + 3))
[ $code = 0 ] || fail "cost: exit $code, $(cat "$WORK/cost.err")"
[ "$(grep -cE '^cost_[12]\.(embedded|/.*:self:bits=4)	ours	-?[0-9.e+]+$' "$WORK/cost.tsv")" = 4 ] || fail "cost: $(cat "$WORK/cost.tsv")"
grep -qE '^\| embedded \| [0-9.]+ \([0-9]+ \+ [0-9]+\) \|' "$WORK/cost.out" || fail "cost: $(cat "$WORK/cost.out")"
finish
