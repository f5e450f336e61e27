#!/usr/bin/env bash
# What somebody else on the machine, or whoever wrote a prompt, a name or a folder, may try with the launcher: it reads and writes nothing but its own,
# takes no text for an option, runs nothing of it, and a folder without room ends a job with a line. attack.sh BIN
. "$(dirname "$0")/inject.sh"
mkdir "$WORK/bin" "$WORK/tmp"
cp "$SOURCE/launch/tandem" "$BIN/tandem-verifier" "$BIN/tandem-drafter" "$WORK/bin/" # as installed
CODE=0 TOOK=0

# brief NAME CODE WORD...: the launcher's command of these words ends with CODE, before long.
brief() {
    local name=$1 code=$2
    shift 2
    timeout -k 5 60 "$WORK/bin/tandem" "$@" >"$WORK/$name.out" 2>"$WORK/$name.err" </dev/null
    CODE=$?
    expect "$name" "expected exit $code" "[ \$CODE = $code ]"
}
short=(--max-tokens 2 --verifiers 1 --solo)

# The folder of the recorders is the launcher's own while the job runs, and gone when it has nothing to tell.
TMPDIR=$WORK/tmp timeout -k 5 120 "$WORK/bin/tandem" run --prompts "$PROMPTS" --output "$WORK/own.jsonl" --max-tokens 64 --verifiers 1 2>"$WORK/own.err" >"$WORK/own.out" &
TIMEOUT_PID=$!
await "the recorders' folder" "compgen -G '$WORK/tmp/tandem-*' >/dev/null"
folder=$(echo "$WORK"/tmp/tandem-*)
expect own "its mode is $(stat -c %a "$folder")" '[ "$(stat -c %a "$folder")" = 700 ] && [ -O "$folder" ]'
ended 120
expect own "expected exit 0 and no folder" '[ $CODE = 0 ] && [ ! -e "$folder" ]'
for words in "--help" "--version" "--dry-run --prompt x" "--no-such-option"; do
    TMPDIR=$WORK/tmp "$WORK/bin/tandem" run $words >"$WORK/own.out" 2>"$WORK/own.err"
    expect own "'$words' left $(ls "$WORK/tmp")" '! compgen -G "$WORK/tmp/tandem-*" >/dev/null'
done

# told FOLDER: what the launcher makes of a folder of recorders, when it was prepared by somebody else.
told() {
    (
        eval "$(sed -n '/^export LC_ALL/p; /^visible() {$/,/^}$/p; /^say() {/p; /^is_ours() {$/,/^}$/p; /^records() {$/,/^}$/p; /^tell_story() {$/,/^}$/p' "$SOURCE/launch/tandem")"
        tell_story "$1"
    ) 2>"$WORK/told.err"
}
line='1700000000.500000000 rank 0 verifier: ends: a test'
secret='1700000000.000000002 rank 1 secret: ends: nobody is to read this'
mkdir -m 700 "$WORK/planted"
echo kept >"$WORK/victim"
echo "$secret" >"$WORK/secret"
echo "$line" >"$WORK/planted/rank-0000"
ln -s "$WORK/secret" "$WORK/planted/rank-0001"
ln "$WORK/secret" "$WORK/planted/rank-0002"
mkfifo "$WORK/planted/rank-0003"
ln -s "$WORK/victim" "$WORK/planted/story"
told "$WORK/planted"
expect told "it wrote through a link" '[ "$(cat "$WORK/victim")" = kept ]'
expect told "the story is not a new file of ours" '[ ! -L "$WORK/planted/story" ] && [ "$(stat -c %a "$WORK/planted/story")" = 600 ] && grep -q "rank 0 verifier: a test" "$WORK/planted/story"'
expect told "it told what a link points to" '! grep -q "nobody is to read" "$WORK/planted/story"'
rm -f "$WORK/planted/story"
chmod 777 "$WORK/planted"
told "$WORK/planted"
expect told "it took a folder that others may write to" '[ ! -e "$WORK/planted/story" ]'
chmod 700 "$WORK/planted"
# In a language whose numbers have a comma, too, the times of a story are what they are.
echo "${line/.5/.2}" >"$WORK/planted/rank-0004"
mkdir "$WORK/locales"
if localedef -i de_DE -f UTF-8 "$WORK/locales/de_DE.UTF-8" >/dev/null 2>&1; then
    export LOCPATH=$WORK/locales
    LC_ALL=de_DE.UTF-8 told "$WORK/planted"
    unset LOCPATH
    expect told "times are cut at the comma: $(cat "$WORK/planted/story")" 'grep -q "^ *-0.300000 rank 0" "$WORK/planted/story" && grep -q "^ *0.000000 rank 0" "$WORK/planted/story"'
