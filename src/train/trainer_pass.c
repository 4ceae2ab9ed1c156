/* Passes over data without training: validation, evaluation, the outputs and targets that metrics compare.
 *
 * A pass runs the VALIDATE program (forward pass and loss) over all minibatches of an iterator from its
 * beginning, and puts the iterator back to where it stood. It adds up loss and correct predictions, and on
 * request gathers the outputs of one layer with the targets of one field, for all examples, as two tensors:
 * those are what src/metrics computes from. Hooks of one event share a pass: what it left in the registry
 * counts until the parameters change (sgm__trainer_parameters_changed). */
#include "data/dataset.h"
#include "metrics/metrics.h"
#include "registry/pattern.h"
#include "train/train.h"
#include "trainer/trainer_lock.h"
#include "trainer/trainer_struct.h"

#include <math.h>
#include <stdio.h>

/* --- gathering --- */

/* The values of all examples so far, minibatch behind minibatch, contiguous in `bytes`. `length`: bytes in
 * use. */
typedef struct gathered {
    char *bytes;
    size_t length, capacity;
    sgm_dtype dtype;
    sgm_shape shape; /* (examples so far, ...); rank 0: nothing is gathered yet */
} gathered;

/* What a pass remembers: the outputs of one layer and the targets of one field. A name of NULL means the
 * first output or the first cost's targets. */
typedef struct gathering {
    const char *output, *field;
    gathered outputs, targets;
    char message[512]; /* of the failure that `status` says */
    sgm_status status; /* the first failure; after it nothing more is gathered */
} gathering;

/* Frees the gathered bytes when the tensor that took them is freed. */
static void let_go(void *bytes)
{
    sgm__free(bytes);
}

/* Whether two minibatches can be put together: the same type and the same shape but for the first
 * dimension. */
static bool same_examples(const gathered *all, sgm_dtype dtype, const sgm_shape *shape)
{
    bool same = all->dtype == dtype && all->shape.rank == shape->rank;
    for (int32_t i = 1; i < shape->rank && same; i++)
        same = all->shape.dims[i] == shape->dims[i];
    return same;
}

/* Makes room for a minibatch behind what is gathered, and gives it as a tensor that does not own the
 * memory. The room may move with the next call: the tensor is used at once. */
static sgm_tensor *add_room(gathered *all, const char *name, sgm_dtype dtype, const sgm_shape *shape)
{
    char before[128], now[128];
    size_t size = (size_t)sgm_shape_elements(shape) * sgm_dtype_size(dtype), needed;
    if (shape->rank < 1 || (all->shape.rank > 0 && !same_examples(all, dtype, shape))) {
        sgm_fail(SGM_ERROR_SHAPE, "'%s' cannot be put together: minibatches of %s %s and %s %s", name,
                 sgm_dtype_name(all->dtype), sgm_shape_text(&all->shape, before, sizeof before),
                 sgm_dtype_name(dtype), sgm_shape_text(shape, now, sizeof now));
        return NULL;
    }
    if (sgm__add_overflows(all->length, size, &needed)) {
        sgm__fail_memory(SIZE_MAX);
        return NULL;
    }
    if (sgm__reserve(&all->bytes, &all->capacity, needed, 1) != SGM_OK)
        return NULL;
    int64_t examples = all->shape.rank > 0 ? all->shape.dims[0] : 0;
    all->dtype = dtype;
    all->shape = *shape;
    all->shape.dims[0] += examples;
    sgm_tensor *room = sgm_tensor_wrap(dtype, shape, all->bytes + all->length, NULL, NULL);
    all->length = needed;
    return room;
}

/* Which places of a minibatch count: steps below the lengths, and targets that are not ignored. Those that
 * count are gathered one behind the other, without regard to which example they belong to. */
typedef struct counted {
    bool *places;        /* of each; NULL: all count, and whole examples are gathered */
    int64_t count, rows; /* of places, and of them those that count */
    int32_t axes;        /* how many of the first axes the places are along: (examples, steps, ...) */
} counted;

