/* GET /api/histogram: how the numbers of a tensor are distributed, now or over time; POST
 * /api/histogram-watch: a page wants a tensor followed over time.
 *
 * A watched tensor is sampled by a thread of this part, which exists from the first watch to the end of the
 * monitor. It copies the tensor with the trainer's lock and computes the histogram afterwards. The training
 * only ever waits for the copy, and the thread pauses so long after each that copies take less than SHARE of
 * the time. Watching is a lease, which pages renew: a closed page costs nothing after LEASE seconds.
 *
 * Locks: the trainer's lock is taken without tensors.lock. sgm__inspect_progress is called on the
 * training's thread and takes none. */
#include "base/clock.h"
#include "monitors/web/inspect/inspect.h"
#include "trainer/trainer_lock.h"

#include <math.h>
#include <stdio.h>

/* Bins of a histogram over time (fixed) and of a single one (at most). */
#define DEFAULT_BINS 64
#define MAXIMUM_BINS 512
/* Histograms over time that are kept of one tensor. When they are full every second one is dropped, and
 * further ones are sampled as rarely. */
#define MAXIMUM_COLUMNS 200
#define MAXIMUM_TENSORS 16 /* watched of one trainer */
/* Seconds for which a watch lasts if it is not renewed. */
#define LEASE 120.0
/* Seconds for which a trainer goes on keeping gradients and updates after they were read here; they are
 * only kept while somebody reads them. */
#define KEPT_SECONDS 300.0
/* Time between two looks of the thread. */
#define LOOK_SECONDS 0.1
/* Time between two histograms of one tensor at least. */
#define MINIMUM_SECONDS 0.5
/* Share of the training's time that copies may take. */
#define SHARE 0.005

/* How many values are finite, and their range and moments; `others` are infinite or NaN. */
typedef struct moments {
    int64_t iteration, count, others;
    double minimum, maximum, mean, standard_deviation;
} moments;

/* A histogram of the finite values. */
typedef struct spread {
    moments of;
    int32_t bin_count;
    int64_t bins[MAXIMUM_BINS];
} spread;

/* The same as it is kept over time, smaller. */
typedef struct column {
    moments of;
    int32_t bins[DEFAULT_BINS];
} column;

/* A watched tensor, with its histograms in the order of iterations. */
typedef struct tensor {
    char *identifier;
    /* sgm__now() when the lease ends, and before which no sample is taken. */
    double wanted_until, next;
    int64_t distance; /* iterations between two histograms at least; 0: no limit */
    size_t count;
    column columns[MAXIMUM_COLUMNS];
    char message[256]; /* why sampling has failed; "": it has not */
} tensor;

/* All watched tensors of one trainer. The lock guards items and count. */
typedef struct tensors {
    pthread_mutex_t lock;
    tensor *items[MAXIMUM_TENSORS];
    size_t count;
    int64_t iteration; /* the newest one; used on the training's thread */
    /* The training has gone back to this iteration since `cut` was called; INT64_MAX: it has not. */
    _Atomic int64_t went_to;
} tensors;

/* The part's state: the sampling thread. */
struct sgm__inspect_sampler {
    sgm__web *web;
    pthread_t thread;
    pthread_mutex_t lock; /* guards `started`, and is the lock of `wake` */
    pthread_cond_t wake;
    bool started;
    atomic_bool ending;
};

/* --- one spread --- */

/* Range and moments of the finite values, in double precision. The variance is computed in a second pass
 * around the mean, as the difference of large sums would cancel. Without finite values mean and deviation
 * are NaN. */
static void measure(moments *s, const float *values, int64_t count)
{
    double sum = 0, squares = 0;
    s->minimum = INFINITY;
    s->maximum = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        double value = values[i];
        if (!isfinite(value))
            continue;
        s->count++;
        sum += value;
        s->minimum = value < s->minimum ? value : s->minimum;
        s->maximum = value > s->maximum ? value : s->maximum;
    }
    s->others = count - s->count;
    s->mean = sum / (double)s->count;
    for (int64_t i = 0; i < count; i++)
        squares += isfinite(values[i]) ? (values[i] - s->mean) * (values[i] - s->mean) : 0;
    s->standard_deviation = sqrt(squares / (double)s->count);
}

/* Bins of equal width from minimum to maximum; the maximum itself goes into the last bin. Equal values are
 * all in the first one. */
