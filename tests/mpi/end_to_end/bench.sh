#!/usr/bin/env bash
# tandem bench as a user types it, on a tiny sweep: what the folder holds, what is refused, what a noisy machine is told; a trace that changes no bit;
# verdicts that are drawn. bench.sh BIN default|small. TANDEM_WIDE=1 in the environment: a long prompt, more rules and sequences, too.
. "$(dirname "$0")/job.sh"
as_installed

# expect WHAT TEST: a fact.
expect() {
    checks=$((checks + 1))
    eval "$2" || fail "$1"
}

# refused CODE PATTERN COMMAND...: one line, that exit code.
refused() {
    local code=$1 pattern=$2
    shift 2
    checks=$((checks + 1))
    "$tandem" "$@" >"$WORK/out" 2>"$WORK/err"
    local found=$?
    [ $found = "$code" ] || fail "$*: exit $found, expected $code: $(cat "$WORK/err")"
    [ "$(wc -l <"$WORK/err")" = 1 ] && grep -Eq -- "$pattern" "$WORK/err" || fail "$*: expected one line with '$pattern', got: $(cat "$WORK/err")"
}

# The sweep: real processes, a folder with all that is promised. Any noise is let pass: what machine this is nobody knows.
tiny=(--draft-lengths 2,4,auto --temperatures 0,1 --accepts rejection --batches 1,2 --repetitions 2 --requests 2 --max-tokens 12 --noise-limit 1000 --extra-time 0 --quantise q8_0)
"$tandem" bench "${tiny[@]}" --output "$WORK/a" >"$WORK/a.out" 2>"$WORK/a.err" || fail "the sweep: exit $?: $(cat "$WORK/a.err")"
for file in prediction.json prompts.jsonl calibration/prompts.jsonl calibration/bench.json calibration/alpha-0.json calibration/alpha-1.json \
    calibration/raw/same-node/passes.jsonl bench.json report.md report.html summary.json rounds.csv trace.json raw/same-node/passes.jsonl raw/same-node/rank-0000.csv \
    raw/same-node/rank-0001.csv raw/same-node/clocks.csv raw/same-node/latency.txt raw/same-node/latency.jsonl; do
    expect "$file is not there or empty" '[ -s "$WORK/a/$file" ]'
done
expect "the report does not say what was measured: $(grep -E "^. (target|draft) " "$WORK/a/report.md")" \
    '[ "$(grep -cE "^. (target|draft) . /.*/(target|draft), rounded to Q8_0, LlamaForCausalLM" "$WORK/a/report.md")" = 2 ]'
expect "greedy output with drafts is not solo's: $(grep outputs_equal_solo "$WORK/a/summary.json")" \
    'awk "/\"outputs\":/ { n = \$2 + 0 } /\"outputs_equal_solo\":/ { cells++; if (\$2 + 0 != n || n == 0) exit 1 } END { exit cells != 5 }" "$WORK/a/summary.json"'
for name in mean_ttft_ms median_tpot_ms p99_itl_ms spec_decode_acceptance_rate theorem_3_8_improvement improvement_with_measured_v_and_wire \
    theorem_3_11_operations clock_offset_before_us command_line propose_one_way_us; do
    expect "summary.json has no $name" 'grep -q "\"$name\"" "$WORK/a/summary.json"'
done
# It was predicted before a draft was made, from other prompts than were measured, for every cell; what was measured stands beside it.
expect "it was predicted after it was measured" '[ "$WORK/a/prediction.json" -ot "$WORK/a/raw/same-node/passes.jsonl" ]'
expect "the target was not timed alone, or not with the rows of all steps" \
    '! grep -q "\"solo\": false" "$WORK/a/calibration/bench.json" && [ "$(grep -c "\"sequences\": 1," "$WORK/a/calibration/bench.json")" = 10 ] &&
        [ "$(grep -c "\"sequences\": 2," "$WORK/a/calibration/bench.json")" = 5 ] && [ "$(grep -c "\"draft_length\": 4," "$WORK/a/calibration/bench.json")" = 3 ]'
# Steps that have the rows of drafts, which nobody made, give the target's own text.
filled() { grep "\"cell\":$1,.*\"warm_up\":false" "$WORK/a/calibration/raw/same-node/passes.jsonl" | grep -oE '"[0-9a-f]{16}"' | sort -u; }
expect "a text of the target with rows beside it is another one: $(filled 0; filled 1)" '[ "$(filled 0 | wc -l)" -ge 2 ] && [ "$(filled 1)" = "$(filled 0)" ] && [ "$(filled 2)" = "$(filled 0)" ]'
rows() { grep "\"cell\":$1,.*\"warm_up\":false" "$WORK/a/calibration/raw/same-node/passes.jsonl" | grep -cE "\"drafted\":$2,"; }
expect "steps of the calibration do not have the rows of drafts" \
    '[ "$(rows 0 0)" -ge 3 ] && [ "$(rows 0 "[1-9][0-9]*")" = 0 ] && [ "$(rows 1 0)" = 0 ] && [ "$(rows 1 "[1-9][0-9]*")" -ge 3 ] && [ "$(rows 2 "[1-9][0-9]*")" -ge 3 ]'
