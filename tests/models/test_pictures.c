/* Networks of pictures against what transformers computes with them (fixtures.py): classes of pictures that
 * are inputs already and of a file, losses of a training and the running statistics behind it; a last layer
 * for other classes. The way back is in test_export.c. */
#include "models/folders.h"
#include "models/losses.h"

#include <math.h>
#include <sigma/models.h>
#include <sigma/sigma.h>

#define PICTURES 8
#define STEPS 20
#define BATCH 4
#define NUMBERS (3 * 32 * 32)

static const char *const names[] = {"vit", "resnet", "resnet_bottleneck", "mobilenet_v2",
                                    "mobilenet_v2_dilated"};
#define NAME_COUNT (sizeof names / sizeof *names)

static sgm_bundle *expected_of(const char *name)
{
    char path[300];
    snprintf(path, sizeof path, FIXTURES "%s/expected.safetensors", name);
    sgm_bundle *expected = sgm_bundle_load(path);
    CHECK_OK(expected);
    return expected;
}

/* Inputs of `count` pictures, which `numbers` names (NULL: all, in order). */
static sgm_tensor *inputs_of(const sgm_bundle *expected, const int64_t *numbers, int64_t count)
{
    const unsigned char *bytes = sgm_tensor_const_data(sgm_bundle_get(expected, "pictures"));
    sgm_shape shape = sgm_shape_of(count, 3, 32, 32);
    sgm_tensor *inputs = sgm_tensor_create(SGM_FLOAT32, &shape);
    float *to = sgm_tensor_data(inputs);
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < NUMBERS; k++)
            to[i * NUMBERS + k] = (float)bytes[(numbers != NULL ? numbers[i] : i) * NUMBERS + k] / 127.5F - 1;
    return inputs;
}

/* Rows of three probabilities against logits, or against probabilities. */
static void compare_rows(const char *name, sgm_tensor *given, const sgm_tensor *wanted, bool logits)
{
    if (given == NULL)
        TEST_FAIL("%s: %s", name, sgm_last_error());
    CHECK(sgm_shape_equal(sgm_tensor_shape(given), sgm_tensor_shape(wanted)));
    int64_t rows = sgm_tensor_shape(wanted)->dims[0];
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;
        for (int64_t c = 0; c < 3 && logits; c++)
            sum += exp(sgm_tensor_get(wanted, (int64_t[]){i, c}));
        for (int64_t c = 0; c < 3; c++) {
            double own = log(sgm_tensor_get(given, (int64_t[]){i, c}));
            double theirs = sgm_tensor_get(wanted, (int64_t[]){i, c});
            theirs = logits ? theirs - log(sum) : log(theirs);
            if (!test_near(own, theirs, 1e-5))
                TEST_FAIL("%s: class %d of picture %d has %.9g, transformers has %.9g", name, (int)c, (int)i,
                          own, theirs);
        }
    }
    sgm_tensor_free(given);
}

/* By way of size, middle, mean and deviation of preprocessor_config.json. */
static void compare_file(const char *name, sgm_trainer *trainer, const sgm_bundle *expected)
{
    sgm_pipeline *pipeline = sgm_trainer_get_pipeline(trainer);
    CHECK(pipeline != NULL);
    const char *const *classes = sgm_pipeline_classes(pipeline);
    CHECK_STR(classes[0], "cat");
    CHECK_STR(classes[1], "crane");
    CHECK_STR(classes[2], "crane (2)");
    sgm_block *block = sgm_pipeline_files(pipeline, &(sgm_file){.name = FIXTURES "picture.png"}, 1);
    CHECK_OK(block);
    compare_rows(name, sgm_trainer_predict_block(trainer, block, NULL),
                 sgm_bundle_get(expected, "probabilities"), false);
    sgm_block_free(block);
}

