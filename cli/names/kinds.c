/* The table of kinds.h: what rows the library's tables have, and how an example of each is read. */
#include "names/kinds.h"
#include "config/config.h"
#include "handlers/handler_text.h"
#include "hooks/hook_text.h"
#include "metrics/metrics.h"
#include "optim/optimiser.h"

#include <stdio.h>

/* --- layers and activations --- */

/* The rows with or without the flag of costs: `index` counts them alone. */
static bool describe_layers(size_t index, bool costs, sgm__described *described)
{
    const sgm_layer_type *type;
    for (size_t i = 0; (type = sgm_layer_type_at(i)) != NULL; i++)
        if (((type->flags & SGM_LAYER_COST) != 0) == costs && index-- == 0)
            break;
    if (type == NULL)
        return false;
    *described = (sgm__described){.name = type->name,
                                  .doc = type->doc,
                                  .formula = type->formula,
                                  .example = type->example,
                                  .arguments = type->arguments,
                                  .argument_count = type->argument_count};
    return true;
}

static bool describe_layer(size_t index, sgm__described *described)
{
    return describe_layers(index, false, described);
}

static bool describe_cost(size_t index, sgm__described *described)
{
    return describe_layers(index, true, described);
}

static bool describe_activation(size_t index, sgm__described *described)
{
    const sgm_op *op;
    for (size_t i = 0; (op = sgm_op_at(i)) != NULL; i++)
        if ((op->flags & SGM_OP_ACTIVATION) != 0 && index-- == 0)
            break;
    if (op == NULL)
        return false;
    *described = (sgm__described){.name = op->name, .doc = op->doc};
    return true;
}

static sgm_status check_layer(const char *example)
{
    sgm_layer *layer = sgm_layer_parse(example);
    sgm_layer_free(layer);
    return layer != NULL ? SGM_OK : sgm_last_status();
}

/* --- what training is told --- */

#define MAXIMUM_SETTINGS 24
static sgm_option used_settings[MAXIMUM_SETTINGS];

/* Adds an argument. Arguments of what was described before are overwritten. */
static void take_setting(sgm__described *described, const sgm_option *row)
{
    if (described->argument_count == MAXIMUM_SETTINGS)
        return;
    used_settings[described->argument_count++] = *row;
    described->arguments = used_settings;
}

static void take_settings(sgm__described *described, const sgm_setting *settings, size_t count,
                          const char *left_out)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(settings[i].option.name, left_out) != 0)
            take_setting(described, &settings[i].option);
}

/* The settings that the type uses, with its own defaults where it has one. */
static bool describe_optimiser(size_t index, sgm__described *described)
{
    const sgm_optimiser_type *type = sgm_optimiser_type_at(index);
    size_t count;
    const sgm_setting *settings = sgm_optimiser_settings(&count);
    if (type == NULL)
        return false;
    *described = (sgm__described){.name = type->name, .doc = type->doc, .formula = type->formula};
    for (size_t i = 0; i < count; i++) {
        sgm_content content = {0};
        sgm_option row = settings[i].option;
        if (!sgm__optimiser_type_uses(type, &settings[i]))
            continue;
        sgm_setting_get(&settings[i], &type->defaults, &content);
        double own = content.kind == SGM_KIND_INTEGER ? (double)content.as.integer : content.as.number;
        row.default_value = own != 0 ? own : row.default_value;
        take_setting(described, &row);
    }
    return true;
}

static bool describe_schedule(size_t index, sgm__described *described)
{
    size_t count;
    const sgm_setting *settings = sgm_schedule_settings(&count);
    if (!sgm__schedule_describe(index, described))
        return false;
    take_settings(described, settings, count, "kind");
    return true;
}

static bool describe_hook(size_t index, sgm__described *described)
{
    const sgm__hook_row *row = sgm__hook_row_at(index);
    if (row == NULL)
        return false;
    *described = (sgm__described){
        .name = row->name, .doc = row->doc, .example = row->example, .arguments = row->arguments};
    while (row->arguments[described->argument_count].name != NULL)
        described->argument_count++;
    return true;
}

