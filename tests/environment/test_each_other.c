/* Trainers that look at each other while they run, and hooks that would wait for their own. */
#include "environment_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define FOR_LONG 1000000000

typedef struct pair {
    sgm_env *env;
    sgm_trainer *trainers[2];
    atomic_long calls[2], saves;
} pair;
typedef struct side {
    pair *both;
    int number; /* of its own trainer */
} side;

static pair make_pair(void)
{
    pair made = {.env = sgm_env_create("e", .threads = 1)};
    made.trainers[0] = line_trainer(made.env, "a");
    made.trainers[1] = line_trainer(made.env, "b");
    CHECK_OK(made.trainers[0]);
    CHECK_OK(made.trainers[1]);
    return made;
}

static void wait_for_calls(const pair *both, long minimum)
{
    for (int i = 0;
         i < 20000 && (atomic_load(&both->calls[0]) < minimum || atomic_load(&both->calls[1]) < minimum); i++)
        usleep(1000);
    CHECK(atomic_load(&both->calls[0]) >= minimum && atomic_load(&both->calls[1]) >= minimum);
}

static void run_for_calls(pair *both, long calls)
{
    CHECK_OK(sgm_env_run_background(both->env, .epochs = FOR_LONG));
    wait_for_calls(both, calls);
    CHECK_OK(sgm_env_stop(both->env, "enough"));
    CHECK_OK(sgm_env_wait(both->env));
}

/* --- reading, setting and copying --- */

static sgm_status visit(void *self, sgm_hook_call *call)
{
    const side *own = self;
    pair *both = own->both;
    sgm_matches matches = {0};
    sgm_content rate = sgm_number_content(0.01 + 0.001 * (double)(call->iteration % 7));
    sgm_registry *other = sgm_trainer_registry(both->trainers[!own->number]);
    CHECK_OK(sgm_registry_resolve(sgm_env_registry(both->env), "*.optimiser.loss", &matches));
    CHECK_INT(matches.count, 2);
    sgm_matches_free(&matches);
    CHECK_OK(sgm_registry_resolve_set(other, "optimiser.learning_rate", rate, NULL, NULL));
    CHECK_OK(
        sgm_registry_resolve(other, "network.layers.*.weights", &matches)); /* none before it has begun */
    sgm_matches_free(&matches);
    if (call->iteration % 5 == 0)
        CHECK_OK(sgm_trainer_copy_parameters(both->trainers[!own->number], both->trainers[own->number]));
    atomic_fetch_add(&both->calls[own->number], 1);
    return SGM_OK;
}

static const sgm_hook_type visitor = {.api = SGM_HOOK_API, .name = "visitor", .invoke = visit};

static void attach_visitors(pair *both, side *sides)
{
    for (int i = 0; i < 2; i++) {
        sides[i] = (side){both, i};
        CHECK_OK(sgm_trainer_add_hook(both->trainers[i],
                                      sgm_hook_create(&visitor, &sides[i], .failure = SGM_HOOK_STOP)));
    }
}

TEST(hooks_of_two_trainers_read_set_and_copy_each_other)
{
    side sides[2];
    pair both = make_pair();
    attach_visitors(&both, sides);
    run_for_calls(&both, 300);
    sgm_env_free(both.env);
}

static sgm_status visit_both(void *self, sgm_hook_call *call)
{
    pair *both = self;
    sgm_matches matches = {0};
    CHECK_OK(sgm_registry_resolve(sgm_env_registry(both->env), "*.optimiser.loss", &matches));
    sgm_matches_free(&matches);
    atomic_fetch_add(&both->calls[call->trainer[0] == 'b'], 1);
    return SGM_OK;
}

TEST(two_trainers_share_a_hook_that_reads_both)
{
    static const sgm_hook_type type = {.api = SGM_HOOK_API, .name = "visits both", .invoke = visit_both};
    pair both = make_pair();
    sgm_hook *shared = sgm_hook_create(&type, &both, .failure = SGM_HOOK_STOP);
    for (int i = 0; i < 2; i++)
        CHECK_OK(sgm_trainer_add_hook(both.trainers[i], sgm_hook_retain(shared)));
    sgm_hook_free(shared);
    run_for_calls(&both, 300);
    sgm_env_free(both.env);
}

/* --- saving meanwhile --- */

static atomic_bool ends;

