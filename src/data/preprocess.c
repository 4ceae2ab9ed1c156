/* Preprocessors that need to know nothing of the data: normalise, one-hot, permute, shuffle, a range for each
 * index.
 *
 * Each is an extractor around another one, its parent: extract asks the parent for a block and changes the
 * block's fields. Those that learn their range from the data are in preprocess_adaptive.c; augmentation,
 * which differs from epoch to epoch and so belongs to iterators, is in augment.c. Datasets call the whole
 * chain through read/extractor.c, on one thread at a time. The five parts of this file have the same form: a
 * struct with the field's name first, a function that changes a field, one that extracts, and one that checks
 * options and creates. Each creating function takes over the extractor that it is given, also on failure, so
 * that calls nest. */
#include "data/preprocess.h"
#include "data/read/extractor.h"

#include <math.h>

/* --- what they share --- */

/* Calls sgm_block_field only for its message, which lists the names of the block. */
sgm_status sgm__preprocess_fields(sgm_block *block, const char *name, sgm__field_change change, void *user)
{
    if (!*name) {
        for (int32_t i = 0; i < block->field_count; i++)
            SGM_TRY(change(user, &block->fields[i], i));
        return SGM_OK;
    }
    sgm_field *field = sgm__block_find(block, name);
    if (field)
        return change(user, field, 0);
    sgm_block_field(block, name);
    return SGM_ERROR_NOT_FOUND;
}

/* Puts another tensor into a field and frees the old one. NULL for the tensor is a failure to make it, which
 * is passed on. */
static sgm_status replace(sgm_field *field, sgm_tensor *values)
{
    if (!values)
        return sgm_last_status();
    sgm_tensor_free(field->values);
    field->values = values;
    return SGM_OK;
}

/* Computes in double: a range far from 0, such as years, would lose digits in float32 when input_min is
 * subtracted.
 *
 *   value = output_min + (value - input_min) * (output_max - output_min) / (input_max - input_min) */
void sgm__range_apply(float *values, int64_t count, size_t stride, const sgm__range *range)
{
    double width = range->input_max - range->input_min;
    double scale = width > 0 ? (range->output_max - range->output_min) / width : 0;
    for (int64_t i = 0; i < count; i++) {
        float *value = &values[(size_t)i * stride];
        *value = (float)(range->output_min + (scale != 0 ? ((double)*value - range->input_min) * scale : 0));
    }
}

sgm_status sgm__preprocess_range(const sgm_preprocess_options *options, const char *who, sgm__range *range)
{
    *range = (sgm__range){options->input_min, options->input_max, options->output_min, options->output_max};
    if (range->output_min == 0 && range->output_max == 0)
        range->output_max = 1;
    if (!isfinite(range->output_min) || !isfinite(range->output_max))
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: the output range %g to %g is not finite", who,
                        range->output_min, range->output_max);
    return SGM_OK;
}

/* follows_parent says that blocks can be passed over without making them: sgm__extractor_skip then asks the
 * parent alone. */
sgm_extractor *sgm__preprocess_create(const sgm__preprocess_parts *parts)
{
    if (!parts->parent) {
        sgm__missing_part("a preprocessor's extractor");
        parts->type->free(parts->self);
        return NULL;
    }
    return sgm__extractor_create(&(sgm__extractor_parts){.type = parts->type,
                                                         .self = parts->self,
                                                         .parent = parts->parent,
                                                         .rewind = parts->rewind,
                                                         .follows_parent = true,
                                                         .passed_over = parts->passed_over,
                                                         .describe = parts->describe});
}

/* Allocates a preprocessor's struct, whose first member is the field's name, and copies the name there. On
 * failure NULL, and the parent is freed, since it has been taken over. */
static void *make_self(sgm_extractor *parent, size_t size, const char *field, const char *who)
{
    char *self = sgm__calloc(1, size);
    if (self && field && sgm__field_name(self, field, who) != SGM_OK) {
        sgm__free(self);
        self = NULL;
    }
    if (!self)
        sgm_extractor_free(parent);
    return self;
}

/* Frees what a creating function has taken over; returns NULL for it. */
static sgm_extractor *refuse(sgm_extractor *parent, void *self)
{
    sgm_extractor_free(parent);
    sgm__free(self);
    return NULL;
}

