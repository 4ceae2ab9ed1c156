# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is used where it is sourced
# Sourced by the benchmarks: finds each Python that has PyTorch, and what gives PyTorch its best on this machine.
# torch_pythons, torch_versions, torch_megabytes (its own libraries), torch_compiles (0, 1): one of each for each PyTorch.
# torch_kernels: "auto" (each library chooses), and "wide" where there is AVX-512. torch_run INDEX KERNELS PROGRAM ... (for at most $limit s)

torch_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
torch_install="apt-get install python3-torch libopenblas0-openmp"

# PyTorch brings its own threads (OpenMP); with an OpenBLAS that has others they fight for the processors.
torch_libraries=
for folder in /usr/lib/*/openblas-openmp /usr/lib64/openblas-openmp; do
    if [ -d "$folder" ]; then
        torch_libraries=$folder
        break
    fi
done

# PyTorch 1.13 uses AVX-512 only when told to, and OpenBLAS 0.3.21 takes the kernels of a Pentium 4 on processors
# that it does not know.
torch_kernels="auto"
if grep -q avx512f /proc/cpuinfo; then
    torch_kernels="auto wide"
fi

# A core type that the environment forces on OpenBLAS may be another machine's.
torch_environment() # kernels
{
    local words=(-u OPENBLAS_CORETYPE -u ATEN_CPU_CAPABILITY -u OMP_NUM_THREADS -u OPENBLAS_NUM_THREADS)
    if [ -n "$torch_libraries" ]; then
        words+=("LD_LIBRARY_PATH=$torch_libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")
    fi
    if [ "$1" = wide ]; then
        words+=(ATEN_CPU_CAPABILITY=avx512 OPENBLAS_CORETYPE=SkylakeX)
    fi
    printf '%s\n' "${words[@]}"
}

torch_run() # index kernels program arguments
{
    local python=${torch_pythons[$1]} words
    mapfile -t words < <(torch_environment "$2")
    shift 2
    env "${words[@]}" timeout "${limit:-300}" "$python" "$@"
}

torch_pythons=() torch_versions=() torch_megabytes=() torch_compiles=()
for candidate in "${PYTHON:-}" python3 /usr/bin/python3; do
    command -v "$candidate" >/dev/null || continue
    torch_pythons+=("$candidate")
    last=$((${#torch_pythons[@]} - 1))
    if read -r version megabytes compiles < <(torch_run "$last" auto "$torch_folder/bench_torch.py" --version 2>/dev/null) &&
        [[ " ${torch_versions[*]} " != *" $version "* ]]; then
        torch_versions+=("$version")
        torch_megabytes+=("$megabytes")
        torch_compiles+=("$compiles")
    else
        unset "torch_pythons[$last]"
    fi
done
