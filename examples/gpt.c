/* A small GPT: learns a text letter by letter with transformer blocks, then goes on with it.
 *
 *     gpt [FILE [EPOCHS [TEMPERATURE]]]        (without a file: a song, ten seconds)
 *
 * Each letter sees those before it (`causal`). What comes next is drawn from what the network holds likely;
 * it is read one letter at a time then, and the keys and values of those before are kept. */
#include <sigma/sigma.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAXIMUM_BYTES 200000
#define NETWORK                                                                                              \
    "input(32) + embedding(256, 48) + positions + 2 * transformer(4, causal) + layer_norm"                   \
    " + dense(256, time_distributed) + softmax_cross_entropy"

static char text[MAXIMUM_BYTES + 1] =
    "the wheels on the bus go round and round, round and round, round and round.\n"
    "the wheels on the bus go round and round, all through the town.\n"
    "the wipers on the bus go swish, swish, swish, swish, swish, swish, swish, swish, swish.\n"
    "the wipers on the bus go swish, swish, swish, all through the town.\n";

/* Each letter as it is drawn. */
static bool say(void *user, int64_t letter)
{
    (void)user;
    putchar((int)letter);
    return fflush(stdout) == 0;
}

static sgm_status go_on(sgm_trainer *trainer, const sgm_tokenizer *bytes, double temperature)
{
    static const char begin[] = "the wheels on ";
    sgm_tensor *prompt = sgm_tokenizer_encode(bytes, begin, strlen(begin));
    sgm_generator *generator = prompt != NULL ? sgm_generator_create(trainer) : NULL;
    sgm_status status = generator != NULL ? SGM_OK : sgm_last_status();
    printf("\n%s|", begin);
    if (generator != NULL)
        status = sgm_generator_generate(generator, sgm_tensor_const_data(prompt), strlen(begin), NULL, 200,
                                        SGM_GENERATION(.seed = 1, .temperature = temperature, .told = say));
    printf("\n\n");
    sgm_generator_free(generator);
    sgm_tensor_free(prompt);
    return status;
}

int main(int argc, char **argv)
{
    FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
    if (argc > 1 && file == NULL)
        return fprintf(stderr, "gpt: %s cannot be read\n", argv[1]), 1;
    if (file != NULL)
        text[fread(text, 1, MAXIMUM_BYTES, file)] = '\0', fclose(file);
    size_t length = strlen(text);
    sgm_tokenizer *bytes = sgm_byte_tokenizer();
    sgm_dataset *data = sgm_token_dataset("text", bytes, text, length,
                                          SGM_TOKENS(.window = 32, .step = length > 5000 ? 16 : 1));
    sgm_env *env = sgm_env_create("gpt", .seed = 1);
    sgm_env_add_monitor(env, sgm_terminal_monitor());
    sgm_trainer *trainer = sgm_trainer_create(env, "gpt");
    sgm_trainer_set_network(trainer, NETWORK);
    sgm_trainer_set_data(trainer, sgm_minibatches(data, .size = 16));
    sgm_trainer_set_optimiser(
        trainer, sgm_adam(.learning_rate = 0.003, .clip_norm = 1, .schedule = {.kind = SGM_COSINE}));
    sgm_status status = sgm_trainer_run(trainer, .epochs = argc > 2 ? atoi(argv[2]) : 12);
    if (status == SGM_OK)
        status = go_on(trainer, bytes, argc > 3 ? atof(argv[3]) : 0.5);

    sgm_metrics metrics = {0};
    sgm_iterator *all = sgm_by_block(data);
    if (status == SGM_OK && (status = sgm_trainer_evaluate(trainer, all, &metrics)) == SGM_OK)
        printf("loss %.3f nats a letter, %.0f %% of the letters are foreseen\n", metrics.loss,
               100 * metrics.accuracy);
    else
        fprintf(stderr, "gpt: %s\n", sgm_last_error());
    sgm_iterator_free(all);
    sgm_env_free(env);
    sgm_dataset_free(data);
    sgm_tokenizer_free(bytes);
    return status != SGM_OK || (argc == 1 && metrics.loss > 0.6);
}
