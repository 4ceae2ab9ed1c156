/* Which layers the nodes of a model are: the table, and those without parameters.
 *
 * Each function looks at the node, and writes layers that do the same; what is not exactly so is refused.
 * Some nodes belong together, as those of gelu: the first one takes the others along (t->done). */
#include "onnx/translate.h"
#include "text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- activations --- */

static void activate_input(sgm__translation *t, size_t input, const char *name)
{
    char layers[64];
    const sgm__translation_chain *x = sgm__translation_input(t, input);
    snprintf(layers, sizeof layers, "activation(%s)", name);
    sgm__translation_follow(t, input, layers, x != NULL ? x->rank : 0);
}

static void activate(sgm__translation *t, const char *name)
{
    activate_input(t, 0, name);
}

/* Nodes that are an activation, without attributes. */
static const struct {
    const char *type, *activation;
} activations[] = {
    {"Abs", "absolute"},      {"Exp", "exp"},           {"HardSwish", "hard_silu"},
    {"Mish", "mish"},         {"Relu", "relu"},         {"Selu", "selu"},
    {"Softplus", "softplus"}, {"Softsign", "softsign"}, {"Tanh", "tanh"},
};

static void plain_activation(sgm__translation *t)
{
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
        if (strcmp(activations[i].type, t->info.type) == 0)
            activate(t, activations[i].activation);
}

/* Those with a number that must be the activation's own. */
static void activate_with(sgm__translation *t, const char *attribute, double otherwise, double wanted,
                          const char *name)
{
    double given = sgm__translation_number(t, attribute, otherwise);
    if (given - wanted > 1e-6 || wanted - given > 1e-6)
        sgm__translation_refuse(t, "'%s' is %.6g; the activation %s has %.6g", attribute, given, name,
                                wanted);
    activate(t, name);
}

static void elu(sgm__translation *t)
{
    activate_with(t, "alpha", 1, 1, "elu");
}

static void leaky_relu(sgm__translation *t)
{
    activate_with(t, "alpha", 0.01, 0.01, "leaky_relu");
}

static void hard_sigmoid(sgm__translation *t)
{
    if (sgm__translation_number(t, "beta", 0.5) != 0.5)
        sgm__translation_refuse(t, "'beta' is not 0.5");
    activate_with(t, "alpha", 0.2, 1.0 / 6, "hard_sigmoid");
}

static void gelu(sgm__translation *t)
{
    activate(t, sgm__translation_text_is(t, "approximate", "none", "tanh") ? "gelu_tanh" : "gelu");
}

/* The node that alone takes what `node` gives, if it is of this type and, where `number` is not 0, has that
 * number as its other input; SIZE_MAX otherwise. */
static size_t next_is(const sgm__translation *t, size_t node, const char *type, double number)
{
    sgm_onnx_node_info info;
    size_t next = node != SIZE_MAX ? sgm__translation_consumer(t, node) : SIZE_MAX;
    if (next == SIZE_MAX || !sgm_onnx_node_at(t->model, next, &info) || strcmp(info.type, type) != 0)
        return SIZE_MAX;
    bool found = number == 0;
    for (size_t i = 0; i < info.input_count && !found; i++) {
        double value = 0;
        sgm_tensor *constant = sgm_onnx_constant(t->model, sgm_onnx_node_input(t->model, next, i));
        found = constant != NULL && sgm_shape_elements(sgm_tensor_shape(constant)) == 1 &&
                sgm_tensor_read(constant, &value, 1) == SGM_OK && fabs(value - number) < 1e-6;
        sgm_tensor_free(constant);
    }
    return found ? next : SIZE_MAX;
}

/* x / sqrt(2) begins x (1 + erf(x / sqrt(2))) / 2, which is gelu, as older exporters write it. */
static void gelu_of_parts(sgm__translation *t)
{
    const sgm__translation_chain *x = sgm__translation_input(t, 0);
    double divisor = sgm__translation_constant_number(t, 1, 0);
    size_t parts[4] = {next_is(t, t->node, "Erf", 0)};
    parts[1] = next_is(t, parts[0], "Add", 1);
    parts[2] = next_is(t, parts[1], "Mul", 0);
    parts[3] = next_is(t, parts[2], "Mul", 0.5);
    const char *name = sgm_onnx_node_input(t->model, t->node, 0);
    const char *factors[2] = {NULL, NULL};
    for (size_t i = 0; i < 2 && parts[3] != SIZE_MAX; i++)
        factors[i] = sgm_onnx_node_input(t->model, parts[2], i);
    bool multiplies = factors[0] != NULL && factors[1] != NULL &&
                      (strcmp(factors[0], name) == 0 || strcmp(factors[1], name) == 0);
    if (x == NULL || !multiplies || fabs(divisor - sqrt(2)) > 1e-6) {
        sgm__translation_refuse(t, "a division that is not the beginning of gelu");
        return;
    }
    for (size_t i = 0; i < 4; i++)
        t->done[parts[i]] = true;
    sgm__translation_give(t, parts[3], sgm__new_text("%s + activation(gelu)", x->text), x->rank);
}

