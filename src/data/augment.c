/* Augmentation: the steps that there are, chains of steps as text, and their application to a minibatch.
 *
 * Each kind of step is a row of the table `kinds`, with its arguments and their bounds; the command lists the
 * same table (sgm_augmentation_at). A step changes either pictures (augment_picture.c), or single numbers,
 * or, for mixup, the examples of a minibatch together. Steps change the field "inputs", in which examples are
 * (height, width), (channels, height, width) or, for noise and mixup, anything; mixup changes all fields.
 * iterator.c parses the chain; the threads of augmentation_ring.c apply it. Random numbers come from a Philox
 * stream for each example and step (random_of), so results do not depend on threads. */
#include "data/augment.h"
#include "text/call_text.h"
#include "text/names.h"

#include <math.h>

#define MAXIMUM_ARGUMENTS 3

/* --- the steps: each draws what it needs, the same number of times whatever comes out --- */

/* The arguments and the random numbers of a step for one example. */
typedef struct drawing {
    const double *arguments; /* of the step, in the order of its kind's table */
    sgm__random random;      /* a stream for this step and this example alone */
} drawing;

/* A whole number from -maximum to maximum, each equally likely. */
static int64_t draw_around(sgm__random *random, double maximum)
{
    return (int64_t)sgm__random_below(random, 2 * (uint64_t)maximum + 1) - (int64_t)maximum;
}

/* The part's height and width are a share of the whole, uniform between the argument and 1; the part lies
 * anywhere inside. */
static void crop(drawing *d, const sgm__picture *picture)
{
    double share = d->arguments[0] + (1 - d->arguments[0]) * sgm__random_uniform(&d->random);
    double top = sgm__random_uniform(&d->random) * (1 - share) * (double)picture->height;
    double left = sgm__random_uniform(&d->random) * (1 - share) * (double)picture->width;
    sgm__picture_crop(picture, share, top, left);
}

static void flip(drawing *d, const sgm__picture *picture)
{
    bool left_right = sgm__random_uniform(&d->random) < d->arguments[0];
    bool top_bottom = sgm__random_uniform(&d->random) < d->arguments[1];
    sgm__picture_mirror(picture, left_right, top_bottom);
}

static void shift(drawing *d, const sgm__picture *picture)
{
    int64_t down = draw_around(&d->random, d->arguments[0]);
    int64_t right = draw_around(&d->random, d->arguments[0]);
    sgm__picture_shift(picture, down, right, (float)d->arguments[1]);
}

static void rotate(drawing *d, const sgm__picture *picture)
{
    double degrees = d->arguments[0] * (2 * sgm__random_uniform(&d->random) - 1);
    sgm__picture_rotate(picture, degrees, (float)d->arguments[1]);
}

/* Cutout (DeVries and Taylor, 2017: Improved regularization of convolutional neural networks with cutout).
 * The square's middle is any pixel with equal probability, so part of the square may lie outside the picture.
 */
static void cutout(drawing *d, const sgm__picture *picture)
{
    int64_t size = (int64_t)d->arguments[0];
    int64_t top = (int64_t)sgm__random_below(&d->random, (uint64_t)picture->height) - size / 2;
    int64_t left = (int64_t)sgm__random_below(&d->random, (uint64_t)picture->width) - size / 2;
    sgm__picture_erase(picture, top, left, size, (float)d->arguments[1]);
}

static void noise(drawing *d, float *numbers, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        numbers[i] += (float)(d->arguments[0] * sgm__random_normal(&d->random));
}

/* --- the table --- */

#define NUMBER(id, low, high, usual, words)                                                                  \
    {                                                                                                        \
        .name = id, .kind = SGM_KIND_NUMBER, .minimum = low, .maximum = high, .default_value = usual,        \
        .doc = words                                                                                         \
    }
#define WHOLE(id, low, high, usual, words)                                                                   \
    {                                                                                                        \
        .name = id, .kind = SGM_KIND_INTEGER, .unit = "pixels", .minimum = low, .maximum = high,             \
        .default_value = usual, .doc = words                                                                 \
    }
