/* Whether ranks are alike: whether they were given the same data and options, and whether they have the same
 * states at the same position.
 *
 * Ranks with other data would take other examples; ranks with other options would wait for sums that the
 * others do not make. So sgm__ranks_begin (ranks_agree.c) compares what ranks were given before the first
 * iteration. States are compared every operator.check_every iterations and at the end of each epoch, before a
 * checkpoint keeps wrong ones: each rank makes the same update of the same sum, so states must be equal to
 * the bit, and a difference is an error of a computer, a library or a hook.
 *
 * Ranks exchange 64-bit hashes, not values. All functions here are called by all ranks at the same iteration.
 */
#include "data/dataset.h"
#include "parallel/collective/ranks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Whether a state is kept only for a reader (a gradient, an update): ranks may have different readers. */
static bool is_kept(const char *name)
{
    return sgm__begins_with(name, SGM__KEPT_PREFIX);
}

/* Places in a rank's list of hashes: that of the names of its states, that of its position, and those of the
 * values of its states from STATES on. */
enum { NAMES, POSITION, STATES };

/* The value is copied to the host first, which works for sessions of any handler. */
static sgm_status hash_state(sgm_trainer *trainer, const char *name, uint64_t *hash)
{
    sgm_tensor *value = sgm_session_get(sgm__learner_of(trainer)->session, name);
    if (value == NULL)
        return sgm_last_status();
    size_t size =
        (size_t)sgm_shape_elements(sgm_tensor_shape(value)) * sgm_dtype_size(sgm_tensor_dtype(value));
    *hash = sgm__hash(sgm_tensor_const_data(value), size, 1);
    sgm_tensor_free(value);
    return SGM_OK;
}

static uint64_t hash_position(const sgm_trainer *trainer)
{
    const sgm__training_position *p = sgm__position_of(trainer);
    const int64_t numbers[] = {p->epoch, p->batch, p->iteration, p->updates, p->accumulated};
    return sgm__hash(numbers, sizeof numbers, 2);
}

/* States are compared in the order of their names: a session that was resumed may have them in another order
 * than one that has recorded them. */
static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

sgm_status sgm__ranks_states(sgm_trainer *trainer, const char ***names, size_t *count)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    const char *name;
    size_t all = 0;
    while (sgm_session_state_at(learner->session, all) != NULL)
        all++;
    *names = sgm__calloc(all + 1, sizeof **names);
    if (*names == NULL)
        return SGM_ERROR_MEMORY;
    *count = 0;
    for (size_t i = 0; (name = sgm_session_state_at(learner->session, i)) != NULL; i++)
        if (!is_kept(name) && sgm__ranks_slot_owner(sgm__trainer_ranks(trainer), name) < 0)
            (*names)[(*count)++] = name;
    qsort(*names, *count, sizeof **names, by_name);
    return SGM_OK;
}

/* Fills in this rank's list of hashes: STATES + count numbers. The names are one hash, which begins with
 * their number. */
static sgm_status hash_all(sgm_trainer *trainer, const char *const *names, size_t count, uint64_t *hashes)
{
    hashes[NAMES] = count;
    hashes[POSITION] = hash_position(trainer);
    for (size_t i = 0; i < count; i++) {
        hashes[NAMES] = sgm__hash(names[i], strlen(names[i]), hashes[NAMES]);
        SGM_TRY(hash_state(trainer, names[i], &hashes[STATES + i]));
    }
    return SGM_OK;
}

/* all[rank * each ...] becomes the list of `each` hashes of that rank, on every rank; this rank's is there
 * before. */
static sgm_status gather_hashes(sgm__ranks *ranks, uint64_t *all, size_t each)
{
    sgm_communicator_work work = {.kind = SGM_COMMUNICATOR_GATHER,
                                  .type = SGM_COMMUNICATOR_BYTES,
                                  .data = all,
                                  .count = each * sizeof *all};
    return sgm__ranks_do(ranks, &work, "the comparison of states");
}

/* Compares the lists of all ranks, each of `each` hashes, with rank 0's. Returns the first place where a list
 * differs, and sets *rank to the rank that it belongs to; returns `each` if all lists are equal. */
static size_t first_difference(const sgm__ranks *ranks, const uint64_t *all, size_t each, int32_t *rank)
{
    for (size_t i = 0; i < each; i++)
        for (*rank = 1; *rank < ranks->count; ++*rank)
            if (all[(size_t)*rank * each + i] != all[i])
                return i;
    return each;
}

