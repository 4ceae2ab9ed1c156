#!/bin/bash
# Builds the floors up to the handlers for another processor and runs their tests under emulation.
#
#   tests/cross/run.sh [PATTERN]          PATTERN: an extended regular expression for test files, below tests/
#
# Default: 64-bit ARM (NEON). Debian: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
# CROSS_CC (aarch64-linux-gnu-gcc) and CROSS_RUN (qemu-aarch64) choose another compiler and emulator; the
# floors above need libraries of the other processor, which these packages do not bring. Not part of `make test`.
set -u
cd "$(dirname "$0")/../.." || exit 2
compiler=${CROSS_CC:-aarch64-linux-gnu-gcc}
emulator=${CROSS_RUN:-qemu-aarch64}
pattern=${1:-^(base|registry|graph|ops|handlers)/}
for program in "$compiler" "$emulator"; do
    if ! command -v "$program" >/dev/null; then
        echo "tests/cross/run.sh: there is no $program here; see the packages named at the top of this file" >&2
        exit 77
    fi
done
build=build/cross-$("$compiler" -dumpmachine)
mkdir -p "$build"

# As in CMakeLists.txt; kernels are always optimised.
flags=(-std=c17 -D_GNU_SOURCE -Iinclude -Isrc -Itests -O2 -g -Wall -Wextra -Werror -fno-math-errno -ffp-contract=off
    -pthread)
kernel_flags=(-O3 -fno-trapping-math)
export CROSS_FLAGS="${flags[*]}" CROSS_KERNEL_FLAGS="${kernel_flags[*]}" CROSS_COMPILER=$compiler CROSS_BUILD=$build

compile()
{
    local object=$CROSS_BUILD/${1//\//__}.o extra=
    [[ $1 == src/handlers/cpu/* ]] && extra=$CROSS_KERNEL_FLAGS
    # shellcheck disable=SC2086 # lists of flags
    "$CROSS_COMPILER" $CROSS_FLAGS $extra -c "$1" -o "$object" || { echo "FAILED: $1" >&2; return 255; }
}
export -f compile
find src/base src/tensor src/text src/registry src/graph src/ops src/handlers -name '*.c' -print0 |
    xargs -0 -n 1 -P "${SIGMA_TEST_JOBS:-2}" bash -c 'compile "$1"' _ || exit 1
rm -f "$build/libsigma.a"
"${compiler%gcc}ar" rcs "$build/libsigma.a" "$build"/src__*.o || exit 1

passed=0 failed=0 skipped=0
while IFS= read -r source; do
    program=$build/${source//\//__}
    program=${program%.c}
    if ! "$compiler" "${flags[@]}" -static "$source" "$build/libsigma.a" -ldl -lm -o "$program" 2>"$program.log"; then
        grep -v 'statically linked' "$program.log"
        echo "FAILED: $source does not compile"
        failed=$((failed + 1))
        continue
    fi
    "$emulator" "$program" >"$program.log" 2>&1 </dev/null
    code=$?
    last=$(tail -n 1 "$program.log")
    if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
        passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2])) skipped=$((skipped + BASH_REMATCH[3]))
    else
        failed=$((failed + 1))
        echo "FAILED: $source ended with exit code $code"
    fi
    printf '%-40s %s\n' "${source#tests/}" "$last"
    grep -E 'FAILED|failed:|skipped:' "$program.log" | sed 's/^/    /'
done < <(find tests -name 'test_*.c' | grep -E -- "${pattern/#^/^tests/}" | sort)
echo "$passed passed, $failed failed, $skipped skipped ($("$compiler" -dumpmachine) under $emulator)"
[ "$failed" -eq 0 ]
