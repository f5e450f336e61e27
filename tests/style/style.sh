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

# Rooms, from the ground up: a folder, then the folders that it may include, each of them above it in this list; so there is no way up, and no circle.
# What lies in a folder without a line of its own belongs to the one around it. Tests may include anything.
rooms='common/base
common/file common/base
common/corpus common/base common/file
common/sample common/base
common/options common/base common/sample
common/text common/base common/file
common/backend common/base common/sample
common/world common/base
proto
common/wire common/base common/sample common/world proto
common/group common/base common/backend common/world
common/model common/base common/file common/backend common/group
drafter common/base common/corpus common/sample common/options common/text common/backend common/world common/wire common/model
verifier/accept common/base common/sample common/backend common/wire
verifier/team common/base common/sample common/backend common/wire common/model verifier/accept
verifier/request common/base common/file common/sample common/options common/text
verifier/round common/base common/world common/wire common/model verifier/accept verifier/team verifier/request
verifier/result common/base common/file common/sample common/options common/world common/model verifier/request verifier/round
verifier/job common/base common/file common/corpus common/sample common/options common/text common/backend common/world common/wire common/model verifier/request verifier/round verifier/result
verifier/command common/base common/file common/options common/sample common/text common/model verifier/result verifier/job
verifier/check common/base common/file common/sample common/wire verifier/team verifier/request verifier/round verifier/job
launch/submit common/base common/options common/backend common/model verifier/job
launch/engine common/base common/wire drafter verifier/round
verifier common/base common/world verifier/result verifier/command verifier/check launch/submit
launch/bench/report common/base common/file common/sample drafter
launch/bench/alpha common/base common/file common/corpus common/sample common/options common/backend common/model common/text drafter verifier/job verifier/request verifier/round
launch/bench/sweep common/base common/file common/sample common/options common/model launch/bench/report
launch/bench/latency common/base common/options common/backend common/world common/wire common/group launch/bench/report
launch/corpus common/base common/file common/text common/model common/corpus
launch/dev/backend common/base common/backend
launch/dev/gpu common/base common/file common/sample common/backend common/model
launch/dev/step common/base common/text common/backend common/model
launch/dev/peers launch/dev/step
launch/dev/one_process common/base common/corpus common/options common/text common/wire drafter verifier/job launch/engine'
find common drafter verifier launch -name '*.[ch]' -o -name '*.cu' -o -name '*.cc' | sort | xargs grep -nHE '^ *# *include "' | awk -v rooms="$rooms" '
    function room(path) { while (path != "" && !(path in lists)) sub(/\/?[^\/]*$/, "", path); return path }
    BEGIN { lines = split(rooms, line, "\n")
            for (i = 1; i <= lines; i++) {
                words = split(line[i], word, " ")
                for (j = 2; j <= words; j++) {
                    if (!(word[j] in lists)) print "tests/style/style.sh:1: " word[1] " " word[j] "\n    expected: a folder above " word[1] " in the list of rooms"
                    allowed[word[1], word[j]] }
                lists[word[1]] = substr(line[i], length(word[1]) + 2) } }
    { split($0, part, ":"); match($0, /"[^"]+"/)
      from = room(part[1]); to = room(substr($0, RSTART + 1, RLENGTH - 2))
      if (from == "" || to == "" || (from != to && !((from, to) in allowed)))
          print part[1] ":" part[2] ": " substr($0, RSTART, RLENGTH) "\n    expected: includes from " (from == "" ? "a folder of the list of rooms" : from " and, below it, " (lists[from] == "" ? "nothing" : lists[from])) }' >>"$faults"

# A process ends in main, or in common/world. Two aborts are allowed: arena.c (a region smaller than its own plan) and pack.c (a message
# larger than its own limits) end a process that is wrong about itself, where no caller could go on. The benches are programs of one file.
grep -E '\b(_?exit|quick_exit|abort|MPI_Abort) *\(' <<<"$stripped" |
    grep -vE '^(drafter/main\.c|verifier/main\.c|common/world/[a-z_]+\.c|launch/dev/backend/[a-z_]+\.c|common/base/arena\.c|common/wire/pack\.c):' |
    expect "a status for the caller; only main and common/world end a process"

# MPI stays in three folders (and the report names the version of the library, which is a local question); receives are matched, measured and then made (Mprobe, Mrecv), for a long one overruns its buffer.
grep -E '\bMPI_[A-Z]' <<<"$stripped" | grep -vE '^common/(world|group|wire)/|^verifier/job/stats\.c:.*(MPI_Get_library_version|MPI_MAX_LIBRARY)' | expect "MPI in common/world, common/group and common/wire only"
without_comments "${code[@]}" | grep -E '\bMPI_I?Recv\b' | expect "MPI_Mprobe and MPI_Mrecv"
grep -nHE '"proto/.*pb-c\.h"' "${programs[@]}" | grep -v '^common/wire/' | expect "generated types in common/wire only"

