/* Making a generator, which reads sequences token by token with the network of a trainer.
 *
 * The network is recorded anew for a single time step (sgm_recording_options.step). In such a recording
 * layers keep what they need of the steps before in states: keys and values of attention, hidden states of
 * recurrent layers, and "step.place", the number of steps so far. So a token costs one step, however many
 * were read. Where all that is kept are keys and values, the network is recorded once more for pieces of
 * several steps, which cost little more than one, as a program mostly waits for its weights. Both programs
 * are made under the trainer's lock, of the trainer's parameters; those that are constants in them are not
 * kept, others are copied. From then on a generator needs nothing of the trainer but its handler. Reading is
 * generator_read.c, drawing generate.c. A generator is used by one thread at a time. */
#include "infer/generator.h"
#include "ops/ops.h"
#include "train/train.h"
#include "trainer/trainer_lock.h"

/* Steps of a piece: enough that products are limited by arithmetic, not by reading weights; of a network of
 * 135 million parameters 32 cost as much as two or three single ones. */
#define PIECE 32

#define MAXIMUM_SEQUENCES 4096

/* --- recording --- */

/* Records a step of each sequence, or a piece of several. */
static sgm_status record(const sgm_generator *g, sgm__reader *reader, int64_t steps)
{
    const sgm_recording_options options = {.struct_size = sizeof options,
                                           .batch = g->sequences,
                                           .dtype = g->dtype,
                                           .step = true,
                                           .steps = steps,
                                           .prefix = g->averaged ? SGM__AVERAGE_PREFIX : ""};
    reader->steps = steps;
    reader->network = sgm_network_parse(g->notation);
    reader->graph = sgm_graph_create();
    if (reader->network == NULL || reader->graph == NULL)
        return sgm__last_failure();
    return sgm_network_record(reader->network, reader->graph, &options, &reader->recording);
}

static sgm_status make_room_to_feed(sgm__reader *reader)
{
    sgm_type in = sgm_value_type(reader->graph, reader->recording.inputs[0].value);
    reader->fed = sgm_tensor_create(SGM_FLOAT32, &in.shape);
    return reader->fed != NULL ? sgm_graph_status(reader->graph) : sgm__last_failure();
}

/* Checks that the network of a step reads and gives tokens. */
static sgm_status check_tokens(sgm_generator *g)
{
    const sgm_recording *recording = &g->one.recording;
    char text[128];
    if (recording->input_count != 1 || recording->output_count < 1)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "the network has %zu inputs and %zu outputs; one input that is a "
                        "sequence and an output are wanted",
                        recording->input_count, recording->output_count);
    sgm_type in = sgm_value_type(g->one.graph, recording->inputs[0].value);
    sgm_type out = sgm_value_type(g->one.graph, recording->outputs[0].value);
    if (in.shape.rank < 2 || in.shape.rank > 3)
        return sgm_fail(SGM_ERROR_SHAPE,
                        "the input of a step is %s; a sequence of tokens (time), or of one-hot rows "
                        "(time, tokens), is wanted",
                        sgm_shape_text(&in.shape, text, sizeof text));
    g->one_hot = in.shape.rank == 3;
    g->vocabulary = out.shape.rank > 0 ? out.shape.dims[out.shape.rank - 1] : 0;
    if (sgm_shape_elements(&out.shape) != g->sequences * g->vocabulary || g->vocabulary < 2)
        return sgm_fail(SGM_ERROR_SHAPE, "a step gives %s; a probability for each token is wanted",
                        sgm_shape_text(&out.shape, text, sizeof text));
    if (g->one_hot && in.shape.dims[2] != g->vocabulary)
        return sgm_fail(
            SGM_ERROR_SHAPE,
            "the network reads %lld different tokens, but gives probabilities of %lld; it must give a "
            "probability for each token",
            (long long)in.shape.dims[2], (long long)g->vocabulary);
    return SGM_OK;
}

/* The probabilities, and what they are the softmax of, so that a repetition penalty sees the sign of a logit.
 */
static void add_outputs(sgm_generator *g)
{
    sgm_value probabilities = g->one.recording.outputs[0].value;
    const sgm_value *inputs;
    sgm_graph_add_output(g->one.graph, SGM__PROBABILITIES, probabilities);
    g->logits = sgm_value_op(g->one.graph, probabilities) == &sgm__op_softmax;
    if (g->logits && sgm_value_inputs(g->one.graph, probabilities, &inputs) > 0)
        sgm_graph_add_output(g->one.graph, SGM__LOGITS, inputs[0]);
}

