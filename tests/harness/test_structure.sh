#!/usr/bin/env bash
# The house: files include their own folder and lower floors only; files and functions stay within what can be read.
set -u
cd "$SIGMA_SOURCE_DIR" || exit 1
passed=0 failed=0

# report NAME FINDINGS
report()
{
    if [ -z "$2" ]; then
        passed=$((passed + 1))
    else
        echo "FAILED: $1:"
        echo "$2"
        failed=$((failed + 1))
    fi
}

# Folders of src/ with their floors, and public headers with that of whoever may include them first. Folders of floor 4
# do not know each other; graphs and operations make floor 2 together. `make check-house` looks closer.
folders='base 0 tensor 1 text 1 registry 1 graph 2 ops 2 handlers 3 data 4 network 4 onnx 4 persistence 4 optim 5 metrics 5 hooks 6
    trainer 7 journal 8 show 9 train 10 runs 11 infer 12 hooks_ready 12 control 13 loop 14 parallel 15 monitors 16
    environment 17 cli 18'
headers='base 0 tensor 0 registry 1 text 1 graph 2 handler 3 data 4 network 4 onnx 4 training 5 hooks 5
    operator 5 rules 5 environment 16'
wrong_includes()
{
    grep -rnE '^#include [<"](sigma/)?[a-z_]+[./]' src include/sigma --include='*.[ch]' | awk -v folders="$folders" -v headers="$headers" '
    function read(text, kind,    n, i, list) {
        n = split(text, list)
        for (i = 1; i < n; i += 2) floor[kind list[i]] = list[i + 1]
    }
    function name(path) { sub(/^.*\//, "", path); return path }
    BEGIN { read(folders, "src/"); read(headers, "sigma/") }
    {
        split($0, place, ":")
        split(place[1], path, "/")
        own = path[1] == "src" ? "src/" path[2] : "sigma/" path[3]
        sub(/\.h$/, "", own)
        target = $0
        sub(/^[^<"]*[<"]/, "", target)
        sub(/[>"].*$/, "", target)
        public = sub(/^sigma\//, "", target)
        if (!public && target !~ /\//) next # a system header
        if (public) { sub(/\.h$/, "", target); target = "sigma/" target }
        else { sub(/\/.*$/, "", target); target = "src/" target }
        if (own == "sigma/sigma" || !(target in floor) && !public) next
        if (!(own in floor) || !(target in floor)) print $0 ": unknown floor"
        else if (floor[target] > floor[own]) print $0 ": upward"
        else if (floor[target] == 4 && floor[own] == 4 && name(target) != name(own)) print $0 ": sideways"
    }'
}
report "includes go downward" "$(wrong_includes)"

long_functions()
{
    find src cli plugins tests bench examples -name '*.[ch]' -print0 | xargs -0 awk '
        FNR == 1 { start = 0 }
        /^\{$/ { start = FNR }
        /^\}$/ && start { if (FNR - start - 1 > 100) print FILENAME ":" start ": " FNR - start - 1 " lines"; start = 0 }'
}
report "functions have at most 100 lines" "$(long_functions)"

long_files()
{
    find src cli plugins tests bench examples include -name '*.[ch]' -exec wc -l {} + | awk '$2 != "total" && $1 > 1000'
}
report "files have at most 1000 lines" "$(long_files)"

report "lines of the page have at most 120 columns" "$(LC_ALL=C.UTF-8 grep -rnE '^.{121}' web --include='*.js' \
    --include='*.css' --include='*.html' | cut -c1-100)"

report "nothing is left to do in the sources" "$(grep -rnE '\b(TODO|FIXME|XXX|HACK)\b' src include cli plugins examples bench web)"

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
