#!/usr/bin/env bash
# What a script can check of how the code looks. style.sh [ROOT]: prints FILE:LINE and what was expected for each fault; 1 when there is one.
# Sizes are only reported: they ask a question, they do not answer it.
set -uo pipefail
cd "${1:-$(dirname "$0")/../..}" || exit 70
faults=$(mktemp)
trap 'rm -f "$faults"' EXIT
mapfile -t code < <(find common drafter verifier launch tests -name '*.[ch]' -not -path '*/golden/models/*' | sort)
mapfile -t programs < <(printf '%s\n' "${code[@]}" | grep -v '^tests/')
mapfile -t headers < <(printf '%s\n' "${code[@]}" | grep '\.h$')
[ ${#programs[@]} -gt 0 ] || { echo "no sources under $PWD"; exit 66; }

# expect TEXT: turns lines FILE:LINE:... into faults.
expect() { sed -E "s|^([^:]+:[0-9]+):(.*)|\1: \2\n    expected: $1|" >>"$faults"; }
# without_comments FILE...: FILE:LINE:code, for searches that must not find words in comments or strings.
without_comments() {
    awk 'FNR == 1 { inside = 0 }
         { text = $0; out = ""
           gsub(/"([^"\\]|\\.)*"/, "\"\"", text)
           while (text != "") {
               if (inside) { end = index(text, "*/"); if (!end) break; text = substr(text, end + 2); inside = 0 }
               else { start = index(text, "/*"); if (!start) { out = out text; break }
                      out = out substr(text, 1, start - 1); text = substr(text, start + 2); inside = 1 } }
           sub(/\/\/.*/, "", out)
           if (out ~ /[^ \t]/) print FILENAME ":" FNR ":" out }' "$@"
}
stripped=$(without_comments "${programs[@]}")

# Includes go down only: a folder, then the folders it may include. Tests may include anything.
while read -r folder below; do
    allowed=$(tr ' ' '|' <<<"$folder $below")
    printf '%s\n' "${programs[@]}" | grep "^$folder/" | xargs -r grep -nHE '^ *# *include "' | grep -vE "\"($allowed)/" |
        expect "includes from $folder and, below it, ${below:-nothing}"
done <<'LAYERS'
common/base
common/file common/base
common/sample common/base
common/options common/base common/sample
common/world common/base
common/text common/base common/file
common/backend common/base common/sample
common/wire common/base common/world common/sample proto
common/group common/base common/backend common/world
common/model common/base common/file common/sample common/backend common/group
drafter common
verifier common launch/submit
launch common drafter verifier
LAYERS

# A process ends in main, or in common/world. Two aborts are allowed: arena.c (a region smaller than its own plan) and pack.c (a message
# larger than its own limits) end a process that is wrong about itself, where no caller could go on. The benches are programs of one file.
grep -E '\b(_?exit|quick_exit|abort|MPI_Abort) *\(' <<<"$stripped" |
    grep -vE '^(drafter/main\.c|verifier/main\.c|common/world/[a-z_]+\.c|launch/dev/backend/[a-z_]+\.c|common/base/arena\.c|common/wire/pack\.c):' |
    expect "a status for the caller; only main and common/world end a process"

# MPI stays in three folders (and the report names the version of the library, which is a local question); receives are matched, measured and then made (Mprobe, Mrecv), for a long one overruns its buffer.
grep -E '\bMPI_[A-Z]' <<<"$stripped" | grep -vE '^common/(world|group|wire)/|^verifier/job/report\.c:.*(MPI_Get_library_version|MPI_MAX_LIBRARY)' | expect "MPI in common/world, common/group and common/wire only"
without_comments "${code[@]}" | grep -E '\bMPI_I?Recv\b' | expect "MPI_Mprobe and MPI_Mrecv"
grep -nHE '"proto/.*pb-c\.h"' "${programs[@]}" | grep -v '^common/wire/' | expect "generated types in common/wire only"

# The clock of the wall is set by people and by NTP: it tells when something was, never how long. Time stamps: of events, of an answer, of a bench's folder.
grep -E '\b(time|ftime|gettimeofday|timespec_get|sem_timedwait|mtx_timedlock|cnd_timedwait) *\(|\bCLOCK_REALTIME\b' <<<"$stripped" |
    grep -vE '^(common/base/recorder|verifier/request/request_openai|launch/bench/sweep/(main|folder))\.c:' | expect "clock_ns of common/base/clock.h, which nobody sets"

