/* What `sigma eval` says of transcripts: how often what is heard differs from the text. */
#include "eval/eval.h"

/* What was counted so far. */
typedef struct text_errors {
    int64_t texts, right;
    double characters, mistakes;
} text_errors;

static int64_t smallest(int64_t a, int64_t b, int64_t c)
{
    a = a < b ? a : b;
    return a < c ? a : c;
}

/* Characters that are to be replaced, left out or put in between (Levenshtein, 1966). `row` has room for
 * count + 1 numbers. */
static int64_t distance(const int64_t *heard, int64_t heard_count, const int64_t *said, int64_t count,
                        int64_t *row)
{
    for (int64_t k = 0; k <= count; k++)
        row[k] = k;
    for (int64_t i = 0; i < heard_count; i++) {
        int64_t corner = row[0]++;
        for (int64_t k = 0; k < count; k++) {
            int64_t above = row[k + 1];
            row[k + 1] = smallest(above + 1, row[k] + 1, corner + (heard[i] != said[k]));
            corner = above;
        }
    }
    return row[count];
}

/* Counts labels until the first that is none. */
static int64_t count_labels(const int64_t *labels, int64_t most)
{
    int64_t count = 0;
    while (count < most && labels[count] > 0)
        count++;
    return count;
}

/* `heard` is (texts, steps), `said` and `row` have room for `most` labels and one more. */
static void add_texts(text_errors *e, const sgm_tensor *heard, const sgm_tensor *targets, int64_t *said,
                      int64_t *row)
{
    const sgm_shape *shape = sgm_tensor_shape(heard);
    int64_t steps = shape->dims[1], most = sgm_tensor_shape(targets)->dims[1];
    const int64_t *labels = sgm_tensor_const_data(heard);
    for (int64_t i = 0; i < shape->dims[0]; i++, labels += steps) {
        for (int64_t k = 0; k < most; k++)
            said[k] = (int64_t)sgm_tensor_get(targets, (const int64_t[]){i, k});
        int64_t count = count_labels(said, most);
        int64_t wrong = distance(labels, count_labels(labels, steps), said, count, row);
        e->texts++;
        e->right += wrong == 0;
        e->mistakes += (double)wrong;
        e->characters += (double)count;
    }
}

static sgm_status add_block(text_errors *e, const saved *s, const sgm__signature *signature,
                            const sgm_block *block)
{
    sgm_tensor *targets = sgm_block_field(block, "targets"), *field = sgm_block_field(block, "lengths");
    if (targets == NULL || field == NULL)
        return sgm__last_failure();
    size_t most = (size_t)sgm_tensor_shape(targets)->dims[1], count = (size_t)block->count;
    double *lengths = sgm__calloc(count, sizeof *lengths);
    int64_t *room = sgm__calloc(2 * (most + 1), sizeof *room);
    sgm_status status =
        lengths != NULL && room != NULL ? sgm_tensor_read(field, lengths, count) : SGM_ERROR_MEMORY;
    sgm_tensor *outputs = status == SGM_OK ? sgm_trainer_predict_block(s->trainer, block, NULL) : NULL;
    sgm_tensor *heard = outputs != NULL ? sgm__signature_labels(signature, outputs, lengths) : NULL;
    if (heard != NULL)
        add_texts(e, heard, targets, room, room + most + 1);
    else if (status == SGM_OK)
        status = sgm__last_failure();
    sgm_tensor_free(heard);
    sgm_tensor_free(outputs);
    sgm__free(lengths);
    sgm__free(room);
    return status;
}

static sgm_status add_blocks(text_errors *e, const saved *s, const sgm__signature *signature,
                             sgm_iterator *batches)
{
    const sgm_block *block;
    do {
        SGM_TRY(sgm_iterator_next(batches, &block));
        if (block != NULL)
            SGM_TRY(add_block(e, s, signature, block));
    } while (block != NULL);
    return SGM_OK;
}

sgm_status eval_texts(const saved *s, sgm_dataset *dataset, sgm_registry *results)
{
    text_errors e = {0};
    sgm__signature signature;
    SGM_TRY(experiment_describe(s->network, &signature));
    if (signature.blank != 0) /* another cost: its labels are no characters */
        return SGM_OK;
    sgm_iterator *batches = experiment_measuring(dataset, &s->c);
    sgm_status status = batches != NULL ? add_blocks(&e, s, &signature, batches) : sgm__last_failure();
    sgm_iterator_free(batches);
    SGM_TRY(status);
    SGM_TRY(eval_add_number(results, "character_error_rate", e.mistakes / e.characters, NULL));
    return eval_add_number(results, "text_accuracy", (double)e.right / (double)e.texts, NULL);
}
