/* Splits: gives each example a part, and an extractor that keeps the examples of one part.
 *
 * Random, stratified and grouped splits are dealt: examples, in a random order within each key, or whole
 * groups, go one after the other to the part that lacks most of its share. So each part has its share of the
 * whole, and of each key, to within an example or two, without rounding for each key by itself. */
#include "data/dataset.h"
#include "data/read/extractor.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

struct sgm_split {
    atomic_int references;
    int64_t examples;
    int32_t part_count;
    int64_t counts[SGM_MAX_PARTS];
    uint8_t *parts; /* of each example */
};

/* --- options --- */

/* The shares that were given, and what they leave. */
typedef struct shares {
    double share[SGM_MAX_PARTS];
    int32_t count;
} shares;

static sgm_status read_shares(const sgm_split_options *options, shares *read)
{
    double sum = 0;
    read->count = 0;
    while (read->count < SGM_MAX_PARTS && options->shares[read->count] != 0) {
        double share = options->shares[read->count];
        if (!(share > 0 && share <= 1))
            return sgm_fail(SGM_ERROR_ARGUMENT,
                            "a split: a share above 0 and up to 1 was expected for part %d, %g came",
                            (int)read->count, share);
        sum += share;
        read->share[read->count++] = share;
    }
    if (read->count == 0 || sum > 1 + 1e-9)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "a split: shares that are together 1 were expected, such as {0.8, 0.2}; "
                        "they are %g",
                        sum);
    if (sum < 1 - 1e-9 && read->count == SGM_MAX_PARTS)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a split: at most %d parts were expected", SGM_MAX_PARTS);
    if (sum < 1 - 1e-9)
        read->share[read->count++] = 1 - sum;
    return SGM_OK;
}

static sgm_status check_keys(const sgm_split_options *options, const double *keys, int64_t examples)
{
    if ((unsigned)options->kind > SGM_SPLIT_TIME)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a split: a kind from 0 to %d was expected, %d came",
                        SGM_SPLIT_TIME, (int)options->kind);
    if (keys == NULL && options->kind != SGM_SPLIT_RANDOM)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a split that is not random needs keys");
    for (int64_t i = 0; keys != NULL && i < examples; i++)
        if (isnan(keys[i]))
            return sgm_fail(SGM_ERROR_ARGUMENT, "a split: the key of example %lld is no number",
                            (long long)i);
    return SGM_OK;
}

/* --- dealing --- */

typedef struct keyed {
    double key;
    uint64_t random; /* decides among equal keys */
    int64_t example;
} keyed;

static int by_key(const void *left, const void *right)
{
    const keyed *a = left, *b = right;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return (a->random > b->random) - (a->random < b->random);
}

/* Examples that stay together: those from `first` on in the order of keys. */
typedef struct group {
    int64_t first, count;
    uint64_t random;
} group;

/* The largest first; equal ones in a random order. */
static int by_size(const void *left, const void *right)
{
    const group *a = left, *b = right;
    if (a->count != b->count)
        return a->count < b->count ? 1 : -1;
    return (a->random > b->random) - (a->random < b->random);
}

/* The part that lacks most of what it should have of the first `dealt` examples; the first of equal ones. */
static int32_t lacking(const sgm_split *split, const shares *wanted, int64_t dealt)
{
    int32_t most = 0;
    double lack = -INFINITY;
    for (int32_t i = 0; i < wanted->count; i++) {
        double own = wanted->share[i] * (double)dealt - (double)split->counts[i];
        if (own > lack + 1e-9) {
            lack = own;
            most = i;
        }
    }
    return most;
}

static void put(sgm_split *split, int64_t example, int32_t part)
{
    split->parts[example] = (uint8_t)part;
    split->counts[part]++;
}

static void deal_single(sgm_split *split, const shares *wanted, const keyed *order)
{
    for (int64_t i = 0; i < split->examples; i++)
        put(split, order[i].example, lacking(split, wanted, i + 1));
}

/* What a part lacks is counted of all examples, so that a large group goes where there is room for it. */
static void deal_group(sgm_split *split, const shares *wanted, const keyed *order, const group *one)
{
    int32_t part = lacking(split, wanted, split->examples);
    for (int64_t i = one->first; i < one->first + one->count; i++)
        put(split, order[i].example, part);
}

