/* Parameters that rules and persons freeze, and train again, while a training runs. */
#include "requests_test.h"

#include "base/allocator.h"
#include "show/show.h"
#include "trainer/frozen.h"

#define FREEZE(pattern) "{\"command\":\"freeze\",\"pattern\":\"" pattern "\"}"
#define UNFREEZE(pattern) "{\"command\":\"unfreeze\",\"pattern\":\"" pattern "\"}"
#define FROZEN "optimiser.frozen"
#define EPOCHS 7

static const char *frozen_of(sgm_trainer *trainer)
{
    static char text[256];
    sgm_content content = {0};
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(trainer), FROZEN, &content));
    snprintf(text, sizeof text, "%s", content.as.text);
    sgm_content_clear(&content);
    return text;
}

/* Whether each of the parameters of three layers is trained, as "wb" for weights and biases, "-" if frozen.
 */
static const char *trained_of(const sgm_trainer *trainer)
{
    static char text[8];
    for (int i = 0; i < 6; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d-dense.%s", i / 2 + 1, i % 2 == 0 ? "weights" : "biases");
        text[i] = "wb"[i % 2];
        if (sgm__trainer_is_frozen(trainer, name))
            text[i] = '-';
    }
    return text;
}

/* --- the list --- */

TEST(the_last_pattern_that_matches_decides)
{
    static const struct {
        const char *request, *list, *trained;
    } steps[] = {
        {FREEZE("1-dense.*"), "1-dense.*", "--wbwb"},
        {FREEZE("*.biases"), "1-dense.*, *.biases", "--w-w-"},
        {UNFREEZE("1-dense.weights"), "1-dense.*, *.biases, !1-dense.weights", "w-w-w-"},
        {UNFREEZE("1-dense.weights"), "1-dense.*, *.biases, !1-dense.weights",
         "w-w-w-"}, /* it is so already */
        {FREEZE("3-dense.biases"), "1-dense.*, *.biases, !1-dense.weights", "w-w-w-"},
        {FREEZE("1-dense.*"), "*.biases, !1-dense.weights, 1-dense.*", "--w-w-"},
        {UNFREEZE("*.biases"), "1-dense.*, !*.biases", "-bwbwb"},
        {UNFREEZE("*.*"), "", "wbwbwb"},
        {FREEZE("*.weights"), "*.weights", "-b-b-b"},
        {UNFREEZE("3-dense.weights"), "*.weights, !3-dense.weights", "-b-bwb"},
        {UNFREEZE("2-dense.*"), "*.weights, !3-dense.weights, !2-dense.*", "-bwbwb"},
        {UNFREEZE("*.weights"), "", "wbwbwb"},
    };
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_prepare(made.trainer));
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        CHECK_OK(ask(made.trainer, steps[i].request));
        CHECK_STR(frozen_of(made.trainer), steps[i].list);
        CHECK_STR(trained_of(made.trainer), steps[i].trained);
    }
    free_wave_trainer(made);
}

/* The program freezes before there is a network to compare with. */
TEST(a_program_unfreezes_a_part_of_what_it_froze)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_freeze(made.trainer, "*.*"));
    CHECK_OK(sgm_trainer_unfreeze(made.trainer, "3-dense.*"));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
    CHECK_STR(trained_of(made.trainer), "----wb");
    CHECK_ERROR(sgm_trainer_unfreeze(made.trainer, "3-dense.*"), "'3-dense.*' was not frozen");
    CHECK_OK(sgm_trainer_unfreeze(made.trainer, "*.*"));
    CHECK_STR(trained_of(made.trainer), "wbwbwb");
    free_wave_trainer(made);
}

/* --- mistakes --- */

