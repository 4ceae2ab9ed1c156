/* The programs of a trainer: what is computed for a minibatch, recorded as a graph and compiled when it is
 * first needed.
 *
 * A program belongs to a purpose (update, accumulate, validate, predict, and the halves that workers do)
 * and to a number of examples. Recording is forward pass, loss, backward pass and update in one graph: the
 * network records its layers (src/network), the optimiser the gradients and the update (src/optim), a
 * strategy what workers exchange. Recording also defines the session's states that are new: parameters are
 * drawn by their initialiser, moments begin with zeros, averages with the parameter's value.
 *
 * Programs are kept in program_cache.c until something changes what would be recorded; a dynamic network
 * records in each iteration, and runs the previous program again if it has recorded the same. */
#include "trainer/trainer_struct.h"

#include "data/dataset.h"
#include "handlers/session.h"
#include "network/rerecord.h"
#include "ops/ops.h"
#include "registry/pattern.h"
#include "show/show.h"
#include "train/train.h"
#include "trainer/frozen.h"
#include <sigma/base.h>
#include <sigma/graph.h>
#include <stdio.h>

/* --- states --- */

/* The initialiser for a parameter by the user's patterns: the most specific one counts, whatever the order
 * in which they were given. NULL: the layer's own. */
static const sgm_initialiser *find_rule(const sgm_trainer *trainer, const char *parameter)
{
    const sgm__initialiser_rule *best = NULL;
    for (size_t i = 0; i < trainer->patterns.rule_count; i++) {
        const sgm__initialiser_rule *rule = &trainer->patterns.rules[i];
        if (sgm__pattern_matches(rule->pattern, parameter) &&
            (best == NULL || sgm__pattern_compare(rule->pattern, best->pattern) > 0))
            best = rule;
    }
    return best != NULL ? best->initialiser : NULL;
}

/* Draws a parameter. The stream of random numbers depends on the seed and the parameter's name alone, so
 * that adding a layer changes no other layer's first values. */
static sgm_status fill_parameter(sgm_trainer *trainer, const sgm_parameter *parameter, sgm_tensor *tensor)
{
    const sgm_initialiser *rule = find_rule(trainer, parameter->name);
    sgm_initialiser *default_value = rule == NULL ? sgm_initialiser_parse(parameter->initialiser) : NULL;
    if (rule == NULL && default_value == NULL)
        return sgm__fail_within("parameter '%s', as its layer has it", parameter->name);
    sgm_status status = sgm_initialiser_fill(rule != NULL ? rule : default_value, tensor, parameter->fan_in,
                                             parameter->fan_out, trainer->settings.seed, parameter->name);
    sgm_initialiser_free(default_value);
    return status;
}

/* A matrix that is kept as 8 bits begins with what it would begin with, rounded: by its own name and rules,
 * so that codes and scales are of the same numbers. */
static sgm_status fill_part_of_matrix(sgm_trainer *trainer, const sgm_parameter *parameter,
                                      sgm_tensor *tensor)
{
    const sgm_network *network = trainer->learner.network;
    sgm_parameter matrix = *parameter;
    matrix.name = parameter->quantizes;
    matrix.type.shape = sgm__network_codes(network, matrix.name)->type.shape;
    matrix.type.dtype = sgm__network_scales(network, matrix.name)->type.dtype;
    sgm_tensor *drawn = sgm_tensor_create(matrix.type.dtype, &matrix.type.shape), *codes = NULL,
               *scales = NULL;
    sgm_status status = drawn != NULL ? fill_parameter(trainer, &matrix, drawn) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = sgm__trainer_quantize(trainer, matrix.name, drawn, &codes, &scales);
    if (status == SGM_OK)
        status = sgm_tensor_assign(tensor, parameter->type.dtype == SGM_UINT8 ? codes : scales);
    sgm_tensor_free(drawn);
    sgm_tensor_free(codes);
    sgm_tensor_free(scales);
    return status;
}

