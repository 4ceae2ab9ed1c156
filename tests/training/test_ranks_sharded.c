/* Updates divided among the ranks: the same training as one trainer's, with a part of the optimiser state
 * on each, and checkpoints that tell nothing of it. */
#include "ranks_test.h"
#include "waves.h"

#include "parallel/collective/ranks.h"
#include "runs/parts/parts.h"
#include "trainer/trainer_lock.h"

#ifdef SIGMA_ADDRESS_SANITIZER
#define TIMEOUT 12 /* seconds */
#else
#define TIMEOUT 6
#endif
#define MAXIMUM 4096 /* elements of a state */

static int64_t number_of(const char *variable)
{
    const char *text = getenv(variable);
    int64_t number;
    return text != NULL && sgm__parse_int64(text, &number) ? number : 0;
}

static void set_number(const char *variable, int64_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)number);
    setenv(variable, text, 1);
}

/* --- the same training --- */

static sgm_optimiser *momentum(void)
{
    return sgm_momentum(.learning_rate = 0.1, .momentum = 0.9);
}

static sgm_optimiser *adam(void)
{
    return sgm_adam(.learning_rate = 0.01, .weight_decay = 0.01);
}

static sgm_optimiser *clipped(void)
{
    return sgm_adam(.learning_rate = 0.01, .clip_norm = 0.2);
}

static sgm_optimiser *averaged(void)
{
    return sgm_momentum(.learning_rate = 0.1, .average = 0.9);
}

static sgm_optimiser *everything(void)
{
    return sgm_adam(.learning_rate = 0.01, .clip_norm = 0.2, .average = 0.9, .accumulate = 3,
                    .weight_decay = 0.01, .schedule = {.kind = SGM_COSINE, .period = 10, .warm_up = 1});
}

static sgm_optimiser *accumulated(void)
{
    return sgm_adafactor(.learning_rate = 0.01, .accumulate = 2);
}

#define SMALL "input(6) + dense(8, tanh) + dense(5, relu) + dense(3) + softmax_cross_entropy"
#define LARGER "input(6) + dense(64, tanh) + dense(32, relu) + dense(3) + softmax_cross_entropy"
#define TINY "input(6) + dense(3) + softmax_cross_entropy" /* two parameters, also for four ranks */

typedef struct way {
    sgm_optimiser *(*optimiser)(void);
    const char *network, *frozen, *hooks[2];
    int64_t batch; /* of 40 examples */
    int32_t workers;
    int64_t bucket;
} way;

static const way ways[] = {
    {momentum, SMALL, NULL, {NULL}, 10, 1, 0},
    {adam, LARGER, NULL, {NULL}, 10, 2, 1024},
    {clipped, SMALL, NULL, {NULL}, 10, 1, 0},
    {averaged, SMALL, NULL, {NULL}, 13, 1, 0},
    {everything, LARGER, NULL, {NULL}, 7, 1, 1024},
    {accumulated, SMALL, NULL, {NULL}, 10, 1, 0},
    {adam, SMALL, "2-dense.*", {NULL}, 10, 1, 0},
    {adam, TINY, NULL, {NULL}, 10, 1, 0},
    {adam, SMALL, "2-dense.*", {"at iteration 5 set optimiser.frozen = \"1-dense.*\""}, 10, 1, 0},
    {adam,
     SMALL,
     "2-dense.*",
     {"at iteration 5 unfreeze \"2-dense.weights\" and freeze \"1-dense.*\"",
      "at iteration 9 unfreeze \"*.*\" and freeze \"3-dense.biases\""},
     10,
     1,
     0},
    {momentum,
     SMALL,
     NULL,
     {"at iteration 5 set optimiser.average = 0.8", "at iteration 6 set optimiser.clip_norm = 0.05"},
     10,
     1,
     0},
};
#define WAYS (sizeof ways / sizeof *ways)

