/* Generating a sequence token by token with the network of a trainer.
 *
 * The network is recorded anew for a single time step (sgm_recording_options.step). In such a recording
 * layers keep what they need of the steps before in states: keys and values of attention, hidden states of
 * recurrent layers, and "step.place", the number of steps so far. So a token costs one step, however many
 * were read. The parameters are copied into a session of the generator's own, under the trainer's lock; from
 * then on it needs nothing of the trainer but its handler. Drawing a token from probabilities is
 * sgm_probabilities_sample (src/data/read/sample.c). A generator is used by one thread at a time. */
#include "handlers/session.h"
#include "ops/ops.h"
#include "train/train.h"
#include "trainer/trainer_lock.h"
#include <sigma/text.h>
#include <sigma/training.h>

#include <math.h>

struct sgm_generator {
    sgm_network *network;
    sgm_graph *graph;
    sgm_session *session;
    sgm_program *program;
    sgm_recording recording;
    const char *input;     /* its name in the program */
    sgm_tensor *fed;       /* one step: (1, 1), or (1, 1, vocabulary) as a one-hot row */
    bool shares;           /* tokens are fed as one-hot rows, not as numbers */
    bool logits;           /* the shares are a softmax, whose input is an output of the program, too */
    int64_t vocabulary;    /* tokens that the network tells apart */
    double *probabilities; /* of each token, after the newest step */
    bool *seen;            /* of each token: it was read since the newest reset */
    int64_t *read;         /* the tokens since the newest reset; NULL: the network has no limit of steps */
    int64_t count;         /* number of steps since the newest reset */
    bool *kept; /* for each of the recording's parameters: steps change it, and it begins as zeros */
};

/* Outputs of the program. */
#define SHARES "shares"
#define LOGITS "logits"

/* --- making one --- */

/* The shares, and what they are the softmax of, so that a repetition penalty sees the sign of a logit. */
static void add_outputs(sgm_generator *g)
{
    sgm_value shares = g->recording.outputs[0].value;
    const sgm_value *inputs;
    sgm_graph_add_output(g->graph, SHARES, shares);
    g->logits = sgm_value_op(g->graph, shares) == &sgm__op_softmax;
    if (g->logits && sgm_value_inputs(g->graph, shares, &inputs) > 0)
        sgm_graph_add_output(g->graph, LOGITS, inputs[0]);
}

/* Records one step of one sequence, and checks that the network reads and gives tokens. `averaged`: with the
 * moving averages of the parameters. */
static sgm_status record(sgm_generator *g, sgm_dtype dtype, bool averaged)
{
    const sgm_recording_options options = {.struct_size = sizeof options,
                                           .batch = 1,
                                           .dtype = dtype,
                                           .step = true,
                                           .prefix = averaged ? SGM__AVERAGE_PREFIX : ""};
    char text[128];
    SGM_TRY(sgm_network_record(g->network, g->graph, &options, &g->recording));
    if (g->recording.input_count != 1 || g->recording.output_count < 1)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "the network has %zu inputs and %zu outputs; one input that is a "
                        "sequence and an output are wanted",
                        g->recording.input_count, g->recording.output_count);
    sgm_type in = sgm_value_type(g->graph, g->recording.inputs[0].value);
    sgm_type out = sgm_value_type(g->graph, g->recording.outputs[0].value);
    if (in.shape.rank < 2 || in.shape.rank > 3)
        return sgm_fail(SGM_ERROR_SHAPE,
                        "the input of a step is %s; a sequence of tokens (time), or of shares "
                        "(time, tokens), is wanted",
                        sgm_shape_text(&in.shape, text, sizeof text));
    g->shares = in.shape.rank == 3;
    g->vocabulary = out.shape.rank > 0 ? out.shape.dims[out.shape.rank - 1] : 0;
    if (sgm_shape_elements(&out.shape) != g->vocabulary || g->vocabulary < 2)
        return sgm_fail(SGM_ERROR_SHAPE, "a step gives %s; a share for each token is wanted",
                        sgm_shape_text(&out.shape, text, sizeof text));
    if (g->shares && in.shape.dims[2] != g->vocabulary)
        return sgm_fail(SGM_ERROR_SHAPE,
                        "the network reads %lld different tokens, but gives shares of %lld; it must give a "
                        "probability for each token",
                        (long long)in.shape.dims[2], (long long)g->vocabulary);
    g->input = g->recording.inputs[0].name;
    add_outputs(g);
    g->fed = sgm_tensor_create(SGM_FLOAT32, &in.shape);
    return g->fed != NULL ? sgm_graph_status(g->graph) : sgm__last_failure();
}

