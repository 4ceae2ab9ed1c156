/* Models of folders as files of GGUF, against those that the package gguf wrote of them
 * (gguf_models.py). */
#include "gguf/names.h"
#include "models/compare.h"
#include "models/gguf_files.h"

#include <math.h>

static const sgm__gguf_tensor *find_tensor(const sgm__gguf *file, const char *name)
{
    for (size_t i = 0; i < file->tensor_count; i++)
        if (strcmp(file->tensors[i].name, name) == 0)
            return &file->tensors[i];
    TEST_FAIL("'%s' has no tensor '%s'", file->path, name);
    return NULL;
}

/* The bytes of a tensor in its file; the caller frees them. */
static unsigned char *bytes_of(const sgm__gguf *file, const sgm__gguf_tensor *tensor)
{
    unsigned char *bytes = malloc(tensor->size);
    CHECK(fseek(file->file, (long)tensor->at, SEEK_SET) == 0);
    CHECK(fread(bytes, 1, tensor->size, file->file) == tensor->size);
    return bytes;
}

/* --- types --- */

static void check_written(const sgm__gguf *file, const sgm__gguf_tensor *tensor)
{
    sgm_tensor *numbers = sgm__gguf_read(file, find_tensor(file, "F32"));
    unsigned char *wanted = bytes_of(file, tensor), *own = malloc(tensor->size);
    CHECK_OK(numbers);
    tensor->type->write(sgm_tensor_const_data(numbers), own,
                        (size_t)sgm_shape_elements(sgm_tensor_shape(numbers)));
    for (size_t i = 0; i < tensor->size; i++)
        if (own[i] != wanted[i])
            TEST_FAIL("%s: byte %zu is %d, the package has %d", tensor->name, i, own[i], wanted[i]);
    free(own);
    free(wanted);
    sgm_tensor_free(numbers);
}

static void check_read(const sgm__gguf *file, const sgm__gguf_tensor *tensor)
{
    char name[20];
    snprintf(name, sizeof name, "%s.read", tensor->name);
    sgm_tensor *own = sgm__gguf_read(file, tensor), *wanted = sgm__gguf_read(file, find_tensor(file, name));
    CHECK_OK(own);
    CHECK_OK(wanted);
    CHECK(sgm_shape_equal(sgm_tensor_shape(own), sgm_tensor_shape(wanted)));
    CHECK(memcmp(sgm_tensor_const_data(own), sgm_tensor_const_data(wanted),
                 (size_t)sgm_shape_elements(&tensor->shape) * sizeof(float)) == 0);
    sgm_tensor_free(own);
    sgm_tensor_free(wanted);
}

TEST(numbers_of_each_type_are_those_of_the_package)
{
    static const char *const names[] = {"F16", "BF16", "Q8_0", "Q4_0"};
    sgm__gguf *file = open_file(GGUF "types.gguf");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const sgm__gguf_tensor *tensor = find_tensor(file, names[i]);
        CHECK_STR(tensor->type->name, names[i]);
        check_read(file, tensor);
        if (tensor->type->write != NULL)
            check_written(file, tensor);
    }
    sgm__gguf_close(file);
}

/* --- models --- */

/* Writes the model of a folder or file as new.gguf, with its parameters as they are. */
static const char *export_model(const char *model, const char *type)
{
    static char path[100];
    sgm_env *env = sgm_env_create("gguf");
    sgm_trainer *trainer = sgm_trainer_create(env, "gguf");
    sgm_pretrained *pretrained = sgm_pretrained_open(model);
    snprintf(path, sizeof path, "%s/new.gguf", new_folder());
    CHECK_OK(pretrained);
    CHECK_OK(sgm_pretrained_load(pretrained, trainer));
    CHECK_OK(sgm_pretrained_export_gguf(pretrained, trainer, path, .type = type));
    sgm_pretrained_free(pretrained);
    sgm_env_free(env);
    return path;
}

