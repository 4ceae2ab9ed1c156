/* Adapters: statements of a network that change what products of other layers give.
 *
 * A layer multiplies by its parameters with sgm_layer_matmul, and knows nothing else of adapters. The product
 * looks for adapters whose patterns match the parameter's name, and lets their `forward` make another value
 * of it, in a call that stands for the adapted layer: so the adapter's parameters become that layer's, and
 * have the name of the adapted one before their own. With adapters a network's own parameters are frozen, but
 * for those that the argument "train" matches. */
#include "handlers/session.h"
#include "network/network_internal.h"
#include "registry/pattern.h"

#include <stdio.h>

bool sgm__is_adapter(const sgm_layer *layer)
{
    return layer->kind == SGM__NODE_LAYER && (layer->type->flags & SGM_LAYER_ADAPTER) != 0;
}

/* A text argument of an adapter; NULL: it is not given, or the type has none of that name. */
static const char *text_of(const sgm_layer *layer, const char *name)
{
    int32_t index = sgm__argument_find(layer->type, name);
    if (index < 0 || sgm__form_of(&layer->type->arguments[index]) != SGM__FORM_TEXT)
        return NULL;
    const sgm__argument_value *value = &layer->arguments[index];
    return value->given ? value->text : layer->type->arguments[index].default_text;
}

/* --- patterns, with spaces between them --- */

/* The next pattern of a text, as one for parameters: "norm" becomes "norm.*". False at the end. */
static bool next_pattern(const char **text, char pattern[SGM__MAX_NAME + 3])
{
    *text += strspn(*text, " ");
    size_t length = strcspn(*text, " ");
    bool layer = memchr(*text, '.', length) == NULL;
    snprintf(pattern, SGM__MAX_NAME + 3, "%.*s%s", (int)length, *text, layer ? ".*" : "");
    *text += length;
    return length > 0;
}

static bool matches_any(const char *patterns, const char *parameter)
{
    char pattern[SGM__MAX_NAME + 3];
    while (patterns != NULL && next_pattern(&patterns, pattern))
        if (sgm__pattern_matches(pattern, parameter))
            return true;
    return false;
}

static sgm_status check_patterns(const sgm_layer *layer, const char *argument)
{
    char pattern[SGM__MAX_NAME + 3];
    const char *patterns = text_of(layer, argument);
    while (patterns != NULL && next_pattern(&patterns, pattern))
        if (sgm__pattern_check(pattern) != SGM_OK)
            return sgm__fail_within("%s, argument '%s'", layer->type->name, argument);
    return SGM_OK;
}

/* An argument "quantize" of an adapter has one value that it may have. */
static sgm_status check_quantize(const sgm_layer *layer)
{
    bool int8;
    return sgm__quantize_read(text_of(layer, "quantize"), &int8) == SGM_OK
               ? SGM_OK
               : sgm__fail_within("%s", layer->type->name);
}

/* --- adapters of a network --- */

sgm_status sgm__network_add_adapter(sgm_network *network, const sgm_layer *layer)
{
    SGM_TRY(check_patterns(layer, "on"));
    SGM_TRY(check_patterns(layer, "train"));
    SGM_TRY(check_quantize(layer));
    SGM_TRY(sgm__reserve(&network->adapters, &network->adapter_capacity, network->adapter_count + 1,
                         sizeof(sgm__adapter)));
    network->adapters[network->adapter_count++] = (sgm__adapter){.layer = layer};
    return SGM_OK;
}

static sgm_status add(sgm_network *network, sgm_layer *adapter)
{
    if (network == NULL)
        return sgm__fail_null("the network to adapt is NULL");
    if (!sgm__is_adapter(adapter))
        return sgm_fail(SGM_ERROR_ARGUMENT, "a network is adapted by a layer such as lora(8), not by %s",
                        adapter->kind == SGM__NODE_LAYER ? adapter->type->name : "several layers");
    SGM_TRY(sgm__network_add_adapter(network, adapter));
    sgm_status status = sgm__layer_append(&network->root, adapter);
    network->adapter_count -= status != SGM_OK;
    return status;
}

sgm_status sgm_network_adapt(sgm_network *network, sgm_layer *adapter)
{
    if (adapter == NULL)
        return sgm__fail_null("the adapters of a network are NULL");
    if (adapter->owned)
        return sgm_fail(SGM_ERROR_ARGUMENT, "the adapters belong to another network; describe them again");
    sgm_status status = add(network, adapter);
    if (status != SGM_OK)
        sgm_layer_free(adapter);
    else
        network->newest.graph = NULL;
    return status;
}

void sgm_network_drop_adapters(sgm_network *network)
{
    sgm_layer *root = network != NULL ? network->root : NULL;
    if (root == NULL || network->adapter_count == 0)
        return;
    size_t kept = 0;
    for (size_t i = 0; i < root->child_count; i++)
        if (!sgm__is_adapter(root->children[i])) {
            root->children[kept++] = root->children[i];
        } else {
            root->children[i]->owned = false;
            sgm_layer_free(root->children[i]);
        }
    root->child_count = kept;
    network->adapter_count = 0;
    network->newest.graph = NULL;
}

