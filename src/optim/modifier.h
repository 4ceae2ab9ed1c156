/* Modifiers and initialisers as the trainer uses them. Internal. */
#ifndef SGM_OPTIM_MODIFIER_H
#define SGM_OPTIM_MODIFIER_H

#include "base/base.h"
#include "text/described.h"
#include <sigma/training.h>

sgm_initialiser *sgm__initialiser_copy(const sgm_initialiser *initialiser); /* NULL: no memory */
sgm_modifier *sgm__modifier_copy(const sgm_modifier *modifier);             /* the same */

typedef struct sgm__modifier_rule {
    char *pattern;
    sgm_modifier *modifier;
} sgm__modifier_rule;

/* What the rules make of `value`, a parameter's new one. */
sgm_value sgm__modifiers_record(const sgm__modifier_rule *rules, size_t count, sgm_graph *graph,
                                const char *parameter, sgm_value value);
/* Whether both do the same; a program's own ones if function and user are. */
bool sgm__modifier_equal(const sgm_modifier *a, const sgm_modifier *b);

/* For `sigma info`: the types that a text can name, and the kinds of schedules; false: past the last. */
bool sgm__initialiser_describe(size_t index, sgm__described *described);
bool sgm__modifier_describe(size_t index, sgm__described *described);
bool sgm__schedule_describe(size_t index, sgm__described *described);

#endif
