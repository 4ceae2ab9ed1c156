/* Whether all ranks were given the same: else they take other records, or sum what does not belong together.
 */
#include "training/ranks.h"

#include "data/dataset.h"

#include <inttypes.h>
#include <stdio.h>

#define TEXT 48 /* bytes of a value; a longer one is told by its beginning and its hash */
#define MOST_ROWS 16

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

static sgm_status give_data(given_values *given, const sgm_trainer *trainer)
{
    int64_t batches, records = 0, part;
    SGM_TRY(sgm_iterator_batches(trainer->training, &batches));
    sgm_dataset *dataset = sgm_iterator_dataset(trainer->training);
    for (int64_t i = 0;; i++, records += part) {
        SGM_TRY(sgm__dataset_block_records(dataset, i, &part));
        if (part == 0)
            break;
    }
    give_number(given, "records of the training data", records);
    give_number(given, "minibatches of an epoch", batches);
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
    char *network = sgm_network_text(trainer->network);
    if (network == NULL) /* one that has no text: its states are compared */
        sgm_clear_error();
    give_text(given, "network", network != NULL ? network : "");
    sgm_string_free(network);
    give_text(given, "precision", sgm_dtype_name(trainer->settings.precision));
    give_number(given, "epochs", trainer->epochs);
    give_number(given, "iterations", trainer->most);
    give_number(given, "operator.every", team->every);
    give_number(given, "operator.check_every", ranks->options.check_every);
    give_number(given, "operator.bucket", ranks->options.bucket_bytes);
    give_number(given, "operator.bfloat16", ranks->options.narrow);
    give_number(given, "operator.workers", team->merges_gradients ? 0 : team->count);
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
