/* Implements the general passes: copying, expanding composed operations, widening bfloat16, and simplifying.
 *
 * Called by the planner (src/handlers/plan/plan.c) and by the export to ONNX. All stand on rebuild.c.
 * Simplifying is where most of a recorded graph disappears: dead code, common subexpressions (by a hash table
 * of the new instructions), operations that change nothing, and arithmetic of known numbers. What a pass
 * computes itself must have the bits that a run would have, since the same graph may run on any handler. */
#include "graph/passes.h"

#include "graph/rebuild.h"
#include "ops/ops.h"

#include <sigma/graph.h>

#define DEEPEST_COMPOSITION 64 /* rounds of expanding */

sgm_graph *sgm__graph_copy(const sgm_graph *graph)
{
    sgm__rebuild work;
    if (!sgm__rebuild_begin(&work, graph))
        return NULL;
    for (size_t i = 0; i < graph->count; i++) {
        sgm__rebuild_map(&work, &graph->instructions[i]);
        work.map[i] = sgm__rebuild_transcribe(&work, &graph->instructions[i]);
    }
    return sgm__rebuild_finish(&work);
}

/* --- expansion --- */

static bool expands(const sgm__instruction *instruction, sgm__keep_function keep, void *user)
{
    return instruction->op->compose != NULL && !keep(user, instruction->op, instruction->type.dtype);
}

/* Records the parts in place of the instruction. A composition whose result has another type than `infer`
 * says is an error in the operation's table. */
static sgm_value expand(sgm__rebuild *work, const sgm__instruction *instruction)
{
    if (!sgm__rebuild_label(work, instruction))
        return (sgm_value){-1};
    sgm_value value = instruction->op->compose(work->graph, work->inputs, instruction->input_count,
                                               instruction->attributes);
    sgm_type type = sgm_value_type(work->graph, value);
    if (sgm_value_exists(value) &&
        (type.dtype != instruction->type.dtype || !sgm_shape_equal(&type.shape, &instruction->type.shape)))
        return sgm_graph_fail(work->graph, SGM_ERROR_SHAPE,
                              "%s: what it is composed of has another type than its rule says",
                              instruction->op->name);
    return value;
}

/* Expands one level; *again: something was expanded, so its parts may have to be. */
static sgm_graph *expand_once(const sgm_graph *graph, sgm__keep_function keep, void *user, bool *again)
{
    sgm__rebuild work;
    if (!sgm__rebuild_begin(&work, graph))
        return NULL;
    *again = false;
    for (size_t i = 0; i < graph->count && work.graph->status == SGM_OK; i++) {
        const sgm__instruction *instruction = &graph->instructions[i];
        sgm__rebuild_map(&work, instruction);
        bool composed = expands(instruction, keep, user);
        work.map[i] = composed ? expand(&work, instruction) : sgm__rebuild_transcribe(&work, instruction);
        *again = *again || composed;
    }
    return sgm__rebuild_finish(&work);
}

sgm_graph *sgm__pass_expand(const sgm_graph *graph, sgm__keep_function keep, void *user)
{
    bool again = false;
    sgm_graph *expanded = expand_once(graph, keep, user, &again);
    for (int round = 1; expanded != NULL && again; round++) { /* parts may be composed themselves */
        if (round == DEEPEST_COMPOSITION) {
            sgm_graph_free(expanded);
            sgm_fail(SGM_ERROR_ARGUMENT,
                     "an operation is composed of others more than %d deep: is it composed of itself?",
                     DEEPEST_COMPOSITION);
            return NULL;
        }
        sgm_graph *next = expand_once(expanded, keep, user, &again);
        sgm_graph_free(expanded);
        expanded = next;
    }
    return expanded;
}

/* --- widening --- */

#define DEEPEST_VIEW 8          /* views on views that a cast moves through */
#define LARGE_WEIGHTS (1 << 20) /* bytes of weights that products round themselves */
#define ROWS_OF_WEIGHTS 64      /* of such a product, at least */

/* The value as float32. Operations that only see memory in another way (views) are recorded again behind the
 * cast, so that the cast is one of the original value, and several views of it share that cast. */