/* The same tensors, to the bit and in the same types, but for the order. */
static void compare_tensors(const sgm__gguf *own, const sgm__gguf *other)
{
    CHECK_INT(own->tensor_count, other->tensor_count);
    for (size_t i = 0; i < other->tensor_count; i++) {
        const sgm__gguf_tensor *wanted = &other->tensors[i], *tensor = find_tensor(own, wanted->name);
        CHECK_STR(tensor->type->name, wanted->type->name);
        CHECK(sgm_shape_equal(&tensor->shape, &wanted->shape));
        unsigned char *bytes[] = {bytes_of(own, tensor), bytes_of(other, wanted)};
        /* What the package computes in float64 may be another float32 here. */
        if (strcmp(wanted->name, "rope_freqs.weight") == 0)
            for (int64_t k = 0; k < wanted->shape.dims[0]; k++)
                CHECK_NEAR(((float *)bytes[0])[k], ((float *)bytes[1])[k], 1e-6);
        else if (memcmp(bytes[0], bytes[1], wanted->size) != 0)
            TEST_FAIL("'%s' has other numbers", wanted->name);
        free(bytes[0]);
        free(bytes[1]);
    }
}

TEST(models_are_written_as_the_package_writes_them)
{
    static const char *const names[] = {"llama", "llama3", "llama_linear", "qwen2",
                                        "qwen3", "gpt2",   "gpt2_half"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char prefix[20];
        sgm__gguf *own = open_file(export_model(path_of(names[i]), NULL));
        sgm__gguf *other = open_file(file_of(names[i]));
        snprintf(prefix, sizeof prefix, "%.*s.", (int)strcspn(names[i], "3_"), names[i]);
        compare_values(own, other, strncmp(names[i], "qwen3", 5) == 0 ? "qwen3." : prefix);
        compare_values(own, other, "general.architecture");
        compare_tensors(own, other);
        sgm__gguf_close(own);
        sgm__gguf_close(other);
    }
}

/* The largest difference between factors of `bands` and those of what is found by them; -1: nothing is. */
static double difference_of_bands(const sgm__gguf_bands *bands, size_t count)
{
    float factors[64], again[64];
    sgm__gguf_bands found = {.base = bands->base};
    double most = 0;
    sgm__gguf_bands_factors(bands, factors, count);
    if (!sgm__gguf_bands_find(&found, factors, count))
        return -1;
    sgm__gguf_bands_factors(&found, again, count);
    for (size_t i = 0; i < count; i++)
        most = fmax(most, fabs(again[i] / (double)factors[i] - 1));
    return most;
}

TEST(bands_of_any_width_are_found_by_their_factors)
{
    static const double widths[][2] = {{1, 4}, {2, 3}, {0.5, 16}, {1, 1.01}, {4, 9}, {1e-3, 9}};
    static const int64_t steps[] = {4, 32, 1000, 8192};
    for (size_t i = 0; i < 24; i++) {
        const sgm__gguf_bands bands = {.base = 500000,
                                       .factor = 8,
                                       .low = widths[i / 4][0],
                                       .high = widths[i / 4][1],
                                       .steps = steps[i % 4]};
        CHECK_NEAR(difference_of_bands(&bands, 64), 0, 1e-5);
        CHECK_NEAR(difference_of_bands(&bands, 5), 0, 1e-5);
    }
}

/* What is written is read again, and is the same model. */
TEST(positions_with_other_bands_come_back)
{
    const char *folder = copy_of("llama3");
    replace(folder, "config.json", "\"high_freq_factor\": 4.0", "\"high_freq_factor\": 9.0");
    replace(folder, "config.json", "\"low_freq_factor\": 1.0", "\"low_freq_factor\": 0.25");
    const char *path = export_model(folder, NULL);
    sgm__gguf *file = open_file(path);
    sgm_tensor *factors = sgm__gguf_read(file, find_tensor(file, "rope_freqs.weight"));
    const float *numbers = sgm_tensor_const_data(factors);
    for (size_t i = 0; i < 3; i++) { /* as transformers computes them */
        const double length = 2 * acos(-1) * pow(500, (double)i / 3);
        const double share = (32 / length - 0.25) / (9 - 0.25);
        CHECK_NEAR(numbers[i], length > 32 / 0.25 ? 8 : 1 / ((1 - share) / 8 + share), 1e-5);
    }
    sgm_tensor_free(factors);
    sgm__gguf_close(file);
    sgm_pretrained *model = sgm_pretrained_open(path);
    CHECK_OK(model);
    CHECK(strstr(sgm_pretrained_network(model), "rotary_bands=") != NULL);
    sgm_pretrained_free(model);
}

