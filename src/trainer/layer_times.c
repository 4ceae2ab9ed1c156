/* Measures how long a training step spends in each layer, for the page's graph of the network.
 *
 * A few steps are timed step by step of their plan when somebody asks (sgm__layer_times_want); all others
 * run untimed. A step of the plan may hold instructions of several layers, fused into one loop: its time is
 * divided among them by an estimate of their work. Whose an instruction is tells the label that recording
 * gave it ("2-dense", "optimiser.2-dense"); forward is what the outputs need, everything else is backward. */
#include "trainer/layer_times.h"
#include "trainer/trainer_struct.h"

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

/* Times are of the layers of one network. */
void sgm__layer_times_forget(sgm_trainer *trainer)
{
    sgm__layer_times_free(trainer->times);
    trainer->times = NULL;
}

static sgm__layer_times *create_times(const sgm_network *network)
{
    sgm__layer_times *times = sgm__calloc(1, sizeof *times);
    if (times == NULL)
        return NULL;
    times->count = sgm_network_layers(network);
    times->layers = sgm__calloc(times->count + 1, sizeof *times->layers);
    if (times->layers != NULL)
        return times;
    sgm__free(times);
    return NULL;
}

/* Older measurements count half each time new ones are wanted, so that the figures follow a network whose
 * speed changes. */
sgm_status sgm__layer_times_want(sgm_trainer *trainer, int32_t steps)
{
    if (trainer->learner.network == NULL)
        return sgm_fail(SGM_ERROR_STATE, "trainer '%s' has no network yet", trainer->name);
    if (trainer->times == NULL)
        trainer->times = create_times(trainer->learner.network);
    sgm__layer_times *times = trainer->times;
    if (times == NULL)
        return SGM_ERROR_MEMORY;
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

/* Whether a label is a layer's own or that of something inside it: "2-dense" or "2-dense.weights". */
static bool is_within(const char *label, const char *name)
{
    size_t length = strlen(name);
    return strncmp(label, name, length) == 0 && (label[length] == '.' || label[length] == '\0');
}

/* The label behind "optimiser.", which tells whose update an instruction is. */
static const char *without_optimiser(const char *label)
{
    if (!is_within(label, OPTIMISER_LABEL))
        return label;
    label += strlen(OPTIMISER_LABEL);
    return *label == '.' ? label + 1 : label;
}

/* The index of the layer that an instruction with this label belongs to; the number of layers for
 * instructions of no layer. */
static size_t layer_of(const sgm_network *network, const char *label)
{
    size_t count = sgm_network_layers(network);
    const char *rest = without_optimiser(label);
    for (size_t i = 0; i < count; i++)
        if (is_within(rest, sgm_network_layer_name(network, i)))
            return i;
    return count;
}

/* Marks the nodes that outputs are made from, backwards from the outputs. Nodes are in order of execution,
 * so one walk from the end to the beginning sees every user before its operands. */
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

/* An estimate of a node's work, in operations up to a constant: its elements, or, for what combines two
 * operands, the root of the product of all three sizes, which is m n k for a matrix product of (m, k) and
 * (k, n). */
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

/* The step of the plan in whose time this step's time is: the step itself, or the one that did its work
 * together with its own. */
static int32_t pass_of(const sgm__layer_times *times, int32_t index)
{
    return times->measured[index].with >= 0 ? times->measured[index].with : index;
}

/* Adds up the work of each measured pass; returns the seconds of all. */
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

/* Adds a node's share of the time to its layer and phase. */
static void add_node(sgm__layer_times *times, const sgm_network *network, const sgm__plan *plan, int32_t node,
                     double seconds)
{
    const char *label = sgm__plan_string(plan, plan->nodes[node].label);
    sgm__layer_phase phase = is_within(label, OPTIMISER_LABEL) ? SGM__UPDATING
                             : times->forward[node]            ? SGM__FORWARD
                                                               : SGM__BACKWARD;
    times->layers[layer_of(network, label)].seconds[phase] += seconds;
}

/* Divides each pass's time among its nodes by their work. A pass without work, as of empty tensors, is no
 * layer's. */
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

sgm_status sgm__trainer_run_program(sgm_trainer *trainer, sgm_program *program)
{
    sgm__layer_times *times = trainer->times;
    if (times == NULL || times->wanted == 0)
        return sgm_session_run(trainer->learner.session, program);
    times->wanted--;
    SGM_TRY(make_room(times, program->plan));
    SGM_TRY(sgm__session_run_timed(trainer->learner.session, program, times->measured));
    divide(times, trainer->learner.network, program->plan);
    return SGM_OK;
}
