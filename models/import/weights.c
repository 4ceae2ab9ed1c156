/* Pairs the parameters of a network with the tensors of the files, by the table of the architecture, and puts
 * their values together. */
#include "import/pretrained.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- names --- */

/* Whether a name is the pattern with a number in the place of each '#' and each '@', and anything in that of
 * a
 * '*' at its end. */
static bool matches(const char *pattern, const char *name)
{
    for (; *pattern != '\0'; pattern++) {
        if (*pattern == '*')
            return true;
        if (*pattern != '#' && *pattern != '@') {
            if (*name++ != *pattern)
                return false;
            continue;
        }
        if (!isdigit((unsigned char)*name))
            return false;
        while (isdigit((unsigned char)*name))
            name++;
    }
    return *name == '\0';
}

/* The next number in a name, whose digits *at is brought behind; digits of the pattern itself are passed over
 * with it: "stage@_layer@" of "stage2_layer11" has the numbers 2 and 11. */
static size_t next_number(const char **pattern, const char **at)
{
    for (; **pattern != '@' && **pattern != '\0'; ++*pattern, ++*at)
        if (**pattern == '#')
            while (isdigit((unsigned char)(*at)[1]))
                ++*at;
    if (**pattern == '@')
        ++*pattern;
    char *end = NULL;
    size_t number = strtoul(*at, &end, 10);
    *at = end;
    return number;
}

/* The name of a tensor of the parameter: '#' is its block, each '@' the number that its own name has there.
 * The caller frees it; NULL and an error: out of memory. */
static char *name_of_tensor(const sgm__made *made, const sgm__weight *weight, size_t part)
{
    char *name = NULL;
    size_t size;
    const char *own = weight->own, *at = made->name;
    FILE *text = open_memstream(&name, &size);
    for (const char *c = weight->theirs[part]; text != NULL && *c != '\0'; c++)
        if (*c == '#')
            fprintf(text, "%zu", made->block);
        else if (*c == '@')
            fprintf(text, "%zu", next_number(&own, &at));
        else
            fputc(*c, text);
    if (text == NULL || fclose(text) != 0) {
        sgm_fail(SGM_ERROR_MEMORY, "no memory for the name of a tensor");
        free(name);
        return NULL;
    }
    return name;
}

char *sgm__weights_tensor(const sgm_pretrained *p, const sgm__made *made, size_t part)
{
    char *name = name_of_tensor(made, made->weight, part);
    size_t prefix = strlen(p->architecture->prefix);
    if (name != NULL && strcmp(p->description.task, "embed") == 0 &&
        strncmp(name, p->architecture->prefix, prefix) == 0)
        memmove(name, name + prefix, strlen(name + prefix) + 1);
    return name;
}

char *sgm__weights_module(const sgm_pretrained *p, const sgm__made *made, size_t part)
{
    char *name = sgm__weights_tensor(p, made, part), *end = name != NULL ? strstr(name, ".weight") : NULL;
    if (end != NULL)
        *end = '\0';
    return name;
}

char *sgm__adapter_stem(const sgm_pretrained *p, const sgm__made *made, size_t part)
{
    if (sgm__part_count(made->weight) == 1)
        return sgm__new_text("%s", strchr(made->name, '.') + 1);
    char *module = sgm__weights_module(p, made, part);
    const char *dot = module != NULL ? strrchr(module, '.') : NULL;
    if (dot != NULL)
        memmove(module, dot + 1, strlen(dot));
    return module;
}

/* The tensor of this name, or of the name without the architecture's prefix; *wanted is the name, which the
 * caller frees. NULL: there is none. */
static sgm__stored *find_tensor(const sgm_pretrained *p, const sgm__made *made, const sgm__weight *weight,
                                size_t part, char **wanted)
{
    const char *prefix = p->architecture->prefix;
    *wanted = name_of_tensor(made, weight, part);
    if (*wanted == NULL)
        return NULL;
    sgm__stored *stored = sgm__stored_find(p, *wanted);
    size_t length = strlen(prefix);
    if (stored == NULL && strncmp(*wanted, prefix, length) == 0)
        stored = sgm__stored_find(p, *wanted + length);
    return stored;
}

/* --- pairing --- */

size_t sgm__part_count(const sgm__weight *weight)
{
    size_t count = 0;
    while (count < SGM__MOST_PARTS && weight->theirs[count] != NULL)
        count++;
    return count;
}

