/* Ready-made hooks over a resume: cut after any iteration, saved, loaded into a new trainer with the same
 * hooks, a training shares, sets and stops exactly as it would have. A row for each hook that remembers
 * something, by itself or in its condition, and for what others read of it later. */
#include "waves.h"

#define EPOCHS 4
#define ITERATIONS 16 /* 4 minibatches an epoch */

static const struct resume_case {
    const char *hooks[3]; /* as text */
    const char *has;      /* must be in the trace of the whole run, or the row proves nothing */
} resume_cases[] = {
    {{"accumulator(optimiser.loss)"}, "optimiser_loss_sum="},
    {{"accumulator(optimiser.loss, name=c, mean=true, reset_every=5)"}, "c="},
    {{"accumulator(optimiser.loss, name=c, each_epoch=true)"}, "c="},
    {{"every 3 iterations accumulator(optimiser.loss, name=c)"}, "c="},
    {{"every 1 epoch accumulator(validation.loss, name=v, mean=true)"}, "v="},
    {{"accumulator(optimiser.loss, name=c) if optimiser.loss decreases"}, "c="},
    {{"accumulator(iteration, name=c, mean=true) if optimiser.loss < 1.2 repeated 2 times"}, "c="},
    /* what one shares now and then, another reads at each iteration */
    {{"every 1 epoch accumulator(validation.loss, name=v)", "accumulator(shared.v, name=w) if shared.v > 1"},
     "w="},
    {{"every 5 iterations accumulator(iteration, name=i)", "every 2 iterations accumulator(shared.i, name=k)",
      "if shared.k > 12 then set optimiser.learning_rate *= 0.5"},
     "rate=0.05"},
    {{"early_stopper(validation.loss, patience=1, extremum=maximum)"}, "stopped: early_stopper"},
    {{"every 1 iteration early_stopper(optimiser.loss, patience=2)"}, "stopped: early_stopper"},
    {{"every 1 iteration early_stopper(validation.loss, patience=3, extremum=minimum)"}, "stopped: early"},
    {{"at iteration 11 stop(reason=enough)"}, "stopped: stop: enough"},
    {{"every 1 iteration stop() if optimiser.loss > 0 repeated 9 times"}, "stopped: stop"},
    {{"every 3 iterations stop() if optimiser.loss > 0 repeated 3 times in a row"}, "stopped: stop"},
    {{"every 3 iterations set optimiser.learning_rate *= 0.9"}, "rate=0.09"},
    {{"after 5 iterations set optimiser.learning_rate = 0.01"}, "rate=0.01"},
    /* a value that goes back: also where a run is cut while it is in force */
    {{"after 5 iterations set optimiser.learning_rate *= 0.5 for 3 iterations"}, "rate=0.05"},
    {{"every 3 iterations set optimiser.learning_rate *= 0.5 for 4 iterations"}, "rate=0.05"},
    {{"at epoch 1 set optimiser.learning_rate = 0.02 for 2 epochs"}, "rate=0.02"},
    {{"every 1 iteration if optimiser.loss decreases 2 times then set optimiser.learning_rate *= 0.9"},
     "rate=0.09"},
    {{"every 1 iteration if optimiser.loss becomes < 1.1 then set optimiser.learning_rate *= 0.9"},
     "rate=0.09"},
    {{"every 1 iteration if optimiser.loss reaches minimum then set optimiser.learning_rate *= 0.9"},
     "rate=0.09"},
    {{"every 1 iteration if optimiser.loss reaches 1.1 then set optimiser.learning_rate *= 0.9"},
     "rate=0.09"},
    {{"every 1 iteration if optimiser.loss stalls 2 times then set optimiser.learning_rate *= 0.9"},
     "rate=0.09"},
    {{"every 1 iteration if not optimiser.loss increases then set optimiser.learning_rate *= 0.9"},
     "rate=0.09"},
    {{"every 1 epoch if validation.loss reaches minimum then set optimiser.learning_rate *= 0.9"},
     "rate=0.09"},
    {{"every 1 epoch metric_processor(network.layers.*.weights, m)"}, "m="},
    {{"every 3 iterations modifier(optimiser.learning_rate, \"scale(0.9)\")", "nan_watch"}, "rate=0.09"},
    /* what a metric leaves is there at each iteration */
    {{"regression(data=validation)", "accumulator(validation.r_squared, name=m)"}, "m="},
};

