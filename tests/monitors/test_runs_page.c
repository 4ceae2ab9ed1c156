/* The page over a folder of runs in a browser: table, filter, comparison, deletion; it must log no error. */
#include "browser.h"
#include "monitors/runs/runs.h"

static void write_run(const char *folder, const char *name, const char *metrics)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK_OK(sgm__make_folders(path));
    snprintf(path, sizeof path, "%s/%s/metrics.jsonl", folder, name);
    CHECK_OK(sgm__file_write_atomic(path, metrics, strlen(metrics)));
    snprintf(path, sizeof path, "%s/%s/config.yaml", folder, name);
    CHECK_OK(sgm__file_write_atomic(path, name, strlen(name)));
}

static json_t *read_text(const char *text, size_t length)
{
    return json_pack("{s:s%, s:i}", "kind", text, length, "seed", 7);
}

TEST(runs_are_compared_and_deleted)
{
    char folder[] = "/tmp/sigma-runs-page-XXXXXX", command[128];
    const char *log = "2026-11-21 20:55:09.100 [7] info first: training begins after epoch 0, iteration 0\n";
    browser b = browser_open();
    CHECK(mkdtemp(folder) != NULL);
    write_run(folder, "first",
              "{\"epoch\":1,\"iteration\":9,\"loss\":0.5}\n{\"epoch\":2,\"iteration\":18,\"loss\":0.25}\n");
    snprintf(command, sizeof command, "%s/first/log.txt", folder);
    CHECK_OK(sgm__file_write_atomic(command, log, strlen(log)));
    write_run(folder, "second", "{\"epoch\":1,\"iteration\":9,\"loss\":0.75}\n");
    sgm__runs *runs = sgm__runs_start(&(sgm__runs_options){.folder = folder, .configuration = read_text});
    CHECK(runs != NULL);
    browser_go(&b, sgm__runs_url(runs));
    browser_await(&b, "document.querySelectorAll('[data-run]').length === 2");
    browser_click(&b, "[data-key='metrics:loss']");
    browser_await(&b, "document.querySelector('[data-run]').dataset.run === 'first'");
    browser_click(&b, "[data-key='metrics:loss']");
    browser_await(&b, "document.querySelector('[data-run]').dataset.run === 'second'");

    browser_click(&b, "[data-open='first']");
    browser_await(
        &b, "document.querySelector('.run-log')?.textContent.includes('training begins after epoch 0')");
    CHECK(browser_is(&b, "document.querySelector('.run-box').textContent.includes('kindfirst')"));
    browser_click(&b, "dialog .icon-button");
    browser_await(&b, "document.querySelector('dialog') === null");

    browser_click(&b, "[data-run='first']");
    browser_click(&b, "[data-run='second']");
    browser_await(&b,
                  "document.querySelector('.runs-canvas').getAttribute('aria-label') === 'first: loss 0.25; "
                  "second: loss 0.75'");
    CHECK(browser_is(&b,
                     "document.querySelector('.runs-differences tbody').textContent === 'kindfirstsecond'"));

    /* Closer, from the middle to the end, and as numbers. */
    browser_await(&b, "document.querySelector('.runs-tools button[data-icon=shrink]').hidden");
    browser_drag(&b, ".runs-canvas", 0.1, 0, 0.499, 0);
    browser_await(&b, "!document.querySelector('.runs-tools button[data-icon=shrink]').hidden");
    browser_click(&b, ".runs-tools button[data-icon='table']");
    browser_await(&b, "document.querySelector('.runs-values tbody').textContent === '20.25'");
    browser_click(&b, ".runs-tools button[data-icon='shrink']");
    browser_await(&b, "document.querySelector('.runs-values tbody').textContent === '20.2510.500.75'");

    browser_type(&b, ".search input", "loss<0.3");
    browser_await(&b, "document.querySelectorAll('[data-run]').length === 1");
    browser_click(&b, "[data-menu='first']");
    browser_click(&b, ".menu-entry.is-danger");
    browser_type(&b, "dialog input", "first");
    browser_click(&b, "dialog .is-danger");
    browser_await(&b, "document.querySelectorAll('[data-run]').length === 0");
    snprintf(command, sizeof command, "%s/first", folder);
    CHECK(!sgm__file_exists(command));
    browser_check_errors(&b);
    browser_close(&b);
    sgm__runs_stop(runs);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    CHECK_INT(system(command), 0);
}

