/* Compares what a file has with what a trainer needs, before anything changes, and converts floats of another
 * precision.
 *
 * The trainer may never have run, so its network is recorded once more, aside: that tells all parameters
 * with their shapes. Differences are collected as sentences and not reported one by one: an error shows
 * the first few and how many more there are, and a load that skips mismatches returns the text of what was
 * left. trainer_checkpoint.c calls these functions in the order of parts.h, with the trainer's lock; what
 * it then takes over it asks sgm__fit_takes. Names and layouts of PyTorch are converted before
 * (torch_values.c). */
#include "runs/parts/parts.h"

#include "network/rerecord.h"
#include "tensor/tensor_internal.h"

#include <stdio.h>

#define MAXIMUM_TOLD 6 /* differences that the message of an error lists */
#define SHOWN_OF_NETWORK 250
#define SHOWN_BEFORE 100  /* of them those before the first that differs */
#define MAXIMUM_KEPT 1000 /* differences in the text of what a load with skip_mismatch left out */

/* Records a training step for a minibatch of `batch` examples: parameters of layers that only train count
 * too. */
static sgm_status record_batch(sgm__fit *fit, int64_t batch)
{
    sgm_recording_options options = {.struct_size = sizeof options,
                                     .batch = batch,
                                     .dtype = sgm__settings_of(fit->trainer)->precision,
                                     .training = true,
                                     .iteration = (uint64_t)sgm__position_of(fit->trainer)->iteration};
    sgm_graph_clear(fit->graph);
    SGM_TRY(sgm_network_record(fit->network, fit->graph, &options, &fit->recording));
    return sgm_graph_status(fit->graph);
}

/* Records with a minibatch of one example; batch normalisation needs two for a variance. */
static sgm_status record(sgm__fit *fit)
{
    fit->network = sgm_network_parse(fit->notation);
    fit->graph = fit->network != NULL ? sgm_graph_create() : NULL;
    if (fit->graph == NULL)
        return sgm__fail_within("'%s': its network", fit->source);
    sgm_status status = record_batch(fit, 1);
    return status == SGM_ERROR_SHAPE ? record_batch(fit, 2) : status;
}

sgm_status sgm__fit_open(sgm__fit *fit, const sgm_trainer *trainer, const sgm_bundle *bundle,
                         const sgm__parts *wanted, const char *source)
{
    *fit = (sgm__fit){.trainer = trainer, .bundle = bundle, .wanted = wanted, .source = source};
    const char *saved = sgm_bundle_get_text(bundle, SGM__NETWORK_KEY);
    if (sgm__learner_of(trainer)->network == NULL &&
        ((wanted->parts & SGM_PART_NETWORK) == 0 || saved == NULL))
        return sgm_fail(SGM_ERROR_STATE,
                        "the trainer has no network yet, and '%s' has none to take: call "
                        "sgm_trainer_set_network first",
                        source);
    fit->notation = sgm__learner_of(trainer)->network != NULL
                        ? sgm_network_text(sgm__learner_of(trainer)->network)
                        : sgm__strdup(saved);
    return fit->notation != NULL ? record(fit) : sgm_last_status();
}

void sgm__fit_close(sgm__fit *fit)
{
    sgm_graph_free(fit->graph);
    sgm_network_free(fit->network);
    sgm__free(fit->notation);
    sgm__text_free(&fit->differences);
    sgm__text_free(&fit->first_conversion);
    sgm_bundle_free(fit->converted);
}

/* Notes a difference. Only so many are kept as a message, or the text of what was left, can hold. */
void sgm__fit_differs(sgm__fit *fit, const char *format, ...)
{
    char text[768];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t maximum = fit->wanted->skip_mismatch ? MAXIMUM_KEPT : MAXIMUM_TOLD;
    if (fit->difference_count++ < maximum)
        sgm__text_append(&fit->differences, "%s%s", fit->difference_count > 1 ? "; " : "", text);
}

/* A network in a message, from `begin` on; what is left out of it is "...". */
static void show_network(const char *notation, size_t begin, char *shown, size_t size)
{
    const char *from = notation + begin;
    snprintf(shown, size, "%s%.*s%s", begin > 0 ? "... " : "", SHOWN_OF_NETWORK, from,
             strlen(from) > SHOWN_OF_NETWORK ? " ..." : "");
}

