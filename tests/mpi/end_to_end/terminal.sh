#!/usr/bin/env bash
# What a person sees on a terminal, which `script` makes: a bar that counts prompts apart and is cleared before other lines, a word of the journal
# after Ctrl-C, plain completions, drafts where they are asked for, a line while a long prompt is read, help as wide as the terminal.
# terminal.sh BIN SLOW, a folder of the two programs on a machine that is slow where they are told
. "$(dirname "$0")/job.sh"
. "$(dirname "$0")/batch.sh"
mkdir "$WORK/bin"
cp "$SOURCE/launch/tandem" "$BIN/tandem-verifier" "$BIN/tandem-drafter" "$WORK/bin/" # as installed
if ! command -v script >/dev/null; then
    echo "skipped: script is not there, which makes a terminal"
    exit 77
fi
ESCAPE=$'\033'
expect() { # WHAT TEST...
    local what=$1
    shift
    checks=$((checks + 1))
    "$@" || fail "$what: $(tail -c 700 "$WORK/typed" | cat -v)"
}
on_terminal() { # COMMAND: what it writes goes to $WORK/typed, without script's own lines
    TERM=xterm timeout -k 5 120 script -qfec "$1" "$WORK/typed" >/dev/null 2>&1 </dev/null
}
has() { grep -aqE -- "$1" "$WORK/typed"; }
has_not() { ! has "$1"; }

# A bar: it stands while prompts are read, counts what is done, and is cleared before the line of a prompt that is wrong.
for i in $(seq 12); do echo '{"prompt": "The sea was", "max_tokens": 600, "ignore_eos": true}'; done >"$WORK/in.jsonl"
echo '{"prompt": "The sea was", "max_token": 200}' >>"$WORK/in.jsonl"
on_terminal "$WORK/bin/tandem run --prompts $WORK/in.jsonl --output $WORK/out.jsonl --verifiers 1"
expect "a bar: exit $?" [ -e "$WORK/out.jsonl" ]
expect "a bar stands before the first prompt is read" has "\[ *\] 0/13, 0 tokens, 0 tokens/s, 0 of 36 prompt tokens read"
expect "a bar counts what is done" has "[0-9]+ tokens, [0-9]+ tokens/s, (12|24) of 36 prompt tokens read"
expect "a bar is whole at the end" has "\[#{20}\] 13/13, 7200 tokens, [0-9]+ tokens/s$ESCAPE\[\?7h"
expect "a bar is cleared before another line" has "^(.*[^#])?$ESCAPE\[Ktandem: error: request 12: line 13: unknown key .max_token"

# Ctrl-C, which the terminal sends to all: the bar and its ^C are cleared, and a line says what is kept. The job is waited for, not guessed.
for i in $(seq 100); do echo '{"prompt": "The sea was", "max_tokens": 200, "ignore_eos": true}'; done >"$WORK/many.jsonl"
mkfifo "$WORK/keys"
rm "$WORK/typed"
TERM=xterm timeout -k 5 120 script -qfec "exec $WORK/bin/tandem run --prompts $WORK/many.jsonl --output $WORK/many.out --verifiers 1" "$WORK/typed" <"$WORK/keys" >/dev/null 2>&1 &
terminal=$!
exec 9>"$WORK/keys"
for ((i = 0; i < 3000; i++)); do
    ! grep -aqsE '\] ([4-9]|[1-9][0-9]+)/100' "$WORK/typed" || break
    nap 0.02
done
printf '\003' >&9
wait $terminal
code=$?
exec 9>&-
expect "Ctrl-C: exit $code, expected 130" [ $code = 130 ]
kept=$(grep -c '^{"index"' "$WORK/many.out.journal")
expect "Ctrl-C: what is kept, $kept" has "$ESCAPE\[Ktandem: ended: $kept of 100 results are in $WORK/many.out.journal; the same command with --resume goes on"
expect "Ctrl-C: nothing is left of the line where it was typed" has_not '\^C[^'$'\r'']*tandem: ended'
on_terminal "$WORK/bin/tandem run --prompts $WORK/many.jsonl --output $WORK/many.out --verifiers 1 --resume"
expect "--resume after Ctrl-C" [ "$(wc -l <"$WORK/many.out")" = 100 ]
expect "--resume counts what is there" has " [0-9]+ of $((3 * (100 - kept))) prompt tokens read"