static sgm_status deal_groups(sgm_split *split, const shares *wanted, const keyed *order)
{
    group *groups = sgm__calloc((size_t)split->examples, sizeof *groups);
    size_t count = 0;
    if (groups == NULL)
        return SGM_ERROR_MEMORY;
    for (int64_t i = 0; i < split->examples; i++) {
        if (i == 0 || order[i].key != order[i - 1].key)
            groups[count++] = (group){.first = i, .random = order[i].random};
        groups[count - 1].count++;
    }
    qsort(groups, count, sizeof *groups, by_size);
    for (size_t i = 0; i < count; i++)
        deal_group(split, wanted, order, &groups[i]);
    sgm__free(groups);
    return SGM_OK;
}

/* In the order of time, one part after the other. */
static void cut(sgm_split *split, const shares *wanted, const keyed *order)
{
    double end = 0;
    int64_t i = 0;
    for (int32_t part = 0; part < wanted->count; part++) {
        end += wanted->share[part];
        int64_t last = part + 1 == wanted->count ? split->examples
                                                 : (int64_t)floor(end * (double)split->examples + 0.5 + 1e-6);
        for (; i < last; i++)
            put(split, order[i].example, part);
    }
}

/* Equal times stay in the order of the source; all else is mixed. */
static sgm_status deal(sgm_split *split, const shares *wanted, const double *keys,
                       const sgm_split_options *options)
{
    keyed *order = sgm__calloc((size_t)split->examples, sizeof *order);
    sgm__random random = sgm__random_make(options->seed, 0);
    bool is_time = options->kind == SGM_SPLIT_TIME;
    if (order == NULL)
        return SGM_ERROR_MEMORY;
    for (int64_t i = 0; i < split->examples; i++) {
        uint64_t drawn = (uint64_t)sgm__random_uint32(&random) << 32 | (uint64_t)i % UINT32_MAX;
        order[i] =
            (keyed){options->kind == SGM_SPLIT_RANDOM ? 0 : keys[i] + 0.0, is_time ? (uint64_t)i : drawn, i};
    }
    qsort(order, (size_t)split->examples, sizeof *order, by_key);
    sgm_status status = SGM_OK;
    if (is_time)
        cut(split, wanted, order);
    else if (options->kind == SGM_SPLIT_GROUP)
        status = deal_groups(split, wanted, order);
    else
        deal_single(split, wanted, order);
    sgm__free(order);
    return status;
}

/* --- splits --- */

static sgm_status check_parts(const sgm_split *split, const sgm_split_options *options)
{
    for (int32_t i = 0; i < split->part_count; i++)
        if (split->counts[i] == 0)
            return sgm_fail(SGM_ERROR_ARGUMENT,
                            "a split of %lld examples leaves none for part %d of %d: there are too few %s",
                            (long long)split->examples, (int)i, (int)split->part_count,
                            options->kind == SGM_SPLIT_GROUP ? "groups" : "examples");
    return SGM_OK;
}

sgm_split *sgm_split_create_with(int64_t examples, const double *keys, const sgm_split_options *given)
{
    sgm_split_options options;
    shares wanted;
    if (sgm__options_read(&options, sizeof options, given, "sgm_split_create") != SGM_OK ||
        read_shares(&options, &wanted) != SGM_OK || check_keys(&options, keys, examples) != SGM_OK)
        return NULL;
    sgm_split *split = sgm__calloc(1, sizeof *split);
    if (split == NULL)
        return NULL;
    atomic_init(&split->references, 1);
    split->examples = examples > 0 ? examples : 0;
    split->part_count = wanted.count;
    split->parts = sgm__calloc((size_t)split->examples + 1, 1);
    if (split->parts != NULL && (examples <= 0 || deal(split, &wanted, keys, &options) == SGM_OK) &&
        check_parts(split, &options) == SGM_OK)
        return split;
    sgm_split_free(split);
    return NULL;
}

sgm_split *sgm_split_retain(sgm_split *split)
{
    atomic_fetch_add(&split->references, 1);
    return split;
}

void sgm_split_free(sgm_split *split)
{
    if (split == NULL || atomic_fetch_sub(&split->references, 1) > 1)
        return;
    sgm__free(split->parts);
    sgm__free(split);
}

int64_t sgm_split_examples(const sgm_split *split)
{
    return split->examples;
}

int32_t sgm_split_parts(const sgm_split *split)
{
    return split->part_count;
}

