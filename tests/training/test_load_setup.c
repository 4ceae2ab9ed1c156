/* A checkpoint brings optimiser and hooks to a trainer that has none, which goes on as the one that was saved
 * would have, to the bit. */
#include "requests_test.h"

#define EPOCH 4 /* iterations */

/* Everything but what the checkpoint is to bring. */
static wave_trainer make_bare(void)
{
    wave_trainer made = make_wave_trainer((wave_options){
        .network = "input(6) + dense(8, tanh) + dropout(0.3) + dense(3) + softmax_cross_entropy",
        .shuffle = true,
        .seed = 5});
    sgm_optimiser_free(made.trainer->learner.optimiser);
    made.trainer->learner.optimiser = NULL;
    return made;
}

static void add(sgm_trainer *trainer, const char *text)
{
    CHECK_OK(sgm_trainer_add_hook(trainer, sgm_hook_parse(text)));
}

static wave_trainer make_whole(sgm_optimiser *optimiser)
{
    wave_trainer made = make_bare();
    CHECK_OK(sgm_trainer_set_optimiser(made.trainer, optimiser));
    add(made.trainer, "every 3 iterations set optimiser.learning_rate *= 0.9");
    add(made.trainer, "every 2 iterations accumulator(training.loss, sum)");
    add(made.trainer, "after 5 iterations set optimiser.weight_decay = 0.01"); /* its life is over */
    add(made.trainer, "after 14 iterations set optimiser.clip_norm = 0.5");
    add(made.trainer, "if training.loss stalls 40 iterations then stop");
    add(made.trainer, "every 4 iterations set optimiser.weight_decay += 0.02 for 3 iterations");
    return made;
}

static void run_to(sgm_trainer *trainer, int64_t iterations)
{
    CHECK_OK(sgm_trainer_run(trainer, .iterations = iterations));
}

static void check_same_files(const char *one, const char *other)
{
    char command[400];
    snprintf(command, sizeof command, "cmp '%s/%s' '%s/%s'", folder, one, folder, other);
    CHECK_INT(system(command), 0);
}

static void check_going_on(sgm_optimiser *(*create)(void), int64_t saved)
{
    open_folder();
    wave_trainer whole = make_whole(create()), first = make_whole(create()), again = make_bare();
    run_to(whole.trainer, 24);
    run_to(first.trainer, saved);
    CHECK_OK(sgm_trainer_save(first.trainer, in_folder("half.safetensors")));
    free_wave_trainer(first);
    CHECK_OK(sgm_trainer_load(again.trainer, in_folder("half.safetensors")));
    run_to(again.trainer, 24);
    CHECK(same_states(whole.trainer, again.trainer));
    CHECK_OK(sgm_trainer_save(whole.trainer, in_folder("whole.safetensors")));
    CHECK_OK(sgm_trainer_save(again.trainer, in_folder("again.safetensors")));
    check_same_files("whole.safetensors", "again.safetensors");
    CHECK_NEAR(number_of(again.trainer, "optimiser.clip_norm"), 0.5, 0);
    free_wave_trainer(again);
    free_wave_trainer(whole);
    close_folder();
}

static sgm_optimiser *adam(void)
{
    return sgm_adam(.learning_rate = 0.01, .average = 0.9, .clip_value = 0.1);
}

static sgm_optimiser *accumulating(void)
{
    return sgm_nesterov(.learning_rate = 0.03, .momentum = 0.87, .accumulate = 3,
                        .schedule = {.kind = SGM_COSINE, .period = 9, .warm_up = 1.5});
}

/* 0 is no default here: it was set. */
static sgm_optimiser *without_momentum(void)
{
    sgm_optimiser *optimiser = sgm_momentum(.learning_rate = 0.1 / 3);
    const sgm_content zero = sgm_number_content(0);
    CHECK_OK(sgm_optimiser_set(optimiser, "momentum", &zero));
    return optimiser;
}

static sgm_optimiser *plateau(void)
{
    return sgm_adamw(.learning_rate = 0.02, .schedule = {.kind = SGM_PLATEAU, .period = 1, .factor = 0.5});
}

TEST(it_goes_on_to_the_bit)
{
    sgm_optimiser *(*const optimisers[])(void) = {adam, accumulating, without_momentum, plateau};
    for (size_t i = 0; i < sizeof optimisers / sizeof *optimisers; i++) {
        check_going_on(optimisers[i], 10); /* amid an epoch */
        check_going_on(optimisers[i], 3 * EPOCH);
    }
}