static sgm_tensor *targets_of(const sgm_bundle *expected)
{
    const int64_t *classes = sgm_tensor_const_data(sgm_bundle_get(expected, "targets"));
    sgm_shape shape = sgm_shape_of(STEPS * BATCH, 3);
    sgm_tensor *shares = sgm_tensor_create(SGM_FLOAT32, &shape);
    for (int64_t i = 0; i < STEPS * BATCH; i++)
        sgm_tensor_set(shares, (int64_t[]){i, classes[i]}, 1);
    return shares;
}

/* What the norm of this name follows. */
static void compare_statistics(sgm_trainer *trainer, const sgm_bundle *expected, const char *norm)
{
    static const char *const own[] = {"means", "variances"}, *const theirs[] = {"mean", "variance"};
    for (int k = 0; k < 2; k++) {
        char name[100];
        snprintf(name, sizeof name, "%s.%s", norm, own[k]);
        sgm_tensor *given = sgm_trainer_get(trainer, name);
        const sgm_tensor *wanted = sgm_bundle_get(expected, theirs[k]);
        CHECK_OK(given);
        CHECK(sgm_shape_equal(sgm_tensor_shape(given), sgm_tensor_shape(wanted)));
        for (int64_t i = 0; i < sgm_tensor_shape(wanted)->dims[0]; i++)
            CHECK_NEAR(sgm_tensor_get(given, &i), sgm_tensor_get(wanted, &i), 1e-4);
        sgm_tensor_free(given);
    }
}

static void compare_training(const char *name, sgm_trainer *trainer, const sgm_bundle *expected)
{
    static const char *const norms[NAME_COUNT] = {NULL, "stage1_layer1_norm1", "stem_norm", "stem_first_norm",
                                                  "stem_first_norm"};
    static const char *const fields[] = {"inputs", "targets"};
    sgm_tensor *tensors[] = {
        inputs_of(expected, sgm_tensor_const_data(sgm_bundle_get(expected, "batches")), STEPS * BATCH),
        targets_of(expected)};
    sgm_dataset *data = sgm_dataset_create_from("batches", fields, tensors, 2);
    compare_losses_of(name, trainer, data, BATCH, 1e-3,
                      sgm_tensor_const_data(sgm_bundle_get(expected, "losses")), STEPS);
    for (size_t i = 0; i < NAME_COUNT; i++)
        if (strcmp(names[i], name) == 0 && norms[i] != NULL)
            compare_statistics(trainer, expected, norms[i]);
    sgm_dataset_free(data);
    sgm_tensor_free(tensors[0]);
    sgm_tensor_free(tensors[1]);
}

TEST(networks_of_pictures_compute_what_transformers_computes)
{
    for (size_t i = 0; i < NAME_COUNT; i++) {
        char path[300];
        snprintf(path, sizeof path, FIXTURES "%s", names[i]);
        sgm_bundle *expected = expected_of(names[i]);
        sgm_env *env = sgm_env_create("pictures");
        sgm_model *model = sgm_model_import(env, path);
        if (model == NULL)
            TEST_FAIL("%s: %s", names[i], sgm_last_error());
        sgm_trainer *trainer = sgm_model_trainer(model);
        sgm_tensor *inputs = inputs_of(expected, NULL, PICTURES);
        compare_rows(names[i], sgm_model_predict(model, inputs), sgm_bundle_get(expected, "logits"), true);
        compare_file(names[i], trainer, expected);
        compare_training(names[i], trainer, expected);
        sgm_tensor_free(inputs);
        sgm_env_free(env);
        sgm_bundle_free(expected);
    }
}

