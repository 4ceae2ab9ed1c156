/* Folders of strangers: what is wrong in them is refused by its name, before memory is taken for it. */
#include "models/folders.h"

#include <sigma/models.h>

static void refuse(const char *folder, const char *message)
{
    sgm_pretrained *model = sgm_pretrained_open(folder);
    CHECK(model == NULL);
    if (strstr(sgm_last_error(), message) == NULL)
        TEST_FAIL("the error is \"%s\", expected \"%s\" in it", sgm_last_error(), message);
    if (strstr(sgm_last_error(), folder) == NULL)
        TEST_FAIL("the error \"%s\" does not name the folder", sgm_last_error());
}

/* A copy of the fixture with one text of config.json replaced. */
static void refuse_config(const char *fixture, const char *old, const char *new, const char *message)
{
    const char *folder = copy_of(fixture);
    replace(folder, "config.json", old, new);
    refuse(folder, message);
}

TEST(settings_of_wrong_types_are_named)
{
    refuse_config("gpt2", "\"n_embd\": 16", "\"n_embd\": \"16\"",
                  "config.json': 'n_embd' is \"16\"; a whole number from 1 to 16777216 is wanted");
    refuse_config("gpt2", "\"n_embd\": 16", "\"n_embd\": -16", "'n_embd' is -16; a whole number");
    refuse_config("gpt2", "\"n_embd\": 16", "\"n_embd\": 16.5", "'n_embd' is 16.5; a whole number");
    refuse_config("gpt2", "\"n_embd\": 16", "\"n_embd\": null",
                  "'n_embd' is missing; a whole number is wanted");
    refuse_config("gpt2", "\"n_layer\"", "\"layers\"", "'n_layer' is missing");
    refuse_config("gpt2", "\"layer_norm_epsilon\": 1e-05", "\"layer_norm_epsilon\": [1]",
                  "'layer_norm_epsilon' is [1]; a number above 0 is wanted");
    refuse_config("gpt2", "\"layer_norm_epsilon\": 1e-05", "\"layer_norm_epsilon\": 0", "a number above 0");
    refuse_config("gpt2", "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": 1",
                  "'tie_word_embeddings' is 1; true or false is wanted");
    refuse_config("gpt2", "\"gelu_new\"", "7", "'activation_function' is 7; a text is wanted");
    refuse_config("llama3", "\"rope_type\": \"llama3\"", "\"rope_type\": {}",
                  "'rope_parameters.rope_type' is {}");
    refuse_config("llama3", "\"high_freq_factor\": 4.0", "\"high_freq_factor\": 0.5", "low below high");
    refuse_config("llama3", "\"low_freq_factor\": 1.0,", "",
                  "'rope_parameters.low_freq_factor' is missing; a number above 0 is wanted");
    refuse_config("llama3", "\"high_freq_factor\": 4.0,", "",
                  "'rope_parameters.high_freq_factor' is missing");
    refuse_config("llama3", "\"factor\": 8.0,", "", "'rope_parameters.factor' is missing");
    refuse_config("llama_linear", "\"factor\": 4.0,", "", "'rope_parameters.factor' is missing");
}

TEST(absurd_sizes_take_no_memory)
{
    refuse_config("gpt2", "\"n_embd\": 16", "\"n_embd\": 1000000", "'n_embd' is 1000000, but the files have");
    refuse_config("gpt2", "\"n_embd\": 16", "\"n_embd\": 99999999999", "a whole number from 1 to 16777216");
    refuse_config("gpt2", "\"n_layer\": 2", "\"n_layer\": 900",
                  "'n_layer' is 900, but the files have 28 tensors");
    refuse_config("gpt2", "\"n_layer\": 2", "\"n_layer\": 1000000",
                  "a whole number from 1 to 1000 is wanted");
    refuse_config("qwen3", "\"head_dim\": 8", "\"head_dim\": 7000",
                  "heads of 7000 numbers are more than the files");
}

TEST(what_is_not_known_is_refused_by_name)
{
    refuse_config("gpt2", "\"model_type\": \"gpt2\"", "\"model_type\": \"mamba\"",
                  "the architecture 'mamba' is not known; these are: gpt2, llama, mistral, qwen2, qwen3, "
                  "bert, roberta, "
                  "xlm-roberta, distilbert");
    refuse_config("gpt2", "\"model_type\": \"gpt2\"", "\"model_type\": 3",
                  "'model_type' is missing or no text");
    refuse_config("gpt2", "\"gelu_new\"", "\"quick_gelu\"",
                  "'activation_function' is \"quick_gelu\", which is not known; these are: gelu");
    refuse_config("gpt2", "\"scale_attn_weights\": true", "\"scale_attn_weights\": false",
                  "'scale_attn_weights' is false; models are only read where it is true");
    refuse_config(
        "llama3", "\"rope_type\": \"llama3\"", "\"rope_type\": \"yarn\"",
        "the scaling \"yarn\" of rotary positions is not known; these are: default, linear, llama3");
    refuse_config("llama", "\"tie_word_embeddings\"",
                  "\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 2.0}, \"tie_word_embeddings\"",
                  "the scaling \"yarn\" of rotary positions is not known");
    refuse_config("llama", "\"tie_word_embeddings\"", "\"rope_scaling\": \"linear\", \"tie_word_embeddings\"",
                  "'rope_scaling' is \"linear\"; an object is wanted");
}