/* Compares in two rounds: first names and positions, whose hashes are STATES numbers on every rank, then the
 * states' values, of which all ranks have equally many only if their names agree. *place becomes NAMES or
 * POSITION, or STATES plus the index of the name whose value differs; it becomes STATES + count if nothing
 * differs. *rank: the rank that differs from rank 0.
 *
 * `all` has room for three arrays: names and positions of all ranks (STATES each), this rank's list (STATES +
 * count), and the values' hashes of all ranks (count each). */
static sgm_status find_difference(sgm__ranks *ranks, const char *const *names, size_t count, uint64_t *all,
                                  size_t *place, int32_t *rank)
{
    uint64_t *own = all + (size_t)ranks->rank * STATES;
    uint64_t *hashes = all + (size_t)ranks->count * STATES;
    SGM_TRY(hash_all(ranks->trainer, names, count, hashes));
    memcpy(own, hashes, STATES * sizeof *own);
    SGM_TRY(gather_hashes(ranks, all, STATES));
    *place = first_difference(ranks, all, STATES, rank);
    if (*place < STATES)
        return SGM_OK;
    uint64_t *states = hashes + STATES + count; /* of all ranks */
    memcpy(states + (size_t)ranks->rank * count, hashes + STATES, count * sizeof *states);
    SGM_TRY(gather_hashes(ranks, states, count));
    *place = STATES + first_difference(ranks, states, count, rank);
    return SGM_OK;
}

/* The first difference between rank 0 and another rank. */
typedef struct difference {
    bool found;
    size_t place;   /* NAMES, POSITION, or STATES plus the number of the state (find_difference) */
    int32_t rank;   /* the other rank */
    char name[512]; /* of the state that differs; empty if the difference is in names or positions */
} difference;

/* Workers of this rank are merged first, as the trainer's session may be older than theirs. */
static sgm_status compare(sgm__ranks *ranks, difference *first)
{
    size_t all = (size_t)ranks->count, count;
    const char **names;
    SGM_TRY(sgm__trainer_collect(ranks->trainer));
    SGM_TRY(sgm__ranks_states(ranks->trainer, &names, &count));
    uint64_t *hashes = sgm__calloc(all * STATES + (STATES + count) * (all + 1), sizeof *hashes);
    sgm_status status = hashes != NULL
                            ? find_difference(ranks, names, count, hashes, &first->place, &first->rank)
                            : SGM_ERROR_MEMORY;
    if (status == SGM_OK) {
        first->found = first->place < STATES + count;
        snprintf(first->name, sizeof first->name, "%s",
                 first->found && first->place >= STATES ? names[first->place - STATES] : "");
    }
    sgm__free(hashes);
    sgm__free(names);
    return status;
}

sgm_status sgm__ranks_are_alike(sgm__ranks *ranks, bool *alike)
{
    difference first;
    SGM_TRY(compare(ranks, &first));
    *alike = !first.found;
    return SGM_OK;
}

/* A difference is found by all ranks at once, so each of them fails with the same message; sgm__ranks_fail
 * keeps any of them from waiting for the others afterwards. */
sgm_status sgm__ranks_compare(sgm_trainer *trainer)
{
    sgm__training_position *position = sgm__position_of(trainer);
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    difference first;
    if (ranks == NULL || ranks->count < 2)
        return SGM_OK;
    SGM_TRY(compare(ranks, &first));
    if (!first.found)
        return SGM_OK;
    sgm__ranks_fail(ranks);
    if (first.place < STATES)
        return sgm_fail(SGM_ERROR_STATE, "rank %d is not where rank 0 is after iteration %lld: %s differ",
                        first.rank, (long long)position->iteration,
                        first.place == NAMES ? "the names of states" : "iterations and updates");
    return sgm_fail(SGM_ERROR_STATE,
                    "rank %d (%s) has other values of '%s' than rank 0 after iteration %lld: the ranks have "
                    "come apart; the newest checkpoint is from before",
                    first.rank, ranks->table->place(ranks->self, first.rank), first.name,
                    (long long)position->iteration);
}

/* Operators that merge parameters have different states on each rank between two merges, so only those that
 * merge gradients are compared. */
sgm_status sgm__ranks_compare_when_due(sgm_trainer *trainer)
{
    const sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    return ranks != NULL && sgm__sharing_of(trainer)->parallel->merges_gradients &&
                   sgm__position_of(trainer)->iteration % ranks->options.check_every == 0
               ? sgm__ranks_compare(trainer)
               : SGM_OK;
}

/* --- what ranks were given: options and data ---
 *
 * Each rank writes down names and texts of what must be the same on all ranks (the functions give_...), and
 * gathers the lists of all. Lists have the same rows in the same order, as all ranks run the same functions.
 */