/* The lengths of the minibatch's sequences, which the caller frees; NULL and an error on failure. */
static double *read_lengths(const sgm_trainer *trainer, sgm_program *program, int64_t examples)
{
    sgm_shape shape = sgm_shape_of(examples);
    sgm_tensor *tensor = sgm_tensor_create(SGM_FLOAT64, &shape);
    double *lengths = sgm__calloc((size_t)examples + 1, sizeof *lengths);
    sgm_status status = tensor != NULL && lengths != NULL
                            ? sgm_session_read(trainer->learner.session, program, SGM__LENGTHS, tensor)
                            : sgm__last_failure();
    if (status == SGM_OK)
        status = sgm_tensor_read(tensor, lengths, (size_t)examples);
    sgm_tensor_free(tensor);
    if (status == SGM_OK)
        return lengths;
    sgm__free(lengths);
    return NULL;
}

/* Marks places by lengths (NULL: all steps count) and, if `ignores`, by targets, of which negative ones do
 * not count. */
static sgm_status mark(counted *found, const sgm_tensor *targets, const double *lengths, bool ignores)
{
    const sgm_shape *shape = sgm_tensor_shape(targets);
    int64_t steps = shape->rank > 1 ? shape->dims[1] : 1;
    found->axes = ignores ? shape->rank : 2;
    found->count = ignores ? sgm_shape_elements(shape) : shape->dims[0] * steps;
    int64_t of_step = found->count / (shape->dims[0] * steps > 0 ? shape->dims[0] * steps : 1);
    found->places = sgm__calloc((size_t)found->count + 1, sizeof *found->places);
    double *values = ignores ? sgm__calloc((size_t)found->count + 1, sizeof *values) : NULL;
    sgm_status status = found->places != NULL && (values != NULL || !ignores) ? SGM_OK : sgm__last_failure();
    if (status == SGM_OK && ignores)
        status = sgm_tensor_read(targets, values, (size_t)found->count);
    for (int64_t i = 0; i < found->count && status == SGM_OK; i++) {
        int64_t step = i / of_step;
        found->places[i] = (lengths == NULL || (double)(step % steps) < lengths[step / steps]) &&
                           (!ignores || values[i] >= 0);
        found->rows += found->places[i];
    }
    sgm__free(values);
    return status;
}

/* Marks the places of the first output, which lengths (SGM__LENGTHS) and targets that are ignored belong to.
 * Where all count found->places is NULL, which is no failure. The caller frees found->places. */
static sgm_status find_counted(const gathering *to, const sgm_trainer *trainer, sgm_program *program,
                               const sgm_shape *outputs, const sgm_tensor *targets, counted *found)
{
    const sgm_recording *recording = &trainer->learner.recording;
    const sgm_shape *shape = sgm_tensor_shape(targets);
    bool first = to->output == NULL ||
                 (recording->output_count > 0 && strcmp(to->output, recording->outputs[0].name) == 0);
    bool steps = outputs->rank >= 2 && shape->rank >= 2 && outputs->dims[1] == shape->dims[1] &&
                 sgm_program_has_output(program, SGM__LENGTHS);
    bool ignores = recording->ignores && shape->rank + 1 == outputs->rank;
    *found = (counted){0};
    if (!first || (!steps && !ignores))
        return SGM_OK;
    double *lengths = steps ? read_lengths(trainer, program, shape->dims[0]) : NULL;
    sgm_status status =
        steps && lengths == NULL ? sgm__last_failure() : mark(found, targets, lengths, ignores);
    sgm__free(lengths);
    return status;
}

/* Copies what counts, one place after the other: from (examples, steps, ...) to (rows, ...). */
static void copy_counted(const counted *c, const sgm_tensor *values, sgm_tensor *to)
{
    if (c->count == 0)
        return;
    size_t place = (size_t)(sgm_shape_elements(sgm_tensor_shape(values)) / c->count) *
                   sgm_dtype_size(sgm_tensor_dtype(values));
    const char *from = sgm_tensor_const_data(values);
    char *next = sgm_tensor_data(to);
    for (int64_t i = 0; i < c->count; i++)
        if (c->places[i]) {
            memcpy(next, from + (size_t)i * place, place);
            next += place;
        }
}

/* Appends a minibatch's values, which are contiguous, or those of the places that count: (examples, steps,
 * ...) becomes (rows, ...). */
