/* The page's modules that need no page, in a browser: what web_modules.js and runs_modules.js check. */
#include "page_training.h"

#include <sigma/sigma.h>

static char *script_of(const char *path)
{
    sgm__text text = {0};
    char bytes[4096];
    size_t length;
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    sgm__text_append(&text, "return (async () => {\n");
    while ((length = fread(bytes, 1, sizeof bytes, file)) > 0)
        sgm__text_append_bytes(&text, bytes, length);
    fclose(file);
    sgm__text_append(&text, "\n})().then(() => '', (error) => error.message)");
    return sgm__text_take(&text);
}

static void check_modules(const char *path)
{
    browser b = browser_open();
    prepared page = prepare_page("modules");
    browser_go(&b, page.url);

    char *script = script_of(path);
    json_t *wrong = browser_run(&b, script);
    CHECK_STR(json_string_value(wrong), "");
    json_decref(wrong);
    sgm__free(script);
    browser_close(&b);
    free_prepared(&page);
}

TEST(modules_do_what_they_say)
{
    check_modules("tests/monitors/web_modules.js");
}

TEST(modules_of_the_runs_do_what_they_say)
{
    check_modules("tests/monitors/runs_modules.js");
}
