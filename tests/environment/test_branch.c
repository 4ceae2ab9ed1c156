/* Trainers that branch off one that runs. */
#include "base/folder.h"
#include "environment_test.h"

#include "environment/environment.h"
#include "journal/change_record.h"
#include "monitors/monitor.h"
#include "trainer/trainer_struct.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

/* --- an environment with a monitor that may refuse a trainer --- */

static sgm_status join(sgm_monitor *monitor, const sgm__monitor_host *host)
{
    (void)monitor, (void)host;
    return SGM_OK;
}

/* The name of a trainer that the monitor does not want to see; NULL: it takes all. */
static const char *unwanted;

static sgm_status attach_wanted(sgm_monitor *monitor, sgm_trainer *trainer)
{
    (void)monitor;
    return unwanted != NULL && strcmp(sgm_trainer_name(trainer), unwanted) == 0
               ? sgm_fail(SGM_ERROR_STATE, "this monitor does not look at '%s'", unwanted)
               : SGM_OK;
}

static void free_monitor(sgm_monitor *monitor)
{
    sgm__free(monitor);
}

typedef struct tree {
    sgm_env *env;
    sgm_trainer *first;
    sgm_dataset *data;
} tree;

static void set_up(sgm_trainer *trainer, sgm_dataset *data)
{
    CHECK_OK(sgm_trainer_set_network(trainer,
                                     "input(3) + dense(6, tanh) + dropout(0.2) + dense(1) + mean_squared"));
    CHECK_OK(sgm_trainer_set_data(trainer, sgm_minibatches(data, .size = 8, .seed = 3)));
    CHECK_OK(sgm_trainer_add_data(trainer, "validation", sgm_by_block(data)));
    CHECK_OK(sgm_trainer_set_optimiser(trainer, sgm_adam(.learning_rate = 0.01, .clip_norm = 1)));
    CHECK_OK(sgm_trainer_add_initialiser(trainer, "*.weights", sgm_gaussian(.standard_deviation = 0.3)));
    CHECK_OK(sgm_trainer_add_modifier(trainer, "*.weights", sgm_modifier_parse("clip(-2, 2)")));
    CHECK_OK(sgm_trainer_freeze(trainer, "1-dense.biases"));
    CHECK_OK(
        sgm_trainer_add_hook(trainer, sgm_rule_hook("every 3 epochs set optimiser.learning_rate *= 0.9")));
}

static void plant(tree *t)
{
    *t = (tree){.env = sgm_env_create("tree", .seed = 7, .handler = "reference")};
    sgm_monitor *monitor = sgm__calloc(1, sizeof *monitor);
    *monitor = (sgm_monitor){.join = join, .attach = attach_wanted, .free = free_monitor};
    t->data = sine_dataset(64);
    CHECK_OK(sgm_env_add_monitor(t->env, monitor));
    t->first = sgm_trainer_create(t->env, "first");
    CHECK_OK(t->first);
    set_up(t->first, t->data);
    CHECK(sgm__membership_of(t->first)->branch != NULL);
}

static void fell(tree *t)
{
    sgm_env_free(t->env);
    sgm_dataset_free(t->data);
}

static void wait_for_iteration(sgm_trainer *trainer, int64_t iteration)
{
    int64_t now = 0;
    for (int i = 0; i < 10000 && now < iteration; i++) {
        CHECK_OK(sgm_registry_get_integer(sgm_trainer_registry(trainer), "iteration", &now));
        usleep(now < iteration ? 1000 : 0);
    }
    CHECK(now >= iteration);
}

static void step_to(sgm_trainer *trainer, int64_t iterations)
{
    int64_t now;
    CHECK_OK(sgm_registry_get_integer(sgm_trainer_registry(trainer), "iteration", &now));
    CHECK_OK(sgm_trainer_step(trainer, iterations - now));
    wait_for_iteration(trainer, iterations);
    for (int i = 0; i < 10000 && sgm_trainer_get_state(trainer) != SGM_TRAINER_PAUSED; i++)
        usleep(1000);
    CHECK_INT(sgm_trainer_get_state(trainer), SGM_TRAINER_PAUSED);
}