#define FILL NUMBER("fill", -1e30, 1e30, 0, "what comes in from outside")

static const sgm_option crop_arguments[] = {
    NUMBER("minimum", 0.01, 1, 0.8, "height and width of the smallest part, as a share of the whole"),
};
static const sgm_option flip_arguments[] = {
    NUMBER("horizontal", 0, 1, 0.5, "how often left and right are exchanged"),
    NUMBER("vertical", 0, 1, 0, "how often top and bottom are"),
};
static const sgm_option shift_arguments[] = {
    WHOLE("maximum", 0, 1e6, 2, "up or down, and to the left or to the right"),
    FILL,
};
static const sgm_option rotate_arguments[] = {
    NUMBER("maximum", 0, 180, 10, "degrees to either side"),
    FILL,
};
static const sgm_option cutout_arguments[] = {
    WHOLE("size", 1, 1e6, 8, "of the square"),
    NUMBER("fill", -1e30, 1e30, 0, "what is put in its place"),
};
static const sgm_option noise_arguments[] = {
    NUMBER("standard_deviation", 0, 1e30, 0.1, "of a normal distribution"),
};
static const sgm_option mixup_arguments[] = {
    NUMBER("alpha", 0.01, 4, 0.2, "shares are Beta(alpha, alpha): near 0 and 1 if it is small"),
};

/* A kind of step. Exactly one of the two functions is set, or none of them for mixup, which needs the whole
 * minibatch. */
typedef struct augmentation_kind {
    sgm_augmentation_type type;
    void (*picture)(drawing *d, const sgm__picture *picture);
    void (*numbers)(drawing *d, float *numbers, int64_t count);
} augmentation_kind;

#define KIND(id, ...)                                                                                        \
    .type = {.name = #id,                                                                                    \
             .arguments = id##_arguments,                                                                    \
             .argument_count = sizeof id##_arguments / sizeof *id##_arguments,                               \
             __VA_ARGS__}

static const augmentation_kind kinds[] = {
    {KIND(crop, .pictures = true, .doc = "a part of the picture, enlarged to its size"), .picture = crop},
    {KIND(flip, .pictures = true, .doc = "a mirror image"), .picture = flip},
    {KIND(shift, .pictures = true, .doc = "moves the picture by whole pixels"), .picture = shift},
    {KIND(rotate, .pictures = true, .doc = "turns the picture around its middle"), .picture = rotate},
    {KIND(cutout, .pictures = true, .doc = "puts a square over a part of the picture"), .picture = cutout},
    {KIND(noise, .doc = "adds a random number to each number"), .numbers = noise},
    {KIND(mixup, .doc = "mixes each example, and its targets, with another one of the minibatch")},
};
#define KIND_COUNT (sizeof kinds / sizeof *kinds)

const sgm_augmentation_type *sgm_augmentation_at(size_t index)
{
    return index < KIND_COUNT ? &kinds[index].type : NULL;
}

/* --- chains as text --- */

/* A step of a chain: its kind with its arguments, all of them, defaults filled in. */
typedef struct augmentation_step {
    const augmentation_kind *kind;
    double arguments[MAXIMUM_ARGUMENTS];
} augmentation_step;

struct sgm__augmentation {
    size_t count;
    augmentation_step steps[SGM_MAX_AUGMENTATIONS];
};

/* NULL and an error that names the nearest kind, or lists them all, if there is none of this name. */
static const augmentation_kind *find_kind(const char *name)
{
    const char *names[KIND_COUNT];
    sgm__text all = {0};
    for (size_t i = 0; i < KIND_COUNT; i++) {
        names[i] = kinds[i].type.name;
        if (strcmp(names[i], name) == 0)
            return &kinds[i];
    }
    const char *real = sgm__name_real(SGM__NAME_AUGMENTATION, name, names, KIND_COUNT, NULL);
    char hint[SGM__NAME_HINT];
    if (real != NULL)
        return find_kind(real);
    for (size_t i = 0; i < KIND_COUNT; i++)
        sgm__text_append(&all, "%s%s", i > 0 ? ", " : "; there are ", names[i]);
    sgm__name_hint(SGM__NAME_AUGMENTATION, name, names, KIND_COUNT, hint);
    sgm_fail(SGM_ERROR_NOT_FOUND, "unknown augmentation '%s'%s", name,
             hint[0] != '\0'    ? hint
             : all.data != NULL ? all.data
                                : "");
    sgm__text_free(&all);
    return NULL;
}

