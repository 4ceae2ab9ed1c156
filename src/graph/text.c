/* Prints graphs, computes their structural hash, and compares their structures.
 *
 * The hash is the key under which a session finds the program compiled for an equal graph
 * (src/handlers/session.c), and sgm__graph_structure_equal confirms a hit. Both look at operations, types,
 * attributes, operands, names of inputs, states and outputs, and assignments, but not at labels, which change
 * nothing that is computed. Elements of constants are compared, but not hashed, as they may be many. */
#include "graph/graph_internal.h"

/* Integers first, then numbers, as in "[1, 0.5]". */
static void append_attributes(sgm__text *text, const sgm_attributes *attributes)
{
    if (attributes->integer_count + attributes->number_count == 0)
        return;
    const char *between = " [";
    for (int32_t i = 0; i < attributes->integer_count; i++, between = ", ")
        sgm__text_append(text, "%s%lld", between, (long long)attributes->integers[i]);
    for (int32_t i = 0; i < attributes->number_count; i++, between = ", ")
        sgm__text_append(text, "%s%.9g", between, attributes->numbers[i]);
    sgm__text_append(text, "]");
}

/* "%4 = add %2 %3 : float32 (100, 10) # 2-dense". */
static void append_instruction(sgm__text *text, const sgm_graph *graph, int32_t index)
{
    const sgm__instruction *instruction = &graph->instructions[index];
    char shape[128];
    sgm__text_append(text, "%%%d = %s", index, instruction->op->name);
    if (instruction->name > 0)
        sgm__text_append(text, " '%s'", sgm__graph_string(graph, instruction->name));
    for (int32_t k = 0; k < instruction->input_count; k++)
        sgm__text_append(text, " %%%d", graph->operands[instruction->first_input + k].index);
    append_attributes(text, instruction->attributes);
    sgm__text_append(text, " : %s %s", sgm_dtype_name(instruction->type.dtype),
                     sgm_shape_text(&instruction->type.shape, shape, sizeof shape));
    if (instruction->label > 0)
        sgm__text_append(text, "  # %s", sgm__graph_string(graph, instruction->label));
    sgm__text_append(text, "\n");
}

/* For people and tests: labels are shown, constants' elements are not. */
char *sgm_graph_text(const sgm_graph *graph)
{
    if (sgm_graph_status(graph) != SGM_OK)
        return NULL;
    sgm__text text = {0};
    sgm__text_append(&text, "%s", "");
    for (int32_t i = 0; i < (int32_t)graph->count; i++)
        append_instruction(&text, graph, i);
    for (size_t i = 0; i < graph->assignment_count; i++)
        sgm__text_append(&text, "assign '%s' = %%%d\n", sgm_value_name(graph, graph->assignments[i].state),
                         graph->assignments[i].value.index);
    for (size_t i = 0; i < graph->output_count; i++)
        sgm__text_append(&text, "output '%s' = %%%d\n", sgm__graph_string(graph, graph->outputs[i].name),
                         graph->outputs[i].value.index);
    return sgm__text_take(&text);
}

/* --- structure --- */

/* One multiplication for each 8 bytes: dynamic networks compute the hash at each iteration. The weak mixing
 * is made good by the sgm__hash at the end of sgm_graph_hash. */
static uint64_t mix(uint64_t hash, const void *bytes, size_t length)
{
    const unsigned char *next = bytes;
    hash += length;
    for (size_t left = length; left > 0;) {
        uint64_t word = 0;
        size_t part = left < sizeof word ? left : sizeof word;
        memcpy(&word, next, part);
        hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
        next += part;
        left -= part;
    }
    return hash;
}

