#!/bin/bash
# Tests of the handler 'cuda' on a real GPU: tests/cuda.sh [BUILD_DIR]; `make test-cuda` builds what it needs. `tests/cuda.sh --list`
# names the test programs.
#
# Runs the tests of devices with NVIDIA's own libraries, looks whether memory of the device stays flat, and, where it is
# installed, lets compute-sanitizer watch. PARTS chooses among "tests memory sanitizer", for computers that are lent for minutes.
# STAND_IN=1 tries this script itself without a GPU, on the stand-in for CUDA.
set -u
tests=(handlers/test_cuda_{driver,products,compile} handlers/test_device_{cache,indices,kernels,memory,products,sessions}
    handlers/test_{fuzz,handler} ops/test_ops_devices training/test_devices)
if [ "${1:-}" = --list ]; then
    printf '%s\n' "${tests[@]}"
    exit
fi
source_dir=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${1:-$source_dir/build/release}" && pwd) || exit 2
export SIGMA_PLUGIN_PATH=$build/plugins SIGMA_DATA_DIR=${SIGMA_DATA_DIR:-$source_dir/data}
pattern="^($(IFS='|' && echo "${tests[*]}"))\.c\$"
parts=${PARTS-tests memory sanitizer}
failures=() unfinished=()
if [ -n "${STAND_IN:-}" ]; then
    export SIGMA_CUDA_LIBRARIES=$build/tests/fake_cuda
else
    export SIGMA_TEST_CUDA=1
fi
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)

echo "=== the device"
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv 2>/dev/null
"$build/sigma" info | sed -n '/^  cuda/,/^  [a-z]/p' | sed '$d'
if "$build/sigma" info | sed -n '/^  cuda/,/^  [a-z]/p' | grep -q 'not usable'; then
    echo "cuda: there is no device to test on"
    exit 77
fi

has_part() # name
{
    [[ " $parts " == *" $1 "* ]] && echo "=== $1"
}

# All kernels are compiled anew.
SIGMA_CACHE_DIR=$(mktemp -d)
export SIGMA_CACHE_DIR
trap 'rm -rf "$SIGMA_CACHE_DIR"' EXIT
has_part tests && {
    SIGMA_TEST_JOBS=${SIGMA_TEST_JOBS:-4} "$source_dir/tests/run.sh" "$build" "$pattern" || failures+=(tests)
}

# Memory that the device has allocated, in MiB.
allocated()
{
    nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits 2>/dev/null | head -n 1
}

# Twice as long as a cold start may take, so that steps alone lie between the two looks.
check_memory()
{
    local seconds=20 program before after
    [ -n "${STAND_IN:-}" ] && seconds=4
    "$build/bench/step" -n "input(64) + dense(256, relu) + dense(10) + softmax_cross_entropy" -b 32 -o adam -h cuda -s "$seconds" -m \
        >"$SIGMA_CACHE_DIR/step" &
    program=$!
    sleep $((seconds / 2))
    before=$(allocated)
    sleep $((seconds / 2))
    after=$(allocated)
    wait "$program" || failures+=("many steps")
    echo "a step takes $(cut -d ' ' -f 1 "$SIGMA_CACHE_DIR/step") us, so about $(awk -v seconds="$seconds" '{
        printf "%.0f", seconds * 1e6 / $1 }' "$SIGMA_CACHE_DIR/step") steps; MiB of the device in use: ${before:-?} halfway, ${after:-?} in the end"
    if [ -n "$before" ] && [ "$after" -gt $((before + 8)) ]; then
        failures+=(memory)
    fi
}
has_part memory && check_memory

watch() # tool program [test]
{
    local tool=$1 code
    shift
    echo "--- $tool: ${*#"$build/"}"
    timeout "${SANITIZER_SECONDS:-60}" "$sanitizer" --tool "$tool" --error-exitcode 9 --print-limit 10 "$@" 2>&1 | grep -avE '^$' | tail -n 25
    code=${PIPESTATUS[0]}
    if [ "$code" = 124 ]; then
        unfinished+=("$tool of ${1##*/} ${2:-}")
    elif [ "$code" != 0 ]; then
        failures+=("$tool of ${1##*/} ${2:-} (exit code $code)")
    fi
}

# It knows some kinds of virtual machine not at all, which says nothing about us.
can_watch()
{
    local answer
    [ -x "$sanitizer" ] || {
        echo "compute-sanitizer is not here"
        return 1
    }
    answer=$(timeout 60 "$sanitizer" --tool memcheck "$build/sigma" info 2>&1)
    if [[ $answer == *"Device not supported"* ]]; then
        echo "compute-sanitizer cannot watch this device: $(grep -am 1 'Device not supported' <<<"$answer")"
        return 1
    fi
}

if has_part sanitizer && can_watch; then
    watch memcheck "$build/tests/handlers/test_cuda_driver"
    watch memcheck "$build/tests/handlers/test_device_products"
    watch memcheck "$build/tests/ops/test_ops_devices" cuda_in_float32
    watch memcheck "$build/tests/training/test_devices" cuda_dense
    watch memcheck "$build/tests/training/test_devices" cuda_convolution
    watch racecheck "$build/tests/ops/test_ops_devices" cuda_in_float32
    watch synccheck "$build/tests/ops/test_ops_devices" cuda_in_float32
    watch initcheck "$build/tests/training/test_devices" cuda_dense
fi

[ ${#unfinished[@]} -gt 0 ] && printf 'not ended in time (SANITIZER_SECONDS), nothing found until then: %s\n' "${unfinished[@]}"
if [ ${#failures[@]} -gt 0 ]; then
    echo "FAILED:"
    printf '  %s\n' "${failures[@]}"
    exit 1
fi
echo "cuda: all passed"
