/* Ranks that end, hang or come apart: the run ends in time and says who it was; a resume goes on exactly. */
#include "ranks_test.h"
#include "waves.h"

#include "parallel/collective/ranks.h"

#include <sys/socket.h>
#include <sys/un.h>

#ifdef SIGMA_ADDRESS_SANITIZER
#define TIMEOUT 8 /* seconds */
#else
#define TIMEOUT 3
#endif

static int64_t number_of(const char *variable, int64_t default_value)
{
    const char *text = getenv(variable);
    int64_t number;
    return text != NULL && sgm__parse_int64(text, &number) ? number : default_value;
}

static void set_number(const char *variable, int64_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)number);
    setenv(variable, text, 1);
}

/* The process of each rank, as others want to end it; told before it joins the others. */
static void leave_number(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    char name[32], number[32];
    rank = rank != NULL ? rank : getenv("PMI_RANK");
    CHECK(rank != NULL);
    snprintf(name, sizeof name, "rank.%.8s", rank);
    snprintf(number, sizeof number, "%ld\n", (long)getpid());
    CHECK_OK(sgm__file_write_atomic(rank_path(name), number, strlen(number)));
}

static pid_t process_of(int rank)
{
    char name[32];
    long number = 0;
    snprintf(name, sizeof name, "rank.%d", rank);
    FILE *file = fopen(rank_path(name), "r");
    CHECK(file != NULL);
    CHECK_INT(fscanf(file, "%ld", &number), 1);
    fclose(file);
    return (pid_t)number;
}

static wave_trainer make(void)
{
    return make_wave_trainer(
        (wave_options){.handler = "cpu", .precision = SGM_FLOAT64, .shuffle = true, .seed = 3});
}

static void train(wave_trainer made, int64_t check_every, bool resume, sgm_training_function function)
{
    leave_number();
    sgm_operator *ranks = sgm_mpi_operator(.timeout = TIMEOUT, .check_every = check_every);
    CHECK_OK(ranks);
    CHECK_OK(sgm_trainer_set_operator(made.trainer, ranks));
    if (function != NULL)
        CHECK_OK(sgm_trainer_on_progress(made.trainer, function, made.trainer));
    if (sgm_trainer_run(made.trainer, .epochs = number_of("TEST_EPOCHS", 3), .folder = rank_path("run"),
                        .resume = resume) != SGM_OK) {
        fprintf(stderr, "failed: %s\n", sgm_last_error());
        exit(3);
    }
    free_wave_trainer(made);
}

RANK_PART(train)
{
    train(make(), 0, number_of("TEST_RESUME", 0) != 0, NULL);
}

/* --- ending and hanging --- */

static void wait_for_file(const char *path)
{
    for (double end = sgm__now() + 20; !sgm__file_exists(path) && sgm__now() < end; usleep(5000))
        ;
    CHECK(sgm__file_exists(path));
}

static void check_checkpoint(void)
{
    sgm_bundle *bundle = sgm_bundle_load(rank_path("run/checkpoint.safetensors"));
    CHECK_OK(bundle);
    CHECK(sgm_bundle_has(bundle, "1-dense.weights"));
    sgm_bundle_free(bundle);
}

TEST(a_rank_that_hangs_is_named_in_time)
{
    char name[64], time[32];
    need_ranks();
    open_folder();
    set_number("TEST_EPOCHS", 1000000);
    pid_t launcher = start_ranks(3, "train");
    wait_for_file(rank_path("run/checkpoint.safetensors"));
    usleep(50000);
    kill(process_of(1), SIGSTOP);
    double began = sgm__now();
    int code = wait_ranks(launcher, 20);
    double seconds = sgm__now() - began;
    snprintf(time, sizeof time, "for %d seconds", TIMEOUT);
    snprintf(name, sizeof name, "process %ld)", (long)process_of(1));
    CHECK(code != 0 && code != -1);
    CHECK(seconds > TIMEOUT - 0.5);
    CHECK(seconds < TIMEOUT + 5);
    const char *said = ranks_said();
    if (strstr(said, "there is no answer from rank 1 (") == NULL || strstr(said, name) == NULL ||
        strstr(said, time) == NULL)
        TEST_FAIL("rank 1 (%s is not named: %s", name, said);
    check_checkpoint();
    close_folder();
}

