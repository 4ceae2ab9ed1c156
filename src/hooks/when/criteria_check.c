/* Checks criteria: whether they fire now, given a function that looks up values; and the two ways to steer
 * `external` ones from outside.
 *
 * One check (sgm_criteria_check) is made by the engine whenever a hook is due, on the thread that runs the
 * hook. It walks the tree from left to right, no further than needed, and updates the memory of the nodes
 * that it reaches. A value that is missing makes a third result, NEITHER: no memory changes, nothing
 * fires, and `not` does not turn it into a yes. NaN is a value; comparisons with it do not hold. Only
 * toggle and hold may come from other threads meanwhile: they touch nothing but the atomic `external`. */
#include "hooks/when/criteria.h"

/* NEITHER: a value was missing. */
typedef enum answer { NO, YES, NEITHER } answer;

/* One check of a tree. `missing` becomes the first identifier without a value. */
typedef struct check {
    sgm_lookup_function lookup;
    void *user;
    const char *missing;
} check;

/* All comparisons with NaN are false, as C has them. */
static bool compares(sgm_comparison comparison, double a, double b)
{
    switch (comparison) {
    case SGM_ABOVE:
        return a > b;
    case SGM_AT_LEAST:
        return a >= b;
    case SGM_EQUAL_TO:
        return a == b;
    case SGM_AT_MOST:
        return a <= b;
    case SGM_BELOW:
        return a < b;
    }
    return false;
}

/* --- criteria of one value --- */

/* With `edge` (`becomes > 5`) it fires only when the last check did not hold; a first check that holds
 * fires. */
static bool check_threshold(sgm_criteria *node, double value)
{
    bool holds = compares(node->comparison, value, node->value);
    bool fires = holds && !(node->flag && node->memory[SGM__MEMORY_FLAG] != 0);
    if (node->flag)
        node->memory[SGM__MEMORY_FLAG] = holds;
    return fires;
}

/* Strictly beyond: an equal value is no new extremum. False for NaN. */
static bool is_beyond(const sgm_criteria *node, double value, double other)
{
    return node->extremum == SGM_MAXIMUM ? value > other : value < other;
}

/* Whether `value` is beyond all before it; remembers it then. The first value always is. NaN never is:
 * value == value is false for it. `seen` is the place of the flag, which differs between kinds. */
static bool is_new_extremum(sgm_criteria *node, double value, size_t seen)
{
    bool is_new =
        node->memory[seen] != 0 ? is_beyond(node, value, node->memory[SGM__MEMORY_VALUE]) : value == value;
    if (is_new) {
        node->memory[seen] = 1;
        node->memory[SGM__MEMORY_VALUE] = value;
    }
    return is_new;
}

/* Against the value of the check before. NaN is passed over: the next value is compared with the one
 * before the NaN. */
static bool check_change(sgm_criteria *node, double value)
{
    bool seen = node->memory[SGM__MEMORY_FLAG] != 0;
    bool fires = seen && is_beyond(node, value, node->memory[SGM__MEMORY_VALUE]);
    if (value == value) {
        node->memory[SGM__MEMORY_FLAG] = 1;
        node->memory[SGM__MEMORY_VALUE] = value;
    }
    return fires;
}

/* Fires once in its life: the flag stays until a reset. */
static bool check_reaches(sgm_criteria *node, double value)
{
    bool fires =
        node->memory[SGM__MEMORY_FLAG] == 0 && (value == node->value || is_beyond(node, value, node->value));
    if (fires)
        node->memory[SGM__MEMORY_FLAG] = 1;
    return fires;
}

/* Counts one more; true at the count-th time, from where it counts anew. So `repeated 3 times` fires at
 * the 3rd, 6th, 9th time. */
static bool counts_out(sgm_criteria *node)
{
    double count = node->memory[SGM__MEMORY_COUNT] + 1;
    bool out = count >= (double)node->count;
    node->memory[SGM__MEMORY_COUNT] = out ? 0 : count;
    return out;
}

/* A new extremum begins the count anew; NaN counts as a check without one. */
static bool check_stalls(sgm_criteria *node, double value)
{
    if (!is_new_extremum(node, value, SGM__MEMORY_SEEN))
        return counts_out(node);
    node->memory[SGM__MEMORY_COUNT] = 0;
    return false;
}

/* One check of a leaf; the kinds with parts do not come here. */
static bool check_value(sgm_criteria *node, double value)
{
    switch (node->kind) {
    case SGM__CRITERIA_THRESHOLD:
        return check_threshold(node, value);
    case SGM__CRITERIA_EXTREMUM:
        return is_new_extremum(node, value, SGM__MEMORY_FLAG);
    case SGM__CRITERIA_CHANGE:
        return check_change(node, value);
    case SGM__CRITERIA_REACHES:
        return check_reaches(node, value);
    default:
        return check_stalls(node, value);
    }
}

/* --- trees --- */

static sgm_status check_node(check *c, sgm_criteria *node, answer *result);

/* Looks the value up. Only a missing one makes NEITHER; other failures of the lookup end the whole check. */
static sgm_status check_leaf(check *c, sgm_criteria *node, answer *result)
{
    double value = 0;
    sgm_status status = c->lookup(c->user, node->identifier, &value);
    if (status == SGM_ERROR_NOT_FOUND) {
        if (c->missing == NULL)
            c->missing = node->identifier;
        *result = NEITHER;
        return SGM_OK;
    }
    SGM_TRY(status);
    *result = check_value(node, value) ? YES : NO;
    return SGM_OK;
}