/* --- states --- */

/* Gives the session a state with the value that `from` has, or of zeros if that is NULL. */
static sgm_status copy_state(const sgm_generator *g, sgm_session *from, const char *name,
                             const sgm_type *type)
{
    sgm_tensor *value =
        from != NULL ? sgm_session_get(from, name) : sgm_tensor_create(type->dtype, &type->shape);
    sgm_status status = value != NULL ? sgm_session_set(g->session, name, value) : sgm__last_failure();
    sgm_tensor_free(value);
    return status;
}

/* Gives a state of the recording its value: the trainer's, if the trainer has a state of this name; else it
 * is one that only steps have, and begins as zeros. A parameter that has another shape in a recording of all
 * steps belongs to a layer that looks at all of them at once. */
static sgm_status fill_state(sgm_generator *g, sgm_session *from, size_t index)
{
    const sgm_parameter *parameter = &g->one.recording.parameters[index];
    bool averaged = g->averaged && parameter->trainable && !parameter->frozen;
    char *name = sgm__format("%s%s", averaged ? SGM__AVERAGE_PREFIX : "", parameter->name);
    sgm_type type;
    if (name == NULL)
        return SGM_ERROR_MEMORY;
    bool known = sgm_session_has(from, name);
    g->kept[index] = !known;
    g->pieces = g->pieces && (known || parameter->placed);
    sgm_status status = known ? sgm_session_state_type(from, name, &type) : SGM_OK;
    char now[128], then[128];
    if (status == SGM_OK && known && !sgm_shape_equal(&type.shape, &parameter->type.shape))
        status = sgm_fail(SGM_ERROR_UNSUPPORTED,
                          "sequences cannot be read step by step: %s is %s for one step, but %s for "
                          "all: the layer looks at all steps at once",
                          name, sgm_shape_text(&parameter->type.shape, now, sizeof now),
                          sgm_shape_text(&type.shape, then, sizeof then));
    if (status == SGM_OK && known && sgm__session_is_host(from) && sgm__session_is_host(g->session))
        status = sgm__session_share(g->session, from, name);
    else if (status == SGM_OK)
        status = copy_state(g, known ? from : NULL, name, &parameter->type);
    sgm__free(name);
    return status;
}

sgm_status sgm__generator_set_number(sgm_generator *g, const char *state, double number)
{
    const sgm_shape scalar = sgm_scalar_shape();
    sgm_tensor *value = sgm_tensor_create(SGM_INT64, &scalar);
    if (value == NULL)
        return SGM_ERROR_MEMORY;
    sgm_tensor_set(value, NULL, number);
    sgm_status status = sgm_session_set(g->session, state, value);
    sgm_tensor_free(value);
    return status;
}

/* --- programs --- */

static sgm_status prepare(const sgm_generator *g, sgm__reader *reader)
{
    reader->program = sgm__session_prepare_inference(
        g->session, reader->graph, g->inference | SGM__INFERENCE_CONSTANTS | SGM__INFERENCE_ANY_SIZE);
    return reader->program != NULL ? SGM_OK : sgm__last_failure();
}

/* The programs are the session's. */
static void free_reader(sgm__reader *reader)
{
    sgm_graph_free(reader->graph);
    sgm_network_free(reader->network);
    sgm_tensor_free(reader->fed);
    *reader = (sgm__reader){0};
}

static sgm_status add_pieces(sgm_generator *g)
{
    SGM_TRY(record(g, &g->piece, g->places < PIECE ? g->places : PIECE));
    SGM_TRY(make_room_to_feed(&g->piece));
    return prepare(g, &g->piece);
}