TEST(a_context_is_within_what_the_model_was_trained_for)
{
    CHECK(sgm_pretrained_open(FIXTURES "gpt2", .context = 33) == NULL);
    CHECK(strstr(sgm_last_error(), "a context of 33 steps is wanted, but the model was trained for 32") !=
          NULL);
    CHECK(sgm_pretrained_open(FIXTURES "mistral", .context = 17) == NULL); /* its window */
    CHECK(sgm_pretrained_open(FIXTURES "gpt2", .context = -1) == NULL);
    CHECK(sgm_pretrained_open(FIXTURES "gpt2", .task = "classify") == NULL);
    CHECK(strstr(sgm_last_error(),
                 "the task 'classify' is not one of this architecture; expected generate") != NULL);
    sgm_pretrained *model = sgm_pretrained_open(FIXTURES "mistral");
    CHECK_OK(model);
    CHECK_INT(sgm_pretrained_describe(model)->context, 16);
    sgm_pretrained_free(model);
    const char *folder = copy_of("llama");
    replace(folder, "config.json", "\"tie_word_embeddings\"",
            "\"sliding_window\": 8, \"tie_word_embeddings\"");
    model = sgm_pretrained_open(folder);
    CHECK_OK(model);
    CHECK_INT(sgm_pretrained_describe(model)->longest, 8);
    sgm_pretrained_free(model);
}

TEST(config_and_tensors_must_be_of_one_model)
{
    refuse_config("gpt2", "\"vocab_size\": 61", "\"vocab_size\": 60",
                  "the tensor 'transformer.wte.weight' is (61, 16), but by config.json it is (60, 16)");
    refuse_config("gpt2", "\"n_layer\": 2", "\"n_layer\": 3", "has no tensor 'transformer.h.2.ln_1.weight'");
    refuse_config("gpt2", "\"n_layer\": 2", "\"n_layer\": 1",
                  "the tensor 'transformer.h.1.attn.c_attn.bias' is not one that Sigma knows of a model "
                  "'gpt2' with these settings of config.json");
    refuse_config(
        "llama", "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 4",
        "the tensor 'model.layers.0.self_attn.k_proj.weight' is (8, 16), but by config.json it is (16, 16)");
    refuse_config("qwen2", "\"model_type\": \"qwen2\"", "\"model_type\": \"llama\"",
                  "the tensor 'model.layers.0.self_attn.k_proj.bias' is not one that Sigma knows of");
}

TEST(files_that_are_no_json_are_named)
{
    const char *folder = copy_of("gpt2");
    write_file(folder, "config.json", "{\"a\": ", 6);
    refuse(folder, "config.json': line 1, column");
    write_file(folder, "config.json", "[1]", 3);
    refuse(folder, "config.json': an object, {...}, is wanted");
    write_file(folder, "config.json", "{\"a\": 1, \"a\": 2}", 16);
    refuse(folder, "config.json': line 1");
    char deep[20000];
    memset(deep, '[', sizeof deep);
    write_file(folder, "config.json", deep, sizeof deep);
    refuse(folder, "config.json': line 1");
    char path[300];
    snprintf(path, sizeof path, "%s/config.json", folder);
    unlink(path);
    refuse(folder, "there is no config.json in");
    write_file(folder, "checkpoint.safetensors", "", 0);
    refuse(folder, "is wanted, and this is a run, which sgm_model_load reads");
}

/* A link of a folder, by the name `name`. */
static void link_to(const char *target, const char *folder, const char *name)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
    CHECK(symlink(target, path) == 0);
}

TEST(no_file_outside_the_folder_is_read)
{
    const char *folder = copy_of("gpt2"), *other = copy_of("gpt2"), *shards;
    char path[300];
    snprintf(path, sizeof path, "%s/model.safetensors", other);
    link_to(path, folder, "model.safetensors");
    refuse(folder, "model.safetensors' is a link that leads out of the folder");
    link_to("nowhere", folder, "model.safetensors");
    refuse(folder, "model.safetensors");
    for (int i = 0; i < 4; i++) {
        static const char *const names[] = {"\"../model.safetensors\"", "\"/etc/passwd\"", "\".hidden\"",
                                            "7"};
        shards = copy_of("llama");
        replace(shards, "model.safetensors.index.json", "\"model-00002-of-00003.safetensors\"", names[i]);
        refuse(shards, i < 3 ? "is none of a file in this folder" : "the file of ");
    }
    shards = copy_of("llama");
    link_to("/etc/passwd", shards, "model-00002-of-00003.safetensors");
    refuse(shards, "leads out of the folder");
}

