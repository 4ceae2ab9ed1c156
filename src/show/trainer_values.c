/* What a trainer shows of itself: values that can only be read, such as its position, the loss, running time,
 * name and seed, and the metrics of validation.
 *
 * Numbers are computed when somebody reads them, from the tables below: a row is the option that
 * registries show and a function of the trainer. Facts (name, handler, precision, seed) never change and
 * are stored in the registry, as are metrics of validation, which change only when a pass has measured.
 * sgm__trainer_publish fills the registry of a new trainer. */
#include "registry/pattern.h"
#include "show/show.h"
#include "show/trainer_publish.h"
#include "trainer/trainer.h"

#include <math.h>

const char *sgm__option_effect(const sgm_option *option)
{
    return option != NULL && option->effect != NULL ? option->effect : "from the next iteration on";
}

/* --- numbers --- */

/* A value that is computed on reading; integers too are computed as doubles, which hold them exactly up to
 * 2^53. */
typedef struct number_row {
    sgm_option option;
    double (*get)(const sgm_trainer *trainer);
} number_row;

static double get_epoch(const sgm_trainer *trainer)
{
    return (double)sgm__position_of(trainer)->epoch;
}

static double get_iteration(const sgm_trainer *trainer)
{
    return (double)sgm__position_of(trainer)->iteration;
}

static double get_batch(const sgm_trainer *trainer)
{
    return (double)sgm__position_of(trainer)->batch;
}

static double get_updates(const sgm_trainer *trainer)
{
    return (double)sgm__position_of(trainer)->updates;
}

/* Seconds of running, without pauses: those of earlier stretches and of the present one. A replica runs
 * when its owner does. */
static double get_running_time(const sgm_trainer *trainer)
{
    trainer = sgm__sharing_of(trainer)->owner;
    return sgm__progress_of(trainer)->running_time +
           (sgm__progress_of(trainer)->running_since > 0
                ? sgm__now() - sgm__progress_of(trainer)->running_since
                : 0);
}

/* The sums behind training.loss and training.accuracy: of the present epoch, or, until it has its first
 * minibatch, of the epoch before. */
static const sgm__metric_sums *sums_of(const sgm_trainer *trainer)
{
    const sgm__training_position *position = sgm__position_of(trainer);
    return position->sums.examples > 0 ? &position->sums : &sgm__progress_of(trainer)->last_epoch;
}

/* Means over the examples of these sums. */
static double get_loss(const sgm_trainer *trainer)
{
    return sgm__metrics_of(sums_of(trainer)).loss;
}

static double get_accuracy(const sgm_trainer *trainer)
{
    return sgm__metrics_of(sums_of(trainer)).accuracy;
}

static double get_newest_loss(const sgm_trainer *trainer)
{
    return sgm__progress_of(trainer)->newest_loss;
}

/* The learning rate of the next update, by the schedule; NaN without an optimiser. */
static double get_current_rate(const sgm_trainer *trainer)
{
    return sgm__learner_of(trainer)->optimiser != NULL
               ? sgm__trainer_learning_rate(trainer, sgm__progress_of(trainer)->batches)
               : NAN;
}

static double get_best_loss(const sgm_trainer *trainer)
{
    return sgm__position_of(trainer)->best_loss;
}

static double get_bad_epochs(const sgm_trainer *trainer)
{
    return (double)sgm__position_of(trainer)->bad_epochs;
}

static double get_reductions(const sgm_trainer *trainer)
{
    return (double)sgm__position_of(trainer)->reductions;
}

