/* Playing with a network by its page, while it learns: a board, pictures of classes, text; classes by their
 * names. */
#include "page_training.h"

#define CELLS "[...document.querySelectorAll('.game-cell')]"
#define TOLD "document.querySelector('.game-told').textContent"

/* By the same question that the panel asks: a draw counts once, a win of x twice. */
static const char best_first_move[] = "window.best = -1; import('/api.js').then(async ({ post }) => {"
                                      "const boards = Array.from({ length: 9 }, (_, i) => Array.from({ "
                                      "length: 9 }, (_, k) => Number(i === k)));"
                                      "const { outputs } = await post('predict', { inputs: boards });"
                                      "const scores = outputs.map(([x, , nobody]) => nobody + 2 * x);"
                                      "window.best = scores.indexOf(Math.max(...scores)); })";

TEST(a_person_plays_against_a_network)
{
    training *t = begin_training_of("board", sgm_dataset_open("tictactoe"),
                                    "input(9) + dense(27, tanh) + dense(3) + softmax_cross_entropy");
    browser *b = &t->browser;
    open_tab_called(b, "Play");
    browser_await(b, "document.querySelector('.game')?.offsetParent");
    for (int turn = 0; turn < 5 && browser_is(b, TOLD ".startsWith('Your turn')"); turn++) {
        double marks = browser_number(b, CELLS ".filter((cell) => cell.textContent !== '').length");
        CHECK_NEAR(marks, 2 * turn, 0);
        browser_click(b, ".game-cell:not(:disabled)");
        char *answered =
            sgm__format(CELLS ".filter((cell) => cell.textContent !== '').length === %d || !" TOLD
                              ".startsWith('Your turn')",
                        2 * turn + 2);
        browser_await(b, answered);
        sgm__free(answered);
    }
    CHECK(browser_is(b, "/won|draw/.test(" TOLD ") && document.querySelector('.game-side button').disabled"));
    browser_click(b, ".game-side button:nth-of-type(3)");
    browser_await(b, CELLS ".every((cell) => cell.textContent === '')");
    /* Alone it makes the moves of both, in turns; of each the one that it thinks best. */
    CHECK_OK(sgm_trainer_pause(t->trainer));
    browser_await(b, STATE " === 'Paused'");
    browser_do(b, best_first_move);
    browser_await(b, "window.best >= 0");
    browser_click(b, ".game-side button:nth-of-type(2)");
    browser_await(b, CELLS "[window.best].textContent === '\u00d7' || " CELLS
                           ".filter((cell) => cell.textContent !== '').length > 1");
    CHECK(browser_is(b, CELLS "[window.best].textContent === '\u00d7'"));
    browser_await(b, "/won|draw/.test(" TOLD ")");
    CHECK(browser_is(b, "[0, 1].includes(" CELLS
                        ".filter((cell) => cell.textContent === '\u00d7').length - " CELLS
                        ".filter((cell) => cell.textContent === '\u25cb').length)"));
    /* Its classes have names. */
    open_tab_called(b, "Inspect");
    browser_await(b, "document.querySelector('.confusion-table tbody th')?.textContent === 'won by x'");
    browser_check_errors(b);
    end_training(t);
}

TEST(a_person_sees_what_a_network_takes_for_a_class)
{
    training *t = begin_training();
    browser *b = &t->browser;
    open_tab_called(b, "Play");
    browser_await(b, "document.querySelectorAll('.panel-maximise .picture').length === 10");
    browser_click(b, ".panel-maximise .panel-tools button");
    browser_await(b,
                  "document.querySelector('.panel-maximise .picture .dim').textContent.startsWith('cost')");
    CHECK(browser_is(b, "new Set(document.querySelector('.panel-maximise canvas').getContext('2d')"
                        ".getImageData(0, 0, 8, 8).data).size > 8"));
    browser_check_errors(b);
    end_training(t);
}

#define LENGTH 4
#define LETTERS 256
#define ALPHABET 26

/* Which letter comes next: the one behind it. */
static sgm_dataset *letters(void)
{
    sgm_shape inputs = sgm_shape_of(LETTERS, LENGTH), targets = sgm_shape_of(LETTERS, LENGTH);
    sgm_tensor *tensors[] = {sgm_tensor_create(SGM_FLOAT32, &inputs),
                             sgm_tensor_create(SGM_FLOAT32, &targets)};
    float *in = sgm_tensor_data(tensors[0]), *out = sgm_tensor_data(tensors[1]);
    for (int64_t i = 0; i < LETTERS; i++)
        for (int64_t k = 0; k < LENGTH; k++) {
            in[i * LENGTH + k] = (float)('a' + (i + k) % ALPHABET);
            out[i * LENGTH + k] = (float)('a' + (i + k + 1) % ALPHABET);
        }
    sgm_dataset *made =
        sgm_dataset_create_from("letters", (const char *const[]){"inputs", "targets"}, tensors, 2);
    sgm_tensor_free(tensors[0]);
    sgm_tensor_free(tensors[1]);
    return made;
}

