/* The page's modules that need no page, in a browser: what web_modules.js checks. */
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

TEST(modules_do_what_they_say)
{
    browser b = browser_open();
    prepared page = prepare_page("modules");
    browser_go(&b, page.url);

    char *script = script_of("tests/monitors/web_modules.js");
    json_t *wrong = browser_run(&b, script);
    CHECK_STR(json_string_value(wrong), "");
    json_decref(wrong);
    sgm__free(script);
    browser_close(&b);
    free_prepared(&page);
}
