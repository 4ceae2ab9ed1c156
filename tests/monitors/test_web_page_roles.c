/* The page in the hands of somebody with another token than the printed one: what it offers, and what waits
 * for approval. */
#include "page_training.h"

#define LOOK "0123456789abcdef-LOOK0"
#define STEER "0123456789abcdef-STEER"
#define SHOWN(selector) "document.querySelector('" selector "')?.checkVisibility() === true"
#define HIDDEN(selector) "document.querySelector('" selector "')?.checkVisibility() !== true"
#define BANNER "#notice"
#define ASKED "#approvals .approval"

typedef struct roles {
    sgm_env *env;
    sgm_dataset *dataset;
    sgm_trainer *trainer;
    const char *url;
    browser browser;
    web_client client;
} roles;

static void begin_roles(roles *r)
{
    *r = (roles){.env = sgm_env_create("roles", .seed = 1), .dataset = sgm_dataset_open("iris")};
    r->browser = browser_open();
    r->trainer = sgm_trainer_create(r->env, "iris");
    sgm_monitor *monitor = sgm_web_monitor(.quiet = true, .tokens = "look " LOOK "\nsteer " STEER " anna");
    sgm_trainer_set_network(r->trainer, "input(4) + dense(3) + softmax_cross_entropy");
    sgm_trainer_set_data(r->trainer, sgm_minibatches(r->dataset, .size = 10));
    sgm_trainer_set_optimiser(r->trainer, sgm_adam(.learning_rate = 0.01));
    CHECK_OK(sgm_trainer_require_approval(r->trainer, "reset"));
    CHECK_OK(sgm_trainer_require_approval(r->trainer, "optimiser.learning_rate"));
    CHECK_OK(sgm_env_add_monitor(r->env, monitor));
    CHECK_OK(sgm_env_run_background(r->env, .epochs = 100000000, .paused = true));
    r->url = sgm_web_monitor_url(monitor);
    r->client = web_client_of(r->url);
}

static void end_roles(roles *r)
{
    browser_close(&r->browser);
    web_client_close(&r->client);
    CHECK_OK(sgm_env_stop(r->env, "seen enough"));
    CHECK_OK(sgm_env_wait(r->env));
    sgm_env_free(r->env);
    sgm_dataset_free(r->dataset);
}

/* Opens the page with another token than the printed one. */
static void go_as(roles *r, const char *token)
{
    char *url = sgm__format("%.*s?token=%s", (int)strcspn(r->url, "?"), r->url, token);
    browser_go(&r->browser, url);
    sgm__free(url);
}

/* As a program that has the token of the role steer. */
static void ask_as_steer(roles *r, const char *body)
{
    web_client other = r->client;
    other.answer = NULL;
    snprintf(other.token, sizeof other.token, "%s", STEER);
    web_posted(&other, "/api/command", body);
    CHECK_INT(other.code, 202);
    web_client_close(&other);
}

TEST(a_page_offers_what_its_token_may)
{
    roles r;
    begin_roles(&r);
    browser *b = &r.browser;
    go_as(&r, LOOK);
    browser_await(b, "document.querySelector('" BANNER "')?.textContent.includes('nothing can be changed')");
    browser_await(b, SHOWN(".panel-control .figures"));
    CHECK(browser_is(b, HIDDEN(".bar-play")));
    CHECK(browser_is(b, HIDDEN(".panel-control .control-buttons")));
    CHECK(browser_is(b, HIDDEN(".panel-control form")));
    go_as(&r, STEER);
    browser_await(b, "document.querySelector('" BANNER "')?.textContent.includes('you can steer')");
    browser_await(b, SHOWN(".panel-control .control-buttons"));
    CHECK(browser_is(b, SHOWN(".bar-play")));
    browser_go(b, r.url);
    browser_await(b, SHOWN(".panel-control .control-buttons"));
    CHECK(browser_is(b, "document.querySelector('" BANNER "').textContent === ''"));
    end_roles(&r);
}

TEST(a_person_approves_or_denies)
{
    roles r;
    begin_roles(&r);
    browser *b = &r.browser;
    browser_go(b, r.url);
    browser_await(b, SHOWN(".panel-control .control-buttons"));
    CHECK(browser_is(b, "document.querySelector('" ASKED "') === null"));
    ask_as_steer(&r, "{\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":0.25,"
                     "\"reason\":\"too slow\"}");
    browser_await(b, SHOWN(ASKED));
    CHECK(browser_is(b, "document.querySelector('" ASKED "').textContent.includes('anna') && "
                        "document.querySelector('" ASKED "').textContent.includes('too slow')"));
    browser_click(b, ASKED " .button.is-primary");
    browser_await(b, "document.querySelector('" ASKED "') === null");
    const json_t *change = json_array_get(json_object_get(web_got(&r.client, "/api/changes"), "changes"), 0);
    CHECK_STR(web_string(change, "who"), "monitor:anna");
    CHECK_STR(web_string(change, "reason"), "too slow (approved by monitor)");
    CHECK_NEAR(web_number(change, "after"), 0.25, 0);
    ask_as_steer(&r, "{\"command\":\"reset\"}");
    browser_await(b, SHOWN(ASKED));
    browser_click(b, ASKED " .button:not(.is-primary)");
    browser_await(b, "document.querySelector('" ASKED "') === null");
    web_posted(&r.client, "/api/command", "{\"command\":\"pending\"}");
    change = json_array_get(json_object_get(r.client.answer, "requests"), 1);
    CHECK_STR(web_string(change, "state"), "denied");
    CHECK_STR(web_string(change, "by"), "monitor");
    ask_as_steer(&r, "{\"command\":\"reset\"}"); /* who may not decide sees it, too */
    go_as(&r, STEER);
    browser_await(b, SHOWN(ASKED));
    CHECK(browser_is(b, HIDDEN(ASKED " .button")));
    end_roles(&r);
}
