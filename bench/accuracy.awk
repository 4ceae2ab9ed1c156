# mnist.sh's JSON lines as a table; table.sh gives fields.awk. Of each program the last line counts.

{
    program = field("program")
    if (!(program in line))
        title[++programs] = program
    line[program] = $0
    said = substr(field("date"), 1, 10) "; " plural(field("threads"), "thread") "; load average " field("load") " at the start."
}

function seconds(level,    time, ratio) {
    time = field("seconds_to_" level)
    if (time == "null")
        return "-"
    ratio = ours[level] > 0 && field("program") != "sigma" ? sprintf(" (%.2f)", time / ours[level]) : ""
    return sprintf("%.1f", time) ratio
}

END {
    print "| program | 97 % | 98 % | 98.5 % | epochs | last |"
    print "|---|---|---|---|---|---|"
    count = split("97 98 98.5", level, " ")
    $0 = line["sigma"]
    for (i = 1; i <= count; i++)
        ours[level[i]] = field("seconds_to_" level[i]) + 0
    for (i = 1; i <= programs; i++) {
        $0 = line[title[i]]
        printf "| %s | %s | %s | %s | %s | %s %% |\n", title[i] == "sigma" ? "Sigma" : title[i], seconds(97), seconds(98),
            seconds(98.5), field("epochs"), field("last")
    }
    print "\n" said
}
