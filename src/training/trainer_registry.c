/* What a trainer shows of itself: names for everything that may be watched or changed while it runs.
 *
 * Reading and setting wait for the step that is running; what is set counts from the next iteration on. */
#include "registry/pattern.h"
#include "training/run_folder.h"
#include "training/trainer.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>

/* --- the lock between steps --- */

void sgm__trainer_lock(sgm_trainer *trainer)
{
    atomic_fetch_add(&trainer->waiting, 1);
    pthread_mutex_lock(&trainer->lock);
    atomic_fetch_sub(&trainer->waiting, 1);
}

void sgm__trainer_unlock(sgm_trainer *trainer)
{
    pthread_mutex_unlock(&trainer->lock);
}

/* A mutex may be taken again by the thread that has just left it; those who wait go first. */
void sgm__trainer_let_others(sgm_trainer *trainer)
{
    if (atomic_load(&trainer->waiting) == 0)
        return;
    pthread_mutex_unlock(&trainer->lock);
    while (atomic_load(&trainer->waiting) > 0)
        sched_yield();
    pthread_mutex_lock(&trainer->lock);
}

/* --- numbers that are computed when they are asked for --- */

typedef struct number_row {
    sgm_option option;
    double (*get)(const sgm_trainer *trainer);
} number_row;

static double get_epoch(const sgm_trainer *trainer)
{
    return (double)trainer->position.epoch;
}

static double get_iteration(const sgm_trainer *trainer)
{
    return (double)trainer->position.iteration;
}

static double get_batch(const sgm_trainer *trainer)
{
    return (double)trainer->position.batch;
}

static double get_updates(const sgm_trainer *trainer)
{
    return (double)trainer->position.updates;
}

static double get_running_time(const sgm_trainer *trainer)
{
    return trainer->running_time + (trainer->running_since > 0 ? sgm__now() - trainer->running_since : 0);
}

static double get_loss(const sgm_trainer *trainer)
{
    return sgm__metrics_of(&trainer->position.sums).loss;
}

static double get_accuracy(const sgm_trainer *trainer)
{
    return sgm__metrics_of(&trainer->position.sums).accuracy;
}

static double get_cost_total(const sgm_trainer *trainer)
{
    return trainer->newest_loss;
}

static double get_current_rate(const sgm_trainer *trainer)
{
    return trainer->optimiser != NULL ? sgm__trainer_learning_rate(trainer, trainer->batches) : NAN;
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
      .doc = "mean over the records of this epoch so far"},
     get_loss},
    {{.name = "accuracy",
      .kind = SGM_KIND_NUMBER,
      .read_only = true,
      .doc = "share of right answers of this epoch so far"},
     get_accuracy},
};
static const number_row optimiser_rows[] = {
    {{.name = "cost_total",
      .kind = SGM_KIND_NUMBER,
      .read_only = true,
      .doc = "total cost of the newest minibatch"},
     get_cost_total},
    {{.name = "current_learning_rate",
      .kind = SGM_KIND_NUMBER,
      .read_only = true,
      .doc = "learning rate of the next update, schedule included"},
     get_current_rate},
};

typedef struct bound_number {
    sgm_trainer *trainer;
    const number_row *row;
} bound_number;

static sgm_status get_number(void *user, sgm_content *content)
{
    const bound_number *bound = user;
    sgm__trainer_lock(bound->trainer);
    double value = bound->row->get(bound->trainer);
    sgm__trainer_unlock(bound->trainer);
    *content = bound->row->option.kind == SGM_KIND_INTEGER ? sgm_integer_content((int64_t)value)
                                                           : sgm_number_content(value);
    return SGM_OK;
}

