/* Joins the terms of long sums, as autodiff makes them where a value is used many times: a pass of the
 * planner.
 *
 * Terms that are zeros around a part each (the gradients of slices, operation `pad`) become one concatenation
 * of the parts. Products of matrices become one product: A1 B1 + A2 B2 = (A1 A2) (B1 above B2), where (A1 A2)
 * stands side by side. So the gradient of weights that are used at each step of a sequence, or of 64 slices
 * of one value, is computed in one go instead of by adding arrays of full size. Terms are added in another
 * order then, so the last bits differ from those of the graph as recorded. The memory planner
 * (src/handlers/plan/plan_buffers.c) later makes the parts directly in the memory of the concatenation.
 *
 * A sum is a tree of additions whose inner nodes have no other reader. rebuild_sum finds each root, collect
 * lists its terms, join records the sum anew: the concatenations, the product, and what could not be joined.
 */
#include "graph/passes.h"
#include "graph/rebuild.h"
#include "ops/ops.h"

#include <stdlib.h>

#define MAXIMUM_PARTS 30000 /* operands of one concatenation, and terms of a sum that is looked at */

/* A term of the sum at hand. */
typedef struct term {
    int32_t value;    /* in the old graph */
    int64_t position; /* the key of sorting: where a padded part begins, or where a product's factor lies */
    int32_t number;   /* from left to right, to keep the order of equal positions */
    bool done;        /* joined already */
} term;

/* The state of the pass. Arrays indexed by value refer to the old graph; the lists are reused from sum to
 * sum. */
typedef struct summing {
    sgm__rebuild *work;
    const sgm_graph *graph; /* the old one */
    int32_t *uses;          /* by value: readers, outputs and assignments */
    bool *inner;            /* by value: an addition whose only reader is an addition */
    /* By value: the last concatenation that has the value as an operand, and as which; -1: none. */
    int32_t *joined, *joined_place;
    term *terms;
    size_t count, capacity;
    int32_t *stack;
    size_t stack_capacity;
    sgm_value *parts; /* operands of the concatenation at hand */
    size_t part_capacity;
} summing;

static const sgm__instruction *at(const summing *s, int32_t value)
{
    return &s->graph->instructions[value];
}

static int32_t operand(const summing *s, int32_t value, int32_t k)
{
    return s->graph->operands[at(s, value)->first_input + k].index;
}

/* Two passes, as `inner` needs the complete numbers of uses. */
static void count_uses(summing *s)
{
    const sgm_graph *graph = s->graph;
    for (size_t i = 0; i < graph->operand_count; i++)
        s->uses[graph->operands[i].index]++;
    for (size_t i = 0; i < graph->output_count; i++)
        s->uses[graph->outputs[i].value.index]++;
    for (size_t i = 0; i < graph->assignment_count; i++)
        s->uses[graph->assignments[i].value.index]++;
    for (int32_t i = 0; i < (int32_t)graph->count; i++)
        s->joined[i] = -1;
    for (int32_t i = 0; i < (int32_t)graph->count; i++)
        for (int32_t k = 0; k < at(s, i)->input_count; k++) {
            int32_t value = operand(s, i, k);
            s->inner[value] = s->inner[value] || (at(s, value)->op == &sgm__op_add && s->uses[value] == 1 &&
                                                  at(s, i)->op == &sgm__op_add);
            if (at(s, i)->op == &sgm__op_concatenate) {
                s->joined[value] = i;
                s->joined_place[value] = k;
            }
        }
}

/* A term that is zeros around a part, without gaps between its elements (integers[3]), and that nothing else
 * reads. */
static bool is_pad(const summing *s, int32_t value)
{
    return at(s, value)->op == &sgm__op_pad && s->uses[value] == 1 &&
           at(s, value)->attributes->integers[3] == 0;
}

static bool is_product(const summing *s, int32_t value)
{
    return at(s, value)->op == &sgm__op_matmul && s->uses[value] == 1 && at(s, value)->type.shape.rank == 2 &&
           !sgm__matmul_rounds(at(s, value)->attributes);
}

/* Lists the terms of the sum that ends at `root` from left to right, with a stack instead of recursion,
 * because sums may be as long as sequences. *candidates: terms of a kind that can be joined. Also makes room
 * for a concatenation of all of them with zeros between. */
