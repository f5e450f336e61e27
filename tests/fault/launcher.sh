#!/usr/bin/env bash
# The launcher between a user and mpirun: signals reach the job, exit codes the user, and a job that broke leaves its story, no other one
# anything. launcher.sh BIN default|small
. "$(dirname "$0")/inject.sh"
mkdir "$WORK/bin" "$WORK/tmp"
cp "$SOURCE/launch/tandem" "$BIN/tandem-verifier" "$BIN/tandem-drafter" "$WORK/bin/" # as installed
source=$SOURCE/launch/tandem installed=$WORK/bin/tandem drafter=$BIN/tandem-drafter
prompts=60 tokens=32
[ "$2" = small ] && prompts=40 tokens=8
head -n $prompts "$PROMPTS" >"$WORK/some.in"
some=(--prompts "$WORK/some.in" --max-tokens $tokens --max-sequences 2 --verifiers 2 --draft-length 4)

# launch NAME OPTION...: the launcher in the background, in a group of its own: a shell's other children ignore SIGINT.
launch() {
    local name=$1
    shift
    set -m
    TMPDIR=$WORK/tmp timeout -k 5 300 "$WORK/bin/tandem" run --output "$WORK/$name.jsonl" "${some[@]}" "$@" >"$WORK/$name.out" 2>"$WORK/$name.err" &
    TIMEOUT_PID=$!
    set +m
    await_results "$name" $((prompts / 10))
    LAUNCHER_PID=$(children_of $TIMEOUT_PID)
    MPIRUN_PID=$(for child in $(children_of "$LAUNCHER_PID"); do [ "$(program_of "$child")" = mpirun ] && echo "$child"; done)
    everybody="$(everybody) $MPIRUN_PID"
}

# clean NAME: neither processes nor folders are left.
clean() {
    gone $everybody
    expect "$1" "it left something: $(find "$WORK/tmp" -name 'rank-*' | head -n 3)" '[ -z "$(find "$WORK/tmp" -name "rank-*")" ]'
}

launch undisturbed
ended 120
expect undisturbed "expected exit 0" '[ $CODE = 0 ]'
clean undisturbed

# Input of nothing has the name that the user gave it, not the file's that it was kept in.
: | TMPDIR=$WORK/tmp timeout -k 5 120 "$WORK/bin/tandem" run --prompts - --verifiers 1 --solo >"$WORK/nothing.out" 2>"$WORK/nothing.err"
CODE=${PIPESTATUS[1]}
expect nothing "expected exit 0" '[ $CODE = 0 ]'
said nothing 1 "warning: --prompts - (stdin) has no prompts"
for way in "--prompts -" "--prompts=-" "--prompts none.in --prompts=-" "--prompts=none.in --prompts -"; do
    echo '{"prompt": "Call me"}' | TMPDIR=$WORK/tmp timeout -k 5 120 "$WORK/bin/tandem" run $way --quiet --verifiers 1 --solo --max-tokens 4 >"$WORK/stdin.out" 2>"$WORK/stdin.err"
    CODE=${PIPESTATUS[1]}
    expect stdin "$way: expected one result" '[ $CODE = 0 ] && [ "$(wc -l <"$WORK/stdin.out")" = 1 ]'
done

for way in INT:130 TERM:143; do
    name=${way%:*}
    launch "$name"
    kill "-$name" "$LAUNCHER_PID"
    ended 20
    expect "$name" "expected exit ${way#*:}" "[ \$CODE = ${way#*:} ]"
    clean "$name"
done

# `timeout` tells the launcher, and then its group. An mpirun that takes its time hears of it once, and the launcher ends as it does.
mkdir "$WORK/played"
cat >"$WORK/played/mpirun" <<END
#!/usr/bin/env bash
sleep 60 & ranks=\$! # in the place of three ranks
sleep 60 & ranks="\$ranks \$!"
sleep 60 & ranks="\$ranks \$!"
trap 'echo told >>"$WORK/played/told"; sleep 1.5; kill \$ranks; exit 143' TERM INT
: >"$WORK/played/begun"
wait
END
chmod +x "$WORK/played/mpirun"
PATH=$WORK/played:$PATH TMPDIR=$WORK/tmp timeout -k 5 60 "$WORK/bin/tandem" run --prompt Hi --verifiers 2 >"$WORK/group.out" 2>"$WORK/group.err" &
TIMEOUT_PID=$!
await "the played mpirun" '[ -e "$WORK/played/begun" ]'
kill -TERM "$(children_of $TIMEOUT_PID)"
nap 0.2
kill -TERM -- -$TIMEOUT_PID
ended 8
expect group "expected exit 143, and mpirun told once, not $(wc -l <"$WORK/played/told") times" '[ $CODE = 143 ] && [ "$(wc -l <"$WORK/played/told")" = 1 ]'
# Ctrl-C twice: of the second one an mpirun would leave its files in /dev/shm.
rm "$WORK/played/told" "$WORK/played/begun"
set -m
PATH=$WORK/played:$PATH TMPDIR=$WORK/tmp timeout -k 5 60 "$WORK/bin/tandem" run --prompt Hi --verifiers 2 >"$WORK/twice.out" 2>"$WORK/twice.err" &
TIMEOUT_PID=$!
set +m
await "the played mpirun" '[ -e "$WORK/played/begun" ]'
for again in 1 2 3; do
    kill -INT "$(children_of $TIMEOUT_PID)"
    nap 0.2
