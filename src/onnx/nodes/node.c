/* What the build functions (build_*.c) use to read their node: scopes, attributes, known inputs,
 * constants.
 *
 * Declared and explained in onnx.h. All failures here are the graph's: a build function need not check
 * each call, it may go on with the default that it got, since import.c looks at the graph's status after
 * it. Reading an attribute notes that it was read (n->asked). */
#include "onnx/nodes/onnx.h"

/* --- scopes: what the names of values stand for --- */

/* The entry of a name, or the free one where it would go. The table has free entries, so the search ends. */
static sgm__onnx_entry *slot(const sgm__onnx_scope *scope, const char *name)
{
    size_t at = sgm__hash_text(name) & (scope->capacity - 1);
    while (scope->entries[at].name != NULL && strcmp(scope->entries[at].name, name) != 0)
        at = (at + 1) & (scope->capacity - 1);
    return &scope->entries[at];
}

/* A scope without entries has no table yet, hence the test of `count`. */
sgm_value sgm__onnx_find(const sgm__onnx_scope *scope, const char *name)
{
    for (; scope != NULL; scope = scope->outer)
        if (scope->count > 0 && slot(scope, name)->name != NULL)
            return slot(scope, name)->value;
    return (sgm_value){-1};
}

bool sgm__onnx_is_defined(const sgm__onnx_scope *scope, const char *name)
{
    for (; scope != NULL; scope = scope->outer)
        if (scope->count > 0 && slot(scope, name)->name != NULL)
            return true;
    return false;
}

/* Doubles the table and puts all names into their new places. */
static sgm_status grow(sgm__onnx_scope *scope)
{
    sgm__onnx_scope larger = {.capacity = scope->capacity > 0 ? 2 * scope->capacity : 64};
    larger.entries = sgm__calloc(larger.capacity, sizeof(sgm__onnx_entry));
    if (larger.entries == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < scope->capacity; i++)
        if (scope->entries[i].name != NULL)
            *slot(&larger, scope->entries[i].name) = scope->entries[i];
    sgm__free(scope->entries);
    scope->entries = larger.entries;
    scope->capacity = larger.capacity;
    return SGM_OK;
}

/* The table grows before it is more than half full, so that `slot` finds a free entry soon. */
sgm_status sgm__onnx_define(sgm__onnx_scope *scope, const char *name, sgm_value value)
{
    if (2 * scope->count >= scope->capacity)
        SGM_TRY(grow(scope));
    sgm__onnx_entry *entry = slot(scope, name);
    if (entry->name != NULL)
        return sgm_fail(SGM_ERROR_FORMAT, "the name '%.100s' is given to two values", name);
    *entry = (sgm__onnx_entry){name, value};
    scope->count++;
    return SGM_OK;
}

void sgm__onnx_scope_free(sgm__onnx_scope *scope)
{
    sgm__free(scope->entries);
    scope->entries = NULL;
}

/* --- types --- */

sgm_type sgm__onnx_type(const sgm__onnx_node *n, sgm_value value)
{
    return sgm_value_type(n->graph, value);
}

/* --- attributes --- */

/* Nodes have few attributes, so a linear search does. Finding an attribute counts as reading it. One that
 * refers to an attribute of the function around it is that of the node which calls the function. */
const Onnx__AttributeProto *sgm__onnx_attribute(const sgm__onnx_node *n, const char *name)
{
    for (size_t i = 0; i < n->proto->n_attribute; i++) {
        const Onnx__AttributeProto *attribute = n->proto->attribute[i];
        if (strcmp(sgm__onnx_text(attribute->name), name) != 0)
            continue;
        n->asked[i] = true;
        const char *outer = sgm__onnx_text(attribute->ref_attr_name);
        if (*outer == '\0')
            return attribute;
        return n->caller != NULL ? sgm__onnx_attribute(n->caller, outer) : NULL;
    }
    return NULL;
}

/* The attribute if it is of this kind; NULL if there is none, or it is of another kind (a failure of the
 * graph). Files of old IR versions do not say the kind (UNDEFINED): their attribute is taken as it is. A
 * value of zero may be left out of the file; the generated reader fills in zero then. */
