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
    CHECK_OK(sgm_trainer_add_data(made.trainer, "validation", sgm_by_block(held_out)));
    sgm_dataset_free(held_out);
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_accumulator("optimiser.loss")));
    CHECK_OK(sgm_trainer_add_hook(
        made.trainer, sgm_early_stopper("validation.loss", 90, SGM_MINIMUM, sgm_every(1, SGM_EPOCH))));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_rule_hook("every 3 iterations if optimiser.loss > 0 "
                                                              "then set optimiser.learning_rate *= 0.9")));
    CHECK_OK(sgm_trainer_add_hook(
        made.trainer, sgm_rule_hook("after 4 iterations set optimiser.weight_decay = 0.001 for 3 epochs")));
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
    if (strcmp(sgm_bundle_get_text(a, "sigma.state"), sgm_bundle_get_text(b, "sigma.state")) != 0)
        TEST_FAIL("%s: %s\nwas\n%s", what, sgm_bundle_get_text(b, "sigma.state"),
                  sgm_bundle_get_text(a, "sigma.state"));
    CHECK_INT(sgm_bundle_count(a), sgm_bundle_count(b));
    for (size_t i = 0; i < sgm_bundle_count(a); i++) {
        const sgm_tensor *x = sgm_bundle_get(a, sgm_bundle_name_at(a, i)),
                         *y = sgm_bundle_get(b, sgm_bundle_name_at(a, i));
        size_t size = (size_t)sgm_shape_elements(sgm_tensor_shape(x)) * sgm_dtype_size(sgm_tensor_dtype(x));
        if (memcmp(sgm_tensor_const_data(x), sgm_tensor_const_data(y), size) != 0)
            TEST_FAIL("%s: %s has changed", what, sgm_bundle_name_at(a, i));
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

/* Whatever bit it is, also one of a parameter: it is refused, and nothing has changed then. */
TEST(flipped_bits_are_refused)
{
    open_folder();
    wave_trainer made = make(), victim = make();
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 6));
    sgm_bundle *before = snapshot(victim.trainer);
    CHECK_OK(sgm_trainer_save(made.trainer, file));
    bytes all = read_all();
    for (size_t at = 0; at < all.length; at += 5) {
        all.data[at] ^= (unsigned char)(1u << (at * 5 % 8));
        write_all(all.data, all.length);
        CHECK_ERROR(sgm_trainer_load_parts(victim.trainer, file, .skip_mismatch = at % 3 == 0), file);
        CHECK_OK(sgm_trainer_status(victim.trainer));
        all.data[at] ^= (unsigned char)(1u << (at * 5 % 8));
    }
    sgm_bundle *after = snapshot(victim.trainer);
    check_same(before, after, "damaged");
    sgm_bundle_free(before);
    sgm_bundle_free(after);
    free(all.data);
    free_wave_trainer(made);
    free_wave_trainer(victim);
    close_folder();
}

/* As they were saved before there were checksums. */
static bytes without_checksums(const bytes *all)
{
    json_t *header = json_loadb((const char *)all->data + 8, all->header - 8, 0, NULL);
    json_t *texts = json_object_get(header, "__metadata__");
    CHECK_INT(json_object_del(texts, "sigma.checksum.header"), 0);
    CHECK_INT(json_object_del(texts, "sigma.checksum.tensors"), 0);
    char *text = json_dumps(header, JSON_COMPACT);
    uint64_t length = strlen(text);
    bytes old = {malloc(1 << 20), 8 + length + all->length - all->header, 8 + length};
    memcpy(old.data, &length, 8);
    memcpy(old.data + 8, text, length);
    memcpy(old.data + old.header, all->data + all->header, all->length - all->header);
    free(text);
    json_decref(header);
    return old;
}

static char noted[1024];

static void note(void *user, sgm_log_level level, const char *source, const char *message)
{
    (void)user;
    (void)level;
    (void)source;
    snprintf(noted, sizeof noted, "%s", message);
}

