# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # what is set here is used where it is sourced, and $scratch is its folder
# Sourced by the benchmarks: finds each Python that has PyTorch, and what gives PyTorch its best on this machine.
# torch_pythons, torch_versions, torch_megabytes (its own libraries), torch_words (what it can do, see bench_torch.py),
# torch_kernels ("auto": libraries choose; "wide": they are told): one of each for each PyTorch.

torch_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
torch_install="python3 -m venv torch && torch/bin/pip install torch, then PYTHON=torch/bin/python (or Debian's older one:
  apt-get install python3-torch libopenblas0-openmp)"

# Debian's PyTorch brings its own threads (OpenMP); with an OpenBLAS that has others they fight for the processors.
torch_libraries=
for folder in /usr/lib/*/openblas-openmp /usr/lib64/openblas-openmp; do
    if [ -d "$folder" ]; then
        torch_libraries=$folder
        break
    fi
done

# A core type that the environment forces on OpenBLAS may be another machine's.
torch_environment() # index
{
    local words=(-u OPENBLAS_CORETYPE -u ATEN_CPU_CAPABILITY -u OMP_NUM_THREADS -u OPENBLAS_NUM_THREADS -u MKL_NUM_THREADS)
    if [ -n "$torch_libraries" ] && [[ " ${torch_words[$1]:-} " != *" mkl "* ]]; then
        words+=("LD_LIBRARY_PATH=$torch_libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")
    fi
    if [ "${torch_kernels[$1]:-auto}" = wide ]; then
        words+=(ATEN_CPU_CAPABILITY=avx512 OPENBLAS_CORETYPE=SkylakeX)
    fi
    printf '%s\n' "${words[@]}"
}

torch_run() # index program arguments ... (for at most $limit s)
{
    local python=${torch_pythons[$1]} words
    mapfile -t words < <(torch_environment "$1")
    shift
    env "${words[@]}" timeout "${limit:-300}" "$python" "$@"
}

# --- processes that measure when asked, as importing takes seconds and compiling more ---
declare -A torch_process torch_ask torch_answer

torch_open() # key index arguments of bench_torch.py ...; errors go to $scratch/KEY.errors
{
    local key=$1 index=$2 words ask answer
    shift 2
    mapfile -t words < <(torch_environment "$index")
    rm -f "$scratch/$key.ask" "$scratch/$key.answer"
    mkfifo "$scratch/$key.ask" "$scratch/$key.answer" || return
    env "${words[@]}" timeout 900 "${torch_pythons[$index]}" "$torch_folder/bench_torch.py" --serve "$@" \
        <"$scratch/$key.ask" >"$scratch/$key.answer" 2>"$scratch/$key.errors" &
    torch_process[$key]=$!
    exec {ask}>"$scratch/$key.ask" {answer}<"$scratch/$key.answer"
    torch_ask[$key]=$ask torch_answer[$key]=$answer
}

# Says a line to the process, and prints what it answers; 1 if it ended. The first line starts it, the others are seconds.
torch_say() # key line
{
    local line
    { echo "$2" >&"${torch_ask[$1]}"; } 2>/dev/null
    read -r -t 300 -u "${torch_answer[$1]}" line && echo "$line"
}

torch_close() # key
{
    [ -n "${torch_process[$1]:-}" ] || return
    kill "${torch_process[$1]}" 2>/dev/null
    wait "${torch_process[$1]}" 2>/dev/null
    local ask=${torch_ask[$1]} answer=${torch_answer[$1]}
    exec {ask}>&- {answer}<&-
    unset "torch_process[$1]" "torch_ask[$1]" "torch_answer[$1]"
}

torch_close_all()
{
    local key
    for key in "${!torch_process[@]}"; do
        torch_close "$key"
    done
}

# The ways that are worth a trial, for a version and a network.
torch_ways() # index model precision megaflops
{
    local way word wanted
    if [ -n "${WAYS:-}" ]; then
        wanted=$WAYS
    elif [[ " ${torch_words[$1]} " != *" fused "* ]]; then
        wanted="plain foreach"
    else
        case $2-$3 in
        lenet-*) wanted="fused fused+last" ;;
        resnet-* | depthwise-*) wanted="fused+last compile+fused+last" ;;
        gpt-* | long-* | gpt2-*) wanted="fused+attention compile+fused" ;;
        *) wanted="fused compile+fused" ;;
        esac
        # What little such a network computes is lost in calls, of which compiling adds some.
        awk -v work="$4" 'BEGIN { exit work >= 1 }' && wanted=fused
    fi
    for way in $wanted; do
        for word in ${way//+/ }; do
            [[ " ${torch_words[$1]} " == *" $word "* ]] || continue 2
        done
        echo "$way"
    done
}

torch_pythons=() torch_versions=() torch_megabytes=() torch_words=() torch_kernels=()
# Words of PYTHON are one Python each.
for candidate in ${PYTHON:-} python3 /usr/bin/python3; do
    command -v "$candidate" >/dev/null || continue
    torch_pythons+=("$candidate")
    last=$((${#torch_pythons[@]} - 1))
    if read -r version megabytes words < <(torch_run "$last" "$torch_folder/bench_torch.py" --version 2>/dev/null) &&
        [[ " ${torch_versions[*]} " != *" $version "* ]]; then
        torch_versions+=("$version")
        torch_megabytes+=("$megabytes")
        torch_words+=("$words")
        torch_kernels+=(auto)
    else
        unset "torch_pythons[$last]"
        torch_pythons=("${torch_pythons[@]}")
    fi
done

# PyTorch 1.13 uses AVX-512 only when told to, and OpenBLAS 0.3.21 takes the kernels of a Pentium 4 on processors that it
# does not know. A build with MKL needs no help.
for index in "${!torch_versions[@]}"; do
    if [[ " ${torch_words[$index]} " == *" mkl "* ]] || ! grep -q avx512f /proc/cpuinfo; then
        continue
    fi
    fastest=
    for kernels in auto wide; do
        torch_kernels[index]=$kernels
        read -r time _ < <(torch_run "$index" "$torch_folder/bench_torch.py" --sizes 784,1024,1024,10 --batch 100 \
            --way foreach --seconds 0.3 2>/dev/null) || continue
        if [ -z "$fastest" ] || awk -v a="$time" -v b="${fastest% *}" 'BEGIN { exit !(a < b) }'; then
            fastest="$time $kernels"
        fi
    done
    torch_kernels[index]=${fastest##* }
done