# The clock of the wall is set by people and by NTP: it tells when something was, never how long. Time stamps: of events, of an answer, of what a job leaves, of a bench's folder.
grep -E '\b(time|ftime|gettimeofday|timespec_get|sem_timedwait|mtx_timedlock|cnd_timedwait) *\(|\bCLOCK_REALTIME\b' <<<"$stripped" |
    grep -vE '^(common/base/recorder|verifier/(result/result_openai|job/job)|launch/bench/sweep/(main|folder))\.c:' | expect "clock_ns of common/base/clock.h, which nobody sets"

# A drafter kind is a row of the registry: others ask the row, and do not compare.
kinds=$(sed -nE 's/^enum drafter_kind \{ *(.*), DRAFTER_KINDS *\};/\1/p' common/options/options_draft.h | sed 's/, */|/g')
[ -n "$kinds" ] || echo "common/options/options_draft.h:1:" | expect "enum drafter_kind on one line, DRAFTER_KINDS last"
grep -E "\b($kinds)\b" <<<"$stripped" | grep -vE '^(common/options/options_draft(_kinds)?\.[ch]|drafter/draft(_[a-z_]+)?\.[ch]):' |
    expect "what the kind's row says (options_draft_kind), so that another kind is another row"

# So is an acceptance rule. Sampling says which one is taken where none is named.
rules=$(sed -nE 's/.*\[(ACCEPT_[A-Z_]+)\] = \{\.name.*/\1/p' common/sample/rule.c | paste -sd'|')
[ -n "$rules" ] || echo "common/sample/rule.c:1:" | expect "a row for each rule, [ACCEPT_...] = {.name"
grep -E "\b($rules)\b" <<<"$stripped" |
    grep -vE '^(common/sample/(rule|rule_draw)\.c|common/sample/sampling\.[ch]|verifier/accept/accept_rule\.c):' |
    expect "what the rule's row says (rule_of, accept_rule), so that another rule is another row"

# So is a kind of evidence, which the rows of rules name.
kinds=$(sed -nE 's/.*\[(EVIDENCE_[A-Z_]+)\] = \{\{".*/\1/p' verifier/accept/evidence.c | paste -sd'|')
[ -n "$kinds" ] || echo "verifier/accept/evidence.c:1:" | expect "a row for each kind, [EVIDENCE_...] = {{\"NAME\""
grep -E "\b($kinds)\b" <<<"$stripped" | grep -vE '^verifier/accept/(evidence\.[ch]|accept_rule\.c):' |
    expect "what the row of a kind of evidence says (evidence_facts), so that another kind is another row"

