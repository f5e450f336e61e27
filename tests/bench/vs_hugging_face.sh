#!/usr/bin/env bash
# The summary of launch/bench/vs-hugging-face: of each side the best setting counts, by its median, and bars hold only where they are measured and hold.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
checks=0 failures=0
# expect CODE COUNT WHAT: the summary of $work/x.tsv ends so, and says that so many of 4 hold.
expect() {
    local found
    "$top/launch/bench/vs-hugging-face" --summary "$work/x.tsv" >"$work/out"
    found=$?
    checks=$((checks + 1))
    if [ $found != "$1" ] || ! grep -q "^$2 of 4 bars hold" "$work/out"; then
        failures=$((failures + 1))
        printf 'FAILED: %s: exit %s, expected %s and %s bars\n%s\n' "$3" $found "$1" "$2" "$(cat "$work/out")"
    fi
}
line() { printf '%s\t%s\t%s\n' "$@"; }
{
    echo "# a machine"
    for figure in alone assisted; do
        for value in 2000 10000 2500; do line $figure "ours, 1 thread" $value; done # the median is 2500
        line $figure "ours, 2 threads" 2000
        line $figure "peer, float32, 1 thread" 250
        line $figure "peer, bfloat16, 1 thread" 200
        line same_$figure peer 50
    done
} >"$work/all.tsv"
cp "$work/all.tsv" "$work/x.tsv"
expect 0 4 "all hold"
for said in '| the target alone, tokens/s | 2500 | 250 | 10x | >= 10x | holds |' '| alone | ours, 2 threads | 2000 |'; do
    checks=$((checks + 1))
    grep -qF "$said" "$work/out" || { failures=$((failures + 1)); printf 'FAILED: no line %s\n%s\n' "$said" "$(cat "$work/out")"; }
done
: >"$work/x.tsv"
expect 1 0 "nothing is measured"
# One figure less or worse is one bar less.
while read -r pattern change; do
    sed -E "/^$pattern/$change" "$work/all.tsv" >"$work/x.tsv"
    expect 1 3 "$pattern $change"
done <<'END'
alone\tours,.1 s/2500/2400/
alone\tours d
assisted\tpeer d
assisted\tpeer,.bfloat16 s/200/251/
same_alone s/50/49/
same_assisted d
END
"$top/launch/bench/vs-hugging-face" --summary "$work/nothing" 2>/dev/null
code=$?
checks=$((checks + 1))
[ $code = 66 ] || { failures=$((failures + 1)); echo "FAILED: a file that is not there: exit $code"; }
for wrong in "--repeat 0" "--tokens x" "--prompts 0" "--prompts 25" "--cores 4096"; do
    said=$("$top/launch/bench/vs-hugging-face" $wrong 2>&1)
    code=$?
    checks=$((checks + 1))
    [ $code = 64 ] && grep -q "^vs-hugging-face: $wrong, expected" <<<"$said" || { failures=$((failures + 1)); echo "FAILED: $wrong: exit $code, $said"; }
done
printf '%d checks, %d failed\n' $checks $failures
[ $failures = 0 ]