/* Of long networks the part around the first place where they differ. */
static void tell_networks(sgm__fit *fit, const char *saved)
{
    char was[SHOWN_OF_NETWORK + 16], is[SHOWN_OF_NETWORK + 16];
    size_t differ = 0, begin = 0;
    while (saved[differ] != '\0' && saved[differ] == fit->notation[differ])
        differ++;
    if (strlen(saved) > SHOWN_OF_NETWORK || strlen(fit->notation) > SHOWN_OF_NETWORK)
        begin = differ > SHOWN_BEFORE ? differ - SHOWN_BEFORE : 0;
    while (begin > 0 && begin < differ && saved[begin - 1] != ' ') /* no part of a word */
        begin++;
    show_network(saved, begin, was, sizeof was);
    show_network(fit->notation, begin, is, sizeof is);
    sgm__fit_differs(fit, "it is of the network \"%s\", the trainer has \"%s\"", was, is);
}

void sgm__fit_compare_network(sgm__fit *fit)
{
    const char *saved = sgm_bundle_get_text(fit->bundle, SGM__NETWORK_KEY);
    if ((fit->wanted->parts & SGM_PART_NETWORK) != 0 && saved != NULL && strcmp(saved, fit->notation) != 0)
        tell_networks(fit, saved);
}

/* The type of the parameter of that name, also of a matrix that is kept as 8 bits, and rounded as it is set;
 * false: the network has none. */
static bool parameter_type(const sgm__fit *fit, const char *name, sgm_type *type)
{
    const sgm_parameter *parameter = sgm__network_parameter(fit->network, name);
    const sgm_parameter *codes = parameter == NULL ? sgm__network_codes(fit->network, name) : NULL;
    if (parameter != NULL)
        *type = parameter->type;
    if (codes != NULL)
        *type = (sgm_type){sgm__network_scales(fit->network, name)->type.dtype, codes->type.shape};
    return parameter != NULL || codes != NULL;
}

/* The parameter that an average or a slot belongs to: what is behind "average." or "optimiser.SLOT.". */
static const char *owner_of(const char *state)
{
    if (sgm__begins_with(state, SGM__AVERAGE_PREFIX))
        return state + strlen(SGM__AVERAGE_PREFIX);
    if (sgm__part_of_state(state) != SGM_PART_OPTIMISER)
        return state;
    const char *slot = state + strlen(SGM__SLOT_PREFIX);
    return strchr(slot, '.') + 1;
}

/* The type that a state must have: the parameter's own, the session's, or that of the parameter it belongs
 * to. False: unknown, as parameters of a dynamic network may be. */
static bool expected_type(const sgm__fit *fit, const char *name, sgm_type *type)
{
    const bool found = parameter_type(fit, name, type);
    if (strcmp(name, SGM__SEARCH_STATE) == 0) { /* of as many numbers as its method has */
        const sgm_tensor *value = sgm_bundle_get(fit->bundle, name);
        *type = (sgm_type){.dtype = SGM_FLOAT64, .shape = *sgm_tensor_shape(value)};
        return type->shape.rank == 1;
    }
    if (!found && sgm__learner_of(fit->trainer)->network != NULL &&
        sgm_session_has(sgm__learner_of(fit->trainer)->session, name))
        return sgm_session_state_type(sgm__learner_of(fit->trainer)->session, name, type) == SGM_OK;
    if (found || parameter_type(fit, owner_of(name), type))
        return true;
    if (sgm__part_of_state(name) == SGM_PART_RANDOM)
        *type = (sgm_type){.dtype = SGM_INT64, .shape = sgm_scalar_shape()};
    else
        return false;
    return true;
}

/* Floats convert into each other; integers, which count or choose, do not. */
static bool converts(const sgm_tensor *value, sgm_dtype dtype)
{
    return dtype == sgm_tensor_dtype(value) ||
           (sgm_dtype_is_float(dtype) && sgm_dtype_is_float(sgm_tensor_dtype(value)));
}

/* Whether the tensor has the shape, and a type that converts. */
static bool is_of_type(const sgm_tensor *value, const sgm_type *type)
{
    return converts(value, type->dtype) && sgm_shape_equal(&type->shape, sgm_tensor_shape(value));
}

/* A slot of the file may have 1 in place of a dimension, as Adafactor's factors have. If the trainer has
 * the slot already, its own shape must match exactly. */
