/* What an environment can be set to: the one place where bounds, defaults and words stand. */
#include "base/base.h"
#include <sigma/environment.h>

#define ENVIRONMENT(member, words, ...)                                                                      \
    {                                                                                                        \
        .option = {.name = #member, .doc = words, __VA_ARGS__}, SGM_MEMBER(sgm_env_options, member)          \
    }

static const char *const precisions[] = {"float32", "float64", NULL}; /* by sgm_dtype */

static const sgm_setting rows[] = {
    ENVIRONMENT(seed, "of all that is random", .kind = SGM_KIND_INTEGER, .most = 9e18),
    ENVIRONMENT(handler, "who computes (see 'sigma info')", .kind = SGM_KIND_TEXT, .standard_text = "cpu"),
    ENVIRONMENT(threads, "if not given: one per processor", .kind = SGM_KIND_INTEGER, .least = 1,
                .most = 1024),
    ENVIRONMENT(precision, "of parameters and results", .kind = SGM_KIND_TEXT, .choices = precisions,
                .standard_text = "float32"),
};

const sgm_setting *sgm_env_settings(size_t *count)
{
    *count = sizeof rows / sizeof *rows;
    return rows;
}
