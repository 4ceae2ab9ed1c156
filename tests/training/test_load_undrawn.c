/* Parameters that are set next are not drawn before: after a load that fails they are what they would have
 * been without it. */
#include "waves.h"

#include "parallel/operator.h"

#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct variant {
    sgm_operator *(*workers)(void);
    const char *adapters; /* or NULL */
} variant;

static sgm_operator *gradients(void)
{
    return sgm_gradient_operator(.workers = 2);
}

static sgm_operator *parameters(void)
{
    return sgm_parameter_operator(.workers = 2, .every = 3);
}

static const variant variants[] = {
    {NULL, NULL},
    {NULL, "lora(3, alpha=6, on=\"2-dense.weights 3-dense\", train=\"3-dense.biases\", quantize=int8)"},
    {gradients, NULL},
    {parameters, NULL},
};

static wave_trainer make(const variant *v, uint64_t seed)
{
    wave_trainer made = make_wave_trainer(
        (wave_options){.handler = "cpu",
                       .seed = seed,
                       .optimiser = sgm_adam(.learning_rate = 0.02, .average = 0.8, .accumulate = 2)});
    CHECK_OK(sgm_trainer_add_hook(made.trainer,
                                  sgm_hook_make_local(sgm_early_stopper("optimiser.loss", 1000, SGM_MINIMUM,
                                                                        sgm_every(1, SGM_ITERATION)))));
    if (v->adapters != NULL)
        CHECK_OK(sgm_trainer_adapt(made.trainer, sgm_layer_parse(v->adapters)));
    if (v->workers != NULL)
        CHECK_OK(sgm_trainer_set_operator(made.trainer, v->workers()));
    return made;
}

/* Saves a trainer that has learnt something, with numbers of hooks that no hook takes. */
static void save_damaged(const variant *v, const char *path)
{
    wave_trainer made = make(v, 8);
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 5));
    CHECK_OK(sgm_trainer_save(made.trainer, path));
    free_wave_trainer(made);
    sgm_bundle *bundle = sgm_bundle_load(path);
    CHECK_OK(bundle);
    json_t *state = json_loads(sgm_bundle_get_text(bundle, "sigma.state"), 0, NULL);
    CHECK(json_is_array(json_object_get(state, "hooks")));
    CHECK_INT(json_array_set_new(json_object_get(state, "hooks"), 0, json_integer(99)), 0);
    char *text = json_dumps(state, JSON_COMPACT);
    CHECK_OK(sgm_bundle_set_text(bundle, "sigma.state", text));
    CHECK_OK(sgm_bundle_save(bundle, path));
    free(text);
    json_decref(state);
    sgm_bundle_free(bundle);
}

/* To the bit. */
static void check_same(sgm_trainer *one, sgm_trainer *other, const char *name)
{
    sgm_tensor *a = sgm_trainer_get(one, name), *b = sgm_trainer_get(other, name);
    CHECK_OK(a);
    CHECK_OK(b);
    size_t bytes = (size_t)sgm_shape_elements(sgm_tensor_shape(b)) * sgm_dtype_size(sgm_tensor_dtype(b));
    if (memcmp(sgm_tensor_const_data(a), sgm_tensor_const_data(b), bytes) != 0)
        TEST_FAIL("'%s' is another one", name);
    sgm_tensor_free(a);
    sgm_tensor_free(b);
}

static void check_equal(sgm_trainer *one, sgm_trainer *other)
{
    const char *name;
    size_t i = 0;
    for (; (name = sgm_session_state_at(other->learner.session, i)) != NULL; i++)
        check_same(one, other, name);
    CHECK(i > 12);
}

static void check_variant(const variant *v, bool is_prepared)
{
    char path[] = "/tmp/sigma-undrawn-XXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0);
    close(file);
    save_damaged(v, path);
    wave_trainer made = make(v, 4), plain = make(v, 4);
    if (is_prepared)
        CHECK_OK(sgm_trainer_prepare(made.trainer));
    CHECK_ERROR(sgm_trainer_load(made.trainer, path), "a format from 1 to");
    CHECK_INT(unlink(path), 0);
    CHECK_OK(sgm_trainer_prepare(plain.trainer));
    check_equal(made.trainer, plain.trainer);
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 4));
    CHECK_OK(sgm_trainer_run(plain.trainer, .iterations = 4));
    check_equal(made.trainer, plain.trainer);
    free_wave_trainer(made);
    free_wave_trainer(plain);
}

