/* Hooks as text: the rows of the table of ready-made hooks. Internal.
 *
 * A row is all that a hook needs to be written in YAML, in sgm_hook_parse and in `sigma ctl RUN attach`, and
 * to be listed by `sigma info --hooks`. To add one, export it from the hook's file, and name it in the list
 * of hooks_ready/rows.c:
 *
 *     static sgm_hook *parse_quantile(const sgm__call *call, sgm_time_step when)
 *     {
 *         return sgm_quantile_hook(sgm__call_text(call, "data"), when,
 *                                  .parts = sgm__call_integer(call, "parts"));
 *     }
 *
 *     const sgm__hook_row sgm__quantile_row = {
 *         .name = "quantile",
 *         .doc = "below which outputs lie, part by part, as shared.quantile",
 *         .when = {SGM_EPOCH, 1, 0},
 *         .arguments = {{"data", SGM_KIND_TEXT, .required = true, .doc = "a data set of the trainer"},
 *                       {"parts", SGM__KIND_COUNT, .default_value = 10, .doc = "number of parts"}},
 *         .create = parse_quantile,
 *     };
 *
 * A row says nothing of `local` in front of a hook's name and of the condition behind `if`; hook_text.c reads
 * these for all hooks. The hook's type has the row's name. The arguments are read by text/call_text.c, whose
 * errors name column and argument. When create() refuses values, sgm__call_fail() says so at the argument's
 * column. */
#ifndef SGM_HOOKS_HOOK_TEXT_H
#define SGM_HOOKS_HOOK_TEXT_H

#include "hooks/hooks.h"
#include "text/call_text.h"
#include <sigma/hooks.h>

typedef struct sgm__hook_row {
    const char *name, *doc;
    sgm_time_step when; /* if the text has none */
    /* In the order in which they may come without their names; a name of NULL ends them. */
    sgm_option arguments[SGM__CALL_ROWS + 1];
    /* Makes the hook from its arguments, which are checked, and from its time step. NULL: it failed. */
    sgm_hook *(*create)(const sgm__call *call, sgm_time_step when);
    bool global; /* it cannot be local: its type has `only_global` */
} sgm__hook_row;

/* The table of all ready-made hooks: hooks_ready/rows.c, which stands above its reader. */
extern const sgm__hook_row *const sgm__hook_rows[];
extern const size_t sgm__hook_row_count;
/* What reads a text that is a rule, not a hook with arguments. */
extern sgm_hook *(*const sgm__hook_read_rule)(const char *text);

#endif