TEST(a_person_has_a_text_written)
{
    training *t = begin_training_of(
        "letters", letters(),
        "input(4) + embedding(256, 32) + dense(256, time_distributed) + softmax_cross_entropy");
    browser *b = &t->browser;
    open_tab_called(b, "Play");
    browser_await(b, "document.querySelector('.text-holder')?.offsetParent");
    /* panels for pictures, which are not shown, leave no hole above it */
    browser_await(b, "document.querySelector('.panel-text').style.top === '0px'");
    browser_type(b, ".panel-text form .input", BROWSER_ALL "abcd" BROWSER_ENTER);
    browser_await(b, "document.querySelector('.written').textContent.length > 100");
    CHECK(browser_is(b, "document.querySelector('.written b').textContent === 'abcd'"));
    browser_check_errors(b);
    end_training(t);
}

/* As the hook of the command: the newest text of each prompt, as JSON. */
static sgm_status say(void *self, sgm_hook_call *call)
{
    char text[128];
    (void)self;
    snprintf(text, sizeof text, "[{\"epoch\":%d,\"iteration\":%d,\"prompt\":\"abcd\",\"text\":\"<b>efg\"}]",
             (int)call->epoch, (int)call->iteration);
    return sgm_hook_share(call, "samples", sgm_text_content(text));
}

TEST(texts_that_are_said_while_it_learns_are_shown)
{
    static const sgm_hook_type sample = {.api = SGM_HOOK_API, .name = "sample", .invoke = say};
    training *t = begin_training_of(
        "letters", letters(),
        "input(4) + embedding(256, 32) + dense(256, time_distributed) + softmax_cross_entropy");
    browser *b = &t->browser;
    open_tab_called(b, "Play");
    browser_await(b, "document.querySelector('.text-holder')?.offsetParent");
    CHECK(browser_is(b, "document.querySelector('.panel-samples').hidden"));
    sgm_hook *hook = sgm_hook_create(&sample, NULL, .when = sgm_every(1, SGM_EPOCH));
    CHECK_OK(sgm_trainer_attach_hook(t->trainer, hook, NULL));
    browser_do(b, "location.reload()");
    browser_await(b, "document.querySelector('.panel-samples .samples li')?.offsetParent");
    CHECK(browser_is(b, "document.querySelector('.panel-samples .written b').textContent === 'abcd'"));
    CHECK(browser_is(b, "document.querySelector('.panel-samples .written').textContent === 'abcd<b>efg'"));
    browser_await(b,
                  "document.querySelectorAll('.panel-samples .samples li').length > 2"); /* older ones stay */
    browser_check_errors(b);
    end_training(t);
}

/* Numbers to predict: an epoch is one minibatch, so each stop is between two epochs. */
static sgm_dataset *line(void)
{
    sgm_shape shape = sgm_shape_of(32, 1);
    sgm_tensor *tensors[] = {sgm_tensor_create(SGM_FLOAT32, &shape), sgm_tensor_create(SGM_FLOAT32, &shape)};
    float *in = sgm_tensor_data(tensors[0]), *out = sgm_tensor_data(tensors[1]);
    for (int i = 0; i < 32; i++) {
        in[i] = (float)i / 32;
        out[i] = 2 * in[i] + 1;
    }
    sgm_dataset *made =
        sgm_dataset_create_from("line", (const char *const[]){"inputs", "targets"}, tensors, 2);
    sgm_tensor_free(tensors[0]);
    sgm_tensor_free(tensors[1]);
    return made;
}

#define SHOWN(panel) "[...document.querySelectorAll('" panel "')].some((found) => found.offsetParent)"

TEST(a_regression_has_no_panel_that_stays_empty)
{
    training *t = begin_training_of("line", line(), "input(1) + dense(1) + mean_squared");
    browser *b = &t->browser;
    await_more(b, 20);
    browser_await(b, "!" SHOWN(".panel-accuracy") " && " SHOWN(".panel-chart"));
    browser_await(b, "[...document.querySelectorAll('[role=tab]')].some((tab) => tab.textContent === 'Play' "
                     "&& tab.hidden)");
    browser_await(b, "document.querySelector('.panel-chart .legend').textContent.includes('training.loss')");
    browser_await(b, "!" SHOWN(".panel-message"));
    browser_await(b, "!" SHOWN(".figures [data-name=accuracy]") " && " SHOWN(".control-progress"));
    browser_click(b, ".panel-control button[data-icon='stop']");
    browser_click(b, "dialog button[type=submit]");
    browser_await(b, STATE " === 'Ended'");
    /* Nothing is said of an epoch that does not come. */
    browser_await(b, "document.querySelector('.control-progress').hidden");
    browser_check_errors(b);
    end_training(t);
}

