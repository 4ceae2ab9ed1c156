/* The functions that a layer may call while it records: its arguments, parameters, fields of the data, random
 * numbers.
 *
 * They are the sgm_layer_... of sigma/network.h, called by `forward` of layer types, in
 * the library (src/network/layers) and outside it. What is asked for is noted in the network's lists, which
 * become the recording (record.c). Failures become the graph's, so a layer needs no checks between its
 * calls: after the first failure every further call returns nothing. Parameters and fields are states and
 * inputs of the graph in the master type (float32 with mixed precision, mixed.c) and are cast for the layer.
 */
#include "network/network_internal.h"
#include "network/rerecord.h"

#include <stdio.h>

/* --- strings that stay until the next recording --- */

/* Copies a string into the network, where it stays until the next recording; NULL: out of memory.
 *
 * A network mostly records the same names again, in the same order. A slot whose string is equal is used
 * again, so nothing is allocated, and equal strings have equal addresses, which makes comparing recordings
 * cheap. */
static const char *keep_string(sgm_network *network, const char *text)
{
    if (network->string_next < network->string_count) {
        char **slot = &network->strings[network->string_next];
        if (strcmp(*slot, text) != 0) {
            char *copy = sgm__strdup(text);
            if (copy == NULL)
                return NULL;
            sgm__free(*slot);
            *slot = copy;
        }
        network->string_next++;
        return *slot;
    }
    if (sgm__reserve(&network->strings, &network->string_capacity, network->string_count + 1,
                     sizeof(char *)) != SGM_OK)
        return NULL;
    char *copy = sgm__strdup(text);
    if (copy == NULL)
        return NULL;
    network->strings[network->string_count++] = copy;
    network->string_next = network->string_count;
    return copy;
}

sgm_value sgm__record_fail(sgm_graph *graph)
{
    char message[400];
    snprintf(message, sizeof message, "%s", sgm_last_error());
    sgm_status status = sgm_last_status();
    return sgm_graph_fail(graph, status != SGM_OK ? status : SGM_ERROR_ARGUMENT, "%s", message);
}

/* The number of elements that `list` has in the recording with which the present one is compared. */
static size_t known_count(const sgm_network *network, sgm_named_value *const *list)
{
    const sgm_recording *known = &network->newest.recording;
    return list == &network->inputs    ? known->input_count
           : list == &network->targets ? known->target_count
                                       : known->cost_count;
}

/* Compares names by address: keep_string gives an equal name in the same place the same address. */
static bool is_same_named(const sgm_named_value *a, const sgm_named_value *b)
{
    return a->name == b->name && a->value.index == b->value.index && a->importance == b->importance &&
           a->part.index == b->part.index;
}

sgm_status sgm__network_add_named(sgm_network *network, sgm_named_value **list, size_t *count,
                                  size_t *capacity, sgm_named_value value)
{
    SGM_TRY(sgm__reserve(list, capacity, *count + 1, sizeof(sgm_named_value)));
    if (network->compares)
        network->differs = network->differs || *count >= known_count(network, list) ||
                           !is_same_named(&(*list)[*count], &value);
    (*list)[(*count)++] = value;
    return SGM_OK;
}

/* --- what a layer may ask --- */

/* The value of an argument, and its row in the type's table for the default. NULL and the graph's failure if
 * the type has no argument of that name and kind, which is a mistake in the layer's code. */
static const sgm__argument_value *find_argument(const sgm_layer_call *call, const char *name, sgm__form form,
                                                const sgm_option **table)
{
    const sgm_layer *layer = call->entry->layer;
    int32_t index = sgm__argument_find(layer->type, name);
    if (index < 0 || sgm__form_of(&layer->type->arguments[index]) != form) {
        sgm_graph_fail(call->graph, SGM_ERROR_ARGUMENT,
                       "its type '%s' has no argument '%s' of the kind it asks for", layer->type->name, name);
        return NULL;
    }
    *table = &layer->type->arguments[index];
    return &sgm__entry_arguments(call->entry)[index];
}

int64_t sgm_layer_integer(const sgm_layer_call *call, const char *argument)
{
    const sgm_option *table;
    const sgm__argument_value *value = find_argument(call, argument, SGM__FORM_INTEGER, &table);
    if (value == NULL)
        return 0;
    return value->given ? value->integer : (int64_t)table->default_value;
}

double sgm_layer_number(const sgm_layer_call *call, const char *argument)
{
    const sgm_option *table;
    const sgm__argument_value *value = find_argument(call, argument, SGM__FORM_NUMBER, &table);
    if (value == NULL)
        return 0;
    return value->given ? value->number : table->default_value;
}

