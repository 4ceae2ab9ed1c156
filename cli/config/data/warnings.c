/* What looks wrong in the data before anything is trained: warnings, never errors, since a program cannot
 * know what was meant.
 *
 * The beginning of each dataset is looked at: its first block, whose examples are rows of numbers. That finds
 * what concerns all examples, and costs nothing, as the block is trained on anyway. Pictures and other inputs
 * with several axes are compared as rows, but not looked at element by element. */
#include "config/arguments.h"
#include "config/experiment.h"
#include "data/dataset.h"
#include "data/table/pipeline.h"

#include <math.h>
#include <stdlib.h>

#define MAXIMUM_EXAMPLES 10000
#define MAXIMUM_NUMBERS (1 << 22) /* of all examples together */
/* Products for all correlations, which take a tenth of a second. */
#define MAXIMUM_PRODUCTS 50000000
/* Fewer examples can have any of these properties by chance. */
#define MINIMUM_EXAMPLES 30
#define SUSPICIOUS_CORRELATION 0.999
#define SUSPICIOUS_RATIO 1000.0 /* of the largest inputs of two columns */
#define SUSPICIOUS_IMBALANCE 20.0
#define SUSPICIOUS_OVERLAP 0.1
#define SUSPICIOUS_DEVIATIONS 4 /* of a count that chance makes */
#define SUSPICIOUS_CATEGORIES 100

/* The first examples of a dataset, one row each. */
typedef struct beginning {
    const char *name; /* training, validation or test */
    int64_t count;
    bool is_all;             /* the dataset has no more */
    int64_t width, targets;  /* numbers of the inputs and of the targets of an example */
    bool is_flat;            /* inputs have one axis, and are columns of a table or the like */
    bool has_classes;        /* targets are one-hot */
    double *inputs, *wanted; /* (count, width), (count, targets), owned */
} beginning;

static sgm_status read_field(const sgm_block *block, const char *name, int64_t count, int64_t *width,
                             double **numbers)
{
    sgm_tensor *values = sgm_block_field(block, name);
    if (values == NULL)
        return sgm_last_status();
    *width = sgm_shape_elements(sgm_tensor_shape(values)) / block->count;
    sgm_tensor *part = sgm_tensor_slice(values, 0, 0, count, 1);
    *numbers = part != NULL ? sgm__calloc((size_t)(count * *width) + 1, sizeof **numbers) : NULL;
    sgm_status status =
        *numbers != NULL ? sgm_tensor_read(part, *numbers, (size_t)(count * *width)) : SGM_ERROR_MEMORY;
    sgm_tensor_free(part);
    return status;
}

static bool are_one_hot(const beginning *b)
{
    for (int64_t i = 0; i < b->count * b->targets; i++)
        if (b->wanted[i] != 0 && b->wanted[i] != 1)
            return false;
    return b->targets > 1;
}

static bool is_field(const sgm_block *block, const char *name)
{
    for (int32_t i = 0; i < block->field_count; i++)
        if (strcmp(block->fields[i].name, name) == 0)
            return true;
    return false;
}

static sgm_status read_block(beginning *b, const sgm_block *block)
{
    bool has_inputs = is_field(block, "inputs"); /* a table of texts alone has none */
    const char *field = has_inputs ? "inputs" : block->fields[0].name;
    sgm_tensor *inputs = sgm_block_field(block, field);
    if (inputs == NULL)
        return sgm_last_status();
    int64_t width = sgm_shape_elements(sgm_tensor_shape(inputs)) / block->count,
            most = MAXIMUM_NUMBERS / (width + 1) + 1;
    b->is_flat = has_inputs && sgm_tensor_shape(inputs)->rank == 2;
    b->count = block->count < MAXIMUM_EXAMPLES ? block->count : MAXIMUM_EXAMPLES;
    b->count = b->count < most ? b->count : most;
    SGM_TRY(read_field(block, field, b->count, &b->width, &b->inputs));
    SGM_TRY(read_field(block, "targets", b->count, &b->targets, &b->wanted));
    /* Targets with more axes are classes of pixels or steps, by their numbers. */
    sgm_tensor *targets = sgm_block_field(block, "targets");
    b->has_classes = targets != NULL && sgm_tensor_shape(targets)->rank == 2 && are_one_hot(b);
    return SGM_OK;
}

static void free_beginning(beginning *b)
{
    sgm__free(b->inputs);
    sgm__free(b->wanted);
    *b = (beginning){0};
}

