/* Workers on devices that sum gradients among themselves, on the stand-ins for CUDA and NCCL: they train as
 * workers on processors do, alone and with other ranks. */
#include "ranks_test.h"
#include "waves.h"

#include "handlers/cuda_stand_in.h"
#include "parallel/operator.h"

#define TWO "cuda(device=0) cuda(device=1)"
#define THREE "cuda(device=0) cuda(device=1) cuda(device=2)"
#define MAXIMUM 48 /* elements of what is looked at */

static bool sums_between_devices(sgm_trainer *trainer)
{
    sgm_content together;
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(trainer), "operator.together", &together));
    return together.as.boolean;
}

/* --- as on processors --- */

typedef struct problem {
    const char *network;
    sgm_optimiser *(*optimiser)(void);
    int64_t batch; /* of 40 examples */
} problem;

static sgm_optimiser *momentum(void)
{
    return sgm_momentum(.learning_rate = 0.1, .momentum = 0.9);
}

static sgm_optimiser *everything(void)
{
    return sgm_adam(.learning_rate = 0.01, .clip_norm = 0.2, .average = 0.9, .accumulate = 3,
                    .weight_decay = 0.01, .schedule = {.kind = SGM_COSINE, .period = 10, .warm_up = 1});
}

#define SMALL "input(6) + dense(8, tanh) + dense(3) + softmax_cross_entropy"
#define CHANGING "input(6) + dense(8) + batch_norm + dropout(0.2) + dense(3) + softmax_cross_entropy"

static wave_trainer make_with(const problem *p, sgm_operator *parallel)
{
    wave_trainer made = make_wave_trainer((wave_options){.network = p->network,
                                                         .handler = "cpu",
                                                         .precision = SGM_FLOAT64,
                                                         .optimiser = p->optimiser(),
                                                         .shuffle = true,
                                                         .seed = 3,
                                                         .batch = p->batch});
    CHECK_OK(parallel);
    CHECK_OK(sgm_trainer_set_operator(made.trainer, parallel));
    return made;
}

static wave_trainer make(const problem *p, const char *handlers)
{
    return make_with(p, sgm_gradient_operator(.handlers = handlers));
}

static void check_followed(const problem *p, const char *handlers, const char *others)
{
    loss_curve expected = {0}, curve = {0};
    use_three_devices();
    wave_trainer devices = make(p, handlers), processors = make(p, others);
    CHECK_OK(sgm_trainer_on_progress(devices.trainer, follow_losses, &curve));
    CHECK_OK(sgm_trainer_on_progress(processors.trainer, follow_losses, &expected));
    CHECK_OK(sgm_trainer_run(devices.trainer, .epochs = 4));
    CHECK_OK(sgm_trainer_run(processors.trainer, .epochs = 4));
    CHECK(sums_between_devices(devices.trainer));
    CHECK(!sums_between_devices(processors.trainer));
    CHECK(expected.count >= 12);
    check_equal_losses(&expected, &curve, 1e-10);
    check_equal_states(processors.trainer, devices.trainer, 1e-10);
    CHECK_INT(devices.trainer->position.updates, processors.trainer->position.updates);
    free_wave_trainer(devices);
    free_wave_trainer(processors);
}

/* Before all others: what is loaded once stays. */
TEST(without_nccl_gradients_are_merged_in_the_computers_memory)
{
    static const problem p = {SMALL, momentum, 10};
    char place[32];
    use_three_devices();
    hide_nccl(place);
    wave_trainer devices = make(&p, TWO), processors = make(&p, "cpu cpu");
    char *text = sgm_handler_describe(devices.trainer->sharing.parallel->workers[0].handler);
    CHECK(strstr(text, "merged in the computer's memory, as there is no libnccl.so.2") != NULL);
    sgm_string_free(text);
    CHECK_OK(sgm_trainer_run(devices.trainer, .epochs = 2));
    CHECK_OK(sgm_trainer_run(processors.trainer, .epochs = 2));
    CHECK(!sums_between_devices(devices.trainer));
    check_equal_states(processors.trainer, devices.trainer, 1e-10);
    show_nccl(place);
    /* Now it is there: the next run goes on with it. */
    CHECK_OK(sgm_trainer_run(devices.trainer, .epochs = 4));
    CHECK_OK(sgm_trainer_run(processors.trainer, .epochs = 4));
    CHECK(sums_between_devices(devices.trainer));
    check_equal_states(processors.trainer, devices.trainer, 1e-10);
    text = sgm_handler_describe(devices.trainer->sharing.parallel->workers[0].handler);
    CHECK(strstr(text, "summed between them, by NCCL") != NULL);
    sgm_string_free(text);
    free_wave_trainer(devices);
    free_wave_trainer(processors);
}

