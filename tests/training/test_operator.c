/* Operators: workers that merge gradients do what one worker does; parameters are merged as told. */
#include "waves.h"

#include "parallel/operator.h"

#define NETWORK "input(6) + dense(8, tanh) + dense(5, relu) + dense(3) + softmax_cross_entropy"

/* --- gradients: as one worker --- */

typedef struct equality {
    sgm_optimiser *(*optimiser)(void);
    const char *handlers;
    int32_t workers;
    int64_t batch;
    int64_t epochs;
} equality;

static wave_trainer make_one(const equality *wanted)
{
    return make_wave_trainer((wave_options){.network = NETWORK,
                                            .handler = "cpu",
                                            .precision = SGM_FLOAT64,
                                            .optimiser = wanted->optimiser(),
                                            .shuffle = true,
                                            .seed = 3,
                                            .batch = wanted->batch});
}

static void check_equality(const equality *wanted)
{
    loss_curve one_curve = {0}, curve = {0};
    wave_trainer one = make_one(wanted), several = make_one(wanted);
    CHECK_OK(sgm_trainer_set_operator(
        several.trainer, sgm_gradient_operator(.workers = wanted->workers, .handlers = wanted->handlers)));
    CHECK_OK(sgm_trainer_on_progress(one.trainer, follow_losses, &one_curve));
    CHECK_OK(sgm_trainer_on_progress(several.trainer, follow_losses, &curve));
    CHECK_OK(sgm_trainer_run(one.trainer, .epochs = wanted->epochs));
    CHECK_OK(sgm_trainer_run(several.trainer, .epochs = wanted->epochs));
    CHECK(one_curve.count >= 50);
    check_equal_losses(&one_curve, &curve, 1e-10);
    check_equal_states(one.trainer, several.trainer, 1e-10);
    CHECK_INT(several.trainer->position.updates, one.trainer->position.updates);
    free_wave_trainer(one);
    free_wave_trainer(several);
}

static sgm_optimiser *momentum(void)
{
    return sgm_momentum(.learning_rate = 0.1, .momentum = 0.9);
}

static sgm_optimiser *everything(void)
{
    return sgm_adam(.learning_rate = 0.01, .clip_norm = 0.2, .average = 0.9, .accumulate = 3,
                    .weight_decay = 0.01, .schedule = {.kind = SGM_COSINE, .period = 10, .warm_up = 1});
}

TEST(two_workers_do_what_one_does)
{
    check_equality(&(equality){momentum, NULL, 2, 10, 15});
}

/* Parts of 3, 3 and 4 examples; the last minibatch of an epoch has 10. */
TEST(three_workers_with_parts_of_unequal_size_do_what_one_does)
{
    check_equality(&(equality){momentum, NULL, 3, 10, 15});
}

/* The last minibatch of 40 examples has 1 for 3 workers. */
TEST(a_minibatch_smaller_than_the_workers_uses_fewer)
{
    check_equality(&(equality){momentum, NULL, 3, 13, 15});
}

TEST(accumulation_clipping_schedule_and_averages_are_those_of_one_worker)
{
    check_equality(&(equality){everything, NULL, 2, 10, 15});
    check_equality(&(equality){everything, NULL, 3, 7, 10});
}

TEST(workers_may_have_different_handlers)
{
    check_equality(&(equality){momentum, "cpu reference", 0, 10, 15});
    check_equality(&(equality){everything, "reference debug:cpu debug:reference", 0, 10, 15});
}