static sgm__runs *begin_page(browser *b, char *folder)
{
    CHECK(mkdtemp(folder) != NULL);
    write_run(folder, "first", "{\"epoch\":1,\"iteration\":9,\"loss\":0.5}\n");
    write_run(folder, "second", "{\"epoch\":1,\"iteration\":9,\"loss\":0.75}\n");
    sgm__runs *runs = sgm__runs_start(&(sgm__runs_options){.folder = folder, .configuration = read_text});
    CHECK(runs != NULL);
    browser_go(b, sgm__runs_url(runs));
    browser_await(b, "document.querySelectorAll('[data-run]').length === 2");
    return runs;
}

static void end_page(browser *b, sgm__runs *runs, const char *folder)
{
    char command[128];
    browser_check_errors(b);
    browser_close(b);
    sgm__runs_stop(runs);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    CHECK_INT(system(command), 0);
}

#define ROWS "[...document.querySelectorAll('[data-run]')].map((one) => one.dataset.run).sort().join()"
TEST(runs_are_noted_starred_and_archived)
{
    char folder[] = "/tmp/sigma-runs-page-XXXXXX";
    browser b = browser_open();
    sgm__runs *runs = begin_page(&b, folder);
    CHECK(browser_is(&b, "document.querySelector('[data-switch=onlyStarred]').hidden"));
    browser_click(&b, "[data-star='first']");
    browser_await(&b, "document.querySelector('[data-star=first]').getAttribute('aria-pressed') === 'true'");
    CHECK(browser_is(&b, "document.activeElement.dataset.star === 'first'"));
    browser_click(&b, "[data-switch='onlyStarred']");
    browser_await(&b, ROWS " === 'first'");
    browser_click(&b, ".toast .link"); /* undo: no run has a star */
    browser_await(&b, ROWS " === ''");
    browser_click(&b, "[data-switch='onlyStarred']");
    browser_await(&b, ROWS " === 'first,second'");

    browser_click(&b, "[data-menu='second']");
    browser_click(&b, "[data-entry='runs.notes']");
    browser_type(&b, "dialog textarea", "the gradient <b>exploded</b>");
    browser_type(&b, "dialog input", "bad, again bad");
    browser_click(&b, "dialog .is-primary");
    browser_await(&b, "document.querySelector('tr[data-row=second] .runs-tags').textContent === 'badagain'");
    CHECK(browser_is(&b, "document.querySelector('tr[data-row=second]').textContent.includes('<b>')"));
    browser_type(&b, ".search input", "tag=again");
    browser_await(&b, ROWS " === 'second'");
    browser_type(&b, ".search input", BROWSER_ALL "exploded");
    browser_await(&b, ROWS " === 'second'");
    browser_type(&b, ".search input", BROWSER_ALL "-");
    browser_await(&b, ROWS " === ''");
    browser_type(&b, ".search input", "\xee\x80\x83"); /* backspace */

    browser_await(&b, ROWS " === 'first,second'");
    browser_click(&b, "[data-menu='second']");
    browser_click(&b, "[data-entry='runs.archive']");
    browser_await(&b, ROWS " === 'first'");
    browser_click(&b, "[data-switch='withArchived']");
    browser_await(&b, ROWS " === 'first,second'");
    browser_click(&b, "[data-open='second']");
    browser_await(&b, "document.querySelector('.run-note').textContent === 'the gradient <b>exploded</b>'");
    browser_click(&b, "dialog .icon-button");
    end_page(&b, runs, folder);
}