else
    echo "not tried: a locale with a decimal comma, whose sources are not there (Debian: locales)"
fi
rm -f "$WORK/planted/story"
ln -s "$WORK/planted" "$WORK/alias"
told "$WORK/alias"
expect told "it took a link for its folder" '[ ! -e "$WORK/planted/story" ]'
if [ "$(id -u)" = 0 ]; then
    chown 65534 "$WORK/planted"
    told "$WORK/planted"
    expect told "it took another user's folder" '[ ! -e "$WORK/planted/story" ]'
else
    echo "another user's folder is not tried: only root can make one"
fi

# Folders of PATH that are not whole are the current folder's, too; nothing of it is run.
mkdir -p "$WORK/planting/inner"
for program in dirname readlink mktemp find df awk sed cat timeout mpirun; do
    printf '#!/bin/sh\ntouch "%s/touched"\nexit 1\n' "$WORK" >"$WORK/planting/$program"
    chmod +x "$WORK/planting/$program"
done
cp "$WORK"/planting/[a-z]* "$WORK/planting/inner/" 2>/dev/null
timeout=$(command -v timeout)
for folders in . ./ ./. ../planting inner "" .//; do
    (cd "$WORK/planting" && PATH=$folders:$PATH:$folders "$timeout" -k 5 60 "$WORK/bin/tandem" run --prompt x "${short[@]}" >"$WORK/planted.out" 2>"$WORK/planted.err")
    expect planted "PATH=$folders: a program of the current folder was run" '[ ! -e "$WORK/touched" ]'
done

# With a PATH of nothing one line says what is missing, and with a TMPDIR that is not whole Open MPI has nothing to say.
PATH=/none "$BASH" "$WORK/bin/tandem" run --prompt x >"$WORK/bare.out" 2>"$WORK/bare.err"
CODE=$?
expect bare "expected exit 69 and one line" '[ $CODE = 69 ] && [ "$(cat "$WORK/bare.err")" = "tandem: no folder of PATH has readlink and dirname: '"'/none'"'" ]'
(cd "$WORK/planting" && TMPDIR=inner timeout -k 5 60 "$WORK/bin/tandem" run --prompt x --quiet "${short[@]}" >"$WORK/part.out" 2>"$WORK/part.err")
CODE=$?
expect part "a TMPDIR that is not whole: expected exit 0 and no line" '[ $CODE = 0 ] && [ -s "$WORK/part.out" ] && [ ! -s "$WORK/part.err" ]'

# Text that turns the direction of what follows it is shown as bytes.
"$WORK/bin/tandem" "$(printf 'r\xe2\x80\xaeun')" >"$WORK/turned.out" 2>"$WORK/turned.err"
expect turned "it turned the line: $(cat "$WORK/turned.err")" 'grep -q "r.xe2.x80.xaeun" "$WORK/turned.err"'

# Nor does the cluster of the tests, whose locks have names that anybody knows, in a /tmp that is played.
if unshare -m true 2>/dev/null; then
    # locked NAME PREPARATION: what /tmp has afterwards, where somebody prepared it before a cluster took its ports
    locked() {
        CLUSTER=$(cat "$SOURCE/tests/slurm/cluster.sh") unshare -m bash -c "mount -t tmpfs tmpfs /tmp && cd /tmp && mkdir other && echo kept >victim
            for base in {21000..21990..10}; do ln -s ../victim other/\$base; ln -s victim .tandem-slurm-\$base.lock; done
            locks=.tandem-slurm-\$(id -u) && $2"'
            (eval "$CLUSTER" && cluster_take_ports && echo "took $CLUSTER_PORT")
            echo "victim: $(cat victim), modes: $(stat -c %a $locks $locks/* | sort -u | paste -sd" ")"' >"$WORK/$1.out" 2>"$WORK/$1.err"
    }
    locked lock :
    expect lock "it wrote through a link, or not in a folder of its own" 'grep -q "^took 21" "$WORK/lock.out" && grep -q "^victim: kept, modes: [0-9]* 700$" "$WORK/lock.out"'
    for prepared in 'ln -s other $locks' 'mv other $locks && chmod 777 $locks' 'mv other $locks && chown 65534 $locks'; do
        locked lock "$prepared"
        expect lock "'$prepared': it took a folder of others" 'grep -q "^skipped: /tmp/.tandem-slurm-[0-9]* is not a folder of this user alone" "$WORK/lock.out" && grep -q "^victim: kept," "$WORK/lock.out"'
    done