/* What has no inputs and targets, or cannot be read, is left empty: training will tell what is wrong. */
static beginning read_beginning(sgm_dataset *dataset, const char *name)
{
    beginning b = {.name = name};
    const sgm_block *block = NULL;
    if (dataset == NULL || sgm_dataset_fetch_block(dataset, 0, &block) != SGM_OK || block == NULL)
        return b;
    int64_t examples = block->count, more = 0;
    if (read_block(&b, block) != SGM_OK)
        free_beginning(&b);
    else
        b.is_all =
            b.count == examples && sgm__dataset_block_examples(dataset, 1, &more) == SGM_OK && more == 0;
    sgm_dataset_release_block(dataset, block);
    return b;
}

/* --- single columns --- */

/* The column of a table that makes an element of the inputs, else "number 3". */
static const char *input_name(const data_group *group, int64_t element, char *text, size_t size)
{
    const sgm_pipeline *pipeline = group->pipeline;
    for (size_t i = 0; pipeline != NULL && i < pipeline->part_count; i++) {
        const sgm__pipeline_part *part = &pipeline->parts[i];
        if (strcmp(pipeline->fields[part->field].name, "inputs") == 0 && element >= part->first &&
            element < part->first + part->width)
            return part->name;
    }
    snprintf(text, size, "number %lld", (long long)element);
    return text;
}

/* Pearson's; 0 where one of them does not vary. */
static double correlation(const beginning *b, int64_t input, int64_t target)
{
    double x = 0, y = 0, xx = 0, yy = 0, xy = 0, count = (double)b->count;
    for (int64_t i = 0; i < b->count; i++) {
        x += b->inputs[i * b->width + input] / count;
        y += b->wanted[i * b->targets + target] / count;
    }
    for (int64_t i = 0; i < b->count; i++) {
        double dx = b->inputs[i * b->width + input] - x, dy = b->wanted[i * b->targets + target] - y;
        xx += dx * dx;
        yy += dy * dy;
        xy += dx * dy;
    }
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : 0;
}

/* Between an input and classes: the correlation ratio (Fisher, Statistical Methods for Research Workers,
 * 1925), the root of the share of the input's variance that is between classes. 1: the input follows from the
 * class. */
static double correlation_ratio(const beginning *b, int64_t input)
{
    double mean = 0, all = 0, between = 0;
    for (int64_t i = 0; i < b->count; i++)
        mean += b->inputs[i * b->width + input] / (double)b->count;
    for (int64_t i = 0; i < b->count; i++) {
        double distance = b->inputs[i * b->width + input] - mean;
        all += distance * distance;
    }
    for (int64_t class = 0; class < b->targets; class ++) {
        double sum = 0, count = 0;
        for (int64_t i = 0; i < b->count; i++) {
            sum += b->wanted[i * b->targets + class] * (b->inputs[i * b->width + input] - mean);
            count += b->wanted[i * b->targets + class];
        }
        between += count > 0 ? sum * sum / count : 0;
    }
    return all > 0 ? sqrt(between / all) : 0;
}

/* Of an input with the targets: that of the largest size. */
static double largest_correlation(const beginning *b, int64_t input)
{
    double largest = 0;
    if (b->has_classes)
        return correlation_ratio(b, input);
    for (int64_t target = 0; target < b->targets; target++) {
        double found = correlation(b, input, target);
        largest = fabs(found) > fabs(largest) ? found : largest;
    }
    return largest;
}

/* An input that says what the target is: mostly the target in another form. */
static void warn_of_leak(const data_group *group, const beginning *whole)
{
    char text[32];
    beginning part = *whole, *b = &part; /* of many columns, fewer examples suffice */
    if (part.count > MAXIMUM_PRODUCTS / (part.width * part.targets))
        part.count = MAXIMUM_PRODUCTS / (part.width * part.targets);
    for (int64_t input = 0; input < b->width && b->count >= MINIMUM_EXAMPLES; input++) {
        double found = largest_correlation(b, input);
        if (fabs(found) < SUSPICIOUS_CORRELATION)
            continue;
        complain("warning: data.training: the input '%s' has a correlation of %.4f with the target: if it is "
                 "not known before the target is, drop it\n",
                 input_name(group, input, text, sizeof text), found);
        return;
    }
}

