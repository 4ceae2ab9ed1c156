/* The test harness: one executable per file, which includes this header once.
 *
 *   TEST(adds_numbers) { CHECK_INT(1 + 1, 2); }
 *
 * A check that fails ends its test (in another thread than the test's own it only marks it as failed).
 * Failures and skips print one line each; the last line is "N passed, N failed, N skipped". An argument runs
 * only the tests whose name contains it. Exit code: 0, 1 when a test failed, 77 when all were skipped.
 */
#ifndef SIGMA_TEST_H
#define SIGMA_TEST_H

#include <math.h>
#include <setjmp.h>
#include <sigma/base.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct test_case {
    const char *name;
    void (*run)(void);
    struct test_case *next;
} test_case;

static test_case *test_first, **test_last = &test_first;
static const char *test_name = "";
static atomic_bool test_has_failed, test_was_skipped;
static jmp_buf test_leave;
static _Thread_local bool test_can_leave; /* only the thread that runs the tests can jump out of one */

#define TEST(test)                                                                                           \
    static void test_run_##test(void);                                                                       \
    __attribute__((constructor)) static void test_register_##test(void)                                      \
    {                                                                                                        \
        static test_case entry = {#test, test_run_##test, NULL};                                             \
        *test_last = &entry;                                                                                 \
        test_last = &entry.next;                                                                             \
    }                                                                                                        \
    static void test_run_##test(void)

__attribute__((unused)) static void test_end(const char *file, int line, const char *kind, const char *format,
                                             ...) SGM_PRINTF(4, 5);
static void test_end(const char *file, int line, const char *kind, const char *format, ...)
{
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    printf("%s:%d: %s: %s: %s\n", file, line, kind, test_name, message);
    fflush(stdout);
    if (test_can_leave)
        longjmp(test_leave, 1);
}

#define TEST_FAIL(...)                                                                                       \
    (atomic_store(&test_has_failed, true), test_end(__FILE__, __LINE__, "FAILED", __VA_ARGS__))
#define SKIP(reason)                                                                                         \
    (atomic_store(&test_was_skipped, true), test_end(__FILE__, __LINE__, "skipped", "%s", reason))

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            TEST_FAIL("not true: %s", #condition);                                                           \
    } while (0)

/* Integers of any type up to 64 bits. */
#define CHECK_INT(actual, expected)                                                                          \
    do {                                                                                                     \
        int64_t test_a = (int64_t)(actual), test_b = (int64_t)(expected);                                    \
        if (test_a != test_b)                                                                                \
            TEST_FAIL("%s is %lld, expected %lld", #actual, (long long)test_a, (long long)test_b);           \
    } while (0)

/* |actual - expected| <= tolerance; equal infinities and two NaNs count as near. */
#define CHECK_NEAR(actual, expected, tolerance)                                                              \
    do {                                                                                                     \
        double test_a = (double)(actual), test_b = (double)(expected), test_t = (double)(tolerance);         \
        if (!test_near(test_a, test_b, test_t))                                                              \
            TEST_FAIL("%s is %.17g, expected %.17g within %g", #actual, test_a, test_b, test_t);             \
    } while (0)

/* NULL is equal only to NULL. */
#define CHECK_STR(actual, expected)                                                                          \
    do {                                                                                                     \
        const char *test_a = (actual), *test_b = (expected);                                                 \
        if (!test_a || !test_b ? test_a != test_b : strcmp(test_a, test_b) != 0)                             \
            TEST_FAIL("%s is \"%s\", expected \"%s\"", #actual, test_text(test_a), test_text(test_b));       \
    } while (0)

/* The call must succeed: a status of SGM_OK, a pointer other than NULL, or true. */
#define CHECK_OK(call)                                                                                       \
    do {                                                                                                     \
        sgm_clear_error();                                                                                   \
        if (TEST_FAILED(call))                                                                               \
            TEST_FAIL("%s failed: %s", #call, sgm_last_error());                                             \
    } while (0)

/* The call must fail with a message that contains `part`. */
#define CHECK_ERROR(call, part)                                                                              \
    do {                                                                                                     \
        sgm_clear_error();                                                                                   \
        if (!TEST_FAILED(call))                                                                              \
            TEST_FAIL("%s succeeded, expected an error with \"%s\"", #call, part);                           \
        else if (!strstr(sgm_last_error(), part))                                                            \
            TEST_FAIL("%s failed with \"%s\", expected \"%s\" in it", #call, sgm_last_error(), part);        \
    } while (0)

#define TEST_FAILED(call)                                                                                    \
    _Generic((call), sgm_status                                                                              \
             : test_status_failed, bool                                                                      \
             : test_bool_failed, default                                                                     \
             : test_pointer_failed)(call)

__attribute__((unused)) static bool test_status_failed(sgm_status status)
{
    return status != SGM_OK;
}

__attribute__((unused)) static bool test_bool_failed(bool value)
{
    return !value;
}

__attribute__((unused)) static bool test_pointer_failed(const void *pointer)
{
    return !pointer;
}

__attribute__((unused)) static bool test_near(double a, double b, double tolerance)
{
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance;
}

__attribute__((unused)) static const char *test_text(const char *text)
{
    return text ? text : "(NULL)";
}

static void test_run_one(const test_case *test)
{
    test_name = test->name;
    atomic_store(&test_has_failed, false);
    atomic_store(&test_was_skipped, false);
    sgm_clear_error();
    test_can_leave = true;
    if (setjmp(test_leave) == 0)
        test->run();
    test_can_leave = false;
}

int main(int argc, char **argv)
{
    const char *wanted = argc > 1 ? argv[1] : "";
    int passed = 0, failed = 0, skipped = 0;
    sgm_set_logger(NULL, NULL, SGM_LOG_NONE);
    for (const test_case *test = test_first; test; test = test->next) {
        if (!strstr(test->name, wanted))
            continue;
        test_run_one(test);
        if (atomic_load(&test_has_failed))
            failed++;
        else if (atomic_load(&test_was_skipped))
            skipped++;
        else
            passed++;
    }
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    if (failed)
        return 1;
    return passed == 0 && skipped > 0 ? 77 : 0;
}

#endif
