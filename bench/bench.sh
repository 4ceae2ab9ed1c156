#!/bin/bash
# Time of a training step, ours and PyTorch's in turns: bench/bench.sh [BUILD]
# Environment: ROUNDS (7), THREADS ("1 2"), PYTHON (the first that has PyTorch).
# In turns, because a machine's clock and its neighbours change within minutes: both see the same.
set -u

here=$(cd "$(dirname "$0")" && pwd)
build=${1:-$here/../build/release}
rounds=${ROUNDS:-7}
threads=${THREADS:-1 2}

ours=
for candidate in "$build/bench/bench_mlp" "$build/bench/mlp" "$build/bench_mlp"; do
    [ -x "$candidate" ] && ours=$candidate && break
done
if [ -z "$ours" ]; then
    echo "bench: $build has no bench_mlp; cmake --build $build --target bench-programs makes it" >&2
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
    env ${settings[@]+"${settings[@]}"} "$python" "$here/bench_torch.py" "$1"
}

python= version=
for candidate in "${PYTHON:-}" python3 /usr/bin/python3; do
    command -v "$candidate" >/dev/null || continue
    python=$candidate
    version=$(torch --version 2>/dev/null) && break
    python=
done

# The median, the least and the most of the numbers in a file.
summary()
{
    sort -g "$1" | awk '{ value[NR] = $1 }
        END { middle = NR % 2 ? value[(NR + 1) / 2] : (value[NR / 2] + value[NR / 2 + 1]) / 2
              printf "%.3f %.3f %.3f", middle, value[1], value[NR] }'
}

times=$(mktemp -d) || exit 1
trap 'rm -rf "$times"' EXIT
for ((round = 1; round <= rounds; round++)); do
    for count in $threads; do
        "$ours" -t "$count" -m >>"$times/sigma-$count" || exit 1
        if [ -n "$python" ]; then
            torch "$count" >>"$times/torch-$count" || exit 1
        fi
    done
done

echo "Training step of 784-1024-1024-10, relu, softmax cross-entropy, gradient descent, batch 100, float32."
echo "Milliseconds: median of $rounds rounds (least to most); each round is a median of many steps."
printf '%-8s %-28s %-28s %s\n' threads sigma "${python:+PyTorch $version}" "${python:+PyTorch / sigma}"
for count in $threads; do
    read -r middle least most <<<"$(summary "$times/sigma-$count")"
    row=$(printf '%-8s %-28s' "$count" "$middle ($least to $most)")
    if [ -n "$python" ]; then
        read -r other other_least other_most <<<"$(summary "$times/torch-$count")"
        ratio=$(awk -v a="$other" -v b="$middle" 'BEGIN { printf "%.2f", a / b }')
        row=$(printf '%s %-28s %s' "$row" "$other ($other_least to $other_most)" "$ratio")
    fi
    echo "$row"
done
if [ -z "$python" ]; then
    echo "PyTorch is not here to compare with: apt-get install python3-torch libopenblas0-openmp"
elif [ -z "$torch_libraries" ]; then
    echo "PyTorch's OpenBLAS may use threads of another kind than PyTorch; apt-get install libopenblas0-openmp"
fi
