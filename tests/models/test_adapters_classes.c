/* Adapters of encoders whose layers of classes were trained whole (PEFT's modules_to_save), against what PEFT
 * computes with them (fixtures.py), and the way back. */
#include "models/compare_encoders.h"

static const char *const names[] = {"bert_classify", "roberta_classify"};
#define NAME_COUNT (sizeof names / sizeof *names)

typedef struct adapted {
    sgm_env *env;
    sgm_trainer *trainer;
    sgm_pretrained *pretrained;
} adapted;

/* A fixture's model with the adapters of a folder. */
static adapted open_adapted(const char *name, const char *adapters)
{
    char path[300];
    snprintf(path, sizeof path, FIXTURES "%s", name);
    adapted a = {.env = sgm_env_create("adapters")};
    a.pretrained = sgm_pretrained_open(path, .context = TIME);
    CHECK_OK(a.pretrained);
    a.trainer = sgm_model_trainer(sgm_model_import(a.env, path, .context = TIME));
    CHECK_OK(sgm_pretrained_adapt(a.pretrained, a.trainer, adapters));
    return a;
}

static void close_adapted(adapted *a)
{
    sgm_pretrained_free(a->pretrained);
    sgm_env_free(a->env);
}

static sgm_bundle *load(const char *folder, const char *file)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s.safetensors", folder, file);
    sgm_bundle *bundle = sgm_bundle_load(path);
    CHECK_OK(bundle);
    return bundle;
}

static void check_same_tensors(const char *folder, const char *wanted)
{
    sgm_bundle *own = load(folder, "adapter_model"), *other = load(wanted, "adapter_model");
    CHECK_INT(sgm_bundle_count(own), sgm_bundle_count(other));
    for (size_t i = 0; i < sgm_bundle_count(own); i++) {
        const sgm_tensor *a = sgm_bundle_get(own, sgm_bundle_name_at(own, i)),
                         *b = sgm_bundle_get(other, sgm_bundle_name_at(own, i));
        CHECK_OK(b);
        CHECK(sgm_shape_equal(sgm_tensor_shape(a), sgm_tensor_shape(b)));
        CHECK(memcmp(sgm_tensor_const_data(a), sgm_tensor_const_data(b),
                     (size_t)sgm_shape_elements(sgm_tensor_shape(a)) * sizeof(float)) == 0);
    }
    sgm_bundle_free(own);
    sgm_bundle_free(other);
}

TEST(layers_of_classes_come_with_adapters_and_go_back)
{
    for (size_t i = 0; i < NAME_COUNT; i++) {
        char base[300], peft[300];
        const char *back = new_folder();
        snprintf(base, sizeof base, FIXTURES "%s", names[i]);
        snprintf(peft, sizeof peft, FIXTURES "%s_peft", names[i]);
        sgm_bundle *given = load(base, "expected"), *expected = load(peft, "expected");
        adapted a = open_adapted(names[i], peft);
        compare_scores(names[i], a.trainer, given, expected);
        CHECK_OK(sgm_pretrained_export_adapters(a.pretrained, a.trainer, back));
        check_same_tensors(back, peft);
        compare_training(names[i], a.trainer, given, expected);
        close_adapted(&a);
        a = open_adapted(names[i], back);
        compare_scores(names[i], a.trainer, given, expected);
        close_adapted(&a);
        sgm_bundle_free(given);
        sgm_bundle_free(expected);
    }
}

/* PEFT keeps the whole head of RoBERTa, which is two layers, under one name. */
TEST(modules_to_save_are_named)
{
    size_t size;
    adapted a = open_adapted("roberta_classify", FIXTURES "roberta_classify_peft");
    const char *folder = new_folder();
    CHECK_OK(sgm_pretrained_export_adapters(a.pretrained, a.trainer, folder));
    char *config = read_file(folder, "adapter_config.json", &size);
    CHECK(strstr(config, "\"modules_to_save\": [\n    \"classifier\"\n  ]") != NULL);
    free(config);
    close_adapted(&a);
}

TEST(other_parameters_that_are_trained_are_not_written)
{
    char path[] = FIXTURES "bert_classify";
    sgm_env *env = sgm_env_create("adapters");
    sgm_pretrained *pretrained = sgm_pretrained_open(path, .context = TIME);
    sgm_trainer *trainer = sgm_model_trainer(sgm_model_import(env, path, .context = TIME));
    CHECK_OK(sgm_trainer_adapt(
        trainer, sgm_layer_parse("lora(2, on=\"attention*\", train=\"tokens.* classifier.*\")")));
    CHECK_ERROR(sgm_pretrained_export_adapters(pretrained, trainer, new_folder()),
                "'tokens.weights' is trained beside the adapters (train=...), which is written for PEFT of "
                "layers of classes alone: merge the adapters and write the whole model");
    sgm_pretrained_free(pretrained);
    sgm_env_free(env);
}

/* Tensors of a copy of the adapters under other names of the same length. */
static void check_renamed(const char *old, const char *new, const char *message)
{
    size_t size, length = strlen(old);
    const char *folder = copy_of("bert_classify_peft");
    char *bytes = read_file(folder, "adapter_model.safetensors", &size);
    for (size_t i = 0; i + length <= size; i++)
        if (memcmp(bytes + i, old, length) == 0)
            memcpy(bytes + i, new, length);
    write_file(folder, "adapter_model.safetensors", bytes, size);
    free(bytes);
    sgm_env *env = sgm_env_create("adapters");
    sgm_pretrained *pretrained = sgm_pretrained_open(FIXTURES "bert_classify", .context = TIME);
    sgm_trainer *trainer =
        sgm_model_trainer(sgm_model_import(env, FIXTURES "bert_classify", .context = TIME));
    CHECK_ERROR(sgm_pretrained_adapt(pretrained, trainer, folder), message);
    sgm_pretrained_free(pretrained);
    sgm_env_free(env);
}

TEST(other_modules_that_were_trained_whole_are_refused)
{
    check_renamed(
        "bert.pooler.dense.bias", "bert.embeddings.things",
        "'base_model.model.bert.embeddings.things' was trained whole (modules_to_save), which is read of "
        "layers of classes alone; PEFT can make such adapters a part of the model");
    check_renamed("bert.pooler.dense.bias", "bert.encoder.layer.0.b", "was trained whole (modules_to_save)");
}
