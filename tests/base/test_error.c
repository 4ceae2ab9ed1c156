#include "base/base.h"
#include "test.h"

TEST(no_error_at_first)
{
    sgm_clear_error();
    CHECK_STR(sgm_last_error(), "");
    CHECK_INT(sgm_last_status(), SGM_OK);
}

TEST(the_newest_failure_is_kept)
{
    CHECK_INT(sgm_fail(SGM_ERROR_SHAPE, "expected %d", 3), SGM_ERROR_SHAPE);
    CHECK_INT(sgm_fail(SGM_ERROR_TYPE, "expected %s", "a number"), SGM_ERROR_TYPE);
    CHECK_STR(sgm_last_error(), "expected a number");
    CHECK_INT(sgm_last_status(), SGM_ERROR_TYPE);
    sgm_clear_error();
    CHECK_STR(sgm_last_error(), "");
}

TEST(outer_layers_name_the_object)
{
    sgm_fail(SGM_ERROR_FILE, "cannot open");
    CHECK_INT(sgm__fail_within("layer %d", 2), SGM_ERROR_FILE);
    CHECK_INT(sgm__fail_within("mnist"), SGM_ERROR_FILE);
    CHECK_STR(sgm_last_error(), "mnist: layer 2: cannot open");
}

TEST(a_message_may_contain_the_one_before)
{
    sgm_fail(SGM_ERROR_FILE, "inner");
    sgm_fail(SGM_ERROR_STATE, "outer (%s)", sgm_last_error());
    CHECK_STR(sgm_last_error(), "outer (inner)");
}

TEST(long_messages_are_cut_off_between_characters)
{
    char text[3001];
    for (int i = 0; i < 1000; i++)
        memcpy(text + 3 * i, "\xE2\x82\xAC", 3); /* the euro sign, three bytes long */
    text[3000] = '\0';
    for (int shift = 0; shift < 3; shift++) {
        sgm_fail(SGM_ERROR_ARGUMENT, "%.*s%s", shift, "ab", text);
        size_t length = strlen(sgm_last_error());
        CHECK(length > 1000 && length < 1024);
        CHECK_STR(sgm_last_error() + length - 3, "...");
        CHECK_INT((length - 3 - (size_t)shift) % 3, 0);
    }
}

TEST(memory_failures_name_the_size)
{
    CHECK_INT(sgm__fail_memory(123456), SGM_ERROR_MEMORY);
    CHECK(strstr(sgm_last_error(), "123456 bytes") != NULL);
}

TEST(every_status_has_a_text_of_its_own)
{
    static const sgm_status statuses[] = {
#define STATUS(code, value, text) SGM_##code,
        SGM_STATUS_LIST(STATUS)
#undef STATUS
    };
    size_t count = sizeof statuses / sizeof *statuses;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            CHECK(strcmp(sgm_status_text(statuses[i]), sgm_status_text(statuses[j])) != 0);
    CHECK_STR(sgm_status_text(SGM_ERROR_MEMORY), "out of memory");
    CHECK_STR(sgm_status_text((sgm_status)77), "unknown status");
}

static void *fail_elsewhere(void *seen)
{
    *(bool *)seen = sgm_last_status() != SGM_OK;
    sgm_fail(SGM_ERROR_NETWORK, "of the other thread");
    return NULL;
}

TEST(threads_have_their_own_errors)
{
    bool seen = true;
    pthread_t thread;
    sgm_fail(SGM_ERROR_SHAPE, "of this thread");
    CHECK_INT(pthread_create(&thread, NULL, fail_elsewhere, &seen), 0);
    pthread_join(thread, NULL);
    CHECK(!seen);
    CHECK_STR(sgm_last_error(), "of this thread");
}

typedef struct example {
    int calls;
    sgm_log_level level;
    char component[32], message[4096];
} example;

static void remember(void *user, sgm_log_level level, const char *component, const char *message)
{
    example *last = user;
    last->calls++;
    last->level = level;
    snprintf(last->component, sizeof last->component, "%s", component);
    snprintf(last->message, sizeof last->message, "%s", message);
    sgm__log(SGM_LOG_ERROR, "logger", "a logger that logs must not lock up");
}

TEST(messages_reach_the_logger_from_its_level_on)
{
    example last = {0};
    sgm_set_logger(remember, &last, SGM_LOG_WARNING);
    sgm__log(SGM_LOG_INFO, "data", "not wanted");
    CHECK_INT(last.calls, 0);
    sgm__log(SGM_LOG_WARNING, "data", "%d rows are empty", 4);
    CHECK_INT(last.calls, 1);
    CHECK_INT(last.level, SGM_LOG_WARNING);
    CHECK_STR(last.component, "data");
    CHECK_STR(last.message, "4 rows are empty");
    sgm__log(SGM_LOG_ERROR, "data", "%4000s", "");
    CHECK_INT(strlen(last.message), 2047);
    CHECK_STR(last.message + 2044, "...");
    sgm_set_logger(remember, &last, SGM_LOG_NONE);
    sgm__log(SGM_LOG_ERROR, "data", "not wanted");
    CHECK_INT(last.calls, 2);
    sgm_set_logger(NULL, NULL, SGM_LOG_NONE);
}
