/* Predictions of networks as the command and models make them: parameters as states that may change, as
 * constants, in bfloat16, and in int8; and tokens of a generator.
 *
 *   predict [THREADS [SECONDS [NETWORK]]]
 *
 * Prints for each network microseconds of a prediction (the least of as many as fit the seconds), for one
 * record and for 64; of networks that read tokens also tokens that a generator reads in a second, with the
 * first places of the sequence taken and with all of them, and how many bytes of weights the first are in a
 * second, beside what reading memory alone does.
 */
#include "measure.h"
#include <sigma/sigma.h>

#include <stdbool.h>
#include <string.h>

#define LARGE_BYTES ((size_t)256 << 20)

typedef struct network {
    const char *name, *notation;
    double below; /* inputs are whole numbers below this; 0: any numbers */
    bool generates;
} network;

static const network networks[] = {
    {"mlp", "input(784) + dense(1024, relu) + dense(1024, relu) + dense(10) + softmax_cross_entropy", 0,
     false},
    {"cnn",
     "input(28, 28) + convolution(24, 3, same, no_bias) + batch_norm + activation(relu) + convolution(24, 3, "
     "same, "
     "no_bias) + batch_norm + activation(relu) + max_pooling(2) + convolution(48, 3, same, no_bias) + "
     "batch_norm + "
     "activation(relu) + convolution(48, 3, same, no_bias) + batch_norm + activation(relu) + max_pooling(2) "
     "+ "
     "dense(128, relu) + dense(10) + softmax_cross_entropy",
     0, false},
    {"lstm",
     "input(64) + embedding(65, 128) + lstm(256) + lstm(256) + dense(65, time_distributed) + "
     "softmax_cross_entropy",
     65, true},
    {"encoder",
     "input(64) + embedding(1000, 128) + positions + 4 * transformer(4) + layer_norm + "
     ""
     "dense(10) + softmax_cross_entropy",
     1000, false},
    {"gpt-4x128",
     "input(128) + embedding(65, 128) + positions + 4 * transformer(4, causal) + layer_norm + dense(65, "
     "time_distributed) + softmax_cross_entropy",
     65, true},
    {"gpt-6x384",
     "input(256) + embedding(65, 384) + positions + 6 * transformer(6, causal) + layer_norm + dense(65, "
     "time_distributed) + softmax_cross_entropy",
     65, true},
    {"gpt-6x384-1024",
     "input(1024) + embedding(65, 384) + positions + 6 * transformer(6, causal) + layer_norm + dense(65, "
     "time_distributed) + softmax_cross_entropy",
     65, true},
    {"gpt-12x768",
     "input(256) + embedding(65, 768) + positions + 12 * transformer(12, causal) + layer_norm + dense(65, "
     "time_distributed) + softmax_cross_entropy",
     65, true},
};

static void check(bool good)
{
    if (good)
        return;
    fprintf(stderr, "predict: %s\n", sgm_last_error());
    exit(1);
}

static sgm_tensor *make_inputs(const network *n, int64_t examples, int64_t elements)
{
    sgm_shape shape = sgm_shape_of(examples, elements);
    sgm_tensor *inputs = sgm_tensor_create(SGM_FLOAT32, &shape);
    check(inputs != NULL);
    float *values = sgm_tensor_data(inputs);
    for (int64_t i = 0; i < examples * elements; i++)
        values[i] = n->below > 0 ? (float)((i * 7 + 3) % (int64_t)n->below) : (float)(i % 17) / 17;
    return inputs;
}

/* The least seconds of a prediction. */
static double time_of(sgm_trainer *trainer, sgm_tensor *inputs, double seconds)
{
    double least = 1e9;
    sgm_tensor_free(sgm_trainer_predict(trainer, inputs, NULL));
    for (double end = now() + seconds, begin = now(); begin < end;) {
        sgm_tensor *output = sgm_trainer_predict(trainer, inputs, NULL);
        double after = now();
        check(output != NULL);
        sgm_tensor_free(output);
        least = after - begin < least ? after - begin : least;
        begin = now();
    }
    return least;
}

/* Tokens whose time is taken at either end of the places. */
#define AT_ENDS 32

/* The least seconds of a token: *first of the first places of the sequence, *last of the last ones. */
static void time_tokens(sgm_trainer *trainer, int64_t places, double seconds, double *first, double *last)
{
    const double *shares;
    sgm_generator *generator = sgm_generator_create(trainer);
    check(generator != NULL);
    *first = *last = 1e9;
    for (double end = now() + seconds; now() < end;) {
        check(sgm_generator_reset(generator) == SGM_OK);
        for (int64_t t = 0; t < places; t++) {
            double *least = t < AT_ENDS ? first : t >= places - AT_ENDS ? last : NULL, begin = now();
            check(sgm_generator_read(generator, t * 5 % 65, &shares) == SGM_OK);
            double took = now() - begin;
            if (least != NULL && took < *least)
                *least = took;
        }
    }
    sgm_generator_free(generator);
}

