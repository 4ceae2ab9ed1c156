/* Parameters under PyTorch's names and in its layouts: the table of both, and the conversion of a bundle in
 * either direction.
 *
 * A row of the table pairs a parameter of a layer type with one of the torch.nn module that computes the
 * same, and says how values are converted. PyTorch has matrices as (outputs, inputs), this library as
 * (inputs, outputs); recurrent modules have two vectors of biases where this library has their sum. Names
 * in a file are MODULE.PARAMETER; which module is which layer is told by the caller's pairs
 * ("torch(fc=0)"), else by equal names, else by the order in the file. trainer_checkpoint.c calls this
 * between a file and the comparison (parts_fit.c), which then checks shapes: nothing here depends on
 * whether a tensor fits. */
#include "runs/parts/torch_names.h"
#include "optim/optimiser.h"

#include <stdio.h>
#include <stdlib.h>

/* --- the table --- */

/* How a value of PyTorch becomes one of this library; exporting does the reverse. */
typedef enum conversion {
    AS_IS,
    TRANSPOSED, /* a matrix, transposed */
    BIASES,     /* the sum of two vectors of PyTorch, for the input and for the recurrent part */
    NEW_GATE,   /* GRU: the last third of PyTorch's vector for the recurrent part */
} conversion;

/* One row for each parameter of a layer type: layer type, own name, PyTorch's name, conversion. Gates of
 * LSTM and GRU have the same order in both libraries. */
static const struct torch_row {
    const char *layer, *own, *theirs;
    conversion how;
    const char *second; /* BIASES: PyTorch's second vector, for the recurrent part */
} rows[] = {
#define PLAIN(layer)                                                                                         \
    {layer, "weights", "weight", AS_IS, NULL},                                                               \
    {                                                                                                        \
        layer, "biases", "bias", AS_IS, NULL                                                                 \
    }
#define NORM(layer)                                                                                          \
    {layer, "gains", "weight", AS_IS, NULL},                                                                 \
    {                                                                                                        \
        layer, "biases", "bias", AS_IS, NULL                                                                 \
    }
#define RECURRENT(layer)                                                                                     \
    {layer, "weights", "weight_ih_l0", TRANSPOSED, NULL},                                                    \
        {layer, "recurrent", "weight_hh_l0", TRANSPOSED, NULL},                                              \
        {layer, "biases", "bias_ih_l0", BIASES, "bias_hh_l0"},                                               \
        {layer, "reverse_weights", "weight_ih_l0_reverse", TRANSPOSED, NULL},                                \
        {layer, "reverse_recurrent", "weight_hh_l0_reverse", TRANSPOSED, NULL},                              \
    {                                                                                                        \
        layer, "reverse_biases", "bias_ih_l0_reverse", BIASES, "bias_hh_l0_reverse"                          \
    }
#define ATTENTION(layer, own, theirs)                                                                        \
    {layer, own "weights", theirs "in_proj_weight", TRANSPOSED, NULL},                                       \
        {layer, own "biases", theirs "in_proj_bias", AS_IS, NULL},                                           \
        {layer, own "output_weights", theirs "out_proj.weight", TRANSPOSED, NULL},                           \
    {                                                                                                        \
        layer, own "output_biases", theirs "out_proj.bias", AS_IS, NULL                                      \
    }
    {"dense", "weights", "weight", TRANSPOSED, NULL},
    {"dense", "biases", "bias", AS_IS, NULL},
    PLAIN("convolution"),
    PLAIN("convolution_1d"),
    PLAIN("transposed_convolution"),
    PLAIN("transposed_convolution_1d"),
    NORM("batch_norm"),
    {"batch_norm", "means", "running_mean", AS_IS, NULL},
    {"batch_norm", "variances", "running_var", AS_IS, NULL},
    NORM("layer_norm"),
    NORM("group_norm"),
    NORM("instance_norm"),
    {"rms_norm", "gains", "weight", AS_IS, NULL},
    {"prelu", "slopes", "weight", AS_IS, NULL},
    {"embedding", "weights", "weight", AS_IS, NULL},
    {"positions", "weights", "weight", AS_IS, NULL},
    RECURRENT("rnn"),
    RECURRENT("lstm"),
    RECURRENT("gru"),
    {"gru", "recurrent_biases", "bias_hh_l0", NEW_GATE, NULL},
    {"gru", "reverse_recurrent_biases", "bias_hh_l0_reverse", NEW_GATE, NULL},
    ATTENTION("attention", "", ""),
    ATTENTION("transformer", "attention_", "self_attn."),
    {"transformer", "attention_norm_gains", "norm1.weight", AS_IS, NULL},
    {"transformer", "attention_norm_biases", "norm1.bias", AS_IS, NULL},
    {"transformer", "hidden_weights", "linear1.weight", TRANSPOSED, NULL},
    {"transformer", "hidden_biases", "linear1.bias", AS_IS, NULL},
    {"transformer", "output_weights", "linear2.weight", TRANSPOSED, NULL},
    {"transformer", "output_biases", "linear2.bias", AS_IS, NULL},
    {"transformer", "hidden_norm_gains", "norm2.weight", AS_IS, NULL},
    {"transformer", "hidden_norm_biases", "norm2.bias", AS_IS, NULL},
};
#define ROW_COUNT (sizeof rows / sizeof *rows)