/* The state of hooks is taken between hooks, also where one of them waits. */
static void *save_again_and_again(void *user)
{
    pair *both = user;
    char path[64];
    snprintf(path, sizeof path, "/tmp/sigma-test-each-other-%d.safetensors", (int)getpid());
    while (!atomic_load(&ends)) {
        for (int i = 0; i < 2; i++)
            CHECK_OK(sgm_trainer_save(both->trainers[i], path));
        atomic_fetch_add(&both->saves, 1);
    }
    unlink(path);
    return NULL;
}

TEST(both_can_be_saved_meanwhile)
{
    side sides[2];
    pthread_t thread;
    pair both = make_pair();
    attach_visitors(&both, sides);
    CHECK_INT(pthread_create(&thread, NULL, save_again_and_again, &both), 0);
    CHECK_OK(sgm_env_run_background(both.env, .epochs = FOR_LONG));
    for (int i = 0; i < 20000 && atomic_load(&both.saves) < 20; i++)
        usleep(1000);
    wait_for_calls(&both, 20);
    CHECK(atomic_load(&both.saves) >= 20);
    CHECK_OK(sgm_env_stop(both.env, "enough"));
    CHECK_OK(sgm_env_wait(both.env));
    atomic_store(&ends, true);
    pthread_join(thread, NULL);
    sgm_env_free(both.env);
}

/* A save waits for the turn of a hook which, on the other trainer's thread, waits for the trainer that is
 * saved. */
TEST(both_can_be_saved_while_they_share_a_hook_that_reads_both)
{
    static const sgm_hook_type type = {.api = SGM_HOOK_API, .name = "visits both", .invoke = visit_both};
    pthread_t thread;
    pair both = make_pair();
    sgm_hook *shared = sgm_hook_create(&type, &both, .failure = SGM_HOOK_STOP);
    for (int i = 0; i < 2; i++)
        CHECK_OK(sgm_trainer_add_hook(both.trainers[i], sgm_hook_retain(shared)));
    sgm_hook_free(shared);
    atomic_store(&ends, false);
    CHECK_INT(pthread_create(&thread, NULL, save_again_and_again, &both), 0);
    CHECK_OK(sgm_env_run_background(both.env, .epochs = FOR_LONG));
    for (int i = 0; i < 20000 && atomic_load(&both.saves) < 100; i++)
        usleep(1000);
    CHECK(atomic_load(&both.saves) >= 100);
    wait_for_calls(&both, 100);
    atomic_store(&ends, true);
    pthread_join(thread, NULL);
    CHECK_OK(sgm_env_stop(both.env, "enough"));
    CHECK_OK(sgm_env_wait(both.env));
    sgm_env_free(both.env);
}

/* --- loading meanwhile --- */

typedef sgm_status (*change)(pair *both, int which, const char *path);

typedef struct changer {
    pair *both;
    change function;
} changer;

static sgm_status load_side(pair *both, int which, const char *path)
{
    return sgm_trainer_load(both->trainers[which], path);
}

static sgm_status restore_side(pair *both, int which, const char *path)
{
    return sgm_trainer_restore(both->trainers[which], path);
}

static sgm_status reset_side(pair *both, int which, const char *path)
{
    (void)path;
    return sgm_trainer_reset(both->trainers[which]);
}

static void *change_again_and_again(void *user)
{
    const changer *own = user;
    char paths[2][64];
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "/tmp/sigma-test-each-other-%d-%d.safetensors", (int)getpid(), i);
        CHECK_OK(sgm_trainer_save(own->both->trainers[i], paths[i]));
    }
    while (!atomic_load(&ends)) {
        for (int i = 0; i < 2; i++)
            CHECK_OK(own->function(own->both, i, paths[i]));
        atomic_fetch_add(&own->both->saves, 1);
    }
    unlink(paths[0]);
    unlink(paths[1]);
    return NULL;
}

static sgm_status no_numbers(void *self, double *numbers, size_t *count)
{
    (void)self;
    (void)numbers;
    *count = 0;
    return SGM_OK;
}

/* Meanwhile the other trainer begins to run the shared hook. */
static sgm_status take_no_numbers(void *self, const double *numbers, size_t count)
{
    (void)self;
    (void)numbers;
    CHECK_INT(count, 0);
    usleep(500);
    return SGM_OK;
}

static sgm_status do_nothing(void *self, sgm_hook_call *call)
{
    (void)self;
    (void)call;
    return SGM_OK;
}

