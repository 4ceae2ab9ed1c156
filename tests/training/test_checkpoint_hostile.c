/* Checkpoints that are cut off, damaged or made up: they are refused with a reason, and nothing has changed
 * then. */
#include "waves.h"

#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[64], file[128];

static void open_folder(void)
{
    strcpy(folder, "/tmp/sigma-test-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    snprintf(file, sizeof file, "%s/a.safetensors", folder);
}

static void close_folder(void)
{
    unlink(file);
    CHECK_INT(rmdir(folder), 0);
}

static wave_trainer make(void)
{
    wave_trainer made = make_wave_trainer(
        (wave_options){.network = "input(6) + dense(3) + dropout(0.1) + dense(3) + softmax_cross_entropy",
                       .optimiser = sgm_adam(.average = 0.9)});
    sgm_dataset *held_out = wave_dataset();
    CHECK_OK(sgm_trainer_add_data(made.trainer, "validation", sgm_undivided(held_out)));
    sgm_dataset_free(held_out);
    CHECK_OK(sgm_trainer_hook(made.trainer, sgm_accumulator("optimiser.cost_total")));
    CHECK_OK(sgm_trainer_hook(
        made.trainer, sgm_early_stopper("validation.loss", 90, SGM_MINIMUM, sgm_every(1, SGM_EPOCH))));
    CHECK_OK(sgm_trainer_hook(made.trainer, sgm_rule_hook("every 3 iterations if optimiser.cost_total > 0 "
                                                          "then set optimiser.learning_rate *= 0.9")));
    return made;
}

typedef struct bytes {
    unsigned char *data;
    size_t length, header; /* the header with its length in front */
} bytes;

static bytes read_all(void)
{
    bytes all = {malloc(1 << 20), 0, 0};
    FILE *from = fopen(file, "rb");
    CHECK(from != NULL);
    all.length = fread(all.data, 1, 1 << 20, from);
    fclose(from);
    all.header = 8 + (size_t)all.data[0] + ((size_t)all.data[1] << 8);
    return all;
}

static void write_all(const unsigned char *data, size_t length)
{
    FILE *to = fopen(file, "wb");
    CHECK(to != NULL && fwrite(data, 1, length, to) == length);
    fclose(to);
}

static sgm_bundle *snapshot(sgm_trainer *trainer)
{
    CHECK_OK(sgm_trainer_save(trainer, file));
    sgm_bundle *bundle = sgm_bundle_load(file);
    CHECK_OK(bundle);
    return bundle;
}

static void check_same(const sgm_bundle *a, const sgm_bundle *b, const char *what)
{
    if (strcmp(sgm_bundle_text(a, "sigma.state"), sgm_bundle_text(b, "sigma.state")) != 0)
        TEST_FAIL("%s: %s\nwas\n%s", what, sgm_bundle_text(b, "sigma.state"),
                  sgm_bundle_text(a, "sigma.state"));
    CHECK_INT(sgm_bundle_count(a), sgm_bundle_count(b));
    for (size_t i = 0; i < sgm_bundle_count(a); i++) {
        const sgm_tensor *x = sgm_bundle_get(a, sgm_bundle_name(a, i)),
                         *y = sgm_bundle_get(b, sgm_bundle_name(a, i));
        size_t size = (size_t)sgm_shape_elements(sgm_tensor_shape(x)) * sgm_dtype_size(sgm_tensor_dtype(x));
        if (memcmp(sgm_tensor_const_data(x), sgm_tensor_const_data(y), size) != 0)
            TEST_FAIL("%s: %s has changed", what, sgm_bundle_name(a, i));
    }
}

/* --- cut off, damaged --- */

TEST(what_was_cut_off_is_refused)
{
    open_folder();
    wave_trainer made = make(), victim = make();
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 6));
    sgm_bundle *before = snapshot(victim.trainer);
    CHECK_OK(sgm_trainer_save(made.trainer, file));
    bytes all = read_all();
    for (size_t length = 0; length < all.length; length += length < 64 || length > all.length - 64 ? 1 : 41) {
        write_all(all.data, length);
        CHECK_ERROR(sgm_trainer_load(victim.trainer, file), file);
        CHECK_OK(sgm_trainer_status(victim.trainer));
    }
    sgm_bundle *after = snapshot(victim.trainer);
    check_same(before, after, "cut off");
    sgm_bundle_free(before);
    sgm_bundle_free(after);
    free(all.data);
    free_wave_trainer(made);
    free_wave_trainer(victim);
    close_folder();
}

