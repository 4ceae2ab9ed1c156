/* One training of the command, from a configuration to the end of its run.
 *
 * train_configuration opens data, environment and trainer (config/experiment.c), checks, runs (sgm_env_run)
 * and prints the end.
 *
 * The invariant behind the order: nothing in a run's folder changes before the run has begun. config.yaml
 * is replaced by keep_config only, which the run calls when the folder is its own and a checkpoint to
 * resume from fits. */
#include "data/data.h"
#include "loop/trainer_run.h"
#include "parallel/collective/launcher.h"
#include "runs/trainer_commands.h"
#include "texts/sample.h"
#include "train.h"
#include "train/trainer_hooks.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

/* "runs/digits-20250102-150405", with a number behind it if that is taken. mkdir decides, so two commands
 * that start in the same second get different folders. A folder in c->folder is not freed: there is none
 * yet. */
sgm_status train_new_folder(config *c, const char *folder_option)
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
            return sgm__last_failure();
        if (mkdir(folder, 0777) == 0) {
            c->folder = folder;
            return SGM_OK;
        }
        int error = errno;
        sgm__free(folder);
        if (error != EEXIST)
            return sgm_fail(SGM_ERROR_FILE,
                            "a folder for the run cannot be made in runs/: %s; name one with %s",
                            sgm__errno_text(error), folder_option);
    }
    return sgm_fail(SGM_ERROR_FILE, "runs/ is full of folders named %s-%s", c->name, stamp);
}

/* Writes the configuration as it took effect, in a form that can be read again (`sigma train DIR
 * --resume`). The folder itself is left out: it is where the file lies, so a run may be moved and copied. */
sgm_status train_save_config(config *c)
{
    char *folder = c->folder;
    c->folder = NULL;
    char *text = config_text(c);
    c->folder = folder;
    return save_text(folder, "config.yaml", text);
}

bool train_has_checkpoint(const config *c)
{
    return c->folder != NULL && has_file(c->folder, "checkpoint.safetensors");
}

static const char *folder_option_of(const train_arguments *given)
{
    return strcmp(given->command, "train") == 0 ? "--folder" : "--into";
}

/* A folder with a checkpoint is that of a run, which another one must not replace. Returns an exit code. */
static int check_folder(const config *c, const train_arguments *given)
{
    if (given->resume || !train_has_checkpoint(c))
        return CLI_OK;
    return usage_error(given->command,
                       given->replay != NULL ? "%s has a checkpoint already: %s names another folder"
                                             : "%s has a checkpoint already: --resume goes on from it, "
                                               "%s names another",
                       c->folder, folder_option_of(given));
}

/* Decides which folder the run has: a new one, or the given one, which must be without a checkpoint or the
 * one to resume. Returns an exit code. The library makes a given folder when the run begins. */
static int prepare_folder(config *c, const train_arguments *given)
{
    bool resume = given->resume;
    if (c->folder == NULL) {
        if (resume)
            return usage_error("train", "--resume needs the folder of the run: --folder DIR");
        if (train_new_folder(c, folder_option_of(given)) != SGM_OK)
            return report_error(given->command, CLI_FAILED);
    } else {
        if (!train_has_checkpoint(c) && resume)
            printf("%s has no checkpoint to resume from: training begins anew\n", c->folder);
        return check_folder(c, given);
    }
    return CLI_OK;
}

/* What a run needs beside its trainer, which the environment owns. Under mpirun each rank is a process of
 * this command; one rank has the folder and the monitors, the others follow and print errors only. */
typedef struct run_parts {
    sgm_env *env;
    sgm_trainer *trainer;
    sgm_dataset *training, *validation, *test; /* the last two NULL: none is named */
    config *c;
    bool paused;        /* begin paused */
    bool replays;       /* another run is done again */
    bool checks;        /* that is only checked */
    bool follows;       /* another rank has the folder and the monitors, and prints how it goes */
    char failure[1024]; /* message of a configuration that could not be saved; "": none */
} run_parts;

/* Observer of the run (sgm_trainer_on_progress), called by the run's thread. At the start the folder
 * exists, is locked by this run, and a checkpoint to resume from fits the trainer: only then is
 * config.yaml replaced, if there is something left to do by it. Iterations are not asked for
 * (sgm__observer_next), so observing costs them nothing. Returning false ends the run. */