else
    echo "skipped: locks in a /tmp of one's own: only root can make one (unshare, mount)"
fi

# Without room for MPI's files a job ends with a line: at once where that is seen before it begins, else as soon as its ranks are gone.
(
    ulimit -f 1000
    "$WORK/bin/tandem" run --prompt x "${short[@]}" 2>&1 | cat
    exit ${PIPESTATUS[0]}
) >"$WORK/limit.err"
CODE=$?
expect limit "expected exit 71 and a line" '[ $CODE = 71 ] && grep -q "a file may have 1000 KiB (ulimit -f)" "$WORK/limit.err"'
# few FILES WHAT WORD...: so many files may be open: a last line that says it, after what the shell has to say where it cannot look.
few() {
    local files=$1 what=$2
    shift 2
    : >"$WORK/few.err"
    (exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- && ulimit -n "$files" && exec timeout -k 5 60 "$WORK/bin/tandem" run --prompt x --max-tokens 2 "$@") >"$WORK/few.out" 2>>"$WORK/few.err"
    CODE=$?
    expect few "ulimit -n $files: expected exit 71 and its line" '[ $CODE = 71 ] && [ "$(tail -n 1 "$WORK/few.err")" = "tandem: '"$what"'" ]'
}
for files in 5 6 30 63; do few $files "too few files may be open at once, expected 64 or more; ulimit -n is $files" --verifiers 1; done
# Where no other file may be open beside the script, the shell has the last word; with fewer than 4 it does not start.
(exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- && ulimit -n 4 && exec "$WORK/bin/tandem" run --prompt x --max-tokens 2) >"$WORK/few.out" 2>"$WORK/few.err"
CODE=$?
expect few "ulimit -n 4: expected exit 71 and a line" '[ $CODE = 71 ] && tail -n 1 "$WORK/few.err" | grep -q "Too many open files"'
few 70 "70 files may be open at once (ulimit -n), and mpirun has more for 8 ranks: expected 80 or more" --verifiers 4 --drafters 4
if unshare -m true 2>/dev/null; then
    # tiny FOLDER NAME CODES PATTERN: a job where FOLDER is a filesystem of 1 MB ends with one of the codes
    tiny() {
        timeout -k 5 60 unshare -m bash -c "mount -t tmpfs -o size=1m tmpfs '$1' && exec '$WORK/bin/tandem' run --prompt x --max-tokens 2 --verifiers 2 --watchdog 10" \
            >"$WORK/$2.out" 2>"$WORK/$2.err" </dev/null
        CODE=$?
        expect "$2" "expected exit $3 and its line" '[[ " '"$3"' " == *" $CODE "* ]] && grep -q "'"$4"'" "$WORK/'"$2"'.err"'
    }
    mkdir "$WORK/small" "$WORK/tools"
    export TMPDIR=$WORK/small
    tiny "$WORK/small" small_tmp 74 "^tandem: $WORK/small has [01] MB free, .* expected 12 MB; TMPDIR says"
    printf '#!/bin/sh\nprintf "x\\nx 9 9 999999 x x\\n"\n' >"$WORK/tools/df" # says that there is room
    chmod +x "$WORK/tools/df"
    # mpirun ends by itself, or hangs, or its ranks do, as it comes.
    PATH=$WORK/tools:$PATH tiny "$WORK/small" full_tmp "71 76" \
        "^tandem: mpirun did not notice that its ranks ended\\|^tandem: mpirun could not start the ranks\\|no progress for 10 s while starting: ending the job"
    TMPDIR=$WORK tiny /dev/shm small_shm 74 "^tandem: /dev/shm has [01] MB free, .* expected 8 MB"
    export TMPDIR=$WORK
else
    echo "skipped: folders without room: only root can make them (unshare, mount)"
fi
# An mpirun that hangs when its ranks have ended.
mkdir "$WORK/hanging"
printf '#!/bin/sh\ntrue &\nexec sleep 300\n' >"$WORK/hanging/mpirun"
chmod +x "$WORK/hanging/mpirun"
PATH=$WORK/hanging:$PATH brief hanging 71 run --prompt x "${short[@]}"
expect hanging "expected its line" 'grep -q "^tandem: mpirun did not notice that its ranks ended" "$WORK/hanging.err"'
# An mpirun that has lost a rank ends the others, and crashes of a signal meanwhile: it gets none. One that has all of them gets it.
# What it does itself it does without a process, which would be taken for a rank.
mkdir "$WORK/ending"
for ranks in 1 2; do
    printf '#!/bin/bash\ntrap ": >%s/struck" TERM\n%s\n: >%s/begun\nwait; wait\nexit 1\n' "$WORK" "$(yes 'sleep 2 &' | head -n $ranks)" "$WORK" >"$WORK/ending/mpirun"
    chmod +x "$WORK/ending/mpirun"
    rm -f "$WORK/begun" "$WORK/struck"
    PATH=$WORK/ending:$PATH "$WORK/bin/tandem" run --prompt x --drafters 1 --verifiers 1 >"$WORK/ending.out" 2>"$WORK/ending.err" </dev/null &
    launcher=$!
    await "the mpirun that is played" '[ -e "$WORK/begun" ]'
    kill -TERM $launcher
    wait $launcher
    CODE=$?
    expect ending "$ranks of 2 ranks: expected exit 143 and $((ranks - 1)) signals" '[ $CODE = 143 ] && [ $(ls "$WORK" | grep -c "^struck$") = $((ranks - 1)) ]'
