/* Turns arrays into fields: regions of each example, also of examples further on; and merges two extractors
 * side by side.
 *
 * sgm_array_extractor reads from readers that give arrays (reader_idx.c, reader_npy.c, reader_image.c and
 * reader.c) in chunks (extractor.c) and appends them as float32 to a builder (../block/block.h). A field has
 * one region, or several that are joined flat. A region may be taken from the example `offset` further on,
 * for targets such as the next character. An example is complete only when the examples up to the largest
 * offset are read; these are held back as a tensor and joined with the next chunk. sgm_merge_extractor, at
 * the end, puts the fields of two extractors into one block. */
#include "data/read/extractor.h"
#include "data/read/reader.h"
#include "tensor/tensor_internal.h"

/* A region of an example, and where it goes. begin, end and offset are the user's; the rest is computed from
 * the shape of the first example (resolve_region, resolve_field). */
typedef struct region {
    int32_t field;
    bool whole; /* the whole example: begin and end were not given */
    sgm_shape begin, end;
    sgm_shape dims; /* shape of the region in one example */
    size_t elements;
    size_t column; /* where the region begins in a flat example of its field */
    int64_t offset;
} region;

/* Members from `resolved` on are known once the first chunk was read. */
typedef struct array_extractor {
    sgm__chunks chunks;
    int32_t region_count, field_count;
    region regions[SGM_MAX_FIELDS];
    char names[SGM_MAX_FIELDS][SGM__FIELD_NAME];
    /* of one example in the field: as the options ask for; rank 0 is replaced when resolved */
    sgm_shape shapes[SGM_MAX_FIELDS];
    size_t elements[SGM_MAX_FIELDS]; /* of one example in the field */
    int64_t farthest;                /* the largest offset */
    bool resolved;
    sgm_shape example; /* of one example as the reader gives it; all must have this shape */
    /* Examples that were read but not given yet, since some of their regions lie in examples that were not
     * read: a copy in the reader's type, at most `farthest` of them. NULL: none. */
    sgm_tensor *held;
    int64_t given; /* number of examples before those held; for messages */
} array_extractor;

/* --- options --- */

/* Adds a region to its field, which is made if it is new; the first region decides the shape of the field. */
static sgm_status add_region(array_extractor *self, const sgm_region *given)
{
    char name[SGM__FIELD_NAME];
    SGM_TRY(sgm__field_name(name, given->field, "sgm_array_extractor"));
    if (given->offset < 0 || given->offset > INT32_MAX)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "sgm_array_extractor: field \"%s\": an offset of %lld; it counts examples forward",
                        name, (long long)given->offset);
    int32_t field = 0;
    while (field < self->field_count && strcmp(self->names[field], name) != 0)
        field++;
    if (field == self->field_count) {
        memcpy(self->names[field], name, sizeof name);
        self->shapes[field] = given->shape;
        self->field_count++;
    }
    self->regions[self->region_count++] = (region){.field = field,
                                                   .whole = given->begin.rank == 0 && given->end.rank == 0,
                                                   .begin = given->begin,
                                                   .end = given->end,
                                                   .offset = given->offset};
    if (given->offset > self->farthest)
        self->farthest = given->offset;
    return SGM_OK;
}

static sgm_status configure(array_extractor *self, const sgm_array_extractor_options *options)
{
    for (size_t i = 0; i < SGM_MAX_FIELDS && options->regions[i].field; i++)
        SGM_TRY(add_region(self, &options->regions[i]));
    if (self->region_count == 0)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "sgm_array_extractor: no regions; say which part of an example is what");
    return SGM_OK;
}

/* --- what the options mean for examples of this shape --- */