# A completion is what somebody copies: plain, with its drafts where they are asked for, which is the default of the built-in prompts.
on_terminal "$WORK/bin/tandem run --prompt 'The sea was' --max-tokens 40"
expect "a completion is plain" has_not "$ESCAPE\[(32|34|9;31)m"
text=$("$WORK/bin/tandem" run --quiet --prompt 'The sea was' --max-tokens 40 2>/dev/null)
expect "a completion is the one of a pipe" grep -aqF "$(head -n 1 <<<"$text")" "$WORK/typed"
on_terminal "stty tostop; exec $WORK/bin/tandem run --prompt 'The sea was' --max-tokens 40" # background groups stop when they write
expect "a terminal with tostop" grep -aqF "$(head -n 1 <<<"$text")" "$WORK/typed"
on_terminal "$WORK/bin/tandem run --prompt 'The sea was' --max-tokens 40 --show-drafts"
expect "--show-drafts" has "$ESCAPE\[32m"
for plain in NO_COLOR=1 TERM=dumb; do
    on_terminal "env $plain $WORK/bin/tandem run --prompt 'The sea was' --max-tokens 40 --show-drafts --draft-length 2"
    expect "$plain: colours" has_not "$ESCAPE\[3"
done
on_terminal "$WORK/bin/tandem run --prompt 'The sea was' --max-tokens 12 --explain --draft-length 2 --temperature 0.9 --seed 1"
expect "--explain says why, in colour" has "^round 1, rejection: [0-2] of 2 drafts accepted, "
expect "--explain gives q, p and a reason" has "^ +1  $ESCAPE\[3[12]m\".*  q [01]\.[0-9]{4}  p [01]\.[0-9]{4}  (accepted: |rejected: coin )"
on_terminal "$WORK/bin/tandem run --max-tokens 40"
expect "without a prompt drafts are shown" has "$ESCAPE\[9;31m"
verifiers="1 verifier" # a core for each rank
[ "$(getconf _NPROCESSORS_ONLN)" -le 3 ] || verifiers="2 verifiers"
expect "what is compared is said, with one process beside it" \
    has "^Compared: $verifiers of [0-9]+ threads?, alone \(solo\) and with 1 drafter \(speculative\); one process with [0-9]+ threads? and no drafts: [0-9]+ tokens/s(, the fastest of the three)?\."
speedup=$(sed -nE 's/^speedup, of pairs +([0-9.]+)x.*/\1/p' "$WORK/typed")
why() { if awk "BEGIN { exit !($speedup < 1.015) }"; then has "^Why $speedup"; elif awk "BEGIN { exit !($speedup > 1.025) }"; then has_not "^Why "; fi; }
expect "a speedup of $speedup has its reason, or needs none" why
on_terminal "$WORK/bin/tandem run --max-tokens 40 --compare"
expect "--compare without a prompt is the same" has "one process with [0-9]+ threads? and no drafts: [0-9]+ tokens/s"

# A long prompt that is read for seconds: a line stands there until the text begins; of what is read at once nothing is said. Off a terminal the line is
# none of the text.
expect "a short prompt is read without a word" has_not "reading the prompt"
mkdir "$WORK/slow"
cp "$SOURCE/launch/tandem" "$2/tandem-verifier" "$2/tandem-drafter" "$WORK/slow/"
for i in $(seq 30); do printf 'In the year %d the sea was high and the ship went down. ' $((1700 + i)); done >"$WORK/long.txt"
long="--prompt \"\$(cat $WORK/long.txt)\" --max-tokens 5 --verifiers 1"
SLOW_RANK=1 SLOW_ROW=0.6 on_terminal "$WORK/slow/tandem run $long"
expect "a long prompt is read by a line that is redrawn" has "$ESCAPE\[Kreading the prompt, [0-9]+ of [0-9]+ tokens(, about [0-9]+ s left)?"$'\r'"$ESCAPE\[Kreading the prompt"
expect "the line of a long prompt is cleared before the text" has "reading the prompt, [0-9]+ of [0-9]+ tokens(, about [0-9]+ s left)?"$'\r'"$ESCAPE\[K"$'\r?$'
expect "the text comes after the line" has "^In the year 1701 the sea was high"
eval "SLOW_RANK=1 SLOW_ROW=2 $WORK/slow/tandem run $long" >"$WORK/text" 2>"$WORK/typed"
expect "off a terminal a line says how far a long prompt is read" has "^reading the prompt, [0-9]+ of [0-9]+ tokens"
expect "off a terminal the text has no line of it: $(head -n 3 "$WORK/text")" eval '! grep -q "reading the prompt" "$WORK/text" && [ -s "$WORK/text" ]'
# A pass of --compare whose text nobody sees says how far it is, too.
SLOW_RANK=1 SLOW_ROW=1 on_terminal "$WORK/slow/tandem run --compare $long"
expect "the pass that measures solo has a line that is cleared" has "measuring solo: ([0-9]+ of [0-9]+ prompt tokens read, )?[0-9]+ of at most 5 tokens"$'\r'"$ESCAPE\[K"