done
brief no_tmp 0 run --help
export TMPDIR=$WORK/none
brief no_tmp 74 run --prompt x "${short[@]}"
expect no_tmp "expected a line that names it" 'grep -q "^tandem: cannot write to $WORK/none: " "$WORK/no_tmp.err"'
export TMPDIR=$WORK

# A text is a text, whatever it looks like.
for text in 'The sea --dry-run' 'x --prompts=-' 'x --prompts - y' '--dry-run' 'x --backend cuda y' '--recorder=/nowhere' "it's \$(touch $WORK/touched)"; do
    brief text 0 run --prompt "$text" "${short[@]}"
    expect text "'$text' is no prompt: $(head -c 300 "$WORK/text.out")" '! grep -q "mpirun -q" "$WORK/text.out"'
done
brief given 0 run "${short[@]}" --prompt x --dry-run
expect given "--dry-run prints the line alone" 'grep -q "^mpirun -q" "$WORK/given.out" && [ "$(wc -l <"$WORK/given.out")" = 1 ]'
# Nor is a folder's name a program.
odd="$WORK/it's; touch touched;'"
mkdir "$odd"
for words in "run --prompts -" chat; do
    (cd "$WORK" && printf 'Hi\n' | TMPDIR=$odd timeout -k 5 60 ./bin/tandem $words "${short[@]}" >odd.out 2>odd.err)
    expect odd "'$words': something was run, or is left: $(ls "$odd")" '[ ! -e "$WORK/touched" ] && [ -z "$(find "$odd" -name "tandem-*" -o -name "tmp.*")" ]'
done

