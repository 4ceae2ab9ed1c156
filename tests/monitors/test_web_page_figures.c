/* What the page tells of a training without being asked: its data, its operator, its accuracies. */
#include "page_training.h"

typedef struct flowers {
    sgm_env *env;
    sgm_dataset *dataset;
    browser browser;
} flowers;

/* Two workers train on iris for a moment, and the page stays. */
static flowers train_flowers(void)
{
    flowers f = {.browser = browser_open()};
    f.env = sgm_env_create("flowers", .seed = 1);
    f.dataset = sgm_dataset_open("iris");
    sgm_trainer *trainer = sgm_trainer_create(f.env, "flowers");
    sgm_monitor *monitor = sgm_web_monitor(.quiet = true);
    sgm_trainer_set_network(trainer, "input(4) + dense(3) + softmax_cross_entropy");
    sgm_trainer_set_data(trainer, sgm_minibatches(f.dataset, .size = 10));
    sgm_trainer_add_data(trainer, "validation", sgm_minibatches(f.dataset, .size = 150));
    sgm_trainer_set_optimiser(trainer, sgm_adam());
    sgm_trainer_set_operator(trainer, sgm_gradient_operator(.workers = 2));
    sgm_trainer_add_hook(trainer, sgm_metric("top_k", "validation", .tops = {1, 2, 3}));
    CHECK_OK(sgm_env_add_monitor(f.env, monitor));
    CHECK_OK(sgm_env_run(f.env, .epochs = 20));
    browser_go(&f.browser, sgm_web_monitor_url(monitor));
    return f;
}

static void end_flowers(flowers *f)
{
    browser_check_errors(&f->browser);
    browser_close(&f->browser);
    sgm_env_free(f->env);
    sgm_dataset_free(f->dataset);
}

#define FIGURE(name) "document.querySelector('.panel-control [data-name=" name "] dd')?.textContent"

TEST(the_player_tells_data_optimiser_and_operator)
{
    flowers f = train_flowers();
    browser_await(&f.browser, FIGURE("data") " === 'iris'");
    browser_await(&f.browser, FIGURE("optimiser") " === 'adam'");
    browser_await(&f.browser, FIGURE("operator") " === '2 workers'");
    end_flowers(&f);
}

/* The legend of the panel has the newest value behind each name, "validation.top_2 97.3 %". */
#define SHARE(name)                                                                                          \
    "parseFloat([...document.querySelectorAll('.panel-accuracy .legend-row')].find((row) => "                \
    "row.querySelector('.legend-text').textContent === '" name                                               \
    "')?.querySelector('.legend-value').textContent)"

TEST(each_top_has_a_curve_of_its_own)
{
    flowers f = train_flowers();
    browser_await(&f.browser, SHARE("validation.top_1") " > 20");
    browser_await(&f.browser, SHARE("validation.top_2") " >= " SHARE("validation.top_1"));
    browser_await(&f.browser, SHARE("validation.top_3") " === 100");
    CHECK(browser_is(&f.browser, SHARE("validation.top_1") " === " SHARE("validation.accuracy")));
    end_flowers(&f);
}