static sgm_status add_values(gathered *all, const char *name, const counted *c, const sgm_tensor *values)
{
    sgm_shape shape = *sgm_tensor_shape(values);
    if (c->places != NULL) {
        shape = sgm_shape_create(shape.rank - c->axes + 1, shape.dims + c->axes - 1);
        shape.dims[0] = c->rows;
    }
    sgm_tensor *room = add_room(all, name, sgm_tensor_dtype(values), &shape);
    if (room == NULL)
        return sgm__last_failure();
    sgm_status status = SGM_OK;
    if (c->places != NULL)
        copy_counted(c, values, room);
    else
        status = sgm_tensor_assign(room, values);
    sgm_tensor_free(room);
    return status;
}

/* Of means and standard deviations the means, which targets are compared with; frees `outputs`, of which NULL
 * passes a failure on. */
static sgm_tensor *means_of(sgm_tensor *outputs)
{
    if (outputs == NULL)
        return NULL;
    sgm_shape shape = *sgm_tensor_shape(outputs);
    shape.dims[shape.rank - 1] /= 2;
    sgm_tensor *part = sgm_tensor_slice(outputs, shape.rank - 1, 0, shape.dims[shape.rank - 1], 1);
    sgm_tensor *means = part != NULL ? sgm_tensor_create(sgm_tensor_dtype(outputs), &shape) : NULL;
    if (means != NULL && sgm_tensor_assign(means, part) != SGM_OK) {
        sgm_tensor_free(means);
        means = NULL;
    }
    sgm_tensor_free(part);
    sgm_tensor_free(outputs);
    return means;
}

/* The outputs of a minibatch that are compared with targets; NULL on failure. */
static sgm_tensor *read_outputs(const sgm_trainer *trainer, sgm_program *program, const char *name)
{
    const sgm_recording *recording = &trainer->learner.recording;
    sgm_type type = sgm_program_output_type(program, name);
    sgm_tensor *outputs = sgm_tensor_create(type.dtype, &type.shape);
    if (outputs != NULL && sgm_session_read(trainer->learner.session, program, name, outputs) != SGM_OK) {
        sgm_tensor_free(outputs);
        return NULL;
    }
    return recording->deviates && strcmp(name, recording->outputs[0].name) == 0 ? means_of(outputs) : outputs;
}

/* Appends the minibatch's outputs and targets. What counts is found once for both, so that row i of the
 * outputs and row i of the targets belong to the same time step. */
static sgm_status gather_both(gathering *to, const sgm_trainer *trainer, sgm_program *program,
                              const sgm_block *block)
{
    const char *name = to->output, *field = to->field != NULL ? to->field : trainer->learner.first_targets;
    counted c = {0};
    if (name == NULL && trainer->learner.recording.output_count > 0)
        name = trainer->learner.recording.outputs[0].name;
    if (name == NULL || !sgm_program_has_output(program, name))
        return sgm_fail(SGM_ERROR_NOT_FOUND, "the network has no output '%s'", name != NULL ? name : "");
    sgm_tensor *targets = sgm_block_field(block, field);
    if (targets == NULL)
        return sgm__last_failure();
    sgm_tensor *outputs = read_outputs(trainer, program, name);
    sgm_status status = outputs != NULL
                            ? find_counted(to, trainer, program, sgm_tensor_shape(outputs), targets, &c)
                            : sgm__last_failure();
    if (status == SGM_OK && c.places != NULL && !sgm_tensor_is_contiguous(targets))
        status = sgm_fail(SGM_ERROR_STATE, "'%s' does not lie in one piece", field);
    if (status == SGM_OK)
        status = add_values(&to->outputs, name, &c, outputs);
    if (status == SGM_OK)
        status = add_values(&to->targets, field, &c, targets);
    sgm__free(c.places);
    sgm_tensor_free(outputs);
    return status;
}

/* Gathers a minibatch's values. After a failure nothing more is gathered, and the failure is kept for the
 * hook that wanted the values: a pass for the loss must not fail because they cannot be put together. */
static void gather(gathering *to, const sgm_trainer *trainer, sgm_program *program, const sgm_block *block)
{
    if (to == NULL || to->status != SGM_OK)
        return;
    to->status = gather_both(to, trainer, program, block);
    if (to->status != SGM_OK)
        snprintf(to->message, sizeof to->message, "%s", sgm_last_error());
}