static void fill_bins(spread *s, const float *values, int64_t count)
{
    double scale = s->of.maximum > s->of.minimum ? s->bin_count / (s->of.maximum - s->of.minimum) : 0;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(values[i]))
            continue;
        int32_t bin = (int32_t)((values[i] - s->of.minimum) * scale);
        s->bins[bin < s->bin_count ? bin : s->bin_count - 1]++;
    }
}

/* `values` may have any type and layout; s->of.iteration is the caller's. */
static sgm_status spread_of(sgm_tensor *values, int32_t bins, spread *s)
{
    bool fits = sgm_tensor_dtype(values) == SGM_FLOAT32 && sgm_tensor_is_contiguous(values);
    sgm_tensor *floats = fits ? sgm_tensor_retain(values) : sgm_tensor_cast(values, SGM_FLOAT32);
    if (floats == NULL)
        return sgm__last_failure();
    int64_t count = sgm_shape_elements(sgm_tensor_shape(floats));
    const float *numbers = sgm_tensor_const_data(floats);
    s->bin_count = bins;
    measure(&s->of, numbers, count);
    fill_bins(s, numbers, count);
    sgm_tensor_free(floats);
    return SGM_OK;
}

/* read_for tells the registry, for the time of this call, that gradients and updates are to be kept for a
 * while. Reading a tensor of the registry gives a copy of it. The time is measured while the lock is held,
 * since that is how long a training step may have had to wait. */
sgm_status sgm__inspect_tensor(sgm__web_trainer *watched, const char *identifier, sgm__inspect_copy *copy)
{
    sgm_content content = {0};
    SGM_TRY(sgm__trainer_enter(watched->trainer));
    double began = sgm__now();
    copy->iteration = sgm__trainer_look(watched->trainer).iteration;
    sgm__trainer_read_for(watched->trainer, KEPT_SECONDS);
    sgm_status status =
        sgm_registry_resolve_one(sgm_trainer_registry(watched->trainer), identifier, &content);
    sgm__trainer_read_for(watched->trainer, 0);
    sgm__trainer_unlock(watched->trainer);
    copy->seconds = sgm__now() - began;
    SGM_TRY(status);
    if (content.kind == SGM_KIND_TENSOR) {
        copy->values = content.as.tensor;
        return SGM_OK;
    }
    sgm_content_clear(&content);
    return sgm_fail(SGM_ERROR_TYPE, "%.200s is no tensor", identifier);
}

/* --- what is watched --- */

/* Drops every second column and doubles the distance. */
static void thin(tensor *t)
{
    for (size_t i = 0; 2 * i < t->count; i++)
        t->columns[i] = t->columns[2 * i];
    t->count = (t->count + 1) / 2;
    t->distance =
        (t->columns[t->count - 1].of.iteration - t->columns[0].of.iteration) / (int64_t)(t->count - 1);
}

/* With tensors.lock. Drops the columns behind the iteration that the training went back to. */
static void cut(tensors *all)
{
    int64_t there = atomic_exchange(&all->went_to, INT64_MAX);
    for (size_t i = 0; i < all->count; i++) {
        tensor *t = all->items[i];
        while (t->count > 0 && t->columns[t->count - 1].of.iteration > there)
            t->count--;
    }
}

/* On the training's thread: notes only that the training went back, in an atomic that the sampling thread
 * reads. */
void sgm__inspect_progress(sgm__web_trainer *watched, void *state, const sgm_training_progress *progress)
{
    tensors *all = state;
    (void)watched;
    if (progress->iteration < all->iteration && progress->iteration < atomic_load(&all->went_to))
        atomic_store(&all->went_to, progress->iteration);
    all->iteration = progress->iteration;
}

/* With tensors.lock. Columns from this iteration on are void: the training has gone back and trained them
 * anew. */
static void add_column(tensor *t, const spread *s)
{
    while (t->count > 0 && t->columns[t->count - 1].of.iteration >= s->of.iteration)
        t->count--;
    if (t->count == MAXIMUM_COLUMNS)
        thin(t);
    column *made = &t->columns[t->count++];
    made->of = s->of;
    for (int32_t i = 0; i < DEFAULT_BINS; i++)
        made->bins[i] = s->bins[i] < INT32_MAX ? (int32_t)s->bins[i] : INT32_MAX;
}

/* Whether the tensor is to be sampled now: it is wanted, the pause is over, and the training has moved on
 * by the distance, or gone back. */
