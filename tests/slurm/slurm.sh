#!/usr/bin/env bash
# Jobs under a real SLURM of three nodes, started as a user would: every launch form, and what ends a job before its time. Whatever happens to
# a job, what it leaves is whole, and in the end the output is that of an undisturbed one, to the byte. slurm.sh BIN [PART...]
. "$(dirname "$0")/../mpi/end_to_end/job.sh"
. "$(dirname "$0")/cluster.sh"
trap 'cluster_close; rm -rf "$WORK"' EXIT
cluster_open "$WORK"
export OMPI_MCA_btl_tcp_if_include=lo # all nodes are here
mkdir "$WORK/bin"
cp "$SOURCE/launch/tandem" "$BIN/tandem-verifier" "$BIN/tandem-drafter" "$WORK/bin/" # as installed
cp "$PROMPTS" "$WORK/many.in"
for i in 1 2 3; do cat "$WORK/many.in" "$WORK/many.in" >"$WORK/more.in" && mv "$WORK/more.in" "$WORK/many.in"; done
head -n 240 "$WORK/many.in" | sed -E 's/"id": *"[^"]*", *//' >"$WORK/more.in" && mv "$WORK/more.in" "$WORK/many.in"
head -n 12 "$PROMPTS" >"$WORK/few.in"
few=(--prompts few.in --plain-results --max-tokens 24)
many=(--prompts many.in --plain-results --max-tokens 32 --watchdog 0)
cd "$WORK" || exit

# check WHAT COMMAND...: one check.
check() {
    local what=$1
    shift
    checks=$((checks + 1))
    "$@" && return
    fail "$what: $(tail -n 60 "$WORK"/tandem-"${JOB:-none}"*.out 2>/dev/null)"
    return 1
}

# patiently WHAT TEST: as await, for what SLURM takes its time with, which is asked a few times a second.
patiently() {
    local i
    for ((i = 0; i < 600; i++)); do
        eval "$2" && return
        nap 0.2
    done
    fail "waited 120 s for $1"
    squeue
    return 1
}

# submit OPTION...: `tandem sbatch`; sets JOB.
submit() {
    JOB=
    JOB=$("$WORK/bin/tandem" sbatch "$@" 2>"$WORK/submit.err" | sed -n 's/^Submitted batch job //p')
    check "tandem sbatch $*: $(cat "$WORK/submit.err")" [ -n "$JOB" ]
}

# field NAME: of the job and, where it is an array or heterogeneous, of all its parts, one a line.
field() { scontrol show job "$JOB" 2>/dev/null | tr ' ' '\n' | sed -n "s/^$1=//p"; }
# Until the job is over; sets CODE, the largest exit code of its parts.
ended() {
    patiently "the end of job $JOB" '[ -n "$(field JobState)" ] && ! field JobState | grep -qE "PENDING|RUNNING|COMPLETING|CONFIGURING"'
    CODE=$(field ExitCode | sort -n | tail -n 1)
}
done_in() { grep -c '^{"index"' "$1.journal" 2>/dev/null; }
after= # a job that was well
await_results() { await "$2 results in $1" "has_lines '$1.journal' $2 '{\"index\"'" 120; }
# ranks PROGRAM: its processes, in order of rank, of this cluster alone.
ranks() {
    local pid
    for pid in $(cluster_processes); do
        [ "$(program_of "$pid")" = "$1" ] && echo "$(tr '\0' '\n' <"/proc/$pid/environ" | sed -n 's/^PMIX_RANK=//p') $pid"
    done | sort -n | cut -d' ' -f2
}
# SLURM has cleared away what it started, which takes it a moment. A job is queued again for two minutes later, and the tests do not wait so long.
idle() {
    local pid
    for pid in $(cluster_processes); do
        case $(program_of "$pid") in slurmstepd | srun | slurm_script | tandem-*) return 1 ;; esac
    done
}
again() {
    patiently "the end of its first start" idle
    scontrol update jobid="$JOB" starttime=now
}
nobody() { [ -z "$(ranks tandem-drafter)$(ranks tandem-verifier)" ]; }
# was WHAT CODE OUTPUT REFERENCE: how a job ended and what it gave.
was() {
    check "$1: exit $CODE, expected $2" [ "$CODE" = "$2:0" ]
    check "$1: the output differs" cmp "$3" "$4"
}

