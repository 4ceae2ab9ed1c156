/* The way back: folders are written as they were, from the model itself and from what a run keeps. */
#include "models/folders.h"

#include <sigma/models.h>

/* Both folders have the same tensors, to the bit and in the same types. */
static void compare_tensors(const char *a, const char *b, const char *file)
{
    char paths[2][500];
    snprintf(paths[0], sizeof paths[0], "%s/%s", a, file);
    snprintf(paths[1], sizeof paths[1], "%s/%s", b, file);
    sgm_tensor_file *files[] = {sgm_tensor_file_open(paths[0]), sgm_tensor_file_open(paths[1])};
    CHECK_OK(files[0]);
    CHECK_OK(files[1]);
    CHECK_INT(sgm_tensor_file_count(files[0]), sgm_tensor_file_count(files[1]));
    sgm_tensor_entry old, new;
    for (size_t i = 0; sgm_tensor_file_entry(files[0], i, &old); i++) {
        size_t k = 0;
        while (sgm_tensor_file_entry(files[1], k, &new) && strcmp(old.name, new.name) != 0)
            k++;
        if (!sgm_tensor_file_entry(files[1], k, &new))
            TEST_FAIL("'%s' was not written", old.name);
        CHECK(old.dtype == new.dtype &&old.half == new.half &&sgm_shape_equal(&old.shape, &new.shape));
        sgm_tensor *values[] = {sgm_tensor_file_read(files[0], i), sgm_tensor_file_read(files[1], k)};
        size_t bytes = (size_t)sgm_shape_elements(&old.shape) * sgm_dtype_size(old.dtype);
        if (memcmp(sgm_tensor_const_data(values[0]), sgm_tensor_const_data(values[1]), bytes) != 0)
            TEST_FAIL("'%s' has other numbers", old.name);
        sgm_tensor_free(values[0]);
        sgm_tensor_free(values[1]);
    }
    sgm_tensor_file_close(files[0]);
    sgm_tensor_file_close(files[1]);
}

static void compare_folders(const char *old, const char *new)
{
    DIR *entries = opendir(old);
    CHECK(entries != NULL);
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        const char *name = entry->d_name;
        size_t sizes[2];
        if (!is_of_the_model(name))
            continue;
        if (strstr(name, ".safetensors") != NULL && strstr(name, ".json") == NULL) {
            compare_tensors(old, new, name);
            continue;
        }
        char *bytes[] = {read_file(old, name, &sizes[0]), read_file(new, name, &sizes[1])};
        CHECK_INT(sizes[0], sizes[1]);
        CHECK_STR(bytes[0], bytes[1]);
        free(bytes[0]);
        free(bytes[1]);
    }
    closedir(entries);
}

/* Through a trainer of the model's precision. Context 0: the model has pictures. */
static void check_way_back(const char *folder, int64_t context)
{
    const char *run = new_folder(), *first = new_folder(), *second = new_folder(), *again = new_folder(),
               *third = new_folder();
    sgm_pretrained *model = sgm_pretrained_open(folder, .context = context);
    CHECK_OK(model);
    sgm_env *env = sgm_env_create("back", .precision = sgm_pretrained_describe(model)->precision);
    sgm_trainer *trainer = sgm_trainer_create(env, "back");
    CHECK_OK(sgm_pretrained_load(model, trainer));
    CHECK_OK(sgm_pretrained_keep(model, run));
    CHECK_OK(sgm_pretrained_export(model, trainer, first));
    compare_folders(folder, first);
    sgm_pretrained_free(model);
    model = sgm_pretrained_open(run);
    CHECK_OK(model);
    CHECK_OK(sgm_pretrained_export(model, trainer, second));
    compare_folders(folder, second);
    CHECK_ERROR(sgm_pretrained_export(model, trainer, second), "has a config.json already");
    CHECK_ERROR(sgm_pretrained_load(model, trainer), "checkpoint.safetensors': No such file"); /* only kept */
    CHECK_OK(sgm_pretrained_keep(model, again));
    sgm_pretrained_free(model);
    model = sgm_pretrained_open(again);
    CHECK_OK(model);
    CHECK_OK(sgm_pretrained_export(model, trainer, third));
    compare_folders(folder, third);
    sgm_pretrained_free(model);
    sgm_env_free(env);
}