/* Checks that a region lies inside examples of this shape, and computes its own shape. */
static sgm_status resolve_region(const array_extractor *self, region *part)
{
    const char *name = self->names[part->field];
    const sgm_shape *example = &self->example;
    char begin[128], end[128], shape[128];
    part->dims = *example;
    bool inside = part->whole || (part->begin.rank == example->rank && part->end.rank == example->rank);
    for (int32_t i = 0; inside && !part->whole && i < example->rank; i++) {
        inside = part->begin.dims[i] >= 0 && part->begin.dims[i] < part->end.dims[i] &&
                 part->end.dims[i] <= example->dims[i];
        part->dims.dims[i] = part->end.dims[i] - part->begin.dims[i];
    }
    if (!inside)
        return sgm_fail(
            SGM_ERROR_SHAPE, "field \"%s\": the region %s to %s lies outside examples of shape %s", name,
            sgm_shape_text(&part->begin, begin, sizeof begin), sgm_shape_text(&part->end, end, sizeof end),
            sgm_shape_text(example, shape, sizeof shape));
    int64_t elements = sgm_shape_elements(&part->dims);
    if (elements < 1)
        return sgm_fail(SGM_ERROR_SHAPE, "field \"%s\": examples of shape %s have no elements", name,
                        sgm_shape_text(example, shape, sizeof shape));
    part->elements = (size_t)elements;
    return SGM_OK;
}

/* Gives the regions of a field their columns, one behind the other in the order of the options. A single
 * region keeps its own shape unless another one with as many elements was asked for; several are flat, and so
 * is one number, which is what input(1) and dense(1) have. */
static sgm_status resolve_field(array_extractor *self, int32_t field)
{
    const region *only = NULL;
    int32_t parts = 0;
    for (int32_t i = 0; i < self->region_count; i++) {
        if (self->regions[i].field == field) {
            self->regions[i].column = self->elements[field];
            self->elements[field] += self->regions[i].elements;
            only = &self->regions[i];
            parts++;
        }
    }
    sgm_shape *shape = &self->shapes[field];
    if (shape->rank == 0)
        *shape =
            parts == 1 && only->dims.rank > 0 ? only->dims : sgm_shape_of((int64_t)self->elements[field]);
    if (sgm_shape_elements(shape) != (int64_t)self->elements[field]) {
        char text[128];
        return sgm_fail(SGM_ERROR_SHAPE,
                        "field \"%s\": its regions have %zu elements, which do not fit shape %s",
                        self->names[field], self->elements[field], sgm_shape_text(shape, text, sizeof text));
    }
    return SGM_OK;
}

/* The first chunk decides the shape of examples; each later one must have the same. */
static sgm_status resolve(array_extractor *self, const sgm_examples *examples)
{
    if (!examples->values)
        return sgm_fail(SGM_ERROR_TYPE, "expected arrays, but the reader gives text; use sgm_csv_extractor");
    sgm_shape example = sgm__example_shape(examples->values);
    if (self->resolved) {
        char now[128], before[128];
        return sgm_shape_equal(&example, &self->example)
                   ? SGM_OK
                   : sgm_fail(SGM_ERROR_SHAPE, "examples of shape %s follow examples of shape %s",
                              sgm_shape_text(&example, now, sizeof now),
                              sgm_shape_text(&self->example, before, sizeof before));
    }
    self->example = example;
    for (int32_t i = 0; i < self->region_count; i++)
        SGM_TRY(resolve_region(self, &self->regions[i]));
    memset(self->elements, 0, sizeof self->elements);
    for (int32_t i = 0; i < self->field_count; i++)
        SGM_TRY(resolve_field(self, i));
    self->resolved = true;
    return SGM_OK;
}

/* --- extraction --- */

/* The region of examples [first, first + count) as a view, which copies nothing: (count, dims of the region).
 */
static sgm_tensor *region_view(const region *part, sgm_tensor *examples, int64_t first, int64_t count)
{
    sgm_tensor *seen = sgm_tensor_slice(examples, 0, first, first + count, 1);
    for (int32_t i = 0; seen && !part->whole && i < part->dims.rank; i++) {
        sgm_tensor *narrower = sgm_tensor_slice(seen, i + 1, part->begin.dims[i], part->end.dims[i], 1);
        sgm_tensor_free(seen);
        seen = narrower;
    }
    return seen;
}

