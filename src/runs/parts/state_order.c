/* The order in which checkpoints have states: parameters as the network has them, then all others by name.
 *
 * That in which a session got them depends on where its process began, and on what was frozen then; equal
 * trainings are to have equal checkpoints. */
#include "network/rerecord.h"
#include "runs/parts/parts.h"

#include <stdlib.h>

typedef struct ordered_state {
    const char *name;
    size_t place; /* of a parameter, from 0; SIZE_MAX: it is none */
} ordered_state;

static int compare(const void *a, const void *b)
{
    const ordered_state *one = a, *other = b;
    if (one->place != other->place)
        return one->place < other->place ? -1 : 1;
    return strcmp(one->name, other->name);
}

static void sort(const sgm__learner *learner, ordered_state *states, const char **names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *name = sgm_session_state_at(learner->session, i);
        bool is_parameter = sgm__network_parameter(learner->network, name) != NULL;
        states[i] = (ordered_state){name, is_parameter ? i : SIZE_MAX};
    }
    qsort(states, count, sizeof *states, compare);
    for (size_t i = 0; i < count; i++)
        names[i] = states[i].name;
}

const char **sgm__state_order(const sgm_trainer *trainer, size_t *count)
{
    const sgm__learner *learner = sgm__learner_of(trainer);
    for (*count = 0; sgm_session_state_at(learner->session, *count) != NULL;)
        ++*count;
    ordered_state *states = sgm__calloc(*count + 1, sizeof *states);
    const char **names = sgm__calloc(*count + 1, sizeof *names);
    if (states != NULL && names != NULL) {
        sort(learner, states, names, *count);
    } else {
        sgm__free(names);
        names = NULL;
    }
    sgm__free(states);
    return names;
}