/* The extract function of those that change field by field: a block of the parent, or NULL at the end,
 * changed. */
static sgm_status change_block(sgm_extractor *parent, int64_t count, sgm_block **block, const char *field,
                               sgm__field_change change, void *user)
{
    SGM_TRY(sgm_extractor_extract(parent, count, block));
    return *block ? sgm__preprocess_fields(*block, field, change, user) : SGM_OK;
}

/* --- normalise --- */

typedef struct normalise {
    char field[SGM__FIELD_NAME];
    sgm__range range;
} normalise;

static sgm_status normalise_field(void *user, sgm_field *field, int32_t index)
{
    (void)index;
    const normalise *self = user;
    float *values;
    SGM_TRY(sgm__field_values(field, &values));
    sgm__range_apply(values, sgm_shape_elements(sgm_tensor_shape(field->values)), 1, &self->range);
    return SGM_OK;
}

static sgm_status normalise_extract(void *self, sgm_extractor *parent, int64_t count, sgm_block **block)
{
    return change_block(parent, count, block, ((normalise *)self)->field, normalise_field, self);
}

static void normalise_describe(const void *pointer, sgm__key *key)
{
    const normalise *self = pointer;
    sgm__key_add_text(key, self->field);
    sgm__key_add_bytes(key, &self->range, sizeof self->range);
}

/* The comparison is written so that it also refuses a range with a NaN; a width that overflows is refused,
 * too. */
sgm_extractor *sgm_normalise_with(sgm_extractor *extractor, const sgm_preprocess_options *options)
{
    static const sgm_extractor_type type = {
        .name = "normalise", .extract = normalise_extract, .free = sgm__free};
    sgm_preprocess_options copy;
    if (sgm__options_read(&copy, sizeof copy, options, type.name) != SGM_OK)
        return refuse(extractor, NULL);
    normalise *self = make_self(extractor, sizeof *self, copy.field, type.name);
    if (!self)
        return NULL;
    if (!(copy.input_max > copy.input_min) || !isfinite(copy.input_max - copy.input_min)) {
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "normalise: the input range %g to %g is empty; its two ends have to differ", copy.input_min,
                 copy.input_max);
        return refuse(extractor, self);
    }
    if (sgm__preprocess_range(&copy, type.name, &self->range) != SGM_OK)
        return refuse(extractor, self);
    return sgm__preprocess_create(&(sgm__preprocess_parts){
        .type = &type, .self = self, .parent = extractor, .describe = normalise_describe});
}

/* --- one-hot --- */

/* The classes are either the numbers 0 to classes - 1 or a list of values (`listed`), one for each class. */
typedef struct one_hot {
    char field[SGM__FIELD_NAME];
    int32_t classes;
    bool listed;
    double values[];
} one_hot;

/* The class of a value, -1 if it is of none. Listed values are compared as float32, since that is what the
 * field holds: 0.1 as double would equal no value. */
static int32_t class_of(const one_hot *self, float value)
{
    if (!self->listed)
        return value >= 0 && value < (float)self->classes && value == floorf(value) ? (int32_t)value : -1;
    for (int32_t i = 0; i < self->classes; i++)
        if ((float)self->values[i] == value)
            return i;
    return -1;
}

/* The tensor for the result, all 0: (examples, ..., 1) becomes (examples, ..., classes), and a field without
 * such a last dimension gets one more: (examples, n) becomes (examples, n, classes). */
static sgm_tensor *one_hot_target(const one_hot *self, const sgm_tensor *values)
{
    sgm_shape shape = *sgm_tensor_shape(values);
    if (shape.rank < 2 || shape.dims[shape.rank - 1] != 1)
        shape.rank++;
    if (shape.rank > SGM_MAX_RANK) {
        sgm_fail(SGM_ERROR_SHAPE, "one-hot: the field has %d dimensions already", SGM_MAX_RANK);
        return NULL;
    }
    shape.dims[shape.rank - 1] = self->classes;
    return sgm_tensor_create(SGM_FLOAT32, &shape);
}

/* Puts a 1 at the class of each value. The message of an unknown value names the example of the block: count
 * / dims[0] is the number of values in an example. */