/* Three parts are queries, keys and values; others share the columns equally. */
int64_t sgm__part_columns(const sgm_pretrained *p, const sgm__made *made, size_t part, int64_t *start)
{
    const sgm__description *d = &p->description;
    size_t count = sgm__part_count(made->weight);
    int64_t columns = made->shape.rank > 0 ? made->shape.dims[made->shape.rank - 1] : 1;
    if (count == 3) {
        *start = part == 0 ? 0 : d->queries + (int64_t)(part - 1) * d->keys;
        return part == 0 ? d->queries : d->keys;
    }
    *start = (int64_t)part * (columns / (int64_t)count);
    return columns / (int64_t)count;
}

/* Whether a tensor has the shape, or more dimensions of 1 in front: (1, 1, 16) is (1, 16). */
static bool is_same_shape(const sgm_shape *shape, const sgm_shape *stored)
{
    int32_t more = stored->rank - shape->rank;
    for (int32_t i = 0; i < more; i++)
        if (stored->dims[i] != 1)
            return false;
    for (int32_t i = 0; i < shape->rank && more >= 0; i++)
        if (stored->dims[more + i] != shape->dims[i])
            return false;
    return more >= 0;
}

/* The tensor must be of floats, in the shape that its part of the parameter has. */
static sgm_status check_part(const sgm_pretrained *p, const sgm__made *made, size_t part)
{
    const sgm__stored *stored = made->parts[part];
    int64_t start;
    sgm_shape shape = made->shape;
    if (shape.rank > 0)
        shape.dims[shape.rank - 1] = sgm__part_columns(p, made, part, &start);
    if (made->weight->transposed && shape.rank == 2)
        shape = sgm_shape_of(shape.dims[1], shape.dims[0]);
    char name[128], there[128], wanted[128];
    if (!sgm_dtype_is_float(stored->dtype))
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "'%s': the tensor '%.100s' has elements of %s; floats are wanted", p->path,
                        stored->name, sgm_dtype_name(stored->dtype));
    if (!is_same_shape(&shape, &stored->shape))
        return sgm_fail(SGM_ERROR_SHAPE,
                        "'%s': the tensor '%s' is %s, but by %s it is %s; one of both is of another model",
                        p->path, sgm__tensor_shown(p, stored->name, name),
                        sgm_shape_text(&stored->shape, there, sizeof there), p->says,
                        sgm_shape_text(&shape, wanted, sizeof wanted));
    return SGM_OK;
}

static sgm_status find_parts(sgm_pretrained *p, sgm__made *made)
{
    for (size_t part = 0; part < sgm__part_count(made->weight); part++) {
        char *wanted, name[128];
        made->parts[part] = find_tensor(p, made, made->weight, part, &wanted);
        sgm_status status = SGM_OK;
        if (made->parts[part] == NULL)
            status = wanted == NULL
                         ? SGM_ERROR_MEMORY
                         : sgm_fail(SGM_ERROR_NOT_FOUND, "'%s' has no tensor '%s', which is needed by %s; %s",
                                    p->path, sgm__tensor_shown(p, wanted, name), p->says,
                                    made->weight->head
                                        ? "say how many classes to begin with a new last layer (--classes)"
                                        : "one of both is of another model");
        free(wanted);
        SGM__TRY(status);
        SGM__TRY(check_part(p, made, part));
        made->parts[part]->used = true;
    }
    return SGM_OK;
}

/* The row of a parameter from `first` on; NULL: none. */
static const sgm__weight *find_weight(const sgm__architecture *a, size_t first, const char *parameter)
{
    for (size_t i = first; i < a->weight_count; i++)
        if (!a->weights[i].copy && matches(a->weights[i].own, parameter))
            return &a->weights[i];
    return NULL;
}

/* Where the table has several rows for a parameter, the first one whose tensor is in the files; else the
 * first. */
static const sgm__weight *choose_weight(const sgm_pretrained *p, const sgm__weight *first,
                                        const sgm__made *made)
{
    const sgm__architecture *a = p->architecture;
    for (const sgm__weight *weight = first; weight != NULL;
         weight = find_weight(a, (size_t)(weight - a->weights) + 1, made->name)) {
        char *wanted;
        bool there = find_tensor(p, made, weight, 0, &wanted) != NULL;
        free(wanted);
        if (there)
            return weight;
    }
    return first;
}

