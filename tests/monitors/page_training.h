/* What tests of the page share: a network that learns, and its page in a browser. */
#ifndef SIGMA_PAGE_TRAINING_H
#define SIGMA_PAGE_TRAINING_H

#include "base/folder.h"
#include "browser.h"
#include "web_client.h"

#define STATE "document.querySelector('.bar-state-text')?.textContent"
/* "1,234" in the bar. */
#define ITERATION                                                                                            \
    "Number(document.querySelector('.bar-figure.is-iteration dd').textContent.replace(/\\D/g, ''))"
typedef struct training {
    sgm_env *env;
    sgm_trainer *trainer;
    sgm_dataset *dataset;
    bool has_folder;
    web_client client;
    browser browser;
} training;

/* Slowly: the browser needs the processor, too. */
static inline bool take_time(void *user, const sgm_training_progress *progress)
{
    (void)user;
    if (progress->kind == SGM_PROGRESS_ITERATION)
        usleep(20000);
    return true;
}

static inline void end_run(training *t)
{
    if (t->env != NULL) {
        sgm_env_stop(t->env, "the test is over");
        sgm_env_wait(t->env);
    }
    sgm_env_free(t->env);
    t->env = NULL;
}

static inline void end_training(training *t)
{
    browser_close(&t->browser);
    end_run(t);
    sgm_dataset_free(t->dataset);
    if (t->has_folder)
        close_folder();
    *t = (training){0};
}

/* The page shows that a network learns. Takes the dataset. */
static inline training *begin_training_of(const char *name, sgm_dataset *dataset, const char *network)
{
    static training t; /* a test that failed left its own behind */
    end_training(&t);
    t.dataset = dataset; /* first: without a browser the test leaves here */
    t.browser = browser_open();
    open_folder();
    t.has_folder = true;
    t.env = sgm_env_create(name, .seed = 3);
    t.trainer = sgm_trainer_create(t.env, name);
    sgm_trainer_set_network(t.trainer, network);
    sgm_trainer_set_data(t.trainer, sgm_minibatches(t.dataset, .size = 32));
    sgm_trainer_set_optimiser(t.trainer, sgm_adam(.learning_rate = 0.01));
    CHECK_OK(sgm_trainer_on_progress(t.trainer, take_time, NULL));
    sgm_monitor *monitor = sgm_web_monitor(.quiet = true, .title = "Learning");
    CHECK_OK(sgm_env_add_monitor(t.env, monitor));
    CHECK_OK(sgm_env_run_background(t.env, .epochs = 100000, .folder = folder));
    t.client = web_client_of(sgm_web_monitor_url(monitor));
    browser_go(&t.browser, sgm_web_monitor_url(monitor));
    browser_await(&t.browser, STATE " === 'Running'");
    return &t;
}

static inline training *begin_training(void)
{
    return begin_training_of("digits", sgm_dataset_open("digits"),
                             "input(8, 8) + dense(32, relu) + dense(10) + softmax_cross_entropy");
}

/* A page over a training that has not begun. */
typedef struct prepared {
    sgm_env *env;
    sgm_dataset *dataset;
    const char *url;
} prepared;

static inline prepared prepare_page(const char *name)
{
    prepared p = {.env = sgm_env_create(name, .seed = 1), .dataset = sgm_dataset_open("iris")};
    sgm_trainer *trainer = sgm_trainer_create(p.env, "iris");
    sgm_monitor *monitor = sgm_web_monitor(.quiet = true);
    sgm_trainer_set_network(trainer, "input(4) + dense(3) + softmax_cross_entropy");
    sgm_trainer_set_data(trainer, sgm_minibatches(p.dataset, .size = 10));
    sgm_trainer_set_optimiser(trainer, sgm_adam());
    CHECK_OK(sgm_env_add_monitor(p.env, monitor));
    CHECK_OK(sgm_env_prepare(p.env));
    p.url = sgm_web_monitor_url(monitor);
    return p;
}

static inline void free_prepared(prepared *p)
{
    sgm_env_free(p->env);
    sgm_dataset_free(p->dataset);
}

static inline double iteration_of(training *t)
{
    json_t *session = web_get(&t->client, "/api/session");
    double iteration = json_number_value(
        json_object_get(json_array_get(json_object_get(session, "trainers"), 0), "iteration"));
    json_decref(session);
    return iteration;
}

static inline void await_more(browser *b, double iteration)
{
    char expression[256];
    snprintf(expression, sizeof expression, ITERATION " > %g", iteration);
    browser_await(b, expression);
}

static inline void open_tab(browser *b, int number)
{
    char text[80];
    snprintf(text, sizeof text, "#tab-%d", number);
    browser_click(b, text);
    snprintf(text, sizeof text, "document.querySelector('#tab-%d[aria-selected=true]')", number);
    browser_await(b, text);
}

/* By what is written on it. */
static inline void open_tab_called(browser *b, const char *title)
{
    char expression[160];
    snprintf(expression, sizeof expression,
             "[...document.querySelectorAll('.tab')].findIndex((tab) => tab.textContent === '%s')", title);
    double number = browser_number(b, expression);
    if (!(number >= 0))
        TEST_FAIL("there is no tab '%s'", title);
    open_tab(b, (int)number);
}

/* --- steering --- */

#define LEARNING_RATE "input.input[aria-label='optimiser.learning_rate']"

static inline void await_iteration(training *t, double iteration)
{
    char expression[256];
    snprintf(expression, sizeof expression, ITERATION " === %.0f && " STATE " === 'Paused'", iteration);
    browser_await(&t->browser, expression);
    CHECK_NEAR(iteration_of(t), iteration, 0);
}

/* Presses the button, and waits until the training stands; the iteration. */
static inline double pause_training(training *t)
{
    browser_click(&t->browser, ".bar-play");
    browser_await(&t->browser, STATE " === 'Paused'");
    CHECK_INT(sgm_trainer_get_state(t->trainer), SGM_TRAINER_PAUSED);
    return iteration_of(t);
}

static inline void step(training *t)
{
    browser_click(&t->browser, ".bar-transport button[data-icon='step']");
}

static inline double learning_rate_of(sgm_trainer *trainer)
{
    sgm_content rate;
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(trainer), "optimiser.learning_rate", &rate));
    return rate.as.number;
}

#endif
