/* What criteria are made of. Internal. */
#ifndef SGM_HOOKS_WHEN_CRITERIA_H
#define SGM_HOOKS_WHEN_CRITERIA_H

#include "text/phrase.h"
#include <sigma/criteria.h>
#include <stdatomic.h>

typedef enum sgm__criteria_kind {
    SGM__CRITERIA_THRESHOLD,
    SGM__CRITERIA_EXTREMUM,
    SGM__CRITERIA_CHANGE, /* extremum: maximum increases, minimum decreases */
    SGM__CRITERIA_REACHES,
    SGM__CRITERIA_STALLS,
    SGM__CRITERIA_REPEATED,
    SGM__CRITERIA_AND,
    SGM__CRITERIA_OR,
    SGM__CRITERIA_NOT,
    SGM__CRITERIA_EXTERNAL
} sgm__criteria_kind;

/* What is remembered: places in `memory`. */
enum {
    SGM__MEMORY_COUNT = 0, /* repeated, stalls: so far; 0 to count - 1 */
    SGM__MEMORY_FLAG =
        0, /* threshold: held at the last check; reaches: was there; extremum, change: has a value */
    SGM__MEMORY_VALUE = 1, /* extremum: best; change: last; stalls: best */
    SGM__MEMORY_SEEN = 2,  /* stalls: has a value */
    SGM__MEMORY_SIZE = 3
};
/* Of an external one: how many checks it lets fire, or one of these. */
#define SGM__EXTERNAL_OFF (-1)
#define SGM__EXTERNAL_ON (-2)

#define SGM__CRITERIA_DEEPEST 32
#define SGM__CRITERIA_MAXIMUM_NODES 128

struct sgm_criteria {
    sgm__criteria_kind kind;
    char *identifier; /* external: its name */
    sgm_comparison comparison;
    sgm_extremum extremum;
    bool flag; /* threshold: edge; repeated: in a row */
    double value;
    int64_t count; /* repeated, stalls */
    sgm_criteria **parts;
    size_t part_count;
    unsigned depth;
    size_t nodes;
    double memory[SGM__MEMORY_SIZE];
    _Atomic int64_t external;
};

/* --- time.c --- */
bool sgm__phrase_scale(sgm__phrase *phrase, sgm_time_scale *scale); /* takes "epoch", "epochs", ... */
bool sgm__phrase_is_step(const sgm__phrase *phrase);                /* "every", "after" or "at" */
sgm_status sgm__phrase_step(sgm__phrase *phrase, sgm_time_step *step);
void sgm__append_step(sgm__text *text, const sgm_time_step *step);

/* --- criteria_text.c --- */
/* Reads criteria up to a token that does not belong to them. `*step_known` false: units of time fill in
 * `step`. */
sgm_status sgm__criteria_read(sgm__phrase *phrase, sgm_time_step *step, bool *step_known,
                              sgm_criteria **criteria);
void sgm__append_criteria(sgm__text *text, const sgm_criteria *criteria, const sgm_time_step *step);

#endif
