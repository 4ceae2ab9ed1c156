/* Encoders that are trained to tell classes apart by a new last layer, and to make vectors of texts that are
 * near for pairs: losses of transformers and PyTorch (heads_torch.py), from folders and from runs. */
#include "models/folders.h"
#include "models/heads_torch.h"
#include "models/losses.h"

#include <math.h>
#include <sigma/models.h>
#include <sigma/sigma.h>

#define TIME 12
#define STEPS 20
#define TEXTS 12
#define CLASSES 3

static const char *const names[] = {"cat", "crane", "dog"};

/* --- the same texts and weights as in heads_torch.py --- */

static sgm_tensor *tensor_of(sgm_shape shape)
{
    sgm_tensor *tensor = sgm_tensor_create(SGM_FLOAT32, &shape);
    CHECK_OK(tensor);
    return tensor;
}

/* Texts of all steps, with classes, or of which `group` in a row belong together. */
static sgm_dataset *texts_of(int64_t group)
{
    static const char *const fields[] = {"inputs", "lengths", "targets"};
    const int64_t count = STEPS * TEXTS;
    sgm_tensor *tensors[] = {tensor_of(sgm_shape_of(count, TIME)), tensor_of(sgm_shape_of(count)),
                             tensor_of(sgm_shape_of(count, CLASSES))};
    float *tokens = sgm_tensor_data(tensors[0]), *lengths = sgm_tensor_data(tensors[1]),
          *shares = sgm_tensor_data(tensors[2]);
    for (int64_t i = 0; i < count; i++) {
        const int64_t length = 3 + 5 * i % 10;
        lengths[i] = (float)length;
        shares[i * CLASSES + i % TEXTS % CLASSES] = 1;
        for (int64_t k = 0; k < length; k++)
            tokens[i * TIME + k] = (float)(2 + (31 * i + 17 * k + 7 * i * k) % 59);
    }
    sgm_dataset *data = sgm_dataset_create_from("texts", fields, tensors, group > 1 ? 2 : 3);
    CHECK_OK(sgm_dataset_set_group(data, group));
    for (int i = 0; i < 3; i++)
        sgm_tensor_free(tensors[i]);
    return data;
}

/* Of a new layer: weights (inputs, outputs) and biases. */
static double begin_at(const char *name, int64_t row, int64_t column, int64_t rows)
{
    return strstr(name, ".biases") != NULL ? 0.1 * sin(1.3 * (double)row)
                                           : 0.2 * sin(0.7 * (double)(column * rows + row) + 0.3);
}

/* Whether the layer of a parameter is one of those. */
static bool is_among(const char *layers, const char *parameter)
{
    char layer[64];
    snprintf(layer, sizeof layer, "%.*s", (int)strcspn(parameter, "."), parameter);
    return strstr(layers, layer) != NULL;
}

/* Gives the layers that are named their weights, and all gains of norms 1 more. */
static void begin(sgm_trainer *trainer, const char *layers)
{
    size_t count;
    const sgm_parameter *parameters = sgm_trainer_parameters(trainer, &count);
    for (size_t i = 0; i < count; i++) {
        const char *name = parameters[i].name;
        const bool is_new = is_among(layers, name), is_gain = strstr(name, ".gains") != NULL;
        sgm_tensor *value = is_new || is_gain ? sgm_trainer_get(trainer, name) : NULL;
        if (value == NULL)
            continue;
        const sgm_shape *shape = sgm_tensor_shape(value);
        const int64_t columns = shape->rank == 2 ? shape->dims[1] : 1;
        float *numbers = sgm_tensor_data(value);
        for (int64_t k = 0; k < sgm_shape_elements(shape); k++)
            numbers[k] =
                is_gain ? numbers[k] + 1 : (float)begin_at(name, k / columns, k % columns, shape->dims[0]);
        CHECK_OK(sgm_trainer_set(trainer, name, value));
        sgm_tensor_free(value);
    }
}

/* --- losses --- */

static const char *path_of(const char *fixture)
{
    static char path[200];
    snprintf(path, sizeof path, FIXTURES "%s", fixture);
    return path;
}

static sgm_pretrained *classifier_of(const char *path)
{
    sgm_pretrained *model =
        sgm_pretrained_open(path, .context = TIME, .classes = CLASSES, .class_names = names);
    CHECK_OK(model);
    CHECK_STR(sgm_pretrained_describe(model)->task, "classify");
    CHECK_INT(sgm_pretrained_describe(model)->classes, CLASSES);
    CHECK_STR(sgm_pretrained_class(model, 1), "crane");
    return model;
}

