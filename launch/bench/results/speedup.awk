# Draws speedup.svg, the picture of the README, from the results beside it:
#   cd launch/bench/results && awk -f speedup.awk speculation.csv smollm2/report.md >speedup.svg
# Speedup by draft length; at its right the lengths that a job chose. tests/style/figures.sh sees that the picture is that of the files.
BEGIN { FS = ","; names = 0; chosen = 9; left = 52; top = 20; width = 560; height = 250; least = 0.8; most = 2.4 }
function name_of(key) { if (!(key in at)) { at[key] = ++names; name[names] = key }; return at[key] }
function put(key, length_, value) { known[name_of(key), length_] = 1; figure[name_of(key), length_] = value }
function trim(text) { gsub(/^[ ~]+| +$/, "", text); return text }

# The machine's name has a comma, so fields are counted from the right.
FILENAME ~ /speculation/ && FNR > 1 {
    key = $(NF - 6) " " $(NF - 5) " " $(NF - 3)
    count[key]++
    speeds[key, count[key]] = $(NF - 2) + 0
    next
}
# The first column of this name is in the table of speeds.
FILENAME ~ /report/ && /^\| cell .*\| speedup / && !column { for (i = split($0, cell, "|"); trim(cell[i]) != "speedup"; i--); column = i }
FILENAME ~ /report/ && /^ *$/ && column && read_ { column = -1 }
FILENAME ~ /report/ && /^\| T 0, K [0-9]+ / && column > 0 {
    read_ = split($0, cell, "|")
    length_ = trim(cell[2]); sub(/.*K /, "", length_)
    put("SmolLM2-135M in BF16, drafted by Q4_1, 1 drafter + 1 verifier", length_ + 0, trim(cell[column]) + 0)
}

function median(key,   i, j, x, n, value) {
    n = count[key]
    for (i = 1; i <= n; i++) value[i] = speeds[key, i]
    for (i = 2; i <= n; i++) for (j = i; j > 1 && value[j] < value[j - 1]; j--) { x = value[j]; value[j] = value[j - 1]; value[j - 1] = x }
    return value[int((n + 1) / 2)]
}
function x_of(length_) { return left + width * (length_ - 0.5) / 9 }
function y_of(value) { return top + height * (most - value) / (most - least) }
function text(x, y, anchor, words) { printf "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor, words }

END {
    for (verifiers = 1; verifiers <= 2; verifiers++)
        for (i = 1; i <= chosen; i++) {
            length_ = i == chosen ? "auto" : i
            solo = median(verifiers " " length_ " solo")
            if (solo) put("the embedded pair, 1 drafter + " verifiers " verifier" (verifiers > 1 ? "s" : ""), i, median(verifiers " " length_ " speculative") / solo)
        }
    split("#0072b2 #d55e00 #009e73", colour, " ")
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"640\" height=\"380\" viewBox=\"0 0 640 380\" font-family=\"sans-serif\" font-size=\"12\">\n"
    print "<title>Speedup over the target alone, by draft length</title>"
    print "<rect width=\"640\" height=\"380\" fill=\"white\"/>"
    for (value = 8; value <= 24; value += 2) {
        printf "<path d=\"M%.1f %.1fH%.1f\" stroke=\"%s\"/>\n", left, y_of(value / 10), left + width, value == 10 ? "black" : "#dddddd"
        text(left - 6, y_of(value / 10) + 4, "end", sprintf("%.1fx", value / 10))
    }
    for (i = 1; i <= chosen; i++) text(x_of(i), top + height + 16, "middle", i == chosen ? "chosen" : i)
    text(left + width / 2, top + height + 34, "middle", "draft length")
    text(left + width, y_of(1) + 14, "end", "the target alone, on the same ranks")
    for (n = 1; n <= names; n++) {
        path = ""
        for (i = 1; i < chosen; i++) if ((n, i) in known) path = path sprintf("%s%.1f %.1f", path == "" ? "M" : "L", x_of(i), y_of(figure[n, i]))
        printf "<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n", path, colour[n]
        for (i = 1; i <= chosen; i++)
            if ((n, i) in known) printf "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>\n", x_of(i), y_of(figure[n, i]), colour[n]
        printf "<circle cx=\"%d\" cy=\"%d\" r=\"4\" fill=\"%s\"/>\n", left + 8, top + height + 36 + 18 * n, colour[n]
        text(left + 18, top + height + 40 + 18 * n, "start", name[n])
    }
    print "</svg>"
}