#define TEXT 48 /* bytes of a value; a longer one is replaced by its beginning and its hash */
#define MAXIMUM_ROWS 64
#define MAXIMUM_COMPARED 268435456.0 /* bytes of data: all of most data, in a third of a second */

/* A thing that all ranks must have been given alike: its name, and its value as text. */
typedef struct given_value {
    char name[TEXT], text[TEXT];
} given_value;

/* All that a rank was given. It is sent as it is, so it has no pointers. */
typedef struct given_values {
    given_value rows[MAXIMUM_ROWS];
    size_t count;
} given_values;

/* Adds a row. A text that is too long is replaced by its first 16 bytes, for the reader, and a hash of all of
 * it, for the comparison. */
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

/* Adds a row for each setting of a struct `options`, as `rows` describe it. */
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

/* Adds the names of the frozen parameters, not the patterns: two patterns with different texts may match the
 * same parameters. */
static sgm_status give_frozen(given_values *given, const sgm_trainer *trainer)
{
    const sgm__learner *learner = sgm__learner_of(trainer);
    sgm__text names = {0};
    for (size_t i = 0; i < learner->recording.parameter_count; i++) {
        const char *name = learner->recording.parameters[i].name;
        if (sgm__trainer_is_frozen(trainer, name))
            sgm__text_append(&names, "%s%s", names.length > 0 ? ", " : "", name);
    }
    bool failed = names.failed;
    give_text(given, "what is frozen", names.length > 0 ? names.data : "nothing");
    sgm__text_free(&names);
    return failed ? SGM_ERROR_MEMORY : SGM_OK;
}

/* --- the data --- */

static size_t example_bytes(const sgm_tensor *values)
{
    const sgm_shape example = sgm__example_shape(values);
    return (size_t)sgm_shape_elements(&example) * sgm_dtype_size(sgm_tensor_dtype(values));
}

/* Adds the name and the values of the range's examples of a field to the hash. The values are contiguous, or
 * are copied so that they are. */
static sgm_status hash_field(const sgm__example_range *range, const sgm_field *field, uint64_t *hash)
{
    sgm_tensor *values = sgm_tensor_is_contiguous(field->values) ? sgm_tensor_retain(field->values)
                                                                 : sgm_tensor_copy(field->values);
    if (values == NULL)
        return sgm_last_status();
    size_t size = example_bytes(values);
    const unsigned char *bytes = sgm_tensor_const_data(values);
    *hash = sgm__hash(field->name, strlen(field->name), *hash);
    *hash = sgm__hash(bytes + (size_t)range->begin * size, (size_t)(range->end - range->begin) * size, *hash);
    sgm_tensor_free(values);
    return SGM_OK;
}

/* Adds all fields of block `index` to the hash, and their bytes to *bytes. */
static sgm_status hash_block(sgm_dataset *dataset, int64_t index, uint64_t *hash, double *bytes)
{
    sgm__example_range range;
    sgm_status status = sgm__dataset_fetch_range(dataset, index, &range);
    for (int32_t i = 0; status == SGM_OK && range.block != NULL && i < range.block->field_count; i++) {
        const sgm_field *field = &range.block->fields[i];
        status = hash_field(&range, field, hash);
        *bytes += (double)(range.end - range.begin) * (double)example_bytes(field->values);
    }
    sgm__example_range_release(&range);
    return status;
}

/* The i-th of `places` indices that are spread evenly over 0 ... all - 1, the first and the last included. */
static int64_t spread_index(int64_t i, int64_t places, int64_t all)
{
    return places < 2 ? 0 : (int64_t)((double)i * (double)(all - 1) / (double)(places - 1) + 0.5);
}

/* Hashes all blocks, or, where the data have more than MAXIMUM_COMPARED bytes, as many blocks as fit into
 * that, spread evenly over the data. The size of the first block stands for that of each; at least two blocks
 * are hashed. *compared: how many blocks were hashed. */
static sgm_status hash_data(sgm_dataset *dataset, int64_t blocks, uint64_t *hash, int64_t *compared)
{
    double first = 0, others = 0;
    *compared = blocks;
    if (blocks == 0)
        return SGM_OK;
    SGM_TRY(hash_block(dataset, 0, hash, &first));
    if (first * (double)blocks > MAXIMUM_COMPARED) {
        double maximum = MAXIMUM_COMPARED / first;
        *compared = maximum > 2 ? (int64_t)maximum : 2;
        *compared = *compared < blocks ? *compared : blocks;
    }
    for (int64_t i = 1; i < *compared; i++)
        SGM_TRY(hash_block(dataset, spread_index(i, *compared, blocks), hash, &others));
    return SGM_OK;
}