/* Blocks are counted for each row by itself: its k-th parameter is the one of block k. */
static sgm_status pair_parameters(sgm_pretrained *p, const sgm_recording *recording, size_t *blocks)
{
    const sgm__architecture *a = p->architecture;
    for (size_t i = 0; i < recording->parameter_count; i++) {
        const sgm_parameter *parameter = &recording->parameters[i];
        sgm__made *made = &p->made[i];
        made->name = strdup(parameter->name);
        made->shape = parameter->type.shape;
        p->made_count++;
        if (made->name == NULL)
            return sgm_fail(SGM_ERROR_MEMORY, "no memory for the name of a parameter");
        made->weight = find_weight(a, 0, made->name);
        if (made->weight == NULL)
            return sgm_fail(SGM_ERROR_STATE, "the table of '%s' has no row for '%s'", a->type,
                            parameter->name);
        made->block = blocks[made->weight - a->weights]++;
        made->weight = choose_weight(p, made->weight, made);
        SGM__TRY(find_parts(p, made));
        *(parameter->trainable ? &p->info.parameters : &p->info.untrained) +=
            sgm_shape_elements(&made->shape);
    }
    return SGM_OK;
}

/* The tensor that has the numbers of a parameter again, by one row of the table; NULL: none. */
static sgm__stored *find_copy(const sgm_pretrained *p, const sgm__made *made, const sgm__weight *weight)
{
    char *name = NULL;
    sgm__stored *stored = weight->copy && made->name != NULL && matches(weight->own, made->name)
                              ? find_tensor(p, made, weight, 0, &name)
                              : NULL;
    free(name);
    return stored;
}

bool sgm__weights_is_copy(const sgm_pretrained *p, const sgm__made *made, const sgm__stored *stored)
{
    const sgm__architecture *a = p->architecture;
    for (size_t i = 0; i < a->weight_count; i++)
        if (find_copy(p, made, &a->weights[i]) == stored)
            return true;
    return false;
}

/* They must have the shape of what they repeat. */
static sgm_status mark_copies(sgm_pretrained *p)
{
    const sgm__architecture *a = p->architecture;
    for (size_t i = 0; i < a->weight_count; i++)
        for (size_t k = 0; k < p->made_count; k++) {
            sgm__stored *stored = find_copy(p, &p->made[k], &a->weights[i]);
            if (stored == NULL || stored->used)
                continue;
            if (!sgm_shape_equal(&stored->shape, &p->made[k].shape) || !sgm_dtype_is_float(stored->dtype))
                return sgm_fail(
                    SGM_ERROR_SHAPE,
                    "'%s': the tensor '%.100s' should be '%.100s' again, by config.json, but has another "
                    "shape or type",
                    p->path, stored->name, p->made[k].parts[0]->name);
            stored->used = stored->copy = true;
        }
    return SGM_OK;
}

/* Whether no network needs a tensor, or only one for another task. */
static bool may_be_left(const sgm__architecture *a, const char *name)
{
    size_t length = strlen(a->prefix);
    for (const char *const *unused = a->unused; *unused != NULL; unused++)
        if (matches(*unused, name) ||
            (strncmp(*unused, a->prefix, length) == 0 && matches(*unused + length, name)))
            return true;
    return false;
}

/* A tensor that is not known may change what the model computes. */
static sgm_status check_others(const sgm_pretrained *p)
{
    char name[128];
    for (size_t i = 0; i < p->stored_count; i++)
        if (!p->stored[i].used && !may_be_left(p->architecture, p->stored[i].name))
            return sgm_fail(SGM_ERROR_UNSUPPORTED,
                            "'%s': the tensor '%s' is not one that Sigma knows of a model '%s' with these "
                            "settings of %s; it may change what the model computes",
                            p->path, sgm__tensor_shown(p, p->stored[i].name, name), p->architecture->type,
                            p->says);
    return SGM_OK;
}

sgm_status sgm__weights_pair(sgm_pretrained *p)
{
    const sgm_recording_options options = {.struct_size = sizeof options, .batch = 1, .dtype = SGM_FLOAT32};
    sgm_recording recording = {0};
    sgm_graph *graph = sgm_graph_create();
    sgm_network *network = sgm_network_parse(p->network);
    size_t *blocks = calloc(p->architecture->weight_count, sizeof *blocks);
    sgm_status status = graph != NULL && network != NULL
                            ? sgm_network_record(network, graph, &options, &recording)
                            : sgm_last_status();
    if (status != SGM_OK)
        sgm_fail(status, "'%s': %s", p->settings, sgm_last_error());
    if (status == SGM_OK)
        status = sgm__classes_begin(p, &recording);
    if (status == SGM_OK) {
        p->made = calloc(recording.parameter_count + 1, sizeof *p->made);
        if (p->made == NULL || blocks == NULL)
            status = sgm_fail(SGM_ERROR_MEMORY, "no memory for the names of %zu parameters",
                              recording.parameter_count);
    }
    if (status == SGM_OK)
        status = pair_parameters(p, &recording, blocks);
    free(blocks);
    sgm_network_free(network);
    sgm_graph_free(graph);
    SGM__TRY(status);
    SGM__TRY(mark_copies(p));
    return check_others(p);
}

