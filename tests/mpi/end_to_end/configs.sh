#!/usr/bin/env bash
# Every file of cluster-configs: it starts what its head says, one that needs no cluster runs, and a key that is wrong is told with its place and
# the nearest known one. configs.sh BIN
. "$(dirname "$0")/job.sh"
cd "$SOURCE" || exit

# said FILE: the command in the file's head, as one line.
said() { sed -n '/^; \(submits a job that \)\?starts$/,/^$/p' "$1" | sed '1d; s/^; *//' | paste -sd' ' | sed 's/ *$//'; }
# plain LINE: without what depends on the machine, the user and the options.
plain() {
    sed -E "s#$BIN/##g; s# --allow-run-as-root##; s#env OMPI_MCA_mpi_yield_when_idle=1 SLURM_PMIX_FENCE=ring ##; s# --config [^ ]* --prompts [^ ]*# OPTIONS#g
        s#bash -c 'if [^']*'#bash -c ROLE#; s#bash -c 'trap [^']*'#bash -c LINGER#"
}

# Under srun ranks wait for each other in MPI_Init only so (launch/README.md): the lines that are compared below have it, and so has a script.
checks=$((checks + 1))
"$BIN/tandem-verifier" --launcher srun --prompts "$PROMPTS" --output "$WORK/out.jsonl" --batch-script 2>&1 | grep -qx 'export SLURM_PMIX_FENCE=ring' ||
    fail "a batch script does not export SLURM_PMIX_FENCE=ring"

