/* The monitor as a person uses it: its page in a browser, while a network learns. */
#include "page_training.h"

/* Pixels of the first chart that are not empty. */
#define INK                                                                                                  \
    "[...document.querySelectorAll('.plot canvas')].reduce((maximum, c) => Math.max(maximum, c.width === 0 " \
    "? 0 : "                                                                                                 \
    "c.getContext('2d').getImageData(0, 0, c.width, c.height).data.filter((v, i) => i % 4 === 3 && v > "     \
    "0).length), 0)"

TEST(the_page_shows_a_training)
{
    training *t = begin_training();
    browser *b = &t->browser;
    /* The token is gone from the address, and no script sees the cookie. */
    CHECK(browser_is(b, "location.pathname + location.search === '/' && document.cookie === ''"));
    CHECK(browser_is(b, "document.querySelector('h1').textContent === 'Learning'"));
    await_more(b, browser_number(b, ITERATION));
    browser_await(b, INK " > 500");
    /* The newest values reach the chart: its legend says another one. */
    browser_do(b, "window.before = document.querySelector('.legend-value').textContent");
    browser_await(b, "document.querySelector('.legend-value').textContent !== window.before");
    /* All tabs, all kinds of panels. */
    int tabs = (int)browser_number(b, "document.querySelectorAll('.tab').length");
    CHECK(tabs >= 2);
    for (int i = 0; i < tabs; i++) {
        open_tab(b, i);
        browser_await(b, "document.querySelectorAll('.panel').length > 0");
    }
    open_tab(b, 0);
    browser_do(b, "localStorage.setItem('sigma.language', 'de'); location.reload()");
    browser_await(b, "document.documentElement.lang === 'de' && "
                     "document.querySelector('.bar-state-text')?.textContent?.length > 0");
    browser_check_errors(b);
    end_training(t);
}

#define THEME "document.documentElement.dataset.theme"
#define SWITCH ".bar-end button[aria-label='Dark or light']"

TEST(a_person_switches_between_light_and_dark)
{
    training *t = begin_training();
    browser *b = &t->browser;
    browser_do(b, "window.first = " THEME "; window.shade = getComputedStyle(document.body).backgroundColor");
    CHECK(browser_is(b, "['dark', 'light'].includes(window.first)"));
    browser_click(b, SWITCH);
    browser_await(b, THEME " === (window.first === 'dark' ? 'light' : 'dark')");
    CHECK(browser_is(b, "getComputedStyle(document.body).backgroundColor !== window.shade"));
    /* It stays so when the page is loaded again. */
    browser_do(b, "sessionStorage.setItem('theme', " THEME "); location.reload()");
    browser_await(b, "window.first === undefined && document.querySelector(\"" SWITCH "\") !== null");
    CHECK(browser_is(b, THEME " === sessionStorage.getItem('theme')"));
    browser_click(b, SWITCH);
    browser_await(b, THEME " !== sessionStorage.getItem('theme')");
    browser_check_errors(b);
    end_training(t);
}

TEST(the_page_fits_a_telephone)
{
    training *t = begin_training();
    browser *b = &t->browser;
    browser_resize(b, 360, 740);
    browser_await(b, "innerWidth === 360");
    for (int i = 0; i < (int)browser_number(b, "document.querySelectorAll('.tab').length"); i++) {
        open_tab(b, i);
        browser_await(b, "document.querySelectorAll('.panel').length > 0");
        browser_await(b, "document.documentElement.scrollWidth <= 360");
        /* What can be pressed has a name for those who do not see it. */
        CHECK(browser_is(b, "[...document.querySelectorAll('button')].every((button) => "
                            "(button.getAttribute('aria-label') ?? button.textContent).trim() !== '')"));
    }
    browser_check_errors(b);
    end_training(t);
}

TEST(the_page_says_when_the_training_has_gone)
{
    training *t = begin_training();
    CHECK(browser_is(&t->browser, "!document.body.classList.contains('is-lost')"));
    end_run(t);
    browser_await(&t->browser, "document.body.classList.contains('is-lost')");
    browser_await(&t->browser, "document.getElementById('notice').textContent !== ''");
    end_training(t);
}

TEST(nobody_gets_in_without_the_token)
{
    training *t = begin_training();
    char url[256];
    json_decref(browser_ask(&t->browser, "DELETE", "/cookie", NULL, NULL));
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", t->client.port);
    browser_go(&t->browser, url);
    CHECK(browser_is(&t->browser, "document.body.innerText.includes('the token is missing or wrong')"));
    /* Of another name of this machine the cookie is not. */
    snprintf(url, sizeof url, "http://127.0.0.1:%d/?token=%s", t->client.port, t->client.token);
    browser_go(&t->browser, url);
    snprintf(url, sizeof url, "http://localhost:%d/", t->client.port);
    browser_go(&t->browser, url);
    CHECK(browser_is(&t->browser, "document.body.innerText.includes('the token is missing or wrong')"));
    end_training(t);
}