static sgm_status branch(tree *t, const char *name, const char *identifier, const char *value)
{
    const sgm__branch_request request = {.name = name,
                                         .checkpoint = in_folder("here.safetensors"),
                                         .who = "monitor",
                                         .identifiers = &identifier,
                                         .values = &value,
                                         .count = identifier != NULL};
    return sgm__env_branch(t->env, t->first, &request);
}

static double value_of(tree *t, const char *identifier)
{
    sgm_content content;
    CHECK_OK(sgm_registry_resolve_one(sgm_env_registry(t->env), identifier, &content));
    return content.kind == SGM_KIND_NUMBER ? content.as.number : (double)content.as.integer;
}

static void check_equal_values(tree *t, const char *a, const char *b, bool equal)
{
    sgm_content one, other;
    CHECK_OK(sgm_registry_resolve_one(sgm_env_registry(t->env), a, &one));
    CHECK_OK(sgm_registry_resolve_one(sgm_env_registry(t->env), b, &other));
    CHECK_INT(sgm_content_equal(&one, &other), equal);
    sgm_content_clear(&one);
    sgm_content_clear(&other);
}

/* --- */

/* Nothing is set otherwise: it does to the bit what the first one does. */
TEST(a_branch_goes_on_as_the_first_does)
{
    tree t;
    plant(&t);
    open_folder();
    CHECK_OK(sgm_env_run_background(t.env, .epochs = 9, .paused = true));
    step_to(t.first, 21);
    CHECK_OK(sgm_trainer_save(t.first, in_folder("here.safetensors")));
    CHECK_OK(branch(&t, "second", NULL, NULL));
    CHECK_OK(branch(&t, "third", "optimiser.learning_rate", "0.5"));
    CHECK_OK(sgm_trainer_resume(t.first));
    CHECK_OK(sgm_env_wait(t.env));
    CHECK_NEAR(value_of(&t, "first.iteration"), 72, 0);
    CHECK_NEAR(value_of(&t, "second.iteration"), 72, 0);
    CHECK_NEAR(value_of(&t, "third.iteration"), 72, 0);
    CHECK_NEAR(value_of(&t, "first.optimiser.learning_rate"), 0.01 * 0.9 * 0.9 * 0.9, 1e-12);
    CHECK_NEAR(value_of(&t, "second.optimiser.learning_rate"), 0.01 * 0.9 * 0.9 * 0.9, 1e-12);
    CHECK_NEAR(value_of(&t, "third.optimiser.learning_rate"), 0.5 * 0.9 * 0.9 * 0.9, 1e-12);
    check_equal_values(&t, "first.network.layers.1-dense.weights", "second.network.layers.1-dense.weights",
                       true);
    check_equal_values(&t, "first.network.layers.3-dense.weights", "second.network.layers.3-dense.weights",
                       true);
    check_equal_values(&t, "first.validation.loss", "second.validation.loss", true);
    check_equal_values(&t, "first.network.layers.1-dense.weights", "third.network.layers.1-dense.weights",
                       false);
    check_equal_values(&t, "first.network.layers.1-dense.biases", "third.network.layers.1-dense.biases",
                       true);
    CHECK_OK(sgm_env_status(t.env));
    close_folder();
    fell(&t);
}

