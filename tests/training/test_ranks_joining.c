/* Ranks find each other, or say in time who is missing; several trainers of a program have ranks side by
 * side.
 */
#include "ranks_test.h"
#include "waves.h"

#include "parallel/collective/ranks.h"

#ifdef SIGMA_ADDRESS_SANITIZER
#define TIMEOUT 8 /* seconds */
#else
#define TIMEOUT 3
#endif

static int launched_rank(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    rank = rank != NULL ? rank : getenv("PMI_RANK");
    CHECK(rank != NULL);
    return rank != NULL ? atoi(rank) : -1;
}

/* --- who does not come --- */

static void say_failure(const sgm_operator *ranks)
{
    CHECK(ranks == NULL);
    fprintf(stderr, "failed: %s\n", sgm_last_error());
    exit(3);
}

RANK_PART(one_never_comes)
{
    if (launched_rank() == 1)
        sleep(60);
    else
        say_failure(sgm_mpi_operator(.timeout = TIMEOUT));
}

RANK_PART(one_has_fewer)
{
    CHECK_OK(sgm_mpi_operator(.timeout = 60));
    if (launched_rank() == 1)
        sleep(60);
    else
        say_failure(sgm_mpi_operator(.timeout = TIMEOUT));
}

static void check_in_time(const char *part, const char *message)
{
    char time[96];
    open_folder();
    double began = sgm__now();
    int code = wait_ranks(start_ranks(3, part), 30);
    CHECK(code != 0 && code != -1);
    CHECK(sgm__now() - began < TIMEOUT + 6);
    snprintf(time, sizeof time, "has waited for %d seconds (operator.timeout)", TIMEOUT);
    const char *said = ranks_said();
    if (strstr(said, "the ranks do not find each other: ") == NULL || strstr(said, time) == NULL ||
        strstr(said, message) == NULL)
        TEST_FAIL("no '%s' with '%s' in: %s", message, time, said);
    close_folder();
}

TEST(a_process_that_never_joins_is_missed_in_time)
{
    need_ranks();
    check_in_time("one_never_comes", "not all processes that the launcher has started join");
}

TEST(a_rank_with_fewer_operators_is_named_in_time)
{
    need_ranks();
    check_in_time("one_has_fewer", "there is no answer from rank 1, which has to make as many operators");
}

/* --- side by side --- */

#define TRAINERS 3

/* Each is at its own iteration: their ranks speak of different things at the same time. */
static sgm_env *train_all(sgm_trainer *trainers[TRAINERS], bool on_ranks)
{
    sgm_env *env = sgm_env_create("side by side", .seed = 5, .handler = "cpu", .precision = SGM_FLOAT64);
    CHECK_OK(env);
    for (int i = 0; i < TRAINERS; i++) {
        char name[32];
        snprintf(name, sizeof name, "trainer-%d", i);
        sgm_dataset *dataset = wave_dataset();
        trainers[i] = sgm_trainer_create(env, name);
        CHECK_OK(sgm_trainer_set_network(trainers[i], WAVE_NETWORK));
        CHECK_OK(sgm_trainer_set_data(trainers[i], sgm_minibatches(dataset, .size = 10 + 5 * i)));
        CHECK_OK(sgm_trainer_set_optimiser(trainers[i], sgm_momentum(.learning_rate = 0.1)));
        if (on_ranks) {
            CHECK_OK(sgm_trainer_set_operator(trainers[i], sgm_mpi_operator(.bucket = 1024, .timeout = 20)));
            sgm__trainer_ranks(trainers[i])->options.messages = true; /* they use MPI most */
        }
        sgm_dataset_free(dataset);
    }
    CHECK_OK(sgm_env_run(env, .epochs = 60));
    return env;
}

RANK_PART(side_by_side)
{
    sgm_trainer *trainers[TRAINERS];
    sgm_env *env = train_all(trainers, true);
    for (size_t i = 0; i < TRAINERS && launched_rank() == 1; i++)
        CHECK_OK(sgm_trainer_save(trainers[i], rank_file(i)));
    sgm_env_free(env);
}

TEST(trainers_side_by_side_have_ranks_each)
{
    sgm_trainer *trainers[TRAINERS];
    need_ranks();
    open_folder();
    run_ranks(2, "side_by_side");
    sgm_env *env = train_all(trainers, false);
    for (size_t i = 0; i < TRAINERS; i++)
        check_wave_states(trainers[i], rank_file(i));
    sgm_env_free(env);
    close_folder();
}