static bool is_slot_of(const sgm__fit *fit, const char *name, const sgm_tensor *value, const sgm_type *type)
{
    const sgm_shape *shape = sgm_tensor_shape(value);
    if (sgm__part_of_state(name) != SGM_PART_OPTIMISER || !converts(value, type->dtype) ||
        shape->rank != type->shape.rank ||
        (sgm__learner_of(fit->trainer)->network != NULL &&
         sgm_session_has(sgm__learner_of(fit->trainer)->session, name)))
        return false;
    for (int32_t i = 0; i < shape->rank; i++)
        if (shape->dims[i] != type->shape.dims[i] && shape->dims[i] != 1)
            return false;
    return true;
}

/* Whether the bundle's state of that name fits a state of this type. */
static bool is_fit(const sgm__fit *fit, const char *name, const sgm_type *type)
{
    const sgm_tensor *value = sgm_bundle_get(fit->bundle, name);
    return is_of_type(value, type) || is_slot_of(fit, name, value, type);
}

/* Whether a state is taken over. Unknown states are taken only by a dynamic network, which may make them
 * later. */
bool sgm__fit_takes(const sgm__fit *fit, const char *name)
{
    sgm_type type;
    if (!sgm__parts_have(fit->wanted, name))
        return false;
    /* Summed gradients belong to a place in the data: without the position, minibatches would count twice. */
    if (sgm__begins_with(name, SGM__SLOT_PREFIX "accumulated.") &&
        (fit->wanted->parts & SGM_PART_POSITION) == 0)
        return false;
    if (!expected_type(fit, name, &type))
        return sgm_network_is_dynamic(fit->network);
    return is_fit(fit, name, &type);
}

/* Notes a difference if a wanted state of the bundle is unknown to the network, or of another type or
 * shape. A dynamic network may still make states that it does not have yet. */
static void compare_state(sgm__fit *fit, const char *name)
{
    sgm_type type;
    char wanted[128], got[128];
    const sgm_tensor *value = sgm_bundle_get(fit->bundle, name);
    if (!expected_type(fit, name, &type)) {
        if (!sgm_network_is_dynamic(fit->network))
            sgm__fit_differs(fit, "'%.100s' is surplus: the network has no such state", name);
    } else if (!is_fit(fit, name, &type)) {
        sgm__fit_differs(fit, "'%.100s' is %s %s, the network wants %s %s", name,
                         sgm_dtype_name(sgm_tensor_dtype(value)),
                         sgm_shape_text(sgm_tensor_shape(value), got, sizeof got), sgm_dtype_name(type.dtype),
                         sgm_shape_text(&type.shape, wanted, sizeof wanted));
    }
}

/* Whether the bundle may do without a parameter: what adapters freeze, if only what is trained is wanted;
 * adapters, which begin anew, where its network as such is not wanted; and codes and scales of a matrix that
 * it has as floats. */
static bool may_lack(const sgm__fit *fit, const sgm_parameter *parameter)
{
    return (parameter->frozen && fit->wanted->trained) ||
           (parameter->adapts != NULL && (fit->wanted->parts & SGM_PART_NETWORK) == 0) ||
           (parameter->quantizes != NULL && sgm_bundle_has(fit->bundle, parameter->quantizes));
}

/* Notes the wanted parameters that the bundle lacks. Slots and averages may be missing: they begin anew. */
static void compare_missing(sgm__fit *fit)
{
    for (size_t i = 0; i < fit->recording.parameter_count; i++) {
        const sgm_parameter *parameter = &fit->recording.parameters[i];
        char shape[128];
        if (sgm__parts_have(fit->wanted, parameter->name) && !may_lack(fit, parameter) &&
            !sgm_bundle_has(fit->bundle, parameter->name))
            sgm__fit_differs(fit, "'%.100s' is missing: %s %s", parameter->name,
                             sgm_dtype_name(parameter->type.dtype),
                             sgm_shape_text(&parameter->type.shape, shape, sizeof shape));
    }
}

/* States of the random generator come along with any pattern, so they do not count as matches. */
sgm_status sgm__fit_compare_states(sgm__fit *fit)
{
    size_t asked = 0;
    for (size_t i = 0; i < sgm_bundle_count(fit->bundle); i++) {
        const char *name = sgm_bundle_name_at(fit->bundle, i);
        if (!sgm__parts_have(fit->wanted, name))
            continue;
        asked += sgm__part_of_state(name) != SGM_PART_RANDOM;
        compare_state(fit, name);
        fit->fitting += sgm__fit_takes(fit, name);
    }
    if (asked == 0 && fit->wanted->pattern_count > 0)
        return sgm_fail(SGM_ERROR_NOT_FOUND,
                        "'%s' has no state that matches '%s'%s; its states are such as '%s'", fit->source,
                        fit->wanted->patterns[0], fit->wanted->pattern_count > 1 ? " or the others" : "",
                        sgm_bundle_count(fit->bundle) > 0 ? sgm_bundle_name_at(fit->bundle, 0) : "none");
    if (!sgm_network_is_dynamic(fit->network))
        compare_missing(fit);
    return fit->differences.failed ? sgm__fail_memory(fit->differences.capacity) : SGM_OK;
}