TEST(what_was_not_trained_is_written_as_it_was)
{
    static const char *const names[] = {"gpt2",
                                        "gpt2_half",
                                        "llama",
                                        "llama3",
                                        "llama_linear",
                                        "mistral",
                                        "qwen2",
                                        "qwen3",
                                        "bert_embed",
                                        "bert_fill",
                                        "roberta_fill",
                                        "roberta_classify",
                                        "distilbert_fill",
                                        "distilbert_classify"},
                             *const pictures[] = {"vit", "resnet", "resnet_bottleneck", "mobilenet_v2"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        check_way_back(copy_of(names[i]), 4);
    for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++)
        check_way_back(copy_of(pictures[i]), 0);
}

/* Masks of older files, and the output's weights where they are those of the embedding. */
TEST(tensors_that_the_network_does_not_use_are_kept)
{
    const char *folder = copy_of("gpt2");
    char path[300];
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    sgm_bundle *bundle = sgm_bundle_load(path);
    sgm_shape shape = sgm_shape_of(1, 1, 32, 32);
    sgm_tensor *mask = sgm_tensor_create(SGM_BOOL, &shape);
    CHECK_OK(sgm_bundle_add(bundle, "transformer.h.1.attn.bias", mask));
    CHECK_OK(sgm_bundle_add(bundle, "lm_head.weight", sgm_bundle_get(bundle, "transformer.wte.weight")));
    CHECK_OK(sgm_bundle_save(bundle, path));
    check_way_back(folder, 4);
    sgm_tensor_free(mask);
    sgm_bundle_free(bundle);
}

/* Files of a model without a head leave out the prefix. */
TEST(names_may_be_without_their_prefix)
{
    const char *folder = copy_of("gpt2");
    char path[300];
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    sgm_bundle *bundle = sgm_bundle_load(path), *bare = sgm_bundle_create();
    for (size_t i = 0; i < sgm_bundle_count(bundle); i++) {
        const char *name = sgm_bundle_name_at(bundle, i);
        CHECK_OK(sgm_bundle_add(bare, name + strlen("transformer."), sgm_bundle_get(bundle, name)));
    }
    CHECK_OK(sgm_bundle_save(bare, path));
    check_way_back(folder, 4);
    sgm_bundle_free(bundle);
    sgm_bundle_free(bare);
}

/* As the file of bert-base-uncased has them. */
TEST(norms_may_have_their_old_names)
{
    const char *folder = copy_of("bert_fill");
    char path[300];
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    sgm_bundle *bundle = sgm_bundle_load(path), *old = sgm_bundle_create();
    for (size_t i = 0; i < sgm_bundle_count(bundle); i++) {
        const char *name = sgm_bundle_name_at(bundle, i), *norm = strstr(name, "LayerNorm.");
        char other[200];
        snprintf(other, sizeof other, "%.*s%s", norm != NULL ? (int)(norm + 10 - name) : 150, name,
                 norm == NULL      ? ""
                 : norm[10] == 'w' ? "gamma"
                                   : "beta");
        CHECK_OK(sgm_bundle_add(old, other, sgm_bundle_get(bundle, name)));
    }
    CHECK_OK(sgm_bundle_save(old, path));
    check_way_back(folder, 4);
    sgm_bundle_free(bundle);
    sgm_bundle_free(old);
}

TEST(what_was_trained_is_written)
{
    const char *folder = copy_of("qwen2"), *written = new_folder();
    sgm_env *env = sgm_env_create("trained");
    sgm_trainer *trainer = sgm_trainer_create(env, "trained");
    sgm_pretrained *model = sgm_pretrained_open(folder, .context = 4);
    CHECK_OK(sgm_pretrained_load(model, trainer));
    const sgm_parameter *parameters;
    size_t count, at = 0;
    parameters = sgm_trainer_parameters(trainer, &count);
    while (at < count && atoi(parameters[at].name + 9) == 0) /* attention12 */
        at++;
    char name[100];
    snprintf(name, sizeof name, "attention%d.weights", atoi(parameters[at].name + 9));
    sgm_tensor *weights = sgm_trainer_get(trainer, name);
    CHECK_OK(weights);
    sgm_tensor_set(weights, (const int64_t[]){3, 17}, 42); /* of keys, after 16 columns of queries */
    CHECK_OK(sgm_trainer_set(trainer, name, weights));
    CHECK_OK(sgm_pretrained_export(model, trainer, written));
    char path[300];
    snprintf(path, sizeof path, "%s/model.safetensors", written);
    sgm_bundle *bundle = sgm_bundle_load(path);
    const sgm_tensor *keys = sgm_bundle_get(bundle, "model.layers.0.self_attn.k_proj.weight");
    CHECK_NEAR(sgm_tensor_get(keys, (const int64_t[]){1, 3}), 42, 0);
    sgm_bundle_free(bundle);
    sgm_tensor_free(weights);
    sgm_pretrained_free(model);
    sgm_env_free(env);
}