static const number_row trainer_rows[] = {
    {{.name = "epoch", .kind = SGM_KIND_INTEGER, .read_only = true, .doc = "epochs that have ended"},
     get_epoch},
    {{.name = "iteration", .kind = SGM_KIND_INTEGER, .read_only = true, .doc = "minibatches trained on"},
     get_iteration},
    {{.name = "batch", .kind = SGM_KIND_INTEGER, .read_only = true, .doc = "minibatches of this epoch"},
     get_batch},
    {{.name = "updates", .kind = SGM_KIND_INTEGER, .read_only = true, .doc = "updates of the parameters"},
     get_updates},
    {{.name = "running_time",
      .kind = SGM_KIND_NUMBER,
      .unit = "seconds",
      .read_only = true,
      .doc = "time spent running, without pauses"},
     get_running_time},
};
static const number_row metric_rows[] = {
    {{.name = "loss",
      .kind = SGM_KIND_NUMBER,
      .read_only = true,
      .doc = "mean over the examples of this epoch so far, or of the one that has just ended"},
     get_loss},
    {{.name = "accuracy",
      .kind = SGM_KIND_NUMBER,
      .read_only = true,
      .doc = "share of correct predictions of this epoch so far, or of the one that has just ended"},
     get_accuracy},
};
static const number_row optimiser_rows[] = {
    {{.name = "loss",
      .kind = SGM_KIND_NUMBER,
      .read_only = true,
      .doc = "total cost of the newest minibatch"},
     get_newest_loss},
    {{.name = "current_learning_rate",
      .kind = SGM_KIND_NUMBER,
      .read_only = true,
      .doc = "learning rate of the next update, schedule included"},
     get_current_rate},
};

static const number_row plateau_rows[] = {
    {{.name = "best_loss",
      .kind = SGM_KIND_NUMBER,
      .read_only = true,
      .doc = "plateau: lowest loss of an epoch so far"},
     get_best_loss},
    {{.name = "bad_epochs",
      .kind = SGM_KIND_INTEGER,
      .unit = "epochs",
      .read_only = true,
      .doc = "plateau: without a new lowest loss"},
     get_bad_epochs},
    {{.name = "reductions",
      .kind = SGM_KIND_INTEGER,
      .read_only = true,
      .doc = "plateau: of the learning rate so far"},
     get_reductions},
};

/* `row` of the entry is its number_row. */
static sgm_status get_number(const sgm__bound *bound, sgm_content *content)
{
    const number_row *row = bound->row;
    double value = row->get(bound->trainer);
    *content = row->option.kind == SGM_KIND_INTEGER ? sgm_integer_content((int64_t)value)
                                                    : sgm_number_content(value);
    return SGM_OK;
}

static const sgm__access number_access = {.get = get_number};

#define BIND(trainer, registry, prefix, rows)                                                                \
    bind_rows(trainer, registry, prefix, rows, sizeof(rows) / sizeof *(rows))
static sgm_status bind_rows(sgm_trainer *trainer, sgm_registry *registry, const char *prefix,
                            const number_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        SGM_TRY(sgm__publish_value(trainer, registry, prefix, &rows[i].option, &number_access, &rows[i]));
    return SGM_OK;
}

/* --- facts --- */

static const sgm_option name_row = {
    .name = "name", .kind = SGM_KIND_TEXT, .read_only = true, .doc = "of the trainer"};
static const sgm_option handler_row = {
    .name = "handler", .kind = SGM_KIND_TEXT, .read_only = true, .doc = "what computes"};
static const sgm_option precision_row = {.name = "precision",
                                         .kind = SGM_KIND_TEXT,
                                         .read_only = true,
                                         .doc = "of results, and of parameters (float32 with bfloat16)"};
static const sgm_option seed_row = {.name = "seed",
                                    .kind = SGM_KIND_INTEGER,
                                    .read_only = true,
                                    .doc = "of all random numbers, with a sign if it is 2^63 or more"};

/* --- metrics of validation --- */

static const sgm_option loss_row = {.name = "loss",
                                    .kind = SGM_KIND_NUMBER,
                                    .read_only = true,
                                    .doc = "mean over the examples of the newest validation"};
static const sgm_option accuracy_row = {.name = "accuracy",
                                        .kind = SGM_KIND_NUMBER,
                                        .read_only = true,
                                        .doc = "share of correct predictions of the newest validation"};

/* Training data and each validation set have a child of the registry, which metrics of hooks use, too. A
 * name that is no part of an identifier becomes one (sgm__identifier_part). */
