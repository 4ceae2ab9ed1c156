/* A plug-in for the command: a dataset, an operation, a layer, an optimiser, a metric, a hook, a monitor and
 * a panel of the monitor's page, as small as they can be. Build it with make, then: sigma train spirals.yaml.
 * What each table may say is in the manual, chapter 9, and in the headers. */
#include <math.h>
#include <sigma/sigma.h>
#include <stdio.h>
#include <stdlib.h>

#define POINTS 400
#define PI 3.14159265358979

/* --- data: the points of two spirals and which of them each is on, from a reader of our own --- */

typedef struct spirals {
    double turns; /* in radians, from the centre to the end */
    int64_t next;
    sgm_tensor *values; /* of the newest read */
} spirals;

static sgm_status spirals_read(void *self, int64_t count, sgm_examples *examples)
{
    spirals *reader = self;
    count = count < POINTS - reader->next ? count : POINTS - reader->next;
    sgm_shape shape = sgm_shape_of(count, 3);
    sgm_tensor_free(reader->values);
    reader->values = sgm_tensor_create(SGM_FLOAT32, &shape);
    if (reader->values == NULL)
        return sgm_last_status();
    float *value = sgm_tensor_data(reader->values);
    for (int64_t i = 0; i < count; i++, reader->next++, value += 3) {
        double distance = (double)(reader->next / 2 + 1) / (POINTS / 2.0);
        double angle = reader->turns * distance + PI * (double)(reader->next % 2);
        value[0] = (float)(distance * cos(angle));
        value[1] = (float)(distance * sin(angle));
        value[2] = (float)(reader->next % 2);
    }
    *examples = (sgm_examples){.count = count, .values = reader->values};
    return SGM_OK;
}

static sgm_status spirals_rewind(void *self)
{
    ((spirals *)self)->next = 0;
    return SGM_OK;
}

static void spirals_free(void *self)
{
    sgm_tensor_free(((spirals *)self)->values);
    free(self);
}

static const sgm_reader_type spirals_reader = {
    .name = "spirals", .read = spirals_read, .rewind = spirals_rewind, .free = spirals_free};

/* "spirals", or "spirals:4" with other turns. */
static sgm_dataset *spirals_open(const char *argument)
{
    double turns = argument != NULL ? atof(argument) : 6;
    if (!(turns > 0 && turns < 100)) {
        sgm_fail(SGM_ERROR_ARGUMENT, "spirals: expected turns above 0 and below 100, got '%s'", argument);
        return NULL;
    }
    spirals *self = calloc(1, sizeof *self);
    if (self == NULL)
        return NULL;
    self->turns = turns;
    sgm_reader *reader = sgm_reader_create(&spirals_reader, self, "two spirals");
    sgm_extractor *points = sgm_array_extractor(
        reader, .regions = {{.field = "inputs", .begin = sgm_shape_of(0), .end = sgm_shape_of(2)},
                            {.field = "targets", .begin = sgm_shape_of(2), .end = sgm_shape_of(3)}});
    return sgm_dataset_create("spirals", .extractor = sgm_one_hot(points, .field = "targets", .classes = 2));
}

static const sgm_dataset_type spirals_data = {
    .api = SGM_DATASET_API, .name = "spirals", .doc = "points of two spirals", .open = spirals_open};

/* --- an operation: an activation that is composed of others --- */

static sgm_value gaussian(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                          const sgm_attributes *attributes)
{
    (void)count, (void)attributes;
    return sgm_exp(graph, sgm_negate(graph, sgm_square(graph, inputs[0])));
}

static const sgm_op bell = {.api = SGM_OP_API,
                            .flags = SGM_OP_ELEMENTWISE | SGM_OP_ACTIVATION,
                            .name = "bell",
                            .doc = "exp(-x * x)",
                            .min_inputs = 1,
                            .max_inputs = 1,
                            .compose = gaussian};

/* --- a layer: each input times a number that is learnt --- */