static bool keep_config(void *user, const sgm_training_progress *progress)
{
    run_parts *p = user;
    sgm__observer_next(INT64_MAX);
    if (progress->kind != SGM_PROGRESS_START)
        return true;
    const bool is_done = (p->c->epochs != OPTION_UNSET && progress->epoch >= p->c->epochs) ||
                         (p->c->iterations != OPTION_UNSET && progress->iteration >= p->c->iterations);
    if (p->c->epochs != OPTION_UNSET && progress->epoch >= p->c->epochs)
        printf("nothing to do: %lld of %lld epochs are done\n", (long long)progress->epoch,
               (long long)p->c->epochs);
    else if (p->c->iterations != OPTION_UNSET && progress->iteration >= p->c->iterations)
        printf("nothing to do: %lld of %lld iterations are done\n", (long long)progress->iteration,
               (long long)p->c->iterations);
    if (p->paused)
        printf("paused; go on with: sigma ctl %s resume\n", p->c->folder);
    fflush(stdout);
    if (!is_done && (train_save_config(p->c) != SGM_OK || from_keep(p->c) != SGM_OK))
        snprintf(p->failure, sizeof p->failure, "%s", sgm_last_error());
    return p->failure[0] == '\0';
}

/* "12", or what stands for no limit. */
static const char *epochs_text(const config *c, char *text, size_t size)
{
    if (c->epochs == OPTION_UNSET)
        return "without a limit";
    snprintf(text, size, "%lld", (long long)c->epochs);
    return text;
}

/* Another number of epochs is another course of a schedule that goes over the whole run, as those without a
 * period do. */
static void compare_schedules(const config *old, const config *c, sgm__text *changes)
{
    const schedule_config *schedule = &c->optimiser.schedule;
    char before[32], after[32];
    sgm_schedule_kind kind = SGM_CONSTANT;
    if (old->epochs == c->epochs || schedule->kind == NULL || schedule->period > 0 ||
        sgm_schedule_kind_parse(schedule->kind, &kind) != SGM_OK ||
        (kind != SGM_COSINE && kind != SGM_ONE_CYCLE))
        return;
    sgm__text_append(
        changes,
        "  epochs: was %s, is %s: the schedule %s has no period and goes over the whole run, so the "
        "learning rate is from here on that of a run of the new length",
        epochs_text(old, before, sizeof before), epochs_text(c, after, sizeof after), schedule->kind);
    double warm_up = schedule->warm_up > 0 ? schedule->warm_up : 0;
    if (old->epochs != OPTION_UNSET && (double)old->epochs > warm_up)
        sgm__text_append(changes, "; optimiser.schedule.period=%.15g keeps the old one",
                         (double)old->epochs - warm_up);
    sgm__text_append(changes, "\n");
}

/* Warns of keys that differ from those that the run began with, so that the rest is another training than
 * the beginning. A run without a readable config.yaml is not compared. */
static void tell_changes(const config *c, const char *command)
{
    /* Keys that may differ: they do not change what is computed, or (network, optimiser.type) the library
     * compares them with the checkpoint. */
    static const char *const free_keys[] = {"plugins",
                                            "name",
                                            "folder",
                                            "epochs",
                                            "iterations",
                                            "threads",
                                            "operator.threads",
                                            "checkpoint_every",
                                            "network",
                                            "optimiser.type",
                                            "start_from",
                                            "data.cache",
                                            "data.cache_folder",
                                            "from"};
    config old;
    char *path = sgm__format("%s/config.yaml", c->folder);
    if (path == NULL || !sgm__file_exists(path) || config_load(&old, path, NULL, 0) != SGM_OK) {
        sgm__free(path);
        return;
    }
    sgm__text changes = {0};
    options_compare(&config_table, &old, c, free_keys, sizeof free_keys / sizeof *free_keys, &changes);
    compare_schedules(&old, c, &changes);
    if (changes.length > 0)
        complain("sigma %s: warning: this run goes on otherwise than it began:\n%s", command, changes.data);
    sgm__text_free(&changes);
    config_free(&old);
    sgm__free(path);
}