/* The first value of a state: drawn for a parameter that no load is about to set, the seed for the generator,
 * the parameter's value for its moving average, and zeros for everything else, which is what tensors begin
 * with. */
static sgm_status fill_state(sgm_trainer *trainer, const char *name, sgm_tensor *tensor)
{
    const sgm__learner *learner = &trainer->learner;
    const sgm_parameter *parameter = sgm__network_parameter(learner->network, name);
    if (parameter != NULL && learner->comes != NULL && learner->comes(learner->loading, name, tensor))
        return SGM_OK;
    if (parameter != NULL && parameter->quantizes != NULL)
        return fill_part_of_matrix(trainer, parameter, tensor);
    if (parameter != NULL)
        return fill_parameter(trainer, parameter, tensor);
    if (strcmp(name, "random.seed") == 0) {
        int64_t seed;
        memcpy(&seed, &trainer->settings.seed, sizeof seed);
        memcpy(sgm_tensor_data(tensor), &seed, sizeof seed);
        return SGM_OK;
    }
    /* A moving average begins with its parameter's value; other states stay zero. */
    const char *averaged =
        sgm__begins_with(name, SGM__AVERAGE_PREFIX) ? name + strlen(SGM__AVERAGE_PREFIX) : NULL;
    if (averaged == NULL || !sgm_session_has(trainer->learner.session, averaged))
        return SGM_OK;
    sgm_tensor *value = sgm_session_get(trainer->learner.session, averaged);
    sgm_status status = value != NULL ? sgm_tensor_assign(tensor, value) : sgm_last_status();
    sgm_tensor_free(value);
    return status;
}

