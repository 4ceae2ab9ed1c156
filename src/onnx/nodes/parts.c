/* The pieces of an exported message: memory, names, nodes with their attributes, initialisers.
 *
 * Used by export.c (the walk) and write.c (one function for each operation). All memory comes from
 * sgm__onnx_take and is freed together at the end. A lack of memory is noted in e->status and the
 * functions return NULL or "", which the others accept; so writers need no checks of their own, and
 * export.c looks at the status after each instruction. */
#include "onnx/nodes/export.h"

#include <stdio.h>

/* --- memory and texts --- */

/* The block's header has the alignment of max_align_t, so that any struct of the message may lie behind
 * it. */
void *sgm__onnx_take(sgm__onnx_export *e, size_t size)
{
    sgm__onnx_block *b = sgm__calloc(1, sizeof *b + size);
    if (b == NULL) {
        e->status = SGM_ERROR_MEMORY;
        return NULL;
    }
    b->next = e->blocks;
    e->blocks = b;
    return b->bytes;
}

/* One byte more than `size`, which is zero: copies of texts are terminated, and a size of 0 gives valid
 * memory. */
static void *take_copy(sgm__onnx_export *e, const void *data, size_t size)
{
    void *copy = sgm__onnx_take(e, size + 1);
    if (copy != NULL && size > 0)
        memcpy(copy, data, size);
    return copy;
}

char *sgm__onnx_take_text(sgm__onnx_export *e, const char *text)
{
    return take_copy(e, text, strlen(text));
}

/* The number makes names unique among those made here. Inputs, states and outputs keep the names that the
 * graph gives them. */
char *sgm__onnx_fresh_name(sgm__onnx_export *e, const char *label, const char *type)
{
    char text[400];
    snprintf(text, sizeof text, "%.300s%s%.60s.%d", label, *label != '\0' ? "/" : "", type, e->fresh++);
    return sgm__onnx_take_text(e, text);
}

/* --- nodes --- */

/* Inputs and the output are one array of names; the output is its last entry. The node has the name of its
 * output. */
Onnx__NodeProto *sgm__onnx_emit(sgm__onnx_export *e, const char *type, const char *output, int32_t count,
                                const char *const *inputs)
{
    Onnx__NodeProto *node = sgm__onnx_take(e, sizeof *node);
    char **list = sgm__onnx_take(e, ((size_t)count + 1) * sizeof *list);
    if (node == NULL || list == NULL || e->status != SGM_OK)
        return NULL;
    onnx__node_proto__init(node);
    for (int32_t i = 0; i < count; i++)
        list[i] = sgm__onnx_take_text(e, inputs[i] != NULL ? inputs[i] : "");
    list[count] = output != NULL ? sgm__onnx_take_text(e, output) : sgm__onnx_fresh_name(e, "", type);
    node->input = list;
    node->n_input = (size_t)count;
    node->output = list + count;
    node->n_output = 1;
    node->op_type = sgm__onnx_take_text(e, type);
    node->name = list[count];
    if (e->status == SGM_OK)
        e->status = sgm__reserve(&e->nodes, &e->node_capacity, e->node_count + 1, sizeof *e->nodes);
    if (e->status != SGM_OK)
        return NULL;
    e->nodes[e->node_count++] = node;
    return node;
}

const char *sgm__onnx_call(sgm__onnx_export *e, const char *output, const char *type, const char *a,
                           const char *b, const char *c)
{
    const char *inputs[] = {a, b, c};
    Onnx__NodeProto *node = sgm__onnx_emit(e, type, output,
                                           c != NULL   ? 3
                                           : b != NULL ? 2
                                           : a != NULL ? 1
                                                       : 0,
                                           inputs);
    return node != NULL ? node->output[0] : "";
}

/* Appends an attribute of this type and returns it, to be filled in. The node's list is copied each time:
 * nodes have at most five attributes. */
static Onnx__AttributeProto *put(sgm__onnx_export *e, Onnx__NodeProto *node, const char *name,
                                 Onnx__AttributeProto__AttributeType type)
{
    Onnx__AttributeProto *attribute = sgm__onnx_take(e, sizeof *attribute);
    Onnx__AttributeProto **list =
        node != NULL ? sgm__onnx_take(e, (node->n_attribute + 1) * sizeof(Onnx__AttributeProto *)) : NULL;
    if (attribute == NULL || list == NULL)
        return NULL;
    onnx__attribute_proto__init(attribute);
    attribute->name = sgm__onnx_take_text(e, name);
    attribute->has_type = true;
    attribute->type = type;
    for (size_t i = 0; i < node->n_attribute; i++)
        list[i] = node->attribute[i];
    list[node->n_attribute++] = attribute;
    node->attribute = list;
    return attribute;
}