TEST(a_float32_worker_on_cpu_and_one_on_the_reference_train_together)
{
    loss_curve curve = {0}, one_curve = {0};
    wave_trainer one = make_wave_trainer((wave_options){.handler = "cpu"}),
                 mixed = make_wave_trainer((wave_options){.handler = "cpu"});
    CHECK_OK(sgm_trainer_set_operator(mixed.trainer, sgm_gradient_operator(.handlers = "cpu reference")));
    CHECK_OK(sgm_trainer_on_progress(one.trainer, follow_losses, &one_curve));
    CHECK_OK(sgm_trainer_on_progress(mixed.trainer, follow_losses, &curve));
    CHECK_OK(sgm_trainer_run(one.trainer, .epochs = 15));
    CHECK_OK(sgm_trainer_run(mixed.trainer, .epochs = 15));
    for (size_t i = 0; i < curve.count; i++)
        CHECK_NEAR(curve.losses[i], one_curve.losses[i], 1e-4);
    free_wave_trainer(one);
    free_wave_trainer(mixed);
}

TEST(what_is_frozen_or_modified_is_so_with_workers)
{
    wave_trainer made[2];
    for (int i = 0; i < 2; i++) {
        made[i] = make_wave_trainer((wave_options){.precision = SGM_FLOAT64});
        if (i == 1)
            CHECK_OK(sgm_trainer_set_operator(made[i].trainer, sgm_gradient_operator(.workers = 2)));
        CHECK_OK(sgm_trainer_freeze(made[i].trainer, "1-dense.*"));
        CHECK_OK(
            sgm_trainer_add_modifier(made[i].trainer, "*.weights", sgm_modifier_parse("clip(-0.3, 0.3)")));
        CHECK_OK(sgm_trainer_run(made[i].trainer, .epochs = 5));
        CHECK_OK(sgm_trainer_unfreeze(made[i].trainer, "1-dense.*"));
        CHECK_OK(sgm_trainer_run(made[i].trainer, .epochs = 8));
    }
    check_equal_states(made[0].trainer, made[1].trainer, 1e-10);
    free_wave_trainer(made[0]);
    free_wave_trainer(made[1]);
}

/* --- parameters --- */

/* Sums over what two trainers learn when each has every second minibatch: the independent computation. */
static sgm_iterator *every_second(int first, int64_t minibatch)
{
    static const char *const fields[] = {"inputs", "targets"};
    sgm_dataset *all = wave_dataset();
    sgm_iterator *iterator = sgm_minibatches(all, .size = minibatch, .no_shuffle = true);
    sgm_shape shapes[2] = {sgm_shape_of(WAVE_EXAMPLES / 2, 6), sgm_shape_of(WAVE_EXAMPLES / 2, 3)};
    sgm_tensor *halves[2] = {sgm_tensor_create(SGM_FLOAT32, &shapes[0]),
                             sgm_tensor_create(SGM_FLOAT32, &shapes[1])};
    const sgm_block *block;
    for (int64_t i = 0, at = 0; sgm_iterator_next(iterator, &block) == SGM_OK && block != NULL; i++) {
        if (i % 2 != first)
            continue;
        for (int k = 0; k < 2; k++) {
            sgm_tensor *part = sgm_tensor_slice(halves[k], 0, at, at + block->count, 1);
            CHECK_OK(sgm_tensor_assign(part, sgm_block_field(block, fields[k])));
            sgm_tensor_free(part);
        }
        at += block->count;
    }
    sgm_dataset *half = sgm_dataset_create_from("half", fields, halves, 2);
    sgm_tensor_free(halves[0]);
    sgm_tensor_free(halves[1]);
    sgm_iterator_free(iterator);
    sgm_dataset_free(all);
    iterator = sgm_minibatches(half, .size = minibatch, .no_shuffle = true);
    sgm_dataset_free(half);
    return iterator;
}

static void read_state(sgm_trainer *trainer, const char *name, double *values, size_t count)
{
    sgm_tensor *tensor = sgm_trainer_get(trainer, name);
    CHECK_OK(tensor);
    CHECK_INT(sgm_shape_elements(sgm_tensor_shape(tensor)), (int64_t)count);
    CHECK_OK(sgm_tensor_read(tensor, values, count));
    sgm_tensor_free(tensor);
}

static const struct {
    const char *name;
    size_t count;
} parameters[] = {{"1-dense.weights", 48}, {"1-dense.biases", 8},   {"2-dense.weights", 40},
                  {"2-dense.biases", 5},   {"3-dense.weights", 15}, {"3-dense.biases", 3}};

