/* Translates the nodes that lead to a model's output, in the order of the file.
 *
 * A value is a chain of layers, "x1 + convolution(...)". Where several nodes take it, it becomes a statement,
 * "x2 = x1 + convolution(...);", and its chain is "x2" from there on. What the file says is not believed: the
 * translation stops at the first node that is not what a layer does, and the notation checks the rest. */
#include "onnx/translate.h"
#include "text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Nodes of a model. Each looks through all others for those that take what it makes. */
#define MOST_NODES 10000
/* Names of layers are at most so long, with a number behind them that tells equal ones apart. */
#define LONGEST_NAME 48

static void out_of_memory(sgm__translation *t)
{
    if (t->status == SGM_OK)
        t->status = sgm_fail(SGM_ERROR_MEMORY, "no memory for the network of '%s'", t->path);
}

void sgm__translation_refuse(sgm__translation *t, const char *format, ...)
{
    char why[320];
    va_list arguments;
    if (t->status != SGM_OK)
        return;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    t->status = sgm_fail(SGM_ERROR_UNSUPPORTED,
                         "'%s': node %zu, '%.60s' (%.40s): %s; 'sigma predict' runs the model as it is",
                         t->path, t->node, t->info.name, t->info.type, why);
}

/* --- attributes --- */

static bool find_attribute(sgm__translation *t, const char *name, sgm_onnx_attribute *attribute)
{
    for (size_t i = 0; sgm_onnx_node_attribute(t->model, t->node, i, attribute); i++)
        if (strcmp(attribute->name, name) == 0) {
            t->asked[i] = true;
            return true;
        }
    return false;
}

int32_t sgm__translation_integers(sgm__translation *t, const char *name, int64_t *list, int32_t maximum)
{
    sgm_onnx_attribute attribute;
    if (t->status != SGM_OK || !find_attribute(t, name, &attribute))
        return -1;
    if (attribute.integers == NULL || attribute.count > (size_t)maximum) {
        sgm__translation_refuse(t, "'%s' is not a list of at most %d integers", name, maximum);
        return -1;
    }
    memcpy(list, attribute.integers, attribute.count * sizeof *list);
    return (int32_t)attribute.count;
}

int64_t sgm__translation_integer(sgm__translation *t, const char *name, int64_t otherwise)
{
    sgm__translation_integers(t, name, &otherwise, 1);
    return otherwise;
}

double sgm__translation_number(sgm__translation *t, const char *name, double otherwise)
{
    sgm_onnx_attribute attribute;
    bool given = find_attribute(t, name, &attribute);
    if (given && (attribute.numbers == NULL || attribute.count != 1))
        sgm__translation_refuse(t, "'%s' is not a number", name);
    return given && attribute.numbers != NULL && attribute.count == 1 ? (double)attribute.numbers[0]
                                                                      : otherwise;
}

bool sgm__translation_text_is(sgm__translation *t, const char *name, const char *otherwise, const char *text)
{
    sgm_onnx_attribute attribute;
    if (!find_attribute(t, name, &attribute) || attribute.text == NULL)
        return strcmp(otherwise, text) == 0;
    return attribute.length == strlen(text) && memcmp(attribute.text, text, attribute.length) == 0;
}

static void check_asked(sgm__translation *t)
{
    sgm_onnx_attribute attribute;
    for (size_t i = 0; sgm_onnx_node_attribute(t->model, t->node, i, &attribute); i++)
        if (!t->asked[i])
            sgm__translation_refuse(t, "its attribute '%.60s' says something that no layer has",
                                    attribute.name);
}

/* --- values --- */

sgm_tensor *sgm__translation_constant(sgm__translation *t, size_t input)
{
    const char *name = sgm_onnx_node_input(t->model, t->node, input);
    return t->status == SGM_OK && name != NULL ? sgm_onnx_constant(t->model, name) : NULL;
}

int32_t sgm__translation_constant_integers(sgm__translation *t, size_t input, int64_t *list, int32_t maximum)
{
    sgm_tensor *tensor = sgm__translation_constant(t, input);
    int64_t count = tensor != NULL ? sgm_shape_elements(sgm_tensor_shape(tensor)) : -1;
    if (count > maximum || (tensor != NULL && sgm_tensor_dtype(tensor) != SGM_INT64))
        count = -1;
    if (count > 0)
        memcpy(list, sgm_tensor_const_data(tensor), (size_t)count * sizeof *list);
    sgm_tensor_free(tensor);
    return (int32_t)count;
}