TEST(mistakes_are_told_before_anything_changes)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    const sgm__control_call ctl = {.trainer = made.trainer, .who = "ctl", .role = SGM__ROLE_ADMIN},
                            looks = {.trainer = made.trainer, .who = "ctl", .role = SGM__ROLE_LOOK};
    CHECK_OK(sgm_trainer_prepare(made.trainer));
    CHECK_OK(ask(made.trainer, FREEZE("2-dense.weights")));
    CHECK_OBEYED(&ctl, FREEZE("1-dense.wieghts"),
                 "freezing '1-dense.wieghts' matches no parameter of the network (did you mean "
                 "'1-dense.weights'?); there are 1-dense.weights, 1-dense.biases");
    CHECK_OBEYED(&ctl, FREEZE("1-dens.*"), "(did you mean '1-dense.*'?)");
    CHECK_OBEYED(&ctl, FREEZE("*"), "matches no parameter of the network (did you mean '*.*'?)");
    CHECK_OBEYED(&ctl, FREEZE("network.layers.*dense"), "(did you mean '*dense.*'?)");
    CHECK_OBEYED(&ctl, FREEZE("*.weight"), "(did you mean '*.weights'?)");
    CHECK_OBEYED(&ctl, UNFREEZE("network.layers.2-dense.*"),
                 "unfreezing 'network.layers.2-dense.*' matches no parameter of the network (did you mean "
                 "'2-dense.*'?)");
    CHECK_OBEYED(&ctl, FREEZE("something.else.there"), "of the network; there are 1-dense.weights");
    CHECK_OBEYED(&ctl, FREEZE("*.*"), "nothing would be left to train");
    CHECK_OBEYED(&ctl, FREEZE("a b"), "pattern, column 2");
    CHECK_OBEYED(&ctl, "{\"command\":\"freeze\"}", "freeze needs the field 'pattern'");
    CHECK_OBEYED(&looks, FREEZE("1-dense.*"), "freeze needs the role 'steer', this is 'look'");
    CHECK_STR(frozen_of(made.trainer), "2-dense.weights");
    CHECK_INT(change_count(made.trainer), 1);
    CHECK_OBEYED(
        &ctl, "{\"command\":\"unfreeze\",\"pattern\":\"*.weights\",\"dry_run\":true}",
        "\"would_change\":[{\"identifier\":\"optimiser.frozen\",\"old\":\"2-dense.weights\",\"new\":\"\"");
    CHECK_STR(frozen_of(made.trainer), "2-dense.weights");
    free_wave_trainer(made);
}

TEST(rules_are_checked_before_the_run)
{
    static const char *const wrong[][2] = {
        {"at epoch 3 unfreeze \"4-dense.*\"", "unfreezing '4-dense.*' matches no parameter"},
        {"at epoch 3 freeze \"2-dens.weights\"", "(did you mean '2-dense.weights'?)"},
        {"at epoch 3 freeze \"*.*\"", "freezing '*.*': nothing would be left to train"},
    };
    CHECK_ERROR(sgm_rule_parse("at epoch 3 freeze"), "column 18: expected a pattern of parameters in quotes");
    CHECK_ERROR(sgm_rule_parse("at epoch 3 unfreeze \"a..b\""), "column 21: pattern 'a..b', column 3");
    CHECK_ERROR(sgm_rule_parse("at epoch 3 unfreez \"a\""), "did you mean 'unfreeze'?");
    CHECK_ERROR(sgm_hook_parse("local at epoch 3 freeze \"1-dense.*\""), "cannot be local");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        wave_trainer made = make_wave_trainer((wave_options){0});
        CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_rule_hook(wrong[i][0])));
        CHECK_ERROR(sgm_trainer_run(made.trainer, .epochs = 1), wrong[i][1]);
        free_wave_trainer(made);
    }
}