/* A damaged number may be a good one, and is believed; whatever is refused has changed nothing. */
TEST(damaged_headers_are_refused_or_read)
{
    int64_t refused = 0, read = 0;
    open_folder();
    wave_trainer made = make(), victim = make();
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 6));
    CHECK_OK(sgm_trainer_save(made.trainer, file));
    bytes all = read_all();
    for (size_t at = 0; at < all.header; at++) {
        bool compares = at % 199 == 0; /* each time would take long */
        sgm_bundle *before = compares ? snapshot(victim.trainer) : NULL;
        unsigned char kept = all.data[at];
        all.data[at] ^= (unsigned char)(1u << (at * 5 % 8));
        write_all(all.data, all.length);
        all.data[at] = kept;
        bool good = sgm_trainer_load_parts(victim.trainer, file, .relaxed = at % 3 == 0) == SGM_OK;
        *(good ? &read : &refused) += 1;
        sgm_bundle *after = compares && !good ? snapshot(victim.trainer) : NULL;
        if (after != NULL)
            check_same(before, after, "damaged");
        sgm_bundle_free(before);
        sgm_bundle_free(after);
        CHECK_OK(sgm_trainer_status(victim.trainer));
    }
    CHECK(refused > 100 && read > 10);
    free(all.data);
    free_wave_trainer(made);
    free_wave_trainer(victim);
    close_folder();
}

/* --- made up --- */

#define COUNTS                                                                                               \
    "\"version\":1,\"epoch\":1,\"batch\":2,\"iteration\":6,\"updates\":6,\"record_sum\":20,"                 \
    "\"bad_epochs\":0,\"reductions\":0,\"loss_sum\":22"