static wave_trainer make(const way *w)
{
    wave_trainer made = make_wave_trainer((wave_options){.network = w->network,
                                                         .handler = "cpu",
                                                         .precision = SGM_FLOAT64,
                                                         .optimiser = w->optimiser(),
                                                         .shuffle = true,
                                                         .seed = 3,
                                                         .batch = w->batch});
    if (w->frozen != NULL)
        CHECK_OK(sgm_trainer_freeze(made.trainer, w->frozen));
    for (int i = 0; i < 2 && w->hooks[i] != NULL; i++)
        CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_hook_parse(w->hooks[i])));
    return made;
}

/* The optimiser state that this rank has: a line for each, with its bytes. */
static void write_slots(const sgm_trainer *trainer, size_t number, int32_t rank)
{
    char file[64];
    const char *name;
    snprintf(file, sizeof file, "%zu.slots.%d", number, rank);
    FILE *lines = fopen(rank_path(file), "w");
    CHECK(lines != NULL);
    for (size_t i = 0; (name = sgm_session_state_at(trainer->learner.session, i)) != NULL; i++) {
        sgm_type type;
        if (strncmp(name, SGM__SLOT_PREFIX, strlen(SGM__SLOT_PREFIX)) != 0)
            continue;
        CHECK_OK(sgm_session_state_type(trainer->learner.session, name, &type));
        fprintf(lines, "%s %zu\n", name,
                (size_t)sgm_shape_elements(&type.shape) * sgm_dtype_size(type.dtype));
    }
    fclose(lines);
}

RANK_PART(train)
{
    for (size_t i = 0; i < WAYS; i++) {
        wave_trainer made = make(&ways[i]);
        sgm_operator *ranks = sgm_mpi_operator(.workers = ways[i].workers, .bucket = ways[i].bucket,
                                               .timeout = TIMEOUT, .check_every = 7, .sharded = true);
        CHECK_OK(ranks);
        CHECK_OK(sgm_trainer_set_operator(made.trainer, ranks));
        sgm__trainer_ranks(made.trainer)->options.messages = number_of("TEST_MESSAGES") != 0;
        CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 3));
        CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 6)); /* goes on with what each has */
        int32_t rank = sgm_operator_rank(ranks);
        write_slots(made.trainer, i, rank);
        if (rank == 0)
            CHECK_OK(sgm_trainer_save(made.trainer, rank_file(i)));
        else
            CHECK_ERROR(sgm_trainer_save(made.trainer, rank_path("other.safetensors")),
                        "rank 0 saves all of it");
        free_wave_trainer(made);
    }
}

static size_t bytes_of_slots(const sgm_trainer *trainer, const char *beside, size_t *largest, size_t *count)
{
    const char *name;
    size_t all = 0;
    for (size_t i = 0; (name = sgm_session_state_at(trainer->learner.session, i)) != NULL; i++) {
        sgm_type type;
        CHECK_OK(sgm_session_state_type(trainer->learner.session, name, &type));
        size_t bytes = (size_t)sgm_shape_elements(&type.shape) * sgm_dtype_size(type.dtype);
        if (strncmp(name, SGM__SLOT_PREFIX, strlen(SGM__SLOT_PREFIX)) != 0 || strstr(name, beside) != NULL)
            continue;
        *largest = bytes > *largest ? bytes : *largest;
        all += bytes;
        ++*count;
    }
    return all;
}

/* Each slot is on one rank, and no rank has more than its share and a parameter's, of which there are at most
 * two slots; twice that where others come to be trained. Sums of gradients are on all. */
static void check_slots(const sgm_trainer *trainer, size_t number, int ranks)
{
    size_t largest = 0, count = 0, found = 0, sum = 0;
    size_t maximum = ways[number].frozen != NULL && ways[number].hooks[0] != NULL ? 4 : 2;
    size_t all = bytes_of_slots(trainer, "accumulated", &largest, &count);
    for (int rank = 0; rank < ranks; rank++) {
        char file[64], name[256];
        size_t bytes, own = 0;
        snprintf(file, sizeof file, "%zu.slots.%d", number, rank);
        FILE *lines = fopen(rank_path(file), "r");
        CHECK(lines != NULL);
        while (fscanf(lines, "%255s %zu", name, &bytes) == 2) {
            CHECK(sgm_session_has(trainer->learner.session, name));
            if (strstr(name, "accumulated") != NULL)
                continue;
            own += bytes;
            found++;
        }
        fclose(lines);
        CHECK(own <= all / (size_t)ranks + maximum * largest);
        CHECK(ranks == 1 || own < all);
        sum += own;
    }
    CHECK_INT(found, count);
    CHECK_INT(sum, all);
}

