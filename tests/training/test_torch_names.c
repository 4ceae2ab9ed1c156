/* Weights from PyTorch and back: files that it saved, what the networks output with them, names and bits. */
#include "test.h"
#include "torch_models.h"
#include "trainer/trainer_struct.h"

#include <sigma/sigma.h>
#include <unistd.h>

typedef struct model {
    const char *network, *file, *names;
    const double *expected;
    sgm_shape input;
    bool letters; /* the input: whole numbers below 5 */
} model;

#define MLP "input(4) + dense(5, relu) + dense(4, tanh) + dense(3) + mean_squared"
#define CNN                                                                                                  \
    "input(2, 6, 6) + convolution(3, 3, same) + batch_norm + activation(relu) + max_pooling(2)"              \
    " + convolution(4, 2, relu) + dense(3) + mean_squared"
#define RECURRENT                                                                                            \
    "input(6) + embedding(5, 4, name=letters) + lstm(3, bidirectional, name=both) + gru(4, name=gates)"      \
    " + rnn(4, last, name=plain) + dense(2, name=out) + mean_squared"
#define BLOCK                                                                                                \
    "input(3, 4) + transformer(2, hidden=6, name=block) + layer_norm(name=norm)"                             \
    " + dense(3, time_distributed, name=head) + mean_squared"

static const model models[] = {
    {MLP, "mlp.npz", "torch(1-dense=0, 2-dense=2, 3-dense=4)", torch_mlp, {2, {2, 4}}, false},
    {CNN,
     "cnn.safetensors",
     "torch(1-convolution=0, 2-batch_norm=1, 5-convolution=4, 6-dense=7)",
     torch_cnn,
     {4, {2, 2, 6, 6}},
     false},
    {RECURRENT, "recurrent.safetensors", "torch", torch_recurrent, {2, {2, 6}}, true},
    {BLOCK, "block.npz", "torch(block=encoder.block)", torch_block, {3, {2, 3, 4}}, false},
};
#define MODELS 4

static char path[512];

static const char *stored(const char *name)
{
    const char *source = getenv("SIGMA_SOURCE_DIR");
    snprintf(path, sizeof path, "%s/tests/training/torch/%s", source != NULL ? source : ".", name);
    return path;
}

static sgm_env *env;

static sgm_trainer *make(const char *network)
{
    sgm_env_free(env);
    env = sgm_env_create("torch", .seed = 3, .handler = "cpu", .threads = 1);
    sgm_trainer *trainer = sgm_trainer_create(env, "t");
    CHECK_OK(sgm_trainer_set_network(trainer, network));
    return trainer;
}

static void check_answer(sgm_trainer *trainer, const model *m)
{
    sgm_tensor *input = sgm_tensor_create(SGM_FLOAT32, &m->input);
    float *numbers = sgm_tensor_data(input);
    for (int64_t i = 0; i < sgm_shape_elements(&m->input); i++)
        numbers[i] = m->letters ? (float)(7 * i % 5) : (float)sin(0.37 * (double)i);
    sgm_tensor *output = sgm_trainer_predict(trainer, input, NULL);
    CHECK(output != NULL);
    const float *got = sgm_tensor_const_data(output);
    for (int64_t i = 0; i < sgm_shape_elements(sgm_tensor_shape(output)); i++)
        CHECK_NEAR(got[i], m->expected[i], 1e-5);
    sgm_tensor_free(output);
    sgm_tensor_free(input);
}

static void check_equal(const sgm_bundle *a, const sgm_bundle *b, const char *name)
{
    const sgm_tensor *x = sgm_bundle_get(a, name), *y = sgm_bundle_get(b, name);
    CHECK(x != NULL && y != NULL && sgm_tensor_dtype(x) == sgm_tensor_dtype(y));
    CHECK(sgm_shape_equal(sgm_tensor_shape(x), sgm_tensor_shape(y)));
    size_t bytes = (size_t)sgm_shape_elements(sgm_tensor_shape(x)) * sgm_dtype_size(sgm_tensor_dtype(x));
    CHECK(memcmp(sgm_tensor_const_data(x), sgm_tensor_const_data(y), bytes) == 0);
}

