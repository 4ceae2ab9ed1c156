/* Modifiers as the trainer uses them. Internal. */
#ifndef SGM_TRAINING_MODIFIER_H
#define SGM_TRAINING_MODIFIER_H

#include "base/base.h"
#include <sigma/training.h>

typedef struct sgm__modifier_rule {
    char *pattern;
    sgm_modifier *modifier;
} sgm__modifier_rule;

/* What the rules make of `value`, a parameter's new one. */
sgm_value sgm__modifiers_record(const sgm__modifier_rule *rules, size_t count, sgm_graph *graph,
                                const char *parameter, sgm_value value);
/* Whether both do the same; a program's own ones if function and user are. */
bool sgm__modifier_equal(const sgm_modifier *a, const sgm_modifier *b);

#endif
