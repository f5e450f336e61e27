#!/usr/bin/env bash
# `tandem run --chat` and `tandem chat`: a prompt as a user's message; turn after turn in one job, where each reply is that of a job which is given the
# same turns as messages. Ctrl-C ends a reply and nothing else. The base pair has no template, so one is named. chat.sh BIN
. "$(dirname "$0")/job.sh"
mkdir "$WORK/bin"
cp "$SOURCE/launch/tandem" "$BIN/tandem-verifier" "$BIN/tandem-drafter" "$WORK/bin/" # as installed
CHAT=(--template zephyr --max-tokens 24)
expect() { # WHAT TEST...
    local what=$1
    shift
    checks=$((checks + 1))
    "$@" || fail "$what: $(tail -n 5 "$WORK/err")"
}

# answer MESSAGES INDEX: the reply to these messages, as JSON has it, by a job of its own with the target alone. INDEX: its random numbers'.
answer() {
    printf '{"messages": [%s]}\n' "$1" >"$WORK/messages.in"
    "$WORK/bin/tandem" run --quiet --prompts "$WORK/messages.in" --solo --verifiers 1 --first-index "$2" "${CHAT[@]}" "${way[@]}" 2>"$WORK/err" |
        sed -nE 's/.*"text":("([^"\\]|\\.)*").*/\1/p'
}
user() { printf '{"role": "user", "content": "%s"}' "$1"; }
# plain JSON: the text of a JSON string.
plain() {
    local text=${1#\"}
    text=${text%\"}
    printf '%b\n' "${text//\\\"/\"}"
}

way=()
reply=$(answer "$(user "Who is there?")" 0)
expect "the model answers" [ ${#reply} -gt 4 ]
"$WORK/bin/tandem" run --quiet --chat "Who is there?" "${CHAT[@]}" >"$WORK/out" 2>"$WORK/err"
expect "run --chat TEXT: exit $?: $(cat "$WORK/out"), expected $reply" [ "$(cat "$WORK/out")" = "$(plain "$reply")" ]
"$WORK/bin/tandem" run --quiet --chat --prompt "Who is there?" "${CHAT[@]}" >"$WORK/out" 2>"$WORK/err"
expect "run --chat --prompt TEXT: exit $?: $(cat "$WORK/out"), expected $reply" [ "$(cat "$WORK/out")" = "$(plain "$reply")" ]
echo '{"prompt": "Who is there?"}' >"$WORK/prompts.in"
"$WORK/bin/tandem" run --quiet --chat --prompts "$WORK/prompts.in" "${CHAT[@]}" >"$WORK/out" 2>"$WORK/err"
expect "run --chat --prompts: exit $?: $(cat "$WORK/out"), expected $reply" grep -qF "\"text\":$reply" "$WORK/out"
printf 'Who is there?\nWhy?\n' | "$WORK/bin/tandem" chat "${CHAT[@]}" >"$WORK/out" 2>&1 # to one place
expect "the figures of a chat follow its replies: $(tail -n 3 "$WORK/out")" eval 'tail -n 2 "$WORK/out" | grep -q "^[0-9]* tokens in "'
for command in "run --chat Hi" "run --chat --prompts $WORK/prompts.in" chat; do # without a template
    "$WORK/bin/tandem" $command >"$WORK/out" 2>"$WORK/err" </dev/null
    expect "$command without a template: exit $?, expected 65" [ $? = 65 ]
    expect "$command without a template: one line" [ "$(wc -l <"$WORK/err")" = 1 ]
    expect "$command without a template: what to do" grep -q 'no chat template: --template NAME' "$WORK/err"
done
"$WORK/bin/tandem" chat --prompt Hi "${CHAT[@]}" >"$WORK/out" 2>"$WORK/err" </dev/null
expect "chat --prompt: exit $?, expected 64" [ $? = 64 ]

# Turns: what the user says ends in all the ways that lines do; the fourth is not UTF-8 and no turn; after the reset the first one comes again.
for way in "--solo --verifiers 1" "--verifiers 2" "--verifiers 1 --temperature 0.8 --accept coupled --seed 5"; do
    way=($way)
    first=$(answer "$(user "Who is there?")" 0)
    history="$(user "Who is there?"), {\"role\": \"assistant\", \"content\": $first}, $(user "Say \\\"more\\\", and a \\\\.")"
    second=$(answer "$history" 1)
    third=$(answer "$history, {\"role\": \"assistant\", \"content\": $second}, $(user "Why?")" 2)
    printf 'Who is there?\n\nSay "more", and a \\.\r\nWhy?\nbad \377\n/reset\nWho is there?\n/help\n/foo\n/exit now\n/Foo2 bar\n/exit \nnever read\n' |
        timeout -k 5 120 "$WORK/bin/tandem" chat "${CHAT[@]}" "${way[@]}" >"$WORK/out" 2>"$WORK/err"
    expect "${way[*]}: exit ${PIPESTATUS[1]}" [ "${PIPESTATUS[1]}" = 0 ]
    { plain "$first"; plain "$second"; plain "$third"; plain "$first"; } >"$WORK/expected"
    expect "${way[*]}: the replies differ: $(diff "$WORK/out" "$WORK/expected" | head -n 5)" cmp -s "$WORK/out" "$WORK/expected"
    expect "${way[*]}: three replies that are not the same" [ "$(printf '%s\n' "$first" "$second" "$third" | sort -u | wc -l)" = 3 ]
    expect "${way[*]}: the line that is not UTF-8" [ "$(grep -c 'error: line 5 is not valid UTF-8 (byte 4)' "$WORK/err")" = 1 ]
    expect "${way[*]}: a command that there is not" grep -q "error: line 9: unknown command '/foo', expected /help, /reset, /exit or /quit" "$WORK/err"
    expect "${way[*]}: commands with a word behind them" [ "$(grep -cE "error: line 1[01]: unknown command '/(exit now|Foo2 bar)', expected /help" "$WORK/err")" = 2 ]
    expect "${way[*]}: help in a pipe" [ "$(grep -c '/reset begins anew, /exit or the end of input (Ctrl-D) ends' "$WORK/err")" = 1 ]
    expect "${way[*]}: replies that are cut" [ "$(grep -cE 'warning: the reply to line (1|3|4|7) was cut at 24 tokens: --max-tokens N allows more$' "$WORK/err")" = 4 ]
    expect "${way[*]}: what was counted" grep -q '^[0-9]* tokens in .* tokens/s' "$WORK/err"
done
way=()
first=$(answer "$(user "Hi")" 0)
expect "an end without a line's" [ "$(printf Hi | "$WORK/bin/tandem" chat --quiet "${CHAT[@]}" 2>"$WORK/err")" = "$(plain "$first")" ]
expect "nothing at all" [ -z "$("$WORK/bin/tandem" chat --quiet "${CHAT[@]}" 2>"$WORK/err" </dev/null)" ]

# A prompt that has no room is told, and the chat goes on.
long=$(printf 'word %.0s' $(seq 60))
"$WORK/bin/tandem" chat --quiet --context 60 --template zephyr --max-tokens 8 >"$WORK/out" 2>"$WORK/err" < <(printf '/reset\n\n%s\nHi\n' "$long")
expect "too long: exit $?" [ $? = 0 ]
expect "too long: a word" grep -q 'error: line 3: the prompt has .* tokens, the context has room for .*; /reset begins anew' "$WORK/err"
expect "too long: the reply after it: $(cat "$WORK/out")" [ -s "$WORK/out" ]

# A reply that the context ends says so; one that ends by itself, at a stop text, says nothing.
"$WORK/bin/tandem" chat --context 40 --template zephyr --max-tokens 100 --ignore-eos --solo --verifiers 1 >"$WORK/out" 2>"$WORK/err" <<<"Who is there?"
expect "the context ends: a word" grep -qE 'warning: the reply to line 1 was cut at [0-9]+ tokens, where the context of 40 ends: /reset begins anew, --context N makes more$' "$WORK/err"
"$WORK/bin/tandem" chat --template zephyr --max-tokens 100 --stop e --solo --verifiers 1 >"$WORK/out" 2>"$WORK/err" <<<"Who is there?"
expect "a reply that is not cut" eval '! grep -q "was cut" "$WORK/err"'
# Where stdout and stderr are one place, all goes one way, in the order in which it was said.
printf '/foo\nHi\n' >"$WORK/turns"
for way in "16 out" "0 err"; do
    $MPIRUN -np 1 "$BIN/tandem-verifier" --conversation --template zephyr --max-tokens 4 --solo --terminal "${way% *}" <"$WORK/turns" >"$WORK/out" 2>"$WORK/err"
    expect "--terminal ${way% *}: exit $?, an error in ${way#* }" [ "$(grep -c "unknown command '/foo'" "$WORK/${way#* }")" = 1 ]
    expect "--terminal ${way% *}: a cut in ${way#* }" [ "$(grep -c "the reply to line 2 was cut at 4 tokens" "$WORK/${way#* }")" = 1 ]
done

# SIGHUP of a terminal that is gone reaches who reads its lines, too: the end of the lines is told all the same, and ends the chat.
mkfifo "$WORK/line"
"$WORK/bin/tandem" chat --quiet "${CHAT[@]}" >"$WORK/out" 2>"$WORK/err" <"$WORK/line" &
chat=$!
exec 9>"$WORK/line"
printf 'Hi\n' >&9
await "a reply" '[ -s "$WORK/out" ]'
readers=0
for child in $(children_of $chat); do
    for reader in $(children_of "$child"); do
        [ "$(program_of "$reader")" != cat ] || { kill -HUP "$child" "$reader" && readers=$((readers + 1)); }
    done
done
exec 9>&-
await "the end of a chat whose terminal is gone" '! kill -0 $chat 2>/dev/null' 20 || kill $chat
wait $chat
code=$?
expect "a terminal that is gone: exit $code, $readers readers: $(cat "$WORK/err")" [ $code = 0 -a $readers -ge 1 ]

# On a terminal, which `script` makes: a sign asks for each line; Ctrl-C, to the whole group as a terminal sends it, ends a reply or nothing, and the
# next line is answered. The job is waited for, not guessed. `exec`: a shell between them may end by the Ctrl-C itself. Rows take a millisecond of each
# layer, so that the first reply is still being written when Ctrl-C comes.
if command -v script >/dev/null; then
    mkfifo "$WORK/keys"
    mkdir "$WORK/slow"
    cp "$SOURCE/launch/tandem" "$2/tandem-verifier" "$2/tandem-drafter" "$WORK/slow/"
    SLOW_RANK=1 SLOW_ROW=1 TERM=dumb timeout -k 5 120 script -qfec "exec $WORK/slow/tandem chat --template zephyr --max-tokens 600 --ignore-eos --verifiers 1" "$WORK/typed" <"$WORK/keys" >/dev/null 2>&1 &
    terminal=$!
    exec 9>"$WORK/keys"
    seen() { # COUNT PATTERN
        local i
        for ((i = 0; i < 3000; i++)); do
            [ "$(grep -aoE "$2" "$WORK/typed" 2>/dev/null | wc -l)" -ge "$1" ] && return
            nap 0.02
        done
        fail "waited 60 s for $1 times '$2' on the terminal: $(tail -c 300 "$WORK/typed")"
        return 1
    }
    seen 1 '^> ' && printf 'Who is there?\r' >&9 && seen 1 'there\?.*' && printf '\003' >&9
    seen 2 '^> ' && printf '\003' >&9 && seen 2 'Ctrl-C stops a reply' && seen 3 '^> ' && printf '/foo\r' >&9 && seen 4 '^> ' && printf 'Why?\r' >&9 && seen 5 '^> ' && printf '/quit\r' >&9
    exec 9>&-
    wait $terminal
    code=$?
    expect "a terminal: exit $code: $(tail -c 300 "$WORK/typed")" [ $code = 0 ]
    expect "a terminal: it is asked for a line five times" [ "$(grep -ac '^> ' "$WORK/typed")" -ge 5 ]
    expect "a terminal: an error comes before the next sign" eval '[ "$(sed -n "/error: line/,\$p" "$WORK/typed" | grep -ac "^> ")" = 2 ]'
    expect "a terminal: a reply that was stopped is not called cut" [ "$(grep -ac 'was cut at 600 tokens' "$WORK/typed")" = 1 ]
else
    echo "skipped: a terminal: script is not there, which makes one"
fi
finish