# Srun: by a file of programs, by hand, by tandem run.
part_programs() {
    local code

    for rank in "0 $BIN/tandem-drafter" "1-2 $BIN/tandem-verifier"; do echo "$rank ${few[*]} --output prog.jsonl"; done >prog.conf
    SLURM_PMIX_FENCE=ring timeout 60 srun --mpi=pmix -N3 -n3 --multi-prog prog.conf 2>prog.err
    code=$?
    check "srun --multi-prog: exit $code, expected 0: $(cat prog.err)" [ $code = 0 ]
    check "srun --multi-prog: the output differs" cmp prog.jsonl few.jsonl
    timeout 60 "$WORK/bin/tandem" run --launcher srun "${few[@]}" --verifiers 2 --output run.jsonl 2>run.err
    code=$?
    check "tandem run --launcher srun: exit $code, expected 0: $(cat run.err)" [ $code = 0 ]
    check "tandem run --launcher srun: the output differs" cmp run.jsonl few.jsonl
    timeout 60 "$WORK/bin/tandem" run --launcher srun "${few[@]}" --srun-options --bogus --output run.jsonl 2>run.err
    check "srun that cannot start: exit $?, expected 71" [ $? = 71 ]
}

# A rank that starts later than the others: none sends to it before it can receive, which it does not survive.
part_late() {
    local late=$BIN/../tests/late_start.so layout options code

    [ -e "$late" ] || { echo "skipped: $late is not there, which a build with sanitizers does not have"; return; }
    options=("${few[@]}" --verifiers 2 --drafter-environment "LD_PRELOAD=$(realpath "$late")" --output late.jsonl)
    timeout 60 "$WORK/bin/tandem" run --launcher srun "${options[@]}" --srun-options "--nodes=3 --ntasks-per-node=1" 2>late.err
    code=$?
    check "a rank that starts late, tandem run: exit $code, expected 0: $(cat late.err)" [ $code = 0 ]
    check "a rank that starts late, tandem run: it did not" grep -q "a rank that starts late" late.err
    check "a rank that starts late, tandem run: the output differs" cmp late.jsonl few.jsonl
    for layout in group hetjob; do
        rm -f late.jsonl
        if [ $layout = group ]; then
            submit "${options[@]}" -- --nodes=3 --ntasks-per-node=1
        else
            submit "${options[@]}" --slurm-layout hetjob --verifier-sbatch --nodes=2
        fi
        ended
        was "a rank that starts late, $layout" 0 late.jsonl few.jsonl
        check "a rank that starts late, $layout: it did not" grep -q "a rank that starts late" "tandem-$JOB.out"
    done
}

# Sbatch: one group, names that need quotes.
part_group() {
    mkdir "it's a \"job\""
    cp few.in "it's a \"job\"/in put's.jsonl"
    (
        cd "it's a \"job\"" || exit
        submit --prompts "in put's.jsonl" --plain-results --max-tokens 24 --verifiers 2 --output "out's \$x.jsonl" -- --comment "a \"b\" 'c' # d"
        echo "$JOB" >"$WORK/job"
    )
    JOB=$(cat job)
    ended
    was "one group" 0 "it's a \"job\"/out's \$x.jsonl" few.jsonl
    check "one group: a comment of sbatch was not taken" [ "$(scontrol show job "$JOB" | sed -n 's/^ *Comment=//p' | tr -d '\n ')" = "a\"b\"'c'#d" ]
    after=$JOB
}

# Sbatch: mpirun within three nodes.
part_mpirun() {
    submit "${few[@]}" --launcher mpirun --verifiers 2 --output mpirun.jsonl -- --nodes=3 --ntasks-per-node=1 ${after:+--dependency=afterok:$after}
    ended
    was "mpirun, after a job that was well" 0 mpirun.jsonl few.jsonl
}

# Sbatch: heterogeneous job.
part_hetjob() {
    submit "${few[@]}" --slurm-layout hetjob --verifiers 2 --verifier-sbatch --nodes=2 --output het.jsonl
    ended
    was "heterogeneous job" 0 het.jsonl few.jsonl
    check "heterogeneous job: not on 1 + 2 nodes" [ "$(field NumNodes | paste -sd+)" = 1+2 ]
}