/* Saved again: the same names, shapes and bits, but for what has another way to say the same. */
static void check_saved(sgm_trainer *trainer, const model *m, const char *ending)
{
    char name[64];
    snprintf(name, sizeof name, "/tmp/sigma-torch-%d%s", (int)getpid(), ending);
    CHECK_OK(sgm_trainer_save_parts(trainer, name, .names = m->names));
    sgm_bundle *saved = sgm_bundle_load(name), *first = sgm_bundle_load(stored(m->file));
    CHECK(saved != NULL && first != NULL);
    size_t counters = 0;
    for (size_t i = 0; i < sgm_bundle_count(first); i++) {
        const char *key = sgm_bundle_name_at(first, i);
        bool counter = strstr(key, "num_batches_tracked") != NULL;
        counters += counter;
        if (!counter && strstr(key, "bias_ih") == NULL && strstr(key, "bias_hh") == NULL)
            check_equal(first, saved, key);
        CHECK(counter || sgm_bundle_has(saved, key));
    }
    CHECK_INT(sgm_bundle_count(saved), sgm_bundle_count(first) - counters);
    sgm_bundle_free(first);
    sgm_bundle_free(saved);
    sgm_trainer *again = make(m->network);
    CHECK_OK(sgm_trainer_load_parts(again, name, .names = m->names));
    check_answer(again, m);
    unlink(name);
}

TEST(networks_predict_as_in_pytorch)
{
    for (int i = 0; i < MODELS; i++) {
        sgm_trainer *trainer = make(models[i].network);
        CHECK_OK(sgm_trainer_load_parts(trainer, stored(models[i].file), .names = models[i].names));
        check_answer(trainer, &models[i]);
        check_saved(trainer, &models[i], i % 2 == 0 ? ".safetensors" : ".npz");
    }
    sgm_env_free(env);
    env = NULL;
}

TEST(modules_of_a_sequential_go_with_layers_in_their_order)
{
    for (int i = 0; i < 2; i++) {
        sgm_trainer *trainer = make(models[i].network);
        CHECK_OK(sgm_trainer_load_parts(trainer, stored(models[i].file), .names = "torch"));
        check_answer(trainer, &models[i]);
    }
    sgm_env_free(env);
    env = NULL;
}

TEST(a_forget_bias_is_part_of_the_biases)
{
    model m = models[2];
    m.network = "input(6) + embedding(5, 4, name=letters) + lstm(3, forget_bias=1, bidirectional, name=both)"
                " + gru(4, name=gates) + rnn(4, last, name=plain) + dense(2, name=out) + mean_squared";
    sgm_trainer *trainer = make(m.network);
    CHECK_OK(sgm_trainer_load_parts(trainer, stored(m.file), .names = "torch"));
    check_answer(trainer, &m);
    check_saved(trainer, &m, ".npz");
    sgm_env_free(env);
    env = NULL;
}

TEST(biases_that_pytorch_does_not_have_are_refused)
{
    char name[64];
    snprintf(name, sizeof name, "/tmp/sigma-torch-%d.npz", (int)getpid());
    sgm_trainer *trainer = make("input(6) + embedding(5, 4) + lstm(3, no_bias, forget_bias=1, name=both) + "
                                "dense(2) + mean_squared");
    CHECK_ERROR(sgm_trainer_save_parts(trainer, name, .names = "torch"),
                "layer 'both' has no biases, but a forget_bias of 1, for which PyTorch's LSTM has no place");

    /* a file with one of the two vectors, and one with another length of it */
    static const int64_t lengths[] = {0, 11};
    trainer = make("input(6) + embedding(5, 4, name=letters) + gru(4, name=gates) + dense(2) + mean_squared");
    CHECK_OK(sgm_trainer_save_parts(trainer, name, .names = "torch"));
    for (int k = 0; k < 2; k++) {
        sgm_bundle *whole = sgm_bundle_load(name), *part = sgm_bundle_create();
        for (size_t i = 0; i < sgm_bundle_count(whole); i++)
            if (strcmp(sgm_bundle_name_at(whole, i), "gates.bias_hh_l0") != 0)
                CHECK_OK(sgm_bundle_add(part, sgm_bundle_name_at(whole, i),
                                        sgm_bundle_get(whole, sgm_bundle_name_at(whole, i))));
        sgm_shape shape = sgm_shape_of(lengths[k]);
        sgm_tensor *other = sgm_tensor_create(SGM_FLOAT32, &shape);
        if (lengths[k] > 0)
            CHECK_OK(sgm_bundle_add(part, "gates.bias_hh_l0", other));
        sgm_tensor_free(other);
        CHECK_OK(sgm_bundle_save(part, name));
        CHECK_ERROR(sgm_trainer_load_parts(trainer, name, .names = "torch"),
                    k == 0 ? "'gates.bias_hh_l0' is missing: it is added to 'bias_ih_l0'"
                           : "'gates.bias_hh_l0' has another shape");
        sgm_bundle_free(whole);
        sgm_bundle_free(part);
    }
    unlink(name);
    sgm_env_free(env);
    env = NULL;
}