/* Gives a state of the recording its value: the trainer's, if the trainer has a state of this name; else it
 * is one that only steps have, and begins as zeros. A parameter that has another shape in a recording of all
 * steps belongs to a layer that looks at all of them at once. */
static sgm_status fill_state(sgm_generator *g, sgm_session *from, size_t index, const char *prefix)
{
    const sgm_parameter *parameter = &g->recording.parameters[index];
    char *name =
        sgm__format("%s%s", parameter->trainable && !parameter->frozen ? prefix : "", parameter->name);
    sgm_type type;
    if (name == NULL)
        return SGM_ERROR_MEMORY;
    bool known = sgm_session_has(from, name);
    g->kept[index] = !known;
    sgm_status status = known ? sgm_session_state_type(from, name, &type) : SGM_OK;
    char now[128], then[128];
    if (status == SGM_OK && known && !sgm_shape_equal(&type.shape, &parameter->type.shape))
        status = sgm_fail(SGM_ERROR_UNSUPPORTED,
                          "sequences cannot be read step by step: %s is %s for one step, but %s for "
                          "all: the layer looks at all steps at once",
                          name, sgm_shape_text(&parameter->type.shape, now, sizeof now),
                          sgm_shape_text(&type.shape, then, sizeof then));
    sgm_tensor *value = NULL;
    if (status == SGM_OK)
        value = known ? sgm_session_get(from, name)
                      : sgm_tensor_create(parameter->type.dtype, &parameter->type.shape);
    if (status == SGM_OK)
        status = value != NULL ? sgm_session_set(g->session, name, value) : sgm__last_failure();
    sgm_tensor_free(value);
    sgm__free(name);
    return status;
}

static sgm_status set_number(sgm_session *session, const char *state, double number)
{
    const sgm_shape scalar = sgm_scalar_shape();
    sgm_tensor *value = sgm_tensor_create(SGM_INT64, &scalar);
    if (value == NULL)
        return SGM_ERROR_MEMORY;
    sgm_tensor_set(value, NULL, number);
    sgm_status status = sgm_session_set(session, state, value);
    sgm_tensor_free(value);
    return status;
}

/* Fills all states and compiles the program. Those that steps do not change are constants in it. */
static sgm_status fill(sgm_generator *g, sgm_session *from, bool averaged, uint32_t inference)
{
    const sgm_recording *r = &g->recording;
    g->kept = sgm__calloc(r->parameter_count + 1, sizeof *g->kept);
    if (g->kept == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < r->parameter_count; i++)
        SGM_TRY(fill_state(g, from, i, averaged ? SGM__AVERAGE_PREFIX : ""));
    SGM_TRY(set_number(g->session, "step.place", 0));
    if (r->random) {
        SGM_TRY(set_number(g->session, "random.seed", 0));
        SGM_TRY(set_number(g->session, "random.step", 0));
    }
    g->program = sgm__session_prepare_inference(g->session, g->graph, inference | SGM__INFERENCE_CONSTANTS);
    g->probabilities = sgm__calloc((size_t)g->vocabulary, sizeof *g->probabilities);
    g->seen = sgm__calloc((size_t)g->vocabulary, sizeof *g->seen);
    if (r->places > 0)
        g->read = sgm__calloc((size_t)r->places, sizeof *g->read);
    return g->program != NULL && g->probabilities != NULL && g->seen != NULL &&
                   (g->read != NULL || r->places == 0)
               ? SGM_OK
               : sgm__last_failure();
}

/* With the trainer's lock. The network is parsed again from its text: a network holds its newest recording,
 * which for the trainer's network is the trainer's. The moving averages are used unless they are in the
 * parameters' place already. */
