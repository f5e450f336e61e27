#!/usr/bin/env bash
# Two network namespaces with a veth pair between them stand for two nodes: the drafter on one, two verifiers on the other, MPI over TCP through a
# link whose rate is limited: whole jobs, a link that goes down, and `tandem bench` beside a placement on one node. namespaces.sh BIN
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

# link NODE RATE BURST: what the node may send.
link() { tc -n "$1" qdisc replace dev veth0 root tbf rate "$2" burst "$3" latency 50ms; }

# Only these two namespaces see the addresses.
prepare() {
    local name address

    [ "$(id -u)" = 0 ] || skip "network namespaces are for root"
    command -v ip tc >/dev/null || skip "ip is not there: apt-get install iproute2"
    # What ip does to enter one. Asked first: where it cannot (a chroot), `ip netns add` would leave a mount behind.
    unshare --mount --propagation unchanged mount --make-rslave / 2>"$WORK/why" || skip "no mounts of a process's own here: $(cat "$WORK/why")"
    ip netns add $DRAFTER 2>"$WORK/why" && ip netns add $VERIFIER 2>"$WORK/why" || skip "no network namespaces here: $(cat "$WORK/why")"
    ip link add veth0 netns $DRAFTER type veth peer name veth0 netns $VERIFIER 2>"$WORK/why" || skip "no veth here: $(cat "$WORK/why")"
    for name in $DRAFTER:10.77.0.1 $VERIFIER:10.77.0.2; do
        address=${name#*:} name=${name%:*}
        ip -n $name address add "$address/24" dev veth0 && ip -n $name link set veth0 up && ip -n $name link set lo up
        link $name 50mbit 64k 2>"$WORK/why" || skip "no tbf here: $(cat "$WORK/why")"
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
drafter_first=10.77.0.1:1,10.77.0.2:2 # and the target on the other node
group_apart=10.77.0.2:2,10.77.0.1:1   # the drafter beside the lead, the follower on the other node
# begin NODE HOSTS NAME OPTION...: a job whose mpirun is on that node; sets PID.
begin() {
    local node=$1 hosts=$2 name=$3 line
    shift 3
    line=$("$BIN/tandem-verifier" --dry-run --hosts $hosts --drafters 1 --verifiers 2 --output "$WORK/$name.jsonl" --stats "$WORK/$name.json" \
        --mpirun-options "--mca plm_rsh_agent $WORK/agent $over" "$@") || { fail "--dry-run: exit $?"; finish; }
    timeout -k 5 120 "$WORK/on" "$node" "exec $line" >"$WORK/$name.out" 2>"$WORK/$name.err" </dev/null &
    PID=$!
}

sent() { ip netns exec $DRAFTER cat /sys/class/net/veth0/statistics/tx_bytes; }

# A bench from the target's node, which is not the first of the list: ranks go where the list says. The link passes at most BURST bytes and 12.5 in
# each microsecond after that, which no measurement over it can beat, whatever else the machine does; and both nodes have one clock.
BURST=1600 PER_US=12.5
measure() {
    local name bench
    as_installed
    for name in $DRAFTER $VERIFIER; do link $name 100mbit $BURST; done
    # At this temperature all tokens are nearly as likely: each of the 8 of a proposal has a q of 256 tokens, of two bytes and more.
    bench="$WORK/bin/tandem bench --hosts $drafter_first --drafters 1 --verifiers 2 --mpirun-options '--mca plm_rsh_agent $WORK/agent $over'
        --draft-lengths 8 --draft-deadline 10000 --temperatures 100 --accepts rejection --batches 1 --repetitions 1 --requests 2 --max-tokens 24 --noise-limit 1000
        --output $WORK/bench"
    TMPDIR=$WORK timeout -k 5 700 "$WORK/on" $VERIFIER $bench >"$WORK/bench.out" 2>"$WORK/bench.err" </dev/null
    CODE=$?
    for name in $DRAFTER $VERIFIER; do link $name 50mbit 64k; done
}

# where PLACEMENT: role, host and clocks of its ranks, by the report's own figures.
where() {
    awk -v placement="\"$1\"," '$1 == "\"name\":" && $2 ~ /-node",$/ { here = $2 == placement } $1 == "\"cells\":" { here = 0 } { gsub(/[",]/, "") }
        here && ($1 == "role:" || $1 == "host:" || $1 ~ /^clock_/) { printf "%s%s", $2, $1 == "clock_round_trip_after_us:" ? "\n" : " " }' "$WORK/bench/summary.json"
}

# clocks PLACEMENT: a clock that is compared with itself is off by no more than half of the round trip, to a tenth of a microsecond.
clocks() { where "$1" | awk 'function off(x, trip) { return (x < 0 ? -x : x) > trip / 2 + 0.1 } off($3, $5) || off($4, $6) { exit 1 } END { exit NR != 3 }'; }

# largest PLACEMENT: bytes, mean and least microseconds of the largest proposal, half of a round trip.
largest() { sed -nE 's/.*"message":"propose","draft_length":32,"support":256,"bytes":([0-9]+),"avg_us":([0-9.]+),.*"min_us":([0-9.]+),.*/\1 \2 \3/p' "$WORK/bench/raw/$1/latency.jsonl"; }

# held_up: no proposal crossed the link faster than it can; how many there were is said. On a busy machine a drafter may be taken for lost for some time,
# and rounds go on without it: there are only some then.
held_up() {
    awk -v burst=$BURST -v per_us=$PER_US -v clock="$(where other-node | awk '$1 == "drafter" { print ($5 > $6 ? $5 : $6) }')" -F, '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
        $1 == "other-node" && $at["drafted"] == 8 && $at["propose_us"] != -1 { count++; wire += $at["wire_us"]; way += $at["propose_us"]
            if ($at["propose_us"] + clock / 2 + 0.1 < (2 * 8 * 256 - burst) / per_us) early++ }
        $1 == "same-node" && $at["drafted"] == 8 { near++; near_wire += $at["wire_us"] }
        END { if (near == 0 || count == 0)
                  printf "bench: %d proposals on one node, %d over the link\n", near, count
              else
                  printf "bench: wire %.0f us in %d rounds on one node, %.0f in %d over the link; a proposal took %.0f us over it, %d less than it can\n",
                      near_wire / near, near, wire / count, count, way / count, early
              exit early > 0 || count == 0 || near == 0 }' "$WORK/bench/rounds.csv"
}

prepare
sed -E 's/"id": *"[^"]*", *//' "$PROMPTS" >"$WORK/once.in"
head -n 60 "$WORK/once.in" >"$WORK/many.in"
head -n 40 "$PROMPTS" >"$WORK/few.jsonl"
few=(--prompts "$WORK/few.jsonl" --max-tokens 24 --hash-logits)
drafted=(--draft-length 4 --draft-deadline 10000) # whatever pays over this link, and however busy the machine is
job solo "${few[@]}" --solo --verifiers 1 || fail "solo: exit $?"
before=$(sent)
begin $DRAFTER $drafter_first two "${few[@]}" "${drafted[@]}"
ended 100
check "two nodes: exit $CODE: $(cat "$WORK/two.err")" [ "$CODE" = 0 ]
same two solo
echo "two nodes: $(($(sent) - before)) bytes from the drafter's node"
check "two nodes: no proposals went over the link" [ $(($(sent) - before)) -gt 10000 ]
check "two nodes: nothing was drafted" [ "$(figure two drafted)" -gt 0 ]

measure
check "bench: exit $CODE: $(cat "$WORK/bench.err")" [ "$CODE" = 0 ]
for part in '# same-node' '# other-node' '# What the network costs'; do check "bench: the report has no '$part'" grep -qx "$part" "$WORK/bench/report.md"; done
on_one=$(where same-node | cut -d ' ' -f 1,2 | paste -sd,)
check "bench, same-node: ranks are at $on_one" [ "$on_one" = "drafter $VERIFIER,lead $VERIFIER,follower $VERIFIER" ]
on_two=$(where other-node | cut -d ' ' -f 1,2 | paste -sd,)
check "bench, other-node: ranks are at $on_two" [ "$on_two" = "drafter $DRAFTER,lead $VERIFIER,follower $VERIFIER" ]
for placement in same-node other-node; do
    check "bench, $placement: one clock is not one: $(where $placement)" clocks $placement
    check "bench, $placement: the report has no messages of it" [ -n "$(largest $placement)" ]
done
read -r bytes near_mean near_least <<<"$(largest same-node)"
read -r bytes far_mean far_least <<<"$(largest other-node)"
echo "bench: $bytes bytes take $near_mean us on one node, $far_mean us over the link"
check "bench: $bytes bytes in $far_least us at the least, $far_mean us in the mean: the link is not that fast" \
    awk -v bytes="$bytes" -v mean="$far_mean" -v least="$far_least" -v burst=$BURST -v per_us=$PER_US \
    'BEGIN { exit !(2 * least > (bytes - burst) / per_us && 2 * mean > 0.99 * (bytes - burst / 50) / per_us) }'
check "bench: of the messages on one node none was faster than the link ($near_least us): they went over it" \
    awk -v near="$near_least" -v bytes="$bytes" -v burst=$BURST -v per_us=$PER_US 'BEGIN { exit !(2 * near < (bytes - burst) / per_us) }'
check "bench: a proposal crossed the link faster than it can, or none did: $(cat "$WORK/bench.err")" held_up

# A link that goes down says nothing to anybody. Wherever mpirun is and whatever the link parts, every rank ends by a deadline of its own, and what is
# done is whole. mpirun itself waits for its daemon on the other node for as long as TCP tries, and a keeper there for the daemon, so they are ended.
no_ranks() {
    local pid
    for pid in $(ip netns pids $DRAFTER) $(ip netns pids $VERIFIER); do
        case $(cat "/proc/$pid/comm" 2>/dev/null) in tandem-drafter | tandem-verifier) return 1 ;; esac
    done
}
long=(--prompts "$WORK/many.in" --max-tokens 32 --plain-results --draft-length 4)
job many "${long[@]}" --solo --verifiers 1 || fail "the reference: exit $?"
# part WHAT NODE HOSTS PATTERN: a job whose link goes down says PATTERN.
part() {
    local what="link down, $1" name began i
    rm -f "$WORK"/cut.*
    begin "$2" "$3" cut "${long[@]}" --watchdog 5
    await_results cut 5
    ip -n $DRAFTER link set veth0 down
    began=$SECONDS
    for ((i = 0; i < 900; i++)); do no_ranks && break; sleep 0.1; done
    echo "$what: the ranks were gone after $((SECONDS - began)) s"
    check "$what: ranks are left" no_ranks
    for ((i = 0; i < 100; i++)); do grep -qE "$4" "$WORK/cut.err" && break; sleep 0.1; done # mpirun passes on what a rank said, when it comes to it
    check "$what: nobody said why: $(cat "$WORK/cut.err")" grep -qE "$4" "$WORK/cut.err"
    for name in $DRAFTER $VERIFIER; do ip netns pids $name | xargs -r kill -KILL; done
    { ended 10; } 2>/dev/null
    check "$what: neither output nor journal" [ -s "$WORK/cut.jsonl" -o -s "$WORK/cut.jsonl.journal" ]
}
# reaches NODE ADDRESS: a packet goes there and back: nobody listens there, and the refusal says so.
reaches() { ip netns exec "$1" timeout 2 bash -c "exec 3<>/dev/tcp/$2/9" 2>&1 | grep -q refused; }
# The kernel lets nothing through until both ends know of each other, which takes it up to a second; and where it sought the other node in vain while the
# link was down, the next that asks for it shares that search's end: no route.
is_up() { reaches $DRAFTER 10.77.0.2 && reaches $VERIFIER 10.77.0.1; }
goes_on() {
    local name began=$SECONDS
    ip -n $DRAFTER link set veth0 up
    for name in $DRAFTER $VERIFIER; do link $name 50mbit 64k; done # with nothing queued from before
    until is_up || [ $((SECONDS - began)) -ge 60 ]; do sleep 0.1; done
    check "link up again, $1: it does not come up: $(ip -n $DRAFTER -s link show veth0)" is_up
    begin "$2" "$3" cut "${long[@]}" --resume
    ended 100
    check "link up again, $1: exit $CODE: $(cat "$WORK/cut.err")" [ "$CODE" = 0 ]
    check "link up again, $1: the output differs" cmp "$WORK/cut.jsonl" "$WORK/many.jsonl"
}
for way in "the lead and its follower parted|$VERIFIER|$group_apart" "the lead and mpirun parted|$DRAFTER|$drafter_first"; do
    IFS='|' read -r what node hosts <<<"$way"
    part "$what" "$node" "$hosts" 'no progress for [0-9]+ s|is silent for [0-9]+ s'
    goes_on "$what" "$node" "$hosts"
done
part "the lead and its drafter parted" $VERIFIER $drafter_first 'drafter rank 0 does not answer in time: decoding goes on without it; a slow draft model needs a longer --draft-deadline'
check "link down, the lead and its drafter parted: the lead did not complete without it" cmp "$WORK/cut.jsonl" "$WORK/many.jsonl"
finish