/* A replica's states begin as the strategy says, mostly as copies of its owner's. */
sgm_status sgm__trainer_define_state(sgm_trainer *trainer, const char *name, const sgm_type *type)
{
    if (sgm__trainer_is_replica(trainer))
        return trainer->sharing.owner->sharing.strategy->define_state(trainer, name, type);
    sgm_tensor *tensor = sgm_tensor_create(type->dtype, &type->shape);
    if (tensor == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = fill_state(trainer, name, tensor);
    if (status == SGM_OK)
        status = sgm_session_set(trainer->learner.session, name, tensor);
    sgm_tensor_free(tensor);
    return status;
}

sgm_status sgm__trainer_draw(sgm_trainer *trainer, const char *name)
{
    sgm_type type;
    SGM_TRY(sgm_session_state_type(trainer->learner.session, name, &type));
    sgm_tensor *tensor = sgm_tensor_create(type.dtype, &type.shape);
    sgm_status status = tensor != NULL ? fill_state(trainer, name, tensor) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = sgm__trainer_put_state(trainer, name, tensor);
    sgm_tensor_free(tensor);
    return status;
}

/* The place of a state that has to be filled anew since a reset (trainer_predict.c); SIZE_MAX: it keeps its
 * value. */
static size_t stale_index(const sgm_trainer *trainer, const char *state)
{
    const sgm__session_state *known =
        trainer->learner.stale_count > 0 ? sgm__session_find(trainer->learner.session, state) : NULL;
    size_t index = known != NULL ? (size_t)(known - trainer->learner.session->states) : SIZE_MAX;
    return index < trainer->learner.stale_count && trainer->learner.stale[index] ? index : SIZE_MAX;
}

/* Bytes of the states that a graph has. */
static double bytes_of_states(const sgm_graph *graph)
{
    double bytes = 0;
    for (size_t i = 0; i < graph->source_count; i++) {
        const sgm__instruction *source = &graph->instructions[graph->sources[i]];
        if (source->op == &sgm__op_state)
            bytes +=
                (double)sgm_shape_elements(&source->type.shape) * (double)sgm_dtype_size(source->type.dtype);
    }
    return bytes;
}

/* Fails before hours are spent on drawing and swapping, if the states of the graph take more memory than
 * the computer has: those of an optimiser are only there where one updates. Devices say so themselves. */
static sgm_status check_memory(const sgm_trainer *trainer, bool updates)
{
    char all[64], there[64], count[64];
    if (!sgm__session_is_host(trainer->learner.session))
        return SGM_OK;
    double bytes = bytes_of_states(trainer->learner.graph);
    if (bytes <= (double)sgm__memory_size())
        return SGM_OK;
    int64_t parameters = 0;
    for (size_t i = 0; i < trainer->learner.recording.parameter_count; i++)
        parameters += sgm_shape_elements(&trainer->learner.recording.parameters[i].type.shape);
    return sgm_fail(SGM_ERROR_MEMORY,
                    "the network has %s parameters, which take %s%s; this computer has %s of memory: take %s",
                    sgm_count_text(parameters, count, sizeof count), sgm_bytes_text(bytes, all, sizeof all),
                    updates ? " with what the optimiser remembers" : "",
                    sgm_bytes_text((double)sgm__memory_size(), there, sizeof there),
                    updates ? "smaller layers, or another optimiser" : "a smaller network");
}

/* Defines each state of the graph that the session does not have, or that has to begin anew. Two passes:
 * parameters first, as an average begins with its parameter's value. */
static sgm_status define_states(sgm_trainer *trainer, bool updates)
{
    SGM_TRY(check_memory(trainer, updates));
    sgm_trainer *owner = trainer->sharing.owner;
    for (int parameters = 1; parameters >= 0; parameters--)
        for (size_t i = 0; i < trainer->learner.graph->count; i++) {
            const sgm__instruction *instruction = &trainer->learner.graph->instructions[i];
            if (instruction->op != &sgm__op_state)
                continue;
            const char *name = sgm__graph_string(trainer->learner.graph, instruction->name);
            size_t stale = stale_index(owner, name);
            if ((sgm__network_parameter(trainer->learner.network, name) != NULL) != (parameters == 1) ||
                (sgm_session_has(trainer->learner.session, name) && stale == SIZE_MAX))
                continue;
            if (stale != SIZE_MAX && owner != trainer)
                SGM_TRY(sgm__trainer_define_state(owner, name, &instruction->type));
            SGM_TRY(sgm__trainer_define_state(trainer, name, &instruction->type));
            if (stale != SIZE_MAX)
                owner->learner.stale[stale] = false;
        }
    return SGM_OK;
}

/* --- recording --- */

/* Lists the parameters that are trained: trainable ones that no pattern freezes. Their order is that of
 * recording, which the optimiser's slots and ranks' buckets follow. */
static sgm_status find_trained(sgm_trainer *trainer)
{
    trainer->learner.trained_count = 0;
    for (size_t i = 0; i < trainer->learner.recording.parameter_count; i++) {
        const sgm_parameter *parameter = &trainer->learner.recording.parameters[i];
        if (!parameter->trainable || sgm__trainer_is_frozen(trainer, parameter->name))
            continue;
        SGM_TRY(sgm__reserve(&trainer->learner.trained, &trainer->learner.trained_capacity,
                             trainer->learner.trained_count + 1, sizeof(sgm__trained_parameter)));
        trainer->learner.trained[trainer->learner.trained_count++] =
            (sgm__trained_parameter){parameter->name, parameter->value, parameter->sparse, false};
    }
    if (trainer->learner.trained_count == 0)
        return sgm__frozen_fail(&trainer->patterns.frozen);
    return SGM_OK;
}

/* The strategy marks first which parameters this process updates, if the optimiser's states are divided
 * among ranks. Gradients and updates are kept in states only while somebody reads them
 * (src/show/trainer_states.c). */
sgm_status sgm__trainer_record_update(sgm_trainer *trainer, bool update, const sgm_value *gradients,
                                      bool averages_apart)
{
    const sgm_trainer *owner = trainer->sharing.owner;
    if (trainer->sharing.strategy != NULL)
        SGM_TRY(trainer->sharing.strategy->find_owners(trainer));
    return sgm__optimiser_record(trainer->learner.optimiser, trainer->learner.graph,
                                 &(sgm__update_request){.cost = trainer->learner.recording.total,
                                                        .gradients = gradients,
                                                        .parameters = trainer->learner.trained,
                                                        .count = trainer->learner.trained_count,
                                                        .modifiers = trainer->patterns.modifiers,
                                                        .modifier_count = trainer->patterns.modifier_count,
                                                        .update = update,
                                                        .keep_gradients = owner->kept.gradients_until > 0,
                                                        .keep_updates = owner->kept.updates_until > 0,
                                                        .averages_apart = averages_apart});
}

/* Advances the counter that draws of a training step (dropout) take as their stream. It is a state, so that
 * a resume draws the same. */
void sgm__trainer_record_random_step(sgm_graph *graph)
{
    sgm_shape scalar = sgm_scalar_shape();
    sgm_value step = sgm_state(graph, "random.step", SGM_INT64, &scalar);
    sgm_assign(graph, step, sgm_add(graph, step, sgm_number(graph, 1)));
}

/* Records the network into the trainer's graph. *same becomes true if a dynamic network has recorded the same
 * instructions as in the iteration before: then the program of that iteration can run again. */
static sgm_status record_network(sgm_trainer *trainer, sgm__step_purpose purpose,
                                 const sgm_recording_options *options, bool *same)
{
    if (trainer->learner.rerecording.program != NULL && trainer->learner.rerecording.purpose == purpose)
        return sgm__network_rerecord(trainer->learner.network, trainer->learner.graph, options,
                                     &trainer->learner.recording, same);
    sgm_graph_clear(trainer->learner.graph);
    return sgm_network_record(trainer->learner.network, trainer->learner.graph, options,
                              &trainer->learner.recording);
}

static sgm_status record_cost(sgm_graph *graph, const char *prefix, const char *layer, sgm_value value)
{
    char *output = sgm__format("%s%s", prefix, layer);
    if (output == NULL)
        return SGM_ERROR_MEMORY;
    sgm_graph_add_output(graph, output, value);
    sgm__free(output);
    return SGM_OK;
}

/* Adds an output for each cost, unless the loss is the same number. */
static sgm_status record_costs(sgm_trainer *trainer, bool part)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    const sgm_recording *recording = &learner->recording;
    if (recording->cost_count == 1 && recording->costs[0].importance == 1)
        return SGM_OK; /* the loss is this cost */
    for (size_t i = 0; i < recording->cost_count; i++) {
        const sgm_named_value *cost = &recording->costs[i];
        SGM_TRY(record_cost(learner->graph, SGM__COST_PREFIX, cost->name, cost->value));
        if (part)
            SGM_TRY(record_cost(learner->graph, SGM__COST_PART_PREFIX, cost->name, cost->part));
    }
    return SGM_OK;
}