const char *sgm_layer_text(const sgm_layer_call *call, const char *argument)
{
    const sgm_option *table;
    const sgm__argument_value *value = find_argument(call, argument, SGM__FORM_TEXT, &table);
    if (value == NULL)
        return NULL;
    return value->given ? value->text : table->default_text;
}

bool sgm_layer_flag(const sgm_layer_call *call, const char *argument)
{
    const sgm_option *table;
    const sgm__argument_value *value = find_argument(call, argument, SGM__FORM_FLAG, &table);
    if (value == NULL)
        return false;
    return value->given ? value->integer != 0 : table->default_value != 0;
}

sgm_shape sgm_layer_shape(const sgm_layer_call *call, const char *argument)
{
    const sgm_option *table;
    const sgm__argument_value *value = find_argument(call, argument, SGM__FORM_SHAPE, &table);
    return value != NULL ? value->shape : sgm_scalar_shape();
}

const double *sgm_layer_numbers(const sgm_layer_call *call, const char *argument, size_t *count)
{
    const sgm_option *table;
    const sgm__argument_value *value = find_argument(call, argument, SGM__FORM_NUMBERS, &table);
    *count = value != NULL ? value->number_count : 0;
    return value != NULL && value->given ? value->numbers : NULL;
}

const char *sgm_layer_name(const sgm_layer_call *call)
{
    return call->entry->name;
}

bool sgm_layer_is_training(const sgm_layer_call *call)
{
    return call->options->training;
}

bool sgm__entry_is_cost(const sgm__entry *entry)
{
    return (entry->layer->type->flags & SGM_LAYER_COST) != 0;
}

/* Costs are always computed in the master type, since sums over a minibatch need the digits. */
sgm_dtype sgm_layer_dtype(const sgm_layer_call *call)
{
    return sgm__entry_is_cost(call->entry) ? sgm__master_dtype(call->options) : call->options->dtype;
}

int64_t sgm_layer_batch(const sgm_layer_call *call)
{
    return call->options->batch;
}

sgm_value sgm_layer_lengths(const sgm_layer_call *call)
{
    return call->lengths;
}

void sgm__layer_set_lengths(sgm_layer_call *call, sgm_value lengths)
{
    call->lengths = lengths;
    call->other_lengths = true;
}

uint64_t sgm_layer_iteration(const sgm_layer_call *call)
{
    return call->options->iteration;
}

/* Compares texts by address (keep_string). The graph itself compares the types of states. */
static bool is_same_parameter(const sgm_parameter *a, const sgm_parameter *b)
{
    return a->name == b->name && a->initialiser == b->initialiser && a->value.index == b->value.index &&
           a->trainable == b->trainable && a->frozen == b->frozen && a->fan_in == b->fan_in &&
           a->fan_out == b->fan_out;
}

/* The index of a parameter among those from `first` on; -1 if it is not there. */
static int64_t find_parameter(const sgm_network *network, size_t first, const char *name)
{
    for (size_t i = first; i < network->parameter_count; i++)
        if (strcmp(network->parameters[i].name, name) == 0)
            return (int64_t)i;
    return -1;
}

/* Appends to the network's parameters. A layer that asks for the same parameter twice adds it once; only its
 * own parameters are searched, because the name of the layer is part of the name. */
static sgm_status add_parameter(sgm_layer_call *call, const sgm_parameter *parameter)
{
    sgm_network *network = call->network;
    int64_t known = find_parameter(network, call->first_parameter, parameter->name);
    call->newest_parameter = known >= 0 ? (size_t)known : network->parameter_count;
    if (known >= 0)
        return SGM_OK;
    SGM_TRY(sgm__reserve(&network->parameters, &network->parameter_capacity, network->parameter_count + 1,
                         sizeof(sgm_parameter)));
    sgm_parameter *place = &network->parameters[network->parameter_count], added = *parameter;
    added.name = keep_string(network, parameter->name);
    added.initialiser = added.name != NULL ? keep_string(network, parameter->initialiser) : NULL;
    if (added.initialiser == NULL)
        return SGM_ERROR_MEMORY;
    if (network->compares)
        network->differs = network->differs ||
                           network->parameter_count >= network->newest.recording.parameter_count ||
                           !is_same_parameter(place, &added);
    *place = added;
    network->parameter_count++;
    return SGM_OK;
}