double sgm__translation_constant_number(sgm__translation *t, size_t input, double otherwise)
{
    const char *name = sgm_onnx_node_input(t->model, t->node, input);
    if (t->status != SGM_OK || name == NULL || *name == '\0')
        return otherwise;
    sgm_tensor *tensor = sgm_onnx_constant(t->model, name);
    if (tensor == NULL || sgm_shape_elements(sgm_tensor_shape(tensor)) != 1 ||
        sgm_tensor_read(tensor, &otherwise, 1) != SGM_OK)
        sgm__translation_refuse(t, "its input %zu is not one number that is known", input);
    sgm_tensor_free(tensor);
    return otherwise;
}

static sgm__translation_chain *find_chain(const sgm__translation *t, const char *name)
{
    for (size_t i = 0; i < t->chain_count; i++)
        if (strcmp(t->chains[i].name, name) == 0)
            return &t->chains[i];
    return NULL;
}

const sgm__translation_chain *sgm__translation_input(sgm__translation *t, size_t input)
{
    const char *name = sgm_onnx_node_input(t->model, t->node, input);
    const sgm__translation_chain *chain = name != NULL ? find_chain(t, name) : NULL;
    if (chain == NULL)
        sgm__translation_refuse(t, "its input %zu, '%.60s', is not made by a layer", input,
                                name != NULL ? name : "");
    return t->status == SGM_OK ? chain : NULL;
}

/* How many nodes take a value; `node` becomes the last of them. */
static size_t count_uses(const sgm__translation *t, const char *name, size_t *node)
{
    size_t uses = 0;
    const char *input;
    for (size_t i = 0; sgm_onnx_node_at(t->model, i, NULL); i++)
        for (size_t k = 0; (input = sgm_onnx_node_input(t->model, i, k)) != NULL; k++)
            if (strcmp(input, name) == 0) {
                uses++;
                *node = i;
            }
    return uses;
}

static bool is_output(const sgm__translation *t, const char *name)
{
    return strcmp(sgm_onnx_output_at(t->model, 0), name) == 0;
}

size_t sgm__translation_consumer(const sgm__translation *t, size_t node)
{
    const char *name = sgm_onnx_node_output(t->model, node, 0);
    size_t consumer = SIZE_MAX;
    return name != NULL && !is_output(t, name) && count_uses(t, name, &consumer) == 1 ? consumer : SIZE_MAX;
}

bool sgm__translation_is_last(const sgm__translation *t, size_t node)
{
    const char *name = sgm_onnx_node_output(t->model, node, 0);
    return name != NULL && is_output(t, name);
}

/* Takes `text`, the chain that makes a value. */
static void give_name(sgm__translation *t, const char *name, char *text, int32_t rank)
{
    if (text == NULL || t->status != SGM_OK) {
        free(text);
        out_of_memory(t);
        return;
    }
    size_t last;
    if (count_uses(t, name, &last) > (is_output(t, name) ? 0 : 1)) {
        fprintf(t->text, "x%d = %s; ", ++t->names, text);
        free(text);
        text = sgm__new_text("x%d", t->names);
    }
    if (t->chain_count == t->chain_capacity) {
        size_t larger = 2 * t->chain_capacity + 16;
        sgm__translation_chain *grown = realloc(t->chains, larger * sizeof *grown);
        if (grown == NULL) {
            free(text);
            out_of_memory(t);
            return;
        }
        t->chains = grown;
        t->chain_capacity = larger;
    }
    t->chains[t->chain_count++] = (sgm__translation_chain){.name = name, .text = text, .rank = rank};
    if (text == NULL)
        out_of_memory(t);
}

void sgm__translation_give(sgm__translation *t, size_t node, char *text, int32_t rank)
{
    give_name(t, sgm_onnx_node_output(t->model, node, 0), text, rank);
}

void sgm__translation_follow(sgm__translation *t, size_t input, const char *layers, int32_t rank)
{
    const sgm__translation_chain *chain = sgm__translation_input(t, input);
    if (chain != NULL)
        sgm__translation_give(
            t, t->node, sgm__new_text("%s%s%s", chain->text, *layers != '\0' ? " + " : "", layers), rank);
}

/* --- layers with parameters --- */