/* Whether layers of this type have parameters that PyTorch knows. */
static bool has_rows(const char *layer)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (strcmp(rows[i].layer, layer) == 0)
            return true;
    return false;
}

/* --- which module is which layer --- */

/* Which module each layer of a network is, for one file. */
typedef struct modules {
    const sgm_network *network;
    char *text;          /* the caller's pairs: "LAYER\0MODULE\0..." */
    size_t count;        /* of pairs in `text` */
    char **names;        /* by layer: the module that pair_in_order found; NULL: the layer's own name */
    const char **sorted; /* names in the file, in the order of compare_naturally */
    bool *used;          /* by index in the file: a layer has taken the tensor */
    const sgm_bundle *file;
} modules;

static const char *after(const char *text)
{
    return text + strlen(text) + 1;
}

/* Whether the last of `count` pairs names a layer that an earlier pair names. */
static bool repeats(const char *pairs, size_t count)
{
    const char *last = pairs;
    for (size_t i = 1; i < count; i++)
        last = after(after(last));
    for (const char *at = pairs; at != last; at = after(after(at)))
        if (strcmp(at, last) == 0)
            return true;
    return false;
}

/* Reads "torch(fc=0, out=encoder.2)" into the texts fc, 0, out and encoder.2, one behind the other, each
 * with its terminating 0; "torch" alone gives no pairs. *text is freed with sgm__free, also on failure. */
static sgm_status read_pairs(const char *names, char **text, size_t *count)
{
    const char *expected = "expected \"torch\" or \"torch(LAYER=MODULE, ...)\"";
    size_t length = strlen("torch");
    *text = NULL;
    *count = 0;
    if (strncmp(names, "torch", length) != 0 || (names[length] != '\0' && names[length] != '('))
        return sgm_fail(SGM_ERROR_ARGUMENT, "names '%.80s': %s", names, expected);
    *text = sgm__calloc(2 * strlen(names) + 2, 1);
    if (*text == NULL)
        return SGM_ERROR_MEMORY;
    char *out = *text;
    const char *at = names + length + (names[length] == '(');
    while (names[length] == '(') {
        size_t own = strcspn(at, "=,)"), theirs = at[own] == '=' ? strcspn(at + own + 1, "=,)") : 0;
        const char *end = at + own + 1 + theirs;
        while (own > 0 && sgm__is_space(*at))
            at++, own--;
        if (own == 0 || theirs == 0 || at[own] != '=' || (*end != ',' && *end != ')'))
            return sgm_fail(SGM_ERROR_ARGUMENT, "names '%.80s': %s", names, expected);
        out = stpncpy(out, at, own) + 1;
        out = stpncpy(out, at + own + 1, theirs) + 1;
        if (repeats(*text, ++*count))
            return sgm_fail(SGM_ERROR_ARGUMENT, "names '%.80s': layer '%.*s' is given twice", names, (int)own,
                            at);
        at = end + 1;
        if (*end == ')')
            return *at == '\0' ? SGM_OK : sgm_fail(SGM_ERROR_ARGUMENT, "names '%.80s': %s", names, expected);
    }
    return SGM_OK;
}

