#!/usr/bin/env bash
# Every bad input gives one line that names the culprit, the right exit code, and no noise of MPI; a bad prompt among good ones is one
# line of output that says so. bad_input.sh BIN.
. "$(dirname "$0")/job.sh"
DEMO=$SOURCE/launch/demo
DRAFT=$DEMO/draft
TARGET=$DEMO/target

# said WHAT CODE EXPECTED_CODE PATTERN ERR: one line on stderr that matches, and the exit code.
said() {
    checks=$((checks + 1))
    if [ "$2" != "$3" ]; then
        fail "$1: exit $2, expected $3: $(cat "$5")"
    elif [ "$(wc -l <"$5")" != 1 ]; then
        fail "$1: expected one line, got: $(cat "$5")"
    elif ! grep -Eq -- "$4" "$5"; then
        fail "$1: expected a line with '$4', got: $(cat "$5")"
    fi
}

# by_hand OPTION...: one drafter and two verifiers by a hand-written line.
by_hand() {
    $MPIRUN -np 1 "$BIN/tandem-drafter" "$@" : -np 2 "$BIN/tandem-verifier" "$@" >"$WORK/out" 2>"$WORK/err"
}

# Several at once: nothing that is refused writes anything, and no model is spoiled twice.
refused_by_hand() { beside judged_by_hand "$((asides + 1))" "$@"; }
judged_by_hand() {
    local err=$WORK/err.$1 code=$2 pattern=$3
    shift 3
    $MPIRUN -np 1 "$BIN/tandem-drafter" "$@" : -np 2 "$BIN/tandem-verifier" "$@" >/dev/null 2>"$err"
    said "mpirun $*" $? "$code" "$pattern" "$err"
}

refused_dry() {
    local code=$1 pattern=$2
    shift 2
    "$BIN/tandem-verifier" --dry-run "$@" >"$WORK/out" 2>"$WORK/err"
    said "--dry-run $*" $? "$code" "$pattern" "$WORK/err"
    [ -s "$WORK/out" ] && fail "--dry-run $*: it printed a line to run"
}

# refused CODE PATTERN OPTION...: by --dry-run and by a hand-written line.
refused() {
    refused_dry "$@"
    refused_by_hand "$@"
}