static bool is_name_taken(const sgm__translation *t, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < t->network->count; i++)
        if (strncmp(t->network->values[i].parameter, name, length) == 0 &&
            t->network->values[i].parameter[length] == '.')
            return true;
    return false;
}

/* The first characters of a text as a name: letters and digits, with one '_' in the place of all others
 * between them. "" where it would not begin with a letter. */
static void make_name(char name[LONGEST_NAME + 1], const char *from, size_t length)
{
    size_t count = 0;
    for (size_t i = 0; i < length && count < LONGEST_NAME; i++)
        if (isalnum((unsigned char)from[i]))
            name[count++] = from[i];
        else if (count > 0 && name[count - 1] != '_')
            name[count++] = '_';
    while (count > 0 && name[count - 1] == '_')
        count--;
    name[isalpha((unsigned char)name[0]) ? count : 0] = '\0';
}

/* "layer1.0.conv1.weight" gives "layer1_0_conv1"; what does not end so the name of the node, without its type
 * at the end, "/layer1/conv1/Conv"; and that is its type where it is no name either. Equal names are
 * numbered. */
static char *choose_name(const sgm__translation *t, size_t input)
{
    char name[LONGEST_NAME + 1] = "";
    const char *weight = sgm_onnx_node_input(t->model, t->node, input), *from = t->info.name;
    const char *dot = weight != NULL ? strrchr(weight, '.') : NULL;
    size_t length = strlen(from), kind = strlen(t->info.type);
    if (dot != NULL && (strcmp(dot, ".weight") == 0 || strcmp(dot, ".weights") == 0)) {
        from = weight;
        length = (size_t)(dot - weight);
    } else if (length > kind && from[length - kind - 1] == '/' &&
               strcmp(from + length - kind, t->info.type) == 0) {
        length -= kind;
    }
    make_name(name, from, length);
    if (*name == '\0')
        make_name(name, t->info.type, kind);
    char *chosen = sgm__new_text("%s", name);
    for (int i = 2; chosen != NULL && is_name_taken(t, chosen); i++) {
        free(chosen);
        chosen = sgm__new_text("%s_%d", name, i);
    }
    return chosen;
}

void sgm__translation_begin(sgm__translation *t, size_t input, const char *format, ...)
{
    va_list arguments;
    if (t->status != SGM_OK)
        return;
    t->layer_is_named = false;
    t->layer_name = choose_name(t, input);
    t->layer = open_memstream(&t->layer_text, &t->layer_size);
    if (t->layer == NULL || t->layer_name == NULL) {
        out_of_memory(t);
        return;
    }
    va_start(arguments, format);
    vfprintf(t->layer, format, arguments);
    va_end(arguments);
}

void sgm__translation_argument(sgm__translation *t, const char *format, ...)
{
    va_list arguments;
    if (t->status != SGM_OK)
        return;
    va_start(arguments, format);
    vfprintf(t->layer, format, arguments);
    va_end(arguments);
}

void sgm__translation_parameter(sgm__translation *t, const char *name, sgm_tensor *value)
{
    sgm__translated *network = t->network;
    if (t->status == SGM_OK && network->count == network->capacity) {
        size_t larger = 2 * network->capacity + 16;
        sgm__translated_value *grown = realloc(network->values, larger * sizeof *grown);
        if (grown == NULL)
            out_of_memory(t);
        else {
            network->values = grown;
            network->capacity = larger;
        }
    }
    char *parameter = t->status == SGM_OK ? sgm__new_text("%s.%s", t->layer_name, name) : NULL;
    t->layer_is_named = true;
    if (value == NULL && t->status == SGM_OK)
        t->status = sgm_last_status() != SGM_OK ? sgm_last_status() : SGM_ERROR_MEMORY;
    if (parameter == NULL || t->status != SGM_OK) {
        free(parameter);
        sgm_tensor_free(value);
        out_of_memory(t);
        return;
    }
    network->values[network->count++] = (sgm__translated_value){parameter, value};
}

