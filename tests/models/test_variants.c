/* Settings that differ from those of the fixtures, against what transformers computes with them
 * (variants.py); and those that no network here has, which are refused by their names. */
#include "models/folders.h"

#include <math.h>
#include <sigma/models.h>
#include <sigma/sigma.h>

#define TIME 12

static sgm_bundle *load(const char *path)
{
    sgm_bundle *bundle = sgm_bundle_load(path);
    CHECK_OK(bundle);
    return bundle;
}

/* A text that belongs to a variant; NULL: it has none of this kind. */
static const char *text_of(const sgm_bundle *variants, const char *name, const char *kind)
{
    char key[100];
    snprintf(key, sizeof key, "%s.%s", name, kind);
    return sgm_bundle_get_text(variants, key);
}

/* Bytes of pictures as inputs are; tokens and lengths as they are. */
static sgm_tensor *input_of(sgm_tensor *given, bool pictures)
{
    sgm_tensor *input = sgm_tensor_cast(given, SGM_FLOAT32);
    CHECK_OK(input);
    float *numbers = sgm_tensor_data(input);
    const int64_t count = sgm_shape_elements(sgm_tensor_shape(input));
    for (int64_t i = 0; i < count && pictures; i++)
        numbers[i] = numbers[i] / 127.5F - 1;
    return input;
}

/* What the model of a folder gives for the inputs of its fixture. */
static sgm_tensor *predict(sgm_env *env, const char *folder, const sgm_bundle *expected)
{
    const bool pictures = sgm_bundle_has(expected, "pictures");
    sgm_tensor *given = sgm_bundle_get(expected, pictures ? "pictures" : "inputs"),
               *lengths = sgm_bundle_has(expected, "lengths") ? sgm_bundle_get(expected, "lengths") : NULL;
    sgm_block *block = sgm_block_create(sgm_tensor_shape(given)->dims[0]);
    CHECK_OK(sgm_block_add(block, "inputs", input_of(given, pictures)));
    if (lengths != NULL)
        CHECK_OK(sgm_block_add(block, "lengths", input_of(lengths, false)));
    sgm_model *model = sgm_model_import(env, folder, .context = pictures ? 0 : TIME);
    CHECK_OK(model);
    sgm_tensor *output = sgm_trainer_predict_block(sgm_model_trainer(model), block, NULL);
    CHECK_OK(output);
    sgm_block_free(block);
    return output;
}

/* Whether a row of scores counts: the steps behind a text's end do not. */
static bool counts(const sgm_bundle *expected, const sgm_shape *shape, int64_t row)
{
    if (shape->rank < 3 || !sgm_bundle_has(expected, "lengths"))
        return true;
    const int64_t *lengths = sgm_tensor_const_data(sgm_bundle_get(expected, "lengths"));
    return row % TIME < lengths[row / TIME];
}

static void compare(const sgm_bundle *variants, const char *name)
{
    const char *fixture = text_of(variants, name, "fixture"), *new = text_of(variants, name, "new");
    const bool log_of = text_of(variants, name, "log") != NULL;
    const char *folder = copy_of(fixture);
    char path[200];
    snprintf(path, sizeof path, FIXTURES "%s/expected.safetensors", fixture);
    replace(folder, "config.json", text_of(variants, name, "old"), new);
    sgm_bundle *expected = load(path);
    sgm_env *env = sgm_env_create("variants");
    sgm_tensor *given = predict(env, folder, expected), *wanted = sgm_bundle_get(variants, name);
    const sgm_shape *shape = sgm_tensor_shape(wanted);
    CHECK(sgm_shape_equal(sgm_tensor_shape(given), shape));
    const float *own = sgm_tensor_const_data(given), *theirs = sgm_tensor_const_data(wanted);
    const int64_t columns = shape->dims[shape->rank - 1], count = sgm_shape_elements(shape);
    for (int64_t i = 0; i < count; i++) {
        const double score = log_of ? log(own[i]) : own[i];
        if (counts(expected, shape, i / columns) && !test_near(score, theirs[i], 1e-5))
            TEST_FAIL("%s with '%s' for '%s': score %lld is %.9g, transformers has %.9g", fixture, new,
                      text_of(variants, name, "old"), (long long)i, score, (double)theirs[i]);
    }
    sgm_tensor_free(given);
    sgm_env_free(env);
    sgm_bundle_free(expected);
}

TEST(settings_change_what_they_change_in_transformers)
{
    sgm_bundle *variants = load("tests/models/data/variants.safetensors");
    CHECK(sgm_bundle_count(variants) > 20);
    for (size_t i = 0; i < sgm_bundle_count(variants); i++)
        compare(variants, sgm_bundle_name_at(variants, i));
    sgm_bundle_free(variants);
}

