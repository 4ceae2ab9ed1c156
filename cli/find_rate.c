/* `sigma find-rate`: proposes a learning rate to begin with.
 *
 * Reads the configuration of a training, makes its trainer (config/experiment.c) and calls
 * sgm_trainer_find_learning_rate (src/loop/rate_finder.c), which trains with rising rates and finds where the
 * loss falls fastest (the range test of Smith, 2015). This file prints the curve and the proposal, and
 * saves the points as JSON lines. A run's folder is only read, apart from the curve. */
#include "cli.h"

#include <math.h>
#include <stdio.h>

/* Size of the drawn curve in characters. */
#define COLUMNS 64
#define ROWS 14

static const char usage_text[] =
    "Usage: sigma find-rate FILE.yaml|FOLDER [KEY=VALUE ...] [--minimum R] [--maximum R] [--iterations N]\n"
    "                       [--curve FILE]\n\n"
    "Trains what the file describes for a moment, with learning rates that rise, shows the loss over the\n"
    "rate, and proposes the rate at which it falls fastest. With the folder of a run it begins at that "
    "run's\n"
    "checkpoint. The run itself is not changed.\n\n"
    "  --minimum R     the first rate (default 1e-7)\n"
    "  --maximum R     the last one (default 10), unless training diverges before\n"
    "  --iterations N  steps from one to the other (default 100)\n"
    "  --curve FILE    a line of JSON for each step: iteration, rate, loss, smoothed (default with a "
    "folder:\n"
    "                  find-rate.jsonl in it)\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.\n";

/* What was asked for, and the files that belong to it. The last three texts are owned, the others are
 * argv's. */
typedef struct find_rate_options {
    const char *file; /* a configuration or the folder of a run, as it was given */
    const char *curve;
    int64_t iterations;
    double minimum, maximum; /* bounds of the rate; 0: the library's default */
    /* Files in the folder of a run. checkpoint NULL: training begins with new parameters; own_curve: where
     * the curve is saved if --curve names no file. */
    char *config, *checkpoint, *own_curve;
} find_rate_options;

/* Finds the configuration, and in a folder also the checkpoint to begin at and the default file of the
 * curve. */
static sgm_status find_files(find_rate_options *options)
{
    options->config = file_of(options->file, "config.yaml");
    if (options->config == NULL || !sgm__is_folder(options->file))
        return options->config != NULL ? SGM_OK : sgm_last_status();
    options->own_curve = file_of(options->file, "find-rate.jsonl");
    if (options->own_curve == NULL)
        return sgm_last_status();
    if (has_file(options->file, "checkpoint.safetensors")) {
        options->checkpoint = file_of(options->file, "checkpoint.safetensors");
        if (options->checkpoint == NULL)
            return sgm_last_status();
    }
    if (options->curve == NULL)
        options->curve = options->own_curve;
    return SGM_OK;
}

/* Prints the curve and the proposal. No rate is proposed where the loss does not fall by clearly more than
 * it differs between one minibatch and the next; then both numbers are printed. */
static void show(const find_rate_options *options, const sgm_rate_curve *curve)
{
    char *text = sgm_rate_curve_text(curve, COLUMNS, ROWS);
    if (text != NULL)
        printf("%s\n", text);
    sgm_string_free(text);
    double last = curve->points[curve->count - 1].rate;
    printf("%zu iterations, %s %.3g\n", curve->count,
           curve->diverged ? "training diverged at a learning rate of" : "up to a learning rate of", last);
    if (isnan(curve->proposed))
        printf("no rate can be proposed: the loss does not fall clearly, by %.3g where that of one minibatch "
               "and the next differs by %.3g;\ntry other bounds, larger minibatches or more iterations, and "
               "look at network and data\n",
               curve->fall, curve->noise);
    else
        printf("the loss falls fastest at %.3g (O), and is lowest at %.3g; try:\n"
               "  sigma train %s optimiser.learning_rate=%.2g\n",
               curve->proposed, curve->lowest, options->file, curve->proposed);
    if (options->curve != NULL)
        printf("curve: %s\n", options->curve);
}

/* Makes the trainer, finds the curve, and saves and prints it. The trainer belongs to the environment and
 * ends with it. */
static sgm_status find_with(const find_rate_options *options, const config *c, sgm_env *env,
                            sgm_dataset *training)
{
    sgm_trainer *trainer = experiment_trainer(env, c);
    if (trainer == NULL)
        return sgm__last_failure();
    SGM_TRY(experiment_feed(trainer, c, training, NULL));
    if (options->checkpoint != NULL)
        SGM_TRY(sgm_trainer_load(trainer, options->checkpoint));
    else
        SGM_TRY(from_load(trainer, c, true));
    sgm_rate_curve *curve = sgm_trainer_find_learning_rate(
        trainer, .minimum = options->minimum, .maximum = options->maximum, .iterations = options->iterations);
    if (curve == NULL)
        return sgm__last_failure();
    sgm_status status = options->curve != NULL ? sgm_rate_curve_save(curve, options->curve) : SGM_OK;
    if (status == SGM_OK)
        show(options, curve);
    sgm_rate_curve_free(curve);
    return status;
}

/* Opens data and environment; returns an exit code. */
static int find(const find_rate_options *options, config *c)
{
    sgm_dataset *training = NULL;
    if (data_config_is_empty(&c->data.training))
        return usage_error("find-rate", "there is no training data; name some as data.training");
    sgm_status status = experiment_prepare(c, options->checkpoint);
    if (status == SGM_OK)
        status = train_open_data(c, &c->data.training, "training", &training);
    if (status == SGM_OK)
        status = experiment_balance(c, training);
    sgm_env *env = status == SGM_OK ? experiment_env(c) : NULL;
    if (status == SGM_OK)
        status = env != NULL ? find_with(options, c, env, training) : sgm__last_failure();
    int code = status == SGM_OK ? CLI_OK : report_error("find-rate", CLI_FAILED);
    sgm_env_free(env);
    sgm_dataset_free(training);
    return code;
}

static int find_in_file(find_rate_options *options, const arguments *a)
{
    config c;
    int code;
    if (find_files(options) != SGM_OK)
        return report_error("find-rate", CLI_FAILED);
    if (!overrides_are_single("find-rate", a->words + 1, a->word_count - 1, &code))
        return code;
    if (config_load(&c, options->config, a->words + 1, a->word_count - 1) != SGM_OK)
        return report_error("find-rate", CLI_USAGE);
    code = find(options, &c);
    config_free(&c);
    return code;
}

/* Frees what find_files put into the options, on every way out. */
int find_rate_run(int argc, char **argv)
{
    find_rate_options options = {0};
    const argument_rule rules[] = {{"--minimum", ARGUMENT_NUMBER, &options.minimum},
                                   {"--maximum", ARGUMENT_NUMBER, &options.maximum},
                                   {"--iterations", ARGUMENT_COUNT, &options.iterations},
                                   {"--curve", ARGUMENT_TEXT, &options.curve}};
    arguments a = {.rules = rules, .rule_count = 4, .help = usage_text};
    int code;
    if (arguments_read(&a, argc, argv, &code)) {
        options.file = a.word_count > 0 ? a.words[0] : NULL;
        code = options.file != NULL
                   ? find_in_file(&options, &a)
                   : usage_error("find-rate", "expected a file that describes what to train");
    }
    arguments_free(&a);
    sgm__free(options.config);
    sgm__free(options.checkpoint);
    sgm__free(options.own_curve);
    return code;
}
