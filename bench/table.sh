#!/bin/bash
# Tables of a file that bench.sh wrote; see usage() below.
set -u

here=$(cd "$(dirname "$0")" && pwd)
document=$here/../docs/performance.md

usage()
{
    cat <<'END'
usage: bench/table.sh text|steps|roofline [RESULTS.jsonl ...]
       bench/table.sh accuracy|profile [FILE]
       bench/table.sh document

  text      as bench.sh prints it
  steps     Markdown: each program's step beside ours
  roofline  Markdown: the minimum time of each step by work and by memory, and what ours takes
  accuracy  Markdown: the seconds to an accuracy that mnist.sh found last
  profile   where our time goes, as profile.sh found it last
  document  puts these where docs/performance.md has them

Without a file, the newest of bench/results. Of several files that have the same row the last one counts.
END
}

case "${1:-}" in
text | steps | roofline | accuracy | profile | document) ;;
-h | --help)
    usage
    exit 0
    ;;
*)
    usage >&2
    exit 2
    ;;
esac
form=$1
shift

newest() # files
{
    local file newest=
    for file in "$@"; do
        [ "$file" -nt "${newest:-/nowhere}" ] && newest=$file
    done
    echo "${newest:-$here/results}"
}

# Prints the lines of a form; 1 with a message if they cannot be made.
table() # form [file ...]
{
    local form=$1 file program=table.awk
    shift
    if [ $# -eq 0 ]; then
        case $form in
        accuracy) set -- "$(newest "$here"/results/*-mnist.jsonl)" ;;
        profile) set -- "$(newest "$here"/results/*-profile.md)" ;;
        *) set -- "$(newest "$here"/results/*-[0-9]*.jsonl)" ;;
        esac
    fi
    for file in "$@"; do
        if [ ! -f "$file" ] || [ ! -r "$file" ]; then
            echo "table: no results for '$form' ($file): bench.sh, mnist.sh and profile.sh write them" >&2
            return 1
        fi
    done
    [ "$form" = profile ] && cat "$@" && return
    [ "$form" = accuracy ] && program=accuracy.awk
    awk -v form="$form" -f "$here/fields.awk" -f "$here/$program" "$@"
}

if [ "$form" != document ]; then
    table "$form" "$@"
    exit
fi
for form in steps roofline accuracy profile; do
    if ! grep -q "^<!-- bench: $form -->$" "$document"; then
        echo "table: $document has no line '<!-- bench: $form -->'" >&2
        exit 1
    fi
    lines=$(table "$form") || continue
    text=$(lines=$lines awk -v form="$form" '
        $0 == "<!-- bench: " form " -->" { print; print ENVIRON["lines"]; inside = 1; next }
        $0 == "<!-- end -->" { inside = 0 }
        !inside' "$document") || exit 1
    printf '%s\n' "$text" >"$document"
done
