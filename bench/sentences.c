/* Vectors of sentences by an encoder of others: bench/sentences.py calls it in turns with ONNX Runtime.
 *
 *   sentences FOLDER THREADS ROUNDS LINES.txt OUTPUT.npy [one]
 *
 * FOLDER has the model and its tokenizer. Prints milliseconds of the first time through all lines, which
 * makes the programs, and of later ones (median), tokens included; with `one` a line at a time. The vectors
 * go to OUTPUT.npy. */
#include "measure.h"
#include <sigma/models.h>
#include <sigma/sigma.h>

#include <stdbool.h>

#define MAXIMUM_LINES 100000
#define MAXIMUM_ROUNDS 100

static const char *lines[MAXIMUM_LINES];
static size_t line_count;

static void check(bool good)
{
    if (good)
        return;
    fprintf(stderr, "sentences: %s\n", sgm_last_error());
    exit(1);
}

static void read_lines(const char *path)
{
    char *line = NULL;
    size_t room = 0;
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fprintf(stderr, "sentences: '%s' cannot be read\n", path);
        exit(1);
    }
    while (line_count < MAXIMUM_LINES && getline(&line, &room, file) > 0) {
        line[strcspn(line, "\n")] = '\0';
        lines[line_count++] = strdup(line);
    }
    free(line);
    fclose(file);
}

/* All lines together, or one at a time; the vectors of the last. */
static sgm_tensor *run(sgm_trainer *trainer, const sgm_pretrained_tokenizer *tokenizer, int64_t longest,
                       bool one)
{
    sgm_tensor *vectors = NULL;
    for (size_t i = 0; i < line_count; i += one ? 1 : line_count) {
        sgm_tensor_free(vectors);
        vectors = sgm_pretrained_predict_texts(trainer, tokenizer, lines + i, one ? 1 : line_count,
                                               .longest = longest);
        check(vectors != NULL);
    }
    return vectors;
}

int main(int argc, char **argv)
{
    double times[MAXIMUM_ROUNDS];
    if (argc < 6 || atoi(argv[3]) < 1 || atoi(argv[3]) > MAXIMUM_ROUNDS) {
        fprintf(stderr, "usage: sentences FOLDER THREADS ROUNDS LINES.txt OUTPUT.npy [one]\n");
        return 2;
    }
    bool one = argc > 6;
    size_t rounds = (size_t)atoi(argv[3]);
    read_lines(argv[4]);
    sgm_env *env = sgm_env_create("sentences", .threads = atoi(argv[2]));
    sgm_pretrained *model = sgm_pretrained_open(argv[1]);
    sgm_pretrained_tokenizer *tokenizer = sgm_pretrained_tokenizer_open(argv[1]);
    check(model != NULL && tokenizer != NULL);
    int64_t longest = sgm_pretrained_describe(model)->context;
    sgm_trainer *trainer = sgm_trainer_create(env, "sentences");
    check(sgm_pretrained_load(model, trainer) == SGM_OK);
    if (one) /* as a server has it: each program packs the weights, which pays as lengths come again */
        check(sgm_trainer_set_inference(trainer) == SGM_OK);
    double begin = now();
    sgm_tensor *vectors = run(trainer, tokenizer, longest, one);
    double first = now() - begin;
    for (size_t i = 0; i < rounds; i++) {
        sgm_tensor_free(vectors);
        begin = now();
        vectors = run(trainer, tokenizer, longest, one);
        times[i] = now() - begin;
    }
    check(sgm_npy_save(argv[5], vectors) == SGM_OK);
    printf("%.1f %.1f\n", first * 1e3, median(times, rounds) * 1e3);
    sgm_tensor_free(vectors);
    sgm_pretrained_tokenizer_free(tokenizer);
    sgm_pretrained_free(model);
    sgm_env_free(env);
    return 0;
}