static const Onnx__AttributeProto *attribute_of(const sgm__onnx_node *n, const char *name,
                                                Onnx__AttributeProto__AttributeType kind, const char *what)
{
    const Onnx__AttributeProto *attribute = sgm__onnx_attribute(n, name);
    if (attribute == NULL || attribute->type == kind ||
        attribute->type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED)
        return attribute;
    sgm_graph_fail(n->graph, SGM_ERROR_FORMAT, "its attribute '%s' is not %s", name, what);
    return NULL;
}

int64_t sgm__onnx_integer(const sgm__onnx_node *n, const char *name, int64_t default_value)
{
    const Onnx__AttributeProto *attribute =
        attribute_of(n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT, "an integer");
    return attribute != NULL ? attribute->i : default_value;
}

/* ONNX has numbers as float; widening is exact. */
double sgm__onnx_number(const sgm__onnx_node *n, const char *name, double default_value)
{
    const Onnx__AttributeProto *attribute =
        attribute_of(n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT, "a number");
    return attribute != NULL ? (double)attribute->f : default_value;
}

/* Compares a text attribute, or the default if the node has none, with `text`. Texts of attributes have a
 * length and no terminating zero. */
bool sgm__onnx_text_is(const sgm__onnx_node *n, const char *name, const char *default_value, const char *text)
{
    const Onnx__AttributeProto *attribute =
        attribute_of(n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING, "a text");
    if (attribute == NULL)
        return strcmp(default_value, text) == 0;
    return attribute->s.len == strlen(text) && memcmp(attribute->s.data, text, attribute->s.len) == 0;
}

/* The length is checked against the caller's array; what the integers mean is the caller's to check. */
int32_t sgm__onnx_integers(sgm__onnx_node *n, const char *name, int64_t *list, int32_t maximum)
{
    const Onnx__AttributeProto *attribute =
        attribute_of(n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS, "a list of integers");
    if (attribute == NULL)
        return -1;
    if (attribute->n_ints > (size_t)maximum) {
        sgm__onnx_unsupported(n, "'%s' has %zu entries, at most %d are supported here", name,
                              attribute->n_ints, maximum);
        return -1;
    }
    for (size_t i = 0; i < attribute->n_ints; i++)
        list[i] = attribute->ints[i];
    return (int32_t)attribute->n_ints;
}

int32_t sgm__onnx_list(sgm__onnx_node *n, const char *name, int32_t input, int64_t *list, int32_t maximum)
{
    if (sgm__onnx_attribute(n, name) != NULL)
        return sgm__onnx_integers(n, name, list, maximum);
    if (!sgm_value_exists(sgm__onnx_in(n, input)))
        return -1;
    return sgm__onnx_known_integers(n, input, list, maximum);
}

int32_t sgm__onnx_axis(sgm__onnx_node *n, int64_t axis, int32_t rank)
{
    if (axis >= -rank && axis < rank)
        return (int32_t)(axis < 0 ? axis + rank : axis);
    sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "there is no axis %lld among %d dimensions", (long long)axis,
                   rank);
    return -1;
}

/* --- inputs whose values are wanted now --- */

/* evaluate.c fails with an error of the thread; here it becomes the graph's, with the number of the input
 * in front. */
const sgm_tensor *sgm__onnx_known(sgm__onnx_node *n, int32_t input)
{
    const sgm_tensor *tensor = sgm__onnx_known_value(n->import, sgm__onnx_in(n, input));
    if (tensor == NULL && n->graph->status == SGM_OK)
        sgm_graph_fail(n->graph, sgm__last_failure(), "input %d must be known before the run: %s", input,
                       sgm_last_error());
    return tensor;
}