static sgm_status collect(summing *s, int32_t root, size_t *candidates)
{
    size_t depth = 0;
    s->count = *candidates = 0;
    SGM_TRY(sgm__reserve(&s->stack, &s->stack_capacity, 2, sizeof(int32_t)));
    s->stack[depth++] = root;
    while (depth > 0) {
        int32_t value = s->stack[--depth];
        if (value == root || s->inner[value]) {
            SGM_TRY(sgm__reserve(&s->stack, &s->stack_capacity, depth + 2, sizeof(int32_t)));
            s->stack[depth++] = operand(s, value, 1);
            s->stack[depth++] = operand(s, value, 0);
            continue;
        }
        SGM_TRY(sgm__reserve(&s->terms, &s->capacity, s->count + 1, sizeof(term)));
        s->terms[s->count] = (term){.value = value, .number = (int32_t)s->count};
        s->count++;
        *candidates += is_pad(s, value) || is_product(s, value);
    }
    return sgm__reserve(&s->parts, &s->part_capacity, 2 * s->count + 1, sizeof(sgm_value));
}

static int compare_positions(const void *left, const void *right)
{
    const term *a = left, *b = right;
    if (a->position != b->position)
        return a->position < b->position ? -1 : 1;
    return a->number - b->number;
}

static void add_to(summing *s, sgm_value *sum, sgm_value value)
{
    *sum = sgm_value_exists(*sum) ? sgm_add(s->work->graph, *sum, value) : value;
}

/* --- parts of one value --- */

/* A block of zeros in the shape of `like`, except for its length along the axis. The number behind
 * sgm_filled_like is broadcast directly, to save one broadcast on another. */
static sgm_value zeros(summing *s, sgm_value like, int32_t axis, int64_t length)
{
    sgm_graph *graph = s->work->graph;
    sgm_shape shape = sgm_value_type(graph, like).shape;
    shape.dims[axis] = length;
    sgm_value number = sgm_filled_like(graph, like, 0);
    while (graph->instructions[number.index].op == &sgm__op_broadcast)
        number = graph->operands[graph->instructions[number.index].first_input];
    return sgm_broadcast(graph, number, &shape);
}

/* Joins padded parts along one axis that do not overlap: goes through the terms by their positions and takes
 * each that begins at or behind the end of the one taken last, with zeros in the gaps. The first of two loops
 * only counts, since a single part is better left as it is. Returns how many terms were joined; the caller
 * repeats until no two are left that fit. */
static size_t join_layer(summing *s, int32_t axis, sgm_value *sum)
{
    sgm_graph *graph = s->work->graph;
    size_t members = 0, parts = 0;
    int64_t end = 0, size = 0;
    for (int pass = 0; pass < 2 && (pass == 0 || members > 1); pass++) {
        end = 0;
        for (size_t i = 0; i < s->count; i++) {
            term *t = &s->terms[i];
            if (t->done || !is_pad(s, t->value) || at(s, t->value)->attributes->integers[0] != axis ||
                t->position < end)
                continue;
            sgm_value part = s->work->map[operand(s, t->value, 0)];
            if (pass == 1) {
                if (t->position > end)
                    s->parts[parts++] = zeros(s, part, axis, t->position - end);
                s->parts[parts++] = part;
                t->done = true;
            }
            end = t->position + sgm_value_type(graph, part).shape.dims[axis];
            size = at(s, t->value)->type.shape.dims[axis];
            members += pass == 0;
        }
    }
    if (parts == 0)
        return 0;
    if (end < size) {
        s->parts[parts] = zeros(s, s->parts[parts - 1], axis, size - end);
        parts++;
    }
    add_to(s, sum, sgm_concatenate(graph, s->parts, (int32_t)parts, axis));
    return members;
}

static void join_pads(summing *s, sgm_value *sum)
{
    int32_t rank = at(s, s->terms[0].value)->type.shape.rank;
    for (size_t i = 0; i < s->count; i++)
        s->terms[i].position =
            is_pad(s, s->terms[i].value) ? at(s, s->terms[i].value)->attributes->integers[1] : 0;
    qsort(s->terms, s->count, sizeof *s->terms, compare_positions);
    for (int32_t axis = 0; axis < rank; axis++)
        while (join_layer(s, axis, sum) > 1)
            ;
}

/* --- products --- */

/* Whether the value is the transpose of a matrix (a permutation of 2 axes that begins with 1). */
static bool is_transposed(const summing *s, int32_t value)
{
    return at(s, value)->op == &sgm__op_permute && at(s, value)->attributes->integers[0] == 1;
}

/* The operand of the product, or with `transposed` the matrix below the transposition. */
static int32_t factor_of(const summing *s, const term *t, int32_t k, bool transposed)
{
    int32_t factor = operand(s, t->value, k);
    return transposed ? operand(s, factor, 0) : factor;
}

/* Concatenates factor k of all products along the axis over which they are summed: columns of the left
 * factors, rows of the right ones. If all factors are transposes, their originals are joined along the other
 * axis and the result is transposed, which costs nothing as it is a view. */