sgm_status sgm__trainer_data_registry(sgm_trainer *trainer, const char *data, sgm_registry **registry)
{
    char *part = sgm__identifier_part(data);
    sgm_status status = part != NULL
                            ? sgm__publish_child(sgm__registry_of(trainer), part, "validation", registry)
                            : SGM_ERROR_MEMORY;
    sgm__free(part);
    return status;
}

/* Sets loss and accuracy of one data set; the entries are made when it is measured for the first time. */
static sgm_status publish_metrics(sgm_trainer *trainer, const sgm_named_metrics *measured)
{
    sgm_registry *metrics;
    SGM_TRY(sgm__trainer_data_registry(trainer, measured->name, &metrics));
    if (!sgm_registry_has(metrics, loss_row.name)) {
        SGM_TRY(sgm_registry_define(metrics, &loss_row));
        SGM_TRY(sgm_registry_define(metrics, &accuracy_row));
    }
    SGM_TRY(sgm_registry_set_own(metrics, loss_row.name, sgm_number_content(measured->metrics.loss)));
    return sgm_registry_set_own(metrics, accuracy_row.name, sgm_number_content(measured->metrics.accuracy));
}

/* VALIDATION.loss and VALIDATION.accuracy have entries once the data set was measured. */
sgm_status sgm__trainer_publish_metrics(sgm_trainer *trainer)
{
    sgm__trainer_data *data = sgm__data_of(trainer);
    for (size_t i = 0; i < data->validation_count; i++)
        if (data->metrics[i].metrics.examples > 0)
            SGM_TRY(publish_metrics(trainer, &data->metrics[i]));
    return SGM_OK;
}

/* Adds an entry that never changes. */
static sgm_status define_fact(sgm_registry *registry, const sgm_option *option, sgm_content content)
{
    SGM_TRY(sgm_registry_define(registry, option));
    return sgm_registry_set_own(registry, option->name, content);
}

/* The registry has signed integers: a seed of 2^63 or more is shown as the negative number with the same
 * bits. */
static sgm_status define_facts(sgm_trainer *trainer)
{
    const sgm__trainer_settings *settings = sgm__settings_of(trainer);
    sgm_registry *root = sgm__registry_of(trainer);
    int64_t seed;
    memcpy(&seed, &settings->seed, sizeof seed);
    SGM_TRY(define_fact(root, &name_row, sgm_text_content(sgm_trainer_name(trainer))));
    SGM_TRY(define_fact(root, &handler_row, sgm_text_content(sgm_handler_name(settings->handler))));
    SGM_TRY(define_fact(root, &precision_row, sgm_text_content(sgm_dtype_name(settings->precision))));
    return define_fact(root, &seed_row, sgm_integer_content(seed));
}

/* Binds the rows of all tables where their identifiers say: at the root, in `training`, `optimiser` and
 * `optimiser.schedule`. */
static sgm_status publish_values(sgm_trainer *trainer)
{
    sgm_registry *child, *root = sgm__registry_of(trainer);
    SGM_TRY(BIND(trainer, root, "", trainer_rows));
    SGM_TRY(define_facts(trainer));
    SGM_TRY(sgm__publish_child(root, "training", NULL, &child));
    SGM_TRY(BIND(trainer, child, "training.", metric_rows));
    SGM_TRY(sgm__publish_child(root, "optimiser", "optimiser", &child));
    SGM_TRY(BIND(trainer, child, "optimiser.", optimiser_rows));
    SGM_TRY(sgm__publish_child(child, "schedule", "schedule", &child));
    return BIND(trainer, child, "optimiser.schedule.", plateau_rows);
}

/* The network, states and iterators get their entries when the trainer gets these. */
sgm_status sgm__trainer_publish(sgm_trainer *trainer)
{
    sgm_registry *child, *root = sgm__registry_of(trainer);
    SGM_TRY(sgm_registry_add_tag(root, "trainer"));
    SGM_TRY(publish_values(trainer));
    SGM_TRY(sgm__publish_settings(trainer));
    return sgm__publish_child(root, "shared", "shared", &child);
}