/* How programs of this purpose are specialised: predictions as the trainer was told, unless states change at
 * other places than its session; and validation only for what it has to tell, which is the error of int8. */
static uint32_t inference_of(const sgm_trainer *trainer, sgm__step_purpose purpose)
{
    uint32_t inference = trainer->settings.inference;
    bool looks =
        purpose == SGM__PREDICT || (purpose == SGM__VALIDATE && (inference & SGM__INFERENCE_INT8) != 0);
    return looks && trainer->sharing.owner->sharing.strategy == NULL ? inference : 0;
}

/* Integers of 8 bits take the place of bfloat16, too: parameters are float32 there. */
static sgm_dtype precision_of(const sgm_trainer *trainer, sgm__step_purpose purpose)
{
    bool int8 = (inference_of(trainer, purpose) & SGM__INFERENCE_INT8) != 0;
    return int8 && trainer->settings.precision == SGM_BFLOAT16 ? SGM_FLOAT32 : trainer->settings.precision;
}

/* Records a program over examples. Which parts it has depends on the purpose: costs for all but
 * predictions; outputs of layers for validation and prediction; gradients as outputs for workers
 * (GRADIENTS, PART); the update otherwise.
 *
 * Predictions read the moving averages in place of the parameters if the optimiser keeps them: the
 * recording's names get the averages' prefix. Layers with streams remember the end of the example before,
 * so they can have neither workers nor shuffled data. */
