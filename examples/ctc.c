/* Reads words without being told when each letter begins: ctc [EPOCHS]
 *
 * Each example is a row of spectra, as of speech: some letters, each a tone of its own that lasts for a
 * random while, in noise, with silence between. From the letters alone the cost ctc learns which steps say
 * which. */
#include <math.h>
#include <sigma/sigma.h>
#include <stdio.h>
#include <stdlib.h>

#define TRAINED 500
#define TESTED 100
#define TIME 40
#define BANDS 8 /* of a spectrum */
#define LETTERS 6
#define MAXIMUM 5 /* letters of a word */

static float spectra[TRAINED + TESTED][TIME][BANDS], words[TRAINED + TESTED][MAXIMUM],
    lengths[TRAINED + TESTED];

static double uniform(void)
{
    return rand() / ((double)RAND_MAX + 1);
}

/* The letters of a word are 1 to LETTERS, with zeros behind; 0 is the silence between. */
static void speak(int example)
{
    int count = 2 + (int)(uniform() * (MAXIMUM - 1)), time = 0;
    for (int i = 0; i < count; i++) {
        int letter = (int)(uniform() * LETTERS), end = time + 2 + (int)(uniform() * 4);
        words[example][i] = (float)(1 + letter);
        for (; time < end; time++)
            for (int band = 0; band < BANDS; band++) /* neighbours sound alike */
                spectra[example][time][band] = (float)exp(-pow(band - letter - 0.5, 2));
        time += 1 + (int)(uniform() * 3);
    }
    lengths[example] = (float)time;
    for (int i = 0; i < time * BANDS; i++)
        spectra[example][i / BANDS][i % BANDS] += (float)(0.4 * (uniform() - 0.5));
}

/* Examples from `first` on. */
static sgm_block *block_of(int first, int count)
{
    sgm_shape seen = sgm_shape_of(count, TIME, BANDS), said = sgm_shape_of(count, MAXIMUM),
              one = sgm_shape_of(count);
    sgm_block *block = sgm_block_create(count);
    sgm_block_add(block, "inputs", sgm_tensor_create_from(SGM_FLOAT32, &seen, spectra[first]));
    sgm_block_add(block, "targets", sgm_tensor_create_from(SGM_FLOAT32, &said, words[first]));
    sgm_block_add(block, "lengths", sgm_tensor_create_from(SGM_FLOAT32, &one, lengths + first));
    return block;
}

/* How many words are read without a mistake. */
static int read_words(sgm_trainer *trainer, const sgm_block *block)
{
    sgm_tensor *predictions = sgm_trainer_predict_block(trainer, block, NULL);
    int64_t steps[TESTED];
    for (int i = 0; i < TESTED; i++)
        steps[i] = (int64_t)lengths[TRAINED + i];
    sgm_tensor *letters = predictions != NULL ? sgm_ctc_decode(predictions, steps, 0) : NULL;
    int right = 0;
    for (int i = 0; i < TESTED && letters != NULL; i++) {
        const int64_t *said = (const int64_t *)sgm_tensor_const_data(letters) + (ptrdiff_t)i * TIME;
        bool same = said[MAXIMUM] < 0;
        for (int k = 0; k < MAXIMUM; k++)
            same = same && said[k] == (words[TRAINED + i][k] > 0 ? (int64_t)words[TRAINED + i][k] : -1);
        right += same;
    }
    sgm_tensor_free(letters);
    sgm_tensor_free(predictions);
    return right;
}

int main(int argc, char **argv)
{
    for (int i = 0; i < TRAINED + TESTED; i++)
        speak(i);
    sgm_block *trained = block_of(0, TRAINED), *tested = block_of(TRAINED, TESTED);
    sgm_tensor *fields[] = {sgm_block_field(trained, "inputs"), sgm_block_field(trained, "targets"),
                            sgm_block_field(trained, "lengths")};
    sgm_dataset *data =
        sgm_dataset_create_from("words", (const char *const[]){"inputs", "targets", "lengths"}, fields, 3);
    sgm_env *env = sgm_env_create("ctc", .seed = 1);
    sgm_trainer *trainer = sgm_trainer_create(env, "reader");
    sgm_trainer_set_network(
        trainer,
        "input(40, 8, lengths=lengths) + gru(24, bidirectional) + dense(7, time_distributed) + ctc(5)");
    sgm_trainer_set_data(trainer, sgm_minibatches(data, .size = 20));
    sgm_trainer_set_optimiser(trainer, sgm_adam(.learning_rate = 0.01));
    sgm_status status = sgm_trainer_run(trainer, .epochs = argc > 1 ? atoi(argv[1]) : 15);
    int right = status == SGM_OK ? read_words(trainer, tested) : 0;
    printf("%d of %d words are read without a mistake\n", right, TESTED);
    if (status != SGM_OK)
        fprintf(stderr, "ctc: %s\n", sgm_last_error());
    sgm_env_free(env);
    sgm_dataset_free(data);
    sgm_block_free(trained);
    sgm_block_free(tested);
    return status != SGM_OK || right < 80;
}