static sgm_status one_hot_field(void *user, sgm_field *field, int32_t index)
{
    (void)index;
    const one_hot *self = user;
    float *values;
    SGM_TRY(sgm__field_values(field, &values));
    sgm_tensor *encoded = one_hot_target(self, field->values);
    if (!encoded)
        return sgm_last_status();
    float *target = sgm_tensor_data(encoded);
    const sgm_shape *shape = sgm_tensor_shape(field->values);
    int64_t count = sgm_shape_elements(shape);
    for (int64_t i = 0; i < count; i++) {
        int32_t class = class_of(self, values[i]);
        if (class < 0) {
            sgm_tensor_free(encoded);
            return sgm_fail(
                SGM_ERROR_FORMAT,
                self->listed
                    ? "one-hot: field \"%s\", example %lld of its block: %g is none of the %d classes"
                    : "one-hot: field \"%s\", example %lld of its block: %g is none of the %d classes, "
                      "which are whole numbers from 0 on",
                field->name, (long long)(i / (count / shape->dims[0])), (double)values[i],
                (int)self->classes);
        }
        target[i * self->classes + class] = 1;
    }
    return replace(field, encoded);
}

static sgm_status one_hot_extract(void *self, sgm_extractor *parent, int64_t count, sgm_block **block)
{
    return change_block(parent, count, block, ((one_hot *)self)->field, one_hot_field, self);
}

static void one_hot_describe(const void *pointer, sgm__key *key)
{
    const one_hot *self = pointer;
    sgm__key_add_text(key, self->field);
    sgm__key_add_number(key, self->classes);
    sgm__key_add_bytes(key, self->values, self->listed ? (size_t)self->classes * sizeof *self->values : 0);
}

/* At most 2^24 classes, as beyond that float32 cannot tell whole numbers apart. `values` are copied. */
sgm_extractor *sgm_one_hot_with(sgm_extractor *extractor, const sgm_preprocess_options *options)
{
    static const sgm_extractor_type type = {.name = "one-hot", .extract = one_hot_extract, .free = sgm__free};
    sgm_preprocess_options copy;
    if (sgm__options_read(&copy, sizeof copy, options, type.name) != SGM_OK)
        return refuse(extractor, NULL);
    if (copy.classes < 1 || copy.classes > 1 << 24) {
        sgm_fail(SGM_ERROR_ARGUMENT, "one-hot: %d classes; there have to be 1 or more", (int)copy.classes);
        return refuse(extractor, NULL);
    }
    size_t listed = copy.values ? (size_t)copy.classes : 0;
    one_hot *self = make_self(extractor, sizeof *self + listed * sizeof(double), copy.field, type.name);
    if (!self)
        return NULL;
    self->classes = copy.classes;
    self->listed = copy.values != NULL;
    if (copy.values)
        memcpy(self->values, copy.values, listed * sizeof(double));
    return sgm__preprocess_create(&(sgm__preprocess_parts){
        .type = &type, .self = self, .parent = extractor, .describe = one_hot_describe});
}

/* --- permute --- */

/* `axes` counts the dimension of examples, which stays first, so it has axis_count + 1 entries. */
typedef struct permute {
    char field[SGM__FIELD_NAME];
    int32_t axis_count;
    int32_t axes[SGM_MAX_RANK];
} permute;

/* Copies the permuted view: everything behind needs contiguous fields. */
static sgm_status permute_values(void *user, sgm_field *field, int32_t index)
{
    (void)index;
    const permute *self = user;
    const sgm_shape *shape = sgm_tensor_shape(field->values);
    if (shape->rank != self->axis_count + 1) {
        char text[128];
        return sgm_fail(SGM_ERROR_SHAPE,
                        "permute: field \"%s\" has shape %s, which %d axes and the examples do not fit",
                        field->name, sgm_shape_text(shape, text, sizeof text), (int)self->axis_count);
    }
    sgm_tensor *seen = sgm_tensor_permute(field->values, self->axes);
    sgm_tensor *copy = sgm_tensor_copy(seen);
    sgm_tensor_free(seen);
    return replace(field, copy);
}

static sgm_status permute_extract(void *self, sgm_extractor *parent, int64_t count, sgm_block **block)
{
    return change_block(parent, count, block, ((permute *)self)->field, permute_values, self);
}

static void permute_describe(const void *pointer, sgm__key *key)
{
    const permute *self = pointer;
    sgm__key_add_text(key, self->field);
    sgm__key_add_bytes(key, self->axes, (size_t)(self->axis_count + 1) * sizeof *self->axes);
}

