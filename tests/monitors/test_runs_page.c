/* The page over a folder of runs in a browser: table, filter, comparison, deletion; it must log no error. */
#include "browser.h"
#include "monitors/runs/runs.h"

#include <sys/file.h>

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

    browser_do(
        &b,
        "const before = URL.createObjectURL; URL.createObjectURL = (blob) => { blob.text().then((text) => "
        "{ window.saved = text; }); return before.call(URL, blob); }");
    browser_click(&b, ".runs-tools button[data-icon='text']");
    browser_await(&b, "window.saved.includes('</span>second</th>') && window.saved.includes('<polyline')");

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

/* Runs of two settings and three seeds, of which the rate alone decides. */
static void write_experiment(const char *folder)
{
    static const char *const rates[] = {"0.001", "0.01", "0.1"};
    for (int i = 0; i < 12; i++) {
        char name[32], metrics[200], path[200], configuration[80];
        snprintf(name, sizeof name, "run-%02d", i);
        snprintf(metrics, sizeof metrics,
                 "{\"epoch\":1,\"iteration\":9,\"seconds\":60,\"loss\":1}\n"
                 "{\"epoch\":2,\"iteration\":18,\"seconds\":120,\"loss\":%d.%d}\n",
                 i % 3, i / 3);
        write_run(folder, name, metrics);
        snprintf(path, sizeof path, "%s/%s/config.yaml", folder, name);
        snprintf(configuration, sizeof configuration, "%s %d", rates[i % 3], i / 3);
        CHECK_OK(sgm__file_write_atomic(path, configuration, strlen(configuration)));
    }
}

static json_t *read_experiment(const char *text, size_t length)
{
    (void)length;
    double rate = 0;
    int seed = 0;
    CHECK_INT(sscanf(text, "%lf %d", &rate, &seed), 2);
    return json_pack("{s:f, s:i}", "learning_rate", rate, "seed", seed);
}

/* A run that holds its folder runs; when it lets go, the page tells of its end. */
TEST(the_end_of_a_run_is_told)
{
    char folder[] = "/tmp/sigma-runs-page-XXXXXX", path[128];
    browser b = browser_open();
    sgm__runs *runs = begin_page(&b, folder);
    snprintf(path, sizeof path, "%s/first", folder);
    int held = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_INT(flock(held, LOCK_EX), 0);
    browser_await(&b, "document.querySelector('tr[data-row=first]').textContent.includes('Running')");
    CHECK(browser_is(&b, "document.querySelector('.toast') === null"));
    browser_do(
        &b,
        "window.told = []; window.Notification = class extends EventTarget { static permission = 'granted'; "
        "static requestPermission = async () => 'granted'; "
        "constructor(title, { body }) { super(); window.told.push(`${title}: ${body}`); } }");
    browser_click(&b, "[data-notify]");
    browser_await(&b, "document.querySelector('[data-notify]').getAttribute('aria-checked') === 'true' && "
                      "localStorage.getItem('sigma.notify') === 'on'");
    close(held);
    browser_await(&b, "document.querySelector('.toast').textContent.includes('first: Finished')");
    CHECK(browser_is(&b, "window.told.join() === 'first: Finished'"));
    end_page(&b, runs, folder);
}

TEST(runs_are_explored)
{
    char folder[] = "/tmp/sigma-runs-page-XXXXXX";
    browser b = browser_open();
    CHECK(mkdtemp(folder) != NULL);
    write_experiment(folder);
    sgm__runs *runs =
        sgm__runs_start(&(sgm__runs_options){.folder = folder, .configuration = read_experiment});
    CHECK(runs != NULL);
    browser_go(&b, sgm__runs_url(runs));
    browser_await(&b, "document.querySelectorAll('[data-run]').length === 12");
    browser_click(&b, "[data-switch='explore']");
    browser_await(&b, "document.querySelector('.explore-canvas').getAttribute('aria-label') === "
                      "'12 of 12 runs over the axes learning_rate, seed, loss, minimum'");

    /* The first axis is the learning rate: its upper quarter holds a third of the runs. A press ends that. */
    browser_do(&b, "document.querySelector('.runs-explore').scrollIntoView()");
    const char *plot = ".explore-plot.is-wide";
    double width = browser_number(&b, "document.querySelector('.explore-canvas').clientWidth");
    double at = 70 / width - 0.5;
    browser_drag(&b, plot, at, -0.45, at, -0.25);
    browser_await(&b, "document.querySelectorAll('[data-run]').length === 4");
    CHECK(browser_is(&b, ROWS " === 'run-02,run-05,run-08,run-11'"));
    browser_drag(&b, plot, at, 0, at, 0);
    browser_await(&b, "document.querySelectorAll('[data-run]').length === 12");

    /* The same by keyboard: the lower end of the seeds, moved up step by step. */
    browser_click(&b, ".explore-details summary");
    browser_do(&b, "document.querySelector(\"[data-range='configuration:seed 0']\").focus()");
    browser_type(&b, "[data-range='configuration:seed 0']", "\xee\x80\x90"); /* end */
    browser_await(&b, ROWS " === 'run-09,run-10,run-11'");
    CHECK(browser_is(&b, "document.activeElement.dataset.range === 'configuration:seed 0'"));
    browser_click(&b, ".explore-details .button");
    browser_await(&b, "document.querySelectorAll('[data-run]').length === 12");

    browser_click(&b, "[data-explore='importance']");
    browser_await(&b, "document.querySelector('.explore-importance tbody tr').dataset.setting === "
                      "'configuration:learning_rate'");
    browser_click(&b, "[data-explore='seeds']");
    browser_await(&b, "document.querySelectorAll('.explore-groups tbody tr').length === 3");
    /* 0.0, 0.1, 0.2, 0.3: their mean is 0.15, their sample's deviation 0.1291. */
    CHECK(browser_is(&b, "document.querySelector('.explore-groups').textContent.includes('0.15 ± 0.13')"));
    browser_click(&b, ".explore-groups tbody .link");
    browser_await(&b, "document.querySelectorAll('[data-run]:checked').length === 4");
    browser_click(&b, "[data-explore='scatter']");
    browser_await(
        &b, "document.querySelector('.explore-panel:not([hidden]) canvas').getAttribute('aria-label') === "
            "'12 runs, learning_rate across and loss, minimum upwards'");

    /* Smoothed by half: the second point of 1 and x is (1/4 + x/2) / (3/4); and by the time of day. */
    browser_do(&b, "const slider = document.querySelector('.runs-chart .slider'); slider.value = 0.5; "
                   "slider.dispatchEvent(new Event('input'))");
    browser_await(&b, "document.querySelector('.runs-canvas').getAttribute('aria-label').startsWith("
                      "'run-00: loss 0.3333')");
    browser_do(&b, "const axis = document.querySelectorAll('.runs-chart select')[1]; axis.value = 'wall'; "
                   "axis.dispatchEvent(new Event('change'))");
    browser_click(&b, ".runs-tools button[data-icon='table']");
    browser_await(&b, "/^(\\w+ \\d+,? )?\\d+:\\d+:\\d+$/.test(document.querySelector('.runs-values tbody "
                      "th').textContent)");
    end_page(&b, runs, folder);
}