/* Both trainers run, share a hook that reads both, and are changed again and again. */
static void change_while_they_share(change function)
{
    static const sgm_hook_type type = {.api = SGM_HOOK_API, .name = "visits both", .invoke = visit_both};
    static const sgm_hook_type slow = {.api = SGM_HOOK_API,
                                       .name = "slow to load",
                                       .invoke = do_nothing,
                                       .get_state = no_numbers,
                                       .set_state = take_no_numbers};
    pthread_t thread;
    pair both = make_pair();
    changer user = {&both, function};
    sgm_hook *shared = sgm_hook_create(&type, &both, .failure = SGM_HOOK_STOP);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(sgm_trainer_add_hook(both.trainers[i], sgm_hook_create(&slow, &both)));
        CHECK_OK(sgm_trainer_add_hook(both.trainers[i], sgm_hook_retain(shared)));
    }
    sgm_hook_free(shared);
    atomic_store(&ends, false);
    CHECK_OK(sgm_env_run_background(both.env, .epochs = FOR_LONG));
    CHECK_INT(pthread_create(&thread, NULL, change_again_and_again, &user), 0);
    for (int i = 0; i < 20000 && atomic_load(&both.saves) < 100; i++)
        usleep(1000);
    CHECK(atomic_load(&both.saves) >= 100);
    wait_for_calls(&both, 100);
    atomic_store(&ends, true);
    pthread_join(thread, NULL);
    CHECK_OK(sgm_env_stop(both.env, "enough"));
    CHECK_OK(sgm_env_wait(both.env));
    sgm_env_free(both.env);
}

TEST(both_can_be_loaded_while_they_share_a_hook_that_reads_both)
{
    change_while_they_share(load_side);
}

TEST(both_can_be_restored_while_they_share_a_hook_that_reads_both)
{
    change_while_they_share(restore_side);
}

TEST(both_can_be_reset_while_they_share_a_hook_that_reads_both)
{
    change_while_they_share(reset_side);
}

/* --- background hooks --- */

static sgm_status wait_for_own_trainer(void *self, sgm_hook_call *call)
{
    pair *both = self;
    sgm_trainer *own = both->trainers[0], *other = both->trainers[1];
    sgm_registry *registry = sgm_trainer_registry(own);
    sgm_content content;
    CHECK(call->background);
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(other), "iteration", &content));
    CHECK_ERROR(sgm_registry_resolve_one(registry, "iteration", &content),
                "a background hook of trainer 'a' cannot wait for it: name what it reads in .reads");
    CHECK_ERROR(
        sgm_registry_resolve_set(registry, "optimiser.learning_rate", sgm_number_content(0.1), NULL, NULL),
        "cannot wait for it");
    CHECK_ERROR(sgm_registry_resolve_one(registry, "network.layers.1-dense.weights", &content),
                "cannot wait for it");
    CHECK_ERROR(sgm_trainer_save(own, "/tmp/sigma-test-never"), "cannot wait for it");
    atomic_fetch_add(&both->calls[0], 1);
    atomic_fetch_add(&both->calls[1], 1);
    return SGM_OK;
}

/* Whoever saves waits for background hooks with the lock that such a hook would wait for. */
TEST(a_background_hook_that_would_wait_for_its_trainer_is_told_so)
{
    static const sgm_hook_type type = {.api = SGM_HOOK_API, .name = "waits", .invoke = wait_for_own_trainer};
    pthread_t thread;
    pair both = make_pair();
    atomic_store(&ends, false);
    CHECK_OK(sgm_trainer_add_hook(both.trainers[0], sgm_hook_create(&type, &both, .background = true)));
    CHECK_INT(pthread_create(&thread, NULL, save_again_and_again, &both), 0);
    run_for_calls(&both, 50);
    atomic_store(&ends, true);
    pthread_join(thread, NULL);
    sgm_env_free(both.env);
}

/* Each trainer's background hook waits for the other trainer. */
static sgm_status look_at_the_other(void *self, sgm_hook_call *call)
{
    const side *own = self;
    sgm_content content;
    usleep(300);
    CHECK(call->background);
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(own->both->trainers[!own->number]), "iteration",
                                      &content));
    atomic_fetch_add(&own->both->calls[own->number], 1);
    return SGM_OK;
}

