#!/usr/bin/env bash
# The summary of launch/dev/vs-llama-cpp: bars hold only where they are measured and hold; and what bench_step says. vs_llama_cpp.sh STEP, bench_step
step=$1
COMPARISON=vs-llama-cpp BARS=24
. "$(dirname "$0")/comparison.sh"
{
    echo "# a machine"
    line read machine 20
    for type in Q8_0 BF16 Q4_1; do
        line "bytes.$type" file 160000000
        for value in 90 100 1000; do line "decode_1.$type" ours $value; done # the median is 100: 16 GB/s
        line "decode_1.$type" "peer, flash attention on" 60
        line "decode_1.$type" "peer, flash attention off" 62.5
        line "decode_8.$type" ours 620
        line "decode_8.$type" "peer, flash attention on" 200
        line "prefill.$type" ours 300
        line "prefill.$type" "peer, flash attention off" 200
        for figure in kl largest; do line "$figure.$type" ours 0.001; line "$figure.$type" peer 0.001; done
    done
    line speculation ours 20
    line speculation peer 10
    line cost_1 ours 4.9
    line cost_2 ours -1
} >"$WORK/all.tsv"
# The embedded pair has no bars: neither what it has nor what is missing counts.
line decode_8.embedded.BF16 ours 90 >"$WORK/embedded"
line decode_8.embedded.BF16 "peer, flash attention on" 20 >>"$WORK/embedded"
cat "$WORK/all.tsv" "$WORK/embedded" >"$WORK/pair.tsv"
ends 0 "^| 8 rows with all logits, BF16 | 90 | 20 | 4.5x |$" --summary "$WORK/pair.tsv"
ends 0 "^| prompt of 512 tokens, Q8_0 | not measured | not measured | not measured |$" --summary "$WORK/pair.tsv"
# One figure less or worse is one bar less, or those that it is part of.
summaries <<'END'
23 speculation\tpeer d
23 speculation\tours s/20/19/
23 cost_1 s/4.9/5.1/
23 cost_2 d
23 prefill.BF16\tours s/300/299/
23 largest.Q8_0\tpeer d
23 kl.Q4_1\tours s/0.001/0.0011/
21 read s/20/21/
23 decode_8.Q8_0\tpeer s/200/207/
22 decode_8.Q8_0\tours s/620/590/
23 decode_1.Q8_0\tpeer,.flash.attention.on s/60/63/
21 decode_1.Q8_0\tours d
END
refusals
# The k-quants' bars count where they were measured, and then all of them.
grep -E '[._]Q4_1' "$WORK/all.tsv" | sed 's/Q4_1/Q4_K_M/; p; s/Q4_K_M/Q6_K/' | cat "$WORK/all.tsv" - >"$WORK/k.tsv"
ends 0 "^38 of 38 bars hold" --summary "$WORK/k.tsv"
grep -v 'kl.Q6_K' "$WORK/k.tsv" >"$WORK/less.tsv"
ends 1 "^37 of 38 bars hold" --summary "$WORK/less.tsv"

# says PATTERN ARGUMENT...: what bench_step prints. No figure of time means anything here, but that it is there.
says() {
    local pattern=$1 said
    shift
    said=$("$step" "$@")
    check "bench_step $*: $said" grep -qE "$pattern" <<<"$said"
}
target=$TOP/launch/demo/target
says '^\{"threads": 1, "read": [0-9.e+]*[1-9][0-9.e+]*, "fma": ' peaks 1
says '^\{"threads": 1, "packed_bytes": [1-9][0-9]*, "ns": \{("[0-9]+": [1-9][0-9]*(, )?){6}\}, "weights": [1-9][0-9]*, "read": [0-9.e+]+, "fma": [0-9.e+]+, "fma_avx2": [0-9.e+]+, "vnni": [0-9.e+]+\}$' steps 1 2 "$target"
says '^\{"threads": 1, "places": 128, "F32": \{"cache_bytes": [1-9][0-9]*(, "[148]": [1-9][0-9]*){3}\}, "BF16": \{"cache_bytes": [1-9][0-9]*(, "[148]": [1-9][0-9]*){3}\}, "E4M3": \{"cache_bytes": [1-9][0-9]*(, "[148]": [1-9][0-9]*){3}\}\}$' deep 1 2 "$target" 100
says '^\{"positions": 40, "largest": 0, "kl": -?0, "same": 1\}$' quality 1 "$target" "$target" "$TOP/README.md" 40
says '^\{"positions": 40, "largest": [0-9.]*[1-9].*, "kl": -?[0-9.]*[1-9].*, "same": ' quality 1 "$target" "$target" "$TOP/README.md" 40 bf16
says '^\{"positions": 40, "largest": [0-9.]*[1-9].*, "kl": [0-9.]*[1-9].*, "same": 0' quality 1 "$target" "$TOP/launch/demo/draft" "$TOP/README.md" 40
finish