/* In a row, a check at which the part does not fire sets the count back to 0; a missing value leaves it. */
static sgm_status check_repeated(check *c, sgm_criteria *node, answer *result)
{
    SGM_TRY(check_node(c, node->parts[0], result));
    if (*result == YES)
        *result = counts_out(node) ? YES : NO;
    else if (*result == NO && node->flag)
        node->memory[SGM__MEMORY_COUNT] = 0;
    return SGM_OK;
}

/* From left to right until a part is not YES; parts behind are not checked, and their memory stays.
 * NEITHER in front of a NO gives NEITHER, which does not fire either. */
static sgm_status check_and(check *c, sgm_criteria *node, answer *result)
{
    *result = YES;
    for (size_t i = 0; i < node->part_count && *result == YES; i++)
        SGM_TRY(check_node(c, node->parts[i], result));
    return SGM_OK;
}

/* From left to right until a part is YES. Without one, NEITHER of any part makes the whole NEITHER: its
 * `not` must not fire. */
static sgm_status check_or(check *c, sgm_criteria *node, answer *result)
{
    answer all = NO, one = NO;
    for (size_t i = 0; i < node->part_count && one != YES; i++) {
        SGM_TRY(check_node(c, node->parts[i], &one));
        all = one == NO ? all : one;
    }
    *result = all;
    return SGM_OK;
}

/* Takes one of the checks that hold() has allowed, without a lock: a hold from another thread at this
 * moment is not lost. */
static answer check_external(sgm_criteria *node)
{
    int64_t state = atomic_load(&node->external);
    while (state > 0 && !atomic_compare_exchange_weak(&node->external, &state, state - 1)) {
    }
    return state > 0 || state == SGM__EXTERNAL_ON ? YES : NO;
}

/* The depth of the recursion is bounded by SGM__CRITERIA_DEEPEST. */
static sgm_status check_node(check *c, sgm_criteria *node, answer *result)
{
    switch (node->kind) {
    case SGM__CRITERIA_REPEATED:
        return check_repeated(c, node, result);
    case SGM__CRITERIA_AND:
        return check_and(c, node, result);
    case SGM__CRITERIA_OR:
        return check_or(c, node, result);
    case SGM__CRITERIA_NOT:
        SGM_TRY(check_node(c, node->parts[0], result));
        *result = *result == NEITHER ? NEITHER : *result == YES ? NO : YES;
        return SGM_OK;
    case SGM__CRITERIA_EXTERNAL:
        *result = check_external(node);
        return SGM_OK;
    default:
        return check_leaf(c, node, result);
    }
}

/* A missing value is no failure: it is reported through *missing, and the criteria do not fire. */
sgm_status sgm_criteria_check(sgm_criteria *criteria, sgm_lookup_function lookup, void *user, bool *fires,
                              const char **missing)
{
    check c = {lookup, user, NULL};
    answer result = NO;
    *fires = false;
    if (missing != NULL)
        *missing = NULL;
    if (criteria == NULL || lookup == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a check needs criteria and a function that gives values");
    SGM_TRY(check_node(&c, criteria, &result));
    *fires = result == YES;
    if (missing != NULL)
        *missing = c.missing;
    return SGM_OK;
}

/* --- from outside --- */

/* On becomes off for good, anything else becomes on for good. */
static void toggle(_Atomic int64_t *external)
{
    int64_t state = atomic_load(external);
    while (!atomic_compare_exchange_weak(external, &state,
                                         state == SGM__EXTERNAL_ON ? SGM__EXTERNAL_OFF : SGM__EXTERNAL_ON)) {
    }
}

/* Allows one more check, unless someone has toggled. */
static void hold(_Atomic int64_t *external)
{
    int64_t state = atomic_load(external);
    while (state >= 0 && state < SGM__PHRASE_MAXIMUM_COUNT &&
           !atomic_compare_exchange_weak(external, &state, state + 1)) {
    }
}

/* Changes all external parts of that name; returns how many there were. */
static size_t for_externals(sgm_criteria *node, const char *name, void (*change)(_Atomic int64_t *))
{
    size_t found = 0;
    if (node->kind == SGM__CRITERIA_EXTERNAL && strcmp(node->identifier, name) == 0) {
        change(&node->external);
        found = 1;
    }
    for (size_t i = 0; i < node->part_count; i++)
        found += for_externals(node->parts[i], name, change);
    return found;
}

static sgm_status change_externals(sgm_criteria *criteria, const char *name,
                                   void (*change)(_Atomic int64_t *))
{
    if (criteria != NULL && name != NULL && for_externals(criteria, name, change) > 0)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_NOT_FOUND, "these criteria have no part external \"%.80s\"",
                    name != NULL ? name : "");
}

sgm_status sgm_criteria_toggle(sgm_criteria *criteria, const char *name)
{
    return change_externals(criteria, name, toggle);
}

sgm_status sgm_criteria_hold(sgm_criteria *criteria, const char *name)
{
    return change_externals(criteria, name, hold);
}