TEST(two_devices_train_as_two_processors_do)
{
    check_followed(&(problem){SMALL, momentum, 10}, TWO, "cpu cpu");
}

/* Parts of 4, 4 and 5 examples; the last minibatch has a single one, and two workers have none. */
TEST(parts_of_unequal_size_have_their_share)
{
    check_followed(&(problem){SMALL, momentum, 13}, THREE, "cpu cpu cpu");
}

TEST(accumulation_clipping_and_averages_happen_on_the_devices)
{
    check_followed(&(problem){SMALL, everything, 7}, TWO, "cpu cpu");
}

TEST(running_means_and_random_numbers_are_those_of_processors)
{
    check_followed(&(problem){CHANGING, momentum, 10}, TWO, "cpu cpu");
}

TEST(a_device_that_two_workers_have_is_no_peer_of_itself)
{
    static const problem p = {SMALL, momentum, 10};
    use_three_devices();
    wave_trainer devices = make(&p, "cuda(device=1) cuda(device=1)"), processors = make(&p, "cpu cpu");
    CHECK_OK(sgm_trainer_run(devices.trainer, .epochs = 2));
    CHECK_OK(sgm_trainer_run(processors.trainer, .epochs = 2));
    CHECK(!sums_between_devices(devices.trainer));
    check_equal_states(processors.trainer, devices.trainer, 1e-10);
    free_wave_trainer(devices);
    free_wave_trainer(processors);
}

/* --- looking and changing --- */

typedef struct meddler {
    sgm_trainer *trainer;
    double weights[MAXIMUM]; /* as seen after 5 iterations */
    double gradients[MAXIMUM];
} meddler;

static void read_tensor(sgm_trainer *trainer, const char *name, double *values)
{
    sgm_content content;
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(trainer), name, &content));
    sgm_tensor *tensor = content.as.tensor;
    CHECK_OK(sgm_tensor_read(tensor, values, (size_t)sgm_shape_elements(sgm_tensor_shape(tensor))));
    sgm_content_clear(&content);
}

static bool meddle(void *user, const sgm_training_progress *progress)
{
    meddler *self = user;
    if (progress->kind != SGM_PROGRESS_ITERATION)
        return true;
    if (progress->iteration == 3) { /* nobody has wanted them before */
        sgm_content none;
        CHECK(sgm_registry_resolve_one(sgm_trainer_registry(self->trainer),
                                       "optimiser.gradients.1-dense.weights", &none) != SGM_OK);
    }
    if (progress->iteration == 5) {
        read_tensor(self->trainer, "network.layers.1-dense.weights", self->weights);
        read_tensor(self->trainer, "optimiser.gradients.1-dense.weights", self->gradients);
        sgm_tensor *zeros = sgm_trainer_get(self->trainer, "2-dense.biases");
        CHECK_OK(sgm_tensor_write(zeros, (const double[]){0.5, -0.5, 0.25}, 3));
        CHECK_OK(sgm_trainer_set(self->trainer, "2-dense.biases", zeros));
        sgm_tensor_free(zeros);
    }
    return true;
}

