/* The pipeline of a table in checkpoints: kept with the network, refused where the training data have another
 * one. */
#include "base/base.h"
#include "data/data_test.h"
#include <sigma/sigma.h>

static const char rows[] =
    "length,width,kind\n1.4,0.2,setosa\n4.7,1.4,virginica\n1.3,0.2,setosa\n4.5,1.5,virginica\n";
#define NETWORK "input(2) + dense(2) + softmax_cross_entropy"

typedef struct made {
    sgm_env *env;
    sgm_trainer *trainer;
    sgm_dataset *dataset;
    sgm_pipeline *pipeline;
} made;

/* A trainer on the table, with a pipeline of this scale; without one and without data for NULL. */
static made make(const sgm_scale *scale)
{
    made m = {.env = sgm_env_create("t", .seed = 1)};
    m.trainer = sgm_trainer_create(m.env, "t");
    CHECK_OK(sgm_trainer_set_network(m.trainer, NETWORK));
    CHECK_OK(sgm_trainer_set_optimiser(m.trainer, sgm_adam(.learning_rate = 0)));
    if (scale == NULL)
        return m;
    const char *path = data_path("rows.csv");
    CHECK_OK(sgm__file_write_atomic(path, rows, strlen(rows)));
    sgm_table *table = sgm_table_open(path);
    m.pipeline = sgm_pipeline_fit(table, .targets = {"kind"}, .scale = *scale);
    sgm_table_free(table);
    m.dataset = sgm_dataset_create("rows", .extractor = sgm_pipeline_extractor(m.pipeline, path));
    CHECK_OK(sgm_dataset_set_pipeline(m.dataset, m.pipeline));
    CHECK_OK(sgm_trainer_set_data(m.trainer, sgm_minibatches(m.dataset, .size = 2)));
    return m;
}

static void release(made *m)
{
    sgm_env_free(m->env);
    sgm_dataset_free(m->dataset);
    sgm_pipeline_free(m->pipeline);
}

static char *json_of(const sgm_pipeline *pipeline)
{
    return pipeline != NULL ? sgm_pipeline_json(pipeline) : NULL;
}

static const sgm_scale standard = SGM_SCALE_STANDARD, none = SGM_SCALE_NONE;

TEST(datasets_have_pipelines)
{
    made m = make(&standard);
    CHECK(sgm_dataset_get_pipeline(m.dataset) == m.pipeline);
    CHECK_STR(sgm_dataset_get_class_names(m.dataset)[1], "virginica");
    sgm_dataset *view = sgm_dataset_split_examples(m.dataset, 0, 0.5);
    CHECK(sgm_dataset_get_pipeline(view) == m.pipeline);
    CHECK_INT(sgm_dataset_set_pipeline(m.dataset, m.pipeline), SGM_ERROR_STATE);
    CHECK(strstr(sgm_last_error(), "has a pipeline already"));
    CHECK(sgm_dataset_set_pipeline(m.dataset, NULL) != SGM_OK);
    CHECK(sgm_trainer_get_pipeline(m.trainer) == m.pipeline);
    sgm_dataset_free(view);
    release(&m);
}

TEST(checkpoints_keep_pipelines)
{
    made m = make(&standard);
    char *wanted = json_of(m.pipeline);
    const char *path = data_path("a.safetensors"), *again = data_path("b.safetensors");
    CHECK_OK(sgm_env_run(m.env, .epochs = 1));
    CHECK_OK(sgm_trainer_save(m.trainer, path));
    release(&m);

    sgm_pipeline *found;
    CHECK_OK(sgm_checkpoint_pipeline(path, &found));
    char *json = json_of(found);
    CHECK_STR(json, wanted);
    sgm_string_free(json);
    sgm_pipeline_free(found);

    /* A trainer without data keeps it, and saves it again. */
    made loaded = make(NULL);
    CHECK(sgm_trainer_get_pipeline(loaded.trainer) == NULL);
    CHECK_OK(sgm_trainer_load(loaded.trainer, path));
    json = json_of(sgm_trainer_get_pipeline(loaded.trainer));
    CHECK_STR(json, wanted);
    sgm_string_free(json);
    CHECK_OK(sgm_trainer_save(loaded.trainer, again));
    release(&loaded);
    CHECK_OK(sgm_checkpoint_pipeline(again, &found));
    json = json_of(found);
    CHECK_STR(json, wanted);
    sgm_string_free(json);
    sgm_pipeline_free(found);

    /* The same table gives the same pipeline, so training goes on. */
    made same = make(&standard);
    CHECK_OK(sgm_trainer_load(same.trainer, path));
    release(&same);
    sgm_string_free(wanted);
}

TEST(another_pipeline_is_refused)
{
    made m = make(&standard);
    const char *path = data_path("a.safetensors");
    CHECK_OK(sgm_env_run(m.env, .epochs = 1));
    CHECK_OK(sgm_trainer_save(m.trainer, path));
    release(&m);
    made other = make(&none);
    CHECK_OK(sgm_trainer_prepare(other.trainer));
    sgm_tensor *before = sgm_trainer_get(other.trainer, "1-dense.weights");
    CHECK_INT(sgm_trainer_load(other.trainer, path), SGM_ERROR_FORMAT);
    CHECK(strstr(sgm_last_error(),
                 "the pipeline of the training data is another one than that of the checkpoint"));
    sgm_tensor *after = sgm_trainer_get(other.trainer, "1-dense.weights");
    CHECK(memcmp(sgm_tensor_data(before), sgm_tensor_data(after), 4 * sizeof(float)) == 0);
    CHECK(sgm_trainer_get_pipeline(other.trainer) == other.pipeline);
    /* The parameters alone may be taken. */
    CHECK_OK(sgm_trainer_load_parts(other.trainer, path, .parts = SGM_PART_PARAMETERS));
    sgm_tensor_free(before);
    sgm_tensor_free(after);
    release(&other);
}