/* --- a rank that is silent, and comes back --- */

/* What rank 0 answers on the socket of its run. */
static const char *asked(const char *line)
{
    static char answer[16384];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = 0;
    snprintf(address.sun_path, sizeof address.sun_path, "%.100s", rank_path("run/control.sock"));
    int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0 &&
        send(descriptor, line, strlen(line), MSG_NOSIGNAL) == (ssize_t)strlen(line))
        while (length + 1 < sizeof answer && recv(descriptor, answer + length, 1, 0) == 1 &&
               answer[length] != '\n')
            length++;
    answer[length] = '\0';
    close(descriptor);
    return answer;
}

static const char *await_answer(const char *line, const char *part)
{
    for (double end = sgm__now() + 20; sgm__now() < end; usleep(20000))
        if (strstr(asked(line), part) != NULL)
            return asked(line);
    TEST_FAIL("%s is not answered with '%s' but %s", line, part, asked(line));
    return "";
}

RANK_PART(train_patiently)
{
    wave_trainer made = make();
    leave_number();
    CHECK_OK(sgm_trainer_set_operator(made.trainer, sgm_mpi_operator(.timeout = 12)));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1000000, .folder = rank_path("run")));
    free_wave_trainer(made);
}

TEST(a_silent_rank_is_told_of_while_there_is_hope)
{
    char silent[96];
    need_ranks();
    open_folder();
    pid_t launcher = start_ranks(3, "train_patiently");
    wait_for_file(rank_path("run/checkpoint.safetensors"));
    snprintf(silent, sizeof silent, ", process %ld) has not answered since ", (long)process_of(2));
    await_answer("{\"command\":\"status\"}\n", "\"loss\"");
    kill(process_of(2), SIGSTOP);
    const char *answer = await_answer("{\"command\":\"status\"}\n", "\"silent\":\"rank 2 (");
    if (strstr(answer, silent) == NULL || strstr(answer, "\"busy\":\"") == NULL)
        TEST_FAIL("no '%s' in: %s", silent, answer);
    answer = asked("{\"command\":\"get\",\"identifier\":\"operator.ranks.*.silent\"}\n");
    const char *first =
        strstr(answer, "\"identifier\":\"operator.ranks.0.silent\",\"kind\":\"number\",\"value\":0.0,");
    const char *last =
        strstr(answer, "\"identifier\":\"operator.ranks.2.silent\",\"kind\":\"number\",\"value\":");
    if (first == NULL || last == NULL || strtod(strstr(last, "value\":") + 7, NULL) < 1)
        TEST_FAIL("%s", answer);
    CHECK(strstr(asked("{\"command\":\"set\",\"identifier\":\"optimiser.learning_rate\",\"value\":0.5,"
                       "\"within\":0.2}\n"),
                 silent) != NULL);
    kill(process_of(2), SIGCONT);
    answer = await_answer("{\"command\":\"status\"}\n", "\"loss\"");
    CHECK(strstr(answer, "silent") == NULL);
    await_answer("{\"command\":\"stop\"}\n", "{\"ok\":true}");
    CHECK_INT(wait_ranks(launcher, 20), 0);
    char *log;
    size_t length;
    CHECK_OK(sgm__file_read(rank_path("run/log.txt"), 1 << 24, &log, &length));
    if (strstr(log, silent) == NULL || strstr(log, ", for which rank 0 waits with ") == NULL ||
        strstr(log, "all ranks answer again, after ") == NULL)
        TEST_FAIL("who was silent is not in the log: %s", log);
    CHECK(strstr(ranks_said(), "which rank 1 waits") == NULL); /* one is enough */
    sgm__free(log);
    close_folder();
}

/* --- coming apart --- */

static bool spoil(void *user, const sgm_training_progress *progress)
{
    sgm_trainer *trainer = user;
    const char *name = getenv("TEST_STATE");
    if (progress->kind == SGM_PROGRESS_ITERATION && progress->iteration == 5 &&
        sgm__trainer_ranks(trainer)->rank == 1) {
        sgm_tensor *value = sgm_session_get(trainer->learner.session, name);
        CHECK_OK(value);
        sgm_tensor_set(value, (const int64_t[]){3}, 0.125);
        CHECK_OK(sgm_session_set(trainer->learner.session, name, value));
        sgm_tensor_free(value);
    }
    return true;
}