# model NAME: a copy of the small model to be spoiled.
model() {
    mkdir -p "$WORK/$1"
    cp "$DRAFT"/* "$WORK/$1"
    chmod u+w "$WORK/$1"/*
}

# spoiled CODE PATTERN NAME: as a target, and as a draft.
spoiled() {
    refused "$1" "$2" --target "$WORK/$3" --draft "$DRAFT" --prompt Hello
    refused "$1" "$2" --target "$TARGET" --draft "$WORK/$3" --prompt Hello
}

# The command line.
refused 64 "unknown option '--max-token'.*--max-tokens" --max-token 3
refused 64 "max-tokens is 'many'" --max-tokens many
refused 64 "temperature is 'nan'" --prompt Hello --temperature nan
for bad in nan -nan inf -1; do
    refused_dry 64 "temperature is '$bad'" --prompt Hello --temperature "$bad"
    refused_dry 64 "top-p is '$bad'" --prompt Hello --top-p "$bad"
    refused_dry 64 "min-p is '$bad'" --prompt Hello --min-p "$bad"
    refused_dry 64 "repetition-penalty is '$bad'" --prompt Hello --repetition-penalty "$bad"
    refused_dry 64 "max-tokens is '$bad'" --prompt Hello --max-tokens "$bad"
    refused_dry 64 "draft-length is '$bad'" --prompt Hello --draft-length "$bad"
    refused_dry 64 "seed is '$bad'" --prompt Hello --seed "$bad"
done
refused 64 "top.p is '?0" --prompt Hello --top-p 0
refused 64 "repetition.penalty is '?0" --prompt Hello --repetition-penalty 0
refused 64 "logit-bias is '5=3', expected ID:BIAS" --prompt Hello --logit-bias 5=3
refused 64 "the command line: logit_bias is for token 2048, expected an id from 0 to 2047" --prompt Hello --logit-bias 2048:3
refused 64 "the command line: stop_token_ids has token 2048" --prompts "$PROMPTS" --stop-token-id 2048
refused_dry 64 "the command line: a sequence of bad_words has [0-9]+ tokens, expected 1 to 16" --prompt Hello --bad-word "$(printf 'word%.0s ' {1..30})"
refused 64 "--draft lookup has no key 'mim', expected min, max or job; did you mean 'min'" --prompt Hello --draft lookup:mim=2
refused 64 "launch/demo/target has 6 layers, expected layers=1 to 6, not 7" --prompt Hello --draft self:layers=7
refused_by_hand 64 "launch/demo/target has 6 layers, expected layers=1 to 6, not 7" --prompt Hello --draft self:layers=7
refused_by_hand 64 "--merge: 2 kinds of drafters need a rank each, and there are 1 tandem-drafter ranks, expected 2 or more" --prompt Hello --temperature 0 --merge lookup
refused 64 "launch/demo/target has 6 layers, expected layers=1 to 6, not 7" --prompt Hello --temperature 0 --merge self:layers=7
refused 66 "--merge $WORK/none: no such file or folder, expected a model's folder, .* lists$" --target "$TARGET" --draft "$DRAFT" --merge "$WORK/none" --temperature 0 --prompt Hello
refused 65 "min_tokens is 9, expected at most max_tokens, 8" --prompt Hello --min-tokens 9 --max-tokens 8
refused 66 "$WORK/no.ini" --config "$WORK/no.ini"
# On devices a model is shared by those alone who ask for it.
"$BIN/tandem-verifier" --dry-run --prompt Hello --backend cuda >"$WORK/out" 2>"$WORK/err"
grep -q -- "-np 1 [^ ]*/tandem-verifier" "$WORK/out" || fail "--dry-run --backend cuda: $(cat "$WORK/out" "$WORK/err")"

"$BIN/tandem-verifier" --dry-run --prompt Hello --verifiers 3 >"$WORK/out" 2>"$WORK/err"
said "--verifiers 3" $? 64 "3 verifiers.*expected one of: 1, 2, 4" "$WORK/err"
$MPIRUN -np 3 "$BIN/tandem-verifier" --prompt Hello >"$WORK/out" 2>"$WORK/err"
said "mpirun with 3 verifiers" $? 64 "3 verifiers.*expected one of: 1, 2, 4" "$WORK/err"
$MPIRUN -np 2 "$BIN/tandem-drafter" --prompt Hello >"$WORK/out" 2>"$WORK/err"
said "drafters without a verifier" $? 64 "2 drafters and no verifier" "$WORK/err"

# Files.
refused 66 "--target $WORK/none: no such file or folder, expected a model's folder, .* lists$" --target "$WORK/none" --draft "$DRAFT" --prompt Hello
refused 66 "--draft $WORK/none: no such file or folder, expected a model's folder, .* lists$" --target "$TARGET" --draft "$WORK/none" --prompt Hello
refused 66 "--target smolm2: .* a name that launch/tandem fetch lists; did you mean 'smollm2'[?]$" --target smolm2 --prompt Hello
refused_dry 66 "--target SmolLM2: .*; did you mean 'smollm2'[?]$" --target SmolLM2 --prompt Hello
refused_dry 66 "--draft smollm: .*; did you mean 'smollm2'[?]$" --target "$TARGET" --draft smollm --prompt Hello
refused_dry 66 "--draft lookhead:window=3: .*; did you mean 'lookahead'[?]$" --target "$TARGET" --draft lookhead:window=3 --prompt Hello
refused 66 "$WORK/none.jsonl: " --prompts "$WORK/none.jsonl"
refused 66 "$WORK/none/tokens: |$WORK/none: " --target "$WORK/none" --prompt Hello
refused 74 "--stats $WORK/none/s.json: No such file" --prompt Hello --stats "$WORK/none/s.json"
refused 74 "--stats $WORK: Is a directory" --prompt Hello --stats "$WORK"
refused_dry 74 "--json $WORK/none/c.json: No such file" --check quick --json "$WORK/none/c.json"
refused 74 "--output $WORK/none/out.jsonl: No such file" --prompt Hello --output "$WORK/none/out.jsonl" --quiet
refused_dry 74 "--output $WORK: Is a directory" --prompt Hello --output "$WORK"
refused_dry 64 "--hosts is '', expected HOST" --prompt Hello --hosts ""
refused_dry 64 "--hosts is 'nosuchhost' with 1 slot, expected one for each of 1 drafters and [0-9]+ verifiers, as nosuchhost:[0-9]+$" --prompt Hello --hosts nosuchhost
: >"$WORK/nothing.in"
# How the target's maker advises to sample is told, once and as options, to whoever has not said how.
mkdir "$WORK/advised" && ln -s "$TARGET"/* "$WORK/advised" && rm -f "$WORK/advised/generation_config.json"
echo '{"do_sample": true, "temperature": 0.6, "top_p": 0.95}' >"$WORK/advised/generation_config.json"
for way in "1 --max-tokens 1" "0 --max-tokens 1 --top-k 5" "0 --max-tokens 1 --quiet"; do
    checks=$((checks + 1))
    # shellcheck disable=SC2086
    by_hand --target "$WORK/advised" --draft "$DRAFT" --prompt Hello ${way#* } || fail "advised: exit $?: $(cat "$WORK/err")"
    [ "$(grep -c "who made the target advises --temperature 0.6 --top-p 0.95; none of it is taken unless it is given" "$WORK/err")" = "${way%% *}" ] || fail "advised, ${way#* }: $(cat "$WORK/err")"
done
by_hand --prompts "$WORK/nothing.in" --output "$WORK/nothing.jsonl" || fail "a file without prompts: exit $?"
grep -q -- "warning: --prompts $WORK/nothing.in has no prompts" "$WORK/err" || fail "a file without prompts: $(cat "$WORK/err")"

# A context holds so many tokens, whatever the cache is rounded to.
echo '{"prompt": "The sea was", "max_tokens": 100, "ignore_eos": true}' >"$WORK/long.in"
for way in --solo "--draft-length 4"; do
    by_hand --prompts "$WORK/long.in" --context 21 $way --output "$WORK/long.jsonl" || fail "--context 21 $way: $(cat "$WORK/err")"
    checks=$((checks + 1))
    grep -q '"finish_reason":"length","usage":{"prompt_tokens":3,"completion_tokens":18}' "$WORK/long.jsonl" || fail "--context 21 $way: $(cat "$WORK/long.jsonl")"
    rm -f "$WORK"/long.jsonl*
done
by_hand --prompts "$WORK/long.in" --context 3 --output "$WORK/long.jsonl"
grep -q 'the prompt has 3 tokens, the context has room for 2 and one new one' "$WORK/long.jsonl" || fail "--context 3: $(cat "$WORK/long.jsonl")"
# Who asks for more than that is told before the job, and once by it.
short="asks for up to 100 tokens, and the context of 21 has room for 18 behind its prompt: it ends there at the latest; --context N makes more, N up to 1024"
"$BIN/tandem-verifier" --dry-run --prompts "$WORK/long.in" --context 21 >"$WORK/out" 2>"$WORK/err"
said "no room for what is asked, before a job" $? 0 "warning: --prompts $WORK/long.in: line 1 $short$" "$WORK/err"
for way in "--prompts $WORK/long.in|--prompts $WORK/long.in: line 1" "--prompts $WORK/long.in --compare|--prompts $WORK/long.in: line 1" \
    "--prompt Thesea --max-tokens 100|--prompt" "--max-tokens 100|the built-in prompts: line [0-9]+"; do
    # shellcheck disable=SC2086
    by_hand ${way%%|*} --context 21 || fail "no room for what ${way%%|*} asks: exit $?: $(cat "$WORK/err")"
    checks=$((checks + 1))
    [ "$(grep -cE "warning: ${way#*|} asks for up to 100 tokens, and the context of 21 has room for [0-9]+ behind its prompt: .* up to 1024$" "$WORK/err")" = 1 ] ||
        fail "no room for what ${way%%|*} asks: $(cat "$WORK/err")"
done

# Two results of one id: told once, before a job and by it, and both are there.
printf '%s\n' '{"id": "a", "prompt": "The sea", "max_tokens": 2}' '{"id": "b", "prompt": "The", "max_tokens": 2}' '{"id": "a", "prompt": "A", "max_tokens": 2}' >"$WORK/twice.in"
"$BIN/tandem-verifier" --dry-run --prompts "$WORK/twice.in" >"$WORK/out" 2>"$WORK/err"
said "ids that are there twice, before a job" $? 0 "warning: --prompts $WORK/twice.in: line 3 has the id of line 1, \"a\"; " "$WORK/err"
by_hand --prompts "$WORK/twice.in" || fail "ids that are there twice: exit $?"
checks=$((checks + 1))
[ "$(grep -c "warning: --prompts $WORK/twice.in: line 3 has the id of line 1" "$WORK/err")" = 1 ] && [ "$(grep -c '^{"id":"a",' "$WORK/out")" = 2 ] ||
    fail "ids that are there twice: $(cat "$WORK/out" "$WORK/err")"
# An id that is a number has all of its digits, as tables give them whose ids were once missing.
printf '{"id": %s, "prompt": "The sea", "max_tokens": 2}\n' 12345678901.0 0.1 0.30000000000000004 '[1.5,{"a":1234567890123.25}]' '"1.0"' >"$WORK/numbers.in"
by_hand --prompts "$WORK/numbers.in" || fail "ids that are numbers: exit $?"
[ "$(sed -n 's/^{"id":\(.*\),"index".*/\1/p' "$WORK/out" | sort | tr '\n' ' ')" = '"1.0" 0.1 0.30000000000000004 12345678901.0 [1.5,{"a":1234567890123.25}] ' ] ||
    fail "ids that are numbers: $(cat "$WORK/out")"

# What a job will find is told before it is started: wrong lines, and with --verbose what each rank will need, as the ranks say it then.
printf '%s\n' '{"prompt": "a"}' '{"prompt": "a", "max_token": 3}' '{"prompt": ""}' '{"prompt": "b"}' '[1]' '{' >"$WORK/some.in"
checks=$((checks + 4))
"$BIN/tandem-verifier" --dry-run --prompts "$WORK/some.in" --verifiers 2 --verbose >"$WORK/out" 2>"$WORK/err" || fail "some lines are wrong: exit $?"
grep -q "warning: --prompts $WORK/some.in: 4 of 6 lines are wrong, and will get a result that says so; the first:" "$WORK/err" || fail "wrong lines: $(cat "$WORK/err")"
[ "$(grep -c 'warning: line ' "$WORK/err")" = 3 ] && grep -q 'warning: line 2: unknown key "max_token"; did you mean "max_tokens"?' "$WORK/err" ||
    fail "the first wrong lines: $(cat "$WORK/err")"
told=$(sed -n 's/.*memory of each of 2 verifiers: .* = \([0-9.]*\) MiB of weights, \([0-9.]*\) MiB of cache (4 .*/\1 \2/p' "$WORK/err")
by_hand --prompts "$WORK/some.in" --output "$WORK/some.jsonl" --verbose
found=$(sed -n 's/.*shard 1 of 2: \([0-9.]*\) MB of weights, \([0-9.]*\) MB of cache.*/\1 \2/p' "$WORK/err")
echo "$told $found" | awk '{ exit !(NF == 4 && $1 * 1.048576 > 0.9 * $3 && $1 * 1.048576 < 1.1 * $3 && $2 * 1.048576 > 0.9 * $4 && $2 * 1.048576 < 1.1 * $4) }' ||
    fail "MiB that were told of weights and cache: $told; MB that they are: $found"
printf '%s\n' '[1]' >"$WORK/wrong.in"
"$BIN/tandem-verifier" --dry-run --prompts "$WORK/wrong.in" >"$WORK/out" 2>"$WORK/err"
[ $? = 65 ] && [ ! -s "$WORK/out" ] && grep -q "error: --prompts $WORK/wrong.in has no line that can be completed" "$WORK/err" || fail "no line is right: $(cat "$WORK/err")"
cp -r "$TARGET" "$WORK/endless" && chmod -R u+w "$WORK/endless"
sed -i 's/"max_position_embeddings": [0-9]*/"max_position_embeddings": 60000000/' "$WORK/endless/config.json"
refused_dry 70 "the ranks need [0-9.]+ GiB of memory together and this host has [0-9.]+: --dry-run --verbose" --target "$WORK/endless" --context 60000000 \
    --max-sequences 256 --prompt Hello

# Batch scripts.
batch=(--launcher srun --prompts "$PROMPTS" --output "$WORK/batch.jsonl" --batch-script)
refused_dry 64 "--array: all tasks would write one --output, expected --parts N" "${batch[@]}" --sbatch-options "-p main -a 0-3"
refused_dry 64 "--stop-drafting heuristic chooses the draft length, expected no --draft-lengths" "${batch[@]}" --stop-drafting heuristic --draft-lengths 2,4
refused_dry 74 "--output $WORK/none/out.jsonl: No such file" "${batch[@]}" --output "$WORK/none/out.jsonl"
refused_dry 64 "there is no drafter: expected --draft MODEL" "${batch[@]}" --slurm-layout hetjob --target "$TARGET"
"$BIN/tandem-verifier" "${batch[@]}" --parts 4 --sbatch-options --array=1,3 >"$WORK/out" 2>"$WORK/err"
grep -q '^#SBATCH --array=1,3' "$WORK/out" || fail "parts of an array: $(cat "$WORK/err")"
"$BIN/tandem-verifier" "${batch[@]}" --backend cuda >"$WORK/out" 2>"$WORK/err"
said "a job on GPUs that asks for none" $? 0 "SLURM is not asked for a GPU" "$WORK/err"
refused_dry 64 "4 verifiers need a device each, and SLURM is asked for 2" "${batch[@]}" --backend cuda --verifiers 4 --sbatch-options "--nodes=1 --gpus-per-node=2"
refused_dry 64 "8 verifiers need a device each, and --verifier-devices names 3 of 2 nodes each, expected more" "${batch[@]}" --backend cuda --verifiers 8 --verifier-devices 0,1,2 \
    --sbatch-options "--nodes=2 --gpus-per-node=8"
"$BIN/tandem-verifier" "${batch[@]}" --backend cuda --verifiers 4 --sbatch-options "-N 2" --sbatch-word --gpus-per-node=8 >"$WORK/out" 2>"$WORK/err"
said "devices without a rank" $? 0 "11 of 16 devices have no rank: --parts N makes N jobs .*; the target.s --verifiers may be one of: 1, 2, 4, 8$" "$WORK/err"
"$BIN/tandem-verifier" "${batch[@]}" --backend cuda --verifiers 4 --sbatch-options "--gres=gpu:8,nvme:1 --nodes=1" >"$WORK/out" 2>"$WORK/err"
said "devices beside other resources" $? 0 "3 of 8 devices have no rank" "$WORK/err"
"$BIN/tandem-verifier" "${batch[@]}" --backend cuda --verifiers 4 --verbose >"$WORK/out" 2>"$WORK/err"
checks=$((checks + 1))
grep -q "device memory of each of 4 verifiers: .* of weights, .* of cache (4 sequences), .*, 1.0 GiB for CUDA and NCCL" "$WORK/err" || fail "what devices need: $(cat "$WORK/err")"

# tests_of WORD...: `tandem test` of these words, where the tests are test_journal and drain.
tests_of() {
    (
        eval "$(sed -n '/^export LC_ALL/p; /^visible() {$/,/^}$/p; /^say() {/p; /^fail() {/p; /^run_tests() {$/,/^}$/p' "$SOURCE/launch/tandem")"
        test_needs=
        build() { echo built >>"$WORK/begun"; }
        configure() { echo configured >>"$WORK/begun"; }
        skips() { :; }
        ctest() {
            case "$*" in
            *" -N -R "*) printf '  Test #1: test_journal\n  Test #2: drain\n' | grep -E "${*: -1}" ;;
            *" -N "*) ;;
            *) printf '1/1 Test  #1: test_journal ...   Passed    0.1 sec\n'; echo "$*" >"$WORK/asked" ;;
            esac
        }
        top=$WORK/checkout
        mkdir -p "$top/build" && touch "$top/CMakePresets.json"
        run_tests "$@"
    ) >"$WORK/out" 2>"$WORK/err"
}
tests_of --only no.such
said "a name that no test has" $? 64 "no test has a name or a label with 'no.such' in it" "$WORK/err"
[ "$(cat "$WORK/begun")" = configured ] || fail "a name that no test has: $(cat "$WORK/begun") before it was said"
tests_of --only=
said "no name" $? 64 "--only needs a value" "$WORK/err"
tests_of --only journal
said "a name that a test has" $? 0 " -I 0,0,0,1$" "$WORK/asked"
TANDEM_WIDE='' TANDEM_LONG='' tests_of
said "all that a build for CPUs has" $? 0 " -LE .wide-only.$" "$WORK/asked"
for form in TANDEM_WIDE TANDEM_LONG; do
    checks=$((checks + 1))
    (export TANDEM_WIDE='' TANDEM_LONG='' && export $form=1 && tests_of)
    [ $? = 0 ] && ! grep -q -e " -L" "$WORK/asked" || fail "$form=1 leaves tests out: $(cat "$WORK/asked")"