/* The network and the pipeline of a file must belong together: that is told at loading, not with the first
 * row. */
TEST(a_pipeline_of_another_width_is_refused)
{
    static const char other[] =
        "{\"version\":1,\"header\":true,\"decimal\":\".\",\"columns\":["
        "{\"name\":\"x\",\"kind\":\"category\",\"field\":\"inputs\",\"impute\":null,"
        "\"categories\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\",\"i\"]},"
        "{\"name\":\"y\",\"kind\":\"number\",\"field\":\"targets\",\"required\":true,\"offset\":0.0,"
        "\"factor\":1.0}]}";
    made m = make(NULL);
    const char *path = data_path("w.safetensors");
    CHECK_OK(sgm_trainer_prepare(m.trainer));
    CHECK_OK(sgm_trainer_save(m.trainer, path));
    sgm_bundle *bundle = sgm_bundle_load(path);
    char *state = sgm__format("{\"pipeline\":%s,%s", other, sgm_bundle_get_text(bundle, "sigma.state") + 1);
    CHECK_OK(sgm_bundle_set_text(bundle, "sigma.state", state));
    CHECK_OK(sgm_bundle_save(bundle, path));
    CHECK_INT(sgm_trainer_load(m.trainer, path), SGM_ERROR_FORMAT);
    CHECK(strstr(sgm_last_error(), "numbers of 'inputs', and the pipeline makes 9: they are of different"));
    sgm__free(state);
    sgm_bundle_free(bundle);
    release(&m);
}

TEST(checkpoints_without_and_with_damaged_ones)
{
    made m = make(NULL);
    const char *path = data_path("a.safetensors");
    sgm_pipeline *found = m.pipeline;
    CHECK_OK(sgm_trainer_prepare(m.trainer));
    CHECK_OK(sgm_trainer_save(m.trainer, path));
    CHECK_OK(sgm_checkpoint_pipeline(path, &found));
    CHECK(found == NULL);
    sgm_bundle *bundle = sgm_bundle_load(path);
    const char *state = sgm_bundle_get_text(bundle, "sigma.state");
    char *damaged = sgm__format("{\"pipeline\":{\"version\":9},%s", state + 1);
    CHECK_OK(sgm_bundle_set_text(bundle, "sigma.state", damaged));
    CHECK_OK(sgm_bundle_save(bundle, path));
    CHECK_INT(sgm_checkpoint_pipeline(path, &found), SGM_ERROR_FORMAT);
    CHECK(strstr(sgm_last_error(),
                 "a.safetensors': a pipeline: 'version': 1 or 2, which this version of Sigma reads, was "
                 "expected"));
    CHECK(found == NULL);
    CHECK_INT(sgm_trainer_load(m.trainer, path), SGM_ERROR_FORMAT);
    sgm__free(damaged);
    sgm_bundle_free(bundle);
    release(&m);
}

/* Both kinds of proposals are networks, with the fields of their pipelines. */
TEST(proposed_networks)
{
    const char *path = data_path("rows.csv");
    CHECK_OK(sgm__file_write_atomic(path, rows, strlen(rows)));
    sgm_table *table = sgm_table_open(path);
    static const struct {
        const char *target, *embedding, *drop, *network;
    } cases[] = {
        {"kind", NULL, NULL,
         "input(2) + dense(64, relu) + dense(64, relu) + dense(2) + softmax_cross_entropy"},
        {"width", "kind", NULL,
         "branch0 = input(1); branch1 = input(1, name=\"kind\") + embedding(3, 2) + flatten; "
         "concatenate(branch0, branch1) + "
         "dense(64, relu) + dense(64, relu) + dense(1) + mean_squared"},
        {"width", "kind", "length",
         "branch0 = input(1, name=\"kind\") + embedding(3, 2) + flatten; branch0 + dense(64, relu) + "
         "dense(64, relu) + "
         "dense(1) + mean_squared"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sgm_pipeline *pipeline =
            sgm_pipeline_fit(table, .targets = {cases[i].target},
                             .embedding = {{.column = cases[i].embedding}}, .drop = {cases[i].drop});
        char *network = sgm_pipeline_network(pipeline);
        CHECK_STR(network, cases[i].network);
        sgm_dataset *dataset =
            sgm_dataset_create("rows", .extractor = sgm_pipeline_extractor(pipeline, path));
        sgm_env *env = sgm_env_create("t", .seed = 1);
        sgm_trainer *trainer = sgm_trainer_create(env, "t");
        CHECK_OK(sgm_trainer_set_network(trainer, network));
        CHECK_OK(sgm_trainer_set_optimiser(trainer, sgm_adam()));
        CHECK_OK(sgm_trainer_set_data(trainer, sgm_minibatches(dataset, .size = 2)));
        CHECK_OK(sgm_env_run(env, .epochs = 1));
        sgm_env_free(env);
        sgm_dataset_free(dataset);
        sgm_string_free(network);
        sgm_pipeline_free(pipeline);
    }
    sgm_table_free(table);
}