TEST(what_is_read_is_the_newest_and_what_is_set_reaches_all_devices)
{
    static const problem p = {SMALL, momentum, 10};
    static const char *const handlers[] = {TWO, "cpu cpu"};
    static meddler meddlers[2];
    wave_trainer made[2];
    use_three_devices();
    for (int i = 0; i < 2; i++) {
        made[i] = make(&p, handlers[i]);
        meddlers[i].trainer = made[i].trainer;
        CHECK_OK(sgm_trainer_on_progress(made[i].trainer, meddle, &meddlers[i]));
        CHECK_OK(sgm_trainer_run(made[i].trainer, .iterations = 9));
    }
    for (int k = 0; k < MAXIMUM; k++) {
        CHECK_NEAR(meddlers[0].weights[k], meddlers[1].weights[k], 1e-10);
        CHECK_NEAR(meddlers[0].gradients[k], meddlers[1].gradients[k], 1e-10);
    }
    CHECK(meddlers[0].gradients[0] != 0);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(sgm_trainer_freeze(made[i].trainer, "1-dense.*"));
        CHECK_OK(sgm_trainer_run(made[i].trainer, .iterations = 13));
        CHECK_OK(sgm_trainer_unfreeze(made[i].trainer, "1-dense.*"));
        CHECK_OK(sgm_trainer_run(made[i].trainer, .iterations = 17));
    }
    check_equal_states(made[1].trainer, made[0].trainer, 1e-10);
    free_wave_trainer(made[0]);
    free_wave_trainer(made[1]);
}

/* Layers that stay go on from what they had learnt on the devices, after another network, and after a part of
 * a checkpoint. */
TEST(what_was_learnt_on_devices_stays_when_the_trainer_changes)
{
    static const problem p = {SMALL, momentum, 10};
    static const char *const handlers[] = {TWO, "cpu cpu"};
    wave_trainer made[2];
    use_three_devices();
    open_folder();
    for (int i = 0; i < 2; i++) {
        made[i] = make(&p, handlers[i]);
        CHECK_OK(sgm_trainer_run(made[i].trainer, .iterations = 3));
        CHECK_OK(sgm_trainer_save(made[i].trainer, in_folder("early")));
        CHECK_OK(sgm_trainer_run(made[i].trainer, .iterations = 7));
        CHECK_OK(sgm_trainer_set_network(made[i].trainer, SMALL));
        CHECK_OK(sgm_trainer_run(made[i].trainer, .iterations = 9));
        CHECK_OK(sgm_trainer_load_parts(made[i].trainer, in_folder("early"), .parts = SGM_PART_PARAMETERS));
        CHECK_OK(sgm_trainer_run(made[i].trainer, .iterations = 11));
    }
    check_equal_states(made[1].trainer, made[0].trainer, 1e-10);
    free_wave_trainer(made[0]);
    free_wave_trainer(made[1]);
    close_folder();
}

/* In the middle of an epoch, and of what is accumulated. */
TEST(a_run_that_is_resumed_ends_with_the_same_bits)
{
    static const problem p = {CHANGING, everything, 7};
    use_three_devices();
    wave_trainer one = make(&p, TWO), first = make(&p, TWO), second = make(&p, TWO);
    open_folder();
    CHECK_OK(sgm_trainer_run(one.trainer, .iterations = 17));
    CHECK_OK(sgm_trainer_run(first.trainer, .iterations = 8));
    CHECK_OK(sgm_trainer_save(first.trainer, in_folder("part")));
    CHECK_OK(sgm_trainer_load(second.trainer, in_folder("part")));
    CHECK_OK(sgm_trainer_run(second.trainer, .iterations = 17));
    check_equal_states(one.trainer, second.trainer, 0);
    CHECK_INT(second.trainer->position.updates, one.trainer->position.updates);
    CHECK_NEAR(second.trainer->position.sums.loss, one.trainer->position.sums.loss, 0);
    free_wave_trainer(one);
    free_wave_trainer(first);
    free_wave_trainer(second);
    close_folder();
}

/* --- failures --- */

static sgm_status infer_same(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                             sgm_type *result)
{
    (void)count, (void)attributes;
    *result = inputs[0];
    return SGM_OK;
}

