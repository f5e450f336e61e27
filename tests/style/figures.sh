#!/usr/bin/env bash
# Figures in READMEs are those of the result files that are committed (launch/bench/results). figures.sh [ROOT]: prints FILE:LINE and what was expected
# for each fault; 1 when there is one.
#
# A figure's source stands behind it, on its line, in a comment that readers of the page do not see:
#   2,585 and 5,639 <!-- speculation.csv / verifiers 1, draft_length 4 / solo; verifiers 1, draft_length 4 / speculative -->
# The file, then the row and the column of each of the last figures before it: of a table of a .md file, by the row's first cell; of speculation.csv the
# medians `solo` and `speculative` and their quotient `speedup`. `N of N bars hold` instead: the figures of the first line that has these words. A figure may be
# rounded. A block of code that stands below <!-- as FILE --> is in that file, whatever its spaces and line ends; a line "..." stands for what is left out.
set -uo pipefail
cd "${1:-$(dirname "$0")/../..}" || exit 70
results=launch/bench/results
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# faults_of README...: FILE:LINE: what is wrong.
faults_of() {
    awk -v results=$results '
    function trim(text) { gsub(/^[ \t~*]+|[ \t*]+$/, "", text); return text }
    function number(text) { gsub(/[,x%]/, "", text); return text + 0 }
    function fault(text) { print FILENAME ":" FNR ": " text }
    # pull(TEXT): its numbers, to found[1 ...]; how many.
    function pull(text,   n) {
        n = 0
        while (match(text, /-?[0-9][0-9,]*(\.[0-9]+)?/)) { found[++n] = substr(text, RSTART, RLENGTH); text = substr(text, RSTART + RLENGTH) }
        return n
    }
    # look(FILE, ROW, COLUMN): the cell of a table; "" where there is none.
    function look(file, row, column,   line, cells, cell, n, i, at, value) {
        value = ""
        while (value == "" && (getline line < file) > 0) {
            if (line !~ /^\|/) { at = 0; continue }
            n = split(line, cells, "|")
            for (i = 3; i < n && !at; i++) if (trim(cells[i]) == column) at = i
            if (at && trim(cells[2]) == row && trim(cells[at]) ~ /^-?[0-9]/) value = trim(cells[at])
        }
        close(file)
        return value
    }
    function median(values, n,   i, j, x) {
        for (i = 2; i <= n; i++) for (j = i; j > 1 && values[j] < values[j - 1]; j--) { x = values[j]; values[j] = values[j - 1]; values[j - 1] = x }
        return values[int((n + 1) / 2)]
    }
    # speeds(FILE, "verifiers V, draft_length K", MODE): the median of a mode.
    function speeds(file, row, mode,   line, cells, n, count, values, key) {
        count = 0
        while ((getline line < file) > 0) {
            n = split(line, cells, ",")
            key = "verifiers " cells[n - 6] ", draft_length " cells[n - 5]
            if (key == row && cells[n - 3] == mode) values[++count] = cells[n - 2] + 0
        }
        close(file)
        return count ? median(values, count) : ""
    }
    function source(file, row, column) {
        if (file !~ /\.csv$/) return look(file, row, column)
        if (column != "speedup") return speeds(file, row, column)
        return speeds(file, row, "solo") ? speeds(file, row, "speculative") / speeds(file, row, "solo") : ""
    }
    function same(told, value,   decimals) {
        gsub(/,/, "", told)
        decimals = index(told, ".") ? length(told) - index(told, ".") : 0
        value = told - number(value)
        return (value < 0 ? -value : value) <= 0.5 / 10 ^ decimals + 1e-9
    }
    # words(FILE, "N of N bars hold"): the numbers that stand in their place, to expected[].
    function words(file, pattern,   line, n, i) {
        gsub(/N/, "[0-9.]+", pattern)
        while ((getline line < file) > 0) if (match(line, pattern)) { n = pull(substr(line, RSTART, RLENGTH)); break }
        close(file)
        for (i = 1; i <= n; i++) expected[i] = found[i]
        return n + 0
    }
    # judge(TEXT, MARK): the last figures of the text against what the mark names.
    function judge(text, mark,   part, wanted, entries, entry, file, n, i, row, column) {
        part = index(mark, " / ")
        file = results "/" substr(mark, 1, part - 1)
        n = split(substr(mark, part + 3), entries, "; ")
        if (n == 1 && entries[1] !~ / \/ /) n = words(file, entries[1])
        else for (i = 1; i <= n; i++) {
            split(entries[i], entry, " / ")
            row = entry[1]; column = entry[2]
            expected[i] = source(file, row, column)
            if (expected[i] == "") { fault("expected: a row \"" row "\" with a column \"" column "\" in " file); return }
        }
        if (!n) { fault("expected: figures in " file " for: " mark); return }
        wanted = pull(text) - n
        if (wanted < 0) { fault("expected: " n " figures before their source"); return }
        for (i = 1; i <= n; i++) if (!same(found[wanted + i], expected[i])) fault(found[wanted + i] ", expected: " expected[i] ", as " file " has it")
    }
    # normal(TEXT): with one space wherever there are some.
    function normal(text) { gsub(/[ \t\n]+/, " ", text); return text }
    function ended(   at) {
        if (block != "") {
            at = index(rest, normal(block))
            if (!at) fault("expected: a block that is in " recorded ", or its part before here")
            rest = substr(rest, at + 1)
        }
        block = ""
    }
    FNR == 1 { recorded = ""; section = "" }
    /^<!-- as .* -->$/ {
        recorded = results "/" $3
        rest = ""; lines = 0
        while ((getline line < recorded) > 0) { rest = rest line "\n"; lines++ }
        close(recorded)
        if (!lines) fault("expected: a file " recorded)
        rest = normal(rest); inside = 0
        next
    }
    recorded != "" && (/^    / || (/^$/ && inside)) { inside = 1; if ($0 ~ /^ *\.\.\.$/) ended(); else block = block (block == "" ? "" : "\n") substr($0, block == "" ? 5 : 1); next }
    recorded != "" && inside { sub(/[ \n]+$/, "", block); ended(); recorded = "" }
    /^## / { section = $0 }
    {
        text = $0; marks = 0
        while ((at = index(text, "<!-- ")) && (end = index(text, " -->"))) {
            mark = substr(text, at + 5, end - at - 5)
            if (mark ~ /^[a-z0-9\/.-]+\.(md|csv) \/ /) { judge(substr(text, 1, at - 1), mark); marks++ }
            text = substr(text, end + 4)
        }
        if (FILENAME == "README.md" && !marks && $0 !~ /^    / &&
            (/[0-9](x|( to [0-9.]+)? times|( of [0-9]+)? bars|( [a-z]+)? tokens(\/s| (a|per) second))/ || (section ~ /Measured/ && /^\|.*[0-9]/)))
            fault("expected: the source of a figure, as the head of tests/style/figures.sh says")
    }' "$@"
}