expect "prompts are measured that calibrated" '[ "$(sort "$WORK/a/prompts.jsonl" "$WORK/a/calibration/prompts.jsonl" | uniq -d | wc -l)" = 0 ] &&
    [ "$(wc -l <"$WORK/a/prompts.jsonl")" = 8 ] && [ "$(wc -l <"$WORK/a/calibration/prompts.jsonl")" = 32 ] &&
    [ "$(sort "$WORK/a/prompts.jsonl" "$WORK/a/calibration/prompts.jsonl" | comm -23 - <(sort "$SOURCE/launch/demo/bench.jsonl") | wc -l)" = 0 ]'
expect "not every cell is predicted: $(grep -c predicted_before "$WORK/a/summary.json")" \
    '[ "$(grep -c "\"predicted_before\"" "$WORK/a/summary.json")" = "$(grep -c "\"solo\":" "$WORK/a/bench.json")" ] && [ "$(grep -c "\"measured_hit_rate\"" "$WORK/a/summary.json")" = 11 ]'
expect "not every cell with drafts tells what was drafted ahead: $(grep -c '"run_ahead"' "$WORK/a/summary.json")" \
    '[ "$(grep -c "\"run_ahead\"" "$WORK/a/summary.json")" = 8 ] && ! grep -v "\"configuration\"" "$WORK/a/raw/same-node/passes.jsonl" | grep -qv "\"run_ahead\":{\"proposals\":[0-9]*,\"bytes\":"'
for page in report.md report.html; do
    expect "$page does not say what was predicted" 'grep -q "Predicted before any draft was made: tokens/s within 10 % for [0-9]* of 8 cells with drafts" "$WORK/a/$page" &&
        grep -q "Calibrated on prompts of the file that are not measured" "$WORK/a/$page" && grep -q "Predicted, then measured" "$WORK/a/$page"'
done
expect "the report has no table of messages" 'grep -q "| propose " "$WORK/a/report.md"'
expect "no figures in the page" '[ "$(grep -c "<svg" "$WORK/a/report.html")" -ge 8 ] && [ "$(grep -c "the paper.s Fig. [234]" "$WORK/a/report.html")" = 3 ]'
expect "the report does not lead to the rounds of a prompt" 'grep -q "href=.rounds.html." "$WORK/a/report.html" && [ "$(grep -c "^<h2>round [0-9]*, greedy: " "$WORK/a/rounds.html")" -ge 1 ]'
expect "the page wants something from elsewhere" '! grep -qE "https?://|<script|url\(" "$WORK/a/report.html"'
expect "messages in two columns" 'grep -qE "^# Size +Avg Latency\(us\)$" "$WORK/a/raw/same-node/latency.txt" && grep -qE "^[0-9]+ +[0-9.]+$" "$WORK/a/raw/same-node/latency.txt"'
# Every round of every repetition is a row whose phases add up to it.
expect "phases do not add up to rounds" 'awk -F, "NR > 1 { s = 0; for (i = 15; i <= 25; i++) s += \$i; if (s - \$9 > 1.2 || \$9 - s > 1.2) exit 1 } END { exit NR < 30 }" "$WORK/a/rounds.csv"'
# Proposals, the steps that verify them, and commits are linked across ranks.
for flow in proposal verify commit; do
    expect "no flow $flow in the timeline" 'grep -q "\"ph\":\"s\".*\"$flow\"" "$WORK/a/trace.json" && grep -q "\"ph\":\"f\".*\"$flow\"" "$WORK/a/trace.json"'
done

# Predicted from a file of tandem alpha; cells of another temperature than its are not. One of another pair is refused before anything is measured.
again=(--draft-lengths 2 --batches 1 --repetitions 2 --requests 1 --max-tokens 4 --noise-limit 1000 --extra-time 0)
"$tandem" alpha --prompts "$PROMPTS" --tokens 60 --json "$WORK/alpha.json" >"$WORK/out" || fail "alpha: exit $?"
"$tandem" bench "${again[@]}" --temperatures 0,1 --accepts rejection --alpha "$WORK/alpha.json" --output "$WORK/offline" >"$WORK/out" 2>"$WORK/err" || fail "--alpha: exit $?: $(cat "$WORK/err")"
expect "--alpha: $(grep -o "\"cell\": [0-9]*" "$WORK/offline/prediction.json")" \
    '[ "$(grep -o "\"cell\": [0-9]*" "$WORK/offline/prediction.json" | tr "\n" " ")" = "\"cell\": 0 \"cell\": 1 \"cell\": 2 " ] && grep -q "Calibrated on the texts of --alpha" "$WORK/offline/report.md"'