/* --- recording --- */

bool sgm__adapters_freeze(const sgm_layer_call *call, const char *parameter)
{
    sgm_network *network = call->network;
    bool frozen = call->stem == NULL && network->adapter_count > 0;
    for (size_t i = 0; i < network->adapter_count && call->stem == NULL; i++)
        if (matches_any(text_of(network->adapters[i].layer, "train"), parameter)) {
            network->adapters[i].trained++;
            frozen = false;
        }
    return frozen;
}

bool sgm__adapters_quantize(const sgm_layer_call *call, const char *parameter)
{
    sgm_network *network = call->network;
    bool quantizes = false;
    for (size_t i = 0; i < network->adapter_count && call->stem == NULL; i++) {
        const sgm_layer *layer = network->adapters[i].layer;
        if (text_of(layer, "quantize") == NULL || !matches_any(text_of(layer, "on"), parameter))
            continue;
        network->adapters[i].quantized++;
        quantizes = true;
    }
    return quantizes && sgm__adapters_freeze(call, parameter);
}

void sgm__adapters_begin(sgm_network *network)
{
    for (size_t i = 0; i < network->adapter_count; i++)
        network->adapters[i].products = network->adapters[i].trained = network->adapters[i].quantized = 0;
}

/* "'1-convolution.weights' matches, but ..." where a pattern means a parameter that no product is made with.
 */
static sgm_status fail_unused(const sgm_network *network, const sgm_layer *layer)
{
    const char *on = text_of(layer, "on");
    for (size_t i = 0; i < network->parameter_count; i++)
        if (matches_any(on, network->parameters[i].name))
            return sgm_fail(
                SGM_ERROR_UNSUPPORTED,
                "%s: on=\"%.200s\" has no matrix that can be adapted: '%s' matches, but its layer "
                "does not multiply its inputs by it as dense and attention do",
                layer->type->name, on, network->parameters[i].name);
    return sgm_fail(
        SGM_ERROR_NOT_FOUND, "%s: on=\"%.200s\" matches no parameter of the network, whose first is '%s'",
        layer->type->name, on, network->parameter_count > 0 ? network->parameters[0].name : "none");
}

sgm_status sgm__adapters_check(const sgm_network *network)
{
    for (size_t i = 0; i < network->adapter_count; i++) {
        const sgm__adapter *adapter = &network->adapters[i];
        const char *train = text_of(adapter->layer, "train");
        if (adapter->products == 0)
            return fail_unused(network, adapter->layer);
        if (text_of(adapter->layer, "quantize") != NULL && adapter->quantized == 0)
            return sgm_fail(SGM_ERROR_UNSUPPORTED,
                            "%s: on=\"%.200s\" has no matrix that can be kept as 8 bits: its layers ask for "
                            "theirs by sgm_layer_parameter, not by sgm_layer_matrix; leave quantize out",
                            adapter->layer->type->name, text_of(adapter->layer, "on"));
        if (train != NULL && adapter->trained == 0)
            return sgm_fail(SGM_ERROR_NOT_FOUND, "%s: train=\"%.200s\" matches no parameter of the network",
                            adapter->layer->type->name, train);
    }
    return SGM_OK;
}

/* Before the names of an adapter's parameters: its own name, or the adapted parameter's without the layer. */
static const char *stem_of(const sgm__adapter *adapter, const char *parameter)
{
    return adapter->layer->name != NULL ? adapter->layer->name : strchr(parameter, '.') + 1;
}

/* Whether the adapter's parameters are not those of another one of the first `count`, nor its own for another
 * matrix of the layer; else the graph fails. */
static bool is_apart(const sgm_layer_call *call, sgm_graph *graph, size_t count, const char *parameter)
{
    const sgm_network *network = call->network;
    const char *stem = stem_of(&network->adapters[count], parameter);
    size_t layer = strcspn(parameter, ".") + 1;
    for (size_t i = 0; i < network->parameter_count; i++) {
        const sgm_parameter *known = &network->parameters[i];
        if (known->adapts == NULL || strncmp(known->name, parameter, layer) != 0 ||
            strcmp(stem_of(&network->adapters[known->adapter], known->adapts), stem) != 0 ||
            (known->adapter == count && strcmp(known->adapts, parameter) == 0))
            continue;
        sgm_graph_fail(graph, SGM_ERROR_ARGUMENT,
                       "'%s' and '%s' get adapters of one name, '%s': give others: %s(..., name=queries)",
                       known->adapts, parameter, stem, network->adapters[count].layer->type->name);
        return false;
    }
    return true;
}

/* The product `y` of `parameter` as the adapter changes it. The call that its `forward` gets has the layer's
 * name, so that parameters are that layer's: also where another layer shares them, as the name is that of the
 * parameter. */
