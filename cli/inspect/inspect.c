/* `sigma inspect`: layers, parameters, memory, graph and program of a network.
 *
 * Takes a checkpoint, the folder of a run, or a configuration that has not been trained. The trainer is
 * made and prepared but not run; the library reports on the program of a training step
 * (sgm_trainer_memory, sgm_trainer_graph_text, sgm_trainer_program_text). `sigma info PATH` (info.c) uses
 * inspect_threads. A checkpoint whose network has layers that only another program registers can still be
 * shown as tensors. */
#include "inspect/inspect.h"

#include "base/name_index.h"

#include <stdio.h>

static const char usage_text[] =
    "Usage: sigma inspect CHECKPOINT|FOLDER|MODEL.onnx [--graph] [--program] [--batch N]\n"
    "       sigma inspect FILE.yaml [KEY=VALUE ...] [--graph] [--program] [--batch N]\n\n"
    "Shows layers and parameters of a network, and what a training step takes. KEY=VALUE overrides the file, "
    "as\n"
    "'sigma train' has it: memory=0.5, precision=bfloat16.\n"
    "Of an ONNX model: its inputs and outputs, and the graph that it becomes for N examples (default 1).\n\n"
    "  --graph    also the training step as it was recorded: forward, gradients, update\n"
    "  --program  also the training step as it was compiled, with the place of each value\n"
    "  --batch N  examples of a minibatch (default: the configuration's)\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.\n";

/* Adds the elements of each parameter, "LAYER.NAME", to its layer's entry in `elements` (one for each
 * layer). An index of names keeps this linear for networks with many layers. */
static sgm_status count_elements(const sgm_network *network, const sgm_parameter *parameters, size_t count,
                                 int64_t *elements)
{
    sgm__name_index layers = {0};
    uintptr_t layer;
    SGM_TRY(sgm__name_index_reserve(&layers, sgm_network_layers(network)));
    for (size_t i = 0; i < sgm_network_layers(network); i++)
        sgm__name_index_add(&layers, sgm_network_layer_name(network, i), i);
    for (size_t i = 0; i < count; i++) {
        const char *name = parameters[i].name;
        char prefix[256];
        snprintf(prefix, sizeof prefix, "%.*s", (int)strcspn(name, "."), name);
        if (sgm__name_index_find(&layers, prefix, &layer))
            elements[layer] += sgm_shape_elements(&parameters[i].type.shape);
    }
    sgm__name_index_free(&layers);
    return SGM_OK;
}

/* Layers without parameters are named without a number. */
static void print_layers(const sgm_network *network, const int64_t *elements)
{
    char number[64];
    printf("layers\n");
    for (size_t i = 0; i < sgm_network_layers(network); i++) {
        const char *name = sgm_network_layer_name(network, i);
        if (elements[i] > 0)
            printf("  %-32s %14s parameters\n", name, sgm_count_text(elements[i], number, sizeof number));
        else
            printf("  %s\n", name);
    }
}

/* Parses the notation again: the trainer does not hand out its network. */
static sgm_status inspect_layers(const char *notation, const sgm_parameter *parameters, size_t count)
{
    sgm_network *network = sgm_network_parse(notation);
    if (network == NULL)
        return sgm_last_status();
    int64_t *elements = sgm__calloc(sgm_network_layers(network) + 1, sizeof *elements);
    sgm_status status =
        elements != NULL ? count_elements(network, parameters, count, elements) : sgm_last_status();
    if (status == SGM_OK)
        print_layers(network, elements);
    sgm__free(elements);
    sgm_network_free(network);
    return status;
}