static void check_training(const char *name, sgm_trainer *trainer, int64_t group, const float *expected)
{
    sgm_dataset *data = texts_of(group);
    compare_losses_of(name, trainer, data, TEXTS, 1e-3, expected, STEPS);
    sgm_dataset_free(data);
}

/* The pooler of BERT is in the file; RoBERTa and DistilBERT begin a layer before the last one anew. */
TEST(new_layers_learn_classes_as_those_of_transformers)
{
    static const struct {
        const char *fixture, *layers;
        const float *losses;
    } cases[] = {{"bert_embed", "classifier", bert_embed_classes},
                 {"roberta_fill", "pooler classifier", roberta_fill_classes},
                 {"distilbert_fill", "pooler classifier", distilbert_fill_classes}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sgm_env *env = sgm_env_create("heads");
        sgm_trainer *trainer = sgm_trainer_create(env, "heads");
        sgm_pretrained *model = classifier_of(path_of(cases[i].fixture));
        CHECK_OK(sgm_pretrained_load(model, trainer));
        begin(trainer, cases[i].layers);
        check_training(cases[i].fixture, trainer, 1, cases[i].losses);
        sgm_pretrained_free(model);
        sgm_env_free(env);
    }
}

TEST(pairs_cost_what_they_cost_pytorch)
{
    static const struct {
        int64_t group;
        const char *cost;
        const float *losses;
    } cases[] = {{2, "info_nce", bert_embed_pairs}, {3, "info_nce(group=3)", bert_embed_triples}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char network[2000];
        sgm_env *env = sgm_env_create("pairs");
        sgm_trainer *trainer = sgm_trainer_create(env, "pairs");
        sgm_pretrained *model = sgm_pretrained_open(path_of("bert_embed"), .context = TIME);
        snprintf(network, sizeof network, "%s + %s", sgm_pretrained_network(model), cases[i].cost);
        CHECK_OK(sgm_trainer_set_network(trainer, network));
        CHECK_OK(sgm_pretrained_load(model, trainer));
        begin(trainer, "none");
        check_training(cases[i].cost, trainer, cases[i].group, cases[i].losses);
        sgm_pretrained_free(model);
        sgm_env_free(env);
    }
}

/* --- runs --- */

/* The folder of a run: a checkpoint, and what is kept of the model. */
static const char *run_of(sgm_pretrained *model, sgm_trainer *trainer)
{
    const char *folder = new_folder();
    char checkpoint[200];
    snprintf(checkpoint, sizeof checkpoint, "%s/checkpoint.safetensors", folder);
    CHECK_OK(sgm_pretrained_keep(model, folder));
    CHECK_OK(sgm_trainer_save_parts(trainer, checkpoint, .parts = SGM_PART_NETWORK | SGM_PART_PARAMETERS));
    return folder;
}

static void check_equal(sgm_trainer *a, sgm_trainer *b, const char *but)
{
    size_t count;
    const sgm_parameter *parameters = sgm_trainer_parameters(a, &count);
    for (size_t i = 0; i < count; i++) {
        if (is_among(but, parameters[i].name))
            continue;
        sgm_tensor *left = sgm_trainer_get(a, parameters[i].name),
                   *right = sgm_trainer_get(b, parameters[i].name);
        CHECK_OK(left);
        CHECK_OK(right);
        CHECK(memcmp(sgm_tensor_const_data(left), sgm_tensor_const_data(right),
                     (size_t)sgm_shape_elements(&parameters[i].type.shape) * sizeof(float)) == 0);
        sgm_tensor_free(left);
        sgm_tensor_free(right);
    }
}

/* Moves half of the tensors of a folder into a second file, as large models have several. */
static void split_files(const char *folder)
{
    char path[300], index[8000] = "";
    size_t size = 0, count = 0;
    const char *name;
    const char *const files[] = {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"};
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    sgm_bundle *whole = sgm_bundle_load(path), *parts[] = {sgm_bundle_create(), sgm_bundle_create()};
    CHECK_OK(whole);
    CHECK(unlink(path) == 0);
    for (; (name = sgm_bundle_name_at(whole, count)) != NULL; count++) {
        CHECK_OK(sgm_bundle_add(parts[count % 2], name, sgm_bundle_get(whole, name)));
        size += (size_t)snprintf(index + size, sizeof index - size, "%s\"%s\": \"%s\"", count > 0 ? ", " : "",
                                 name, files[count % 2]);
    }
    char text[9000];
    size = (size_t)snprintf(text, sizeof text, "{\"metadata\": {\"total_size\": 7}, \"weight_map\": {%s}}",
                            index);
    write_file(folder, "model.safetensors.index.json", text, size);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        CHECK_OK(sgm_bundle_save(parts[i], path));
        sgm_bundle_free(parts[i]);
    }
    sgm_bundle_free(whole);
}

