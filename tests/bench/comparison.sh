# Sourced by the tests of the comparisons with peers, after COMPARISON, the script, and BARS, how many its summary has, are set.
set -u
TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
checks=0
failures=0

# check WHAT COMMAND...: a check, which fails where the command does.
check() {
    local what=$1
    shift
    checks=$((checks + 1))
    "$@" && return
    failures=$((failures + 1))
    printf 'FAILED: %s\n' "$what"
}

line() { printf '%s\t%s\t%s\n' "$@"; }

# ends CODE PATTERN ARGUMENT...: the comparison with these arguments ends so, and a line that it prints is so.
ends() {
    local code=$1 pattern=$2 said found
    shift 2
    said=$("$TOP/launch/dev/$COMPARISON" "$@" 2>&1)
    found=$?
    check "$COMPARISON $*: exit $found, expected $code and $pattern: $said" [ $found = "$code" ]
    check "$COMPARISON $*: expected $pattern: $said" grep -q "$pattern" <<<"$said"
}

# expect CODE COUNT: the summary of $WORK/x.tsv ends so, and says that so many of the bars hold.
expect() {
    ends "$1" "^$2 of $BARS bars hold" --summary "$WORK/x.tsv"
}

# All of $WORK/all.tsv's bars hold, and none of no figures. Of stdin each line is COUNT PATTERN CHANGE: the figures of the pattern, changed by sed so, leave so many.
summaries() {
    local count pattern change
    cp "$WORK/all.tsv" "$WORK/x.tsv"
    expect 0 "$BARS"
    : >"$WORK/x.tsv"
    expect 1 0
    while read -r count pattern change; do
        sed -E "/^$pattern/$change" "$WORK/all.tsv" >"$WORK/x.tsv"
        expect 1 "$count"
    done
}

# Arguments that cannot be used are named.
refusals() {
    local wrong
    ends 66 "$WORK/nothing" --summary "$WORK/nothing"
    for wrong in "--repeat 0" "--tokens x" "--prompts 0" "--prompts 25" "--cores 4096"; do
        ends 64 "^$COMPARISON: $wrong, expected" $wrong
    done
}

finish() {
    printf '%d checks, %d failed\n' "$checks" "$failures"
    [ "$failures" = 0 ]
    exit
}