if [ "$2" != small ]; then # the same code over other cells, prompts and verdicts
    # A rule that is another one than greedy at temperature 0, too, is a cell of its own there, under its name; and nothing says that it is lossless.
    "$tandem" bench "${again[@]}" --temperatures 0 --accepts rejection,lenience,lenience=0.3 --output "$WORK/cold" >"$WORK/out" 2>"$WORK/err" || fail "cold: exit $?: $(cat "$WORK/err")"
    expect "cold: $(cat "$WORK/cold/report.md")" 'grep -q "^| T 0, K 2 " "$WORK/cold/report.md" && grep -q "^| T 0 lenience, K 2 " "$WORK/cold/report.md" &&
        grep -q "NOT LOSSLESS" "$WORK/cold/report.md" && grep -q "^| T 0 lenience=0.3, K 2 " "$WORK/cold/report.md" &&
        grep -q "Table 5 for this pair" "$WORK/cold/report.md" && grep -q "^| draft *| *0 | any *| yes " "$WORK/cold/report.md" && grep -q "^| draft *| *0 | lenience=0.3 *| no " "$WORK/cold/report.md" &&
        [ "$(grep -o "\"cell\": [0-9]*" "$WORK/cold/prediction.json" | tr "\n" " ")" = "\"cell\": 0 \"cell\": 1 \"cell\": 2 \"cell\": 4 " ]'
fi
# Texts of one token have no time per token after the first, and speeds all the same.
"$tandem" bench "${again[@]}" --temperatures 0 --accepts rejection --max-tokens 1 --output "$WORK/short" >"$WORK/out" 2>"$WORK/err" || fail "one token: exit $?: $(cat "$WORK/err")"
expect "one token: $(grep "^| T 0, K 2" "$WORK/short/report.md")" \
    '[ "$(awk -F "|" "/^. T 0, K 2 / { gsub(/[ ~x]/, \"\", \$5); print (\$5 + 0 > 0); exit }" "$WORK/short/report.md")" = 1 ] && ! grep -q "infx" "$WORK/short/report.md"'
if [ -n "${TANDEM_WIDE:-}${TANDEM_LONG:-}" ] && [ "$2" != small ]; then
    # One prompt calibrates and is measured. Drawn verdicts are not predicted.
    "$tandem" bench "${again[@]}" --temperatures 0 --prompt "It was" --output "$WORK/one" >"$WORK/out" 2>"$WORK/err" || fail "one prompt: exit $?: $(cat "$WORK/err")"
    expect "one prompt: $(cat "$WORK/err")" 'grep -q "Calibrated on the prompt that is measured, for there is no other" "$WORK/one/report.md"'
    "$tandem" bench "${again[@]}" --temperatures 0 --synthetic-acceptance 0.5 --output "$WORK/drawn" >"$WORK/out" 2>"$WORK/err" || fail "drawn: exit $?: $(cat "$WORK/err")"
    expect "drawn verdicts are predicted" '[ ! -e "$WORK/drawn/prediction.json" ] && ! grep -q "Predicted" "$WORK/drawn/report.md"'
    # The reading of a prompt is predicted, too: some 200 rows are more work than five steps of one.
    "$tandem" bench "${again[@]}" --temperatures 0 --prompt "$(printf 'It was the best of times. %.0s' {1..30})" --output "$WORK/long" >"$WORK/out" 2>"$WORK/err" || fail "a long prompt: exit $?: $(cat "$WORK/err")"
    expect "a long prompt: $(head -n 24 "$WORK/long/prediction.json")" \
        '[ "$(awk -F "[:,]" "/\"verify_us\"/ { v = \$2 } /\"outside_us\"/ { print (\$2 > 5 * v); exit }" "$WORK/long/prediction.json")" = 1 ]'
    # Of a rule that accepts another share than the models agree in nothing is predicted.
    "$tandem" bench "${again[@]}" --temperatures 1 --accepts rejection,classic --output "$WORK/rules" >"$WORK/out" 2>"$WORK/err" || fail "rules: exit $?: $(cat "$WORK/err")"
    expect "rules: $(grep -o "\"cell\": [0-9]*" "$WORK/rules/prediction.json")" \
        '[ "$(grep -o "\"cell\": [0-9]*" "$WORK/rules/prediction.json" | tr "\n" " ")" = "\"cell\": 0 \"cell\": 1 \"cell\": 2 " ] && grep -q "classic" "$WORK/rules/report.md"'
    # Several sequences at the first temperature alone, or at each.
    for which in first all; do
        "$tandem" bench "${again[@]}" --temperatures 0,1 --batches 1,2 --batch-terms $which --synthetic-acceptance 0.5 --output "$WORK/terms-$which" >"$WORK/out" 2>"$WORK/err" ||
            fail "--batch-terms $which: exit $?: $(cat "$WORK/err")"
    done
    expect "--batch-terms: $(grep -h "2 sequences" "$WORK"/terms-*/summary.json)" \
        '[ "$(grep -c "\"name\": \"T 1 .*2 sequences" "$WORK/terms-first/summary.json")" = 0 ] && [ "$(grep -c "\"name\": \"T 1 .*2 sequences" "$WORK/terms-all/summary.json")" = 2 ]'