TEST(files_without_checksums_are_read_with_a_note)
{
    open_folder();
    wave_trainer made = make(), other = make();
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 6));
    sgm_bundle *saved = snapshot(made.trainer);
    bytes all = read_all(), old = without_checksums(&all);
    sgm_set_logger(note, NULL, SGM_LOG_WARNING);
    noted[0] = '\0';
    CHECK_OK(sgm_trainer_load(other.trainer, file));
    CHECK_STR(noted, "");
    write_all(old.data, old.length);
    CHECK_OK(sgm_trainer_load(other.trainer, file));
    CHECK(strstr(noted, "has no checksums") != NULL && strstr(noted, file) != NULL);
    sgm_set_logger(NULL, NULL, SGM_LOG_NONE);
    sgm_bundle *loaded = snapshot(other.trainer);
    check_same(saved, loaded, "old");
    sgm_bundle_free(saved);
    sgm_bundle_free(loaded);
    free(all.data);
    free(old.data);
    free_wave_trainer(made);
    free_wave_trainer(other);
    close_folder();
}

/* With the whole state but for its version. */
static void save_as_version(const sgm_bundle *whole, int version)
{
    sgm_bundle *changed = sgm_bundle_load(file);
    CHECK(changed != NULL);
    json_t *state = json_loads(sgm_bundle_get_text(whole, "sigma.state"), 0, NULL);
    if (version > 0)
        CHECK_INT(json_object_set_new(state, "version", json_integer(version)), 0);
    else
        CHECK_INT(json_object_del(state, "version"), 0);
    char *text = json_dumps(state, 0);
    CHECK_OK(sgm_bundle_set_text(changed, "sigma.state", text));
    CHECK_OK(sgm_bundle_save(changed, file));
    free(text);
    json_decref(state);
    sgm_bundle_free(changed);
}

TEST(other_versions_are_refused_by_name)
{
    char message[256];
    unsigned parts;
    open_folder();
    wave_trainer made = make();
    CHECK_OK(sgm_trainer_save(made.trainer, file));
    sgm_bundle *whole = sgm_bundle_load(file);
    for (int version = 0; version <= 3; version++) {
        save_as_version(whole, version);
        if (version == 2) {
            CHECK_OK(sgm_trainer_load(made.trainer, file));
            continue;
        }
        snprintf(message, sizeof message,
                 "'%s': its version is %d, this library reads version 2; use the library that wrote it", file,
                 version > 0 ? version : 1);
        CHECK_ERROR(sgm_trainer_load(made.trainer, file), message);
        CHECK_ERROR(sgm_checkpoint_parts(file, &parts), message);
        CHECK(sgm_checkpoint_network(file) == NULL);
        CHECK(strstr(sgm_last_error(), message) != NULL);
    }
    sgm_bundle_free(whole);
    free_wave_trainer(made);
    close_folder();
}

/* Without checksums a damaged number may be a good one, and is believed; whatever is refused has changed
 * nothing. */
TEST(damaged_headers_without_checksums_are_refused_or_read)
{
    int64_t refused = 0, read = 0;
    open_folder();
    sgm_set_logger(NULL, NULL, SGM_LOG_NONE);
    wave_trainer made = make(), victim = make();
    CHECK_OK(sgm_trainer_run(made.trainer, .iterations = 6));
    CHECK_OK(sgm_trainer_save(made.trainer, file));
    bytes sealed = read_all(), all = without_checksums(&sealed);
    for (size_t at = 0; at < all.header; at++) {
        bool compares = at % 199 == 0; /* each time would take long */
        sgm_bundle *before = compares ? snapshot(victim.trainer) : NULL;
        unsigned char kept = all.data[at];
        all.data[at] ^= (unsigned char)(1u << (at * 5 % 8));
        write_all(all.data, all.length);
        all.data[at] = kept;
        bool good = sgm_trainer_load_parts(victim.trainer, file, .skip_mismatch = at % 3 == 0) == SGM_OK;
        *(good ? &read : &refused) += 1;
        sgm_bundle *after = compares && !good ? snapshot(victim.trainer) : NULL;
        if (after != NULL)
            check_same(before, after, "damaged");
        sgm_bundle_free(before);
        sgm_bundle_free(after);
        CHECK_OK(sgm_trainer_status(victim.trainer));
    }
    CHECK(refused > 100 && read > 10);
    free(sealed.data);
    free(all.data);
    free_wave_trainer(made);
    free_wave_trainer(victim);
    close_folder();
}
