# Sourced after job.sh: a job that decodes its prompts pass after pass, each in its own way (verifier/command/sweep.h), so that a grid of draft lengths,
# rules and sequences at once costs one start for each placement of ranks. A pass gives what a job of its own gives: that is what is compared.

# plan: begins the plan of a job.
plan() { pass_names=() pass_lines=(); }

# pass NAME SOLO LENGTH TEMPERATURE ACCEPT SEQUENCES PROMPTS: one pass, over the first PROMPTS prompts.
pass() {
    pass_lines+=("{\"cell\": ${#pass_lines[@]}, \"repetition\": 0, \"warm_up\": false, \"solo\": $2, \"draft_length\": $3, \"temperature\": $4, \
\"accept\": \"$5\", \"sequences\": $6, \"prompts\": $7}")
    pass_names+=("$1")
}

# passes NAME OPTION...: runs the plan as one job; what each pass of it gave goes to $WORK/NAME.PASS.
passes() {
    local name=$1 line number=1 pass
    shift
    (IFS=,; printf '{"results": "%s", "passes": [%s]}\n' "$WORK/$name.passes" "${pass_lines[*]}") >"$WORK/$name.plan"
    line=$("$BIN/tandem-verifier" --dry-run --sweep "$WORK/$name.plan" "$@" 2>"$WORK/$name.err") && eval "$line" >"$WORK/$name.out" 2>>"$WORK/$name.err" ||
        fail "$name: exit $?: $(head -n 5 "$WORK/$name.err")"
    for pass in "${pass_names[@]}"; do
        number=$((number + 1)) # the first line is the job's
        sed -n "${number}p" "$WORK/$name.passes" >"$WORK/$name.$pass"
    done
}

# given NAME.PASS: what must be equal: of each prompt how many tokens it has and got, with their digest; and the hash of all logits.
given() { grep -oE '[0-9]+,[0-9]+,"[0-9a-f]{16}"\]|"logits_hash":"[0-9a-f]{16}"' "$WORK/$1"; }

# same_pass NAME.PASS REFERENCE: both gave the same.
same_pass() {
    checks=$((checks + 1))
    given "$1" >"$WORK/given"
    given "$2" >"$WORK/expected"
    if ! grep -q logits_hash "$WORK/expected"; then
        fail "$2 gave nothing"
    elif ! cmp -s "$WORK/given" "$WORK/expected"; then
        fail "$1 differs from $2:" "$(diff "$WORK/given" "$WORK/expected" | head -n 4)"
    fi
}

# drafted NAME.PASS: some drafts stood.
drafted() {
    checks=$((checks + 1))
    grep -q '"accepted":[1-9]' "$WORK/$1" || fail "$1: no draft was ever accepted"
}