/* What persons do while it runs: hooks that come and go, values, a button. */
static bool steer(void *user, const sgm_training_progress *progress)
{
    static const struct {
        int64_t iteration;
        const char *request;
    } deeds[] = {
        {2, "{\"command\":\"attach\",\"hook\":\"every 2 iterations set optimiser.beta1 *= 0.99\"}"},
        {3, "{\"command\":\"detach\",\"name\":\"accumulator#1\"}"},
        {4, "{\"command\":\"detach\",\"name\":\"rule#1\"}"},
        {5, "{\"command\":\"attach\",\"hook\":\"every 3 iterations set optimiser.learning_rate *= 0.9\"}"},
        {6, "{\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":0.0123}"},
        {7, "{\"command\":\"attach\",\"hook\":\"every 5 iterations if external \\\"go\\\" then set "
            "optimiser.beta2 = 0.9\"}"},
        {8, "{\"command\":\"press\",\"name\":\"go\"}"},
    };
    for (size_t i = 0; i < sizeof deeds / sizeof *deeds; i++)
        if (progress->kind == SGM_PROGRESS_ITERATION && deeds[i].iteration == progress->iteration)
            CHECK_OK(ask(user, deeds[i].request));
    return true;
}

/* A run's folder, whose newest checkpoint is of iteration 8; the other run was not stopped there. */
TEST(a_steered_run_goes_on_from_its_folder)
{
    char half[128];
    open_folder();
    snprintf(half, sizeof half, "%s/half", folder);
    wave_trainer whole = make_whole(adam()), first = make_whole(adam()), again = make_bare();
    CHECK_OK(sgm_trainer_on_progress(whole.trainer, steer, whole.trainer));
    CHECK_OK(sgm_trainer_on_progress(first.trainer, steer, first.trainer));
    CHECK_OK(sgm_trainer_run(whole.trainer, .iterations = 24, .folder = in_folder("whole")));
    CHECK_OK(sgm_trainer_run(first.trainer, .iterations = 9, .folder = half));
    free_wave_trainer(first);
    CHECK_OK(sgm_trainer_load(again.trainer, half));
    size_t count;
    sgm_attached_hook *hooks;
    CHECK_OK(sgm_trainer_hooks(again.trainer, &hooks, &count));
    CHECK_INT(count, 6); /* of 6 and 3, one's life is over, and two were taken off */
    sgm_attached_hooks_free(hooks, count);
    CHECK_NEAR(number_of(again.trainer, "optimiser.learning_rate"), 0.0123 * 0.9, 1e-12);
    run_to(again.trainer, 24);
    CHECK_NEAR(number_of(again.trainer, "optimiser.beta2"), 0.9, 1e-12); /* the button was still pressed */
    CHECK(same_states(whole.trainer, again.trainer));
    CHECK_OK(sgm_trainer_save(whole.trainer, in_folder("whole.safetensors")));
    CHECK_OK(sgm_trainer_save(again.trainer, in_folder("again.safetensors")));
    check_same_files("whole.safetensors", "again.safetensors");
    free_wave_trainer(again);
    free_wave_trainer(whole);
    close_folder();
}

/* The same by a resume; without a checkpoint in the folder nothing brings an optimiser. */
TEST(a_resume_brings_them_too)
{
    open_folder();
    wave_trainer whole = make_whole(adam()), first = make_whole(adam()), again = make_bare();
    CHECK_ERROR(sgm_trainer_run(again.trainer, .iterations = 4, .folder = in_folder("none"), .resume = true),
                "has no optimiser yet: call sgm_trainer_set_optimiser, or load a checkpoint");
    free_wave_trainer(again);
    again = make_bare();
    run_to(whole.trainer, 24);
    CHECK_OK(sgm_trainer_run(first.trainer, .iterations = 10, .folder = in_folder("run")));
    free_wave_trainer(first);
    CHECK_OK(sgm_trainer_run(again.trainer, .iterations = 24, .folder = in_folder("run"), .resume = true));
    CHECK(same_states(whole.trainer, again.trainer));
    free_wave_trainer(again);
    free_wave_trainer(whole);
    close_folder();
}