sgm_status sgm__torch_names_check(const char *names)
{
    char *text;
    size_t count;
    sgm_status status = read_pairs(names, &text, &count);
    sgm__free(text);
    return status;
}

/* The module that the caller gave for a layer; NULL: none. */
static const char *given_module(const modules *m, const char *layer)
{
    const char *at = m->text;
    for (size_t i = 0; i < m->count; i++) {
        const char *module = at + strlen(at) + 1;
        if (strcmp(at, layer) == 0)
            return module;
        at = module + strlen(module) + 1;
    }
    return NULL;
}

/* The module of a layer: what the caller says, else what the order says, else the layer's own name. */
static const char *module_of(const modules *m, size_t layer)
{
    const char *name = sgm_network_layer_name(m->network, layer), *given = given_module(m, name);
    return given != NULL ? given : m->names[layer] != NULL ? m->names[layer] : name;
}

static const char *type_of(const modules *m, size_t layer)
{
    return sgm_network_layer_type(m->network, layer)->name;
}

/* Each pair must name a layer of the network. */
static sgm_status check_pairs(const modules *m)
{
    const char *at = m->text;
    for (size_t i = 0; i < m->count; i++) {
        bool found = false;
        for (size_t k = 0; k < sgm_network_layers(m->network); k++)
            found |= strcmp(at, sgm_network_layer_name(m->network, k)) == 0;
        if (!found)
            return sgm_fail(SGM_ERROR_NOT_FOUND, "names: the network has no layer '%.80s'", at);
        at += strlen(at) + 1;
        at += strlen(at) + 1;
    }
    return SGM_OK;
}

/* Call modules_close also after a failure. */
static sgm_status modules_open(modules *m, const sgm_network *network, const char *names,
                               const sgm_bundle *file)
{
    *m = (modules){.network = network, .file = file};
    if (network == NULL)
        return sgm_fail(SGM_ERROR_STATE, "names of PyTorch need the network that they are of");
    SGM_TRY(read_pairs(names, &m->text, &m->count));
    SGM_TRY(check_pairs(m));
    m->names = sgm__calloc(sgm_network_layers(network) + 1, sizeof *m->names);
    m->sorted = sgm__calloc(sgm_bundle_count(file) + 1, sizeof *m->sorted);
    m->used = sgm__calloc(sgm_bundle_count(file) + 1, sizeof *m->used);
    return m->names != NULL && m->sorted != NULL && m->used != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

static void modules_close(modules *m)
{
    for (size_t i = 0; m->names != NULL && i < sgm_network_layers(m->network); i++)
        sgm__free(m->names[i]);
    sgm__free(m->names);
    sgm__free(m->sorted);
    sgm__free(m->used);
    sgm__free(m->text);
}

/* --- modules by their order, as of an nn.Sequential: "0.weight", "2.weight", "10.weight" --- */

/* For qsort: numbers in names count by value, so that "10.weight" comes after "2.weight". */
static int compare_naturally(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    for (; *x != '\0' || *y != '\0'; x++, y++) {
        if (sgm__is_digit(*x) && sgm__is_digit(*y)) {
            char *end_x, *end_y;
            unsigned long long i = strtoull(x, &end_x, 10), k = strtoull(y, &end_y, 10);
            if (i != k)
                return i < k ? -1 : 1;
            x = end_x - 1;
            y = end_y - 1;
        } else if (*x != *y) {
            return (unsigned char)*x < (unsigned char)*y ? -1 : 1;
        }
    }
    return 0;
}

/* The length of MODULE in "MODULE.weight", if a layer of this type has such a parameter; 0: it has none. */
static size_t module_length(const char *name, const char *layer)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < ROW_COUNT; i++) {
        size_t end = strlen(rows[i].theirs);
        if (strcmp(rows[i].layer, layer) == 0 && length > end + 1 && name[length - end - 1] == '.' &&
            strcmp(name + length - end, rows[i].theirs) == 0)
            return length - end - 1;
    }
    return 0;
}

