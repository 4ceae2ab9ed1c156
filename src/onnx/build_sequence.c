/* Build functions of sequences: lists of values, whose lengths are known while the model is recorded.
 *
 * A sequence is no value of the graph. It stands in scopes as a value with a number below -1, which counts
 * the sequences of the recording (import->sequences); no operation of the library takes such a value.
 * Operators make new sequences out of old ones, and SequenceAt and ConcatFromSequence lead back to values, so
 * that a place in a sequence must be known before the run (evaluate.c). */
#include "onnx/nodes/onnx.h"

/* Entries of all sequences of a recording, so that a small file with a loop cannot take all memory. */
#define MAXIMUM_ITEMS (1 << 22)

/* Operators that take sequences, and which of their inputs may be some. If and Scan are not among them: they
 * are given tensors, and their subgraphs see the names around them. */
static const struct {
    const char *type;
    int32_t first, last;
} takers[] = {
    {"ConcatFromSequence", 0, 0},  {"Loop", 2, INT32_MAX},   {"SequenceAt", 0, 0},
    {"SequenceErase", 0, 0},       {"SequenceInsert", 0, 0}, {"SequenceLength", 0, 0},
    {"SequenceMap", 0, INT32_MAX},
};

sgm_status sgm__onnx_refuse_sequences(const sgm__onnx_node *n)
{
    int32_t first = INT32_MAX, last = -1;
    for (size_t i = 0; i < sizeof takers / sizeof takers[0]; i++)
        if (strcmp(n->row->name, takers[i].type) == 0) {
            first = takers[i].first;
            last = takers[i].last;
        }
    for (int32_t i = 0; i < n->input_count; i++)
        if ((i < first || i > last) && sgm__onnx_is_sequence(n->inputs[i]))
            return sgm_fail(SGM_ERROR_UNSUPPORTED, "its input %d is a sequence, where a tensor is expected",
                            i);
    return SGM_OK;
}

/* The entries of a sequence, which stay where they are until the next one is made. */
static const sgm_value *items_of(const sgm__onnx_import *import, sgm_value sequence, int32_t *count)
{
    const sgm__onnx_sequence *entry = &import->sequences[-2 - sequence.index];
    *count = entry->count;
    return import->items + entry->first;
}

/* A new sequence of `count` entries, whose places `items` gets; they must be filled at once. No value and a
 * failure of the graph where there is no room. */
static sgm_value create(sgm__onnx_node *n, int64_t count, sgm_value **items)
{
    sgm__onnx_import *import = n->import;
    if (count > MAXIMUM_ITEMS - (int64_t)import->item_count)
        return sgm__onnx_unsupported(n, "sequences of together more than %d entries", MAXIMUM_ITEMS);
    if (sgm__reserve(&import->items, &import->item_capacity, import->item_count + (size_t)count + 1,
                     sizeof *import->items) != SGM_OK ||
        sgm__reserve(&import->sequences, &import->sequence_capacity, import->sequence_count + 1,
                     sizeof *import->sequences) != SGM_OK)
        return sgm__onnx_fail(n->graph);
    *items = import->items + import->item_count;
    import->sequences[import->sequence_count] =
        (sgm__onnx_sequence){.first = import->item_count, .count = (int32_t)count};
    import->item_count += (size_t)count;
    return (sgm_value){-2 - (int32_t)import->sequence_count++};
}

/* The sequence that is input 0, as its number of entries; -1 and a failure of the graph if it is none. */
static int32_t taken(sgm__onnx_node *n)
{
    int32_t count = -1;
    if (sgm__onnx_is_sequence(n->inputs[0]))
        items_of(n->import, n->inputs[0], &count);
    else
        sgm_graph_fail(n->graph, SGM_ERROR_FORMAT, "its input 0 is a tensor, where a sequence is expected");
    return count;
}

/* A place from 0 to `last`, of an input that may count from the end `count`; `otherwise` where the input is
 * left out. -1 and a failure of the graph where it lies outside. */
static int64_t place(sgm__onnx_node *n, int32_t input, int64_t count, int64_t last, int64_t otherwise)
{
    int64_t at = otherwise;
    if (sgm_value_exists(sgm__onnx_in(n, input)) && sgm__onnx_known_integers(n, input, &at, 1) != 1)
        return -1;
    int64_t from_start = at < 0 ? at + count : at;
    if (from_start >= 0 && from_start <= last)
        return from_start;
    sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "place %lld of a sequence of %lld", (long long)at,
                   (long long)count);
    return -1;
}

/* --- making --- */