static wave_trainer with_workers(wave_trainer made)
{
    CHECK_OK(sgm_trainer_set_operator(made.trainer, sgm_parameter_operator(.workers = 2, .every = 3)));
    return made;
}

/* Local hooks, too, of which each worker has one. */
TEST(workers_go_on)
{
    open_folder();
    wave_trainer whole = with_workers(make_whole(adam())), first = with_workers(make_whole(adam())),
                 again = with_workers(make_bare());
    const char *local = "local every 2 iterations accumulator(optimiser.loss, own)";
    add(whole.trainer, local);
    add(first.trainer, local);
    run_to(whole.trainer, 24);
    run_to(first.trainer, 3 * EPOCH);
    CHECK_OK(sgm_trainer_save(first.trainer, in_folder("half.safetensors")));
    free_wave_trainer(first);
    CHECK_OK(sgm_trainer_load(again.trainer, in_folder("half.safetensors")));
    run_to(again.trainer, 24);
    CHECK(same_states(whole.trainer, again.trainer));
    for (int i = 0; i < 2; i++) {
        char name[64];
        snprintf(name, sizeof name, "operator.local.%d.shared.own", i);
        CHECK_NEAR(number_of(again.trainer, name), number_of(whole.trainer, name), 0);
    }
    free_wave_trainer(again);
    free_wave_trainer(whole);
    close_folder();
}

/* --- hooks without a text --- */

static sgm_status count_calls(void *self, sgm_hook_call *call)
{
    (void)call;
    ++*(double *)self;
    return SGM_OK;
}

static sgm_status get_calls(void *self, double *numbers, size_t *count)
{
    if (numbers != NULL)
        *numbers = *(double *)self;
    *count = 1;
    return SGM_OK;
}

static sgm_status set_calls(void *self, const double *numbers, size_t count)
{
    CHECK_INT(count, 1);
    *(double *)self = *numbers;
    return SGM_OK;
}

static const sgm_hook_type counter = {.api = SGM_HOOK_API,
                                      .name = "counter",
                                      .invoke = count_calls,
                                      .get_state = get_calls,
                                      .set_state = set_calls};

TEST(a_hook_of_the_program_is_to_be_attached_before)
{
    double first_calls = 0, calls = 0;
    open_folder();
    wave_trainer first = make_whole(adam()), again = make_bare();
    CHECK_OK(sgm_trainer_add_hook(first.trainer, sgm_hook_create(&counter, &first_calls)));
    run_to(first.trainer, 10);
    CHECK_OK(sgm_trainer_save(first.trainer, in_folder("half.safetensors")));
    free_wave_trainer(first);
    CHECK_ERROR(
        sgm_trainer_load(again.trainer, in_folder("half.safetensors")),
        "half.safetensors': it was trained with the hook 'counter', which its program had made and no "
        "text describes: attach that hook before loading, or set the trainer up with an optimiser and "
        "hooks of its own");
    /* The trainer is as it was. */
    size_t count;
    sgm_attached_hook *hooks;
    CHECK_OK(sgm_trainer_hooks(again.trainer, &hooks, &count));
    CHECK_INT(count, 0);
    sgm_attached_hooks_free(hooks, count);
    CHECK(again.trainer->learner.optimiser == NULL);
    CHECK_INT(again.trainer->position.iteration, 0);
    CHECK_OK(sgm_trainer_add_hook(again.trainer, sgm_hook_create(&counter, &calls)));
    CHECK_OK(sgm_trainer_load(again.trainer, in_folder("half.safetensors")));
    CHECK_NEAR(calls, 10, 0);
    run_to(again.trainer, 24);
    CHECK_NEAR(calls, 24, 0);
    free_wave_trainer(again);
    close_folder();
}

/* Its program's word counts: a hook that is not in it any more does not come back. */
TEST(a_trainer_with_an_optimiser_keeps_its_own)
{
    open_folder();
    wave_trainer first = make_whole(adam()), again = make_bare();
    run_to(first.trainer, 10);
    CHECK_OK(sgm_trainer_save(first.trainer, in_folder("half.safetensors")));
    CHECK_OK(sgm_trainer_set_optimiser(again.trainer, sgm_adam(.learning_rate = 0.5)));
    add(again.trainer, "every 2 iterations accumulator(training.loss, sum)");
    CHECK_OK(sgm_trainer_load(again.trainer, in_folder("half.safetensors")));
    size_t count;
    sgm_attached_hook *hooks;
    CHECK_OK(sgm_trainer_hooks(again.trainer, &hooks, &count));
    CHECK_INT(count, 1);
    sgm_attached_hooks_free(hooks, count);
    CHECK_NEAR(number_of(again.trainer, "optimiser.learning_rate"), 0.5, 0);
    CHECK_NEAR(number_of(again.trainer, "optimiser.clip_value"), 0, 0);
    free_wave_trainer(again);
    free_wave_trainer(first);
    close_folder();
}

