# What the summaries of vs-llama-cpp and vs-hugging-face have in common: lines "figure <tab> who <tab> value", medians of them, and rows beside bars. A who
# is "ours", "peer" or another, or begins so where there are several settings: the best of them counts.
function median(key,    n, i, j, list, t) {
    n = count[key]
    for (i = 1; i <= n; i++) list[i] = value[key, i]
    for (i = 2; i <= n; i++) for (j = i; j > 1 && list[j] < list[j - 1]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
    return n == 0 ? "" : n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
}
function best(figure, who,    key, most, found) {
    for (key in count)
        if (key == figure "|" who || index(key, figure "|" who ",") == 1) { found = median(key); if (most == "" || found > most) most = found }
    return most
}
# "-": nothing that could be measured
function shown(x) { return x == "" ? "not measured" : x == "-" ? "" : sprintf("%.4g", x) }
function over(a, b) { return a == "" || b == "" || b <= 0 ? "" : a / b }
# kind: 1, at least the bar; 2, at most it
function row(what, ours, theirs, ratio, bar, kind, unit,    holds) {
    holds = ratio != "" && (kind == 1 ? ratio >= bar : ratio <= bar)
    if (!holds) missed++
    bars++
    printf "| %s | %s | %s | %s | %s %s%s | %s |\n", what, shown(ours), shown(theirs), ratio == "" ? "not measured" : sprintf("%.3g", ratio) unit, \
        kind == 1 ? ">=" : "<=", bar, unit, holds ? "holds" : "**miss**"
}
function versus(what, figure, bar,    ours, theirs) {
    ours = best(figure, "ours"); theirs = best(figure, "peer")
    row(what, ours, theirs, over(ours, theirs), bar, 1, "x")
}
# no bar
function beside(what, figure,    ours, theirs, ratio) {
    ours = best(figure, "ours"); theirs = best(figure, "peer"); ratio = over(ours, theirs)
    printf "| %s | %s | %s | %s |\n", what, shown(ours), shown(theirs), ratio == "" ? "not measured" : sprintf("%.3gx", ratio)
}
function worse(what, figure,    ours, theirs) {
    ours = best(figure, "ours"); theirs = best(figure, "peer")
    row(what, ours, theirs, over(ours, theirs), 1, 2, "x")
}
/^#/ { print "> " substr($0, 3); next }
NF == 3 { key = $1 "|" $2; value[key, ++count[key]] = $3 + 0 }