/* Numbers in parameters that products read: matrices, but for tables of embeddings, whose rows are looked up.
 */
static double weights_of(sgm_trainer *trainer)
{
    size_t count;
    double numbers = 0;
    const sgm_parameter *parameters = sgm_trainer_parameters(trainer, &count);
    for (size_t i = 0; i < count; i++)
        if (parameters[i].type.shape.rank == 2 && strstr(parameters[i].name, "embedding") == NULL &&
            strstr(parameters[i].name, "positions") == NULL)
            numbers += (double)sgm_shape_elements(&parameters[i].type.shape);
    return numbers;
}

/* How parameters are there: as states, which may change, or as constants of a type. */
typedef struct way {
    const char *name;
    bool constant;
    const char *quantize;
    sgm_dtype precision;
    int bytes; /* of a weight */
} way;

static const way ways[] = {{"states", false, NULL, SGM_FLOAT32, 4},
                           {"constants", true, NULL, SGM_FLOAT32, 4},
                           {"bfloat16", true, NULL, SGM_BFLOAT16, 2},
                           {"int8", true, "int8", SGM_FLOAT32, 1}};

static void measure(const network *n, const way *w, int threads, double seconds)
{
    sgm_env *env = sgm_env_create("predict", .seed = 1, .threads = threads, .precision = w->precision);
    sgm_trainer *trainer = sgm_trainer_create(env, n->name);
    check(sgm_trainer_set_network(trainer, n->notation) == SGM_OK && sgm_trainer_prepare(trainer) == SGM_OK);
    int64_t elements = strtol(strchr(n->notation, '(') + 1, NULL, 10);
    int64_t places = elements;
    elements *= strncmp(n->notation, "input(28, 28)", 13) == 0 ? 28 : 1;
    sgm_tensor *one = make_inputs(n, 1, elements), *many = make_inputs(n, n->generates ? 1 : 64, elements);
    if (w->constant)
        check(sgm_trainer_set_inference(trainer, .quantize = w->quantize) == SGM_OK);
    printf("%-14s %-9s %10.1f", n->name, w->name, 1e6 * time_of(trainer, one, seconds));
    if (!n->generates)
        printf(" %11.1f", 1e6 * time_of(trainer, many, seconds));
    if (n->generates && w->constant) {
        double first, last, read = w->bytes * weights_of(trainer);
        time_tokens(trainer, places, seconds, &first, &last);
        printf(" %11s %12.0f %8.0f %8.1f %8.1f", "", 1 / first, 1 / last, read / 1e6, read / first / 1e9);
    }
    printf("\n");
    fflush(stdout);
    sgm_tensor_free(one);
    sgm_tensor_free(many);
    sgm_env_free(env);
}

/* GB/s of reading `bytes` again and again: what a token could not be faster than. */
static double read_speed(size_t bytes)
{
    size_t count = bytes / sizeof(uint64_t);
    uint64_t *memory = malloc(bytes), sum = 0;
    double least = 1e9;
    check(memory != NULL);
    memset(memory, 1, bytes);
    for (int round = 0; round < 8; round++) {
        uint64_t sums[8] = {0};
        double begin = now();
        for (size_t i = 0; i + 8 <= count; i += 8)
            for (size_t k = 0; k < 8; k++)
                sums[k] += memory[i + k];
        double took = now() - begin;
        least = took < least ? took : least;
        for (size_t k = 0; k < 8; k++)
            sum += sums[k];
    }
    free(memory);
    return sum != 0 ? (double)bytes / least / 1e9 : 0;
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 1;
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 1;
    printf("memory is read at %.1f GB/s (256 MB), %.1f GB/s (2 MB) by one thread\n", read_speed(LARGE_BYTES),
           read_speed((size_t)2 << 20));
    printf("%-14s %-9s %10s %11s %12s %8s %8s %8s\n", "network", "weights", "1 (us)", "64 (us)", "tokens/s",
           "at end", "MB", "GB/s");
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
        if (argc < 4 || strcmp(argv[3], networks[i].name) == 0)
            for (size_t k = 0; k < sizeof ways / sizeof *ways; k++)
                measure(&networks[i], &ways[k], threads, seconds);
    return 0;
}
