/* Steering a training by its page: checkpoints that come and go, rules, taking back, from the beginning, the
 * end. */
#include "page_training.h"

#define CHECKPOINTS ".panel-checkpoints "
#define ROW(name) "tr[data-name=\"" name "\"]"
#define RULES ".panel-rules "
#define CHANGES ".panel-changes "
#define RULE "if training.loss < 0 then stop"

static void await_rows(browser *b, const char *rows, int count)
{
    char *expression = sgm__format("document.querySelectorAll('%s').length === %d", rows, count);
    browser_await(b, expression);
    sgm__free(expression);
}

static void await_no_dialogue(browser *b)
{
    browser_await(b, "document.querySelector('dialog') === null");
}

/* Until a file has the bytes of another one. */
static void await_same_file(browser *b, const char *path, const char *other)
{
    char *wanted, *found;
    size_t length, found_length;
    bool same = false;
    CHECK_OK(sgm__file_read(other, SIZE_MAX, &wanted, &length));
    for (double end = sgm__now() + BROWSER_PATIENCE; !same; usleep(20000)) {
        if (sgm__now() > end)
            browser_give_up(b, path);
        if (!sgm__file_exists(path) || sgm__file_read(path, SIZE_MAX, &found, &found_length) != SGM_OK)
            continue;
        same = found_length == length && memcmp(found, wanted, length) == 0;
        sgm__free(found);
    }
    sgm__free(wanted);
}

/* Where links that are files go. */
static void keep_downloads(browser *b, const char *path)
{
    json_decref(browser_ask(b, "POST", "/goog/cdp/execute",
                            json_pack("{s:s, s:{s:s, s:s}}", "cmd", "Browser.setDownloadBehavior", "params",
                                      "behavior", "allow", "downloadPath", path),
                            NULL));
}

TEST(checkpoints_come_and_go)
{
    training *t = begin_training();
    browser *b = &t->browser;
    char elsewhere[] = "/tmp/sigma-downloads-XXXXXX", path[96], other[96], command[256];
    CHECK(mkdtemp(elsewhere) != NULL);
    pause_training(t);
    open_tab_called(b, "Checkpoints");
    browser_type(b, CHECKPOINTS "form input.input", "before" BROWSER_ENTER);
    await_rows(b, ROW("before"), 1);
    snprintf(path, sizeof path, "%s/before.safetensors", elsewhere);
    keep_downloads(b, elsewhere);
    browser_click(b, CHECKPOINTS ROW("before") " button[data-icon=download]");
    await_same_file(b, path, in_folder("before.safetensors"));
    /* What was taken away is brought back under another name. */
    snprintf(other, sizeof other, "%s/other.safetensors", elsewhere);
    CHECK_INT(rename(path, other), 0);
    browser_type(b, CHECKPOINTS "input[type=file]", other);
    await_rows(b, ROW("other"), 1);
    await_same_file(b, in_folder("other.safetensors"), other);
    /* Nothing is replaced unasked. */
    browser_type(b, CHECKPOINTS "form input.input", "before" BROWSER_ENTER);
    browser_await(b, "document.querySelector('dialog h2')?.textContent.includes('before')");
    browser_click(b, "dialog .dialogue-foot button[type=button]");
    await_no_dialogue(b);
    browser_click(b, CHECKPOINTS ROW("other") " button[data-icon=trash]");
    browser_click(b, "dialog button[type=submit]");
    await_rows(b, ROW("other"), 0);
    CHECK(!sgm__file_exists(in_folder("other.safetensors")));
    CHECK(sgm__file_exists(in_folder("before.safetensors")));
    browser_check_errors(b);
    end_training(t);
    snprintf(command, sizeof command, "rm -r '%s'", elsewhere);
    CHECK_INT(system(command), 0);
}