/* --- values --- */

/* Whether all finite numbers of float64 stay finite as float32. */
static bool fits_float32(const sgm_tensor *tensor)
{
    const double *numbers = sgm_tensor_const_data(tensor);
    int64_t count = sgm_shape_elements(sgm_tensor_shape(tensor));
    for (int64_t i = 0; i < count; i++)
        if (isfinite(numbers[i]) && !isfinite((float)numbers[i]))
            return false;
    return true;
}

/* Writes one tensor into its columns of the parameter. */
static sgm_status place_part(const sgm_pretrained *p, const sgm__made *made, size_t part, sgm_tensor *own)
{
    const sgm__stored *stored = made->parts[part];
    int32_t rank = made->shape.rank;
    int64_t start, columns = sgm__part_columns(p, made, part, &start);
    sgm_tensor *read = sgm__stored_read(p, stored);
    if (read == NULL)
        return sgm_last_status();
    if (stored->dtype == SGM_FLOAT64 && sgm_tensor_dtype(own) != SGM_FLOAT64 && !fits_float32(read)) {
        sgm_tensor_free(read);
        return sgm_fail(
            SGM_ERROR_NUMERIC,
            "'%s': the tensor '%.100s' has numbers that float32 does not hold; take precision float64",
            p->path, stored->name);
    }
    sgm_tensor *place =
        rank > 0 ? sgm_tensor_slice(own, rank - 1, start, start + columns, 1) : sgm_tensor_retain(own);
    sgm_tensor *transposed = place == NULL ? NULL
                             : made->weight->transposed && rank == 2
                                 ? sgm_tensor_permute(read, (const int32_t[]){1, 0})
                                 : sgm_tensor_reshape(read, sgm_tensor_shape(place));
    sgm_status status =
        transposed != NULL && place != NULL ? sgm_tensor_assign(place, transposed) : sgm_last_status();
    sgm_tensor_free(place);
    sgm_tensor_free(transposed);
    sgm_tensor_free(read);
    return status;
}

/* Whether two tensors of one shape have the same numbers, in whichever types. */
static sgm_status compare_numbers(const sgm_pretrained *p, const sgm__stored *stored,
                                  const sgm__stored *other, bool *same)
{
    sgm_tensor *read[] = {sgm__stored_read(p, stored), sgm__stored_read(p, other)}, *wide[] = {NULL, NULL};
    const bool is_wide = stored->dtype == SGM_FLOAT64 || other->dtype == SGM_FLOAT64;
    const sgm_dtype dtype = is_wide ? SGM_FLOAT64 : SGM_FLOAT32;
    for (size_t i = 0; i < 2; i++)
        wide[i] = read[i] != NULL ? sgm_tensor_cast(read[i], dtype) : NULL;
    sgm_status status = wide[0] != NULL && wide[1] != NULL ? SGM_OK : sgm_last_status();
    if (status == SGM_OK)
        *same = memcmp(sgm_tensor_const_data(wide[0]), sgm_tensor_const_data(wide[1]),
                       (size_t)sgm_shape_elements(&stored->shape) * sgm_dtype_size(dtype)) == 0;
    for (size_t i = 0; i < 2; i++) {
        sgm_tensor_free(read[i]);
        sgm_tensor_free(wide[i]);
    }
    return status;
}

/* transformers does not tie what differs, whatever config.json says: another model than the network here. */
sgm_status sgm__weights_check_copies(const sgm_pretrained *p, const sgm__made *made)
{
    const sgm__architecture *a = p->architecture;
    for (size_t i = 0; i < a->weight_count; i++) {
        const sgm__stored *stored = find_copy(p, made, &a->weights[i]);
        bool same = true;
        if (stored == NULL || !stored->copy)
            continue;
        SGM__TRY(compare_numbers(p, stored, made->parts[0], &same));
        if (!same)
            return sgm_fail(
                SGM_ERROR_FORMAT,
                "'%s': the tensor '%.100s' has other numbers than '%.100s', which config.json ties "
                "it to; if both are right, set \"tie_word_embeddings\" to false there",
                p->path, stored->name, made->parts[0]->name);
    }
    return SGM_OK;
}

sgm_tensor *sgm__weights_read(sgm_pretrained *p, const sgm__made *made, sgm_dtype dtype)
{
    sgm_tensor *own = sgm_tensor_create(dtype, &made->shape);
    sgm_status status = own != NULL ? SGM_OK : sgm_last_status();
    for (size_t part = 0; status == SGM_OK && part < sgm__part_count(made->weight); part++)
        status = place_part(p, made, part, own);
    if (status == SGM_OK)
        return own;
    sgm_tensor_free(own);
    return NULL;
}