/* As a restore would do: what was set after the checkpoint does not count in the branch. */
TEST(values_are_those_of_the_checkpoint)
{
    tree t;
    plant(&t);
    open_folder();
    CHECK_OK(sgm_env_run_background(t.env, .epochs = 3, .paused = true));
    step_to(t.first, 3);
    sgm_registry *registry = sgm_trainer_registry(t.first);
    CHECK_OK(sgm_registry_resolve_set(registry, "optimiser.beta1", sgm_number_content(0.8), NULL, NULL));
    CHECK_OK(sgm_registry_resolve_set(registry, "network.layers.2-dropout.rate", sgm_number_content(0.4),
                                      NULL, NULL));
    CHECK_OK(sgm_trainer_save(t.first, in_folder("here.safetensors")));
    CHECK_OK(sgm_registry_resolve_set(registry, "optimiser.beta1", sgm_number_content(0.7), NULL, NULL));
    CHECK_OK(sgm_registry_resolve_set(registry, "optimiser.beta2", sgm_number_content(0.9), NULL, NULL));
    CHECK_OK(branch(&t, "second", NULL, NULL));
    CHECK_NEAR(value_of(&t, "second.optimiser.beta1"), 0.8, 0);
    CHECK_NEAR(value_of(&t, "second.optimiser.beta2"), 0.999, 0);
    CHECK_NEAR(value_of(&t, "second.network.layers.2-dropout.rate"), 0.4, 0);
    CHECK_NEAR(value_of(&t, "first.optimiser.beta1"), 0.7, 0);
    CHECK_OK(sgm_env_stop(t.env, "seen enough"));
    CHECK_OK(sgm_env_wait(t.env));
    close_folder();
    fell(&t);
}

/* What is attached, by its text, or else its name; with semicolons. */
static const char *hooks_of(tree *t, const char *name)
{
    size_t which = 0;
    while (strcmp(sgm_trainer_name(t->env->trainers[which]), name) != 0)
        which++;
    static char names[512];
    sgm_attached_hook *list;
    size_t count, at = 0;
    CHECK_OK(sgm_trainer_hooks(t->env->trainers[which], &list, &count));
    names[0] = 0;
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i > 0 ? "; " : "",
                               *list[i].text != 0 ? list[i].text : list[i].name);
    sgm_attached_hooks_free(list, count);
    return names;
}

/* Whether whoever runs lower_rate waits there: the hooks of a branch, which trains while the first one
 * pauses, do not come and go then. */
static atomic_bool held;

/* One that a program made, without a text. */
static sgm_status lower_rate(void *self, sgm_hook_call *call)
{
    double rate;
    (void)self;
    for (int i = 0; i < 10000 && held; i++)
        usleep(1000);
    SGM_TRY(sgm_hook_number(call, "optimiser.learning_rate", &rate));
    return sgm_hook_request_set(call, "optimiser.learning_rate", sgm_number_content(rate * 0.99));
}

static void *copy_nothing(const void *self)
{
    static int other;
    (void)self;
    return &other;
}

static const sgm_hook_type lowering = {
    .api = SGM_HOOK_API, .name = "lowering", .invoke = lower_rate, .copy = copy_nothing};

static sgm_hook *lowering_hook(void)
{
    static int self;
    return sgm_hook_create(&lowering, &self, .when = sgm_every(1, SGM_EPOCH));
}