/* Copies `count` regions of `elements` floats each, one behind the other, to places that are `stride` floats
 * apart. */
static void copy_rows(const float *from, float *to, int64_t count, size_t elements, size_t stride)
{
    for (int64_t i = 0; i < count; i++)
        memcpy(to + (size_t)i * stride, from + (size_t)i * elements, elements * sizeof *to);
}

/* The fast ways for a region that is all of its field: contiguous float32 is copied as it is, contiguous
 * uint8 (pictures, characters) is converted straight into the builder. False when it is neither: the caller
 * then casts into a tensor first. */
static bool copy_whole(const sgm_tensor *seen, size_t count, float *target)
{
    if (!sgm_tensor_is_contiguous(seen))
        return false;
    if (sgm_tensor_dtype(seen) == SGM_FLOAT32) {
        memcpy(target, sgm_tensor_const_data(seen), count * sizeof *target);
        return true;
    }
    if (sgm_tensor_dtype(seen) != SGM_UINT8)
        return false;
    const uint8_t *bytes = sgm_tensor_const_data(seen);
    for (size_t i = 0; i < count; i++)
        target[i] = bytes[i];
    return true;
}

/* Writes a region of `count` examples as float32 into the builder's field; `examples` begins with the first
 * of them. A float64 that float32 cannot hold is an error that names its example. */
static sgm_status copy_region(const array_extractor *self, const region *part, sgm_tensor *examples,
                              int64_t count, float *target)
{
    sgm_tensor *seen = region_view(part, examples, part->offset, count);
    if (!seen)
        return sgm_last_status();
    size_t stride = self->elements[part->field];
    sgm_status status = sgm__tensor_fits_float32(seen, self->given + part->offset);
    if (status != SGM_OK)
        status = sgm__fail_within("%s: field \"%s\"", sgm_reader_name(self->chunks.reader),
                                  self->names[part->field]);
    else if (stride != part->elements || !copy_whole(seen, (size_t)count * stride, target)) {
        sgm_tensor *values = sgm_tensor_cast(seen, SGM_FLOAT32);
        if (values)
            copy_rows(sgm_tensor_const_data(values), target + part->column, count, part->elements, stride);
        else
            status = sgm_last_status();
        sgm_tensor_free(values);
    }
    sgm_tensor_free(seen);
    return status;
}

/* Appends the first `count` of `examples` to the builder. The fields are added with the first chunk, when
 * their shapes are known. */
static sgm_status append(const array_extractor *self, sgm_tensor *examples, int64_t count,
                         sgm__builder *builder)
{
    for (int32_t i = builder->field_count; i < self->field_count; i++)
        SGM_TRY(sgm__builder_add_field(builder, self->names[i], &self->shapes[i]));
    SGM_TRY(sgm__builder_reserve(builder, count));
    for (int32_t i = 0; i < self->region_count; i++) {
        const region *part = &self->regions[i];
        SGM_TRY(copy_region(self, part, examples, count, sgm__builder_end(builder, part->field)));
    }
    builder->count += count;
    return SGM_OK;
}

static int64_t length(const sgm_tensor *examples)
{
    return examples ? sgm_tensor_shape(examples)->dims[0] : 0;
}

/* The examples that are held and those that came in as one new tensor; those that came in alone if none are
 * held. */
static sgm_tensor *join(sgm_tensor *held, sgm_tensor *values)
{
    if (!held)
        return sgm_tensor_retain(values);
    sgm_shape shape = *sgm_tensor_shape(values);
    int64_t first = length(held);
    shape.dims[0] += first;
    sgm_tensor *all = sgm_tensor_create(sgm_tensor_dtype(values), &shape);
    sgm_tensor *before = sgm_tensor_slice(all, 0, 0, first, 1);
    sgm_tensor *after = sgm_tensor_slice(all, 0, first, shape.dims[0], 1);
    bool good = before && after && sgm_tensor_assign(before, held) == SGM_OK &&
                sgm_tensor_assign(after, values) == SGM_OK;
    sgm_tensor_free(before);
    sgm_tensor_free(after);
    if (!good) {
        sgm_tensor_free(all);
        return NULL;
    }
    return all;
}