/* `messages`: as between machines, else they see each other's memory. */
static void check_equality(int ranks, bool messages)
{
    need_ranks();
    open_folder();
    set_number("TEST_MESSAGES", messages);
    run_ranks(ranks, "train");
    for (size_t i = 0; i < WAYS; i++) {
        wave_trainer one = make(&ways[i]);
        CHECK_OK(sgm_trainer_run(one.trainer, .epochs = 6));
        check_wave_states(one.trainer, rank_file(i));
        check_slots(one.trainer, i, ranks);
        free_wave_trainer(one);
    }
    close_folder();
}

TEST(one_sharded_rank_does_what_one_trainer_does)
{
    check_equality(1, false);
}

TEST(two_sharded_ranks_do_what_one_trainer_does)
{
    check_equality(2, false);
    check_equality(2, true);
}

TEST(four_sharded_ranks_do_what_one_trainer_does)
{
    check_equality(4, false);
    check_equality(4, true);
}

/* --- going on --- */

/* What a thread of rank 0 does beside the run, as commands would. */
enum { NOTHING, SAVE, RESTORE, RESET, LOOK };

/* One after the other, as rank 0 knows none; and then all in a checkpoint, between the same two iterations.
 */
static void look_beside(sgm_trainer *trainer, const char *path)
{
    static const char prefix[] = "optimiser.slots.";
    sgm_matches slots = {0};
    CHECK_OK(sgm_trainer_status(trainer));
    sgm__trainer_lock(trainer);
    CHECK_OK(sgm_registry_resolve(trainer->registry, "optimiser.slots.*.*.*", &slots));
    CHECK_OK(sgm_trainer_save(trainer, path));
    sgm__trainer_unlock(trainer);
    sgm_bundle *bundle = sgm_bundle_load(path);
    CHECK_OK(bundle);
    CHECK_INT(slots.count, 6 * 2);
    for (size_t i = 0; i < slots.count; i++) {
        double seen[MAXIMUM], saved[MAXIMUM];
        char state[128];
        const sgm_tensor *value = slots.items[i].content.as.tensor;
        snprintf(state, sizeof state, SGM__SLOT_PREFIX "%s", slots.items[i].identifier + strlen(prefix));
        size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(value));
        CHECK_OK(sgm_bundle_get(bundle, state));
        CHECK_OK(sgm_tensor_read(value, seen, count));
        CHECK_OK(sgm_tensor_read(sgm_bundle_get(bundle, state), saved, count));
        CHECK(memcmp(seen, saved, count * sizeof *seen) == 0);
    }
    sgm_bundle_free(bundle);
    sgm_matches_free(&slots);
}

static void *act_beside(void *argument)
{
    char path[256];
    snprintf(path, sizeof path, "%s/run/beside.safetensors", getenv("SIGMA_TEST_FOLDER"));
    int64_t act = number_of("TEST_BESIDE");
    if (act == RESET)
        CHECK_OK(sgm_trainer_reset(argument));
    else if (act == LOOK)
        look_beside(argument, path);
    else
        CHECK_OK(sgm_trainer_save(argument, path));
    if (act == RESTORE)
        CHECK_OK(sgm_trainer_restore(argument, "beside"));
    return NULL;
}

