/* The table of what can be set in sgm_env_options: the one place that has bounds, defaults and descriptions.
 *
 * env.c checks options by it, and the command derives the keys of its configuration file from it
 * (sgm_env_settings). A row names a member of the struct by SGM_MEMBER, which stores offset and size. */
#include "base/base.h"
#include <sigma/environment.h>

#define ENVIRONMENT(member, words, ...)                                                                      \
    {                                                                                                        \
        .option = {.name = #member, .doc = words, __VA_ARGS__}, SGM_MEMBER(sgm_env_options, member)          \
    }

/* The words for a precision, and in the same order the values of sgm_dtype that they stand for. */
static const char *const precisions[] = {"float32", "float64", "bfloat16", NULL};
static const int precision_types[] = {SGM_FLOAT32, SGM_FLOAT64, SGM_BFLOAT16};

/* The maximum of the seed keeps it within a signed 64-bit integer, as the registry and JSON have them. */
static const sgm_setting rows[] = {
    ENVIRONMENT(seed, "of all random numbers", .kind = SGM_KIND_INTEGER, .maximum = 9e18),
    ENVIRONMENT(handler, "what computes, one of those that 'sigma info' lists", .kind = SGM_KIND_TEXT,
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
    ENVIRONMENT(memory,
                "of a training step's intermediate values: a share of what they take, 0.5, or a size, 500MB; "
                "values are computed again to keep to it; if not given: what they take",
                .kind = SGM_KIND_TEXT),
};

const sgm_setting *sgm_env_settings(size_t *count)
{
    *count = sizeof rows / sizeof *rows;
    return rows;
}