/* What it is given, unless that is very large. */
static sgm_status pass_on(const sgm_kernel_call *call)
{
    for (int64_t i = 0; i < sgm_shape_elements(&call->output.shape); i++) {
        double value = sgm_array_load(&call->inputs[0], i);
        if (value > 1e6)
            return sgm_fail(SGM_ERROR_ARGUMENT, "%g is too much for this test", value);
        sgm_array_store(&call->output, i, value);
    }
    return SGM_OK;
}

static const sgm_op fragile = {.api = SGM_OP_API,
                               .name = "test_fragile",
                               .doc = "of a test",
                               .min_inputs = 1,
                               .max_inputs = 1,
                               .infer = infer_same,
                               .forward = pass_on};

static sgm_value record_fragile(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                int32_t count)
{
    (void)call, (void)count;
    return sgm_record(graph, &fragile, inputs, 1, NULL);
}

static const sgm_layer_type fragile_layer = {.api = SGM_LAYER_API,
                                             .name = "test_fragile",
                                             .doc = "of a test",
                                             .min_inputs = 1,
                                             .max_inputs = 1,
                                             .forward = record_fragile};

/* The part of the second worker has what it cannot do; the first one is in the sum by then. */
TEST(a_worker_that_fails_is_named_and_nobody_waits_for_it)
{
    static const char *const fields[] = {"inputs", "targets"};
    sgm_shape shape = sgm_shape_of(8, 2);
    sgm_tensor *values[2] = {sgm_tensor_create(SGM_FLOAT32, &shape), sgm_tensor_create(SGM_FLOAT32, &shape)};
    use_three_devices();
    CHECK_OK(sgm_register_op(&fragile));
    CHECK_OK(sgm_register_layer(&fragile_layer));
    sgm_tensor_set(values[0], (const int64_t[]){7, 1}, 1e7);
    sgm_dataset *dataset = sgm_dataset_create_from("bad", fields, values, 2);
    wave_trainer made =
        make_wave_trainer((wave_options){.network = "input(2) + test_fragile + dense(2) + mean_squared"});
    CHECK_OK(sgm_trainer_set_data(made.trainer, sgm_minibatches(dataset, .size = 4, .no_shuffle = true)));
    CHECK_OK(sgm_trainer_set_operator(made.trainer, sgm_gradient_operator(.handlers = TWO)));
    double began = sgm__now();
    CHECK_INT(sgm_trainer_run(made.trainer, .epochs = 1), SGM_ERROR_ARGUMENT);
    if (strstr(sgm_last_error(), "worker 1: ") == NULL || strstr(sgm_last_error(), "too much") == NULL)
        TEST_FAIL("%s", sgm_last_error());
    CHECK(sgm__now() - began < 50); /* they would wait for 60 seconds */
    CHECK_INT(made.trainer->position.iteration, 1);
    free_wave_trainer(made);
    check_followed(&(problem){SMALL, momentum, 10}, TWO, "cpu cpu");
    sgm_tensor_free(values[0]);
    sgm_tensor_free(values[1]);
    sgm_dataset_free(dataset);
}

TEST(what_nccl_says_ends_the_run)
{
    static const problem p = {SMALL, momentum, 10};
    use_three_devices();
    wave_trainer made = make(&p, TWO);
    setenv("SIGMA_FAKE_NCCL_SUMS", "9", 1); /* four parameters in each iteration */
    CHECK(sgm_trainer_run(made.trainer, .epochs = 2) != SGM_OK);
    unsetenv("SIGMA_FAKE_NCCL_SUMS");
    if (strstr(sgm_last_error(), "NCCL: remote process exited or there was a network error") == NULL)
        TEST_FAIL("%s", sgm_last_error());
    CHECK_INT(made.trainer->position.iteration, 2);
    free_wave_trainer(made);
}

static bool disturb(void *user, const sgm_training_progress *progress)
{
    sgm_trainer *trainer = user;
    if (progress->kind != SGM_PROGRESS_ITERATION || progress->iteration != 2)
        return true;
    sgm_session *session = trainer->sharing.parallel->workers[1].replica->learner.session;
    sgm_tensor *value = sgm_session_get(session, "2-dense.biases");
    sgm_tensor_set(value, (const int64_t[]){1}, 0.75);
    CHECK_OK(sgm_session_set(session, "2-dense.biases", value));
    sgm_tensor_free(value);
    return true;
}