/* What the last layer of the same files makes of the vector are transformers' probabilities. */
TEST(a_model_makes_vectors_of_files_of_pictures)
{
    sgm_bundle *expected = expected_of("vit"), *files = sgm_bundle_load(FIXTURES "vit/model.safetensors");
    const sgm_tensor *weights = sgm_bundle_get(files, "classifier.weight");
    const sgm_tensor *biases = sgm_bundle_get(files, "classifier.bias");
    sgm_env *env = sgm_env_create("vectors");
    sgm_model *model = sgm_model_import(env, FIXTURES "vit", .task = "embed");
    CHECK_OK(model);
    sgm_trainer *trainer = sgm_model_trainer(model);
    CHECK(sgm_trainer_get_pipeline(trainer) != NULL);
    sgm_block *block =
        sgm_pipeline_files(sgm_trainer_get_pipeline(trainer), &(sgm_file){.name = FIXTURES "picture.png"}, 1);
    CHECK_OK(block);
    sgm_tensor *vector = sgm_trainer_predict_block(trainer, block, NULL);
    CHECK_OK(vector);
    double shares[3], sum = 0;
    for (int64_t c = 0; c < 3; c++) {
        double logit = sgm_tensor_get(biases, &c);
        for (int64_t i = 0; i < sgm_tensor_shape(vector)->dims[1]; i++)
            logit += sgm_tensor_get(vector, (int64_t[]){0, i}) * sgm_tensor_get(weights, (int64_t[]){c, i});
        sum += shares[c] = exp(logit);
    }
    for (int64_t c = 0; c < 3; c++)
        CHECK_NEAR(log(shares[c] / sum),
                   log(sgm_tensor_get(sgm_bundle_get(expected, "probabilities"), (int64_t[]){0, c})), 1e-5);
    sgm_tensor_free(vector);
    sgm_block_free(block);
    sgm_bundle_free(files);
    sgm_bundle_free(expected);
    sgm_env_free(env);
}

/* The rest of the network is the model's, and transformers gets as many classes back. */
TEST(a_last_layer_for_other_classes_is_begun_anew)
{
    const char *folder = copy_of("vit"), *run = new_folder(), *written = new_folder();
    sgm_pretrained *model = sgm_pretrained_open(folder, .classes = 5);
    CHECK_OK(model);
    CHECK_INT(sgm_pretrained_describe(model)->classes, 5);
    sgm_env *env = sgm_env_create("classes");
    sgm_trainer *trainer = sgm_trainer_create(env, "classes");
    CHECK_OK(sgm_pretrained_load(model, trainer));
    sgm_tensor *patches = sgm_trainer_get(trainer, "patches.weights");
    sgm_tensor *classifier = sgm_trainer_get(trainer, "classifier.weights");
    CHECK_OK(sgm_pretrained_keep(model, run));
    sgm_pretrained_free(model);
    model = sgm_pretrained_open(run);
    CHECK_OK(model);
    CHECK_INT(sgm_pretrained_describe(model)->classes, 5);
    CHECK_OK(sgm_pretrained_export(model, trainer, written));
    sgm_pretrained_free(model);
    char path[300], old[300];
    snprintf(path, sizeof path, "%s/model.safetensors", written);
    snprintf(old, sizeof old, "%s/model.safetensors", folder);
    sgm_bundle *bundle = sgm_bundle_load(path), *before = sgm_bundle_load(old);
    const sgm_tensor *weights = sgm_bundle_get(bundle, "classifier.weight");
    CHECK(sgm_tensor_shape(weights)->dims[0] == 5 && sgm_tensor_shape(weights)->dims[1] == 16);
    CHECK_NEAR(sgm_tensor_get(weights, (int64_t[]){4, 7}), sgm_tensor_get(classifier, (int64_t[]){7, 4}), 0);
    const int64_t place[] = {3, 2, 1, 0};
    CHECK_NEAR(
        sgm_tensor_get(patches, place),
        sgm_tensor_get(sgm_bundle_get(before, "vit.embeddings.patch_embeddings.projection.weight"), place),
        0);
    size_t size;
    char *config = read_file(written, "config.json", &size);
    CHECK(strstr(config, "\"LABEL_4\"") != NULL && strstr(config, "crane") == NULL);
    free(config);
    sgm_tensor_free(patches);
    sgm_tensor_free(classifier);
    sgm_bundle_free(bundle);
    sgm_bundle_free(before);
    sgm_env_free(env);
}