static sgm_status bind_rows(sgm_trainer *trainer, sgm_registry *registry, const number_row *rows,
                            size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bound_number *bound = sgm__calloc(1, sizeof(bound_number));
        if (bound == NULL)
            return SGM_ERROR_MEMORY;
        *bound = (bound_number){trainer, &rows[i]};
        const sgm_binding binding = {.get = get_number, .release = sgm__free, .user = bound};
        SGM_TRY(sgm_registry_bind(registry, &rows[i].option, &binding));
    }
    return SGM_OK;
}

/* --- the optimiser's numbers, which may be set --- */

typedef struct setting_row {
    sgm_option option;
    size_t offset; /* of a double in sgm_optimiser_options */
} setting_row;

#define SETTING(text, lowest, highest, words)                                                                \
    {                                                                                                        \
        {.name = #text,                                                                                      \
         .kind = SGM_KIND_NUMBER,                                                                            \
         .least = lowest,                                                                                    \
         .most = highest,                                                                                    \
         .live = true,                                                                                       \
         .doc = words},                                                                                      \
            offsetof(sgm_optimiser_options, text)                                                            \
    }
#define BELOW_ONE 0.9999999999

static const setting_row setting_rows[] = {
    SETTING(learning_rate, 0, 1e6, "size of a step, before the schedule"),
    SETTING(momentum, 0, BELOW_ONE, "share of the velocity that stays"),
    SETTING(decay_rate, 0, BELOW_ONE, "share of the mean square that stays"),
    SETTING(beta1, 0, BELOW_ONE, "adam: share of the mean gradient that stays"),
    SETTING(beta2, 0, BELOW_ONE, "adam: share of the mean square that stays"),
    SETTING(epsilon, 0, 1, "keeps divisions finite"),
    SETTING(weight_decay, 0, 1e6, "pull of the parameters towards 0"),
    SETTING(clip_value, 0, 1e30, "largest absolute gradient; 0: any"),
    SETTING(clip_norm, 0, 1e30, "largest norm of all gradients together; 0: any"),
};

typedef struct bound_setting {
    sgm_trainer *trainer;
    const setting_row *row;
} bound_setting;

static double *setting_of(const bound_setting *bound)
{
    return (double *)(void *)((char *)&bound->trainer->optimiser->options + bound->row->offset);
}

/* Tells the run directory; a change that cannot be recorded is made nevertheless, and the log says so. */
static void record_change(sgm_trainer *trainer, const char *group, const char *name, const char *before,
                          const char *after)
{
    char *identifier = sgm__format("%s%s", group, name);
    if (identifier == NULL || sgm__run_folder_change(trainer, identifier, before, after) != SGM_OK)
        sgm__log(SGM_LOG_WARNING, trainer->name, "the change of %s%s could not be recorded: %s", group, name,
                 sgm_last_error());
    sgm__free(identifier);
}

static sgm_status no_optimiser(void)
{
    return sgm_fail(SGM_ERROR_STATE, "the trainer has no optimiser yet");
}

static sgm_status get_setting(void *user, sgm_content *content)
{
    const bound_setting *bound = user;
    sgm_status status = SGM_OK;
    sgm__trainer_lock(bound->trainer);
    if (bound->trainer->optimiser == NULL)
        status = no_optimiser();
    else
        *content = sgm_number_content(*setting_of(bound));
    sgm__trainer_unlock(bound->trainer);
    return status;
}

/* The learning rate is fed; the others are part of the program, which is recorded again. */
static sgm_status set_setting(void *user, const sgm_content *content)
{
    const bound_setting *bound = user;
    sgm_status status = SGM_OK;
    sgm__trainer_lock(bound->trainer);
    if (bound->trainer->optimiser == NULL) {
        status = no_optimiser();
    } else if (*setting_of(bound) != content->as.number) {
        char before[32], after[32];
        snprintf(before, sizeof before, "%.17g", *setting_of(bound));
        snprintf(after, sizeof after, "%.17g", content->as.number);
        record_change(bound->trainer, "optimiser.", bound->row->option.name, before, after);
        *setting_of(bound) = content->as.number;
        sgm__trainer_forget_programs(bound->trainer);
    }
    sgm__trainer_unlock(bound->trainer);
    return status;
}