void sgm__translation_end(sgm__translation *t, size_t input, size_t node, int32_t rank)
{
    if (t->layer != NULL) {
        if (t->status == SGM_OK)
            fprintf(t->layer, "%s%s)", t->layer_is_named ? ", name=" : "",
                    t->layer_is_named ? t->layer_name : "");
        if (fclose(t->layer) != 0)
            out_of_memory(t);
        t->layer = NULL;
    }
    const sgm__translation_chain *chain = t->status == SGM_OK ? sgm__translation_input(t, input) : NULL;
    if (chain != NULL)
        sgm__translation_give(t, node, sgm__new_text("%s + %s", chain->text, t->layer_text), rank);
    free(t->layer_text);
    free(t->layer_name);
    t->layer_text = t->layer_name = NULL;
}

/* --- the model --- */

/* Appends the names of inputs or outputs to a text of limited size, for messages. */
static void append_names(const sgm__translation *t, bool inputs, char *text, size_t size)
{
    const char *name;
    size_t length = strlen(text);
    for (size_t i = 0; length < size && (name = inputs ? sgm_onnx_input_at(t->model, i, NULL)
                                                       : sgm_onnx_output_at(t->model, i)) != NULL;
         i++)
        length += (size_t)snprintf(text + length, size - length, "%s'%.40s'", i > 0 ? ", " : "", name);
}

static void refuse_several(sgm__translation *t)
{
    char inputs[256] = "", outputs[256] = "";
    append_names(t, true, inputs, sizeof inputs);
    append_names(t, false, outputs, sizeof outputs);
    t->status =
        sgm_fail(SGM_ERROR_UNSUPPORTED,
                 "'%s' has the inputs %s and the outputs %s; a model with one of each becomes a "
                 "network: export it so; 'sigma predict' runs others as they are, and 'sigma eval' and "
                 "'sigma serve' those with one input",
                 t->path, inputs, outputs);
}

/* Its one input, "input(3, 32, 32)". */
static void begin(sgm__translation *t)
{
    sgm_type type;
    const char *name = sgm_onnx_input_at(t->model, 0, &type);
    char shape[128];
    if (name == NULL || sgm_onnx_input_at(t->model, 1, NULL) != NULL ||
        sgm_onnx_output_at(t->model, 1) != NULL)
        refuse_several(t);
    else if (type.shape.rank < 2 || type.shape.rank > SGM_MAX_RANK)
        t->status = sgm_fail(SGM_ERROR_UNSUPPORTED, "'%s': its input has no dimension of examples", t->path);
    for (int32_t i = 1; t->status == SGM_OK && i < type.shape.rank; i++)
        if (type.shape.dims[i] < 1)
            t->status =
                sgm_fail(SGM_ERROR_UNSUPPORTED,
                         "'%s': an example of its input has the open shape %s (-1: any): fix the shape when "
                         "the model is exported",
                         t->path, sgm_shape_text(&type.shape, shape, sizeof shape));
    if (t->status != SGM_OK)
        return;
    size_t length = 0;
    for (int32_t i = 1; i < type.shape.rank; i++)
        length += (size_t)snprintf(shape + length, sizeof shape - length, "%s%lld", i > 1 ? ", " : "",
                                   (long long)type.shape.dims[i]);
    give_name(t, name, sgm__new_text("input(%s)", shape), type.shape.rank);
}

/* Nodes that do not lead to the output are done, as are those whose values the file has. */
static void mark_needed(sgm__translation *t, size_t node_count)
{
    for (size_t i = node_count; i-- > 0;) {
        const char *name;
        bool needed = false;
        for (size_t k = 0; (name = sgm_onnx_node_output(t->model, i, k)) != NULL; k++) {
            needed |= is_output(t, name);
            for (size_t other = i + 1; !needed && other < node_count; other++)
                for (size_t input = 0; !t->done[other] && sgm_onnx_node_input(t->model, other, input) != NULL;
                     input++)
                    needed |= strcmp(sgm_onnx_node_input(t->model, other, input), name) == 0;
        }
        sgm_tensor *constant = sgm_onnx_constant(t->model, sgm_onnx_node_output(t->model, i, 0));
        t->done[i] = !needed || constant != NULL;
        sgm_tensor_free(constant);
    }
}

static bool is_computed(const sgm__translation *t, size_t node, size_t input)
{
    const char *name = sgm_onnx_node_input(t->model, node, input);
    sgm_tensor *constant = name != NULL ? sgm_onnx_constant(t->model, name) : NULL;
    sgm_tensor_free(constant);
    return name != NULL && constant == NULL;
}