static bool is_due(const tensor *t, int64_t iteration, double now)
{
    if (now >= t->wanted_until || now < t->next)
        return false;
    int64_t newest = t->count > 0 ? t->columns[t->count - 1].of.iteration : -1;
    return t->count == 0 || iteration < newest || iteration >= newest + (t->distance > 0 ? t->distance : 1);
}

/* The identifier of a tensor that is due, which the caller frees; NULL: none. `next` is set at once, so
 * that a failing tensor is not tried in a loop. */
static char *take_due(tensors *all, int64_t iteration)
{
    char *found = NULL;
    double now = sgm__now();
    pthread_mutex_lock(&all->lock);
    cut(all);
    for (size_t i = 0; i < all->count && found == NULL; i++)
        if (is_due(all->items[i], iteration, now)) {
            all->items[i]->next = now + MINIMUM_SECONDS;
            found = sgm__strdup(all->items[i]->identifier);
        }
    pthread_mutex_unlock(&all->lock);
    return found;
}

/* With tensors.lock. */
static tensor *find(tensors *all, const char *identifier)
{
    for (size_t i = 0; i < all->count; i++)
        if (strcmp(all->items[i]->identifier, identifier) == 0)
            return all->items[i];
    return NULL;
}

/* Without tensors.lock, as it waits for the trainer. *cost: seconds with the trainer's lock. */
static sgm_status take_sample(sgm__web_trainer *watched, const char *identifier, spread *s, double *cost)
{
    sgm__inspect_copy copy = {0};
    sgm_status status = sgm__inspect_tensor(watched, identifier, &copy);
    *cost = copy.seconds;
    s->of.iteration = copy.iteration;
    if (status == SGM_OK)
        status = spread_of(copy.values, DEFAULT_BINS, s);
    sgm_tensor_free(copy.values);
    return status;
}

/* The tensor is looked up again after the sample: it may have been replaced by another one meanwhile. */
static void sample(sgm__web_trainer *watched, tensors *all, const char *identifier)
{
    spread s = {0};
    double cost;
    sgm_status status = take_sample(watched, identifier, &s, &cost);
    pthread_mutex_lock(&all->lock);
    tensor *t = find(all, identifier);
    if (t != NULL && status == SGM_OK)
        add_column(t, &s);
    if (t != NULL) {
        double pause = cost / SHARE;
        t->next = sgm__now() + (pause > MINIMUM_SECONDS ? pause : MINIMUM_SECONDS);
        snprintf(t->message, sizeof t->message, "%s", status == SGM_OK ? "" : sgm_last_error());
    }
    pthread_mutex_unlock(&all->lock);
}

/* For sgm__web_each, on the sampling thread. The trainer is borrowed for all of its tensors. */
static bool sample_all(void *user, sgm__web_trainer *watched)
{
    sgm__inspect_sampler *self = user;
    tensors *all = watched->states[SGM__WEB_inspect];
    sgm__web_trainer *borrowed;
    char *identifier;
    if (all == NULL || sgm__web_borrow(self->web, watched->name, &borrowed) != SGM_OK)
        return true;
    while (!atomic_load(&self->ending) &&
           (identifier = take_due(all, sgm__web_now(borrowed).iteration)) != NULL) {
        sample(borrowed, all, identifier);
        sgm__free(identifier);
    }
    sgm__web_give_back(borrowed);
    return !atomic_load(&self->ending);
}

/* The sampling thread. Its patience ends its wait for a trainer's lock when the monitor ends. */
static void *run(void *user)
{
    sgm__inspect_sampler *self = user;
    const sgm__patience patience = {.ending = &self->ending};
    sgm__patience_set(&patience);
    while (!atomic_load(&self->ending)) {
        struct timespec until = sgm__time_in(LOOK_SECONDS);
        pthread_mutex_lock(&self->lock);
        if (!atomic_load(&self->ending))
            pthread_cond_timedwait(&self->wake, &self->lock, &until);
        pthread_mutex_unlock(&self->lock);
        sgm__web_each(self->web, sample_all, self);
    }
    return NULL;
}

/* The thread is made by the first watch. */
static sgm_status start(sgm__inspect_sampler *self)
{
    pthread_mutex_lock(&self->lock);
    bool ending = atomic_load(&self->ending);
    if (!self->started && !ending)
        self->started = pthread_create(&self->thread, NULL, run, self) == 0;
    bool started = self->started;
    pthread_mutex_unlock(&self->lock);
    if (ending)
        return sgm_fail(SGM_ERROR_STATE, "the monitor is to stop");
    return started ? SGM_OK : sgm_fail(SGM_ERROR_MEMORY, "the system refused a thread for histograms");
}

