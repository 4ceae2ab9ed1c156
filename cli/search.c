/* `sigma search`: many trainings with different values, and which of them are best.
 *
 * The library runs the search (src/environment/search*.c): it draws values, runs trials as trainers of one
 * environment, keeps search.jsonl and results.csv. This file reads search.yaml (config/search_file.c),
 * makes each trial's configuration and fills its trainer (set_up), prints progress (show) and the table,
 * and writes best.yaml. Exit codes and resuming are like those of train.c.
 *
 * The library calls set_up and show on the trials' threads, one call of each at a time; with at_once > 1 the
 * two may run side by side. */
#include "cli.h"
#include "config/search_file.h"
#include "monitors/task_lines.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* A search of more trials begins with a warning. */
#define MANY_TRIALS 100
/* Rows of the table that is printed; results.csv has all. */
#define SHOWN_TRIALS 30
/* The progress line is drawn at most this often. */
#define REDRAW_SECONDS 0.1

static const char usage_text[] =
    "Usage: sigma search FILE.yaml|FOLDER [KEY=VALUE ...] [--folder DIR] [--resume] [--quiet]\n\n"
    "Trains what the file describes with different values, those of its section 'search', and reports "
    "which\nare best:\n\n"
    "  search:\n"
    "    method: tpe\n"
    "    objective: validation.accuracy\n"
    "    trials: 20\n"
    "    values:\n"
    "      optimiser.learning_rate: {from: 1e-4, to: 0.1, scale: log}\n"
    "      data.batch: [16, 32, 64]\n\n"
    "Each trial has a folder below that of the search, like a run of 'sigma train'. KEY=VALUE overrides\n"
    "the file: epochs=20, search.trials=50.\n\n"
    "  --folder DIR   where the search is kept (default runs/NAME-TIME): trial-001 and so on, results.csv, "
    "best.yaml\n"
    "                 (for 'sigma train'), search.jsonl, search.yaml\n"
    "  --resume       go on with the folder's search: what has ended is not repeated, what was interrupted\n"
    "                 goes on from its checkpoint\n"
    "  --quiet        the table only, no progress\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 130 interrupted (everything was "
    "saved).\n\n"
    "Keys (all others are those of 'sigma train'):\n";

static char *full_help(void)
{
    sgm__text out = {0};
    sgm__text_append(&out, "%s", usage_text);
    options_help(&search_table, &out);
    return sgm__text_take(&out);
}

/* What the functions of a search share; `user` of the library's callbacks. */
typedef struct search_run_parts {
    search_file *file;
    sgm_env *env;
    sgm_search *search;
    const char *folder, *objective;     /* of the search; name of the number to compare */
    sgm_dataset *training, *validation; /* shared by all trials; NULL: each trial opens its own */
    bool quiet, is_terminal, drawn;     /* drawn: the progress line is on the terminal */
    double redrawn;                     /* time of its newest drawing */
} search_run_parts;

/* --- trials --- */

/* Whether a value of the search changes the datasets themselves, and not only how they are iterated. If
 * none does, all trials share one copy. The seed counts, since it decides the order of shuffled data. */
static bool data_vary(const search_file *f)
{
    static const char *const harmless[] = {"data.batch", "data.shuffle", "data.drop_last", "data.augment",
                                           "data.prefetch_threads"};
    for (size_t i = 0; i < f->value_count; i++) {
        const char *name = f->values[i].name;
        bool varies = strncmp(name, "data", 4) == 0 || strcmp(name, "seed") == 0;
        for (size_t k = 0; k < sizeof harmless / sizeof *harmless; k++)
            varies &= strcmp(name, harmless[k]) != 0;
        if (varies)
            return true;
    }
    return false;
}

/* Opens the training data and, if any is named, the validation data. The caller frees both, also on
 * failure. */
static sgm_status open_data(config *c, sgm_dataset **training, sgm_dataset **validation)
{
    SGM_TRY(experiment_prepare(c, NULL));
    SGM_TRY(train_open_data(c, &c->data.training, "training", training));
    return !data_group_has(&c->data, &c->data.validation)
               ? SGM_OK
               : train_open_data(c, &c->data.validation, "validation", validation);
}

/* A trial may have another network than the base: shared data must fit each. */
static sgm_status check_shapes(config *c, sgm_dataset *training, sgm_dataset *validation)
{
    SGM_TRY(experiment_prepare(c, NULL));
    SGM_TRY(experiment_check(c->network, training));
    return validation != NULL ? experiment_check(c->network, validation) : SGM_OK;
}