done
ended 8
expect twice "expected exit 130, and mpirun told once, not $(wc -l <"$WORK/played/told") times" '[ $CODE = 130 ] && [ "$(wc -l <"$WORK/played/told")" = 1 ]'

# What is told to it between the start of mpirun and the rest of its own: a copy that takes a second there.
sed 's/^    mpirun=\$!$/&; read -rt 1 <> <(:) || true/' "$source" >"$WORK/bin/slow"
chmod +x "$WORK/bin/slow"
expect slow "the copy is as the launcher" '! cmp -s "$source" "$WORK/bin/slow"'
for way in INT:130 TERM:143 HUP:143 QUIT:143; do
    name=early-${way%:*}
    set -m
    TMPDIR=$WORK/tmp "$WORK/bin/slow" run --output "$WORK/$name.jsonl" "${some[@]}" --max-tokens 400 >"$WORK/$name.out" 2>"$WORK/$name.err" </dev/null &
    TIMEOUT_PID=$!
    set +m
    await "mpirun" '[ -n "$(children_of $TIMEOUT_PID | while read -r child; do [ "$(program_of "$child")" != mpirun ] || echo "$child"; done)" ]'
    MPIRUN_PID=$(for child in $(children_of $TIMEOUT_PID); do [ "$(program_of "$child")" = mpirun ] && echo "$child"; done)
    kill "-${way%:*}" $TIMEOUT_PID
    ended 30
    expect "$name" "expected exit ${way#*:}" "[ \$CODE = ${way#*:} ]"
    gone "$MPIRUN_PID"
    expect "$name" "it left something: $(ls "$WORK/tmp")" '[ -z "$(ls "$WORK/tmp")" ]'
done

# A signal at any time of its first steps leaves no folder.
for ((ms = 4; ms < 64; ms += 2)); do
    TMPDIR=$WORK/tmp "$WORK/bin/tandem" run --prompt Hi --max-tokens 2 --quiet >"$WORK/first.out" 2>"$WORK/first.err" </dev/null &
    TIMEOUT_PID=$!
    sleep "0.0$(printf %02d $ms)"
    kill -TERM $TIMEOUT_PID
    ended 30
    expect first "TERM after $ms ms left $(ls "$WORK/tmp")" '[ -z "$(ls "$WORK/tmp")" ]'
done

launch drained
kill -USR1 "$LAUNCHER_PID"
ended 60
expect drained "expected exit 75" '[ $CODE = 75 ]'
clean drained

launch broken
kill -KILL "$(ranks_of tandem-verifier | tail -n 1)"
ended 20
expect broken "expected exit 137" '[ $CODE = 137 ]'
said broken 1 "what each rank did last: $WORK/tmp/tandem-"
story=$(sed -n 's/^tandem: what each rank did last: //p' "$WORK/broken.err")
expect broken "the story does not tell how two ranks ended" '[ "$(grep -c "^  rank [01] .*: SIGTERM" "$story")" = 2 ]'
expect broken "the story has no round of the lead and no draft" 'grep -q "rank 1 verifier: begins a round" "$story" && grep -q "rank 0 drafter: drafts for" "$story"'
expect broken "the story is not in order of time" 'grep -E "^ +-?[0-9]+\.[0-9]+ rank" "$story" | sort -c -s -g -k 1,1'
gone $everybody
rm -rf "$WORK"/tmp/tandem-*

# A drafter less: the job ends well, and the drafter's last words are told.
launch crashed
kill -SEGV "$(ranks_of tandem-drafter)"
ended 120
expect crashed "expected exit 0" '[ $CODE = 0 ]'
said crashed 1 "drafter rank 0 .*: decoding goes on without it"
said crashed 1 "what each rank did last"
gone $everybody