int64_t sgm_split_part_examples(const sgm_split *split, int32_t part)
{
    return part >= 0 && part < split->part_count ? split->counts[part] : 0;
}

int32_t sgm_split_part_of(const sgm_split *split, int64_t example)
{
    return example >= 0 && example < split->examples ? split->parts[example] : -1;
}

void sgm__split_describe(const sgm_split *split, int32_t part, bool others, sgm__key *key)
{
    sgm__key_add_bytes(key, split != NULL ? split->parts : NULL, split != NULL ? (size_t)split->examples : 0);
    sgm__key_add_number(key, part);
    sgm__key_add_number(key, others);
}

/* --- the extractor --- */

typedef struct selection {
    sgm_split *split;
    int32_t part;
    bool others;
    int64_t next; /* the example that the parent gives next */
} selection;

static bool is_selected(const selection *self, int64_t example)
{
    return (self->split->parts[example] == self->part) != self->others;
}

/* Appends the selected examples of a block of the parent, runs of them at once. */
static sgm_status append(selection *self, sgm_block *block, sgm__builder *builder)
{
    int64_t begin = 0;
    float *values; /* only the copy in one piece that asking for it makes */
    for (int32_t i = 0; i < block->field_count; i++)
        SGM_TRY(sgm__field_values(&block->fields[i], &values));
    if (block->count > self->split->examples - self->next)
        return sgm_fail(SGM_ERROR_FORMAT,
                        "the source has more than the %lld examples that were split; it has changed",
                        (long long)self->split->examples);
    while (begin < block->count) {
        int64_t end = begin + 1;
        bool selected = is_selected(self, self->next + begin);
        while (end < block->count && is_selected(self, self->next + end) == selected)
            end++;
        if (selected)
            SGM_TRY(sgm__builder_append(builder, block, begin, end));
        begin = end;
    }
    self->next += block->count;
    return SGM_OK;
}

static sgm_status build(selection *self, sgm_extractor *parent, int64_t count, sgm__builder *builder)
{
    while (builder->count < count) {
        sgm_block *block;
        SGM_TRY(sgm_extractor_extract(parent, count - builder->count, &block));
        if (block == NULL && self->next != self->split->examples)
            return sgm_fail(SGM_ERROR_FORMAT,
                            "the source has %lld examples, and %lld were split; it has changed",
                            (long long)self->next, (long long)self->split->examples);
        if (block == NULL)
            return SGM_OK;
        sgm_status status = append(self, block, builder);
        sgm_block_free(block);
        SGM_TRY(status);
    }
    return SGM_OK;
}

static sgm_status extract(void *pointer, sgm_extractor *parent, int64_t count, sgm_block **block)
{
    sgm__builder builder = {0};
    return sgm__builder_finish(&builder, build(pointer, parent, count, &builder), block);
}

static sgm_status rewind_selection(void *pointer)
{
    ((selection *)pointer)->next = 0;
    return SGM_OK;
}

static void describe(const void *pointer, sgm__key *key)
{
    const selection *self = pointer;
    sgm__split_describe(self->split, self->part, self->others, key);
}

static void release(void *pointer)
{
    selection *self = pointer;
    sgm_split_free(self->split);
    sgm__free(self);
}

sgm_extractor *sgm_split_extractor(sgm_extractor *extractor, sgm_split *split, int32_t part, bool others)
{
    static const sgm_extractor_type type = {.name = "split", .extract = extract, .free = release};
    bool good = extractor != NULL && split != NULL && part >= 0 && part < split->part_count &&
                (!others || split->part_count > 1);
    selection *self = good ? sgm__calloc(1, sizeof *self) : NULL;
    if (self == NULL) {
        if (extractor == NULL || split == NULL)
            sgm__missing_part("sgm_split_extractor: an extractor and a split");
        else if (!good)
            sgm_fail(SGM_ERROR_ARGUMENT, "sgm_split_extractor: a part from 0 to %d was expected, %d came",
                     (int)split->part_count - 1, (int)part);
        sgm_extractor_free(extractor);
        return NULL;
    }
    *self = (selection){.split = sgm_split_retain(split), .part = part, .others = others};
    return sgm__extractor_create(&(sgm__extractor_parts){
        .type = &type, .self = self, .parent = extractor, .rewind = rewind_selection, .describe = describe});
}
