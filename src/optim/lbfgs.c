/* L-BFGS (Liu and Nocedal, 1989): the gradients of all parameters together are multiplied by an approximation
 * of the inverse of the matrix of their second derivatives. The approximation is made from the last steps and
 * from what each changed of the gradient, by a recursion of two loops (Nocedal, 1980). There is one step for
 * each gradient, of the length that the learning rate says: no search along the line.
 *
 * In the formulas g is the gradient, s a step, y the difference of the gradients behind and before that step,
 * and s'y the dot product over all parameters. A pair is kept as s / sqrt(s'y) and y / sqrt(s'y), so that 1 /
 * s'y appears in neither loop; a pair of zeros, as all are at first, changes nothing in them. Slot k has the
 * pair that is k steps old, and pairs move on by one slot when a pair is added, so that the order in which
 * they are read is known when the step is recorded.
 *
 * optimiser.c calls sgm__prepare_lbfgs once for all parameters; it replaces the gradients by steps, which
 * sgm__update_lbfgs adds. */
#include "optim/updates.h"

#include <stdio.h>

/* A pair whose s'y is not above this is not kept: H would not stay positive definite. */
#define MINIMUM_CURVATURE 1e-10
/* No step is made where g'd, the slope of the loss along the direction d, is above minus this. */
#define MINIMUM_DESCENT 1e-9

/* What is recorded of one update. The arrays of `count` values belong together, parameter by parameter. */
typedef struct search {
    sgm_graph *graph;
    sgm_update_call *calls;
    size_t count; /* parameters */
    size_t pairs;
    sgm_value *direction;       /* -H g; `count` values, one for each parameter, as the next two arrays */
    sgm_value *before;          /* slots with the gradient of the update before */
    sgm_value *taken;           /* slots with the step of the update before */
    sgm_value *steps, *changes; /* the pairs, from the newest on: pairs * count values each */
    sgm_value active;           /* boolean: an element of the gradient is above the tolerance */
} search;

static sgm_value number(const search *s, double value)
{
    return sgm_number(s->graph, value);
}

/* a'b over all elements of all parameters, of rank 0. */
static sgm_value dot(const search *s, const sgm_value *a, const sgm_value *b)
{
    sgm_value sum = sgm_sum(s->graph, sgm_multiply(s->graph, a[0], b[0]));
    for (size_t i = 1; i < s->count; i++)
        sum = sgm_add(s->graph, sum, sgm_sum(s->graph, sgm_multiply(s->graph, a[i], b[i])));
    return sum;
}

/* a += factor b, for all parameters. */
static void add(const search *s, sgm_value *a, sgm_value factor, const sgm_value *b)
{
    for (size_t i = 0; i < s->count; i++)
        a[i] = sgm_add(s->graph, a[i], sgm_multiply(s->graph, b[i], factor));
}

/* The sum of the absolute values of all elements of the gradient. */
static sgm_value size_of_gradient(const search *s)
{
    sgm_value sum = {-1};
    for (size_t i = 0; i < s->count; i++) {
        sgm_value part = sgm_sum(s->graph, sgm_absolute(s->graph, s->calls[i].gradient));
        sum = i == 0 ? part : sgm_add(s->graph, sum, part);
    }
    return sum;
}

/* Whether the absolute value of an element of the gradient is above the tolerance. NaN counts as above, so
 * that it reaches the parameters and is noticed. */
static sgm_value find_active(const search *s)
{
    sgm_value tolerance = number(s, s->calls[0].options->tolerance), any = {-1};
    for (size_t i = 0; i < s->count; i++) {
        sgm_value size = sgm_absolute(s->graph, s->calls[i].gradient);
        sgm_value largest = sgm_reduce_max(s->graph, size, NULL, 0, false);
        sgm_value above = sgm_logical_not(s->graph, sgm_less_equal(s->graph, largest, tolerance));
        any = i == 0 ? above : sgm_logical_or(s->graph, any, above);
    }
    return any;
}

/* The slot "step_K" or "change_K" of parameter i. */
static sgm_value pair_slot(const search *s, const char *what, size_t k, size_t i)
{
    char name[32];
    snprintf(name, sizeof name, "%s_%zu", what, k);
    return sgm_optimiser_slot(&s->calls[i], name);
}

/* Puts the pair of the last step before the others, if its curvature s'y is large enough, and fills in
 * `steps` and `changes` with the pairs that count for this update. Otherwise all pairs stay in their slots.
 * The factor 1 / sqrt(s'y) is taken of 1 where s'y is not used, so that no NaN arises in the branch that is
 * not selected. */
