/* The page's modules that need no page, in a browser: what web_modules.js checks. */
#include "browser.h"

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
    sgm_env *env = sgm_env_create("modules", .seed = 1);
    sgm_trainer *trainer = sgm_trainer_create(env, "iris");
    sgm_dataset *iris = sgm_dataset_open("iris");
    sgm_monitor *monitor = sgm_web_monitor(.quiet = true);
    sgm_trainer_network(trainer, "input(4) + dense(3) + softmax_cross_entropy");
    sgm_trainer_data(trainer, sgm_minibatches(iris, .size = 10));
    sgm_trainer_optimiser(trainer, sgm_adam());
    CHECK_OK(sgm_env_monitor(env, monitor));
    CHECK_OK(sgm_env_prepare(env));
    browser_go(&b, sgm_web_monitor_url(monitor));

    char *script = script_of("tests/monitors/web_modules.js");
    json_t *wrong = browser_run(&b, script);
    CHECK_STR(json_string_value(wrong), "");
    json_decref(wrong);
    sgm__free(script);
    browser_close(&b);
    sgm_env_free(env);
    sgm_dataset_free(iris);
}