fi

# Who ends it while the target is measured alone ends all of it.
"$tandem" bench --draft-lengths 2 --batches 1 --repetitions 2 --requests 12 --max-tokens 400 --temperatures 0 --noise-limit 1000 --output "$WORK/ended" >"$WORK/out" 2>"$WORK/err" &
await "the target to be measured" '[ -s "$WORK/ended/calibration/bench.json" ] || ls "$WORK/ended/calibration/raw" >/dev/null 2>&1'
kill -TERM $!
wait $!
code=$?
expect "ended: exit $code, $(cat "$WORK/err")" '[ $code = 143 ] && ! grep -q "nothing is predicted" "$WORK/err" && ! grep -q "a warm-up and" "$WORK/err"'

# Two tasks, two drafts: each with each, in one report with the paper's tables; and that report anew.
head -n 4 "$PROMPTS" >"$WORK/stories.in"
tail -n 4 "$PROMPTS" >"$WORK/letters.in"
"$tandem" bench "${again[@]}" --quick --temperatures 0 --task stories="$WORK/stories.in" --task "letters=$WORK/letters.in" --draft embedded --draft lookup --output "$WORK/set" \
    >"$WORK/out" 2>"$WORK/err" || fail "two tasks, two drafts: exit $?: $(cat "$WORK/err")"
expect "not each task with each draft: $(ls "$WORK/set")" \
    '[ "$(cd "$WORK/set" && ls -d 0*/ | tr "\n" " ")" = "01-stories-embedded/ 02-stories-lookup/ 03-letters-embedded/ 04-letters-lookup/ " ] && [ "$(ls "$WORK/set"/0*/report.html | wc -l)" = 4 ]'
expect "a part has the prompts of another task" 'grep -qFf "$WORK/set/03-letters-embedded/prompts.jsonl" "$WORK/letters.in" && ! grep -qFf "$WORK/set/03-letters-embedded/prompts.jsonl" "$WORK/stories.in"'
for table in 1 2 3 4; do
    expect "no table $table in $(cat "$WORK/set/report.md")" '[ "$(sed -n "/^## Table $table/,/^## [^T]*$/p" "$WORK/set/report.md" | sed "1d; /^## Table/,\$d" | grep -cE "^. (stories|letters) +. (draft|lookup:min=1,max=4) +. +0 . any ")" = 4 ]'
done
expect "the page of a set has no figures" '[ "$(grep -c "the paper.s Fig. [234]" "$WORK/set/report.html")" = 3 ] && [ "$(grep -o "class=.dot pair" "$WORK/set/report.html" | wc -l)" -ge 6 ]'
expect "the whole does not say how predictions hold" 'grep -q "within 10 % for [0-4] of 4 cells with drafts of all parts" "$WORK/set/report.md"'
# Two shapes: the same numbers of drafts in each; nothing is predicted of the tree, and no length is chosen for it.
"$tandem" bench --draft-lengths 2,auto --temperatures 0 --batches 1 --repetitions 2 --requests 2 --max-tokens 12 --noise-limit 1000 --extra-time 0 --tree chain --tree top-k --output "$WORK/shapes" \
    >"$WORK/out" 2>"$WORK/err" || fail "two shapes: exit $?: $(cat "$WORK/err")"
for shape in chain top-k; do
    expect "no $shape in $(cat "$WORK/shapes/report.md")" '[ "$(sed -n "/^## Shapes/,/^## Table 4/p" "$WORK/shapes/report.md" | grep -cE "^. completion +. draft +. +0 . any +. +2 . $shape +. +[1-3]\.")" = 1 ]'