static sgm_value gain_forward(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    sgm_shape shape = sgm_value_type(graph, inputs[0]).shape;
    if (shape.rank != 2)
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE, "gain wants (batch, features): put flatten before it");
    sgm_shape size = sgm_shape_of(shape.dims[1]);
    sgm_value factors = sgm_layer_parameter(call, graph, "factors", &size, 0, 0, true, "constant(1)");
    return sgm_multiply(graph, inputs[0], factors);
}

static const sgm_layer_type gain = {.api = SGM_LAYER_API,
                                    .name = "gain",
                                    .doc = "each input times a number that is learnt",
                                    .min_inputs = 1,
                                    .max_inputs = 1,
                                    .forward = gain_forward};

/* --- an optimiser: Signum, m = b1 m + (1 - b1) g, p = p - r sign(m) (Bernstein et al., 2018) --- */

static sgm_value signum_update(const sgm_update_call *call)
{
    sgm_graph *graph = call->graph;
    double share = call->options->beta1;
    sgm_value momentum = sgm_optimiser_slot(call, "momentum");
    sgm_value mean = sgm_add(graph, sgm_multiply(graph, momentum, sgm_number(graph, share)),
                             sgm_multiply(graph, call->gradient, sgm_number(graph, 1 - share)));
    sgm_assign(graph, momentum, mean);
    return sgm_subtract(graph, call->parameter,
                        sgm_multiply(graph, sgm_sign(graph, mean), call->learning_rate));
}

static const sgm_optimiser_type signum = {.api = SGM_OPTIMISER_API,
                                          .name = "signum",
                                          .doc = "the sign of a moving average",
                                          .defaults = {.learning_rate = 1e-3, .beta1 = 0.9},
                                          .update = signum_update};

/* --- a metric: the Brier score, the mean over examples of the squared distance to the target --- */

static sgm_status brier_compute(const sgm_tensor *outputs, const sgm_tensor *targets, double *value)
{
    const sgm_shape *shape = sgm_tensor_shape(outputs);
    size_t count = (size_t)sgm_shape_elements(shape);
    if (sgm_shape_elements(sgm_tensor_shape(targets)) != (int64_t)count)
        return sgm_fail(SGM_ERROR_SHAPE, "expected targets of the shape of the outputs");
    double *numbers = calloc(2 * count, sizeof *numbers), sum = 0;
    if (numbers == NULL)
        return sgm_fail(SGM_ERROR_MEMORY, "no memory for %zu predictions", count);
    sgm_status status = sgm_tensor_read(outputs, numbers, count);
    if (status == SGM_OK)
        status = sgm_tensor_read(targets, numbers + count, count);
    for (size_t i = 0; i < count; i++)
        sum += (numbers[i] - numbers[count + i]) * (numbers[i] - numbers[count + i]);
    *value = sum / (double)shape->dims[0];
    free(numbers);
    return status;
}

static const sgm_metric_type brier = {
    .api = SGM_METRIC_API,
    .name = "brier",
    .doc = "Brier score: mean squared distance of probabilities, as DATA.brier",
    .better = SGM_MINIMUM,
    .compute = brier_compute};

/* --- a hook: prints the loss times a factor --- */

static sgm_status print_loss(void *self, sgm_hook_call *call)
{
    double loss;
    sgm_status status = sgm_hook_number(call, "training.loss", &loss);
    if (status == SGM_OK)
        printf("epoch %lld: scaled loss %.3f\n", (long long)call->epoch, loss * *(double *)self);
    return status;
}

static const sgm_hook_type scaled_loss_type = {
    .api = SGM_HOOK_API, .name = "scaled_loss", .invoke = print_loss, .free = free};

static sgm_hook *scaled_loss_create(const sgm_hook_arguments *arguments, sgm_time_step when)
{
    static const char *const reads[] = {"training.loss", NULL};
    double *factor = malloc(sizeof *factor);
    if (factor == NULL)
        return NULL;
    *factor = sgm_hook_arguments_number(arguments, "factor");
    return sgm_hook_create(&scaled_loss_type, factor, .when = when, .reads = reads);
}

