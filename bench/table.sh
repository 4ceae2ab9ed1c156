#!/bin/bash
# Tables of a file that bench.sh wrote; see usage() below.
set -u

here=$(cd "$(dirname "$0")" && pwd)

usage()
{
    cat <<'END'
usage: bench/table.sh text|steps|roofline [RESULTS.jsonl]

  text      as bench.sh prints it
  steps     Markdown: each program's step beside ours (docs/performance.md, "Beside other programs")
  roofline  Markdown: the least time of each step by work and by memory, and what ours takes (the same, "Roofline")

Without a file, the newest of bench/results.
END
}

case "${1:-}" in
text | steps | roofline) ;;
-h | --help)
    usage
    exit 0
    ;;
*)
    usage >&2
    exit 2
    ;;
esac
results=${2:-}
if [ -z "$results" ]; then
    for file in "$here"/results/*-[0-9]*.jsonl; do
        [ "$file" -nt "${results:-/nowhere}" ] && results=$file
    done
fi
if [ ! -r "$results" ]; then
    echo "table: '$results' cannot be read; bench/bench.sh writes such files" >&2
    exit 1
fi
exec awk -v form="$1" -f "$here/fields.awk" -f "$here/table.awk" "$results"
