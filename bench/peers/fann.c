/* Time of a training step in FANN, for comparison: bench.sh compiles it where libfann-dev is installed.
 *
 *   fann SIZES BATCH SECONDS batch|incremental
 *
 * A step is an epoch over one minibatch. FANN has neither relu nor softmax cross-entropy: what comes closest
 * is a clamped linear function and squared error of sigmoids. Its "incremental" learns after each example.
 * One thread. Prints the same four numbers as bench/step.c.
 */
#include "../measure.h"
#include <floatfann.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAXIMUM_LAYERS 16
#define MAXIMUM_STEPS 200000
#define MINIMUM_STEPS 20
#define WARM_UP_STEPS 5

static unsigned read_sizes(const char *text, unsigned *sizes)
{
    unsigned count = 0;
    for (char *end; count < MAXIMUM_LAYERS; text = end + 1) {
        sizes[count++] = (unsigned)strtoul(text, &end, 10);
        if (*end != ',')
            break;
    }
    return count;
}

static struct fann_train_data *random_data(unsigned examples, unsigned inputs, unsigned classes)
{
    struct fann_train_data *data = fann_create_train(examples, inputs, classes);
    for (unsigned i = 0; data != NULL && i < examples; i++) {
        for (unsigned j = 0; j < inputs; j++)
            data->input[i][j] = (float)rand() / (float)RAND_MAX;
        memset(data->output[i], 0, classes * sizeof *data->output[i]);
        data->output[i][(unsigned)rand() % classes] = 1;
    }
    return data;
}

int main(int argc, char **argv)
{
    unsigned sizes[MAXIMUM_LAYERS];
    if (argc != 5) {
        fprintf(stderr, "usage: fann SIZES BATCH SECONDS batch|incremental\n");
        return 2;
    }
    unsigned count = read_sizes(argv[1], sizes);
    double seconds = strtod(argv[3], NULL);
    struct fann *network = fann_create_standard_array(count, sizes);
    struct fann_train_data *data =
        random_data((unsigned)strtoul(argv[2], NULL, 10), sizes[0], sizes[count - 1]);
    double *steps = malloc(MAXIMUM_STEPS * sizeof *steps);
    if (network == NULL || data == NULL || steps == NULL)
        return 1;
    fann_set_learning_rate(network, 0.01f);
    fann_set_activation_function_hidden(network, FANN_LINEAR_PIECE);
    fann_set_activation_function_output(network, FANN_SIGMOID);
    fann_set_training_algorithm(network, strcmp(argv[4], "incremental") == 0 ? FANN_TRAIN_INCREMENTAL
                                                                             : FANN_TRAIN_BATCH);
    for (int i = 0; i < WARM_UP_STEPS; i++)
        fann_train_epoch(network, data);
    size_t done = 0;
    for (double begin = now(), before = begin, moment;
         done < MINIMUM_STEPS || (done < MAXIMUM_STEPS && before - begin < seconds); before = moment) {
        fann_train_epoch(network, data);
        moment = now();
        steps[done++] = moment - before;
    }
    qsort(steps, done, sizeof *steps, compare);
    printf("%.3f %.3f %.3f %.1f\n", steps[done / 2] * 1e6, steps[done / 10] * 1e6, steps[done * 9 / 10] * 1e6,
           peak_megabytes());
    free(steps);
    fann_destroy_train(data);
    fann_destroy(network);
    return 0;
}
