/* Pages for everybody: contrasts, names, and the keyboard alone, on each tab of the monitor, on the pages of
 * runs and of a network that predicts, and in a report. */
#include "monitors/runs/report.h"
#include "monitors/runs/runs.h"
#include "monitors/serve/serve.h"
#include "page_training.h"
#include "page_walker.h"

/* Keys have places in Unicode. */
#define BROWSER_SHIFT_DOWN                                                                                   \
    "\xee\x80\x88"                                                                                           \
    "\xee\x80\x95"                                                                                           \
    "\xee\x80\x80"

/* --- the monitor --- */

/* Opens what buttons open, one after the other, and looks at it. */
static void check_what_opens(browser *b, const char *tab)
{
    static const char openers[] = "[...document.querySelectorAll('[aria-haspopup]:not(.bar-about)')].filter(("
                                  "e) => e.checkVisibility() && !e.disabled)";
    char *script = sgm__format("%s.length", openers);
    int count = (int)browser_number(b, script);
    sgm__free(script);
    for (int i = 0; i < count; i++) {
        char *what = sgm__format("%s, what the button %d opens", tab, i);
        script = sgm__format("window.opener = %s[%d]; window.opener.click()", openers, i);
        browser_do(b, script);
        browser_await(b, "document.querySelector('.popover')");
        check_for_everybody(b, what);
        browser_do(b, "window.opener.click()");
        browser_await(b, "!document.querySelector('.popover')");
        sgm__free(script);
        sgm__free(what);
    }
}

TEST(everybody_can_use_the_monitor)
{
    training *t = begin_training();
    browser *b = &t->browser;
    browser_await(b, ITERATION " > 20");
    CHECK_OK(sgm_trainer_pause(t->trainer));
    browser_await(b, STATE " === 'Paused'");
    int tabs = (int)browser_number(b, "document.querySelectorAll('.tab').length");
    CHECK(tabs >= 6);
    for (int i = 0; i < tabs; i++) {
        char what[32];
        snprintf(what, sizeof what, "tab %d", i);
        open_tab(b, i);
        browser_await(b, "document.querySelectorAll('.panel').length > 0");
        browser_await(b,
                      "![...document.querySelectorAll('.panel-loading')].some((e) => e.checkVisibility())");
        check_for_everybody(b, what);
        check_keyboard(b, what);
        check_what_opens(b, what);
    }
    browser_do(b, "document.querySelector(\".bar-end [data-icon='help']\").click()");
    browser_await(b, "document.querySelector('dialog[open]')");
    check_for_everybody(b, "help");
    browser_click(b, "dialog .dialogue-head button");
    browser_click(b, ".bar-about");
    char *about =
        sgm__format("document.querySelector('dialog[open] h2')?.textContent === 'Sigma %s'", sgm_version());
    browser_await(b, about);
    check_for_everybody(b, "about");
    sgm__free(about);
    browser_check_errors(b);
    browser_click(b, "dialog .dialogue-head button");
    end_run(t);
    browser_await(b, "document.querySelector('.notice').textContent !== ''");
    check_contrasts(b, "a page whose program is gone");
    end_training(t);
}

#define DOTS                                                                                                 \
    "[...document.querySelectorAll('.accent-row > .accent-dot')].map((e) => e.style.background).join('; ')"
#define SERIES(n) "getComputedStyle(document.documentElement).getPropertyValue('--series-" #n "').trim()"
/* Of the first chart. */
#define LEGEND "[...document.querySelector('.panel-chart').querySelectorAll('.legend-row')]"

