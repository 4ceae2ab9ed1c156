#!/usr/bin/env bash
# Files and functions stay within what can be read. Which folder may include which: scripts/house.py, tested by test_house.sh.
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

long_functions()
{
    find src cli models plugins tests bench examples -name '*.[ch]' -print0 | xargs -0 awk '
        FNR == 1 { start = 0 }
        /^\{$/ { start = FNR }
        /^\}$/ && start { if (FNR - start - 1 > 100) print FILENAME ":" start ": " FNR - start - 1 " lines"; start = 0 }'
}
report "functions have at most 100 lines" "$(long_functions)"

long_files()
{
    find src cli models plugins tests bench examples include -name '*.[ch]' -exec wc -l {} + | awk '$2 != "total" && $1 > 1000'
}
report "files have at most 1000 lines" "$(long_files)"

report "lines of the page have at most 120 columns" "$(LC_ALL=C.UTF-8 grep -rnE '^.{121}' web --include='*.js' \
    --include='*.css' --include='*.html' | cut -c1-100)"

report "nothing is left to do in the sources" "$(grep -rnE '\b(TODO|FIXME|XXX|HACK)\b' src include cli models plugins examples bench web)"

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
