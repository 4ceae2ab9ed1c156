/* Ranks: 1, 2 and 4 processes do what one trainer does; alone, the operator needs no MPI. */
#include "ranks_test.h"
#include "waves.h"

#include "parallel/collective/ranks.h"

#include <sched.h>

#define NORMALISED                                                                                           \
    "input(6) + dense(8, tanh) + dropout(0) + dense(5, relu) + dense(3) + softmax_cross_entropy"

static sgm_optimiser *momentum(void)
{
    return sgm_momentum(.learning_rate = 0.1, .momentum = 0.9);
}

static sgm_optimiser *everything(void)
{
    return sgm_adam(.learning_rate = 0.01, .clip_norm = 0.2, .average = 0.9, .accumulate = 3,
                    .weight_decay = 0.01, .schedule = {.kind = SGM_COSINE, .period = 10, .warm_up = 1});
}

typedef struct way {
    const char *name;
    sgm_optimiser *(*optimiser)(void);
    int64_t batch;   /* of 40 examples; may have fewer examples than there are ranks */
    int32_t workers; /* 0: each rank has one more than the one before */
    bool messages;   /* gradients travel in buckets, as between machines */
    int64_t bucket;
    const char *network;
} way;

#define SMALL "input(6) + dense(8, tanh) + dense(5, relu) + dense(3) + softmax_cross_entropy"
/* In some 20 buckets of 1 KiB, which begin and end amid gradients. */
#define LARGER "input(6) + dense(64, tanh) + dense(32, relu) + dense(3) + softmax_cross_entropy"

#define CHANGING "input(6) + dense(8) + deeper + dense(3) + softmax_cross_entropy"

static const way ways[] = {
    {"momentum", momentum, 10, 1, false, 0, SMALL},
    {"everything", everything, 7, 2, false, 0, LARGER},
    {"everything by messages", everything, 7, 2, true, 1024, LARGER},
    {"a rest of one example", momentum, 13, 2, false, 0, SMALL},
    {"fewer examples than ranks", momentum, 3, 1, false, 0, SMALL},
    {"fewer examples by messages", momentum, 1, 1, true, 1024, SMALL},
    {"many buckets", momentum, 10, 1, true, 1024, LARGER},
    {"other numbers of workers", momentum, 10, 0, false, 0, LARGER},
    {"programs that change", momentum, 10, 2, false, 0, CHANGING},
};
#define WAYS (sizeof ways / sizeof *ways)

/* A layer that has other steps as training goes on. */
static int depth;

static sgm_value forward_deeper(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                int32_t count)
{
    sgm_value value = inputs[0];
    (void)call, (void)count;
    for (int i = 0; i < depth; i++)
        value = sgm_tanh(graph, value);
    return value;
}

static const sgm_layer_type deeper = {.api = SGM_LAYER_API,
                                      .flags = SGM_LAYER_DYNAMIC,
                                      .name = "deeper",
                                      .doc = "tanh, again and again",
                                      .min_inputs = 1,
                                      .max_inputs = 1,
                                      .forward = forward_deeper};

static bool deepen(void *user, const sgm_training_progress *progress)
{
    (void)user;
    if (progress->kind == SGM_PROGRESS_ITERATION)
        depth = 1 + (int)(progress->iteration / 4 % 5);
    return true;
}

static wave_trainer make_plain(const way *w)
{
    return make_wave_trainer((wave_options){.network = w->network,
                                            .handler = "cpu",
                                            .precision = SGM_FLOAT64,
                                            .optimiser = w->optimiser(),
                                            .shuffle = true,
                                            .seed = 3,
                                            .batch = w->batch});
}

static wave_trainer make(const way *w)
{
    static bool known;
    if (!known)
        CHECK_OK(sgm_register_layer(&deeper));
    known = true;
    depth = 1;
    wave_trainer made = make_plain(w);
    CHECK_OK(sgm_trainer_on_progress(made.trainer, deepen, NULL));
    return made;
}

