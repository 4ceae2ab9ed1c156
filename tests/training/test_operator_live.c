/* Operators while they run: examples, local hooks, commands at any moment. */
#include "waves.h"

#include "parallel/operator.h"

#include <stdlib.h>
#include <unistd.h>

/* --- examples --- */

#define COUNTED_EXAMPLES 37

/* A worker's loss is the mean of its examples' targets: 2 to the power of an example's number, so that sums
 * tell which examples there were. The network's only parameter is frozen out of it by a factor of 0. */
static sgm_value target_as_cost(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                int32_t count)
{
    (void)count;
    sgm_shape example = sgm_shape_of(1);
    sgm_value target = sgm_layer_field(call, graph, "targets", &example);
    return sgm_mean(graph, sgm_add(graph, target, sgm_multiply(graph, inputs[0], sgm_number(graph, 0))));
}

static const sgm_layer_type target_cost = {.api = SGM_LAYER_API,
                                           .flags = SGM_LAYER_COST,
                                           .name = "target_cost",
                                           .doc = "test: the target itself",
                                           .min_inputs = 1,
                                           .max_inputs = 1,
                                           .forward = target_as_cost};

static wave_trainer make_counted(sgm_operator *parallel, int64_t batch)
{
    static const char *const fields[] = {"inputs", "targets"};
    static bool registered;
    if (!registered)
        CHECK_OK(sgm_register_layer(&target_cost));
    registered = true;
    sgm_shape shape = sgm_shape_of(COUNTED_EXAMPLES, 1);
    sgm_tensor *values[2] = {sgm_tensor_create(SGM_FLOAT32, &shape), sgm_tensor_create(SGM_FLOAT32, &shape)};
    for (int64_t i = 0; i < COUNTED_EXAMPLES; i++)
        sgm_tensor_set(values[1], (const int64_t[]){i, 0}, ldexp(1, (int)i));
    sgm_dataset *dataset = sgm_dataset_create_from("counted", fields, values, 2);
    wave_trainer made = make_wave_trainer(
        (wave_options){.network = "input(1) + dense(1) + target_cost", .precision = SGM_FLOAT64});
    CHECK_OK(sgm_trainer_set_data(made.trainer, sgm_minibatches(dataset, .size = batch, .seed = 5)));
    CHECK_OK(sgm_trainer_set_operator(made.trainer, parallel));
    sgm_tensor_free(values[0]);
    sgm_tensor_free(values[1]);
    sgm_dataset_free(dataset);
    return made;
}

typedef struct example_count {
    double sums[3]; /* of the targets of each worker in this epoch */
    int64_t examples[3], calls;
} example_count;

static sgm_status count_examples(void *self, sgm_hook_call *call)
{
    example_count *count = self;
    double worker, cost;
    CHECK_OK(sgm_hook_number(call, "worker", &worker));
    CHECK_OK(sgm_hook_number(call, "optimiser.loss", &cost));
    const sgm__worker *own = &sgm_hook_trainer(call)->sharing.owner->sharing.parallel->workers[(int)worker];
    count->sums[(int)worker] += cost * (double)own->examples;
    count->examples[(int)worker] += own->examples;
    count->calls++;
    return SGM_OK;
}

/* All bits of the sum are set when each example came once, and only then: an example twice would carry. */
static void check_examples(sgm_operator *parallel, int64_t batch, int64_t calls)
{
    static const sgm_hook_type type = {.api = SGM_HOOK_API, .name = "examples", .invoke = count_examples};
    wave_trainer made = make_counted(parallel, batch);
    example_count count = {0};
    CHECK_OK(sgm_trainer_add_hook(made.trainer,
                                  sgm_hook_create(&type, &count, .local = true, .failure = SGM_HOOK_STOP)));
    for (int64_t epoch = 1; epoch <= 3; epoch++) {
        count = (example_count){0};
        CHECK_OK(sgm_trainer_run(made.trainer, .epochs = epoch));
        CHECK_INT(count.examples[0] + count.examples[1] + count.examples[2], COUNTED_EXAMPLES);
        CHECK_NEAR(count.sums[0] + count.sums[1] + count.sums[2], ldexp(1, COUNTED_EXAMPLES) - 1, 1e-3);
        CHECK(count.examples[0] > 0 && count.examples[1] > 0 && count.examples[2] > 0);
        CHECK_INT(count.calls, calls);
    }
    free_wave_trainer(made);
}