/* Bounds are attributes in old opsets, inputs in newer ones. */
static void clip(sgm__translation *t)
{
    double minimum = sgm__translation_number(t, "min", -1e300),
           maximum = sgm__translation_number(t, "max", 1e300);
    minimum = sgm__translation_constant_number(t, 1, minimum);
    maximum = sgm__translation_constant_number(t, 2, maximum);
    if (minimum == 0 && maximum == 6)
        activate(t, "relu6");
    else if (minimum == -1 && maximum == 1)
        activate(t, "hard_tanh");
    else if (minimum == 0 && maximum > 1e30)
        activate(t, "relu");
    else
        sgm__translation_refuse(t, "bounds %.6g and %.6g", minimum, maximum);
}

/* max(x, 0), or max(0, x), as it is exported here. */
static void maximum(sgm__translation *t)
{
    sgm_tensor *first = sgm__translation_constant(t, 0);
    const size_t x = first != NULL ? 1 : 0;
    sgm_tensor_free(first);
    if (t->info.input_count != 2 || sgm__translation_constant_number(t, 1 - x, 1) != 0)
        sgm__translation_refuse(t, "a maximum of other than a value and 0");
    activate_input(t, x, "relu");
}

/* x sigmoid(x) is one activation; at the end of the model it is what the cost judges. */
static void sigmoid(sgm__translation *t)
{
    sgm_onnx_node_info next;
    const char *x = sgm_onnx_node_input(t->model, t->node, 0);
    size_t consumer = sgm__translation_consumer(t, t->node);
    const sgm__translation_chain *chain = sgm__translation_input(t, 0);
    if (chain == NULL)
        return;
    if (consumer != SIZE_MAX && sgm_onnx_node_at(t->model, consumer, &next) && strcmp(next.type, "Mul") == 0)
        for (size_t i = 0; i < 2; i++) {
            const char *factor = sgm_onnx_node_input(t->model, consumer, i);
            if (factor == NULL || strcmp(factor, x) != 0)
                continue;
            t->done[consumer] = true;
            sgm__translation_give(t, consumer, sgm__new_text("%s + activation(silu)", chain->text),
                                  chain->rank);
            return;
        }
    if (sgm__translation_is_last(t, t->node))
        sgm__translation_follow(t, 0, "binary_cross_entropy", chain->rank);
    else
        activate(t, "sigmoid");
}

static void softmax(sgm__translation *t)
{
    const sgm__translation_chain *x = sgm__translation_input(t, 0);
    int64_t axis = sgm__translation_integer(t, "axis", -1);
    if (x == NULL)
        return;
    if (axis != -1 && axis != x->rank - 1)
        sgm__translation_refuse(t, "a softmax over another axis than the last");
    if (!sgm__translation_is_last(t, t->node))
        sgm__translation_refuse(t, "a softmax before the end of the model");
    t->network->classifies = true;
    sgm__translation_follow(t, 0, "softmax_cross_entropy", x->rank);
}

/* --- shapes and joins --- */

static void flatten(sgm__translation *t)
{
    if (sgm__translation_integer(t, "axis", 1) != 1)
        sgm__translation_refuse(t, "'axis' is not 1");
    sgm__translation_follow(t, 0, "flatten", 2);
}

/* Whether a first dimension is that of the examples: 0 (as it was), -1, or as many as the model was exported
 * for. */
static bool is_of_examples(const sgm__translation *t, int64_t dim)
{
    sgm_type type;
    sgm_onnx_input_at(t->model, 0, &type);
    return dim == 0 || dim == -1 || dim == 1 || (type.shape.rank > 0 && dim == type.shape.dims[0]);
}

/* The number of examples is open in the network. */
static void reshape(sgm__translation *t)
{
    int64_t dims[SGM__TRANSLATION_MOST_DIMENSIONS];
    char layers[256] = "flatten";
    size_t length = 0;
    int32_t count = sgm__translation_constant_integers(t, 1, dims, SGM__TRANSLATION_MOST_DIMENSIONS);
    sgm__translation_integer(t, "allowzero", 0);
    bool keeps = count >= 2 && is_of_examples(t, dims[0]);
    for (int32_t i = 1; keeps && count > 2 && i < count; i++) {
        keeps = dims[i] > 0;
        length += (size_t)snprintf(layers + length, sizeof layers - length, "%s%lld",
                                   i > 1 ? ", " : "reshape(", (long long)dims[i]);
    }
    if (!keeps)
        sgm__translation_refuse(t, "a shape that is computed, or does not begin with the examples");
    else if (count > 2)
        snprintf(layers + length, sizeof layers - length, ")");
    sgm__translation_follow(t, 0, layers, count);
}

/* Dimensions of 1 behind the channels go away. */
static void squeeze(sgm__translation *t)
{
    int64_t axes[4];
    const sgm__translation_chain *x = sgm__translation_input(t, 0);
    int32_t count = sgm__translation_integers(t, "axes", axes, 4);
    if (count < 0)
        count = sgm__translation_constant_integers(t, 1, axes, 4);
    if (x != NULL && count != x->rank - 2)
        sgm__translation_refuse(t, "axes other than those of all places");
    sgm__translation_follow(t, 0, "flatten", 2);
}