static const struct state_case {
    const char *state;   /* JSON */
    const char *message; /* NULL: it is read */
} state_cases[] = {
    {"", "its training state is not readable"},
    {"[]", "its training state is not readable"},
    {"{", "its training state is not readable"},
    {"{\"version\":1,\"version\":1}", "lacks a number"},
    {"{}", "version -1, this library reads 1"},
    {"{\"version\":\"1\"}", "version -1"},
    {"{\"version\":99999999999999999999}", "not readable"},
    {"{\"version\":1}", "lacks a number, or one is out of bounds"},
    {"{" COUNTS "}", NULL},
    {"{" COUNTS ",\"parts\":5}", NULL}, /* no list: nothing is said of parts, so there are none */
    {"{" COUNTS ",\"parts\":[\"hocks\"]}", "names an unknown part 'hocks'"},
    {"{" COUNTS ",\"parts\":[7]}", "names an unknown part ''"},
    {"{" COUNTS ",\"epoch\":-1}", "out of bounds"},
    {"{" COUNTS ",\"epoch\":1.5}", "out of bounds"},
    {"{" COUNTS ",\"iteration\":9007199254740993}", "out of bounds"},
    {"{" COUNTS ",\"updates\":null}", "out of bounds"},
    {"{" COUNTS ",\"batch\":1000000}", NULL}, /* of other data: the epoch ends there */
    {"{" COUNTS ",\"batch\":9007199254740992,\"epoch\":9007199254740992}", NULL},
    {"{" COUNTS ",\"loss_sum\":\"much\"}", "lacks a number"},
    {"{" COUNTS ",\"correct_sum\":\"much\",\"has_accuracy\":3,\"best_loss\":[]}", NULL},
    {"{" COUNTS ",\"dataset\":[1,2,3]}", "state"},
    {"{" COUNTS ",\"dataset\":[\"x\"]}", "number 0 of the state of the dataset is none"},
    {"{" COUNTS ",\"hooks\":[\"x\"]}", "number 0 of the state of the hooks is none"},
    {"{" COUNTS ",\"hooks\":[\"1\"]}", "does not begin with format"},
    {"{" COUNTS ",\"hooks\":[\"1\",\"nan\"]}", "does not begin with format"},
    {"{" COUNTS ",\"hooks\":[1,1e308]}", "does not begin with format"},
    {"{" COUNTS ",\"hooks\":[1,1,4294967296,1,0,0,0]}", "is damaged at number 2"},
    {"{" COUNTS ",\"hooks\":[1,1,7,1,0,0,1e300]}", "is damaged at number 2"},
    {"{" COUNTS ",\"hooks\":[1,0,5]}", "has 3 numbers, expected 2"},
    {"{" COUNTS ",\"hooks\":{\"a\":1},\"metrics\":[],\"shared\":4,\"scores\":\"x\",\"settings\":[1]}", NULL},
    {"{" COUNTS ",\"metrics\":{\"validation\":{\"loss\":\"0.5\",\"accuracy\":3,\"records\":-2}}}", NULL},
    {"{" COUNTS ",\"shared\":{\"a.b\":1,\"\":2,\"x\":{\"y\":1},\"z\":[[]],\"w\":[\"q\"],\"*\":[\"1\"]}}",
     NULL},
    {"{" COUNTS
     ",\"scores\":{\"nowhere\":{\"a\":\"1\"},\"validation\":{\"a.b\":\"1\",\"loss\":\"7\",\"\":3}}}",
     NULL},
    {"{" COUNTS ",\"settings\":{\"optimiser.learning_rate\":[\"0.001\",\"-5\"]}}", NULL},
    {"{" COUNTS ",\"settings\":{\"optimiser.learning_rate\":[\"0.001\",\"x\"]}}", NULL},
    {"{" COUNTS ",\"settings\":{\"epoch\":[\"0\",\"5\"],\"*\":[\"0\",\"1\"],\"..\":[\"0\",\"1\"]}}", NULL},
    {"{" COUNTS ",\"settings\":{\"network.layers.*.*\":[\"0\",\"1\"],\"no\":[1,2],\"nothing\":{}}}", NULL},
    {"{" COUNTS ",\"optimiser\":{},\"accumulated\":5,\"accumulate\":-3}", NULL},
    {"{" COUNTS ",\"accumulated\":5,\"accumulate\":9007199254740992}", NULL},
};

static sgm_bundle *with_state(const sgm_bundle *from, const char *network, const char *state)
{
    sgm_bundle *made = sgm_bundle_create();
    CHECK_OK(made);
    for (size_t i = 0; i < sgm_bundle_count(from); i++) {
        const char *name = sgm_bundle_name(from, i);
        CHECK_OK(sgm_bundle_add(made, name, sgm_bundle_get(from, name)));
    }
    CHECK_OK(sgm_bundle_set_text(made, "sigma.network", network));
    CHECK_OK(sgm_bundle_set_text(made, "sigma.state", state));
    return made;
}

static void try_state(const sgm_bundle *good, const char *state, const char *message)
{
    wave_trainer victim = make();
    sgm_bundle *before = snapshot(victim.trainer);
    sgm_bundle *made = with_state(good, sgm_bundle_text(good, "sigma.network"), state);
    CHECK_OK(sgm_bundle_save(made, file));
    if (message == NULL) {
        CHECK_OK(sgm_trainer_load(victim.trainer, file));
        sgm_status status =
            sgm_trainer_run(victim.trainer, .iterations = victim.trainer->position.iteration + 3);
        if (status != SGM_OK) /* with whatever was believed */
            TEST_FAIL("%s: %s", state, sgm_last_error());
    } else {
        CHECK_ERROR(sgm_trainer_load(victim.trainer, file), message);
        CHECK(strstr(sgm_last_error(), file) != NULL);
        sgm_bundle *after = snapshot(victim.trainer);
        check_same(before, after, state);
        sgm_bundle_free(after);
    }
    CHECK_OK(sgm_trainer_status(victim.trainer));
    sgm_bundle_free(made);
    sgm_bundle_free(before);
    free_wave_trainer(victim);
}