/* One round of averaging: both halves train for `epochs` with momentum of their own, then parameters of both
 * become the average. */
TEST(parameters_are_averaged_as_if_two_trainers_had_trained_apart)
{
    wave_trainer together = make_wave_trainer((wave_options){.precision = SGM_FLOAT64, .batch = 5});
    CHECK_OK(sgm_trainer_set_operator(together.trainer, sgm_parameter_operator(.workers = 2)));
    wave_trainer apart[2];
    for (int i = 0; i < 2; i++) {
        apart[i] = make_wave_trainer((wave_options){.precision = SGM_FLOAT64, .batch = 5});
        CHECK_OK(sgm_trainer_set_data(apart[i].trainer, every_second(i, 5)));
    }
    for (int64_t epoch = 1; epoch <= 4; epoch++) {
        CHECK_OK(sgm_trainer_run(together.trainer, .epochs = epoch));
        CHECK_INT(together.trainer->position.iteration, 4 * epoch);
        for (int i = 0; i < 2; i++)
            CHECK_OK(sgm_trainer_run(apart[i].trainer, .epochs = epoch));
        for (size_t k = 0; k < sizeof parameters / sizeof *parameters; k++) {
            double a[48], b[48], merged[48];
            read_state(apart[0].trainer, parameters[k].name, a, parameters[k].count);
            read_state(apart[1].trainer, parameters[k].name, b, parameters[k].count);
            read_state(together.trainer, parameters[k].name, merged, parameters[k].count);
            for (size_t i = 0; i < parameters[k].count; i++) {
                a[i] = (a[i] + b[i]) / 2;
                CHECK_NEAR(merged[i], a[i], 1e-12);
            }
            sgm_tensor *average = sgm_trainer_get(apart[0].trainer, parameters[k].name);
            CHECK_OK(sgm_tensor_write(average, a, parameters[k].count));
            for (int i = 0; i < 2; i++)
                CHECK_OK(sgm_trainer_set(apart[i].trainer, parameters[k].name, average));
            sgm_tensor_free(average);
        }
    }
    free_wave_trainer(together);
    free_wave_trainer(apart[0]);
    free_wave_trainer(apart[1]);
}

static sgm_status compare_views(void *self, sgm_hook_call *call)
{
    sgm_content seen;
    sgm_trainer *trainer = sgm_hook_trainer(call);
    const sgm_operator *parallel = trainer->sharing.parallel;
    double values[2][15], merged[15];
    for (int i = 0; i < 2; i++) {
        sgm_tensor *value = sgm_session_get(parallel->workers[i].replica->learner.session, "3-dense.weights");
        CHECK_OK(sgm_tensor_read(value, values[i], 15));
        sgm_tensor_free(value);
    }
    CHECK_OK(sgm_hook_get(call, "network.layers.3-dense.weights", &seen));
    CHECK_OK(sgm_tensor_read(seen.as.tensor, merged, 15));
    sgm_content_clear(&seen);
    int differ = 0;
    for (int i = 0; i < 15; i++) {
        CHECK_NEAR(merged[i], (values[0][i] + values[1][i]) / 2, 1e-12);
        differ += values[0][i] != values[1][i];
    }
    CHECK(call->iteration % 3 == 0 ? differ == 0 : differ > 0);
    ++*(int *)self;
    return SGM_OK;
}

TEST(hooks_see_merged_values_between_merges_that_disturb_nothing)
{
    static const sgm_hook_type type = {.api = SGM_HOOK_API, .name = "views", .invoke = compare_views};
    wave_trainer made[2];
    int seen = 0;
    for (int i = 0; i < 2; i++) {
        made[i] = make_wave_trainer((wave_options){.precision = SGM_FLOAT64, .batch = 5});
        CHECK_OK(sgm_trainer_set_operator(made[i].trainer, sgm_parameter_operator(.workers = 2, .every = 3)));
        if (i == 0)
            CHECK_OK(sgm_trainer_add_hook(made[i].trainer,
                                          sgm_hook_create(&type, &seen, .failure = SGM_HOOK_STOP)));
        CHECK_OK(sgm_trainer_run(made[i].trainer, .epochs = 5));
    }
    CHECK_INT(seen, 20);
    check_equal_states(made[0].trainer, made[1].trainer, 0);
    free_wave_trainer(made[0]);
    free_wave_trainer(made[1]);
}