static void await_hooks(training *t, size_t wanted)
{
    size_t count = wanted + 1;
    for (double end = sgm__now() + BROWSER_PATIENCE; count != wanted; usleep(20000)) {
        sgm_attached_hook *hooks;
        if (sgm__now() > end)
            browser_give_up(&t->browser, "so many hooks");
        CHECK_OK(sgm_trainer_hooks(t->trainer, &hooks, &count));
        sgm_attached_hooks_free(hooks, count);
    }
}

#define BUTTONS RULES ".rule-buttons"

TEST(a_rule_with_external_has_a_button)
{
    training *t = begin_training();
    browser *b = &t->browser;
    pause_training(t);
    open_tab_called(b, "Settings");
    browser_await(b, "document.querySelector('" BUTTONS "').hidden");
    browser_type(
        b, RULES "form input",
        "every iteration if external \"slower\" then set optimiser.learning_rate = 0.003" BROWSER_ENTER);
    await_rows(b, BUTTONS " button", 1);
    browser_await(b, "document.querySelector('" BUTTONS " button').textContent === 'slower' && "
                     "document.querySelector('" BUTTONS " button').title.includes('external')");
    /* By the keyboard, which stays where it is. */
    browser_type(b, BUTTONS " button", BROWSER_ENTER);
    browser_await(
        b, "[...document.querySelectorAll('.change .change-act')].some(e => e.textContent === 'pressed')");
    browser_await(b, "document.activeElement === document.querySelector('" BUTTONS " button')");
    CHECK_OK(sgm_trainer_step(t->trainer, 1));
    browser_await(b, "[...document.querySelectorAll('.change .mono')].some(e => e.textContent === "
                     "'optimiser.learning_rate')");
    CHECK_NEAR(learning_rate_of(t->trainer), 0.003, 1e-9);
    CHECK_OK(sgm_trainer_detach_hook(t->trainer, "rule"));
    await_rows(b, BUTTONS " button", 0);
    browser_check_errors(b);
    end_training(t);
}

/* In the page, whatever tab is looked at, and as a notification of the browser. */
TEST(what_a_rule_tells_is_shown)
{
    training *t = begin_training();
    browser *b = &t->browser;
    pause_training(t);
    open_tab_called(b, "Settings");
    browser_do(
        b,
        "window.told = []; window.Notification = class extends EventTarget { static permission = 'granted'; "
        "static requestPermission = async () => 'granted'; "
        "constructor(title, { body }) { super(); window.told.push(body); } }");
    browser_click(b, RULES "[data-notify]");
    browser_await(b, "document.querySelector('[data-notify]').getAttribute('aria-checked') === 'true'");
    browser_type(b, RULES "form input", "at iteration 1000000 notify \"never\"" BROWSER_ENTER);
    await_rows(b, RULES "tbody tr", 1);
    browser_type(b, RULES "form input", "every iteration notify \"now <b>{iteration}</b>\"" BROWSER_ENTER);
    await_rows(b, RULES "tbody tr", 2);
    CHECK_OK(sgm_trainer_step(t->trainer, 1));
    browser_await(
        b, "/: now <b>\\d+<.b>$/.test(document.querySelector('.toast.is-info:last-child span').textContent)");
    browser_await(b, "window.told.length === 1 && window.told[0].startsWith('now <b>')");
    browser_check_errors(b);
    end_training(t);
}

