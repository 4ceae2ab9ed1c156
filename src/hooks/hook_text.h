/* Hooks as text: the rows of the table of ready-made hooks. Internal.
 *
 * A row is all that a hook needs to be written in YAML, in sgm_hook_parse and in `sigma ctl RUN attach`, and
 * to be listed by `sigma info --hooks`. To add one, write a file such as this in hooks_ready/, and name its
 * row in the list of hooks_ready/rows.c:
 *
 *     #include "hooks/hook_text.h"
 *
 *     // The hook's own data, its self: here one number.
 *     static sgm_status share_scaled(void *self, sgm_hook_call *call)
 *     {
 *         double loss;
 *         SGM_TRY(sgm_hook_number(call, "training.loss", &loss));
 *         return sgm_hook_share(call, "scaled_loss", sgm_number_content(loss * *(double *)self));
 *     }
 *
 *     static bool is_equal(const void *a, const void *b)
 *     {
 *         return *(const double *)a == *(const double *)b;
 *     }
 *
 *     static const sgm_hook_type type = {.api = SGM_HOOK_API, .name = "scaled_loss", .invoke = share_scaled,
 *                                        .equal = is_equal, .free = sgm__free};
 *
 *     static sgm_hook *create(const sgm__call *call, sgm_time_step when)
 *     {
 *         static const char *const reads[] = {"training.loss", NULL};
 *         double *factor = sgm__alloc(sizeof *factor);
 *         if (factor == NULL)
 *             return NULL;
 *         *factor = sgm__call_number(call, "factor");
 *         return sgm_hook_create(&type, factor, .when = when, .reads = reads);
 *     }
 *
 *     const sgm__hook_row sgm__scaled_loss_row = {
 *         .name = "scaled_loss",
 *         .doc = "the loss times a factor, as shared.scaled_loss",
 *         .when = {SGM_EPOCH, 1, 0}, // as sgm_every(1, SGM_EPOCH)
 *         .arguments = {{"factor", SGM_KIND_NUMBER, .default_value = 100, .doc = "of the loss"}},
 *         .create = create,
 *     };
 *
 * What a hook can do (requiring others, states for checkpoints, requests) is in include/sigma/hooks.h; what
 * it may ask of its trainer beside the registry is in trainer/view.h and train/measure.h.
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
    bool global;         /* it cannot be local: its type has `only_global` */
    const char *example; /* a text that can be parsed; NULL: its name alone can */
} sgm__hook_row;

/* The rows of the library and then those of programs (hook_register.c); NULL: past the last. */
const sgm__hook_row *sgm__hook_row_at(size_t index);
/* Adds a copy of a row, whose texts stay. *is_new: false if a row with this `source`, a table of a program's,
 * is there already, in which case nothing is done. A name that another row has is refused. */
sgm_status sgm__hook_row_add(const sgm__hook_row *row, const void *source, bool *is_new);
/* The `source` of the row of this name; NULL: it is the library's. */
const void *sgm__hook_row_source(const char *name);

/* check() of a text with values in braces: fails for an identifier that would have to exist before the first
 * iteration, and does not (hooks_ready/stop_save.c). */
sgm_status sgm__hook_check_braces(const char *text, sgm_hook_call *call);

/* The table of all ready-made hooks: hooks_ready/rows.c, which stands above its reader. */
extern const sgm__hook_row *const sgm__hook_rows[];
extern const size_t sgm__hook_row_count;
/* What reads a text that is a rule, not a hook with arguments. */
extern sgm_hook *(*const sgm__hook_read_rule)(const char *text);

#endif