/* Without data there is nothing to go on with: it predicts, and needs neither. */
TEST(a_trainer_that_only_predicts_gets_no_optimiser)
{
    open_folder();
    wave_trainer first = make_whole(adam());
    const sgm__trainer_settings settings = {.seed = 5, .handler = first.handler};
    sgm_trainer *bare = sgm__trainer_create("bare", &settings);
    run_to(first.trainer, 10);
    CHECK_OK(sgm_trainer_save(first.trainer, in_folder("half.safetensors")));
    CHECK_OK(bare);
    CHECK_OK(sgm_trainer_load(bare, in_folder("half.safetensors")));
    CHECK(bare->learner.optimiser == NULL);
    size_t count;
    sgm_attached_hook *hooks;
    CHECK_OK(sgm_trainer_hooks(bare, &hooks, &count));
    CHECK_INT(count, 0);
    sgm_attached_hooks_free(hooks, count);
    sgm__trainer_free(bare);
    free_wave_trainer(first);
    close_folder();
}

/* --- files of strangers --- */

/* The checkpoint half.safetensors with a part of its JSON text replaced. */
static void write_changed(const char *old, const char *new)
{
    sgm_bundle *bundle = sgm_bundle_load(in_folder("half.safetensors"));
    CHECK_OK(bundle);
    const char *text = sgm_bundle_get_text(bundle, "sigma.state"), *at = strstr(text, old);
    CHECK(at != NULL);
    char *changed = sgm__format("%.*s%s%s", (int)(at - text), text, new, at + strlen(old));
    CHECK_OK(sgm_bundle_set_text(bundle, "sigma.state", changed));
    CHECK_OK(sgm_bundle_save(bundle, in_folder("changed.safetensors")));
    sgm__free(changed);
    sgm_bundle_free(bundle);
}

TEST(what_cannot_be_made_is_told_and_changes_nothing)
{
    static const struct {
        const char *old, *new, *error;
    } cases[] = {
        {"\"optimiser\":\"adam\"", "\"optimiser\":\"adm\"", "unknown optimiser 'adm'"},
        {"\"beta1\":\"0.9", "\"beta1\":\"1.9", "its optimiser's beta1"},
        {"\"beta1\":\"0.9", "\"beta9\":\"0.9", "its optimiser has a setting 'beta9' that there is not"},
        {"\"accumulate\":1,\"average\"", "\"accumulate\":true,\"average\"", "its optimiser's accumulate"},
        {"\"schedule.kind\":\"constant\"", "\"schedule.kind\":\"round\"", "its optimiser's schedule.kind"},
        {"\"set_up\":[\"every 3", "\"set_up\":[\"evry 3", "its hook 'evry 3 iterations set"},
        {"\"set_up\":[", "\"set_up\":[7,", "its hook '': it is no text"},
        {"\"set_up_without_text\":[]", "\"set_up_without_text\":[7]", "the name of a hook is no text"},
    };
    open_folder();
    wave_trainer first = make_whole(adam()), again = make_bare();
    run_to(first.trainer, 10);
    CHECK_OK(sgm_trainer_save(first.trainer, in_folder("half.safetensors")));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t count;
        sgm_attached_hook *hooks;
        write_changed(cases[i].old, cases[i].new);
        CHECK_ERROR(sgm_trainer_load(again.trainer, in_folder("changed.safetensors")), cases[i].error);
        CHECK(strstr(sgm_last_error(), "changed.safetensors") != NULL);
        CHECK_OK(sgm_trainer_hooks(again.trainer, &hooks, &count));
        CHECK_INT(count, 0);
        sgm_attached_hooks_free(hooks, count);
        CHECK(again.trainer->learner.optimiser == NULL);
    }
    free_wave_trainer(again);
    free_wave_trainer(first);
    close_folder();
}
