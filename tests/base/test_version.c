#include "test.h"

TEST(version_of_the_library_is_that_of_the_header)
{
    char expected[64];
    snprintf(expected, sizeof expected, "%d.%d.%d", SGM_VERSION_MAJOR, SGM_VERSION_MINOR, SGM_VERSION_PATCH);
    CHECK_STR(sgm_version(), expected);
}

TEST(statuses_have_texts)
{
    CHECK_STR(sgm_status_text(SGM_OK), "ok");
    CHECK_STR(sgm_status_text(SGM_ERROR_SHAPE), "shapes do not fit");
    CHECK(sgm_status_text((sgm_status)12345) != NULL);
    CHECK_ERROR(sgm_fail(SGM_ERROR_TYPE, "a %s", "message"), "a message");
}
