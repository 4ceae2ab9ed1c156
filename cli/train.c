/* `sigma train`: a training from a configuration file to a checkpoint.
 *
 * train_run reads the arguments; train_words turns options into KEY=VALUE overrides; train_described loads
 * the configuration (config/config.c); train_run.c trains. */
#include "train.h"
#include "data/data.h"
#include "monitors/task_lines.h"

#include <stdio.h>

static const char usage_text[] =
    "Usage: sigma train FILE.yaml|FOLDER [KEY=VALUE ...] [--folder DIR] [--resume] [--from RUN]\n"
    "       sigma train FILE.csv --target COLUMN[,COLUMN ...] [KEY=VALUE ...] ...\n"
    "       sigma train CLASSES/ [KEY=VALUE ...] ...\n"
    "             [--quiet] [--paused] [--monitor[=PORT]] [--monitor-wait] [--monitor-tokens FILE]\n"
    "             [--panels FOLDER]\n"
    "             [--json-lines FILE] [--tensorboard[=DIR]] [--no-keys]\n\n"
    "Trains what the file describes. FOLDER is the folder of a run; its config.yaml is used. KEY=VALUE\n"
    "overrides the file: optimiser.learning_rate=0.01. Lists and maps are written as in YAML:\n"
    "'freeze=[0-dense.*]'. A list replaces that of the file, a map is merged with it.\n\n"
    "FILE.csv (.tsv, .jsonl, also packed) stands for a file with 'data: {training: {csv: FILE.csv, target:\n"
    "COLUMN}, split: 0.8}', 100 epochs, and the hook early_stopper(validation.loss, patience=10).\n"
    "CLASSES/, a folder with a folder of pictures, sounds or texts for each class, stands for the same with\n"
    "'images: CLASSES', 'sounds: CLASSES' or 'text_folder: CLASSES'. The run keeps it as config.yaml.\n\n"
    "  --target COLUMN  of a table: the column to predict, or several with commas between them\n"
    "  --folder DIR   where the run is kept (default runs/NAME-TIME): config.yaml, checkpoint.safetensors,\n"
    "                 metrics.jsonl\n"
    "  --resume       go on from the folder's checkpoint; epochs count from the first run's beginning. "
    "Without a\n"
    "                 checkpoint it begins anew, and keeps metrics.jsonl as metrics-before-1.jsonl\n"
    "  --from RUN     begin with the parameters of another run, or of a checkpoint: start_from.run=RUN; the\n"
    "                 keys start_from.parts, .states and .skip_mismatch choose parts of it. With a table or\n"
    "                 CLASSES/ and none of these keys the network is that of RUN, too: from=RUN\n"
    "  --quiet        results only, no progress\n"
    "  --no-keys      turn off the keys that steer a training on a terminal: space or p pauses and resumes,\n"
    "                 s steps (10s: ten), q stops, c turns the curve of the loss on or off, h lists them\n"
    "  --paused       begin paused: 'sigma ctl DIR resume' (or step) lets it go on\n"
    "  --monitor[=PORT]\n"
    "                 watch and steer it in a browser: prints the address (default: a free port from 8080)\n"
    "  --monitor-wait the same, and the monitor stays when the training has ended, until you end it on the\n"
    "                 page or by Ctrl-C\n"
    "  --monitor-tokens FILE\n"
    "                 tokens for others, a line each: ROLE TOKEN [NAME]; with the role look nothing can be\n"
    "                 changed, with steer no checkpoint be added or deleted, admin is as the one printed\n"
    "  --panels FOLDER\n"
    "                 the page has panels of yours, too: each NAME.js in the folder is a module that calls\n"
    "                 definePanel(\"NAME\", ...)\n"
    "  --json-lines FILE\n"
    "                 adds a line of JSON to the file for each event: starts, epochs, changes of values, "
    "ends\n"
    "  --tensorboard[=DIR]\n"
    "                 writes files for TensorBoard into DIR (default: tensorboard in the run's folder)\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 130 interrupted (a checkpoint was "
    "written,\nif training had begun).\n\nKeys:\n";

/* The usage and the table of all keys; sgm_string_free. NULL: out of memory. */
static char *full_help(void)
{
    sgm__text out = {0};
    sgm__text_append(&out, "%s", usage_text);
    options_help(&config_table, &out);
    return sgm__text_take(&out);
}

