#!/usr/bin/env bash
# The embedded pair as GGUF files: whole jobs give the tokens and the logits of the safetensors form, at any number of verifiers; quantised
# files, and folders in AWQ, GPTQ and FP8, speculate as they decode alone; what is wrong with a file is one line. gguf.sh BIN CONVERT FEW_BITS, the
# programs that make the files and the folders. TANDEM_WIDE=1 in the environment: twice as many tokens.
. "$(dirname "$0")/job.sh"
CONVERT=$2 FEW_BITS=$3
DEMO=$SOURCE/launch/demo
tokens=16
[ -z "${TANDEM_WIDE:-}${TANDEM_LONG:-}" ] || tokens=32
GREEDY=(--prompts "$FEW" --max-tokens $tokens --hash-logits --threads 1 --draft-length 4 --draft-deadline 10000) # drafts are asked for, whatever pays here

# make_file NAME FOLDER DTYPE
make_file() { "$CONVERT" "$DEMO/$2" "$WORK/$1.gguf" "$3" gpt-2 || fail "cannot make $1.gguf"; }

# run NAME REFERENCE OPTION...: a job whose output is the reference's ("": it is the reference).
run() {
    local name=$1 reference=$2
    shift 2
    job "$name" "${GREEDY[@]}" "$@" || fail "$name: exit $?: $(cat "$WORK/$name.err")"
    [ -z "$reference" ] || same "$name" "$reference"
}

# accepts NAME: drafts were of use.
accepts() {
    checks=$((checks + 1))
    [ "0$(figure "$1" accepted)" -gt 0 ] || fail "$1: no draft was ever accepted"
}

make_file target target stored
make_file draft draft stored
mkdir "$WORK/folder"
cp "$WORK/draft.gguf" "$WORK/folder/only.gguf"
run folders "" --target "$DEMO/target" --draft "$DEMO/draft" --verifiers 2
run solo folders --target "$WORK/target.gguf" --solo --verifiers 1
run pair folders --target "$WORK/target.gguf" --draft "$WORK/draft.gguf" --verifiers 2
accepts pair
run mixed folders --target "$WORK/target.gguf" --draft "$WORK/folder" --verifiers 4
accepts mixed

# Text in and out: the tokenizer is in the file.
text=$("$BIN/tandem-verifier" --dry-run --target "$WORK/target.gguf" --draft "$WORK/draft.gguf" --prompt "The sea was" --max-tokens 12 --verifiers 1 2>/dev/null)
ours=$(eval "$text" 2>/dev/null)
text=$("$BIN/tandem-verifier" --dry-run --target "$DEMO/target" --draft "$DEMO/draft" --prompt "The sea was" --max-tokens 12 --verifiers 1 2>/dev/null)
theirs=$(eval "$text" 2>/dev/null)
checks=$((checks + 1))
[ -n "$ours" ] && [ "$ours" = "$theirs" ] || fail "text of the GGUF pair: '$ours', of the folders: '$theirs'"

# The last two widths cut the rows of `down` within a block of 32.
for dtype in q8_0 q4_0 q4_1; do
    make_file "$dtype" target "$dtype"
    run "${dtype}_solo" "" --target "$WORK/$dtype.gguf" --solo --verifiers 1
    run "${dtype}_pair" "${dtype}_solo" --target "$WORK/$dtype.gguf" --draft "$WORK/draft.gguf" --verifiers 4
    accepts "${dtype}_pair"
done
for kind in awq gptq gptq-zero fp8-block fp8-large; do
    "$FEW_BITS" "$DEMO/target" $kind "$WORK/$kind" || fail "cannot make $kind"
    run "${kind}_solo" "" --target "$WORK/$kind" --solo --verifiers 1
    run "${kind}_pair" "${kind}_solo" --target "$WORK/$kind" --draft "$DEMO/draft" --verifiers 4
    accepts "${kind}_pair"
done
run few_bits folders --target "$DEMO/target" --draft "$WORK/awq" --verifiers 1
accepts few_bits
run self folders --target "$DEMO/target" --draft "$WORK/q4_0.gguf" --verifiers 1
accepts self

# Weights that are rounded while they are loaded are those of a file that has them so, and drafts of rounded weights are drafts.
run rounded q8_0_solo --target "$DEMO/target" --quantise q8_0 --solo --verifiers 1
for width in 2 4; do
    run "rounded_$width" q8_0_solo --target "$DEMO/target" --draft "$DEMO/draft" --quantise q8_0 --verifiers $width
    accepts "rounded_$width"
