/* Estimates from shapes how long a step takes with one thread and with all.
 *
 * Sharing a step costs a meeting of the threads, and bytes that one thread wrote into its cache are fetched
 * from there by the others, which is far slower than from one's own cache. So the estimate for one thread
 * also depends on whether the operands were written by all threads. The constants were measured
 * (docs/performance.md, Threads); the choice changes no result, as bits do not depend on the number of
 * threads. choose_sharing in compile.c decides by these numbers. */
#include "handlers/cpu/run/cost.h"
#include "ops/ops.h"

#define ELEMENT_NANOSECONDS 0.1   /* an instruction of an elementwise step, for each element of float32 */
#define DRAW_NANOSECONDS 0.7      /* a random number */
#define KERNEL_NANOSECONDS 0.3    /* an element that another kernel reads or writes */
#define MEETING_NANOSECONDS 1500  /* of threads that are awake: the end of a loop */
#define FOREIGN_NANOSECONDS 0.11  /* a byte that lies in the cache of another processor */
#define LARGE_STATE (1 << 16)     /* bytes of a state from which its update is surely shared */
#define MAXIMUM_FOREIGN (2 << 20) /* bytes that a second-level cache holds; the rest has gone to memory */

static double elements_of(const sgm__node *node)
{
    return (double)sgm_shape_elements(&node->type.shape);
}

/* Bytes from the first to the last element of a value: less than its elements if it is broadcast. Constants
 * count nothing, as no thread writes them. */
static double bytes_of(const sgm__node *node)
{
    if (node->place.store == SGM__STORE_NONE || node->place.store == SGM__STORE_CONSTANT)
        return 0;
    sgm__span span = sgm__node_span(node);
    return (double)(span.last - span.first);
}

/* Whether all threads have written what an operand sees: the result of a shared step, or a large state, which
 * a shared step updates. */
static bool is_spread(const sgm__plan *plan, int32_t node, const bool *spread)
{
    int32_t number = sgm__plan_root(plan, node);
    const sgm__node *root = &plan->nodes[number];
    return spread[number] || (root->place.store == SGM__STORE_STATE && bytes_of(root) >= LARGE_STATE);
}

static const sgm__node *operand_of(const sgm__plan *plan, const sgm__node *node, int32_t k)
{
    return &plan->nodes[plan->operands[node->first_input + k]];
}

/* Nanoseconds of the node's work with one thread. A product's multiplications go by the columns of a wide
 * tile, two vectors: with AVX-512 64 of float32 in a nanosecond. */
static double time_of(const sgm__cpu *cpu, const sgm__plan *plan, const sgm__node *node, bool elementwise)
{
    double elements = elements_of(node), wide = node->type.dtype == SGM_FLOAT64 ? 2 : 1;
    if (node->op == &sgm__op_random_uniform)
        return elements * DRAW_NANOSECONDS;
    if (elementwise)
        return elements * wide * ELEMENT_NANOSECONDS;
    if (node->op == &sgm__op_matmul) {
        const sgm_shape *left = &operand_of(plan, node, 0)->type.shape;
        double each_nanosecond = 2 * (double)cpu->vector->f32.columns / wide; /* multiplications */
        return elements * (double)left->dims[left->rank - 1] / each_nanosecond;
    }
    for (int32_t k = 0; k < node->input_count; k++)
        elements += elements_of(operand_of(plan, node, k));
    return elements * wide * KERNEL_NANOSECONDS;
}

/* Sums over all nodes of the steps that run as one. */
typedef struct sums {
    /* time: nanoseconds; spread: bytes of operands that all threads have written; together: bytes that one
     * thread has. */
    double time, spread, together;
    int32_t meetings;
} sums;

/* A product has two meetings, one after packing and one after multiplying. */
static void add_step(const sgm__cpu *cpu, const sgm__plan *plan, int32_t step, const bool *spread, sums *to)
{
    const sgm__step *s = &plan->steps[step];
    for (int32_t i = 0; i < s->count; i++) {
        const sgm__node *node = &plan->nodes[plan->order[s->first + i]];
        to->time += time_of(cpu, plan, node, s->kind == SGM__STEP_ELEMENTWISE);
        to->meetings += node->op == &sgm__op_matmul ? 2 : 0; /* one loop packs, one multiplies */
        for (int32_t k = 0; k < node->input_count; k++) {
            int32_t operand = plan->operands[node->first_input + k];
            double bytes = bytes_of(&plan->nodes[operand]);
            *(is_spread(plan, operand, spread) ? &to->spread : &to->together) += bytes;
        }
    }
    to->meetings += s->kind == SGM__STEP_ELEMENTWISE;
}

/* Steps that run as one have one meeting. With n threads, one that works alone fetches (n - 1) / n of the
 * spread bytes; if all work, each of them fetches that share of an nth of them, and also an nth of the bytes
 * that one thread has. */
sgm__cost sgm__cost_of(const sgm__cpu *cpu, const sgm__plan *plan, int32_t step, int32_t partner,
                       int32_t product, const bool *spread)
{
    sums all = {0};
    double threads = (double)cpu->threads, others = (threads - 1) / threads;
    add_step(cpu, plan, step, spread, &all);
    if (partner >= 0) {
        add_step(cpu, plan, partner, spread, &all);
        all.meetings = 1;
    }
    if (product >= 0) {
        add_step(cpu, plan, product, spread, &all);
        all.meetings = 1;
    }
    all.meetings = all.meetings > 0 ? all.meetings : 1;
    all.spread = all.spread < MAXIMUM_FOREIGN ? all.spread : MAXIMUM_FOREIGN;
    all.together = all.together < MAXIMUM_FOREIGN ? all.together : MAXIMUM_FOREIGN;
    double foreign = all.spread / threads * others + all.together / threads;
    return (sgm__cost){.time = all.time,
                       .alone = all.time + all.spread * others * FOREIGN_NANOSECONDS,
                       .shared = all.time / threads + foreign * FOREIGN_NANOSECONDS +
                                 all.meetings * MEETING_NANOSECONDS};
}

/* Kernels whose work is in proportion to their elements, and products. The work of others (convolutions,
 * attention) cannot be told from shapes alone; they share or not as they see fit. */
bool sgm__cost_is_known(const sgm__plan *plan, int32_t step)
{
    const sgm__step *s = &plan->steps[step];
    const sgm_op *op = plan->nodes[plan->order[s->first]].op;
    return s->kind == SGM__STEP_ELEMENTWISE || op == &sgm__op_matmul || op == &sgm__op_reduce_sum ||
           op == &sgm__op_reduce_max || op == &sgm__op_reduce_min || op == &sgm__op_arg_max ||
           op == &sgm__op_arg_min || op == &sgm__op_accuracy;
}
