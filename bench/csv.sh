#!/bin/bash
# Reading text tables, ours beside pandas' and PyArrow's; see usage() below and docs/performance.md.
set -u

here=$(cd "$(dirname "$0")" && pwd)

usage()
{
    cat <<'END'
usage: bench/csv.sh [BUILD]

Makes tables of numbers, of numbers with seventeen digits, and of numbers and texts; reads each in turns by `sigma data`
(describe), for training (extract), by pandas' C engine and by PyArrow, if those are installed; and prints medians: MB a
second by the clock, MB a second of a processor's time, which other programs on the computer change less, and memory.

Environment:
  MEGABYTES  of each table (172)
  TABLES     of these alone ("numbers digits mixed")
  THREADS    numbers of threads ("1 2"); pandas has one
  ROUNDS     measurements of each, in turns (5)
  PYTHON     a Python with pandas and PyArrow (python3)

  python3 -m venv tables && tables/bin/pip install pandas pyarrow && PYTHON=tables/bin/python make bench PARTS=tables
END
}

# shellcheck source=bench/arguments.sh
. "$here/arguments.sh"

build=${1:-$here/../build/release}
megabytes=${MEGABYTES:-172}
python=${PYTHON:-python3}
program=$build/bench/csv
if [ ! -x "$program" ]; then
    echo "csv: $build has no bench/csv; cmake --build $build --target bench-programs makes it" >&2
    exit 1
fi
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

peers=()
for peer in pandas pyarrow; do
    if version=$("$python" "$here/csv_peers.py" --version "$peer" 2>/dev/null); then
        peers+=("$peer")
        echo "$peer $version"
    else
        echo "$peer is not here to compare with"
    fi
done
echo "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1); $megabytes MB each; medians of ${ROUNDS:-5} rounds"

# A line of seconds, seconds of processors and MB to the file of this program.
measure() # reader file threads
{
    case $1 in
    describe | extract) "$program" "$1" "$2" "$3" ;;
    *) "$python" "$here/csv_peers.py" "$1" "$2" "$3" ;;
    esac >>"$scratch/$1-$3"
}

# The medians of each column of a file.
medians()
{
    for column in 1 2 3; do
        cut -d ' ' -f "$column" "$1" | sort -g | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
    done | paste -s -d ' '
}

for table in ${TABLES:-numbers digits mixed}; do
    file=$scratch/$table.csv
    "$program" make "$table" "$megabytes" "$file" || exit 1
    rm -f "$scratch"/*-[0-9]*
    for ((round = 0; round < ${ROUNDS:-5}; round++)); do
        for threads in ${THREADS:-1 2}; do
            for reader in describe extract "${peers[@]}"; do
                [ "$reader" = pandas ] && [ "$threads" != 1 ] && continue
                measure "$reader" "$file" "$threads" || exit 1
            done
        done
    done
    printf '\n%-9s %-7s %8s %8s %12s %8s\n' "$table" threads seconds MB/s "MB/CPU-s" "memory"
    for threads in ${THREADS:-1 2}; do
        for reader in describe extract "${peers[@]}"; do
            [ -f "$scratch/$reader-$threads" ] || continue
            read -r seconds processors memory < <(medians "$scratch/$reader-$threads")
            awk -v r="$reader" -v t="$threads" -v s="$seconds" -v p="$processors" -v m="$memory" -v size="$megabytes" \
                'BEGIN { printf "%-9s %-7s %8.3f %8.0f %12.0f %8.0f\n", r, t, s, size / s, size / p, m }'
        done
    done
    rm -f "$file"
done