# What a terminal would obey is shown, not sent.
brief escapes 64 $'ru\e]0;title\an\xc2\x9b31m' # bytes, whatever this shell's language
expect escapes "expected escapes that can be read" "grep -qF '\\x1b]0;title\\x07n\\u009b31m' '$WORK/escapes.err' && ! LC_ALL=C grep -q \$'[\\x1b\\x07]\\|\\xc2\\x9b' '$WORK/escapes.err'"
brief lone 64 $'ru\x9b31m\xff \xc3\xa4\xe4\xb8\xad' # C1 of one byte is no text, and no part of a character that has such bytes
expect lone "expected escapes and the characters" "grep -qF \$'ru\\\\x9b31m\\\\xff \\xc3\\xa4\\xe4\\xb8\\xad' '$WORK/lone.err'"
# A line that is to be pasted has what a terminal would obey as a shell's escapes, and means the same.
odd_text=$'a\e]0;title\a b\xc2\x9b31m \xc3\xa4 it\'s \\\n1' odd_file=$WORK/$'lone\x9b31m.jsonl'
# words_of NAME: the words that bash makes of the lines that were printed, one a line, quoted anew
words_of() { (eval "set -- $(tr '\n' ' ' <"$WORK/$1.out")" && printf '%q\n' "$@"); }
brief pasted 0 run "${short[@]}" --prompt "$odd_text" --dry-run
expect pasted "the line has what a terminal obeys: $(cat -v "$WORK/pasted.out")" "! LC_ALL=C grep -q \$'[\x01-\x09\x0b-\x1f\x7f]\|\xc2\x9b\|[^\x80-\xff]\x9b' '$WORK/pasted.out'"
expect pasted "the line means another text: $(cat -v "$WORK/pasted.out")" 'words_of pasted | grep -qxF -- "$(printf %q "$odd_text")"'
brief printed 0 sbatch --print --prompts "$PROMPTS" --output "$odd_file" --stop "$odd_text"
expect printed "the script has what a terminal obeys" "! LC_ALL=C grep -q \$'[\x01-\x09\x0b-\x1f\x7f]\|\xc2\x9b\|[^\x80-\xff]\x9b' '$WORK/printed.out'"
expect printed "its options mean another text" '(eval "$(sed -n "/^output=/p; /^options=(/,/^)/p" "$WORK/printed.out")" && [ "${options[*]}" != "${options[*]/"$odd_text"/}" ] && [ "$output" = "$odd_file" ])'
brief directive 64 sbatch --print --prompts "$PROMPTS" --output "$WORK/printed.jsonl" -- $'--comment=a\e]0;title\a'
expect directive "expected a line" 'grep -q "an option of sbatch has a line break in it, or another control character" "$WORK/directive.err"'
# Text of prompts and models: the model is made to say ESC. A pipe gets the bytes.
forced=(--logit-bias 219:100 --max-tokens 3 --verifiers 1 --colour never)
"$WORK/bin/tandem" run --prompt x "${forced[@]}" >"$WORK/piped.out" 2>"$WORK/piped.err" </dev/null
expect piped "a pipe did not get the bytes: $(od -An -c "$WORK/piped.out")" '[ "$(od -An -tx1 "$WORK/piped.out" | tr -d " \n")" = 1b1b1b0a ]'
if command -v script >/dev/null; then
    # on_terminal NAME INPUT WORD...: what a terminal is given goes to $WORK/NAME.tty
    on_terminal() {
        local name=$1 input=$2
        shift 2
        printf "$input" | TERM=dumb timeout -k 5 60 script -qfec "exec $(printf '%q ' "$WORK/bin/tandem" "$@")" "$WORK/$name.tty" >/dev/null 2>"$WORK/$name.err"
        CODE=$?
        expect "$name" "the terminal got what it obeys: $(od -c "$WORK/$name.tty" | head -n 20)" \
            "[ \$CODE = 0 ] && grep -q '\\\\x1b\\|\\\\u009b' '$WORK/$name.tty' && ! LC_ALL=C grep -q \$'\x1b\x1b\|\x1b\]\|\x1b\[2J\|\xc2\x9b' '$WORK/$name.tty'"
    }
    on_terminal run_tty '' run --prompt $'a\e]0;title\ab\xc2\x9b31m' "${forced[@]}"
    expect run_tty "the prompt is not shown" "grep -qF 'a\\x1b]0;title\\x07b\\u009b31m' '$WORK/run_tty.tty'"
    on_terminal coloured '' run --prompt x "${forced[@]/never/auto}" --show-drafts
    on_terminal compared '' run --compare --prompt $'a\e]0;title\ab' "${forced[@]}"
    # Results, whose ids and keys are the prompts' own; a pipe gets them as they are.
    printf '{"id": "\\x1b]0;\xc2\x9b31m", "prompt": "x"}\n{"prompt": "x", "\xc2\x9b31m": 1}\n' | sed 's/\\x1b/\\u001b/' >"$WORK/ids.jsonl"
    on_terminal results_tty '' run --prompts "$WORK/ids.jsonl" --output - "${forced[@]}"
    expect results_tty "its ids are not shown" "grep -qF ']0;\\u009b31m' '$WORK/results_tty.tty'"
    "$WORK/bin/tandem" run --prompts "$WORK/ids.jsonl" --output - "${forced[@]}" >"$WORK/results.out" 2>"$WORK/results.err" </dev/null
    expect results "a pipe did not get the bytes" "LC_ALL=C grep -q \$'\xc2\x9b31m' '$WORK/results.out'"
    # Figures of a folder that somebody else made.
    cp "$BIN/tandem-report" "$WORK/bin/"
    for run in a b; do
        mkdir "$WORK/$run"
        printf '{"date": "d\\u001b]0;x\\u0007", "tandem": "%s\xc2\x9b31m", "machine": {"host": "\\u001b[31m%s"}, "placements": [{"name": "p\\u001b[2J", "ranks": [],
            "cells": [{"name": "c\xc2\x9b2J", "solo": true, "output_throughput": 1, "output_throughput_spread": 0, "repetitions": 3}]}]}' $run $run >"$WORK/$run/summary.json"
    done
    on_terminal report_tty '' report "$WORK/a" "$WORK/b"
    expect report_tty "expected date, placement, cell, host and version" \
        "(for shown in 'd\\x1b]0;x\\x07' 'p\\x1b[2J' 'c\\u009b2J' 'b\\u009b31m' 'u001b[31mb'; do grep -qiF -- \"\$shown\" '$WORK/report_tty.tty' || exit 1; done)"
    on_terminal chat_tty 'Hi\r/quit\r' chat --template zephyr "${forced[@]}"
else
    echo "skipped: a terminal: script is not there, which makes one"
fi
finish
