/* Texts that are read side by side become what each becomes alone. */
#include "test.h"

#include <sigma/sigma.h>

#include <math.h>

#define TOKENS 7
#define TEXTS 5
#define LONGEST 60
#define COUNT 30

/* Lengths of what they begin with, and how many tokens may follow. The network has 48 places. */
static const size_t begins[TEXTS] = {3, 40, 1, 60, 12}, counts[TEXTS] = {30, 9, 30, 2, 0};

/* A text ends when it has said token 6 so many times. */
typedef struct listener {
    int64_t said[COUNT];
    size_t count;
    int patience;
} listener;

static bool listen(void *user, int64_t token)
{
    listener *l = user;
    l->said[l->count++] = token;
    return token != 6 || --l->patience > 0;
}

static void begin_with(int64_t tokens[LONGEST], size_t text)
{
    for (int64_t i = 0; i < LONGEST; i++)
        tokens[i] = (i * i + (int64_t)text * i + 3) % TOKENS;
}

static void check_alone(sgm_generator *alone, size_t text, const sgm_continuation *together,
                        const listener *heard, sgm_generation_options options)
{
    int64_t begin[LONGEST], tokens[COUNT];
    listener l = {.patience = (int)text + 1};
    begin_with(begin, text);
    options.user = &l;
    CHECK_OK(sgm_generator_reset(alone));
    CHECK_OK(sgm_generator_generate(alone, begin, begins[text], tokens, counts[text], &options));
    CHECK_INT(together->count, l.count);
    CHECK_INT(heard->count, l.count);
    for (size_t i = 0; i < l.count; i++) {
        CHECK_INT(heard->said[i], tokens[i]);
        CHECK_INT(together->tokens[i], tokens[i]);
    }
}

static void check_texts(const char *network, int64_t sequences, sgm_generation_options options)
{
    sgm_env *env = sgm_env_create("texts", .seed = 5, .precision = SGM_FLOAT64, .handler = "cpu");
    sgm_trainer *trainer = sgm_trainer_create(env, "texts");
    sgm_trainer_set_network(trainer, network);
    sgm_trainer_add_initialiser(trainer, "*.*", sgm_gaussian(.standard_deviation = 0.5));
    CHECK_OK(sgm_trainer_prepare(trainer));
    sgm_generator *all = sgm_generator_create(trainer, .sequences = sequences);
    sgm_generator *alone = sgm_generator_create(trainer);
    CHECK_OK(all);
    CHECK_OK(alone);
    int64_t begin[TEXTS][LONGEST], tokens[TEXTS][COUNT];
    listener heard[TEXTS];
    sgm_continuation texts[TEXTS];
    for (size_t i = 0; i < TEXTS; i++) {
        begin_with(begin[i], i);
        heard[i] = (listener){.patience = (int)i + 1};
        texts[i] = (sgm_continuation){.begin = begin[i],
                                      .begin_count = begins[i],
                                      .tokens = tokens[i],
                                      .count = counts[i],
                                      .user = &heard[i]};
    }
    options.told = listen;
    CHECK_OK(sgm_generator_generate_all(all, texts, TEXTS, &options));
    for (size_t i = 0; i < TEXTS; i++)
        check_alone(alone, i, &texts[i], &heard[i], options);
    sgm_generator_free(all);
    sgm_generator_free(alone);
    sgm_env_free(env);
}

TEST(texts_side_by_side_become_what_each_becomes_alone)
{
    static const char *const networks[] = {
        "input(48) + embedding(7, 8) + transformer(4, causal, key_heads=2, rotary) + dense(7, "
        "time_distributed) + softmax_cross_entropy",
        "input(48) + embedding(7, 8) + positions + transformer(2, causal) + dense(7, time_distributed) + "
        "softmax_cross_entropy",
        "input(48) + embedding(7, 6) + lstm(5) + dense(7, time_distributed) + softmax_cross_entropy",
    };
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
        for (int64_t sequences = 2; sequences < 8; sequences += 2) {
            check_texts(networks[i], sequences, *SGM_GENERATION(.seed = 3));
            check_texts(networks[i], sequences, *SGM_GENERATION(.greedy = true, .repetition_penalty = 1.2));
        }
}