/* Whether a tensor of the file belongs to a module that is called as a layer is: then names decide, not
 * the order. */
static bool any_is_named(const modules *m)
{
    for (size_t i = 0; i < sgm_network_layers(m->network); i++) {
        const char *module = module_of(m, i);
        for (size_t k = 0; k < sgm_bundle_count(m->file); k++) {
            const char *name = sgm_bundle_name_at(m->file, k);
            if (sgm__begins_with(name, module) && name[strlen(module)] == '.')
                return true;
        }
    }
    return false;
}

/* Pairs layers with modules by their order in the file, as of an nn.Sequential, whose modules are numbered
 * ("0.weight", "2.weight"). Only if the caller gave no pairs and no module is called as a layer is. A
 * layer takes the next module if that has a parameter of its type; all tensors of the module are passed
 * then. */
static sgm_status pair_in_order(modules *m)
{
    size_t count = sgm_bundle_count(m->file), next = 0;
    if (m->count > 0 || any_is_named(m))
        return SGM_OK;
    for (size_t i = 0; i < count; i++)
        m->sorted[i] = sgm_bundle_name_at(m->file, i);
    if (count > 0)
        qsort(m->sorted, count, sizeof *m->sorted, compare_naturally);
    for (size_t i = 0; i < sgm_network_layers(m->network) && next < count; i++) {
        size_t length = has_rows(type_of(m, i)) ? module_length(m->sorted[next], type_of(m, i)) : 0;
        if (length == 0)
            continue;
        const char *first = m->sorted[next];
        m->names[i] = sgm__format("%.*s", (int)length, first);
        if (m->names[i] == NULL)
            return SGM_ERROR_MEMORY;
        while (next < count && strncmp(m->sorted[next], first, length + 1) == 0)
            next++;
    }
    return SGM_OK;
}

/* --- values --- */

/* A transposed copy of a matrix. Any other tensor stays as it is: comparing shapes will refuse it with a
 * better message. */
static sgm_tensor *turn(sgm_tensor *matrix)
{
    if (sgm_tensor_shape(matrix)->rank != 2)
        return sgm_tensor_retain(matrix); /* a later comparison of shapes refuses it */
    sgm_tensor *seen = sgm_tensor_permute(matrix, (const int32_t[]){1, 0});
    sgm_tensor *copy = seen != NULL ? sgm_tensor_copy(seen) : NULL;
    sgm_tensor_free(seen);
    return copy;
}

/* What an LSTM of this library adds to the forget gate by itself, so that biases can begin at zero; 0 for
 * other layers. */
static double forget_bias(const modules *m, size_t layer)
{
    sgm_content content = {0};
    if (strcmp(type_of(m, layer), "lstm") != 0 ||
        sgm_network_get_argument(m->network, layer, "forget_bias", &content) != SGM_OK)
        return 0;
    double value = content.kind == SGM_KIND_NUMBER ? content.as.number : 0;
    sgm_content_clear(&content);
    return value;
}

/* first + second, and `sign` times the LSTM's forget bias on the forget gate, the second quarter (gates i,
 * f, g, o). Importing subtracts that bias (sign -1), as the layer adds it again; exporting adds it (+1),
 * without a second vector. Of a GRU (gates r, z, n) only the first two thirds are added: the new gate's
 * recurrent bias is multiplied by the reset gate and stays a vector of its own. */
static sgm_tensor *add_biases(const modules *m, size_t layer, sgm_tensor *first, const sgm_tensor *second,
                              double sign)
{
    sgm_dtype dtype = sgm_tensor_dtype(first); /* a sum of two bfloat16 keeps more digits as float32 */
    sgm_tensor *sum = sgm_tensor_cast(first, dtype == SGM_BFLOAT16 ? SGM_FLOAT32 : dtype);
    int64_t size = sgm_shape_elements(sgm_tensor_shape(first));
    double forget = forget_bias(m, layer);
    int64_t added = strcmp(type_of(m, layer), "gru") == 0 ? size / 3 * 2 : size;
    for (int64_t i = 0; sum != NULL && second != NULL && i < added; i++)
        sgm_tensor_set(sum, &i, sgm_tensor_get(first, &i) + sgm_tensor_get(second, &i));
    for (int64_t i = size / 4; sum != NULL && forget != 0 && i < size / 2; i++)
        sgm_tensor_set(sum, &i, sgm_tensor_get(sum, &i) + sign * forget);
    return sum;
}

