# bench.sh's JSON lines as a table; table.sh sets `form` and gives fields.awk. Of each row ours comes first.

BEGIN {
    if (form == "text")
        printf "%-7s %-5s %-4s %-3s %-20s %-32s %6s %7s %6s %6s %7s  %s\n", "network", "with", "type", "thr", "program",
            "microseconds", "ratio", "of peak", "MB", "ratio", "library", "setting"
    else if (form == "steps") {
        print "| network | with | threads | program | step | of peak | ratio | memory | ratio | setting |"
        print "|---|---|---|---|---|---|---|---|---|---|"
    } else {
        print "| network | with | threads | MFLOP | MB | by work | by memory | Sigma | of the floor | nearest other | of the floor |"
        print "|---|---|---|---|---|---|---|---|---|---|---|"
    }
}

function percent(share) {
    return (100 * share >= 10 ? sprintf("%.0f", 100 * share) : digits(100 * share, 2)) " %"
}

function network(    name) {
    name = field("workload") " | " field("optimiser") (field("precision") == "bfloat16" ? ", bfloat16" : "")
    return name " | " field("threads")
}

function print_text(own) {
    printf "%-7s %-5s %-4s %-3s %-20s %-32s %6s %6s%% %6s %6s %7s  %s\n", own ? field("workload") : "",
        own ? field("optimiser") : "", own ? (field("precision") == "bfloat16" ? "bf16" : "f32") : "",
        own ? field("threads") : "", field("program"),
        field("step_us") " (" field("least_us") " to " field("most_us") ")", digits(field("ratio"), 3),
        sprintf("%.1f", 100 * field("share_of_peak")), sprintf("%.0f", field("peak_mb")),
        sprintf("%.1f", field("memory_ratio")), field("library_mb"), field("setting")
}

function print_step(own) {
    printf "| %s | %s | %s | %s | %s | %.0f MB | %s | %s |\n", own ? network() : "| |", field("program"),
        microseconds(field("step_us")), percent(field("share_of_peak")), own ? "" : digits(field("ratio"), 3),
        field("peak_mb"), own ? "" : sprintf("%.1f", field("memory_ratio")), own ? "" : field("setting")
}

# The floors are those of float32's multiply-adds and of the third-level cache.
function print_roofline() {
    if (row == "")
        return
    printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", row, digits(work, 4), digits(moved, 3), microseconds(by_work),
        microseconds(by_memory), microseconds(ours), digits(ours / floor, 3),
        nearest == "" ? "" : nearest_program " " microseconds(nearest), nearest == "" ? "" : digits(nearest / floor, 3)
}

form == "text" { print_text(field("program") == "Sigma") }
form == "steps" { print_step(field("program") == "Sigma") }
form == "roofline" && field("program") == "Sigma" {
    print_roofline()
    row = network(); nearest = ""
    work = field("mflop"); moved = field("least_mb_moved"); ours = field("step_us")
    by_work = work / field("peak_gflops") * 1000
    by_memory = moved / field("cache_update_gbs") * 1000
    floor = by_work > by_memory ? by_work : by_memory
    next
}
form == "roofline" && (nearest == "" || field("step_us") + 0 < nearest + 0) {
    nearest = field("step_us"); nearest_program = field("program")
}

END {
    if (form == "roofline")
        print_roofline()
}