/* What scikit-learn and the like fit has no layers, whatever outputs it is exported with. */
static void refuse_pipeline(sgm__translation *t)
{
    for (size_t i = 0; sgm_onnx_node_at(t->model, i, &t->info); i++)
        if (strcmp(t->info.domain, "ai.onnx.ml") == 0) {
            t->status = sgm_fail(SGM_ERROR_UNSUPPORTED,
                                 "'%s' is a pipeline of scikit-learn or the like (it has '%.40s' of "
                                 "ai.onnx.ml), which becomes no network and cannot be trained on: 'sigma "
                                 "predict', 'sigma eval' and 'sigma serve' run it as it is; 'sigma train "
                                 "TABLE.csv --target COLUMN' trains a network on the table",
                                 t->path, t->info.type);
            return;
        }
}

/* A transformer is refused for its attention, not for the first node on the way there, which may be one that
 * an exporter could leave out. */
static void refuse_attention(sgm__translation *t)
{
    for (t->node = 0; t->status == SGM_OK && sgm_onnx_node_at(t->model, t->node, &t->info); t->node++)
        if (!t->done[t->node] && (strcmp(t->info.type, "Attention") == 0 ||
                                  (strcmp(t->info.type, "MatMul") == 0 && is_computed(t, t->node, 0) &&
                                   is_computed(t, t->node, 1))))
            sgm__translation_refuse(
                t, "attention, or another product of two values that are computed, becomes "
                   "no layer; 'sigma import' reads a transformer's folder of config.json and "
                   "safetensors");
}

static void translate_node(sgm__translation *t)
{
    const sgm__translation_layer *layer =
        *t->info.domain == '\0' ? sgm__translation_layer_find(t->info.type) : NULL;
    t->asked = calloc(t->info.attribute_count + 1, sizeof *t->asked);
    if (t->asked == NULL)
        out_of_memory(t);
    else if (layer == NULL)
        sgm__translation_refuse(t, "no layer does what it does");
    else
        layer->translate(t);
    if (t->status == SGM_OK && t->asked != NULL)
        check_asked(t);
    free(t->asked);
    t->asked = NULL;
}

/* The output's chain, and a cost if there is none. */
static void end(sgm__translation *t)
{
    const sgm__translation_chain *chain = find_chain(t, sgm_onnx_output_at(t->model, 0));
    if (chain == NULL && t->status == SGM_OK)
        t->status = sgm_fail(SGM_ERROR_UNSUPPORTED, "'%s': its output is made by no node", t->path);
    if (t->status != SGM_OK)
        return;
    bool adds = t->classify && !t->network->classifies;
    fprintf(t->text, "%s%s", chain->text, adds ? " + softmax_cross_entropy" : "");
    t->network->adds_softmax = adds;
    t->network->classifies |= adds;
}

sgm_status sgm__translate(const char *path, const sgm_onnx *model, bool classify, sgm__translated *network)
{
    size_t node_count = 0, size;
    *network = (sgm__translated){0};
    sgm__translation t = {.path = path, .model = model, .network = network, .classify = classify};
    while (sgm_onnx_node_at(model, node_count, NULL))
        node_count++;
    if (node_count > MOST_NODES)
        return sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "'%s' has %zu nodes, more than the %d that become a network; 'sigma predict' runs the "
            "model as it is",
            path, node_count, MOST_NODES);
    t.done = calloc(node_count + 1, sizeof *t.done);
    t.text = open_memstream(&network->text, &size);
    if (t.done == NULL || t.text == NULL)
        out_of_memory(&t);
    refuse_pipeline(&t);
    if (t.status == SGM_OK)
        begin(&t);
    if (t.status == SGM_OK && t.done != NULL) {
        mark_needed(&t, node_count);
        refuse_attention(&t);
    }
    for (t.node = 0; t.status == SGM_OK && sgm_onnx_node_at(model, t.node, &t.info); t.node++)
        if (!t.done[t.node])
            translate_node(&t);
    end(&t);
    if (t.text != NULL && fclose(t.text) != 0)
        out_of_memory(&t);
    for (size_t i = 0; i < t.chain_count; i++)
        free(t.chains[i].text);
    free(t.chains);
    free(t.done);
    return t.status;
}

void sgm__translated_free(sgm__translated *network)
{
    for (size_t i = 0; i < network->count; i++) {
        free(network->values[i].parameter);
        sgm_tensor_free(network->values[i].value);
    }
    free(network->values);
    free(network->text);
    *network = (sgm__translated){0};
}
