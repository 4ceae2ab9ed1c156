#!/bin/bash
# Tables of a file that bench.sh wrote; see usage() below.
set -u

here=$(cd "$(dirname "$0")" && pwd)
document=$here/../docs/performance.md

usage()
{
    cat <<'END'
usage: bench/table.sh text|steps|roofline|document [RESULTS.jsonl ...]

  text      as bench.sh prints it
  steps     Markdown: each program's step beside ours
  roofline  Markdown: the least time of each step by work and by memory, and what ours takes
  document  puts steps and roofline where docs/performance.md has them

Without a file, the newest of bench/results. Of several files that have the same row the last one counts.
END
}

case "${1:-}" in
text | steps | roofline | document) ;;
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
if [ $# -eq 0 ]; then
    newest=
    for file in "$here"/results/*-[0-9]*.jsonl; do
        [ "$file" -nt "${newest:-/nowhere}" ] && newest=$file
    done
    set -- "$newest"
fi
for file in "$@"; do
    if [ ! -r "$file" ]; then
        echo "table: '$file' cannot be read; bench/bench.sh writes such files" >&2
        exit 1
    fi
done

table() # form file ...
{
    local form=$1
    shift
    awk -v form="$form" -f "$here/fields.awk" -f "$here/table.awk" "$@"
}

if [ "$form" != document ]; then
    table "$form" "$@"
    exit
fi
for form in steps roofline; do
    if ! grep -q "^<!-- bench/table.sh $form -->$" "$document"; then
        echo "table: $document has no line '<!-- bench/table.sh $form -->'" >&2
        exit 1
    fi
    lines=$(table "$form" "$@") || exit 1
    text=$(lines=$lines awk -v form="$form" '
        $0 == "<!-- bench/table.sh " form " -->" { print; print ENVIRON["lines"]; inside = 1; next }
        $0 == "<!-- end -->" { inside = 0 }
        !inside' "$document") || exit 1
    printf '%s\n' "$text" >"$document"
done
