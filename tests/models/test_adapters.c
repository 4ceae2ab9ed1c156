/* Adapters in PEFT's folders against what PEFT computes with them (fixtures.py): scores, losses of a
 * training, merged models, and the way back. */
#include "models/compare.h"

/* A model's fixture, and that of adapters of it. */
static const struct {
    const char *model, *adapters;
} names[] = {
    {"gpt2", "gpt2_peft"},        {"llama", "llama_peft"},
    {"qwen3", "qwen3_peft"},      {"llama", "llama_patterns_peft"}, /* ranks and alphas by patterns */
    {"gpt2", "gpt2_layers_peft"},                                   /* of one block alone */
};
#define NAME_COUNT (sizeof names / sizeof *names)

/* A fixture with its adapters. */
typedef struct adapted {
    sgm_env *env;
    sgm_model *model;
    sgm_trainer *trainer;
    sgm_pretrained *pretrained;
    sgm_bundle *base, *expected;
    char peft[250];
} adapted;

static adapted open_adapted(const char *name, const char *peft)
{
    adapted a = {.env = sgm_env_create("adapters"), .base = expected_of(name), .expected = expected_of(peft)};
    snprintf(a.peft, sizeof a.peft, FIXTURES "%s", peft);
    a.model = sgm_model_import(a.env, path_of(name), .context = TIME);
    CHECK_OK(a.model);
    a.trainer = sgm_model_trainer(a.model);
    a.pretrained = sgm_pretrained_open(path_of(name), .context = TIME);
    CHECK_OK(a.pretrained);
    return a;
}

static void close_adapted(adapted *a)
{
    sgm_pretrained_free(a->pretrained);
    sgm_env_free(a->env);
    sgm_bundle_free(a->base);
    sgm_bundle_free(a->expected);
}

TEST(adapters_compute_and_learn_what_they_do_in_peft)
{
    for (size_t i = 0; i < NAME_COUNT; i++) {
        adapted a = open_adapted(names[i].model, names[i].adapters);
        CHECK_OK(sgm_pretrained_adapt(a.pretrained, a.trainer, a.peft));
        compare_scores(names[i].adapters, a.model, sgm_bundle_get(a.base, "inputs"), a.expected);
        compare_training(names[i].adapters, a.trainer, sgm_bundle_get(a.base, "batches"), a.expected);
        close_adapted(&a);
    }
}

/* Merged, written as a whole model, and read again. */
TEST(merged_models_compute_the_same)
{
    for (size_t i = 0; i < NAME_COUNT; i++) {
        adapted a = open_adapted(names[i].model, names[i].adapters);
        const char *folder = new_folder();
        CHECK_OK(sgm_pretrained_adapt(a.pretrained, a.trainer, a.peft));
        CHECK_OK(sgm_trainer_merge(a.trainer));
        compare_scores(names[i].adapters, a.model, sgm_bundle_get(a.base, "inputs"), a.expected);
        CHECK_OK(sgm_pretrained_export(a.pretrained, a.trainer, folder));
        sgm_model *back = sgm_model_import(a.env, folder, .context = TIME);
        CHECK_OK(back);
        compare_scores(names[i].adapters, back, sgm_bundle_get(a.base, "inputs"), a.expected);
        close_adapted(&a);
    }
}

static void check_same_tensors(const char *folder, const char *wanted)
{
    char path[2][300];
    snprintf(path[0], sizeof path[0], "%s/adapter_model.safetensors", folder);
    snprintf(path[1], sizeof path[1], "%s/adapter_model.safetensors", wanted);
    sgm_bundle *own = sgm_bundle_load(path[0]), *other = sgm_bundle_load(path[1]);
    CHECK_OK(own);
    CHECK_INT(sgm_bundle_count(own), sgm_bundle_count(other));
    for (size_t i = 0; i < sgm_bundle_count(own); i++) {
        const char *name = sgm_bundle_name_at(own, i);
        sgm_tensor *a = sgm_bundle_get(own, name), *b = sgm_bundle_get(other, name);
        CHECK_OK(b);
        CHECK(sgm_shape_equal(sgm_tensor_shape(a), sgm_tensor_shape(b)));
        CHECK(memcmp(sgm_tensor_const_data(a), sgm_tensor_const_data(b),
                     (size_t)sgm_shape_elements(sgm_tensor_shape(a)) * sizeof(float)) == 0);
    }
    sgm_bundle_free(own);
    sgm_bundle_free(other);
}

/* Ranks and alphas are written, too, since the scores are the same. */
static void check_read_again(const char *model, const char *folder, sgm_bundle *expected)
{
    adapted back = open_adapted(model, "llama_peft");
    CHECK_OK(sgm_pretrained_adapt(back.pretrained, back.trainer, folder));
    compare_scores(folder, back.model, sgm_bundle_get(back.base, "inputs"), expected);
    close_adapted(&back);
}