TEST(rules_that_freeze_are_written_as_they_are_read)
{
    sgm_rule *rule = sgm_rule_parse("if epoch >= 3 then unfreeze \"2-dense.*\" and freeze \"*.biases\"");
    CHECK_OK(rule);
    char *text = sgm_rule_text(rule);
    sgm_rule *again = sgm_rule_parse(text);
    CHECK_STR(text, "every epoch if epoch >= 3 then unfreeze \"2-dense.*\" and freeze \"*.biases\"");
    CHECK(sgm_rule_equal(rule, again));
    size_t count;
    const sgm_action *actions = sgm_rule_actions(rule, &count);
    CHECK_INT(count, 2);
    CHECK_INT(actions[0].kind, SGM_ACTION_UNFREEZE);
    CHECK_INT(actions[1].kind, SGM_ACTION_FREEZE);
    CHECK_STR(actions[1].text, "*.biases");
    sgm_string_free(text);
    sgm_rule_free(rule);
    sgm_rule_free(again);
}

TEST(what_adapters_freeze_no_pattern_unfreezes)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_adapt(made.trainer, sgm_lora(.rank = 2)));
    CHECK_OK(sgm_trainer_prepare(made.trainer));
    CHECK(ask(made.trainer, UNFREEZE("1-dense.weights")) != SGM_OK);
    CHECK(strstr(answer, "1-dense.weights is frozen by the network's adapters") != NULL);
    CHECK_OK(ask(made.trainer, FREEZE("*.weights_lora_a")));
    CHECK_OK(ask(made.trainer, UNFREEZE("1-dense.*"))); /* the adapter's own */
    CHECK_STR(frozen_of(made.trainer), "*.weights_lora_a, !1-dense.*");
    free_wave_trainer(made);
}

/* The n-th allocation fails, for n = 1, 2, ... until none does. */
TEST(without_memory_nothing_changes)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    sgm_status status = SGM_ERROR_MEMORY;
    CHECK_OK(sgm_trainer_prepare(made.trainer));
    CHECK_OK(ask(made.trainer, FREEZE("*.weights")));
    for (long n = 1; status != SGM_OK; n++) {
        allocator_start_once(n);
        status = sgm__trainer_set_frozen(made.trainer, "2-dense.*", false);
        allocator_stop();
        CHECK(n > 3 || status == SGM_ERROR_MEMORY);
        CHECK_STR(frozen_of(made.trainer), status == SGM_OK ? "*.weights, !2-dense.*" : "*.weights");
    }
    free_wave_trainer(made);
}

/* --- a training that unfreezes layer by layer --- */

/* From the last layer to the first; the biases of the last one rest in between. */
static const char *const rules[] = {
    "at epoch 2 unfreeze \"2-dense.*\" and freeze \"3-dense.biases\"",
    "if epoch >= 4 then unfreeze \"1-dense.*\"",
    "at epoch 5 unfreeze \"3-dense.*\" and freeze \"2-dense.weights\"",
};

static wave_trainer gradual_trainer(sgm_optimiser *optimiser)
{
    wave_trainer made = make_wave_trainer((wave_options){.shuffle = true, .seed = 7, .optimiser = optimiser});
    CHECK_OK(sgm_trainer_freeze(made.trainer, "*.*"));
    CHECK_OK(sgm_trainer_unfreeze(made.trainer, "3-dense.*"));
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_rule_hook(rules[i])));
    return made;
}

/* Which parameters have moved since `before`, as trained_of writes it; `before` becomes what they are now. */
static const char *moved(sgm_trainer *trainer, double before[6])
{
    static char text[8];
    for (int i = 0; i < 6; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d-dense.%s", i / 2 + 1, i % 2 == 0 ? "weights" : "biases");
        sgm_tensor *tensor = sgm_trainer_get(trainer, name);
        double values[48], sum = 0;
        size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(tensor));
        CHECK_OK(sgm_tensor_read(tensor, values, count));
        for (size_t k = 0; k < count; k++)
            sum += values[k] * sin((double)k + 1);
        text[i] = sum != before[i] ? "wb"[i % 2] : '-';
        before[i] = sum;
        sgm_tensor_free(tensor);
    }
    return text;
}

