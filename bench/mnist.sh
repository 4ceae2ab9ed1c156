#!/bin/bash
# Time to an accuracy on handwritten digits, ours and PyTorch's one after the other; see usage() below.
set -u

here=$(cd "$(dirname "$0")" && pwd)

usage()
{
    cat <<'END'
usage: bench/mnist.sh [BUILD]

Trains examples/mnist.yaml's network with `sigma train`, and the same network, optimiser and schedule in PyTorch, and
prints after how many seconds, from the start of the process, an epoch ended with 97, 98 and 98.5 % of the test right.
Appends a JSON line for each to bench/results/HOST-mnist.jsonl. Exit code 77 where the data are not here:
`sigma data mnist` fetches them. Time: about a minute for each program on 2 quiet processors.

Environment:
  EPOCHS    of the schedule (10); training ends early when 98.5 % is reached
  THREADS   of both (the processors, at most 8)
  LIMIT     seconds for each program (88)
  PYTHON    a Python with PyTorch, or several, tried besides python3 and /usr/bin/python3
END
}

# shellcheck source=bench/arguments.sh
. "$here/arguments.sh"

build=${1:-$here/../build/release}
epochs=${EPOCHS:-10}
processors=$(nproc)
[ "$processors" -gt 8 ] && processors=8
threads=${THREADS:-$processors}
limit=${LIMIT:-88}
levels="97 98 98.5"
if [ ! -x "$build/sigma" ]; then
    echo "mnist: $build has no sigma; cmake --build $build --target sigma_cli makes it" >&2
    exit 1
fi

# Where Sigma looks for data.
data=
for root in "${SIGMA_DATA_DIR:-${XDG_DATA_HOME:+$XDG_DATA_HOME/sigma}}" "${HOME:-}/.local/share/sigma" \
    "${SIGMA_CACHE_DIR:-${XDG_CACHE_HOME:-${HOME:-}/.cache}/sigma}" data; do
    [ -d "$root" ] || continue
    file=$(find -L "$root" -maxdepth 3 -name 'train-images-idx3-ubyte*' 2>/dev/null | grep -v fashion | head -n 1)
    if [ -n "$file" ]; then
        data=$(cd "$(dirname "$file")" && pwd)
        break
    fi
done
if [ -z "$data" ]; then
    echo "mnist: the digits are not here, so no time to an accuracy; \`sigma data mnist\` fetches them"
    exit 77
fi

# shellcheck source=bench/peers/torch.sh
. "$here/peers/torch.sh"
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
read -r load _ </proc/loadavg

# Runs a command; each line it prints gets the seconds since its start before it.
stamped() # file command ...
{
    local file=$1 line begin=$EPOCHREALTIME
    shift
    "$@" 2>"$scratch/errors" </dev/null | while IFS= read -r line; do
        awk -v now="$EPOCHREALTIME" -v begin="$begin" -v line="$line" 'BEGIN { printf "%.2f %s\n", now - begin, line }'
    done >"$file"
    local status=${PIPESTATUS[0]}
    # 124: the time was up. What was reached until then counts.
    if [ "$status" -ne 0 ] && [ "$status" -ne 124 ]; then
        cat "$scratch/errors" >&2
        return 1
    fi
}

# Seconds and percent of each epoch: the seconds from the lines as they came, ours of the file of the run in full digits.
epochs_of_sigma()
{
    paste -d ' ' <(sed -n 's/^\([0-9.]*\) epoch [0-9].*validation .*/\1/p' "$1") \
        <(sed -n 's/.*"validation.accuracy":\([0-9.e-]*\).*/\1/p' "$scratch/run/metrics.jsonl") |
        awk 'NF == 2 { printf "%s %.2f\n", $1, 100 * $2 }'
}

epochs_of_torch()
{
    sed -n 's/^\([0-9.]*\) epoch [0-9]* accuracy \([0-9.]*\)$/\1 \2/p' "$1"
}

time_to() # epochs level
{
    awk -v level="$2" '$2 >= level { print $1; exit }' "$1"
}

train_ours()
{
    sed '$a rules: ["if validation.accuracy >= 0.98499 then stop \\"good enough\\""]' "$here/../examples/mnist.yaml" \
        >"$scratch/mnist.yaml"
    stamped "$scratch/lines" env -u OPENBLAS_CORETYPE SIGMA_DATA_DIR="$data" timeout "$limit" "$build/sigma" train \
        "$scratch/mnist.yaml" epochs="$epochs" threads="$threads" --folder "$scratch/run" || return 1
    epochs_of_sigma "$scratch/lines" >"$scratch/sigma"
}

train_torch() # index
{
    stamped "$scratch/lines" torch_run "$1" "$here/mnist_torch.py" --data "$data" \
        --epochs "$epochs" --threads "$threads" --until 98.5 || return 1
    epochs_of_torch "$scratch/lines" >"$scratch/torch$1"
}

results=$here/results/$(hostname)-mnist.jsonl
mkdir -p "$here/results"
report() # program title
{
    local level moment text json="" row count
    row=$(printf '%-20s' "$2")
    for level in $levels; do
        moment=$(time_to "$scratch/$1" "$level")
        text=${moment:--}
        if [ "$1" != sigma ] && [ -n "$moment" ] && [ -n "$(time_to "$scratch/sigma" "$level")" ]; then
            text+=$(awk -v a="$moment" -v b="$(time_to "$scratch/sigma" "$level")" 'BEGIN { printf " (%.2f)", a / b }')
        fi
        row+=$(printf ' %16s' "$text")
        json+=$(printf '"seconds_to_%s": %s, ' "$level" "${moment:-null}")
    done
    read -r count text < <(awk 'END { print NR, $2 + 0 }' "$scratch/$1")
    echo "$row $(printf '%10s %8s %%' "$count" "$text")"
    printf '{"program": "%s", %s"epochs": %d, "last": %s, "threads": %d, "schedule": %d, "load": %s, "date": "%s"}\n' \
        "$2" "$json" "$count" "$text" "$threads" "$epochs" "$load" "$(date -Is)" >>"$results"
}

echo "Seconds from the start of the process to an accuracy on the test of handwritten digits: 784-1000-800-10 with dropout,"
echo "Adam, cosine over $epochs epochs, batch 100, threads: $threads; load average at the start $load. In parentheses: / ours."
train_ours || exit 1
for index in "${!torch_versions[@]}"; do
    train_torch "$index" || exit 1
done
printf '%-20s %16s %16s %16s %10s %10s\n' program "97 %" "98 %" "98.5 %" epochs last
report sigma sigma
for index in "${!torch_versions[@]}"; do
    report "torch$index" "PyTorch ${torch_versions[$index]}"
done
[ ${#torch_versions[@]} -eq 0 ] && echo "PyTorch is not here to compare with: $torch_install"
echo "-: not within $limit s or $epochs epochs. One run each: a seed moves the epoch by one or two. Written to $results"