done
expect "a length is chosen for a tree" '! grep -q "K auto" "$WORK/shapes/02-prompts-draft-top-k/report.md" && grep -q "K auto" "$WORK/shapes/01-prompts-draft-chain/report.md"'
expect "something is predicted of a tree" '[ ! -e "$WORK/shapes/02-prompts-draft-top-k/prediction.json" ] && [ -s "$WORK/shapes/01-prompts-draft-chain/prediction.json" ]'
refused 65 "it is of several tasks, drafts or shapes, expected the folder of one of its parts" report "$WORK/shapes" "$WORK/set"
rm "$WORK/set"/report.* "$WORK/set"/0*/report.*
"$tandem" report "$WORK/set" --noise-limit 1000 >"$WORK/out" 2>"$WORK/err" || fail "report of a set: exit $?: $(cat "$WORK/err")"
expect "the report of a set did not come back" '[ -s "$WORK/set/report.html" ] && [ "$(ls "$WORK/set"/0*/report.md | wc -l)" = 4 ] && grep -q "^## Table 4" "$WORK/out"'

# A report is written anew from the raw figures; a run is as fast as itself.
rm "$WORK/a/report.md"
"$tandem" report "$WORK/a" --noise-limit 1000 >/dev/null 2>"$WORK/err" || fail "report: exit $?: $(cat "$WORK/err")"
expect "report.md did not come back" '[ -s "$WORK/a/report.md" ]'
"$tandem" report "$WORK/a" "$WORK/a" >"$WORK/out" 2>"$WORK/err" || fail "a run beside itself: exit $?"
expect "a run differs from itself" 'grep -q "No figure of B is worse beyond noise" "$WORK/out" && ! grep -q SLOWER "$WORK/out"'
# Of two calm ones: where repetitions lie far apart, as on a crowded machine, no difference is beyond noise.
mkdir "$WORK/calm" "$WORK/slow"
sed -E 's/("[a-z_]*_spread": )[0-9.e+-]+/\10/' "$WORK/a/summary.json" >"$WORK/calm/summary.json"
sed -E 's/"output_throughput": [0-9.]+/"output_throughput": 0.001/' "$WORK/calm/summary.json" >"$WORK/slow/summary.json"
"$tandem" report "$WORK/calm" "$WORK/slow" >"$WORK/out" 2>&1
code=$?
expect "a slower run is not told, or not with 1" '[ $code = 1 ] && grep -q SLOWER "$WORK/out"'

# A disk without room for it: what was reported before stays whole, and nothing half-written lies beside it.
mkdir "$WORK/before" && cp "$WORK/a"/*.* "$WORK/before"
(trap '' XFSZ && ulimit -f 1 && exec "$tandem" report "$WORK/a" --noise-limit 1000) >/dev/null 2>"$WORK/err"
code=$?
expect "no room: $code, $(cat "$WORK/err")" '[ $code = 74 ] && grep -q "summary.json: File too large" "$WORK/err"'
expect "no room: the earlier report changed" 'for file in "$WORK/before"/*; do cmp -s "$file" "$WORK/a/${file##*/}" || exit 1; done'
expect "no room: half a file is left" '! ls "$WORK/a"/*.new >/dev/null 2>&1'

# Too noisy: the report is there, its figures are marked, and instead of a headline there is one line that says by how much. The repetitions of a pass
# never take the same time to the nanosecond.
rm "$WORK/a/report.md"
"$tandem" report --noise-limit 0 "$WORK/a" >"$WORK/out" 2>"$WORK/err"
code=$?
expect "a noisy run: exit $code, $(cat "$WORK/err")" '[ $code = 1 ] && [ ! -s "$WORK/err" ]'
expect "a noisy run is not told: $(cat "$WORK/out")" '[ "$(grep -c "^No headline: the machine was too noisy. 8 of 8 speedups have a standard error beyond the limit of 0.0 %" "$WORK/out")" = 1 ]'
expect "a noisy run has no report" 'grep -q "^No headline" "$WORK/a/report.md" && [ "$(grep -c "| *~[0-9.]*x |" "$WORK/a/report.md")" = 8 ]'
expect "a noisy run has no summary" '[ "$(grep -c "\"beyond_noise_limit\": true" "$WORK/a/summary.json")" = 8 ] && grep -q "\"headline\": false" "$WORK/a/summary.json"'

