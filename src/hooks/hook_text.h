/* Hooks as text: the rows of the table of ready-made hooks. Internal.
 *
 * A row is all that a hook needs to be written in YAML, in sgm_hook_parse and in `sigma ctl RUN attach`, and
 * to be listed by `sigma info --hooks`. To add one, export it from the hook's file, and name it in the list
 * of hooks_ready/rows.c:
 *
 *     static sgm_hook *parse_quantile(const sgm__hook_text *call)
 *     {
 *         return sgm_quantile_hook(sgm__hook_text_of(call, "data"), call->when,
 *                                  .parts = sgm__hook_count_of(call, "parts"));
 *     }
 *
 *     const sgm__hook_row sgm__quantile_row = {
 *         .name = "quantile",
 *         .doc = "below which outputs lie, part by part, as shared.quantile",
 *         .when = {SGM_EPOCH, 1, 0},
 *         .arguments = {{"data", SGM__ARGUMENT_WORD, .needed = true, .doc = "a data set of the trainer"},
 *                       {"parts", SGM__ARGUMENT_COUNT, .default_value = "10", .doc = "number of parts"}},
 *         .create = parse_quantile,
 *     };
 *
 * `local` in front of all, and "if" behind, are no matter of the row. The hook's type has the row's name. The
 * reader fills in values and defaults, checks them (errors name column and argument), sees that
 * nothing needed is missing, and hangs the condition behind `if` on what create() gives. When create()
 * refuses values, sgm__hook_text_fail() says so at the argument's column.
 */
#ifndef SGM_HOOKS_HOOK_TEXT_H
#define SGM_HOOKS_HOOK_TEXT_H

#include "hooks/hooks.h"
#include "text/phrase.h"
#include <sigma/hooks.h>

#define SGM__HOOK_MAXIMUM_ARGUMENTS 12
#define SGM__HOOK_MAXIMUM_NUMBERS 16

typedef enum sgm__argument_kind {
    SGM__ARGUMENT_NONE,        /* behind the last */
    SGM__ARGUMENT_IDENTIFIER,  /* training.loss */
    SGM__ARGUMENT_IDENTIFIERS, /* training.loss optimiser.*, or with commas: one text, with spaces */
    SGM__ARGUMENT_WORD,        /* best, "epoch-{epoch}": a word, or any text in quotes */
    SGM__ARGUMENT_NUMBER,      /* finite */
    SGM__ARGUMENT_NUMBERS,     /* 1 3 5, or with commas */
    SGM__ARGUMENT_COUNT,       /* whole, from 1, or in its bounds */
    SGM__ARGUMENT_FLAG,        /* true or false */
    SGM__ARGUMENT_CHOICE       /* one of `choices` */
} sgm__argument_kind;

typedef struct sgm__hook_argument {
    const char *name;
    sgm__argument_kind kind;
    bool needed;
    const char *default_value;  /* as it would be written; NULL: none */
    const char *const *choices; /* NULL at the end */
    const char *doc;
    int64_t minimum, maximum; /* of a count; maximum 0: from 1 */
} sgm__hook_argument;

typedef struct sgm__hook_text sgm__hook_text;

typedef struct sgm__hook_row {
    const char *name, *doc;
    sgm_time_step when; /* if the text has none */
    /* In the order in which they may come without their names. */
    sgm__hook_argument arguments[SGM__HOOK_MAXIMUM_ARGUMENTS + 1];
    sgm_hook *(*create)(const sgm__hook_text *call);
    bool global; /* it cannot be local: its type has `only_global` */
} sgm__hook_row;

typedef struct sgm__hook_value {
    bool given; /* by the text; a default does not count */
    size_t at;  /* in the text; that of the name if it was not given */
    char *text;
    double numbers[SGM__HOOK_MAXIMUM_NUMBERS];
    size_t count; /* of numbers, or the place of the choice */
    int64_t whole;
} sgm__hook_value;

/* A call as it was read. */
struct sgm__hook_text {
    const sgm__hook_row *row;
    const sgm__phrase *phrase;
    size_t name_at;
    sgm_time_step when;
    bool has_step; /* it was in the text */
    sgm__hook_value values[SGM__HOOK_MAXIMUM_ARGUMENTS];
};

/* --- hook_arguments.c --- */
size_t sgm__hook_argument_count(const sgm__hook_row *row);
/* What stands in parentheses, if anything, and all defaults; `call` has its row. */
sgm_status sgm__hook_read_arguments(sgm__phrase *phrase, sgm__hook_text *call);
/* For create(), by the argument's name. */
bool sgm__hook_has(const sgm__hook_text *call, const char *name);            /* given, or it has a default */
const char *sgm__hook_text_of(const sgm__hook_text *call, const char *name); /* NULL: none; belongs to call */
double sgm__hook_number_of(const sgm__hook_text *call, const char *name);    /* NaN: none */
const double *sgm__hook_numbers_of(const sgm__hook_text *call, const char *name, size_t *count);
int64_t sgm__hook_count_of(const sgm__hook_text *call, const char *name); /* 0: none */
bool sgm__hook_flag_of(const sgm__hook_text *call, const char *name);     /* false: none */
size_t sgm__hook_choice_of(const sgm__hook_text *call, const char *name); /* SIZE_MAX: none */
/* "column 21: patience: " and a message; returns NULL. */
sgm_hook *sgm__hook_text_fail(const sgm__hook_text *call, const char *name, const char *format, ...)
    SGM_PRINTF(3, 4);

/* The table of all ready-made hooks: hooks_ready/rows.c, which stands above its reader. */
extern const sgm__hook_row *const sgm__hook_rows[];
extern const size_t sgm__hook_row_count;
/* What reads a text that is a rule, not a hook with arguments. */
extern sgm_hook *(*const sgm__hook_read_rule)(const char *text);

#endif