done
# Memory: of the CPU's ranks it is compared with what SLURM is asked for, where that is known.
refused_dry 64 "a verifier needs [0-9.]+ MiB of memory, and SLURM is asked for 1.0 MiB where it runs, expected more by --mem" "${batch[@]}" --backend cpu --sbatch-options --mem=1
refused_dry 64 "the ranks need [0-9.]+ MiB of memory together, and SLURM is asked for 20.0 MiB on all their nodes" "${batch[@]}" --backend cpu --verifiers 2 --drafters 30 \
    --sbatch-options "--mem=20 -N 1"
refused_dry 64 "a drafter needs [0-9.]+ MiB of memory, and SLURM is asked for 1.0 MiB" "${batch[@]}" --backend cpu --slurm-layout hetjob --drafter-sbatch --mem=1
for words in --mem=4G "--mem-per-cpu=2G -N 1" --mem=0 ""; do
    checks=$((checks + 1))
    "$BIN/tandem-verifier" "${batch[@]}" --backend cpu --verbose --sbatch-options "$words" >"$WORK/out" 2>"$WORK/err" && [ -s "$WORK/out" ] || fail "memory by '$words': $(cat "$WORK/err")"
done
grep -q "SLURM is asked for no memory that is known here: what ranks need is only told" "$WORK/err" || fail "that memory is only told is not said: $(cat "$WORK/err")"

