#!/bin/bash
# The documents against the sources: paths and links exist, programs compile and print what is said, subcommands are there.
set -u
passed=0 failed=0 skipped=0
cd "$SIGMA_SOURCE_DIR" || exit 1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
mapfile -t documents < <(find . -maxdepth 1 -name '*.md'; find docs data -name '*.md')

# verdict "name" STATUS: one test; what it had to say lies in $folder/log.
verdict()
{
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "test_docs.sh: FAILED: $1"
        head -n 20 "$folder/log"
    fi
}

skip()
{
    skipped=$((skipped + 1))
    echo "test_docs.sh: skipped: $1"
}

# --- links, and paths between backquotes ---

# Paths that begin with a folder of the source; with a `*` they are patterns, with `{a,b}` several, and programs
# may go by the name of their source.
mentioned_paths()
{
    grep -oE '`[^` ]+`' "$1" | tr -d '`' |
        grep -E '^(bench|cli|cmake|data|docs|examples|include|scripts|src|tests)/[A-Za-z0-9_./*{},-]*$'
}

links()
{
    sed '/^```/,/^```/d' "$1" | grep -oE '\]\([^)]+\)' | sed 's/^](//; s/)$//; s/#.*//' |
        grep -vE '^(https?:|$)'
}

check_places()
{
    local document=$1 path each status=0
    while IFS= read -r path; do
        [ -e "${document%/*}/$path" ] || { echo "$document: link to $path, which is not there"; status=1; }
    done < <(links "$document")
    while IFS= read -r path; do
        for each in $(eval "echo $path"); do # one for each alternative in braces
            compgen -G "$each" >/dev/null || [ -e "$each.c" ] || { echo "$document: $path is not there"; status=1; }
        done
    done < <(mentioned_paths "$document")
    return $status
}
for document in "${documents[@]}"; do
    check_places "$document" >"$folder/log"
    verdict "paths and links of $document" $?
done

# --- the program in the README is the example ---

# Every block of C (C++) with a main() becomes NAME.c (NAME.cpp); a block of text right behind it becomes NAME.expected.
extract_programs()
{
    awk -v folder="$2" -v name="$1" '
        function finish() {
            if (kind ~ /^c(pp)?$/ && body ~ /int main\(/) {
                last = folder "/" name "-" ++count "." kind
                printf "%s", body > last
                close(last)
            } else if (kind == "text" && last != "" && near) {
                sub(/c(pp)?$/, "expected", last)
                printf "%s", body > last
                close(last)
            }
            if (kind !~ /^c(pp)?$/ || body !~ /int main\(/)
                last = ""
        }
        /^```/ { if (inside) { finish(); inside = 0; near = kind ~ /^c(pp)?$/ } else { inside = 1; kind = substr($0, 4); body = "" } ; next }
        inside { body = body $0 "\n"; next }
        NF && !/^(prints|It prints|Output)/ { near = 0 }
    ' "$3"
}

mkdir "$folder/programs"
extract_programs readme "$folder/programs" README.md
cmp "$folder/programs/readme-1.c" examples/digits.c >"$folder/log" 2>&1
verdict "the program in the README is examples/digits.c" $?
rm -f "$folder/programs"/readme-*

# --- subcommands in the README ---

if [ -x "$SIGMA_BUILD_DIR/sigma" ]; then
    "$SIGMA_BUILD_DIR/sigma" --help | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p' >"$folder/known"
    grep -ohE '(^|[`$] ?)sigma [a-z][a-z-]*' README.md docs/manual/*.md | sed 's/.*sigma //' | sort -u |
        grep -vxFf "$folder/known" >"$folder/log"
    [ ! -s "$folder/log" ]
    verdict "every 'sigma SUBCOMMAND' in the documents is in sigma --help" $?
else
    skip "the command was not built"
fi

# --- programs in the manual ---

for document in docs/manual/*.md; do
    name=${document##*/}
    extract_programs "${name%.md}" "$folder/programs" "$document"
done

# Numbers may differ from machine to machine, words may not.
words()
{
    sed -E 's/-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?/N/g' "$1"
}

run_program()
{
    local source=$1 program=${1%.c*} compile="cc -std=c17"
    [ "${source##*.}" = c ] || compile="c++ -std=c++17"
    $compile -Wall -Wextra -Wpedantic -Werror -Iinclude "$source" -o "$program" \
        -L"$SIGMA_BUILD_DIR" -lsigma -lm || return 1
    [ -e "$program.expected" ] || return 0
    (cd "$folder" && LD_LIBRARY_PATH=$SIGMA_BUILD_DIR timeout 60 "$program") >"$program.out" 2>&1 ||
        { cat "$program.out"; return 1; }
    diff <(words "$program.expected") <(words "$program.out")
}

if grep -q '^SIGMA_SANITIZE:STRING=.' "$SIGMA_BUILD_DIR/CMakeCache.txt"; then
    skip "programs of the manual: the library was built with sanitizers"
elif [ ! -e "$SIGMA_BUILD_DIR/libsigma.so" ]; then
    skip "programs of the manual: the shared library was not built"
else
    ln -s "$SIGMA_SOURCE_DIR/data" "$SIGMA_SOURCE_DIR/examples" "$folder"
    for source in "$folder/programs"/*.c "$folder/programs"/*.cpp; do
        [ -e "$source" ] || continue
        run_program "$source" >"$folder/log" 2>&1
        verdict "program ${source##*/}" $?
    done
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