TEST(only_what_is_not_frozen_moves)
{
    static const char *const in_epoch[EPOCHS] = {"----wb", "----wb", "--wbw-", "--wbw-",
                                                 "wbwbw-", "wb-bwb", "wb-bwb"};
    wave_trainer made = gradual_trainer(sgm_adam(.learning_rate = 0.01));
    double before[6] = {0};
    CHECK_OK(sgm_trainer_prepare(made.trainer));
    moved(made.trainer, before);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        CHECK_OK(sgm_trainer_run(made.trainer, .epochs = epoch + 1));
        CHECK_STR(moved(made.trainer, before), in_epoch[epoch]);
    }
    CHECK_STR(frozen_of(made.trainer), "2-dense.weights");
    free_wave_trainer(made);
}

/* What rules do is what a program does between two runs. */
TEST(a_rule_does_what_the_program_would)
{
    wave_trainer ruled = gradual_trainer(sgm_adam(.learning_rate = 0.01)),
                 made = make_wave_trainer((wave_options){
                     .shuffle = true, .seed = 7, .optimiser = sgm_adam(.learning_rate = 0.01)});
    CHECK_OK(sgm_trainer_run(ruled.trainer, .epochs = EPOCHS));
    CHECK_OK(sgm_trainer_freeze(made.trainer, "1-dense.*"));
    CHECK_OK(sgm_trainer_freeze(made.trainer, "2-dense.*"));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    CHECK_OK(sgm_trainer_unfreeze(made.trainer, "2-dense.*"));
    CHECK_OK(sgm_trainer_freeze(made.trainer, "3-dense.biases"));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 4));
    CHECK_OK(sgm_trainer_unfreeze(made.trainer, "1-dense.*"));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 5));
    CHECK_OK(sgm_trainer_unfreeze(made.trainer, "3-dense.biases"));
    CHECK_OK(sgm_trainer_freeze(made.trainer, "2-dense.weights"));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = EPOCHS));
    CHECK(same_states(ruled.trainer, made.trainer));
    free_wave_trainer(ruled);
    free_wave_trainer(made);
}

static char *read_checkpoint(const char *name, size_t *length)
{
    char *bytes = NULL;
    CHECK_OK(sgm__file_read(in_folder(name), SIZE_MAX / 2, &bytes, length));
    return bytes;
}

static void check_same_checkpoints(const char *one, const char *other)
{
    size_t lengths[2];
    char *bytes[2] = {read_checkpoint(one, &lengths[0]), read_checkpoint(other, &lengths[1])};
    CHECK_INT(lengths[0], lengths[1]);
    CHECK(memcmp(bytes[0], bytes[1], lengths[0]) == 0);
    sgm__free(bytes[0]);
    sgm__free(bytes[1]);
}

/* Iterations before, at and behind each change. */
static void check_resumes(sgm_optimiser *(*optimiser)(void))
{
    static const int64_t cuts[] = {3, 7, 8, 9, 13, 16, 17, 20, 22};
    open_folder();
    wave_trainer made = gradual_trainer(optimiser());
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = EPOCHS, .folder = in_folder("whole")));
    free_wave_trainer(made);
    CHECK_INT(lines_with("whole/journal.jsonl", "\"who\":\"rule\"", FROZEN),
              5); /* no line where nothing changes */
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        char name[32], checkpoint[64];
        snprintf(name, sizeof name, "cut-%d", (int)cuts[i]);
        made = gradual_trainer(optimiser());
        CHECK_OK(sgm_trainer_run(made.trainer, .iterations = cuts[i], .epochs = EPOCHS,
                                 .folder = in_folder(name)));
        free_wave_trainer(made);
        made = gradual_trainer(optimiser());
        CHECK_OK(sgm_trainer_run(made.trainer, .epochs = EPOCHS, .folder = in_folder(name), .resume = true));
        CHECK_STR(frozen_of(made.trainer), "2-dense.weights");
        free_wave_trainer(made);
        snprintf(checkpoint, sizeof checkpoint, "%s/checkpoint.safetensors", name);
        check_same_checkpoints("whole/checkpoint.safetensors", checkpoint);
    }
    close_folder();
}