mapfile -t readmes < <(grep -lE '<!-- (as |[a-z0-9/.-]+\.(md|csv) / )' README.md ./*/README.md ./*/*/README.md ./*/*/*/README.md | sed 's|^\./||')
faults_of README.md "${readmes[@]/#README.md/}" >"$work/faults" 2>"$work/said" </dev/null || true
cat "$work/said" >>"$work/faults"

# The picture is what its script draws of the same files.
(cd $results && awk -f speedup.awk speculation.csv smollm2/report.md) >"$work/speedup.svg"
cmp -s "$work/speedup.svg" $results/speedup.svg || echo "$results/speedup.svg:1: expected: what the command at the head of speedup.awk draws" >>"$work/faults"

if [ -s "$work/faults" ]; then
    cat "$work/faults"
    exit 1
fi

# A figure that is another one is seen: in each line with a source, a digit before the last one.
changed=0
while IFS=: read -r line _; do
    sed -E "${line}s/([0-9])([^0-9]*<!-- [a-z0-9\/.-]+\.(md|csv) \/ )/7\1\2/" README.md >"$work/README.md"
    (cd "$work" && mkdir -p "$(dirname $results)" && ln -sfn "$OLDPWD/$results" $results && faults_of README.md) | grep -q "^README.md:$line: " ||
        { echo "README.md:$line: a figure that is changed there is not seen"; exit 1; }
    changed=$((changed + 1))
done < <(grep -nE '<!-- [a-z0-9/.-]+\.(md|csv) / ' README.md)
[ "$changed" -gt 0 ] || { echo "README.md:1: no figure has a source"; exit 1; }
echo "${#readmes[@]} READMEs, no fault; $changed lines of figures, each seen where it is changed"