static sgm_status begin(sgm_generator *g, sgm_trainer *trainer)
{
    sgm__trainer_settings *settings = sgm__settings_of(trainer);
    sgm__learner *learner = sgm__learner_of(trainer);
    SGM_TRY(sgm__trainer_prepare(trainer));
    SGM_TRY(sgm__trainer_collect(trainer));
    char *text = sgm_network_text(learner->network);
    g->network = text != NULL ? sgm_network_parse(text) : NULL;
    sgm_string_free(text);
    g->graph = sgm_graph_create();
    g->session = sgm_session_create(settings->handler);
    if (g->network == NULL || g->graph == NULL || g->session == NULL)
        return sgm__last_failure();
    bool averaged =
        !learner->averages_in && learner->optimiser != NULL && learner->optimiser->options.average > 0;
    bool int8 = (settings->inference & SGM__INFERENCE_INT8) != 0;
    SGM_TRY(
        record(g, int8 && settings->precision == SGM_BFLOAT16 ? SGM_FLOAT32 : settings->precision, averaged));
    return fill(g, learner->session, averaged, settings->inference);
}

sgm_generator *sgm_generator_create(sgm_trainer *trainer)
{
    if (sgm_trainer_status(trainer) != SGM_OK || sgm__trainer_open(trainer) != SGM_OK)
        return NULL;
    sgm_generator *g = sgm__calloc(1, sizeof *g);
    sgm_status status = g != NULL ? begin(g, trainer) : SGM_ERROR_MEMORY;
    if (status != SGM_OK)
        sgm__fail_within("trainer '%s'", sgm_trainer_name(trainer));
    sgm__trainer_unlock(trainer);
    if (status == SGM_OK)
        return g;
    sgm_generator_free(g);
    return NULL;
}

void sgm_generator_free(sgm_generator *g)
{
    if (g == NULL)
        return;
    sgm_session_free(g->session);
    sgm_graph_free(g->graph);
    sgm_network_free(g->network);
    sgm_tensor_free(g->fed);
    sgm__free(g->probabilities);
    sgm__free(g->seen);
    sgm__free(g->read);
    sgm__free(g->kept);
    sgm__free(g);
}

int64_t sgm_generator_vocabulary(const sgm_generator *g)
{
    return g != NULL ? g->vocabulary : 0;
}

int64_t sgm_generator_places(const sgm_generator *g)
{
    return g != NULL ? g->recording.places : 0;
}

/* --- reading --- */

/* Goes back to place 0. */
static sgm_status go_back(sgm_generator *g)
{
    g->count = 0;
    for (size_t i = 0; i < g->recording.parameter_count; i++) {
        const sgm_parameter *parameter = &g->recording.parameters[i];
        if (!g->kept[i])
            continue;
        sgm_tensor *zeros = sgm_tensor_create(parameter->type.dtype, &parameter->type.shape);
        sgm_status status =
            zeros != NULL ? sgm_session_set(g->session, parameter->name, zeros) : SGM_ERROR_MEMORY;
        sgm_tensor_free(zeros);
        SGM_TRY(status);
    }
    return set_number(g->session, "step.place", 0);
}

