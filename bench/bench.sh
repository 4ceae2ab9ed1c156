#!/bin/bash
# Training steps, ours and other programs' in turns; see usage() below and docs/performance.md.
set -u

here=$(cd "$(dirname "$0")" && pwd)

usage()
{
    cat <<'END'
usage: bench/bench.sh [BUILD]

Measures training steps of several networks in turns with the programs that are installed here, prints a table, and
writes bench/results/HOST-DATE.jsonl and .svg. BUILD is where `bench-programs` were built (build/release).

Environment:
  ROUNDS        measurements of each program, in turns (5); the table has their medians
  SECONDS_EACH  seconds for each (0.5)
  THREADS       numbers of threads ("1 N", N the processors, at most 8)
  WORKLOADS     those of these names ("A small iris")
  PYTHON        a Python with PyTorch, tried besides python3 and /usr/bin/python3

A program's settings are tried first, and the fastest one of each row counts. Time: about 4 minutes.
END
}

case "${1:-}" in
-h | --help)
    usage
    exit 0
    ;;
-*)
    usage >&2
    exit 2
    ;;
esac

build=${1:-$here/../build/release}
rounds=${ROUNDS:-5}
seconds=${SECONDS_EACH:-0.5}
processors=$(nproc)
[ "$processors" -gt 8 ] && processors=8
threads=${THREADS:-$([ "$processors" -gt 1 ] && echo "1 $processors" || echo 1)}
for program in step peak; do
    if [ ! -x "$build/bench/$program" ]; then
        echo "bench: $build has no bench/$program; cmake --build $build --target bench-programs makes it" >&2
        exit 1
    fi
done

# --- workloads: one line each ---
workloads=()
declare -A batch_of optimiser_of megaflops_of notation_of model_of sizes_of with_fann

# A network that is not of dense layers: what ours and bench_torch.py's MODELS call it, and the work of a step.
workload() # name optimiser batch megaflops model notation
{
    local id=$1-$2
    [ -n "${WORKLOADS:-}" ] && [[ " $WORKLOADS " != *" $1 "* ]] && return
    workloads+=("$id")
    optimiser_of[$id]=$2 batch_of[$id]=$3 megaflops_of[$id]=$4 model_of[$id]=$5 notation_of[$id]=$6
}

# Dense layers with relu. Work: two operations for each weight and record, forward and for the gradients of weights,
# and but for the first layer for those of inputs. FANN is for small networks with plain gradient descent.
mlp() # name optimiser batch sizes [fann]
{
    local work notation
    work=$(awk -v sizes="$4" -v batch="$3" 'BEGIN {
        count = split(sizes, size, ",")
        for (i = 1; i < count; i++)
            work += 2 * batch * size[i] * size[i + 1] * (i == 1 ? 2 : 3)
        printf "%.6f", work / 1e6 }')
    notation=$(awk -v sizes="$4" 'BEGIN {
        count = split(sizes, size, ",")
        printf "input(%d)", size[1]
        for (i = 2; i <= count; i++)
            printf " + dense(%d%s)", size[i], i < count ? ", relu" : ""
        print " + softmax_cross_entropy" }')
    workload "$1" "$2" "$3" "$work" dense "$notation"
    sizes_of[$1-$2]=$4 with_fann[$1-$2]=${5:-}
}

mlp A sgd 100 784,1024,1024,10
mlp A adam 100 784,1024,1024,10
mlp small sgd 100 784,128,64,10 fann
mlp iris sgd 10 4,12,10,3 fann