# Models.
mkdir "$WORK/empty"
spoiled 65 "$WORK/empty" empty
refused 65 "$PROMPTS" --target "$PROMPTS" --draft "$DRAFT" --prompt Hello
model truncated && head -c 500000 "$DRAFT/model.safetensors" >"$WORK/truncated/model.safetensors"
spoiled 65 "truncated/model.safetensors.*model.layers" truncated
model beheaded && head -c 100 "$DRAFT/model.safetensors" >"$WORK/beheaded/model.safetensors"
spoiled 65 "beheaded/model.safetensors" beheaded
model dtype && LC_ALL=C sed -i 's/"model.norm.weight":{"dtype":"BF16"/"model.norm.weight":{"dtype":"I16" /' "$WORK/dtype/model.safetensors"
spoiled 65 "dtype/model.safetensors.*model.norm.weight.*I16" dtype
model missing && LC_ALL=C sed -i 's/"model.norm.weight"/"model.nrom.weight"/' "$WORK/missing/model.safetensors"
spoiled 65 "missing.*model.norm.weight" missing
model shape && sed -i 's/"intermediate_size": 256/"intermediate_size": 512/' "$WORK/shape/config.json"
spoiled 65 "shape.*mlp.*256.*512" shape
model json && sed -i 's/"hidden_size"/hidden_size/' "$WORK/json/config.json"
spoiled 65 "json/config.json" json
model kind && sed -i 's/"model_type": "llama"/"model_type": "mamba"/' "$WORK/kind/config.json"
spoiled 65 "kind/config.json.*mamba" kind
model mute && rm "$WORK/mute/tokenizer.json"
spoiled 66 "mute/tokenizer" mute
model words && sed -i 's/"!": 4,/"!": 6,/; s/"#": 6,/"#": 4,/' "$WORK/words/tokenizer.json"
refused 65 "$TARGET .2048 tokens. and $WORK/words .2048 tokens. have different vocabularies: 2 ids, the first is 4, \"!\" and \"#\"; expected .* --draft lookup" --target "$TARGET" --draft "$WORK/words" --prompt Hello
# With --solo the draft is not looked at before, and the Hellos disagree.
refused_by_hand 65 "words.*different vocabularies" --solo --target "$TARGET" --draft "$WORK/words" --prompt Hello