/* As models are read, "rope_scaling" and the base beside it stand for "rope_parameters". */
TEST(an_older_scaling_of_positions_is_the_one_that_is_written)
{
    const char *folder = copy_of("llama_linear");
    replace(folder, "config.json", "\"rope_parameters\": {",
            "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 4.0}, \"rope_theta\": 10000.0, "
            "\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 77.0}, \"was\": {");
    sgm__gguf *own = open_file(export_model(folder, NULL));
    sgm__gguf *other = open_file(file_of("llama_linear"));
    compare_values(own, other, "llama.");
    sgm__gguf_close(own);
    sgm__gguf_close(other);
}

/* What was in blocks keeps them, and all metadata, with the tokenizer, are written again. */
TEST(files_come_back_as_they_were)
{
    sgm__gguf *own = open_file(export_model(GGUF "llama.gguf", NULL));
    sgm__gguf *other = open_file(GGUF "llama.gguf");
    compare_values(own, other, "");
    compare_tensors(own, other);
    CHECK_INT(own->value_count, other->value_count + 1); /* general.file_type */
    sgm__gguf_close(own);
    sgm__gguf_close(other);
    own = open_file(export_model(GGUF "blocks.gguf", NULL));
    other = open_file(GGUF "blocks.gguf");
    for (size_t i = 0; i < other->tensor_count; i++) {
        const sgm__gguf_tensor *old = &other->tensors[i], *new = find_tensor(own, old->name);
        const bool same = old->type->number != SGM__GGUF_Q4_0;
        CHECK_STR(new->type->name, same ? old->type->name : "Q8_0");
        unsigned char *bytes[] = {bytes_of(other, old), bytes_of(own, new)};
        CHECK(!same || memcmp(bytes[0], bytes[1], old->size) == 0);
        free(bytes[0]);
        free(bytes[1]);
    }
    int64_t type = -1;
    CHECK_OK(sgm__gguf_integer(own, "general.file_type", &type));
    CHECK_INT(type, 7); /* most are of Q8_0 */
    sgm__gguf_close(own);
    sgm__gguf_close(other);
}