/* The pipeline of a folder that is written back, of a trainer with one of its own. */
static void check_written_pipeline(const char *given, const char *wanted, const char *processor)
{
    const char *written = new_folder();
    sgm_pretrained *model = sgm_pretrained_open(FIXTURES "vit");
    sgm_env *env = sgm_env_create("written");
    sgm_trainer *trainer = sgm_trainer_create(env, "written");
    CHECK_OK(sgm_pretrained_load(model, trainer));
    sgm_pipeline *pipeline = sgm_pipeline_parse(given);
    CHECK_OK(pipeline);
    CHECK_OK(sgm_trainer_set_pipeline(trainer, pipeline));
    sgm_pipeline_free(pipeline);
    CHECK_OK(sgm_pretrained_export(model, trainer, written));
    sgm_pretrained_free(model);
    sgm_model *again = sgm_model_import(env, written);
    CHECK_OK(again);
    char *text = sgm_pipeline_json(sgm_trainer_get_pipeline(sgm_model_trainer(again)));
    CHECK_STR(text, wanted);
    sgm_string_free(text);
    size_t size;
    char *config = read_file(written, "preprocessor_config.json", &size);
    CHECK(strstr(config, processor) != NULL);
    free(config);
    sgm_env_free(env);
}

/* Who reads the folder scales and normalises pictures as those were that the network has learnt from, and
 * calls its classes as they were called. transformers has no average of areas. */
TEST(a_folder_says_how_its_pictures_were_prepared)
{
#define PIPELINE(numbers, filter)                                                                            \
    "{\"version\":1,\"kind\":\"pictures\",\"width\":32,\"height\":32,\"channels\":3," numbers filter         \
    "\"classes\":[\"ant\",\"bee\",\"cow\"]}"
#define SCALE "\"mean\":[0.25,0.5,0.125],\"deviation\":[0.5,0.25,0.75],"
    check_written_pipeline(PIPELINE(SCALE, "\"filter\":\"bicubic\","),
                           PIPELINE(SCALE, "\"filter\":\"bicubic\","), "\"ViTImageProcessor\"");
    check_written_pipeline(PIPELINE(SCALE, ""), PIPELINE(SCALE, "\"filter\":\"bilinear\","),
                           "\"resample\": 2");
    check_written_pipeline(PIPELINE(SCALE, "\"filter\":\"bilinear\",\"shortest\":36,"),
                           PIPELINE(SCALE, "\"filter\":\"bilinear\",\"shortest\":36,"),
                           "\"MobileNetV2ImageProcessor\"");
#undef SCALE
#undef PIPELINE
}

/* A file that was saved without a head gets one, and its names the prefix that they have beside it. */
TEST(pictures_have_no_context)
{
    for (size_t i = 0; i < NAME_COUNT; i++) {
        char path[300], message[400];
        snprintf(path, sizeof path, FIXTURES "%s", names[i]);
        snprintf(message, sizeof message,
                 "a context of 64 steps is wanted, but '%s' is a model of pictures (", path);
        CHECK_ERROR(sgm_pretrained_open(path, .context = 64), message);
        CHECK_INT(sgm_last_status(), SGM_ERROR_ARGUMENT);
    }
}

TEST(a_model_without_a_last_layer_gets_one)
{
    const char *folder = copy_of("bert_embed"), *written = new_folder();
    CHECK_ERROR(
        sgm_pretrained_open(folder, .task = "classify"),
        "has no tensor 'classifier.weight', which is needed by config.json; say how many classes to begin "
        "with a new last layer (--classes)");
    CHECK_ERROR(sgm_pretrained_open(folder, .task = "embed", .classes = 2),
                "other classes are for models that classify, and");
    CHECK_ERROR(sgm_pretrained_open(copy_of("llama"), .classes = 2), "is one to generate; choose the task");
    sgm_pretrained *model = sgm_pretrained_open(folder, .classes = 4);
    CHECK_OK(model);
    sgm_env *env = sgm_env_create("head");
    sgm_trainer *trainer = sgm_trainer_create(env, "head");
    CHECK_OK(sgm_pretrained_load(model, trainer));
    CHECK_OK(sgm_pretrained_export(model, trainer, written));
    sgm_pretrained_free(model);
    model = sgm_pretrained_open(written);
    CHECK_OK(model);
    CHECK_STR(sgm_pretrained_describe(model)->task, "classify");
    CHECK_INT(sgm_pretrained_describe(model)->classes, 4);
    sgm_pretrained_free(model);
    char path[300];
    snprintf(path, sizeof path, "%s/model.safetensors", written);
    sgm_bundle *bundle = sgm_bundle_load(path);
    CHECK(sgm_bundle_get(bundle, "bert.embeddings.word_embeddings.weight") != NULL);
    sgm_bundle_free(bundle);
    sgm_env_free(env);
}

