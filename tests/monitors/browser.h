/* A browser to test pages with: Chromium without a window, told what to do by ChromeDriver in W3C's WebDriver
 * protocol (https://www.w3.org/TR/webdriver2). For tests. */
#ifndef SIGMA_BROWSER_H
#define SIGMA_BROWSER_H

#include "base/base.h"
#include "test.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define BROWSER_PATIENCE 60.0 /* seconds, on a busy machine */

typedef struct browser {
    pid_t keeper;
    int life, output; /* pipes: open while we live, what the driver says */
    CURL *curl;
    char *session;   /* its URL */
    char folder[32]; /* for its temporary files */
} browser;

/* Without a process of its own: on a machine that is short of memory a shell that does not start would look
 * like a browser that is not there. */
static inline bool browser_on_path(const char *name)
{
    const char *path = getenv("PATH");
    while (path != NULL && *path != '\0') {
        char file[PATH_MAX];
        size_t length = strcspn(path, ":");
        snprintf(file, sizeof file, "%.*s/%s", (int)length, path, name);
        if (access(file, X_OK) == 0)
            return true;
        path += length + (path[length] == ':');
    }
    return false;
}

static inline bool browser_is_there(void)
{
    return browser_on_path("chromedriver") &&
           (browser_on_path("chromium") || browser_on_path("chromium-browser") ||
            browser_on_path("google-chrome"));
}

/* --- requests --- */

static inline size_t browser_take(char *bytes, size_t size, size_t count, void *text)
{
    sgm__text_append_bytes(text, bytes, size * count);
    return size * count;
}

/* The "value" of the answer, new; NULL: an error, whose text is in `why` if that is given (else the test
 * fails). Takes `body`. */
