#!/usr/bin/env bash
# The rounds of a completion as a page: it has each round and the text that was written, and a browser, where there is one, shows one round at a time and
# heeds keys. explain_page.sh BIN
. "$(dirname "$0")/job.sh"
PAGE=$WORK/page.html

# completes OPTION...: a prompt's completion goes to $WORK/out, its rounds to PAGE; sets CODE.
completes() {
    local line
    line=$("$BIN/tandem-verifier" --dry-run --prompt '"The <b>sea</b> & was' --max-tokens 24 --verifiers 1 --drafters 1 --seed 5 --stats "$WORK/stats.json" "$@") ||
        fail "--dry-run $*: exit $?"
    eval "$line" >"$WORK/out" 2>"$WORK/err" </dev/null
    CODE=$?
}

# page_is RULE OPTION...: of a job with these options, which has that rule, it is whole.
page_is() {
    local rule=$1 rounds
    shift
    completes --explain-page "$PAGE" "$@"
    check_that "$*: exit $CODE: $(cat "$WORK/err")" [ "$CODE" = 0 ]
    rounds=$(figure stats rounds)
    check_that "$*: no rounds are known" [ "${rounds:-0}" -gt 0 ]
    check_that "$*: not each of $rounds rounds is there" [ "$(grep -cE "^<h2>round [0-9]*, $rule(, a tree)?: " "$PAGE")" = "$rounds" ]
    check_that "$*: not each round's text is there" [ "$(grep -o '<span data-round=' "$PAGE" | wc -l)" = "$rounds" ]
    # The text of the page is the prompt and what went to stdout, a new line behind it.
    tr '\n' '\001' <"$PAGE" | sed 's/.*<div id="text">//; s/<\/div>.*//; s/<[^>]*>//g; s/&lt;/</g; s/&gt;/>/g; s/&quot;/"/g; s/&amp;/\&/g' | tr '\001' '\n' >"$WORK/text"
    echo >>"$WORK/text"
    { printf '"The <b>sea</b> & was'; cat "$WORK/out"; } >"$WORK/expected"
    check_that "$*: the text is another: $(diff "$WORK/expected" "$WORK/text" | head -n 4)" cmp -s "$WORK/expected" "$WORK/text"
}

check_that() {
    local what=$1
    shift
    checks=$((checks + 1))
    "$@" || fail "$what"
}

page_is rejection --accept rejection --temperature 0.9 --draft-length 4
check_that "a chain has no q and p" grep -q '<div class="bar q">q<i style="width:[0-9.]*%"></i><u>0\.[0-9]*</u></div><div class="bar p">' "$PAGE"
page_is walk --accept walk --temperature 0.9 --tree dynamic:depth=3 --draft-length 8
check_that "a tree has no draft that was not looked at" grep -q '<li class="passed">' "$PAGE"
page_is rejection --accept rejection --temperature 0.9 --solo
cp "$PAGE" "$WORK/solo.html"

# By the heuristic each proposal is as long as the verdict about the one before says; what a drafter missed has none, and at the end fewer are wanted.
page_is greedy --temperature 0 --max-tokens 80 --run-ahead off --stop-drafting heuristic
sed -n 's/^<h2>round [0-9]*, greedy: \([0-9]*\) of \([0-9]*\) drafts accepted.*/\1 \2/p; s/^<h2>round [0-9]*, greedy: no draft.*/0 0/p' "$PAGE" >"$WORK/lengths"
wrong=$(awk 'BEGIN { length_ = 5; left = 80 }
    $2 != 0 && $2 != (length_ < left - 1 ? length_ : left - 1) { print "round " NR ": " $2 " drafts, expected " length_ }
    { left -= $1 + 1 }
    $2 != 0 { length_ += $1 == $2 ? 2 : -1; if (length_ < 1) length_ = 1; if (length_ > 12) length_ = 12; seen[$2] = 1 }
    END { for (n in seen) several++; if (several < 3) print several " lengths" }' "$WORK/lengths")
check_that "heuristic: $wrong" [ -z "$wrong" ]

refused=$("$BIN/tandem-verifier" --dry-run --prompt a --explain-page "$WORK/none/page" 2>&1)
check_that "a folder that is not there: $refused" [ "$refused" = "tandem: error: --explain-page $WORK/none/page: No such file or directory" ]
refused=$("$BIN/tandem-verifier" --dry-run --prompt a --explain-page - 2>&1)
check_that "stdout: $refused" [ "$refused" = "tandem: error: --explain-page is '-', expected the name of a file" ]
refused=$("$BIN/tandem-verifier" --dry-run --prompt a --explain-page '' 2>&1)
check_that "nowhere: $refused" [ "$refused" = "tandem: error: --explain-page is '', expected the name of a file" ]
refused=$("$BIN/tandem-verifier" --dry-run --prompt a --stats "$PAGE" --explain-page "$PAGE" 2>&1)
check_that "two in one: $refused" [ "$refused" = "tandem: error: --explain-page $PAGE is the file of --stats, expected another file" ]

browser=$(command -v chromium || command -v google-chrome) || {
    echo "skipped: no chromium is here, which would show the page and press its keys"
    finish
}

# shown ROUND SCRIPT: which round the page shows, and how, after the script; to $WORK/dom.
shown() {
    page_of=$(wc -c <"$PAGE")
    { head -c "$((page_of - 1))" "$PAGE"; echo "<script>const press=key=>document.dispatchEvent(new KeyboardEvent('keydown',{key}));$2</script>"; } >"$WORK/pressed.html"
    timeout 60 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$WORK/browser" --dump-dom "file://$WORK/pressed.html#$1" >"$WORK/dom" 2>/dev/null
    shown=$(grep -A 1 '^<section>' "$WORK/dom" | sed -n 's/^<h2>round \([0-9]*\),.*/\1/p')
}

page_is rejection --accept rejection --temperature 0.9 --draft-length 2
rounds=$(grep -c '^<h2>round ' "$PAGE")
check_that "too few rounds to step through: $rounds" [ "$rounds" -ge 4 ]
shown 1 ""
check_that "the first round is not shown alone: '$shown'" [ "$shown" = 1 ]
shown 3 ""
check_that "the address names a round: '$shown'" [ "$shown" = 3 ]
check_that "the round is not counted" grep -q "<output>3 of $rounds</output>" "$WORK/dom"
check_that "its text is not marked" grep -q '<span data-round="3" class="now">' "$WORK/dom"
check_that "later text is there" grep -q '<span data-round="4" class="later">' "$WORK/dom"
shown 3 "press('ArrowRight')"
check_that "right: '$shown'" [ "$shown" = 4 ]
shown 3 "press('ArrowLeft');press('ArrowLeft');press('ArrowLeft')"
check_that "left, and no further than the first: '$shown'" [ "$shown" = 1 ]
shown 1 "press('End');press('ArrowRight')"
check_that "the last: '$shown'" [ "$shown" = "$rounds" ]
shown 3 "press('Home')"
check_that "the first: '$shown'" [ "$shown" = 1 ]
shown 2 "document.querySelectorAll('nav button')[1].click()"
check_that "a button: '$shown'" [ "$shown" = 3 ]
finish