TEST(devices_that_come_apart_end_the_run)
{
    static const problem p = {SMALL, momentum, 10};
    use_three_devices();
    wave_trainer made = make(&p, TWO);
    CHECK_OK(sgm_trainer_on_progress(made.trainer, disturb, made.trainer));
    CHECK(sgm_trainer_run(made.trainer, .epochs = 2) != SGM_OK);
    if (strstr(sgm_last_error(), "worker 1 has other values of '") == NULL)
        TEST_FAIL("%s", sgm_last_error());
    CHECK_INT(made.trainer->position.iteration, 4);
    free_wave_trainer(made);
}

/* --- with ranks --- */

static const problem of_ranks[] = {{CHANGING, momentum, 10}, {SMALL, everything, 13}};
#define OF_RANKS (sizeof of_ranks / sizeof *of_ranks)

/* Each sees one device, as a launcher would have it. */
RANK_PART(train)
{
    use_cuda();
    setenv("CUDA_VISIBLE_DEVICES", getenv("OMPI_COMM_WORLD_RANK"), 1);
    for (size_t i = 0; i < OF_RANKS; i++) {
        sgm_operator *ranks = sgm_mpi_operator(.handlers = "cuda", .timeout = 20, .check_every = 3);
        wave_trainer made = make_with(&of_ranks[i], ranks);
        CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 3));
        CHECK(sums_between_devices(made.trainer));
        if (sgm_operator_rank(ranks) == 1)
            CHECK_OK(sgm_trainer_save(made.trainer, rank_file(i)));
        free_wave_trainer(made);
    }
}

TEST(ranks_sum_between_their_devices)
{
    use_three_devices();
    need_ranks();
    open_folder();
    run_ranks(2, "train");
    for (size_t i = 0; i < OF_RANKS; i++) {
        wave_trainer one = make(&of_ranks[i], "cpu cpu"), read = make(&of_ranks[i], "cpu cpu");
        CHECK_OK(sgm_trainer_run(one.trainer, .epochs = 3));
        CHECK_OK(sgm_trainer_load(read.trainer, rank_file(i)));
        CHECK_INT(read.trainer->position.updates, one.trainer->position.updates);
        check_equal_states(one.trainer, read.trainer, 1e-10);
        free_wave_trainer(one);
        free_wave_trainer(read);
    }
    close_folder();
}

#ifdef SIGMA_ADDRESS_SANITIZER
#define TIMEOUT 6 /* seconds */
#else
#define TIMEOUT 2
#endif

static bool stop_here(void *user, const sgm_training_progress *progress)
{
    (void)user;
    if (progress->kind == SGM_PROGRESS_ITERATION && progress->iteration == 3)
        raise(SIGSTOP);
    return true;
}

RANK_PART(hang)
{
    use_cuda();
    setenv("CUDA_VISIBLE_DEVICES", getenv("OMPI_COMM_WORLD_RANK"), 1);
    sgm_operator *ranks = sgm_mpi_operator(.handlers = "cuda", .timeout = TIMEOUT);
    wave_trainer made = make_with(&of_ranks[1], ranks);
    if (sgm_operator_rank(ranks) == 1)
        CHECK_OK(sgm_trainer_on_progress(made.trainer, stop_here, NULL));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 3));
    free_wave_trainer(made);
}

TEST(a_rank_that_hangs_is_named)
{
    char time[64];
    use_three_devices();
    need_ranks();
    open_folder();
    int code = wait_ranks(start_ranks(2, "hang"), TIMEOUT + 40);
    CHECK(code != 0 && code != -1);
    snprintf(time, sizeof time, "a sum with the other devices has taken more than %d seconds", TIMEOUT);
    if (strstr(ranks_said(), time) == NULL || strstr(ranks_said(), "no answer from rank 1 (") == NULL)
        TEST_FAIL("%s", ranks_said());
    close_folder();
}