static void transpose(sgm__translation *t)
{
    int64_t order[SGM__TRANSLATION_MOST_DIMENSIONS];
    char layers[128];
    size_t length = 0;
    int32_t count = sgm__translation_integers(t, "perm", order, SGM__TRANSLATION_MOST_DIMENSIONS);
    if (count < 2 || order[0] != 0) {
        sgm__translation_refuse(t, "an order that moves the examples");
        return;
    }
    for (int32_t i = 1; i < count; i++)
        length += (size_t)snprintf(layers + length, sizeof layers - length, "%s%lld",
                                   i > 1 ? ", " : "permute(", (long long)order[i]);
    snprintf(layers + length, sizeof layers - length, ")");
    sgm__translation_follow(t, 0, layers, count);
}

static void pass_on(sgm__translation *t)
{
    const sgm__translation_chain *x = sgm__translation_input(t, 0);
    sgm__translation_follow(t, 0, "", x != NULL ? x->rank : 0);
}

/* It does nothing here, and acts again in a training. */
static void dropout(sgm__translation *t)
{
    char layers[64];
    const sgm__translation_chain *x = sgm__translation_input(t, 0);
    double rate = sgm__translation_constant_number(t, 1, sgm__translation_number(t, "ratio", 0.5));
    sgm__translation_integer(t, "seed", 0);
    snprintf(layers, sizeof layers, "dropout(%.7g)", rate);
    sgm__translation_follow(t, 0, layers, x != NULL ? x->rank : 0);
}

/* Branches are chains of their own: each begins with a value that has a name, or with the input. */
static void write_join(sgm__translation *t, const char *join, int32_t rank)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        sgm__translation_give(t, t->node, NULL, 0);
        return;
    }
    for (size_t i = 0; i < t->info.input_count && t->status == SGM_OK; i++) {
        const sgm__translation_chain *branch = sgm__translation_input(t, i);
        fprintf(out, "%s%s", i > 0 ? ", " : join, branch != NULL ? branch->text : "");
    }
    fprintf(out, ")");
    if (fclose(out) != 0) {
        free(text);
        text = NULL;
    }
    sgm__translation_give(t, t->node, text, rank);
}

static void add(sgm__translation *t)
{
    const sgm__translation_chain *a = sgm__translation_input(t, 0), *b = sgm__translation_input(t, 1);
    if (a != NULL && b != NULL && a->rank != b->rank)
        sgm__translation_refuse(t, "values of different shapes");
    write_join(t, "add(", a != NULL ? a->rank : 0);
}

static void concatenate(sgm__translation *t)
{
    const sgm__translation_chain *x = sgm__translation_input(t, 0);
    int64_t axis = sgm__translation_integer(t, "axis", -1);
    if (x != NULL && axis != -1 && axis != x->rank - 1)
        sgm__translation_refuse(t, "another axis than the last");
    write_join(t, "concatenate(", x != NULL ? x->rank : 0);
}

static const sgm__translation_layer layers[] = {
    {"Abs", plain_activation},
    {"Add", add},
    {"AveragePool", sgm__translation_average_pool},
    {"BatchNormalization", sgm__translation_batch_norm},
    {"Clip", clip},
    {"Concat", concatenate},
    {"Conv", sgm__translation_convolution},
    {"ConvTranspose", sgm__translation_transposed_convolution},
    {"Div", gelu_of_parts},
    {"Dropout", dropout},
    {"Elu", elu},
    {"Exp", plain_activation},
    {"Flatten", flatten},
    {"Gather", sgm__translation_gather},
    {"Gelu", gelu},
    {"Gemm", sgm__translation_gemm},
    {"GlobalAveragePool", sgm__translation_global_average},
    {"GlobalMaxPool", sgm__translation_global_maximum},
    {"HardSigmoid", hard_sigmoid},
    {"HardSwish", plain_activation},
    {"Identity", pass_on},
    {"LayerNormalization", sgm__translation_layer_norm},
    {"LeakyRelu", leaky_relu},
    {"MatMul", sgm__translation_matmul},
    {"Max", maximum},
    {"MaxPool", sgm__translation_max_pool},
    {"Mish", plain_activation},
    {"ReduceMean", sgm__translation_reduce_mean},
    {"Relu", plain_activation},
    {"Reshape", reshape},
    {"Selu", plain_activation},
    {"Sigmoid", sigmoid},
    {"Softmax", softmax},
    {"Softplus", plain_activation},
    {"Softsign", plain_activation},
    {"Squeeze", squeeze},
    {"Tanh", plain_activation},
    {"Transpose", transpose},
};

const sgm__translation_layer *sgm__translation_layer_find(const char *type)
{
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        if (strcmp(layers[i].type, type) == 0)
            return &layers[i];
    return NULL;
}