/* Amid the second epoch. */
static bool begin_beside(void *user, const sgm_training_progress *progress)
{
    static pthread_t thread;
    static bool begun;
    sgm_trainer *trainer = user;
    if (progress->kind == SGM_PROGRESS_ITERATION && progress->iteration == 5 && !begun) {
        begun = true;
        CHECK_INT(pthread_create(&thread, NULL, act_beside, trainer), 0);
        while (!sgm__turn_lock_is_wanted(&trainer->control.turn) &&
               !atomic_load(&trainer->control.commands.has_any))
            usleep(100);
    }
    if (progress->kind == SGM_PROGRESS_EPOCH && progress->epoch == 6)
        CHECK_INT(pthread_join(thread, NULL), 0);
    return true;
}

/* A hook in the background, of which rank 0's decides. */
static sgm_status save_behind(void *state, sgm_hook_call *call)
{
    (void)state;
    return sgm_hook_request_save(call, "behind");
}

static const sgm_hook_type behind_type = {
    .api = SGM_HOOK_API, .name = "behind", .doc = "saves", .invoke = save_behind};

static void train_on(bool sharded, bool narrow, int64_t epochs)
{
    char path[256];
    bool resume = number_of("TEST_RESUME") != 0;
    wave_trainer made = make_wave_trainer((wave_options){.handler = "cpu",
                                                         .precision = narrow ? SGM_FLOAT32 : SGM_FLOAT64,
                                                         .optimiser = adam(),
                                                         .shuffle = true,
                                                         .seed = 3});
    sgm_operator *ranks = sgm_mpi_operator(.timeout = TIMEOUT, .sharded = sharded, .bfloat16 = narrow);
    CHECK_OK(ranks);
    CHECK_OK(sgm_trainer_set_operator(made.trainer, ranks));
    sgm__trainer_ranks(made.trainer)->options.messages = number_of("TEST_MESSAGES") != 0;
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_hook_parse("at iteration 10 save(\"hooked\")")));
    if (number_of("TEST_BESIDE") != NOTHING && sgm_operator_rank(ranks) == 0)
        CHECK_OK(sgm_trainer_on_progress(made.trainer, begin_beside, made.trainer));
    if (number_of("TEST_BESIDE") != NOTHING)
        CHECK_OK(sgm_trainer_add_hook(
            made.trainer,
            sgm_hook_create(&behind_type, NULL, .when = sgm_every(9, SGM_ITERATION), .background = true)));
    snprintf(path, sizeof path, "%s", rank_path("run"));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = epochs, .folder = path, .resume = resume));
    free_wave_trainer(made);
}

RANK_PART(whole)
{
    train_on(false, false, number_of("TEST_EPOCHS"));
}

RANK_PART(sharded)
{
    train_on(true, false, number_of("TEST_EPOCHS"));
}

RANK_PART(narrow)
{
    train_on(true, true, number_of("TEST_EPOCHS"));
}

static sgm_bundle *train_to(const char *part, int ranks, int64_t epochs, bool resume, int beside)
{
    set_number("TEST_EPOCHS", epochs);
    set_number("TEST_RESUME", resume);
    set_number("TEST_BESIDE", beside);
    run_ranks(ranks, part);
    sgm_bundle *bundle = sgm_bundle_load(rank_path("run/checkpoint.safetensors"));
    CHECK_OK(bundle);
    return bundle;
}

/* Parameters, and the two slots that adam has of each; frees the second one. */
static void check_near(const sgm_bundle *a, sgm_bundle *b, double tolerance)
{
    CHECK_INT(sgm_bundle_count(a), 6 * 3);
    check_near_bundles(a, b, tolerance);
    sgm_bundle_free(b);
}

TEST(a_resume_takes_other_numbers_of_ranks_divided_or_not)
{
    static const struct {
        const char *before, *after;
        int ranks_before, ranks_after;
        double tolerance;
    } turns[] = {{"sharded", "sharded", 2, 2, 0},   {"sharded", "sharded", 2, 3, 1e-10},
                 {"sharded", "whole", 3, 2, 1e-10}, {"whole", "sharded", 2, 2, 1e-10},
                 {"sharded", "whole", 2, 1, 1e-10}, {"whole", "sharded", 1, 3, 1e-10}};
    need_ranks();
    open_folder();
    set_number("TEST_MESSAGES", false);
    sgm_bundle *whole = train_to("sharded", 2, 6, false, NOTHING);
    close_folder();
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        open_folder();
        sgm_bundle_free(train_to(turns[i].before, turns[i].ranks_before, 3, false, NOTHING));
        check_near(whole, train_to(turns[i].after, turns[i].ranks_after, 6, true, NOTHING),
                   turns[i].tolerance);
        close_folder();
    }
    sgm_bundle_free(whole);
}