/* Reads "name(arguments)": arguments by position or as name=value, the rest has its default. */
static sgm_status read_step(sgm__phrase *phrase, augmentation_step *step)
{
    char name[SGM__CALL_NAME];
    size_t at = phrase->at;
    SGM_TRY(sgm__call_read_name(phrase, name));
    step->kind = find_kind(name);
    if (step->kind == NULL)
        return sgm__phrase_within(phrase, at);
    const sgm_augmentation_type *type = &step->kind->type;
    sgm__call call = {
        .name = type->name, .rows = type->arguments, .row_count = type->argument_count, .at = at};
    sgm_status status = sgm__call_read(phrase, &call);
    for (size_t i = 0; i < type->argument_count; i++)
        step->arguments[i] = call.values[i].number;
    sgm__call_free(&call);
    return status;
}

/* Reads the steps of a text, with '+' between them. The text "none" is a chain without steps. */
static sgm_status read_steps(const char *text, sgm__augmentation *chain)
{
    sgm__phrase phrase;
    SGM_TRY(sgm__phrase_begin(&phrase, text));
    if (sgm__phrase_take(&phrase, "none") && phrase.kind == SGM__PHRASE_END)
        return SGM_OK;
    SGM_TRY(sgm__phrase_begin(&phrase, text));
    do {
        if (chain->count == SGM_MAX_AUGMENTATIONS)
            return sgm_fail(SGM_ERROR_ARGUMENT, "more than %d steps", SGM_MAX_AUGMENTATIONS);
        SGM_TRY(read_step(&phrase, &chain->steps[chain->count]));
        chain->count++;
    } while (sgm__phrase_take(&phrase, "+"));
    return phrase.kind == SGM__PHRASE_END
               ? SGM_OK
               : sgm__phrase_expected(&phrase, "'+' with another step, or the end", NULL, 0);
}

sgm__augmentation *sgm__augmentation_parse(const char *text)
{
    if (text == NULL) {
        sgm__missing_part("an augmentation's text");
        return NULL;
    }
    sgm__augmentation *chain = sgm__calloc(1, sizeof *chain);
    if (chain == NULL)
        return NULL;
    if (read_steps(text, chain) == SGM_OK)
        return chain;
    sgm__fail_within("augment");
    sgm__free(chain);
    return NULL;
}

void sgm__augmentation_free(sgm__augmentation *chain)
{
    sgm__free(chain);
}

sgm_status sgm_augmentation_check(const char *text)
{
    sgm__augmentation *chain = sgm__augmentation_parse(text);
    sgm_status status = chain != NULL ? SGM_OK : sgm_last_status();
    sgm__augmentation_free(chain);
    return status;
}

/* --- minibatches --- */

/* True for mixup. */
static bool mixes(const augmentation_kind *kind)
{
    return kind->picture == NULL && kind->numbers == NULL;
}

static size_t example_elements(const sgm_field *field)
{
    const sgm_shape *shape = sgm_tensor_shape(field->values);
    return (size_t)(sgm_shape_elements(shape) / shape->dims[0]);
}

/* The class of each pixel of the inputs, (examples, height, width) beside (examples, channels, height,
 * width); NULL: the targets are something else. What moves pixels moves these, too. */
static const sgm_field *masks_of(sgm_block *block, const sgm_field *inputs)
{
    const sgm_field *targets = sgm__block_find(block, "targets");
    const sgm_shape *of = sgm_tensor_shape(inputs->values), *shape;
    if (targets == NULL)
        return NULL;
    shape = sgm_tensor_shape(targets->values);
    return of->rank == 4 && shape->rank == 3 && shape->dims[1] == of->dims[2] && shape->dims[2] == of->dims[3]
               ? targets
               : NULL;
}

