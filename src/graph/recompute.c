/* Pass: computes values of the forward pass again where the gradients read them, so that they need no memory
 * in between (Chen et al., 2016: Training deep nets with sublinear memory cost).
 *
 * The forward pass is cut into segments of equal bytes, where little is alive. What is alive at a cut is
 * kept. Of every other value that gradients read, the pass records a copy right before the first of them,
 * with copies of what it is made from, back to what was kept. All further gradients read that copy, so
 * nothing is computed more than twice. The last segment is kept as it is: its gradients come first. A copy is
 * the same operation on the same operands, and so has the same bits.
 *
 * The planner (src/handlers/plan/plan_memory.c) calls it after all other passes, as simplifying would merge
 * the copies again, and chooses how many segments there are. */
#include "graph/passes.h"
#include "graph/rebuild.h"
#include "ops/ops.h"

#include <stdlib.h>

/* A value that has this part of the bytes that it is made from (a mean, say) is kept. */
#define SMALL_PART 16

/* The forward pass: the instructions up to the turn. All arrays are by value. */
typedef struct forward {
    const sgm_graph *graph;
    const sgm__recomputing *choice;
    int32_t *root;      /* the value whose memory a view shows; other values are their own */
    int32_t *last_read; /* of roots: the last instruction of the forward pass that reads it; itself: none */
    int32_t *segment;
    bool *wanted; /* of roots: gradients read it */
    bool *held;   /* of roots: it is an output or the value of a state, and stays in memory anyway */
} forward;

static const sgm__instruction *at(const forward *f, int32_t value)
{
    return &f->graph->instructions[value];
}

static int32_t operand_of(const forward *f, const sgm__instruction *instruction, int32_t k)
{
    return f->graph->operands[instruction->first_input + k].index;
}

static double bytes_of(const forward *f, int32_t value)
{
    const sgm_type *type = &at(f, value)->type;
    return (double)sgm_shape_elements(&type->shape) * (double)sgm_dtype_size(type->dtype);
}

/* Operations that cost more than passing over memory. */
static bool is_product(const sgm_op *op)
{
    static const sgm_op *const products[] = {&sgm__op_matmul,
                                             &sgm__op_code_matmul,
                                             &sgm__op_convolution,
                                             &sgm__op_convolution_input_gradient,
                                             &sgm__op_convolution_weights_gradient,
                                             &sgm__op_self_attention,
                                             &sgm__op_self_attention_gradient,
                                             &sgm__op_packed_attention,
                                             &sgm__op_packed_attention_gradient,
                                             &sgm__op_inverse,
                                             &sgm__op_determinant,
                                             &sgm__op_ctc_alphas};
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        if (op == products[i])
            return true;
    return false;
}

/* --- who reads what --- */

static void find_reads(const forward *f)
{
    int32_t turn = f->choice->turn;
    for (int32_t i = 0; i < (int32_t)f->graph->count; i++) {
        const sgm__instruction *instruction = at(f, i);
        bool view = (instruction->op->flags & SGM_OP_VIEW) != 0;
        f->root[i] = view ? f->root[operand_of(f, instruction, 0)] : i;
        f->last_read[i] = i;
        for (int32_t k = 0; k < instruction->input_count && !view; k++) {
            int32_t root = f->root[operand_of(f, instruction, k)];
            f->wanted[root] = f->wanted[root] || i > turn;
            f->last_read[root] = i <= turn ? i : f->last_read[root];
        }
    }
    for (size_t i = 0; i < f->graph->output_count; i++)
        f->held[f->root[f->graph->outputs[i].value.index]] = true;
    for (size_t i = 0; i < f->graph->assignment_count; i++)
        f->held[f->root[f->graph->assignments[i].value.index]] = true;
}

static bool is_source(const forward *f, int32_t value)
{
    return (at(f, value)->op->flags & SGM_OP_SOURCE) != 0;
}

/* Bytes that the value takes from the forward pass to the gradients. */
static double bytes_wanted(const forward *f, int32_t value)
{
    return f->wanted[value] && f->root[value] == value && !is_source(f, value) ? bytes_of(f, value) : 0;
}

/* --- segments --- */

/* Sets segment[v] for all values up to the turn. A cut near each j-th part of the bytes that gradients want,
 * nearer to it than to another one, stands where the fewest bytes are alive. `alive` has room for the
 * instructions up to the turn and two more, `cuts` for each segment. */
static void cut(const forward *f, double *alive, int32_t *cuts)
{
    int32_t turn = f->choice->turn, segments = f->choice->segments;
    double all = 0, before = 0, now = 0;
    for (int32_t v = 0; v <= turn; v++) {
        all += bytes_wanted(f, v);
        if (is_source(f, v) || f->last_read[v] == v)
            continue;
        alive[v + 1] += bytes_of(f, v);
        alive[f->last_read[v] + 1] -= bytes_of(f, v);
    }
    for (int32_t v = 0; v <= turn; v++)
        alive[v] = now += alive[v];
    for (int32_t v = 0; v <= turn && all > 0; v++) {
        int32_t part = (int32_t)(before / all * segments + 0.5);
        if (part > 0 && part < segments && (cuts[part] == 0 || alive[v] < alive[cuts[part]]))
            cuts[part] = v;
        before += bytes_wanted(f, v);
    }
    int32_t segment = 0;
    for (int32_t v = 0; v <= turn; v++) {
        for (; segment + 1 < segments && cuts[segment + 1] > 0 && cuts[segment + 1] <= v; segment++)
            ;
        f->segment[v] = segment;
    }
}