/* Fills a trial's trainer from its configuration and writes config.yaml into its folder, so that the trial
 * can be used like any run. The trainer keeps references to the datasets, so those opened here may be
 * freed. A trial that has a checkpoint goes on from it; start_from is for its beginning. */
static sgm_status fill_trainer(const search_run_parts *p, config *c, const sgm_trial *trial,
                               sgm_trainer *trainer)
{
    sgm_dataset *training = NULL, *validation = NULL;
    sgm_status status = p->training != NULL ? check_shapes(c, p->training, p->validation)
                                            : open_data(c, &training, &validation);
    if (status == SGM_OK)
        status = experiment_balance(c, p->training != NULL ? p->training : training);
    if (status == SGM_OK)
        status = experiment_fill(trainer, c);
    if (status == SGM_OK)
        status = experiment_feed(trainer, c, p->training != NULL ? p->training : training,
                                 p->training != NULL ? p->validation : validation);
    sgm_dataset_free(training);
    sgm_dataset_free(validation);
    SGM_TRY(status);
    SGM_TRY(sgm__make_folders(trial->folder));
    sgm__free(c->folder);
    c->folder = sgm__strdup(trial->folder);
    SGM_TRY(c->folder != NULL ? train_save_config(c) : SGM_ERROR_MEMORY);
    if (train_has_checkpoint(c))
        return SGM_OK;
    return from_load(trainer, c, true);
}

/* The library's callback for a trial that begins or goes on. Each value is marked as used
 * (sgm_trial_text): the library would set the others on the trainer itself, but all of them are part of
 * the configuration here. */
static sgm_status set_up(void *user, const sgm_trial *trial, sgm_trainer *trainer)
{
    search_run_parts *p = user;
    config c;
    for (size_t i = 0; i < trial->value_count; i++)
        sgm_trial_text(trial, trial->values[i].name); /* all are set here */
    SGM_TRY(search_file_config(p->file, trial->values, trial->value_count, &c));
    sgm_status status = fill_trainer(p, &c, trial, trainer);
    config_free(&c);
    return status;
}

/* --- progress --- */

