/* Reading with a generator: a step of each sequence, or a piece of several where nothing but keys and values
 * is kept of the steps before.
 *
 * A piece that is longer than what is to be read goes on with zeros. What they leave at their places is not
 * seen, as a step sees no later place, and is written over by the steps that come there. A piece that would
 * reach behind the last place begins so much earlier, and reads again what it knows: the same tokens at the
 * same places give the same keys and values. */
#include "infer/generator.h"

/* A piece is read for so many tokens or more. */
#define LEAST 4

/* Goes back to place 0. */
static sgm_status go_back(sgm_generator *g)
{
    g->count = 0;
    for (size_t i = 0; i < g->one.recording.parameter_count; i++) {
        const sgm_parameter *parameter = &g->one.recording.parameters[i];
        if (!g->kept[i])
            continue;
        sgm_tensor *zeros = sgm_tensor_create(parameter->type.dtype, &parameter->type.shape);
        sgm_status status =
            zeros != NULL ? sgm_session_set(g->session, parameter->name, zeros) : SGM_ERROR_MEMORY;
        sgm_tensor_free(zeros);
        SGM_TRY(status);
    }
    return sgm__generator_set_number(g, "step.place", 0);
}

sgm_status sgm_generator_reset(sgm_generator *g)
{
    if (g == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_generator_reset wants a generator, got NULL");
    memset(g->seen, 0, (size_t)(g->sequences * g->vocabulary) * sizeof *g->seen);
    return go_back(g);
}

/* Puts a token into the tensor that is fed. */
static void put(const sgm_generator *g, const sgm__reader *reader, int64_t sequence, int64_t step,
                int64_t token)
{
    float *values = sgm_tensor_data(reader->fed);
    int64_t at = sequence * reader->steps + step;
    if (!g->one_hot) {
        values[at] = (float)token;
        return;
    }
    memset(values + at * g->vocabulary, 0, (size_t)g->vocabulary * sizeof *values);
    values[at * g->vocabulary + token] = 1;
}

static sgm_status run(const sgm_generator *g, const sgm__reader *reader)
{
    SGM_TRY(sgm_session_feed(g->session, reader->program, reader->recording.inputs[0].name, reader->fed));
    return sgm_session_run(g->session, reader->program);
}

/* Reads step `index` of the tokens of each sequence. */
static sgm_status read_step(sgm_generator *g, const int64_t *const *tokens, int64_t index)
{
    for (int64_t s = 0; s < g->sequences; s++) {
        put(g, &g->one, s, 0, tokens[s][index]);
        g->seen[s * g->vocabulary + tokens[s][index]] = true;
        if (g->read != NULL)
            g->read[s * g->places + g->count] = tokens[s][index];
    }
    SGM_TRY(run(g, &g->one));
    g->count++;
    return SGM_OK;
}

/* Reads `count` tokens of each sequence from step `index` on, as one piece. */
static sgm_status read_piece(sgm_generator *g, const int64_t *const *tokens, int64_t index, int64_t count)
{
    int64_t steps = g->piece.steps, end = g->count + count;
    int64_t first = g->count + steps > g->places ? g->places - steps : g->count;
    for (int64_t s = 0; s < g->sequences; s++) {
        int64_t *read = g->read + s * g->places;
        memmove(read + g->count, tokens[s] + index, (size_t)count * sizeof *read);
        for (int64_t i = g->count; i < end; i++)
            g->seen[s * g->vocabulary + read[i]] = true;
        for (int64_t i = 0; i < steps; i++)
            put(g, &g->piece, s, i, first + i < end ? read[first + i] : 0);
    }
    if (first != g->count)
        SGM_TRY(sgm__generator_set_number(g, "step.place", (double)first));
    SGM_TRY(run(g, &g->piece));
    g->count = end;
    return first + steps != end ? sgm__generator_set_number(g, "step.place", (double)end) : SGM_OK;
}

/* Reads at least one of `left` tokens, for which there are places; *done counts them. */
static sgm_status read_some(sgm_generator *g, const int64_t *const *tokens, int64_t left, int64_t *done)
{
    if (g->proceed != NULL && !g->proceed(g->proceed_user))
        return sgm_fail(SGM_ERROR_INTERRUPTED, "`proceed` has ended the generation");
    if (!g->pieces || left < LEAST) {
        SGM_TRY(read_step(g, tokens, (*done)++));
        return SGM_OK;
    }
    int64_t count = left < g->piece.steps ? left : g->piece.steps;
    SGM_TRY(read_piece(g, tokens, *done, count));
    *done += count;
    return SGM_OK;
}

/* A network with places for so many steps (learnt positions, or keys of attention) cannot read more. When all
 * places are taken, the newest half of the tokens is read again from place 0: the context stays at least half
 * as long, and reading again costs at most one step per token on average. Dropping the oldest place alone
 * would cost less, but keys of upper layers have seen what is dropped, and learnt positions would be those of
 * other places. */
static sgm_status make_room(sgm_generator *g)
{
    int64_t kept = g->places / 2;
    if (g->places == 0 || g->count < g->places)
        return SGM_OK;
    const int64_t **newest = sgm__calloc((size_t)g->sequences, sizeof *newest);
    if (newest == NULL)
        return SGM_ERROR_MEMORY;
    for (int64_t s = 0; s < g->sequences; s++)
        newest[s] = g->read + (s + 1) * g->places - kept;
    sgm_status status = go_back(g);
    for (int64_t done = 0; done < kept && status == SGM_OK;)
        status = read_some(g, newest, kept - done, &done);
    sgm__free(newest);
    return status;
}

/* --- other rows --- */

/* A program that takes, of each state that steps change, the rows of the input "rows". */
static sgm_status make_mover(sgm_generator *g)
{
    const sgm_shape line = sgm_shape_of(g->sequences);
    if (g->move != NULL)
        return SGM_OK;
    sgm_graph_free(g->mover);
    g->mover = sgm_graph_create();
    if (g->mover == NULL)
        return sgm__last_failure();
    sgm_value rows = sgm_input_value(g->mover, "rows", SGM_INT64, &line);
    for (size_t i = 0; i < g->one.recording.parameter_count; i++) {
        const sgm_parameter *p = &g->one.recording.parameters[i];
        if (!g->kept[i])
            continue;
        sgm_value state = sgm_state(g->mover, p->name, p->type.dtype, &p->type.shape);
        sgm_assign(g->mover, state, sgm_gather(g->mover, state, rows, 0));
    }
    g->move = sgm_session_prepare(g->session, g->mover);
    return g->move != NULL ? SGM_OK : sgm__last_failure();
}

/* Of `count` rows of `size` bytes; `old` has room for all. */
static void take(void *data, size_t size, const int64_t *rows, int64_t count, unsigned char *old)
{
    memcpy(old, data, (size_t)count * size);
    for (int64_t i = 0; i < count; i++)
        memcpy((unsigned char *)data + (size_t)i * size, old + (size_t)rows[i] * size, size);
}

/* The same of what the generator itself knows of each sequence. */
static sgm_status take_known(const sgm_generator *g, const int64_t *rows)
{
    size_t seen = (size_t)g->vocabulary * sizeof *g->seen, read = (size_t)g->places * sizeof *g->read;
    unsigned char *old = sgm__calloc((size_t)g->sequences, seen > read ? seen : read);
    if (old == NULL)
        return SGM_ERROR_MEMORY;
    take(g->seen, seen, rows, g->sequences, old);
    if (g->read != NULL)
        take(g->read, read, rows, g->sequences, old);
    sgm__free(old);
    return SGM_OK;
}

sgm_status sgm__generator_take_rows(sgm_generator *g, const int64_t *rows)
{
    const sgm_shape line = sgm_shape_of(g->sequences);
    bool same = true;
    for (int64_t s = 0; s < g->sequences; s++)
        same = same && rows[s] == s;
    if (same)
        return SGM_OK;
    SGM_TRY(make_mover(g));
    sgm_tensor *fed = sgm_tensor_create(SGM_INT64, &line);
    sgm_status status = fed != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    if (status == SGM_OK) {
        memcpy(sgm_tensor_data(fed), rows, (size_t)g->sequences * sizeof *rows);
        status = sgm_session_feed(g->session, g->move, "rows", fed);
    }
    if (status == SGM_OK)
        status = sgm_session_run(g->session, g->move);
    sgm_tensor_free(fed);
    return status == SGM_OK ? take_known(g, rows) : status;
}

/* --- what is read --- */

sgm_status sgm__generator_check(const sgm_generator *g, const int64_t *tokens, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= g->vocabulary)
            return sgm_fail(SGM_ERROR_ARGUMENT, "%lld is no token: there are %lld, numbered from 0",
                            (long long)tokens[i], (long long)g->vocabulary);
    return SGM_OK;
}