/* What came after the checkpoint goes again before the first trainer has made a step with it. */
TEST(hooks_that_came_after_the_checkpoint_are_not_the_branch_s)
{
    static const char *const late[] = {"every iteration set optimiser.learning_rate *= 0.99",
                                       "every 3 epochs set optimiser.learning_rate *= 0.5"};
    static const char early[] = "every 3 epochs set optimiser.learning_rate *= 0.9; "
                                "every 5 epochs set optimiser.learning_rate *= 0.7";
    tree t;
    plant(&t);
    open_folder();
    CHECK_OK(sgm_env_run_background(t.env, .epochs = 9, .paused = true));
    step_to(t.first, 5);
    CHECK_OK(sgm_trainer_attach_hook(
        t.first, sgm_hook_parse("every 5 epochs set optimiser.learning_rate *= 0.7"), NULL));
    step_to(t.first, 21);
    CHECK_OK(sgm_trainer_save(t.first, in_folder("here.safetensors")));
    for (size_t i = 0; i < sizeof late / sizeof *late; i++)
        CHECK_OK(sgm_trainer_attach_hook(t.first, sgm_hook_parse(late[i]), NULL));
    CHECK_OK(sgm_trainer_attach_hook(t.first, lowering_hook(), NULL));
    CHECK_OK(branch(&t, "second", NULL, NULL));
    CHECK_STR(hooks_of(&t, "second"), early);
    CHECK_OK(sgm_trainer_detach_hook(t.first, "rule#3"));
    CHECK_OK(sgm_trainer_detach_hook(t.first, "rule#4"));
    CHECK_OK(sgm_trainer_detach_hook(t.first, "lowering"));
    CHECK_OK(sgm_trainer_resume(t.first));
    CHECK_OK(sgm_env_wait(t.env));
    CHECK_NEAR(value_of(&t, "first.optimiser.learning_rate"), 0.01 * 0.9 * 0.9 * 0.9 * 0.7, 1e-12);
    CHECK_NEAR(value_of(&t, "second.optimiser.learning_rate"), 0.01 * 0.9 * 0.9 * 0.9 * 0.7, 1e-12);
    check_equal_values(&t, "first.network.layers.3-dense.weights", "second.network.layers.3-dense.weights",
                       true);
    close_folder();
    fell(&t);
}

/* One was taken off since, one has lived since, one was made by the program and stays: where a rule is due,
 * too, what that one sets is set over. */
TEST(hooks_that_went_after_the_checkpoint_are_the_branch_s)
{
    tree t;
    plant(&t);
    open_folder();
    CHECK_OK(sgm_trainer_add_hook(t.first, sgm_hook_parse("at epoch 4 set optimiser.learning_rate *= 0.5")));
    CHECK_OK(sgm_trainer_add_hook(t.first, lowering_hook()));
    CHECK_OK(
        sgm_trainer_add_hook(t.first, sgm_hook_parse("every 4 epochs set optimiser.learning_rate *= 0.8")));
    CHECK_OK(sgm_env_run_background(t.env, .epochs = 9, .paused = true));
    step_to(t.first, 2);
    CHECK_OK(sgm_trainer_detach_hook(t.first, "rule#3"));
    step_to(t.first, 21);
    CHECK_OK(sgm_trainer_save(t.first, in_folder("here.safetensors")));
    step_to(t.first, 35);
    CHECK_OK(sgm_trainer_detach_hook(t.first, "rule#1"));
    CHECK_STR(hooks_of(&t, "first"), "lowering#1");
    held = true;
    CHECK_OK(branch(&t, "second", NULL, NULL));
    CHECK_STR(hooks_of(&t, "second"), "lowering#1; every 3 epochs set optimiser.learning_rate *= 0.9; "
                                      "at epoch 4 set optimiser.learning_rate *= 0.5");
    held = false;
    CHECK_OK(sgm_trainer_resume(t.first));
    CHECK_OK(sgm_env_wait(t.env));
    CHECK_NEAR(value_of(&t, "first.optimiser.learning_rate"), 0.01 * 0.9 * 0.5 * pow(0.99, 7), 1e-12);
    CHECK_NEAR(value_of(&t, "second.optimiser.learning_rate"), 0.01 * 0.9 * 0.9 * 0.9 * 0.5 * pow(0.99, 5),
               1e-12);
    close_folder();
    fell(&t);
}

TEST(hooks_that_have_lived_and_came_again_are_the_branch_s)
{
    static const char once[] = "at epoch 2 set optimiser.learning_rate *= 0.5";
    tree t;
    plant(&t);
    open_folder();
    CHECK_OK(sgm_trainer_add_hook(t.first, sgm_hook_parse(once)));
    CHECK_OK(sgm_env_run_background(t.env, .epochs = 4, .paused = true));
    step_to(t.first, 5);
    CHECK_OK(sgm_trainer_save(t.first, in_folder("here.safetensors")));
    step_to(t.first, 19);
    CHECK_OK(sgm_trainer_attach_hook(t.first, sgm_hook_parse(once), NULL));
    CHECK_OK(branch(&t, "second", NULL, NULL));
    CHECK_OK(sgm_trainer_resume(t.first));
    CHECK_OK(sgm_env_wait(t.env));
    CHECK_NEAR(value_of(&t, "second.optimiser.learning_rate"), 0.01 * 0.9 * 0.5, 1e-12);
    close_folder();
    fell(&t);
}

