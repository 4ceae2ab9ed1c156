/* Time of every operation on every handler: build/release/bench/ops [part of a name]
 * Microseconds a run, at the cases' own shapes; the minimum of several rounds, for neighbours only ever add.
 */
#include "../tests/ops/op_program.h"

#include <stdio.h>

#define MINIMUM_ELEMENTS 1000 /* of the first operand: smaller cases say more about overhead */
#define ROUNDS 5
#define ROUND_SECONDS 0.02
#define MAX_HANDLERS 8

/* Seconds of one run; below 0 on failure. */
static double time_runs(sgm_session *session, sgm_program *program)
{
    double best = -1;
    for (int round = 0; round < ROUNDS; round++) {
        double start = sgm__now(), seconds;
        int runs = 0;
        do {
            if (sgm_session_run(session, program) != SGM_OK)
                return -1;
            runs++;
            seconds = sgm__now() - start;
        } while (seconds < ROUND_SECONDS);
        if (best < 0 || seconds / runs < best)
            best = seconds / runs;
    }
    return best;
}

static double time_case(sgm_handler *handler, const op_case *c)
{
    sgm__random random = sgm__random_make(1, 2);
    sgm_graph *graph = sgm_graph_create();
    sgm_session *session = sgm_session_create(handler);
    sgm_value inputs[OP_MAX_INPUTS] = {0};
    op_data data[OP_MAX_INPUTS] = {0};
    double seconds = -1;
    for (int32_t i = 0; i < c->input_count && i < OP_MAX_INPUTS; i++) {
        data[i] = op_data_create(&c->inputs[i], &c->inputs[i].shape, SGM_FLOAT32, &random);
        inputs[i] = sgm_input_value(graph, op_names[i], data[i].dtype, &data[i].shape);
    }
    sgm_graph_add_output(graph, "y", c->record(graph, inputs, SGM_FLOAT32));
    sgm_program *program = sgm_session_prepare(session, graph);
    bool fed = program != NULL;
    for (int32_t i = 0; i < c->input_count && i < OP_MAX_INPUTS; i++) {
        fed = fed && op_feed(session, program, op_names[i], &data[i]) == SGM_OK;
        free(data[i].values);
    }
    if (fed)
        seconds = time_runs(session, program);
    sgm_session_free(session);
    sgm_graph_free(graph);
    return seconds;
}

static void print_case(sgm_handler *const *handlers, int count, const op_case *c)
{
    char shapes[160] = "", text[64];
    for (int32_t i = 0; i < c->input_count && i < OP_MAX_INPUTS; i++) {
        size_t used = strlen(shapes);
        snprintf(shapes + used, sizeof shapes - used, "%s%s", i > 0 ? " " : "",
                 sgm_shape_text(&c->inputs[i].shape, text, sizeof text));
    }
    printf("%-24s %-34s", c->name, shapes);
    for (int h = 0; h < count; h++) {
        double seconds = time_case(handlers[h], c);
        if (seconds >= 0)
            printf(" %11.1f", seconds * 1e6);
        else
            printf(" %11s", "failed");
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    sgm_handler *handlers[MAX_HANDLERS];
    int count = 0;
    printf("%-24s %-34s", "microseconds", "");
    for (size_t i = 0; sgm_handler_name_at(i) != NULL && count < MAX_HANDLERS; i++) {
        const char *name = sgm_handler_name_at(i);
        sgm_handler *handler = strncmp(name, "debug", 5) != 0 ? sgm_handler_create_with(name, NULL) : NULL;
        if (handler == NULL)
            continue;
        handlers[count++] = handler;
        printf(" %11s", name);
    }
    printf("\n");
    for (int32_t i = 0; i < OP_CASES_COUNT; i++)
        if (strstr(op_cases[i].name, argc > 1 ? argv[1] : "") != NULL &&
            sgm_shape_elements(&op_cases[i].inputs[0].shape) >= MINIMUM_ELEMENTS)
            print_case(handlers, count, &op_cases[i]);
    for (int h = 0; h < count; h++)
        sgm_handler_free(handlers[h]);
    return 0;
}
