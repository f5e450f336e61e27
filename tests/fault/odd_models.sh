#!/usr/bin/env bash
# Models as somebody else may have made them: a GGUF file whose strings are commands for a shell, a page or a terminal, which are refused in a line that
# can be read or change nothing; and one that sixteen ranks can share, more than there are cores.
# odd_models.sh BIN LAW_JOB, which writes tiny models, and CONVERT, which writes GGUF files.
. "$(dirname "$0")/inject.sh"
LAW_JOB=$2 CONVERT=$3
CODE=0 TOOK=0
mkdir "$WORK/bin" "$WORK/here" "$WORK/trace"
cp "$SOURCE/launch/tandem" "$BIN"/tandem-* "$WORK/bin/" # as installed
tandem=$WORK/bin/tandem
head -n 3 "$PROMPTS" >"$WORK/few.in"

# --- strings

# What each of them would do: make a file `touched`, end an attribute or a cell, set a terminal's title.
hostile=$'\'"; touch touched; $(touch touched) `touch touched` | </td><script>alert(1)</script> ${HOME}\n#SBATCH --wrap=touch\n\e]0;title\a\xc2\x9b31m'
raw=$'\e\\|\a\\|\xc2\x9b'
for program in touch alert; do
    printf '#!/bin/sh\n: >"%s/ran"\n' "$WORK" >"$WORK/trace/$program"
    chmod +x "$WORK/trace/$program"
done
export PATH=$WORK/trace:$PATH

# tried NAME COMMAND...: the command, in a folder in which nothing may appear; CODE.
tried() {
    local name=$1
    shift
    CODE=0
    (cd "$WORK/here" && timeout -k 5 120 "$@" >"$WORK/$name.out" 2>"$WORK/$name.err" </dev/null) || CODE=$?
    expect "$name" "something of it was run: $(ls "$WORK/here")" '[ ! -e "$WORK/ran" ] && [ ! -e "$WORK/here/touched" ]'
}
# file NAME PRE [KEY TEXT]...
file() { "$CONVERT" "${folder:-$SOURCE/launch/demo/draft}" "$WORK/$1.gguf" stored "${@:2}" || fail "cannot make $1.gguf"; }

# What a program does not know is refused in one line that a terminal does not obey.
file architecture gpt-2 general.architecture "$hostile"
file pre "$hostile"
file template gpt-2 tokenizer.chat_template "$hostile"
file scaling gpt-2 llama.rope.scaling.type "$hostile"
refused() { # NAME WORD...
    local name=$1
    shift
    for command in "run" "run --dry-run" "sbatch --print"; do
        tried "$name" "$tandem" $command "$@" --prompts "$WORK/few.in" --output "$WORK/$name.jsonl" --verifiers 1
        expect "$name" "$command: expected 65 and a line that can be read" \
            '[ $CODE = 65 ] && [ "$(grep -c . "$WORK/'"$name"'.err")" = 1 ] && ! LC_ALL=C grep -q "$raw" "$WORK/'"$name"'.err" && [ ! -s "$WORK/'"$name"'.out" ]'
        expect "$name" "$command: what it has is not shown" 'grep -q "'"$name"'.gguf: .*\(architecture\|pre\|scaling\|template\)" "$WORK/'"$name"'.err"'
    done
}
refused architecture --target "$WORK/architecture.gguf" --solo
refused pre --target "$WORK/pre.gguf" --solo
refused scaling --target "$WORK/scaling.gguf" --solo
tried template "$tandem" run --target "$WORK/template.gguf" --solo --chat Hi --verifiers 1
expect template "expected 65 and a line" '[ $CODE = 65 ] && ! LC_ALL=C grep -q "$raw" "$WORK/template.err"'

# What nobody reads changes nothing: whole jobs, scripts, pages. The words of the tokenizer are in it, too.
folder=$WORK/folder
cp -r "$SOURCE/launch/demo/draft" "$folder"
names=(general.name "$hostile" general.description "$hostile" general.license "$hostile" general.basename "$hostile")
file plain gpt-2
file named gpt-2 "${names[@]}"
for name in plain named; do
    tried "$name" "$tandem" run --quiet --target "$WORK/$name.gguf" --draft "$WORK/$name.gguf" --prompts "$WORK/few.in" --max-tokens 8 --verifiers 1 --plain-results \
        --output "$WORK/$name.jsonl" --stats "$WORK/$name.json"
    expect "$name" "expected exit 0" '[ $CODE = 0 ]'
    tried "$name.dry" "$tandem" run --dry-run --target "$WORK/$name.gguf" --draft lookup --prompts "$WORK/few.in" --verifiers 1
    tried "$name.script" "$tandem" sbatch --print --target "$WORK/$name.gguf" --draft lookup --prompts "$WORK/few.in" --output "$WORK/o.jsonl" --verifiers 1