/* The arguments are those of the hook of that name. */
static bool describe_metric(size_t index, sgm__described *described)
{
    size_t count;
    const char *const *names = sgm_metric_names(&count);
    if (index >= count)
        return false;
    const sgm__metric *metric = sgm__metric_at(sgm__metric_find(names[index], strlen(names[index])));
    sgm__described hook = {.name = NULL};
    for (size_t i = 0; describe_hook(i, &hook) && strcmp(hook.name, metric->name) != 0; i++)
        ;
    *described =
        (sgm__described){.name = metric->name,
                         .doc = metric->doc,
                         .formula = metric->added != NULL ? metric->added->formula : metric->record->formula,
                         .arguments = hook.arguments,
                         .argument_count = hook.argument_count};
    return true;
}

static bool describe_of(const sgm__described *rows, size_t count, size_t index, sgm__described *described)
{
    if (index < count)
        *described = rows[index];
    return index < count;
}
#define DESCRIBE(rows) describe_of(rows, sizeof(rows) / sizeof *(rows), index, described)

static bool describe_action(size_t index, sgm__described *described)
{
    static const sgm__described rows[] = {
        {"stop", "ends the run, with a checkpoint", NULL,
         "if validation.loss stalls 5 epochs then stop \"no progress\"", NULL, 0},
        {"pause", "pauses the run", NULL, "if training.loss > 100 then pause", NULL, 0},
        {"reset", "gives all parameters their first values again", NULL,
         "after 3 epochs if training.loss > 100 then reset", NULL, 0},
        {"save", "writes NAME.safetensors into the folder of the run", NULL,
         "if validation.loss reaches minimum then save \"best\"", NULL, 0},
        {"set", "changes a value: =, +=, -=, *=, /=", NULL,
         "every 10 epochs set optimiser.learning_rate *= 0.5", NULL, 0},
        {"restore", "takes weights and the optimiser's state from a checkpoint of the run's folder", NULL,
         "if training.loss > 100 then restore \"best\" and set optimiser.learning_rate *= 0.5", NULL, 0},
        {"notify", "writes a warning into the log, and tells open pages, with values in braces", NULL,
         "if training.loss > 10 then notify \"loss {training.loss} after epoch {epoch}\"", NULL, 0},
        {"branch", "begins a training beside this one that goes on from here, with a value set in it alone",
         NULL, "after 10 epochs branch \"slow\" with optimiser.learning_rate *= 0.1", NULL, 0},
        {"run", "starts a program, if the file says allow_commands: true, with SIGMA_EPOCH, SIGMA_LOSS, ...",
         NULL, "if validation.loss reaches minimum then save \"best\" and run \"./publish best\"", NULL, 0},
        {"webhook", "sends a message as JSON to an address that the file names in webhooks: [...]", NULL,
         "at stop webhook \"https://hooks.example.org/x\" \"ended with loss {training.loss}\"", NULL, 0},
        {"freeze", "parameters whose names match a pattern stay as they are from then on", NULL,
         "at epoch 5 freeze \"*.biases\"", NULL, 0},
        {"unfreeze", "trains them again, also a part of what a wider pattern froze", NULL,
         "at epoch 3 unfreeze \"1-dense.*\"", NULL, 0},
        {"for", "behind a set: the value goes back after so many epochs or iterations", NULL,
         "if training.loss > 10 then set optimiser.learning_rate *= 0.1 for 3 epochs", NULL, 0},
    };
    return DESCRIBE(rows);
}

static sgm_status check_hook_text(const char *example)
{
    sgm_hook *hook = sgm_hook_parse(example);
    sgm_hook_free(hook);
    return hook != NULL ? SGM_OK : sgm_last_status();
}

static bool describe_augmentation(size_t index, sgm__described *described)
{
    const sgm_augmentation_type *type = sgm_augmentation_at(index);
    if (type == NULL)
        return false;
    *described = (sgm__described){.name = type->name,
                                  .doc = type->doc,
                                  .arguments = type->arguments,
                                  .argument_count = type->argument_count};
    return true;
}