/* A copy of a fixture whose config.json has one more setting. */
static const char *folder_with(const char *fixture, const char *setting)
{
    const char *folder = copy_of(fixture);
    char text[400];
    snprintf(text, sizeof text, "%s, \"model_type\"", setting);
    replace(folder, "config.json", "\"model_type\"", text);
    return folder;
}

static void refuse(const char *fixture, const char *setting, const char *message)
{
    CHECK_ERROR(sgm_pretrained_open(folder_with(fixture, setting)), message);
}

TEST(settings_of_other_networks_are_refused_by_name)
{
    refuse("llama", "\"is_causal\": false", "'is_causal' is false; models are only read where it is true");
    refuse("gpt2", "\"is_causal\": false", "'is_causal' is false");
    refuse("qwen3", "\"partial_rotary_factor\": 0.5",
           "'partial_rotary_factor' is 0.5; models are only read where it is 1");
    static const struct {
        const char *fixture, *old, *new, *message;
    } flags[] = {{"gpt2", "\"scale_attn_by_inverse_layer_idx\": false",
                  "\"scale_attn_by_inverse_layer_idx\": true", "'scale_attn_by_inverse_layer_idx' is true"},
                 {"gpt2", "\"add_cross_attention\": false", "\"add_cross_attention\": true",
                  "'add_cross_attention' is true"},
                 {"bert_fill", "\"is_decoder\": false", "\"is_decoder\": true", "'is_decoder' is true"},
                 {"bert_fill", "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false",
                  "'tie_word_embeddings' is false"},
                 {"vit", "\"qkv_bias\": true", "\"qkv_bias\": false", "'qkv_bias' is false"}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        const char *changed = copy_of(flags[i].fixture);
        replace(changed, "config.json", flags[i].old, flags[i].new);
        CHECK_ERROR(sgm_pretrained_open(changed), flags[i].message);
    }
    refuse("bert_classify", "\"problem_type\": \"ranking\"",
           "'problem_type' is \"ranking\"; these are known: single_label_classification, "
           "multi_label_classification, regression");
    const char *folder = copy_of("llama");
    replace(folder, "config.json", "\"rope_theta\"", "\"partial_rotary_factor\": 0.5, \"rope_theta\"");
    CHECK_ERROR(sgm_pretrained_open(folder), "'rope_parameters.partial_rotary_factor' is 0.5");
    folder = copy_of("roberta_fill");
    replace(folder, "config.json", "\"pad_token_id\": 1", "\"pad_token_id\": -1");
    CHECK_ERROR(sgm_pretrained_open(folder), "'pad_token_id' is -1; a whole number from 0 to");
}

/* One output without a type is a number, as transformers takes it. */
TEST(one_class_is_a_number)
{
    static const char *const names[] = {"bert_classify", "vit"};
    for (size_t i = 0; i < 2; i++) {
        sgm_pretrained *model = sgm_pretrained_open(copy_of(names[i]), .classes = 1);
        CHECK_OK(model);
        CHECK(strstr(sgm_pretrained_network(model), " + mean_squared") != NULL);
        sgm_pretrained_free(model);
    }
}

/* A key that is missing means what transformers takes it for, which is not what null means. */
TEST(a_window_that_is_not_named_is_the_usual_one)
{
    const struct {
        const char *fixture, *old, *new;
        int64_t longest;
    } cases[] = {{"mistral", "\"sliding_window\": 16", "\"window\": 16", 4096},
                 {"mistral", "\"sliding_window\": 16", "\"sliding_window\": null", 9000},
                 {"llama", "\"model_type\"", "\"use_sliding_window\": true, \"model_type\"", 9000},
                 {"qwen2", "\"use_sliding_window\": false", "\"use_sliding_window\": true", 4096}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *folder = copy_of(cases[i].fixture);
        replace(folder, "config.json", cases[i].old, cases[i].new);
        replace(folder, "config.json", "\"max_position_embeddings\": 64",
                "\"max_position_embeddings\": 9000");
        if (strcmp(cases[i].fixture, "qwen2") == 0)
            replace(folder, "config.json", "\"sliding_window\": null", "\"window\": null");
        sgm_pretrained *model = sgm_pretrained_open(folder);
        CHECK_OK(model);
        CHECK_INT(sgm_pretrained_describe(model)->longest, cases[i].longest);
        sgm_pretrained_free(model);
    }
}