/* Everything that hooks share and set, a line for each iteration and epoch. */
typedef struct trace {
    char text[24000];
    size_t length;
    sgm_trainer *trainer;
} trace;

static void note(trace *to, const char *format, const char *name, double value)
{
    size_t room = sizeof to->text - to->length;
    to->length += (size_t)snprintf(to->text + to->length, room, format, name, value);
    CHECK(to->length < sizeof to->text);
}

static bool follow(void *user, const sgm_training_progress *progress)
{
    trace *to = user;
    if (progress->kind == SGM_PROGRESS_START)
        return true;
    if (progress->kind == SGM_PROGRESS_STOP) {
        if (progress->reason != NULL)
            note(to, "stopped: %s\n", progress->reason, 0);
        return true;
    }
    note(to, "%s %g:", progress->kind == SGM_PROGRESS_EPOCH ? "epoch" : "iteration",
         (double)progress->iteration);
    sgm_matches matches;
    CHECK_OK(sgm_registry_resolve(sgm_trainer_registry(to->trainer), "shared.*", &matches));
    for (size_t i = 0; i < matches.count; i++)
        if (matches.items[i].content.kind == SGM_KIND_NUMBER)
            note(to, " %s=%.17g", matches.items[i].identifier + strlen("shared."),
                 matches.items[i].content.as.number);
    sgm_matches_free(&matches);
    note(to, " %s=%.12g\n", "rate", progress->learning_rate);
    return true;
}

static wave_trainer make(const struct resume_case *c, trace *to)
{
    wave_trainer made = make_wave_trainer((wave_options){.seed = 5, .shuffle = true});
    sgm_dataset *held_out = wave_dataset();
    CHECK_OK(sgm_trainer_add_data(made.trainer, "validation", sgm_by_block(held_out)));
    sgm_dataset_free(held_out);
    for (size_t i = 0; i < 3 && c->hooks[i] != NULL; i++)
        CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_hook_parse(c->hooks[i])));
    to->trainer = made.trainer;
    CHECK_OK(sgm_trainer_on_progress(made.trainer, follow, to));
    return made;
}

/* False: the run was over before. A copy goes through the same parts as a file. */
static bool check_cut(const struct resume_case *c, int64_t cut, const trace *whole)
{
    static trace before, after;
    before = after = (trace){.length = 0};
    wave_trainer first = make(c, &before), second = make(c, &after);
    CHECK_OK(sgm_trainer_run(first.trainer, .epochs = EPOCHS, .iterations = cut));
    bool goes_on = strstr(before.text, "stopped") == NULL;
    if (goes_on) {
        CHECK_OK(sgm_trainer_copy_parts(second.trainer, first.trainer));
        CHECK_OK(sgm_trainer_run(second.trainer, .epochs = EPOCHS));
        if (strncmp(before.text, whole->text, before.length) != 0 ||
            strcmp(after.text, whole->text + before.length) != 0)
            TEST_FAIL("%s, cut after %d:\n%sand then\n%sexpected\n%s", c->hooks[0], (int)cut, before.text,
                      after.text, whole->text);
    }
    free_wave_trainer(first);
    free_wave_trainer(second);
    return goes_on;
}

TEST(hooks_go_on_exactly_after_any_iteration)
{
    static trace whole;
    for (size_t i = 0; i < sizeof resume_cases / sizeof *resume_cases; i++) {
        const struct resume_case *c = &resume_cases[i];
        whole = (trace){.length = 0};
        wave_trainer made = make(c, &whole);
        CHECK_OK(sgm_trainer_run(made.trainer, .epochs = EPOCHS));
        free_wave_trainer(made);
        if (strstr(whole.text, c->has) == NULL)
            TEST_FAIL("%s: no '%s' in\n%s", c->hooks[0], c->has, whole.text);
        for (int64_t cut = 1; cut < ITERATIONS && check_cut(c, cut, &whole);)
            cut++;
    }
}