TEST(what_a_processor_asks_for_and_is_not_known_is_named)
{
    static const struct {
        const char *fixture, *old, *new, *error;
    } cases[] = {
        {"vit", "\"resample\": 2", "\"resample\": 1",
         "preprocessor_config.json': 'resample' is 1; 2 (bilinear)"},
        {"vit", "\"height\": 32", "\"height\": 40", "'image_size' is 32, but preprocessor_config.json makes"},
        {"vit", "\"height\": 32", "\"height\": 1000000",
         "'size.height' is 1000000; a side of a picture has at"},
        {"resnet", "\"crop_pct\": 0.875", "\"crop_pct\": 1e-9",
         "'crop_pct' is 1e-09; a share up to 1 is wanted"},
        {"mobilenet_v2", "\"shortest_edge\": 37", "\"shortest_edge\": 20",
         "'crop_size' is larger than 'size'"},
        {"mobilenet_v2", "\"do_center_crop\": true", "\"do_center_crop\": false",
         "'do_center_crop' is false"},
        {"vit", "\"do_resize\": true",
         "\"do_resize\": true, \"do_center_crop\": true, \"crop_size\": {\"height\": 28, \"width\": 28}",
         "'do_center_crop' cuts 28 x 28 pixels out of 32 x 32"},
        {"vit", "ViTImageProcessor", "DeiTImageProcessor", "'crop_size' is missing"},
        {"vit", "\"do_resize\": true", "\"do_resize\": true, \"do_flip_channel_order\": true",
         "'do_flip_channel_order' is true"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *folder = copy_of(cases[i].fixture);
        replace(folder, "preprocessor_config.json", cases[i].old, cases[i].new);
        CHECK_ERROR(sgm_pretrained_open(folder), cases[i].error);
    }
}

/* What a pipeline of pictures may say of its scaling, and that it says it again. */
TEST(scaling_is_a_part_of_a_pipeline)
{
#define PIPELINE(more)                                                                                       \
    "{\"version\":1,\"kind\":\"pictures\",\"width\":8,\"height\":8,\"channels\":1,\"mean\":[0.5],"           \
    "\"deviation\":[0.2]," more "\"classes\":[\"a\",\"b\"]}"
    const char *text = PIPELINE("\"filter\":\"bicubic\",\"shortest\":9,");
    sgm_pipeline *pipeline = sgm_pipeline_parse(text);
    CHECK_OK(pipeline);
    char *again = sgm_pipeline_json(pipeline);
    CHECK_STR(again, text);
    sgm_string_free(again);
    sgm_pipeline_free(pipeline);
    CHECK_ERROR(sgm_pipeline_parse(PIPELINE("\"filter\":\"lanczos\",")),
                "'filter': area, bilinear or bicubic");
    CHECK_ERROR(sgm_pipeline_parse(PIPELINE("\"filter\":\"bilinear\",\"shortest\":7,")),
                "a picture of 8 x 8 pixels is cut out of one whose shorter side has as many or more");
    CHECK_ERROR(sgm_pipeline_parse(PIPELINE("\"shortest\":9,")), "'shortest' is 9, 'filter' area");
#undef PIPELINE
}