/* Nothing but gradients that wait for more changes in its first iterations. */
RANK_PART(come_apart)
{
    train(
        make_wave_trainer((wave_options){.handler = "cpu",
                                         .precision = SGM_FLOAT64,
                                         .optimiser = sgm_momentum(.learning_rate = 0.1, .accumulate = 100)}),
        3, false, spoil);
}

TEST(ranks_that_differ_stop_and_name_the_state)
{
    static const char *const states[] = {"2-dense.biases", "optimiser.accumulated.2-dense.biases"};
    need_ranks();
    set_number("TEST_EPOCHS", 1000);
    for (int i = 0; i < 2; i++) {
        char wanted[96];
        open_folder();
        setenv("TEST_STATE", states[i], 1);
        int code = wait_ranks(start_ranks(2, "come_apart"), 20);
        CHECK(code != 0 && code != -1);
        const char *said = ranks_said();
        snprintf(wanted, sizeof wanted, "has other values of '%s'", states[i]);
        if (strstr(said, "rank 1 (") == NULL || strstr(said, wanted) == NULL ||
            strstr(said, "after iteration 6") == NULL)
            TEST_FAIL("no \"%s\" in: %s", wanted, said);
        close_folder();
    }
}

/* --- given other things --- */

static void run_or_say(sgm_trainer *trainer)
{
    if (sgm_trainer_run(trainer, .epochs = 2) == SGM_OK)
        return;
    fprintf(stderr, "failed: %s\n", sgm_last_error());
    exit(3);
}

static void train_with(sgm_operator *ranks, int64_t batch, uint64_t seed)
{
    CHECK_OK(ranks);
    wave_trainer made =
        make_wave_trainer((wave_options){.handler = "cpu", .shuffle = true, .seed = seed, .batch = batch});
    CHECK_OK(sgm_trainer_set_operator(made.trainer, ranks));
    run_or_say(made.trainer);
    free_wave_trainer(made);
}

RANK_PART(other_batches)
{
    sgm_operator *ranks = sgm_mpi_operator(.timeout = TIMEOUT);
    train_with(ranks, sgm_operator_rank(ranks) == 1 ? 7 : 10, 3);
}

/* As many minibatches, of which the first is larger. */
RANK_PART(other_minibatches)
{
    sgm_operator *ranks = sgm_mpi_operator(.timeout = TIMEOUT);
    train_with(ranks, sgm_operator_rank(ranks) == 1 ? 25 : 20, 3);
}

RANK_PART(other_seeds)
{
    sgm_operator *ranks = sgm_mpi_operator(.timeout = TIMEOUT);
    train_with(ranks, 10, 3 + (uint64_t)sgm_operator_rank(ranks));
}

RANK_PART(other_rates)
{
    sgm_operator *ranks = sgm_mpi_operator(.timeout = TIMEOUT);
    wave_trainer made = make();
    CHECK_OK(ranks);
    CHECK_OK(sgm_trainer_set_optimiser(
        made.trainer, sgm_adam(.learning_rate = sgm_operator_rank(ranks) == 1 ? 0.25 : 0.5)));
    CHECK_OK(sgm_trainer_set_operator(made.trainer, ranks));
    run_or_say(made.trainer);
}

RANK_PART(other_networks)
{
    sgm_operator *ranks = sgm_mpi_operator(.timeout = TIMEOUT);
    wave_trainer made = make();
    CHECK_OK(ranks);
    if (sgm_operator_rank(ranks) == 1)
        CHECK_OK(sgm_trainer_set_network(made.trainer, "input(6) + dense(3) + softmax_cross_entropy"));
    CHECK_OK(sgm_trainer_set_operator(made.trainer, ranks));
    run_or_say(made.trainer);
}

/* As many examples, of which the last one is another. */
RANK_PART(other_examples)
{
    static const char *const fields[] = {"inputs", "targets"};
    const sgm_shape shape = sgm_shape_of(WAVE_EXAMPLES, 3);
    wave_trainer made = make();
    sgm_operator *ranks = sgm_mpi_operator(.timeout = TIMEOUT);
    sgm_tensor *tensors[2] = {wave(WAVE_EXAMPLES, 6, 0.3, 1, SGM_FLOAT32),
                              sgm_tensor_create(SGM_FLOAT32, &shape)};
    CHECK_OK(ranks);
    if (sgm_operator_rank(ranks) == 1)
        sgm_tensor_set(tensors[0], (const int64_t[]){WAVE_EXAMPLES - 1, 5}, 0.5);
    sgm_dataset *dataset = sgm_dataset_create_from("waves", fields, tensors, 2);
    CHECK_OK(sgm_trainer_set_operator(made.trainer, ranks));
    CHECK_OK(sgm_trainer_set_data(made.trainer, sgm_minibatches(dataset, .size = 10)));
    run_or_say(made.trainer);
}