/* A checkpoint amid an epoch has the memory of all ranks; so has what is restored, and a reset begins anew.
 */
TEST(commands_reach_the_memory_of_all_ranks)
{
    static const char *const files[] = {"run/hooked.safetensors", "run/beside.safetensors",
                                        "run/behind.safetensors"};
    need_ranks();
    open_folder();
    set_number("TEST_MESSAGES", true);
    sgm_bundle *whole = train_to("sharded", 3, 6, false, SAVE);
    for (int i = 0; i < 3; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s", rank_path(files[i]));
        CHECK_INT(rename(path, rank_path("run/checkpoint.safetensors")), 0);
        check_near(whole, train_to("sharded", 3, 6, true, NOTHING), 0);
    }
    close_folder();
    for (int act = RESTORE; act <= LOOK; act++) {
        open_folder();
        check_near(whole, train_to("sharded", 3, 6, false, act), 0);
        close_folder();
    }
    sgm_bundle_free(whole);
}

TEST(half_the_bytes_of_gradients_go_to_their_owners)
{
    need_ranks();
    open_folder();
    sgm_bundle *whole = train_to("narrow", 2, 6, false, NOTHING);
    close_folder();
    open_folder();
    sgm_bundle_free(train_to("narrow", 2, 3, false, NOTHING));
    check_near(whole, train_to("narrow", 2, 6, true, NOTHING), 0);
    close_folder();
    open_folder();
    check_near(whole, train_to("whole", 2, 6, false, NOTHING), 0.05); /* 24 steps of 0.01 */
    close_folder();
    sgm_bundle_free(whole);
}

/* --- a rank is killed --- */

RANK_PART(endless)
{
    if (getenv("OMPI_COMM_WORLD_RANK") != NULL && strcmp(getenv("OMPI_COMM_WORLD_RANK"), "1") == 0) {
        FILE *file = fopen(rank_path("rank.1"), "w");
        CHECK(file != NULL);
        fprintf(file, "%ld\n", (long)getpid());
        fclose(file);
    }
    train_on(true, false, 1000000);
}

static int64_t epoch_of_checkpoint(void)
{
    sgm__saved_state state = {0};
    sgm_bundle *bundle = sgm_bundle_load(rank_path("run/checkpoint.safetensors"));
    CHECK_OK(bundle);
    CHECK_INT(sgm_bundle_count(bundle), 6 * 3);
    CHECK_OK(sgm__state_open(&state, bundle, "the checkpoint"));
    int64_t epoch = state.position.epoch;
    sgm__state_close(&state);
    sgm_bundle_free(bundle);
    return epoch;
}

TEST(what_a_killed_rank_had_is_in_the_checkpoint)
{
    long process = 0;
    need_ranks();
    open_folder();
    set_number("TEST_RESUME", 0);
    set_number("TEST_BESIDE", NOTHING);
    pid_t launcher = start_ranks(3, "endless");
    for (double end = sgm__now() + 20;
         !sgm__file_exists(rank_path("run/checkpoint.safetensors")) && sgm__now() < end;)
        usleep(5000);
    usleep(50000);
    FILE *file = fopen(rank_path("rank.1"), "r");
    CHECK(file != NULL);
    CHECK_INT(fscanf(file, "%ld", &process), 1);
    fclose(file);
    kill((pid_t)process, SIGKILL);
    int code = wait_ranks(launcher, 20);
    CHECK(code != 0 && code != -1);
    int64_t epoch = epoch_of_checkpoint();
    CHECK(epoch > 0);
    sgm_bundle_free(train_to("sharded", 2, epoch + 2, true, NOTHING));
    CHECK_INT(epoch_of_checkpoint(), epoch + 2);
    close_folder();
}

