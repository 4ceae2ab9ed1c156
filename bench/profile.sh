#!/bin/bash
# Where the time of our training steps goes; see usage() below.
set -u

here=$(cd "$(dirname "$0")" && pwd)

usage()
{
    cat <<'END'
usage: bench/profile.sh [BUILD]

Trains each network of bench/workloads.sh under `perf` and prints, as Markdown, and writes to
bench/results/HOST-profile.md, which part of the samples fell in which
file of the library: that of the function that ran, without those it called. BUILD is where `bench-programs` were built
(build/release).

Environment:
  WORKLOADS   of these names alone ("A small iris lenet lstm gpt")
  PRECISIONS  of these alone ("float32 bfloat16")
  THREADS     numbers of threads ("1")
  SECONDS_EACH  seconds for each (2)
  LEAST       percent below which a part is not named (2)
  RUN         a command that each is started with (none)
END
}

# shellcheck source=bench/arguments.sh
. "$here/arguments.sh"
build=${1:-$here/../build/release}
if ! command -v perf >/dev/null; then
    echo "profile: perf is not here: apt-get install linux-perf" >&2
    exit 1
fi
if [ ! -x "$build/bench/step" ]; then
    echo "profile: $build has no bench/step; cmake --build $build --target bench-programs makes it" >&2
    exit 1
fi
# shellcheck source=bench/workloads.sh
. "$here/workloads.sh"
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

# What a row's samples say: percent and file, the most first.
parts_of() # row threads
{
    local type=${optimiser_of[$1]}
    [ "$type" = sgd ] && type=gradient_descent
    # shellcheck disable=SC2086 # several arguments
    ${RUN:-} perf record -q -e cpu-clock -F 1999 -D 300 -o "$scratch/perf" "$build/bench/step" -n "${notation_of[$1]}" \
        -b "${batch_of[$1]}" -o "$type" -t "$2" -p "${precision_of[$1]}" ${extra_of[$1]} -s "${SECONDS_EACH:-2}" \
        >"$scratch/step" 2>"$scratch/errors" || return
    perf report -v -i "$scratch/perf" --stdio --sort dso,symbol 2>/dev/null | awk '/^ *[0-9.]+%/ { print $1 + 0, $2, $3 }' \
        >"$scratch/samples"
    # Of an address the outermost function's file, as others are only inlined there.
    awk '$2 ~ /bench\/step$/ { print $3 }' "$scratch/samples" | addr2line -a -i -e "$build/bench/step" | awk '
        /^0x/ { address = $1; next }
        { file[address] = $1 }
        END { for (address in file) print address, file[address] }' >"$scratch/files"
    awk -v least="${LEAST:-2}" '
        # With as many digits as perf or addr2line likes.
        function number(address) {
            sub(/^0x0*/, "", address)
            return address
        }
        NR == FNR {
            sub(/:[0-9?]*$/, "", $2)
            sub(/.*\//, "", $2)
            file[number($1)] = $2
            next
        }
        {
            part = number($3)
            if ($2 ~ /bench\/step$/)
                part = part in file ? file[part] : "unknown"
            else if ($2 ~ /kernel/)
                part = "kernel"
            else if ($2 ~ /^perf-[0-9]*\.map$/ || $2 ~ /anon/)
                part = "generated"
            else
                part = $2
            sub(/.*\//, "", part)
            share[part] += $1
        }
        END {
            for (part in share)
                if (share[part] >= least)
                    printf "%.0f %s 0\n", share[part], part
                else
                    rest += share[part]
            printf "%.0f others 1\n", rest
        }' "$scratch/files" "$scratch/samples" | sort -k3,3n -k1,1nr
}

mkdir -p "$here/results"
results=$here/results/$(hostname)-profile.md
{
    echo "| network | with | threads | step | percent of the samples |"
    echo "|---|---|---|---|---|"
} | tee "$results"
for row in "${rows[@]}"; do
    for count in ${threads_of[$row]:-${THREADS:-1}}; do
        if parts_of "$row" "$count" >"$scratch/parts"; then
            awk -v row="$row" -v count="$count" "$(cat "$here/fields.awk")"'
                NR == FNR { time = $1; next }
                { text = text (text ? ", " : "") $2 " " $1 }
                END {
                    split(row, part, "-")
                    printf "| %s | %s | %d | %s | %s |\n", part[1], part[2] (part[3] == "bfloat16" ? ", bfloat16" : ""), count,
                        microseconds(time), text
                }' "$scratch/step" "$scratch/parts"
        else
            echo "profile: $row: $(tail -n 1 "$scratch/errors")" >&2
        fi
    done
done | tee -a "$results"
echo "Written to $results" >&2