# Each header: what it owns, as a comment on its first line; then its guard, named for its path (in tests, for the test).
for header in "${headers[@]}"; do
    guard=TANDEM_$(tr 'a-z/.' 'A-Z__' <<<"$header")
    head -n 1 "$header" | grep -q '^/\*' || echo "$header:1: $(head -n 1 "$header")" | expect "a comment that says what the header is"
    [[ $header == tests/* ]] && guard=$(sed -n 's/^#ifndef \(TANDEM_TESTS_.*_H\)$/\1/p' "$header" | head -n 1)
    grep -q "^#ifndef $guard\$" "$header" && grep -q "^#define $guard\$" "$header" || echo "$header:1:" | expect "the guard $guard"
done

# Noun first: what a header declares begins with the header's name, or with the name of the struct or folder it is about.
# names.allowed has the words of headers that are about a second noun.
for header in "${headers[@]}"; do
    noun=$(basename "$header" .h)
    folder=$(basename "$(dirname "$header")")
    words="$noun|$folder|$(awk -v h="$header" '$1 == h { print $2 }' tests/style/names.allowed | paste -sd'|')"
    structs=$(grep -oE '^struct [a-z_0-9]+' "$header" | cut -d' ' -f2 | paste -sd'|')
    grep -nHE '^(extern )?[a-z][a-z_0-9 ]*[ *]+[a-z_0-9]+\(' "$header" | grep -vE ':(static|typedef|return|#)' |
        sed -E 's/^([^:]+:[0-9]+):.*[ *]([a-z_0-9]+)\(.*/\1:\2/' | grep -vE ":($words${structs:+|$structs})(_|$)" |
        grep '^common\|^drafter\|^verifier' | expect "a name that begins with $noun (or a line in tests/style/names.allowed)"
done

grep -nHE '\b(TODO|FIXME|XXX)\b' "${code[@]}" | grep -v 'XXXXXX' | expect "an issue, not a note"
find common drafter verifier launch tests proto \( -iname '*util*' -o -iname '*helper*' -o -iname '*misc*' \) | sed 's/$/:1:/' | expect "a name that says what the file is about"
grep -nHE '^[a-zA-Z].*\b[a-z_]*(rollback|helper|util|manager|handler|candidate|validate|destroy|delete|dispose|cleanup)[a-z_]*\(' "${programs[@]}" |
    expect "the words of the design"
grep -nHE '\s+$' "${code[@]}" | expect "no space at the end of a line"

# A mutant (tests/mutants) quotes one place of its file, and one only: what moves code moves its mutants.
for mutant in tests/mutants/*/*.mutant; do
    awk 'NR == FNR { if (/^file: /) ARGV[2] = substr($0, 7); else if (/^-/) quoted = quoted (quoted == "" ? "" : "\n") substr($0, 2); next }
         { text = text $0 "\n" }
         END { at = index(text, quoted); exit !(quoted != "" && at && !index(substr(text, at + length(quoted)), quoted)) }' "$mutant" its_file ||
        echo "$mutant:1: $(sed -n 's/^file: //p' "$mutant")" | expect "a quotation that this file has once"
done

# counted NUMBER WORDS: tests/README.md says how many there are, and wherever it does it is this number.
counted() {
    grep -qE "[0-9] $2" tests/README.md || echo "tests/README.md:1:" | expect "$1 $2"
    grep -nHoE "[0-9,]+ $2" tests/README.md | sed 's/,//g' | grep -v ":$1 " | expect "$1, for so many there are"
}
counted "$(find tests/mutants -name '*.mutant' | wc -l)" "changes to one place of the source each"
counted "$(find tests/fuzz/corpus -type f | wc -l)" "files, sizes of"

# Sizes: files above 350 lines and functions above 60.
for file in "${programs[@]}"; do
    lines=$(wc -l <"$file")
    [ "$lines" -le 350 ] || echo "note: $file has $lines lines; which second idea moved in?"
done
awk 'FNR == 1 { start = 0 } /^\{/ { start = FNR } /^\}/ { if (start && FNR - start > 60) print "note: " FILENAME ":" start ": a function of " FNR - start " lines"; start = 0 }' "${programs[@]}"

if [ -s "$faults" ]; then
    cat "$faults"
    echo "$(grep -c '^    expected' "$faults") faults"
    exit 1
fi
echo "${#code[@]} files, no fault"
