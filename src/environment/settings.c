/* What an environment can be set to: the one place where bounds, defaults and words stand. */
#include "base/base.h"
#include <sigma/environment.h>

#define ENVIRONMENT(member, words, ...)                                                                      \
    {                                                                                                        \
        .option = {.name = #member, .doc = words, __VA_ARGS__}, SGM_MEMBER(sgm_env_options, member)          \
    }

static const char *const precisions[] = {"float32", "float64", "bfloat16", NULL};
static const int precision_types[] = {SGM_FLOAT32, SGM_FLOAT64, SGM_BFLOAT16};

static const sgm_setting rows[] = {
    ENVIRONMENT(seed, "of all that is random", .kind = SGM_KIND_INTEGER, .maximum = 9e18),
    ENVIRONMENT(handler, "who computes, of those that 'sigma info' shows", .kind = SGM_KIND_TEXT,
                .default_text = "cpu"),
    ENVIRONMENT(threads, "if not given: one per processor", .kind = SGM_KIND_INTEGER, .minimum = 1,
                .maximum = 1024),
    {.option = {.name = "precision",
                .doc =
                    "of parameters and results; bfloat16: of the network's values, with float32 parameters",
                .kind = SGM_KIND_TEXT,
                .choices = precisions,
                .default_text = "float32"},
     SGM_MEMBER(sgm_env_options, precision),
     .numbers = precision_types},
};

const sgm_setting *sgm_env_settings(size_t *count)
{
    *count = sizeof rows / sizeof *rows;
    return rows;
}