/* Adds a hash of the training data's content: a rank with another file of equally many examples would be
 * noticed by nothing else. */
static sgm_status give_content(given_values *given, const sgm__ranks *ranks, sgm_dataset *dataset,
                               int64_t blocks)
{
    char text[TEXT];
    uint64_t hash = 1;
    int64_t compared;
    SGM_TRY(hash_data(dataset, blocks, &hash, &compared));
    if (compared < blocks && ranks->rank == 0)
        sgm__log(SGM_LOG_INFO, sgm_trainer_name(ranks->trainer),
                 "of the training data the ranks have compared %lld of %lld blocks, as they are large",
                 (long long)compared, (long long)blocks);
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    give_text(given, "content of the training data", text);
    return SGM_OK;
}

/* The number of blocks and of examples in all of them; a block of no examples is behind the last one. */
static sgm_status count_examples(sgm_dataset *dataset, int64_t *blocks, int64_t *examples)
{
    int64_t part;
    for (*blocks = *examples = 0;; ++*blocks, *examples += part) {
        SGM_TRY(sgm__dataset_block_examples(dataset, *blocks, &part));
        if (part == 0)
            return SGM_OK;
    }
}

/* Adds the validation data: hooks decide by what is measured on them, and must decide alike on all ranks. */
static sgm_status give_validation(given_values *given, const sgm__ranks *ranks)
{
    const sgm_trainer *trainer = ranks->trainer;
    int64_t blocks, examples, compared;
    uint64_t hash = 1;
    char text[TEXT];
    give_number(given, "validation data", (int64_t)sgm__data_of(trainer)->validation_count);
    for (size_t i = 0; i < sgm__data_of(trainer)->validation_count; i++) {
        sgm_dataset *dataset = sgm_iterator_dataset(sgm__data_of(trainer)->validation[i].iterator);
        SGM_TRY(count_examples(dataset, &blocks, &examples));
        hash = sgm__hash(&examples, sizeof examples, hash);
        SGM_TRY(hash_data(dataset, blocks, &hash, &compared));
    }
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    give_text(given, "content of the validation data", text);
    return SGM_OK;
}

static sgm_status give_data(given_values *given, const sgm__ranks *ranks)
{
    const sgm_trainer *trainer = ranks->trainer;
    int64_t batches, blocks, examples;
    SGM_TRY(sgm_iterator_batches(sgm__data_of(trainer)->training, &batches));
    sgm_dataset *dataset = sgm_iterator_dataset(sgm__data_of(trainer)->training);
    SGM_TRY(count_examples(dataset, &blocks, &examples));
    give_number(given, "examples of the training data", examples);
    SGM_TRY(give_content(given, ranks, dataset, blocks));
    give_number(given, "minibatches of an epoch", batches);
    give_number(given, "examples of a minibatch", sgm__iterator_size(sgm__data_of(trainer)->training));
    give_number(given, "seed of the training data's order",
                (int64_t)sgm__iterator_seed(sgm__data_of(trainer)->training));
    give_number(given, "shuffle", sgm__iterator_shuffles(sgm__data_of(trainer)->training));
    give_number(given, "augment", sgm__iterator_augments(sgm__data_of(trainer)->training));
    return give_validation(given, ranks);
}

/* Operators that merge gradients divide a minibatch whatever the number of workers, so theirs may differ
 * between ranks and is noted as 0. */
static sgm_status give_all(given_values *given, const sgm__ranks *ranks)
{
    const sgm_trainer *trainer = ranks->trainer;
    const sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    give_number(given, "epochs", sgm__progress_of(trainer)->epochs);
    give_number(given, "iterations", sgm__progress_of(trainer)->iterations);
    give_number(given, "operator.every", parallel->every);
    give_number(given, "operator.check_every", ranks->options.check_every);
    give_number(given, "operator.bucket", ranks->options.bucket_bytes);
    give_number(given, "operator.bfloat16", ranks->options.narrow);
    give_number(given, "operator.workers", parallel->merges_gradients ? 0 : parallel->count);
    SGM_TRY(give_optimiser(given, sgm__learner_of(trainer)->optimiser));
    SGM_TRY(give_frozen(given, trainer));
    return give_data(given, ranks);
}

/* Fails, naming the first row in which a rank differs from rank 0. */
static sgm_status compare_given(const sgm__ranks *ranks, const given_values *all)
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
        status = compare_given(ranks, all);
    sgm__free(all);
    return status;
}