# brief NAME CODE COUNT PATTERN OPTION...: a short job that ends with CODE; so many lines of stderr match. Where its streams go, the caller says.
brief() {
    local name=$1 code=$2 count=$3 pattern=$4 CODE TOOK=0
    shift 4
    timeout -k 5 60 "$WORK/bin/tandem" run --max-tokens 4 --verifiers 1 "$@" 2>"$WORK/$name.err"
    CODE=$?
    expect "$name" "expected exit $code" "[ \$CODE = $code ]"
    said "$name" "$count" "$pattern"
}

brief full 74 1 "cannot write to stdout" --prompts "$WORK/some.in" >/dev/full
brief closed 74 1 "cannot write to stdout" --prompt Hi >&-
# What is only told is held to the same: nothing of it may be lost and the end be well.
cp "$BIN/tandem-report" "$BIN/tandem-bench" "$WORK/bin/"
while read -r tandem words; do
    "${!tandem}" $words >/dev/full 2>"$WORK/untold.err" </dev/null
    CODE=$? TOOK=0
    expect untold "tandem $words >/dev/full: expected exit 74 and a line: $(cat "$WORK/untold.err")" \
        '[ $CODE = 74 ] && [ "$(wc -l <"$WORK/untold.err")" = 1 ] && grep -q "cannot write to stdout: a full disk, or a closed stream$" "$WORK/untold.err"'
done <<END
source --help
source help run
source fetch
installed --version
installed run --help
installed run --dry-run --prompt Hi
installed check --list-breaks
installed sbatch --help
installed sbatch --version
installed sbatch --print --prompts $WORK/some.in --output $WORK/untold.jsonl
installed bench --help
installed bench --version
installed report --help
installed report $SOURCE/launch/bench/results/embedded $SOURCE/launch/bench/results/smollm2
drafter --version
END
# What is to be tried is not submitted.
mkdir "$WORK/sbatch"
printf '#!/bin/sh\ncat >"%s/submitted"\n' "$WORK" >"$WORK/sbatch/sbatch"
chmod +x "$WORK/sbatch/sbatch"
for shown in --print --dry-run ''; do
    # shellcheck disable=SC2086
    PATH=$WORK/sbatch:$PATH "$installed" sbatch $shown --prompts "$WORK/some.in" --output "$WORK/shown.jsonl" >"$WORK/shown" 2>"$WORK/shown.err" </dev/null
    CODE=$? TOOK=0
    expect shown "sbatch $shown: $(cat "$WORK/shown.err")" \
        '[ $CODE = 0 ] && if [ -n "$shown" ]; then grep -q "^#SBATCH" "$WORK/shown" && [ ! -e "$WORK/submitted" ]; else grep -q "^#SBATCH" "$WORK/submitted"; fi'
done
brief no-stdin 0 0 "error" --prompt Hi --output "$WORK/no-stdin.jsonl" <&- >&-
brief no-ranks 71 1 "mpirun could not start the ranks" --prompt Hi --mpirun-options --bogus
brief no-shell 134 0 "error:" --prompt Hi --mpirun-options "\$(touch $WORK/touched)"
expect no-shell "a shell ran what an option says" '[ ! -e "$WORK/touched" ]'
# Where both streams go to one place, the figures come behind the text, as one stream; else stdout has the text alone.
brief uncoloured 0 1 "^tandem: --show-drafts shows drafts by colours" --prompt Hi --show-drafts >"$WORK/uncoloured.out"
brief alone 0 1 "^4 tokens in .* tokens/s" --prompt Hi >"$WORK/alone.out"
timeout -k 5 60 "$WORK/bin/tandem" run --max-tokens 4 --verifiers 1 --prompt Hi >"$WORK/both.out" 2>&1
eval "$("$BIN/tandem-verifier" --dry-run --terminal 16 --max-tokens 4 --verifiers 1 --prompt Hi)" >"$WORK/one.out" 2>"$WORK/one.err"
for name in both one; do
    expect $name "the text, then the figures: $(cat "$WORK/$name.out")" 'grep -q "^4 tokens in .* tokens/s" <(tail -n 1 "$WORK/$name.out") &&
        cmp -s "$WORK/alone.out" <(head -n -1 "$WORK/$name.out")'