static sgm_optimiser *adam(void)
{
    return sgm_adam(.learning_rate = 0.01, .weight_decay = 0.01, .average = 0.9);
}

static sgm_optimiser *accumulating(void)
{
    return sgm_momentum(.learning_rate = 0.1, .momentum = 0.9, .accumulate = 3);
}

TEST(a_resume_goes_on_as_if_it_had_not_stopped)
{
    check_resumes(adam);
    check_resumes(accumulating);
}

/* --- persons --- */

TEST(what_a_person_froze_is_undone)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    const sgm__control_call anna = {.trainer = made.trainer, .who = "ctl:anna", .role = SGM__ROLE_STEER};
    background run;
    begin(&run, made.trainer, NULL);
    CHECK_OK(ask(made.trainer, "{\"command\":\"pause\"}"));
    wait_for_pause(made.trainer);
    CHECK_OBEYED(
        &anna, FREEZE("1-dense.*"),
        "{\"values\":[{\"identifier\":\"optimiser.frozen\",\"kind\":\"text\",\"value\":\"1-dense.*\","
        "\"text\":\"'1-dense.*'\",\"effect\":\"from the next iteration on\"}]}");
    CHECK_OK(ask(made.trainer, FREEZE("2-dense.biases")));
    json_t *list = sgm__changes_json(made.trainer, 0), *first = json_array_get(list, 0);
    CHECK_INT(json_array_size(list), 2);
    CHECK_STR(text_of(first, "identifier"), FROZEN);
    CHECK_STR(text_of(first, "after"), "1-dense.*");
    CHECK_STR(text_of(first, "who"), "ctl:anna");
    json_decref(list);
    CHECK_OK(ask(made.trainer, "{\"command\":\"undo\"}"));
    CHECK_STR(frozen_of(made.trainer), "1-dense.*");
    CHECK_OK(ask(made.trainer, "{\"command\":\"undo\"}"));
    CHECK_STR(trained_of(made.trainer), "wbwbwb");
    CHECK_OK(ask(made.trainer, "{\"command\":\"stop\"}"));
    pthread_join(run.thread, NULL);
    free_wave_trainer(made);
}

TEST(what_is_protected_waits_for_approval)
{
    static const char *const asked[] = {
        FREEZE("1-dense.*"), UNFREEZE("1-dense.*"),
        "{\"command\":\"attach\",\"hook\":\"at epoch 90 freeze \\\"1-dense.*\\\"\"}"};
    wave_trainer made = make_wave_trainer((wave_options){0});
    const sgm__control_call steers = {.trainer = made.trainer, .who = "monitor", .role = SGM__ROLE_STEER};
    CHECK_OK(sgm_trainer_require_approval(made.trainer, "optimiser.frozen"));
    CHECK_OK(sgm_trainer_prepare(made.trainer));
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        CHECK_OBEYED(&steers, asked[i], "\"pending\":");
    CHECK_STR(frozen_of(made.trainer), "");
    CHECK_OK(ask(made.trainer, "{\"command\":\"approve\",\"number\":1}"));
    CHECK_STR(frozen_of(made.trainer), "1-dense.*");
    free_wave_trainer(made);
}

/* Workers that merge gradients, or parameters, train what their trainer trains. */
TEST(workers_freeze_with_their_trainer)
{
    for (int kind = 0; kind < 2; kind++) {
        wave_trainer made = gradual_trainer(sgm_adam(.learning_rate = 0.01));
        CHECK_OK(sgm_trainer_set_operator(made.trainer,
                                          kind == 0 ? sgm_gradient_operator(.workers = 2)
                                                    : sgm_parameter_operator(.workers = 2, .every = 2)));
        double before[6] = {0};
        CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
        moved(made.trainer, before);
        CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
        CHECK_STR(moved(made.trainer, before), "----wb");
        CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 4));
        CHECK_STR(moved(made.trainer, before), "--wbw-");
        CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 5));
        CHECK_STR(moved(made.trainer, before), "wbwbw-");
        free_wave_trainer(made);
    }
}