TEST(an_epoch_has_each_example_once_when_gradients_are_merged)
{
    check_examples(sgm_gradient_operator(.workers = 3), 10, 12);
    check_examples(sgm_gradient_operator(.workers = 3), 9, 13); /* the last minibatch has one example */
}

TEST(an_epoch_has_each_example_once_when_parameters_are_merged)
{
    check_examples(sgm_parameter_operator(.workers = 3), 5, 8); /* the last iteration has two minibatches */
    check_examples(sgm_parameter_operator(.workers = 3, .every = 2), 4, 10);
}

/* --- local hooks --- */

typedef struct tally {
    int calls[3];
    bool copied;
    int frees;
} tally;

static sgm_status tally_call(void *self, sgm_hook_call *call)
{
    tally *own = self;
    double worker = 0, shared = -1, iteration;
    if (sgm_hook_number(call, "worker", &worker) != SGM_OK)
        worker = 0;
    CHECK_OK(sgm_hook_number(call, "iteration", &iteration));
    CHECK_INT((int64_t)iteration, call->iteration);
    if (sgm_hook_number(call, "shared.mine", &shared) == SGM_OK)
        CHECK_NEAR(shared, worker, 0);
    CHECK_OK(sgm_hook_share(call, "mine", sgm_number_content(worker)));
    own->calls[(int)worker]++;
    return SGM_OK;
}

static int living;

static void *copy_tally(const void *self)
{
    tally *copy = malloc(sizeof *copy);
    *copy = *(const tally *)self;
    copy->copied = true;
    living++;
    return copy;
}

static void free_tally(void *self)
{
    if (((tally *)self)->copied) {
        free(self);
        living--;
    } else {
        ((tally *)self)->frees++;
    }
}

static const sgm_hook_type shared_tally = {
    .api = SGM_HOOK_API, .name = "tally", .invoke = tally_call, .free = free_tally};
static const sgm_hook_type own_tally = {
    .api = SGM_HOOK_API, .name = "own tally", .invoke = tally_call, .free = free_tally, .copy = copy_tally};

TEST(a_local_hook_runs_for_each_worker_with_what_that_worker_has)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    tally before = {0}, after = {0};
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_hook_create(&shared_tally, &before, .local = true,
                                                                .when = sgm_every(2, SGM_ITERATION))));
    CHECK_OK(sgm_trainer_set_operator(made.trainer, sgm_gradient_operator(.workers = 3)));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_hook_create(&shared_tally, &after, .local = true,
                                                                .when = sgm_after(3, SGM_ITERATION))));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    for (int i = 0; i < 3; i++) {
        CHECK_INT(before.calls[i], 4); /* of 8 iterations, counted for each worker */
        CHECK_INT(after.calls[i], 1);
    }
    sgm_content content;
    CHECK_INT(sgm_registry_resolve_one(sgm_trainer_registry(made.trainer), "shared.mine", &content),
              SGM_ERROR_NOT_FOUND);
    free_wave_trainer(made);
    CHECK_INT(before.frees, 1);
    CHECK_INT(after.frees, 1);
}

TEST(a_local_hook_without_an_operator_runs_for_the_trainer)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    tally alone = {0};
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_hook_create(&shared_tally, &alone, .local = true)));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    CHECK_INT(alone.calls[0], 8);
    free_wave_trainer(made);
}

TEST(a_hook_that_can_be_copied_has_a_self_for_each_worker)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    tally origin = {0};
    CHECK_OK(sgm_trainer_set_operator(made.trainer, sgm_parameter_operator(.workers = 2)));
    CHECK_OK(sgm_trainer_add_hook(made.trainer,
                                  sgm_hook_make_local(sgm_hook_create(&own_tally, &origin, .when = {0}))));
    CHECK_INT(living, 2);
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
    CHECK_INT(origin.calls[0], 0);
    free_wave_trainer(made);
    CHECK_INT(living, 0);
    CHECK_INT(origin.frees, 1);
}

TEST(criteria_of_a_local_hook_are_checked_for_each_worker)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    tally fired = {0};
    CHECK_OK(sgm_trainer_set_operator(made.trainer, sgm_gradient_operator(.workers = 2)));
    CHECK_OK(sgm_trainer_add_hook(
        made.trainer, sgm_hook_create(&shared_tally, &fired, .local = true,
                                      .only_if = sgm_threshold_criteria("worker", SGM_ABOVE, 0, false))));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
    CHECK_INT(fired.calls[0], 0);
    CHECK_INT(fired.calls[1], 4);
    free_wave_trainer(made);
}