count=0
for file in cluster-configs/*.conf; do
    count=$((count + 1)) checks=$((checks + 1))
    width=() expected=$(said "$file")
    if grep -qx 'verifiers = 16' "$file"; then # the embedded target has 8 heads
        width=(--verifiers 8) expected=${expected/--ntasks=17/--ntasks=9}
    fi
    line=$("$BIN/tandem-verifier" --config "$file" --prompts "$PROMPTS" --dry-run ${width[@]+"${width[@]}"} 2>"$WORK/err" | plain | sed 's# OPTIONS --verifiers 8# OPTIONS#g')
    [ "$line" = "$expected" ] || fail "$file says '$expected', --dry-run '$line' $(cat "$WORK/err")"
    checks=$((checks + 1))
    grep -q "^| $(basename "$file") |" cluster-configs/README.md || fail "$file is not in cluster-configs/README.md"
done
checks=$((checks + 1))
[ "$count" -ge 10 ] || fail "$count files, expected 10 at least"


head -n 3 "$PROMPTS" >"$WORK/few.in"
job laptop --config cluster-configs/laptop-cpu.conf --prompts "$WORK/few.in" --max-tokens 16 --hash-logits || fail "laptop-cpu.conf: exit $?: $(cat "$WORK/laptop.err")"
job solo --prompts "$WORK/few.in" --max-tokens 16 --hash-logits --solo --verifiers 1 || fail "solo: exit $?"
same laptop solo

# wrong TEXT CODE EXPECTED: a config file of that text is refused.
wrong() {
    printf '%s\n' "[ranks]" "$1" >"$WORK/wrong.conf"
    checks=$((checks + 1))
    "$BIN/tandem-verifier" --config "$WORK/wrong.conf" --prompts "$PROMPTS" --dry-run >"$WORK/out" 2>"$WORK/err"
    [ $? = "$2" ] && [ "$(grep -c . "$WORK/err")" = 1 ] && grep -qF -- "$3" "$WORK/err" || fail "'$1': expected $2 and '$3', got: $(cat "$WORK/err" "$WORK/out")"
}
wrong "verifer-devices = 0" 64 "wrong.conf:2: unknown key 'verifer-devices'; did you mean 'verifier-devices'?"
wrong "launcher = slurm" 64 "wrong.conf:2: launcher is 'slurm', expected mpirun|srun"
wrong "slurm-layout = hetjob" 64 "--slurm-layout hetjob needs --launcher srun"
wrong "environment = NCCL_DEBUG" 64 "--environment has 'NCCL_DEBUG', expected words NAME=VALUE"
wrong "drafter-devices = 0;1" 64 "--drafter-devices is '0;1', expected at most 64 numbers"
wrong "verifiers = 3" 64 "3 verifiers cannot share this model"

# Nothing of what options say becomes a line of a batch script: what SLURM's own lines cannot hold is refused, the rest is quoted.
mkdir "$WORK/trace"
script() { "$BIN/tandem-verifier" --batch-script --prompts "$PROMPTS" --output "$WORK/out.jsonl" "$@" >"$WORK/script" 2>"$WORK/err"; }
no_script() { # EXPECTED OPTION...
    local expected=$1
    shift
    checks=$((checks + 1))
    script "$@"
    [ $? = 64 ] && [ ! -s "$WORK/script" ] && grep -qF -- "$expected" "$WORK/err" || fail "$*: expected 64 and '$expected', got: $(cat "$WORK/err" "$WORK/script")"
}
for option in --sbatch-options --drafter-sbatch --verifier-sbatch --sbatch-word; do
    no_script "an option of sbatch has a line break in it" --slurm-layout hetjob $option $'--comment=a\ntouch '"$WORK/ran"
done
no_script "would write over each other's --trace" --parts 2 --trace "$WORK/trace"
no_script "would write over each other's --trace" --draft-lengths 1,2 --trace "$WORK/trace"
script --stop $'x"\'`touch '"$WORK"$'/ran`\n$(touch '"$WORK/ran)" --environment "A=\$(touch$WORK/ran)" --srun-options "\$(touch $WORK/ran)" \
    --sbatch-word "--comment=\$(touch $WORK/ran) \`touch $WORK/ran\`" || fail "a script with all kinds of quotes: exit $?: $(cat "$WORK/err")"
mkdir "$WORK/path"
for tool in srun scontrol squeue; do printf '#!/bin/sh\nexit 0\n' >"$WORK/path/$tool" && chmod +x "$WORK/path/$tool"; done
PATH=$WORK/path:$PATH SLURM_JOB_ID=1 bash "$WORK/script" >"$WORK/out" 2>&1
code=$?
checks=$((checks + 2))
[ $code = 71 ] || fail "a script whose srun starts nothing: exit $code, expected 71: $(cat "$WORK/out")"
[ ! -e "$WORK/ran" ] || fail "a text of an option was run as a command: $(cat "$WORK/script")"

# A file of options may be another one when the job starts: the script has what it said, before the command line, which wins.
printf '%s\n' '[all]' 'max-tokens = 7' 'ignore-eos = true' 'stop = a "quote" and $(touch '"$WORK/ran"')' 'verifiers = 2' 'output = other.jsonl' >"$WORK/few.conf"
checks=$((checks + 1))
(cd "$WORK" && script --config few.conf --launcher mpirun --max-tokens 9) || fail "a script of a file of options: exit $?: $(cat "$WORK/err")"
rm "$WORK/few.conf"
mkdir -p "$WORK/bin.few" && printf '#!/bin/bash\nprintf "%%s\\n" "$@"\n' >"$WORK/path/mpirun" && chmod +x "$WORK/path/mpirun"
PATH=$WORK/path:$PATH SLURM_JOB_ID=1 bash "$WORK/script" >"$WORK/out" 2>&1
[ "$(grep -c -- '^--max-tokens' "$WORK/out")" = 4 ] && [ "$(grep -- '^--max-tokens' "$WORK/out" | head -n 2 | tail -n 1)" = --max-tokens ] &&
    grep -qxF -- '--stop=a "quote" and $(touch '"$WORK/ran"')' "$WORK/out" && grep -qx -- --ignore-eos=true "$WORK/out" &&
    ! grep -q -- '--config\|few.conf\|other.jsonl' "$WORK/out" && [ ! -e "$WORK/ran" ] || fail "a script of a file of options: $(cat "$WORK/script" "$WORK/out")"

# An srun that waits for itself when its ranks have ended is ended. stuck WHAT CODE RANKS: 0 where the ranks had completed the output.
printf '#!/bin/sh\nexec "%s" 0.1\n' "$(command -v sleep)" >"$WORK/path/sleep" && chmod +x "$WORK/path/sleep" # the script's seconds are shorter here
mkfifo "$WORK/never"
stuck() {
    rm -f "$WORK/out.jsonl" "$WORK/out.jsonl.journal"
    printf '#!/bin/bash\ncase "$*" in *none*) exit ;; esac\n%s\nread -r -t 60 <>"%s"\n' "$3" "$WORK/never" >"$WORK/path/srun"
    PATH=$WORK/path:$PATH SLURM_JOB_ID=1 timeout 50 bash "$WORK/script" >"$WORK/out" 2>&1
    code=$?
    checks=$((checks + 1))
    [ $code = "$2" ] || fail "srun waits for itself, $1: exit $code, expected $2: $(cat "$WORK/out")"
}
script --slurm-layout hetjob || fail "a script for a heterogeneous job: exit $?: $(cat "$WORK/err")"
stuck "the output is complete" 0 "touch '$WORK/out.jsonl'"
stuck "there is a journal still" 137 "touch '$WORK/out.jsonl' '$WORK/out.jsonl.journal'"
stuck "there is no output" 137 ""

# An mpirun that dies of SLURM's warning. killed WHAT CODE RANKS
killed() {
    rm -f "$WORK/out.jsonl" "$WORK/out.jsonl.journal"
    [ -z "${BEFORE-}" ] || : >"$WORK/out.jsonl"
    printf '#!/bin/bash\n%s\nkill -USR1 $$\n' "$3" >"$WORK/path/mpirun" && chmod +x "$WORK/path/mpirun"
    PATH=$WORK/path:$PATH SLURM_JOB_ID=1 timeout 50 bash "$WORK/script" >"$WORK/out" 2>&1
    code=$?
    checks=$((checks + 1))
    [ $code = "$2" ] || fail "mpirun dies of a warning, $1: exit $code, expected $2: $(cat "$WORK/out")"
}
script --launcher mpirun || fail "a script for mpirun: exit $?: $(cat "$WORK/err")"
killed "the output is complete" 0 "touch '$WORK/out.jsonl'"
BEFORE=1 killed "the output is that of another job" 75 ""
killed "there is a journal still" 75 "touch '$WORK/out.jsonl' '$WORK/out.jsonl.journal'"

# Open MPI's files are in a folder of this start alone, which goes with it, whatever its name.
odd="$WORK/it's; touch ran;"
mkdir "$odd"
TMPDIR=$odd killed "it has a folder" 0 "touch '$WORK/out.jsonl'; stat -c '%a %n' \"\$TMPDIR\" >'$WORK/seen'; touch \"\$TMPDIR/ompi\""
checks=$((checks + 2))
[[ $(cat "$WORK/seen") == "700 $odd/tandem-"* ]] || fail "mpirun's TMPDIR is no folder of its own: $(cat "$WORK/seen")"
[ -z "$(ls "$odd")" ] && [ ! -e "$WORK/ran" ] || fail "the script left its folder, or ran its name: $(ls "$odd")"
TMPDIR=$WORK/nowhere killed "there is no room for a folder" 74 ""
finish