TEST(a_value_that_is_set_reaches_all_workers)
{
    wave_trainer made = make_wave_trainer((wave_options){.precision = SGM_FLOAT64, .batch = 5});
    CHECK_OK(sgm_trainer_set_operator(made.trainer, sgm_parameter_operator(.workers = 3, .every = 100)));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
    sgm_tensor *value = sgm_trainer_get(made.trainer, "3-dense.biases");
    CHECK_OK(sgm_tensor_write(value, (const double[]){1, 2, 3}, 3));
    CHECK_OK(sgm_trainer_set(made.trainer, "3-dense.biases", value));
    sgm_tensor_free(value);
    for (int i = 0; i < 3; i++) {
        double values[3];
        value = sgm_session_get(made.trainer->sharing.parallel->workers[i].replica->learner.session,
                                "3-dense.biases");
        CHECK_OK(sgm_tensor_read(value, values, 3));
        CHECK_NEAR(values[2], 3, 0);
        sgm_tensor_free(value);
    }
    free_wave_trainer(made);
}

/* --- reducers --- */

static void check_merge(sgm_reducer *reducer, const char *state, double a, double b, double wanted)
{
    CHECK_OK(reducer);
    for (sgm_dtype dtype = SGM_FLOAT32; dtype <= SGM_FLOAT64; dtype++) {
        sgm_shape shape = sgm_shape_of(3);
        sgm_tensor *values[3];
        double merged[3];
        for (int i = 0; i < 3; i++)
            values[i] = sgm_tensor_create(dtype, &shape);
        CHECK_OK(sgm_tensor_write(values[0], (const double[]){a, b, 0}, 3));
        CHECK_OK(sgm_tensor_write(values[1], (const double[]){b, a, 0}, 3));
        CHECK_OK(sgm_reducer_apply(reducer, state, (const sgm_tensor *const *)values, 2, values[2]));
        CHECK_OK(sgm_tensor_read(values[2], merged, 3));
        CHECK_NEAR(merged[0], wanted, 1e-3);
        CHECK_NEAR(merged[2], 0, 0);
        for (int i = 0; i < 3; i++)
            sgm_tensor_free(values[i]);
    }
}

TEST(reducers_average_weigh_and_take_the_largest)
{
    const double weights[] = {3, 8};
    sgm_reducer *reducer = sgm_average_reducer();
    check_merge(reducer, "1-dense.weights", 1, 5, 3);
    CHECK_OK(sgm_reducer_add(reducer, "*.weights", sgm_maximum_reducer()));
    CHECK_OK(sgm_reducer_add(reducer, "3-dense.weights", sgm_weighted_reducer(weights, 2)));
    check_merge(reducer, "1-dense.weights", -7, -5, -5);
    check_merge(reducer, "3-dense.weights", 1, 9, 6.818);
    check_merge(reducer, "3-dense.biases", 1, 5, 3);
    CHECK_INT(sgm_reducer_add(reducer, "*.weights", sgm_maximum_reducer()), SGM_ERROR_ARGUMENT);
    sgm_reducer_free(reducer);
    reducer = sgm_reducer_parse("weighted(3, 8)");
    check_merge(reducer, "a", 1, 9, 6.818);
    sgm_reducer_free(reducer);
    reducer = sgm_reducer_parse("maximum");
    check_merge(reducer, "a", 2, 4, 4);
    sgm_reducer_free(reducer);
}

