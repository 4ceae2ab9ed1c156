/* Encoders against what transformers computes with them (fixtures.py): vectors of texts, classes, masked
 * tokens, for texts of different lengths; losses of a training; and the way back. */
#include "models/compare_encoders.h"

TEST(encoders_compute_what_transformers_computes)
{
    static const char *const names[] = {"bert_embed",      "bert_fill",          "bert_classify",
                                        "roberta_fill",    "roberta_classify",   "distilbert_embed",
                                        "distilbert_fill", "distilbert_classify"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[300];
        snprintf(path, sizeof path, FIXTURES "%s/expected.safetensors", names[i]);
        sgm_bundle *expected = sgm_bundle_load(path);
        CHECK_OK(expected);
        *strrchr(path, '/') = '\0';
        sgm_env *env = sgm_env_create("encoders");
        sgm_model *model = sgm_model_import(env, path, .context = TIME);
        CHECK_OK(model);
        sgm_trainer *trainer = sgm_model_trainer(model);
        compare_scores(names[i], trainer, expected, expected);
        if (strstr(names[i], "embed") == NULL)
            compare_training(names[i], trainer, expected, expected);
        sgm_env_free(env);
        sgm_bundle_free(expected);
    }
}

/* A model with a head makes vectors without it; the length is 1 where sentence-transformers says so. */
TEST(the_task_chooses_the_head)
{
    const char *folder = copy_of("bert_classify");
    sgm_pretrained *model = sgm_pretrained_open(folder, .task = "embed");
    CHECK_OK(model);
    CHECK_STR(sgm_pretrained_describe(model)->task, "embed");
    CHECK(strstr(sgm_pretrained_network(model), "global_average_pooling(steps)") != NULL);
    CHECK(strstr(sgm_pretrained_network(model), "unit_norm") == NULL);
    sgm_pretrained_free(model);
    const char modules[] = "[{\"type\": \"sentence_transformers.models.Normalize\"}]";
    write_file(folder, "modules.json", modules, strlen(modules));
    model = sgm_pretrained_open(folder, .task = "embed");
    CHECK(strstr(sgm_pretrained_network(model), "global_average_pooling(steps) + unit_norm") != NULL);
    sgm_pretrained_free(model);
    CHECK(sgm_pretrained_open(folder, .task = "fill") == NULL);
    CHECK(strstr(sgm_last_error(), "has no tensor 'cls.predictions.transform.dense.weight'") != NULL);
}