TEST(made_up_states_are_refused_or_harmless)
{
    open_folder();
    wave_trainer made = make();
    sgm_bundle *good = snapshot(made.trainer);
    for (size_t i = 0; i < sizeof state_cases / sizeof *state_cases; i++)
        try_state(good, state_cases[i].state, state_cases[i].message);
    char *deep = malloc(200001);
    memset(deep, '[', 200000);
    deep[200000] = '\0';
    try_state(good, deep, "not readable");
    free(deep);
    sgm_bundle_free(good);
    free_wave_trainer(made);
    close_folder();
}

/* The accumulator's numbers are fine and are set first, then the early stopper's are refused. */
TEST(a_hook_that_refuses_its_state_leaves_all_as_they_were)
{
    open_folder();
    wave_trainer made = make(), victim = make();
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 6));
    CHECK_OK(sgm_trainer_run(victim.trainer, .iterations = 3));
    sgm_bundle *good = snapshot(made.trainer), *before = snapshot(victim.trainer);
    json_t *state = json_loads(sgm_bundle_text(good, "sigma.state"), 0, NULL);
    json_t *numbers = json_object_get(state, "hooks");
    CHECK_STR(json_string_value(json_array_get(numbers, 16)), "3"); /* so many belong to its condition */
    json_array_set_new(numbers, 17, json_string("-1"));
    char *text = json_dumps(state, 0);
    sgm_bundle *bad = with_state(good, sgm_bundle_text(good, "sigma.network"), text);
    CHECK_OK(sgm_bundle_save(bad, file));
    CHECK_ERROR(sgm_trainer_load(victim.trainer, file), "state of hook 'early_stopper'");
    sgm_bundle *after = snapshot(victim.trainer);
    check_same(before, after, "refused");
    sgm_bundle_free(good);
    sgm_bundle_free(bad);
    sgm_bundle_free(before);
    sgm_bundle_free(after);
    free(text);
    json_decref(state);
    free_wave_trainer(made);
    free_wave_trainer(victim);
    close_folder();
}

TEST(made_up_networks_leave_a_trainer_without_one)
{
    static const struct {
        const char *network, *message;
    } cases[] = {
        {"", "its network: column 1"},
        {"input(6) + desne(3)", "did you mean 'dense'"},
        {"input(6) + dense(3)", "is surplus"},
        {"input(7) + dense(3) + dropout(0.1) + dense(3) + softmax_cross_entropy", "the network wants"},
        {"1000000000 * (dense(3))", "its network"},
        {"input(9223372036854775807) + dense(9223372036854775807)", ""},
    };
    open_folder();
    wave_trainer made = make();
    sgm_bundle *good = snapshot(made.trainer);
    sgm__trainer_settings settings = {1, made.handler, SGM_FLOAT32};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sgm_trainer *bare = sgm__trainer_create("bare", &settings);
        sgm_bundle *other = with_state(good, cases[i].network, sgm_bundle_text(good, "sigma.state"));
        CHECK_OK(sgm_bundle_save(other, file));
        CHECK_ERROR(sgm_trainer_load(bare, file), cases[i].message);
        CHECK(bare->network == NULL);
        CHECK_OK(sgm_bundle_save(good, file));
        CHECK_OK(sgm_trainer_load(bare, file));
        sgm_bundle_free(other);
        sgm__trainer_free(bare);
    }
    sgm_bundle_free(good);
    free_wave_trainer(made);
    close_folder();
}
