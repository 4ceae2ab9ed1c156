/* sigma train: a run, from a file to a checkpoint. */
#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

static const char usage_text[] =
    "Usage: sigma train FILE.yaml [KEY=VALUE ...] [--folder DIR] [--resume] [--quiet]\n\n"
    "Trains what the file describes. KEY=VALUE counts more than the file: optimiser.learning_rate=0.01.\n"
    "Lists and maps are written as in YAML: 'freeze=[0-dense.*]'.\n\n"
    "  --folder DIR   where the run is kept (default runs/NAME-TIME): config.yaml, checkpoint.safetensors,\n"
    "                 metrics.jsonl\n"
    "  --resume       go on from the folder's checkpoint; epochs count from the first run's beginning\n"
    "  --quiet        results only, no progress\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 130 interrupted (a checkpoint was "
    "written).\n\nKeys:\n";

static char *full_help(void)
{
    sgm__text out = {0};
    sgm__text_append(&out, "%s", usage_text);
    options_help(config_table, config_table_count, &out);
    return sgm__text_take(&out);
}

/* "runs/digits-20250102-150405", with a number behind it when that is taken. */
static sgm_status new_folder(config *c)
{
    char stamp[32];
    time_t now = time(NULL);
    struct tm local;
    localtime_r(&now, &local);
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
    SGM_TRY(sgm__make_folders("runs"));
    for (int i = 1; i < 1000; i++) {
        char *folder = i == 1 ? sgm__format("runs/%s-%s", c->name, stamp)
                              : sgm__format("runs/%s-%s-%d", c->name, stamp, i);
        if (folder == NULL)
            return sgm_last_status();
        if (mkdir(folder, 0777) == 0) {
            c->folder = folder;
            return SGM_OK;
        }
        int error = errno;
        sgm__free(folder);
        if (error != EEXIST)
            return sgm_fail(SGM_ERROR_FILE,
                            "a folder for the run cannot be made in runs/: %s; name one with "
                            "--folder",
                            sgm__errno_text(error));
    }
    return sgm_fail(SGM_ERROR_FILE, "runs/ is full of folders named %s-%s", c->name, stamp);
}

/* The effective configuration, which can be read again: `sigma train DIR/config.yaml --resume`. */
static sgm_status save_config(config *c)
{
    char full[PATH_MAX];
    if (realpath(c->folder, full) == NULL)
        return sgm_fail(SGM_ERROR_FILE, "%s: %s", c->folder, sgm__errno_text(errno));
    char *shown = c->folder;
    c->folder = full;
    char *text = config_text(c);
    c->folder = shown;
    char *path = sgm__format("%s/config.yaml", full);
    sgm_status status =
        text != NULL && path != NULL ? sgm__file_write_atomic(path, text, strlen(text)) : sgm_last_status();
    sgm_string_free(text);
    sgm__free(path);
    return status;
}

/* The folder must be new, or the one to resume. Nothing in it changes before the run has begun. */
static int prepare_folder(config *c, bool resume)
{
    if (c->folder == NULL) {
        if (resume)
            return usage_error("train", "--resume needs the folder of the run: --folder DIR");
        if (new_folder(c) != SGM_OK)
            return report_error("train", CLI_FAILED);
    } else {
        char *checkpoint = sgm__format("%s/checkpoint.safetensors", c->folder);
        bool there = checkpoint != NULL && sgm__file_exists(checkpoint);
        sgm__free(checkpoint);
        if (there && !resume)
            return usage_error("train",
                               "%s has a checkpoint already: --resume goes on from it, --folder names "
                               "another",
                               c->folder);
    }
    return CLI_OK;
}

/* What a run needs beside its trainer. */
typedef struct run_parts {
    sgm_env *env;
    sgm_trainer *trainer;
    sgm_dataset *training, *validation, *test;
    config *c;
    char failure[1024]; /* of saving the configuration; "": none */
} run_parts;

/* When the run has begun, its folder is there and belongs to it, and a checkpoint to resume from fits: the
 * configuration may be replaced. */
static bool keep_config(void *user, const sgm_training_progress *progress)
{
    run_parts *p = user;
    if (progress->kind != SGM_PROGRESS_START)
        return true;
    if ((p->c->epochs != OPTION_UNSET && progress->epoch >= p->c->epochs) ||
        (p->c->iterations != OPTION_UNSET && progress->iteration >= p->c->iterations))
        printf("nothing is left to train: %lld epochs and %lld iterations are done\n",
               (long long)progress->epoch, (long long)progress->iteration);
    if (save_config(p->c) != SGM_OK)
        snprintf(p->failure, sizeof p->failure, "%s", sgm_last_error());
    return p->failure[0] == '\0';
}

static sgm_status open_data(const config *c, const data_config *data, const char *name, sgm_dataset **dataset)
{
    *dataset = experiment_dataset(data, name);
    if (*dataset == NULL || experiment_check(c->network, *dataset) != SGM_OK)
        return sgm__fail_within("data.%s", name);
    return SGM_OK;
}