TEST(adapters_are_written_as_they_were)
{
    for (size_t i = 0; i < NAME_COUNT; i++) {
        adapted a = open_adapted(names[i].model, names[i].adapters);
        const char *folder = new_folder();
        CHECK_OK(sgm_pretrained_adapt(a.pretrained, a.trainer, a.peft));
        CHECK_ERROR(sgm_pretrained_export(a.pretrained, a.trainer, new_folder()),
                    "has adapters: merge them before, by sgm_trainer_merge");
        CHECK_OK(sgm_pretrained_export_adapters(a.pretrained, a.trainer, folder));
        check_same_tensors(folder, a.peft);
        check_read_again(names[i].model, folder, a.expected);
        CHECK_ERROR(sgm_pretrained_export_adapters(a.pretrained, a.trainer, folder),
                    "has an adapter_config.json already; choose another folder");
        close_adapted(&a);
    }
}

/* One adapter of queries, keys and values together is three in PEFT, with the same A. */
TEST(an_adapter_of_matrices_side_by_side)
{
    size_t size;
    adapted a = open_adapted("llama", "llama_peft");
    const char *folder = new_folder();
    CHECK_OK(sgm_trainer_adapt(a.trainer, sgm_layer_parse("lora(2, alpha=3, on=\"attention*.weights\")")));
    CHECK_OK(sgm_pretrained_export_adapters(a.pretrained, a.trainer, folder));
    char *config = read_file(folder, "adapter_config.json", &size), path[300];
    CHECK(strstr(config, "\"lora_alpha\": 3.0") != NULL);
    CHECK(strstr(config, "\"model.layers.1.self_attn.k_proj\"") != NULL);
    CHECK(strstr(config, "o_proj") == NULL);
    free(config);
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder);
    sgm_bundle *bundle = sgm_bundle_load(path);
    CHECK_INT(sgm_bundle_count(bundle), 2 * 3 * 2);
    sgm_tensor *q = sgm_bundle_get(bundle, "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight");
    sgm_tensor *v = sgm_bundle_get(bundle, "base_model.model.model.layers.0.self_attn.v_proj.lora_A.weight");
    CHECK(memcmp(sgm_tensor_const_data(q), sgm_tensor_const_data(v), 2 * 16 * sizeof(float)) == 0);
    sgm_bundle_free(bundle);
    close_adapted(&a);
}

static void refuse(const char *file, const char *old, const char *new, const char *message)
{
    adapted a = open_adapted("llama", "llama_peft");
    const char *folder = copy_of("llama_peft");
    replace(folder, file, old, new);
    CHECK_ERROR(sgm_pretrained_adapt(a.pretrained, a.trainer, folder), message);
    close_adapted(&a);
}