static void free_gathering(gathering *made)
{
    sgm__free(made->outputs.bytes);
    sgm__free(made->targets.bytes);
    made->outputs.bytes = made->targets.bytes = NULL;
}

/* The gathered values as a tensor that owns them. */
static sgm_tensor *take(gathered *all)
{
    char *bytes = all->bytes;
    if (all->shape.rank == 0) {
        sgm_fail(SGM_ERROR_STATE, "there are no examples to measure");
        return NULL;
    }
    all->bytes = NULL;
    return sgm_tensor_wrap(all->dtype, &all->shape, bytes, let_go, bytes);
}

/* --- passes --- */

/* Runs all minibatches from where the iterator stands to the end of the epoch and adds up their metrics. A
 * program is made for a number of examples, so the last, smaller minibatch of an epoch may have another
 * program than the rest. */
static sgm_status run_minibatches(sgm_trainer *trainer, sgm_iterator *iterator, gathering *to,
                                  sgm__metric_sums *sums)
{
    const sgm_block *block;
    for (;;) {
        SGM_TRY(sgm_iterator_next(iterator, &block));
        if (block == NULL)
            return SGM_OK;
        sgm_program *program = sgm__trainer_program(trainer, SGM__VALIDATE, block->count);
        if (program == NULL)
            return sgm_last_status();
        sgm_status status = sgm__trainer_feed(trainer, program, block);
        if (status == SGM_OK)
            status = sgm_session_run(trainer->learner.session, program);
        if (status != SGM_OK)
            return sgm__iterator_fail(iterator, status);
        SGM_TRY(sgm__trainer_count(trainer, program, block->count, sums));
        gather(to, trainer, program, block);
    }
}

/* A pass over all examples from the iterator's beginning; afterwards, also after a failure, the iterator
 * stands where it stood before. If several ranks train, the iterator gives this process all examples (part 0
 * of 1), not this rank's share, so that all ranks measure the same numbers. */
static sgm_status pass(sgm_trainer *trainer, sgm_iterator *iterator, gathering *to, sgm_metrics *metrics)
{
    sgm_iterator_state start = {0}, before;
    sgm__metric_sums sums = {0};
    sgm_iterator_get_state(iterator, &before);
    sgm__iterator_set_part(iterator, 0, 1);
    sgm_status status = sgm_iterator_set_state(iterator, &start);
    if (status == SGM_OK)
        status = run_minibatches(trainer, iterator, to, &sums);
    sgm_status back = sgm_iterator_set_state(iterator, &before);
    if (status == SGM_OK)
        *metrics = sgm__metrics_of(&sums);
    return status != SGM_OK ? status : back;
}

/* Takes the trainer's lock around a pass, so that no other thread reads or changes the trainer meanwhile. */
static sgm_status pass_with_lock(sgm_trainer *trainer, sgm_iterator *iterator, gathering *to,
                                 sgm_metrics *metrics)
{
    SGM_TRY(sgm__trainer_enter(trainer));
    sgm_status status = pass(trainer, iterator, to, metrics);
    sgm__trainer_unlock(trainer);
    return status;
}

sgm_status sgm_trainer_evaluate(sgm_trainer *trainer, sgm_iterator *iterator, sgm_metrics *metrics)
{
    SGM_TRY(sgm_trainer_status(trainer));
    if (iterator == NULL || metrics == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_trainer_evaluate: expected %s, got NULL",
                        iterator == NULL ? "an iterator" : "a place for the metrics");
    return pass_with_lock(trainer, iterator, NULL, metrics);
}

/* --- scores --- */

static sgm_status leave_score(void *registry, const char *name, double value)
{
    sgm_content content = sgm_number_content(value);
    return sgm__leave_in_registry(registry, name, &content, SGM__QUIET);
}

/* Computes the metrics that the text names from the gathered outputs and targets, and leaves them in
 * `results`. take() moves the gathered memory into tensors, so `from` is empty afterwards. */