static inline json_t *browser_request(browser *b, const char *method, const char *url, json_t *body,
                                      char why[256])
{
    char *text = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;
    sgm__text answer = {0};
    json_error_t error;
    json_decref(body);
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json; charset=utf-8");
    curl_easy_reset(b->curl);
    curl_easy_setopt(b->curl, CURLOPT_URL, url);
    curl_easy_setopt(b->curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(b->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(b->curl, CURLOPT_TIMEOUT, (long)(2 * BROWSER_PATIENCE));
    curl_easy_setopt(b->curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(b->curl, CURLOPT_HTTPHEADER, headers);
    if (text != NULL)
        curl_easy_setopt(b->curl, CURLOPT_POSTFIELDS, text);
    curl_easy_setopt(b->curl, CURLOPT_WRITEFUNCTION, browser_take);
    curl_easy_setopt(b->curl, CURLOPT_WRITEDATA, &answer);
    CURLcode result = curl_easy_perform(b->curl);
    curl_slist_free_all(headers);
    free(text);
    json_t *json = result == CURLE_OK && answer.data != NULL ? json_loads(answer.data, 0, &error) : NULL;
    json_t *value = json_incref(json_object_get(json, "value"));
    const char *failure =
        json == NULL ? curl_easy_strerror(result) : json_string_value(json_object_get(value, "error"));
    if (failure != NULL) {
        const char *more = json_string_value(json_object_get(value, "message"));
        char message[256];
        snprintf(message, sizeof message, "%s: %.200s", failure, more != NULL ? more : "");
        json_decref(value);
        value = NULL;
        if (why != NULL)
            memcpy(why, message, sizeof message);
        else
            TEST_FAIL("%s %s: %s", method, url, message);
    }
    json_decref(json);
    sgm__text_free(&answer);
    return value;
}

static inline json_t *browser_ask(browser *b, const char *method, const char *path, json_t *body,
                                  char why[256])
{
    char *url = sgm__format("%s%s", b->session, path);
    json_t *value = browser_request(b, method, url, body, why);
    sgm__free(url);
    return value;
}

/* --- begin and end --- */

/* It says on which port it listens; 0: it does not. */
static inline int browser_driver_port(int output)
{
    sgm__text text = {0};
    int port = 0;
    char part[512];
    for (double end = sgm__now() + BROWSER_PATIENCE; port == 0 && sgm__now() < end;) {
        struct pollfd wait = {.fd = output, .events = POLLIN};
        if (poll(&wait, 1, 1000) <= 0)
            continue;
        ssize_t count = read(output, part, sizeof part);
        if (count <= 0)
            break;
        sgm__text_append_bytes(&text, part, (size_t)count);
        const char *found = strstr(text.data, "started successfully on port ");
        if (found != NULL && strchr(found, '.') != NULL)
            port = atoi(found + 29);
    }
    sgm__text_free(&text);
    return port;
}

/* The driver and the browser are a group of processes, of which a keeper of ours is the first: when the test
 * has ended, in whatever way, it ends them all. Children of theirs whose parents have gone become its own. */
static inline void browser_keep(int test, int output, const char *temporary)
{
    char byte;
    int nowhere = open("/dev/null", O_RDWR);
    setpgid(0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (fork() == 0) {
        dup2(nowhere, 0);
        dup2(output, 1);
        dup2(nowhere, 2);
        setenv("TMPDIR", temporary, 1);
        execlp("chromedriver", "chromedriver", "--port=0", (char *)NULL);
        _exit(127);
    }
    close(output);
    signal(SIGTERM, SIG_IGN);
    while (read(test, &byte, 1) < 0 && errno == EINTR)
        ;
    kill(0, SIGTERM);
    for (double end = sgm__now() + 5; waitpid(-1, NULL, WNOHANG) >= 0 && sgm__now() < end;)
        usleep(1000);
    kill(0, SIGKILL);
}

/* Its port; 0: it did not start. */
static inline int browser_start_driver(browser *b)
{
    int output[2], life[2];
    strcpy(b->folder, "/tmp/sigma-browser-XXXXXX");
    CHECK(mkdtemp(b->folder) != NULL);
    CHECK_INT(pipe2(output, O_CLOEXEC) | pipe2(life, O_CLOEXEC), 0);
    b->keeper = fork();
    CHECK(b->keeper >= 0);
    if (b->keeper == 0) {
        close(life[1]);
        close(output[0]);
        browser_keep(life[0], output[1], b->folder);
        _exit(0);
    }
    close(output[1]);
    close(life[0]);
    b->life = life[1];
    b->output = output[0];
    return browser_driver_port(output[0]);
}

static inline int browser_remove_one(const char *path, const struct stat *information, int kind,
                                     struct FTW *place)
{
    (void)information;
    (void)kind;
    (void)place;
    return remove(path);
}

/* What the browser has left is removed: a profile of some MB. */
static inline void browser_stop_driver(browser *b)
{
    if (b->keeper <= 0)
        return;
    close(b->life);
    close(b->output);
    waitpid(b->keeper, NULL, 0);
    nftw(b->folder, browser_remove_one, 8, FTW_DEPTH | FTW_PHYS);
    b->keeper = 0;
}

/* One gives up at times, if another process takes the port that it has chosen. */
static inline int browser_try_driver(browser *b)
{
    int port = browser_start_driver(b);
    for (int i = 0; i < 4 && port == 0; i++) {
        browser_stop_driver(b);
        port = browser_start_driver(b);
    }
    return port;
}

static inline void browser_close(browser *b)
{
    char why[256];
    if (b->session != NULL)
        json_decref(browser_ask(b, "DELETE", "", NULL, why));
    browser_stop_driver(b);
    curl_easy_cleanup(b->curl);
    sgm__free(b->session);
    *b = (browser){0};
}

static inline json_t *browser_options(void)
{
    return json_pack("{s:{s:{s:s, s:{s:s}, s:{s:[s,s,s,s,s,s,s,s,s]}}}}", "capabilities", "alwaysMatch",
                     "browserName", "chrome", "goog:loggingPrefs", "browser", "ALL", "goog:chromeOptions",
                     "args", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--no-proxy-server", "--disable-extensions", "--disable-background-networking",
                     "--lang=en-US", "--window-size=1440,900");
}

/* Without one on this machine the test is skipped. */
static inline browser browser_open(void)
{
    browser b = {0};
    char url[64];
    if (!browser_is_there())
        SKIP("there is no chromedriver with a Chromium: 'scripts/setup.sh --test' installs both");
    curl_global_init(CURL_GLOBAL_DEFAULT);
    b.curl = curl_easy_init();
    int port = browser_try_driver(&b);
    if (port == 0) {
        browser_close(&b);
        TEST_FAIL("chromedriver does not start");
    }
    snprintf(url, sizeof url, "http://127.0.0.1:%d/session", port);
    char why[256];
    json_t *value = browser_request(&b, "POST", url, browser_options(), why);
    if (value == NULL) {
        browser_close(&b);
        TEST_FAIL("Chromium does not start: %s", why);
    }
    b.session = sgm__format("%s/%s", url, json_string_value(json_object_get(value, "sessionId")));
    json_decref(value);
    return b;
}

/* --- what a person does --- */

static inline void browser_go(browser *b, const char *url)
{
    json_decref(browser_ask(b, "POST", "/url", json_pack("{s:s}", "url", url), NULL));
}

/* Of the page, also below what a window may have. */
static inline void browser_resize(browser *b, int width, int height)
{
    json_decref(browser_ask(b, "POST", "/goog/cdp/execute",
                            json_pack("{s:s, s:{s:i, s:i, s:i, s:b}}", "cmd",
                                      "Emulation.setDeviceMetricsOverride", "params", "width", width,
                                      "height", height, "deviceScaleFactor", 1, "mobile", 0),
                            NULL));
}

/* What the body of a function gives; new. */
static inline json_t *browser_run(browser *b, const char *script)
{
    return browser_ask(b, "POST", "/execute/sync", json_pack("{s:s, s:[]}", "script", script, "args"), NULL);
}

static inline void browser_do(browser *b, const char *script)
{
    json_decref(browser_run(b, script));
}

/* What speaks of an element that is not there yet is not true. */
static inline bool browser_is(browser *b, const char *expression)
{
    char *script = sgm__format("try { return Boolean(%s) } catch { return false }", expression);
    json_t *value = browser_run(b, script);
    bool is = json_is_true(value);
    json_decref(value);
    sgm__free(script);
    return is;
}

static inline double browser_number(browser *b, const char *expression)
{
    char *script = sgm__format("return Number(%s)", expression);
    json_t *value = browser_run(b, script);
    double number = json_is_number(value) ? json_number_value(value) : NAN;
    json_decref(value);
    sgm__free(script);
    return number;
}

/* Errors of the page: uncaught ones, refused requests, the policy's; "" without. */
static inline char *browser_errors(browser *b)
{
    sgm__text text = {0};
    size_t i;
    json_t *entry, *log = browser_ask(b, "POST", "/se/log", json_pack("{s:s}", "type", "browser"), NULL);
    json_array_foreach(log, i, entry)
    {
        if (strcmp(json_string_value(json_object_get(entry, "level")), "SEVERE") == 0)
            sgm__text_append(&text, "%s\n", json_string_value(json_object_get(entry, "message")));
    }
    json_decref(log);
    return text.data != NULL ? sgm__text_take(&text) : sgm__strdup("");
}

/* Fails with what the page logged, and what it shows. */
static inline void browser_give_up(browser *b, const char *what)
{
    char *errors = browser_errors(b);
    json_t *shown = browser_run(b, "return document.body.innerText.replace(/\\s+/g, ' ')");
    TEST_FAIL("%s: did not come to be within %g s; errors: %s; the page: %.500s", what, BROWSER_PATIENCE,
              errors, json_string_value(shown));
}

/* Until an expression is true. */
static inline void browser_await(browser *b, const char *expression)
{
    for (double end = sgm__now() + BROWSER_PATIENCE; !browser_is(b, expression); usleep(50000))
        if (sgm__now() > end)
            browser_give_up(b, expression);
}

/* Like a person: at what is seen. Waits until it is there, whole and not covered. */
static inline void browser_act(browser *b, const char *selector, const char *action, json_t *body)
{
    char why[256] = "";
    for (double end = sgm__now() + BROWSER_PATIENCE;; usleep(50000)) {
        const char *reference;
        json_t *id,
            *done = NULL,
            *element = browser_ask(b, "POST", "/element",
                                   json_pack("{s:s, s:s}", "using", "css selector", "value", selector), why);
        json_object_foreach(element, reference, id)
        {
            char *path = sgm__format("/element/%s/%s", json_string_value(id), action);
            done = browser_ask(b, "POST", path, json_incref(body), why);
            sgm__free(path);
        }
        json_decref(element);
        json_decref(done);
        if (done != NULL)
            break;
        if (sgm__now() > end)
            browser_give_up(b, selector);
    }
    json_decref(body);
}

static inline void browser_click(browser *b, const char *selector)
{
    browser_act(b, selector, "click", json_object());
}

/* Keys have places in Unicode: enter, and control with a, which marks all. */
#define BROWSER_ALL                                                                                          \
    "\xee\x80\x89"                                                                                           \
    "a"                                                                                                      \
    "\xee\x80\x80"
#define BROWSER_ENTER "\xee\x80\x87"
#define BROWSER_ESCAPE "\xee\x80\x8c"
static inline void browser_type(browser *b, const char *selector, const char *text)
{
    browser_act(b, selector, "value", json_pack("{s:s}", "text", text));
}

#define BROWSER_STEPS 16
/* With the mouse, from one place of an element to another; places from its middle, in shares of its size. */
static inline void browser_drag(browser *b, const char *selector, double x0, double y0, double x1, double y1)
{
    static const char format[] =
        "const box = document.querySelector(\"%s\").getBoundingClientRect(); return ["
        "box.x + box.width * %g, box.y + box.height * %g, "
        "box.x + box.width * %g, box.y + box.height * %g].map(Math.round)";
    char *script = sgm__format(format, selector, 0.5 + x0, 0.5 + y0, 0.5 + x1, 0.5 + y1);
    int from[2], to[2];
    json_t *places = browser_run(b, script);
    CHECK_INT(json_unpack(places, "[i,i,i,i]", &from[0], &from[1], &to[0], &to[1]), 0);
    json_decref(places);
    sgm__free(script);
    json_t *moves = json_pack("[{s:s, s:i, s:i}, {s:s, s:i}]", "type", "pointerMove", "x", from[0], "y",
                              from[1], "type", "pointerDown", "button", 0);
    for (int i = 1; i <= BROWSER_STEPS; i++)
        json_array_append_new(moves, json_pack("{s:s, s:i, s:i, s:i}", "type", "pointerMove", "duration", 10,
                                               "x", from[0] + (to[0] - from[0]) * i / BROWSER_STEPS, "y",
                                               from[1] + (to[1] - from[1]) * i / BROWSER_STEPS));
    json_array_append_new(moves, json_pack("{s:s, s:i}", "type", "pointerUp", "button", 0));
    json_t *actions =
        json_pack("{s:[{s:s, s:s, s:o}]}", "actions", "type", "pointer", "id", "mouse", "actions", moves);
    json_decref(browser_ask(b, "POST", "/actions", actions, NULL));
}

static inline void browser_check_errors(browser *b)
{
    char *errors = browser_errors(b);
    if (errors[0] != '\0')
        TEST_FAIL("the page logs errors: %s", errors);
    sgm__free(errors);
}

#endif