/* The state that holds a parameter. The options' prefix selects another set of trained values, such as
 * "average." for running averages. States that are not trained have one value only, so the prefix does not
 * apply to them. */
static sgm_value parameter_state(const sgm_layer_call *call, sgm_graph *graph, const char *name,
                                 const sgm_type *type, bool trainable)
{
    const char *prefix = call->options->prefix;
    if (!trainable || prefix == NULL || *prefix == '\0')
        return sgm_state(graph, name, type->dtype, &type->shape);
    char *full = sgm__format("%s%s", prefix, name);
    if (full == NULL)
        return sgm__record_fail(graph);
    sgm_value value = sgm_state(graph, full, type->dtype, &type->shape);
    sgm__free(full);
    return value;
}

/* The state "LAYER.name", which `parameter` describes but for its value. Its name is the short one. */
static sgm_value record_parameter(sgm_layer_call *call, sgm_graph *graph, const sgm_parameter *parameter)
{
    char full[3 * SGM__MAX_NAME + 16];
    const char *stem = call->stem;
    snprintf(full, sizeof full, "%s.%s%s%s", call->entry->name, stem != NULL ? stem : "",
             stem != NULL ? "_" : "", parameter->name);
    sgm_parameter added = *parameter;
    added.name = full;
    added.adapts = call->adapts;
    added.adapter = call->adapter;
    added.frozen = parameter->quantizes != NULL || (parameter->trainable && sgm__adapters_freeze(call, full));
    added.value = parameter_state(call, graph, full, &parameter->type, parameter->trainable && !added.frozen);
    if (!sgm_value_exists(added.value))
        return added.value;
    return add_parameter(call, &added) == SGM_OK ? added.value : sgm__record_fail(graph);
}

/* Whether adapters keep the matrix as 8 bits. */
static bool has_codes(const sgm_network *network, const char *matrix)
{
    for (size_t i = 0; i < network->parameter_count; i++)
        if (network->parameters[i].quantizes != NULL && strcmp(network->parameters[i].quantizes, matrix) == 0)
            return true;
    return false;
}

/* The parameter of another layer that has the name that this one asks for ("share"). It is the same state, so
 * that gradients of all its uses add up, there is one of it in checkpoints, and one initialiser fills it. */
static sgm_value shared_parameter(sgm_layer_call *call, sgm_graph *graph, const sgm_parameter *parameter)
{
    const char *of = call->entry->layer->share;
    char full[2 * SGM__MAX_NAME + 16], here[128], there[128];
    snprintf(full, sizeof full, "%s.%s", of, parameter->name);
    int64_t known = find_parameter(call->network, 0, full);
    if (known < 0 && has_codes(call->network, full))
        return sgm_graph_fail(
            graph, SGM_ERROR_UNSUPPORTED,
            "share=%s: '%s' is kept as 8 bits, which this layer does not take; leave it out "
            "of what the adapters quantize",
            of, full);
    if (known < 0)
        return sgm_graph_fail(graph, SGM_ERROR_NOT_FOUND,
                              "share=%s: no layer of this name with '%s' comes before it; name one, as in "
                              "dense(8, name=%s)",
                              of, parameter->name, of);
    const sgm_parameter *shared = &call->network->parameters[known];
    if (!sgm_shape_equal(&shared->type.shape, &parameter->type.shape))
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE,
                              "share=%s: '%s' is %s, and this layer needs %s; give both the same sizes and "
                              "inputs of as many features",
                              of, full, sgm_shape_text(&shared->type.shape, there, sizeof there),
                              sgm_shape_text(&parameter->type.shape, here, sizeof here));
    call->newest_parameter = (size_t)known;
    call->shared++;
    return shared->value;
}

void sgm__layer_check_share(const sgm_layer_call *call, sgm_graph *graph)
{
    const char *of = call->entry->layer->share;
    if (of != NULL && call->shared == 0 && sgm_graph_status(graph) == SGM_OK)
        sgm_graph_fail(graph, SGM_ERROR_ARGUMENT,
                       "share=%s: %s has no trained parameters to share; leave it out", of,
                       call->entry->layer->type->name);
}

/* The state in the master type. A trainable one is cast to the layer's type, and the cast passes its gradient
 * on. Others stay uncast, so that the layer can assign to the state itself. */
