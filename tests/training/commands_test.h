/* What tests of commands share: a trainer whose state is all of a kind, its run in another thread. */
#ifndef SIGMA_COMMANDS_TEST_H
#define SIGMA_COMMANDS_TEST_H

#include "base/folder.h"
#include "by_name.h"

#include <pthread.h>
#include <unistd.h>

/* Lines of a file that have all the words. */
__attribute__((unused)) static int lines_with(const char *name, const char *word, const char *other)
{
    char *text, *rest, *line;
    size_t length;
    int count = 0;
    CHECK_OK(sgm__file_read(in_folder(name), 1 << 20, &text, &length));
    rest = text;
    while ((line = strtok_r(rest, "\n", &rest)))
        count += strstr(line, word) != NULL && strstr(line, other) != NULL;
    sgm__free(text);
    return count;
}

__attribute__((unused)) static wave_trainer make(void)
{
    return make_wave_trainer((wave_options){
        .network = "input(6) + dense(8, tanh) + dropout(0.3) + dense(3) + softmax_cross_entropy",
        .optimiser = sgm_adam(.learning_rate = 0.01, .average = 0.9),
        .shuffle = true,
        .seed = 5});
}

/* Whether all states of two trainers have the same bits. */
__attribute__((unused)) static bool same_states(sgm_trainer *a, sgm_trainer *b)
{
    const char *name;
    bool same = true;
    for (size_t i = 0; (name = sgm_session_state_at(a->learner.session, i)) != NULL; i++) {
        sgm_tensor *one = sgm_session_get(a->learner.session, name),
                   *other = sgm_session_get(b->learner.session, name);
        CHECK_OK(one);
        CHECK_OK(other);
        size_t bytes =
            (size_t)sgm_shape_elements(sgm_tensor_shape(one)) * sgm_dtype_size(sgm_tensor_dtype(one));
        if (memcmp(sgm_tensor_const_data(one), sgm_tensor_const_data(other), bytes) != 0) {
            printf("%s differs\n", name);
            same = false;
        }
        sgm_tensor_free(one);
        sgm_tensor_free(other);
    }
    return same;
}

typedef struct background {
    sgm_trainer *trainer;
    sgm_run_options options;
    pthread_t thread;
    sgm_status status;
    char error[1024];
} background;

__attribute__((unused)) static void *run_there(void *user)
{
    background *run = user;
    run->status = sgm_trainer_run_with(run->trainer, &run->options);
    snprintf(run->error, sizeof run->error, "%s", sgm_last_error());
    return NULL;
}

__attribute__((unused)) static void begin(background *run, sgm_trainer *trainer, const char *where)
{
    run->trainer = trainer;
    run->options =
        (sgm_run_options){.struct_size = sizeof run->options, .epochs = 100000000, .folder = where};
    CHECK_INT(pthread_create(&run->thread, NULL, run_there, run), 0);
    bool begun = false; /* a rule may reset it at once */
    for (int i = 0; i < 5000 && !begun; i++) {
        begun = sgm_trainer_get_state(trainer) != SGM_TRAINER_IDLE && number_of(trainer, "iteration") >= 6;
        usleep(begun ? 0 : 1000);
    }
    CHECK(begun);
}

__attribute__((unused)) static void wait_for_pause(sgm_trainer *trainer)
{
    for (int i = 0; i < 5000 && sgm_trainer_get_state(trainer) != SGM_TRAINER_PAUSED; i++)
        usleep(1000);
    CHECK_INT(sgm_trainer_get_state(trainer), SGM_TRAINER_PAUSED);
}

__attribute__((unused)) static void pause_it(sgm_trainer *trainer)
{
    CHECK_OK(sgm_trainer_pause(trainer));
    wait_for_pause(trainer);
}

__attribute__((unused)) static void step(sgm_trainer *trainer, int64_t iterations)
{
    double before = number_of(trainer, "iteration");
    CHECK_OK(sgm_trainer_step(trainer, iterations));
    for (int i = 0; i < 5000 && number_of(trainer, "iteration") < before + (double)iterations; i++)
        usleep(1000);
    wait_for_pause(trainer);
    CHECK_NEAR(number_of(trainer, "iteration"), before + (double)iterations, 0);
}

__attribute__((unused)) static void end(background *run)
{
    CHECK_OK(sgm_trainer_stop(run->trainer, "enough"));
    pthread_join(run->thread, NULL);
    CHECK_STR(run->status == SGM_OK ? "" : run->error, "");
}

#endif