/* Other ports may know the cookie: it shows the page, and nothing in it. */
TEST(nobody_sees_data_by_the_cookie_alone)
{
    training *t = begin_training();
    browser_do(&t->browser, "localStorage.removeItem('sigma.page-token'); location.reload()");
    browser_await(&t->browser, "document.querySelector('.boot-error')?.textContent.includes("
                               "'open the address that the program printed')");
    CHECK(browser_is(&t->browser, "document.querySelector('.panel') === null"));
    char url[256];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/?token=%s", t->client.port, t->client.token);
    browser_go(&t->browser, url);
    browser_await(&t->browser, STATE " === 'Running'");
    end_training(t);
}

static void await_page_of(browser *b, int port, const char *title)
{
    char text[128];
    snprintf(text, sizeof text, "http://127.0.0.1:%d/", port);
    browser_go(b, text);
    snprintf(text, sizeof text, "document.querySelector('h1').textContent === '%s'", title);
    browser_await(b, text);
}

/* Each page is loaded again without its token, whichever was opened last. */
TEST(two_monitors_are_open_in_one_browser)
{
    training *t = begin_training();
    prepared other = prepare_page("other");
    browser_go(&t->browser, other.url);
    await_page_of(&t->browser, t->client.port, "Learning");
    browser_await(&t->browser, STATE " === 'Running'");
    await_page_of(&t->browser, web_client_of(other.url).port, "other");
    browser_check_errors(&t->browser);
    end_training(t);
    free_prepared(&other);
}

/* --- steering --- */

#define CHECKPOINTS ".panel-checkpoints "

TEST(a_person_pauses_and_steps)
{
    training *t = begin_training();
    double stands = pause_training(t);
    for (double end = sgm__now() + 0.5; sgm__now() < end;
         usleep(20000)) /* long enough for twenty iterations */
        CHECK_NEAR(iteration_of(t), stands, 0);
    await_iteration(t, stands);
    step(t);
    await_iteration(t, stands + 1);
    step(t);
    await_iteration(t, stands + 2);
    browser_click(&t->browser, ".bar-play");
    await_more(&t->browser, stands + 5);
    /* The space key is the page's, also after a click on a tab. */
    open_tab_called(&t->browser, "Settings");
    browser_await(&t->browser, "location.hash === '#settings'");
    browser_type(&t->browser, ".tab[aria-selected=true]", " ");
    browser_await(&t->browser, STATE " === 'Paused'");
    open_tab_called(&t->browser, "Log");
    browser_await(&t->browser, "document.querySelector('.task-speed').textContent === 'Paused'");
    browser_check_errors(&t->browser);
    end_training(t);
}

static bool file_has(const char *name, const char *part)
{
    char *text = NULL;
    size_t length;
    bool has =
        sgm__file_read(in_folder(name), 1 << 20, &text, &length) == SGM_OK && strstr(text, part) != NULL;
    sgm__free(text);
    return has;
}

TEST(a_person_changes_the_learning_rate)
{
    training *t = begin_training();
    browser *b = &t->browser;
    CHECK_NEAR(learning_rate_of(t->trainer), 0.01, 1e-9);
    open_tab_called(b, "Settings");
    browser_type(b, LEARNING_RATE, BROWSER_ALL "0.002" BROWSER_ENTER);
    for (double end = sgm__now() + BROWSER_PATIENCE; learning_rate_of(t->trainer) != 0.002; usleep(10000))
        if (sgm__now() > end)
            browser_give_up(b, "a learning rate of 0.002");
    for (double end = sgm__now() + BROWSER_PATIENCE; !file_has("journal.jsonl", "optimiser.learning_rate");
         usleep(10000))
        if (sgm__now() > end)
            browser_give_up(b, "a line in journal.jsonl");
    CHECK(file_has("journal.jsonl", "0.002"));
    browser_await(b,
                  "document.querySelector('.panel-changes').textContent.includes('optimiser.learning_rate')");
    /* What is no learning rate is refused, beside the value, and changes nothing. */
    browser_type(b, LEARNING_RATE, BROWSER_ALL "-3" BROWSER_ENTER);
    browser_await(b, "document.querySelector(\"" LEARNING_RATE "\").classList.contains('is-bad') || "
                     "[...document.querySelectorAll('.parameter-error')].some((p) => !p.hidden)");
    CHECK_NEAR(learning_rate_of(t->trainer), 0.002, 0);
    /* Given up: the value that counts is back, and nothing is said against it. */
    browser_type(b, LEARNING_RATE, BROWSER_ESCAPE);
    browser_await(b, "document.querySelector(\"" LEARNING_RATE "\").value === '0.002' && "
                     "[...document.querySelectorAll('.parameter-error')].every((p) => p.hidden)");
    end_training(t);
}