/* Keeps a copy of the examples from `first` on, since the reader's own tensor changes at its next call. */
static sgm_status hold(array_extractor *self, sgm_tensor *examples, int64_t first)
{
    sgm_tensor_free(self->held);
    self->held = NULL;
    if (first == length(examples))
        return SGM_OK;
    sgm_tensor *rest = sgm_tensor_slice(examples, 0, first, length(examples), 1);
    self->held = sgm_tensor_copy(rest);
    sgm_tensor_free(rest);
    return self->held ? SGM_OK : sgm_last_status();
}

/* Reads one chunk and appends the examples that are complete; *done is how many, 0 at the end (*ended) or
 * when more have to be read. `builder` NULL: they are only passed over. Asks for as many examples more as the
 * regions reach further and are not held yet; at the end of the source those that are held remain incomplete
 * and are left out. */
static sgm_status take(array_extractor *self, int64_t count, sgm__builder *builder, int64_t *done,
                       bool *ended)
{
    sgm_examples examples;
    int64_t lacking = self->farthest - length(self->held);
    if (count > INT64_MAX - self->farthest)
        count = INT64_MAX - self->farthest;
    *done = 0;
    SGM_TRY(sgm__chunks_read(&self->chunks, count + lacking, &examples));
    *ended = examples.count == 0;
    if (*ended)
        return SGM_OK;
    if (resolve(self, &examples) != SGM_OK)
        return sgm__fail_within("%s", sgm_reader_name(self->chunks.reader));
    sgm_tensor *all = join(self->held, examples.values);
    if (!all)
        return sgm_last_status();
    int64_t whole = length(all) - self->farthest;
    *done = whole > 0 ? whole : 0;
    sgm_status status = *done > 0 && builder ? append(self, all, *done, builder) : SGM_OK;
    if (status == SGM_OK)
        status = hold(self, all, *done);
    if (status == SGM_OK)
        self->given += *done;
    sgm_tensor_free(all);
    return status;
}

/* Takes chunks until there are `count` examples or the source ends. */
static sgm_status take_all(array_extractor *self, int64_t count, sgm__builder *builder, int64_t *taken)
{
    bool ended = false;
    *taken = 0;
    while (*taken < count && !ended) {
        int64_t done;
        if (take(self, count - *taken, builder, &done, &ended) != SGM_OK)
            return sgm_last_status();
        *taken += done;
    }
    return SGM_OK;
}

static sgm_status array_extract(void *pointer, sgm_extractor *parent, int64_t count, sgm_block **block)
{
    (void)parent;
    int64_t taken;
    sgm__builder builder = {0};
    sgm_status status = take_all(pointer, count, &builder, &taken);
    if (status != SGM_OK || taken == 0) {
        sgm__builder_free(&builder);
        return status;
    }
    *block = sgm__builder_take(&builder);
    return *block ? SGM_OK : sgm_last_status();
}

/* Passes over examples: they are read and, as far as regions reach, held, but not converted. */
static sgm_status array_skip(void *pointer, int64_t count, int64_t *skipped)
{
    return take_all(pointer, count, NULL, skipped);
}

static sgm_status array_rewind(void *pointer)
{
    array_extractor *self = pointer;
    sgm_tensor_free(self->held);
    self->held = NULL;
    self->given = 0;
    return sgm__chunks_rewind(&self->chunks);
}

static void array_free(void *pointer)
{
    array_extractor *self = pointer;
    sgm_tensor_free(self->held);
    sgm_reader_free(self->chunks.reader);
    sgm__free(self);
}

static void add_shape(sgm__key *key, const sgm_shape *shape)
{
    sgm__key_add_bytes(key, shape->dims, (size_t)shape->rank * sizeof *shape->dims);
}

