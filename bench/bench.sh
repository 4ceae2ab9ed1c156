#!/bin/bash
# Training steps of several networks, ours and PyTorch's in turns: bench/bench.sh [BUILD]
# Environment: ROUNDS (5), THREADS ("1 2"), SECONDS_EACH (1), PYTHON (the first that has PyTorch).
# In turns, because a machine's clock and its neighbours change within minutes: both see the same.
# Writes what was measured to bench/results/HOST-DATE.jsonl: a line for each workload, number of threads and program.
set -u

here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../build/release}
rounds=${ROUNDS:-5}
threads=${THREADS:-1 2}
seconds=${SECONDS_EACH:-1}

# name, sizes, batch, optimiser
workloads="A 784,1024,1024,10 100 sgd
A 784,1024,1024,10 100 adam
small 784,128,64,10 100 sgd
iris 4,12,10,3 10 sgd"

ours=$build/bench/step
if [ ! -x "$ours" ]; then
    echo "bench: $build has no bench/step; cmake --build $build --target bench-programs makes it" >&2
    exit 1
fi

# A core type that the environment forces on OpenBLAS may be another machine's; each chooses its own here.
unset OPENBLAS_CORETYPE

# PyTorch brings its own threads (OpenMP); with an OpenBLAS that has others they fight for the processors.
settings=() torch_libraries=
for folder in /usr/lib/*/openblas-openmp /usr/lib64/openblas-openmp; do
    if [ -d "$folder" ]; then
        torch_libraries=$folder
        settings+=("LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")
        break
    fi
done
# PyTorch 1.13 uses AVX-512 only when told to, and its OpenBLAS 0.3.21 takes the kernels of a Pentium 4 on processors
# that it does not know: the peer gets the best that this machine has.
if grep -q avx512f /proc/cpuinfo; then
    settings+=(ATEN_CPU_CAPABILITY=avx512 OPENBLAS_CORETYPE=SkylakeX)
fi

torch()
{
    env ${settings[@]+"${settings[@]}"} "$python" "$here/bench_torch.py" "$@"
}

python= version=
for candidate in "${PYTHON:-}" python3 /usr/bin/python3; do
    command -v "$candidate" >/dev/null || continue
    python=$candidate
    version=$(torch --version 2>/dev/null) && break
    python=
done

# "4,12,3" as notation.
notation()
{
    awk -v sizes="$1" 'BEGIN {
        count = split(sizes, size, ",")
        printf "input(%d)", size[1]
        for (i = 2; i <= count; i++)
            printf " + dense(%d%s)", size[i], i < count ? ", relu" : ""
        print " + softmax_cross_entropy"
    }'
}

run_ours() # sizes batch optimiser threads
{
    local type=gradient_descent
    [ "$3" = adam ] && type=adam
    "$ours" -n "$(notation "$1")" -b "$2" -o "$type" -t "$4" -s "$seconds"
}

# PyTorch's optimisers have two ways, of which the better one counts.
run_torch() # sizes batch optimiser threads
{
    local arguments=(--sizes "$1" --batch "$2" --optimiser "$3" --threads "$4" --seconds "$seconds") best
    best=$({ torch "${arguments[@]}" && torch "${arguments[@]}" --foreach; } | sort -g | head -n 1)
    [ -n "$best" ] && echo "$best"
}

# Columns of a file: the median, the least and the most of the first, the largest of the fourth.
summary()
{
    sort -g "$1" | awk '{ value[NR] = $1; if ($4 > memory) memory = $4 }
        END { middle = NR % 2 ? value[(NR + 1) / 2] : (value[NR / 2] + value[NR / 2 + 1]) / 2
              printf "%.2f %.2f %.2f %.1f", middle, value[1], value[NR], memory }'
}

times=$(mktemp -d) || exit 1
trap 'rm -rf "$times"' EXIT
for ((round = 1; round <= rounds; round++)); do
    while read -r name sizes batch optimiser; do
        for count in $threads; do
            run_ours "$sizes" "$batch" "$optimiser" "$count" >>"$times/$name-$optimiser-$count-sigma" || exit 1
            if [ -n "$python" ]; then
                run_torch "$sizes" "$batch" "$optimiser" "$count" >>"$times/$name-$optimiser-$count-torch" || exit 1
            fi
        done
    done <<<"$workloads"
done

processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
mkdir -p "$here/results"
results=$here/results/$(hostname)-$(date +%Y%m%d-%H%M%S).jsonl

record() # workload optimiser threads program middle least most megabytes
{
    printf '{"workload": "%s", "optimiser": "%s", "threads": %d, "program": "%s", "step_us": %s, ' "$1" "$2" "$3" "$4" "$5"
    printf '"least_us": %s, "most_us": %s, "peak_mb": %s, "rounds": %d, ' "$6" "$7" "$8" "$rounds"
    printf '"processor": "%s", "date": "%s"}\n' "$processor" "$(date -Is)"
}

echo "Training steps: dense layers, relu, softmax cross-entropy, float32; $processor."
echo "Microseconds: median of $rounds rounds (least to most), each a median over $seconds s; memory: peak of the process."
printf '%-26s %-5s %-3s %-30s %-34s %6s %9s\n' network with thr sigma "${python:+PyTorch $version}" ratio \
    "${python:+memory}"
while read -r name sizes batch optimiser; do
    for count in $threads; do
        read -r middle least most memory <<<"$(summary "$times/$name-$optimiser-$count-sigma")"
        record "$name" "$optimiser" "$count" sigma "$middle" "$least" "$most" "$memory" >>"$results"
        row=$(printf '%-26s %-5s %-3s %-30s' "$sizes x $batch" "$optimiser" "$count" "$middle ($least to $most)")
        if [ -n "$python" ]; then
            read -r other other_least other_most other_memory <<<"$(summary "$times/$name-$optimiser-$count-torch")"
            record "$name" "$optimiser" "$count" "pytorch $version" "$other" "$other_least" "$other_most" \
                "$other_memory" >>"$results"
            row+=$(printf ' %-34s %6.2f %4.0f / %s MB' "$other ($other_least to $other_most)" \
                "$(awk -v a="$other" -v b="$middle" 'BEGIN { print a / b }')" "$memory" "${other_memory%.*}")
        fi
        echo "$row"
    done
done <<<"$workloads"
echo "Written to $results"
if [ -z "$python" ]; then
    echo "PyTorch is not here to compare with: apt-get install python3-torch libopenblas0-openmp"
elif [ -z "$torch_libraries" ]; then
    echo "PyTorch's OpenBLAS may use threads of another kind than PyTorch; apt-get install libopenblas0-openmp"
fi