/* Vectors stay as they are; rows that are no blocks are of F16. */
TEST(types_can_be_chosen)
{
    static const struct {
        const char *model, *type, *matrices;
        int64_t file_type;
    } cases[] = {{GGUF "blocks.gguf", "q8_0", "Q8_0", 7},
                 {GGUF "blocks.gguf", "f32", "F32", 0},
                 {FIXTURES "llama", "q8_0", "F16", 1},
                 {FIXTURES "llama", "bf16", "BF16", 32},
                 {FIXTURES "gpt2", "F16", "F16", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sgm__gguf *file = open_file(export_model(cases[i].model, cases[i].type));
        int64_t type = -1;
        for (size_t k = 0; k < file->tensor_count; k++) {
            const sgm__gguf_tensor *tensor = &file->tensors[k];
            const bool plain = tensor->shape.rank < 2 || strcmp(tensor->name, "position_embd.weight") == 0;
            CHECK_STR(tensor->type->name, plain ? "F32" : cases[i].matrices);
        }
        CHECK_OK(sgm__gguf_integer(file, "general.file_type", &type));
        CHECK_INT(type, cases[i].file_type);
        sgm__gguf_close(file);
    }
}

/* Files have no windows, so that a model is one of as many steps as its window has. */
TEST(mistral_is_llama_of_the_steps_of_its_window)
{
    sgm__gguf *file = open_file(export_model(FIXTURES "mistral", NULL));
    const char *type = NULL;
    size_t size = 0;
    int64_t longest = 0;
    CHECK_OK(sgm__gguf_text(file, "general.architecture", &type, &size));
    CHECK(size == 5 && memcmp(type, "llama", size) == 0);
    CHECK_OK(sgm__gguf_integer(file, "llama.context_length", &longest));
    CHECK_INT(longest, 16);
    sgm__gguf_close(file);
}

/* llama3 without biases, as a Mistral of 12 heads of 2 numbers. */
static const char *uneven_mistral(void)
{
    static const char *const changes[][2] = {{"\"attention_bias\": true,", ""},
                                             {"\"mlp_bias\": true,", ""},
                                             {"\"llama\"", "\"mistral\""},
                                             {"\"rope_type\": \"llama3\"", "\"rope_type\": \"default\""},
                                             {"\"head_dim\": 6", "\"head_dim\": 2"},
                                             {"\"num_attention_heads\": 4", "\"num_attention_heads\": 12"},
                                             {"\"num_key_value_heads\": 2", "\"num_key_value_heads\": 6"}};
    const char *folder = copy_of("llama3");
    char path[300];
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    sgm_tensor_file *file = sgm_tensor_file_open(path);
    sgm_bundle *bundle = sgm_bundle_create();
    sgm_tensor_entry entry;
    for (size_t i = 0; sgm_tensor_file_entry(file, i, &entry); i++) {
        sgm_tensor *tensor = sgm_tensor_file_read(file, i);
        if (strstr(entry.name, ".bias") == NULL)
            CHECK_OK(sgm_bundle_add(bundle, entry.name, tensor));
        sgm_tensor_free(tensor);
    }
    sgm_tensor_file_close(file);
    CHECK_OK(sgm_bundle_save(bundle, path));
    sgm_bundle_free(bundle);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        replace(folder, "config.json", changes[i][0], changes[i][1]);
    return folder;
}

/* transformers refuses a config.json of a Llama whose features are no multiple of its heads. */
TEST(mistral_with_heads_that_do_not_divide_its_features_stays_mistral)
{
    const char *folder = uneven_mistral();
    sgm__gguf *file = open_file(export_model(folder, NULL));
    json_t *config = NULL;
    CHECK_OK(sgm__gguf_config(file, sgm__gguf_architecture_of("llama", 5), &config));
    CHECK_STR(json_string_value(json_object_get(config, "model_type")), "mistral");
    CHECK(json_is_null(json_object_get(config, "sliding_window"))); /* 4096 where it is absent */
    CHECK_INT(json_integer_value(json_object_get(config, "head_dim")), 2);
    json_decref(config);
    sgm_pretrained *models[] = {sgm_pretrained_open(folder), sgm_pretrained_open(file->path)};
    CHECK_OK(models[0]);
    CHECK_OK(models[1]);
    CHECK_STR(sgm_pretrained_network(models[1]), sgm_pretrained_network(models[0]));
    sgm_pretrained_free(models[0]);
    sgm_pretrained_free(models[1]);
    sgm__gguf_close(file);
}

/* --- what cannot be written --- */

static void refuse(const char *fixture, const char *type, const char *message)
{
    sgm_env *env = sgm_env_create("gguf");
    sgm_trainer *trainer = sgm_trainer_create(env, "gguf");
    sgm_pretrained *pretrained = sgm_pretrained_open(fixture);
    char path[100];
    snprintf(path, sizeof path, "%s/new.gguf", new_folder());
    CHECK_OK(pretrained);
    CHECK_OK(sgm_pretrained_load(pretrained, trainer));
    CHECK_ERROR(sgm_pretrained_export_gguf(pretrained, trainer, path, .type = type), message);
    CHECK(access(path, F_OK) != 0);
    sgm_pretrained_free(pretrained);
    sgm_env_free(env);
}

static const char *with_setting(const char *fixture, const char *old, const char *new)
{
    const char *folder = copy_of(fixture);
    replace(folder, "config.json", old, new);
    return folder;
}

TEST(what_such_files_do_not_have_is_refused)
{
    refuse(FIXTURES "llama", "q4_0",
           "tensors of the type 'q4_0' are not written; these are: f32, f16, bf16, q8_0");
    refuse(FIXTURES "llama", "int8", "tensors of the type 'int8' are not written");
    refuse(FIXTURES "bert_fill", NULL,
           "a model 'bert' is not written as a file of GGUF; these are: llama, mistral, qwen2, qwen3, gpt2");
    refuse(
        with_setting("llama", "\"silu\"", "\"gelu\""), NULL,
        "'hidden_act' is \"gelu\", and a file of GGUF has a model 'llama' with \"silu\" alone; 'sigma export "
        "--hf' writes it as it is");
    refuse(with_setting(
               "qwen2", "\"rope_type\": \"default\"",
               "\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1, \"high_freq_factor\": "
               "4, \"original_max_position_embeddings\": 32"),
           NULL,
           "positions are scaled as \"llama3\", which a file of GGUF does not have for a model 'qwen2'");
    CHECK_ERROR(sgm_pretrained_export_gguf(NULL, NULL, "x.gguf"), "needs the model, a trainer and a path");
}
