/* Initialisers: the first values of parameters.
 *
 * Values are drawn on the host, by a generator whose seed is the trainer's seed and the hash of the
 * parameter's name. So every handler starts from the same numbers, and a parameter's numbers do not depend on
 * which other parameters there are. Elements are drawn in the order of the array, one after the other;
 * orthogonal makes the whole matrix at once. Which initialiser a parameter gets is decided in
 * src/train/trainer_program.c. */
#include "optim/modifier.h"
#include "text/call_text.h"
#include "text/names.h"
#include <sigma/training.h>

#include <math.h>
#include <sigma/base.h>
#include <sigma/graph.h>

#define TOLD (1 << 22) /* elements; drawing more is a task, which tells its progress after so many */

/* What the drawing of one element may use. fan_in and fan_out are the numbers of inputs and outputs of a unit
 * of the layer; `indices` are the element's place in `shape`. */
typedef struct draw {
    const sgm_initialiser_options *options;
    double fan_in, fan_out;
    sgm__random *random;
    const int64_t *indices;
    const sgm_shape *shape;
} draw;

static double draw_gaussian(const draw *call)
{
    return call->options->mean + call->options->standard_deviation * sgm__random_normal(call->random);
}

static double draw_uniform(const draw *call)
{
    double minimum = call->options->minimum, maximum = call->options->maximum;
    return minimum + (maximum - minimum) * sgm__random_uniform(call->random);
}

/* Normal, drawn again while the value is beyond two deviations: the deviation of the values that are kept is
 * 0.88 of the given one. */
static double draw_truncated(const draw *call)
{
    double value = sgm__random_normal(call->random);
    while (fabs(value) > 2)
        value = sgm__random_normal(call->random);
    return call->options->mean + call->options->standard_deviation * value;
}

static double draw_constant(const draw *call)
{
    return call->options->value;
}

/* Uniform in +-gain sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010). */
static double draw_glorot(const draw *call)
{
    double limit = call->options->gain * sqrt(6 / (call->fan_in + call->fan_out));
    return limit * (2 * sgm__random_uniform(call->random) - 1);
}

/* Normal with deviation gain sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio, 2010). */
static double draw_glorot_normal(const draw *call)
{
    return call->options->gain * sqrt(2 / (call->fan_in + call->fan_out)) * sgm__random_normal(call->random);
}

/* Normal with deviation gain sqrt(2 / fan_in) (He et al., 2015). */
static double draw_he(const draw *call)
{
    return call->options->gain * sqrt(2 / call->fan_in) * sgm__random_normal(call->random);
}

/* Calls the program's function with the element's indices and a number that is uniform in [0, 1). */
static double draw_custom(const draw *call)
{
    double random = sgm__random_uniform(call->random);
    return call->options->function(call->options->user, call->indices, call->shape, random);
}

/* What texts may set, in the order without names; each type takes some neighbouring rows. Without a value the
 * option stays 0, for which sgm_initialiser_create puts the type's default. */
#define ROW(id, words)                                                                                       \
    {                                                                                                        \
#id, SGM_KIND_NUMBER, .default_value = NAN, .doc = words                                             \
    }
static const sgm_option argument_rows[] = {
    ROW(standard_deviation, "of a normal distribution"),
    ROW(mean, "of a normal distribution"),
    ROW(minimum, "of a uniform distribution"),
    ROW(maximum, "of a uniform distribution"),
    ROW(value, "what each element is"),
    ROW(gain, "factor of the standard deviation"),
};
static const size_t members[] = {
    offsetof(sgm_initialiser_options, standard_deviation),
    offsetof(sgm_initialiser_options, mean),
    offsetof(sgm_initialiser_options, minimum),
    offsetof(sgm_initialiser_options, maximum),
    offsetof(sgm_initialiser_options, value),
    offsetof(sgm_initialiser_options, gain),
};

/* A row for each name. `xavier` is another name of glorot. */
typedef struct initialiser_type {
    const char *name;
    double (*draw)(const draw *call); /* NULL: orthogonal, which is not made element by element */
    sgm_initialiser_options defaults;
    size_t first, count; /* the rows that its text may have */
    const char *doc, *formula, *example;
} initialiser_type;