static void warn_of_scales(const data_group *group, const beginning *b)
{
    int64_t smallest = -1, largest = -1;
    double low = INFINITY, high = 0;
    char one[32], other[32];
    for (int64_t input = 0; input < b->width; input++) {
        double size = 0;
        for (int64_t i = 0; i < b->count; i++)
            size = fmax(size, fabs(b->inputs[i * b->width + input]));
        if (size > high) {
            high = size;
            largest = input;
        }
        if (size > 0 && size < low) {
            low = size;
            smallest = input;
        }
    }
    if (high <= SUSPICIOUS_RATIO * low)
        return;
    complain(
        "warning: data.training: inputs are of very different sizes: '%s' up to %.4g, '%s' up to %.4g; %s\n",
        input_name(group, largest, one, sizeof one), high, input_name(group, smallest, other, sizeof other),
        low,
        group->pipeline != NULL ? "'scale: standard' brings them to one"
                                : "a csv with `target` brings them to one, or divide before");
}

/* Texts that hardly come again, such as names, become an input each, from which nothing is learnt. */
static void warn_of_categories(const sgm_pipeline *pipeline)
{
    for (size_t i = 0; pipeline != NULL && i < pipeline->part_count; i++) {
        const sgm__pipeline_part *part = &pipeline->parts[i];
        bool are_inputs = sgm__pipeline_is_input(part) && !pipeline->fields[part->field].is_index;
        if (part->kind == SGM_COLUMN_CATEGORY && are_inputs && part->category_count > SUSPICIOUS_CATEGORIES)
            complain(
                "warning: data.training: the column '%s' has %zu different values, each of which becomes "
                "an input of its own; 'embedding: {%s: 8}' makes 8 numbers of them, 'text_columns: [%s]' "
                "has them read as texts, 'drop: [%s]' leaves the column out\n",
                part->name, part->category_count, part->name, part->name, part->name);
    }
}

/* --- classes --- */

static const char *class_name(sgm_dataset *dataset, int64_t class, char *text, size_t size)
{
    const char *const *names = sgm_dataset_get_class_names(dataset);
    int64_t count = 0;
    while (names != NULL && names[count] != NULL)
        count++;
    if (class < count)
        return names[class];
    snprintf(text, size, "%lld", (long long)class);
    return text;
}

static double examples_of(const beginning *b, int64_t class)
{
    double sum = 0;
    for (int64_t i = 0; i < b->count; i++)
        sum += b->wanted[i * b->targets + class];
    return sum;
}

static void warn_of_imbalance(const beginning *b, sgm_dataset *dataset)
{
    int64_t fewest = -1, most = -1;
    char one[32], other[32];
    for (int64_t class = 0; class < b->targets; class ++) {
        double own = examples_of(b, class);
        if (own > 0 && (fewest < 0 || own < examples_of(b, fewest)))
            fewest = class;
        if (most < 0 || own > examples_of(b, most))
            most = class;
    }
    if (fewest >= 0 && examples_of(b, most) > SUSPICIOUS_IMBALANCE * examples_of(b, fewest))
        complain(
            "warning: data.training: class '%s' has %.0f examples and '%s' has %.0f: a network that never "
            "says '%s' is nearly always right; 'class_weights: balanced' makes classes count alike\n",
            class_name(dataset, most, one, sizeof one), examples_of(b, most),
            class_name(dataset, fewest, other, sizeof other), examples_of(b, fewest),
            class_name(dataset, fewest, other, sizeof other));
}

/* Classes that another part has: the file may be sorted. */
static void warn_of_missing_classes(const data_group *group, const beginning *b, const beginning *other,
                                    sgm_dataset *dataset)
{
    char text[32];
    if (!b->has_classes || !other->has_classes || b->targets != other->targets || !b->is_all)
        return;
    for (int64_t class = 0; class < b->targets; class ++)
        if (examples_of(b, class) == 0 && examples_of(other, class) > 0) {
            complain(
                "warning: data.%s: none of the %lld examples is of class '%s'; %s\n", b->name,
                (long long)b->count, class_name(dataset, class, text, sizeof text),
                data_group_is_split(group)
                    ? "it has too few examples for all parts"
                    : "if the file is sorted, 'split: 0.8' mixes it, or 'shuffled: true' in each part before "
                      "begin and share apply");
            return;
        }
}

/* --- examples in two parts --- */

/* FNV-1a, of inputs and targets. */
static uint64_t hash_of(const beginning *b, int64_t example)
{
    uint64_t hash = 14695981039346656037U;
    for (int64_t k = 0; k < b->width + b->targets; k++) {
        double number =
            k < b->width ? b->inputs[example * b->width + k] : b->wanted[example * b->targets + k - b->width];
        unsigned char bytes[sizeof number];
        memcpy(bytes, &number, sizeof number);
        for (size_t i = 0; i < sizeof bytes; i++)
            hash = (hash ^ bytes[i]) * 1099511628211U;
    }
    return hash;
}