/* Before the first chunk was read and the regions resolved. */
static void array_describe(const void *pointer, sgm__key *key)
{
    const array_extractor *self = pointer;
    sgm__reader_describe(self->chunks.reader, key);
    for (int32_t i = 0; i < self->region_count; i++) {
        const region *r = &self->regions[i];
        sgm__key_add_text(key, self->names[r->field]);
        add_shape(key, &r->begin);
        add_shape(key, &r->end);
        sgm__key_add_number(key, (double)r->offset);
    }
    for (int32_t i = 0; i < self->field_count; i++)
        add_shape(key, &self->shapes[i]);
}

sgm_extractor *sgm_array_extractor_with(sgm_reader *reader, const sgm_array_extractor_options *options)
{
    static const sgm_extractor_type type = {
        .name = "array extractor", .extract = array_extract, .free = array_free};
    if (!reader) {
        sgm__missing_part("sgm_array_extractor: a reader");
        return NULL;
    }
    array_extractor *self = sgm__calloc(1, sizeof *self);
    if (!self) {
        sgm_reader_free(reader);
        return NULL;
    }
    self->chunks.reader = reader;
    sgm_array_extractor_options copy;
    if (sgm__options_read(&copy, sizeof copy, options, type.name) != SGM_OK ||
        configure(self, &copy) != SGM_OK) {
        array_free(self);
        return NULL;
    }
    return sgm__extractor_create(&(sgm__extractor_parts){
        .type = &type, .self = self, .rewind = array_rewind, .skip = array_skip, .describe = array_describe});
}

/* --- side by side --- */

static const char *first_field(const sgm_block *block)
{
    return block->field_count > 0 ? block->fields[0].name : "a part without fields";
}

/* Adds the fields of `other` to `block`. Both must end at the same time and have as many examples. The
 * tensors are retained, as the caller frees `other`. */
static sgm_status merge_into(sgm_block *block, sgm_block *other)
{
    if (!block != !other) {
        const sgm_block *more = block ? block : other;
        return sgm_fail(SGM_ERROR_FORMAT,
                        "merge: '%s' has %lld more examples than what it is read beside: name arrays of one "
                        "length",
                        first_field(more), (long long)more->count);
    }
    if (!block)
        return SGM_OK;
    if (block->count != other->count)
        return sgm_fail(
            SGM_ERROR_FORMAT, "merge: '%s' has %lld examples where '%s' has %lld: name arrays of one length",
            first_field(block), (long long)block->count, first_field(other), (long long)other->count);
    for (int32_t i = 0; i < other->field_count; i++) {
        sgm_field *field = &other->fields[i];
        SGM_TRY(sgm_block_add(block, field->name, sgm_tensor_retain(field->values)));
    }
    return SGM_OK;
}

/* If the second part fails, the first one's block in *block is freed by the caller (extractor.c:extract). */
static sgm_status merge_extract(void *pointer, sgm_extractor *parent, int64_t count, sgm_block **block)
{
    sgm_extractor *second = pointer;
    sgm_block *other = NULL;
    SGM_TRY(sgm_extractor_extract(parent, count, block));
    SGM_TRY(sgm_extractor_extract(second, count, &other));
    sgm_status status = merge_into(*block, other);
    sgm_block_free(other);
    return status;
}

/* `self` is the second extractor, for merge_extract; it is freed as `second`, so the type has no free
 * function. */
sgm_extractor *sgm_merge_extractor(sgm_extractor *first, sgm_extractor *second)
{
    static const sgm_extractor_type type = {.name = "merge", .extract = merge_extract};
    if (!first || !second) {
        sgm__missing_part("sgm_merge_extractor: each of two extractors");
        sgm_extractor_free(first);
        sgm_extractor_free(second);
        return NULL;
    }
    return sgm__extractor_create(&(sgm__extractor_parts){.type = &type,
                                                         .self = second,
                                                         .parent = first,
                                                         .second = second,
                                                         .follows_parent = true,
                                                         .describe = sgm__extractor_describe_nothing});
}