# Rows that cost as much as steps, and more than what else the machine does: drafts of a length that was asked for cost speed, and the warning has the
# numbers.
echo '{"prompt": "The sea was", "max_tokens": 200, "ignore_eos": true}' >"$WORK/one.jsonl"
SLOW_RANK=1 SLOW_ROW=4 "$WORK/slow/tandem" run --prompts "$WORK/one.jsonl" --verifiers 1 --draft-length 4 >"$WORK/text" 2>"$WORK/typed"
expect "drafts that cost speed are told of, with numbers" \
    has "drafts of 4 cost speed here: .*: with K = 4 a step of 5 rows takes [0-9.]+ of the time of one of 1 \(v\), each draft with its wire [0-9.]+ \(c\), and of tested drafts [0-9]+ % are expected to be accepted"
# Of a tree what is to be left out is what gives it its size.
SLOW_RANK=1 SLOW_ROW=2 "$WORK/slow/tandem" run --prompts "$WORK/one.jsonl" --verifiers 1 --draft-length 4 --tree top-k >"$WORK/text" 2>"$WORK/typed"
expect "a tree of a length that was asked for" has "drafts of 4 cost speed here: .*; leave --draft-length out, or --solo$"
SLOW_RANK=1 SLOW_ROW=2 "$WORK/slow/tandem" run --prompts "$WORK/one.jsonl" --verifiers 1 --draft-length 4 --tree top-k --accept k-sequential \
    --temperature 0.9 >"$WORK/text" 2>"$WORK/typed"
expect "a tree of drawn drafts, and a length" has "drafts of 4 cost speed here: .*; leave --tree and --draft-length out, or --solo$"
# Where drafting stops earlier the rounds are not those of a formula of the whole length; and what was measured without drafts is the table's.
SLOW_RANK=1 SLOW_ROW=2 "$WORK/slow/tandem" run --compare --prompts "$WORK/one.jsonl" --verifiers 1 --draft-length 8 --stop-drafting entropy=0 >"$WORK/text" 2>"$WORK/typed"
solo=$(awk '/^tokens per second/ { print $4 }' "$WORK/text")
expect "drafts that end early, beside solo's $solo" \
    has "drafts of 8 at most, [0-4]\.[0-9] a round in the mean, cost speed here: [0-9]+ tokens/s, without them $solo; leave --draft-length out, or --solo$"
expect "no formula of drafts that end early: $(grep Why "$WORK/text")" eval '! grep -q "v + K c" "$WORK/text"'

# Where the drafter was lost it is not the drafts that it was slow by.
for i in $(seq 24); do echo '{"prompt": "The sea was", "max_tokens": 60, "ignore_eos": true}'; done >"$WORK/some.jsonl"
SLOW_RANK=1 SLOW_ROW=1 "$WORK/slow/tandem" run --prompts "$WORK/some.jsonl" --output "$WORK/lost.jsonl" --verifiers 1 --draft-length 4 --max-sequences 1 >"$WORK/text" 2>"$WORK/typed" &
PID=$!
await_results lost 5
kill -KILL "$(ranks tandem-drafter)"
wait $PID
expect "a job that lost its drafter: exit $?" has "^1440 tokens in"
expect "a job that lost its drafter says so" has "drafter rank 0 has ended: decoding goes on without it"
expect "a job that lost its drafter has no advice" has_not "cost speed here"

# A job of some steps has no advice: what drafts cost and give is a guess then.
for i in $(seq 64); do echo '{"prompt": "The sea was", "max_tokens": 2, "ignore_eos": true}'; done >"$WORK/some.jsonl"
SLOW_RANK=1 SLOW_ROW=1 "$WORK/slow/tandem" run --prompts "$WORK/some.jsonl" --output "$WORK/some.out" --verifiers 1 --max-sequences 64 >"$WORK/text" 2>"$WORK/typed"
expect "a job of some steps: exit $?" has "^128 tokens in"
expect "a job of some steps has no advice" has_not "rounds were without drafts"

# Help is as wide as the terminal.
cp "$BIN/tandem-report" "$BIN/tandem-bench" "$WORK/bin/"
for columns in 45 60 90; do
    for words in "run --help" "chat --help" "sbatch --help" "check --help" "check --list-breaks" "bench --help" "report --help" help; do
        on_terminal "stty cols $columns; $WORK/bin/tandem $words"
        widest=$(tr -d '\r' <"$WORK/typed" | grep -av '^Script ' | awk '{ if (length($0) > most) most = length($0) } END { print most }')
        expect "$words on $columns columns: $widest" [ "$widest" -le "$columns" -a "$widest" -gt $(((columns < 84 ? columns : 84) - 13)) ]
        [ "$words" = "check --list-breaks" ] || expect "$words on $columns columns: all of it" has "^Usage: tandem"
    done
done
widest=$("$WORK/bin/tandem" help | awk '{ if (length($0) > most) most = length($0) } END { print most }')
expect "help of all commands is $widest columns wide" [ "$widest" -le 84 ]
finish