/* What beams find is at least as likely as the greedy text; with a list of texts each is found by itself, and
 * told when it is known. A recurrent network has no places. */
static void check_beams(const char *network)
{
    static const int64_t begin[] = {1, 2, 3, 4, 5, 6, 0, 1};
    sgm_env *env = sgm_env_create("beams", .seed = 5, .precision = SGM_FLOAT64, .handler = "cpu");
    sgm_trainer *trainer = sgm_trainer_create(env, "beams");
    sgm_trainer_set_network(trainer, network);
    sgm_trainer_add_initialiser(trainer, "*.*", sgm_gaussian(.standard_deviation = 0.5));
    CHECK_OK(sgm_trainer_prepare(trainer));
    sgm_generator *all = sgm_generator_create(trainer, .sequences = 7 * 7 * 7);
    sgm_generator *alone = sgm_generator_create(trainer);
    CHECK_OK(all);
    CHECK_OK(alone);
    int64_t tokens[2][3], best[3] = {0};
    listener heard[2] = {{.patience = 9}, {.patience = 9}};
    sgm_continuation texts[2];
    for (size_t i = 0; i < 2; i++)
        texts[i] = (sgm_continuation){
            .begin = begin + i, .begin_count = 7, .tokens = tokens[i], .count = 3, .user = &heard[i]};
    CHECK_OK(sgm_generator_generate_all(all, texts, 2, SGM_GENERATION(.beams = 7 * 7 * 7, .told = listen)));
    double most = 0;
    for (int64_t i = 0; i < 7 * 7 * 7; i++) {
        const int64_t text[] = {i / 49, i / 7 % 7, i % 7};
        const double *probabilities;
        double chance = 1;
        CHECK_OK(sgm_generator_reset(alone));
        CHECK_OK(sgm_generator_generate(alone, begin + 1, 6, NULL, 0, NULL));
        CHECK_OK(sgm_generator_read(alone, begin[7], &probabilities));
        for (int k = 0; k < 3; k++) {
            chance *= probabilities[text[k]];
            CHECK_OK(sgm_generator_read(alone, text[k], &probabilities));
        }
        if (chance > most)
            memcpy(best, text, sizeof best);
        most = chance > most ? chance : most;
    }
    CHECK_INT(texts[1].count, 3);
    CHECK_INT(heard[1].count, 3);
    CHECK_INT(memcmp(heard[1].said, best, sizeof best), 0);
    CHECK_INT(memcmp(tokens[1], best, sizeof best), 0);
    sgm_generator_free(all);
    sgm_generator_free(alone);
    sgm_env_free(env);
}

TEST(as_many_beams_as_texts_find_the_likeliest)
{
    check_beams("input(16) + embedding(7, 8) + transformer(4, causal, key_heads=2, rotary) + dense(7, "
                "time_distributed) + softmax_cross_entropy");
    check_beams("input(16) + embedding(7, 6) + lstm(5) + dense(7, time_distributed) + softmax_cross_entropy");
}

TEST(a_text_ends_with_a_token_that_ends_it)
{
    sgm_env *env = sgm_env_create("ends", .seed = 5, .handler = "cpu");
    sgm_trainer *trainer = sgm_trainer_create(env, "ends");
    sgm_trainer_set_network(trainer, "input(8) + embedding(7, 6) + lstm(5) + dense(7, time_distributed) + "
                                     "softmax_cross_entropy");
    sgm_generator *generator = sgm_generator_create(trainer);
    CHECK_OK(generator);
    int64_t said[40];
    static const int64_t begin[] = {1, 2}, ends[] = {3, 6};
    CHECK_OK(sgm_generator_generate(generator, begin, 2, said, 40,
                                    SGM_GENERATION(.seed = 1, .ends = ends, .end_count = 2)));
    size_t count = 0;
    while (said[count] != 3 && said[count] != 6)
        CHECK(said[count++] >= 0);
    CHECK(count < 39);
    for (count++; count < 40; count++)
        CHECK_INT(said[count], -1);
    sgm_generator_free(generator);
    sgm_env_free(env);
}