if [ ${#workloads[@]} -eq 0 ]; then
    echo "bench: no workload is called '$WORKLOADS'" >&2
    exit 2
fi

# --- programs ---
# shellcheck source=bench/peers/torch.sh
. "$here/peers/torch.sh"
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
declare -A title size_of best_of
advice=()

stripped=$scratch/libsigma.so
strip -o "$stripped" "$(readlink -f "$build/libsigma.so")" 2>/dev/null ||
    cp "$build/libsigma.so" "$stripped" 2>/dev/null
programs=(sigma)
title[sigma]="sigma"
[ -e "$stripped" ] && size_of[sigma]=$(stat -c %s "$stripped" | awk '{ printf "%.1f", $1 / 1e6 }')
for index in "${!torch_versions[@]}"; do
    programs+=("torch$index")
    title[torch$index]="PyTorch ${torch_versions[$index]}"
    size_of[torch$index]=${torch_megabytes[$index]}
done
[ ${#torch_versions[@]} -eq 0 ] && advice+=("PyTorch is not here to compare with: $torch_install")
if [ ${#torch_versions[@]} -gt 0 ] && [ -z "$torch_libraries" ]; then
    advice+=("PyTorch's OpenBLAS may use threads of another kind than PyTorch: apt-get install libopenblas0-openmp")
fi
fann=$scratch/fann
if printf '#include <floatfann.h>\n' | cc -E - >/dev/null 2>&1 &&
    cc -O3 -march=native -o "$fann" "$here/peers/fann.c" -lfloatfann -lm; then
    programs+=(fann)
    title[fann]="FANN $(pkg-config --modversion fann 2>/dev/null)"
    library=$(ldd "$fann" | awk '/fann/ { print $3 }')
    size_of[fann]=$(stat -L -c %s "$library" | awk '{ printf "%.1f", $1 / 1e6 }')
else
    advice+=("FANN is not here to compare with: apt-get install libfann-dev")
fi
advice+=("KANN is no package, so not measured: on a Xeon of 157 GFLOP/s it was seen at 12331 us (A, sgd, with OpenBLAS),"
    "  568 us (small) and 2.5 us (iris) with one thread.")

takes_part() # program workload
{
    [ "$1" != fann ] || [ -n "${with_fann[$2]:-}" ]
}

# What to try for a program: its settings, one a line, the number of threads first.
settings_of() # program workload threads
{
    case $1 in
    sigma) echo "$3" ;;
    fann) printf '1 %s\n' batch incremental ;;
    torch*)
        local way kernels ways="plain foreach"
        [ "${torch_compiles[${1#torch}]}" = 1 ] && ways+=" compile"
        for kernels in $torch_kernels; do
            for way in $ways; do
                echo "$3 $way $kernels"
            done
        done
        # Small networks may lose by more threads.
        [ "$3" != 1 ] && [ -n "${best_of[$1-$2-1]:-}" ] && echo "${best_of[$1-$2-1]}"
        ;;
    esac
}

setting_text() # program setting
{
    local count way kernels
    read -r count way kernels <<<"$2"
    case $1 in
    sigma) echo "" ;;
    fann) echo "$way, 1 thread, -O3 -march=native" ;;
    torch*)
        [ "$kernels" = wide ] && kernels="OPENBLAS_CORETYPE=SkylakeX ATEN_CPU_CAPABILITY=avx512"
        [ "$kernels" = auto ] && kernels="kernels its own choice"
        echo "$way, OMP_NUM_THREADS=$count, $kernels"
        ;;
    esac
}

# Prints four numbers: microseconds of a step (median, 10th and 90th percentile), peak memory in MB.
measure() # program workload setting seconds
{
    local id=$2 count way kernels arguments
    read -r count way kernels <<<"$3"
    case $1 in
    sigma)
        local type=${optimiser_of[$id]}
        [ "$type" = sgd ] && type=gradient_descent
        env -u OPENBLAS_CORETYPE "$build/bench/step" -n "${notation_of[$id]}" -b "${batch_of[$id]}" -o "$type" \
            -t "$count" -s "$4"
        ;;
    fann) "$fann" "${sizes_of[$id]}" "${batch_of[$id]}" "$4" "$way" ;;
    torch*)
        arguments=(--model "${model_of[$id]}" --batch "${batch_of[$id]}" --optimiser "${optimiser_of[$id]}"
            --threads "$count" --seconds "$4")
        [ -n "${sizes_of[$id]:-}" ] && arguments+=(--sizes "${sizes_of[$id]}")
        [ "$way" != plain ] && arguments+=("--$way")
        torch_run "${1#torch}" "$kernels" "$here/bench_torch.py" "${arguments[@]}"
        ;;
    esac
}

# The fastest setting of a program. One that fails is left out; 1 if none works.
choose_setting() # program workload threads
{
    local setting result least=
    while read -r setting; do
        result=$(measure "$1" "$2" "$setting" 0.3 2>"$scratch/errors" </dev/null) || continue
        result=${result%% *}
        if [ -z "$least" ] || awk -v a="$result" -v b="$least" 'BEGIN { exit !(a < b) }'; then
            least=$result
            best_of[$1-$2-$3]=$setting
        fi
    done < <(settings_of "$1" "$2" "$3")
    [ -n "$least" ]
}

# --- the machine ---
read -r load _ </proc/loadavg
processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
system=$(. /etc/os-release 2>/dev/null && echo "${PRETTY_NAME:-}")
revision=$(git -C "$here" describe --always --dirty 2>/dev/null || echo unknown)
date=$(date -Is)
echo "Training steps, float32: $processor, $(nproc) processors, $(awk '/^MemTotal/ { printf "%.0f GB", $2 / 1e6 }' \
    /proc/meminfo), $system, $(uname -r), $(cc --version | head -n 1)."
echo "sigma $revision; $date; load average at the start $load."
noisy=0
if awk -v load="$load" 'BEGIN { exit !(load > 0.5) }'; then
    noisy=1
    echo "WARNING: other programs are running (load $load): these figures are good for nothing but a test of the benchmark."
fi
if [ -n "${OPENBLAS_CORETYPE:-}" ]; then
    echo "OPENBLAS_CORETYPE=$OPENBLAS_CORETYPE in the environment is set aside."
fi
for program in "${programs[@]}"; do
    echo "Library of ${title[$program]}: ${size_of[$program]:-?} MB (its own files, stripped, without what they need)."
done