/* Of rules that set the same in the same iteration the last one counts. */
TEST(a_branch_runs_its_hooks_in_the_order_of_the_first)
{
    static const char set[] = "every 2 epochs set optimiser.learning_rate = 0.02",
                      add[] = "every 2 epochs set optimiser.learning_rate += 0.004";
    tree t;
    plant(&t);
    open_folder();
    CHECK_OK(sgm_trainer_add_hook(t.first, sgm_hook_parse(set)));
    CHECK_OK(sgm_trainer_add_hook(t.first, sgm_hook_parse(add)));
    CHECK_OK(sgm_env_run_background(t.env, .epochs = 4, .paused = true));
    step_to(t.first, 3);
    CHECK_OK(sgm_trainer_detach_hook(t.first, "rule#2"));
    CHECK_OK(sgm_trainer_attach_hook(t.first, sgm_hook_parse(set), NULL));
    CHECK_OK(sgm_trainer_save(t.first, in_folder("here.safetensors")));
    CHECK_OK(branch(&t, "second", NULL, NULL));
    CHECK_OK(sgm_trainer_resume(t.first));
    CHECK_OK(sgm_env_wait(t.env));
    CHECK_NEAR(value_of(&t, "first.optimiser.learning_rate"), 0.02, 0);
    CHECK_NEAR(value_of(&t, "second.optimiser.learning_rate"), 0.02, 0);
    check_equal_values(&t, "first.network.layers.3-dense.weights", "second.network.layers.3-dense.weights",
                       true);
    close_folder();
    fell(&t);
}

/* A hook that fails is taken off; where the branch begins, it was there. */
TEST(hooks_that_failed_after_the_checkpoint_are_the_branch_s)
{
    static const char failing[] = "every 12 iterations accumulator(network.layers.1-dense.weights)";
    tree t;
    plant(&t);
    open_folder();
    CHECK_OK(sgm_trainer_add_hook(t.first, lowering_hook()));
    CHECK_OK(sgm_trainer_add_hook(t.first, sgm_hook_parse(failing)));
    CHECK_OK(sgm_env_run_background(t.env, .epochs = 9, .paused = true));
    step_to(t.first, 3);
    CHECK_OK(sgm_trainer_save(t.first, in_folder("here.safetensors")));
    step_to(t.first, 26);
    CHECK(strstr(hooks_of(&t, "first"), failing) == NULL);
    held = true;
    CHECK_OK(branch(&t, "second", NULL, NULL));
    CHECK(strstr(hooks_of(&t, "second"), failing) != NULL);
    held = false;
    CHECK_OK(sgm_trainer_save(t.first, in_folder("here.safetensors")));
    CHECK_OK(branch(&t, "third", NULL, NULL));
    CHECK(strstr(hooks_of(&t, "third"), failing) == NULL);
    CHECK_OK(sgm_trainer_resume(t.first));
    CHECK_OK(sgm_env_wait(t.env));
    close_folder();
    fell(&t);
}

