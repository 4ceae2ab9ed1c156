#!/bin/bash
# Training steps, ours and other programs' in turns; see usage() below and docs/performance.md.
set -u

here=$(cd "$(dirname "$0")" && pwd)

usage()
{
    cat <<'END'
usage: bench/bench.sh [BUILD]

Measures training steps of several networks in turns with the programs that are installed here, prints a table, and
writes bench/results/HOST-DATE.jsonl and .svg; bench/table.sh makes Markdown of the former. BUILD is where
`bench-programs` were built (build/release).

Environment:
  WORKLOADS     of these names alone ("A small iris lenet lstm gpt dense4096 resnet depthwise gru audio long gpt2")
  PRECISIONS    of these alone ("float32 bfloat16")
  THREADS       numbers of threads ("1 N", N the processors, at most 8)
  PEERS         programs beside ours ("torch fann")
  PYTHON        a Python with PyTorch, or several, tried besides python3 and /usr/bin/python3
  WAYS          ways of PyTorch to try, the fastest counts (chosen for each network; bench/bench_torch.py --help lists them)
  ROUNDS        measurements of each program, in turns (5); the table has their medians
  SECONDS_EACH  seconds for each (0.3)

Time: about an hour with a version of PyTorch, which compiles each network; a quarter of that for WORKLOADS="A small iris
lenet lstm gpt". To get PyTorch, the newest:
  python3 -m venv torch && torch/bin/pip install torch && PYTHON=torch/bin/python make bench
END
}

# shellcheck source=bench/arguments.sh
. "$here/arguments.sh"

build=${1:-$here/../build/release}
rounds=${ROUNDS:-5}
seconds=${SECONDS_EACH:-0.3}
trial=0.3
peers=${PEERS:-torch fann}
processors=$(nproc)
[ "$processors" -gt 8 ] && processors=8
threads=${THREADS:-$([ "$processors" -gt 1 ] && echo "1 $processors" || echo 1)}
for program in step peak; do
    if [ ! -x "$build/bench/$program" ]; then
        echo "bench: $build has no bench/$program; cmake --build $build --target bench-programs makes it" >&2
        exit 1
    fi
done
# shellcheck source=bench/workloads.sh
. "$here/workloads.sh"
# shellcheck source=bench/workloads_large.sh
. "$here/workloads_large.sh"
if [ ${#rows[@]} -eq 0 ]; then
    echo "bench: no workload is called '${WORKLOADS:-}' with precision '${PRECISIONS:-any}'" >&2
    exit 2
fi
torch_close_all() { :; }
scratch=$(mktemp -d) || exit 1
trap 'torch_close_all; rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

# --- programs ---
declare -A title size_of best_of
advice=()
torch_versions=()
if [[ " $peers " == *" torch "* ]]; then
    # shellcheck source=bench/peers/torch.sh
    . "$here/peers/torch.sh"
    [ ${#torch_versions[@]} -eq 0 ] && advice+=("PyTorch is not here to compare with: $torch_install")
fi
stripped=$scratch/libsigma.so
strip -o "$stripped" "$(readlink -f "$build/libsigma.so")" 2>/dev/null ||
    cp "$build/libsigma.so" "$stripped" 2>/dev/null
programs=(sigma)
title[sigma]="Sigma"
[ -e "$stripped" ] && size_of[sigma]=$(stat -c %s "$stripped" | awk '{ printf "%.1f", $1 / 1e6 }')
for index in "${!torch_versions[@]}"; do
    programs+=("torch$index")
    title[torch$index]="PyTorch ${torch_versions[$index]}"
    size_of[torch$index]=${torch_megabytes[$index]}
    if [ -z "$torch_libraries" ] && [[ " ${torch_words[$index]} " != *" mkl "* ]]; then
        advice+=("The OpenBLAS of PyTorch ${torch_versions[$index]} may use threads of another kind: apt-get install libopenblas0-openmp")
    fi
done
fann=$scratch/fann
if [[ " $peers " == *" fann "* ]]; then
    if printf '#include <floatfann.h>\n' | cc -E - >/dev/null 2>&1 &&
        cc -O3 -march=native -o "$fann" "$here/peers/fann.c" -lfloatfann -lm; then
        programs+=(fann)
        title[fann]="FANN $(pkg-config --modversion fann 2>/dev/null)"
        library=$(ldd "$fann" | awk '/fann/ { print $3 }')
        size_of[fann]=$(stat -L -c %s "$library" | awk '{ printf "%.1f", $1 / 1e6 }')
    else
        advice+=("FANN is not here to compare with: apt-get install libfann-dev")
    fi
fi
advice+=("KANN is no package, so not measured: on a Xeon of 157 GFLOP/s it was seen at 12331 us (A, sgd, with OpenBLAS),"
    "  568 us (small) and 2.5 us (iris) with one thread.")

takes_part() # program row
{
    case $1 in
    fann) [ -n "${with_fann[$2]:-}" ] ;;
    # Before version 2 bfloat16 was no gain in any of them.
    torch*) [ "${precision_of[$2]}" = float32 ] || [[ " ${torch_words[${1#torch}]} " == *" fused "* ]] ;;
    esac
}

# What to try for a program: its settings, one a line, the number of threads first.
settings_of() # program row threads
{
    local way
    case $1 in
    fann) printf '1 %s\n' batch incremental ;;
    torch*)
        while read -r way; do
            echo "$3 $way"
        done < <(torch_ways "${1#torch}" "${model_of[$2]}" "${precision_of[$2]}" "${megaflops_of[$2]}")
        # Small networks may lose by more threads.
        if [ "$3" != 1 ] && [ -n "${best_of[$1-$2-1]:-}" ] && awk -v work="${megaflops_of[$2]}" 'BEGIN { exit work > 200 }'; then
            echo "${best_of[$1-$2-1]}"
        fi
        ;;
    esac
}