static sgm_status bind_settings(sgm_trainer *trainer, sgm_registry *registry)
{
    for (size_t i = 0; i < sizeof setting_rows / sizeof *setting_rows; i++) {
        bound_setting *bound = sgm__calloc(1, sizeof(bound_setting));
        if (bound == NULL)
            return SGM_ERROR_MEMORY;
        *bound = (bound_setting){trainer, &setting_rows[i]};
        const sgm_binding binding = {
            .get = get_setting, .set = set_setting, .release = sgm__free, .user = bound};
        SGM_TRY(sgm_registry_bind(registry, &setting_rows[i].option, &binding));
    }
    return SGM_OK;
}

/* --- states: parameters, and the optimiser's memory --- */

typedef struct bound_state {
    sgm_trainer *trainer;
    sgm_option option;
    char name[]; /* in the session, then the entry's */
} bound_state;

static sgm_status get_state(void *user, sgm_content *content)
{
    const bound_state *bound = user;
    sgm__trainer_lock(bound->trainer);
    sgm_tensor *value = sgm_session_get(bound->trainer->session, bound->name);
    sgm__trainer_unlock(bound->trainer);
    if (value == NULL)
        return sgm_last_status();
    *content = sgm_tensor_content(value);
    return SGM_OK;
}

static sgm_status set_state(void *user, const sgm_content *content)
{
    const bound_state *bound = user;
    sgm__trainer_lock(bound->trainer);
    sgm_status status = sgm_session_set(bound->trainer->session, bound->name, content->as.tensor);
    if (status == SGM_OK)
        record_change(bound->trainer, "state ", bound->name, "tensor", "tensor");
    sgm__trainer_unlock(bound->trainer);
    return status;
}

static sgm_status bind_state(sgm_trainer *trainer, sgm_registry *registry, const char *entry,
                             const char *state)
{
    size_t state_size = strlen(state) + 1, entry_size = strlen(entry) + 1;
    bound_state *bound = sgm__calloc(1, sizeof(bound_state) + state_size + entry_size);
    if (bound == NULL)
        return SGM_ERROR_MEMORY;
    memcpy(bound->name, state, state_size);
    memcpy(bound->name + state_size, entry, entry_size);
    bound->trainer = trainer;
    bound->option = (sgm_option){.name = bound->name + state_size,
                                 .kind = SGM_KIND_TENSOR,
                                 .live = true,
                                 .doc = "a parameter, or an optimiser's memory of one"};
    const sgm_binding binding = {.get = get_state, .set = set_state, .release = sgm__free, .user = bound};
    return sgm_registry_bind(registry, &bound->option, &binding);
}

/* The child of this name, made if it is not there; retained by its parent only. */
static sgm_status child_of(sgm_registry *registry, const char *name, const char *tag, sgm_registry **child)
{
    sgm_content content = {0};
    if (sgm_registry_has(registry, name)) {
        SGM_TRY(sgm_registry_get(registry, name, &content));
        *child = content.as.registry;
        sgm_content_clear(&content);
        return SGM_OK;
    }
    sgm_registry *made = sgm_registry_create();
    sgm_status status = made != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    if (status == SGM_OK && tag != NULL)
        status = sgm_registry_tag(made, tag);
    if (status == SGM_OK)
        status = sgm_registry_put(registry, name, made);
    *child = made;
    sgm_registry_free(made);
    return status;
}

/* "2-dense.weights" becomes PARENT.2-dense.weights. */
static sgm_status publish_state(sgm_trainer *trainer, sgm_registry *parent, const char *path,
                                const char *state)
{
    char part[128];
    const char *dot;
    while ((dot = strchr(path, '.')) != NULL) {
        size_t length = (size_t)(dot - path);
        if (length >= sizeof part)
            return sgm_fail(SGM_ERROR_ARGUMENT, "the name of state '%s' has a part that is too long", state);
        memcpy(part, path, length);
        part[length] = '\0';
        const char *dash = strchr(part, '-');
        SGM_TRY(child_of(parent, part, dash != NULL ? dash + 1 : NULL, &parent));
        path = dot + 1;
    }
    return sgm_registry_has(parent, path) ? SGM_OK : bind_state(trainer, parent, path, state);
}