TEST(what_cannot_be_leaves_no_trainer)
{
    tree t;
    plant(&t);
    open_folder();
    CHECK_ERROR(branch(&t, "second", NULL, NULL), "tree does not run now, so nothing would train a branch");
    CHECK_OK(sgm_env_run_background(t.env, .epochs = 3, .paused = true));
    step_to(t.first, 3);
    CHECK_ERROR(branch(&t, "second", NULL, NULL), "here.safetensors");
    CHECK_OK(sgm__file_write_atomic(in_folder("here.safetensors"), "{}", 2));
    CHECK_ERROR(branch(&t, "second", NULL, NULL), "too few for a safetensors file");
    CHECK_OK(sgm_trainer_save(t.first, in_folder("here.safetensors")));
    CHECK_ERROR(branch(&t, "first", NULL, NULL), "there is a trainer 'first' already");
    CHECK_ERROR(branch(&t, "a/b", NULL, NULL), "must not begin with '.' and have no '/'");
    CHECK_ERROR(branch(&t, "second", "optimiser.learning_rate", "fast"),
                "optimiser.learning_rate: expected a number, got 'fast'");
    CHECK_ERROR(branch(&t, "second", "optimiser.learning_rat", "1"), "learning_rate");
    unwanted = "second";
    CHECK_ERROR(branch(&t, "second", NULL, NULL), "this monitor does not look at 'second'");
    unwanted = NULL;
    CHECK_INT(t.env->trainer_count, 1);
    CHECK(!sgm_registry_has(sgm_env_registry(t.env), "second"));
    CHECK_OK(branch(&t, "second", NULL, NULL)); /* the name is free */
    CHECK_OK(sgm_env_stop(t.env, "seen enough"));
    CHECK_OK(sgm_env_wait(t.env));
    CHECK_ERROR(branch(&t, "third", NULL, NULL), "does not run now");
    close_folder();
    fell(&t);
}

TEST(a_branch_fails_alone)
{
    tree t;
    plant(&t);
    open_folder();
    CHECK_OK(sgm_env_run_background(t.env, .epochs = 20, .paused = true));
    step_to(t.first, 2);
    CHECK_OK(sgm_trainer_save(t.first, in_folder("here.safetensors")));
    CHECK_OK(branch(&t, "wild", "network.layers.3-dense.biases", "[1e38]"));
    for (int i = 0; i < 10000; i++) { /* until it has ended */
        usleep(1000);
        if (value_of(&t, "wild.iteration") > 2)
            break;
    }
    CHECK_OK(sgm_trainer_resume(t.first));
    CHECK_OK(sgm_env_wait(t.env));
    CHECK_NEAR(value_of(&t, "first.iteration"), 160, 0);
    CHECK_NEAR(value_of(&t, "wild.iteration"), 3, 0);
    CHECK_OK(sgm_env_status(t.env));
    CHECK_STR(sgm_env_error(t.env), "");
    CHECK_OK(sgm_env_run(t.env, .epochs = 21)); /* without it */
    CHECK_NEAR(value_of(&t, "first.iteration"), 168, 0);
    fell(&t);
    close_folder();
}

static char *text_of(const char *name)
{
    char *text = NULL;
    size_t length;
    CHECK_OK(sgm__file_read(in_folder(name), 1 << 20, &text, &length));
    return text;
}

TEST(a_branch_has_a_folder_beside)
{
    tree t;
    char run[200];
    plant(&t);
    open_folder();
    snprintf(run, sizeof run, "%s", in_folder("run"));
    CHECK_OK(sgm_env_run_background(t.env, .epochs = 4, .paused = true, .folder = run));
    step_to(t.first, 12);
    CHECK_OK(sgm_trainer_save(t.first, in_folder("here.safetensors")));
    CHECK_OK(sgm__file_write_atomic(in_folder("run/config.yaml"), "name: first\n", 12));
    CHECK_OK(branch(&t, "fast", "optimiser.learning_rate", "0.05"));
    CHECK_ERROR(branch(&t, "fast", NULL, NULL), "already");
    char *description = text_of("run-fast/config.yaml"); /* what it can be resumed with */
    CHECK_STR(description, "name: first\n");
    sgm__free(description);
    CHECK_OK(sgm_trainer_resume(t.first));
    CHECK_OK(sgm_env_wait(t.env));
    CHECK(sgm__file_exists(in_folder("run-fast/checkpoint.safetensors")));
    char *changes = text_of("run-fast/journal.jsonl"), *metrics = text_of("run-fast/metrics.jsonl");
    CHECK(strstr(changes, "\"branched\":{\"who\":\"monitor\",\"from\":\"first\",\"checkpoint\":"
                          "\"here.safetensors\",\"set\":{\"optimiser.learning_rate\":\"0.05\"}}") != NULL);
    CHECK(strncmp(metrics, "{\"epoch\":2,", 11) == 0); /* the first epoch was the first trainer's */
    sgm__free(changes);
    sgm__free(metrics);
    changes = text_of("run/journal.jsonl");
    CHECK(strstr(changes, "\"who\":\"monitor\",\"what\"") == NULL);
    sgm__free(changes);
    close_folder();
    fell(&t);
}