static sgm_value adapt(const sgm_layer_call *call, sgm_graph *graph, sgm__adapter *adapter,
                       const char *parameter, const sgm_value xy[2])
{
    char layer[SGM__MAX_NAME + 32];
    size_t length = strcspn(parameter, ".");
    snprintf(layer, sizeof layer, "%.*s", (int)length, parameter);
    sgm__entry entry = {.layer = adapter->layer, .name = layer};
    size_t number = (size_t)(adapter - call->network->adapters);
    sgm_layer_call inner = {.network = call->network,
                            .entry = &entry,
                            .graph = graph,
                            .options = call->options,
                            .count = {-1},
                            .lengths = {-1},
                            .stem = stem_of(adapter, parameter),
                            .adapts = parameter,
                            .adapter = number};
    adapter->products++;
    sgm_value adapted = {-1};
    adapted.index = adapter->layer->type->forward(&inner, graph, xy, 2).index;
    return adapted;
}

/* The product `y` of a parameter with x, as all adapters that match the parameter's name change it. */
static sgm_value adapt_all(const sgm_layer_call *call, sgm_graph *graph, const char *parameter, sgm_value x,
                           sgm_value y)
{
    sgm_network *network = call->network;
    for (size_t i = 0; i < network->adapter_count && sgm_value_exists(y); i++)
        if (matches_any(text_of(network->adapters[i].layer, "on"), parameter))
            y = is_apart(call, graph, i, parameter)
                    ? adapt(call, graph, &network->adapters[i], parameter, (const sgm_value[]){x, y})
                    : (sgm_value){-1};
    return y;
}

sgm_value sgm__adapters_record(sgm_network *network, sgm_graph *graph, const sgm_recording_options *options,
                               const char *parameter, sgm_value x, sgm_value y)
{
    sgm_layer_call call = {
        .network = network, .graph = graph, .options = options, .count = {-1}, .lengths = {-1}};
    return adapt_all(&call, graph, parameter, x, y);
}

size_t sgm_network_adapters(const sgm_network *network)
{
    return network != NULL ? network->adapter_count : 0;
}

/* Whether some adapter matches the parameter's name. */
static bool is_adapted(const sgm_network *network, const char *parameter)
{
    for (size_t i = 0; i < network->adapter_count; i++)
        if (matches_any(text_of(network->adapters[i].layer, "on"), parameter))
            return true;
    return false;
}

/* The trainable matrix of the newest recording that `weights` is, or is the cast of; NULL: it is none. */
static sgm_parameter *parameter_of(const sgm_layer_call *call, sgm_graph *graph, sgm_value weights)
{
    sgm_value origin = sgm__mixed_cast(graph, weights, sgm__master_dtype(call->options));
    for (size_t i = 0; i < call->network->parameter_count; i++)
        if (call->network->parameters[i].value.index == origin.index &&
            call->network->parameters[i].trainable)
            return &call->network->parameters[i];
    return NULL;
}

/* The parameter that is the codes `weights`, and in *scales the value of its scales; NULL: it is none. */
static sgm_parameter *codes_of(const sgm_layer_call *call, sgm_value weights, sgm_value *scales)
{
    const sgm_network *network = call->network;
    for (size_t i = 0; i + 1 < network->parameter_count; i++)
        if (network->parameters[i].value.index == weights.index && network->parameters[i].quantizes != NULL) {
            *scales = network->parameters[i + 1].value; /* recorded behind the codes (sgm_layer_matrix) */
            return &network->parameters[i];
        }
    return NULL;
}

/* By the weights that codes and scales stand for, as they are adapted. */
static sgm_value multiply_codes(const sgm_layer_call *call, sgm_graph *graph, sgm_value x, sgm_value codes)
{
    sgm_value scales;
    sgm_parameter *parameter = codes_of(call, codes, &scales);
    if (parameter == NULL)
        return sgm_matmul(graph, x, codes);
    parameter->adapted = true;
    scales = sgm__mixed_cast(graph, scales, sgm_value_type(graph, x).dtype);
    return adapt_all(call, graph, parameter->quantizes, x, sgm_dequantized_matmul(graph, x, codes, scales));
}

sgm_value sgm_layer_matmul(sgm_layer_call *call, sgm_graph *graph, sgm_value x, sgm_value weights)
{
    if (sgm_value_exists(weights) && sgm_value_type(graph, weights).dtype == SGM_UINT8)
        return multiply_codes(call, graph, x, weights);
    sgm_value y = sgm_matmul(graph, x, weights);
    bool plain = call->network->adapter_count == 0 || call->stem != NULL || !sgm_value_exists(y);
    sgm_parameter *parameter = plain ? NULL : parameter_of(call, graph, weights);
    if (parameter == NULL || !is_adapted(call->network, parameter->name))
        return y;
    parameter->adapted = true;
    return adapt_all(call, graph, parameter->name, x, y);
}
