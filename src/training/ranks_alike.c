/* Whether all ranks were given the same: else they take other records, or sum what does not belong together.
 */
#include "training/ranks.h"

#include "data/dataset.h"

#include <inttypes.h>
#include <stdio.h>

#define TEXT 48 /* bytes of a value; a longer one is told by its beginning and its hash */
#define MOST_ROWS 64
#define SAMPLES 64 /* records of a block that are looked at */

typedef struct given_value {
    char name[TEXT], text[TEXT];
} given_value;

typedef struct given_values {
    given_value rows[MOST_ROWS];
    size_t count;
} given_values;

static void give_text(given_values *given, const char *name, const char *text)
{
    given_value *row = &given->rows[given->count++];
    size_t length = strlen(text);
    snprintf(row->name, sizeof row->name, "%s", name);
    if (length < sizeof row->text)
        memcpy(row->text, text, length);
    else
        snprintf(row->text, sizeof row->text, "%.16s... (%016" PRIx64 ")", text, sgm__hash(text, length, 1));
}

static void give_number(given_values *given, const char *name, int64_t number)
{
    char text[TEXT];
    snprintf(text, sizeof text, "%" PRId64, number);
    give_text(given, name, text);
}

static sgm_status give_settings(given_values *given, const char *prefix, const sgm_setting *rows,
                                size_t count, const void *options)
{
    for (size_t i = 0; i < count; i++) {
        char name[TEXT];
        sgm_content content;
        SGM_TRY(sgm_setting_get(&rows[i], options, &content));
        char *text = sgm_content_describe(&content);
        sgm_content_clear(&content);
        if (text == NULL)
            return SGM_ERROR_MEMORY;
        snprintf(name, sizeof name, "%s%s", prefix, rows[i].option.name);
        give_text(given, name, text);
        sgm_string_free(text);
    }
    return SGM_OK;
}

static sgm_status give_optimiser(given_values *given, const sgm_optimiser *optimiser)
{
    size_t count;
    const sgm_setting *rows = sgm_optimiser_settings(&count);
    give_text(given, "optimiser", optimiser->type->name);
    SGM_TRY(give_settings(given, "optimiser.", rows, count, &optimiser->options));
    rows = sgm_schedule_settings(&count);
    return give_settings(given, "optimiser.schedule.", rows, count, &optimiser->options.schedule);
}

/* By its names, as patterns of two texts may mean the same. */
static sgm_status give_frozen(given_values *given, const sgm_trainer *trainer)
{
    sgm__text names = {0};
    for (size_t i = 0; i < trainer->recording.parameter_count; i++) {
        const char *name = trainer->recording.parameters[i].name;
        if (sgm__trainer_is_frozen(trainer, name))
            sgm__text_append(&names, "%s%s", names.length > 0 ? ", " : "", name);
    }
    bool failed = names.failed;
    give_text(given, "what is frozen", names.length > 0 ? names.data : "nothing");
    sgm__text_free(&names);
    return failed ? SGM_ERROR_MEMORY : SGM_OK;
}

static void hash_records(const sgm__run *run, const sgm_tensor *values, uint64_t *hash)
{
    sgm_shape record = sgm__record_shape(values);
    size_t size = (size_t)sgm_shape_elements(&record) * sgm_dtype_size(sgm_tensor_dtype(values));
    const unsigned char *bytes = sgm_tensor_const_data(values);
    int64_t count = run->end - run->begin, samples = count < SAMPLES ? count : SAMPLES;
    for (int64_t i = 0; i < samples; i++) {
        int64_t at = run->begin + (samples > 1 ? i * (count - 1) / (samples - 1) : 0);
        *hash = sgm__hash(bytes + (size_t)at * size, size, *hash);
    }
}

static sgm_status hash_section(const sgm__run *run, const sgm_section *section, uint64_t *hash)
{
    sgm_tensor *values = sgm_tensor_is_contiguous(section->values) ? sgm_tensor_retain(section->values)
                                                                   : sgm_tensor_copy(section->values);
    if (values == NULL)
        return sgm_last_status();
    *hash = sgm__hash(section->name, strlen(section->name), *hash);
    hash_records(run, values, hash);
    sgm_tensor_free(values);
    return SGM_OK;
}