setting_text() # program row setting
{
    local count way kernels=
    read -r count way <<<"$3"
    count=$(count_of_threads "$count")
    case $1 in
    sigma) echo "$count" ;;
    fann) echo "1 thread, $way, -O3 -march=native" ;;
    torch*)
        [ "${torch_kernels[${1#torch}]}" = wide ] && kernels=", OPENBLAS_CORETYPE=SkylakeX ATEN_CPU_CAPABILITY=avx512"
        echo "$count, ${way//+/ + }$kernels"
        ;;
    esac
}

measure_ours() # row threads seconds
{
    local type=${optimiser_of[$1]}
    [ "$type" = sgd ] && type=gradient_descent
    # shellcheck disable=SC2086 # several arguments
    env -u OPENBLAS_CORETYPE "$build/bench/step" -n "${notation_of[$1]}" -b "${batch_of[$1]}" -o "$type" -t "$2" \
        -p "${precision_of[$1]}" ${extra_of[$1]} -s "$3"
}

# Prints four numbers: microseconds of a step (median, 10th and 90th percentile), peak memory in MB. Key: torch's process.
measure() # program row setting key seconds
{
    local way
    read -r _ way <<<"$3"
    case $1 in
    fann) "$fann" "${sizes_of[$2]}" "${batch_of[$2]}" "$5" "$way" ;;
    torch*) torch_say "$4" "$5" ;;
    esac
}

count_of_threads() # number
{
    [ "$1" = 1 ] && echo "1 thread" || echo "$1 threads"
}

less() # a b
{
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'
}

# Starts what has to run to be measured: all settings at once, then the first steps of one after the other, as their threads
# would wait for each other.
open_all() # row threads
{
    local program count way number arguments
    for program in "${programs[@]:1}"; do
        takes_part "$program" "$1" || continue
        number=0
        while read -r count way; do
            if [[ $program == torch* ]]; then
                arguments=(--model "${model_of[$1]}" --batch "${batch_of[$1]}" --optimiser "${optimiser_of[$1]}"
                    --threads "$count" --precision "${precision_of[$1]}" --way "$way")
                [ -n "${sizes_of[$1]:-}" ] && arguments+=(--sizes "${sizes_of[$1]}")
                torch_open "$program-$number" "${program#torch}" "${arguments[@]}"
            fi
            number=$((number + 1))
        done < <(settings_of "$program" "$1" "$2")
    done
    for key in "${!torch_process[@]}"; do
        torch_say "$key" start >/dev/null
    done
}