static const sgm_option scaled_loss_arguments[] = {
    {.name = "factor", .kind = SGM_KIND_NUMBER, .default_value = 100, .doc = "of the loss"}};
static const sgm_hook_text_type scaled_loss = {.api = SGM_HOOK_TEXT_API,
                                               .name = "scaled_loss",
                                               .doc = "prints the loss times a factor",
                                               .arguments = scaled_loss_arguments,
                                               .argument_count = 1,
                                               .create = scaled_loss_create};

/* --- a panel of the monitor's page: which spiral the network sees where, while it learns --- */

static const sgm_panel_type boundary = {
    .api = SGM_PANEL_API,
    .name = "boundary",
    .doc = "which class the network sees where, of two inputs from -1 to 1",
    .module =
        "import { post } from '../../api.js';\n"
        "import { h } from '../../elements.js';\n"
        "import { definePanel } from '../../panel.js';\n"
        "import { paint } from '../../pixels.js';\n"
        "\n"
        "const side = 31, at = (i) => 2 * i / (side - 1) - 1;\n"
        "const inputs = Array.from({ length: side * side }, /* 1,000 at most in a request */\n"
        "    (_, i) => [at(i % side), -at(Math.floor(i / side))]);\n"
        "\n"
        "definePanel('boundary', {\n"
        "    title: 'Boundary', icon: 'eye', tab: 'play', order: 0, size: { w: 6, h: 11 },\n"
        "    create(panel) {\n"
        "        const canvas = h('canvas', { role: 'img', 'aria-label': 'Share of the second spiral' });\n"
        "        Object.assign(canvas.style, { width: '100%', height: '100%', objectFit: 'contain' });\n"
        "        panel.body.append(canvas);\n"
        "        const show = () => panel.renew(async () => {\n"
        "            const answer = await post('predict', { trainer: panel.present(), inputs });\n"
        "            paint(canvas, answer.ranked.map((ranks) => ranks.find((rank) => rank.class === "
        "1).share),\n"
        "                { rows: side, columns: side }, 0, 1);\n"
        "            panel.setNote(`iteration ${answer.iteration}`);\n"
        "        });\n"
        "        panel.on('trainer', show);\n"
        "        panel.every(1000, show);\n"
        "        show();\n"
        "    },\n"
        "});\n"};

/* --- a monitor: a line with the loss of each epoch into a file --- */

static void *losses_open(const char *path)
{
    FILE *file = path[0] != '\0' ? fopen(path, "w") : NULL;
    if (file == NULL)
        sgm_fail(SGM_ERROR_FILE, "cannot write '%s': expected losses:FILE", path);
    return file;
}

static bool losses_tell(void *file, const sgm_training_progress *progress)
{
    if (progress->kind == SGM_PROGRESS_EPOCH)
        fprintf(file, "%s %lld %.4f\n", progress->trainer, (long long)progress->epoch,
                progress->training.loss);
    return true; /* false would end the run */
}

static void losses_free(void *file)
{
    fclose(file);
}

static const sgm_monitor_type losses = {.api = SGM_MONITOR_API,
                                        .name = "losses",
                                        .doc = "a line with the loss of each epoch into a file",
                                        .open = losses_open,
                                        .progress = losses_tell,
                                        .free = losses_free};

/* --- the plug-in --- */

static sgm_status init(void)
{
    sgm_status status = sgm_register_dataset(&spirals_data);
    if (status == SGM_OK)
        status = sgm_register_op(&bell);
    if (status == SGM_OK)
        status = sgm_register_layer(&gain);
    if (status == SGM_OK)
        status = sgm_register_optimiser(&signum);
    if (status == SGM_OK)
        status = sgm_register_metric(&brier);
    if (status == SGM_OK)
        status = sgm_register_hook(&scaled_loss);
    if (status == SGM_OK)
        status = sgm_register_monitor(&losses);
    return status == SGM_OK ? sgm_register_panel(&boundary) : status;
}

SGM_API const sgm_plugin sigma_plugin = {
    .api = SGM_PLUGIN_API, .name = "spirals", .doc = "two spirals and what learns them", .init = init};
