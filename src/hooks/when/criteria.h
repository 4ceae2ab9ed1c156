/* The tree that criteria are made of, and what the files of this folder share with the readers of hooks.
 * Internal.
 *
 * criteria.c builds, copies and compares trees and saves their memory; criteria_check.c checks them;
 * criteria_text.c reads and writes them; time.c has time steps and rule.c whole rules. */
#ifndef SGM_HOOKS_WHEN_CRITERIA_H
#define SGM_HOOKS_WHEN_CRITERIA_H

#include "text/phrase.h"
#include <sigma/rules.h>
#include <stdatomic.h>

/* Leaves compare one value, found by its identifier; the others have parts. An external criterion has
 * neither. */
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

/* What is remembered from check to check: places in `memory`. Doubles, since the memory goes into
 * checkpoints, which hold numbers; counts stay below 2^53 and are exact. */
enum {
    SGM__MEMORY_COUNT = 0, /* repeated, stalls: so far; 0 to count - 1 */
    SGM__MEMORY_FLAG =
        0, /* threshold: held at the last check; reaches: was there; extremum, change: has a value */
    SGM__MEMORY_VALUE = 1, /* extremum: best; change: last; stalls: best */
    SGM__MEMORY_SEEN = 2,  /* stalls: has a value */
    SGM__MEMORY_SIZE = 3
};
/* Values of `external`: a number of checks from 0 that may still fire (hold), or switched off or on for
 * good (toggle). */
#define SGM__EXTERNAL_OFF (-1)
#define SGM__EXTERNAL_ON (-2)

/* Bounds of a tree: all functions over it are recursive, and criteria come from texts of strangers. */
#define SGM__CRITERIA_DEEPEST 32
#define SGM__CRITERIA_MAXIMUM_NODES 128

/* A node with all that is below it. Which members count depends on `kind`; the others are 0, so that equal
 * trees can be compared member by member. */
struct sgm_criteria {
    sgm__criteria_kind kind;
    char *identifier; /* external: its name */
    sgm_comparison comparison;
    sgm_extremum extremum;
    bool flag; /* threshold: edge; repeated: in a row */
    double value;
    int64_t count;        /* repeated, stalls */
    sgm_criteria **parts; /* belong to this node; not and repeated have one, and and or two or more */
    size_t part_count;
    unsigned depth; /* of the tree, 1: a leaf */
    size_t nodes;   /* of the tree, this one included */
    double memory[SGM__MEMORY_SIZE];
    _Atomic int64_t external; /* any thread may change it while another checks */
};

/* --- time.c --- */
bool sgm__phrase_scale(sgm__phrase *phrase, sgm_time_scale *scale); /* takes "epoch", "epochs", ... */
bool sgm__phrase_is_step(const sgm__phrase *phrase);                /* "every", "after" or "at" */
sgm_status sgm__phrase_step(sgm__phrase *phrase, sgm_time_step *step);
void sgm__append_step(sgm__text *text, const sgm_time_step *step);

/* --- rule.c --- */
bool sgm__phrase_take_action(sgm__phrase *phrase); /* takes "stop", "save" and so on */

/* --- criteria_text.c --- */
/* Reads criteria up to a token that does not belong to them. `*step_known` false: units of time fill in
 * `step`. */
sgm_status sgm__criteria_read(sgm__phrase *phrase, sgm_time_step *step, bool *step_known,
                              sgm_criteria **criteria);
/* `step` says when the criteria are checked, so that `stalls` is written in its unit; NULL: in times. */
void sgm__append_criteria(sgm__text *text, const sgm_criteria *criteria, const sgm_time_step *step);

#endif