TEST(a_local_hook_can_be_taken_off_all_workers)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    tally seen = {0};
    char *name;
    CHECK_OK(sgm_trainer_set_operator(made.trainer, sgm_gradient_operator(.workers = 2)));
    CHECK_OK(
        sgm_trainer_attach_hook(made.trainer, sgm_hook_create(&shared_tally, &seen, .local = true), &name));
    CHECK_STR(name, "local tally#1");
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_value_reporter("epoch", sgm_every(9, SGM_EPOCH))));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
    CHECK_ERROR(sgm_trainer_detach_hook(made.trainer, "nobody"),
                "no hook is named 'nobody': there are value_reporter#1");
    CHECK_OK(sgm_trainer_detach_hook(made.trainer, name));
    CHECK_ERROR(sgm_trainer_detach_hook(made.trainer, name), "tally");
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    CHECK_INT(seen.calls[0], 4);
    CHECK_INT(seen.calls[1], 4);
    sgm_string_free(name);
    free_wave_trainer(made);
}

TEST(local_and_global_hooks_do_not_require_each_other)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    tally a = {0}, b = {0};
    CHECK_ERROR(sgm_trainer_add_hook(made.trainer, sgm_hook_create(&shared_tally, &a, .local = true,
                                                                   .requires_hooks = {sgm_hook_create(
                                                                       &own_tally, &b, .priority = 1)})),
                "is local, but 'own tally', which it requires, is global");
    free_wave_trainer(made);
}

static sgm_status check_cost(void *self, sgm_hook_call *call)
{
    double cost, parts[2], examples[2];
    CHECK_OK(sgm_hook_number(call, "optimiser.loss", &cost));
    CHECK_OK(sgm_hook_number(call, "operator.local.0.cost", &parts[0]));
    CHECK_OK(sgm_hook_number(call, "operator.local.1.cost", &parts[1]));
    CHECK_OK(sgm_hook_number(call, "operator.local.0.examples", &examples[0]));
    CHECK_OK(sgm_hook_number(call, "operator.local.1.examples", &examples[1]));
    CHECK_NEAR(cost, (parts[0] * examples[0] + parts[1] * examples[1]) / (examples[0] + examples[1]), 1e-12);
    ++*(int *)self;
    return SGM_OK;
}

TEST(the_global_cost_is_that_of_all_workers)
{
    static const sgm_hook_type type = {.api = SGM_HOOK_API, .name = "cost", .invoke = check_cost};
    wave_trainer made = make_wave_trainer((wave_options){.batch = 9, .precision = SGM_FLOAT64});
    int calls = 0;
    sgm_content content;
    CHECK_OK(sgm_trainer_set_operator(made.trainer, sgm_gradient_operator(.workers = 2)));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_hook_create(&type, &calls, .failure = SGM_HOOK_STOP)));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    CHECK_INT(calls, 10);
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(made.trainer), "operator.workers", &content));
    CHECK_INT(content.as.integer, 2);
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(made.trainer), "operator.merge", &content));
    CHECK_STR(content.as.text, "gradients");
    sgm_content_clear(&content);
    free_wave_trainer(made);
}

/* --- commands at any moment --- */

typedef struct rush {
    sgm_trainer *trainer;
    atomic_bool stop;
    uint64_t seed;
} rush;

static void command(rush *at, sgm__random *random)
{
    sgm_registry *registry = sgm_trainer_registry(at->trainer);
    sgm_content content;
    switch (sgm__random_below(random, 7)) {
    case 0:
        sgm_trainer_pause(at->trainer);
        break;
    case 1:
    case 2:
        sgm_trainer_resume(at->trainer);
        break;
    case 3:
        sgm_trainer_step(at->trainer, 1 + (int64_t)sgm__random_below(random, 3));
        break;
    case 4:
        sgm_registry_resolve_set(registry, "optimiser.learning_rate",
                                 sgm_number_content(0.01 + 0.01 * sgm__random_uniform(random)), NULL, NULL);
        break;
    case 5:
        if (sgm_registry_resolve_one(registry, "network.layers.2-dense.weights", &content) == SGM_OK)
            sgm_content_clear(&content);
        break;
    default:
        if (sgm_registry_resolve_one(registry, "operator.local.1.cost", &content) == SGM_OK)
            sgm_content_clear(&content);
        break;
    }
}