sgm_value sgm__onnx_sequence_construct(sgm__onnx_node *n)
{
    sgm_value *items = NULL, sequence = create(n, n->input_count, &items);
    if (items != NULL)
        memcpy(items, n->inputs, (size_t)n->input_count * sizeof *items);
    return sequence;
}

/* The type of entries that it will have is read, and needed by none. */
sgm_value sgm__onnx_sequence_empty(sgm__onnx_node *n)
{
    sgm_value *items;
    sgm__onnx_attribute(n, "dtype");
    return create(n, 0, &items);
}

/* A copy of the sequence without `erased` entries at a place, and with an entry there if `inserted` exists.
 */
static sgm_value replace(sgm__onnx_node *n, int64_t at, int64_t erased, sgm_value inserted)
{
    int32_t count = taken(n), added = sgm_value_exists(inserted) ? 1 : 0;
    if (count < 0 || at < 0)
        return (sgm_value){-1};
    sgm_value *items = NULL, sequence = create(n, count - erased + added, &items);
    if (items == NULL)
        return sequence;
    const sgm_value *old = items_of(n->import, n->inputs[0], &count);
    memcpy(items, old, (size_t)at * sizeof *items);
    if (added > 0)
        items[at] = inserted;
    memcpy(items + at + added, old + at + erased, (size_t)(count - at - erased) * sizeof *items);
    return sequence;
}

sgm_value sgm__onnx_sequence_insert(sgm__onnx_node *n)
{
    int32_t count = taken(n);
    if (count < 0)
        return (sgm_value){-1};
    return replace(n, place(n, 2, count, count, count), 0, n->inputs[1]);
}

sgm_value sgm__onnx_sequence_erase(sgm__onnx_node *n)
{
    int32_t count = taken(n);
    if (count < 0)
        return (sgm_value){-1};
    return replace(n, place(n, 1, count, count - 1, -1), 1, (sgm_value){-1});
}

/* The sizes of the parts along an axis: those of input 1, a list, or one number for all but the last part,
 * which may be smaller. Without that input they are 1. Returns how many parts there are; -1 on failure. */
static int32_t part_sizes(sgm__onnx_node *n, int64_t size, int64_t *sizes)
{
    int64_t each = 1;
    int32_t count = 0;
    bool listed = sgm_value_exists(sgm__onnx_in(n, 1)) && sgm__onnx_type(n, n->inputs[1]).shape.rank > 0;
    if (listed)
        return sgm__onnx_known_integers(n, 1, sizes, SGM__ONNX_MAXIMUM_PARTS);
    if (sgm_value_exists(sgm__onnx_in(n, 1)) && sgm__onnx_known_integers(n, 1, &each, 1) != 1)
        return -1;
    if (each < 1 || (size + each - 1) / each > SGM__ONNX_MAXIMUM_PARTS) {
        sgm__onnx_unsupported(n, "parts of %lld of %lld entries; at most %d parts are made", (long long)each,
                              (long long)size, SGM__ONNX_MAXIMUM_PARTS);
        return -1;
    }
    for (int64_t at = 0; at < size; at += each)
        sizes[count++] = each < size - at ? each : size - at;
    return count;
}

/* Without sizes, `keepdims` 0 takes the axis, of one entry in each part, away. */
sgm_value sgm__onnx_split_to_sequence(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    int64_t sizes[SGM__ONNX_MAXIMUM_PARTS], at = 0;
    sgm_shape shape = sgm__onnx_type(n, n->inputs[0]).shape, part = shape;
    int32_t axis = sgm__onnx_axis(n, sgm__onnx_integer(n, "axis", 0), shape.rank);
    bool keeps = sgm__onnx_integer(n, "keepdims", 1) != 0 || sgm_value_exists(sgm__onnx_in(n, 1));
    int32_t count = axis < 0 ? -1 : part_sizes(n, shape.dims[axis], sizes);
    sgm_value *items = NULL, sequence = {-1};
    if (count >= 0)
        sequence = create(n, count, &items);
    for (int32_t i = 0; i < count && items != NULL && g->status == SGM_OK; at += sizes[i], i++) {
        if (sizes[i] < 0 || sizes[i] > shape.dims[axis] - at)
            return sgm_graph_fail(g, SGM_ERROR_SHAPE, "parts of more than %lld entries",
                                  (long long)shape.dims[axis]);
        items[i] = sgm_slice(g, n->inputs[0], axis, at, at + sizes[i], 1);
        if (keeps)
            continue;
        memmove(part.dims + axis, shape.dims + axis + 1,
                (size_t)(shape.rank - axis - 1) * sizeof part.dims[0]);
        part.rank = shape.rank - 1;
        items[i] = sgm_reshape(g, items[i], &part);
    }
    if (g->status == SGM_OK && at != shape.dims[axis])
        return sgm_graph_fail(g, SGM_ERROR_SHAPE, "parts of together %lld entries of %lld", (long long)at,
                              (long long)shape.dims[axis]);
    return sequence;
}

