/* Transposes products of matrices that are only read transposed: (A B)' becomes B' A'. A pass of the
 * planner.
 *
 * The gradient of weights that were used transposed (an embedding that also makes the logits, say) is
 * recorded as a product, transposed behind it. Elementwise steps would read it across its rows, and could
 * not run together with the product (src/handlers/cpu/run/fused.c). As B' A' its elements come in the order
 * of their readers. Operands are transposed by views, and each element is the same sum in the same order.
 * Where another product reads the transposition nothing is gained, as products read operands either way. */
#include "graph/passes.h"
#include "graph/rebuild.h"
#include "ops/ops.h"

/* By value of the old graph: how many instructions, outputs and assignments read it, and whether a product
 * does; whether it is left out, because its transposition is recorded in its place. */
typedef struct notes {
    int32_t uses;
    bool multiplied, left_out;
} notes;

/* Whether the instruction is the transposition of a matrix. */
static bool is_transposition(const sgm__instruction *instruction)
{
    return instruction->op == &sgm__op_permute && instruction->type.shape.rank == 2 &&
           instruction->attributes->integers[0] == 1;
}

static void count_uses(const sgm_graph *graph, notes *of)
{
    for (size_t i = 0; i < graph->count; i++)
        for (int32_t k = 0; k < graph->instructions[i].input_count; k++) {
            notes *operand = &of[graph->operands[graph->instructions[i].first_input + k].index];
            operand->uses++;
            operand->multiplied = operand->multiplied || graph->instructions[i].op == &sgm__op_matmul;
        }
    for (size_t i = 0; i < graph->output_count; i++)
        of[graph->outputs[i].value.index].uses++;
    for (size_t i = 0; i < graph->assignment_count; i++)
        of[graph->assignments[i].value.index].uses++;
}

/* The product below a transposition and casts of it, none of which has another reader; -1: there is none. */
static int32_t product_below(const sgm_graph *graph, const notes *of, int32_t transposition)
{
    const sgm__instruction *at = &graph->instructions[transposition];
    if (!is_transposition(at) || of[transposition].multiplied)
        return -1;
    int32_t below;
    do {
        below = graph->operands[at->first_input].index;
        at = &graph->instructions[below];
    } while (at->op == &sgm__op_cast && of[below].uses == 1);
    bool fits = at->op == &sgm__op_matmul && of[below].uses == 1 && !sgm__matmul_rounds(at->attributes);
    return fits ? below : -1;
}

/* Notes for all products that will be transposed, and the casts above them, that they are left out. */
static void choose(const sgm_graph *graph, notes *of)
{
    for (size_t i = 0; i < graph->count; i++) {
        int32_t product = product_below(graph, of, (int32_t)i), at = (int32_t)i;
        while (product >= 0 && at != product) {
            at = graph->operands[graph->instructions[at].first_input].index;
            of[at].left_out = true;
        }
    }
}

static sgm_value transposed(sgm_graph *graph, sgm_value matrix)
{
    const sgm__instruction *at = &graph->instructions[matrix.index];
    return is_transposition(at) ? graph->operands[at->first_input] : sgm_transpose(graph, matrix);
}

/* What the transposition of `value` is, for a value that was left out. */
static sgm_value record_transposed(sgm__rebuild *work, sgm_value value)
{
    const sgm__instruction *instruction = &work->old->instructions[value.index];
    const sgm_value *operands = work->old->operands + instruction->first_input;
    if (instruction->op == &sgm__op_cast)
        return sgm_cast(work->graph, record_transposed(work, operands[0]), instruction->type.dtype);
    if (!sgm__rebuild_label(work, instruction))
        return (sgm_value){-1};
    sgm_value left = transposed(work->graph, work->map[operands[1].index]);
    return sgm_matmul(work->graph, left, transposed(work->graph, work->map[operands[0].index]));
}

sgm_graph *sgm__pass_transposed_products(const sgm_graph *graph)
{
    sgm__rebuild work;
    if (!sgm__rebuild_begin(&work, graph))
        return NULL;
    notes *of = sgm__calloc(graph->count + 1, sizeof *of);
    if (of == NULL) {
        sgm_graph_free(work.graph);
        sgm__rebuild_end(&work);
        return NULL;
    }
    count_uses(graph, of);
    choose(graph, of);
    for (size_t i = 0; i < graph->count && work.graph->status == SGM_OK; i++) {
        const sgm__instruction *instruction = &graph->instructions[i];
        sgm_value below =
            instruction->input_count > 0 ? graph->operands[instruction->first_input] : (sgm_value){-1};
        if (of[i].left_out)
            continue;
        if (is_transposition(instruction) && of[below.index].left_out) {
            work.map[i] = record_transposed(&work, below);
            continue;
        }
        sgm__rebuild_map(&work, instruction);
        work.map[i] = sgm__rebuild_transcribe(&work, instruction);
    }
    sgm__free(of);
    return sgm__rebuild_finish(&work);
}