/* Ends the thread and waits for it; may be called twice. */
static void stop(sgm__inspect_sampler *self)
{
    pthread_mutex_lock(&self->lock);
    atomic_store(&self->ending, true);
    pthread_cond_broadcast(&self->wake);
    bool started = self->started;
    self->started = false;
    pthread_mutex_unlock(&self->lock);
    if (started)
        pthread_join(self->thread, NULL);
}

/* The thread must end before trainers are detached; the last tick of the monitor's thread is the moment
 * for that. */
void sgm__inspect_tick(sgm__web *web, void *state)
{
    pthread_mutex_lock(&web->lock);
    bool ending = web->ending;
    pthread_mutex_unlock(&web->lock);
    if (ending)
        stop(state);
}

/* The thread is not started yet, see `start`. */
sgm_status sgm__inspect_create(sgm__web *web, void **state)
{
    sgm__inspect_sampler *self = sgm__calloc(1, sizeof *self);
    if (self == NULL)
        return SGM_ERROR_MEMORY;
    self->web = web;
    pthread_mutex_init(&self->lock, NULL);
    sgm__cond_init(&self->wake);
    *state = self;
    return SGM_OK;
}

void sgm__inspect_free(void *state)
{
    sgm__inspect_sampler *self = state;
    stop(self);
    pthread_cond_destroy(&self->wake);
    pthread_mutex_destroy(&self->lock);
    sgm__free(self);
}

/* A trainer under a known name goes on with the columns of the former one. */
sgm_status sgm__inspect_attach(sgm__web_trainer *watched, void **state)
{
    (void)watched;
    if (*state != NULL)
        return SGM_OK;
    tensors *all = sgm__calloc(1, sizeof *all);
    if (all == NULL)
        return SGM_ERROR_MEMORY;
    pthread_mutex_init(&all->lock, NULL);
    atomic_init(&all->went_to, INT64_MAX);
    *state = all;
    return SGM_OK;
}

static void free_tensor(tensor *t)
{
    if (t != NULL)
        sgm__free(t->identifier);
    sgm__free(t);
}

void sgm__inspect_free_trainer(void *state)
{
    tensors *all = state;
    for (size_t i = 0; i < all->count; i++)
        free_tensor(all->items[i]);
    pthread_mutex_destroy(&all->lock);
    sgm__free(all);
}

/* --- requests --- */

/* With tensors.lock: adds a tensor or renews its lease. If there are too many, the one whose lease ends
 * first is replaced. */
static sgm_status want(tensors *all, const char *identifier)
{
    tensor *t = find(all, identifier);
    if (t == NULL) {
        t = sgm__calloc(1, sizeof *t);
        if (t != NULL)
            t->identifier = sgm__strdup(identifier);
        if (t == NULL || t->identifier == NULL) {
            free_tensor(t);
            return SGM_ERROR_MEMORY;
        }
        size_t place = all->count < MAXIMUM_TENSORS ? all->count++ : 0;
        for (size_t i = 0; i < all->count && all->items[place] != NULL; i++)
            if (all->items[i]->wanted_until < all->items[place]->wanted_until)
                place = i;
        free_tensor(all->items[place]);
        all->items[place] = t;
    }
    t->wanted_until = sgm__now() + LEASE;
    return SGM_OK;
}

/* Whether the tensor can be sampled. SGM_ERROR_STATE is no failure: a tensor that is kept only while it is
 * read has no value the first time. */
static sgm_status check(sgm__web_trainer *watched, const char *identifier)
{
    sgm__inspect_copy copy = {0};
    sgm_status status = sgm__inspect_tensor(watched, identifier, &copy);
    sgm_tensor_free(copy.values);
    return status == SGM_ERROR_STATE ? SGM_OK : status;
}

/* {"trainer", "identifier"} */
sgm_status sgm__inspect_watch(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    sgm__web_trainer *watched = user;
    tensors *all = watched->states[SGM__WEB_inspect];
    const char *identifier;
    (void)answer;
    SGM_TRY(sgm__web_text(sgm__http_object(request), "identifier", true, &identifier));
    SGM_TRY(check(watched, identifier));
    pthread_mutex_lock(&all->lock);
    sgm_status status = want(all, identifier);
    pthread_mutex_unlock(&all->lock);
    return status == SGM_OK ? start(sgm__web_state(watched->web, SGM__WEB_inspect)) : status;
}