static const initialiser_type types[] = {
    {"gaussian",
     draw_gaussian,
     {.standard_deviation = 0.05},
     0,
     2,
     "normal numbers",
     "mean + standard_deviation N(0, 1)",
     "gaussian(0.02)"},
    {"uniform",
     draw_uniform,
     {.minimum = -0.05, .maximum = 0.05},
     2,
     2,
     "numbers that are equally likely between two bounds",
     "U(minimum, maximum)",
     "uniform(-0.1, 0.1)"},
    {"truncated",
     draw_truncated,
     {.standard_deviation = 1},
     0,
     2,
     "normal numbers, drawn again while they are beyond two deviations",
     "mean + standard_deviation N(0, 1), |N| at most 2",
     "truncated(0.02)"},
    {"constant", draw_constant, {.value = 0}, 4, 1, "the same number everywhere", "value", "constant(0.1)"},
    {"glorot",
     draw_glorot,
     {.gain = 1},
     5,
     1,
     "uniform, by how many inputs and outputs there are (Glorot and Bengio, 2010)",
     "gain U(-l, l), l = sqrt(6 / (fan_in + fan_out))",
     "glorot(1.4)"},
    {"xavier",
     draw_glorot,
     {.gain = 1},
     5,
     1,
     "another name of glorot",
     "gain U(-l, l), l = sqrt(6 / (fan_in + fan_out))",
     "xavier"},
    {"glorot_normal",
     draw_glorot_normal,
     {.gain = 1},
     5,
     1,
     "normal, by how many inputs and outputs there are (Glorot and Bengio, 2010)",
     "gain sqrt(2 / (fan_in + fan_out)) N(0, 1)",
     "glorot_normal"},
    {"he",
     draw_he,
     {.gain = 1},
     5,
     1,
     "normal, by how many inputs there are: for relu (He et al., 2015)",
     "gain sqrt(2 / fan_in) N(0, 1)",
     "he"},
    {"orthogonal",
     NULL,
     {.gain = 1},
     5,
     1,
     "a matrix whose rows or columns are orthonormal (Saxe et al., 2013)",
     "gain Q, Q Q' = 1",
     "orthogonal(1.4)"},
    {"custom",
     draw_custom,
     {.function = NULL},
     0,
     0,
     NULL,
     NULL,
     NULL} /* of programs: last, as no text can say it */,
};
#define TYPE_COUNT (sizeof types / sizeof *types)

bool sgm__initialiser_describe(size_t index, sgm__described *described)
{
    if (index >= TYPE_COUNT || types[index].doc == NULL)
        return false;
    const initialiser_type *type = &types[index];
    *described = (sgm__described){.name = type->name,
                                  .doc = type->doc,
                                  .formula = type->formula,
                                  .example = type->example,
                                  .arguments = argument_rows + type->first,
                                  .argument_count = type->count};
    return true;
}

struct sgm_initialiser {
    const initialiser_type *type;
    sgm_initialiser_options options;
};

static double or_default(double value, double default_value)
{
    return value != 0 ? value : default_value;
}

/* The row with this name; NULL with an error, which names the nearest one. */
static const initialiser_type *find_type(const char *name)
{
    const char *names[TYPE_COUNT];
    if (name == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "an initialiser expects a type, such as 'he'; got NULL");
        return NULL;
    }
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        names[i] = types[i].name;
        if (strcmp(names[i], name) == 0)
            return &types[i];
    }
    const char *real = sgm__name_real(SGM__NAME_INITIALISER, name, names, TYPE_COUNT, NULL);
    char hint[SGM__NAME_HINT];
    if (real != NULL)
        return find_type(real);
    sgm__name_hint(SGM__NAME_INITIALISER, name, names, TYPE_COUNT, hint);
    sgm_fail(SGM_ERROR_NOT_FOUND, "unknown initialiser '%s'%s", name,
             hint[0] != '\0' ? hint
                             : "; there are gaussian, uniform, truncated, constant, "
                               "glorot, glorot_normal, he, orthogonal, custom");
    return NULL;
}

