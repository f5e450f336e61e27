#!/usr/bin/env bash
# Two network namespaces with a veth pair between them stand for two nodes: the drafter on one, two verifiers on the other, MPI over TCP through a
# link whose rate is limited. namespaces.sh BIN
. "$(dirname "$0")/job.sh"
. "$(dirname "$0")/batch.sh"
PATH=$PATH:/usr/sbin:/sbin
DRAFTER=tandem-d$$ VERIFIER=tandem-v$$
skip() { printf 'skipped: %s\n' "$*"; exit 77; }

# Whatever happens, processes in the namespaces and the namespaces end.
leave() {
    local name
    for name in $DRAFTER $VERIFIER; do
        ip netns pids $name 2>/dev/null | xargs -r kill -KILL 2>/dev/null
        ip netns delete $name 2>/dev/null
    done
    rm -rf "$WORK"
}
trap leave EXIT
# The same when this shell is killed.
setsid bash -c 'while kill -0 "$1"; do sleep 0.5; done
    for name in "$2" "$3"; do ip netns pids "$name" | xargs -r kill -KILL; ip netns delete "$name"; done' guard $$ $DRAFTER $VERIFIER </dev/null >/dev/null 2>&1 &
disown $!

# Only these two namespaces see the addresses.
prepare() {
    local name address

    [ "$(id -u)" = 0 ] || skip "network namespaces are for root"
    command -v ip tc >/dev/null || skip "ip is not there: apt-get install iproute2"
    ip netns add $DRAFTER 2>"$WORK/why" && ip netns add $VERIFIER 2>"$WORK/why" || skip "no network namespaces here: $(cat "$WORK/why")"
    ip link add veth0 netns $DRAFTER type veth peer name veth0 netns $VERIFIER 2>"$WORK/why" || skip "no veth here: $(cat "$WORK/why")"
    for name in $DRAFTER:10.77.0.1 $VERIFIER:10.77.0.2; do
        address=${name#*:} name=${name%:*}
        ip -n $name address add "$address/24" dev veth0 && ip -n $name link set veth0 up && ip -n $name link set lo up
        tc -n $name qdisc add dev veth0 root tbf rate 50mbit burst 64k latency 50ms 2>"$WORK/why" || skip "no tbf here: $(cat "$WORK/why")"
    done
}

# on NAMESPACE COMMAND: runs it as on a node of its own, with a host name of its own.
cat >"$WORK/on" <<'END'
#!/bin/bash
name=$1
shift
exec ip netns exec "$name" unshare --uts bash -c "hostname $name; $*"
END
# What mpirun takes for ssh: HOST COMMAND.
printf '#!/bin/bash\ncase $1 in 10.77.0.1) name=%s ;; *) name=%s ;; esac\nshift\nexec "%s/on" $name "$*"\n' $DRAFTER $VERIFIER "$WORK" >"$WORK/agent"
chmod +x "$WORK/on" "$WORK/agent"

over="--mca btl vader,tcp,self --mca btl_vader_single_copy_mechanism none --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24"
# begin NODE NAME OPTION...: a job whose mpirun is on that node; sets PID.
begin() {
    local node=$1 name=$2 line
    shift 2
    line=$("$BIN/tandem-verifier" --dry-run --hosts 10.77.0.1:1,10.77.0.2:2 --drafters 1 --verifiers 2 --output "$WORK/$name.jsonl" --stats "$WORK/$name.json" \
        --mpirun-options "--mca plm_rsh_agent $WORK/agent $over" "$@") || { fail "--dry-run: exit $?"; finish; }
    timeout -k 5 120 "$WORK/on" "$node" "exec $line" >"$WORK/$name.out" 2>"$WORK/$name.err" </dev/null &
    PID=$!
}

sent() { ip netns exec $DRAFTER cat /sys/class/net/veth0/statistics/tx_bytes; }

prepare
sed -E 's/"id": *"[^"]*", *//' "$PROMPTS" >"$WORK/once.in"
head -n 150 "$WORK/once.in" >"$WORK/many.in"
few=(--prompts "$PROMPTS" --max-tokens 24 --hash-logits)
job solo "${few[@]}" --solo --verifiers 1 || fail "solo: exit $?"
before=$(sent)
begin $DRAFTER two "${few[@]}"
ended 100
check "two nodes: exit $CODE: $(cat "$WORK/two.err")" [ "$CODE" = 0 ]
same two solo
echo "two nodes: $(($(sent) - before)) bytes from the drafter's node"
check "two nodes: no proposals went over the link" [ $(($(sent) - before)) -gt 10000 ]
check "two nodes: nothing was drafted" [ "$(figure two drafted)" -gt 0 ]

# A link that goes down says nothing to anybody. With the lead on mpirun's node or on the other one, every rank ends by a deadline of its own, and what
# is done is whole. mpirun itself waits for its daemon on the other node for as long as TCP tries, so it is ended.
no_ranks() {
    local pid
    for pid in $(ip netns pids $DRAFTER) $(ip netns pids $VERIFIER); do
        case $(cat "/proc/$pid/comm" 2>/dev/null) in tandem-*) return 1 ;; esac
    done
}
long=(--prompts "$WORK/many.in" --max-tokens 32 --plain-results)
job many "${long[@]}" --solo --verifiers 1 || fail "the reference: exit $?"
for node in $VERIFIER $DRAFTER; do
    rm -f "$WORK"/cut.*
    begin $node cut "${long[@]}" --watchdog 5
    await_results cut 5
    ip -n $DRAFTER link set veth0 down
    began=$SECONDS
    for ((i = 0; i < 900; i++)); do no_ranks && break; sleep 0.1; done
    echo "link down, mpirun on $node: the ranks were gone after $((SECONDS - began)) s"
    check "link down, mpirun on $node: ranks are left" no_ranks
    check "link down, mpirun on $node: no rank said why it ended" grep -qE 'no progress for [0-9]+ s|is silent for [0-9]+ s' "$WORK/cut.err"
    for name in $DRAFTER $VERIFIER; do ip netns pids $name | xargs -r kill -KILL; done
    { ended 10; } 2>/dev/null
    check "link down, mpirun on $node: neither output nor journal" [ -s "$WORK/cut.jsonl" -o -s "$WORK/cut.jsonl.journal" ]
    ip -n $DRAFTER link set veth0 up
    begin $node cut "${long[@]}" --resume
    ended 100
    check "link up again, mpirun on $node: exit $CODE: $(cat "$WORK/cut.err")" [ "$CODE" = 0 ]
    check "link up again, mpirun on $node: the output differs" cmp "$WORK/cut.jsonl" "$WORK/many.jsonl"
done
finish
