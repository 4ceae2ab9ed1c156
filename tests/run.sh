#!/bin/bash
# Runs all tests of a build: tests/run.sh [BUILD_DIR] [PATTERN [EXCEPT]], extended regular expressions for files below
# tests/: those that are run, and those of them that are left out
#
# Test programs (BUILD_DIR/tests/**/test_*) and scripts (tests/**/test_*.sh) print a line for each failure and skip,
# and "N passed, N failed, N skipped" last. A crash, a timeout, or a leak found at exit counts as one failure.
# SIGMA_TEST_JOBS (2) at a time, each at most SIGMA_TEST_TIMEOUT (600) seconds. What failed is said again at the end, and
# added to the file SIGMA_TEST_FAILURES where that is set: where reports of hundreds of tests are long, the end is what is read.
set -u
source_dir=$(cd "$(dirname "$0")/.." && pwd)

# Runs one test; prints its output if there is something to say, and leaves its three counts in a file.
run_one()
{
    local path=$1 name log counts start code last
    local summary='^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$'
    name=${path#"$SIGMA_BUILD_DIR/tests/"}
    name=${name#"$SIGMA_SOURCE_DIR/tests/"}
    log=$SIGMA_TEST_RESULTS/${name//\//__}.log
    start=$(date +%s%N)
    (cd "$SIGMA_SOURCE_DIR" && exec timeout -k 10 "$SIGMA_TEST_TIMEOUT" "$path") >"$log" 2>&1 </dev/null
    code=$?
    # Sanitizers report leaks after the last line of the test itself.
    last=$(grep -aE "$summary" "$log" | tail -n 1)
    if [[ $last =~ $summary ]]; then
        counts=("${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" "${BASH_REMATCH[3]}")
    else
        counts=(0 0 0)
    fi
    if [ "${counts[1]}" -eq 0 ]; then
        case $code in
        0 | 77)
            if [ -z "$last" ]; then
                echo "FAILED: $name ended without its counts" >>"$log"
                counts[1]=1
            fi
            ;;
        124 | 137)
            echo "FAILED: $name ran longer than $SIGMA_TEST_TIMEOUT s, or was killed" >>"$log"
            counts[1]=1
            ;;
        *)
            echo "FAILED: $name ended with exit code $code" >>"$log"
            counts[1]=1
            ;;
        esac
    fi
    echo "${counts[*]}" >"${log%.log}.counts"
    {
        printf '%-44s %4d passed, %d failed, %d skipped  %6.1f s\n' "$name" "${counts[@]}" \
            "$((($(date +%s%N) - start) / 100000000))e-1"
        if [ "${counts[1]}" -gt 0 ]; then
            grep -avE "$summary" "$log" | tail -n 100 | sed 's/^/    /'
        else
            grep -aE ': skipped: ' "$log" | sed 's/^/    /'
        fi
    } >"${log%.log}.report"
    cat "${log%.log}.report" # one write, so that the reports of two tests do not mix
}

if [ "${1:-}" = --one ]; then
    run_one "$2"
    exit 0
fi

SIGMA_SOURCE_DIR=$source_dir
SIGMA_BUILD_DIR=$(cd "${1:-$source_dir/build/release}" && pwd) || exit 2
SIGMA_TEST_TIMEOUT=${SIGMA_TEST_TIMEOUT:-600}
SIGMA_TEST_RESULTS=$(mktemp -d)
export SIGMA_SOURCE_DIR SIGMA_BUILD_DIR SIGMA_TEST_TIMEOUT SIGMA_TEST_RESULTS
export LC_ALL=C SIGMA_PLUGIN_PATH=$SIGMA_BUILD_DIR/plugins
# Without SIGMA_TEST_CUDA the handler 'cuda' finds the stand-in for CUDA, whether there is a GPU or not.
if [ -z "${SIGMA_TEST_CUDA:-}" ]; then
    export SIGMA_CUDA_LIBRARIES=$SIGMA_BUILD_DIR/tests/fake_cuda
fi
trap 'rm -rf "$SIGMA_TEST_RESULTS"' EXIT

# Only programs whose source is still there: a build folder may hold older ones.
list_tests()
{
    local source program
    while IFS= read -r source; do
        case $source in
        *.sh) program=$SIGMA_SOURCE_DIR/tests/$source ;;
        *) program=$SIGMA_BUILD_DIR/tests/${source%.c} ;;
        esac
        printf '%s\0' "$program"
    done < <(cd "$SIGMA_SOURCE_DIR/tests" && find . \( -name 'test_*.c' -o -name 'test_*.sh' \) -printf '%P\n' |
        grep -E -- "${1:-}" | grep -vE -- "${2:-^$}" | sort)
}

list_tests "${2:-}" "${3:-}" | xargs -0 -r -n 1 -P "${SIGMA_TEST_JOBS:-2}" bash "$0" --one

passed=0 failed=0 skipped=0
for file in "$SIGMA_TEST_RESULTS"/*.counts; do
    [ -e "$file" ] || continue
    read -r p f s <"$file"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done
if [ "$failed" -gt 0 ]; then
    echo "What failed:"
    grep -LE '^[0-9]+ 0 ' "$SIGMA_TEST_RESULTS"/*.counts | sed 's/counts$/report/' | xargs -d '\n' cat |
        tee -a "${SIGMA_TEST_FAILURES:-/dev/null}"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