# What is noisy is repeated until the time is up: no two repetitions are ever within 0 %. A calm sweep, whose limit nothing is beyond, is not.
again=(--draft-lengths 2 --temperatures 0 --batches 1 --repetitions 2 --requests 1 --max-tokens 4)
for limit in 0 1000; do
    "$tandem" bench "${again[@]}" --noise-limit $limit --extra-time 0.3 --output "$WORK/again$limit" >"$WORK/out" 2>"$WORK/err"
    code=$?
    expect "limit $limit: exit $code: $(cat "$WORK/err")" '[ $code = $((limit == 0)) ]'
    passes=$(grep -c "\"repetition\"" "$WORK/again$limit/raw/same-node/passes.jsonl")
    expect "limit $limit: $passes passes of two cells" 'if [ $limit = 0 ]; then [ $passes -gt 6 ] && [ $((passes % 2)) = 0 ]; else [ $passes = 6 ]; fi'
done
expect "further repetitions are not said" 'grep -qE "and more of those that were noisy: ([3-9]|[0-9]{2,}) to" "$WORK/again0/report.md"'

# How many drafts a drawn tree has may not depend on what became of those before, which were drawn beside each other: where the length is left open it is
# the usual one in each round.
"$tandem" bench "${again[@]}" --noise-limit 1000 --extra-time 0 --tree top-k --accepts multistep --temperatures 1 --draft-lengths 11,12 --requests 3 --max-tokens 24 --output "$WORK/open" >"$WORK/out" 2>"$WORK/err" ||
    fail "a tree of any number of drafts: exit $?: $(cat "$WORK/err")"
sed -i 's/"draft_length": *11\b/"draft_length": -1/' "$WORK/open/raw/same-node/plan.json"
rm "$WORK/open/raw/same-node/passes.jsonl"
"$tandem" run --sweep "$WORK/open/raw/same-node/plan.json" --prompts "$WORK/open/prompts.jsonl" --tree top-k --drafters 1 --verifiers 1 --max-tokens 24 --ignore-eos >"$WORK/out" 2>"$WORK/err" ||
    fail "a tree whose length is left open: exit $?: $(cat "$WORK/err")"
grep "\"cell\":[12],.*\"warm_up\":false" "$WORK/open/raw/same-node/passes.jsonl" | grep -o "\"drafted\":[0-9]*" >"$WORK/open.drafted"
if grep -q '"fallback_rounds":[1-9]' "$WORK/open/raw/same-node/passes.jsonl"; then
    echo "open: drafts not counted, for the drafter missed a deadline"
else
    expect "a tree whose length was left open has others: $(cat "$WORK/open.drafted")" '[ "$(wc -l <"$WORK/open.drafted")" -ge 4 ] && [ "$(sort -u "$WORK/open.drafted" | wc -l)" = 1 ]'
fi