/* Asked so many times, and says no at the last of them; 0: never. */
typedef struct asked {
    int times, last;
    size_t told; /* tokens */
} asked;

static bool goes_on(void *user)
{
    asked *a = user;
    return ++a->times != a->last;
}

static bool count_tokens(void *user, int64_t token)
{
    ((asked *)user)->told++;
    return token >= 0;
}

static sgm_status generate_asked(sgm_generator *g, asked *a, int64_t said[5])
{
    int64_t begin[100];
    for (int64_t i = 0; i < 100; i++)
        begin[i] = i * i % 7;
    CHECK_OK(sgm_generator_reset(g));
    return sgm_generator_generate(
        g, begin, 100, said, 5,
        SGM_GENERATION(.seed = 1, .proceed = goes_on, .told = count_tokens, .user = a));
}

/* 100 tokens are read as 3 pieces of 32 and 4 single ones; of 5 that are drawn 4 are read. */
TEST(proceed_is_called_between_pieces_and_between_tokens)
{
    sgm_env *env = sgm_env_create("proceed", .seed = 5, .handler = "cpu");
    sgm_trainer *trainer = sgm_trainer_create(env, "proceed");
    sgm_trainer_set_network(trainer, "input(128) + embedding(7, 8) + transformer(4, causal, rotary) + "
                                     "dense(7, time_distributed) + softmax_cross_entropy");
    sgm_generator *generator = sgm_generator_create(trainer);
    CHECK_OK(generator);
    int64_t whole[5], said[5];
    asked all = {0}, early = {.last = 2}, late = {.last = 10};
    CHECK_OK(generate_asked(generator, &all, whole));
    CHECK_INT(all.times, 3 + 4 + 4);
    CHECK_ERROR(generate_asked(generator, &early, said), "`proceed` has ended the generation");
    CHECK_INT(sgm_last_status(), SGM_ERROR_INTERRUPTED);
    CHECK_INT(early.times, 2);
    CHECK_INT(early.told, 0);
    CHECK_INT(said[0], -1);
    CHECK_ERROR(generate_asked(generator, &late, said), "`proceed` has ended the generation");
    CHECK_INT(late.told, 3);
    CHECK_INT(memcmp(said, whole, 3 * sizeof *said), 0);
    CHECK_INT(said[3], -1);
    all.times = 0;
    CHECK_OK(generate_asked(generator, &all, said));
    CHECK_INT(memcmp(said, whole, sizeof said), 0);
    CHECK_OK(sgm_generator_reset(generator));
    CHECK_OK(sgm_generator_read(generator, 1, NULL)); /* what ended one call asks no more */
    CHECK_INT(all.times, 3 + 4 + 4);
    sgm_generator_free(generator);
    sgm_env_free(env);
}

/* Side by side it is called once for all, and a text's seed is added to that of the options. */
TEST(texts_have_seeds_of_their_own)
{
    sgm_env *env = sgm_env_create("seeds", .seed = 5, .handler = "cpu");
    sgm_trainer *trainer = sgm_trainer_create(env, "seeds");
    sgm_trainer_set_network(trainer, "input(8) + embedding(7, 6) + lstm(5) + dense(7, time_distributed) + "
                                     "softmax_cross_entropy");
    sgm_generator *together = sgm_generator_create(trainer, .sequences = 2);
    sgm_generator *alone = sgm_generator_create(trainer);
    CHECK_OK(together);
    CHECK_OK(alone);
    const int64_t begin[] = {1, 2, 3};
    int64_t tokens[2][20], expected[20];
    sgm_continuation texts[2];
    asked a = {0};
    for (size_t i = 0; i < 2; i++)
        texts[i] = (sgm_continuation){
            .begin = begin, .begin_count = 3, .tokens = tokens[i], .count = 20, .seed = 4 * i};
    CHECK_OK(sgm_generator_generate_all(together, texts, 2,
                                        SGM_GENERATION(.seed = 3, .proceed = goes_on, .user = &a)));
    CHECK_INT(a.times, 3 + 19);
    for (uint64_t i = 0; i < 2; i++) {
        CHECK_OK(sgm_generator_reset(alone));
        CHECK_OK(sgm_generator_generate(alone, begin, 3, expected, 20, SGM_GENERATION(.seed = 3 + 4 * i)));
        CHECK_INT(memcmp(tokens[i], expected, sizeof expected), 0);
    }
    CHECK(memcmp(tokens[0], tokens[1], sizeof expected) != 0);
    a = (asked){.last = 5};
    texts[0].count = texts[1].count = 20;
    CHECK_ERROR(sgm_generator_generate_all(together, texts, 2,
                                           SGM_GENERATION(.seed = 3, .proceed = goes_on, .user = &a)),
                "`proceed` has ended the generation");
    CHECK_INT(texts[1].count, 2);
    sgm_generator_free(together);
    sgm_generator_free(alone);
    sgm_env_free(env);
}

