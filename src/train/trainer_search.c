/* An iteration of an optimiser without gradients: a generation of candidates, each of which is judged by the
 * loss of the same minibatch.
 *
 * The loss is that of validation (without dropout, running means stay), computed by the same program. Between
 * two runs the parameters get the values of the next candidate; behind the last one, those of the new point.
 * So whoever looks at the trainer between iterations sees the point: hooks, validation, checkpoints. What a
 * method remembers is one state of float64, which checkpoints keep like any other. What is drawn depends on
 * the trainer's seed and the number of the update alone. */
#include "base/base.h"
#include "optim/gradient_free.h"
#include "train/train.h"
#include "trainer/frozen.h"
#include "trainer/layer_times.h"
#include "trainer/trainer_struct.h"

#define SEARCH_STREAM 0x5ea7c4

/* All trained parameters, one behind the other. */
typedef struct search {
    sgm_trainer *trainer;
    sgm_program *program;
    const sgm_gradient_free_method *method;
    sgm_gradient_free_call call;
    sgm_tensor *numbers;
    double *memory; /* point, candidate, losses, scratch */
    double *candidate, *losses;
} search;

static bool is_trained(const sgm_trainer *trainer, const sgm_parameter *parameter)
{
    return parameter->trainable && !sgm__trainer_is_frozen(trainer, parameter->name);
}

static size_t count_parameters(const sgm_trainer *trainer)
{
    const sgm_recording *recording = &trainer->learner.recording;
    size_t count = 0;
    for (size_t i = 0; i < recording->parameter_count; i++)
        if (is_trained(trainer, &recording->parameters[i]))
            count += (size_t)sgm_shape_elements(&recording->parameters[i].type.shape);
    return count;
}

/* Reads the parameters into `point`, or writes them from it. */
static sgm_status exchange(const search *s, double *point, bool write)
{
    const sgm_recording *recording = &s->trainer->learner.recording;
    sgm_session *session = s->trainer->learner.session;
    for (size_t i = 0; i < recording->parameter_count; i++) {
        const sgm_parameter *parameter = &recording->parameters[i];
        size_t count = (size_t)sgm_shape_elements(&parameter->type.shape);
        if (!is_trained(s->trainer, parameter))
            continue;
        sgm_tensor *value = write ? sgm_tensor_create(parameter->type.dtype, &parameter->type.shape)
                                  : sgm_session_get(session, parameter->name);
        sgm_status status = value == NULL ? sgm_last_status()
                            : write       ? sgm_tensor_write(value, point, count)
                                          : sgm_tensor_read(value, point, count);
        if (status == SGM_OK && write)
            status = sgm_session_set(session, parameter->name, value);
        sgm_tensor_free(value);
        SGM_TRY(status);
        point += count;
    }
    return SGM_OK;
}

/* What has no meaning without gradients is refused, not left out in silence. */
static sgm_status check_modifiers(const sgm_trainer *trainer)
{
    if (trainer->patterns.modifier_count == 0)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_UNSUPPORTED,
                    "the optimiser %s records no updates that modifiers could change: leave them out",
                    trainer->learner.optimiser->type->name);
}

static sgm_status check_size(const sgm_trainer *trainer, const sgm_gradient_free_method *method, size_t count)
{
    char there[64];
    if (count == 0)
        return sgm__frozen_fail(&trainer->patterns.frozen);
    if (method->maximum == 0 || count <= method->maximum)
        return SGM_OK;
    return sgm_fail(
        SGM_ERROR_UNSUPPORTED,
        "the optimiser %s remembers how each pair of parameters goes together, of %zu parameters at "
        "most; the network trains %s: freeze some, take a smaller network, or random_search",
        trainer->learner.optimiser->type->name, method->maximum,
        sgm_count_text((int64_t)count, there, sizeof there));
}