static sgm_status open_parts(run_parts *p, config *c, bool quiet)
{
    const data_group *data = &c->data;
    p->c = c;
    SGM_TRY(open_data(c, &data->training, "training", &p->training));
    if (!data_config_is_empty(&data->validation))
        SGM_TRY(open_data(c, &data->validation, "validation", &p->validation));
    if (!data_config_is_empty(&data->test))
        SGM_TRY(open_data(c, &data->test, "test", &p->test));
    p->env = experiment_env(c);
    p->trainer = p->env != NULL ? experiment_trainer(p->env, c) : NULL;
    if (p->trainer == NULL)
        return sgm_last_status();
    SGM_TRY(sgm_trainer_data(p->trainer,
                             sgm_minibatches(p->training, .size = data->batch, .seed = (uint64_t)c->seed,
                                             .no_shuffle = !data->shuffle, .drop_last = data->drop_last)));
    if (p->validation != NULL)
        SGM_TRY(sgm_trainer_add_data(p->trainer, "validation", experiment_measuring(p->validation, c)));
    SGM_TRY(sgm_trainer_on_progress(p->trainer, keep_config, p));
    return quiet ? SGM_OK : sgm_env_monitor(p->env, sgm_terminal_monitor());
}

static void close_parts(run_parts *p)
{
    sgm_env_free(p->env);
    sgm_dataset_free(p->training);
    sgm_dataset_free(p->validation);
    sgm_dataset_free(p->test);
}

static sgm_status measure(const run_parts *p, const config *c, const char *name, sgm_dataset *dataset)
{
    sgm_metrics metrics;
    sgm_iterator *iterator = experiment_measuring(dataset, c);
    sgm_status status =
        iterator != NULL ? sgm_trainer_evaluate(p->trainer, iterator, &metrics) : sgm_last_status();
    sgm_iterator_free(iterator);
    if (status == SGM_OK)
        print_metrics(name, &metrics);
    return status;
}

static int train(config *c, bool resume, bool quiet)
{
    run_parts parts = {0};
    int code = CLI_OK;
    if (data_config_is_empty(&c->data.training))
        return usage_error("train", "there is no training data; name some as data.training");
    /* What can be wrong without training is found before there is a folder for the run. */
    if (open_parts(&parts, c, quiet) != SGM_OK || sgm_trainer_prepare(parts.trainer) != SGM_OK)
        code = report_error("train", CLI_FAILED);
    else
        code = prepare_folder(c, resume);
    if (code == CLI_OK) {
        sgm_status status =
            sgm_run(parts.env, .epochs = c->epochs != OPTION_UNSET ? c->epochs : 0,
                    .iterations = c->iterations != OPTION_UNSET ? c->iterations : 0, .folder = c->folder,
                    .checkpoint_every = c->checkpoint_every, .resume = resume, .catch_interrupt = true);
        if (parts.failure[0] != '\0') {
            fprintf(stderr, "sigma train: %s\n", parts.failure);
            code = CLI_FAILED;
        } else if (status == SGM_ERROR_INTERRUPTED) {
            printf("stopped; go on with: sigma train %s/config.yaml --resume\n", c->folder);
            code = CLI_INTERRUPTED;
        } else if (status != SGM_OK ||
                   (parts.validation != NULL &&
                    measure(&parts, c, "validation", parts.validation) != SGM_OK) ||
                   (parts.test != NULL && measure(&parts, c, "test", parts.test) != SGM_OK)) {
            code = report_error("train", CLI_FAILED);
        } else {
            printf("checkpoint: %s/checkpoint.safetensors\n", c->folder);
        }
    }
    close_parts(&parts);
    return code;
}

/* The file is the first word, everything else is KEY=VALUE. */
static int train_words(const arguments *a, const char *folder, bool resume, bool quiet)
{
    if (a->word_count == 0)
        return usage_error("train", "expected a file that describes what to train");
    char *folder_argument = folder != NULL ? sgm__format("folder=%s", folder) : NULL;
    const char **overrides = sgm__calloc(a->word_count, sizeof *overrides);
    if (overrides == NULL || (folder != NULL && folder_argument == NULL)) {
        sgm__free(overrides);
        sgm__free(folder_argument);
        return report_error("train", CLI_FAILED);
    }
    size_t count = 0;
    for (size_t i = 1; i < a->word_count; i++)
        overrides[count++] = a->words[i];
    if (folder_argument != NULL)
        overrides[count++] = folder_argument;
    config c;
    int code;
    if (config_load(&c, a->words[0], overrides, count) != SGM_OK) {
        code = report_error("train", CLI_USAGE);
    } else {
        code = train(&c, resume, quiet);
        config_free(&c);
    }
    sgm__free(overrides);
    sgm__free(folder_argument);
    return code;
}

int train_run(int argc, char **argv)
{
    const char *folder = NULL;
    bool resume = false, quiet = false;
    const argument_rule rules[] = {
        {"--folder", ARGUMENT_TEXT, &folder},
        {"--resume", ARGUMENT_FLAG, &resume},
        {"--quiet", ARGUMENT_FLAG, &quiet},
    };
    char *help = full_help();
    arguments a = {.rules = rules, .rule_count = 3, .help = help != NULL ? help : usage_text};
    int code;
    if (arguments_read(&a, argc, argv, &code))
        code = train_words(&a, folder, resume, quiet);
    arguments_free(&a);
    sgm_string_free(help);
    return code;
}