TEST(a_person_saves_restores_and_branches)
{
    training *t = begin_training();
    browser *b = &t->browser;
    double saved = pause_training(t);
    open_tab_called(b, "Checkpoints");
    browser_type(b, CHECKPOINTS "form input.input", "before" BROWSER_ENTER);
    browser_await(b, "document.querySelector('.checkpoint-name')?.textContent === 'before'");
    CHECK(sgm__file_exists(in_folder("before.safetensors")));
    step(t);
    await_iteration(t, saved + 1);
    browser_click(b, CHECKPOINTS ".row-actions button:nth-of-type(1)");
    browser_click(b, "dialog button[type=submit]");
    await_iteration(t, saved);
    browser_await(b, "document.querySelector('dialog') === null");
    browser_click(b, CHECKPOINTS ".row-actions button:nth-of-type(2)");
    browser_click(b, "dialog button[type=submit]");
    browser_await(b, "document.querySelector('.bar-trainer')?.options.length === 2");
    json_t *session = web_get(&t->client, "/api/session");
    const json_t *branch = json_array_get(json_object_get(session, "trainers"), 1);
    CHECK_STR(json_string_value(json_object_get(branch, "name")), "digits-branch");
    CHECK_NEAR(json_number_value(json_object_get(branch, "learning_rate")), 0.001, 1e-9);
    json_decref(session);
    browser_check_errors(b);
    end_training(t);
}

/* --- play --- */

#define ANSWER "document.querySelector('.draw-prediction li b').textContent"
#define DRAWING ".draw-canvas"

/* The live network says what it takes a drawing for. */
TEST(a_person_draws_a_digit)
{
    training *t = begin_training();
    browser *b = &t->browser;
    await_more(b, 150);
    open_tab_called(b, "Play");
    browser_await(b, "document.querySelector('" DRAWING "')?.offsetParent");
    browser_do(b, "document.querySelector('" DRAWING "').scrollIntoView({ block: 'center' })");
    browser_drag(b, DRAWING, -0.19, -0.3, -0.19, 0.3);
    browser_drag(b, DRAWING, 0.19, -0.3, 0.19, 0.3);
    browser_drag(b, DRAWING, -0.06, -0.44, 0.06, -0.44);
    browser_drag(b, DRAWING, -0.06, 0.44, 0.06, 0.44);
    browser_await(b, ANSWER " === '0' && !document.querySelector('.draw-prediction').hidden");
    /* By keys, too: a stroke is soft beside itself, and is taken away again. */
    browser_do(b, "[...document.querySelectorAll('.panel-draw button')].find((e) => e.textContent === "
                  "'Clear').click(); document.querySelector('" DRAWING "').focus()");
    CHECK(browser_is(b, "document.querySelector('.draw-prediction').hidden"));
    browser_do(b,
               "window.ink = (x, y) => document.querySelector('" DRAWING "').getContext('2d')"
               ".getImageData(x, y, 1, 1).data[0]; window.press = (key) => document.querySelector('" DRAWING
               "').dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true })); "
               "window.paper = window.ink(0, 0); window.press(' '); window.press('ArrowRight')");
    CHECK(browser_is(b, "window.ink(4, 4) !== window.paper && window.ink(3, 4) !== window.paper && "
                        "window.ink(3, 4) !== window.ink(4, 4) && window.ink(1, 4) === window.paper"));
    browser_do(b, "window.press('ArrowLeft'); window.press('Delete'); window.press('ArrowRight')");
    CHECK(browser_is(b, "window.ink(4, 4) === window.paper && window.ink(3, 4) === window.paper && "
                        "document.querySelector('.draw-prediction').hidden"));
    browser_do(b, "window.press('ArrowLeft'); window.press(' ')");
    browser_await(b, "!document.querySelector('.draw-prediction').hidden");
    /* It goes on learning, and its answer with it. */
    browser_do(b, "window.before = document.querySelector('.panel-draw .panel-note').textContent");
    browser_await(b, "document.querySelector('.panel-draw .panel-note').textContent !== window.before");
    browser_check_errors(b);
    end_training(t);
}