# --- measuring ---
[ -t 2 ] && echo "trying settings ..." >&2
for id in "${workloads[@]}"; do
    for count in $threads; do
        for program in "${programs[@]}"; do
            takes_part "$program" "$id" || continue
            choose_setting "$program" "$id" "$count" && continue
            echo "bench: ${title[$program]} does not run $id with $count threads" >&2
            tail -n 3 "$scratch/errors" >&2
            [ "$program" = sigma ] && exit 1
        done
    done
done
for ((round = 1; round <= rounds; round++)); do
    [ -t 2 ] && echo "round $round of $rounds ..." >&2
    for count in $threads; do
        "$build/bench/peak" -t "$count" >>"$scratch/peak-$count" || exit 1
    done
    for id in "${workloads[@]}"; do
        for count in $threads; do
            for program in "${programs[@]}"; do
                setting=${best_of[$program-$id-$count]:-}
                [ -z "$setting" ] && continue
                measure "$program" "$id" "$setting" "$seconds" >>"$scratch/$program-$id-$count" || exit 1
            done
        done
    done
done

# --- the table ---
# Of a file's columns: the median, the least and the most of the first, the largest of the fourth.
summary()
{
    sort -g "$1" | awk '{ value[NR] = $1; if ($4 > memory) memory = $4 }
        END { middle = NR % 2 ? value[(NR + 1) / 2] : (value[NR / 2] + value[NR / 2 + 1]) / 2
              printf "%.2f %.2f %.2f %.1f", middle, value[1], value[NR], memory }'
}

quotient() # a b format
{
    awk -v a="$1" -v b="$2" -v format="$3" 'BEGIN { printf format, a / b }'
}

mkdir -p "$here/results"
results=$here/results/$(hostname)-$(date +%Y%m%d-%H%M%S)
record() # workload threads program middle least most memory ratio peak share setting
{
    printf '{"workload": "%s", "optimiser": "%s", "threads": %d, ' "${1%-*}" "${optimiser_of[$1]}" "$2"
    printf '"program": "%s", "setting": "%s", ' "${title[$3]}" "${11}"
    printf '"step_us": %s, "least_us": %s, "most_us": %s, "peak_mb": %s, ' "$4" "$5" "$6" "$7"
    printf '"ratio": %s, "mflop": %s, "peak_gflops": %s, "share_of_peak": %s, ' "$8" "${megaflops_of[$1]}" "$9" "${10}"
    printf '"library_mb": %s, "rounds": %d, "seconds": %s, ' "${size_of[$3]:-null}" "$rounds" "$seconds"
    printf '"load": %s, "revision": "%s", "processor": "%s", "date": "%s"}\n' "$load" "$revision" "$processor" "$date"
}

echo
echo "Microseconds a step: median of $rounds rounds (least to most), each a median over $seconds s. ratio: the program's time / ours."
echo "of peak: operations of the products / time / most float32 multiply-adds measured here. MB: peak of the process."
printf '%-8s %-5s %-3s %-17s %-36s %6s %7s %6s %6s  %s\n' network with thr program "microseconds" ratio "of peak" MB \
    ratio setting
for id in "${workloads[@]}"; do
    for count in $threads; do
        peak=$(sort -g "$scratch/peak-$count" | tail -n 1)
        for program in "${programs[@]}"; do
            [ -s "$scratch/$program-$id-$count" ] || continue
            read -r middle least most memory <<<"$(summary "$scratch/$program-$id-$count")"
            label=("" "" "")
            if [ "$program" = sigma ]; then
                ours=$middle our_memory=$memory
                label=("${id%-*}" "${optimiser_of[$id]}" "$count")
            fi
            ratio=$(quotient "$middle" "$ours" %.2f)
            share=$(awk -v work="${megaflops_of[$id]}" -v time="$middle" -v peak="$peak" \
                'BEGIN { printf "%.4f", work / time * 1000 / peak }')
            setting=$(setting_text "$program" "${best_of[$program-$id-$count]}")
            record "$id" "$count" "$program" "$middle" "$least" "$most" "$memory" "$ratio" "$peak" "$share" "$setting" \
                >>"$results.jsonl"
            printf '%-8s %-5s %-3s %-17s %-36s %6s %6s%% %6s %6s  %s\n' "${label[@]}" "${title[$program]}" \
                "$middle ($least to $most)" "$ratio" "$(quotient "$share" 0.01 %.1f)" "$memory" \
                "$(quotient "$memory" "$our_memory" %.1f)" "$setting"
        done
    done
done
for count in $threads; do
    echo "Peak of $count thread$([ "$count" = 1 ] || echo s): $(sort -g "$scratch/peak-$count" | tail -n 1) GFLOP/s."
done
awk -f "$here/plot.awk" "$results.jsonl" >"$results.svg"
[ ${#advice[@]} -gt 0 ] && printf '%s\n' "${advice[@]}"
[ $noisy = 1 ] && echo "WARNING: the load average was $load at the start; measure on a quiet machine."
echo "Written to $results.jsonl and .svg"
