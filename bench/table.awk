# bench.sh's JSON lines as a table; table.sh sets `form` and gives fields.awk.

{
    row = field("workload") "," field("optimiser") "," field("precision") "," field("threads")
    if (!(row in number)) {
        number[row] = ++rows
        name[rows] = row
    }
    program = field("program")
    if (!(program in place)) {
        place[program] = ++programs
        title[programs] = program
    }
    line[number[row], place[program]] = $0
    if (field("workload") && program == "Sigma")
        said = field("processor") "; Sigma " field("revision") "; " substr(field("date"), 1, 10) "; load average " field("load") \
            " at the start; medians of " field("rounds") " rounds"
    peak[field("threads"), field("precision")] = field("peak_gflops")
    measured[field("threads")] = 1
    memory[field("threads")] = field("memory_read_gbs") " and " field("memory_update_gbs")
    cache[field("threads")] = field("cache_read_gbs") " and " field("cache_update_gbs")
}

function percent(share) {
    return (100 * share >= 10 ? sprintf("%.0f", 100 * share) : digits(100 * share, 2)) " %"
}

function short(precision) {
    return precision == "bfloat16" ? "bf16" : "f32"
}

function print_text(    i, j, part, own) {
    printf "%-9s %-5s %-4s %-3s %-20s %-32s %6s %7s %6s %6s %7s  %s\n", "network", "with", "type", "thr", "program",
        "microseconds", "ratio", "of peak", "MB", "ratio", "library", "setting"
    for (i = 1; i <= rows; i++) {
        split(name[i], part, ",")
        for (j = 1; j <= programs; j++) {
            if (!((i, j) in line))
                continue
            $0 = line[i, j]
            own = j == 1
            printf "%-9s %-5s %-4s %-3s %-20s %-32s %6s %6s%% %6s %6s %7s  %s\n", own ? part[1] : "", own ? part[2] : "",
                own ? short(part[3]) : "", own ? part[4] : "", field("program"),
                field("step_us") " (" field("minimum_us") " to " field("maximum_us") ")", digits(field("ratio"), 3),
                sprintf("%.1f", 100 * field("share_of_peak")), sprintf("%.0f", field("peak_mb")),
                sprintf("%.1f", field("memory_ratio")), field("library_mb"), field("setting")
        }
    }
}

function network(i,    part) {
    split(name[i], part, ",")
    return part[1] " | " part[2] (part[3] == "bfloat16" ? ", bfloat16" : "") " | " part[4]
}

function print_sources(    count) {
    print "\n" said "."
    for (count = 1; count <= 256; count++)
        if (count in measured)
            printf "%s: %s GFLOP/s%s; read and updated, memory %s GB/s, third-level cache %s.\n", plural(count, "thread"),
                peak[count, "float32"], (count, "bfloat16") in peak ? " (bfloat16 " peak[count, "bfloat16"] ")" : "",
                memory[count], cache[count]
}

# Every PyTorch has columns, the newest (which comes first) one for its setting; FANN has a line below.
function print_steps(    i, j, text, newest, others) {
    text = "| network | with | threads | Sigma (minimum to maximum) | of peak | memory |"
    for (j = 2; j <= programs; j++)
        if (title[j] ~ /^PyTorch/) {
            text = text " " title[j] " (minimum to maximum) | ratio | memory |" (newest ? "" : " setting |")
            newest = newest ? newest : j
        }
    print text
    gsub(/[^|]+/, "---", text)
    print text
    for (i = 1; i <= rows; i++) {
        $0 = line[i, 1]
        text = "| " network(i) " | " span() " | " percent(field("share_of_peak")) " | " sprintf("%.0f MB", field("peak_mb")) " |"
        for (j = 2; j <= programs; j++) {
            $0 = line[i, j]
            if (title[j] ~ /^PyTorch/)
                text = text ($0 == "" ? " | | |" : sprintf(" %s | **%s** | %.0f MB |", span(), digits(field("ratio"), 3),
                    field("peak_mb"))) (j != newest ? "" : " " setting() " |")
            else if ($0 != "" && field("threads") == 1)
                others = others (others ? ", " : "\n" title[j] ", 1 thread: ") field("workload") " " microseconds(field("step_us"))
        }
        print text
    }
    print_sources()
    if (others)
        print others "."
}

function span(    unit) {
    unit = field("step_us") + 0 >= 1000 ? 1000 : 1
    return digits(field("step_us") / unit, 3) " (" digits(field("minimum_us") / unit, 3) " to " digits(field("maximum_us") / unit, 3) ") " \
        (unit == 1 ? "\302\265s" : "ms")
}

# Of PyTorch; the number of threads only where fewer than allowed were faster.
function setting(    text) {
    text = field("setting")
    if (text !~ /^1 thread,/ || field("threads") == 1)
        sub(/^[0-9]+ threads?, /, "", text)
    return text
}

# The floors are those of multiply-adds of the type and of the third-level cache.
function print_roofline(    i, j, work, moved, by_work, by_memory, ours, floor, nearest, by) {
    print "| network | with | threads | MFLOP | MB | by work | by memory | Sigma | of the floor | nearest other | of the floor |"
    print "|---|---|---|---|---|---|---|---|---|---|---|"
    for (i = 1; i <= rows; i++) {
        $0 = line[i, 1]
        work = field("mflop"); moved = field("minimum_mb_moved"); ours = field("step_us")
        by_work = work / field("peak_gflops") * 1000
        by_memory = moved / field("cache_update_gbs") * 1000
        floor = by_work > by_memory ? by_work : by_memory
        nearest = ""
        for (j = 2; j <= programs; j++) {
            $0 = line[i, j]
            if ($0 != "" && (nearest == "" || field("step_us") + 0 < nearest + 0)) {
                nearest = field("step_us")
                by = field("program")
            }
        }
        printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", network(i), digits(work, 4), digits(moved, 3),
            microseconds(by_work), microseconds(by_memory), microseconds(ours), digits(ours / floor, 3),
            nearest == "" ? "" : by " " microseconds(nearest), nearest == "" ? "" : digits(nearest / floor, 3)
    }
}

END {
    if (form == "text")
        print_text()
    else if (form == "steps")
        print_steps()
    else
        print_roofline()
}
