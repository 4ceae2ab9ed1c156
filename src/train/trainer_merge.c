/* Merging: what adapters have learnt becomes part of the parameters that they adapt.
 *
 * An adapted product is linear in x, so the rows of a unit matrix in its place give the matrix that acts as
 * parameter and adapters together do. Adapters record that themselves (src/network/adapters.c); nothing here
 * knows what kind they are. Of a matrix that is kept as 8 bits the floats that its codes stand for are
 * merged, and take its place. Then adapters go, with their states: a session keeps its states as long as it
 * lives, so the others move to a new one. */
#include "handlers/session.h"
#include "network/rerecord.h"
#include "train/train.h"
#include "trainer/trainer_struct.h"

/* Rows that are merged at once, so that the unit matrix of a wide layer takes no more than these. */
#define ROWS 256

/* Rows `first` to `first + count - 1` of the matrix `values`, which the run replaces by the merged ones. */
static sgm_status merge_rows(sgm_session *session, sgm_program *program, sgm_tensor *values, int64_t first,
                             int64_t count)
{
    const sgm_shape *shape = sgm_tensor_shape(values);
    sgm_shape square = sgm_shape_of(count, shape->dims[0]);
    sgm_tensor *unit = sgm_tensor_create(sgm_tensor_dtype(values), &square);
    sgm_tensor *rows = sgm_tensor_slice(values, 0, first, first + count, 1);
    sgm_status status = unit != NULL && rows != NULL ? SGM_OK : sgm__last_failure();
    for (int64_t i = 0; i < count && status == SGM_OK; i++)
        sgm_tensor_set(unit, (const int64_t[]){i, first + i}, 1);
    if (status == SGM_OK)
        status = sgm_session_feed(session, program, "x", unit);
    if (status == SGM_OK)
        status = sgm_session_feed(session, program, "y", rows);
    if (status == SGM_OK)
        status = sgm_session_run(session, program);
    if (status == SGM_OK)
        status = sgm_session_read(session, program, "merged", rows);
    sgm_tensor_free(rows);
    sgm_tensor_free(unit);
    return status;
}

/* What the adapters of `parameter` make of so many rows y of it, with rows x of a unit matrix; NULL: it
 * failed. */
static sgm_program *program_of(sgm_trainer *trainer, const char *parameter, const sgm_tensor *values,
                               int64_t rows)
{
    const sgm_dtype dtype = sgm_tensor_dtype(values);
    const sgm_shape *shape = sgm_tensor_shape(values);
    sgm_graph *graph = sgm_graph_create();
    if (graph == NULL)
        return NULL;
    sgm_recording_options options = {.struct_size = sizeof options, .batch = 1, .dtype = dtype};
    sgm_shape x = sgm_shape_of(rows, shape->dims[0]), y = sgm_shape_of(rows, shape->dims[1]);
    sgm_graph_add_output(graph, "merged",
                         sgm__adapters_record(trainer->learner.network, graph, &options, parameter,
                                              sgm_input_value(graph, "x", dtype, &x),
                                              sgm_input_value(graph, "y", dtype, &y)));
    sgm_program *program =
        sgm_graph_status(graph) == SGM_OK ? sgm_session_prepare(trainer->learner.session, graph) : NULL;
    sgm_graph_free(graph);
    return program;
}

static sgm_status merge_parameter(sgm_trainer *trainer, const sgm_parameter *parameter)
{
    sgm_session *session = trainer->learner.session;
    const int64_t inputs = parameter->type.shape.dims[0];
    const char *name = parameter->quantizes != NULL ? parameter->quantizes : parameter->name;
    sgm_tensor *values = parameter->quantizes != NULL ? sgm__trainer_get_matrix(trainer, name)
                                                      : sgm_session_get(session, name);
    sgm_program *program = NULL;
    sgm_status status = values != NULL ? SGM_OK : sgm__last_failure();
    for (int64_t first = 0, made = 0; first < inputs && status == SGM_OK; first += made) {
        int64_t rows = inputs - first < ROWS ? inputs - first : ROWS;
        program = rows == made ? program : program_of(trainer, name, values, rows);
        made = rows;
        status = program != NULL ? merge_rows(session, program, values, first, rows) : sgm__last_failure();
    }
    if (status == SGM_OK)
        status = sgm_session_set(session, name, values);
    sgm_tensor_free(values);
    return status;
}

/* Whether a state is a parameter of adapters, or an optimiser's slot or the average of one; or codes or
 * scales, in whose place their matrix is. */
static bool is_of_adapters(const sgm_recording *recording, const char *state)
{
    size_t length = strlen(state);
    for (size_t i = 0; i < recording->parameter_count; i++) {
        const char *name = recording->parameters[i].name;
        size_t own = strlen(name);
        bool goes = recording->parameters[i].adapts != NULL || recording->parameters[i].quantizes != NULL;
        if (goes && own <= length && strcmp(state + length - own, name) == 0 &&
            (own == length || state[length - own - 1] == '.'))
            return true;
    }
    return false;
}

/* Gives the trainer a session with all states but those of adapters. */
static sgm_status move_states(sgm_trainer *trainer)
{
    const sgm__strategy *strategy = trainer->sharing.strategy;
    sgm_session *old = trainer->learner.session, *session = sgm_session_create(trainer->settings.handler);
    sgm_status status = session != NULL ? SGM_OK : sgm__last_failure();
    const char *name;
    for (size_t i = 0; status == SGM_OK && (name = sgm_session_state_at(old, i)) != NULL; i++) {
        if (is_of_adapters(&trainer->learner.recording, name))
            continue;
        sgm_tensor *value = sgm_session_get(old, name);
        status = value != NULL ? sgm_session_set(session, name, value) : sgm__last_failure();
        sgm_tensor_free(value);
    }
    if (status == SGM_OK && strategy != NULL)
        status = strategy->new_session(trainer);
    if (status == SGM_OK)
        trainer->learner.session = session;
    sgm_session_free(status == SGM_OK ? old : session);
    return status;
}

static sgm_status merge(sgm_trainer *trainer)
{
    if (sgm_network_adapters(trainer->learner.network) == 0)
        return sgm_fail(SGM_ERROR_STATE, "its network has no adapters to merge");
    SGM_TRY(sgm__trainer_define_states(trainer));
    SGM_TRY(sgm__trainer_end_network(trainer));
    const sgm_recording *recording = &trainer->learner.recording;
    for (size_t i = 0; i < recording->parameter_count; i++)
        if (recording->parameters[i].adapted)
            SGM_TRY(merge_parameter(trainer, &recording->parameters[i]));
    SGM_TRY(move_states(trainer));
    sgm_network_drop_adapters(trainer->learner.network);
    return sgm__trainer_begin_network(trainer);
}

sgm_status sgm_trainer_merge(sgm_trainer *trainer)
{
    SGM_TRY(sgm__trainer_open(trainer));
    return sgm__trainer_close(trainer, merge(trainer));
}