/* --- what is kept --- */

static bool is_small(const forward *f, int32_t value)
{
    double operands = 0;
    for (int32_t k = 0; k < at(f, value)->input_count; k++)
        operands += bytes_of(f, operand_of(f, at(f, value), k));
    return bytes_of(f, value) * SMALL_PART <= operands || sgm_shape_elements(&at(f, value)->type.shape) == 1;
}

/* Whether gradients read the value itself instead of a copy. A view of what is kept is seen again, as a
 * kernel may have needed it without gaps. Workers must sum up equally often, so sums of all are kept. */
static bool is_kept(const forward *f, int32_t value)
{
    int32_t root = f->root[value], segment = f->segment[root];
    if (is_source(f, root) || segment == f->segment[f->choice->turn])
        return true;
    if (root != value)
        return false;
    return f->held[value] || at(f, value)->op == &sgm__op_all_reduce || is_small(f, value) ||
           segment < f->segment[f->last_read[value]] ||
           (is_product(at(f, value)->op) && segment >= f->choice->whole_segments);
}

/* --- copies --- */

/* The new graph, and the values that are to be copied. */
typedef struct copying {
    sgm__rebuild work;
    const forward *f;
    sgm_value *copies; /* by old value; nothing: there is none yet */
    bool *listed;
    int32_t *list; /* the values that the next reader needs copies of */
    size_t count;
} copying;

/* Adds the value to the list unless it is kept or has its copy. */
static void need(copying *c, int32_t value)
{
    if (value > c->f->choice->turn || c->listed[value] || is_kept(c->f, value))
        return;
    c->listed[value] = true;
    c->list[c->count++] = value;
}

static int by_number(const void *a, const void *b)
{
    return *(const int32_t *)a - *(const int32_t *)b;
}

/* The new value of an operand, for copies and for gradients: its copy if it has one. */
static void map_operands(copying *c, const sgm__instruction *instruction)
{
    for (int32_t k = 0; k < instruction->input_count; k++) {
        int32_t operand = operand_of(c->f, instruction, k);
        bool copied = sgm_value_exists(c->copies[operand]);
        c->work.inputs[k] = copied ? c->copies[operand] : c->work.map[operand];
    }
}

/* Records copies of all operands of an instruction behind the turn that are not kept, in the order of their
 * originals. The list grows while it is gone through. */
static void copy_operands(copying *c, const sgm__instruction *reader)
{
    c->count = 0;
    for (int32_t k = 0; k < reader->input_count; k++)
        need(c, operand_of(c->f, reader, k));
    for (size_t i = 0; i < c->count; i++)
        for (int32_t k = 0; k < at(c->f, c->list[i])->input_count; k++)
            need(c, operand_of(c->f, at(c->f, c->list[i]), k));
    qsort(c->list, c->count, sizeof *c->list, by_number);
    for (size_t i = 0; i < c->count && c->work.graph->status == SGM_OK; i++) {
        sgm__instruction again = *at(c->f, c->list[i]);
        map_operands(c, &again);
        again.is_again = true;
        c->copies[c->list[i]] = sgm__rebuild_transcribe(&c->work, &again);
    }
}

static sgm_graph *copy_all(copying *c)
{
    const sgm_graph *graph = c->f->graph;
    for (int32_t i = 0; i < (int32_t)graph->count && c->work.graph->status == SGM_OK; i++) {
        const sgm__instruction *instruction = at(c->f, i);
        if (i > c->f->choice->turn)
            copy_operands(c, instruction);
        map_operands(c, instruction);
        c->work.map[i] = sgm__rebuild_transcribe(&c->work, instruction);
    }
    return sgm__rebuild_finish(&c->work);
}

sgm_graph *sgm__pass_recompute(const sgm_graph *graph, const sgm__recomputing *choice)
{
    size_t count = graph->count + 2;
    double *alive = sgm__calloc(count, sizeof(double));
    sgm_value *copies = sgm__alloc(count * sizeof(sgm_value));
    int32_t *numbers = sgm__calloc(4 * count + (size_t)choice->segments, sizeof(int32_t));
    bool *flags = sgm__calloc(3 * count, sizeof(bool));
    sgm_graph *made = NULL;
    if (alive != NULL && copies != NULL && numbers != NULL && flags != NULL) {
        forward f = {.graph = graph,
                     .choice = choice,
                     .root = numbers,
                     .last_read = numbers + count,
                     .segment = numbers + 2 * count,
                     .wanted = flags,
                     .held = flags + count};
        copying c = {.f = &f, .copies = copies, .listed = flags + 2 * count, .list = numbers + 3 * count};
        for (size_t i = 0; i < count; i++)
            copies[i] = (sgm_value){-1};
        find_reads(&f);
        cut(&f, alive, numbers + 4 * count);
        if (sgm__rebuild_begin(&c.work, graph))
            made = copy_all(&c);
    }
    sgm__free(alive);
    sgm__free(copies);
    sgm__free(numbers);
    sgm__free(flags);
    return made;
}