/* transformers does not tie output weights that differ from the embedding. */
TEST(tied_tensors_must_be_equal)
{
    const char *folder = copy_of("gpt2");
    char path[300];
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    sgm_bundle *bundle = load(path);
    sgm_tensor *output = sgm_tensor_copy(sgm_bundle_get(bundle, "transformer.wte.weight"));
    CHECK_OK(sgm_bundle_add(bundle, "lm_head.weight", output));
    CHECK_OK(sgm_bundle_save(bundle, path));
    sgm_env *env = sgm_env_create("tied");
    CHECK_OK(sgm_model_import(env, folder));
    sgm_tensor_set(output, (const int64_t[]){60, 15}, 3);
    CHECK_OK(sgm_bundle_save(bundle, path));
    CHECK_ERROR(
        sgm_model_import(env, folder),
        "the tensor 'lm_head.weight' has other numbers than 'transformer.wte.weight', which config.json "
        "ties it to; if both are right, set \"tie_word_embeddings\" to false there");
    replace(folder, "config.json", "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false");
    CHECK_OK(sgm_model_import(env, folder));
    sgm_env_free(env);
    sgm_tensor_free(output);
    sgm_bundle_free(bundle);
}

/* sentence-transformers makes texts lower case before the tokenizer has them. */
TEST(lower_case_is_what_the_tokenizer_makes_of_a_text)
{
    static const char setting[] = "{\"max_seq_length\": 20, \"do_lower_case\": true}";
    static const char *const tokenizers[] = {NULL, "bert.json", "roberta.json"};
    for (size_t i = 0; i < 3; i++) {
        const char *folder = copy_of("bert_embed");
        size_t size = 0;
        char *bytes = tokenizers[i] != NULL ? read_file("tests/models/data", tokenizers[i], &size) : NULL;
        write_file(folder, "sentence_bert_config.json", setting, strlen(setting));
        if (bytes != NULL)
            write_file(folder, "tokenizer.json", bytes, size);
        free(bytes);
        if (i == 2) {
            CHECK_ERROR(sgm_pretrained_open(folder), "the tokenizer tells upper from lower case");
            continue;
        }
        sgm_pretrained *model = sgm_pretrained_open(folder);
        CHECK_OK(model);
        CHECK_INT(sgm_pretrained_describe(model)->context, 20);
        sgm_pretrained_free(model);
    }
}

/* Also where an index of several files is there. */
TEST(one_file_of_tensors_counts_before_an_index)
{
    static const char *const files[] = {"model-00001-of-00003.safetensors",
                                        "model-00002-of-00003.safetensors",
                                        "model-00003-of-00003.safetensors"};
    const char *folder = copy_of("llama");
    sgm_bundle *one = sgm_bundle_create();
    char path[300];
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        sgm_bundle *part = load(path);
        for (size_t k = 0; k < sgm_bundle_count(part); k++)
            CHECK_OK(sgm_bundle_add(one, sgm_bundle_name_at(part, k),
                                    sgm_bundle_get(part, sgm_bundle_name_at(part, k))));
        sgm_bundle_free(part);
    }
    sgm_tensor_set(sgm_bundle_get(one, "model.norm.weight"), (const int64_t[]){3}, 42);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    CHECK_OK(sgm_bundle_save(one, path));
    sgm_env *env = sgm_env_create("one");
    sgm_model *model = sgm_model_import(env, folder);
    CHECK_OK(model);
    sgm_tensor *gains = sgm_trainer_get(sgm_model_trainer(model), "norm.gains");
    CHECK_NEAR(sgm_tensor_get(gains, (const int64_t[]){3}), 42, 0);
    sgm_tensor_free(gains);
    sgm_env_free(env);
    sgm_bundle_free(one);
}

TEST(packed_tensors_are_refused_by_their_method)
{
    static const char setting[] = "\"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 4}";
    const char *folder = folder_with("gpt2", setting);
    sgm_pretrained *model = sgm_pretrained_open(folder); /* a setting that is left over */
    CHECK_OK(model);
    sgm_pretrained_free(model);
    char path[300];
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    sgm_bundle *bundle = load(path);
    sgm_shape shape = sgm_shape_of(2, 48);
    sgm_tensor *packed = sgm_tensor_create(SGM_INT32, &shape);
    CHECK_OK(sgm_bundle_add(bundle, "transformer.h.0.attn.c_attn.qweight", packed));
    CHECK_OK(sgm_bundle_save(bundle, path));
    CHECK_ERROR(sgm_pretrained_open(folder), "'quantization_config' says that tensors are packed (gptq), as "
                                             "'transformer.h.0.attn.c_attn.qweight' is");
    sgm_tensor_free(packed);
    sgm_bundle_free(bundle);
}
