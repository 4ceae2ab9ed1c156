#!/bin/bash
# docs/inventory.md against tests and decisions: each test and each decision that it names is there, and each row says how it stands.
set -u
passed=0 failed=0
cd "$SIGMA_SOURCE_DIR" || exit 1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

# verdict "name" STATUS: one test; what it had to say lies in $folder/log.
verdict()
{
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "test_inventory.sh: FAILED: $1"
        head -n 20 "$folder/log"
    fi
}

# tests_of DOCUMENT: a line "FILE NAME" for each test that is named, as `tests/FOLDER/FILE` (`NAME`, `NAME`).
tests_of()
{
    # shellcheck disable=SC2016 # backquotes of the document
    grep -oE '`tests/[^` ]+` \([^)]*\)' "$1" | awk -F '`' '{ for (i = 4; i < NF; i += 2) print $2, $i }'
}

# A line "FILE NAME" for each TEST in C.
grep -r --include='*.c' '^TEST(' tests | sed 's/:TEST(/ /; s/)$//' >"$folder/known"

# missing_tests DOCUMENT: those that are not there, neither as a TEST nor as a text in a script; 1: there are such, or the
# document names a file without a test.
missing_tests()
{
    local file name status=0
    while read -r file name; do
        [[ $file == *.sh ]] && grep -qF -- "$name" "$file" 2>/dev/null && continue
        echo "$1: there is no test '$name' in $file"
        status=1
    done < <(tests_of "$1" | grep -vxFf "$folder/known")
    # shellcheck disable=SC2016 # backquotes of the document
    ! grep '^|' "$1" | grep -oE '`tests/[^` ]+`( [^(]|$).*' || status=1
    return $status
}

# An entry of the decisions begins with words in bold, which may go over the end of a line.
awk '/^- \*\*|^## /{ print line; line = "" } { sub(/^ +/, ""); line = line == "" ? $0 : line " " $0 } END { print line }' \
    docs/decisions.md >"$folder/decisions"

# missing_decisions DOCUMENT: those that are quoted and not there.
missing_decisions()
{
    local words status=0
    while IFS= read -r words; do
        grep -qF -- "- **$words**" "$folder/decisions" || { echo "$1: there is no decision \"$words\""; status=1; }
    done < <(grep -oE '(\| |; )decision "[^"]+"' "$1" | sed 's/^[^"]*"//; s/"$//')
    return $status
}

# odd_rows DOCUMENT: rows without three cells, without a state, or said to be done with neither test nor decision.
odd_rows()
{
    awk -F ' \\| ' -v document="$1" '
        /^\| what \||^\|---|^[^|]|^$/ { next }
        NF != 3 { print document ":" NR ": " NF " cells, expected 3"; odd = 1; next }
        $3 !~ /^(shown|decided|\*\*(missing|untested)\*\*: .+) \|$/ { print document ":" NR ": no state: " $3; odd = 1 }
        $3 ~ /^(shown|decided)/ && $2 !~ /`tests\/|decision "/ { print document ":" NR ": nothing shows it"; odd = 1 }
        $3 ~ /^shown/ && $2 ~ /decision "/ || $3 ~ /^decided/ && $2 !~ /decision "/ { print document ":" NR ": decided?"; odd = 1 }
        END { exit odd }' "$1"
}

# --- the document ---

document=docs/inventory.md
[ "$(tests_of "$document" | wc -l)" -gt 300 ] >"$folder/log"
verdict "tests are named" $?
missing_tests "$document" >"$folder/log"
verdict "tests that are named exist" $?
[ "$(grep -cE 'decision "' "$document")" -gt 30 ] >"$folder/log"
verdict "decisions are named" $?
missing_decisions "$document" >"$folder/log"
verdict "decisions that are named exist" $?
odd_rows "$document" >"$folder/log"
verdict "each row says how it stands" $?

# The numbers that the introduction tells.
awk -F ' \\| ' '
    /^\| what \||^\|---|^[^|]|^$/ { next }
    { rows++; state = $3 ~ /missing/ ? "missing" : $3 ~ /untested/ ? "untested" : $3 ~ /decided/ ? "decided" : "shown"; count[state]++ }
    END { printf "%d items in all\nSo %d items are shown, %d decided, %d lack something, and %d do all\n", rows, count["shown"],
          count["decided"], count["missing"], count["untested"] }' "$document" >"$folder/numbers"
while IFS= read -r words; do
    grep -qF "$words" "$document" || echo "expected: $words"
done <"$folder/numbers" >"$folder/log"
[ ! -s "$folder/log" ]
verdict "its numbers are those of its rows" $?

# --- mistakes that it would find ---

# finds "what is wrong" CHECK FROM TO: a document with TO in the place of FROM fails the check.
finds()
{
    awk -v from="$3" -v to="$4" '{ at = index($0, from) } at && !done { $0 = substr($0, 1, at - 1) to substr($0, at + length(from)); done = 1 } 1' \
        "$document" >"$folder/changed.md"
    { ! cmp -s "$document" "$folder/changed.md" && ! "$2" "$folder/changed.md"; } >"$folder/log"
    verdict "$1 is found" $?
}
# shellcheck disable=SC2016 # backquotes of the document
{
    finds 'a test of another name' missing_tests '(`environments_are_found_by_name' '(`environments_are_found_by_nam'
    finds 'a file that is not there' missing_tests '`tests/environment/test_life.c`' '`tests/environment/test_live.c`'
    finds 'a line of a script that is not there' missing_tests '(`iris.yaml`' '(`irises.yaml`'
    finds 'a file without a test' missing_tests '`tests/base/test_task.c` (' '`tests/base/test_task.c` and ('
    finds 'a decision that is not there' missing_decisions 'Two folders, data and cache.' 'Three folders, data and cache.'
    finds 'a row without a state' odd_rows '| shown |' '| |'
}

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