/* As many examples, of which one amid many is another: `field` of the training data, or of others. */
static void train_with_another(int field, bool validates)
{
    enum { EXAMPLES = 6000, ANOTHER = 2657 };
    static const char *const fields[] = {"inputs", "targets"};
    const sgm_shape shape = sgm_shape_of(EXAMPLES, 3), inputs = sgm_shape_of(EXAMPLES, 6);
    wave_trainer made = make();
    sgm_operator *ranks = sgm_mpi_operator(.timeout = TIMEOUT);
    sgm_tensor *tensors[2] = {sgm_tensor_create(SGM_FLOAT32, &inputs),
                              sgm_tensor_create(SGM_FLOAT32, &shape)};
    CHECK_OK(ranks);
    if (sgm_operator_rank(ranks) == 1)
        sgm_tensor_set(tensors[field], (const int64_t[]){ANOTHER, 2}, 0.5);
    sgm_dataset *dataset = sgm_dataset_create_from("waves", fields, tensors, 2);
    CHECK_OK(sgm_trainer_set_operator(made.trainer, ranks));
    if (validates)
        CHECK_OK(sgm_trainer_add_data(made.trainer, "validation", sgm_by_block(dataset)));
    else
        CHECK_OK(sgm_trainer_set_data(made.trainer, sgm_minibatches(dataset, .size = 1000)));
    run_or_say(made.trainer);
}

RANK_PART(another_input)
{
    train_with_another(0, false);
}

RANK_PART(another_label)
{
    train_with_another(1, false);
}

RANK_PART(another_label_of_validation)
{
    train_with_another(1, true);
}

RANK_PART(others_frozen)
{
    sgm_operator *ranks = sgm_mpi_operator(.timeout = TIMEOUT);
    wave_trainer made = make();
    CHECK_OK(ranks);
    CHECK_OK(sgm_trainer_freeze(made.trainer, sgm_operator_rank(ranks) == 1 ? "1-dense.*" : "2-dense.*"));
    CHECK_OK(sgm_trainer_set_operator(made.trainer, ranks));
    run_or_say(made.trainer);
}

RANK_PART(other_precisions)
{
    sgm_operator *ranks = sgm_mpi_operator(.timeout = TIMEOUT);
    CHECK_OK(ranks);
    wave_trainer made = make_wave_trainer((wave_options){
        .handler = "cpu", .precision = sgm_operator_rank(ranks) == 1 ? SGM_FLOAT32 : SGM_FLOAT64});
    CHECK_OK(sgm_trainer_set_operator(made.trainer, ranks));
    run_or_say(made.trainer);
}

static void check_refused(const char *part, const char *message)
{
    int code = wait_ranks(start_ranks(2, part), 20);
    CHECK(code != 0 && code != -1);
    if (strstr(ranks_said(), message) == NULL)
        TEST_FAIL("no '%s' in: %s", message, ranks_said());
}

TEST(ranks_that_were_given_other_things_do_not_begin)
{
    need_ranks();
    open_folder();
    check_refused("other_batches",
                  ") was given other things than rank 0: minibatches of an epoch is 6, not 4;");
    check_refused("other_minibatches",
                  ") was given other things than rank 0: examples of a minibatch is 25, not 20;");
    check_refused("others_frozen",
                  ") was given other things than rank 0: what is frozen is 1-dense.weights, ");
    check_refused("other_precisions",
                  ") was given other things than rank 0: precision is float32, not float64;");
    check_refused("other_seeds",
                  ") was given other things than rank 0: seed of the training data's order is 4, not 3;");
    check_refused("other_rates",
                  ") was given other things than rank 0: optimiser.learning_rate is 0.25, not 0.5;");
    check_refused("other_networks", ") was given other things than rank 0: its network is 'input(6) + ");
    check_refused("another_input", ") was given other things than rank 0: content of the training data is ");
    check_refused("another_label", ") was given other things than rank 0: content of the training data is ");
    check_refused("another_label_of_validation",
                  ") was given other things than rank 0: content of the validation data is ");
    check_refused("other_examples", ") was given other things than rank 0: content of the training data is ");
    close_folder();
}