/* `seen` has a bit for each axis that was named, so that an axis named twice is found. */
sgm_extractor *sgm_permute_field_with(sgm_extractor *extractor, const sgm_preprocess_options *options)
{
    static const sgm_extractor_type type = {.name = "permute", .extract = permute_extract, .free = sgm__free};
    sgm_preprocess_options copy;
    if (sgm__options_read(&copy, sizeof copy, options, type.name) != SGM_OK)
        return refuse(extractor, NULL);
    permute *self = make_self(extractor, sizeof *self, copy.field, type.name);
    if (!self)
        return NULL;
    self->axis_count = copy.axis_count;
    unsigned seen = 0;
    bool good = copy.axis_count >= 1 && copy.axis_count < SGM_MAX_RANK;
    for (int32_t i = 0; good && i < copy.axis_count; i++) {
        int32_t axis = copy.axes[i];
        good = axis >= 0 && axis < copy.axis_count && !(seen & 1u << axis);
        if (good)
            seen |= 1u << axis;
        self->axes[i + 1] = axis + 1;
    }
    if (!good) {
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "permute: .axes have to be 0 to .axis_count - 1, each once, and at most %d",
                 SGM_MAX_RANK - 1);
        return refuse(extractor, self);
    }
    return sgm__preprocess_create(&(sgm__preprocess_parts){
        .type = &type, .self = self, .parent = extractor, .describe = permute_describe});
}

/* --- shuffle --- */

/* All fields of a block are mixed in the same order, so that inputs and targets stay together. Each block has
 * an order of its own, a function of seed and the block's number: a block that is extracted again comes in
 * the same order. */
typedef struct shuffle {
    char field[SGM__FIELD_NAME]; /* unused: a block is mixed as a whole */
    uint64_t seed;
    uint64_t blocks; /* extracted or passed over since the start */
} shuffle;

/* Makes row i of the result from row order[i]. */
static sgm_status shuffle_field(void *user, sgm_field *field, int32_t index)
{
    (void)index;
    const int64_t *order = user;
    float *values;
    SGM_TRY(sgm__field_values(field, &values));
    const sgm_shape *shape = sgm_tensor_shape(field->values);
    sgm_tensor *mixed = sgm_tensor_create(SGM_FLOAT32, shape);
    if (!mixed)
        return sgm_last_status();
    float *target = sgm_tensor_data(mixed);
    size_t elements = (size_t)(sgm_shape_elements(shape) / shape->dims[0]);
    for (int64_t i = 0; i < shape->dims[0]; i++)
        memcpy(target + (size_t)i * elements, values + (size_t)order[i] * elements,
               elements * sizeof *target);
    return replace(field, mixed);
}

/* Draws the order once for a block, for all of its fields. The caller frees the block on failure
 * (extractor.c). */
static sgm_status shuffle_extract(void *pointer, sgm_extractor *parent, int64_t count, sgm_block **block)
{
    shuffle *self = pointer;
    SGM_TRY(sgm_extractor_extract(parent, count, block));
    if (!*block)
        return SGM_OK;
    int64_t *order = sgm__calloc((size_t)(*block)->count, sizeof *order);
    if (!order)
        return SGM_ERROR_MEMORY;
    sgm__random random = sgm__random_make(self->seed, self->blocks++);
    sgm__permutation(&random, order, (*block)->count);
    sgm_status status = sgm__preprocess_fields(*block, "", shuffle_field, order);
    sgm__free(order);
    return status;
}

static sgm_status shuffle_rewind(void *self)
{
    ((shuffle *)self)->blocks = 0;
    return SGM_OK;
}

static void shuffle_passed_over(void *self)
{
    ((shuffle *)self)->blocks++;
}

static void shuffle_describe(const void *pointer, sgm__key *key)
{
    const shuffle *self = pointer;
    sgm__key_add_text(key, self->field);
    sgm__key_add_bytes(key, &self->seed, sizeof self->seed);
}