TEST(what_does_not_fit_is_refused)
{
    sgm_trainer *trainer = make("input(4) + dense(5, relu) + dense(3) + mean_squared");
    CHECK_ERROR(sgm_trainer_load_parts(trainer, stored("mlp.npz"), .names = "torch"), "no layer takes '4.");
    CHECK_ERROR(sgm_trainer_load_parts(trainer, stored("mlp.npz"), .names = "torch(1-dense=0, 2-dense=2)"),
                "no layer takes '4.weight', '4.bias'; say whose they are");
    CHECK_ERROR(sgm_trainer_load_parts(trainer, stored("mlp.npz"), .names = "torch(1-dense=0, 2-dense=4)",
                                       .skip_mismatch = false),
                "no layer takes '2.weight', '2.bias'");
    CHECK_OK(sgm_trainer_load_parts(trainer, stored("mlp.npz"), .names = "torch(1-dense=0)",
                                    .skip_mismatch = true));
    CHECK_ERROR(sgm_trainer_load_parts(trainer, stored("mlp.npz"), .names = "torch(dense=0)"),
                "the network has no layer 'dense'");
    CHECK_ERROR(sgm_trainer_load_parts(trainer, stored("mlp.npz"), .names = "troch"),
                "names 'troch': expected \"torch\"");
    CHECK_ERROR(sgm_trainer_load_parts(trainer, stored("mlp.npz"), .names = "torch(1-dense=0, 1-dense=2)"),
                "layer '1-dense' is given twice");
    CHECK_ERROR(sgm_trainer_load_parts(trainer, stored("mlp.npz"), .names = "torch(a)"),
                "expected \"torch\"");
    CHECK_ERROR(sgm_trainer_load_parts(trainer, stored("mlp.npz"), .names = "torch(a=b"),
                "expected \"torch\"");
    CHECK_ERROR(sgm_trainer_save_parts(trainer, "/tmp/x.npz", .names = "torch", .parts = SGM_PART_OPTIMISER),
                ".names are of parameters");
    sgm_trainer *other = make("input(4) + dense(5) + dense(4) + dense(2) + mean_squared");
    CHECK_ERROR(sgm_trainer_load_parts(other, stored("mlp.npz"), .names = "torch"), "3-dense.weights");
    sgm_env_free(env);
    env = NULL;
}

static char warning[512];

static void keep_warning(void *user, sgm_log_level level, const char *component, const char *message)
{
    (void)user;
    (void)level;
    (void)component;
    snprintf(warning, sizeof warning, "%s", message);
}

TEST(what_has_no_name_in_pytorch_keeps_its_own)
{
    char name[64];
    const char *network = "input(4) + dense(5, name=fc) + elementwise(5) + mean_squared";
    snprintf(name, sizeof name, "/tmp/sigma-torch-%d.safetensors", (int)getpid());
    sgm_trainer *first = make(network);
    sgm_set_logger(keep_warning, NULL, SGM_LOG_WARNING);
    CHECK_OK(sgm_trainer_save_parts(first, name, .names = "torch"));
    sgm_set_logger(NULL, NULL, SGM_LOG_NONE);
    CHECK(strstr(warning, "keep their names in the file: '2-elementwise.weights'") != NULL);
    CHECK(strstr(warning, "fc.") == NULL);
    sgm_bundle *saved = sgm_bundle_load(name), *own, *again;
    CHECK(sgm_bundle_has(saved, "fc.weight") && sgm_bundle_has(saved, "fc.bias"));
    CHECK(!sgm_bundle_has(saved, "fc.weights") && sgm_bundle_has(saved, "2-elementwise.weights"));
    sgm_bundle_free(saved);
    CHECK_OK(sgm_trainer_save_parts(first, name, .parts = SGM_PART_PARAMETERS));
    own = sgm_bundle_load(name);
    CHECK_OK(sgm_trainer_save_parts(first, name, .names = "torch"));
    sgm_trainer *second = make(network);
    sgm_tensor *zeros = sgm_tensor_create(SGM_FLOAT32, sgm_tensor_shape(sgm_bundle_get(own, "fc.weights")));
    CHECK_OK(sgm_trainer_set(second, "fc.weights", zeros));
    sgm_tensor_free(zeros);
    CHECK_OK(sgm_trainer_load_parts(second, name, .names = "torch"));
    CHECK_OK(sgm_trainer_save_parts(second, name, .parts = SGM_PART_PARAMETERS));
    again = sgm_bundle_load(name);
    CHECK_INT(sgm_bundle_count(again), sgm_bundle_count(own));
    for (size_t i = 0; i < sgm_bundle_count(own); i++)
        check_equal(own, again, sgm_bundle_name_at(own, i));
    sgm_bundle_free(own);
    sgm_bundle_free(again);
    unlink(name);
    sgm_env_free(env);
    env = NULL;
}

