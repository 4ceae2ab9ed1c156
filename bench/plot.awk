# Draws the ratios of a file that bench.sh wrote: awk -f bench/fields.awk -f bench/plot.awk FILE.jsonl > FILE.svg
# A bar for each other program beside ours, from 1 on a logarithmic axis: to the right where ours takes less time.

function escaped(text) {
    gsub(/&/, "\\&amp;", text)
    gsub(/</, "\\&lt;", text)
    return text
}

function place(ratio) {
    return left + width * (log(ratio) - log(minimum)) / (log(maximum) - log(minimum))
}

function text(x, y, size, anchor, content, more) {
    printf "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%d\" text-anchor=\"%s\"%s>%s</text>\n", x, y, size, anchor, more,
        escaped(content)
}

# A row's name, too.
function key() {
    return field("workload") ", " field("optimiser") (field("precision") == "bfloat16" ? ", bfloat16, " : ", ") \
        plural(field("threads"), "thread")
}

BEGIN { minimum = 0.5; maximum = 2 }

field("program") == "Sigma" {
    ours[key()] = field("step_us")
    processor = field("processor"); date = field("date"); load = field("load"); revision = field("revision")
    next
}
{
    bars++
    ratio[bars] = field("ratio") + 0
    program[bars] = field("program")
    group[bars] = key()
    times[bars] = microseconds(field("step_us")) " / " microseconds(ours[key()])
    if (!(program[bars] in colour_of))
        colour_of[program[bars]] = colours++
    while (ratio[bars] < minimum && minimum > 1e-4)
        minimum /= 2
    while (ratio[bars] > maximum && maximum < 1e6)
        maximum *= 2
}

END {
    palette[0] = "#2f6db3"; palette[1] = "#d9822b"; palette[2] = "#4d9a57"; palette[3] = "#8d5aa6"
    left = 250; width = 560; bar = 20; top = 92
    rows = bars
    for (i = 2; i <= bars; i++)
        if (group[i] != group[i - 1])
            gaps++
    bottom = top + rows * (bar + 4) + gaps * 10
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1000\" height=\"%d\" font-family=\"sans-serif\">\n", bottom + 60
    print "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
    text(20, 28, 17, "start", "Time of a training step: other programs' / Sigma's", " font-weight=\"bold\"")
    text(20, 48, 12, "start", processor "; Sigma " revision "; " substr(date, 1, 10) "; load average " load, " fill=\"#555\"")
    x = 20
    for (i = 1; i <= bars; i++) {
        if (program[i] in shown)
            continue
        shown[program[i]] = 1
        printf "<rect x=\"%d\" y=\"60\" width=\"13\" height=\"13\" fill=\"%s\"/>\n", x, palette[colour_of[program[i]] % 4]
        text(x + 18, 71, 12, "start", program[i])
        x += 50 + 7 * length(program[i])
    }
    count = split("0.001 0.01 0.02 0.05 0.1 0.2 0.5 1 2 5 10 20 50 100 200 500 1000 10000 100000", tick, " ")
    for (i = 1; i <= count; i++) {
        if (tick[i] < minimum || tick[i] > maximum)
            continue
        x = place(tick[i])
        printf "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"%s\"/>\n", x, x, top - 8, bottom + 4,
            tick[i] == 1 ? "#222" : "#ddd"
        text(x, bottom + 20, 12, "middle", tick[i])
    }
    text(left + width / 2, bottom + 42, 12, "middle", "ratio (logarithmic): right of 1 Sigma is faster, left of 1 slower", \
        " fill=\"#555\"")
    y = top
    for (i = 1; i <= bars; i++) {
        if (i > 1 && group[i] != group[i - 1])
            y += 10
        if (i == 1 || group[i] != group[i - 1])
            text(left - 12, y + 15, 13, "end", group[i])
        from = place(ratio[i] < 1 ? ratio[i] : 1)
        to = place(ratio[i] < 1 ? 1 : ratio[i])
        printf "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", from, y, to - from, bar,
            palette[colour_of[program[i]] % 4]
        text(to + 6, y + 15, 12, "start", sprintf("%.2f", ratio[i]) "  (" times[i] ")")
        y += bar + 4
    }
    print "</svg>"
}