sgm_value sgm_layer_parameter(sgm_layer_call *call, sgm_graph *graph, const char *name,
                              const sgm_shape *shape, int64_t fan_in, int64_t fan_out, bool trainable,
                              const char *initialiser)
{
    if (name == NULL || shape == NULL || sgm__name_check(name, "a parameter", false) != SGM_OK)
        return sgm_graph_fail(graph, SGM_ERROR_ARGUMENT,
                              "a parameter needs a shape and a name of 1 to %d letters, digits, '_' and '-'",
                              SGM__MAX_NAME);
    const sgm_parameter parameter = {.name = name,
                                     .type = {sgm__master_dtype(call->options), *shape},
                                     .fan_in = fan_in,
                                     .fan_out = fan_out,
                                     .trainable = trainable,
                                     .initialiser = initialiser != NULL ? initialiser : "glorot"};
    sgm_value value = trainable && call->entry->layer->share != NULL
                          ? shared_parameter(call, graph, &parameter)
                          : record_parameter(call, graph, &parameter);
    return trainable ? sgm__mixed_cast(graph, value, sgm_layer_dtype(call)) : value;
}

/* A matrix as two states, NAME_codes and behind it NAME_scales; returns the codes. */
static sgm_value record_codes(sgm_layer_call *call, sgm_graph *graph, const char *matrix, const char *name,
                              sgm_parameter parameter)
{
    char codes[SGM__MAX_NAME + 16], scales[SGM__MAX_NAME + 16];
    snprintf(codes, sizeof codes, "%s" SGM__CODES_SUFFIX, name);
    snprintf(scales, sizeof scales, "%s" SGM__SCALES_SUFFIX, name);
    parameter.quantizes = keep_string(call->network, matrix);
    if (parameter.quantizes == NULL)
        return sgm_graph_fail(graph, SGM_ERROR_MEMORY, "no memory for the name of a parameter");
    const sgm_type type = parameter.type;
    parameter.name = codes;
    parameter.type.dtype = SGM_UINT8;
    sgm_value value = record_parameter(call, graph, &parameter);
    parameter.name = scales;
    parameter.type = (sgm_type){type.dtype, sgm_shape_of(type.shape.dims[1])};
    return sgm_value_exists(record_parameter(call, graph, &parameter)) ? value : (sgm_value){-1};
}

/* Of a layer that shares, the other one's codes, if it has some. */
static sgm_value matrix_of_other(sgm_layer_call *call, sgm_graph *graph, const char *name,
                                 sgm_parameter parameter)
{
    char full[2 * SGM__MAX_NAME + 16], codes[SGM__MAX_NAME + 16];
    snprintf(full, sizeof full, "%s.%s", call->entry->layer->share, name);
    snprintf(codes, sizeof codes, "%s" SGM__CODES_SUFFIX, name);
    bool coded = has_codes(call->network, full);
    parameter.name = coded ? codes : name;
    sgm_value value = shared_parameter(call, graph, &parameter);
    return coded ? value : sgm__mixed_cast(graph, value, sgm_layer_dtype(call));
}

sgm_value sgm_layer_matrix(sgm_layer_call *call, sgm_graph *graph, const char *name, const sgm_shape *shape,
                           int64_t fan_in, int64_t fan_out, const char *initialiser)
{
    char full[2 * SGM__MAX_NAME + 16];
    bool named = name != NULL && shape != NULL && shape->rank == 2 &&
                 sgm__name_check(name, "a parameter", false) == SGM_OK;
    snprintf(full, sizeof full, "%s.%s", call->entry->name, named ? name : "");
    const sgm_parameter parameter = {
        .type = {sgm__master_dtype(call->options), shape != NULL ? *shape : sgm_scalar_shape()},
        .fan_in = fan_in,
        .fan_out = fan_out,
        .trainable = true,
        .initialiser = initialiser != NULL ? initialiser : "glorot"};
    if (named && call->entry->layer->share != NULL)
        return matrix_of_other(call, graph, name, parameter);
    if (named && sgm__adapters_quantize(call, full))
        return record_codes(call, graph, full, name, parameter);
    return sgm_layer_parameter(call, graph, name, shape, fan_in, fan_out, true, initialiser);
}

sgm_value sgm__layer_cache(sgm_layer_call *call, sgm_graph *graph, const char *name, const sgm_shape *shape)
{
    const sgm_parameter parameter = {
        .name = name, .type = {sgm_layer_dtype(call), *shape}, .initialiser = "constant(0)", .placed = true};
    return record_parameter(call, graph, &parameter);
}

void sgm__layer_sparse(sgm_layer_call *call)
{
    if (call->newest_parameter < call->network->parameter_count)
        call->network->parameters[call->newest_parameter].sparse = true;
}