/* The members of a histogram, without braces. */
static void append_spread(sgm__text *text, const spread *s)
{
    sgm__text_append(text, "\"iteration\":%lld", (long long)s->of.iteration);
    sgm__web_append_member(text, "count", (double)s->of.count);
    sgm__web_append_member(text, "others", (double)s->of.others);
    sgm__web_append_member(text, "minimum", s->of.minimum);
    sgm__web_append_member(text, "maximum", s->of.maximum);
    sgm__web_append_member(text, "mean", s->of.mean);
    sgm__web_append_member(text, "standard_deviation", s->of.standard_deviation);
    sgm__text_append(text, ",\"bins\":[");
    for (int32_t i = 0; i < s->bin_count; i++)
        sgm__text_append(text, i > 0 ? ",%lld" : "%lld", (long long)s->bins[i]);
    sgm__text_append(text, "]");
}

/* Back to the larger form, for append_spread. */
static spread spread_of_column(const column *from)
{
    spread s = {.of = from->of, .bin_count = DEFAULT_BINS};
    for (int32_t i = 0; i < DEFAULT_BINS; i++)
        s.bins[i] = from->bins[i];
    return s;
}

/* With tensors.lock. The newest column is also the current histogram. `t` NULL: the tensor is not watched. */
static void append_history(sgm__text *text, const tensor *t)
{
    spread s;
    sgm__text_append(text, "{");
    if (t != NULL && t->count > 0) {
        s = spread_of_column(&t->columns[t->count - 1]);
        append_spread(text, &s);
        sgm__text_append(text, ",");
    }
    sgm__text_append(text, "\"watched\":%s,\"history\":[",
                     t != NULL && sgm__now() < t->wanted_until ? "true" : "false");
    for (size_t i = 0; t != NULL && i < t->count; i++) {
        s = spread_of_column(&t->columns[i]);
        sgm__text_append(text, i > 0 ? ",{" : "{");
        append_spread(text, &s);
        sgm__text_append(text, "}");
    }
    sgm__text_append(text, "],\"note\":");
    sgm__web_append_text(text, t != NULL ? t->message : "");
    sgm__text_append(text, "}");
}

/* With history=1: what was sampled, also of a trainer that has gone; does not wait for the trainer. */
static sgm_status give_history(sgm__web *web, const sgm__http_request *request, const char *identifier,
                               sgm__http_answer *answer)
{
    sgm__web_trainer *watched;
    sgm__text text = {0};
    SGM_TRY(sgm__web_find(web, sgm__http_query(request, "trainer", 0), &watched));
    tensors *all = watched->states[SGM__WEB_inspect];
    pthread_mutex_lock(&all->lock);
    cut(all);
    append_history(&text, find(all, identifier));
    pthread_mutex_unlock(&all->lock);
    return sgm__web_answer(answer, &text);
}

/* With history=0: a histogram of this moment. */
static sgm_status give_now(sgm__web *web, const sgm__http_request *request, const char *identifier,
                           sgm__http_answer *answer)
{
    sgm__web_trainer *watched;
    sgm__inspect_copy copy = {0};
    sgm__text text = {0};
    int64_t bins;
    spread s = {0};
    SGM_TRY(sgm__inspect_count(request, "bins", DEFAULT_BINS, 1, MAXIMUM_BINS, &bins));
    SGM_TRY(sgm__web_borrow(web, sgm__http_query(request, "trainer", 0), &watched));
    sgm_status status = sgm__inspect_tensor(watched, identifier, &copy);
    sgm__web_give_back(watched);
    SGM_TRY(status);
    s.of.iteration = copy.iteration;
    status = spread_of(copy.values, (int32_t)bins, &s);
    sgm_tensor_free(copy.values);
    SGM_TRY(status);
    sgm__text_append(&text, "{");
    append_spread(&text, &s);
    sgm__text_append(&text, ",\"history\":[]}");
    return sgm__web_answer(answer, &text);
}

sgm_status sgm__inspect_histogram(void *web, const sgm__http_request *request, sgm__http_answer *answer)
{
    const char *identifier = sgm__http_query(request, "id", 0);
    int64_t history;
    if (identifier == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected the identifier of a tensor, as 'id'");
    SGM_TRY(sgm__inspect_count(request, "history", 0, 0, 1, &history));
    return history != 0 ? give_history(web, request, identifier, answer)
                        : give_now(web, request, identifier, answer);
}