static sgm_value join_factors(summing *s, size_t first, size_t count, int32_t k)
{
    sgm_graph *graph = s->work->graph;
    bool transposed = true;
    for (size_t i = first; i < first + count; i++)
        transposed = transposed && is_transposed(s, operand(s, s->terms[i].value, k));
    for (size_t i = 0; i < count; i++)
        s->parts[i] = s->work->map[factor_of(s, &s->terms[first + i], k, transposed)];
    int32_t axis = (k == 0) != transposed ? 1 : 0;
    sgm_value joined = sgm_concatenate(graph, s->parts, (int32_t)count, axis);
    return transposed ? sgm_transpose(graph, joined) : joined;
}

/* Compares memory traffic: joining copies factors of depth * (m + n) elements in all, and saves writing and
 * reading count - 1 results of m * n. */
static bool is_worth_it(const summing *s, size_t first, size_t count)
{
    if (count < 2 || count > MAXIMUM_PARTS)
        return false;
    double depth = 0, m = (double)at(s, s->terms[first].value)->type.shape.dims[0],
           n = (double)at(s, s->terms[first].value)->type.shape.dims[1];
    for (size_t i = first; i < first + count; i++)
        depth += (double)at(s, operand(s, s->terms[i].value, 0))->type.shape.dims[1];
    return depth * (m + n) < 2 * (double)(count - 1) * m * n;
}

/* Sorts the products behind all other terms, in the order in which their left factors lie in a concatenation
 * that exists anyway, or else in the order of the factors: then the new concatenation has the same operands
 * as the existing one, or a part of them, and later passes merge the two. */
static void join_products(summing *s, sgm_value *sum)
{
    size_t count = 0;
    for (size_t i = 0; i < s->count; i++) {
        term *t = &s->terms[i];
        t->position = -1;
        if (t->done || !is_product(s, t->value))
            continue;
        int32_t factor = factor_of(s, t, 0, is_transposed(s, operand(s, t->value, 0)));
        t->position = s->joined[factor] >= 0 ? s->joined_place[factor] : factor;
        count++;
    }
    qsort(s->terms, s->count, sizeof *s->terms, compare_positions);
    size_t first = s->count - count;
    if (!is_worth_it(s, first, count))
        return;
    sgm_value left = join_factors(s, first, count, 0), right = join_factors(s, first, count, 1);
    add_to(s, sum, sgm_matmul(s->work->graph, left, right));
    s->count = first;
}

/* --- all sums --- */

/* Concatenations first, then the product, then all other terms; matrix products that were not worth joining
 * come last. */
static sgm_value join(summing *s, int32_t root)
{
    sgm_value sum = {-1};
    if (!sgm__rebuild_label(s->work, at(s, root)))
        return sum;
    join_pads(s, &sum);
    join_products(s, &sum);
    qsort(s->terms, s->count, sizeof *s->terms, compare_positions);
    for (size_t i = 0; i < s->count; i++)
        if (!s->terms[i].done)
            add_to(s, &sum, s->work->map[s->terms[i].value]);
    return sum;
}

static sgm_value rebuild_sum(summing *s, int32_t value)
{
    size_t candidates = 0;
    bool sum = at(s, value)->op == &sgm__op_add && !s->inner[value];
    if (sum && collect(s, value, &candidates) != SGM_OK)
        return sgm_graph_fail(s->work->graph, SGM_ERROR_MEMORY, "no memory for the terms of a sum");
    if (candidates > 1 && s->count <= MAXIMUM_PARTS)
        return join(s, value);
    sgm__rebuild_map(s->work, at(s, value));
    return sgm__rebuild_transcribe(s->work, at(s, value));
}

/* uses, joined and joined_place are one allocation. */
sgm_graph *sgm__pass_sums(const sgm_graph *graph)
{
    sgm__rebuild work;
    if (!sgm__rebuild_begin(&work, graph))
        return NULL;
    summing s = {.work = &work, .graph = graph};
    s.uses = sgm__calloc(graph->count + 1, 3 * sizeof(int32_t));
    s.inner = sgm__calloc(graph->count + 1, sizeof(bool));
    sgm_graph *result = NULL;
    if (s.uses != NULL && s.inner != NULL) {
        s.joined = s.uses + graph->count;
        s.joined_place = s.joined + graph->count;
        count_uses(&s);
        for (int32_t i = 0; i < (int32_t)graph->count && work.graph->status == SGM_OK; i++)
            work.map[i] = rebuild_sum(&s, i);
        result = sgm__rebuild_finish(&work);
    } else {
        sgm_graph_free(work.graph);
        sgm__rebuild_end(&work);
    }
    sgm__free(s.uses);
    sgm__free(s.inner);
    sgm__free(s.terms);
    sgm__free(s.stack);
    sgm__free(s.parts);
    return result;
}