done
run bits4 folders --target "$DEMO/target" --draft self:bits=4 --verifiers 2
accepts bits4
run bits4_layers folders --target "$WORK/target.gguf" --draft self:bits=4,layers=5 --verifiers 1
accepts bits4_layers
run both q8_0_solo --target "$DEMO/target" --draft self:bits=4 --quantise q8_0 --verifiers 2
accepts both
# 8 bits of a target in Q8_0 are the target: nothing that it drafts is wrong.
run bits8 q8_0_solo --target "$DEMO/target" --draft self:bits=8 --quantise q8_0 --verifiers 2
checks=$((checks + 1))
[ "$(figure bits8 alpha)" = 1.0 ] || fail "bits8: alpha $(figure bits8 alpha), expected 1.0"
# told NAME DRAFT WHY: once, by one of the drafters.
told() {
    checks=$((checks + 1))
    [ "$(grep -c "warning: --draft $2: the draft is the target itself, for the target $3\$" "$WORK/$1.err")" = 1 ] || fail "$1: a draft that is the target is not told: $(cat "$WORK/$1.err")"
}
told bits8 self:bits=8 "has no weights of more bits"
run bits4_of_4 q4_1_solo --target "$WORK/q4_1.gguf" --draft self:bits=4,layers=6 --verifiers 1
told bits4_of_4 self:bits=4,layers=6 "has no weights of more bits"
run all_layers q4_1_solo --target "$WORK/q4_1.gguf" --draft self:layers=6 --drafters 2 --verifiers 1
told all_layers self:layers=6 "has no more layers"
checks=$((checks + 1))
grep -q "the target itself" "$WORK/bits4.err" "$WORK/bits4_layers.err" "$WORK/both.err" && fail "drafts of fewer bits are said to be the target"

# refused CODE PATTERN OPTION...: one line on stderr, by --dry-run and by a hand-written line. Beside others: mpirun takes its time to end.
refused() { beside judged "$@"; }
judged() {
    local code=$1 pattern=$2 err=$WORK/err.$BASHPID way found
    shift 2
    for way in "$BIN/tandem-verifier --dry-run" "$MPIRUN -np 1 $BIN/tandem-drafter $* : -np 2 $BIN/tandem-verifier"; do
        checks=$((checks + 1))
        $way "$@" >/dev/null 2>"$err"
        found=$?
        [ "$found" = "$code" ] && [ "$(wc -l <"$err")" = 1 ] && grep -Eq -- "$pattern" "$err" ||
            fail "$way $*: exit $found, expected $code and one line with '$pattern': $(cat "$err")"
    done
}

# spoiled PATTERN NAME: as a target, and as a draft.
spoiled() {
    refused 65 "$1" --target "$WORK/$2.gguf" --draft "$DEMO/draft" --prompt Hello
    refused 65 "$1" --target "$DEMO/target" --draft "$WORK/$2.gguf" --prompt Hello
}

head -c 500000 "$WORK/draft.gguf" >"$WORK/cut.gguf"
spoiled "cut.gguf: tensor .* has [0-9]+ bytes from byte [0-9]+ of the data on, the file has [0-9]+ bytes of data" cut
LC_ALL=C sed 's/^GGUF\x03/GGUF\x02/' "$WORK/draft.gguf" >"$WORK/old.gguf"
spoiled "old.gguf: GGUF version 2, expected 3" old
LC_ALL=C sed 's/\(general.architecture.\{12\}\)llama/\1mamba/' "$WORK/draft.gguf" >"$WORK/mamba.gguf"
spoiled "mamba.gguf: key general.architecture is \"mamba\", expected \"llama\", \"qwen2\" or \"qwen3\"" mamba
LC_ALL=C sed 's/\(tokenizer.ggml.pre.\{12\}\)gpt-2/\1gpt-9/' "$WORK/draft.gguf" >"$WORK/words.gguf"
spoiled "words.gguf: key tokenizer.ggml.pre is \"gpt-9\", expected the name of a pre-tokenizer" words
LC_ALL=C sed 's/blk.0.ffn_up.weight/blk.0.ffn_up.wieght/' "$WORK/draft.gguf" >"$WORK/name.gguf"
spoiled "name.gguf: tensor blk.0.ffn_up.wieght is not one of a llama model" name