# What is refused before anything is started.
refused 64 "--draft-lengths is '1,x', expected .*numbers from 0 to 63 or auto" bench --draft-lengths 1,x --output "$WORK/none"
refused 64 "--repetitions is '0', expected a whole number from 1 to 1000$" bench --repetitions 0 --output "$WORK/none"
refused 64 "--requests is '2.5', expected a whole number from 1 to 100000$" bench --requests 2.5 --output "$WORK/none"
refused 64 "--noise-limit is 'x', expected a number from 0 to 1000$" bench --noise-limit x --output "$WORK/none"
refused 64 "--extra-time is '-1', expected a number from 0 to 1e\+06$" bench --extra-time -1 --output "$WORK/none"
refused 64 "--output is '', expected a new folder" bench --output=
refused 64 "--accepts is 'multistage', expected at most 16 of rejection|coupled" bench --accepts multistage --output "$WORK/none"
refused 64 "--task is 'stories', expected NAME=FILE" bench --task stories --output "$WORK/none"
refused 64 "--task is '=x', expected NAME=FILE" bench --task =x --output "$WORK/none"
refused 64 "--task is 'a/b=x', expected NAME=FILE, a name of letters" bench --task a/b=x --output "$WORK/none"
refused 64 "--task has the name 'a' twice, for $PROMPTS and for $WORK/stories.in" bench --task a="$PROMPTS" --task a="$WORK/stories.in" --output "$WORK/none"
refused 66 "--task a: $WORK/no.in: No such file" bench --task a="$WORK/no.in" --output "$WORK/none"
refused 64 "--task names files of prompts, expected no --prompts beside it" bench --task a="$PROMPTS" --prompts "$PROMPTS" --output "$WORK/none"
refused 64 "--tree has 'top-k' twice" bench --tree top-k --tree=top-k --output "$WORK/none"
refused 64 "--tree is 'bush', expected chain" bench --tree chain --tree bush --output "$WORK/none"
refused 64 "--draft-lengths has auto alone, and of a tree no length is chosen" bench --tree top-k --draft-lengths auto --output "$WORK/none"
refused 64 "none of --accepts decides about the shape of drafts" bench --tree iid --accepts walk --output "$WORK/none"
refused 64 "--draft has 'lookup' twice" bench --draft lookup --draft=lookup --output "$WORK/none"
refused 66 "nothing: no such file or folder" bench --target "$SOURCE/launch/demo/target" --draft lookup --draft "$WORK/nothing" --output "$WORK/unused"
expect "a draft that is missing leaves $(ls "$WORK/unused")" '[ ! -e "$WORK/unused" ] || rmdir "$WORK/unused"'
refused 64 "--batch-terms is 'some', expected first or all" bench --batch-terms some --output "$WORK/none"
refused 64 "--alpha $WORK/alpha.json is of the target 'embedded', expected one of '$SOURCE/launch/demo/draft'" bench --target "$SOURCE/launch/demo/draft" --draft lookup --alpha "$WORK/alpha.json" --output "$WORK/none"
refused 64 "--alpha $WORK/alpha.json says nothing of the draft 'lookup'" bench --draft lookup --alpha "$WORK/alpha.json" --output "$WORK/none"
refused 65 "bench.json: there is no target, temperature, accept or draft, expected what tandem alpha --json writes" bench --alpha "$WORK/a/bench.json" --output "$WORK/none"
refused 66 "$WORK/no.json: No such file" bench --alpha "$WORK/no.json" --output "$WORK/none"
refused 66 "--prompts $WORK/no.jsonl: No such file" bench --prompts "$WORK/no.jsonl" --output "$WORK/unused"
expect "missing prompts leave $(ls "$WORK/unused")" 'rmdir "$WORK/unused"'
refused 64 "unknown option '--qwick'; did you mean '--quick'\?" bench --qwick --output "$WORK/none"
refused 64 "unknown option '--seeed'; did you mean '--seed'\?" bench --seeed 3 --output "$WORK/none"
refused 64 "a bench measures one kind of drafter, expected no --merge" bench --merge lookup --output "$WORK/none"
refused 64 "a bench measures one shape at given lengths, expected --tree chain, dynamic, sequoia or top-k, each once, not auto" bench --tree auto --output "$WORK/none"
refused 64 "a bench compares drafts with the target alone" bench --solo --output "$WORK/none"
refused 64 "--temperature is what a bench varies, expected --temperatures" bench --temperature 0.5 --output "$WORK/none"
refused 64 "--prompts is -, expected a file" bench --prompts - --output "$WORK/none"
refused 64 "is not empty, expected a new folder" bench --quick --output "$WORK/a"
refused 64 "5 verifiers cannot share this model" bench --verifiers 5 --output "$WORK/unused"
refused 66 "nothing: no such file or folder" bench --target "$WORK/nothing" --draft lookup --output "$WORK/unused"
expect "a bench that measured nothing leaves $(ls "$WORK/unused"), which would refuse the next" 'rmdir "$WORK/unused"'
"$tandem" bench --quick --mpirun-options --no-such-option --output "$WORK/unused" >"$WORK/out" 2>"$WORK/err"
code=$?
expect "a job that could not be started: $code, $(cat "$WORK/err")" '[ $code = 71 ]'
expect "a job that could not be started leaves $(ls "$WORK/unused")" 'rmdir "$WORK/unused"'
refused 74 "--output|No such file" bench --quick --output "$WORK/none/deep"
refused 66 "bench.json: No such file" report "$WORK/none"
refused 66 "summary.json: No such file" report "$WORK/a" "$WORK/none"
refused 64 "unexpected argument '--x'" report --x
expect "what was refused left a folder" '[ ! -e "$WORK/none" ]'
"$BIN/tandem-verifier" --dry-run --prompt x --trace "$WORK/none" >/dev/null 2>"$WORK/err"
code=$?
expect "a trace into no folder: $code, $(cat "$WORK/err")" '[ $code = 74 ] && grep -q "trace .* is no folder" "$WORK/err"'

# One that a drafter alone cannot write: told once, before anything is decoded.
mkdir -p "$WORK/mine/rank-0000.csv"
job mine --prompt x --trace "$WORK/mine"
code=$?
expect "a trace that the drafter cannot write: $code, $(cat "$WORK/mine.err")" \
    '[ $code = 74 ] && [ "$(grep -c . "$WORK/mine.err")" = 1 ] && grep -q "error: --trace: .*/rank-0000.csv: Is a directory" "$WORK/mine.err" && [ ! -e "$WORK/mine.jsonl" ]'