/* A line for each parameter (elements, type, shape, whether it is trained), and the sum of all. */
static void print_parameters(const sgm_parameter *parameters, size_t count)
{
    int64_t elements = 0, bytes = 0, trained = 0;
    char number[64], shape[128], size[64];
    printf("parameters\n");
    for (size_t i = 0; i < count; i++) {
        const sgm_parameter *parameter = &parameters[i];
        int64_t own = sgm_shape_elements(&parameter->type.shape);
        elements += own;
        trained += parameter->trainable && !parameter->frozen ? own : 0;
        bytes += own * (int64_t)sgm_dtype_size(parameter->type.dtype);
        printf("  %-32s %14s  %-8s %s%s\n", parameter->name, sgm_count_text(own, number, sizeof number),
               sgm_dtype_name(parameter->type.dtype),
               sgm_shape_text(&parameter->type.shape, shape, sizeof shape),
               parameter->trainable && !parameter->frozen ? "" : ", not trained");
    }
    printf("  %-32s %14s  %s", "all", sgm_count_text(elements, number, sizeof number),
           sgm_bytes_text((double)bytes, size, sizeof size));
    if (trained < elements)
        printf(", %s of them trained", sgm_count_text(trained, number, sizeof number));
    printf("\n");
}

/* Where the memory of a training step, or of a prediction, goes. "activations" is what values would take with
 * a place each, "peak" what they take as the plan places them (src/handlers/plan), where values that are not
 * alive at the same time share memory. Then come the instructions and the fused steps that they became, and
 * what a budget saves. */
static void print_memory(const sgm_program_memory *memory, int64_t batch, bool trains)
{
    const struct {
        const char *name, *doc;
        int64_t bytes;
    } rows[] = {
        {"state", "parameters and the optimiser state", memory->state},
        {"constants", "values that never change", memory->constants},
        {"inputs", "a minibatch of data", memory->inputs},
        {"activations", "if each value had a place of its own", memory->activations},
        {"peak", "of activations, as they are placed", memory->arena},
        {"packed", "constants in the order in which kernels read them", memory->packed},
    };
    const size_t count = sizeof rows / sizeof *rows - (memory->packed == 0);
    char number[64];
    printf("memory of a %s of %s examples\n", trains ? "training step" : "prediction",
           sgm_count_text(batch, number, sizeof number));
    for (size_t i = 0; i < count; i++)
        printf("  %-12s %12s  %s\n", rows[i].name,
               sgm_bytes_text((double)rows[i].bytes, number, sizeof number), rows[i].doc);
    printf("  %d instructions in %d steps, %d of them fused\n", memory->instructions, memory->steps,
           memory->fused);
    if (memory->again > 0)
        printf("  %d of them are computed again; else the peak is %s\n", memory->again,
               sgm_bytes_text((double)memory->unsaved, number, sizeof number));
}

/* "about 12.3 us"; a step of a tiny network takes less than the text of a duration can show. */
static const char *about_text(double seconds, char *buffer, size_t size)
{
    char duration[48];
    if (seconds < 0.1e-6)
        snprintf(buffer, size, "under 0.1 us");
    else
        snprintf(buffer, size, "about %s", sgm_duration_text(seconds, duration, sizeof duration));
    return buffer;
}

/* How many threads a training step is divided into, with the estimated time of a step on one thread and on
 * that many. The estimate is the library's (src/handlers/cpu/run/cost.c), from shapes alone: nothing is
 * timed here. */
static void print_threads(const sgm_program_memory *memory)
{
    char one[64], all[64];
    sgm_duration_text(memory->seconds_of_one, one, sizeof one);
    about_text(memory->seconds_of_threads, all, sizeof all);
    if (memory->threads == 1)
        printf("  1 thread: %s a step, estimated from its shapes%s\n", all,
               sgm__processors() > 1 ? "; more threads would not be faster" : "");
    else if (memory->threads > 1)
        printf("  %d threads: %s a step, estimated from its shapes; %s with one\n", memory->threads, all,
               one);
}

/* Prints and frees the text. NULL: making it failed. */
static sgm_status print_text(const char *title, char *text)
{
    if (text == NULL)
        return sgm_last_status();
    printf("%s\n%s", title, text);
    sgm_string_free(text);
    return SGM_OK;
}

/* What to show. `threads`: only what print_threads shows, for `sigma info`. */
typedef struct inspect_options {
    bool graph, program, threads;
    int64_t batch;       /* -1: the configuration's */
    const char *command; /* the subcommand, for messages: inspect or info */
    /* KEY=VALUE, for a configuration alone. */
    const char *const *overrides;
    size_t override_count;
} inspect_options;

/* Prepares the trainer and prints what `w` asks for. Programs depend on the number of examples, hence
 * `batch`. */