static sgm_value wide_value(sgm_graph *graph, sgm_value value, int depth)
{
    sgm__instruction view = graph->instructions[value.index]; /* a copy: recording moves the array */
    if (view.type.dtype != SGM_BFLOAT16)
        return value;
    bool looks = view.op == &sgm__op_permute || view.op == &sgm__op_reshape || view.op == &sgm__op_broadcast;
    if (!looks || depth == DEEPEST_VIEW)
        return sgm_cast(graph, value, SGM_FLOAT32);
    sgm_value inner = wide_value(graph, graph->operands[view.first_input], depth + 1);
    return sgm_record(graph, view.op, &inner, 1, view.attributes);
}

/* What a value was before it was rounded to bfloat16, seen through the same views; nothing if it is no large
 * rounded state. */
static sgm_value unrounded(sgm_graph *graph, sgm_value value, int depth)
{
    sgm__instruction at = graph->instructions[value.index]; /* a copy: recording moves the array */
    if (at.op == &sgm__op_cast && at.type.dtype == SGM_BFLOAT16) {
        sgm_value origin = graph->operands[at.first_input];
        const sgm__instruction *from = &graph->instructions[origin.index];
        bool large = from->op == &sgm__op_state && from->type.dtype == SGM_FLOAT32 &&
                     sgm_shape_elements(&from->type.shape) * (int64_t)sizeof(float) >= LARGE_WEIGHTS;
        return large ? origin : (sgm_value){-1};
    }
    bool looks = at.op == &sgm__op_permute || at.op == &sgm__op_reshape;
    if (!looks || depth == DEEPEST_VIEW)
        return (sgm_value){-1};
    sgm_value inner = unrounded(graph, graph->operands[at.first_input], depth + 1);
    return sgm_value_exists(inner) ? sgm_record(graph, at.op, &inner, 1, at.attributes) : inner;
}

/* A product of float32 that rounds large weights as it reads them: no rounded copy of them waits for the
 * gradients. Small ones stay in a cache, and products of few rows would round as much as they multiply. */
static sgm_value product_of_weights(sgm__rebuild *work, const sgm__instruction *instruction)
{
    const sgm_shape *shape = &instruction->type.shape;
    if (instruction->op != &sgm__op_matmul || shape->rank != 2 || shape->dims[0] < ROWS_OF_WEIGHTS)
        return (sgm_value){-1};
    sgm_value operands[] = {work->inputs[0], unrounded(work->graph, work->inputs[1], 0)};
    if (!sgm_value_exists(operands[1]))
        return operands[1];
    operands[0] = wide_value(work->graph, operands[0], 0);
    return sgm_record(work->graph, &sgm__op_matmul, operands, 2,
                      &(const sgm_attributes){.integer_count = 1, .integers = {1}});
}

/* Rows that are looked up among all that were rounded (an embedding's) are rounded themselves instead. */
static sgm_value rounded_rows(sgm__rebuild *work, const sgm__instruction *instruction)
{
    sgm_graph *graph = work->graph;
    sgm__instruction all = graph->instructions[work->inputs[0].index];
    if (all.op != &sgm__op_cast ||
        sgm_shape_elements(&instruction->type.shape) >= sgm_shape_elements(&all.type.shape) ||
        !sgm__rebuild_label(work, instruction))
        return sgm__rebuild_transcribe(work, instruction);
    sgm_value operands[] = {graph->operands[all.first_input], work->inputs[1]};
    sgm_value rows = sgm_record(graph, &sgm__op_gather, operands, 2, instruction->attributes);
    return sgm_cast(graph, rows, SGM_BFLOAT16);
}

/* Casts the operands, records the operation in float32, and casts the result: one rounding to bfloat16, at
 * the end. Casts that meet the inverse ones of the next operation are removed by narrowed_again only if no
 * rounding is lost. */
