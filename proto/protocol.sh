#!/usr/bin/env bash
# protocol.sh: has Spin look at every state of the protocol's model. Prints what was explored; 1 when something that must hold does not,
# or when something that must fail does not fail. Needs spin and gcc. TANDEM_WIDE=1: larger sizes too, TANDEM_LONG=1: the
# largest.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
command -v spin >/dev/null || { echo "skipped: spin is not installed (apt-get install spin)"; exit 77; }
command -v gcc >/dev/null || { echo "skipped: gcc is not installed"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
faults=0
printf '%-55s %12s %8s  %s\n' "what" "states" "depth" "result"

# explore EXPECTED NAME MODEL COMPILER SEARCH: EXPECTED is "holds", or what Spin must report.
explore() {
    local result=holds states depth optimise=-O1
    [ "$1" = holds ] || optimise=-O0 # found soon: the compiler would take longer than the search
    # shellcheck disable=SC2086
    spin $3 -a "$here/protocol.pml" >spin.out 2>&1 || { cat spin.out; exit 70; }
    # shellcheck disable=SC2086
    gcc $optimise -w $4 -o pan pan.c
    # shellcheck disable=SC2086
    ./pan -m1000000 $5 >pan.out 2>&1 || true
    states=$(awk '/states, stored/ { print $1 }' pan.out)
    depth=$(sed -n 's/.*depth reached \([0-9]*\).*/\1/p' pan.out)
    if ! grep -q 'errors: 0' pan.out; then result=$(sed -n 's/^pan:1: \(.*\) (at depth.*/\1/p' pan.out); fi
    # A search that was cut short has not seen everything.
    if grep -qE 'max search depth too small|out of memory|interrupted|truncated' pan.out; then result="not finished"; fi
    printf '%-55s %12s %8s  %s\n' "$2" "${states:-?}" "${depth:-?}" "$result"
    case $result in
    "$1"*) ;;
    *) echo "expected: $1; the model: spin $3 -a proto/protocol.pml"; tail -n 20 pan.out; faults=$((faults + 1)) ;;
    esac
}

safety=-DSAFETY
live="-DNFAIR=3"
ends="-a -f -N every_request_ends"
again="-a -f -N proposals_are_used_again"

explore holds "safety: 3 tokens, 2 faults, 1 restart" "-DLIMIT=3 -DFAULTS=2 -DRESTARTS=1" $safety ""
explore holds "safety: rounds without drafts, 3 tokens, 1 fault, 1 restart" "-DLIMIT=3 -DADAPTIVE" $safety ""
explore holds "safety: branches kept and copied, 4 tokens" "-DLIMIT=4 -DKEEPING -DFAULTS=0 -DRESTARTS=0" $safety ""
explore "assertion violated (m_cache" "a branch that is copied for another text" "-DLIMIT=4 -DKEEPING -DHASTY -DFAULTS=0 -DRESTARTS=0" $safety ""
explore "assertion violated (4!=4)" "possible: one is used that was kept, and sent on Commit" "-DLIMIT=4 -DKEEPING -DWITNESS=4 -DRESTARTS=0" $safety ""
explore "assertion violated (p_computed_on" "an epoch instead of the digest" "-DGUARD=EPOCH -DLIMIT=5 -DDRAFT=1 -DRESTARTS=0" $safety ""
explore "assertion violated (p_computed_on" "the length alone" "-DGUARD=LENGTH -DRESTARTS=0" $safety ""
explore "assertion violated (m_cache" "a mirror that does not compare" "-DBLIND -DRESTARTS=0" $safety ""
explore holds "every request ends: faults without end" "-DLIMIT=3 -DDRAFT=1 -DFAULTS=0 -DRESTARTS=0 -DREPEAT -DFREE" $live "$ends"
explore "acceptance cycle" "a lead that reads as long as something comes" "-DLIMIT=3 -DDRAFT=1 -DFAULTS=0 -DRESTARTS=0 -DREPEAT -DFREE -DGREEDY" $live "$ends"
explore holds "used again when faults stop: 3 tokens, 1 fault, 1 restart" "-DLIMIT=3 -DREPEAT -DOBEDIENT -DROOM=4" $live "$again"
explore "assertion violated (1!=1)" "possible: a draft that ran ahead is used" "-DWITNESS=1" $safety ""
explore "assertion violated (2!=2)" "possible: one from a drafter that was started again" "-DWITNESS=2" $safety ""
explore "assertion violated (3!=3)" "possible: one from a drafter that was lost" "-DWITNESS=3" $safety ""
if [ -n "${TANDEM_WIDE-}${TANDEM_LONG-}" ]; then
    explore holds "safety: 4 tokens, 2 faults, 1 restart" "-DLIMIT=4 -DFAULTS=2 -DRESTARTS=1" $safety ""
    explore holds "safety: branches kept and copied, 4 tokens, 1 fault" "-DLIMIT=4 -DKEEPING -DRESTARTS=0" $safety ""
    explore holds "safety: 5 tokens, 1 restart" "-DLIMIT=5 -DFAULTS=0 -DRESTARTS=1" $safety ""
    explore holds "safety: rounds without drafts, 4 tokens, 1 fault, 1 restart" "-DLIMIT=4 -DADAPTIVE" $safety ""
fi
if [ -n "${TANDEM_LONG-}" ]; then
    explore holds "safety: 4 tokens, 2 faults, 1 restart, room 3" "-DLIMIT=4 -DFAULTS=2 -DRESTARTS=1 -DROOM=3" "$safety -DCOLLAPSE" ""
    explore holds "safety: branches kept and copied, 4 tokens, 2 faults, 1 restart" "-DLIMIT=4 -DKEEPING -DFAULTS=2" "$safety -DCOLLAPSE" ""
    explore holds "safety: branches kept and copied, 5 tokens" "-DLIMIT=5 -DKEEPING -DFAULTS=0 -DRESTARTS=0" "$safety -DCOLLAPSE" ""
    explore holds "safety: 5 tokens, 1 fault, 1 restart" "-DLIMIT=5 -DFAULTS=1 -DRESTARTS=1" "$safety -DCOLLAPSE" ""
    explore holds "safety: 5 tokens, 2 faults, 1 restart, bitstate" "-DLIMIT=5 -DFAULTS=2 -DRESTARTS=1" "$safety -DBITSTATE" "-w33"
    explore holds "every request ends: 4 tokens, draft length 2" "-DLIMIT=4 -DFAULTS=0 -DRESTARTS=0 -DREPEAT -DFREE" $live "$ends"
    explore holds "used again: 4 tokens, 1 fault, 1 restart" "-DLIMIT=4 -DREPEAT -DOBEDIENT -DROOM=4" "$live -DCOLLAPSE" "$again"
fi
if [ "$faults" -gt 0 ]; then
    echo "$faults of the above are not as they must be"
    exit 1
fi