/* Fills all states and compiles the programs. */
static sgm_status fill(sgm_generator *g, sgm_session *from)
{
    const sgm_recording *r = &g->one.recording;
    size_t numbers = (size_t)(g->sequences * g->vocabulary);
    g->places = r->places;
    g->pieces = g->places > 0;
    g->kept = sgm__calloc(r->parameter_count + 1, sizeof *g->kept);
    g->probabilities = sgm__calloc(numbers, sizeof *g->probabilities);
    g->seen = sgm__calloc(numbers, sizeof *g->seen);
    g->read = g->places > 0 ? sgm__calloc((size_t)(g->sequences * g->places), sizeof *g->read) : NULL;
    if (g->kept == NULL || g->probabilities == NULL || g->seen == NULL || (g->read == NULL && g->places > 0))
        return SGM_ERROR_MEMORY;
    SGM_TRY(sgm__session_check(from));
    for (size_t i = 0; i < r->parameter_count; i++)
        SGM_TRY(fill_state(g, from, i));
    SGM_TRY(sgm__generator_set_number(g, "step.place", 0));
    if (r->random) {
        SGM_TRY(sgm__generator_set_number(g, "random.seed", 0));
        SGM_TRY(sgm__generator_set_number(g, "random.step", 0));
    }
    SGM_TRY(prepare(g, &g->one));
    if (g->pieces)
        SGM_TRY(add_pieces(g));
    return sgm__session_end_sharing(g->session);
}

/* --- making one --- */

/* With the trainer's lock. Networks are parsed again from the text: a network holds its newest recording,
 * which for the trainer's network is the trainer's. The moving averages are used unless they are in the
 * parameters' place already. */
static sgm_status begin(sgm_generator *g, sgm_trainer *trainer)
{
    sgm__trainer_settings *settings = sgm__settings_of(trainer);
    sgm__learner *learner = sgm__learner_of(trainer);
    SGM_TRY(sgm__trainer_prepare(trainer));
    SGM_TRY(sgm__trainer_collect(trainer));
    g->notation = sgm_network_text(learner->network);
    g->session = sgm_session_create(settings->handler);
    if (g->notation == NULL || g->session == NULL)
        return sgm__last_failure();
    g->averaged =
        !learner->averages_in && learner->optimiser != NULL && learner->optimiser->options.average > 0;
    g->inference = settings->inference;
    bool int8 = (settings->inference & SGM__INFERENCE_INT8) != 0;
    g->dtype = int8 && settings->precision == SGM_BFLOAT16 ? SGM_FLOAT32 : settings->precision;
    SGM_TRY(record(g, &g->one, 1));
    SGM_TRY(check_tokens(g));
    add_outputs(g);
    SGM_TRY(make_room_to_feed(&g->one));
    return fill(g, learner->session);
}

sgm_generator *sgm_generator_create_with(sgm_trainer *trainer, const sgm_generator_options *given)
{
    sgm_generator_options o;
    if (sgm__options_read(&o, sizeof o, given, "sgm_generator_create") != SGM_OK)
        return NULL;
    if (o.sequences < 0 || o.sequences > MAXIMUM_SEQUENCES) {
        sgm_fail(SGM_ERROR_ARGUMENT, "a generator reads 1 to %d sequences side by side, not %lld",
                 MAXIMUM_SEQUENCES, (long long)o.sequences);
        return NULL;
    }
    if (sgm_trainer_status(trainer) != SGM_OK || sgm__trainer_open(trainer) != SGM_OK)
        return NULL;
    sgm_generator *g = sgm__calloc(1, sizeof *g);
    sgm_status status = SGM_ERROR_MEMORY;
    if (g != NULL) {
        g->sequences = o.sequences > 0 ? o.sequences : 1;
        status = begin(g, trainer);
    }
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
    free_reader(&g->one);
    free_reader(&g->piece);
    sgm_graph_free(g->mover);
    sgm_string_free(g->notation);
    sgm__free(g->probabilities);
    sgm__free(g->seen);
    sgm__free(g->read);
    sgm__free(g->kept);
    sgm__free(g);
}

sgm_status sgm__generator_is_single(const sgm_generator *g, const char *function)
{
    if (g == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s wants a generator, got NULL", function);
    if (g->sequences == 1)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_ARGUMENT,
                    "%s is for a generator of one sequence; this one reads %lld side by side, for "
                    "sgm_generator_generate_all",
                    function, (long long)g->sequences);
}

int64_t sgm_generator_vocabulary(const sgm_generator *g)
{
    return g != NULL ? g->vocabulary : 0;
}

int64_t sgm_generator_places(const sgm_generator *g)
{
    return g != NULL ? g->places : 0;
}
