/* Checkpoints: every state of the session, and where training stands, in one file. */
#include "training/trainer.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>

#define NETWORK_KEY "sigma.network"
#define STATE_KEY "sigma.state"
#define STATE_VERSION 1
#define LARGEST_COUNT ((int64_t)1 << 53) /* far from overflow, however long training goes on */

/* --- saving --- */

static json_t *number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static sgm_status append_dataset(const sgm_trainer *trainer, json_t *state)
{
    if (trainer->training == NULL)
        return SGM_OK;
    size_t count = 0;
    sgm_dataset *dataset = sgm_iterator_dataset(trainer->training);
    SGM_TRY(sgm_dataset_get_state(dataset, NULL, &count));
    double *numbers = sgm__calloc(count + 1, sizeof(double));
    if (numbers == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = sgm_dataset_get_state(dataset, numbers, &count);
    json_t *list = json_array();
    for (size_t i = 0; i < count && status == SGM_OK; i++)
        json_array_append_new(list, json_real(numbers[i]));
    json_object_set_new(state, "dataset", list);
    sgm__free(numbers);
    return status;
}

/* As texts: hooks remember infinities too, which JSON cannot say. */
static sgm_status append_hooks(const sgm_trainer *trainer, json_t *state)
{
    size_t count = 0;
    SGM_TRY(sgm__hooks_get_state(trainer->hooks, NULL, &count));
    double *numbers = sgm__calloc(count + 1, sizeof(double));
    if (numbers == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = sgm__hooks_get_state(trainer->hooks, numbers, &count);
    json_t *list = json_array();
    for (size_t i = 0; i < count && status == SGM_OK; i++) {
        char text[32];
        snprintf(text, sizeof text, "%.17g", numbers[i]);
        json_array_append_new(list, json_string(text));
    }
    json_object_set_new(state, "hooks", list);
    sgm__free(numbers);
    return status;
}

static sgm_status describe_position(const sgm_trainer *trainer, json_t *state)
{
    const sgm__training_position *position = &trainer->position;
    json_object_set_new(state, "version", json_integer(STATE_VERSION));
    json_object_set_new(state, "epoch", json_integer(position->epoch));
    json_object_set_new(state, "batch", json_integer(position->batch));
    json_object_set_new(state, "iteration", json_integer(position->iteration));
    json_object_set_new(state, "updates", json_integer(position->updates));
    json_object_set_new(state, "loss_sum", number_or_null(position->sums.loss));
    json_object_set_new(state, "correct_sum", number_or_null(position->sums.correct));
    json_object_set_new(state, "record_sum", json_integer(position->sums.records));
    json_object_set_new(state, "has_accuracy", json_boolean(position->sums.has_accuracy));
    json_object_set_new(state, "best_loss", number_or_null(position->best_loss));
    json_object_set_new(state, "bad_epochs", json_integer(position->bad_epochs));
    json_object_set_new(state, "reductions", json_integer(position->reductions));
    if (trainer->optimiser != NULL)
        json_object_set_new(state, "optimiser", json_string(trainer->optimiser->type->name));
    SGM_TRY(append_hooks(trainer, state));
    return append_dataset(trainer, state);
}

static sgm_status add_position(const sgm_trainer *trainer, sgm_bundle *bundle)
{
    json_t *state = json_object();
    sgm_status status = describe_position(trainer, state);
    char *text = status == SGM_OK ? json_dumps(state, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(state);
    if (text == NULL)
        return status != SGM_OK ? status : sgm__fail_memory(1024);
    status = sgm_bundle_set_text(bundle, STATE_KEY, text);
    free(text);
    return status;
}

static sgm_status add_states(sgm_trainer *trainer, sgm_bundle *bundle)
{
    const char *name;
    for (size_t i = 0; (name = sgm_session_state_at(trainer->session, i)) != NULL; i++) {
        sgm_tensor *value = sgm_session_get(trainer->session, name);
        sgm_status status = value != NULL ? sgm_bundle_add(bundle, name, value) : sgm_last_status();
        sgm_tensor_free(value);
        SGM_TRY(status);
    }
    return SGM_OK;
}

static sgm_status fill_bundle(sgm_trainer *trainer, sgm_bundle *bundle)
{
    char *network = sgm_network_text(trainer->network);
    if (network == NULL)
        return sgm_last_status();
    sgm_status status = sgm_bundle_set_text(bundle, NETWORK_KEY, network);
    sgm_string_free(network);
    SGM_TRY(status);
    SGM_TRY(add_position(trainer, bundle));
    return add_states(trainer, bundle);
}

sgm_status sgm_trainer_save(sgm_trainer *trainer, const char *path)
{
    SGM_TRY(sgm_trainer_prepare(trainer));
    sgm_bundle *bundle = sgm_bundle_create();
    if (bundle == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = fill_bundle(trainer, bundle);
    if (status == SGM_OK)
        status = sgm_bundle_save(bundle, path);
    sgm_bundle_free(bundle);
    return status;
}

/* --- loading: everything is read and checked before anything changes --- */

static bool get_count(const json_t *state, const char *key, int64_t *value)
{
    const json_t *number = json_object_get(state, key);
    *value = json_is_integer(number) ? json_integer_value(number) : -1;
    return *value >= 0 && *value <= LARGEST_COUNT;
}

static double get_number(const json_t *state, const char *key, double otherwise)
{
    const json_t *number = json_object_get(state, key);
    return json_is_number(number) ? json_number_value(number) : otherwise;
}

static sgm_status read_position(const json_t *state, const char *path, sgm__training_position *position)
{
    int64_t version;
    if (!get_count(state, "version", &version) || version != STATE_VERSION)
        return sgm_fail(SGM_ERROR_FORMAT, "'%s': its training state has version %lld, this library reads %d",
                        path, (long long)version, STATE_VERSION);
    if (!get_count(state, "epoch", &position->epoch) || !get_count(state, "batch", &position->batch) ||
        !get_count(state, "iteration", &position->iteration) ||
        !get_count(state, "updates", &position->updates) ||
        !get_count(state, "record_sum", &position->sums.records) ||
        !get_count(state, "bad_epochs", &position->bad_epochs) ||
        !get_count(state, "reductions", &position->reductions))
        return sgm_fail(SGM_ERROR_FORMAT, "'%s': its training state lacks a count, or one is out of bounds",
                        path);
    position->sums.loss = get_number(state, "loss_sum", NAN);
    position->sums.correct = get_number(state, "correct_sum", NAN);
    position->sums.has_accuracy = json_is_true(json_object_get(state, "has_accuracy"));
    position->best_loss = get_number(state, "best_loss", INFINITY);
    return SGM_OK;
}

/* What the new optimiser remembers begins at 0 then, which may be wanted. */
static void compare_optimisers(const sgm_trainer *trainer, const json_t *state)
{
    const char *old = json_string_value(json_object_get(state, "optimiser"));
    if (trainer->optimiser != NULL && old != NULL && strcmp(old, trainer->optimiser->type->name) != 0)
        sgm__log(SGM_LOG_WARNING, trainer->name,
                 "the checkpoint was trained with the optimiser %s, training goes on with %s", old,
                 trainer->optimiser->type->name);
}

static sgm_status check_states(sgm_trainer *trainer, const sgm_bundle *bundle, const char *path)
{
    for (size_t i = 0; i < trainer->recording.parameter_count; i++)
        if (!sgm_bundle_has(bundle, trainer->recording.parameters[i].name))
            return sgm_fail(SGM_ERROR_FORMAT, "'%s' has no tensor '%s', which the network needs", path,
                            trainer->recording.parameters[i].name);
    for (size_t i = 0; i < sgm_bundle_count(bundle); i++) {
        const char *name = sgm_bundle_name(bundle, i);
        sgm_type type;
        if (!sgm_session_has(trainer->session, name))
            continue;
        SGM_TRY(sgm_session_state_type(trainer->session, name, &type));
        const sgm_tensor *value = sgm_bundle_get(bundle, name);
        char wanted[128], got[128];
        if (type.dtype != sgm_tensor_dtype(value) || !sgm_shape_equal(&type.shape, sgm_tensor_shape(value)))
            return sgm_fail(SGM_ERROR_SHAPE, "'%s': tensor '%s' is %s %s, the network wants %s %s", path,
                            name, sgm_dtype_name(sgm_tensor_dtype(value)),
                            sgm_shape_text(sgm_tensor_shape(value), got, sizeof got),
                            sgm_dtype_name(type.dtype), sgm_shape_text(&type.shape, wanted, sizeof wanted));
    }
    return SGM_OK;
}

static sgm_status check_network(sgm_trainer *trainer, const sgm_bundle *bundle, const char *path)
{
    const char *notation = sgm_bundle_text(bundle, NETWORK_KEY);
    if (notation == NULL)
        return sgm_fail(SGM_ERROR_FORMAT, "'%s' is no checkpoint: it has tensors, but no network", path);
    if (trainer->network == NULL)
        return sgm_trainer_network(trainer, notation);
    char *own = sgm_network_text(trainer->network);
    if (own == NULL)
        return sgm_last_status();
    sgm_status status = SGM_OK;
    if (strcmp(own, notation) != 0)
        status = sgm_fail(SGM_ERROR_FORMAT, "'%s' is of the network \"%.300s\", the trainer has \"%.300s\"",
                          path, notation, own);
    sgm_string_free(own);
    return status;
}

static sgm_status set_dataset(const sgm_trainer *trainer, const json_t *list, const char *path)
{
    size_t count = json_array_size(list);
    if (trainer->training == NULL || count == 0)
        return SGM_OK;
    double *numbers = sgm__calloc(count, sizeof(double));
    if (numbers == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++)
        numbers[i] = json_number_value(json_array_get(list, i));
    sgm_status status = sgm_dataset_set_state(sgm_iterator_dataset(trainer->training), numbers, count);
    if (status != SGM_OK)
        sgm__fail_within("'%s'", path);
    sgm__free(numbers);
    return status;
}

static sgm_status set_hooks(const sgm_trainer *trainer, const json_t *list, const char *path)
{
    size_t count = json_array_size(list);
    if (count == 0)
        return SGM_OK;
    double *numbers = sgm__calloc(count, sizeof(double));
    if (numbers == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < count && status == SGM_OK; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (text == NULL || !sgm__parse_double(text, &numbers[i]))
            status = sgm_fail(SGM_ERROR_FORMAT, "number %zu of the state of the hooks is none", i);
    }
    if (status == SGM_OK)
        status = sgm__hooks_set_state(trainer->hooks, numbers, count);
    if (status != SGM_OK)
        sgm__fail_within("'%s'", path);
    sgm__free(numbers);
    return status;
}

static sgm_status take_over(sgm_trainer *trainer, const sgm_bundle *bundle,
                            const sgm__training_position *position)
{
    for (size_t i = 0; i < sgm_bundle_count(bundle); i++) {
        const char *name = sgm_bundle_name(bundle, i);
        SGM_TRY(sgm_session_set(trainer->session, name, sgm_bundle_get(bundle, name)));
    }
    sgm__trainer_forget_programs(trainer);
    trainer->position = *position;
    if (position->batch == 0) /* saved at the end of an epoch, whose sums are told already */
        trainer->position.sums = (sgm__metric_sums){0};
    if (trainer->training == NULL)
        return SGM_OK;
    sgm_iterator_state place = {.epoch = position->epoch, .batches = position->batch};
    return sgm_iterator_set_state(trainer->training, &place);
}

static sgm_status load_bundle(sgm_trainer *trainer, const sgm_bundle *bundle, const json_t *state,
                              const char *path)
{
    sgm__training_position position = {0};
    SGM_TRY(read_position(state, path, &position));
    SGM_TRY(check_network(trainer, bundle, path));
    SGM_TRY(sgm_trainer_prepare(trainer));
    SGM_TRY(check_states(trainer, bundle, path));
    SGM_TRY(set_dataset(trainer, json_object_get(state, "dataset"), path));
    SGM_TRY(set_hooks(trainer, json_object_get(state, "hooks"), path));
    SGM_TRY(take_over(trainer, bundle, &position));
    if (trainer->training != NULL)
        compare_optimisers(trainer, state);
    return SGM_OK;
}

sgm_status sgm_trainer_load(sgm_trainer *trainer, const char *path)
{
    SGM_TRY(sgm_trainer_status(trainer));
    sgm_bundle *bundle = sgm_bundle_load(path);
    if (bundle == NULL)
        return sgm_last_status();
    const char *text = sgm_bundle_text(bundle, STATE_KEY);
    json_t *state = text != NULL ? json_loads(text, 0, NULL) : NULL;
    sgm_status status =
        json_is_object(state)
            ? load_bundle(trainer, bundle, state, path)
            : sgm_fail(SGM_ERROR_FORMAT, "'%s' is no checkpoint: it has no readable training state", path);
    json_decref(state);
    sgm_bundle_free(bundle);
    return status;
}

char *sgm_checkpoint_network(const char *path)
{
    sgm_bundle *bundle = sgm_bundle_load(path);
    if (bundle == NULL)
        return NULL;
    const char *notation = sgm_bundle_text(bundle, NETWORK_KEY);
    char *copy = notation != NULL ? sgm__strdup(notation) : NULL;
    if (notation == NULL)
        sgm_fail(SGM_ERROR_FORMAT, "'%s' is no checkpoint: it has tensors, but no network", path);
    sgm_bundle_free(bundle);
    return copy;
}