TEST(rules_and_values_are_taken_back)
{
    training *t = begin_training();
    browser *b = &t->browser;
    pause_training(t);
    open_tab_called(b, "Settings");
    browser_await(b, "document.querySelector('" CHANGES ".panel-tools button').disabled");
    browser_type(b, RULES "form input", "if nonsense" BROWSER_ENTER);
    browser_await(b, "!document.querySelector('" RULES ".form-error').hidden");
    await_hooks(t, 0);
    browser_type(b, RULES "form input", BROWSER_ALL RULE BROWSER_ENTER);
    await_rows(b, RULES ".hook-name", 1);
    await_hooks(t, 1);
    browser_type(b, ".settings-reason", "the loss shakes");
    browser_type(b, LEARNING_RATE, BROWSER_ALL "0.002" BROWSER_ENTER);
    await_rows(b, ".change", 2);
    CHECK_NEAR(learning_rate_of(t->trainer), 0.002, 1e-12);
    /* The reason stays with this change, and the field is empty for the next one. */
    await_rows(b, ".change-reason", 1);
    browser_await(b, "document.querySelector('.change-reason').textContent === 'the loss shakes'");
    browser_await(b, "document.querySelector('.settings-reason').value === ''");
    /* The newest first, then there is nothing left. */
    browser_click(b, CHANGES ".panel-tools button");
    await_rows(b, ".change", 3);
    CHECK_NEAR(learning_rate_of(t->trainer), 0.01, 1e-9);
    browser_click(b, CHANGES ".panel-tools button");
    await_hooks(t, 0);
    await_rows(b, ".change", 4);
    browser_await(b, "document.querySelector('" CHANGES ".panel-tools button').disabled");
    await_rows(b, RULES ".hook-name", 0);
    /* Taken off by hand, and put back by its row. */
    browser_type(b, RULES "form input", RULE BROWSER_ENTER);
    await_rows(b, RULES ".hook-name", 1);
    browser_click(b, RULES "td button[data-icon='close']");
    browser_click(b, "dialog button[type=submit]");
    await_hooks(t, 0);
    await_no_dialogue(b);
    await_rows(b, ".change", 6);
    browser_click(b, ".change:first-child button[data-icon='undo']");
    await_hooks(t, 1);
    browser_await(b, "document.querySelector('" RULES ".hook-text')?.textContent === '" RULE "'");
    /* The rule that could not be read was refused by the server, which the browser tells as an error: the
     * only one. */
    char *errors = browser_errors(b);
    CHECK(strstr(errors, "/api/command") != NULL && strchr(errors, '\n') == errors + strlen(errors) - 1);
    sgm__free(errors);
    end_training(t);
}

TEST(a_person_rewinds_and_stops)
{
    training *t = begin_training();
    browser *b = &t->browser;
    await_more(b, 20);
    double stands = pause_training(t);
    CHECK(stands > 20);
    browser_click(b, ".panel-control button[data-icon='rewind']");
    browser_click(b, "dialog button[type=submit]");
    await_iteration(t, 0);
    await_no_dialogue(b);
    step(t);
    await_iteration(t, 1);
    browser_click(b, ".panel-control button[data-icon='stop']");
    browser_click(b, "dialog button[type=submit]");
    browser_await(b, STATE " === 'Ended'");
    CHECK_OK(sgm_env_wait(t->env));
    CHECK_INT(sgm_trainer_get_state(t->trainer), SGM_TRAINER_IDLE);
    browser_await(b, "document.querySelector('.panel-control button[data-icon=stop]').disabled");
    browser_check_errors(b);
    end_training(t);
}

static void await_frozen(const training *t, const char *patterns)
{
    bool same = false;
    for (int i = 0; i < 2000 && !same; i++) {
        sgm_content content = {0};
        CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(t->trainer), "optimiser.frozen", &content));
        same = strcmp(content.as.text, patterns) == 0;
        sgm_content_clear(&content);
        if (!same)
            usleep(5000);
    }
    CHECK(same);
}

#define FACTS ".panel-network .layer-facts [data-needs=steer] button"

TEST(a_person_freezes_a_layer_and_trains_it_again)
{
    training *t = begin_training();
    browser *b = &t->browser;
    open_tab_called(b, "Inspect");
    browser_await(b, "document.querySelectorAll('" FACTS "').length === 2");
    browser_click(b, FACTS ":nth-of-type(1)");
    await_frozen(t, "1-dense.*");
    browser_click(b, FACTS ":nth-of-type(2)");
    await_frozen(t, "");
    browser_check_errors(b);
    end_training(t);
}
