# Sourced by the tests of this folder: a real SLURM of one slurmctld and three slurmd on this host. Each slurmd is a node of its own to
# slurmctld, srun and Open MPI's TCP; host name and shared memory are common, so at most one rank stands on a node where ranks use that.
#
# cluster_open FOLDER starts it, cluster_close ends every process that came of it. A guard does the same when the test itself is killed.
# A machine that cannot have it ends the test with 77 and the reason.

CLUSTER_NODES=3

skip() {
    printf 'skipped: %s\n' "$*"
    exit 77
}

# The folder of locks, in FOLDER: this user's alone, or whoever may write to FOLDER could put links there in place of locks. A cluster of another user
# is told apart by ports that answer.
cluster_locks() { # FOLDER
    local locks

    locks=$1/.tandem-slurm-$(id -u)
    mkdir -m 700 "$locks" 2>/dev/null
    [ -d "$locks" ] && [ ! -L "$locks" ] && [ -O "$locks" ] && [ -z "$(find "$locks" -maxdepth 0 -perm /077)" ] && echo "$locks"
}

# Ports that are ours alone while descriptor 8 is open: another checkout takes the next ten.
cluster_take_ports() {
    local base port locks

    locks=$(cluster_locks /tmp) || skip "/tmp/.tandem-slurm-$(id -u) is not a folder of this user alone, where the ports of clusters are told apart"
    for ((base = 21000; base < 22000; base += 10)); do
        exec 8>>"$locks/$base" || continue
        flock -n 8 || continue
        for ((port = base; port <= base + CLUSTER_NODES; port++)); do
            (exec 7<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && continue 2
        done
        CLUSTER_PORT=$base
        return
    done
    skip "no ten free ports from 21000 to 21999"
}

# Two pretended GPUs for each node. Only root makes devices, and not every container lets it.
cluster_make_gpus() {
    local gpu

    CLUSTER_GPUS=
    mkdir "$CLUSTER/dev"
    for gpu in 0 1; do mknod "$CLUSTER/dev/nvidia$gpu" c 1 3 2>/dev/null || return 0; done
    echo "NodeName=n[1-$CLUSTER_NODES] Name=gpu File=$CLUSTER/dev/nvidia[0-1]" >"$CLUSTER/gres.conf"
    CLUSTER_GPUS=2
}

cluster_configure() {
    # TmpFS with %n: else the steps of several nodes on one host fight for one folder of PMIx.
    cat >"$CLUSTER/slurm.conf" <<CONF
ClusterName=tandem
SlurmctldHost=localhost
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/none
CredType=cred/none
SlurmctldPort=$CLUSTER_PORT
SlurmctldPidFile=$CLUSTER/run/slurmctld.pid
SlurmdPidFile=$CLUSTER/run/slurmd.%n.pid
StateSaveLocation=$CLUSTER/state
SlurmdSpoolDir=$CLUSTER/spool/%n
TmpFS=$CLUSTER/tmp/%n
SlurmctldLogFile=$CLUSTER/log/slurmctld.log
SlurmdLogFile=$CLUSTER/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,sched_min_interval=100000,bf_interval=1
MpiDefault=pmix
ReturnToService=2
SlurmdParameters=config_overrides
SlurmdTimeout=5
KillWait=5
${CLUSTER_GPUS:+GresTypes=gpu}
NodeName=n[1-$CLUSTER_NODES] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[$((CLUSTER_PORT + 1))-$((CLUSTER_PORT + CLUSTER_NODES))] CPUs=4 RealMemory=2000 ${CLUSTER_GPUS:+Gres=gpu:$CLUSTER_GPUS} State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
}

# node_up N: starts the slurmd of node nN.
node_up() {
    slurmd -D -N "n$1" </dev/null >>"$CLUSTER/log/n$1.out" 2>&1 8>&- &
    CLUSTER_SLURMD[$1]=$!
    disown $! # its end is no news
}

# Ends what the cluster started once the test is gone, however it went.
cluster_guard() {
    setsid bash -c '. "$1"; CLUSTER=$2; while kill -0 "$3" 2>/dev/null; do sleep 0.2; done; cluster_sweep; rm -rf "$4"' \
        guard "${BASH_SOURCE[0]}" "$CLUSTER" $$ "$1" </dev/null >/dev/null 2>&1 8>&- &
    disown $!
}

# cluster_open FOLDER: FOLDER is the test's own; it is removed with the cluster.
cluster_open() {
    local i

    PATH=$PATH:/usr/sbin:/sbin
    for i in slurmctld slurmd srun sbatch scontrol; do command -v $i >/dev/null || skip "$i is not there: apt-get install --no-install-recommends slurm-wlm"; done
    [ -n "$(ip -4 -o address show scope global 2>/dev/null)" ] || skip "SLURM resolves no name on a machine whose only address is 127.0.0.1"
    CLUSTER=$1/cluster
    CLUSTER_SLURMD=()
    mkdir -p "$CLUSTER"/{state,log,run,spool,tmp}
    for ((i = 1; i <= CLUSTER_NODES; i++)); do mkdir "$CLUSTER/spool/n$i" "$CLUSTER/tmp/n$i"; done
    cluster_take_ports
    cluster_make_gpus
    cluster_configure
    export SLURM_CONF=$CLUSTER/slurm.conf
    cluster_guard "$1"
    slurmctld -D </dev/null >"$CLUSTER/log/slurmctld.out" 2>&1 8>&- &
    disown $!
    for ((i = 1; i <= CLUSTER_NODES; i++)); do node_up $i; done
    for ((i = 0; i < 300; i++)); do
        [ "$(sinfo -hN -t idle -o %N 2>/dev/null | wc -l)" = $CLUSTER_NODES ] && return
        sleep 0.1
    done
    skip "SLURM did not come up within 30 s: $(grep -hE 'fatal|error' "$CLUSTER"/log/* | head -n 3)"
}

# Every process of this cluster has its configuration in its environment: daemons, steps, ranks.
cluster_processes() {
    grep -lzxF "SLURM_CONF=$CLUSTER/slurm.conf" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3 | grep -vx $$
}

cluster_sweep() {
    local i pids

    for ((i = 0; i < 100; i++)); do
        pids=$(cluster_processes)
        [ -n "$pids" ] || return 0
        kill -KILL $pids 2>/dev/null
        sleep 0.05
    done
}

cluster_close() { cluster_sweep; exec 8>&-; }

# node_processes N: the slurmd of node nN, the steps on it and their tasks.
node_processes() {
    local pid

    echo "${CLUSTER_SLURMD[$1]}"
    for pid in $(cluster_processes); do
        grep -qzx "SLURMD_NODENAME=n$1" "/proc/$pid/environ" 2>/dev/null && { echo "$pid"; awk '$1 == "PPid:" { print $2 }' "/proc/$pid/status"; }
    done | sort -un | grep -vx 1
}