/* --- going on --- */

static sgm_bundle *run_to(const char *part, int ranks, int64_t epochs, bool resume)
{
    set_number("TEST_EPOCHS", epochs);
    set_number("TEST_RESUME", resume);
    run_ranks(ranks, part);
    sgm_bundle *bundle = sgm_bundle_load(rank_path("run/checkpoint.safetensors"));
    CHECK_OK(bundle);
    return bundle;
}

static sgm_bundle *train_to(int ranks, int64_t epochs, bool resume)
{
    return run_to("train", ranks, epochs, resume);
}

TEST(a_resume_goes_on_exactly_and_on_other_numbers_of_ranks)
{
    static const int others[] = {2, 3, 1};
    need_ranks();
    open_folder();
    sgm_bundle *whole = train_to(2, 6, false);
    close_folder();
    for (int i = 0; i < 3; i++) {
        open_folder();
        sgm_bundle_free(train_to(2, 3, false));
        sgm_bundle *resumed = train_to(others[i], 6, true);
        check_near_bundles(whole, resumed, i == 0 ? 0 : 1e-10);
        sgm_bundle_free(resumed);
        close_folder();
    }
    sgm_bundle_free(whole);
}

/* --- gradients of bfloat16 --- */

static void *save_from_beside(void *argument)
{
    char path[256];
    snprintf(path, sizeof path, "%s/run/beside.safetensors", getenv("SIGMA_TEST_FOLDER"));
    CHECK_OK(sgm_trainer_save(argument, path));
    return NULL;
}

/* Amid the second epoch another thread of rank 0 asks for a checkpoint, as a command would. */
static bool save_beside(void *user, const sgm_training_progress *progress)
{
    static pthread_t thread;
    sgm_trainer *trainer = user;
    if (progress->kind == SGM_PROGRESS_ITERATION && progress->iteration == 5) {
        CHECK_INT(pthread_create(&thread, NULL, save_from_beside, trainer), 0);
        while (!sgm__turn_lock_is_wanted(&trainer->control.turn))
            usleep(100);
    }
    if (progress->kind == SGM_PROGRESS_EPOCH && progress->epoch == 3)
        CHECK_INT(pthread_join(thread, NULL), 0);
    return true;
}

RANK_PART(narrow)
{
    bool resume = number_of("TEST_RESUME", 0) != 0;
    wave_trainer made = make_wave_trainer((wave_options){.handler = "cpu", .shuffle = true, .seed = 3});
    sgm_operator *ranks = sgm_mpi_operator(.timeout = TIMEOUT, .bfloat16 = true);
    CHECK_OK(ranks);
    CHECK_OK(sgm_trainer_set_operator(made.trainer, ranks));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_hook_parse("at iteration 10 save(\"hooked\")")));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_hook_parse("at iteration 11 last_checkpoints(1)")));
    if (!resume && sgm_operator_rank(ranks) == 0)
        CHECK_OK(sgm_trainer_on_progress(made.trainer, save_beside, made.trainer));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = number_of("TEST_EPOCHS", 3), .folder = rank_path("run"),
                             .resume = resume));
    free_wave_trainer(made);
}

/* Wherever the checkpoint was made: at the end of an epoch, or amid one by a hook or by who asks. */
TEST(a_resume_is_exact_when_gradients_travel_as_bfloat16)
{
    static const char *const others[] = {"last-epoch2-iteration11", "hooked", "beside"};
    need_ranks();
    open_folder();
    sgm_bundle_free(run_to("narrow", 2, 3, false));
    sgm_bundle *resumed = run_to("narrow", 2, 6, true);
    close_folder();
    open_folder();
    sgm_bundle *whole = run_to("narrow", 2, 6, false);
    check_near_bundles(whole, resumed, 0);
    sgm_bundle_free(resumed);
    for (int i = 0; i < 3; i++) {
        char path[256], name[64];
        snprintf(name, sizeof name, "run/%s.safetensors", others[i]);
        snprintf(path, sizeof path, "%s", rank_path(name));
        CHECK_INT(rename(path, rank_path("run/checkpoint.safetensors")), 0);
        resumed = run_to("narrow", 2, 6, true);
        check_near_bundles(whole, resumed, 0);
        sgm_bundle_free(resumed);
    }
    sgm_bundle_free(whole);
    close_folder();
}