static void *rush_about(void *argument)
{
    rush *at = argument;
    sgm__random random = sgm__random_make(at->seed, 1);
    while (!atomic_load(&at->stop)) {
        command(at, &random);
        usleep((useconds_t)sgm__random_below(&random, 300));
    }
    return NULL;
}

/* After a while, in which something was trained, however busy the machine is. */
static void *stop_in_the_end(void *argument)
{
    rush *at = argument;
    int64_t iteration = 0;
    usleep((useconds_t)at->seed);
    while (iteration < 4 && !atomic_load(&at->stop)) {
        sgm_registry_get_integer(sgm_trainer_registry(at->trainer), "iteration", &iteration);
        usleep(200);
    }
    while (sgm_trainer_stop(at->trainer, "enough") != SGM_OK && !atomic_load(&at->stop))
        usleep(200);
    return NULL;
}

static void check_rush(sgm_operator *parallel, uint64_t seed)
{
    wave_trainer made = make_wave_trainer((wave_options){.handler = "cpu", .seed = seed, .batch = 5});
    tally local = {0};
    CHECK_OK(sgm_trainer_set_operator(made.trainer, parallel));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_hook_create(&shared_tally, &local, .local = true)));
    for (int run = 0; run < 3; run++) {
        pthread_t threads[3];
        rush hurry[3] = {{made.trainer, false, seed},
                         {made.trainer, false, seed + 1},
                         {made.trainer, false, 60000 + 40000 * (uint64_t)run}};
        for (int i = 0; i < 3; i++)
            CHECK_INT(pthread_create(&threads[i], NULL, i < 2 ? rush_about : stop_in_the_end, &hurry[i]), 0);
        sgm_status status = sgm_trainer_run(made.trainer, .epochs = 1000000);
        for (int i = 0; i < 3; i++) {
            atomic_store(&hurry[i].stop, true);
            pthread_join(threads[i], NULL);
        }
        CHECK_INT(status, SGM_OK);
    }
    CHECK(made.trainer->position.iteration > 3);
    free_wave_trainer(made);
}

TEST(commands_at_any_moment_reach_workers_that_merge_gradients)
{
    check_rush(sgm_gradient_operator(.workers = 2), 1);
    check_rush(sgm_gradient_operator(.workers = 3, .handlers = "cpu reference"), 2);
}

TEST(commands_at_any_moment_reach_workers_that_merge_parameters)
{
    check_rush(sgm_parameter_operator(.workers = 2, .every = 3), 3);
    check_rush(sgm_parameter_operator(.workers = 3), 4);
}

static sgm_value forward_as_ever(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                 int32_t count)
{
    (void)call, (void)count;
    return sgm_tanh(graph, inputs[0]);
}

static const sgm_layer_type as_ever = {.api = SGM_LAYER_API,
                                       .flags = SGM_LAYER_DYNAMIC,
                                       .name = "as_ever",
                                       .doc = "tanh",
                                       .min_inputs = 1,
                                       .max_inputs = 1,
                                       .forward = forward_as_ever};

/* A worker's dynamic network, which is the same as before, gets another program when parameters are frozen.
 */
TEST(a_dynamic_network_of_a_worker_notices_what_is_frozen)
{
    CHECK_OK(sgm_register_layer(&as_ever));
    wave_trainer made = make_wave_trainer(
        (wave_options){.network = "input(6) + dense(8) + as_ever + dense(3) + softmax_cross_entropy"});
    CHECK_OK(sgm_trainer_set_operator(made.trainer, sgm_gradient_operator(.workers = 1)));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 5));
    sgm_tensor *before = sgm_trainer_get(made.trainer, "1-dense.weights");
    CHECK_OK(sgm_trainer_freeze(made.trainer, "1-dense.*"));
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 10));
    sgm_tensor *after = sgm_trainer_get(made.trainer, "1-dense.weights");
    CHECK_OK(after);
    CHECK(memcmp(sgm_tensor_data(before), sgm_tensor_data(after), 6 * 8 * sizeof(float)) == 0);
    sgm_tensor_free(before);
    sgm_tensor_free(after);
    free_wave_trainer(made);
}
