#!/bin/bash
# Tests of the handler 'cuda' on a real GPU: tests/cuda.sh [BUILD_DIR]; `make test-cuda` builds what it needs. `tests/cuda.sh --list`
# names the test programs.
#
# Runs the tests of devices with NVIDIA's own libraries, looks whether memory of the device stays flat, and, where it is
# installed, lets compute-sanitizer watch (SANITIZER= to leave that out). STAND_IN=1 tries this script itself without a GPU, on the
# stand-in for CUDA.
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
failures=()
if [ -n "${STAND_IN:-}" ]; then
    export SIGMA_CUDA_LIBRARIES=$build/tests/fake_cuda
else
    export SIGMA_TEST_CUDA=1
fi
sanitizer=${SANITIZER-$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)}

echo "=== the device"
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv 2>/dev/null
"$build/sigma" info | sed -n '/^  cuda/,/^  [a-z]/p' | sed '$d'
if "$build/sigma" info | sed -n '/^  cuda/,/^  [a-z]/p' | grep -q 'not usable'; then
    echo "cuda: there is no device to test on"
    exit 77
fi

echo "=== tests"
# All kernels are compiled anew.
SIGMA_CACHE_DIR=$(mktemp -d)
export SIGMA_CACHE_DIR
trap 'rm -rf "$SIGMA_CACHE_DIR"' EXIT
SIGMA_TEST_JOBS=${SIGMA_TEST_JOBS:-4} "$source_dir/tests/run.sh" "$build" "$pattern" || failures+=(tests)

# Memory that the device has lent, in MiB.
lent()
{
    nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits 2>/dev/null | head -n 1
}

echo "=== memory over many steps"
seconds=12
[ -n "${STAND_IN:-}" ] && seconds=4
"$build/bench/step" -n "input(64) + dense(256, relu) + dense(10) + softmax_cross_entropy" -b 32 -o adam -h cuda -s "$seconds" -m \
    >"$SIGMA_CACHE_DIR/step" &
program=$!
sleep 3
before=$(lent)
sleep $((seconds - 3))
after=$(lent)
wait "$program" || failures+=("many steps")
echo "a step takes $(cut -d ' ' -f 1 "$SIGMA_CACHE_DIR/step") us, so about $(awk -v seconds="$seconds" '{
    printf "%.0f", seconds * 1e6 / $1 }' "$SIGMA_CACHE_DIR/step") steps; MiB of the device in use: ${before:-?} after 3 s, ${after:-?} in the end"
if [ -n "$before" ] && [ "$after" -gt $((before + 8)) ]; then
    failures+=(memory)
fi

if [ -x "$sanitizer" ]; then
    echo "=== compute-sanitizer"
    watch() # tool program [test]
    {
        local tool=$1
        shift
        echo "--- $tool: ${*#"$build/"}"
        timeout "${SANITIZER_SECONDS:-150}" "$sanitizer" --tool "$tool" --error-exitcode 9 --print-limit 10 "$@" 2>&1 | grep -avE '^$' | tail -n 25
        local code=${PIPESTATUS[0]}
        if [ "$code" != 0 ]; then
            failures+=("$tool of ${1##*/} ${2:-} (exit code $code)")
        fi
    }
    watch memcheck "$build/tests/handlers/test_cuda_driver"
    watch memcheck "$build/tests/ops/test_ops_devices" cuda_in_float32
    watch memcheck "$build/tests/training/test_devices" cuda_dense
    watch memcheck "$build/tests/training/test_devices" cuda_convolution
    watch racecheck "$build/tests/ops/test_ops_devices" cuda_in_float32
    watch synccheck "$build/tests/ops/test_ops_devices" cuda_in_float32
    watch initcheck "$build/tests/training/test_devices" cuda_dense
else
    echo "compute-sanitizer is not here"
fi

if [ ${#failures[@]} -gt 0 ]; then
    echo "FAILED:"
    printf '  %s\n' "${failures[@]}"
    exit 1
fi
echo "cuda: all passed"