# Each header: what it owns, as a comment on its first line; then its guard, named for its path (in tests, for the test).
awk '$1 == "#ifndef" { asked[FILENAME] = asked[FILENAME] " " $2 }
     $1 == "#define" { told[FILENAME] = told[FILENAME] " " $2 " " }
     FNR == 1 { header[++headers] = FILENAME; if (!/^\/\*/) print FILENAME ":1: " $0 "\n    expected: a comment that says what the header is" }
     END { for (i = 1; i <= headers; i++) {
               path = header[i]; guard = "TANDEM_" toupper(path); gsub(/[\/.]/, "_", guard)
               if (path ~ /^tests\//) { match(asked[path] " ", / TANDEM_TESTS_[A-Z0-9_]*_H /); guard = RSTART ? substr(asked[path], RSTART + 1, RLENGTH - 2) : "TANDEM_TESTS_.._H" }
               if (!index(asked[path] " ", " " guard " ") || !index(told[path], " " guard " ")) print path ":1:\n    expected: the guard " guard } }' "${headers[@]}" >>"$faults"

# Noun first: what a header declares begins with the header's name, or with the name of the struct or folder it is about.
# names.allowed has the words of headers that are about a second noun.
awk 'FILENAME == "tests/style/names.allowed" { more[$1] = more[$1] " " $2; next }
     FNR == 1 { parts = split(FILENAME, part, "/"); noun = substr(part[parts], 1, length(part[parts]) - 2); words[FILENAME] = noun " " part[parts - 1] more[FILENAME] }
     match($0, /^struct [a-z_0-9]+/) { words[FILENAME] = words[FILENAME] " " substr($0, 8, RLENGTH - 7) }
     /^(extern )?[a-z][a-z_0-9 ]*[ *]+[a-z_0-9]+\(/ && !/^(static|typedef|return)/ {
         text = name = $0; sub(/ *__attribute__.*/, "", text)
         while (match(text, /[ *][a-z_0-9]+\(/)) { name = substr(text, RSTART + 1, RLENGTH - 2); text = substr(text, RSTART + RLENGTH - 1) }
         declared[++count] = FILENAME ":" FNR; file[count] = FILENAME; of[count] = name; about[count] = noun }
     END { for (i = 1; i <= count; i++) {
               begins = 0; n = split(words[file[i]], word, " ")
               for (j = 1; j <= n; j++) begins += of[i] == word[j] || index(of[i], word[j] "_") == 1
               if (!begins) print declared[i] ": " of[i] "\n    expected: a name that begins with " about[i] " (or a line in tests/style/names.allowed)" } }' \
    "$([ -f tests/style/names.allowed ] && echo tests/style/names.allowed || echo /dev/null)" $(printf '%s\n' "${headers[@]}" | grep '^common\|^drafter\|^verifier') >>"$faults"

find "${headers[@]}" tests/mutants -name '*.[hm]*' -empty -printf '%p:1:\n' | expect "a file that is not empty"
grep -nHE '\b(TODO|FIXME|XXX)\b' "${code[@]}" | grep -v 'XXXXXX' | expect "an issue, not a note"
find common drafter verifier launch tests proto \( -iname '*util*' -o -iname '*helper*' -o -iname '*misc*' \) | sed 's/$/:1:/' | expect "a name that says what the file is about"
grep -nHE '^[a-zA-Z].*\b[a-z_]*(rollback|helper|util|manager|handler|candidate|validate|destroy|delete|dispose|cleanup)[a-z_]*\(' "${programs[@]}" |
    expect "the words of the design"
grep -nHE '\s+$' "${code[@]}" | expect "no space at the end of a line"

# A mutant (tests/mutants) quotes one place of its file, and one only: what moves code moves its mutants.
awk 'function judge(at) {
         if (mutant == "") return
         if (file == "") { print mutant ":1:\n    expected: a line that names its file"; return }
         if (!(file in text)) { while ((getline line <file) > 0) text[file] = text[file] line "\n"; close(file) }
         at = index(text[file], quoted)
         if (quoted == "" || !at || index(substr(text[file], at + length(quoted)), quoted)) print mutant ":1: " file "\n    expected: a quotation that this file has once" }
     FNR == 1 { judge(); mutant = FILENAME; file = quoted = "" }
     /^file: / { file = substr($0, 7) }
     /^-/ { quoted = quoted (quoted == "" ? "" : "\n") substr($0, 2) }
     END { judge() }' tests/mutants/*/*.mutant >>"$faults"

# counted README NUMBER WORDS: it says how many there are, and wherever it does it is this number.
counted() {
    grep -qE "[0-9] $3" "$1" || echo "$1:1:" | expect "$2 $3"
    grep -nHoE "[0-9,]+ $3" "$1" | sed 's/,//g' | grep -v ":$2 " | expect "$2, for so many there are"
}
counted tests/mutants/README.md "$(find tests/mutants -name '*.mutant' | wc -l)" "changes to one place of the source each"
counted tests/fuzz/README.md "$(find tests/fuzz/corpus -type f | wc -l)" "files, sizes of"

# Sizes: files above 350 lines, functions above 60 and lines above 150 columns, and READMEs of more than two screens.
for file in "${programs[@]}"; do
    lines=$(wc -l <"$file")
    [ "$lines" -le 350 ] || echo "note: $file has $lines lines; which second idea moved in?"
done
awk 'length > 150 { print "note: " FILENAME ":" FNR ": a line of " length " columns, of 150 that .clang-format allows" }' "${code[@]}"
awk 'FNR == 1 { start = 0 } /^\{/ { start = FNR } /^\}/ { if (start && FNR - start > 60) print "note: " FILENAME ":" start ": a function of " FNR - start " lines"; start = 0 }' "${programs[@]}"

while read -r lines readme; do
    [ "$lines" -le 125 ] || [ "$readme" = total ] || echo "note: $readme has $lines lines; what of it is looked up, and not read?"
done < <(find . -name README.md -not -path './build*' -not -path './.*' -printf '%P\n' | sort | xargs wc -l)

if [ -s "$faults" ]; then
    cat "$faults"
    echo "$(grep -c '^    expected' "$faults") faults"
    exit 1
fi
echo "${#code[@]} files, no fault"