/* Operations are hashed by their address: a table is unique in the process, and hashes are not stored. */
static uint64_t hash_instruction(const sgm_graph *graph, const sgm__instruction *instruction, uint64_t hash)
{
    const sgm_attributes *attributes = instruction->attributes;
    const char *name = sgm__graph_string(graph, instruction->name);
    hash = mix(hash, &instruction->op, sizeof instruction->op);
    hash = mix(hash, &instruction->type.dtype, sizeof instruction->type.dtype);
    hash = mix(hash, &instruction->type.shape.rank, sizeof instruction->type.shape.rank);
    hash = mix(hash, instruction->type.shape.dims, (size_t)instruction->type.shape.rank * sizeof(int64_t));
    hash = mix(hash, attributes->integers, (size_t)attributes->integer_count * sizeof(int64_t));
    hash = mix(hash, attributes->numbers, (size_t)attributes->number_count * sizeof(double));
    if (instruction->input_count > 0)
        hash = mix(hash, graph->operands + instruction->first_input,
                   (size_t)instruction->input_count * sizeof(sgm_value));
    return instruction->name > 0 ? mix(hash, name, strlen(name)) : hash;
}

uint64_t sgm_graph_hash(const sgm_graph *graph)
{
    if (graph == NULL)
        return 0;
    uint64_t hash = graph->count;
    for (size_t i = 0; i < graph->count; i++)
        hash = hash_instruction(graph, &graph->instructions[i], hash);
    for (size_t i = 0; i < graph->assignment_count; i++)
        hash = mix(hash, &graph->assignments[i], sizeof(sgm__assignment));
    for (size_t i = 0; i < graph->output_count; i++) {
        const char *name = sgm__graph_string(graph, graph->outputs[i].name);
        hash = mix(mix(hash, name, strlen(name)), &graph->outputs[i].value, sizeof(sgm_value));
    }
    return sgm__hash(&hash, sizeof hash, 0);
}

static bool same_operands(const sgm_graph *a, const sgm_graph *b, const sgm__instruction *x,
                          const sgm__instruction *y)
{
    return x->input_count == y->input_count &&
           (x->input_count == 0 || memcmp(a->operands + x->first_input, b->operands + y->first_input,
                                          (size_t)x->input_count * sizeof(sgm_value)) == 0);
}

/* Types have been compared by then; constants of graphs are contiguous. */
static bool same_constant(const sgm_graph *a, const sgm_graph *b, int32_t index_a, int32_t index_b)
{
    if (index_a < 0 || index_b < 0)
        return index_a == index_b;
    const sgm_tensor *x = a->constants[index_a], *y = b->constants[index_b];
    size_t bytes = (size_t)sgm_shape_elements(sgm_tensor_shape(x)) * sgm_dtype_size(sgm_tensor_dtype(x));
    return memcmp(sgm_tensor_const_data(x), sgm_tensor_const_data(y), bytes) == 0;
}

static bool same_instruction(const sgm_graph *a, const sgm_graph *b, size_t index)
{
    const sgm__instruction *x = &a->instructions[index], *y = &b->instructions[index];
    return x->op == y->op && x->type.dtype == y->type.dtype &&
           sgm_shape_equal(&x->type.shape, &y->type.shape) &&
           sgm__attributes_equal(x->attributes, y->attributes) && same_operands(a, b, x, y) &&
           strcmp(sgm__graph_string(a, x->name), sgm__graph_string(b, y->name)) == 0 &&
           same_constant(a, b, x->constant, y->constant);
}

/* Equal numbers of everything first; then item by item, in order, as recording the same network gives the
 * same order. */
bool sgm__graph_structure_equal(const sgm_graph *a, const sgm_graph *b)
{
    if (a->count != b->count || a->assignment_count != b->assignment_count ||
        a->output_count != b->output_count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (!same_instruction(a, b, i))
            return false;
    for (size_t i = 0; i < a->assignment_count; i++)
        if (a->assignments[i].state.index != b->assignments[i].state.index ||
            a->assignments[i].value.index != b->assignments[i].value.index)
            return false;
    for (size_t i = 0; i < a->output_count; i++)
        if (a->outputs[i].value.index != b->outputs[i].value.index ||
            strcmp(sgm__graph_string(a, a->outputs[i].name), sgm__graph_string(b, b->outputs[i].name)) != 0)
            return false;
    return true;
}