# The fastest setting of a program goes to best_of, and its process's key to key_of; the others end. 1 if none works.
declare -A key_of
choose_setting() # program row threads
{
    local setting result minimum='' number=0 key
    unset "key_of[$1]"
    while read -r setting; do
        key=$1-$number
        number=$((number + 1))
        result=$(measure "$1" "$2" "$setting" "$key" "$trial" </dev/null)
        result=${result%% *}
        if [ -z "$result" ]; then
            echo "bench: ${title[$1]} fails with '$setting' in $2" >&2
            [ -e "$scratch/$key.errors" ] && tail -n 3 "$scratch/$key.errors" >&2
            torch_close "$key"
        elif [ -z "$minimum" ] || less "$result" "$minimum"; then
            [ -n "$minimum" ] && torch_close "${key_of[$1]}"
            minimum=$result key_of[$1]=$key best_of[$1-$2-$3]=$setting
        else
            torch_close "$key"
        fi
    done < <(settings_of "$1" "$2" "$3")
    [ -n "$minimum" ]
}

# --- the machine ---
read -r load _ </proc/loadavg
processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
family=$(awk -F': *' '/^cpu family/ { family = $2 } /^model\t/ { model = $2 } family && model { print family "/" model; exit }' \
    /proc/cpuinfo)
system=$(. /etc/os-release 2>/dev/null && echo "${PRETTY_NAME:-}")
revision=$(git -C "$here" describe --always --dirty 2>/dev/null || echo unknown)
date=$(date -Is)
echo "Training steps: $processor (family/model $family), $(nproc) processors, $(awk '/^MemTotal/ {
    printf "%.0f GB", $2 / 1e6 }' /proc/meminfo), $system, $(uname -r), $(cc --version | head -n 1)."
echo "sigma $revision; $date; load average at the start $load."
noisy=0
if less 0.5 "$load"; then
    noisy=1
    echo "WARNING: other programs are running (load $load): these figures are good for nothing but a test of the benchmark."
fi
for variable in OPENBLAS_CORETYPE ATEN_CPU_CAPABILITY OMP_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS; do
    [ -n "${!variable:-}" ] && echo "$variable=${!variable} in the environment is set aside."
done
for program in "${programs[@]}"; do
    echo "Library of ${title[$program]}: ${size_of[$program]:-?} MB (its own files, stripped, without what they need)."
done

declare -A bandwidth
measure_memory() # threads
{
    local name value values
    read -r -a values < <("$build/bench/peak" -b -t "$1")
    for name in memory-read memory-update cache-read cache-update; do
        value=${values[0]} values=("${values[@]:1}")
        less "${bandwidth[$1-$name]:-0}" "$value" && bandwidth[$1-$name]=$value
    done
}

# --- what is written ---
# Of a file's columns: the median, the minimum and the maximum of the first, the largest of the fourth.
summary()
{
    sort -g "$1" | awk '{ value[NR] = $1; if ($4 > memory) memory = $4 }
        END { middle = NR % 2 ? value[(NR + 1) / 2] : (value[NR / 2] + value[NR / 2 + 1]) / 2
              printf "%.2f %.2f %.2f %.1f", middle, value[1], value[NR], memory }'
}

mkdir -p "$here/results"
results=$here/results/$(hostname)-$(date +%Y%m%d-%H%M%S)
record() # row threads program; middle, minimum, maximum, memory, ours and our_memory are set
{
    local peak
    peak=$(sort -g "$scratch/peak-$2-${precision_of[$1]}" | tail -n 1)
    printf '{"workload": "%s", "optimiser": "%s", "precision": "%s", "threads": %d, ' "${1%%-*}" "${optimiser_of[$1]}" \
        "${precision_of[$1]}" "$2"
    printf '"program": "%s", "setting": "%s", ' "${title[$3]}" \
        "$(setting_text "$3" "$1" "${best_of[$3-$1-$2]:-$2}")"
    printf '"step_us": %s, "minimum_us": %s, "maximum_us": %s, "peak_mb": %s, ' "$middle" "$minimum" "$maximum" "$memory"
    awk -v time="$middle" -v ours="$ours" -v memory="$memory" -v our_memory="$our_memory" -v work="${megaflops_of[$1]}" \
        -v peak="$peak" 'BEGIN { printf "\"ratio\": %.3f, \"memory_ratio\": %.2f, \"share_of_peak\": %.4f, ", time / ours,
            memory / our_memory, work / time * 1000 / peak }'
    printf '"mflop": %s, "minimum_mb_moved": %s, "peak_gflops": %s, ' "${megaflops_of[$1]}" "${megabytes_of[$1]}" "$peak"
    for name in memory-read memory-update cache-read cache-update; do
        printf '"%s_gbs": %s, ' "${name/-/_}" "${bandwidth[$2-$name]}"
    done
    printf '"library_mb": %s, "rounds": %d, "seconds": %s, ' "${size_of[$3]:-null}" "$rounds" "$seconds"
    printf '"load": %s, "revision": "%s", "processor": "%s", "date": "%s"}\n' "$load" "$revision" "$processor" "$date"
}