static void *save_own(void *user)
{
    const side *own = user;
    char path[64];
    snprintf(path, sizeof path, "/tmp/sigma-test-each-other-%d-%d.safetensors", (int)getpid(), own->number);
    while (!atomic_load(&ends)) {
        CHECK_OK(sgm_trainer_save(own->both->trainers[own->number], path));
        atomic_fetch_add(&own->both->saves, 1);
    }
    unlink(path);
    return NULL;
}

TEST(both_can_be_saved_while_their_background_hooks_wait_for_the_other)
{
    static const sgm_hook_type type = {
        .api = SGM_HOOK_API, .name = "looks at the other", .invoke = look_at_the_other};
    pthread_t threads[2];
    side sides[2];
    pair both = make_pair();
    atomic_store(&ends, false);
    for (int i = 0; i < 2; i++) {
        sides[i] = (side){&both, i};
        CHECK_OK(
            sgm_trainer_add_hook(both.trainers[i], sgm_hook_create(&type, &sides[i], .background = true)));
    }
    CHECK_OK(sgm_env_run_background(both.env, .epochs = FOR_LONG));
    for (int i = 0; i < 2; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, save_own, &sides[i]), 0);
    for (int i = 0; i < 20000 && atomic_load(&both.saves) < 100; i++)
        usleep(1000);
    CHECK(atomic_load(&both.saves) >= 100);
    wait_for_calls(&both, 20);
    atomic_store(&ends, true);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    CHECK_OK(sgm_env_stop(both.env, "enough"));
    CHECK_OK(sgm_env_wait(both.env));
    sgm_env_free(both.env);
}

/* The last wait of a run is for its background hooks. */
TEST(both_runs_end_while_their_background_hooks_wait_for_the_other)
{
    static const sgm_hook_type type = {
        .api = SGM_HOOK_API, .name = "looks at the other", .invoke = look_at_the_other};
    side sides[2];
    pair both = make_pair();
    for (int i = 0; i < 2; i++) {
        sides[i] = (side){&both, i};
        CHECK_OK(
            sgm_trainer_add_hook(both.trainers[i], sgm_hook_create(&type, &sides[i], .background = true)));
    }
    for (int i = 1; i <= 50; i++) {
        CHECK_OK(sgm_env_run_background(both.env, .epochs = 2 * i));
        CHECK_OK(sgm_env_wait(both.env));
    }
    sgm_env_free(both.env);
}

/* --- a run that fails while it is paused --- */

static sgm_status refuse(void *self, sgm_hook_call *call)
{
    (void)self;
    (void)call;
    return sgm_fail(SGM_ERROR_STATE, "no pause here");
}

static sgm_status wait_for_own_run(void *self, sgm_hook_call *call)
{
    CHECK_ERROR(sgm_env_wait(self), "ask for a stop instead");
    return sgm_hook_request_stop(call, "tried");
}

TEST(a_hook_cannot_wait_for_its_own_run)
{
    static const sgm_hook_type type = {.api = SGM_HOOK_API, .name = "waiter", .invoke = wait_for_own_run};
    pair both = make_pair();
    for (int i = 0; i < 2; i++)
        CHECK_OK(sgm_trainer_add_hook(both.trainers[i],
                                      sgm_hook_create(&type, both.env, .failure = SGM_HOOK_STOP)));
    CHECK_OK(sgm_env_run_background(both.env, .epochs = FOR_LONG));
    CHECK_OK(sgm_env_wait(both.env));
    sgm_env_free(both.env);
}

TEST(a_run_that_fails_when_it_pauses_keeps_its_running_time)
{
    static const sgm_hook_type type = {.api = SGM_HOOK_API, .name = "refuses", .invoke = refuse};
    pair both = make_pair();
    sgm_content content;
    CHECK_OK(
        sgm_trainer_add_hook(both.trainers[0], sgm_hook_create(&type, NULL, .when = sgm_every(1, SGM_PAUSE),
                                                               .failure = SGM_HOOK_STOP)));
    CHECK_OK(sgm_trainer_add_hook(both.trainers[0], sgm_rule_hook("after 3 iterations pause")));
    CHECK_ERROR(sgm_trainer_run(both.trainers[0], .epochs = 10), "no pause here");
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(both.trainers[0]), "running_time", &content));
    CHECK(content.as.number > 0 && content.as.number < 20); /* it was the age of the machine */
    sgm_env_free(both.env);
}