/* `sigma train DIR/config.yaml` means the run in DIR: if DIR has traces of a run (or --resume asks for
 * it), the configuration's folder becomes DIR. A config.yaml elsewhere is an ordinary file. */
static sgm_status folder_of_run(config *c, const char *file, bool resume)
{
    const char *slash = strrchr(file, '/'), *name = slash != NULL ? slash + 1 : file;
    if (strcmp(name, "config.yaml") != 0)
        return SGM_OK;
    char *folder = slash == NULL   ? sgm__strdup(".")
                   : slash == file ? sgm__strdup("/")
                                   : sgm__strndup(file, (size_t)(slash - file));
    if (folder == NULL)
        return sgm_last_status();
    if ((resume && c->folder == NULL) || has_file(folder, "checkpoint.safetensors") ||
        has_file(folder, "metrics.jsonl")) {
        sgm__free(c->folder);
        c->folder = folder;
    } else {
        sgm__free(folder);
    }
    return SGM_OK;
}

/* The training of one fold (fold_source), with the arguments of the command. */
static int train_one_fold(config *c, bool resume, sgm_metrics *validation, const void *user)
{
    train_arguments given = *(const train_arguments *)user;
    given.resume = resume;
    return train_configuration(c, &given, validation);
}

static int train_loaded(config *c, const fold_source *source, const train_arguments *given)
{
    sgm_metrics validation;
    bool are_folds = c->data.split.folds != OPTION_UNSET && c->data.split.fold == OPTION_UNSET;
    return are_folds ? train_folds(c, source) : train_configuration(c, given, &validation);
}

/* Loads the description with its overrides and trains. A folder that is given wins over the one that the file
 * lies in. */
static int train_described(const train_description *description, const char *const *overrides, size_t count,
                           const train_arguments *given)
{
    config c;
    bool folder_given = false;
    int code;
    if (!overrides_are_single("train", overrides, count, &code))
        return code;
    for (size_t i = 0; i < count; i++)
        folder_given |= strncmp(overrides[i], "folder=", 7) == 0;
    if (description_load(&c, description, overrides, count) != SGM_OK)
        return report_error("train", CLI_USAGE);
    const fold_source source = {.description = description,
                                .overrides = overrides,
                                .count = count,
                                .resume = given->resume,
                                .train = train_one_fold,
                                .user = given};
    code = folder_given || folder_of_run(&c, description->file, given->resume) == SGM_OK
               ? train_loaded(&c, &source, given)
               : report_error("train", CLI_FAILED);
    config_free(&c);
    return code;
}

/* A folder that is not that of a run. */
static bool is_folder_of_data(const char *path)
{
    return sgm__is_folder(path) && !has_file(path, "config.yaml");
}

/* What the first word describes. False: the command ends with *code. */
static bool describe(const char *word, const char *target, train_description *description, int *code)
{
    *code = CLI_FAILED;
    if (description_is_table(word)) {
        if (description_of_table(description, word, target) == SGM_OK)
            return true;
        *code = report_error("train", CLI_USAGE);
    } else if (target == NULL && is_folder_of_data(word)) {
        if (description_of_files(description, word, data_kind_of_files(word)) == SGM_OK)
            return true;
        *code = report_error("train", CLI_USAGE);
    } else if (target != NULL) {
        *code = usage_error("train", "--target is for a table, FILE.csv; in '%s' it is data.training.target",
                            word);
    } else {
        description->file = file_of(word, "config.yaml");
        if (description->file != NULL)
            return true;
        report_error("train", *code);
    }
    return false;
}

/* The key that --from is. Data itself comes without a network, so that it takes that of the run, unless one
 * is given, or parts of the run are chosen. */
static const char *key_of_from(const arguments *a, const train_description *description)
{
    bool takes_network = description->text != NULL;
    for (size_t i = 1; i < a->word_count; i++)
        takes_network &= strncmp(a->words[i], "network=", strlen("network=")) != 0 &&
                         strncmp(a->words[i], "start_from", strlen("start_from")) != 0;
    return takes_network ? "from" : "start_from.run";
}

/* --folder and --from become the overrides folder=DIR and start_from.run=RUN, or from=RUN, so they share the
 * checks of those keys. */