/* An error begins with whose mistake it is: the network's, with its place in the file, the data's, or of both
 * together. An error in a table gets the keys that could mend it: the library, which reads the table, does
 * not know what they are called in a file. */
sgm_status train_open_data(const config *c, const data_config *data, const char *name, sgm_dataset **dataset)
{
    if (experiment_check_network(c->network) != SGM_OK)
        return sgm__fail_within("%s", config_place(c, "network"));
    *dataset = experiment_dataset(&c->data, data, name, (uint64_t)c->seed);
    if (*dataset != NULL && experiment_check_data(c->network, data, *dataset) == SGM_OK)
        return experiment_check_fit(c->network, *dataset) == SGM_OK
                   ? SGM_OK
                   : sgm__fail_within("%s and data.%s do not fit", config_place(c, "network"), name);
    if (data->csv != NULL && !data_config_is_named(data) &&
        sgm_last_status() == SGM_ERROR_FORMAT) /* the library does not know our keys */
        sgm_fail(SGM_ERROR_FORMAT,
                 "%s (keys for such a table: skip_rows, classes, class_names, texts, missing, skip_ragged, "
                 "separator)",
                 sgm_last_error());
    return sgm__fail_within("data.%s", name);
}

/* The page shows the configuration as text, therefore it is passed. */
static sgm_status add_web_monitor(sgm_env *env, const config *c, const train_arguments *given)
{
    int64_t port = 0;
    if (given->monitor != NULL && given->monitor[0] != '\0')
        parse_port(given->monitor, &port); /* was checked */
    char *tokens = given->monitor_tokens != NULL ? read_tokens(given->monitor_tokens) : NULL;
    if (tokens == NULL && given->monitor_tokens != NULL)
        return sgm__last_failure();
    char *text = config_text(c);
    sgm_status status =
        sgm_env_add_monitor(env, sgm_web_monitor(.port = (int)port, .title = c->name, .configuration = text,
                                                 .tokens = tokens, .wait = given->monitor_wait));
    sgm_string_free(text);
    sgm__free(tokens);
    return status;
}

/* The folder is that of the option, or tensorboard/ in the run's. */
static sgm_status add_tensorboard(sgm_env *env, const config *c, const char *given)
{
    char *folder = given[0] != '\0' ? sgm__strdup(given) : sgm__format("%s/tensorboard", c->folder);
    sgm_status status = folder != NULL ? sgm_env_add_monitor(env, sgm_tensorboard_monitor(.folder = folder))
                                       : sgm__last_failure();
    sgm__free(folder);
    return status;
}

/* One that a plug-in brings. */
static sgm_status add_named_monitor(sgm_env *env, const char *text)
{
    sgm_monitor *monitor = sgm_monitor_by_name(text);
    return monitor != NULL ? sgm_env_add_monitor(env, monitor) : sgm__fail_within("monitors");
}

/* Monitors belong to the environment and watch all its trainers. */
static sgm_status add_monitors(sgm_env *env, const config *c, const train_arguments *given)
{
    if (!given->quiet)
        SGM_TRY(sgm_env_add_monitor(env, sgm_terminal_monitor(.keys = !given->no_keys)));
    if (given->json_lines != NULL)
        SGM_TRY(sgm_env_add_monitor(env, sgm_json_lines_monitor(.path = given->json_lines)));
    if (given->tensorboard != NULL)
        SGM_TRY(add_tensorboard(env, c, given->tensorboard));
    for (size_t i = 0; i < c->monitors.count; i++)
        SGM_TRY(add_named_monitor(env, c->monitors.items[i]));
    if (given->panels != NULL)
        SGM_TRY(sgm_register_panels(given->panels));
    return given->monitor != NULL || given->monitor_wait ? add_web_monitor(env, c, given) : SGM_OK;
}

/* A run that goes on keeps the pipeline of its checkpoint, whatever has been added to the table. A network
 * that was proposed is printed, as config.yaml will have it. */
