/* Learns a text letter by letter and goes on with it: characters [FILE [EPOCHS [TEMPERATURE]]]
 *
 * A low temperature says what is most likely, a high one dares more. Without a file: a nursery rhyme. */
#include <sigma/sigma.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIME 32
#define MAXIMUM_BYTES 200000
static char text[MAXIMUM_BYTES + 1] =
    "row, row, row your boat, gently down the stream.\nmerrily, merrily, merrily, merrily, "
    "life is but a dream.\n";
static int number_of[256], letter_of[256], letters;

/* Examples of TIME letters each, and the letters that come after them. */
static sgm_dataset *make_data(int64_t length)
{
    int64_t step = length > 4 * TIME * TIME ? TIME / 2 : 1, examples = (length - TIME - 1) / step + 1;
    sgm_shape shape = sgm_shape_of(examples, TIME);
    sgm_tensor *now = sgm_tensor_create(SGM_FLOAT32, &shape), *next = sgm_tensor_create(SGM_FLOAT32, &shape);
    for (int64_t i = 0; i < examples && now != NULL && next != NULL; i++)
        for (int64_t t = 0; t < TIME; t++) {
            sgm_tensor_set(now, (const int64_t[]){i, t}, number_of[(unsigned char)text[i * step + t]]);
            sgm_tensor_set(next, (const int64_t[]){i, t}, number_of[(unsigned char)text[i * step + t + 1]]);
        }
    sgm_dataset *data = sgm_dataset_create_from("text", (const char *const[]){"inputs", "targets"},
                                                (sgm_tensor *const[]){now, next}, 2);
    sgm_tensor_free(now);
    sgm_tensor_free(next);
    return data;
}

/* Each letter as it is drawn. */
static bool say(void *user, int64_t letter)
{
    (void)user;
    putchar(letter_of[letter]);
    return fflush(stdout) == 0;
}

/* Reads the beginning of the text and goes on: the network keeps what it has read, and reads a letter at a
 * time. */
static sgm_status go_on(sgm_trainer *trainer, double temperature)
{
    int64_t begin[TIME];
    for (int t = 0; t < TIME; t++)
        begin[t] = number_of[(unsigned char)text[t]];
    sgm_generator *generator = sgm_generator_create(trainer);
    sgm_status status = generator != NULL ? SGM_OK : sgm_last_status();
    printf("%.*s|", TIME, text);
    if (generator != NULL)
        status = sgm_generator_generate(generator, begin, TIME, NULL, 200,
                                        SGM_GENERATION(.seed = 1, .temperature = temperature, .told = say));
    putchar('\n');
    sgm_generator_free(generator);
    return status;
}

int main(int argc, char **argv)
{
    FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
    if (argc > 1 && file == NULL)
        return fprintf(stderr, "characters: %s cannot be read\n", argv[1]), 1;
    if (file != NULL)
        text[fread(text, 1, MAXIMUM_BYTES, file)] = '\0', fclose(file);
    int64_t length = (int64_t)strlen(text), epochs = argc > 2 ? atoi(argv[2]) : 20;
    if (length <= TIME)
        return fprintf(stderr, "characters: the text needs more than %d letters\n", TIME), 1;
    memset(number_of, -1, sizeof number_of);
    for (const char *c = text; *c != '\0'; c++)
        if (number_of[(unsigned char)*c] < 0) {
            letter_of[letters] = (unsigned char)*c;
            number_of[(unsigned char)*c] = letters++;
        }
    char network[200];
    snprintf(network, sizeof network,
             "input(%d) + embedding(%d, 32) + lstm(96, forget_bias=1) + dense(%d, time_distributed)"
             " + softmax_cross_entropy",
             TIME, letters, letters);
    sgm_dataset *data = make_data(length);
    sgm_env *env = sgm_env_create("characters", .seed = 1);
    sgm_env_add_monitor(env, sgm_terminal_monitor());
    sgm_trainer *trainer = sgm_trainer_create(env, "characters");
    sgm_trainer_set_network(trainer, network);
    sgm_trainer_set_data(trainer, sgm_minibatches(data, .size = 16));
    sgm_trainer_set_optimiser(trainer, sgm_adam(.learning_rate = 0.005));
    sgm_status status = sgm_trainer_run(trainer, .epochs = epochs);
    if (status == SGM_OK)
        status = go_on(trainer, argc > 3 ? atof(argv[3]) : 0.5);
    if (status != SGM_OK)
        fprintf(stderr, "characters: %s\n", sgm_last_error());
    sgm_env_free(env);
    sgm_dataset_free(data);
    return status != SGM_OK;
}
