#!/usr/bin/env bash
# The manual's texts: `tandem help` prints each, from a checkout as from an installed form, and they name no option that is not there. manual.sh BIN
. "$(dirname "$0")/job.sh"
pages=$SOURCE/launch/manual
expect() { # WHAT TEST...
    local what=$1
    shift
    checks=$((checks + 1))
    "$@" || fail "$what: $(head -c 700 "$WORK/said")"
}
installed=$WORK/installed/bin/tandem
mkdir -p "$WORK/installed/bin" "$WORK/installed/share/tandem"
cp "$SOURCE/launch/tandem" "$installed"
cp -r "$pages" "$WORK/installed/share/tandem/"

for topic in run prompts stats sbatch check; do
    "$SOURCE/launch/tandem" help $topic >"$WORK/said" 2>&1
    expect "help $topic: exit $?" [ $? = 0 ]
    expect "help $topic begins with its name" grep -qx "NAME" <(head -n 1 "$WORK/said")
    expect "help $topic has no marks of its source" [ "$(grep -cE '^```|^# [A-Z]|\*--|\\\\|(^| )_[A-Z]+_' "$WORK/said")" = 0 ]
    expect "help $topic fits into 84 columns" [ "$(awk 'length > 84' "$WORK/said" | wc -l)" = 0 ]
    "$installed" help $topic >"$WORK/installed.text" 2>&1
    expect "help $topic, installed, is the same" cmp -s "$WORK/said" "$WORK/installed.text"
done
for topic in chat alpha layers bench ngram datastore report test gpu-check fetch; do
    expect "help $topic is that of all commands" cmp -s <("$installed" help $topic) <("$installed" help run)
done
expect "a word in the middle of the text is whole" grep -q 'prompt_tokens_read and prefix_tokens_reused' <("$installed" help prompts | tr '\n' ' ')
expect "an escape is what it stands for" grep -qF '" not\ndisappointed.' <("$installed" help prompts)

"$installed" help draft >"$WORK/out" 2>"$WORK/said"
expect "a topic that is not there: exit $?, expected 64" [ $? = 64 ]
expect "it is named, with those that are there" grep -qx "tandem: unknown topic 'draft' of tandem help, expected run, prompts, stats, sbatch or check" "$WORK/said"
expect "one line, and nothing else" [ "$(wc -l <"$WORK/said")" = 1 -a ! -s "$WORK/out" ]
"$installed" help run check >"$WORK/said" 2>&1
expect "two topics: exit $?, expected 64" [ $? = 64 ]
rm -r "$WORK/installed/share/tandem/manual"
"$installed" help run >"$WORK/said" 2>&1
expect "texts that are not there: exit $?, expected 66" [ $? = 66 ]
expect "help without a topic needs none" [ "$("$installed" help)" = "$("$installed" --help)" ]

# The launcher says what it is asked and nothing else, and its help has every command that it takes.
"$SOURCE/launch/tandem" help >"$WORK/help" 2>"$WORK/said"
expect "help says nothing on stderr" [ ! -s "$WORK/said" ]
for command in $(sed -n '/^case \${1-} in/,/^esac/s/^\([a-z| -]*\)).*/\1/p' "$SOURCE/launch/tandem" | tr -d '|' | tr ' ' '\n' | grep -vE '^-|^$'); do
    expect "help has the command $command" grep -qE "^  tandem $command " "$WORK/help"
done

# Each page is one that scdoc can read, is installed, and is reached by a topic.
for page in "$pages"/*.scd; do
    name=$(basename "$page" .scd)
    scdoc <"$page" >"$WORK/page" 2>"$WORK/said"
    expect "scdoc reads $name: exit $?" [ $? = 0 ]
    expect "$name is made and installed" grep -q "^foreach(page .*\b$name\b" "$SOURCE/launch/CMakeLists.txt"
    expect "$name has a topic" grep -q "page=${name/%-check.1/-\$1.1}" <(sed 's/tandem-sbatch\.1/tandem-$1.1/' "$SOURCE/launch/tandem"; echo 'page=tandem-sbatch.1')
done

# Each key of --stats is explained.
sed -n '/^static json_t \*ranks_of/,/^struct json_t \*stats_job/p' "$SOURCE/verifier/job/stats.c" | grep -oE '"[a-z_]+",' | tr -d '",' | sort -u | grep -vx verifier >"$WORK/keys"
expect "keys of --stats are found" [ "$(wc -l <"$WORK/keys")" -ge 60 ]
while read -r key; do
    expect "tandem-stats(5) says what $key is" grep -qF "*$key*" "$pages/tandem-stats.5.scd"
done <"$WORK/keys"

# Options of others, and of commands that are scripts, are these; all else the programs know.
others='--print --quick --long --only --to --from --list-breaks --no-requeue --array --gpus-per-node --gpus-per-task --mpi --signal --batch --kill-on-bad-exit --help'
"$BIN/tandem-verifier" --help-man | sed 's/\\-/-/g' | grep -oE -- '--[a-z][a-z-]+' | sort -u >"$WORK/options"
tr ' ' '\n' <<<"$others" >>"$WORK/options"
for page in "$pages"/*.scd; do
    sed '/^```$/,/^```$/d' "$page" | grep -oE -- '--[a-z][a-z-]+' | sort -u | grep -vxFf "$WORK/options" >"$WORK/said"
    expect "options of $(basename "$page") that are not there" [ ! -s "$WORK/said" ]
done
finish
