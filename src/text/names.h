/* Names that people know from other programs: PyTorch, Keras, scikit-learn, Optax. Internal.
 *
 * Everything here has one name, which documents speak of. What is not known by its name may stand in the one
 * table of this file (names_table.c): a name that can mean one thing only is taken for it, and a note says so
 * once; one that would do something else than where it comes from (another order of arguments, other
 * defaults) is refused with a hint at what to write. Each place that looks a name up asks here when it has
 * found nothing:
 *
 *     const char *real = sgm__name_real(SGM__NAME_OPTIMISER, name, names, count, NULL);
 *     if (real == NULL)
 *         sgm_fail(..., "unknown optimiser '%s'%s", name,
 *                  sgm__name_hint(SGM__NAME_OPTIMISER, name, names, count, hint));
 *
 * What is kept (configurations, checkpoints) has the real name. */
#ifndef SGM_TEXT_NAMES_H
#define SGM_TEXT_NAMES_H

#include "base/base.h"

/* What a name is of: the same word may mean one thing as a layer and another as a metric. */
typedef enum sgm__name_kind {
    SGM__NAME_LAYER,
    SGM__NAME_ACTIVATION,
    SGM__NAME_ARGUMENT, /* of a layer, or of a call such as a hook */
    SGM__NAME_OPTIMISER,
    SGM__NAME_CHOICE, /* a word of several: kinds of schedules, types of numbers */
    SGM__NAME_INITIALISER,
    SGM__NAME_MODIFIER,
    SGM__NAME_METRIC,
    SGM__NAME_HOOK,
    SGM__NAME_AUGMENTATION,
    SGM__NAME_HANDLER,
    SGM__NAME_KEY,   /* of a configuration: its whole path, "data.batch" */
    SGM__NAME_VALUE, /* an identifier of a trainer's registry, "validation.loss" */
    SGM__NAME_COMMAND
} sgm__name_kind;

typedef struct sgm__name_row {
    sgm__name_kind kind;
    /* Words with spaces between; letters of either case, '_' and '-' make no difference. */
    const char *typed;
    const char *real;   /* NULL: there is no such thing, and `advice` says what there is instead */
    const char *advice; /* what to write; NULL: the real name alone says enough */
    bool near;          /* not the same: only for a hint */
    /* How many numbers without names may be given to what is called so, plus 1: behind them another program
     * has other arguments. 0: any. */
    int numbers;
} sgm__name_row;

/* The rows; NULL: past the last. */
const sgm__name_row *sgm__name_row_at(size_t index);
/* Whether the row has this word. */
bool sgm__name_row_says(const sgm__name_row *row, const char *word);
/* The one of `names` (NULL among them are passed over) that `word` can only mean, which is noted; NULL: none.
 * *row becomes the row that says so, NULL if the word only is spelled otherwise; `row` NULL: not wanted. */
const char *sgm__name_real(sgm__name_kind kind, const char *word, const char *const *names, size_t count,
                           const sgm__name_row **row);
/* Says once that `word` is called `real` here. */
void sgm__name_note(const char *word, const char *real);

/* Whether the table has the word at all. */
bool sgm__name_is_known(sgm__name_kind kind, const char *word);
/* The identifier that a word of another program means; NULL: none. Nothing is noted. */
const char *sgm__name_value(const char *word);

/* What was taken for something else, for who keeps the text that it stood in. */
typedef struct sgm__names_replaced {
    struct sgm__names_replaced *outer;
    size_t count;
    struct {
        char word[64], real[80];
    } items[16];
} sgm__names_replaced;
/* Between the two, what this thread notes also goes into *replaced, and at the end to whom the thread
 * collects for beyond that. */
void sgm__names_begin(sgm__names_replaced *replaced);
void sgm__names_end(sgm__names_replaced *replaced);
/* Notes a word that is read as an identifier, if somebody collects and it means another one: whether it does
 * so in a registry is not known before it is looked up there. */
void sgm__name_note_value(const char *word);
/* The text with the real names in place of these words; sgm__free. */
char *sgm__names_replace(const char *text, const sgm__names_replaced *replaced);

/* Of a hint, with the 0 at its end. */
#define SGM__NAME_HINT 300
/* The end of a message about a name that is not known: " (did you mean 'dense'?)", by what it means elsewhere
 * or else by its spelling; ": " and what to write; "" if nothing is near. Returns `hint`. */
char *sgm__name_hint(sgm__name_kind kind, const char *word, const char *const *names, size_t count,
                     char hint[SGM__NAME_HINT]);

#endif
