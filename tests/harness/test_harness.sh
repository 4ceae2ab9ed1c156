#!/bin/bash
# The harness judges all other tests, so each of its checks must be seen to fail here: builds a small test program and
# reads what it says.
set -u
passed=0 failed=0
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

expect()
{
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'test_harness.sh: FAILED: %s: got "%s", expected "%s"\n' "$1" "$2" "$3"
    fi
}

if grep -q '^SIGMA_SANITIZE:STRING=.' "$SIGMA_BUILD_DIR/CMakeCache.txt"; then
    echo "test_harness.sh: skipped: the library was built with sanitizers"
    echo "0 passed, 0 failed, 1 skipped"
    exit 77
fi

cat >"$folder/test_sample.c" <<'END'
#include "test.h"

#include <pthread.h>

static int number = 7;

static sgm_status fails(void)
{
    return sgm_fail(SGM_ERROR_SHAPE, "expected %d columns", 3);
}

static void *fails_too(void)
{
    fails();
    return NULL;
}

static void *in_thread(void *unused)
{
    (void)unused;
    CHECK(number == 8);
    return NULL;
}

TEST(good)
{
    CHECK(number == 7);
    CHECK_INT(number, 7);
    CHECK_NEAR(0.1 + 0.2, 0.3, 1e-12);
    CHECK_NEAR(INFINITY, INFINITY, 0);
    CHECK_STR("a", "a");
    CHECK_STR(NULL, NULL);
    CHECK_OK(SGM_OK);
    CHECK_OK(&number);
    CHECK_ERROR(fails(), "3 columns");
    CHECK_ERROR(fails_too(), "3 columns");
}
TEST(bad_check) { CHECK(number == 8); }
TEST(bad_int) { CHECK_INT(number, 8); }
TEST(bad_near) { CHECK_NEAR(1.0, 1.1, 0.05); }
TEST(bad_nan) { CHECK_NEAR(NAN, 1.0, 10); }
TEST(bad_text) { CHECK_STR("a", "b"); }
TEST(bad_null) { CHECK_STR("a", NULL); }
TEST(bad_status) { CHECK_OK(fails()); }
TEST(bad_pointer) { CHECK_OK(fails_too()); }
TEST(bad_message) { CHECK_ERROR(fails(), "4 columns"); }
TEST(bad_success) { CHECK_ERROR(SGM_OK, ""); }
TEST(bad_once) { CHECK(false); number = 9; }
TEST(bad_thread)
{
    pthread_t thread;
    CHECK_INT(pthread_create(&thread, NULL, in_thread, NULL), 0);
    pthread_join(thread, NULL);
}
TEST(skipping) { SKIP("no reason"); number = 9; }
TEST(good_too) { CHECK_INT(number, 7); }
END

cc -std=c17 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Werror -pthread \
    -I"$SIGMA_SOURCE_DIR/include" -I"$SIGMA_SOURCE_DIR/tests" "$folder/test_sample.c" -o "$folder/test_sample" \
    -L"$SIGMA_BUILD_DIR" -lsigma -lm -Wl,-rpath,"$SIGMA_BUILD_DIR" || exit 1

"$folder/test_sample" >"$folder/out"
expect "exit code when tests failed" $? 1
expect "last line" "$(tail -n 1 "$folder/out")" "2 passed, 12 failed, 1 skipped"
expect "a line for each failure" "$(grep -c ': FAILED: bad_' "$folder/out")" 12
expect "a line for each skip" "$(grep -c ': skipped: skipping: no reason$' "$folder/out")" 1
expect "lines in all" "$(wc -l <"$folder/out")" 14
expect "message of a wrong number" "$(grep -o 'bad_int: .*' "$folder/out")" "bad_int: number is 7, expected 8"
expect "message of an error" "$(grep -o 'bad_status: .*' "$folder/out")" \
    "bad_status: fails() failed: expected 3 columns"

"$folder/test_sample" good >"$folder/out"
expect "exit code when all passed" $? 0
expect "only what was asked for" "$(cat "$folder/out")" "2 passed, 0 failed, 0 skipped"
"$folder/test_sample" skipping >"$folder/out"
expect "exit code when all were skipped" $? 77

# The runner, on a source tree of its own: counts are summed, and a crash or a missing end counts as a failure.
mkdir -p "$folder/tree/tests/a" "$folder/tree/build/tests/a"
cp "$SIGMA_SOURCE_DIR/tests/run.sh" "$folder/tree/tests/"
script()
{
    printf '#!/bin/bash\n%s\n' "$2" >"$folder/tree/tests/a/test_$1.sh"
    chmod +x "$folder/tree/tests/a/test_$1.sh"
}
run_tree()
{
    : >"$folder/out"
    SIGMA_TEST_TIMEOUT=5 SIGMA_TEST_FAILURES=$folder/failures bash "$folder/tree/tests/run.sh" "$folder/tree/build" "$@" >>"$folder/out" 2>&1
}
# A fault of the processor, which kills also where the signal is ignored.
cat >"$folder/crash.c" <<'END'
int main(void)
{
    return *(volatile int *)1;
}
END
cc "$folder/crash.c" -o "$folder/crash" || exit 1
script fine 'echo "3 passed, 0 failed, 1 skipped"'
run_tree
expect "runner: exit code when all passed" $? 0
expect "runner: sum" "$(tail -n 1 "$folder/out")" "3 passed, 0 failed, 1 skipped"
expect "runner: nothing failed, nothing to repeat" "$(grep -c '^What failed:' "$folder/out")" 0
script half 'echo "2 passed, 2 failed, 0 skipped"; exit 1'
script crash "ulimit -c 0; exec '$folder/crash'"
script leak 'echo "1 passed, 0 failed, 0 skipped"; echo "leaked" >&2; exit 23'
script silent 'true'
script slow 'sleep 20'
touch "$folder/tree/tests/a/test_unbuilt.c"
run_tree
expect "runner: exit code when some failed" $? 1
expect "runner: failures of each kind" "$(tail -n 1 "$folder/out")" "6 passed, 7 failed, 1 skipped"
repeated()
{
    sed -n '/^What failed:/,$p' "$folder/out" | grep -c "$1"
}
expect "runner: names what crashed" "$(grep -c 'FAILED: a/test_crash.sh ended with exit code 139' "$folder/failures")" 1
expect "runner: names what was slow" "$(grep -c 'FAILED: a/test_slow.sh ran longer than 5 s' "$folder/failures")" 1
expect "runner: says again what failed" "$(repeated '^a/test_.* [1-9] failed')" 6
expect "runner: says nothing again of what passed" "$(repeated 'a/test_fine')" 0
[ "$failed" -eq 0 ] || sed 's/^/    /' "$folder/out"
run_tree half
expect "runner: part of a name" "$(tail -n 1 "$folder/out")" "2 passed, 2 failed, 0 skipped"

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
