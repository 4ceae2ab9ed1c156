/* The page of a network that predicts, in a browser; it must log no error. */
#include "browser.h"
#include "monitors/serve/serve.h"
#include <sigma/sigma.h>

TEST(a_question_is_tried)
{
    static const char network[] = "input(2, 2) + dense(3, tanh) + dense(2) + softmax_cross_entropy";
    static const char *const classes[] = {"left", "right", NULL};
    browser b = browser_open();
    sgm_env *env = sgm_env_create("served", .seed = 3);
    sgm_trainer *trainer = sgm_trainer_create(env, "served");
    CHECK_OK(sgm_trainer_set_network(trainer, network));
    sgm__serve *serve =
        sgm__serve_start(&(sgm__serve_options){.trainer = trainer, .network = network, .classes = classes});
    CHECK(serve != NULL);
    browser_go(&b, sgm__serve_url(serve));
    browser_await(&b, "document.querySelector('#input')?.value === '{\"input\":[[[0,0],[0,0]]]}'");
    CHECK(browser_is(&b, "document.querySelector('tbody').textContent.includes('1-dense15')"));
    browser_click(&b, "#serve button");
    browser_await(&b, "/\"class\":\\[[01]\\],\"label\":\\[\"(left|right)\"\\]/.test("
                      "document.querySelector('#prediction').textContent)");
    browser_do(&b, "document.querySelector('#input').value = '{\"input\": 1}'");
    browser_click(&b, "#serve button");
    browser_await(&b,
                  "document.querySelector('#prediction.bad')?.textContent.includes('has the shape (2, 2)')");
    browser_close(&b);
    sgm__serve_stop(serve);
    sgm_env_free(env);
}

static sgm_tensor *copy(void *user, const sgm_tensor *examples, const sgm_tensor **classes)
{
    (void)user;
    *classes = NULL;
    return sgm_tensor_copy(examples);
}

TEST(a_model_without_layers_is_tried)
{
    browser b = browser_open();
    sgm__serve *serve =
        sgm__serve_start(&(sgm__serve_options){.model = {.predict = copy, .example = sgm_shape_of(2)},
                                               .network = "copy.onnx",
                                               .precision = SGM_FLOAT32});
    CHECK(serve != NULL);
    browser_go(&b, sgm__serve_url(serve));
    browser_await(&b, "document.querySelector('#input')?.value === '{\"input\":[[0,0]]}'");
    CHECK(browser_is(&b, "document.querySelector('table') === null"));
    CHECK(browser_is(&b, "document.querySelector('#serve').textContent.includes('copy.onnx')"));
    browser_click(&b, "#serve button");
    browser_await(&b, "document.querySelector('#prediction').textContent === '{\"output\":[[0,0]]}'");
    browser_close(&b);
    sgm__serve_stop(serve);
}