/* --- a rank is killed, at any moment --- */

#define RANKS 3
#define KILLS 5

/* Some 10 ms an epoch: a job that is killed in its first second has not trained for so long that rounding
 * counts. */
static bool rest(void *user, const sgm_training_progress *progress)
{
    (void)user;
    if (progress->kind == SGM_PROGRESS_ITERATION)
        usleep(2500);
    return true;
}

RANK_PART(train_slowly)
{
    train(make(), 0, false, rest);
}

/* Dead, also where nobody has asked for its code yet. */
static bool is_gone(pid_t process)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)process);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return true;
    bool read = fscanf(file, "%*d (%*[^)]) %c", &state) == 1; /* not if it has gone just now */
    fclose(file);
    return !read || state == 'Z' || state == 'X';
}

/* The moment counts from when the process is there: it may also join the others, or write a checkpoint. A
 * launcher that loses a process which is still joining may stay behind with nobody left (Open MPI 4.1). */
static void kill_one(int rank, double seconds)
{
    char name[32];
    set_number("TEST_EPOCHS", 1000000);
    pid_t launcher = start_ranks(RANKS, "train_slowly");
    for (int i = 0; i < RANKS; i++) {
        snprintf(name, sizeof name, "rank.%d", i);
        wait_for_file(rank_path(name));
    }
    usleep((useconds_t)(seconds * 1e6));
    kill(process_of(rank), SIGKILL);
    double began = sgm__now(), most = TIMEOUT + 3;
    for (int i = 0; i < RANKS; i++)
        while (!is_gone(process_of(i)) && sgm__now() - began < most)
            usleep(5000);
    double took = sgm__now() - began;
    int code = wait_ranks(launcher, 5);
    if (took >= most || code == 0)
        TEST_FAIL("rank %d was killed after %.3f s; waited %.1f s for the others, the job ended with %d: %s",
                  rank, seconds, took, code, ranks_said());
    CHECK(ranks_said()[0] != '\0'); /* by the launcher, or by one that was left: whoever was first */
}

/* What is in the folder is what one trainer has after as many epochs, which are returned. */
static int64_t check_states(void)
{
    wave_trainer saved = make(), one = make();
    CHECK_OK(sgm_trainer_load(saved.trainer, rank_path("run/checkpoint.safetensors")));
    int64_t epochs = saved.trainer->position.epoch;
    CHECK(epochs > 0);
    CHECK_OK(sgm_trainer_run(one.trainer, .epochs = epochs));
    CHECK_OK(sgm_trainer_save(one.trainer, rank_path("one")));
    sgm_bundle *left = sgm_bundle_load(rank_path("run/checkpoint.safetensors"));
    sgm_bundle *right = sgm_bundle_load(rank_path("one"));
    CHECK_OK(left);
    CHECK_OK(right);
    check_near_bundles(left, right, 1e-10);
    sgm_bundle_free(left);
    sgm_bundle_free(right);
    free_wave_trainer(saved);
    free_wave_trainer(one);
    return epochs;
}

TEST(a_rank_may_be_killed_at_any_moment)
{
    static const int others[] = {1, 2, 4};
    need_ranks();
    unsigned seed = (unsigned)number_of("SIGMA_TEST_SEED", (int64_t)(sgm__now() * 1e6) & 0xffffff);
    printf("seed of the moments: %u\n", seed); /* SIGMA_TEST_SEED repeats them */
    srandom(seed);
    for (int i = 0; i < KILLS; i++) {
        open_folder();
        int rank = (int)(random() % RANKS), ranks = others[random() % 3];
        kill_one(rank, (double)(random() % 1000) * 1e-3);
        int64_t epochs = sgm__file_exists(rank_path("run/checkpoint.safetensors")) ? check_states() : 0;
        sgm_bundle_free(train_to(ranks, epochs + 2, true));
        CHECK_INT(check_states(), epochs + 2);
        close_folder();
    }
}