sgm_status sgm__generator_read_many(sgm_generator *g, const int64_t *const *tokens, int64_t count)
{
    for (int64_t done = 0; done < count;) {
        SGM_TRY(make_room(g));
        int64_t left = count - done, room = g->places - g->count;
        SGM_TRY(read_some(g, tokens, g->places > 0 && room < left ? room : left, &done));
    }
    return SGM_OK;
}

sgm_status sgm__generator_output(sgm_generator *g, const char *name)
{
    sgm_type type = sgm_program_output_type(g->one.program, name);
    sgm_tensor *output = sgm_tensor_create(type.dtype, &type.shape);
    sgm_status status =
        output != NULL ? sgm_session_read(g->session, g->one.program, name, output) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = sgm_tensor_read(output, g->probabilities, (size_t)(g->sequences * g->vocabulary));
    sgm_tensor_free(output);
    return status;
}

sgm_status sgm_generator_read(sgm_generator *g, int64_t token, const double **probabilities)
{
    SGM_TRY(sgm__generator_is_single(g, "sgm_generator_read"));
    SGM_TRY(sgm__generator_check(g, &token, 1));
    SGM_TRY(sgm__generator_read_many(g, &(const int64_t *){&token}, 1));
    if (probabilities == NULL)
        return SGM_OK;
    *probabilities = g->probabilities;
    return sgm__generator_output(g, SGM__PROBABILITIES);
}