TEST(what_peft_asks_for_and_is_not_known)
{
    static const struct {
        const char *old, *new, *message;
    } cases[] = {
        {"\"use_dora\": false", "\"use_dora\": true",
         "adapter_config.json': 'use_dora' asks for DoRA, which scales columns by what it has learnt "
         "besides; "
         "PEFT can make such adapters a part of the model: write model.merge_and_unload() with "
         "save_pretrained, and import that folder"},
        {"\"bias\"", "\"of_tomorrow\": 1, \"bias\"", "'of_tomorrow' is not known here; PEFT can make such"},
        {"\"target_parameters\": null", "\"target_parameters\": [\"experts\"]",
         "'target_parameters' adapts parameters that are no module's weight"},
        {"\"trainable_token_indices\": null", "\"trainable_token_indices\": [3]",
         "'trainable_token_indices' has tokens whose vectors were trained"},
        {"\"layer_replication\": null", "\"layer_replication\": [[0, 2], [1, 2]]",
         "'layer_replication' uses layers several times"},
        {"\"lora_bias\": false", "\"lora_bias\": true", "'lora_bias' gives adapters biases"},
        {"\"bias\": \"none\"", "\"bias\": \"all\"",
         "'bias' is not none: biases that were trained are not read"},
        {"\"init_lora_weights\": true", "\"init_lora_weights\": \"pissa\"",
         "'init_lora_weights' is of adapters "},
        {"\"rank_pattern\": {}", "\"rank_pattern\": [\"q_proj\"]",
         "'rank_pattern' is no object of expressions and numbers, {"},
        {"\"rank_pattern\": {}", "\"rank_pattern\": {\"q_proj\": 2.5}",
         "'rank_pattern' of 'q_proj' is no rank"},
        {"\"alpha_pattern\": {}", "\"alpha_pattern\": {\"q_proj\": 0}",
         "'alpha_pattern' of 'q_proj' is no number above 0"},
        {"\"rank_pattern\": {}", "\"rank_pattern\": {\"(q_proj\": 2}",
         "'rank_pattern' has '(q_proj', which is no regular expression"},
        {"\"rank_pattern\": {}", "\"rank_pattern\": {\"(.+)+[!?]\": 2}",
         "the expression '(.+)+[!?]' takes too long for 'model.layers.0.self_attn.q_proj'; write a simpler"},
        {"\"rank_pattern\": {}", "\"rank_pattern\": {\"q_proj\": 3}",
         "the tensor 'base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight' is float32 (2, 16), "
         "but floats of (3, 16) are wanted by the model and the rank"},
        {"\"peft_type\": \"LORA\"", "\"peft_type\": \"IA3\"", "'peft_type' is not LORA"},
        {"\"r\": 2", "\"r\": 0", "'r' is no rank"},
        {"\"r\": 2,", "", "'r' is missing"},
        {"\"lora_alpha\": 6", "\"lora_alpha\": \"6\"", "'lora_alpha' is no number above 0"},
        {"\"lora_dropout\": 0.0", "\"lora_dropout\": 1.5", "'lora_dropout' is no number from 0 to below 1"},
        {"\"r\": 2", "\"r\": 3",
         "the tensor 'base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight' is float32 (2, 16), "
         "but "
         "floats of (3, 16) are wanted by the model and the rank"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuse("adapter_config.json", cases[i].old, cases[i].new, cases[i].message);
}

/* Gives tensors of a copy other names of the same length. */
static void check_renamed(const char *old, const char *new, const char *message)
{
    adapted a = open_adapted("llama", "llama_peft");
    const char *folder = copy_of("llama_peft");
    size_t size, length = strlen(old);
    char *bytes = read_file(folder, "adapter_model.safetensors", &size);
    for (size_t i = 0; i + length <= size; i++)
        if (memcmp(bytes + i, old, length) == 0)
            memcpy(bytes + i, new, length);
    write_file(folder, "adapter_model.safetensors", bytes, size);
    free(bytes);
    CHECK_ERROR(sgm_pretrained_adapt(a.pretrained, a.trainer, folder), message);
    close_adapted(&a);
}

TEST(tensors_that_do_not_fit_the_model)
{
    check_renamed("layers.1.self_attn.v_proj.lora_A", "layers.1.self_attn.x_proj.lora_A",
                  "of 'model.layers.1.self_attn.v_proj' there is only one of lora_A and lora_B");
    check_renamed(
        "layers.1.self_attn.v_proj", "layers.1.self_attn.x_proj",
        "the tensor 'base_model.model.model.layers.1.self_attn.x_proj.lora_A.weight' is of no matrix of");
    check_renamed("self_attn", "sElf_attn", "has no adapters of '");
    check_renamed("self_attn", "sElf_attn",
                  "llama', to generate: its first tensor is 'base_model.model.model.layers.0.sElf_attn.");
}

/* PEFT has one dropout, and one rule of scaling. */
TEST(statements_that_differ_in_what_peft_has_once)
{
    static const char *const other[] = {"dropout=0.5", "rank_stabilised"};
    static const char *const messages[] = {
        "adapters that differ in dropout cannot be written for PEFT",
        "adapters that differ in rank_stabilised cannot be written for PEFT"};
    for (size_t i = 0; i < 2; i++) {
        char second[100];
        adapted a = open_adapted("llama", "llama_peft");
        snprintf(second, sizeof second, "lora(2, on=\"attention*.output_weights\", %s)", other[i]);
        CHECK_OK(sgm_trainer_adapt(a.trainer, sgm_layer_parse("lora(2, on=\"attention*.weights\")")));
        CHECK_OK(sgm_trainer_adapt(a.trainer, sgm_layer_parse(second)));
        CHECK_ERROR(sgm_pretrained_export_adapters(a.pretrained, a.trainer, new_folder()), messages[i]);
        close_adapted(&a);
    }
}

/* Gives a file's tensors of "layers.1." again, as those of the layers 2 to `layers` - 1. */
static void grow(const char *folder, const char *file, int layers)
{
    char path[300], name[200];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    sgm_bundle *bundle = sgm_bundle_load(path);
    CHECK_OK(bundle);
    size_t count = sgm_bundle_count(bundle);
    for (size_t i = 0; i < count; i++) {
        const char *old = sgm_bundle_name_at(bundle, i), *at = strstr(old, "layers.1.");
        for (int layer = 2; at != NULL && layer < layers; layer++) {
            snprintf(name, sizeof name, "%.*slayers.%d.%s", (int)(at - old), old, layer, at + 9);
            CHECK_OK(sgm_bundle_add(bundle, name, sgm_bundle_get(bundle, old)));
        }
    }
    CHECK_OK(sgm_bundle_save(bundle, path));
    sgm_bundle_free(bundle);
}

/* A text of the notation has at most 100 bytes, which the names of eight parameters do not fit into. */
TEST(adapters_of_eight_blocks_of_nine)
{
    const char *model = copy_of("qwen3"), *peft = copy_of("qwen3_peft"), *back = new_folder();
    grow(model, "model.safetensors", 9);
    replace(model, "config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 9");
    grow(peft, "adapter_model.safetensors", 8);
    sgm_env *env = sgm_env_create("adapters");
    sgm_pretrained *pretrained = sgm_pretrained_open(model, .context = TIME);
    CHECK_OK(pretrained);
    sgm_trainer *trainer = sgm_model_trainer(sgm_model_import(env, model, .context = TIME));
    CHECK_OK(sgm_pretrained_adapt(pretrained, trainer, peft));
    CHECK_OK(sgm_pretrained_export_adapters(pretrained, trainer, back));
    check_same_tensors(back, peft);
    sgm_pretrained_free(pretrained);
    sgm_env_free(env);
}