done
expect named "its output is not that of a file without" '[ -s "$WORK/plain.jsonl" ] && cmp -s "$WORK/plain.jsonl" "$WORK/named.jsonl"'
for kind in dry script; do
    expect "named.$kind" "it is not that of a file without: $(diff "$WORK/plain.$kind.out" "$WORK/named.$kind.out" | head -n 4)" \
        '[ -s "$WORK/plain.'$kind'.out" ] && cmp -s <(sed "s/plain[.]/named./g" "$WORK/plain.'$kind'.out") "$WORK/named.'$kind'.out"'
done
# A bench names the model by its file, which may be called what it likes.
odd="$WORK/it's <b>\$(touch touched)&\`touch touched\`.gguf"
mv "$WORK/named.gguf" "$odd"
tried page "$tandem" bench --target "$odd" --draft lookup --draft-lengths 2 --temperatures 0 --accepts rejection --batches 1 --repetitions 2 --requests 1 --max-tokens 4 \
    --noise-limit 1000 --output "$WORK/bench"
expect page "expected exit 0" '[ $CODE = 0 ]'
# But for its commands, which stand as blocks of code, report.md is what a browser may be given, as report.html is.
grep -v '^    ' "$WORK/bench/report.md" >"$WORK/page.text"
expect page "a page has what a browser or a terminal obeys: $(grep -il '<script>alert\|<b>\$' "$WORK"/page.text "$WORK"/bench/report.html)" \
    '[ -s "$WORK/page.text" ] && [ -s "$WORK/bench/report.html" ] && ! grep -qi "<script>alert\|<b>\\$" "$WORK/page.text" "$WORK/bench/report.html" &&
        ! LC_ALL=C grep -q "$raw" "$WORK"/bench/report.*'
expect page "a page does not name the model" 'grep -qF "s &lt;b&gt;" "$WORK/bench/report.html" && grep -qF "it'"'"'s &lt;b&gt;" "$WORK/page.text"'
# Who copies a command from it runs that and nothing else.
command=$(sed -n '/^    tandem bench/{s/^ *//p;q}' "$WORK/bench/report.md")
tried copied bash -c "tandem() { printf '%s\n' \"\$@\"; }; $command"
expect copied "it is not the command that was given: $(cat "$WORK/copied.out")" '[ "$(sed -n 3p "$WORK/copied.out")" = "$odd" ] && [ "$(tail -n 2 "$WORK/copied.out")" = "--output
$WORK/bench" ]'

# A piece of the tokenizer, which the model is made to say: a pipe and a result have its bytes, the results' page of nothing else.
sed 's/"content": "<|user|>"/"content": "$(touch touched)<script>\\u001b]0;title\\u0007\\u009b"/; s/"<|user|>": 1/"$(touch touched)<script>\\u001b]0;title\\u0007\\u009b": 1/' \
    "$SOURCE/launch/demo/draft/tokenizer.json" >"$folder/tokenizer.json"
file piece gpt-2
tried piece "$tandem" run --quiet --target "$WORK/piece.gguf" --solo --prompt x --max-tokens 2 --logit-bias 1:100 --verifiers 1 --output "$WORK/piece.jsonl"
expect piece "expected exit 0, and the piece or nothing of it" '[ $CODE = 0 ] && ! LC_ALL=C grep -q "$raw" "$WORK/piece.jsonl"'

# --- sixteen verifiers

"$LAW_JOB" write "$WORK" 6 16 256 || fail "no model of sixteen heads"
tiny=(--target "$WORK/target.bin" --draft "$WORK/draft.bin" --prompts "$WORK/prompts.jsonl" --max-sequences 3 --draft-length 3 --max-tokens 10 --ignore-eos --threads 1
    --hash-logits)
for way in greedy coupled; do
    [ $way = greedy ] && drawn=(--temperature 0) || drawn=(--temperature 1 --seed 7 --accept coupled)
    for verifiers in 1 16; do
        job $way$verifiers "${tiny[@]}" "${drawn[@]}" --verifiers $verifiers --draft-deadline 20000 || fail "$way, $verifiers verifiers: exit $?: $(head -n 3 "$WORK/$way$verifiers.err")"
    done
    same ${way}16 ${way}1
    expect ${way}16 "$(figure ${way}16 accepted) drafts stood" '[ "0$(figure '$way'16 accepted)" -gt 0 ] && [ "$(figure '$way'16 ranks)" != 1 ]'
done
job wide "${tiny[@]}" --verifiers 32
CODE=$?
expect wide "more verifiers than heads: expected 64 and a line" '[ $CODE = 64 ] && grep -q "verifiers cannot share this model" "$WORK/wide.err"'
finish