/* --- npz --- */

TEST(a_whole_checkpoint_in_numpys_format)
{
    char name[64];
    snprintf(name, sizeof name, "/tmp/sigma-torch-%d.npz", (int)getpid());
    sgm_trainer *trainer = make(MLP);
    CHECK_OK(sgm_trainer_load_parts(trainer, stored("mlp.npz"), .names = "torch"));
    CHECK_OK(sgm_trainer_save(trainer, name));
    sgm_trainer *second = make(MLP);
    CHECK_OK(sgm_trainer_load(second, name));
    check_answer(second, &models[0]);
    unlink(name);
    sgm_env_free(env);
    env = NULL;
}

static void check_hostile(const char *name, const unsigned char *bytes, size_t length)
{
    FILE *file = fopen(name, "wb");
    CHECK(file != NULL && fwrite(bytes, 1, length, file) == length);
    fclose(file);
    sgm_bundle_free(
        sgm_bundle_load(name)); /* an error or a bundle, but no crash, and no memory without end */
}

TEST(damaged_archives)
{
    static unsigned char bytes[8192];
    char name[64];
    snprintf(name, sizeof name, "/tmp/sigma-torch-%d.npz", (int)getpid());
    const char *files[] = {"mlp.npz", "block.npz"};
    for (int f = 0; f < 2; f++) {
        FILE *file = fopen(stored(files[f]), "rb");
        CHECK(file != NULL);
        size_t length = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        for (size_t i = 0; i < length; i += 7) {
            bytes[i] ^= 0x55;
            check_hostile(name, bytes, length);
            bytes[i] ^= 0x55;
        }
        for (size_t cut = 1; cut < length; cut += 41)
            check_hostile(name, bytes, cut);
    }
    const unsigned char empty[22] = {'P', 'K', 5, 6};
    check_hostile(name, empty, sizeof empty);
    unlink(name);
}

/* The trainer, if nobody else has it. */
static void *try_lock(void *trainer)
{
    sgm__turn_lock *lock = &((sgm_trainer *)trainer)->control.turn;
    if (!sgm__turn_lock_try(lock))
        return NULL;
    sgm__turn_lock_leave(lock);
    return trainer;
}

static void check_left_to_others(sgm_trainer *trainer)
{
    pthread_t other;
    void *locked;
    CHECK_INT(pthread_create(&other, NULL, try_lock, trainer), 0);
    CHECK_INT(pthread_join(other, &locked), 0);
    CHECK(locked == trainer);
}

TEST(other_threads_may_use_a_trainer_after_loading_or_saving)
{
    sgm_trainer *trainer = make(models[0].network);
    CHECK_OK(sgm_trainer_load_parts(trainer, stored(models[0].file), .names = models[0].names));
    check_left_to_others(trainer);
    CHECK_ERROR(sgm_trainer_load_parts(trainer, stored(models[0].file), .names = "torch(dense=0)"),
                "the network has no layer 'dense'");
    check_left_to_others(trainer);
    const char *name = "/tmp/sigma-torch-left.safetensors";
    CHECK_OK(sgm_trainer_save_parts(trainer, name, .names = models[0].names));
    check_left_to_others(trainer);
    CHECK_OK(sgm_trainer_save(trainer, name));
    CHECK_OK(sgm_trainer_load(trainer, name));
    check_left_to_others(trainer);
    sgm_trainer *other = make(models[1].network);
    CHECK_ERROR(sgm_trainer_load(other, name), "does not fit the trainer");
    check_left_to_others(other);
    unlink(name);
    sgm_env_free(env);
    env = NULL;
}