/* In the bar, in a legend, in a chart; a colour that a person chooses by the keyboard stays. */
TEST(trainers_have_colours)
{
    browser b = browser_open();
    sgm_env *env = sgm_env_create("colours", .seed = 1);
    sgm_dataset *dataset = sgm_dataset_open("iris");
    sgm_monitor *monitor = sgm_web_monitor(.quiet = true, .colours = "{\"b\": \"#ff8800\"}");
    for (const char *name = "a\0b\0c\0"; name[0] != '\0'; name += 2) {
        sgm_trainer *trainer = sgm_trainer_create(env, name);
        sgm_trainer_set_network(trainer, "input(4) + dense(3) + softmax_cross_entropy");
        sgm_trainer_set_data(trainer, sgm_minibatches(dataset, .size = 10));
        sgm_trainer_set_optimiser(trainer, sgm_adam());
    }
    CHECK_OK(sgm_env_add_monitor(env, monitor));
    CHECK_OK(sgm_env_run(env, .epochs = 3));
    browser_go(&b, sgm_web_monitor_url(monitor));
    browser_click(&b, ".bar-colours");
    browser_await(&b, "document.querySelectorAll('.accent-row').length === 3");
    check_for_everybody(&b, "the colours of trainers");
    browser_do(&b,
               "window.shade = (text) => { const e = document.createElement('i'); e.style.background = text; "
               "return e.style.background; }");
    CHECK(browser_is(&b, DOTS " === [" SERIES(1) ", '#ff8800', " SERIES(3) "].map(window.shade).join('; ')"));
    browser_await(&b, LEGEND ".some((e) => e.textContent.startsWith('b') && "
                             "e.querySelector('.swatch').style.background.includes('255, 136, 0'))");
    /* Values of one trainer are told apart by their strokes. */
    browser_do(&b, "document.querySelector('.panel-chart .legend-add').click()");
    browser_type(&b, ".picker input", "optimiser.loss" BROWSER_ENTER BROWSER_ESCAPE);
    browser_await(&b, "new Set(" LEGEND ".filter((e) => /^a/.test(e.textContent)).map((e) => "
                      "e.querySelector('.swatch').style.background)).size === 2");
    browser_click(&b, ".bar-colours");
    browser_type(&b, "[aria-label='Colour 7 for b']", BROWSER_ENTER);
    browser_await(&b, "document.querySelectorAll('.accent-row > .accent-dot')[1].style.background === "
                      "window.shade(" SERIES(7) ")");
    CHECK(browser_is(&b, "document.activeElement.getAttribute('aria-label') === 'Colour 7 for b'"));
    browser_do(&b, "location.reload()");
    browser_click(&b, ".bar-colours");
    browser_await(&b, "document.querySelector(\"[aria-label='Colour 7 for b']\").ariaPressed === 'true'");
    browser_click(&b, "[aria-label='The former colour of b']");
    browser_await(&b, DOTS ".includes('255, 136, 0')");
    browser_check_errors(&b);
    browser_close(&b);
    sgm_env_free(env);
    sgm_dataset_free(dataset);
}

/* A panel that is made higher by the keyboard is so when the page is loaded again; the player says what
 * works. */
TEST(an_arrangement_is_remembered)
{
    training *t = begin_training();
    browser *b = &t->browser;
    browser_await(b, "document.querySelector('[data-name=optimiser] dd')?.textContent === 'adam'");
    browser_do(b, "window.before = document.querySelector('.panel-chart').style.height; "
                  "document.querySelector('.panel-chart .panel-grip').focus()");
    browser_type(b, ".panel-chart .panel-grip", BROWSER_SHIFT_DOWN);
    browser_await(b, "document.querySelector('.panel-chart').style.height !== window.before");
    browser_do(b, "sessionStorage.setItem('height', document.querySelector('.panel-chart').style.height); "
                  "location.reload()");
    browser_await(b, "window.before === undefined && document.querySelector('.panel-chart').style.height === "
                     "sessionStorage.getItem('height')");
    browser_check_errors(b);
    end_training(t);
}

/* --- runs --- */

static void write_file(const char *name, const char *file, const char *text)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s/%s", folder, name, file);
    CHECK_OK(sgm__file_write_atomic(path, text, strlen(text)));
}

static void write_runs(void)
{
    for (int i = 0; i < 6; i++) {
        char name[32], path[200], metrics[200], configuration[80];
        snprintf(name, sizeof name, "run-%d", i);
        snprintf(path, sizeof path, "%s/%s", folder, name);
        CHECK_OK(sgm__make_folders(path));
        snprintf(metrics, sizeof metrics,
                 "{\"epoch\":1,\"iteration\":9,\"seconds\":60,\"loss\":1}\n"
                 "{\"epoch\":2,\"iteration\":18,\"seconds\":120,\"loss\":%d.%d}\n",
                 i % 3, i / 3);
        snprintf(configuration, sizeof configuration, "%d %d", i % 3, i / 3);
        write_file(name, "metrics.jsonl", metrics);
        write_file(name, "config.yaml", configuration);
        write_file(name, "log.txt",
                   "2026-11-21 20:55:09.100 [7] info run: training begins after epoch 0, iteration 0\n"
                   "2026-11-21 20:55:09.200 [7] warning run: slow\n"
                   "2026-11-21 20:55:09.300 [7] error run: stopped\n");
    }
    write_file("run-0", "notes.json", "{\"note\": \"the best\", \"tags\": [\"good\"], \"starred\": true}");
}

static json_t *read_numbers(const char *text, size_t length)
{
    (void)length;
    int rate = 0, seed = 0;
    CHECK_INT(sscanf(text, "%d %d", &rate, &seed), 2);
    return json_pack("{s:i, s:i}", "learning_rate", rate, "seed", seed);
}