static sgm_status prepare_table(config *c, const train_arguments *given)
{
    bool is_proposed = c->network == NULL, goes_on = given->resume && train_has_checkpoint(c);
    char *checkpoint = goes_on ? sgm__format("%s/checkpoint.safetensors", c->folder) : NULL;
    sgm_status status = goes_on && checkpoint == NULL ? SGM_ERROR_MEMORY : experiment_prepare(c, checkpoint);
    sgm__free(checkpoint);
    if (status == SGM_OK && is_proposed && !given->quiet)
        printf("network: %s\n", c->network);
    return status;
}

/* The library's error names no file, nor that what was read may have a cost to add. */
static sgm_status check_cost(const config *c)
{
    if (c->from == NULL || c->network == NULL || network_has_cost(c->network))
        return SGM_OK;
    return sgm_fail(
        SGM_ERROR_STATE,
        "%s: the network of '%s' has no cost to train it by. Where it gives scores of classes, "
        "'sigma import MODEL.onnx --task classify --into RUN' adds softmax_cross_entropy, for 'from: "
        "RUN'; else the key 'network' beside 'from' has it as 'sigma inspect' shows it, with a cost "
        "at its end, such as mean_squared_error",
        config_place(c, "from"), c->from);
}

/* Opens everything that a run needs. On failure *p has what was opened, for close_parts. */
static sgm_status open_parts(run_parts *p, config *c, const train_arguments *given)
{
    const data_group *data = &c->data;
    p->c = c;
    sample_begin(c);
    SGM_TRY(check_cost(c));
    SGM_TRY(prepare_table(c, given));
    SGM_TRY(train_open_data(c, &data->training, "training", &p->training));
    SGM_TRY(experiment_balance(c, p->training));
    if (data_group_has(data, &data->validation))
        SGM_TRY(train_open_data(c, &data->validation, "validation", &p->validation));
    if (data_group_has(data, &data->test))
        SGM_TRY(train_open_data(c, &data->test, "test", &p->test));
    p->env = experiment_env(c);
    p->trainer = p->env != NULL ? experiment_trainer(p->env, c) : NULL;
    if (p->trainer == NULL)
        return sgm__last_failure();
    SGM_TRY(experiment_feed(p->trainer, c, p->training, p->validation));
    SGM_TRY(sample_attach(p->trainer, c));
    p->follows = sgm__trainer_follows(p->trainer);
    if (p->follows)
        return SGM_OK;
    experiment_warn(c, p->training, p->validation, p->test);
    SGM_TRY(sgm_trainer_on_progress(p->trainer, keep_config, p));
    return add_monitors(p->env, c, given);
}

/* The environment goes first: its trainers use the datasets. */
static void close_parts(run_parts *p)
{
    sgm_env_free(p->env);
    sgm_dataset_free(p->training);
    sgm_dataset_free(p->validation);
    sgm_dataset_free(p->test);
    sample_end();
}

/* Evaluates the trainer on a dataset after the training and prints loss and accuracy. */
static sgm_status measure(const run_parts *p, const config *c, const char *name, sgm_dataset *dataset,
                          sgm_metrics *metrics)
{
    sgm_iterator *iterator = experiment_measuring(dataset, c);
    sgm_status status =
        iterator != NULL ? sgm_trainer_evaluate(p->trainer, iterator, metrics) : sgm__last_failure();
    sgm_iterator_free(iterator);
    if (status == SGM_OK)
        print_metrics(name, metrics);
    return status;
}

/* Loads the parameters of from and start_from, unless the run has a checkpoint of its own to go on from. */
static int start_from_another(const run_parts *p, const train_arguments *given)
{
    const config *c = p->c;
    if (train_has_checkpoint(c))
        return CLI_OK;
    return from_load(p->trainer, c, given->quiet || p->follows) == SGM_OK
               ? CLI_OK
               : report_error(given->command, CLI_FAILED);
}

/* Prints the command that resumes the run, with the launcher where there are several ranks. */
static void tell_how_to_go_on(const run_parts *p, const train_arguments *given)
{
    if (p->replays) {
        printf("stopped; what was left to do is not done by --resume: begin the replay again\n");
        return;
    }
    int ranks = sgm__launched_processes();
    printf("stopped; go on with: ");
    if (ranks > 1)
        printf("%s -n %d ", sgm__launcher(), ranks);
    if (given->begun_by != NULL)
        printf("sigma %s --into %s --resume\n", given->begun_by, p->c->folder);
    else
        printf("sigma train %s --resume\n", p->c->folder);
}