/* The index of several files has the tensors of a new layer, from a folder as from a run, and the names that
 * all others get beside one. */
TEST(the_index_of_several_files_has_the_new_layer)
{
    sgm_env *env = sgm_env_create("index");
    const char *fixtures[] = {"bert_embed", "distilbert_fill"};
    for (size_t i = 0; i < 2; i++) {
        const char *folder = copy_of(fixtures[i]), *back = new_folder(), *again = new_folder();
        split_files(folder);
        sgm_trainer *trainer = sgm_trainer_create(env, fixtures[i]),
                    *other = sgm_trainer_create(env, i == 0 ? "x" : "y");
        sgm_pretrained *model = classifier_of(folder);
        CHECK_OK(sgm_pretrained_load(model, trainer));
        CHECK_OK(sgm_pretrained_export(model, trainer, back));
        sgm_pretrained *kept = sgm_pretrained_open(run_of(model, trainer));
        CHECK_OK(kept);
        CHECK_OK(sgm_pretrained_export(kept, trainer, again));
        size_t size;
        char *first = read_file(back, "model.safetensors.index.json", &size);
        char *second = read_file(again, "model.safetensors.index.json", &size);
        CHECK_STR(first, second);
        CHECK(strstr(first, "\"classifier.weight\": \"model-00001-of-00002.safetensors\"") != NULL);
        CHECK(strstr(first, "\"classifier.bias\": \"model-00001-of-00002.safetensors\"") != NULL);
        CHECK(strstr(first, "\"total_size\": 7\n") == NULL);
        free(first);
        free(second);
        sgm_pretrained *written = sgm_pretrained_open(again, .context = TIME);
        CHECK_OK(written);
        CHECK_OK(sgm_pretrained_load(written, other));
        check_equal(trainer, other, "none");
        sgm_pretrained_free(written);
        sgm_pretrained_free(kept);
        sgm_pretrained_free(model);
    }
    sgm_env_free(env);
}

/* A run that made vectors has all that a folder has: its parameters in the checkpoint, the pooler beside it.
 */
TEST(a_run_of_vectors_becomes_one_of_classes)
{
    sgm_env *env = sgm_env_create("runs");
    sgm_trainer *vectors = sgm_trainer_create(env, "vectors"), *a = sgm_trainer_create(env, "a"),
                *b = sgm_trainer_create(env, "b");
    sgm_pretrained *model = sgm_pretrained_open(path_of("bert_embed"), .context = TIME);
    CHECK_OK(sgm_pretrained_load(model, vectors));
    const char *run = run_of(model, vectors);
    sgm_pretrained *of_folder = classifier_of(path_of("bert_embed")), *of_run = classifier_of(run);
    CHECK_OK(sgm_pretrained_load(of_folder, a));
    CHECK_OK(sgm_pretrained_load(of_run, b));
    check_equal(a, b, "classifier");

    /* and is written back as the folder of a classifier, with the same numbers */
    const char *next = run_of(of_run, b);
    char back[200];
    snprintf(back, sizeof back, "%s/back", new_folder());
    sgm_pretrained *kept = sgm_pretrained_open(next, .context = TIME);
    CHECK_OK(kept);
    CHECK_STR(sgm_pretrained_describe(kept)->task, "classify");
    CHECK_OK(sgm_pretrained_export(kept, b, back));
    size_t size;
    char *config = read_file(back, "config.json", &size);
    CHECK(strstr(config, "BertForSequenceClassification") != NULL && strstr(config, "\"crane\"") != NULL);
    free(config);
    sgm_pretrained *again = sgm_pretrained_open(back, .context = TIME);
    sgm_trainer *c = sgm_trainer_create(env, "c");
    CHECK_OK(sgm_pretrained_load(again, c));
    check_equal(b, c, "none");
    sgm_pretrained_free(again);
    sgm_pretrained_free(kept);
    sgm_pretrained_free(of_run);
    sgm_pretrained_free(of_folder);
    sgm_pretrained_free(model);
    sgm_env_free(env);
}