static sgm_value widen(sgm__rebuild *work, const sgm__instruction *instruction, bool rounds)
{
    sgm_graph *graph = work->graph;
    if (!sgm__rebuild_label(work, instruction))
        return (sgm_value){-1};
    sgm_value product = rounds ? product_of_weights(work, instruction) : (sgm_value){-1};
    if (sgm_value_exists(product))
        return sgm_cast(graph, product, SGM_BFLOAT16);
    for (int32_t k = 0; k < instruction->input_count; k++)
        work->inputs[k] = wide_value(graph, work->inputs[k], 0);
    sgm_value wide =
        sgm_record(graph, instruction->op, work->inputs, instruction->input_count, instruction->attributes);
    return sgm_cast(graph, wide, SGM_BFLOAT16);
}

/* Whether it is a product by a constant, which may be seen through views. */
static bool is_by_constant(const sgm_graph *graph, const sgm__instruction *instruction)
{
    if (instruction->op != &sgm__op_matmul)
        return false;
    const sgm__instruction *right = &graph->instructions[graph->operands[instruction->first_input + 1].index];
    while ((right->op->flags & SGM_OP_VIEW) != 0)
        right = &graph->instructions[graph->operands[right->first_input].index];
    return right->op == &sgm__op_constant;
}

sgm_graph *sgm__pass_widen(const sgm_graph *graph, const sgm__widening *how)
{
    sgm__rebuild work;
    if (!sgm__rebuild_begin(&work, graph))
        return NULL;
    for (size_t i = 0; i < graph->count && work.graph->status == SGM_OK; i++) {
        const sgm__instruction *instruction = &graph->instructions[i];
        bool half = instruction->type.dtype == SGM_BFLOAT16;
        bool wide = half && how->widens(how->user, instruction->op, SGM_BFLOAT16) &&
                    !(how->reads_halves && is_by_constant(graph, instruction));
        sgm__rebuild_map(&work, instruction);
        bool looks_up = half && instruction->op == &sgm__op_gather;
        work.map[i] = wide       ? widen(&work, instruction, how->rounds)
                      : looks_up ? rounded_rows(&work, instruction)
                                 : sgm__rebuild_transcribe(&work, instruction);
    }
    return sgm__rebuild_finish(&work);
}

/* --- simplification --- */

/* Marks what outputs and assignments need, going backwards, so that each instruction is decided before its
 * operands. Returns how many instructions are not needed. */
static size_t mark(const sgm_graph *graph, bool *needed)
{
    size_t dead = 0;
    for (size_t i = 0; i < graph->assignment_count; i++) {
        needed[graph->assignments[i].value.index] = true;
        needed[graph->assignments[i].state.index] = true;
    }
    for (size_t i = 0; i < graph->output_count; i++)
        needed[graph->outputs[i].value.index] = true;
    for (size_t i = graph->count; i-- > 0;) {
        const sgm__instruction *instruction = &graph->instructions[i];
        for (int32_t k = 0; k < instruction->input_count && needed[i]; k++)
            needed[graph->operands[instruction->first_input + k].index] = true;
        dead += !needed[i];
    }
    return dead;
}

/* Whether a permutation of axes leaves all where they are. */
static bool is_identity_order(const sgm_attributes *attributes)
{
    for (int32_t i = 0; i < attributes->integer_count; i++)
        if (attributes->integers[i] != i)
            return false;
    return true;
}

/* Whether the value is the number 1, broadcast or not, in every recording. A live number is not: the graph's
 * structure must not depend on its present value. */
static bool is_one(const sgm_graph *graph, sgm_value value)
{
    const sgm__instruction *instruction = &graph->instructions[value.index];
    while (instruction->op == &sgm__op_broadcast)
        instruction = &graph->instructions[graph->operands[instruction->first_input].index];
    return instruction->op == &sgm__op_number && !sgm__number_is_live(instruction) &&
           instruction->attributes->numbers[0] == 1;
}

/* The number of the (mapped) operand that the instruction is always equal to; -1: none. stop_gradient matters
 * only while gradients are recorded, and they have been. */