static void save_losses(const loss_curve *curve, const char *path)
{
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    for (size_t i = 0; i < curve->count; i++)
        fprintf(file, "%.17g\n", curve->losses[i]);
    fclose(file);
}

static bool far_ones; /* ranks that are on other machines, as far as they know */

static void train_way(const way *w, const char *name)
{
    char path[64];
    loss_curve curve = {0};
    wave_trainer made = make(w);
    sgm_operator *ranks =
        sgm_mpi_operator(.workers = w->workers, .bucket = w->bucket, .timeout = 20, .check_every = 7);
    CHECK_OK(ranks);
    if (w->workers == 0) {
        int32_t number = sgm_operator_rank(ranks) + 1;
        sgm_operator_free(ranks);
        ranks = sgm_mpi_operator(.workers = number, .timeout = 20, .check_every = 7);
        CHECK_OK(ranks);
    }
    CHECK_OK(sgm_trainer_set_operator(made.trainer, ranks));
    sgm__trainer_ranks(made.trainer)->options.messages = w->messages;
    CHECK_OK(sgm_trainer_on_progress(made.trainer, follow_losses, &curve));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 6));
    if (sgm_operator_rank(ranks) == sgm_operator_ranks(ranks) - 1) { /* the last one knows it all, too */
        snprintf(path, sizeof path, "%s.safetensors", name);
        CHECK_OK(sgm_trainer_save(made.trainer, rank_path(path)));
        snprintf(path, sizeof path, "%s.losses", name);
        save_losses(&curve, rank_path(path));
    }
    CHECK(far_ones || (sgm__trainer_ranks(made.trainer)->node == NULL) == w->messages);
    CHECK(!far_ones || sgm__trainer_ranks(made.trainer)->node == NULL);
    free_wave_trainer(made);
}

RANK_PART(train)
{
    for (size_t i = 0; i < WAYS; i++) {
        char name[16];
        snprintf(name, sizeof name, "%zu", i);
        train_way(&ways[i], name);
    }
}

static void check_losses(const loss_curve *curve, const char *path)
{
    FILE *file = fopen(path, "r");
    double loss;
    CHECK(file != NULL);
    for (size_t i = 0; i < curve->count; i++) {
        CHECK_INT(fscanf(file, "%lf", &loss), 1);
        CHECK_NEAR(loss, curve->losses[i], 1e-10);
    }
    CHECK_INT(fscanf(file, "%lf", &loss), EOF);
    fclose(file);
}

static void check_way(const way *w, const char *name)
{
    char path[64];
    loss_curve curve = {0};
    wave_trainer one = make(w);
    CHECK_OK(sgm_trainer_on_progress(one.trainer, follow_losses, &curve));
    CHECK_OK(sgm_trainer_run(one.trainer, .epochs = 6));
    CHECK(curve.count >= 18);
    snprintf(path, sizeof path, "%s.safetensors", name);
    check_wave_states(one.trainer, rank_path(path));
    snprintf(path, sizeof path, "%s.losses", name);
    check_losses(&curve, rank_path(path));
    free_wave_trainer(one);
}

static void check_equality(int ranks)
{
    need_ranks();
    open_folder();
    run_ranks(ranks, "train");
    for (size_t i = 0; i < WAYS; i++) {
        char name[16];
        snprintf(name, sizeof name, "%zu", i);
        check_way(&ways[i], name);
    }
    close_folder();
}

TEST(one_rank_under_a_launcher_does_what_one_trainer_does)
{
    check_equality(1);
}

TEST(two_ranks_do_what_one_trainer_does)
{
    check_equality(2);
}

TEST(four_ranks_do_what_one_trainer_does)
{
    check_equality(4);
}

/* --- other machines --- */

/* Whether this process may call its host as it likes; that of its own only. */
static bool rename_host(const char *name)
{
    return unshare(CLONE_NEWUTS) == 0 && sethostname(name, strlen(name)) == 0;
}

