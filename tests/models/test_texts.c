/* Texts through an encoder: what is computed for as many steps as they have is what all steps give; how
 * sentence-transformers makes one vector of many. */
#include "models/folders.h"

#include <sigma/models.h>
#include <sigma/sigma.h>

#define CONTEXT 24
#define FEATURES 16

/* A model for vectors with a vocabulary of words: the fixture has none. */
static const char *with_words(void)
{
    static const char words[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\nc\nd\ne\nf\ng\nh\n";
    const char *folder = copy_of("bert_embed");
    write_file(folder, "vocab.txt", words, sizeof words - 1);
    return folder;
}

/* Vectors of one text whose tokens are fed in all the steps that the network declares. */
static sgm_tensor *vector_of(sgm_trainer *trainer, const sgm_pretrained_tokenizer *tokenizer,
                             const char *text)
{
    sgm_tensor *tokens = sgm_pretrained_tokenizer_encode(tokenizer, text, strlen(text), .longest = CONTEXT);
    sgm_shape shape = sgm_shape_of(1, CONTEXT), one = sgm_shape_of(1);
    sgm_tensor *inputs = sgm_tensor_create(SGM_FLOAT32, &shape);
    sgm_tensor *lengths = sgm_tensor_create(SGM_FLOAT32, &one);
    int64_t count = sgm_tensor_shape(tokens)->dims[0];
    for (int64_t i = 0; i < count; i++)
        ((float *)sgm_tensor_data(inputs))[i] = (float)((const int64_t *)sgm_tensor_const_data(tokens))[i];
    *(float *)sgm_tensor_data(lengths) = (float)count;
    sgm_block *block = sgm_block_create(1);
    CHECK_OK(sgm_block_add(block, "inputs", inputs));
    CHECK_OK(sgm_block_add(block, "lengths", lengths));
    sgm_tensor *vector = sgm_trainer_predict_block(trainer, block, NULL);
    CHECK_OK(vector);
    sgm_block_free(block);
    sgm_tensor_free(tokens);
    return vector;
}

/* 70 texts of 0 to 23 words and one that is cut: groups of 32, 32, 4 and 2, of many lengths. */
TEST(texts_cost_what_they_are_long_and_give_the_same)
{
    enum { COUNT = 70 };
    static char texts[COUNT][200];
    const char *list[COUNT];
    for (int i = 0; i < COUNT; i++) {
        list[i] = texts[i];
        for (int k = 0; k < (i == 9 ? 60 : i * 7 % 24); k++)
            sprintf(texts[i] + 2 * k, "%c ", 'a' + (i + k) % 8);
    }
    const char *folder = with_words();
    sgm_env *env = sgm_env_create("texts");
    sgm_model *model = sgm_model_import(env, folder, .context = CONTEXT);
    CHECK_OK(model);
    sgm_trainer *trainer = sgm_model_trainer(model);
    sgm_pretrained_tokenizer *tokenizer = sgm_pretrained_tokenizer_open(folder);
    CHECK_OK(tokenizer);
    sgm_tensor *all = sgm_pretrained_predict_texts(trainer, tokenizer, list, COUNT, .longest = CONTEXT);
    CHECK_OK(all);
    CHECK(sgm_tensor_shape(all)->rank == 2 && sgm_tensor_shape(all)->dims[0] == COUNT);
    for (int64_t i = 0; i < COUNT; i++) {
        sgm_tensor *one = vector_of(trainer, tokenizer, list[i]);
        for (int64_t k = 0; k < FEATURES; k++)
            CHECK_NEAR(sgm_tensor_get(all, (int64_t[]){i, k}), sgm_tensor_get(one, (int64_t[]){0, k}), 1e-5);
        sgm_tensor_free(one);
    }
    sgm_tensor *by_steps = sgm_pretrained_predict_texts(trainer, tokenizer, list, COUNT);
    CHECK_OK(by_steps);
    for (int64_t i = 0; i < COUNT; i++)
        CHECK_NEAR(sgm_tensor_get(by_steps, (int64_t[]){i, 0}), sgm_tensor_get(all, (int64_t[]){i, 0}), 1e-6);
    sgm_tensor_free(by_steps);
    CHECK_ERROR(sgm_pretrained_predict_texts(NULL, tokenizer, list, COUNT),
                "needs a trainer, a tokenizer and texts");
    CHECK_ERROR(sgm_pretrained_predict_texts(trainer, tokenizer, list, 0, .longest = CONTEXT),
                "needs a trainer, a tokenizer and texts");
    CHECK_ERROR(
        sgm_pretrained_predict_texts(trainer, tokenizer, list, COUNT, .longest = CONTEXT, .no_cut = true),
        "text 9 (from 0): it has 62 tokens, and the network reads 24 at most");
    sgm_tensor *whole =
        sgm_pretrained_predict_texts(trainer, tokenizer, list, 9, .longest = CONTEXT, .no_cut = true);
    CHECK_OK(whole);
    for (int64_t k = 0; k < FEATURES; k++)
        CHECK_NEAR(sgm_tensor_get(whole, (int64_t[]){8, k}), sgm_tensor_get(all, (int64_t[]){8, k}), 1e-5);
    sgm_tensor_free(whole);
    sgm_tensor_free(all);
    sgm_pretrained_tokenizer_free(tokenizer);
    sgm_env_free(env);
}

static bool ends_third(void *user)
{
    return ++*(int *)user < 3;
}

/* What takes neither several inputs nor texts of other lengths names the functions that do. */
TEST(the_short_way_names_what_takes_texts)
{
    const char *folder = with_words();
    sgm_env *env = sgm_env_create("short");
    sgm_model *encoder = sgm_model_import(env, folder, .context = CONTEXT);
    sgm_model *decoder = sgm_model_import(env, copy_of("gpt2"));
    sgm_shape shape = sgm_shape_of(3);
    sgm_tensor *tokens = sgm_tensor_create(SGM_INT64, &shape);
    CHECK_OK(encoder);
    CHECK_OK(decoder);
    CHECK_ERROR(
        sgm_model_predict(encoder, tokens),
        "the network has 2 inputs: sgm_trainer_predict_block takes a block with a field for each, and "
        "texts go through sgm_pretrained_predict_texts");
    CHECK_ERROR(
        sgm_model_predict(decoder, tokens),
        "tokens of a text of any length are continued by sgm_generator_generate, or predicted as a block "
        "by sgm_trainer_predict_block");
    sgm_tensor_free(tokens);
    sgm_env_free(env);
}

/* Tokens in place of texts give the same; what is computed group by group may end between two. */
TEST(texts_may_be_tokens_and_end_between_groups)
{
    enum { COUNT = 40 };
    const char *texts[COUNT], *words[] = {"a b c", "d", "e f g h a b", "c c"}, *folder = with_words();
    sgm_tensor *tokens[COUNT];
    sgm_env *env = sgm_env_create("tokens");
    sgm_model *model = sgm_model_import(env, folder, .context = CONTEXT);
    CHECK_OK(model);
    sgm_trainer *trainer = sgm_model_trainer(model);
    sgm_pretrained_tokenizer *tokenizer = sgm_pretrained_tokenizer_open(folder);
    for (int i = 0; i < COUNT; i++) {
        texts[i] = words[i % 4];
        tokens[i] = sgm_pretrained_tokenizer_encode(tokenizer, texts[i], strlen(texts[i]));
    }
    const sgm_tensor *const *given = (const sgm_tensor *const *)tokens;
    sgm_tensor *all = sgm_pretrained_predict_texts(trainer, tokenizer, texts, COUNT, .longest = CONTEXT);
    sgm_tensor *same =
        sgm_pretrained_predict_texts(trainer, NULL, NULL, COUNT, .longest = CONTEXT, .tokens = given);
    CHECK_OK(all);
    CHECK_OK(same);
    CHECK_INT(
        memcmp(sgm_tensor_const_data(all), sgm_tensor_const_data(same), COUNT * FEATURES * sizeof(float)), 0);
    int groups = 0;
    CHECK_ERROR(sgm_pretrained_predict_texts(trainer, tokenizer, texts, COUNT, .longest = CONTEXT,
                                             .proceed = ends_third, .user = &groups),
                "`proceed` has ended the prediction of texts");
    CHECK_INT(sgm_last_status(), SGM_ERROR_INTERRUPTED);
    CHECK_INT(groups, 3);
    CHECK_ERROR(sgm_pretrained_predict_texts(trainer, NULL, NULL, COUNT, .longest = 4, .tokens = given),
                "the tokens of text 0 are to be int64 (count), 1 to 4 of them");
    for (int i = 0; i < COUNT; i++)
        sgm_tensor_free(tokens[i]);
    sgm_tensor_free(all);
    sgm_tensor_free(same);
    sgm_pretrained_tokenizer_free(tokenizer);
    sgm_env_free(env);
}

/* Something for each token is no prediction for a text. */
TEST(networks_that_tell_of_tokens_are_refused)
{
    const char *folder = copy_of("bert_fill");
    static const char words[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\n";
    write_file(folder, "vocab.txt", words, sizeof words - 1);
    sgm_env *env = sgm_env_create("tokens");
    sgm_model *model = sgm_model_import(env, folder);
    sgm_pretrained_tokenizer *tokenizer = sgm_pretrained_tokenizer_open(folder);
    const char *texts[] = {"a b a b a b", "a", "b"};
    CHECK_ERROR(
        sgm_pretrained_predict_texts(sgm_model_trainer(model), tokenizer, texts, 3, .longest = CONTEXT),
        "the network gives something for each token, not for a text");
    sgm_pretrained_tokenizer_free(tokenizer);
    sgm_env_free(env);
}

static void write_pooling(const char *folder, const char *text)
{
    char inner[300];
    snprintf(inner, sizeof inner, "%s/1_Pooling", folder);
    mkdir(inner, 0777);
    write_file(inner, "config.json", text, strlen(text));
}

static void check_network(const char *folder, const char *part)
{
    sgm_pretrained *model = sgm_pretrained_open(folder);
    CHECK_OK(model);
    if (strstr(sgm_pretrained_network(model), part) == NULL)
        TEST_FAIL("'%s' is not in '%s'", part, sgm_pretrained_network(model));
    sgm_pretrained_free(model);
}

TEST(poolings_are_those_of_sentence_transformers)
{
    const char *folder = copy_of("bert_embed");
    check_network(folder, "+ global_average_pooling(steps)");
    write_pooling(folder, "{\"pooling_mode_mean_tokens\": true, \"pooling_mode_cls_token\": false}");
    check_network(folder, "+ global_average_pooling(steps)");
    write_pooling(folder, "{\"pooling_mode_mean_tokens\": false, \"pooling_mode_cls_token\": true}");
    check_network(folder, "name=hidden_norm#)) + select");
    write_pooling(folder, "{\"pooling_mode\": \"max\"}");
    check_network(folder, "+ global_max_pooling(steps)");
    write_pooling(folder, "{\"pooling_mode_mean_tokens\": true, \"pooling_mode_max_tokens\": true}");
    CHECK_ERROR(sgm_pretrained_open(folder), "1_Pooling/config.json': one of mean, cls and max is known");
    write_pooling(folder, "{\"pooling_mode_lasttoken\": true}");
    CHECK_ERROR(sgm_pretrained_open(folder), "one of mean, cls and max is known");
    write_pooling(folder, "{\"pooling_mode_cls_token\": true, \"pooling_mode_mean_sqrt_len_tokens\": true}");
    CHECK_ERROR(sgm_pretrained_open(folder), "one of mean, cls and max is known");
    write_pooling(folder, "{\"pooling_mode\": \"cls\"}");
    const char *elsewhere = "[{\"type\": \"a.Pooling\", \"path\": \"2_Pooling\"}]";
    write_file(folder, "modules.json", elsewhere, strlen(elsewhere));
    CHECK_ERROR(sgm_pretrained_open(folder), "modules.json': the module Pooling is in '2_Pooling'");
    write_file(folder, "modules.json", "{}", 2);
    CHECK_ERROR(sgm_pretrained_open(folder), "modules.json': a list is wanted");
    write_file(folder, "modules.json", "[{\"type\": \"a.Dense\"}]", 21);
    CHECK_ERROR(sgm_pretrained_open(folder), "modules.json': the module 'Dense' is not known; these are:");
    write_file(folder, "modules.json", "[{\"type\": \"a.Normalize\"}]", 25);
    write_file(folder, "sentence_bert_config.json", "{\"max_seq_length\": 10}", 22);
    check_network(folder, "+ select + unit_norm");
    check_network(folder, "input(10, lengths=lengths)");
}

/* What a run keeps has the folder in the folder, too, and no link out of it is followed. */
TEST(the_pooling_goes_along)
{
    const char *folder = copy_of("bert_embed"), *run = new_folder(), *written = new_folder();
    write_pooling(folder, "{\"pooling_mode\": \"max\"}");
    write_file(folder, "config_sentence_transformers.json", "{\"prompts\": {}}", 15);
    sgm_pretrained *model = sgm_pretrained_open(folder);
    sgm_env *env = sgm_env_create("pooling");
    sgm_trainer *trainer = sgm_trainer_create(env, "pooling");
    CHECK_OK(sgm_pretrained_load(model, trainer));
    CHECK_OK(sgm_pretrained_keep(model, run));
    sgm_pretrained_free(model);
    model = sgm_pretrained_open(run);
    CHECK_OK(model);
    CHECK_OK(sgm_pretrained_export(model, trainer, written));
    sgm_pretrained_free(model);
    check_network(written, "+ global_max_pooling(steps)");
    size_t size;
    char *prompts = read_file(written, "config_sentence_transformers.json", &size);
    CHECK_STR(prompts, "{\"prompts\": {}}");
    free(prompts);
    sgm_env_free(env);
    const char *other = copy_of("bert_embed");
    char link[300], outside[300];
    snprintf(link, sizeof link, "%s/1_Pooling", other);
    snprintf(outside, sizeof outside, "%s/1_Pooling", folder);
    CHECK(symlink(outside, link) == 0);
    CHECK_ERROR(sgm_pretrained_open(other), "1_Pooling/config.json' is a link that leads out of the folder");
}