/* An LSTM without biases still adds its forget bias, for which PyTorch's has no place. */
static sgm_status check_forget_biases(const modules *m)
{
    for (size_t i = 0; i < sgm_network_layers(m->network); i++) {
        sgm_content without = {0};
        if (forget_bias(m, i) == 0 ||
            sgm_network_get_argument(m->network, i, "no_bias", &without) != SGM_OK || !without.as.boolean)
            continue;
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "layer '%s' has no biases, but a forget_bias of %g, for which PyTorch's LSTM has no "
                        "place: train it with forget_bias=0",
                        sgm_network_layer_name(m->network, i), forget_bias(m, i));
    }
    return SGM_OK;
}

/* --- from PyTorch --- */

/* The file's tensor MODULE.THEIRS, borrowed, and marked as used; NULL: the file has none of that name. */
static sgm_tensor *take(modules *m, size_t layer, const char *theirs)
{
    char *name = sgm__format("%s.%s", module_of(m, layer), theirs);
    sgm_tensor *found = NULL;
    for (size_t i = 0; name != NULL && i < sgm_bundle_count(m->file) && found == NULL; i++)
        if (strcmp(sgm_bundle_name_at(m->file, i), name) == 0) {
            m->used[i] = true;
            found = sgm_bundle_get(m->file, name);
        }
    sgm__free(name);
    return found;
}

/* The sum of PyTorch's two vectors, both of which it always has. */
static sgm_tensor *import_biases(modules *m, size_t layer, const struct torch_row *row, sgm_tensor *first)
{
    const sgm_tensor *second = take(m, layer, row->second);
    if (second != NULL && sgm_shape_equal(sgm_tensor_shape(first), sgm_tensor_shape(second)) &&
        sgm_tensor_shape(first)->rank == 1)
        return add_biases(m, layer, first, second, -1);
    sgm_fail(SGM_ERROR_FORMAT, "'%s.%s' %s: it is added to '%s', which is a vector of the same length",
             module_of(m, layer), row->second, second != NULL ? "has another shape" : "is missing",
             row->theirs);
    return NULL;
}

/* Converts a tensor of PyTorch; the result is the caller's. */
static sgm_tensor *import_value(modules *m, size_t layer, const struct torch_row *row, sgm_tensor *value)
{
    int64_t size = sgm_shape_elements(sgm_tensor_shape(value));
    switch (row->how) {
    case TRANSPOSED:
        return turn(value);
    case BIASES:
        return import_biases(m, layer, row, value);
    case NEW_GATE:
        return sgm_tensor_slice(value, 0, size / 3 * 2, size, 1);
    case AS_IS:
        break;
    }
    return sgm_tensor_retain(value);
}

/* Adds the parameters of one layer, as far as the file has them; missing ones are noticed when the bundle
 * is compared with the trainer. */
static sgm_status import_layer(modules *m, size_t layer, sgm_bundle *own)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        sgm_tensor *value =
            strcmp(rows[i].layer, type_of(m, layer)) == 0 ? take(m, layer, rows[i].theirs) : NULL;
        if (value == NULL)
            continue;
        sgm_tensor *made = import_value(m, layer, &rows[i], value);
        char *name = sgm__format("%s.%s", sgm_network_layer_name(m->network, layer), rows[i].own);
        sgm_status status =
            made != NULL && name != NULL ? sgm_bundle_add(own, name, made) : sgm__last_failure();
        sgm__free(name);
        sgm_tensor_free(made);
        SGM_TRY(status);
    }
    return SGM_OK;
}

/* PyTorch counts minibatches beside running statistics; nothing that is computed depends on it. */
static bool is_counter(const char *name)
{
    const char *end = strrchr(name, '.');
    return strcmp(end != NULL ? end + 1 : name, "num_batches_tracked") == 0;
}