TEST(a_load_that_is_refused_late_leaves_first_values)
{
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        check_variant(&variants[i], false);
        check_variant(&variants[i], true);
    }
}

static bool is_zero(sgm_trainer *trainer, const char *name)
{
    sgm_tensor *value = sgm_trainer_get(trainer, name);
    CHECK_OK(value);
    const float *numbers = sgm_tensor_const_data(value);
    bool zero = true;
    for (int64_t i = 0; i < sgm_shape_elements(sgm_tensor_shape(value)); i++)
        zero = zero && numbers[i] == 0;
    sgm_tensor_free(value);
    return zero;
}

/* A matrix of 8 bits by its own name; a reset draws all. */
TEST(named_parameters_begin_as_zeros)
{
    static const char *const named[] = {"1-dense.weights", "2-dense.weights"};
    wave_trainer made = make(&variants[1], 4), plain = make(&variants[1], 4);
    CHECK_ERROR(sgm_trainer_prepare_undrawn(made.trainer, NULL, 2), "expected 2 names, got NULL");
    CHECK_OK(sgm_trainer_prepare_undrawn(made.trainer, named, 2));
    CHECK_OK(sgm_trainer_prepare(plain.trainer));
    CHECK(is_zero(made.trainer, "1-dense.weights") && is_zero(made.trainer, "2-dense.weights"));
    CHECK(!is_zero(made.trainer, "3-dense.weights") && !is_zero(plain.trainer, "2-dense.weights"));
    CHECK_OK(sgm_trainer_prepare_undrawn(plain.trainer, named, 2));
    CHECK(!is_zero(plain.trainer, "1-dense.weights")); /* initialised already */
    CHECK_OK(sgm_trainer_reset(made.trainer));
    check_equal(made.trainer, plain.trainer);
    free_wave_trainer(made);
    free_wave_trainer(plain);
}

/* --- what is drawn, in numbers --- */

static int64_t drawn;

static double draw(void *user, const int64_t *indices, const sgm_shape *shape, double random)
{
    (void)user, (void)indices, (void)shape;
    drawn++;
    return random + 1;
}

/* 24 and 4, 12 and 3 numbers, which count as they are drawn. */
static wave_trainer make_counted(uint64_t seed)
{
    wave_trainer made = make_wave_trainer((wave_options){
        .network = "input(6) + dense(4, tanh) + dense(3) + softmax_cross_entropy", .seed = seed});
    CHECK_OK(sgm_trainer_add_initialiser(made.trainer, "*.*", sgm_custom_initialiser(.function = draw)));
    drawn = 0;
    return made;
}

TEST(a_load_draws_only_what_the_file_lacks)
{
    char path[] = "/tmp/sigma-undrawn-XXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0);
    close(file);
    wave_trainer from = make_counted(1);
    CHECK_OK(sgm_trainer_prepare(from.trainer));
    CHECK_INT(drawn, 24 + 4 + 12 + 3);
    CHECK_OK(sgm_trainer_save_parts(from.trainer, path, .parts = SGM_PART_PARAMETERS));
    wave_trainer all = make_counted(2);
    CHECK_OK(sgm_trainer_load_parts(all.trainer, path, .parts = SGM_PART_PARAMETERS));
    CHECK_INT(drawn, 0);
    check_same(all.trainer, from.trainer, "1-dense.weights");
    wave_trainer some = make_counted(2);
    CHECK_OK(sgm_trainer_load_parts(some.trainer, path, .parts = SGM_PART_PARAMETERS, .states = "1-*.*"));
    CHECK_INT(drawn, 12 + 3);
    wave_trainer none = make_counted(2);
    check_same(some.trainer, from.trainer, "1-dense.weights");
    check_same(some.trainer, none.trainer, "2-dense.weights");
    free_wave_trainer(from);
    free_wave_trainer(all);
    free_wave_trainer(some);
    free_wave_trainer(none);
    CHECK_INT(unlink(path), 0);
}