# Pairs that differ in tokens that were added to one tokenizer: in their names, and in how many there are. A draft has none that the target lacks.
LC_ALL=C sed 's/<|user|>/<|resu|>/' "$WORK/draft.gguf" >"$WORK/vocab.gguf"
run renamed folders --target "$WORK/target.gguf" --draft "$WORK/vocab.gguf" --verifiers 1
accepts renamed
# fewer FOLDER ADDED: a copy without the last token and its merge, and with an added one in its place, or none.
fewer() {
    mkdir "$WORK/$1.$2" && ln -s "$DEMO/$1"/*.json "$DEMO/$1"/*.safetensors "$WORK/$1.$2" && rm "$WORK/$1.$2/tokenizer.json"
    head -n -8 "$DEMO/$1/tokenizer.json" | sed -e '/": 2047$/d' -e 's/": 2046,$/": 2046/' >"$WORK/$1.$2/tokenizer.json"
    printf '      ]\n    ]\n  }\n}\n' >>"$WORK/$1.$2/tokenizer.json"
    [ "$2" = none ] || sed -i 's/"added_tokens": \[/&{"id": 2047, "content": "<|more|>", "special": true},/' "$WORK/$1.$2/tokenizer.json"
}
for name in target draft; do
    fewer $name none
    fewer $name more
done
run less "" --target "$WORK/target.none" --solo --verifiers 1
run less_pair less --target "$WORK/target.none" --draft "$WORK/draft.more" --verifiers 2
accepts less_pair
run more "" --target "$WORK/target.more" --solo --verifiers 1
run more_pair more --target "$WORK/target.more" --draft "$WORK/draft.none" --verifiers 2
accepts more_pair
by_hand() { $MPIRUN -np 1 "$BIN/tandem-drafter" --target "$WORK/elsewhere" --draft "$WORK/draft.more" "$@" : -np 1 "$BIN/tandem-verifier" --target "$WORK/target.none" --draft "$WORK/draft.more" --prompt "The sea" --max-tokens 4; }
by_hand >/dev/null 2>"$WORK/err"
code=$?
checks=$((checks + 1))
[ $code = 65 ] && grep -q "draft.more (rank 0, 2048 tokens) have vocabularies of other sizes, expected --draft-vocabulary" "$WORK/err" || fail "a drafter that has not the target's files: exit $code, $(cat "$WORK/err")"
by_hand --draft-vocabulary 2047 >/dev/null 2>"$WORK/err" || fail "the same with --draft-vocabulary: exit $?, $(cat "$WORK/err")"
# What is not read is refused by its name: the type of a tensor lies behind its name, 4 bytes and two sizes.
cp "$WORK/q8_0.gguf" "$WORK/iq.gguf"
at=$(grep -abo -m 1 'blk.0.attn_q.weight' "$WORK/iq.gguf" | head -n 1 | cut -d: -f1)
printf '\024' | dd of="$WORK/iq.gguf" bs=1 seek=$((at + 19 + 4 + 16)) conv=notrunc status=none
refused 65 'iq.gguf: tensor model.layers.0.self_attn.q_proj.weight is IQ4_NL, expected F32, F16 or BF16, or Q8_0, Q5_0, Q5_1, Q4_0, Q4_1, or Q2_K to Q6_K' --target "$WORK/iq.gguf" --solo --prompt Hello
sed 's/"awq"/"aqlm"/' "$WORK/awq/config.json" >"$WORK/config" && mv "$WORK/config" "$WORK/awq/config.json"
refused 65 'awq/config.json: key "quant_method" is "aqlm", expected "awq", "gptq", "fp8" or "compressed-tensors"$' --target "$WORK/awq" --draft "$DEMO/draft" --prompt Hello
sed 's/"awq"/"gptq"/' "$WORK/gptq-zero/config.json" | sed 's/"gptq"/"awq"/' >"$WORK/config" && mv "$WORK/config" "$WORK/gptq-zero/config.json"
refused 65 'model.safetensors: tensor model.layers.0.self_attn.q_proj.qweight is I32 [[][0-9]+, [0-9]+[]], expected I32' --target "$WORK/gptq-zero" --draft "$DEMO/draft" --prompt Hello
refused 64 "quantise is 'q3', expected none.q8_0" --quantise q3 --prompt Hello
refused 64 "--quantise is for the CPU backend, expected --backend cpu, not cuda" --quantise q8_0 --backend cuda --prompt Hello
refused 64 "--draft-quantise is for the CPU backend, expected --backend cpu, not cuda" --draft-quantise q4_0 --backend cuda --prompt Hello
refused 64 "--draft self:bits=N is for the CPU backend, expected --backend cpu, not cuda" --draft self:bits=4 --backend cuda --prompt Hello
cp "$WORK/draft.gguf" "$WORK/folder/second.gguf"
refused 65 "$WORK/folder: a folder with several .gguf files" --target "$WORK/folder" --draft "$DEMO/draft" --prompt Hello
refused 66 "$WORK/none.gguf: " --target "$WORK/none.gguf" --draft "$DEMO/draft" --prompt Hello
finish