RANK_PART(on_other_hosts)
{
    char name[64];
    snprintf(name, sizeof name, "host-%ld", (long)getpid());
    CHECK(rename_host(name));
    far_ones = true;
    train_way(&ways[0], "far");
}

TEST(ranks_of_other_hosts_send_their_gradients)
{
    int status = 0;
    need_ranks();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        _exit(rename_host("elsewhere") ? 0 : 1);
    CHECK_INT(waitpid(child, &status, 0), child);
    if (status != 0)
        SKIP("only an administrator's process may have a host name of its own");
    open_folder();
    run_ranks(2, "on_other_hosts");
    check_way(&ways[0], "far");
    close_folder();
}

/* --- parameters --- */

static sgm_optimiser *descent(void)
{
    return sgm_gradient_descent(.learning_rate = 0.2);
}

typedef struct averaging {
    int64_t batch, every;
    int ranks;
    int32_t workers;
} averaging;

/* An epoch ends with a merge, as ranks always end it; the rest of 7 has no minibatch for some workers. */
static const averaging averagings[] = {{5, 4, 2, 1}, {5, 2, 2, 2}, {7, 3, 2, 1}, {7, 1, 2, 2}};
#define AVERAGINGS (sizeof averagings / sizeof *averagings)

static wave_trainer make_averaged(const averaging *a)
{
    return make_wave_trainer((wave_options){.network = SMALL,
                                            .handler = "cpu",
                                            .precision = SGM_FLOAT64,
                                            .optimiser = descent(),
                                            .shuffle = true,
                                            .seed = 4,
                                            .batch = a->batch});
}

RANK_PART(average)
{
    for (size_t i = 0; i < AVERAGINGS; i++) {
        wave_trainer made = make_averaged(&averagings[i]);
        sgm_operator *ranks =
            sgm_mpi_operator(.workers = averagings[i].workers, .every = averagings[i].every, .timeout = 20);
        CHECK_OK(ranks);
        CHECK_OK(sgm_trainer_set_operator(made.trainer, ranks));
        CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 5));
        CHECK_INT(made.trainer->position.batch, 0);
        if (sgm_operator_rank(ranks) == 1)
            CHECK_OK(sgm_trainer_save(made.trainer, rank_file(i)));
        free_wave_trainer(made);
    }
}

TEST(ranks_that_average_parameters_do_what_workers_do)
{
    need_ranks();
    open_folder();
    run_ranks(2, "average");
    for (size_t i = 0; i < AVERAGINGS; i++) {
        const averaging *a = &averagings[i];
        wave_trainer one = make_averaged(a);
        CHECK_OK(sgm_trainer_set_operator(
            one.trainer, sgm_parameter_operator(.workers = a->ranks * a->workers, .every = a->every)));
        CHECK_OK(sgm_trainer_run(one.trainer, .epochs = 5));
        check_wave_states(one.trainer, rank_file(i));
        free_wave_trainer(one);
    }
    close_folder();
}

/* --- pieces --- */

RANK_PART(pieces)
{
    wave_trainer made = make_wave_trainer((wave_options){
        .network = "input(6) + dense(300, tanh) + dense(200, tanh) + dense(3) + softmax_cross_entropy",
        .handler = "cpu",
        .precision = SGM_FLOAT64});
    CHECK_OK(sgm_trainer_set_operator(made.trainer, sgm_mpi_operator(.bucket = 1024, .timeout = 20)));
    sgm__trainer_ranks(made.trainer)->options.messages = true;
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
    free_wave_trainer(made);
}

/* Some 500 of 1 KiB. */
TEST(buckets_grow_rather_than_become_too_many)
{
    need_ranks();
    open_folder();
    run_ranks(2, "pieces");
    close_folder();
}

/* --- half the bytes --- */

static wave_trainer make_narrow(void)
{
    return make_wave_trainer((wave_options){
        .network = LARGER, .handler = "cpu", .optimiser = momentum(), .shuffle = true, .seed = 3});
}