void sgm__onnx_put_integer(sgm__onnx_export *e, Onnx__NodeProto *node, const char *name, int64_t value)
{
    Onnx__AttributeProto *attribute = put(e, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    if (attribute == NULL)
        return;
    attribute->has_i = true;
    attribute->i = value;
}

/* ONNX's attributes are float; a double attribute of the library is rounded here. */
void sgm__onnx_put_number(sgm__onnx_export *e, Onnx__NodeProto *node, const char *name, double value)
{
    Onnx__AttributeProto *attribute = put(e, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    if (attribute == NULL)
        return;
    attribute->has_f = true;
    attribute->f = (float)value;
}

void sgm__onnx_put_integers(sgm__onnx_export *e, Onnx__NodeProto *node, const char *name, const int64_t *list,
                            int32_t count)
{
    Onnx__AttributeProto *attribute = put(e, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    if (attribute == NULL)
        return;
    attribute->n_ints = (size_t)count;
    attribute->ints = take_copy(e, list, (size_t)count * sizeof *list);
}

/* For TopK, whose second output is the places, and DynamicQuantizeLinear. */
sgm_status sgm__onnx_put_outputs(sgm__onnx_export *e, Onnx__NodeProto *node, size_t count, const char *second)
{
    char **outputs = sgm__onnx_take(e, count * sizeof *outputs);
    if (node == NULL || outputs == NULL)
        return SGM_ERROR_MEMORY;
    outputs[0] = node->output[0];
    for (size_t i = 1; i < count; i++)
        outputs[i] = i == 1 && second != NULL ? sgm__onnx_take_text(e, second)
                                              : sgm__onnx_fresh_name(e, "", node->op_type);
    node->output = outputs;
    node->n_output = count;
    return e->status;
}

/* --- initialisers --- */

/* Copies the elements as raw little-endian bytes. Fails silently if an earlier allocation did: e->status
 * says so. */
void sgm__onnx_add_tensor(sgm__onnx_export *e, char *name, const sgm_tensor *tensor)
{
    Onnx__TensorProto *proto = sgm__onnx_take(e, sizeof *proto);
    if (proto == NULL || name == NULL || e->status != SGM_OK)
        return;
    const sgm_shape *shape = sgm_tensor_shape(tensor);
    sgm_dtype dtype = sgm_tensor_dtype(tensor);
    onnx__tensor_proto__init(proto);
    proto->name = name;
    proto->has_data_type = true;
    proto->data_type = sgm__onnx_type_number(dtype);
    proto->n_dims = (size_t)shape->rank;
    proto->dims = take_copy(e, shape->dims, (size_t)shape->rank * sizeof shape->dims[0]);
    proto->has_raw_data = true;
    proto->raw_data.len = (size_t)sgm_shape_elements(shape) * sgm_dtype_size(dtype);
    proto->raw_data.data = take_copy(e, sgm_tensor_const_data(tensor), proto->raw_data.len);
    if (e->status == SGM_OK)
        e->status = sgm__reserve(&e->tensors, &e->tensor_capacity, e->tensor_count + 1, sizeof *e->tensors);
    if (e->status == SGM_OK)
        e->tensors[e->tensor_count++] = proto;
}

/* An initialiser whose name says its contents ("integers(0,1)", "float32(0.5)"), so that equal ones are
 * stored once. Frees the tensor in any case. The value in the scope is a placeholder; only the presence of
 * the name counts. */
static const char *shared_tensor(sgm__onnx_export *e, const char *name, sgm_tensor *tensor)
{
    char *own = sgm__onnx_take_text(e, name);
    if (own == NULL || tensor == NULL) {
        e->status = SGM_ERROR_MEMORY;
    } else if (!sgm_value_exists(sgm__onnx_find(&e->known, own))) {
        if (sgm__onnx_define(&e->known, own, (sgm_value){0}) != SGM_OK)
            e->status = SGM_ERROR_MEMORY;
        sgm__onnx_add_tensor(e, own, tensor);
    }
    sgm_tensor_free(tensor);
    return own;
}

/* A list has at most 2 * SGM_MAX_RANK entries (padding), each at most 20 characters and a comma, so the
 * name fits. */
const char *sgm__onnx_name_integers(sgm__onnx_export *e, const int64_t *list, int32_t count)
{
    char name[64 + 24 * 2 * SGM_MAX_RANK];
    int length = snprintf(name, sizeof name, "integers(");
    for (int32_t i = 0; i < count && length < (int)sizeof name - 32; i++)
        length += snprintf(name + length, sizeof name - (size_t)length, "%s%lld", i > 0 ? "," : "",
                           (long long)list[i]);
    snprintf(name + length, sizeof name - (size_t)length, ")");
    return shared_tensor(e, name, sgm_tensor_create_from(SGM_INT64, SGM__ONNX_SHAPE(count), list));
}

/* The name has the type and the shortest decimal that reads back as the number, so different numbers have
 * different names. */
const char *sgm__onnx_name_number(sgm__onnx_export *e, sgm_dtype dtype, double number)
{
    char name[64], text[32];
    snprintf(name, sizeof name, "%s(%s)", sgm_dtype_name(dtype), sgm__number_text(number, text, sizeof text));
    sgm_tensor *tensor = sgm_tensor_create(dtype, &(sgm_shape){0});
    if (tensor != NULL)
        sgm_tensor_set(tensor, NULL, number);
    return shared_tensor(e, name, tensor);
}

/* Not shared: comparing large tensors is not worth it. */
const char *sgm__onnx_name_tensor(sgm__onnx_export *e, sgm_tensor *tensor)
{
    char *name = sgm__onnx_fresh_name(e, "", "constant");
    if (tensor == NULL)
        e->status = SGM_ERROR_MEMORY;
    else
        sgm__onnx_add_tensor(e, name, tensor);
    sgm_tensor_free(tensor);
    return name != NULL ? name : "";
}