TEST(everybody_can_use_the_runs)
{
    static const char *const explored[] = {"parallel", "scatter", "importance", "seeds"};
    browser b = browser_open();
    open_folder();
    write_runs();
    sgm__runs *runs = sgm__runs_start(&(sgm__runs_options){.folder = folder, .configuration = read_numbers});
    CHECK(runs != NULL);
    browser_go(&b, sgm__runs_url(runs));
    browser_await(&b, "document.querySelectorAll('[data-run]').length === 6");
    check_for_everybody(&b, "the table");
    check_keyboard(&b, "the table");
    browser_click(&b, "[data-run='run-0']");
    browser_click(&b, "[data-run='run-1']");
    browser_await(&b, "document.querySelector('.runs-differences tbody tr')");
    check_for_everybody(&b, "a comparison");
    check_keyboard(&b, "a comparison");
    browser_click(&b, "[data-switch='explore']");
    for (size_t i = 0; i < sizeof explored / sizeof *explored; i++) {
        char selector[64];
        snprintf(selector, sizeof selector, "[data-explore='%s']", explored[i]);
        browser_click(&b, selector);
        browser_await(&b, "document.querySelector('.explore-panel:not([hidden])')");
        check_for_everybody(&b, explored[i]);
        check_keyboard(&b, explored[i]);
    }
    browser_do(&b, "document.querySelector(\"[data-menu='run-0']\").click()");
    browser_await(&b, "document.querySelector('.menu')");
    check_for_everybody(&b, "the menu of a run");
    browser_do(&b, "document.querySelector(\"[data-menu='run-0']\").click()");
    browser_do(&b, "document.querySelector(\"[data-open='run-0']\").click()");
    browser_await(&b, "document.querySelector('.run-log')?.textContent.includes('stopped')");
    check_for_everybody(&b, "a run");
    browser_check_errors(&b);
    browser_close(&b);
    sgm__runs_stop(runs);
    close_folder();
}

TEST(everybody_can_read_a_report)
{
    browser b = browser_open();
    open_folder();
    json_t *list =
        json_pack("[{s:s, s:s, s:s, s:b, s:[s], s:i, s:f, s:f, s:{s:f, s:s}, s:{s:i, s:f}, s:{s:f}, s:{s:f}, "
                  "s:{s:[i,i,i], s:[i,i,i], s:[f,f,f]}, s:[{s:i, s:i, s:s, s:s}]}]",
                  "name", "first", "state", "finished", "note", "a note", "starred", 1, "tags", "best",
                  "epochs", 3, "seconds", 3723.5, "started", 0.0, "configuration", "rate", 0.1, "kind",
                  "same", "metrics", "epoch", 3, "loss", 0.5, "minimum", "loss", 0.5, "maximum", "loss", 2.0,
                  "columns", "epoch", 1, 2, 3, "branch", 0, 0, 0, "loss", 2.0, 1.0, 0.5, "interventions",
                  "epoch", 1, "iteration", 600, "who", "ctl", "text", "rate was set");
    char *html = sgm__report_html("Mine", list);
    CHECK_OK(sgm__file_write_atomic(in_folder("report.html"), html, strlen(html)));
    char *url = sgm__format("file://%s", in_folder("report.html"));
    browser_go(&b, url);
    browser_await(&b, "document.querySelector('table')");
    check_contrasts(&b, "the report");
    check_names(&b, "the report");
    browser_close(&b);
    sgm__free(url);
    sgm__free(html);
    json_decref(list);
    close_folder();
}

/* --- a network that predicts --- */

TEST(everybody_can_ask_a_network)
{
    static const char network[] = "input(2, 2) + dense(3, tanh) + dense(2) + softmax_cross_entropy";
    browser b = browser_open();
    sgm_env *env = sgm_env_create("served", .seed = 3);
    sgm_trainer *trainer = sgm_trainer_create(env, "served");
    CHECK_OK(sgm_trainer_set_network(trainer, network));
    sgm__serve *serve = sgm__serve_start(&(sgm__serve_options){.trainer = trainer, .network = network});
    CHECK(serve != NULL);
    browser_go(&b, sgm__serve_url(serve));
    browser_await(&b, "document.querySelector('tbody')");
    check_for_everybody(&b, "the page");
    check_keyboard(&b, "the page");
    browser_do(&b, "document.querySelector('#input').value = '{\"input\": 1}'");
    browser_click(&b, "#serve button");
    browser_await(&b, "document.querySelector('#prediction.bad')");
    check_for_everybody(&b, "a refusal");
    browser_close(&b);
    sgm__serve_stop(serve);
    sgm_env_free(env);
}