static int32_t equals_operand(const sgm__rebuild *work, const sgm__instruction *instruction)
{
    const sgm_op *op = instruction->op;
    if (instruction->input_count == 0)
        return -1;
    if (op == &sgm__op_stop_gradient || op == &sgm__op_copy)
        return 0;
    const sgm_type *first = &work->graph->instructions[work->inputs[0].index].type;
    bool same =
        first->dtype == instruction->type.dtype && sgm_shape_equal(&first->shape, &instruction->type.shape);
    if (op == &sgm__op_broadcast || op == &sgm__op_reshape || op == &sgm__op_cast)
        return same ? 0 : -1;
    if (op == &sgm__op_permute)
        return is_identity_order(instruction->attributes) ? 0 : -1;
    if (op == &sgm__op_multiply && is_one(work->graph, work->inputs[1]))
        return 0;
    if (op == &sgm__op_multiply && is_one(work->graph, work->inputs[0]))
        return 1;
    return -1;
}

/* Whether `wide` represents every number of `narrow` exactly. */
static bool holds(sgm_dtype wide, sgm_dtype narrow)
{
    return (narrow == SGM_BFLOAT16 && (wide == SGM_FLOAT32 || wide == SGM_FLOAT64)) ||
           (narrow == SGM_FLOAT32 && wide == SGM_FLOAT64);
}

/* A cast to a wider type and back gives the original value, exactly; nothing if the instruction is no such
 * pair. */
static sgm_value narrowed_again(const sgm__rebuild *work, const sgm__instruction *instruction)
{
    if (instruction->op != &sgm__op_cast)
        return (sgm_value){-1};
    const sgm__instruction *inner = &work->graph->instructions[work->inputs[0].index];
    if (inner->op != &sgm__op_cast || !holds(inner->type.dtype, instruction->type.dtype))
        return (sgm_value){-1};
    sgm_value origin = work->graph->operands[inner->first_input];
    bool same = work->graph->instructions[origin.index].type.dtype == instruction->type.dtype;
    return same ? origin : (sgm_value){-1};
}

/* reshape(reshape(x)) becomes one reshape of x, by changing work->inputs. */
static void shorten_chain(sgm__rebuild *work, const sgm__instruction *instruction)
{
    if (instruction->op != &sgm__op_reshape)
        return;
    const sgm__instruction *inner = &work->graph->instructions[work->inputs[0].index];
    while (inner->op == &sgm__op_reshape) {
        work->inputs[0] = work->graph->operands[inner->first_input];
        inner = &work->graph->instructions[work->inputs[0].index];
    }
}

/* Over the same members as is_same compares, shape excepted: it nearly always follows from the rest. */
static uint64_t hash_of(const sgm__rebuild *work, const sgm__instruction *instruction)
{
    uint64_t hash = sgm__hash(&instruction->op, sizeof instruction->op, (uint64_t)instruction->type.dtype);
    hash = sgm__attributes_hash(instruction->attributes, hash);
    return sgm__hash(work->inputs, (size_t)instruction->input_count * sizeof(sgm_value), hash);
}

/* Whether an instruction with work->inputs computes the same as one in the new graph. */
static bool is_same(const sgm__rebuild *work, const sgm__instruction *instruction,
                    const sgm__instruction *known)
{
    return known->op == instruction->op && known->input_count == instruction->input_count &&
           known->type.dtype == instruction->type.dtype &&
           sgm_shape_equal(&known->type.shape, &instruction->type.shape) &&
           sgm__attributes_equal(known->attributes, instruction->attributes) &&
           (known->input_count == 0 || memcmp(work->graph->operands + known->first_input, work->inputs,
                                              (size_t)known->input_count * sizeof(sgm_value)) == 0);
}

/* Returns the equal instruction of the new graph, or records this one. Sources are transcribed always, except
 * for numbers: inputs and states are unique by name, comparing tensors costs more than it saves, and two live
 * numbers that are equal at present may differ later. */
static sgm_value find_or_transcribe(sgm__rebuild *work, const sgm__instruction *instruction)
{
    bool source = (instruction->op->flags & SGM_OP_SOURCE) != 0;
    if (source && (instruction->op != &sgm__op_number || sgm__number_is_live(instruction)))
        return sgm__rebuild_transcribe(work, instruction);
    size_t slot = hash_of(work, instruction) % work->bucket_count;
    while (work->buckets[slot] >= 0) {
        if (is_same(work, instruction, &work->graph->instructions[work->buckets[slot]]))
            return (sgm_value){work->buckets[slot]};
        slot = (slot + 1) % work->bucket_count;
    }
    sgm_value value = sgm__rebuild_transcribe(work, instruction);
    work->buckets[slot] = value.index;
    return value;
}