TEST(mistakes_name_the_text)
{
    sgm_env *env = sgm_env_create("texts", .seed = 5, .handler = "cpu");
    sgm_trainer *trainer = sgm_trainer_create(env, "texts");
    sgm_trainer_set_network(trainer, "input(8) + embedding(7, 6) + lstm(5) + dense(7, time_distributed) + "
                                     "softmax_cross_entropy");
    sgm_generator *generator = sgm_generator_create(trainer, .sequences = 2);
    CHECK_OK(generator);
    const int64_t tokens[] = {1, 7};
    sgm_continuation texts[] = {{.begin = tokens, .begin_count = 1, .count = 1}, {.count = 1}};
    CHECK_ERROR(sgm_generator_generate_all(generator, texts, 2, NULL),
                "text 1: at least 1 token is wanted to begin with");
    texts[1] = (sgm_continuation){.begin = tokens, .begin_count = 2, .count = 1};
    CHECK_ERROR(sgm_generator_generate_all(generator, texts, 2, NULL), "text 1: 7 is no token: there are 7");
    CHECK_ERROR(sgm_generator_generate_all(NULL, texts, 2, NULL), "wants a generator and texts, got NULL");
    CHECK_ERROR(sgm_generator_read(generator, 1, NULL),
                "sgm_generator_read is for a generator of one sequence; this one reads 2 side by side");
    CHECK_ERROR(sgm_generator_generate(generator, tokens, 1, NULL, 1, NULL),
                "sgm_generator_generate is for a generator of one sequence");
    CHECK_OK(sgm_generator_generate_all(generator, NULL, 0, NULL));
    CHECK_ERROR(sgm_generator_generate_all(generator, texts, 1, SGM_GENERATION(.beams = -1)),
                "at least 1 beam, not -1");
    CHECK_ERROR(sgm_generator_generate(generator, tokens, 1, NULL, 1, SGM_GENERATION(.beams = 3)),
                "3 beams want a generator of as many sequences (.sequences), this one has 2");
    CHECK_ERROR(sgm_generator_generate(generator, tokens, 1, NULL, 1, SGM_GENERATION(.beams = 2, .top_k = 2)),
                "leave out temperature, top_k, top_p and min_p");
    CHECK_ERROR(sgm_generator_generate(generator, tokens, 1, NULL, 1,
                                       SGM_GENERATION(.beams = 2, .length_penalty = NAN)),
                "the length_penalty is a finite number, not nan");
    static const int64_t ends[] = {0, 1, 2, 3, 4, 5, 6, 9};
    CHECK_ERROR(sgm_generator_generate(generator, tokens, 1, NULL, 1,
                                       SGM_GENERATION(.beams = 2, .ends = ends, .end_count = 7)),
                "7 of 7 tokens end a text");
    CHECK_ERROR(sgm_generator_generate(generator, tokens, 1, NULL, 1,
                                       SGM_GENERATION(.beams = 2, .ends = ends, .end_count = 8)),
                "9 is no token");
    CHECK_ERROR(
        sgm_generator_generate(generator, tokens, 1, NULL, 1, SGM_GENERATION(.beams = 2, .end_count = 1)),
        "1 tokens that end a text are wanted, got NULL");
    sgm_generator_free(generator);
    CHECK_ERROR(sgm_generator_create(trainer, .sequences = -1), "1 to 4096 sequences side by side, not -1");
    sgm_env_free(env);
}