RANK_PART(narrow)
{
    loss_curve curve = {0};
    wave_trainer made = make_narrow();
    sgm_operator *ranks = sgm_mpi_operator(.bfloat16 = true, .bucket = 1024, .timeout = 20);
    CHECK_OK(ranks);
    CHECK_OK(sgm_trainer_set_operator(made.trainer, ranks));
    CHECK_OK(sgm_trainer_on_progress(made.trainer, follow_losses, &curve));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 40));
    if (sgm_operator_rank(ranks) == 1)
        save_losses(&curve, rank_path("losses"));
    free_wave_trainer(made);
}

/* bfloat16 has 8 bits: a step's gradient is wrong by some thousandths, what is lost comes later. */
TEST(gradients_of_bfloat16_learn_the_same)
{
    need_ranks();
    open_folder();
    run_ranks(2, "narrow");
    loss_curve curve = {0};
    wave_trainer one = make_narrow();
    CHECK_OK(sgm_trainer_on_progress(one.trainer, follow_losses, &curve));
    CHECK_OK(sgm_trainer_run(one.trainer, .epochs = 40));
    FILE *file = fopen(rank_path("losses"), "r");
    double loss, largest = 0;
    CHECK(file != NULL);
    for (size_t i = 0; i < curve.count; i++) {
        CHECK_INT(fscanf(file, "%lf", &loss), 1);
        if (i < 40) /* small differences grow with time */
            largest = fmax(largest, fabs(loss - curve.losses[i]));
    }
    fclose(file);
    double first = 0, last = 0;
    for (size_t i = 0; i < 4; i++) {
        first += curve.losses[i];
        last += curve.losses[curve.count - 1 - i];
    }
    CHECK(last < 0.95 * first);
    CHECK(largest > 1e-6); /* it is in use */
    CHECK(largest < 0.02);
    free_wave_trainer(one);
    close_folder();
}

/* Without a launcher: this process. */
TEST(alone_it_is_one_rank_with_workers)
{
    for (int32_t i = 0; i < 6; i++) {
        loss_curve one_curve = {0}, curve = {0};
        wave_trainer one = make(&ways[1]), made = make(&ways[1]);
        sgm_operator *ranks = sgm_mpi_operator(.workers = i / 2 + 1, .bucket = 1024);
        CHECK_OK(ranks);
        CHECK_INT(sgm_operator_rank(ranks), 0);
        CHECK_INT(sgm_operator_ranks(ranks), 1);
        CHECK_OK(sgm_trainer_set_operator(made.trainer, ranks));
        sgm__trainer_ranks(made.trainer)->options.messages = i % 2 == 0;
        CHECK_OK(sgm_trainer_on_progress(one.trainer, follow_losses, &one_curve));
        CHECK_OK(sgm_trainer_on_progress(made.trainer, follow_losses, &curve));
        CHECK_OK(sgm_trainer_run(one.trainer, .epochs = 5));
        CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 5));
        CHECK_INT(curve.count, one_curve.count);
        for (size_t k = 0; k < curve.count; k++)
            CHECK_NEAR(curve.losses[k], one_curve.losses[k], 1e-10);
        free_wave_trainer(one);
        free_wave_trainer(made);
    }
}

TEST(options_of_ranks_are_for_ranks)
{
    CHECK_ERROR(sgm_gradient_operator(.timeout = 5),
                "timeout, check_every, bucket, bfloat16 and sharded are for ranks");
    CHECK_ERROR(sgm_gradient_operator(.sharded = true), "sharded are for ranks");
    CHECK_ERROR(sgm_mpi_operator(.sharded = true, .every = 4), "with every, each has parameters of its own");
    CHECK_ERROR(sgm_mpi_operator(.timeout = 0.5), "timeout");
    CHECK_ERROR(sgm_mpi_operator(.bucket = 100), "bucket");
}