# At once, so that nothing is lost if a later row fails.
write_row() # row threads
{
    local program middle minimum maximum memory ours our_memory
    for program in "${programs[@]}"; do
        [ -s "$scratch/$program-$1-$2" ] || continue
        read -r middle minimum maximum memory <<<"$(summary "$scratch/$program-$1-$2")"
        [ "$program" = sigma ] && ours=$middle our_memory=$memory
        record "$1" "$2" "$program" >>"$results.jsonl"
    done
}

# --- measuring: one row after the other, its programs in turns ---
# shellcheck disable=SC2086 # several numbers
counts=$(for row in "${rows[@]}"; do printf '%s\n' ${threads_of[$row]:-$threads}; done | sort -nu)
for count in $counts; do
    measure_memory "$count"
done
measured=()
for row in "${rows[@]}"; do
    if ! problem=$(measure_ours "$row" 1 0 2>&1); then
        advice+=("$row is left out: this library cannot train it ($problem)")
        continue
    fi
    measured+=("$row")
    for count in ${threads_of[$row]:-$threads}; do
        [ -t 2 ] && echo "$row, $(count_of_threads "$count") ..." >&2
        open_all "$row" "$count"
        for program in "${programs[@]:1}"; do
            takes_part "$program" "$row" && ! choose_setting "$program" "$row" "$count" &&
                echo "bench: ${title[$program]} does not run $row with $(count_of_threads "$count")" >&2
        done
        "$build/bench/peak" -p "${precision_of[$row]}" -t "$count" >>"$scratch/peak-$count-${precision_of[$row]}" || exit 1
        for ((round = 1; round <= rounds; round++)); do
            measure_ours "$row" "$count" "$seconds" >>"$scratch/sigma-$row-$count" || exit 1
            for program in "${programs[@]:1}"; do
                [ -n "${key_of[$program]:-}" ] || continue
                measure "$program" "$row" "${best_of[$program-$row-$count]}" "${key_of[$program]}" "$seconds" \
                    >>"$scratch/$program-$row-$count" </dev/null || exit 1
            done
        done
        torch_close_all
        key_of=()
        write_row "$row" "$count"
    done
done
for count in $counts; do
    measure_memory "$count"
done

if [ ${#measured[@]} -gt 0 ]; then
    echo
    echo "Microseconds a step: median of $rounds rounds (minimum to maximum), each a median over $seconds s. ratio: the program's time / ours."
    echo "of peak: operations of the products / time / most multiply-adds of the type measured here. MB: peak of the process."
    "$here/table.sh" text "$results.jsonl"
    for count in $counts; do
        for precision in float32 bfloat16; do
            [ -e "$scratch/peak-$count-$precision" ] || continue
            echo "Peak of $(count_of_threads "$count"): $(sort -g "$scratch/peak-$count-$precision" | tail -n 1) GFLOP/s of $precision."
        done
        echo "Memory is read at ${bandwidth[$count-memory-read]} GB/s, updated at ${bandwidth[$count-memory-update]}; the" \
            "third-level cache at ${bandwidth[$count-cache-read]} and ${bandwidth[$count-cache-update]}."
    done
    awk -f "$here/fields.awk" -f "$here/plot.awk" "$results.jsonl" >"$results.svg"
fi
[ ${#advice[@]} -gt 0 ] && printf '%s\n' "${advice[@]}"
[ $noisy = 1 ] && echo "WARNING: the load average was $load at the start; measure on a quiet machine."
[ ${#measured[@]} -gt 0 ] && echo "Written to $results.jsonl and .svg"
exit 0
