#!/bin/bash
# clang-tidy and cppcheck over our own sources: scripts/lint.sh [BUILD_DIR]; BUILD_DIR is a configured build.
set -u
cd "$(dirname "$0")/.." || exit 2
build=${1:-build/release}
failed=0

# The files that the build compiles, without the tests: their macros repeat each check a hundred times.
mapfile -t files < <(sed -n 's|^ *"file": "'"$PWD"'/\(.*\)",\{0,1\}$|\1|p' "$build/compile_commands.json" |
    grep -vE '^(tests|build)/' | sort -u)
count=${#files[@]}
[ "$count" -gt 0 ] || { echo "lint: no sources in $build/compile_commands.json; configure the build first" >&2; exit 2; }

tidy_log=$(mktemp) || exit 2
trap 'rm -f "$tidy_log"' EXIT
printf '%s\0' "${files[@]}" |
    xargs -0 -n 4 -P "$(nproc)" clang-tidy --quiet -p "$build" >"$tidy_log" 2>/dev/null || failed=1
grep -E -A 3 '(warning|error):' "$tidy_log"

# Of the loops for vectors, which are one text for several instruction sets, cppcheck takes one: each takes it as long as
# a hundred other files.
mapfile -t files < <(printf '%s\n' "${files[@]}" | grep -vE '/vector_(avx2|avx512)\.c$')
# Unknown macros are left as they are, system headers are not read: cppcheck looks at our code alone.
cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 --enable=warning,portability -j "$(nproc)" \
    --suppressions-list=scripts/cppcheck.suppressions -D_GNU_SOURCE -D__GNUC__=12 -D__x86_64__ -D__linux__ \
    -Iinclude -Isrc -Icli -Imodels -Imodels/include "${files[@]}" || failed=1

[ $failed -eq 0 ] && echo "lint: $count files, nothing found"
exit $failed