/* The parameters of a trainer, bit by bit, with the adapters' own. */
static void check_same_states(sgm_trainer *a, sgm_trainer *b)
{
    size_t count, other, adapters = 0;
    const sgm_parameter *parameters = sgm_trainer_parameters(a, &count);
    sgm_trainer_parameters(b, &other);
    CHECK_INT(other, count);
    for (size_t i = 0; i < count; i++) {
        sgm_tensor *x = sgm_trainer_get(a, parameters[i].name), *y = sgm_trainer_get(b, parameters[i].name);
        CHECK_OK(x);
        CHECK_OK(y);
        adapters += parameters[i].adapts != NULL;
        const size_t size =
            (size_t)sgm_shape_elements(sgm_tensor_shape(x)) * sgm_dtype_size(sgm_tensor_dtype(x));
        CHECK(memcmp(sgm_tensor_const_data(x), sgm_tensor_const_data(y), size) == 0);
        sgm_tensor_free(y);
        sgm_tensor_free(x);
    }
    CHECK(adapters > 0);
}

/* All that a run with adapters has learnt is there again, and nothing of it is lost in silence. */
static void check_goes_on(const char *adapter, const char *shown)
{
    sgm_env *env = sgm_env_create("goes on", .seed = 3);
    sgm_trainer *first = sgm_trainer_create(env, "first");
    sgm_pretrained *model = classifier_of(path_of("bert_embed"));
    CHECK_OK(sgm_pretrained_load(model, first));
    CHECK_OK(sgm_trainer_adapt(first, sgm_layer_parse(adapter)));
    sgm_dataset *data = texts_of(1);
    CHECK_OK(sgm_trainer_set_data(first, sgm_minibatches(data, .size = TEXTS, .no_shuffle = true)));
    CHECK_OK(sgm_trainer_set_optimiser(first, sgm_adamw(.learning_rate = 0.01)));
    CHECK_OK(sgm_trainer_run(first, .iterations = 5));
    char run[200];
    snprintf(run, sizeof run, "%s", run_of(model, first));

    /* without being told of adapters */
    sgm_trainer *second = sgm_model_trainer(sgm_model_import(env, run, .context = TIME));
    CHECK_OK(second);
    check_same_states(first, second);

    /* in a network without them they would be lost */
    sgm_trainer *bare = sgm_trainer_create(env, "bare");
    CHECK_OK(sgm_trainer_set_network(bare, sgm_pretrained_network(model)));
    sgm_pretrained *again = sgm_pretrained_open(run, .context = TIME);
    CHECK_OK(again);
    char message[300];
    snprintf(message, sizeof message, "'%s/checkpoint.safetensors' has adapters, %s, which would be left out",
             run, shown);
    CHECK_ERROR(sgm_pretrained_load(again, bare), message);
    sgm_pretrained_free(again);
    sgm_dataset_free(data);
    sgm_pretrained_free(model);
    sgm_env_free(env);
}

TEST(a_run_with_adapters_goes_on_with_them)
{
    check_goes_on("lora(2, alpha=4, on=\"attention*\", train=\"pooler.* classifier.*\")",
                  "lora(2, \"attention*\", 4, train=\"pooler.* classifier.*\")");
    check_goes_on("lora(2, on=\"attention*\", quantize=int8, train=\"classifier.*\")",
                  "lora(2, \"attention*\", train=\"classifier.*\", quantize=int8)");
}

TEST(what_a_run_has_not_is_refused)
{
    sgm_env *env = sgm_env_create("refused");
    sgm_trainer *trainer = sgm_trainer_create(env, "fill"), *other = sgm_trainer_create(env, "other");
    sgm_pretrained *model = sgm_pretrained_open(path_of("bert_fill"), .context = TIME);
    CHECK_OK(sgm_pretrained_load(model, trainer));
    const char *run = run_of(model, trainer);
    CHECK_ERROR(sgm_pretrained_open(run, .classes = 2),
                "is of a run to fill, which has not all that the task 'classify' needs");
    sgm_pretrained_free(model);
    model = sgm_pretrained_open(path_of("bert_embed"), .context = TIME);
    sgm_trainer *adapted = sgm_trainer_create(env, "adapted");
    CHECK_OK(sgm_pretrained_load(model, adapted));
    CHECK_OK(sgm_trainer_adapt(adapted, sgm_layer_parse("lora(2)")));
    run = run_of(model, adapted);
    sgm_pretrained_free(model);
    model = sgm_pretrained_open(run, .classes = 2);
    CHECK_ERROR(sgm_pretrained_load(model, other),
                "begins anew, but the adapters of the run, lora(2), keep it as it is: begin with what 'sigma "
                "export --hf' writes");
    sgm_pretrained_free(model);
    CHECK_ERROR(sgm_pretrained_open(path_of("bert_embed"), .classes = 4,
                                    .class_names = (const char *const[]){"a", "b", NULL, "c"}),
                "4 classes are wanted, and 2 have names");
    sgm_env_free(env);
}