/* Checks numbers as they are after defaults have been filled in. On failure returns false with an error. */
static bool check_options(const initialiser_type *type, const sgm_initialiser_options *options)
{
    const sgm_initialiser_options *o = options;
    bool finite = isfinite(o->mean) && isfinite(o->standard_deviation) && isfinite(o->minimum) &&
                  isfinite(o->maximum) && isfinite(o->value) && isfinite(o->gain);
    if (!finite || o->standard_deviation < 0 || o->maximum < o->minimum) {
        sgm_fail(
            SGM_ERROR_ARGUMENT,
            "initialiser %s: numbers must be finite, the standard deviation not negative, maximum not below "
            "minimum",
            type->name);
        return false;
    }
    if (type->draw == draw_custom && options->function == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "initialiser custom wants a function");
        return false;
    }
    return true;
}

/* In the options 0 means the type's default; for the bounds of a uniform distribution only if both are 0.
 * `mean` and `value` have 0 as default anyway. */
sgm_initialiser *sgm_initialiser_create(const char *type, const sgm_initialiser_options *options)
{
    const initialiser_type *found = find_type(type);
    sgm_initialiser_options given;
    if (found == NULL || sgm__options_read(&given, sizeof given, options, type) != SGM_OK)
        return NULL;
    sgm_initialiser *initialiser = sgm__calloc(1, sizeof(sgm_initialiser));
    if (initialiser == NULL)
        return NULL;
    initialiser->type = found;
    initialiser->options = given;
    sgm_initialiser_options *own = &initialiser->options;
    own->standard_deviation = or_default(own->standard_deviation, found->defaults.standard_deviation);
    own->gain = or_default(own->gain, found->defaults.gain);
    if (own->minimum == 0 && own->maximum == 0) {
        own->minimum = found->defaults.minimum;
        own->maximum = found->defaults.maximum;
    }
    if (check_options(found, own))
        return initialiser;
    sgm__free(initialiser);
    return NULL;
}

/* Reads the arguments of a text into the members of the struct; arguments that are not given stay 0. */
static sgm_status read_options(sgm__phrase *phrase, const initialiser_type *type,
                               sgm_initialiser_options *options)
{
    sgm__call call = {.name = type->name, .rows = argument_rows + type->first, .row_count = type->count};
    sgm_status status = sgm__call_finish(phrase, &call);
    for (size_t i = 0; i < type->count; i++)
        if (call.values[i].known)
            memcpy((char *)options + members[type->first + i], &call.values[i].number, sizeof(double));
    sgm__call_free(&call);
    return status;
}

sgm_initialiser *sgm_initialiser_parse(const char *text)
{
    sgm_initialiser_options options = {.struct_size = sizeof options};
    sgm__phrase phrase;
    char name[SGM__CALL_NAME];
    if (text == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "an initialiser expects a text, such as \"he\"; got NULL");
        return NULL;
    }
    if (sgm__call_begin(&phrase, text, name) != SGM_OK)
        return NULL;
    const initialiser_type *type = find_type(name);
    if (type == NULL || read_options(&phrase, type, &options) != SGM_OK)
        return NULL;
    return sgm_initialiser_create(name, &options);
}

sgm_initialiser *sgm__initialiser_copy(const sgm_initialiser *initialiser)
{
    sgm_initialiser *copy = sgm__calloc(1, sizeof *copy);
    if (copy != NULL)
        *copy = *initialiser;
    return copy;
}

void sgm_initialiser_free(sgm_initialiser *initialiser)
{
    sgm__free(initialiser);
}

/* --- filling --- */

/* Makes `count` rows of `length` >= count numbers orthonormal, one after the other, by modified Gram-Schmidt.
 * Each row is made orthogonal to the rows before it twice: after one pass rounding errors leave it orthogonal
 * to few digits only, where the rows are nearly dependent. */
static void orthonormalise(double *rows, int64_t count, int64_t length)
{
    for (int64_t i = 0; i < count; i++) {
        double *row = rows + i * length, norm = 0;
        for (int pass = 0; pass < 2; pass++)
            for (int64_t k = 0; k < i; k++) {
                const double *other = rows + k * length;
                double product = 0;
                for (int64_t j = 0; j < length; j++)
                    product += row[j] * other[j];
                for (int64_t j = 0; j < length; j++)
                    row[j] -= product * other[j];
            }
        for (int64_t j = 0; j < length; j++)
            norm += row[j] * row[j];
        for (int64_t j = 0; j < length; j++)
            row[j] /= sqrt(norm);
    }
}