static sgm_status record(sgm_trainer *trainer, sgm__step_purpose purpose, int64_t batch, bool *same)
{
    bool updates = purpose == SGM__UPDATE || purpose == SGM__ACCUMULATE;
    bool part = purpose == SGM__PART, gradients = part || purpose == SGM__GRADIENTS;
    bool training = updates || gradients;
    bool averaged = !training && !trainer->learner.averages_in && trainer->learner.optimiser != NULL &&
                    trainer->learner.optimiser->options.average > 0;
    sgm_recording_options options = {.struct_size = sizeof options,
                                     .batch = batch,
                                     .dtype = precision_of(trainer, purpose),
                                     .training = training,
                                     .costs = purpose == SGM__VALIDATE,
                                     .iteration = (uint64_t)trainer->position.iteration,
                                     .part = part,
                                     .steps = trainer->learner.steps,
                                     .prefix = averaged ? SGM__AVERAGE_PREFIX : ""};
    SGM_TRY(record_network(trainer, purpose, &options, same));
    bool remembers = training && sgm__network_memory_at(trainer->learner.network, 0) != NULL;
    if (remembers && trainer->sharing.owner->sharing.strategy != NULL)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "layers with streams remember what one trainer reads: train them without workers");
    if (remembers && sgm__iterator_shuffles(trainer->data.training))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "layers with streams go on where the example before ended, but the training data are "
                        "shuffled: give .no_shuffle (data.shuffle=false)");
    if (*same)
        return SGM_OK;
    if (trainer->sharing.owner->sharing.strategy != NULL)
        trainer->sharing.owner->sharing.strategy->recorded(trainer);
    if (trainer->learner.recording.target_count > 0)
        snprintf(trainer->learner.first_targets, sizeof trainer->learner.first_targets, "%s",
                 trainer->learner.recording.targets[0].name);
    if (purpose != SGM__PREDICT && !sgm_value_exists(trainer->learner.recording.total))
        return sgm_fail(SGM_ERROR_STATE,
                        "its network has no cost: add one at its end, such as softmax_cross_entropy");
    if (purpose != SGM__PREDICT) {
        sgm_graph_add_output(trainer->learner.graph, SGM__LOSS, trainer->learner.recording.total);
        sgm__trainer_record_correct(trainer, part);
    }
    if (part)
        sgm_graph_add_output(trainer->learner.graph, SGM__LOSS_PART, trainer->learner.recording.part);
    for (size_t i = 0; i < trainer->learner.recording.output_count && !training; i++)
        sgm_graph_add_output(trainer->learner.graph, trainer->learner.recording.outputs[i].name,
                             trainer->learner.recording.outputs[i].value);
    if (purpose == SGM__VALIDATE && sgm_value_exists(trainer->learner.recording.lengths))
        sgm_graph_add_output(
            trainer->learner.graph, SGM__LENGTHS,
            sgm_cast(trainer->learner.graph, trainer->learner.recording.lengths, SGM_FLOAT64));
    SGM_TRY(sgm__trainer_check_patterns(trainer));
    if (training)
        SGM_TRY(record_costs(trainer, part));
    if (training)
        SGM_TRY(find_trained(trainer));
    if (gradients)
        SGM_TRY(trainer->sharing.owner->sharing.strategy->record(trainer, purpose, batch));
    if (updates)
        SGM_TRY(sgm__trainer_record_update(trainer, purpose == SGM__UPDATE, NULL, false));
    if (updates && trainer->learner.recording.random)
        sgm__trainer_record_random_step(trainer->learner.graph);
    SGM_TRY(sgm_graph_status(trainer->learner.graph));
    return define_states(trainer, updates);
}

/* Whether a purpose needs no examples, only states: updates by gradients that workers have computed, and
 * moving averages by themselves. */