refused 66 "--perplexity $WORK/none.txt: No such file" --perplexity "$WORK/none.txt"
refused 64 "--prompts does not go with --perplexity, which scores its text" --perplexity "$PROMPTS" --prompts "$PROMPTS"
refused 64 "a context of 2000 tokens was asked for, the model has 1024" --perplexity "$PROMPTS" --context 2000
refused_dry 64 "--temperature does not go with --perplexity, which scores its text and chooses no tokens" --perplexity "$PROMPTS" --temperature 1
refused_dry 64 "--echo does not go with --perplexity" --perplexity "$PROMPTS" --echo
refused_dry 64 "--logprobs does not go with --perplexity" --perplexity "$PROMPTS" --logprobs 2
refused 64 "--echo is for prompts, and --chat makes messages of them" --chat Hello --echo

# The one prompt of --prompt.
long=$(printf 'word%.0s ' {1..1500})
refused 65 "the prompt is empty" --prompt ""
refused 65 "the prompt is not valid UTF-8 \(byte 3\)" --prompt "$(printf 'abc\377')"
refused 65 "the prompt has [0-9]+ tokens, the context has room for [0-9]+ and one new one" --prompt "$long"

# Prompts of a file: those that are wrong say so, and the others run.
cat >"$WORK/mixed.in" <<EOF
{"prompt": "Call me", "max_tokens": 8}
{"prompt": "Call me"
{"prompt": ""}
$(printf '{"prompt": "abc\377"}')
{"prompt": "$long"}
{"prompt": "Call me", "temperature": -1}
{"prompt": "Call me", "temperature": NaN}
{"prompt": "Call me", "top_q": 1}
{"prompt": "Call me", "logit_bias": {"5": 101}}
{"prompt": "Call me", "bad_words": [[1, 2048]]}
{"prompt": "Call me", "stop_token_ids": ["x"]}
{"prompt": "Call me", "min_tokens": 200}
{"prompt_tokens": [1, 2048]}
{"prompt": "Call me", "prompt_tokens": [1]}
[1]
{"id": "last", "prompt": "Call me", "max_tokens": 8}
EOF
# A file that is of another kind: each line says what was expected, and the job that nothing came of it.
wholly_wrong() { # PATTERN: of the file's first line; input from stdin
    cat >"$WORK/wrong.in"
    by_hand --prompts "$WORK/wrong.in" --output "$WORK/wrong.jsonl"
    local code=$?
    checks=$((checks + 1))
    [ "$code" = 65 ] && [ -e "$WORK/wrong.jsonl" ] && grep -q -- "$1" "$WORK/wrong.jsonl" || fail "a file without a line that is right: exit $code, $(head -n 1 "$WORK/wrong.jsonl")"
    rm -f "$WORK"/wrong.*
}
wholly_wrong "line 1 begins with no {, expected a JSON object on each line" < <(printf '[\n {"prompt": "Call me"},\n {"prompt": "x"},\n]\n')
wholly_wrong "line 1 begins with no {" < <(printf '"str"\n')
wholly_wrong "line 1 is UTF-16, expected UTF-8" < <(printf '\377\376{\0"\0p\0')
wholly_wrong 'unknown key ."text' < <(printf '{"text": "Call me"}\n')

wholly_wrong "line 1 is not valid JSON" < <(printf '{"prompt": "Call me"}\0\0\n')
wholly_wrong "line 1 " < <(printf '\0\0\0\n')
refused 64 "--prompts /dev/stdin is this program's own input, .*--prompts - reads it" --prompts /dev/stdin --output "$WORK/none.jsonl"
refused 64 "--stats is '-', expected the name of a file" --prompt Hello --stats -
mkfifo "$WORK/fifo.conf"
refused 66 "--config $WORK/fifo.conf: not a regular file" --config "$WORK/fifo.conf" --prompt Hello
cp "$FEW" "$WORK/own.jsonl.partial"
refused 64 "--prompts $WORK/own.jsonl.partial is what --output is until it is whole" --prompts "$WORK/own.jsonl.partial" --output "$WORK/own.jsonl"
together
checks=$((checks + 1))
cmp -s "$FEW" "$WORK/own.jsonl.partial" || fail "prompts that have the name of an output on its way were lost"

# In a comparison, which makes many passes, a line that is wrong is told of once.
printf '{"prompt": "The sea", "max_tokens": 4}\n{"promt": "x"}\n' >"$WORK/compared.in"
by_hand --prompts "$WORK/compared.in" --compare --output "$WORK/compared.jsonl"
code=$?
checks=$((checks + 1))
[ $code = 0 ] && [ "$(grep -c 'unknown key "promt"' "$WORK/err")" = 1 ] || fail "--compare of a bad line: exit $code: $(head -n 5 "$WORK/err")"

# A pipe that nobody reads is waited for, and is no rank that hangs.
mkfifo "$WORK/unread"
$MPIRUN -np 1 "$BIN/tandem-verifier" --solo --prompt "The sea" --output "$WORK/unread" --watchdog 1 >"$WORK/out" 2>"$WORK/err"
code=$?
checks=$((checks + 1))
[ $code = 76 ] && grep -q "no progress for 1 s while waiting for a reader of --output: ending the job" "$WORK/err" || fail "an output that nobody reads: exit $code, $(cat "$WORK/err")"

# What mpirun takes once is left to the user where he gives it.
line=$("$BIN/tandem-verifier" --dry-run --prompt Hello --mpirun-options "--mca pml ob1 --mca btl tcp,self")
checks=$((checks + 1))
[ "$(grep -o -- '--mca pml ' <<<"$line" | wc -l)" = 1 ] && [ "$(grep -o -- '--mca btl ' <<<"$line" | wc -l)" = 1 ] || fail "mpirun gets a parameter twice: $line"

by_hand --prompts "$WORK/mixed.in" --output "$WORK/mixed.jsonl"
grep -q '14 of 16 prompts could not be completed' "$WORK/err" || fail "a file with bad lines: how many is not said: $(cat "$WORK/err")"
by_hand --prompts "$WORK/mixed.in" --output "$WORK/mixed.jsonl" --quiet
code=$?
checks=$((checks + 1))
[ "$code" = 0 ] || fail "a file with bad lines: exit $code"
[ "$(wc -l <"$WORK/mixed.jsonl")" = 16 ] || fail "a file with bad lines: expected 16 results"
[ "$(wc -l <"$WORK/err")" = 14 ] || fail "a file with bad lines: expected 14 lines on stderr: $(cat "$WORK/err")"
line=0
while IFS= read -r pattern; do
    line=$((line + 1))
    checks=$((checks + 1))
    sed -n "${line}p" "$WORK/mixed.jsonl" | grep -Eq -- "$pattern" || fail "result $line: $(sed -n "${line}p" "$WORK/mixed.jsonl")"
done <<'EOF'
"finish_reason":"length"
"error":"line 2 is not valid JSON
"error":"line 3: the prompt is empty
"error":"line 4 is not valid UTF-8 \(byte [0-9]+\)
"error":"line 5: the prompt has [0-9]+ tokens
"error":"line 6: temperature is -1
"error":"line 7 is not valid JSON
"error":"line 8: unknown key ."top_q
"error":"line 9: logit_bias of token 5 is 101, expected a number from -100 to 100
"error":"line 10: a sequence of bad_words has something else than a token id from 0 to 2047
"error":"line 11: stop_token_ids\[0\] is not a token id from 0 to 2047
"error":"line 12: min_tokens is 200, expected at most max_tokens, 128
"error":"line 13: prompt_tokens\[1\] is not a token id
"error":"line 14: expected exactly one of .*, got 2
"error":"line 15 begins with no \{, expected a JSON object on each line
"id":"last".*"finish_reason":"length"
EOF
[ "$(results_of "$WORK/mixed.jsonl" | sed -n '1s/^0 //p')" = "$(results_of "$WORK/mixed.jsonl" | sed -n '16s/^15 //p')" ] ||
    fail "the good lines of a file with bad ones differ"

# More ranks than cores run, and say so once; verifiers alone are solo mode.
$MPIRUN -np 1 "$BIN/tandem-verifier" --prompt "Call me" --max-tokens 8 --output "$WORK/solo.jsonl" >"$WORK/out" 2>"$WORK/err"
said "one verifier" $? 0 "8 tokens in" "$WORK/err"
# On a terminal figures follow the text that they are of, by the same way.
$MPIRUN -np 1 "$BIN/tandem-verifier" --terminal 1 --prompt "Call me" --max-tokens 8 >"$WORK/out" 2>"$WORK/err" || fail "for a terminal: exit $?"
checks=$((checks + 1))
[ ! -s "$WORK/err" ] && sed -n '2p' "$WORK/out" | grep -aq '^Call me' && tail -n 1 "$WORK/out" | grep -q '^8 tokens in' ||
    fail "for a terminal: $(cat "$WORK/out" "$WORK/err")"
# A seed that alone does not repeat a text is no promise.
for row in "1|" "0|--draft-length 2" "0|--accept coupled" "0|--temperature 0" "0|--solo"; do
    IFS='|' read -r lines fixed <<<"$row"
    # shellcheck disable=SC2086
    $MPIRUN -np 1 "$BIN/tandem-drafter" $fixed : -np 1 "$BIN/tandem-verifier" --prompt "Call me" --max-tokens 8 --temperature 1 --seed 7 $fixed \
        >"$WORK/out" 2>"$WORK/err" || fail "'$fixed' with a seed: exit $?"
    checks=$((checks + 1))
    [ "$(grep -c 'seed alone does not repeat a text.*: --draft-length K or --accept coupled does$' "$WORK/err")" = "$lines" ] ||
        fail "'$fixed' with a seed: $(cat "$WORK/err")"
done
# Another instruction set than the machine's best may be asked for, one that it does not run is refused.
TANDEM_ISA=Scalar $MPIRUN -np 1 "$BIN/tandem-verifier" --solo --verbose --prompt "Call me" --max-tokens 2 >"$WORK/out" 2>"$WORK/err" || fail "TANDEM_ISA=Scalar: exit $?"
checks=$((checks + 1))
grep -q "cpu, scalar, " "$WORK/err" || fail "TANDEM_ISA=Scalar: $(cat "$WORK/err")"
TANDEM_ISA=mmx $MPIRUN -np 1 "$BIN/tandem-verifier" --solo --prompt "Call me" --max-tokens 2 >"$WORK/out" 2>"$WORK/err"
said "TANDEM_ISA=mmx" $? 64 "does not run the instruction set mmx; expected scalar, avx2" "$WORK/err"
many=$(($(nproc) + 1))
$MPIRUN -np "$many" "$BIN/tandem-drafter" --prompt "Call me" : -np 1 "$BIN/tandem-verifier" --prompt "Call me" --max-tokens 8 >"$WORK/out" 2>"$WORK/err"
code=$?
checks=$((checks + 1))
[ "$code" = 0 ] && [ "$(grep -c "$((many + 1)) ranks share $(nproc) cores" "$WORK/err")" = 1 ] || fail "more ranks than cores: exit $code, $(cat "$WORK/err")"
# There verifiers keep to cores of their own, where each can have some.
if [ "$(nproc)" -ge 2 ]; then
    $MPIRUN -np "$many" "$BIN/tandem-drafter" --threads 1 --prompt "Call me" : \
        -np 2 "$BIN/tandem-verifier" --threads 1 --verbose --prompt "Call me" --max-tokens 8 >"$WORK/out" 2>"$WORK/err" || fail "verifiers apart: exit $?"
    checks=$((checks + 1))
    [ "$(grep -o 'keeps to cores [0-9]* to' "$WORK/err" | sort -u | wc -l)" = 2 ] || fail "verifiers apart: $(cat "$WORK/err")"
else
    echo "not tried: two verifiers on two cores, for there is one"
fi
finish