TEST(a_pattern_is_taken_from_a_reducer_again)
{
    sgm_shape shape = sgm_shape_of(2);
    sgm_tensor *a = sgm_tensor_create_from(SGM_FLOAT64, &shape, (double[]){1, 6}),
               *b = sgm_tensor_create_from(SGM_FLOAT64, &shape, (double[]){3, 2}),
               *result = sgm_tensor_create(SGM_FLOAT64, &shape);
    const sgm_tensor *values[] = {a, b};
    sgm_reducer *reducer = sgm_average_reducer();
    CHECK_OK(sgm_reducer_add(reducer, "*.biases", sgm_maximum_reducer()));
    CHECK_OK(sgm_reducer_add(reducer, "*.gains", sgm_maximum_reducer()));
    CHECK_OK(sgm_reducer_apply(reducer, "a.biases", values, 2, result));
    CHECK_NEAR(sgm_tensor_get(result, (const int64_t[]){0}), 3, 0);
    CHECK_OK(sgm_reducer_remove(reducer, "*.biases"));
    CHECK_OK(sgm_reducer_apply(reducer, "a.biases", values, 2, result));
    CHECK_NEAR(sgm_tensor_get(result, (const int64_t[]){0}), 2, 0);
    CHECK_OK(sgm_reducer_apply(reducer, "a.gains", values, 2, result));
    CHECK_NEAR(sgm_tensor_get(result, (const int64_t[]){0}), 3, 0);
    CHECK_ERROR(sgm_reducer_remove(reducer, "*.biases"),
                "the reducer has no pattern '*.biases'; it has *.gains");
    CHECK_OK(sgm_reducer_add(reducer, "*.biases", sgm_average_reducer()));
    sgm_reducer_free(reducer);
    sgm_tensor_free(a);
    sgm_tensor_free(b);
    sgm_tensor_free(result);
}

/* Counts of integers are merged as numbers are, rounded towards 0 where the mean is none. */
TEST(states_of_integers_are_merged)
{
    sgm_shape shape = sgm_shape_of(3);
    sgm_tensor *a = sgm_tensor_create_from(SGM_INT64, &shape, (int64_t[]){1, 6, -4}),
               *b = sgm_tensor_create_from(SGM_INT64, &shape, (int64_t[]){3, 2, -2}),
               *result = sgm_tensor_create(SGM_INT64, &shape);
    const sgm_tensor *values[] = {a, b};
    double read[3];
    sgm_reducer *average = sgm_average_reducer(), *maximum = sgm_maximum_reducer();
    CHECK_OK(sgm_reducer_apply(average, "a", values, 2, result));
    CHECK_OK(sgm_tensor_read(result, read, 3));
    CHECK(read[0] == 2 && read[1] == 4 && read[2] == -3);
    CHECK_OK(sgm_reducer_apply(maximum, "a", values, 2, result));
    CHECK_OK(sgm_tensor_read(result, read, 3));
    CHECK(read[0] == 3 && read[1] == 6 && read[2] == -2);
    sgm_reducer_free(average);
    sgm_reducer_free(maximum);
    sgm_tensor_free(a);
    sgm_tensor_free(b);
    sgm_tensor_free(result);
}

static int32_t workers_of(double share)
{
    double workers = -1;
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_set_operator(made.trainer, sgm_gradient_operator(.share = share)));
    sgm_content content;
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(made.trainer), "operator.workers", &content));
    workers = (double)content.as.integer;
    free_wave_trainer(made);
    return (int32_t)workers;
}

TEST(workers_may_be_a_share_of_the_processors)
{
    int32_t all = sgm__processors() < 64 ? sgm__processors() : 64, half = all / 2 > 0 ? all / 2 : 1;
    CHECK_INT(workers_of(1), all);
    CHECK_INT(workers_of(0.5), half);
    CHECK_INT(workers_of(1e-9), 1);
    CHECK_ERROR(sgm_gradient_operator(.share = -1), "share");
}