/* What the method remembers; zeros at first, and where it was of another number of parameters. */
static sgm_status find_numbers(search *s)
{
    sgm_session *session = s->trainer->learner.session;
    sgm_shape shape = sgm_shape_of((int64_t)s->method->numbers(s->call.count));
    if (shape.dims[0] == 0)
        return SGM_OK;
    if (sgm_session_has(session, SGM__SEARCH_STATE)) {
        s->numbers = sgm_session_get(session, SGM__SEARCH_STATE);
        if (s->numbers != NULL && !sgm_shape_equal(sgm_tensor_shape(s->numbers), &shape))
            return sgm_fail(
                SGM_ERROR_STATE,
                "%s remembers another number of parameters than are trained now: begin anew (reset), "
                "or freeze the same ones",
                s->trainer->learner.optimiser->type->name);
    } else {
        s->numbers = sgm_tensor_create(SGM_FLOAT64, &shape);
    }
    if (s->numbers == NULL)
        return sgm_last_status();
    s->call.numbers = sgm_tensor_data(s->numbers);
    return SGM_OK;
}

static sgm_status prepare(search *s, double rate)
{
    sgm_trainer *trainer = s->trainer;
    const sgm_optimiser *optimiser = trainer->learner.optimiser;
    uint32_t drawn[4];
    size_t count = count_parameters(trainer);
    SGM_TRY(check_size(trainer, s->method, count));
    size_t candidates = (size_t)sgm__gradient_free_candidates(&optimiser->options, count);
    s->memory = sgm__calloc(2 * count + candidates + s->method->scratch(count), sizeof(double));
    if (s->memory == NULL)
        return SGM_ERROR_MEMORY;
    sgm__philox(trainer->settings.seed, SEARCH_STREAM, (uint64_t)trainer->position.updates, drawn);
    s->call = (sgm_gradient_free_call){.count = count,
                                       .candidates = (int64_t)candidates,
                                       .seed = (uint64_t)drawn[1] << 32 | drawn[0],
                                       .learning_rate = rate,
                                       .point = s->memory,
                                       .float32 = trainer->settings.precision != SGM_FLOAT64,
                                       .scratch = s->memory + 2 * count + candidates};
    s->candidate = s->memory + count;
    s->losses = s->memory + 2 * count;
    SGM_TRY(find_numbers(s));
    return exchange(s, s->call.point, false);
}

/* The loss of each candidate, and then the new point. */
static sgm_status judge(search *s, double loss)
{
    sgm_session *session = s->trainer->learner.session;
    if (s->method->begin != NULL)
        s->method->begin(&s->call);
    for (int64_t k = 0; k < s->call.candidates; k++) {
        s->method->ask(&s->call, k, s->candidate);
        SGM_TRY(exchange(s, s->candidate, true));
        SGM_TRY(sgm_session_run(session, s->program));
        SGM_TRY(sgm_session_read_number(session, s->program, SGM__LOSS, &s->losses[k]));
    }
    s->method->tell(&s->call, loss, s->losses);
    if (s->numbers != NULL)
        SGM_TRY(sgm_session_set(session, SGM__SEARCH_STATE, s->numbers));
    return SGM_OK;
}

/* The present point's loss goes into the sums of the epoch, as that of other optimisers before their update.
 * After a failure the parameters are the point again. */
static sgm_status generation(search *s, const sgm_block *minibatch, double rate)
{
    sgm_trainer *trainer = s->trainer;
    sgm__training_position *position = &trainer->position;
    double before = position->sums.loss;
    SGM_TRY(sgm__trainer_feed(trainer, s->program, minibatch));
    SGM_TRY(sgm__trainer_run_program(trainer, s->program));
    SGM_TRY(sgm__trainer_count(trainer, s->program, minibatch->count, &position->sums));
    trainer->progress.newest_loss = (position->sums.loss - before) / (double)minibatch->count;
    SGM_TRY(sgm__trainer_read_costs(trainer, s->program));
    SGM_TRY(prepare(s, rate));
    sgm_status status = judge(s, trainer->progress.newest_loss);
    sgm_status back = exchange(s, s->call.point, true);
    return status != SGM_OK ? status : back;
}

sgm_status sgm__trainer_search(sgm_trainer *trainer, const sgm_block *minibatch, double rate)
{
    search s = {.trainer = trainer, .method = trainer->learner.optimiser->type->search};
    SGM_TRY(check_modifiers(trainer));
    s.program = sgm__trainer_program(trainer, SGM__VALIDATE, minibatch->count);
    sgm_status status = s.program != NULL ? generation(&s, minibatch, rate) : sgm_last_status();
    sgm_tensor_free(s.numbers);
    sgm__free(s.memory);
    SGM_TRY(status);
    trainer->position.updates++;
    trainer->position.iteration++;
    trainer->position.batch++;
    return SGM_OK;
}