TEST(workers_branch_too)
{
    tree t;
    plant(&t);
    open_folder();
    CHECK_OK(sgm_trainer_set_operator(
        t.first,
        sgm_parameter_operator(.workers = 2, .every = 2, .reducer = sgm_reducer_parse("weighted(1, 3)"))));
    CHECK_OK(sgm_trainer_add_hook(t.first,
                                  sgm_hook_parse("local every iteration accumulator(optimiser.loss, sum)")));
    CHECK_OK(sgm_env_run_background(t.env, .epochs = 6, .paused = true));
    step_to(t.first, 9);
    CHECK_OK(sgm_trainer_save(t.first, in_folder("here.safetensors")));
    CHECK_OK(branch(&t, "second", NULL, NULL));
    CHECK_NEAR(value_of(&t, "second.operator.every"), 2, 0);
    CHECK_OK(sgm_trainer_resume(t.first));
    CHECK_OK(sgm_env_wait(t.env));
    check_equal_values(&t, "first.network.layers.3-dense.weights", "second.network.layers.3-dense.weights",
                       true);
    close_folder();
    fell(&t);
}

/* Workers' hooks, too. */
TEST(local_hooks_are_those_of_the_checkpoint)
{
    tree t;
    plant(&t);
    open_folder();
    CHECK_OK(sgm_trainer_set_operator(t.first, sgm_gradient_operator(.workers = 2)));
    CHECK_OK(sgm_trainer_add_hook(t.first,
                                  sgm_hook_parse("local every iteration accumulator(optimiser.loss, sum)")));
    CHECK_OK(sgm_env_run_background(t.env, .epochs = 6, .paused = true));
    step_to(t.first, 9);
    CHECK_OK(sgm_trainer_save(t.first, in_folder("here.safetensors")));
    CHECK_OK(sgm_trainer_detach_hook(t.first, "local accumulator"));
    CHECK_OK(sgm_trainer_attach_hook(
        t.first, sgm_hook_parse("local every iteration accumulator(optimiser.loss, late)"), NULL));
    CHECK_OK(branch(&t, "second", NULL, NULL));
    CHECK_STR(hooks_of(&t, "second"), "every 3 epochs set optimiser.learning_rate *= 0.9; "
                                      "local every iteration accumulator(optimiser.loss, sum)");
    CHECK_OK(sgm_trainer_resume(t.first));
    CHECK_OK(sgm_env_wait(t.env));
    CHECK(value_of(&t, "second.operator.local.1.shared.sum") >
          value_of(&t, "first.operator.local.1.shared.sum"));
    close_folder();
    fell(&t);
}

/* Whoever frees an environment that runs waits for its branches. */
TEST(branches_end_with_the_environment)
{
    tree t;
    plant(&t);
    open_folder();
    CHECK_OK(sgm_env_run_background(t.env, .epochs = 100000000, .paused = true));
    step_to(t.first, 2);
    CHECK_OK(sgm_trainer_save(t.first, in_folder("here.safetensors")));
    CHECK_OK(branch(&t, "second", NULL, NULL));
    CHECK_OK(branch(&t, "third", NULL, NULL));
    usleep(20000);
    fell(&t);
    close_folder();
}