TEST(reducers_that_cannot_be_are_refused)
{
    const double none[] = {0, 0}, odd[] = {1, -1};
    CHECK(sgm_weighted_reducer(none, 2) == NULL);
    CHECK(sgm_weighted_reducer(odd, 2) == NULL);
    CHECK(strstr(sgm_last_error(), "weight 1 is -1") != NULL);
    CHECK(sgm_reducer_parse("averge") == NULL);
    CHECK(strstr(sgm_last_error(), "did you mean 'average'") != NULL);
    CHECK_ERROR(sgm_reducer_parse("weighted(1, x)"),
                "column 13: weighted: weights: expected a number, found 'x'");
    CHECK_ERROR(sgm_reducer_parse("weighted(1, 2) 3"), "column 16: expected the end, found '3'");
    CHECK_ERROR(sgm_reducer_parse("weighted"), "weighted needs weights: one for each worker, as in 3, 8");
    CHECK(sgm_reducer_parse(NULL) == NULL);
    CHECK(sgm_parameter_operator(.workers = 3, .reducer = sgm_reducer_parse("weighted(3, 8)")) == NULL);
    CHECK(strstr(sgm_last_error(), "2 weights for 3 workers") != NULL);
    CHECK(sgm_parameter_operator(.workers = 2, .reducer = sgm_reducer_parse("weighted(3)")) == NULL);
    CHECK(strstr(sgm_last_error(), "1 weight for 2 workers") != NULL);
}

TEST(operators_that_cannot_be_are_refused)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK(sgm_gradient_operator(.workers = 65) == NULL);
    CHECK(sgm_gradient_operator(.every = 3) == NULL);
    CHECK(strstr(sgm_last_error(), "sgm_parameter_operator") != NULL);
    CHECK(sgm_parameter_operator(.every = -3) == NULL);
    CHECK(sgm_trainer_set_operator(made.trainer, sgm_gradient_operator(.handlers = "cpu refrence")) !=
          SGM_OK);
    CHECK(strstr(sgm_last_error(), "worker 1") != NULL);
    CHECK(strstr(sgm_last_error(), "did you mean 'reference'") != NULL);
    free_wave_trainer(made);
    made = make_wave_trainer((wave_options){0});
    sgm_reducer *reducer = sgm_average_reducer();
    CHECK_OK(sgm_reducer_add(reducer, "*.wieghts", sgm_maximum_reducer()));
    CHECK_OK(sgm_trainer_set_operator(made.trainer, sgm_parameter_operator(.reducer = reducer)));
    CHECK(sgm_trainer_run(made.trainer, .epochs = 1) != SGM_OK);
    CHECK(strstr(sgm_last_error(), "'*.wieghts' matches no parameter") != NULL);
    free_wave_trainer(made);
}

/* --- failures --- */

TEST(a_worker_that_fails_is_named)
{
    static const char *const fields[] = {"inputs", "targets"};
    sgm_shape shape = sgm_shape_of(4, 2);
    sgm_tensor *values[2] = {sgm_tensor_create(SGM_FLOAT32, &shape), sgm_tensor_create(SGM_FLOAT32, &shape)};
    sgm_tensor_set(values[0], (const int64_t[]){3, 1}, NAN);
    sgm_dataset *dataset = sgm_dataset_create_from("bad", fields, values, 2);
    wave_trainer made = make_wave_trainer((wave_options){.network = "input(2) + dense(2) + mean_squared"});
    CHECK_OK(sgm_trainer_set_data(made.trainer, sgm_minibatches(dataset, .size = 4, .no_shuffle = true)));
    CHECK_OK(sgm_trainer_set_operator(made.trainer,
                                      sgm_gradient_operator(.handlers = "debug:reference debug:reference")));
    CHECK_INT(sgm_trainer_run(made.trainer, .epochs = 1), SGM_ERROR_NUMERIC);
    CHECK(strstr(sgm_last_error(), "worker 1: ") != NULL);
    sgm_tensor_free(values[0]);
    sgm_tensor_free(values[1]);
    sgm_dataset_free(dataset);
    free_wave_trainer(made);
}