static int by_hash(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* Hashes of all examples, sorted; NULL without memory. */
static uint64_t *hashes_of(const beginning *b)
{
    uint64_t *hashes = sgm__calloc((size_t)b->count + 1, sizeof *hashes);
    for (int64_t i = 0; hashes != NULL && i < b->count; i++)
        hashes[i] = hash_of(b, i);
    if (hashes != NULL)
        qsort(hashes, (size_t)b->count, sizeof *hashes, by_hash);
    return hashes;
}

/* Tables of few different rows have equal ones in all parts. Where that is chance, a row of another part is
 * in the training data at most twice as often as one of them was there before: with n rows of m different
 * ones that are about n / m and n / 2m. What counts is more than that. */
static void warn_of_overlap(const beginning *training, const beginning *other)
{
    if (other->count == 0 || other->width != training->width || other->targets != training->targets)
        return;
    uint64_t *hashes = hashes_of(training);
    int64_t common = 0, repeated = 0;
    for (int64_t i = 1; hashes != NULL && i < training->count; i++)
        repeated += hashes[i] == hashes[i - 1];
    for (int64_t i = 0; hashes != NULL && i < other->count; i++) {
        uint64_t hash = hash_of(other, i);
        common += bsearch(&hash, hashes, (size_t)training->count, sizeof *hashes, by_hash) != NULL;
    }
    sgm__free(hashes);
    double count = (double)other->count, chance = 2 * count * (double)repeated / (double)training->count;
    if ((double)common > SUSPICIOUS_OVERLAP * count &&
        (double)common > chance + SUSPICIOUS_DEVIATIONS * sqrt(chance))
        complain("warning: data.%s: %lld of the first %lld examples are in the training data, too, so that "
                 "what is measured says little of new data; 'split: 0.8' makes parts without common rows\n",
                 other->name, (long long)common, (long long)other->count);
}

/* --- the network --- */

/* The cost takes the logarithm of a softmax of its inputs; a softmax before it flattens the gradient. */
static void warn_of_softmax(const char *network)
{
    const char *cost = strstr(network, "softmax_cross_entropy");
    if (cost == NULL || cost == network)
        return;
    const char *begin = cost - 1;
    while (begin > network && *begin != '+')
        begin--;
    const char *before = begin;
    int depth = 0;
    while (before > network && (depth > 0 || (before[-1] != '+' && before[-1] != ';' && before[-1] != '='))) {
        before--;
        depth += (*before == ')') - (*before == '(');
    }
    for (const char *c = before; c + strlen("softmax") <= begin; c++)
        if (strncmp(c, "softmax", strlen("softmax")) == 0) {
            complain("warning: network: softmax stands before softmax_cross_entropy, which has one of its "
                     "own: with two of them a network learns slowly; remove the first\n");
            return;
        }
}

/* --- pairs --- */

static void warn_of_single_pairs(const config *c, sgm_dataset *training)
{
    if (sgm_dataset_get_group(training) == 2 && c->data.batch == 2)
        complain("warning: data.batch: a minibatch of one pair has no other text to tell its like from: its "
                 "loss is 0, and nothing is learnt; take 4 at least\n");
}

/* --- all of them --- */

void experiment_warn(const config *c, sgm_dataset *training, sgm_dataset *validation, sgm_dataset *test)
{
    beginning first = read_beginning(training, "training");
    beginning others[] = {read_beginning(validation, "validation"), read_beginning(test, "test")};
    bool are_enough = first.count >= MINIMUM_EXAMPLES;
    warn_of_softmax(c->network);
    warn_of_categories(c->data.pipeline);
    warn_of_single_pairs(c, training);
    /* kinds, whose numbers mean nothing; of a text's windows, each target is the input of the place behind it
     */
    bool are_tokens = data_config_is_of_model(&c->data.training) || c->data.training.text != NULL;
    if (are_enough && first.is_flat && !are_tokens) {
        warn_of_leak(&c->data, &first);
        warn_of_scales(&c->data, &first);
    }
    if (are_enough && first.has_classes && strstr(c->network, "class_weights") == NULL)
        warn_of_imbalance(&first, training);
    for (size_t i = 0; i < 2; i++) {
        if (are_enough)
            warn_of_overlap(&first, &others[i]);
        warn_of_missing_classes(&c->data, &others[i], &first, training);
        warn_of_missing_classes(&c->data, &first, &others[i], training);
        free_beginning(&others[i]);
    }
    free_beginning(&first);
    sgm_clear_error();
}
