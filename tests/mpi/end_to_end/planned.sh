#!/usr/bin/env bash
# What a job will need of a device is known before it is submitted, on a host without one, and is what the device is then asked for: a target of 70
# billion weights in four bits fits into 80 GiB and not into 40. planned.sh BIN EMULATED_BIN, or - to plan alone
. "$(dirname "$0")/job.sh"
EMULATED=$2

# seventy FOLDER: Llama 3.1 70B in AWQ's four bits: the names, types and shapes of its tensors, over a file that has no bytes of them.
seventy() {
    local layer part in out at=0 text
    tensor() { # NAME DTYPE BYTES SHAPE...
        local shape=${*:4}
        text+="${text:+,}\"$1\":{\"dtype\":\"$2\",\"shape\":[${shape// /,}],\"data_offsets\":[$at,$((at + $3))]}"
        at=$((at + $3))
    }
    tensor model.embed_tokens.weight F16 $((128256 * 8192 * 2)) 128256 8192
    tensor lm_head.weight F16 $((128256 * 8192 * 2)) 128256 8192
    tensor model.norm.weight F16 16384 8192
    for ((layer = 0; layer < 80; layer++)); do
        for part in input_layernorm post_attention_layernorm; do tensor model.layers.$layer.$part.weight F16 16384 8192; done
        while read -r part in out; do
            tensor model.layers.$layer.$part.qweight I32 $((in * out / 2)) $in $((out / 8))
            tensor model.layers.$layer.$part.qzeros I32 $((in / 128 * out / 2)) $((in / 128)) $((out / 8))
            tensor model.layers.$layer.$part.scales F16 $((in / 128 * out * 2)) $((in / 128)) $out
        done <<<"self_attn.q_proj 8192 8192
self_attn.k_proj 8192 1024
self_attn.v_proj 8192 1024
self_attn.o_proj 8192 8192
mlp.gate_proj 8192 28672
mlp.up_proj 8192 28672
mlp.down_proj 28672 8192"
    done
    text="{$text}"
    local count=${#text} bytes='' i
    for ((i = 0; i < 8; i++)); do printf -v bytes '%s\\x%02x' "$bytes" $((count >> (8 * i) & 255)); done
    { printf "$bytes"; printf %s "$text"; } >"$1/model.safetensors"
    truncate -s $((8 + count + at)) "$1/model.safetensors"
    echo '{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": 28672,
        "vocab_size": 128256, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "float16",
        "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": true, "version": "gemm"}}' >"$1/config.json"
}

mkdir "$WORK/seventy" && seventy "$WORK/seventy" && cp "$SOURCE"/launch/demo/target/tokenizer*.json "$WORK/seventy" || fail "cannot make a large model"
large=(--target "$WORK/seventy" --solo --verifiers 1 --backend cuda --prompt x --max-sequences 4)

# planned BIN WEIGHTS OPTION...: the bytes that a dry run says, in GiB.
planned() {
    checks=$((checks + 1))
    "$1/tandem-verifier" --dry-run --verbose "${large[@]}" "${@:3}" >"$WORK/out" 2>"$WORK/err" || fail "planned ${*:3}: exit $?: $(cat "$WORK/err")"
    grep -q "device memory of each of [0-9]* verifiers*: .* = $2 GiB of weights, " "$WORK/err" || fail "planned ${*:3}: expected $2 GiB of weights: $(cat "$WORK/err")"
}
planned "$BIN" 35.8 # 68.5 billion in four and a quarter bits, and a head of a billion in 16
grep -q ": 47.[01] GiB = " "$WORK/err" || fail "not all: $(cat "$WORK/err")"
planned "$BIN" 2.3 --verifiers 16 # each kv head on two
grep -q ", 1.2 GiB of cache (4 sequences)" "$WORK/err" || fail "a cache of one kv head: $(cat "$WORK/err")"
if [ "$EMULATED" != - ]; then
    planned "$EMULATED" 35.8
    checks=$((checks + 1)) # where the tokenizer's 2,048 ids are all that is computed of the head
    EMULATED_MEMORY=40960 timeout 100 $MPIRUN -np 1 "$EMULATED/tandem-verifier" "${large[@]}" </dev/null >"$WORK/out" 2>"$WORK/err"
    code=$?
    [ $code = 70 ] && [ "$(wc -l <"$WORK/err")" = 1 ] && grep -q "error: this rank's share of the weights, with a cache of 10.0 GiB .* takes 44.1 GiB, device 0 (emulation) has 40.0 of 40.0 GiB free: " "$WORK/err" ||
        fail "a device that is too small: exit $code: $(cat "$WORK/err")"
fi
finish