static bool is_of_states(sgm__step_purpose purpose)
{
    return purpose == SGM__APPLY || purpose == SGM__APPLY_LATER || purpose == SGM__AVERAGE;
}

static sgm_status record_for(sgm_trainer *trainer, sgm__step_purpose purpose, int64_t batch, bool *same)
{
    if (!is_of_states(purpose))
        return record(trainer, purpose, batch, same);
    SGM_TRY(trainer->sharing.owner->sharing.strategy->record(trainer, purpose, batch));
    return define_states(trainer, true);
}

static sgm_status check_parts(const sgm_trainer *trainer, sgm__step_purpose purpose)
{
    if (trainer->learner.network == NULL)
        return sgm_fail(SGM_ERROR_STATE, "has no network yet: call sgm_trainer_set_network");
    if (trainer->learner.optimiser == NULL && purpose != SGM__VALIDATE && purpose != SGM__PREDICT)
        return sgm_fail(SGM_ERROR_STATE, "has no optimiser yet: call sgm_trainer_set_optimiser");
    return SGM_OK;
}

/* Says once per program into how many threads a step is divided, and by which estimate: the first question
 * of a user whose cores are idle. */
static void log_threads(const sgm_trainer *trainer, int64_t batch, const sgm_program *program)
{
    sgm_program_memory memory = sgm_program_get_memory(program);
    char one[64], all[64];
    sgm_duration_text(memory.seconds_of_one, one, sizeof one);
    sgm_duration_text(memory.seconds_of_threads, all, sizeof all);
    if (memory.threads == 1)
        sgm__log(SGM_LOG_INFO, trainer->name,
                 "a step of %lld example%s has 1 thread: about %s, estimated from its shapes",
                 (long long)batch, batch == 1 ? "" : "s", one);
    else if (memory.threads > 1)
        sgm__log(SGM_LOG_INFO, trainer->name,
                 "a step of %lld example%s has %d threads: about %s, estimated from its shapes; %s with one",
                 (long long)batch, batch == 1 ? "" : "s", memory.threads, all, one);
}

/* Says what computing values again has saved, and warns if the budget could not be met. Once, of the largest
 * step: an epoch's last minibatch may be smaller, and minibatches whose gradients are only added have a
 * program of their own. Of several workers the first one tells it. */
static void log_memory(const sgm_trainer *trainer, int64_t batch, const sgm_program *program)
{
    int64_t *told = &trainer->sharing.owner->progress.memory_told;
    if (batch <= *told)
        return;
    *told = batch;
    sgm_program_memory memory = sgm_program_get_memory(program);
    int64_t wanted = sgm__budget_bytes(&trainer->settings.memory, memory.unsaved);
    char text[3][64];
    sgm_bytes_text((double)memory.arena, text[0], sizeof text[0]);
    sgm_bytes_text((double)memory.unsaved, text[1], sizeof text[1]);
    sgm_bytes_text((double)wanted, text[2], sizeof text[2]);
    if (memory.arena > wanted)
        sgm__log(
            SGM_LOG_WARNING, trainer->name,
            "memory: a step of %lld example%s takes %s, more than %s: computing values again does not "
            "save more of the %s that it takes without, as the rest are gradients and what is read at one "
            "time; smaller minibatches take less",
            (long long)batch, batch == 1 ? "" : "s", text[0], text[2], text[1]);
    else if (memory.again > 0)
        sgm__log(SGM_LOG_INFO, trainer->name,
                 "memory: a step of %lld example%s takes %s instead of %s, as %d of its instructions are "
                 "computed again",
                 (long long)batch, batch == 1 ? "" : "s", text[0], text[1], memory.again);
}

/* Records and compiles. Indices that layers look up are declared to the program, which checks them in each
 * run. A dynamic network's program is remembered only as the newest one. */