done
cat "$WORK/some.in" "$WORK/some.in" "$WORK/some.in" "$WORK/some.in" >"$WORK/many.in"
timeout -k 5 60 "$WORK/bin/tandem" run --max-tokens 16 --prompts "$WORK/many.in" 2>"$WORK/head.err" | head -n 1 >"$WORK/head.out"
CODE=${PIPESTATUS[0]} TOOK=0
expect head "expected exit 141, and no word" "[ \$CODE = 141 ] && ! grep -q 'error\|SIG' '$WORK/head.err'"

# Options of bash that somebody exported are not this script's.
CODE=0 TOOK=0
env SHELLOPTS=noexec:noglob BASHOPTS=extdebug "$WORK/bin/tandem" --version >"$WORK/noexec.out" 2>"$WORK/noexec.err" || CODE=$?
expect noexec "expected its version: $(cat "$WORK/noexec.out")" '[ $CODE = 0 ] && grep -q "^tandem [0-9]" "$WORK/noexec.out"'

# Prompts that come slowly: until the last of them the job has not begun.
mkfifo "$WORK/pipe"
timeout -k 5 60 "$WORK/bin/tandem" run --max-tokens 4 --prompts - --output "$WORK/slow.jsonl" <"$WORK/pipe" >"$WORK/slow.out" 2>"$WORK/slow.err" &
TIMEOUT_PID=$!
exec 9>"$WORK/pipe"
head -n 3 "$WORK/some.in" >&9
sleep 0.5
kill -TERM "$(children_of $TIMEOUT_PID | head -n 1)"
ended 20
exec 9>&-
expect slow "expected exit 143, and nothing begun" "[ \$CODE = 143 ] && [ ! -e '$WORK/slow.jsonl' ] && [ ! -e '$WORK/slow.jsonl.journal' ]"
brief piped 0 0 "error" --prompts - --output "$WORK/piped.jsonl" < <(head -n 3 "$WORK/some.in")
expect piped "expected 3 results" '[ "$(grep -c . "$WORK/piped.jsonl")" = 3 ]'

# A folder of one's own for the recorders has what an earlier job left. Whatever the clock was set to meanwhile, only what this one wrote is its story.
mkdir -m 700 "$WORK/recorder"
echo "1700000000.500000000 rank 0 verifier: ends: an earlier job" >"$WORK/recorder/rank-0000"
touch -d '+1 hour' "$WORK/recorder/rank-0000"
brief earlier 0 0 "error" --prompt Hi --recorder "$WORK/recorder"
expect earlier "it told the story of an earlier job" '[ ! -e "$WORK/recorder/story" ]'
brief broken 66 1 "error" --prompt Hi --recorder "$WORK/recorder" --target "$WORK/no-model"
echo "1700000000.500000000 rank 0 verifier: ends: an earlier job" >"$WORK/recorder/rank-0007"
touch -d '+1 hour' "$WORK/recorder/rank-0007"
launch told --recorder "$WORK/recorder"
kill -KILL "$(ranks_of tandem-verifier | tail -n 1)"
ended 60
expect told "expected a story of this job alone" '[ -s "$WORK/recorder/story" ] && ! grep -q "an earlier job" "$WORK/recorder/story"'

# Prompts from a pipe that nobody writes, and its end: what is kept is asked for without them.
mkfifo "$WORK/silent"
TMPDIR=$WORK/tmp timeout -k 5 60 "$WORK/bin/tandem" run --prompts "$WORK/silent" --solo --verifiers 1 --output "$WORK/silent.jsonl" >"$WORK/silent.out" 2>"$WORK/silent.err" &
TIMEOUT_PID=$!
await "the launcher's mpirun" '[ -n "$(children_of "$(children_of $TIMEOUT_PID | head -n 1)")" ]'
sleep 1 # what it has begun by then may be any of its parts
kill -TERM "$(children_of $TIMEOUT_PID | head -n 1)"
ended 30
expect silent "expected exit 143 within 30 s" '[ $CODE = 143 ]'

# A program that is missing.
mv "$WORK/bin/tandem-drafter" "$WORK/elsewhere"
brief missing 66 1 "bin/tandem-drafter is not there or cannot be executed" --prompt Hi
# One that is there, and is none: mpirun's code for that is no signal's.
printf 'no program' >"$WORK/bin/tandem-drafter"
chmod +x "$WORK/bin/tandem-drafter"
brief damaged 66 1 "bin/tandem-drafter cannot be executed on this host" --prompt Hi
rm "$WORK/bin/tandem-drafter"
mv "$WORK/elsewhere" "$WORK/bin/tandem-drafter"
finish