static sgm_status compute(const char *metrics, gathering *from, const sgm_metrics *measured,
                          sgm_registry *results)
{
    sgm_tensor *outputs = take(&from->outputs), *targets = outputs != NULL ? take(&from->targets) : NULL;
    sgm_status status = targets != NULL ? SGM_OK : sgm__last_failure();
    sgm__predictions predictions = {0};
    const sgm__results into = {sgm__leave_in_registry, results};
    if (status == SGM_OK)
        status = sgm__predictions_open(&predictions, outputs, targets);
    predictions.cost = measured->loss;
    if (status == SGM_OK)
        status = sgm__metrics_compute(metrics, &predictions, &into);
    sgm__predictions_close(&predictions);
    sgm_tensor_free(outputs);
    sgm_tensor_free(targets);
    return status;
}

/* The metrics' text is read before the pass, so that a typing error costs no time. Without a text, a
 * network whose loss classifies gets the metrics of classes, another one those of regression. */
sgm_status sgm_trainer_evaluate_metrics(sgm_trainer *trainer, sgm_iterator *iterator, const char *metrics,
                                        sgm_registry *results)
{
    SGM_TRY(sgm_trainer_status(trainer));
    if (iterator == NULL || results == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_trainer_evaluate_metrics: expected %s, got NULL",
                        iterator == NULL ? "an iterator" : "a registry for results");
    if (metrics != NULL && sgm__metrics_compute(metrics, NULL, NULL) != SGM_OK)
        return sgm__fail_within("metrics '%s'", metrics);
    gathering all = {0};
    sgm_metrics measured = {.accuracy = NAN};
    sgm_status status = pass_with_lock(trainer, iterator, &all, &measured);
    if (status == SGM_OK && all.status != SGM_OK)
        status = sgm_fail(all.status, "%s", all.message);
    bool classes = !isnan(measured.accuracy);
    if (status == SGM_OK)
        status = compute(metrics != NULL ? metrics
                         : classes       ? "confusion f1 roc_auc"
                                         : "regression",
                         &all, &measured, results);
    free_gathering(&all);
    if (status == SGM_OK)
        status = leave_score(results, "loss", measured.loss);
    if (status == SGM_OK && classes)
        status = leave_score(results, "accuracy", measured.accuracy);
    sgm_content examples = sgm_integer_content(measured.examples);
    return status == SGM_OK ? sgm_registry_set(results, "examples", examples) : status;
}

/* --- what passes leave for hooks --- */

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* Makes "outputs" of a base alone, and "outputs_2-dense" of a base and a layer; dots and other characters
 * that an identifier cannot have are replaced (sgm__identifier_part). */
char *sgm__passed_name(const char *base, const char *of)
{
    if (of == NULL)
        return sgm__strdup(base);
    char *part = sgm__identifier_part(of), *name = part != NULL ? sgm__format("%s_%s", base, part) : NULL;
    sgm__free(part);
    return name;
}

/* Leaves one of the two gathered tensors in the registry as DATA.BASE or DATA.BASE_OF. `of` NULL: the first
 * output or target. */
static sgm_status publish_tensor(sgm_trainer *trainer, const sgm__pass_result *passed, const char *base,
                                 const char *of, gathered *all)
{
    char *name = sgm__passed_name(base, of);
    sgm_tensor *tensor = name != NULL ? take(all) : NULL;
    sgm_status status = SGM_ERROR_MEMORY;
    if (tensor != NULL) {
        sgm_content content = sgm_tensor_content(tensor);
        status = sgm__trainer_leave(trainer, passed->owner, passed->data, name, &content, SGM__QUIET);
    }
    sgm_tensor_free(tensor);
    sgm__free(name);
    return tensor != NULL ? status : sgm__last_failure();
}

/* Leaves outputs, targets and the loss in the registry and marks them as current. A failure of gathering is
 * reported here, to the hook that wanted the values. */
static sgm_status publish(sgm_trainer *trainer, sgm__pass_result *passed, gathering *from,
                          const sgm_metrics *measured)
{
    sgm_content cost = sgm_number_content(measured->loss);
    if (from->status != SGM_OK)
        return sgm_fail(from->status, "%s", from->message);
    SGM_TRY(publish_tensor(trainer, passed, "outputs", passed->output, &from->outputs));
    SGM_TRY(publish_tensor(trainer, passed, "targets", passed->field, &from->targets));
    SGM_TRY(sgm__trainer_leave(trainer, passed->owner, passed->data, "cost", &cost, SGM__QUIET));
    passed->current = true;
    passed->iteration = trainer->position.iteration;
    return SGM_OK;
}

