/* How tokens of a text are drawn: the one place where bounds, defaults and descriptions of these options
 * stand (sgm_generation_settings). */
#include <sigma/training.h>

#define LARGEST_SEED 9007199254740992.0 /* 2^53: a number of a file is a double */
#define DRAWING(member, of_kind, lowest, highest, usual, words)                                              \
    {                                                                                                        \
        .option = {.name = #member,                                                                          \
                   .kind = of_kind,                                                                          \
                   .minimum = lowest,                                                                        \
                   .maximum = highest,                                                                       \
                   .default_value = usual,                                                                   \
                   .doc = words},                                                                            \
        SGM_MEMBER(sgm_generation_options, member)                                                           \
    }

static const sgm_setting rows[] = {
    DRAWING(temperature, SGM_KIND_NUMBER, 1e-6, 1e6, 1,
            "1 takes the probabilities as they are, less is surer"),
    DRAWING(top_k, SGM_KIND_INTEGER, 0, 1e9, 0, "only so many of the likeliest tokens; 0: all"),
    DRAWING(top_p, SGM_KIND_NUMBER, 1e-6, 1, 1,
            "only as many of the likeliest as have this probability together"),
    DRAWING(min_p, SGM_KIND_NUMBER, 0, 1, 0, "only tokens at least so many times as likely as the likeliest"),
    DRAWING(repetition_penalty, SGM_KIND_NUMBER, 1e-6, 1e6, 1,
            "logits of tokens that came already are divided by it if positive, multiplied by it if negative"),
    DRAWING(greedy, SGM_KIND_BOOLEAN, 0, 0, 0, "always the likeliest token"),
    DRAWING(seed, SGM_KIND_INTEGER, 0, LARGEST_SEED, 0, "of what is drawn, the same each time"),
};

const sgm_setting *sgm_generation_settings(size_t *count)
{
    *count = sizeof rows / sizeof *rows;
    return rows;
}