/* The value of a field that was asked for before; nothing if it was not. */
static sgm_value known_field(const sgm_network *network, const char *field)
{
    for (size_t i = 0; i < network->input_count; i++)
        if (strcmp(network->inputs[i].name, field) == 0)
            return network->inputs[i].value;
    for (size_t i = 0; i < network->target_count; i++)
        if (strcmp(network->targets[i].name, field) == 0)
            return network->targets[i].value;
    return (sgm_value){-1};
}

/* A field may be used twice (an autoencoder's target is its input), also in another shape. */
static sgm_value reuse_field(sgm_graph *graph, const char *field, sgm_value known, const sgm_shape *shape)
{
    sgm_shape old = sgm_value_type(graph, known).shape;
    if (sgm_shape_equal(&old, shape))
        return known;
    char old_text[128], new_text[128];
    if (sgm_shape_elements(&old) != sgm_shape_elements(shape))
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE,
                              "field '%s' of the data is used here as %s, but as %s elsewhere in the network",
                              field, sgm_shape_text(shape, new_text, sizeof new_text),
                              sgm_shape_text(&old, old_text, sizeof old_text));
    return sgm_reshape(graph, known, shape);
}

/* Notes the field among the targets if a cost asks for it, else among the inputs. */
static sgm_status add_field(const sgm_layer_call *call, const char *field, sgm_value value)
{
    sgm_network *network = call->network;
    const char *name = keep_string(network, field);
    if (name == NULL)
        return SGM_ERROR_MEMORY;
    sgm_named_value added = {.name = name, .value = value};
    if (sgm__entry_is_cost(call->entry))
        return sgm__network_add_named(network, &network->targets, &network->target_count,
                                      &network->target_capacity, added);
    return sgm__network_add_named(network, &network->inputs, &network->input_count, &network->input_capacity,
                                  added);
}

/* The field as an input of shape (batch, example...) in the master type, cast for the layer. The same field
 * asked for again is the same input. A field that a cost asks for first is a target, any other an input of
 * the network. */
sgm_value sgm_layer_field(sgm_layer_call *call, sgm_graph *graph, const char *field, const sgm_shape *example)
{
    if (field == NULL || field[0] == '\0' || example == NULL || example->rank >= SGM_MAX_RANK)
        return sgm_graph_fail(graph, SGM_ERROR_ARGUMENT,
                              "a field of the data needs a name and an example of at most %d dimensions",
                              SGM_MAX_RANK - 1);
    sgm_shape shape = {.rank = example->rank + 1, .dims = {call->options->batch}};
    for (int32_t i = 0; i < example->rank; i++)
        shape.dims[i + 1] = example->dims[i];
    if (sgm_shape_elements(&shape) < 0)
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE,
                              "field '%s' with %lld examples has more elements than memory can address",
                              field, (long long)call->options->batch);
    sgm_value known = known_field(call->network, field);
    sgm_value value = sgm_value_exists(known)
                          ? reuse_field(graph, field, known, &shape)
                          : sgm_input_value(graph, field, sgm__master_dtype(call->options), &shape);
    if (!sgm_value_exists(known) && sgm_value_exists(value) && add_field(call, field, value) != SGM_OK)
        return sgm__record_fail(graph);
    return sgm__mixed_cast(graph, value, sgm_layer_dtype(call));
}

/* Each call of a recording gets a stream of its own, so that two dropouts differ; the step, a state that the
 * program counts up, makes each run differ. The same seed, step and stream give the same numbers on every
 * handler. */
sgm_value sgm_layer_random(sgm_layer_call *call, sgm_graph *graph, const sgm_shape *shape)
{
    sgm_shape scalar = sgm_scalar_shape();
    sgm_value seed = sgm_state(graph, "random.seed", SGM_INT64, &scalar);
    sgm_value step = sgm_state(graph, "random.step", SGM_INT64, &scalar);
    sgm_value value = sgm_random_uniform(graph, seed, step, call->network->streams++,
                                         sgm__master_dtype(call->options), shape);
    return sgm__mixed_cast(graph, value, sgm_layer_dtype(call));
}

sgm_value sgm_layer_activate(sgm_layer_call *call, sgm_graph *graph, const char *activation, sgm_value x)
{
    (void)call;
    if (sgm__activation_is_none(activation))
        return x;
    const sgm_op *op = sgm__activation_find(activation);
    return op != NULL ? sgm__mixed_activation(graph, op, x) : sgm__record_fail(graph);
}