/* int32 and int64 are accepted: both occur in models as lists of axes and sizes. */
int32_t sgm__onnx_known_integers(sgm__onnx_node *n, int32_t input, int64_t *list, int32_t maximum)
{
    const sgm_tensor *tensor = sgm__onnx_known(n, input);
    if (tensor == NULL)
        return -1;
    int64_t count = sgm_shape_elements(sgm_tensor_shape(tensor));
    sgm_dtype dtype = sgm_tensor_dtype(tensor);
    if ((dtype != SGM_INT64 && dtype != SGM_INT32) || count > maximum) {
        sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "input %d should be at most %d integers, and is %lld of %s",
                       input, maximum, (long long)count, sgm_dtype_name(dtype));
        return -1;
    }
    for (int64_t i = 0; i < count; i++)
        list[i] = dtype == SGM_INT64 ? ((const int64_t *)sgm_tensor_const_data(tensor))[i]
                                     : ((const int32_t *)sgm_tensor_const_data(tensor))[i];
    return (int32_t)count;
}

/* Takes any numeric type: scalars of Range may be floats or integers. */
double sgm__onnx_known_number(sgm__onnx_node *n, int32_t input, double default_value)
{
    if (!sgm_value_exists(sgm__onnx_in(n, input)))
        return default_value;
    const sgm_tensor *tensor = sgm__onnx_known(n, input);
    double number = default_value;
    if (tensor == NULL)
        return default_value;
    if (sgm_shape_elements(sgm_tensor_shape(tensor)) != 1 || sgm_tensor_read(tensor, &number, 1) != SGM_OK)
        sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "input %d should be one number", input);
    return number;
}

/* --- constants --- */

sgm_value sgm__onnx_fail(sgm_graph *graph)
{
    return sgm_graph_fail(graph, sgm__last_failure(), "%s", sgm_last_error());
}

/* Appends the instruction directly instead of by sgm_constant, which would copy the tensor: the graph's
 * table of constants retains it instead, and the caller's reference is given up. */
sgm_value sgm__onnx_constant(sgm_graph *graph, sgm_tensor *tensor)
{
    if (tensor == NULL)
        return sgm__onnx_fail(graph);
    sgm__instruction constant = {.op = &sgm__op_constant,
                                 .type = {sgm_tensor_dtype(tensor), *sgm_tensor_shape(tensor)},
                                 .constant = -1};
    if (graph->status == SGM_OK)
        constant.constant = sgm__graph_add_constant(graph, tensor);
    sgm_tensor_free(tensor);
    if (constant.constant < 0)
        return (sgm_value){-1};
    return sgm__graph_append(graph, &constant, NULL);
}

sgm_value sgm__onnx_constant_tensor(sgm__onnx_import *import, const Onnx__TensorProto *proto)
{
    sgm_value value = sgm__onnx_constant(import->graph, sgm__onnx_tensor(proto, import->model->folder));
    return sgm__onnx_mark(import, value, proto->data_type);
}

sgm_value sgm__onnx_constant_integers(sgm_graph *graph, const int64_t *list, int32_t count)
{
    return sgm__onnx_constant(graph, sgm_tensor_create_from(SGM_INT64, SGM__ONNX_SHAPE(count), list));
}

/* --- values --- */

/* Many operations of the library work on the last axis only; their ONNX counterparts have an axis. */
sgm_value sgm__onnx_swap_last(sgm_graph *graph, sgm_value x, int32_t axis)
{
    int32_t axes[SGM_MAX_RANK], last = sgm_value_type(graph, x).shape.rank - 1;
    if (axis < 0)
        return (sgm_value){-1};
    if (axis == last)
        return x;
    for (int32_t i = 0; i <= last; i++)
        axes[i] = i == axis ? last : i == last ? axis : i;
    return sgm_permute(graph, x, axes);
}

sgm_value sgm__onnx_cast_like(sgm_graph *graph, sgm_value x, sgm_value like)
{
    return sgm_cast(graph, x, sgm_value_type(graph, like).dtype);
}

sgm_value sgm__onnx_over_places(sgm__onnx_node *n, sgm_value x, sgm__onnx_reduction function)
{
    int32_t axes[SGM_MAX_RANK], count = 0, rank = sgm__onnx_type(n, x).shape.rank;
    for (int32_t i = 2; i < rank; i++)
        axes[count++] = i;
    if (count == 0)
        return sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "data of batch, channels and places is needed");
    return function(n->graph, x, axes, count, true);
}