/* Digits are drawn; they are no board, and no text. A panel that a person adds says what it is for. */
TEST(panels_that_a_network_cannot_use_are_not_shown)
{
    training *t = begin_training();
    browser *b = &t->browser;
    open_tab_called(b, "Play");
    browser_await(b, SHOWN(".panel-draw") " && " SHOWN(".panel-maximise"));
    browser_await(b, "document.querySelector('.draw-prediction').hidden"); /* nothing is drawn yet */
    browser_await(b, "!" SHOWN(".panel-game") " && !" SHOWN(".panel-text"));
    browser_click(b, ".tabs-add");
    browser_do(b, "[...document.querySelectorAll('[role=menuitem]')].find((item) => "
                  "item.textContent.trim() === 'Tic-tac-toe').click()");
    browser_await(b, "[...document.querySelectorAll('.panel-game .panel-message')].some((message) => "
                     "message.textContent.startsWith('For networks of 9 inputs'))");
    CHECK(browser_is(b, SHOWN(".panel-game")));
    browser_check_errors(b);
    end_training(t);
}

TEST(classes_have_a_panel_of_accuracy)
{
    training *t = begin_training();
    browser_await(&t->browser, SHOWN(".panel-accuracy"));
    browser_await(&t->browser, SHOWN(".figures [data-name=accuracy]"));
    browser_check_errors(&t->browser);
    end_training(t);
}

#define PROJECTED "document.querySelectorAll('.projector-table tbody tr').length"
#define CANVAS "document.querySelector('.projector-canvas')"

/* The classes of a layer as points, with the picture of an example; by the keyboard as a table. */
TEST(a_person_sees_which_examples_are_near_each_other)
{
    training *t = begin_training();
    browser *b = &t->browser;
    open_tab_called(b, "Inspect");
    browser_await(b, "document.querySelectorAll('.projector-class').length === 10");
    CHECK(browser_is(b, CANVAS ".getAttribute('aria-label').includes('of the variance')"));
    CHECK(browser_is(b, "document.querySelector('.panel-projector select').options.length === 3"));
    browser_click(b, ".projector-class[data-class='3']");
    browser_await(b, "document.querySelector('.projector-class[aria-pressed=true]')?.dataset.class === '3'");
    browser_click(b, ".panel-projector .toolbar .icon-button");
    browser_await(b, PROJECTED " > 400 && " CANVAS ".hidden");
    browser_click(b, ".projector-table tbody tr:nth-child(2) button");
    browser_await(b, "document.querySelector('.projector-told .example-picture')?.width === 8");
    double second = browser_number(b, "Number(document.querySelector('.projector-told b').textContent"
                                      ".replace(/\\D/g, ''))");
    CHECK(second >= 1 && second <= 4); /* taken evenly from 1,797 */
    /* Another layer, another way. */
    json_decref(browser_run(b,
                            "const [layer, , method] = document.querySelectorAll('.panel-projector select');"
                            "layer.value = '1-dense'; layer.dispatchEvent(new Event('change'));"
                            "method.value = 'tsne'; method.dispatchEvent(new Event('change'));"));
    browser_await(b, CANVAS ".getAttribute('aria-label').includes('1-dense. ') && "
                            "!" CANVAS ".getAttribute('aria-label').includes('variance')");
    CHECK(browser_is(b, CANVAS ".getAttribute('aria-label').includes('32 numbers each')"));
    browser_check_errors(b);
    end_training(t);
}

#define LESSONS "document.querySelectorAll('.panel-lessons section:last-child .example-picture')"

TEST(a_person_sees_which_examples_are_learned)
{
    training *t = begin_training();
    browser *b = &t->browser;
    open_tab_called(b, "Inspect");
    browser_await(b, LESSONS ".length === 8 && " LESSONS "[0].width === 8");
    CHECK(browser_is(
        b, "(([from, to]) => from > to)(document.querySelector("
           "'.panel-lessons section:last-child .lessons-loss').textContent.split(' → ').map(Number))"));
    pause_training(t);
    browser_click(b, ".panel-lessons .toolbar button");
    browser_await(b, LESSONS ".length === 0"); /* nothing was learned since */
    browser_check_errors(b);
    end_training(t);
}