/* Mixing needs targets that can be averaged. A target of one number is taken for the number of a class, whose
 * average would mean another class. */
static sgm_status fits_mixing(sgm_block *block)
{
    const sgm_field *inputs = sgm__block_find(block, "inputs");
    if (inputs != NULL && masks_of(block, inputs) != NULL)
        return sgm_fail(SGM_ERROR_SHAPE,
                        "mixup: targets are the class of each pixel, and classes cannot be mixed");
    for (int32_t i = 0; i < block->field_count; i++)
        if (strcmp(block->fields[i].name, "inputs") != 0 && example_elements(&block->fields[i]) == 1)
            return sgm_fail(SGM_ERROR_SHAPE,
                            "mixup: field \"%s\" has one number an example, and numbers of classes cannot be "
                            "mixed; shares can: sgm_one_hot, or 'classes' of the data in a file",
                            block->fields[i].name);
    return SGM_OK;
}

/* Scratch is one example of the inputs for changes of pictures, and one whole field, the largest, for mixup.
 */
sgm_status sgm__augmentation_fits(const sgm__augmentation *chain, sgm_block *block, size_t *scratch)
{
    const sgm_field *inputs = sgm__block_find(block, "inputs");
    if (inputs == NULL)
        return sgm_fail(SGM_ERROR_NOT_FOUND, "augment: the data has no field \"inputs\" to change");
    const sgm_shape *shape = sgm_tensor_shape(inputs->values);
    char text[128];
    *scratch = example_elements(inputs);
    for (size_t i = 0; i < chain->count; i++) {
        const augmentation_kind *kind = chain->steps[i].kind;
        if (kind->type.pictures && shape->rank != 3 && shape->rank != 4)
            return sgm_fail(SGM_ERROR_SHAPE,
                            "augment: %s wants pictures, (height, width) or (channels, height, width), but "
                            "\"inputs\" are %s with the examples in front",
                            kind->type.name, sgm_shape_text(shape, text, sizeof text));
        if (!mixes(kind))
            continue;
        if (fits_mixing(block) != SGM_OK)
            return sgm__fail_within("augment");
        for (int32_t s = 0; s < block->field_count; s++) {
            size_t all = (size_t)sgm_shape_elements(sgm_tensor_shape(block->fields[s].values));
            *scratch = all > *scratch ? all : *scratch;
        }
    }
    return SGM_OK;
}

/* The random numbers of one step for one example of the epoch: Philox's stream number is example *
 * SGM_MAX_AUGMENTATIONS + step, so no two overlap. */
static sgm__random random_of(uint64_t seed, int64_t example, size_t step)
{
    return sgm__random_make(seed, (uint64_t)example * SGM_MAX_AUGMENTATIONS + step);
}

/* Does to the mask what was done to the picture, with the same random numbers. From outside comes class 0. */
static void change_mask(const augmentation_step *step, drawing d, const sgm__picture *picture,
                        const sgm_field *masks, int64_t example)
{
    double arguments[MAXIMUM_ARGUMENTS];
    const sgm_augmentation_type *type = &step->kind->type;
    if (step->kind->picture == cutout) /* hides a part of the picture; what is there stays the same */
        return;
    for (size_t i = 0; i < MAXIMUM_ARGUMENTS; i++)
        arguments[i] =
            i < type->argument_count && strcmp(type->arguments[i].name, "fill") == 0 ? 0 : step->arguments[i];
    d.arguments = arguments;
    sgm__picture mask = *picture;
    mask.channels = 1;
    mask.is_mask = true;
    mask.pixels = (float *)sgm_tensor_data(masks->values) + (size_t)(example * mask.height * mask.width);
    step->kind->picture(&d, &mask);
}

/* Applies a step that looks at one example at a time to the first `count` examples. `place` is the step's
 * place in the chain, `first` the first example's number in the epoch. */