static bool describe_operator(size_t index, sgm__described *described)
{
    static const sgm__described rows[] = {
        {"gradients", "workers compute gradients of parts of each minibatch, which are added",
         "g = sum over workers of g_i", NULL, NULL, 0},
        {"parameters", "workers take steps of their own, and their parameters are merged now and then",
         "p = mean over workers of p_i", NULL, NULL, 0},
        {"mpi", "the processes of mpirun compute gradients of parts of each minibatch",
         "g = sum over ranks of g_i", NULL, NULL, 0},
    };
    size_t count;
    const sgm_setting *settings = sgm_operator_settings(&count);
    if (!DESCRIBE(rows))
        return false;
    take_settings(described, settings, count, "");
    return true;
}

static bool describe_handler(size_t index, sgm__described *described)
{
    const sgm_setting *settings;
    size_t count;
    if (!sgm__handler_describe(index, described, &settings, &count))
        return false;
    take_settings(described, settings, count, "");
    return true;
}

/* An example that is a part of a file. */
static sgm_status check_file(const char *example)
{
    config c;
    char *text = sgm__format("network: input(4) + mean_squared\n%s\n", example);
    sgm_status status =
        text != NULL ? config_parse(&c, "example.yaml", text, strlen(text), NULL, 0) : SGM_ERROR_MEMORY;
    sgm__free(text);
    if (status == SGM_OK)
        config_free(&c);
    return status;
}

/* --- the table --- */

const named_kind named_kinds[] = {
    {"layer", "--layers", SGM__NAME_LAYER, describe_layer, "%s", check_layer, false},
    {"cost", "--costs", SGM__NAME_LAYER, describe_cost, "%s", check_layer, false},
    {"activation", "--activations", SGM__NAME_ACTIVATION, describe_activation, "dense(100, %s)", check_layer,
     false},
    {"optimiser", "--optimisers", SGM__NAME_OPTIMISER, describe_optimiser, "optimiser: {type: %s}",
     check_file, true},
    {"schedule", "--schedules", SGM__NAME_CHOICE, describe_schedule, "%s", check_file, true},
    {"initialiser", "--initialisers", SGM__NAME_INITIALISER, sgm__initialiser_describe,
     "initialisers: {\"*.weights\": \"%s\"}", check_file, false},
    {"modifier", "--modifiers", SGM__NAME_MODIFIER, sgm__modifier_describe,
     "modifiers: {\"*.weights\": \"%s\"}", check_file, false},
    {"hook", "--hooks", SGM__NAME_HOOK, describe_hook, "%s", check_hook_text, false},
    {"metric", "--metrics", SGM__NAME_METRIC, describe_metric, "%s(validation)", check_hook_text, true},
    {"action of a rule", "--rules", SGM__NAME_HOOK, describe_action, "%s", check_hook_text, false},
    {"augmentation", "--augmentations", SGM__NAME_AUGMENTATION, describe_augmentation,
     "data: {training: iris, augment: \"%s\"}", check_file, false},
    {"operator", "--operators", SGM__NAME_CHOICE, describe_operator, "operator: {type: %s}", check_file,
     true},
    {"handler", "--handlers", SGM__NAME_HANDLER, describe_handler, "handler: %s", check_file, false},
};
const size_t named_kind_count = sizeof named_kinds / sizeof *named_kinds;

char *named_example(const named_kind *kind, const sgm__described *described)
{
    const char *example = described->example != NULL ? described->example : described->name;
    const char *hole = strstr(kind->frame, "%s");
    return sgm__format("%.*s%s%s", (int)(hole - kind->frame), kind->frame, example, hole + 2);
}

bool named_find(const named_kind *kind, const char *name, sgm__described *described)
{
    for (size_t i = 0; kind->describe(i, described); i++)
        if (strcmp(described->name, name) == 0)
            return true;
    return false;
}

const char **named_all(const named_kind *kind, size_t *count)
{
    sgm__described described;
    for (*count = 0; kind->describe(*count, &described); ++*count)
        ;
    const char **names = sgm__calloc(*count + 1, sizeof *names);
    for (size_t i = 0; names != NULL && i < *count && kind->describe(i, &described); i++)
        names[i] = described.name;
    return names;
}