/* Whether a name begins with that of a layer. */
static bool is_of_layer(const modules *m, const char *name)
{
    for (size_t i = 0; i < sgm_network_layers(m->network); i++) {
        const char *layer = sgm_network_layer_name(m->network, i);
        if (sgm__begins_with(name, layer) && name[strlen(layer)] == '.')
            return true;
    }
    return false;
}

/* Takes tensors under this library's own names: parameters that PyTorch does not have were exported so. */
static sgm_status import_others(modules *m, sgm_bundle *own)
{
    for (size_t i = 0; i < sgm_bundle_count(m->file); i++) {
        const char *name = sgm_bundle_name_at(m->file, i);
        if (m->used[i] || is_counter(name) || !is_of_layer(m, name) || sgm_bundle_has(own, name))
            continue;
        m->used[i] = true;
        SGM_TRY(sgm_bundle_add(own, name, sgm_bundle_get(m->file, name)));
    }
    return SGM_OK;
}

/* Fails if tensors of the file are left over: most likely a module was not found, and its layer would
 * train on from its first values without a word. */
static sgm_status check_used(const modules *m)
{
    sgm__text left = {0};
    size_t count = 0;
    for (size_t i = 0; i < sgm_bundle_count(m->file); i++)
        if (!m->used[i] && !is_counter(sgm_bundle_name_at(m->file, i)) && count++ < 3)
            sgm__text_append(&left, "%s'%s'", count > 1 ? ", " : "", sgm_bundle_name_at(m->file, i));
    sgm_status status =
        count == 0
            ? SGM_OK
            : sgm_fail(SGM_ERROR_FORMAT,
                       "no layer takes %s%s; say whose they are, \"torch(LAYER=MODULE, ...)\", or call "
                       "layers as the modules are called, dense(10, name=fc1)",
                       left.data != NULL ? left.data : "tensors", count > 3 ? " and others" : "");
    sgm__text_free(&left);
    return status;
}

sgm_bundle *sgm__torch_import(const sgm_network *network, const char *names, const sgm_bundle *theirs,
                              bool skip_mismatch)
{
    modules m;
    sgm_bundle *own = sgm_bundle_create();
    sgm_status status = modules_open(&m, network, names, theirs);
    if (status == SGM_OK)
        status = own != NULL ? pair_in_order(&m) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = check_forget_biases(&m);
    for (size_t i = 0; status == SGM_OK && i < sgm_network_layers(network); i++)
        status = import_layer(&m, i, own);
    if (status == SGM_OK)
        status = import_others(&m, own);
    if (status == SGM_OK && !skip_mismatch)
        status = check_used(&m);
    modules_close(&m);
    if (status == SGM_OK)
        return own;
    sgm_bundle_free(own);
    return NULL;
}

/* --- to PyTorch --- */

/* Adds MODULE.NAME to the bundle; `value` NULL: making it has failed. */
static sgm_status give(sgm_bundle *theirs, const char *module, const char *name, sgm_tensor *value)
{
    char *full = sgm__format("%s.%s", module, name);
    sgm_status status =
        full != NULL && value != NULL ? sgm_bundle_add(theirs, full, value) : sgm__last_failure();
    sgm__free(full);
    return status;
}

/* The parameter LAYER.NAME of the bundle, borrowed; NULL: it has none. */
static sgm_tensor *own_value(const modules *m, const sgm_bundle *own, size_t layer, const char *name)
{
    char *full = sgm__format("%s.%s", sgm_network_layer_name(m->network, layer), name);
    sgm_tensor *found = full != NULL && sgm_bundle_has(own, full) ? sgm_bundle_get(own, full) : NULL;
    sgm__free(full);
    return found;
}

/* Adds PyTorch's second vector of biases: zeros, as the first has the whole sum, but for the new gate of a
 * GRU, which this library keeps apart (recurrent_biases). */