static void change_examples(const augmentation_step *step, size_t place, const sgm_field *inputs,
                            const sgm_field *masks, int64_t count, uint64_t seed, int64_t first,
                            float *scratch)
{
    const sgm_shape *shape = sgm_tensor_shape(inputs->values);
    int32_t rank = shape->rank;
    size_t elements = example_elements(inputs);
    sgm__picture picture = {.scratch = scratch, .channels = 1};
    if (step->kind->type.pictures) {
        picture.channels = rank == 4 ? shape->dims[1] : 1;
        picture.height = shape->dims[rank - 2];
        picture.width = shape->dims[rank - 1];
    }
    for (int64_t i = 0; i < count; i++) {
        drawing d = {.arguments = step->arguments, .random = random_of(seed, first + i, place)};
        picture.pixels = (float *)sgm_tensor_data(inputs->values) + (size_t)i * elements;
        const drawing same = d;
        if (step->kind->picture != NULL)
            step->kind->picture(&d, &picture);
        if (step->kind->picture != NULL && masks != NULL)
            change_mask(step, same, &picture, masks, i);
        if (step->kind->picture == NULL)
            step->kind->numbers(&d, picture.pixels, (int64_t)elements);
    }
}

/* Jöhnk's method (Metrika 8, 1964): of two uniform numbers to the power of 1/alpha, x and y, those with x + y
 * <= 1 are kept, and x / (x + y) has the distribution. Both may underflow to 0 for a small alpha, hence x + y
 * > 0. */
double sgm__random_beta(sgm__random *random, double alpha)
{
    for (;;) {
        double x = pow(sgm__random_uniform(random), 1 / alpha);
        double y = pow(sgm__random_uniform(random), 1 / alpha);
        if (x + y > 0 && x + y <= 1)
            return x / (x + y);
    }
}

/* Mixup (Zhang et al., 2018: mixup: beyond empirical risk minimization, ICLR), with share ~ Beta(alpha,
 * alpha):
 *
 *   x[i] = share[i] * x[i] + (1 - share[i]) * x[(i + distance) mod count]
 *
 * The distance is drawn once for the minibatch, from the stream of its first example, and is at least 1, so
 * that no example is mixed with itself. The share is drawn anew from the same stream for each field, so
 * inputs and targets of an example are mixed alike. Partners are read from a copy, as they were before
 * mixing. */
static void mix_examples(const augmentation_step *step, size_t place, const sgm_block *block, int64_t count,
                         uint64_t seed, int64_t first, float *scratch)
{
    sgm__random random = random_of(seed, first, place);
    if (count < 2)
        return;
    int64_t distance = 1 + (int64_t)sgm__random_below(&random, (uint64_t)count - 1);
    for (int32_t s = 0; s < block->field_count; s++) {
        float *values = sgm_tensor_data(block->fields[s].values);
        size_t elements = example_elements(&block->fields[s]);
        memcpy(scratch, values, (size_t)count * elements * sizeof *values);
        for (int64_t i = 0; i < count; i++, values += elements) {
            random = random_of(seed, first + i, place);
            sgm__random_uint32(&random); /* past what the distance was drawn from */
            float share = (float)sgm__random_beta(&random, step->arguments[0]);
            const float *other = scratch + (size_t)((i + distance) % count) * elements;
            for (size_t k = 0; k < elements; k++)
                values[k] = share * values[k] + (1 - share) * other[k];
        }
    }
}

void sgm__augmentation_apply(const sgm__augmentation *chain, sgm_block *block, int64_t count, uint64_t seed,
                             int64_t first, float *scratch)
{
    const sgm_field *inputs = sgm__block_find(block, "inputs");
    const sgm_field *masks = inputs != NULL ? masks_of(block, inputs) : NULL;
    for (size_t i = 0; i < chain->count && inputs != NULL; i++) {
        const augmentation_step *step = &chain->steps[i];
        if (mixes(step->kind))
            mix_examples(step, i, block, count, seed, first, scratch);
        else
            change_examples(step, i, inputs, masks, count, seed, first, scratch);
    }
}