static sgm_program *make_program(sgm_trainer *trainer, sgm__step_purpose purpose, int64_t batch)
{
    bool applies = is_of_states(purpose), same = false;
    if (check_parts(trainer, purpose) != SGM_OK || record_for(trainer, purpose, batch, &same) != SGM_OK)
        return NULL;
    if (same)
        return trainer->learner.rerecording.program;
    bool looks = purpose == SGM__VALIDATE || purpose == SGM__PREDICT, trains = !applies && !looks;
    sgm__memory_budget budget = trainer->settings.memory;
    budget.cost = SGM__LOSS;
    uint32_t inference = inference_of(trainer, purpose);
    sgm_program *program =
        inference != 0
            ? sgm__session_prepare_inference(trainer->learner.session, trainer->learner.graph, inference)
            : sgm__session_prepare_within(trainer->learner.session, trainer->learner.graph,
                                          trains ? &budget : NULL);
    if (program != NULL && !applies &&
        sgm__network_expect_indices(trainer->learner.network, program) != SGM_OK)
        return NULL;
    trainer->learner.rerecording = (sgm__rerecording){purpose, applies ? NULL : program};
    if (program != NULL && !sgm_network_is_dynamic(trainer->learner.network) &&
        sgm__trainer_remember_program(trainer, purpose, batch, program) != SGM_OK)
        return NULL;
    if (program != NULL && purpose == SGM__UPDATE && trainer->progress.running_since > 0 &&
        !sgm_network_is_dynamic(trainer->learner.network))
        log_threads(trainer, batch, program);
    if (program != NULL && trains && trainer->sharing.worker == 0 &&
        trainer->sharing.owner->progress.running_since > 0 &&
        !sgm_network_is_dynamic(trainer->learner.network))
        log_memory(trainer, batch, program);
    return program;
}

/* Whether the session has states already. The first recording draws them, which takes seconds for large
 * networks; therefore it is shown to monitors as a task. */
static bool has_states(const sgm_trainer *trainer)
{
    return sgm_session_state_at(trainer->learner.session, 0) != NULL;
}

/* Before a program that only looks (validation, prediction) the states are collected from workers. Programs
 * in which states are constants are made again when states have changed. */
sgm_program *sgm__trainer_program(sgm_trainer *trainer, sgm__step_purpose purpose, int64_t batch)
{
    bool looks = purpose == SGM__VALIDATE || purpose == SGM__PREDICT;
    if (looks && sgm__trainer_collect(trainer) != SGM_OK)
        return NULL;
    if (looks && sgm__session_is_outdated(trainer->learner.session))
        sgm__trainer_forget_programs(trainer);
    const sgm__known_program *known = sgm__trainer_find_program(trainer, purpose, batch);
    if (known != NULL && known->program != NULL)
        return known->program;
    if (has_states(trainer))
        return make_program(trainer, purpose, batch);
    sgm_task task = sgm_task_begin(SGM_TASK_PREPARE, trainer->name, NULL);
    sgm_program *program = make_program(trainer, purpose, batch);
    sgm_task_end(task, program != NULL ? SGM_OK : sgm__last_failure());
    return program;
}

/* Records without compiling: defines the states, for whoever only saves or exports them. */
static sgm_status record_only(sgm_trainer *trainer, sgm__step_purpose purpose, int64_t batch)
{
    bool same = false;
    SGM_TRY(check_parts(trainer, purpose));
    SGM_TRY(record_for(trainer, purpose, batch, &same));
    if (!same)
        trainer->learner.rerecording.program = NULL;
    return sgm_network_is_dynamic(trainer->learner.network)
               ? SGM_OK
               : sgm__trainer_remember_program(trainer, purpose, batch, NULL);
}

sgm_status sgm__trainer_record(sgm_trainer *trainer, sgm__step_purpose purpose, int64_t batch)
{
    if (sgm__trainer_find_program(trainer, purpose, batch) != NULL)
        return SGM_OK;
    if (has_states(trainer))
        return record_only(trainer, purpose, batch);
    sgm_task task = sgm_task_begin(SGM_TASK_PREPARE, trainer->name, NULL);
    sgm_status status = record_only(trainer, purpose, batch);
    sgm_task_end(task, status);
    return status;
}