/* With skip_mismatch, differences are allowed as long as at least one state of the file fits. */
sgm_status sgm__fit_decide(const sgm__fit *fit)
{
    const char *told = fit->differences.data != NULL ? fit->differences.data : "";
    bool wants_states = (fit->wanted->parts & SGM_PART_PARAMETERS) != 0;
    if (fit->difference_count == 0 || (fit->wanted->skip_mismatch && (fit->fitting > 0 || !wants_states)))
        return SGM_OK;
    if (fit->wanted->skip_mismatch)
        return sgm_fail(SGM_ERROR_FORMAT, "nothing of '%s' fits the trainer: %s", fit->source, told);
    char more[48] = "";
    if (fit->difference_count > MAXIMUM_TOLD)
        snprintf(more, sizeof more, "; and %zu more", fit->difference_count - MAXIMUM_TOLD);
    return sgm_fail(SGM_ERROR_FORMAT, "'%s' does not fit the trainer: %s%s", fit->source, told, more);
}

/* --- converting --- */

/* The precision that a state is converted to. Of states that are not known yet, and of workers', it is that
 * of all parameters. */
static sgm_dtype wanted_dtype(const sgm__fit *fit, const char *name)
{
    const sgm_dtype own = sgm_tensor_dtype(sgm_bundle_get(fit->bundle, name));
    sgm_type type;
    if (!sgm_dtype_is_float(own) || !(sgm__fit_takes(fit, name) || sgm__is_worker_state(name)))
        return own;
    if (expected_type(fit, name, &type))
        return type.dtype;
    return fit->recording.parameter_count > 0 ? fit->recording.parameters[0].type.dtype : own;
}

/* A finite number that would become infinite is an error: nobody asked for an infinity. */
static sgm_status check_range(const sgm__fit *fit, const char *name, const sgm_tensor *value, sgm_dtype dtype)
{
    if (dtype != SGM_FLOAT32 || sgm__tensor_fits_float32(value, 0) == SGM_OK)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_FORMAT, "'%s': '%.100s' is %s and has numbers that are too large for %s",
                    fit->source, name, sgm_dtype_name(sgm_tensor_dtype(value)), sgm_dtype_name(dtype));
}

/* Adds a state to the converted bundle: the same tensor, or a copy of the wanted precision. The first
 * conversion is kept for the log. */
static sgm_status add_converted(sgm__fit *fit, const char *name)
{
    sgm_tensor *value = sgm_bundle_get(fit->bundle, name);
    const sgm_dtype dtype = wanted_dtype(fit, name);
    if (dtype == sgm_tensor_dtype(value))
        return sgm_bundle_add(fit->converted, name, value);
    SGM_TRY(check_range(fit, name, value, dtype));
    sgm_tensor *cast = sgm_tensor_cast(value, dtype);
    sgm_status status = cast != NULL ? sgm_bundle_add(fit->converted, name, cast) : sgm__last_failure();
    sgm_tensor_free(cast);
    if (fit->conversions++ == 0)
        sgm__text_append(&fit->first_conversion, "'%.100s' from %s to %s", name,
                         sgm_dtype_name(sgm_tensor_dtype(value)), sgm_dtype_name(dtype));
    return status;
}

/* Makes a bundle in the trainer's types, unless all types are right already. Tensors that need no
 * conversion are shared, not copied. */
sgm_status sgm__fit_convert(sgm__fit *fit)
{
    bool all_alike = true;
    for (size_t i = 0; i < sgm_bundle_count(fit->bundle); i++) {
        const char *name = sgm_bundle_name_at(fit->bundle, i);
        all_alike &= wanted_dtype(fit, name) == sgm_tensor_dtype(sgm_bundle_get(fit->bundle, name));
    }
    if (all_alike)
        return SGM_OK;
    fit->converted = sgm_bundle_create();
    if (fit->converted == NULL)
        return sgm_last_status();
    for (size_t i = 0; i < sgm_bundle_count(fit->bundle); i++)
        SGM_TRY(add_converted(fit, sgm_bundle_name_at(fit->bundle, i)));
    fit->bundle = fit->converted;
    return SGM_OK;
}