static void remember(const search *s)
{
    sgm_graph *graph = s->graph;
    sgm_value *change = s->direction; /* that array is free until find_direction */
    for (size_t i = 0; i < s->count; i++)
        change[i] = sgm_subtract(graph, s->calls[i].gradient, s->before[i]);
    sgm_value curvature = dot(s, change, s->taken);
    sgm_value add_it =
        sgm_logical_and(graph, s->active, sgm_greater(graph, curvature, number(s, MINIMUM_CURVATURE)));
    sgm_value one = sgm_filled_like(graph, curvature, 1);
    sgm_value factor =
        sgm_divide(graph, one, sgm_square_root(graph, sgm_select(graph, add_it, curvature, one)));
    for (size_t i = 0; i < s->count; i++) {
        sgm_value step = sgm_multiply(graph, s->taken[i], factor);
        sgm_value difference = sgm_multiply(graph, change[i], factor);
        for (size_t k = 0; k < s->pairs; k++) {
            sgm_value old_step = pair_slot(s, "step", k, i), old_change = pair_slot(s, "change", k, i);
            sgm_value *now_step = &s->steps[k * s->count + i], *now_change = &s->changes[k * s->count + i];
            *now_step = sgm_select(graph, add_it, step, old_step);
            *now_change = sgm_select(graph, add_it, difference, old_change);
            sgm_assign(graph, old_step, *now_step);
            sgm_assign(graph, old_change, *now_change);
            step = old_step;
            difference = old_change;
        }
    }
}

/* The direction -H g by the two loops over all pairs: from the newest to the oldest, and back. */
static sgm_status find_direction(const search *s)
{
    sgm_graph *graph = s->graph;
    sgm_value *shares = sgm__calloc(s->pairs, sizeof *shares);
    if (shares == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < s->count; i++)
        s->direction[i] = sgm_negate(graph, s->calls[i].gradient);
    for (size_t k = 0; k < s->pairs; k++) {
        shares[k] = dot(s, s->steps + k * s->count, s->direction);
        add(s, s->direction, sgm_negate(graph, shares[k]), s->changes + k * s->count);
    }
    /* s'y / y'y of the newest pair: how long a step is in the directions that no pair knows */
    sgm_value squares = dot(s, s->changes, s->changes), one = sgm_filled_like(graph, squares, 1);
    sgm_value known = sgm_greater(graph, squares, number(s, 0));
    sgm_value length = sgm_divide(graph, one, sgm_select(graph, known, squares, one));
    for (size_t i = 0; i < s->count; i++)
        s->direction[i] = sgm_multiply(graph, s->direction[i], length);
    for (size_t k = s->pairs; k-- > 0;) {
        sgm_value share = dot(s, s->changes + k * s->count, s->direction);
        add(s, s->direction, sgm_subtract(graph, shares[k], share), s->steps + k * s->count);
    }
    sgm__free(shares);
    return SGM_OK;
}

/* Replaces the gradients by the steps: rate times direction, or zeros where the direction does not descend or
 * the gradient is below the tolerance. For the very first step no pair says how long it should be: it is
 * multiplied by min(1, 1 / sum of |g|). The last gradient and step are kept for the next update. */
static void step(const search *s)
{
    sgm_graph *graph = s->graph;
    sgm_value length = size_of_gradient(s), one = sgm_filled_like(graph, length, 1);
    sgm_value is_first = sgm_equal(graph, dot(s, s->before, s->before), number(s, 0));
    sgm_value first = sgm_divide(graph, one, sgm_maximum(graph, length, one));
    sgm_value rate = sgm_multiply(graph, sgm_select(graph, is_first, first, one), s->calls[0].learning_rate);
    for (size_t i = 0; i < s->count; i++)
        s->steps[i] = s->calls[i].gradient;
    sgm_value slope = dot(s, s->steps, s->direction);
    sgm_value stays = sgm_greater(graph, slope, number(s, -MINIMUM_DESCENT));
    for (size_t i = 0; i < s->count; i++) {
        sgm_value zeros = sgm_filled_like(graph, s->taken[i], 0);
        sgm_value moved = sgm_multiply(graph, s->direction[i], rate);
        moved = sgm_select(graph, stays, zeros, moved);
        sgm_assign(graph, s->before[i], sgm_select(graph, s->active, s->calls[i].gradient, s->before[i]));
        sgm_assign(graph, s->taken[i], sgm_select(graph, s->active, moved, s->taken[i]));
        s->calls[i].gradient = sgm_select(graph, s->active, moved, zeros);
    }
}

void sgm__prepare_lbfgs(sgm_update_call *calls, size_t count)
{
    size_t pairs = (size_t)calls->options->history;
    search s = {.graph = calls->graph, .calls = calls, .count = count, .pairs = pairs};
    s.direction = sgm__calloc(count, (3 + 2 * pairs) * sizeof(sgm_value));
    if (s.direction == NULL) {
        sgm_graph_fail(s.graph, SGM_ERROR_MEMORY, "no memory to record the steps of lbfgs");
        return;
    }
    s.before = s.direction + count;
    s.taken = s.before + count;
    s.steps = s.taken + count;
    s.changes = s.steps + pairs * count;
    for (size_t i = 0; i < count; i++) {
        s.before[i] = sgm_optimiser_slot(&calls[i], "gradient");
        s.taken[i] = sgm_optimiser_slot(&calls[i], "step");
    }
    s.active = find_active(&s);
    remember(&s);
    if (find_direction(&s) == SGM_OK)
        step(&s);
    else
        sgm_graph_fail(s.graph, SGM_ERROR_MEMORY, "no memory to record the steps of lbfgs");
    sgm__free(s.direction);
}

sgm_value sgm__update_lbfgs(const sgm_update_call *call)
{
    return sgm_add(call->graph, call->parameter, call->gradient);
}