# Sbatch: arrays.
part_arrays() {
    submit "${few[@]}" --verifiers 1 --parts 5 --output part.jsonl
    ended
    cat part-*-of-00005.jsonl >parts.jsonl
    was "shards" 0 parts.jsonl few.jsonl
    submit "${few[@]}" --verifiers 1 --draft-lengths 1,6 --output length.jsonl --stats length.json
    ended
    was "draft length 1" 0 length-k1.jsonl few.jsonl
    was "draft length 6" 0 length-k6.jsonl few.jsonl
    check "draft lengths: figures" grep -q '"draft_length": 6' length-k6.json
}

# Scancel, and once more.
part_scancel() {
    submit "${many[@]}" --verifiers 2 --output cancel.jsonl
    await_results cancel.jsonl 3
    scancel "$JOB"
    ended
    check "scancel: $(field JobState)" [ "$(field JobState)" = CANCELLED ]
    patiently "the end of the ranks" nobody
    had=$(done_in cancel.jsonl)
    check "scancel: nothing is left of $had results" [ "$had" -ge 3 ]
    check "scancel: an output before all is there" [ ! -e cancel.jsonl ]
    submit "${many[@]}" --verifiers 2 --output cancel.jsonl --stats cancel.json
    ended
    was "after scancel" 0 cancel.jsonl many.jsonl
    submit "${many[@]}" --verifiers 2 --output cancel.jsonl
    ended
    was "what is complete is left as it is" 0 cancel.jsonl many.jsonl
    check "after scancel: $(figure cancel resumed) resumed, expected $had" [ "$(figure cancel resumed)" -ge "$had" ]
}

# The time limit. SLURM looks every 30 s, and sends what would be late at its next look: at @20 ten seconds after the start at the earliest.
part_time_limit() {
    submit "${many[@]}" --verifiers 2 --output limit.jsonl -- --time=1 --signal=B:USR1@20
    await_results limit.jsonl 3
    lead=$(ranks tandem-verifier | head -n 1)
    check "the time limit: the job was done before it could be stopped" kill -STOP "$lead" || return # it cannot be done before SLURM's signal comes
    patiently "SLURM's signal" '[ $((0x$(sed -n "s/^ShdPnd:[[:space:]]*//p" /proc/$lead/status 2>/dev/null) & 0x200)) != 0 ]'
    kill -CONT "$lead"
    patiently "the requeue" '[ "$(field Restarts)" = 1 ] && [ "$(field JobState)" = PENDING ]'
    check "the time limit: an output before all is there" [ ! -e limit.jsonl ]
    scontrol update jobid="$JOB" timelimit=10 # a slow machine's second start is not to meet it again
    again
    ended
    was "the time limit" 0 limit.jsonl many.jsonl
    check "the time limit: the log has not both starts" [ "$(grep -cE '^[0-9]+ tokens in|queued again' "tandem-$JOB.out")" = 3 ]
}

# A verifier dies: srun ends the others.
part_verifier() {
    submit "${many[@]}" --verifiers 2 --output died.jsonl -- --nodes=3 --ntasks-per-node=1
    await_results died.jsonl 3
    check "the job was done before its verifier could be ended" kill -KILL "$(ranks tandem-verifier | tail -n 1)"
    died=$JOB
    ended
    check "a verifier died: exit $CODE, expected 143" [ "$CODE" = 143:0 ]
    patiently "the end of the ranks" nobody
    submit "${few[@]}" --verifiers 1 --output never.jsonl -- --dependency=afterok:"$died"
    patiently "the verdict on the next job" '[ "$(field Reason)" = DependencyNeverSatisfied ]'
    scancel "$JOB"
}

# A drafter stands still, and for that the ranks are ended when all is done.
part_drafter() {
    submit "${many[@]}" --verifiers 1 --output stopped.jsonl -- --nodes=2 --ntasks-per-node=1
    await_results stopped.jsonl 3
    check "the job was done before its drafter could be stopped" kill -STOP "$(ranks tandem-drafter)"
    ended
    was "a drafter stands still" 0 stopped.jsonl many.jsonl
    patiently "the end of the ranks" nobody
}

# A verifier dies, and srun leaves the others to themselves.
part_unseen() {
    local had=$(done_in died.jsonl)
    submit "${many[@]}" --verifiers 2 --watchdog 5 --srun-options --kill-on-bad-exit=0 --output died.jsonl -- --nodes=3 --ntasks-per-node=1
    await_results died.jsonl $((had + 3))
    check "the job was done before its verifier could be ended" kill -KILL "$(ranks tandem-verifier | tail -n 1)"
    ended
    check "a verifier died unseen: exit $CODE, expected 76" [ "$CODE" = 76:0 ]
    patiently "the end of the ranks" nobody
    submit "${many[@]}" --verifiers 2 --output died.jsonl
    ended
    was "after two deaths" 0 died.jsonl many.jsonl
}