/* --- using --- */

sgm_value sgm__onnx_sequence_at(sgm__onnx_node *n)
{
    int32_t count = taken(n);
    int64_t at = count < 0 ? -1 : place(n, 1, count, count - 1, 0);
    if (at < 0)
        return (sgm_value){-1};
    return items_of(n->import, n->inputs[0], &count)[at];
}

sgm_value sgm__onnx_sequence_length(sgm__onnx_node *n)
{
    int64_t count = taken(n);
    return sgm__onnx_constant(n->graph, sgm_tensor_create_from(SGM_INT64, &(sgm_shape){0}, &count));
}

/* One behind the other, or with `new_axis` side by side along a new axis. */
sgm_value sgm__onnx_concat_from_sequence(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    int32_t count = taken(n), added = sgm__onnx_integer(n, "new_axis", 0) != 0;
    if (count == 0)
        return sgm__onnx_unsupported(n, "an empty sequence has nothing to put together");
    if (count < 0)
        return (sgm_value){-1};
    const sgm_value *items = items_of(n->import, n->inputs[0], &count);
    sgm_shape shape = sgm__onnx_type(n, items[0]).shape;
    if (shape.rank + added > SGM_MAX_RANK)
        return sgm__onnx_unsupported(n, "more than %d dimensions", SGM_MAX_RANK);
    int32_t axis = sgm__onnx_axis(n, sgm__onnx_integer(n, "axis", 0), shape.rank + added);
    sgm_value *values = sgm__alloc((size_t)count * sizeof *values);
    if (values == NULL)
        return sgm__onnx_fail(g);
    for (int32_t i = 0; i < count && g->status == SGM_OK; i++) {
        values[i] = items[i];
        if (added == 0)
            continue;
        shape = sgm__onnx_type(n, items[i]).shape;
        memmove(shape.dims + axis + 1, shape.dims + axis, (size_t)(shape.rank - axis) * sizeof shape.dims[0]);
        shape.dims[axis] = 1;
        shape.rank++;
        values[i] = sgm_reshape(g, items[i], &shape);
    }
    sgm_value all = g->status == SGM_OK ? sgm_concatenate(g, values, count, axis) : (sgm_value){-1};
    sgm__free(values);
    return all;
}

/* The body once for each entry: of the first input, and of the others that are sequences; tensors are the
 * same for all. */
sgm_value sgm__onnx_sequence_map(sgm__onnx_node *n)
{
    const Onnx__AttributeProto *attribute = sgm__onnx_attribute(n, "body");
    int32_t count = taken(n), other;
    if (attribute == NULL || attribute->g == NULL || attribute->g->n_output != (size_t)n->output_count ||
        n->input_count > SGM__ONNX_MAXIMUM_OUTPUTS)
        return sgm_graph_fail(n->graph, SGM_ERROR_FORMAT, "its subgraph does not fit its inputs and outputs");
    sgm_value inputs[SGM__ONNX_MAXIMUM_OUTPUTS], results[SGM__ONNX_MAXIMUM_OUTPUTS], *items;
    for (int32_t i = 0; i < n->output_count && count >= 0 && n->graph->status == SGM_OK; i++)
        n->outputs[i] = create(n, count, &items);
    for (int32_t round = 0; round < count && n->graph->status == SGM_OK; round++) {
        for (int32_t i = 0; i < n->input_count; i++) {
            inputs[i] = n->inputs[i];
            if (!sgm__onnx_is_sequence(inputs[i]))
                continue;
            const sgm_value *entries = items_of(n->import, inputs[i], &other);
            if (other != count)
                return sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "sequences of %d and %d entries", count,
                                      other);
            inputs[i] = entries[round];
        }
        if (sgm__onnx_record_subgraph(n->import, attribute->g, n->scope, inputs, (size_t)n->input_count,
                                      results) != SGM_OK)
            return sgm_graph_fail(n->graph, sgm__last_failure(), "in its subgraph: %s", sgm_last_error());
        for (int32_t i = 0; i < n->output_count; i++) {
            if (sgm__onnx_is_sequence(results[i]))
                return sgm__onnx_unsupported(n, "a sequence in a sequence");
            n->import->items[n->import->sequences[-2 - n->outputs[i].index].first + (size_t)round] =
                results[i];
        }
    }
    return n->outputs[0];
}
