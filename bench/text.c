/* The character LSTM and the small GPT on a text, from weights and with minibatches that bench/text_torch.py
 * wrote: what is learnt should be the same. text lstm|gpt TEXT FOLDER EVERY THREADS */
#include "measure.h"

#include <sigma/sigma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIME 64
#define MAXIMUM_BYTES (1 << 24)

static void check(bool good)
{
    if (!good) {
        fprintf(stderr, "text: %s\n", sgm_last_error());
        exit(1);
    }
}

/* Letters as numbers, in order of their bytes. */
static float *read_text(const char *path, int64_t *length, int *letters)
{
    static unsigned char bytes[MAXIMUM_BYTES];
    static float number[256];
    FILE *file = fopen(path, "rb");
    *length = file != NULL ? (int64_t)fread(bytes, 1, MAXIMUM_BYTES, file) : 0;
    if (*length < 100 * TIME) {
        fprintf(stderr, "text: '%s' cannot be read, or is too short\n", path);
        exit(1);
    }
    fclose(file);
    bool seen[256] = {false};
    for (int64_t i = 0; i < *length; i++)
        seen[bytes[i]] = true;
    *letters = 0;
    for (int i = 0; i < 256; i++)
        if (seen[i])
            number[i] = (float)(*letters)++;
    float *text = malloc((size_t)*length * sizeof *text);
    if (text == NULL)
        exit(1);
    for (int64_t i = 0; i < *length; i++)
        text[i] = number[bytes[i]];
    return text;
}

/* Pieces of TIME letters that begin there, and the letters that come after each. */
static sgm_dataset *make_pieces(const float *text, const float *begins, int64_t count)
{
    sgm_shape shape = sgm_shape_of(count, TIME);
    sgm_tensor *now = sgm_tensor_create(SGM_FLOAT32, &shape), *next = sgm_tensor_create(SGM_FLOAT32, &shape);
    check(now != NULL && next != NULL);
    for (int64_t i = 0; i < count; i++) {
        const float *from = text + (int64_t)begins[i];
        memcpy((float *)sgm_tensor_data(now) + i * TIME, from, TIME * sizeof *from);
        memcpy((float *)sgm_tensor_data(next) + i * TIME, from + 1, TIME * sizeof *from);
    }
    sgm_dataset *data = sgm_dataset_create_from("text", (const char *const[]){"inputs", "targets"},
                                                (sgm_tensor *const[]){now, next}, 2);
    check(data != NULL);
    sgm_tensor_free(now);
    sgm_tensor_free(next);
    return data;
}

/* Whole pieces of the last tenth, as many as fill minibatches. */
static sgm_dataset *make_validation(const float *text, int64_t length, int64_t batch)
{
    int64_t first = length * 9 / 10, count = (length - first - TIME + TIME - 1) / TIME / batch * batch;
    float *begins = malloc((size_t)count * sizeof *begins);
    if (begins == NULL)
        exit(1);
    for (int64_t i = 0; i < count; i++)
        begins[i] = (float)(first + i * TIME);
    sgm_dataset *data = make_pieces(text, begins, count);
    free(begins);
    return data;
}

typedef struct loss_sum {
    double sum;
    int64_t count;
} loss_sum;

/* What the step that ended had, from the mean since the epoch began. */
static bool note_loss(void *user, const sgm_training_progress *progress)
{
    loss_sum *sum = user;
    if (progress->kind == SGM_PROGRESS_ITERATION) {
        sum->sum = progress->training.loss * (double)progress->batch;
        sum->count = progress->batch;
    }
    return true;
}

static sgm_trainer *make_trainer(sgm_env *env, const char *network, int letters, const sgm_bundle *start)
{
    bool lstm = strcmp(network, "lstm") == 0;
    char notation[400];
    if (lstm)
        snprintf(
            notation, sizeof notation,
            "input(%d) + embedding(%d, 128) + 2 * lstm(256, forget_bias=0) + dense(%d, time_distributed) "
            "+ softmax_cross_entropy",
            TIME, letters, letters);
    else
        snprintf(notation, sizeof notation,
                 "input(%d) + embedding(%d, 128, name=tokens) + positions + 4 * transformer(4, causal) "
                 "+ layer_norm + tied_dense(tokens) + softmax_cross_entropy",
                 TIME, letters);
    sgm_trainer *trainer = sgm_trainer_create(env, "text");
    sgm_trainer_set_network(trainer, notation);
    sgm_trainer_set_optimiser(trainer,
                              lstm ? sgm_adam(.learning_rate = 0.002) : sgm_adamw(.learning_rate = 0.001));
    check(sgm_trainer_prepare(trainer) == SGM_OK);
    size_t count;
    const sgm_parameter *parameters = sgm_trainer_parameters(trainer, &count);
    for (size_t i = 0; i < count; i++) {
        const sgm_tensor *value = sgm_bundle_get(start, parameters[i].name);
        check(value != NULL && sgm_trainer_set(trainer, parameters[i].name, value) == SGM_OK);
    }
    return trainer;
}

int main(int argc, char **argv)
{
    if (argc != 6 || (strcmp(argv[1], "lstm") != 0 && strcmp(argv[1], "gpt") != 0)) {
        fprintf(stderr, "usage: text lstm|gpt TEXT START EVERY THREADS\n");
        return 2;
    }
    int64_t length, every = strtoll(argv[4], NULL, 10);
    int letters;
    float *text = read_text(argv[2], &length, &letters);
    sgm_bundle *start = sgm_bundle_load(argv[3]);
    const sgm_tensor *positions = start != NULL ? sgm_bundle_get(start, "positions") : NULL;
    check(positions != NULL);
    int64_t steps = sgm_tensor_shape(positions)->dims[0], batch = sgm_tensor_shape(positions)->dims[1];
    sgm_dataset *training = make_pieces(text, sgm_tensor_const_data(positions), steps * batch);
    sgm_dataset *validation = make_validation(text, length, batch);
    sgm_env *env = sgm_env_create("bench", .threads = (int)strtol(argv[5], NULL, 10));
    loss_sum sum = {0}, before = {0};
    sgm_trainer *trainer = make_trainer(env, argv[1], letters, start);
    sgm_trainer_set_data(trainer, sgm_minibatches(training, .size = batch, .no_shuffle = true));
    sgm_trainer_on_progress(trainer, note_loss, &sum);
    sgm_iterator *test = sgm_minibatches(validation, .size = batch, .no_shuffle = true);
    double begin = now();
    for (int64_t step = every; step <= steps; step += every) {
        sgm_metrics metrics;
        check(sgm_trainer_run(trainer, .iterations = step) == SGM_OK);
        check(sgm_trainer_evaluate(trainer, test, &metrics) == SGM_OK);
        printf("step %lld training %.4f validation %.4f seconds %.1f\n", (long long)step,
               (sum.sum - before.sum) / (double)(sum.count - before.count), metrics.loss, now() - begin);
        fflush(stdout);
        before = sum;
    }
    sgm_iterator_free(test);
    sgm_env_free(env);
    sgm_bundle_free(start);
    sgm_dataset_free(training);
    sgm_dataset_free(validation);
    free(text);
    return 0;
}