static sgm_status show(sgm_env *env, sgm_trainer *trainer, const char *network, const config *c,
                       const inspect_options *w)
{
    size_t count;
    SGM_TRY(sgm_trainer_prepare(trainer));
    int64_t batch = w->batch > 0 ? w->batch : c->data.batch;
    sgm_program_memory memory;
    SGM_TRY(sgm_trainer_memory(trainer, batch, &memory));
    if (w->threads) {
        char number[64];
        printf("%s of %s examples on %s\n", network_has_cost(network) ? "training step" : "prediction",
               sgm_count_text(batch, number, sizeof number), sgm_handler_name(sgm_env_handler(env)));
        print_threads(&memory);
        return SGM_OK;
    }
    const sgm_parameter *parameters = sgm_trainer_parameters(trainer, &count);
    printf("network\n  %s\n", network);
    SGM_TRY(inspect_layers(network, parameters, count));
    print_parameters(parameters, count);
    print_memory(&memory, batch, network_has_cost(network));
    print_threads(&memory);
    if (config_precision(c) == SGM_BFLOAT16)
        printf("precision\n  bfloat16, with float32 parameters; products %s\n",
               sgm_handler_bfloat16(sgm_env_handler(env)));
    if (w->graph)
        SGM_TRY(print_text("graph", sgm_trainer_graph_text(trainer, batch)));
    return w->program ? print_text("program", sgm_trainer_program_text(trainer, batch)) : SGM_OK;
}

/* A configuration: the trainer has new parameters. Data is opened only to propose a network for it, so this
 * works where the data is not. */
static int inspect_file(const char *path, const inspect_options *w)
{
    config c;
    int code;
    if (!overrides_are_single(w->command, w->overrides, w->override_count, &code))
        return code;
    if (config_load(&c, path, w->overrides, w->override_count) != SGM_OK)
        return report_error(w->command, CLI_USAGE);
    bool has_network = c.network != NULL || experiment_prepare(&c, NULL) == SGM_OK;
    sgm_env *env = has_network ? experiment_env(&c) : NULL;
    sgm_trainer *trainer = env != NULL ? experiment_trainer(env, &c) : NULL;
    code = CLI_OK;
    if (trainer == NULL || show(env, trainer, c.network, &c, w) != SGM_OK)
        code = report_error(w->command, CLI_FAILED);
    sgm_env_free(env);
    config_free(&c);
    return code;
}

/* Shows the tensors of a checkpoint whose network cannot be parsed: it has layers that only the program
 * which registered them knows. States of optimiser, averages and random numbers are left out. `why` is the
 * error of parsing. */
static int inspect_tensors(const char *path, const char *network, const char *why)
{
    sgm_bundle *bundle = sgm_bundle_load(path);
    size_t count = bundle != NULL ? sgm_bundle_count(bundle) : 0;
    /* The tensors are described as parameters, so that print_parameters can list them. */
    sgm_parameter *tensors = bundle != NULL ? sgm__calloc(count + 1, sizeof *tensors) : NULL;
    if (tensors == NULL) {
        sgm_bundle_free(bundle);
        return report_error("inspect", CLI_FAILED);
    }
    size_t shown = 0;
    for (size_t i = 0; i < count; i++) {
        const char *name = sgm_bundle_name_at(bundle, i);
        const sgm_tensor *tensor = sgm_bundle_get(bundle, name);
        bool memory = strncmp(name, "optimiser.", 10) == 0 || strncmp(name, "average.", 8) == 0 ||
                      strncmp(name, "random.", 7) == 0;
        if (tensor != NULL && !memory)
            tensors[shown++] = (sgm_parameter){
                .name = name,
                .type = {.dtype = sgm_tensor_dtype(tensor), .shape = *sgm_tensor_shape(tensor)},
                .trainable = true};
    }
    printf(
        "network\n  %s\n  layers and memory cannot be shown: %s; layers of one's own are known only to the "
        "program that registers them\n",
        network, why);
    print_parameters(tensors, shown);
    sgm__free(tensors);
    sgm_bundle_free(bundle);
    return CLI_OK;
}