/* States that came since the last call: parameters as network.layers.LAYER.NAME, slots as
 * optimiser.slots.SLOT.LAYER.NAME. */
sgm_status sgm__trainer_publish_states(sgm_trainer *trainer)
{
    const char *name;
    sgm_registry *layers, *slots;
    SGM_TRY(child_of(trainer->registry, "network", "network", &layers));
    SGM_TRY(child_of(layers, "layers", NULL, &layers));
    SGM_TRY(child_of(trainer->registry, "optimiser", "optimiser", &slots));
    SGM_TRY(child_of(slots, "slots", NULL, &slots));
    for (; (name = sgm_session_state_at(trainer->session, trainer->published)) != NULL;
         trainer->published++) {
        bool slot = strncmp(name, SGM__SLOT_PREFIX, strlen(SGM__SLOT_PREFIX)) == 0;
        SGM_TRY(publish_state(trainer, slot ? slots : layers, slot ? name + strlen(SGM__SLOT_PREFIX) : name,
                              name));
    }
    return SGM_OK;
}

/* --- metrics of validation --- */

static const sgm_option loss_row = {.name = "loss",
                                    .kind = SGM_KIND_NUMBER,
                                    .read_only = true,
                                    .doc = "mean over the records of the newest validation"};
static const sgm_option accuracy_row = {.name = "accuracy",
                                        .kind = SGM_KIND_NUMBER,
                                        .read_only = true,
                                        .doc = "share of right answers of the newest validation"};

static sgm_status publish_metrics(sgm_trainer *trainer, const sgm_named_metrics *measured)
{
    sgm_registry *metrics;
    char *part = sgm__identifier_part(measured->name);
    sgm_status status =
        part != NULL ? child_of(trainer->registry, part, "validation", &metrics) : SGM_ERROR_MEMORY;
    sgm__free(part);
    SGM_TRY(status);
    if (!sgm_registry_has(metrics, loss_row.name)) {
        SGM_TRY(sgm_registry_define(metrics, &loss_row));
        SGM_TRY(sgm_registry_define(metrics, &accuracy_row));
    }
    SGM_TRY(sgm_registry_set_own(metrics, loss_row.name, sgm_number_content(measured->metrics.loss)));
    return sgm_registry_set_own(metrics, accuracy_row.name, sgm_number_content(measured->metrics.accuracy));
}

/* VALIDATION.loss and VALIDATION.accuracy are there once they were measured. */
sgm_status sgm__trainer_publish_metrics(sgm_trainer *trainer)
{
    for (size_t i = 0; i < trainer->validation_count; i++)
        SGM_TRY(publish_metrics(trainer, &trainer->metrics[i]));
    return SGM_OK;
}

sgm_status sgm__trainer_publish(sgm_trainer *trainer)
{
    sgm_registry *child, *root = trainer->registry;
    SGM_TRY(sgm_registry_tag(root, "trainer"));
    SGM_TRY(bind_rows(trainer, root, trainer_rows, sizeof trainer_rows / sizeof *trainer_rows));
    SGM_TRY(child_of(root, "training", NULL, &child));
    SGM_TRY(bind_rows(trainer, child, metric_rows, sizeof metric_rows / sizeof *metric_rows));
    SGM_TRY(child_of(root, "optimiser", "optimiser", &child));
    SGM_TRY(bind_rows(trainer, child, optimiser_rows, sizeof optimiser_rows / sizeof *optimiser_rows));
    SGM_TRY(bind_settings(trainer, child));
    return child_of(root, "shared", "shared", &child);
}