sgm_extractor *sgm_shuffle_with(sgm_extractor *extractor, const sgm_preprocess_options *options)
{
    static const sgm_extractor_type type = {.name = "shuffle", .extract = shuffle_extract, .free = sgm__free};
    sgm_preprocess_options copy;
    if (sgm__options_read(&copy, sizeof copy, options, type.name) != SGM_OK)
        return refuse(extractor, NULL);
    if (copy.field) {
        sgm_fail(SGM_ERROR_ARGUMENT, "shuffle: mixes all fields of a block alike; leave out .field");
        return refuse(extractor, NULL);
    }
    shuffle *self = make_self(extractor, sizeof *self, NULL, type.name);
    if (!self)
        return NULL;
    self->seed = copy.seed;
    return sgm__preprocess_create(&(sgm__preprocess_parts){.type = &type,
                                                           .self = self,
                                                           .parent = extractor,
                                                           .rewind = shuffle_rewind,
                                                           .passed_over = shuffle_passed_over,
                                                           .describe = shuffle_describe});
}

/* --- a range for chosen indices --- */

/* Normalises some elements of the examples of a field, each by a range of its own; the other elements stay as
 * they are. */
typedef struct per_index {
    char field[SGM__FIELD_NAME];
    size_t count;
    double output_min, output_max;
    double triples[]; /* `count` times index of the element, input minimum, input maximum */
} per_index;

/* Elements are counted in an example as if it were flat. Each range is applied down one column of (examples,
 * elements). */
static sgm_status per_index_field(void *user, sgm_field *field, int32_t position)
{
    (void)position;
    const per_index *self = user;
    float *values;
    SGM_TRY(sgm__field_values(field, &values));
    const sgm_shape *shape = sgm_tensor_shape(field->values);
    size_t elements = (size_t)(sgm_shape_elements(shape) / shape->dims[0]);
    for (size_t i = 0; i < self->count; i++) {
        const double *triple = &self->triples[3 * i];
        if (triple[0] >= (double)elements)
            return sgm_fail(SGM_ERROR_SHAPE,
                            "per index: field \"%s\" has %zu elements an example, no index %.0f", field->name,
                            elements, triple[0]);
        sgm__range range = {triple[1], triple[2], self->output_min, self->output_max};
        sgm__range_apply(values + (size_t)triple[0], shape->dims[0], elements, &range);
    }
    return SGM_OK;
}

static sgm_status per_index_extract(void *self, sgm_extractor *parent, int64_t count, sgm_block **block)
{
    return change_block(parent, count, block, ((per_index *)self)->field, per_index_field, self);
}

static void per_index_describe(const void *pointer, sgm__key *key)
{
    const per_index *self = pointer;
    sgm__key_add_text(key, self->field);
    sgm__key_add_number(key, self->output_min);
    sgm__key_add_number(key, self->output_max);
    sgm__key_add_bytes(key, self->triples, 3 * self->count * sizeof *self->triples);
}

/* An index must be a whole number that a double holds exactly; a NaN fails every comparison here. */
static sgm_status check_triples(const double *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const double *triple = &ranges[3 * i];
        if (!(triple[0] >= 0 && triple[0] < 0x1p53) || triple[0] != floor(triple[0]) ||
            !(triple[2] > triple[1]))
            return sgm_fail(
                SGM_ERROR_ARGUMENT,
                "per index: entry %zu is %g, %g, %g; expected an index, a minimum and a larger maximum", i,
                triple[0], triple[1], triple[2]);
    }
    return SGM_OK;
}

sgm_extractor *sgm_per_index_normalise(sgm_extractor *extractor, const char *field, const double *ranges,
                                       size_t count, double output_min, double output_max)
{
    static const sgm_extractor_type type = {
        .name = "per index", .extract = per_index_extract, .free = sgm__free};
    if (!ranges || count > SIZE_MAX / 64 || check_triples(ranges, count) != SGM_OK) {
        if (!ranges)
            sgm__missing_part("per index: a list of ranges");
        return refuse(extractor, NULL);
    }
    size_t bytes = 3 * count * sizeof *ranges;
    per_index *self = make_self(extractor, sizeof *self + bytes, field, type.name);
    if (!self)
        return NULL;
    self->count = count;
    self->output_min = output_min;
    self->output_max = output_max;
    memcpy(self->triples, ranges, bytes);
    return sgm__preprocess_create(&(sgm__preprocess_parts){
        .type = &type, .self = self, .parent = extractor, .describe = per_index_describe});
}