static sgm_status hash_block(sgm_dataset *dataset, int64_t index, uint64_t *hash)
{
    sgm__run run;
    sgm_status status = sgm__dataset_fetch_run(dataset, index, &run);
    for (int32_t i = 0; status == SGM_OK && run.block != NULL && i < run.block->section_count; i++)
        status = hash_section(&run, &run.block->sections[i], hash);
    sgm__run_release(&run);
    return status;
}

/* As many records elsewhere may be others: some of the first and of the last block tell. */
static sgm_status give_content(given_values *given, sgm_dataset *dataset, int64_t blocks)
{
    char text[TEXT];
    uint64_t hash = 1;
    SGM_TRY(hash_block(dataset, 0, &hash));
    if (blocks > 1)
        SGM_TRY(hash_block(dataset, blocks - 1, &hash));
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    give_text(given, "content of the training data", text);
    return SGM_OK;
}

static sgm_status give_data(given_values *given, const sgm_trainer *trainer)
{
    int64_t batches, blocks = 0, records = 0, part;
    SGM_TRY(sgm_iterator_batches(trainer->training, &batches));
    sgm_dataset *dataset = sgm_iterator_dataset(trainer->training);
    for (;; blocks++, records += part) {
        SGM_TRY(sgm__dataset_block_records(dataset, blocks, &part));
        if (part == 0)
            break;
    }
    give_number(given, "records of the training data", records);
    SGM_TRY(give_content(given, dataset, blocks));
    give_number(given, "minibatches of an epoch", batches);
    give_number(given, "records of a minibatch", sgm__iterator_size(trainer->training));
    give_number(given, "seed of the training data's order", (int64_t)sgm__iterator_seed(trainer->training));
    give_number(given, "shuffle", sgm__iterator_shuffles(trainer->training));
    give_number(given, "augment", sgm__iterator_augments(trainer->training));
    give_number(given, "validation data", (int64_t)trainer->validation_count);
    return SGM_OK;
}

static sgm_status give_all(given_values *given, const sgm__ranks *ranks)
{
    const sgm_trainer *trainer = ranks->trainer;
    const sgm_operator *team = trainer->team;
    give_number(given, "epochs", trainer->epochs);
    give_number(given, "iterations", trainer->most);
    give_number(given, "operator.every", team->every);
    give_number(given, "operator.check_every", ranks->options.check_every);
    give_number(given, "operator.bucket", ranks->options.bucket_bytes);
    give_number(given, "operator.bfloat16", ranks->options.narrow);
    give_number(given, "operator.workers", team->merges_gradients ? 0 : team->count);
    SGM_TRY(give_optimiser(given, trainer->optimiser));
    SGM_TRY(give_frozen(given, trainer));
    return give_data(given, trainer);
}

static sgm_status compare(const sgm__ranks *ranks, const given_values *all)
{
    for (int32_t rank = 1; rank < ranks->count; rank++)
        for (size_t i = 0; i < all->count; i++)
            if (strcmp(all->rows[i].text, all[rank].rows[i].text) != 0)
                return sgm_fail(SGM_ERROR_ARGUMENT,
                                "rank %d (%s) was given other things than rank 0: %s is %s, not %s; all want "
                                "the same",
                                rank, ranks->table->place(ranks->self, rank), all->rows[i].name,
                                all[rank].rows[i].text, all->rows[i].text);
    return SGM_OK;
}

sgm_status sgm__ranks_compare_given(sgm__ranks *ranks)
{
    given_values *all = sgm__calloc((size_t)ranks->count, sizeof *all);
    const sgm_communicator_work work = {
        .kind = SGM_COMMUNICATOR_GATHER, .type = SGM_COMMUNICATOR_BYTES, .data = all, .count = sizeof *all};
    if (all == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = give_all(&all[ranks->rank], ranks);
    if (status == SGM_OK)
        status = sgm__ranks_do(ranks, &work, "the comparison of what was given");
    if (status == SGM_OK)
        status = compare(ranks, all);
    sgm__free(all);
    return status;
}