/* Adds an entry for this combination of data, output and field; *passed points into the list, and is valid
 * until the next entry is added. */
static sgm_status add_passed(sgm_trainer *trainer, const char *data, const char *output, const char *field,
                             sgm__pass_result **passed)
{
    SGM_TRY(sgm__reserve(&trainer->results.passes, &trainer->results.pass_capacity,
                         trainer->results.pass_count + 1, sizeof(sgm__pass_result)));
    sgm__pass_result *made = &trainer->results.passes[trainer->results.pass_count];
    *made = (sgm__pass_result){
        .data = sgm__strdup(data), .output = sgm__strdup(output), .field = sgm__strdup(field)};
    if (made->data == NULL || (output != NULL && made->output == NULL) ||
        (field != NULL && made->field == NULL)) {
        sgm__free(made->data);
        sgm__free(made->output);
        sgm__free(made->field);
        return SGM_ERROR_MEMORY;
    }
    trainer->results.pass_count++;
    *passed = made;
    return SGM_OK;
}

static bool is_attached(const sgm_trainer *trainer, const sgm_hook *owner)
{
    return sgm__hooks_has(trainer->hooks, owner);
}

/* A pass is expensive, so one that was made at this iteration, with these parameters, is shared by all hooks
 * that want the same outputs and targets. What a pass left counts as long as the hook that owns it is
 * attached: the values are removed from the registry with their owner. `each_epoch` makes the caller the
 * owner and has the next validation gather these values in its own pass, so that no second pass is needed. */
sgm_status sgm__trainer_pass_for_hooks(sgm_trainer *trainer, const sgm_hook *owner, const char *data,
                                       const char *output, const char *field, bool each_epoch)
{
    sgm_iterator *iterator;
    sgm__pass_result *passed = NULL;
    SGM_TRY(sgm__trainer_find_data(trainer, data, &iterator));
    for (size_t i = 0; i < trainer->results.pass_count && passed == NULL; i++)
        if (strcmp(trainer->results.passes[i].data, data) == 0 &&
            same_text(trainer->results.passes[i].output, output) &&
            same_text(trainer->results.passes[i].field, field))
            passed = &trainer->results.passes[i];
    if (passed == NULL)
        SGM_TRY(add_passed(trainer, data, output, field, &passed));
    passed->wanted = passed->wanted || each_epoch;
    bool there = is_attached(trainer, passed->owner); /* false: the values were removed with their hook */
    if (!there || each_epoch)
        passed->owner = owner;
    if (there && passed->current && passed->iteration == trainer->position.iteration)
        return SGM_OK;
    gathering all = {.output = output, .field = field};
    sgm_metrics measured;
    sgm_status status = pass(trainer, iterator, &all, &measured);
    if (status == SGM_OK)
        status = publish(trainer, passed, &all, &measured);
    free_gathering(&all);
    return status;
}

/* Validates on data `index`, and gathers in the same pass the first of the outputs that hooks wanted at the
 * epoch before. A failure of gathering does not fail the validation: the values are marked as out of date, so
 * that the hook makes a pass of its own, which fails in the same way, and the hook reports it. */
sgm_status sgm__trainer_validate(sgm_trainer *trainer, size_t index)
{
    const sgm__named_iterator *data = &trainer->data.validation[index];
    sgm_metrics *metrics = &trainer->data.metrics[index].metrics;
    sgm__pass_result *passed = NULL;
    for (size_t i = 0; i < trainer->results.pass_count && passed == NULL; i++)
        if (trainer->results.passes[i].wanted && strcmp(trainer->results.passes[i].data, data->name) == 0 &&
            is_attached(trainer, trainer->results.passes[i].owner))
            passed = &trainer->results.passes[i];
    if (passed == NULL)
        return pass(trainer, data->iterator, NULL, metrics);
    gathering all = {.output = passed->output, .field = passed->field};
    passed->wanted = false;
    sgm_status status = pass(trainer, data->iterator, &all, metrics);
    if (status == SGM_OK && publish(trainer, passed, &all, metrics) != SGM_OK) {
        passed->current = false;
        sgm_clear_error();
    }
    free_gathering(&all);
    return status;
}