sgm_status sgm_generator_reset(sgm_generator *g)
{
    if (g == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_generator_reset wants a generator, got NULL");
    memset(g->seen, 0, (size_t)g->vocabulary * sizeof *g->seen);
    return go_back(g);
}

/* Runs one step with this token. */
static sgm_status step(sgm_generator *g, int64_t token)
{
    float *values = sgm_tensor_data(g->fed);
    if (g->shares) {
        memset(values, 0, (size_t)g->vocabulary * sizeof *values);
        values[token] = 1;
    } else {
        values[0] = (float)token;
    }
    SGM_TRY(sgm_session_feed(g->session, g->program, g->input, g->fed));
    SGM_TRY(sgm_session_run(g->session, g->program));
    if (g->read != NULL)
        g->read[g->count] = token;
    g->seen[token] = true;
    g->count++;
    return SGM_OK;
}

/* A network with places for so many steps (learnt positions, or keys of attention) cannot read more. When all
 * places are taken, the newest half of the tokens is read again from place 0: the context stays at least half
 * as long, and reading again costs one step per token on average. Dropping the oldest place alone would cost
 * less, but keys of upper layers have seen what is dropped, and learnt positions would be those of other
 * places. */
static sgm_status make_room(sgm_generator *g)
{
    int64_t places = g->recording.places, kept = places / 2;
    if (places == 0 || g->count < places)
        return SGM_OK;
    SGM_TRY(go_back(g));
    memmove(g->read, g->read + (places - kept), (size_t)kept * sizeof *g->read);
    for (int64_t i = 0; i < kept; i++)
        SGM_TRY(step(g, g->read[i]));
    return SGM_OK;
}

/* Reads an output of the newest step, a number for each token, into g->probabilities. */
static sgm_status read_output(sgm_generator *g, const char *name)
{
    sgm_type type = sgm_program_output_type(g->program, name);
    sgm_tensor *output = sgm_tensor_create(type.dtype, &type.shape);
    sgm_status status =
        output != NULL ? sgm_session_read(g->session, g->program, name, output) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = sgm_tensor_read(output, g->probabilities, (size_t)g->vocabulary);
    sgm_tensor_free(output);
    return status;
}

sgm_status sgm_generator_read(sgm_generator *g, int64_t token, const double **shares)
{
    if (g == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_generator_read wants a generator, got NULL");
    if (token < 0 || token >= g->vocabulary)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%lld is no token: there are %lld, numbered from 0",
                        (long long)token, (long long)g->vocabulary);
    SGM_TRY(make_room(g));
    SGM_TRY(step(g, token));
    if (shares == NULL)
        return SGM_OK;
    *shares = g->probabilities;
    return read_output(g, SHARES);
}

/* --- generating --- */

/* Replaces the probabilities after the newest step by those with the repetition penalty (Keskar et al.,
 * 2019): logits of tokens that were seen are divided by it where they are positive, and multiplied where
 * negative. */
static sgm_status penalise(sgm_generator *g, double penalty)
{
    double *values = g->probabilities, maximum = -INFINITY, sum = 0;
    SGM_TRY(read_output(g, LOGITS));
    for (int64_t i = 0; i < g->vocabulary; i++) {
        if (g->seen[i])
            values[i] = values[i] > 0 ? values[i] / penalty : values[i] * penalty;
        maximum = fmax(maximum, values[i]);
    }
    for (int64_t i = 0; i < g->vocabulary; i++)
        sum += values[i] = exp(values[i] - maximum);
    for (int64_t i = 0; i < g->vocabulary; i++)
        values[i] /= sum;
    return SGM_OK;
}

/* Reads a token; g->probabilities are those of what follows then, with the repetition penalty. */
static sgm_status read_on(sgm_generator *g, int64_t token, const sgm_generation_options *o)
{
    const double *shares;
    bool penalty = o->repetition_penalty != 0 && o->repetition_penalty != 1;
    SGM_TRY(sgm_generator_read(g, token, penalty ? NULL : &shares));
    return penalty ? penalise(g, o->repetition_penalty) : SGM_OK;
}

static sgm_status check_generation(const sgm_generator *g, const sgm_generation_options *o)
{
    if (g == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_generator_generate wants a generator, got NULL");
    if (!(o->repetition_penalty >= 0) || !isfinite(o->repetition_penalty))
        return sgm_fail(SGM_ERROR_ARGUMENT, "the repetition_penalty is above 0, not %g",
                        o->repetition_penalty);
    if (o->repetition_penalty != 0 && !g->logits)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "a repetition_penalty wants logits, but the network's output is not the softmax of "
                        "some; leave it out, or end the network with softmax_cross_entropy");
    return SGM_OK;
}

/* Each token is drawn by seed and number (sgm_probabilities_sample), so the same seed gives the same tokens.
 * The last token is drawn but not read: a later call may read other tokens first. */
sgm_status sgm_generator_generate(sgm_generator *g, const int64_t *begin_tokens, size_t begin_count,
                                  int64_t *tokens, size_t count, const sgm_generation_options *given)
{
    sgm_generation_options o;
    SGM_TRY(sgm__options_read(&o, sizeof o, given, "sgm_generator_generate"));
    SGM_TRY(check_generation(g, &o));
    if (begin_tokens == NULL || begin_count == 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "at least 1 token is wanted to begin with; there is none");
    for (size_t i = 0; i + 1 < begin_count; i++)
        SGM_TRY(sgm_generator_read(g, begin_tokens[i], NULL));
    SGM_TRY(read_on(g, begin_tokens[begin_count - 1], &o));
    for (size_t i = 0; i < count; i++) {
        int64_t token =
            sgm_probabilities_sample(g->probabilities, g->vocabulary, o.seed, i,
                                     SGM_SAMPLING(.temperature = o.temperature, .top_k = o.top_k,
                                                  .top_p = o.top_p, .min_p = o.min_p, .greedy = o.greedy));
        if (token < 0)
            return sgm__last_failure();
        if (tokens != NULL)
            tokens[i] = token;
        if ((o.told != NULL && !o.told(o.user, token)) || i + 1 == count)
            break;
        SGM_TRY(read_on(g, token, &o));
    }
    return SGM_OK;
}