/* Prints how the run ended and returns the exit code. After a whole run the network is measured on
 * validation data, which *validation becomes, and test data. A failure of keep_config comes first: it is why
 * the run was ended. */
static int tell_end(const run_parts *p, const train_arguments *given, sgm_status status,
                    sgm_metrics *validation)
{
    const char *command = given->command;
    sgm_metrics test;
    const config *c = p->c;
    if (p->failure[0] != '\0') {
        complain("sigma %s: %s\n", command, p->failure);
        return CLI_FAILED;
    }
    if (status == SGM_ERROR_INTERRUPTED) {
        if (!p->follows)
            tell_how_to_go_on(p, given);
        return CLI_INTERRUPTED;
    }
    if (status != SGM_OK)
        return report_error(command, CLI_FAILED);
    if (p->follows || p->checks)
        return CLI_OK;
    if ((p->validation != NULL && measure(p, c, "validation", p->validation, validation) != SGM_OK) ||
        (p->test != NULL && measure(p, c, "test", p->test, &test) != SGM_OK))
        return report_error(command, CLI_FAILED);
    printf("checkpoint: %s/checkpoint.safetensors\n", c->folder);
    return CLI_OK;
}

/* Processes started by mpirun without operator=mpi know nothing of each other: each would train the same,
 * into the same folder. */
static void warn_of_launcher(const config *c)
{
    int processes = sgm__launched_processes();
    if (processes > 1 && (c->operator.type == NULL || strcmp(c->operator.type, "mpi") != 0))
        fprintf(
            stderr,
            "sigma train: warning: %d processes were started, but each trains by itself: operator=mpi makes "
            "them one training\n",
            processes);
}

/* The whole training with a configuration that was read. Checks come in the order of their cost, and
 * before there is a folder: data and shapes, the program of a step (sgm_trainer_prepare compiles it),
 * start_from, hooks. Until the run catches signals itself, an interrupt ends the process at once: there is
 * nothing to save. */
int train_configuration(config *c, const train_arguments *given, sgm_metrics *validation)
{
    run_parts parts = {.paused = given->paused,
                       .replays = given->replay != NULL,
                       .checks = given->replay != NULL && given->replay->check};
    int code = CLI_OK;
    if (data_config_is_empty(&c->data.training))
        return usage_error(given->command, "there is no training data; name some as data.training");
    /* Of several processes one alone has the folder, and which is known later. */
    if (sgm__launched_processes() <= 1 && (code = check_folder(c, given)) != CLI_OK)
        return code;
    warn_of_launcher(c);
    signals_outlive_readers();
    signals_end_at_once(given->command, "interrupted before training began: nothing was saved");
    /* What can be wrong without training is found before there is a folder for the run. */
    if (open_parts(&parts, c, given) != SGM_OK || sgm_trainer_prepare(parts.trainer) != SGM_OK) {
        config_fail_at_item(c);
        code = report_error(given->command, CLI_FAILED);
    } else {
        code = start_from_another(&parts, given);
    }
    if (code == CLI_OK && sgm__trainer_check_hooks(parts.trainer) != SGM_OK) {
        config_fail_at_item(c);
        code = report_error(given->command, CLI_USAGE);
    }
    if (code == CLI_OK && !parts.follows)
        code = prepare_folder(c, given);
    if (code == CLI_OK && given->resume && !parts.follows)
        tell_changes(c, given->command);
    if (code == CLI_OK) {
        sgm_status status =
            sgm_env_run(parts.env, .epochs = c->epochs != OPTION_UNSET ? c->epochs : 0,
                        .iterations = c->iterations != OPTION_UNSET ? c->iterations : 0, .folder = c->folder,
                        .checkpoint_every = c->checkpoint_every, .resume = given->resume,
                        .paused = given->paused, .catch_interrupt = true, .replay = given->replay);
        signals_as_before();
        code = tell_end(&parts, given, status, validation);
    }
    close_parts(&parts);
    return code;
}
