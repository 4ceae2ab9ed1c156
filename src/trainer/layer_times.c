#include "trainer/layer_times.h"
#include "trainer/trainer.h"

#include <math.h>

#define OPTIMISER_LABEL "optimiser"

const sgm__layer_times *sgm__layer_times_of(const sgm_trainer *trainer)
{
    return trainer->times;
}

void sgm__layer_times_free(sgm__layer_times *times)
{
    if (times == NULL)
        return;
    sgm__free(times->layers);
    sgm__free(times->measured);
    sgm__free(times->works);
    sgm__free(times->forward);
    sgm__free(times);
}

/* Another network begins anew. */
static sgm_status fit_network(sgm__layer_times *times, const sgm_network *network)
{
    size_t count = sgm_network_layers(network);
    if (times->layers != NULL && times->count == count)
        return SGM_OK;
    sgm__layer_time *layers = sgm__calloc(count + 1, sizeof *layers);
    if (layers == NULL)
        return SGM_ERROR_MEMORY;
    sgm__free(times->layers);
    times->layers = layers;
    times->count = count;
    times->steps = times->seconds = 0;
    return SGM_OK;
}

sgm_status sgm__layer_times_want(sgm_trainer *trainer, int32_t steps)
{
    if (trainer->network == NULL)
        return sgm_fail(SGM_ERROR_STATE, "trainer '%s' has no network yet", trainer->name);
    if (trainer->times == NULL)
        trainer->times = sgm__calloc(1, sizeof *trainer->times);
    sgm__layer_times *times = trainer->times;
    if (times == NULL)
        return SGM_ERROR_MEMORY;
    SGM_TRY(fit_network(times, trainer->network));
    if (times->wanted > 0)
        return SGM_OK;
    times->wanted = steps;
    times->steps /= 2;
    times->seconds /= 2;
    for (size_t i = 0; i <= times->count; i++)
        for (int k = 0; k < SGM__PHASE_COUNT; k++)
            times->layers[i].seconds[k] /= 2;
    return SGM_OK;
}

/* --- whose an instruction is --- */

static bool is_within(const char *label, const char *name)
{
    size_t length = strlen(name);
    return strncmp(label, name, length) == 0 && (label[length] == '.' || label[length] == '\0');
}

static const char *without_optimiser(const char *label)
{
    if (!is_within(label, OPTIMISER_LABEL))
        return label;
    label += strlen(OPTIMISER_LABEL);
    return *label == '.' ? label + 1 : label;
}

/* The number of layers for none. */
static size_t layer_of(const sgm_network *network, const char *label)
{
    size_t count = sgm_network_layers(network);
    const char *rest = without_optimiser(label);
    for (size_t i = 0; i < count; i++)
        if (is_within(rest, sgm_network_layer_name(network, i)))
            return i;
    return count;
}

/* Nodes are in order of execution, so what an output is made from comes before it. */
static void find_forward(const sgm__plan *plan, bool *forward)
{
    memset(forward, false, (size_t)plan->node_count * sizeof *forward);
    for (int32_t i = 0; i < plan->output_count; i++)
        forward[plan->outputs[i].node] = true;
    for (int32_t i = plan->node_count; i-- > 0;)
        for (int32_t k = 0; forward[i] && k < plan->nodes[i].input_count; k++)
            forward[plan->operands[plan->nodes[i].first_input + k]] = true;
}

static double elements_of(const sgm__plan *plan, int32_t node)
{
    return (double)sgm_shape_elements(&plan->nodes[node].type.shape);
}

/* Of m x k and k x n it is m n k: the root of the product of all three sizes. */
static double work_of(const sgm__plan *plan, int32_t index)
{
    const sgm__node *node = &plan->nodes[index];
    double elements = elements_of(plan, index);
    if ((node->op->flags & SGM_OP_ELEMENTWISE) != 0 || node->input_count < 2)
        return elements;
    const int32_t *operands = plan->operands + node->first_input;
    return sqrt(elements_of(plan, operands[0]) * elements_of(plan, operands[1]) * elements);
}

/* --- dividing --- */

/* The step whose time is that of step `index`. */
static int32_t pass_of(const sgm__layer_times *times, int32_t index)
{
    return times->measured[index].with >= 0 ? times->measured[index].with : index;
}

static double add_works(sgm__layer_times *times, const sgm__plan *plan)
{
    double seconds = 0;
    for (int32_t i = 0; i < plan->step_count; i++) {
        times->works[i] = 0;
        seconds += times->measured[i].seconds;
    }
    for (int32_t i = 0; i < plan->step_count; i++)
        for (int32_t k = 0; k < plan->steps[i].count; k++)
            times->works[pass_of(times, i)] += work_of(plan, plan->order[plan->steps[i].first + k]);
    return seconds;
}

static void add_node(sgm__layer_times *times, const sgm_network *network, const sgm__plan *plan, int32_t node,
                     double seconds)
{
    const char *label = sgm__plan_string(plan, plan->nodes[node].label);
    sgm__layer_phase phase = is_within(label, OPTIMISER_LABEL) ? SGM__UPDATING
                             : times->forward[node]            ? SGM__FORWARD
                                                               : SGM__BACKWARD;
    times->layers[layer_of(network, label)].seconds[phase] += seconds;
}

/* A pass without work, as of empty tensors, is no layer's. */
static void divide(sgm__layer_times *times, const sgm_network *network, const sgm__plan *plan)
{
    times->seconds += add_works(times, plan);
    times->steps++;
    find_forward(plan, times->forward);
    for (int32_t i = 0; i < plan->step_count; i++) {
        int32_t pass = pass_of(times, i);
        double seconds = times->measured[pass].seconds, work = times->works[pass];
        if (!(work > 0)) {
            times->layers[times->count].seconds[SGM__FORWARD] += times->measured[i].seconds;
            continue;
        }
        for (int32_t k = 0; k < plan->steps[i].count && seconds > 0; k++) {
            int32_t node = plan->order[plan->steps[i].first + k];
            add_node(times, network, plan, node, seconds * (work_of(plan, node) / work));
        }
    }
}

static sgm_status make_room(sgm__layer_times *times, const sgm__plan *plan)
{
    size_t steps = (size_t)plan->step_count + 1, nodes = (size_t)plan->node_count + 1;
    SGM_TRY(sgm__reserve(&times->measured, &times->measured_capacity, steps, sizeof *times->measured));
    SGM_TRY(sgm__reserve(&times->works, &times->works_capacity, steps, sizeof *times->works));
    return sgm__reserve(&times->forward, &times->forward_capacity, nodes, sizeof *times->forward);
}

sgm_status sgm__layer_times_run(sgm_trainer *trainer, sgm_program *program)
{
    sgm__layer_times *times = trainer->times;
    if (times == NULL || times->wanted == 0)
        return sgm_session_run(trainer->session, program);
    times->wanted--;
    SGM_TRY(fit_network(times, trainer->network));
    SGM_TRY(make_room(times, program->plan));
    SGM_TRY(sgm__session_run_timed(trainer->session, program, times->measured));
    divide(times, trainer->network, program->plan);
    return SGM_OK;
}