/* After saved_open has failed: tries to show the tensors if the notation was the reason, else reports the
 * first error, which is kept meanwhile. */
static int inspect_unknown(const char *path, const inspect_options *w)
{
    char *checkpoint = saved_path(path), *why = sgm__strdup(sgm_last_error());
    char *notation = checkpoint != NULL ? sgm_checkpoint_network(checkpoint) : NULL;
    sgm_network *network = notation != NULL ? sgm_network_parse(notation) : NULL;
    int code;
    if (notation != NULL && network == NULL && !w->graph && !w->program) {
        char *reason = sgm__strdup(sgm_last_error());
        code = inspect_tensors(checkpoint, notation, reason != NULL ? reason : "");
        sgm__free(reason);
    } else {
        sgm_fail(SGM_ERROR_FORMAT, "%s", why != NULL ? why : "");
        code = report_error(w->command, CLI_FAILED);
    }
    sgm_network_free(network);
    sgm_string_free(notation);
    sgm__free(checkpoint);
    sgm__free(why);
    return code;
}

/* With its training; or where its network has no cost, such as one for vectors of texts, as it predicts. */
static sgm_status open_checkpoint(saved *s, const char *path)
{
    SGM_TRY(saved_describe(s, path));
    if (!network_has_cost(s->network))
        return saved_load(s);
    saved_close(s);
    return saved_open_training(s, path);
}

/* A checkpoint or the folder of a run. */
static int inspect_checkpoint(const char *path, const inspect_options *w)
{
    saved s;
    if (open_checkpoint(&s, path) != SGM_OK)
        return inspect_unknown(path, w);
    int code = CLI_OK;
    if (show(s.env, s.trainer, s.network, &s.c, w) != SGM_OK)
        code = report_error(w->command, CLI_FAILED);
    saved_close(&s);
    return code;
}

/* KEY=VALUE behind what is no configuration; other words are too many. */
static int refuse_overrides(const char *path, const inspect_options *w)
{
    if (strchr(w->overrides[0], '=') == NULL)
        return usage_error(w->command, "expected one checkpoint, folder or file, got %zu",
                           w->override_count + 1);
    if (has_file(path, "config.yaml"))
        return usage_error(w->command, "'%s': KEY=VALUE is for a configuration, %s/config.yaml %s",
                           w->overrides[0], path, w->overrides[0]);
    return usage_error(w->command, "'%s': KEY=VALUE is for a configuration, FILE.yaml, and not for '%s'",
                       w->overrides[0], path);
}

static int inspect_any(const char *path, const inspect_options *w)
{
    bool is_configuration = ends_with(path, ".yaml") || ends_with(path, ".yml");
    if (!is_configuration && w->override_count > 0)
        return refuse_overrides(path, w);
    if (ends_with(path, ".onnx"))
        return inspect_onnx(path, w->batch, w->graph) == SGM_OK ? CLI_OK
                                                                : report_error(w->command, CLI_FAILED);
    return is_configuration ? inspect_file(path, w) : inspect_checkpoint(path, w);
}

/* `sigma info` reports mistakes under its own name, hence `command`. */
int inspect_threads(const char *path, const char *const *overrides, size_t override_count)
{
    return inspect_any(path, &(inspect_options){.overrides = overrides,
                                                .override_count = override_count,
                                                .threads = true,
                                                .batch = -1,
                                                .command = "info"});
}

int inspect_run(int argc, char **argv)
{
    inspect_options w = {.batch = -1, .command = "inspect"};
    const argument_rule rules[] = {
        {"--graph", ARGUMENT_FLAG, &w.graph},
        {"--program", ARGUMENT_FLAG, &w.program},
        {"--batch", ARGUMENT_COUNT, &w.batch},
    };
    arguments a = {.rules = rules, .rule_count = 3, .help = usage_text};
    int code;
    if (arguments_read(&a, argc, argv, &code)) {
        if (a.word_count == 0) {
            code = usage_error("inspect", "expected one checkpoint, folder or file, got 0");
        } else {
            w.overrides = a.words + 1;
            w.override_count = a.word_count - 1;
            code = inspect_any(a.words[0], &w);
        }
    }
    arguments_free(&a);
    return code;
}
