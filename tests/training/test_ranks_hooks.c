/* Hooks on ranks: what they ask for on all happens on all, at the same iteration; what they ask for on one
 * alone ends the run and names the hook. */
#include "ranks_test.h"
#include "waves.h"

#include "parallel/collective/ranks.h"

#ifdef SIGMA_ADDRESS_SANITIZER
#define TIMEOUT 8 /* seconds */
#else
#define TIMEOUT 3
#endif

/* --- hooks that ask at an iteration --- */

typedef struct asker {
    sgm_status (*ask)(sgm_hook_call *call);
    int64_t iteration; /* from which on it asks, once: in the background it may be left out now and then */
    bool asked;
} asker;

static sgm_status invoke(void *self, sgm_hook_call *call)
{
    asker *a = self;
    if (a->asked || call->iteration < a->iteration)
        return SGM_OK;
    a->asked = true;
    return a->ask(call);
}

static const sgm_hook_type asker_type = {
    .api = SGM_HOOK_API, .name = "asker", .doc = "asks at an iteration", .invoke = invoke, .free = free};

static sgm_status ask_stop(sgm_hook_call *call)
{
    return sgm_hook_request_stop(call, "it is enough");
}

static sgm_status ask_pause(sgm_hook_call *call)
{
    return sgm_hook_request_pause(call);
}

static sgm_status ask_half(sgm_hook_call *call)
{
    return sgm_hook_request_set(call, "optimiser.learning_rate", sgm_number_content(0.5));
}

static sgm_status ask_quarter(sgm_hook_call *call)
{
    return sgm_hook_request_set(call, "optimiser.learning_rate", sgm_number_content(0.25));
}

typedef struct rank_run {
    wave_trainer made;
    sgm_operator *ranks;
} rank_run;

static rank_run begin(void)
{
    rank_run run = {.made = make_wave_trainer((wave_options){.handler = "cpu", .shuffle = true, .seed = 3}),
                    .ranks = sgm_mpi_operator(.timeout = TIMEOUT)};
    CHECK_OK(run.ranks);
    CHECK_OK(sgm_trainer_set_operator(run.made.trainer, run.ranks));
    return run;
}

static void attach(const rank_run *run, sgm_status (*ask)(sgm_hook_call *call), int64_t iteration,
                   bool background)
{
    asker *self = malloc(sizeof *self);
    CHECK(self != NULL);
    *self = (asker){ask, iteration, false};
    CHECK_OK(sgm_trainer_add_hook(run->made.trainer,
                                  sgm_hook_create(&asker_type, self, .background = background)));
}

/* What the rank has in the end, in a file of its own. */
static void end(const rank_run *run, int64_t epochs)
{
    char name[32], text[96];
    if (sgm_trainer_run(run->made.trainer, .epochs = epochs) != SGM_OK) {
        fprintf(stderr, "failed: %s\n", sgm_last_error());
        exit(3);
    }
    snprintf(name, sizeof name, "end.%d", sgm_operator_rank(run->ranks));
    snprintf(text, sizeof text, "iteration %lld, rate %g", (long long)run->made.trainer->position.iteration,
             sgm__trainer_learning_rate(run->made.trainer, run->made.trainer->progress.batches));
    CHECK_OK(sgm__file_write_atomic(rank_path(name), text, strlen(text)));
    free_wave_trainer(run->made);
}

static void check_end(int rank, char *text, size_t size)
{
    char name[32];
    snprintf(name, sizeof name, "end.%d", rank);
    FILE *file = fopen(rank_path(name), "r");
    CHECK(file != NULL);
    CHECK(fgets(text, (int)size, file) != NULL);
    fclose(file);
}

/* --- all --- */

RANK_PART(all)
{
    rank_run run = begin();
    attach(&run, ask_half, 3, false);
    attach(&run, ask_stop, 7, false);
    end(&run, 1000);
}

/* As without ranks: no iteration later. */
TEST(what_hooks_ask_for_on_all_ranks_happens_at_once)
{
    need_ranks();
    open_folder();
    run_ranks(3, "all");
    for (int rank = 0; rank < 3; rank++) {
        char text[96];
        check_end(rank, text, sizeof text);
        CHECK_STR(text, "iteration 7, rate 0.5");
    }
    close_folder();
}

/* --- one alone --- */

RANK_PART(one_stops)
{
    rank_run run = begin();
    if (sgm_operator_rank(run.ranks) == 1)
        attach(&run, ask_stop, 6, false);
    end(&run, 1000000);
}

RANK_PART(one_pauses)
{
    rank_run run = begin();
    if (sgm_operator_rank(run.ranks) == 0)
        attach(&run, ask_pause, 6, false);
    end(&run, 1000000);
}

RANK_PART(one_sets)
{
    rank_run run = begin();
    if (sgm_operator_rank(run.ranks) == 1)
        attach(&run, ask_half, 6, false);
    end(&run, 1000000);
}

RANK_PART(one_sets_otherwise)
{
    rank_run run = begin();
    attach(&run, sgm_operator_rank(run.ranks) == 0 ? ask_half : ask_quarter, 6, false);
    end(&run, 1000000);
}

TEST(what_a_hook_asks_for_on_one_rank_alone_is_an_error_that_names_it)
{
    static const struct {
        const char *part, *message;
    } cases[] = {
        {"one_stops", "hook 'asker' asked to stop after iteration 6 on rank 1, and not on all ranks; hooks"},
        {"one_pauses",
         "hook 'asker' asked to pause after iteration 6 on rank 0, and not on all ranks; hooks"},
        {"one_sets", "on rank 0 none asked; on rank 1 hook 'asker' asked to set optimiser.learning_rate to "
                     "0.5 after iteration 6; hooks"},
        {"one_sets_otherwise", "to 0.5 after iteration 6; on rank 1 hook 'asker' asked to set "
                               "optimiser.learning_rate to 0.25 after iteration 6; hooks"},
    };
    need_ranks();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_folder();
        int code = wait_ranks(start_ranks(2, cases[i].part), TIMEOUT + 15);
        CHECK(code != 0 && code != -1);
        if (strstr(ranks_said(), cases[i].message) == NULL)
            TEST_FAIL("no '%s' in: %s", cases[i].message, ranks_said());
        close_folder();
    }
}

/* --- in the background --- */

static bool rest(void *user, const sgm_training_progress *progress)
{
    (void)user;
    if (progress->kind == SGM_PROGRESS_ITERATION)
        usleep(1000);
    return true;
}

/* Each rank's would stop at another iteration, and set another value: rank 0's count. */
RANK_PART(background)
{
    rank_run run = begin();
    bool leads = sgm_operator_rank(run.ranks) == 0;
    CHECK_OK(sgm_trainer_on_progress(run.made.trainer, rest, NULL));
    attach(&run, leads ? ask_half : ask_quarter, leads ? 9 : 5, true);
    attach(&run, ask_stop, leads ? 60 : 30, true);
    end(&run, 1000000);
}

TEST(background_hooks_of_rank_0_decide_for_all)
{
    char texts[3][96];
    long long iteration;
    need_ranks();
    open_folder();
    run_ranks(3, "background");
    for (int rank = 0; rank < 3; rank++) {
        check_end(rank, texts[rank], sizeof texts[rank]);
        CHECK_STR(texts[rank], texts[0]);
    }
    CHECK_INT(sscanf(texts[0], "iteration %lld,", &iteration), 1);
    CHECK(iteration > 60);
    CHECK(strstr(texts[0], ", rate 0.5") != NULL);
    close_folder();
}