static size_t terminal_width(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/* Removes the progress line, before something else is printed. */
static void clear_line(search_run_parts *p)
{
    if (p->drawn)
        fputs("\r\033[K", stdout);
    p->drawn = false;
}

/* "learning_rate 0.01, batch 32": the last part of each key where that is unambiguous among the values,
 * else the whole key. */
static void append_values(sgm__text *line, const sgm_trial *trial)
{
    for (size_t i = 0; i < trial->value_count; i++) {
        const char *name = trial->values[i].name, *dot = strrchr(name, '.');
        bool clear = dot != NULL;
        for (size_t k = 0; k < trial->value_count && clear; k++) {
            const char *other = strrchr(trial->values[k].name, '.');
            clear = k == i || strcmp(other != NULL ? other + 1 : trial->values[k].name, dot + 1) != 0;
        }
        sgm__text_append(line, "%s%s %s", i > 0 ? ", " : "", clear ? dot + 1 : name, trial->values[i].brief);
    }
}

/* The estimated time left; negative: not known. */
static void append_left(sgm__text *line, double seconds)
{
    if (seconds < 0)
        return;
    char text[64];
    sgm__text_append(line, ", %s left", sgm_clock_text(seconds, text, sizeof text));
}

/* The line that is redrawn in place while trials run: how many have ended, the newest trial's epoch and
 * objective, the best so far, the time left. It is cut to the width of the terminal: a wrapped line could
 * not be removed by a carriage return. */
static void draw(search_run_parts *p, const sgm_search_progress *progress)
{
    sgm__text line = {0};
    const sgm_trial *trial = progress->trial;
    sgm__text_append(&line, "[%zu/%zu] %s: epoch %lld", progress->ended, progress->trials, trial->name,
                     (long long)trial->epochs);
    if (!isnan(progress->objective))
        sgm__text_append(&line, ", %s %.6g", p->objective, progress->objective);
    if (progress->best != NULL)
        sgm__text_append(&line, ", best %.6g", progress->best->objective);
    append_left(&line, progress->seconds_left);
    char *text = sgm__text_take(&line);
    size_t length = text != NULL ? strlen(text) : 0, width = terminal_width();
    clear_line(p);
    if (text != NULL)
        fwrite(text, 1, length < width ? length : width - 1, stdout);
    fflush(stdout);
    p->drawn = true;
    p->redrawn = sgm__now();
    sgm__free(text);
}

/* The line that stays when a trial has ended. */
static void print_trial(search_run_parts *p, const sgm_search_progress *progress)
{
    sgm__text line = {0};
    const sgm_trial *trial = progress->trial;
    sgm__text_append(&line, "[%zu/%zu] %s: ", progress->ended, progress->trials, trial->name);
    append_values(&line, trial);
    if (trial->state == SGM_TRIAL_FAILED)
        sgm__text_append(&line, ": failed: %s", trial->error);
    else
        sgm__text_append(&line, ": %s %.6g after %lld epoch%s%s, %.1f s", p->objective, trial->objective,
                         (long long)trial->epochs, trial->epochs == 1 ? "" : "s",
                         trial->state == SGM_TRIAL_DROPPED ? ", pruned" : "", trial->seconds);
    append_left(&line, progress->seconds_left);
    char *text = sgm__text_take(&line);
    clear_line(p);
    if (text != NULL)
        puts(text);
    fflush(stdout);
    sgm__free(text);
}

/* When a rung of successive halving has ended: how many trials go on, and to how many epochs. */
static void print_rung(search_run_parts *p, const sgm_search_progress *progress)
{
    int64_t trials, epochs;
    clear_line(p);
    if (sgm_search_rung(p->search, progress->rung + 1, &trials, &epochs) && progress->best != NULL)
        printf("rung %zu of %zu: best %s of %s; the best %lld go on to %lld epochs\n", progress->rung + 1,
               progress->rungs, p->objective, progress->best->name, (long long)trials, (long long)epochs);
    fflush(stdout);
}

/* The library's callback for progress: a line that stays for each trial that ends and each rung, and on a
 * terminal a line that is redrawn at the end of epochs. A trial that ends waiting (for the next rung) is
 * no result yet. Always true: the search goes on. */
static bool show(void *user, const sgm_search_progress *progress)
{
    search_run_parts *p = user;
    bool ended = progress->event == SGM_SEARCH_TRIAL_ENDS && progress->trial->state != SGM_TRIAL_WAITING;
    if (p->quiet)
        return true;
    if (ended)
        print_trial(p, progress);
    else if (progress->event == SGM_SEARCH_RUNG_ENDS)
        print_rung(p, progress);
    else if (progress->event == SGM_SEARCH_EPOCH && p->is_terminal &&
             sgm__now() - p->redrawn >= REDRAW_SECONDS)
        draw(p, progress);
    return true;
}

/* --- plan and results --- */

/* One line before the search: its method, trials and epochs of each rung, how many run at once, objective,
 * folder. A search of very many trainings gets a warning even with --quiet. */
static void print_plan(const search_run_parts *p)
{
    int64_t trials, epochs;
    size_t count = sgm_search_count(p->search);
    const search_config *own = &p->file->root.search;
    if (count > MANY_TRIALS)
        complain("sigma search: warning: these are %zu trainings\n", count);
    if (p->quiet)
        return;
    printf("%s: ", own->method);
    for (size_t i = 0; sgm_search_rung(p->search, i, &trials, &epochs); i++) {
        printf("%s%lld trial%s", i > 0 ? ", then " : "", (long long)trials, trials == 1 ? "" : "s");
        if (epochs > 0)
            printf(" to %lld epoch%s", (long long)epochs, epochs == 1 ? "" : "s");
    }
    if (own->at_once > 1)
        printf(", %lld at once", (long long)own->at_once);
    printf("; objective %s; folder %s\n", p->objective, p->folder);
    fflush(stdout);
}

/* Prints the head and the first SHOWN_TRIALS rows of the table; `length` is where they end in the text. */
static void print_table(const search_run_parts *p)
{
    char *text = sgm_search_text(p->search);
    size_t lines = 0, more = 0, length = 0;
    for (size_t i = 0; text != NULL && text[i] != '\0'; i++) {
        if (text[i] != '\n')
            continue;
        if (lines <= SHOWN_TRIALS) /* and the head */
            length = i + 1;
        more += ++lines > SHOWN_TRIALS + 1;
    }
    if (!p->quiet)
        printf("\n");
    if (text != NULL)
        fwrite(text, 1, length, stdout);
    if (more > 0)
        printf("and %zu more in %s/results.csv\n", more, p->folder);
    sgm_string_free(text);
}

/* "importance: optimiser.learning_rate 0.81, data.batch 0.06": the largest first. Nothing if there is one
 * value only, or if too few trials have ended. */
static void print_importance(const search_run_parts *p)
{
    double shares[SGM_SEARCH_VALUES];
    size_t count = p->file->value_count;
    if (count < 2 || sgm_search_importance(p->search, shares, SGM_SEARCH_VALUES) != SGM_OK)
        return;
    printf("importance:");
    for (size_t shown = 0; shown < count; shown++) {
        size_t largest = 0;
        for (size_t i = 1; i < count; i++)
            largest = shares[i] > shares[largest] ? i : largest;
        printf("%s %s %.2f", shown > 0 ? "," : "", p->file->values[largest].name, shares[largest]);
        shares[largest] = -1;
    }
    printf("\n");
}

/* Writes best.yaml, the experiment with the best values, for `sigma train`; without a folder, as it is a
 * new run. */
static sgm_status save_best(const search_run_parts *p)
{
    const sgm_trial *best = sgm_search_best(p->search);
    config c;
    SGM_TRY(search_file_config(p->file, best->values, best->value_count, &c));
    sgm__free(c.folder);
    c.folder = NULL;
    sgm_status status = save_text(p->folder, "best.yaml", config_text(&c));
    if (status == SGM_OK)
        printf("best: %s, %s %.6g: %s/best.yaml\n", best->name, p->objective, best->objective, p->folder);
    config_free(&c);
    return status;
}

/* --- the folder --- */

/* Writes search.yaml, from which `sigma search FOLDER --resume` reads the search again. One that goes on
 * keeps the file that it began with: whether this is the same search is known only when its record is read.
 */
static sgm_status save_search(const search_run_parts *p, bool goes_on)
{
    if (goes_on && has_file(p->folder, "search.yaml"))
        return SGM_OK;
    SGM_TRY(sgm__make_folders(p->folder));
    return save_text(p->folder, "search.yaml", search_file_text(p->file));
}

/* The library compares the values of a resumed search; the experiment around them is compared here with
 * the folder's search.yaml. Trials of another experiment are nothing to go on with, so a difference is an
 * error. */
static sgm_status compare_experiments(const search_run_parts *p)
{
    static const char *const free_keys[] = {"name", "folder", "threads", "operator.threads",
                                            "checkpoint_every"};
    char *path = sgm__format("%s/search.yaml", p->folder);
    search_file old;
    if (path == NULL || !sgm__file_exists(path)) {
        sgm__free(path);
        return SGM_OK;
    }
    sgm_status status = search_file_load(&old, path, NULL, 0);
    sgm__free(path);
    SGM_TRY(status);
    sgm__text changes = {0};
    options_compare(&config_table, &old.base, &p->file->base, free_keys, 5, &changes);
    if (changes.length > 0)
        status =
            sgm_fail(SGM_ERROR_STATE, "'%s' has a search of another experiment; choose another folder:\n%.*s",
                     p->folder, (int)changes.length - 1, changes.data);
    sgm__text_free(&changes);
    search_file_free(&old);
    return status;
}

/* --- all of it --- */

/* Makes every trial's configuration once, so that a mistake in the last trial is found before the first is
 * trained. Trials of TPE that have no values yet are left to their beginning. */
static sgm_status check_trials(const search_run_parts *p)
{
    for (size_t i = 0; i < sgm_search_count(p->search); i++) {
        const sgm_trial *trial = sgm_search_trial_at(p->search, i);
        config c;
        if (search_file_config(p->file, trial->values, trial->value_count, &c) != SGM_OK)
            return sgm__fail_within("%s", trial->name);
        config_free(&c);
    }
    return SGM_OK;
}

/* Makes environment and search. What was not given is 0 for the library, which then takes its default. */
static sgm_status make_search(search_run_parts *p, bool resume)
{
    const config *c = &p->file->base;
    const search_config *own = &p->file->root.search;
    sgm_search_options options = {
        .struct_size = sizeof options,
        .method = search_file_method(p->file),
        .objective = p->objective,
        .goal = search_file_goal(p->file),
        .trials = own->trials != OPTION_UNSET ? own->trials : 0,
        .startup_trials = own->startup_trials != OPTION_UNSET ? own->startup_trials : 0,
        .pruning = search_file_pruning(p->file),
        .prune_after_trials = own->prune_after_trials != OPTION_UNSET ? own->prune_after_trials : 0,
        .prune_after_epochs = own->prune_after_epochs != OPTION_UNSET ? own->prune_after_epochs : 0,
        .seed = (uint64_t)(own->seed != OPTION_UNSET ? own->seed : c->seed),
        .factor = isnan(own->factor) ? 0 : own->factor,
        .minimum_epochs = own->minimum_epochs != OPTION_UNSET ? own->minimum_epochs : 0,
        .at_once = own->at_once,
        .epochs = c->epochs != OPTION_UNSET ? c->epochs : 0,
        .iterations = c->iterations != OPTION_UNSET ? c->iterations : 0,
        .checkpoint_every = c->checkpoint_every,
        .folder = p->folder,
        .resume = resume,
        .catch_interrupt = true,
        .set_up = set_up,
        .progress = show,
        .user = p};
    memcpy(options.values, p->file->values, p->file->value_count * sizeof *options.values);
    p->env = experiment_env(c);
    p->search = p->env != NULL ? sgm_search_create_with(p->env, &options) : NULL;
    return p->search != NULL ? check_trials(p) : sgm__last_failure();
}

/* Prints the table, saves the best configuration, and returns the exit code. What was read of a damaged
 * record is no result. The error of the search is copied first: the calls in between may replace it. */
static int finish(search_run_parts *p, sgm_status status)
{
    char failure[1024];
    snprintf(failure, sizeof failure, "%s", sgm_last_error());
    clear_line(p);
    if (status != SGM_ERROR_FORMAT && sgm_search_best(p->search) != NULL) {
        print_table(p);
        print_importance(p);
        if (save_best(p) != SGM_OK)
            return report_error("search", CLI_FAILED);
    }
    if (status == SGM_ERROR_INTERRUPTED) {
        printf("stopped; go on with: sigma search %s --resume\n", p->folder);
        return CLI_INTERRUPTED;
    }
    if (status == SGM_OK)
        return CLI_OK;
    fflush(stdout);
    complain("sigma search: %s\n", failure);
    return CLI_FAILED;
}

/* Everything that can be wrong is found before the folder changes: the search and its trials, the data, a
 * folder that belongs to another search. */
static int run_parts(search_run_parts *p, bool resume)
{
    if (make_search(p, resume) != SGM_OK)
        return report_error("search", CLI_USAGE);
    if (!data_vary(p->file) && open_data(&p->file->base, &p->training, &p->validation) != SGM_OK)
        return report_error("search", CLI_FAILED);
    bool there = has_file(p->folder, "search.jsonl");
    if (there && !resume)
        return usage_error(
            "search", "%s has a search already: --resume goes on with it, --folder names another", p->folder);
    if (!there && resume)
        printf("%s has no search to resume: it begins anew\n", p->folder);
    if ((there && compare_experiments(p) != SGM_OK) || save_search(p, there) != SGM_OK)
        return report_error("search", CLI_FAILED);
    print_plan(p);
    signals_outlive_readers();
    return finish(p, sgm_search_run(p->search));
}

/* A folder that was made here is removed if nothing has come of it; rmdir removes only an empty one. */
static int search(search_file *f, const char *folder, bool resume, bool quiet)
{
    config *base = &f->base;
    bool made = false;
    if (data_config_is_empty(&base->data.training))
        return usage_error("search", "there is no training data; name some as data.training");
    if (folder == NULL && base->folder == NULL) {
        if (resume)
            return usage_error("search", "--resume needs the folder of the search: --folder DIR");
        if (train_new_folder(base, "--folder") != SGM_OK)
            return report_error("search", CLI_FAILED);
        made = true;
    }
    const char *objective = f->root.search.objective;
    if (objective == NULL)
        objective =
            !data_group_has(&base->data, &base->data.validation) ? "training.loss" : "validation.loss";
    search_run_parts p = {.file = f,
                          .folder = folder != NULL ? folder : base->folder,
                          .objective = objective,
                          .quiet = quiet,
                          .is_terminal = sgm__is_terminal(STDOUT_FILENO)};
    int code = run_parts(&p, resume);
    sgm_search_free(p.search);
    sgm_env_free(p.env);
    sgm_dataset_free(p.training);
    sgm_dataset_free(p.validation);
    if (made && code != CLI_OK)
        rmdir(p.folder); /* only when it is empty */
    return code;
}

/* The first word is the file or the folder of a search, all others are KEY=VALUE. With a folder, that is
 * where the search goes on, unless --folder names another. */
static int search_words(const arguments *a, const char *folder, bool resume, bool quiet)
{
    if (a->word_count == 0)
        return usage_error("search", "expected a file that describes what to search");
    bool whole = sgm__is_folder(a->words[0]);
    char *file = file_of(a->words[0], "search.yaml");
    search_file f;
    int code = CLI_USAGE;
    if (file == NULL || search_file_load(&f, file, a->words + 1, a->word_count - 1) != SGM_OK) {
        sgm__free(file);
        return report_error("search", code);
    }
    code = search(&f, folder == NULL && whole ? a->words[0] : folder, resume, quiet);
    search_file_free(&f);
    sgm__free(file);
    return code;
}

int search_run(int argc, char **argv)
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
        code = search_words(&a, folder, resume, quiet);
    arguments_free(&a);
    sgm_string_free(help);
    return code;
}