static int train_overridden(const arguments *a, const train_description *description,
                            const train_arguments *given)
{
    char *folder = sgm__format("folder=%s", given->folder != NULL ? given->folder : "");
    char *from = sgm__format("%s=%s", key_of_from(a, description), given->from != NULL ? given->from : "");
    const char **overrides = sgm__calloc(a->word_count + 1, sizeof *overrides);
    size_t count = 0;
    int code = CLI_FAILED;
    if (overrides == NULL || folder == NULL || from == NULL) {
        report_error("train", code);
    } else {
        for (size_t i = 1; i < a->word_count; i++)
            overrides[count++] = a->words[i];
        if (given->folder != NULL)
            overrides[count++] = folder;
        if (given->from != NULL)
            overrides[count++] = from;
        code = train_described(description, overrides, count, given);
    }
    sgm__free(overrides);
    sgm__free(from);
    sgm__free(folder);
    return code;
}

/* Interprets the words: the first is what to train, all others are KEY=VALUE. Mistakes
 * that are easily made get messages of their own. */
static int train_words(const arguments *a, const train_arguments *given)
{
    if (a->word_count == 0)
        return usage_error("train", "expected a file that describes what to train");
    int64_t port; /* which is optional, and hence not read as ARGUMENT_PORT */
    if (given->monitor != NULL && given->monitor[0] != '\0' && !parse_port(given->monitor, &port))
        return usage_error("train", "--monitor: expected a port from 1 to 65535, got '%s'", given->monitor);
    for (size_t i = 1; i < a->word_count; i++)
        if (given->monitor != NULL && parse_port(a->words[i], &port))
            return usage_error("train", "argument '%s': a port is given as --monitor=%s", a->words[i],
                               a->words[i]);
    /* Programs that use the library write no config.yaml. */
    if (is_folder_of_data(a->words[0]) && given->resume)
        return usage_error("train",
                           "'%s' has no config.yaml, so no 'sigma train' has run there, and nothing can be "
                           "resumed; a program's run goes on in the program: .resume = true",
                           a->words[0]);
    if (is_folder_of_data(a->words[0]) && data_kind_of_files(a->words[0]) == NULL)
        return usage_error("train",
                           "'%s' has no config.yaml, so no 'sigma train' has run there, and no pictures, "
                           "sounds or texts in folders of classes: put those of each class into a folder, "
                           "%s/CLASS/",
                           a->words[0], a->words[0]);
    if (given->resume && !ends_with(a->words[0], ".yaml") && !sgm__file_exists(a->words[0]))
        return usage_error(
            "train",
            "there is no run '%s' to resume: one that never began has no folder; begin it with "
            "its file, sigma train FILE.yaml --folder %s",
            a->words[0], a->words[0]);
    if (given->from != NULL && given->resume)
        return usage_error("train", "--resume goes on from the run's own checkpoint; leave --from out");
    train_description description = {0};
    int code;
    if (describe(a->words[0], given->target, &description, &code))
        code = train_overridden(a, &description, given);
    description_free(&description);
    return code;
}

/* The help has the table of keys, so it is made before the arguments are read. With --quiet the lines for
 * long tasks, which main began, end. */
int train_run(int argc, char **argv)
{
    train_arguments given = {.command = "train"};
    const argument_rule rules[] = {
        {"--folder", ARGUMENT_TEXT, &given.folder},
        {"--from", ARGUMENT_TEXT, &given.from},
        {"--target", ARGUMENT_TEXT, &given.target},
        {"--resume", ARGUMENT_FLAG, &given.resume},
        {"--quiet", ARGUMENT_FLAG, &given.quiet},
        {"--paused", ARGUMENT_FLAG, &given.paused},
        {"--monitor", ARGUMENT_MAYBE, &given.monitor},
        {"--no-keys", ARGUMENT_FLAG, &given.no_keys},
        {"--monitor-wait", ARGUMENT_FLAG, &given.monitor_wait},
        {"--monitor-tokens", ARGUMENT_TEXT, &given.monitor_tokens},
        {"--panels", ARGUMENT_TEXT, &given.panels},
        {"--json-lines", ARGUMENT_TEXT, &given.json_lines},
        {"--tensorboard", ARGUMENT_MAYBE, &given.tensorboard},
    };
    char *help = full_help();
    arguments a = {
        .rules = rules, .rule_count = sizeof rules / sizeof *rules, .help = help != NULL ? help : usage_text};
    int code;
    bool understood = arguments_read(&a, argc, argv, &code);
    if (given.quiet)
        sgm__task_lines_end();
    if (understood)
        code = train_words(&a, &given);
    arguments_free(&a);
    sgm_string_free(help);
    return code;
}