# The files of cluster-configs for SLURM; the second with the CPU for the GPUs that are not here.
part_configs() {
    submit --config "$SOURCE/cluster-configs/slurm-cpu-3.conf" "${few[@]}" --output cpu3.jsonl
    ended
    was "slurm-cpu-3.conf" 0 cpu3.jsonl few.jsonl
    check "slurm-cpu-3.conf: not on three nodes with two cores of each" [ "$(field NumNodes) $(field NumCPUs)" = "3 6" ]
    submit --config "$SOURCE/cluster-configs/slurm-gpu-hetjob.conf" "${few[@]}" --output gpu4.jsonl --backend cpu --cpus-per-rank 1 \
        --drafter-sbatch --nodes=1 --verifier-sbatch --nodes=1 --environment OMPI_MCA_btl=self,tcp
    ended
    was "slurm-gpu-hetjob.conf" 0 gpu4.jsonl few.jsonl
    check "slurm-gpu-hetjob.conf: not on 1 + 1 nodes" [ "$(field NumNodes | paste -sd+) $(field NumTasks | paste -sd+)" = "1+1 1+4" ]
}

# What every rank sees of two GPUs of its node: all of them, so that NCCL finds its paths between them.
part_gpus() {
    [ "$CLUSTER_GPUS" = 2 ] || { echo "skipped: devices cannot be made here, so no rank is given one"; return; }
    local layout seen program

    mkdir seeing
    for program in tandem-drafter tandem-verifier; do
        printf '#!/bin/bash\necho "$CUDA_VISIBLE_DEVICES" >"%s/$SLURM_JOB_ID.$PMIX_RANK"\nexec "%s" "$@"\n' "$WORK/seeing" "$WORK/bin/$program" >"seeing/$program"
        chmod +x "seeing/$program"
    done
    for layout in group hetjob; do
        "$WORK/bin/tandem" sbatch --print "${few[@]}" --verifiers 2 --slurm-layout $layout --sbatch-options "--nodes=1 --gpus-per-node=2" \
            --environment OMPI_MCA_btl=self,tcp --output gpus.jsonl | sed "s|^bin=.*|bin=$WORK/seeing|" >gpus.sh
        JOB=$(sbatch gpus.sh | sed -n 's/^Submitted batch job //p')
        ended
        was "gpus, $layout, by a script that was printed" 0 gpus.jsonl few.jsonl
        seen=$(cat seeing/[0-9]* | paste -sd' ')
        check "gpus, $layout: the ranks saw '$seen', expected all of them" [ "$seen" = "0,1 0,1 0,1" ]
        rm -f seeing/[0-9]* gpus.jsonl
    done
}

# A node dies, and the job goes on elsewhere.
part_node() {
    submit "${many[@]}" --verifiers 1 --output node.jsonl -- --nodes=2 --ntasks-per-node=1
    await_results node.jsonl 3
    kill -KILL $(node_processes 2)
    patiently "SLURM's notice of a dead node" '[ "$(field Restarts)" = 1 ] && [ "$(field JobState)" = PENDING ]'
    check "a node died: an output before all is there" [ ! -e node.jsonl ]
    again
    ended
    was "a node died" 0 node.jsonl many.jsonl
    check "a node died: the job went on on $(field NodeList)" [ "$(field NodeList)" = 'n[1,3]' ]
}

job few "${few[@]/few.in/$WORK/few.in}" --solo --verifiers 1 || fail "the reference: exit $?"
job many "${many[@]/many.in/$WORK/many.in}" --solo --verifiers 1 || fail "the reference: exit $?"

parts=("${@:2}")
[ ${#parts[@]} -gt 0 ] || parts=(programs late group mpirun hetjob arrays configs scancel time_limit verifier drafter unseen gpus node)
for part in "${parts[@]}"; do
    printf '%3d s: %s\n' "$SECONDS" "$part"
    "part_$part"
done
printf '%3d s: the end\n' "$SECONDS"
[ "$failures" = 0 ] || tail -n 15 "$CLUSTER"/log/slurm*.log
finish