/* --- what cannot be --- */

RANK_PART(together)
{
    wave_trainer made = make_wave_trainer((wave_options){.optimiser = sgm_lbfgs(.learning_rate = 1)});
    CHECK_OK(sgm_trainer_set_operator(made.trainer, sgm_mpi_operator(.sharded = true, .timeout = TIMEOUT)));
    if (sgm_trainer_run(made.trainer, .epochs = 1) != SGM_OK) {
        fprintf(stderr, "failed: %s\n", sgm_last_error());
        exit(3);
    }
}

TEST(steps_of_all_parameters_together_are_not_divided)
{
    need_ranks();
    open_folder();
    int code = wait_ranks(start_ranks(2, "together"), 20);
    CHECK(code != 0 && code != -1);
    if (strstr(ranks_said(), "the optimiser lbfgs takes steps of all parameters together") == NULL)
        TEST_FAIL("the method is not named: %s", ranks_said());
    close_folder();
}

RANK_PART(prepared)
{
    wave_trainer made = make_wave_trainer((wave_options){.handler = "cpu"});
    CHECK_OK(sgm_trainer_prepare(made.trainer));
    CHECK_ERROR(sgm_trainer_set_operator(made.trainer, sgm_mpi_operator(.sharded = true)),
                "give it an operator that is sharded before");
    free_wave_trainer(made);
}

/* Rank 0 has all of it at the end of a run; the other ranks their own. */
static void check_far(sgm_trainer *trainer, const char *name, bool first)
{
    double values[MAXIMUM] = {0}, sum = 0;
    sgm_content content = {0};
    if (!first) {
        CHECK_ERROR(sgm_registry_resolve_one(trainer->registry, name, &content), "is in rank 0's part");
        return;
    }
    CHECK_OK(sgm_registry_resolve_one(trainer->registry, name, &content));
    size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(content.as.tensor));
    CHECK_OK(sgm_tensor_read(content.as.tensor, values, count));
    for (size_t i = 0; i < count; i++)
        sum += values[i] * values[i];
    CHECK(sum > 0);
    CHECK_ERROR(sgm_registry_resolve_set(trainer->registry, name, content, NULL, NULL),
                "is in rank 1's part");
    sgm_content_clear(&content);
}

RANK_PART(looked_at)
{
    wave_trainer made = make_wave_trainer((wave_options){.handler = "cpu"});
    sgm_operator *ranks = sgm_mpi_operator(.sharded = true, .timeout = TIMEOUT);
    CHECK_OK(ranks);
    CHECK_OK(sgm_trainer_set_operator(made.trainer, ranks));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
    sgm_registry *registry = made.trainer->registry;
    bool last = sgm_operator_rank(ranks) == 1;
    const char *own = last ? "3-dense.weights" : "1-dense.weights";
    const char *other = last ? "1-dense.weights" : "3-dense.weights";
    char name[128];
    sgm_content content = {0};
    snprintf(name, sizeof name, "optimiser.slots.momentum.%s", own);
    CHECK_OK(sgm_registry_resolve_one(registry, name, &content));
    CHECK_ERROR(sgm_registry_resolve_set(registry, name, content, NULL, NULL),
                "cannot be set; a checkpoint can be restored");
    sgm_content_clear(&content);
    snprintf(name, sizeof name, "optimiser.slots.momentum.%s", other);
    check_far(made.trainer, name, !last);
    snprintf(name, sizeof name, "optimiser.gradients.%s", other);
    CHECK_ERROR(sgm_registry_resolve_one(registry, name, &content), "which updates it");
    free_wave_trainer(made);
}

TEST(what_a_rank_does_not_have_is_told)
{
    need_ranks();
    open_folder();
    run_ranks(2, "looked_at");
    run_ranks(2, "prepared");
    close_folder();
}
