#!/usr/bin/env bash
# The summary of launch/dev/vs-hugging-face: of each side the best setting counts, by its median, and bars hold only where they are measured and hold.
COMPARISON=vs-hugging-face BARS=4
. "$(dirname "$0")/comparison.sh"
{
    echo "# a machine"
    for figure in alone assisted; do
        for value in 2000 10000 2500; do line $figure "ours, 1 thread" $value; done # the median is 2500
        line $figure "ours, 2 threads" 2000
        line $figure "peer, float32, 1 thread" 250
        line $figure "peer, bfloat16, 1 thread" 200
        line same_$figure peer 50
    done
} >"$WORK/all.tsv"
summaries <<'END'
3 alone\tours,.1 s/2500/2400/
3 alone\tours d
3 assisted\tpeer d
3 assisted\tpeer,.bfloat16 s/200/251/
3 same_alone s/50/49/
3 same_assisted d
END
for said in '^| the target alone, tokens/s | 2500 | 250 | 10x | >= 10x | holds |' '^| alone | ours, 2 threads | 2000 |'; do
    ends 0 "$said" --summary "$WORK/all.tsv"
done
refusals
finish