# A trace changes no bit of what comes out.
head -n 6 "$PROMPTS" >"$WORK/some.in"
mkdir "$WORK/trace"
some=(--prompts "$WORK/some.in" --max-tokens 24 --accept coupled --temperature 0.8 --draft-length 3 --seed 3 --verifiers 2 --hash-logits)
job plain "${some[@]}" || fail "plain: exit $?: $(cat "$WORK/plain.err")"
job traced "${some[@]}" --trace "$WORK/trace" || fail "traced: exit $?: $(cat "$WORK/traced.err")"
same traced plain
expect "the ranks left no trace" '[ "$(ls "$WORK/trace" | tr "\n" " ")" = "clocks.csv rank-0000.csv rank-0001.csv rank-0002.csv " ]'
expect "followers wait, verify and gather" 'for phase in wait verify gather; do grep -q "^$phase," "$WORK/trace/rank-0002.csv" || exit 1; done'

# Rounds of the lead say how many of their sequences had a proposal, and how many found it drafted already; what it reads says so, too, and its bytes.
mkdir "$WORK/ahead"
job ahead --prompts "$WORK/some.in" --max-tokens 48 --temperature 0 --draft-length 3 --run-ahead on --branches 4 --max-sequences 1 --drafters 1 --verifiers 1 --trace "$WORK/ahead" ||
    fail "ahead: exit $?: $(cat "$WORK/ahead.err")"
sums=$(awk -F, '$1 == "round" { with += $7; hits += $8 } $1 == "unpack" { read++; early += $7; bytes += $8 } END { print with + 0, hits + 0, read + 0, early + 0, bytes + 0 }' "$WORK/ahead/rank-0001.csv")
read -r with hits reads early bytes <<<"$sums"
expect "the trace has $sums: proposals, hits, messages, tokens drafted ahead, bytes; the figures $(figure ahead hits) hits, $(figure ahead received) messages of $(figure ahead received_bytes) bytes" \
    '[ "$hits" -gt 0 ] && [ "$hits" = "$(figure ahead hits)" ] && [ "$with" -ge "$hits" ] && [ "$with" -le "$(figure ahead rounds)" ] && [ "$early" -ge $((3 * hits / 2)) ] &&
    [ "$reads" -le "$(figure ahead received)" ] && [ "$bytes" -le "$(figure ahead received_bytes)" ] && [ "$bytes" -gt $((20 * reads)) ]'

# Drawn verdicts: the rate is what was asked for (4 deviations of about 1,000 drafts), and nothing is without its mark.
head -n 24 "$PROMPTS" >"$WORK/more.in"
job drawn --prompts "$WORK/more.in" --max-tokens 64 --ignore-eos --temperature 1 --draft-length 4 --synthetic-acceptance 0.8 || fail "drawn: exit $?: $(cat "$WORK/drawn.err")"
expect "alpha is $(figure drawn alpha), not 0.8" 'awk -v a="$(figure drawn alpha)" "BEGIN { exit !(a > 0.75 && a < 0.85) }"'
expect "stderr does not say NOT LOSSLESS at the begin and at the end" '[ "$(grep -c "NOT LOSSLESS" "$WORK/drawn.err")" = 2 ]'
expect "the figures do not say it" '[ "$(figure drawn lossless)" = false ] && [ "$(figure plain lossless)" = true ]'
expect "a result does not say it" '[ "$(grep -c "\"lossless\":false" "$WORK/drawn.jsonl")" = 24 ] && ! grep -q lossless "$WORK/plain.jsonl"'
# So are lines that ask for rules that are not.
{ cat "$WORK/more.in" && printf '%s\n' '{"prompt": "It was", "max_tokens": 4, "accept": "lenience", "lenience": 0.2}' '{"prompt": "They", "max_tokens": 4, "accept": "threshold"}'; } >"$WORK/lenient.in"
job lenient --prompts "$WORK/lenient.in" --max-tokens 4 || fail "lenient: exit $?: $(cat "$WORK/lenient.err")"
expect "two lines are not lossless: $(cat "$WORK/lenient.err")" '[ "$(grep -c "NOT LOSSLESS, by line 25, accept lenience" "$WORK/lenient.err")" = 2 ] &&
    [ "$(grep -c "accept lenience, and 1 further line: what comes out of them" "$WORK/lenient.err")" = 1 ] &&
    [ "$(figure lenient lossless)" = false ] && [ "$(grep -c "\"lossless\":false" "$WORK/lenient.jsonl")" = 2 ]'
refused 64 "--synthetic-acceptance 0.5 is not lossless by intent, and of no law: expected no check of it" check --synthetic-acceptance 0.5
refused 64 "synthetic-acceptance is '2', expected a number from 0 to 1" run --prompt x --synthetic-acceptance 2
finish