/* Fills a matrix with orthonormal rows or columns, times the gain (Saxe et al., 2013): rows are all
 * dimensions but the last, columns the last; the shorter side is orthonormal. Works on the shorter side as
 * rows, and transposes if these are columns. */
static sgm_status fill_orthogonal(const sgm_initialiser *initialiser, double *values, const sgm_shape *shape,
                                  sgm__random *random)
{
    int64_t elements = sgm_shape_elements(shape),
            columns = shape->rank > 0 ? shape->dims[shape->rank - 1] : 1;
    int64_t rows = columns > 0 ? elements / columns : 0;
    int64_t count = rows < columns ? rows : columns, length = rows < columns ? columns : rows;
    double *matrix = sgm__calloc((size_t)elements + 1, sizeof(double));
    if (matrix == NULL)
        return SGM_ERROR_MEMORY;
    for (int64_t i = 0; i < elements; i++)
        matrix[i] = sgm__random_normal(random);
    orthonormalise(matrix, count, length);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++)
            values[i * columns + k] = initialiser->options.gain *
                                      (rows < columns ? matrix[i * length + k] : matrix[k * length + i]);
    sgm__free(matrix);
    return SGM_OK;
}

/* Draws element by element into the tensor. Of a large tensor this is a task, which shows its progress and
 * can be cancelled. */
static sgm_status fill_elements(const sgm_initialiser *initialiser, sgm_tensor *tensor, draw call,
                                const char *name)
{
    const sgm_shape *shape = sgm_tensor_shape(tensor);
    sgm_array array = {.dtype = sgm_tensor_dtype(tensor), .data = sgm_tensor_data(tensor)};
    int64_t elements = sgm_shape_elements(shape), indices[SGM_MAX_RANK] = {0};
    sgm_task task = elements > TOLD ? sgm_task_begin(SGM_TASK_PREPARE, name, "parameters") : 0;
    bool goes_on = true;
    call.indices = indices;
    call.shape = shape;
    sgm_task_allow_cancel(task);
    for (int64_t i = 0; i < elements && goes_on; i++) {
        sgm_array_store(&array, i, initialiser->type->draw(&call));
        for (int32_t axis = shape->rank; axis-- > 0 && ++indices[axis] == shape->dims[axis];)
            indices[axis] = 0;
        if (task != 0 && i % TOLD == 0)
            goes_on = sgm_task_set_progress(task, (uint64_t)i, (uint64_t)elements);
    }
    sgm_status status =
        goes_on ? SGM_OK
                : sgm_fail(SGM_ERROR_INTERRUPTED, "drawing the first values of '%s' was cancelled", name);
    sgm_task_end(task, status);
    return status;
}

/* Makes all values together, in double, then converts them. */
static sgm_status fill_whole(const sgm_initialiser *initialiser, sgm_tensor *tensor, sgm__random *random)
{
    const sgm_shape *shape = sgm_tensor_shape(tensor);
    size_t elements = (size_t)sgm_shape_elements(shape);
    double *values = sgm__calloc(elements + 1, sizeof(double));
    sgm_status status =
        values != NULL ? fill_orthogonal(initialiser, values, shape, random) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = sgm_tensor_write(tensor, values, elements);
    sgm__free(values);
    return status;
}

/* The generator's seed is (seed, hash of the name): a parameter's numbers do not depend on the order in which
 * parameters are filled. */
sgm_status sgm_initialiser_fill(const sgm_initialiser *initialiser, sgm_tensor *tensor, int64_t fan_in,
                                int64_t fan_out, uint64_t seed, const char *name)
{
    if (initialiser == NULL || tensor == NULL || name == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "filling expects an initialiser, a tensor and a name; one is NULL");
    sgm__random random = sgm__random_make(seed, sgm__hash_text(name));
    draw call = {.options = &initialiser->options,
                 .fan_in = (double)(fan_in > 0 ? fan_in : 1),
                 .fan_out = (double)(fan_out > 0 ? fan_out : 1),
                 .random = &random};
    if (!sgm_tensor_is_contiguous(tensor))
        return sgm_fail(SGM_ERROR_ARGUMENT, "filling expects a contiguous tensor");
    return initialiser->type->draw == NULL ? fill_whole(initialiser, tensor, &random)
                                           : fill_elements(initialiser, tensor, call, name);
}