/* Computes sums, differences, products and quotients of two numbers now. In float32 by way of double, which
 * gives the correctly rounded float32 for these four operations; other types and functions are left, as
 * handlers compute them in ways of their own. The result is live if an operand is. *attributes are those of
 * the number that takes the instruction's place. */
static bool fold(const sgm__rebuild *work, const sgm__instruction *instruction, sgm_attributes *attributes)
{
    const sgm_op *op = instruction->op;
    sgm_dtype dtype = instruction->type.dtype;
    if ((op != &sgm__op_add && op != &sgm__op_subtract && op != &sgm__op_multiply && op != &sgm__op_divide) ||
        instruction->type.shape.rank != 0 || (dtype != SGM_FLOAT32 && dtype != SGM_FLOAT64))
        return false;
    double values[2];
    bool live = false;
    for (int32_t k = 0; k < 2; k++) {
        const sgm__instruction *operand = &work->graph->instructions[work->inputs[k].index];
        live = live || sgm__number_is_live(operand);
        if (operand->op != &sgm__op_number || operand->type.dtype != dtype)
            return false;
        double value = operand->attributes->numbers[0];
        values[k] = dtype == SGM_FLOAT32 ? (double)(float)value : value;
    }
    double result = op->scalar(values, instruction->attributes);
    *attributes = (sgm_attributes){.integer_count = live,
                                   .integers = {live},
                                   .number_count = 1,
                                   .numbers = {dtype == SGM_FLOAT32 ? (double)(float)result : result}};
    return true;
}

static sgm_value simplify(sgm__rebuild *work, const sgm__instruction *instruction)
{
    sgm__rebuild_map(work, instruction);
    shorten_chain(work, instruction);
    sgm_attributes folded;
    if (fold(work, instruction, &folded))
        return find_or_transcribe(work, &(sgm__instruction){.op = &sgm__op_number,
                                                            .type = instruction->type,
                                                            .attributes = &folded,
                                                            .label = instruction->label,
                                                            .constant = -1});
    sgm_value before = narrowed_again(work, instruction);
    if (sgm_value_exists(before))
        return before;
    int32_t equal = equals_operand(work, instruction);
    return equal >= 0 ? work->inputs[equal] : find_or_transcribe(work, instruction);
}

static sgm_graph *simplify_once(const sgm_graph *graph, const bool *needed)
{
    sgm__rebuild work;
    if (!sgm__rebuild_begin(&work, graph))
        return NULL;
    work.bucket_count = 2 * graph->count + 1;
    work.buckets = sgm__alloc(work.bucket_count * sizeof(int32_t));
    if (work.buckets == NULL) {
        sgm_graph_free(work.graph);
        sgm__rebuild_end(&work);
        return NULL;
    }
    for (size_t i = 0; i < work.bucket_count; i++)
        work.buckets[i] = -1;
    for (size_t i = 0; i < graph->count && work.graph->status == SGM_OK; i++)
        if (needed[i])
            work.map[i] = simplify(&work, &graph->instructions[i]);
    return sgm__rebuild_finish(&work);
}

/* Repeats until nothing is dead: an instruction that was simplified away may have been the only reader of its
 * operands. */
sgm_graph *sgm__pass_simplify(const sgm_graph *graph)
{
    bool *needed = sgm__calloc(graph->count + 1, sizeof(bool));
    if (needed == NULL)
        return NULL;
    mark(graph, needed);
    sgm_graph *simple = simplify_once(graph, needed);
    while (simple != NULL) {
        memset(needed, 0, graph->count * sizeof(bool));
        if (mark(simple, needed) == 0)
            break;
        sgm_graph *next = simplify_once(simple, needed);
        sgm_graph_free(simple);
        simple = next;
    }
    sgm__free(needed);
    return simple;
}
