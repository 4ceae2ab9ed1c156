#!/bin/bash
# Each tutorial, from its first command to its last in an empty folder: blocks of yaml and of C are files, whose first line has
# their name; blocks of sh are run; a block of text behind one is what it prints. Numbers may differ from machine to machine, words may not.
set -u
passed=0 failed=0 skipped=0
cd "$SIGMA_SOURCE_DIR" || exit 1
skip() { echo "test_tutorials.sh: skipped: $1"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
[ -x "$SIGMA_BUILD_DIR/sigma" ] || skip "the command was not built"
# Whole trainings, which take minutes then; what they call is tested with sanitizers by itself.
! grep -q '^SIGMA_SANITIZE:STRING=.' "$SIGMA_BUILD_DIR/CMakeCache.txt" || skip "the command was built with sanitizers"
export PATH="$SIGMA_BUILD_DIR:$PATH" no_proxy=127.0.0.1 LC_ALL=C.UTF-8

# Writes the blocks of a tutorial as 01.sh, 02.text, 03.yaml, 04.c, ... into a folder.
blocks()
{
    awk -v folder="$2" '
        /^```/ && inside { inside = 0; close(file); next }
        /^```(sh|yaml|text|c)$/ { inside = 1; file = sprintf("%s/%02d.%s", folder, ++count, substr($0, 4)); printf "" > file; next }
        inside { print > file }' "$1"
}

# Words without numbers, histograms and the widths of columns; a line "..." stands for any lines.
plain()
{
    sed -E 's/-?[0-9][0-9,]*(\.[0-9]+)?(e[+-]?[0-9]+)?/N/g; s/[▁▂▃▄▅▆▇█]+//g; s/N \([^)]*%\)/N/g; s/ \. / N /g; s/ \. / N /g; s/[ \t]+/ /g; s/ $//' "$1"
}

# Whether the lines of $1, in which "..." stands for any lines, are those of $2.
is_like()
{
    awk 'NR == FNR { wanted[++count] = $0; next } { lines[++have] = $0 }
        function match_from(i, k) {
            if (i > count) return k > have
            if (wanted[i] == "...") { for (; k <= have + 1; k++) if (match_from(i + 1, k)) return 1; return 0 }
            return k <= have && wanted[i] == lines[k] && match_from(i + 1, k + 1)
        }
        END { exit !match_from(1, 1) }' <(plain "$1") <(plain "$2")
}

run_tutorial()
{
    local tutorial=$1 folder block out=/dev/null
    folder=$(mktemp -d) || return 1
    mkdir "$folder/blocks" "$folder/work"
    blocks "$tutorial" "$folder/blocks"
    for block in "$folder"/blocks/*; do
        case $block in
        *.yaml) cp "$block" "$folder/work/$(sed -n '1s/^# //p' "$block")" ;;
        *.c) cp "$block" "$folder/work/$(sed -nE '1s,^/\* ([^:]*):.*,\1,p' "$block")" ;;
        *.sh)
            out=$folder/out
            if ! (cd "$folder/work" && bash -e "$block") >"$out" 2>&1; then
                echo "failed:"; cat "$block" "$out"; rm -rf "$folder"; return 1
            fi
            ;;
        *.text)
            if ! is_like "$block" "$out"; then
                echo "expected:"; cat "$block"; echo "got:"; cat "$out"; rm -rf "$folder"; return 1
            fi
            ;;
        esac
    done
    rm -rf "$folder"
}

for tutorial in docs/tutorials/[0-9]*.md; do
    if run_tutorial "$tutorial" >"${TMPDIR:-/tmp}/tutorial.$$"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "test_tutorials.sh: FAILED: $tutorial"
        head -40 "${TMPDIR:-/tmp}/tutorial.$$"
    fi
    rm -f "${TMPDIR:-/tmp}/tutorial.$$"
done
echo "$passed passed, $failed failed, $skipped skipped"
exit "$((failed > 0))"