/* models--NAME/snapshots/HASH has links into models--NAME/blobs. */
TEST(links_of_hugging_faces_cache_are_followed)
{
    const char *cache = new_folder(), *folder = copy_of("gpt2");
    char snapshots[200], snapshot[250], blobs[250], target[300];
    snprintf(snapshots, sizeof snapshots, "%s/snapshots", cache);
    snprintf(snapshot, sizeof snapshot, "%s/abc", snapshots);
    snprintf(blobs, sizeof blobs, "%s/blobs", cache);
    CHECK(mkdir(snapshots, 0777) == 0 && mkdir(snapshot, 0777) == 0 && mkdir(blobs, 0777) == 0);
    static const char *const names[] = {"config.json", "model.safetensors"};
    for (int i = 0; i < 2; i++) {
        size_t size;
        char *bytes = read_file(folder, names[i], &size), name[16];
        snprintf(name, sizeof name, "%d", i);
        write_file(blobs, name, bytes, size);
        snprintf(target, sizeof target, "../../blobs/%d", i);
        link_to(target, snapshot, names[i]);
        free(bytes);
    }
    sgm_pretrained *model = sgm_pretrained_open(snapshot);
    CHECK_OK(model);
    sgm_pretrained_free(model);
}

TEST(indexes_that_lie_are_refused)
{
    const char *folder = copy_of("llama");
    replace(folder, "model.safetensors.index.json", "\"weight_map\"", "\"map\"");
    refuse(folder, "index.json': 'weight_map' is missing or no object");
    folder = copy_of("llama");
    replace(folder, "model.safetensors.index.json", "model.norm.weight", "model.norm.other");
    refuse(folder, "has no tensor 'model.norm.other', which 'model.safetensors.index.json' puts there");
    folder = copy_of("llama");
    replace(folder, "model.safetensors.index.json", "model-00002-of-00003.safetensors", "absent.safetensors");
    refuse(folder, "/absent.safetensors' is missing, which '");
    refuse(folder, "/model.safetensors.index.json' names: download this file");
    size_t size; /* the same tensors in two files */
    folder = copy_of("llama");
    char *bytes = read_file(folder, "model-00001-of-00003.safetensors", &size);
    write_file(folder, "model-00002-of-00003.safetensors", bytes, size);
    refuse(folder, "is in two files");
    free(bytes);
}

TEST(damaged_tensors_are_refused)
{
    const char *folder = copy_of("gpt2");
    size_t size;
    char *bytes = read_file(folder, "model.safetensors", &size);
    char wanted[160];
    write_file(folder, "model.safetensors", bytes, size - 4);
    snprintf(
        wanted, sizeof wanted,
        ": the file is cut off, by its header it has %zu bytes, but there are %zu; download this file again",
        size, size - 4);
    refuse(folder, wanted);
    write_file(folder, "model.safetensors", bytes, 100);
    refuse(folder, "give a header of ");
    refuse(folder, "bytes, but it has 100; download this file again");
    write_file(folder, "model.safetensors", "GGUF....", 8);
    refuse(folder, "GGUF");
    char path[300], other[300];
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    snprintf(other, sizeof other, "%s/pytorch_model.bin", folder);
    CHECK(rename(path, other) == 0);
    refuse(folder, "has its tensors as pytorch_model.bin");
    CHECK(unlink(other) == 0);
    refuse(folder,
           "' has no tensors: neither model.safetensors, nor model.safetensors.index.json and the files "
           "that it names; download them");
    free(bytes);
    folder = copy_of("llama");
    bytes = read_file(folder, "model-00002-of-00003.safetensors", &size);
    write_file(folder, "model-00002-of-00003.safetensors", bytes, 3000);
    snprintf(wanted, sizeof wanted, "by its header it has %zu bytes, but there are 3000; '", size);
    refuse(folder, wanted);
    refuse(folder, "/model.safetensors.index.json' names this file: download it again");
    free(bytes);
}

TEST(numbers_that_float32_does_not_hold_are_named)
{
    const char *folder = copy_of("llama_linear"); /* float64 */
    char path[300];
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    sgm_bundle *bundle = sgm_bundle_load(path);
    CHECK_OK(bundle);
    sgm_tensor_set(sgm_bundle_get(bundle, "model.norm.weight"), (const int64_t[]){3}, 1e300);
    CHECK_OK(sgm_bundle_save(bundle, path));
    sgm_env *narrow = sgm_env_create("narrow", .precision = SGM_FLOAT32),
            *wide = sgm_env_create("wide", .precision = SGM_FLOAT64);
    CHECK_ERROR(
        sgm_model_import(narrow, folder),
        "the tensor 'model.norm.weight' has numbers that float32 does not hold; take precision float64");
    CHECK_OK(sgm_model_import(wide, folder));
    sgm_env_free(narrow);
    sgm_env_free(wide);
    sgm_bundle_free(bundle);
}