static sgm_status give_second(const modules *m, size_t layer, const struct torch_row *row,
                              const sgm_bundle *own, const sgm_tensor *first, sgm_bundle *theirs)
{
    char *name = sgm__format("%.*srecurrent_biases", (int)(strlen(row->own) - strlen("biases")), row->own);
    if (name == NULL)
        return SGM_ERROR_MEMORY;
    const sgm_tensor *last = own_value(m, own, layer, name);
    sgm__free(name);
    sgm_tensor *second = sgm_tensor_create(sgm_tensor_dtype(first), sgm_tensor_shape(first));
    if (second == NULL)
        return sgm_last_status();
    int64_t size = sgm_shape_elements(sgm_tensor_shape(first)), begin = size / 3 * 2;
    for (int64_t i = begin; i < size && last != NULL; i++) {
        int64_t from = i - begin;
        sgm_tensor_set(second, &i, sgm_tensor_get(last, &from));
    }
    sgm_status status = give(theirs, module_of(m, layer), row->second, second);
    sgm_tensor_free(second);
    return status;
}

/* Adds one parameter of a layer under PyTorch's name. NEW_GATE has no tensor of its own: give_second
 * writes it. */
static sgm_status export_row(const modules *m, size_t layer, const struct torch_row *row,
                             const sgm_bundle *own, sgm_bundle *theirs)
{
    sgm_tensor *value = own_value(m, own, layer, row->own);
    if (value == NULL || row->how == NEW_GATE)
        return SGM_OK;
    sgm_tensor *made = row->how == TRANSPOSED ? turn(value)
                       : row->how == BIASES   ? add_biases(m, layer, value, NULL, 1)
                                              : sgm_tensor_retain(value);
    sgm_status status = give(theirs, module_of(m, layer), row->theirs, made);
    sgm_tensor_free(made);
    return status == SGM_OK && row->how == BIASES ? give_second(m, layer, row, own, value, theirs) : status;
}

/* Whether a row of the table covers the parameter of this name. */
static bool has_module(const modules *m, const sgm_bundle *own, const char *name)
{
    for (size_t k = 0; k < sgm_network_layers(m->network); k++)
        for (size_t r = 0; r < ROW_COUNT; r++)
            if (strcmp(rows[r].layer, type_of(m, k)) == 0 &&
                own_value(m, own, k, rows[r].own) == sgm_bundle_get(own, name))
                return true;
    return false;
}

/* Adds parameters that no row covers under their own names, so that nothing is lost, and lists them in
 * `kept`. Moving averages, which are copies of parameters, are left out. */
static sgm_status export_others(const modules *m, const sgm_bundle *own, sgm_bundle *theirs, sgm__text *kept)
{
    for (size_t i = 0; i < sgm_bundle_count(own); i++) {
        const char *name = sgm_bundle_name_at(own, i);
        if (sgm__begins_with(name, SGM__AVERAGE_PREFIX) || has_module(m, own, name))
            continue;
        SGM_TRY(sgm_bundle_add(theirs, name, sgm_bundle_get(own, name)));
        sgm__text_append(kept, "%s'%s'", kept->length > 0 ? ", " : "", name);
    }
    return kept->failed ? sgm__fail_memory(kept->capacity) : SGM_OK;
}

/* The text "format": "pt" is what PyTorch's own files carry, and some of its readers ask for. */
sgm_bundle *sgm__torch_export(const sgm_network *network, const char *names, const sgm_bundle *own,
                              const char *source)
{
    modules m;
    sgm__text kept = {0};
    sgm_bundle *theirs = sgm_bundle_create();
    sgm_status status = modules_open(&m, network, names, own);
    if (status == SGM_OK)
        status = theirs != NULL ? sgm_bundle_set_text(theirs, "format", "pt") : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = check_forget_biases(&m);
    for (size_t i = 0; status == SGM_OK && i < sgm_network_layers(network); i++)
        for (size_t r = 0; r < ROW_COUNT && status == SGM_OK; r++)
            if (strcmp(rows[r].layer, type_of(&m, i)) == 0)
                status = export_row(&m, i, &rows[r], own, theirs);
    if (status == SGM_OK)
        status = export_others(&m, own, theirs, &kept);
    if (status == SGM_OK && kept.length > 0)
        sgm__log(SGM_LOG_WARNING, source,
                 "PyTorch has no module with such parameters, which keep their names in the file: %.800s",
                 kept.data);
    sgm__text_free(&kept);
    modules_close(&m);
    if (status == SGM_OK)
        return theirs;
    sgm_bundle_free(theirs);
    return NULL;
}
