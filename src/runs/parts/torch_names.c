/* Which tensor of a file of PyTorch is which parameter: the table of names, and the modules of a file.
 *
 * A row of the table pairs a parameter of a layer type with one of the torch.nn module that computes the
 * same, and says how values are converted. Names in a file are MODULE.PARAMETER; which module is which layer
 * is told by the caller's pairs ("torch(fc=0)"), else by equal names, else by the order in the file. */
#include "runs/parts/torch_modules.h"

#include <stdlib.h>

/* --- the table --- */

/* Gates of LSTM and GRU have the same order in both libraries. */
static const sgm__torch_row rows[] = {
#define PLAIN(layer)                                                                                         \
    {layer, "weights", "weight", SGM__TORCH_AS_IS, NULL},                                                    \
    {                                                                                                        \
        layer, "biases", "bias", SGM__TORCH_AS_IS, NULL                                                      \
    }
#define NORM(layer)                                                                                          \
    {layer, "gains", "weight", SGM__TORCH_AS_IS, NULL},                                                      \
    {                                                                                                        \
        layer, "biases", "bias", SGM__TORCH_AS_IS, NULL                                                      \
    }
#define RECURRENT(layer)                                                                                     \
    {layer, "weights", "weight_ih_l0", SGM__TORCH_TRANSPOSED, NULL},                                         \
        {layer, "recurrent", "weight_hh_l0", SGM__TORCH_TRANSPOSED, NULL},                                   \
        {layer, "biases", "bias_ih_l0", SGM__TORCH_BIASES, "bias_hh_l0"},                                    \
        {layer, "reverse_weights", "weight_ih_l0_reverse", SGM__TORCH_TRANSPOSED, NULL},                     \
        {layer, "reverse_recurrent", "weight_hh_l0_reverse", SGM__TORCH_TRANSPOSED, NULL},                   \
    {                                                                                                        \
        layer, "reverse_biases", "bias_ih_l0_reverse", SGM__TORCH_BIASES, "bias_hh_l0_reverse"               \
    }
#define ATTENTION(layer, own, theirs)                                                                        \
    {layer, own "weights", theirs "in_proj_weight", SGM__TORCH_TRANSPOSED, NULL},                            \
        {layer, own "biases", theirs "in_proj_bias", SGM__TORCH_AS_IS, NULL},                                \
        {layer, own "output_weights", theirs "out_proj.weight", SGM__TORCH_TRANSPOSED, NULL},                \
    {                                                                                                        \
        layer, own "output_biases", theirs "out_proj.bias", SGM__TORCH_AS_IS, NULL                           \
    }
    {"dense", "weights", "weight", SGM__TORCH_TRANSPOSED, NULL},
    {"dense", "biases", "bias", SGM__TORCH_AS_IS, NULL},
    PLAIN("convolution"),
    PLAIN("convolution_1d"),
    PLAIN("transposed_convolution"),
    PLAIN("transposed_convolution_1d"),
    NORM("batch_norm"),
    {"batch_norm", "means", "running_mean", SGM__TORCH_AS_IS, NULL},
    {"batch_norm", "variances", "running_var", SGM__TORCH_AS_IS, NULL},
    NORM("layer_norm"),
    NORM("group_norm"),
    NORM("instance_norm"),
    {"rms_norm", "gains", "weight", SGM__TORCH_AS_IS, NULL},
    {"prelu", "slopes", "weight", SGM__TORCH_AS_IS, NULL},
    {"embedding", "weights", "weight", SGM__TORCH_AS_IS, NULL},
    {"positions", "weights", "weight", SGM__TORCH_AS_IS, NULL},
    RECURRENT("rnn"),
    RECURRENT("lstm"),
    RECURRENT("gru"),
    {"gru", "recurrent_biases", "bias_hh_l0", SGM__TORCH_NEW_GATE, NULL},
    {"gru", "reverse_recurrent_biases", "bias_hh_l0_reverse", SGM__TORCH_NEW_GATE, NULL},
    ATTENTION("attention", "", ""),
    ATTENTION("transformer", "attention_", "self_attn."),
    {"transformer", "attention_norm_gains", "norm1.weight", SGM__TORCH_AS_IS, NULL},
    {"transformer", "attention_norm_biases", "norm1.bias", SGM__TORCH_AS_IS, NULL},
    {"transformer", "hidden_weights", "linear1.weight", SGM__TORCH_TRANSPOSED, NULL},
    {"transformer", "hidden_biases", "linear1.bias", SGM__TORCH_AS_IS, NULL},
    {"transformer", "output_weights", "linear2.weight", SGM__TORCH_TRANSPOSED, NULL},
    {"transformer", "output_biases", "linear2.bias", SGM__TORCH_AS_IS, NULL},
    {"transformer", "hidden_norm_gains", "norm2.weight", SGM__TORCH_AS_IS, NULL},
    {"transformer", "hidden_norm_biases", "norm2.bias", SGM__TORCH_AS_IS, NULL},
};
#define ROW_COUNT (sizeof rows / sizeof *rows)

const sgm__torch_row *sgm__torch_row_at(size_t index)
{
    return index < ROW_COUNT ? &rows[index] : NULL;
}

/* Whether layers of this type have parameters that PyTorch knows. */
static bool has_rows(const char *layer)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (strcmp(rows[i].layer, layer) == 0)
            return true;
    return false;
}

/* --- which module is which layer --- */

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
static const char *given_module(const sgm__torch_modules *m, const char *layer)
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

const char *sgm__torch_module_of(const sgm__torch_modules *m, size_t layer)
{
    const char *name = sgm_network_layer_name(m->network, layer), *given = given_module(m, name);
    return given != NULL ? given : m->names[layer] != NULL ? m->names[layer] : name;
}

const char *sgm__torch_type_of(const sgm__torch_modules *m, size_t layer)
{
    return sgm_network_layer_type(m->network, layer)->name;
}

/* Each pair must name a layer of the network. */
static sgm_status check_pairs(const sgm__torch_modules *m)
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

sgm_status sgm__torch_modules_open(sgm__torch_modules *m, const sgm_network *network, const char *names,
                                   const sgm_bundle *file)
{
    *m = (sgm__torch_modules){.network = network, .file = file};
    if (network == NULL)
        return sgm_fail(SGM_ERROR_STATE, "names of PyTorch need the network that they are of");
    SGM_TRY(read_pairs(names, &m->text, &m->count));
    SGM_TRY(check_pairs(m));
    m->names = sgm__calloc(sgm_network_layers(network) + 1, sizeof *m->names);
    m->sorted = sgm__calloc(sgm_bundle_count(file) + 1, sizeof *m->sorted);
    m->used = sgm__calloc(sgm_bundle_count(file) + 1, sizeof *m->used);
    return m->names != NULL && m->sorted != NULL && m->used != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

void sgm__torch_modules_close(sgm__torch_modules *m)
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
static bool any_is_named(const sgm__torch_modules *m)
{
    for (size_t i = 0; i < sgm_network_layers(m->network); i++) {
        const char *module = sgm__torch_module_of(m, i);
        for (size_t k = 0; k < sgm_bundle_count(m->file); k++) {
            const char *name = sgm_bundle_name_at(m->file, k);
            if (sgm__begins_with(name, module) && name[strlen(module)] == '.')
                return true;
        }
    }
    return false;
}

sgm_status sgm__torch_modules_pair_in_order(sgm__torch_modules *m)
{
    size_t count = sgm_bundle_count(m->file), next = 0;
    if (m->count > 0 || any_is_named(m))
        return SGM_OK;
    for (size_t i = 0; i < count; i++)
        m->sorted[i] = sgm_bundle_name_at(m->file, i);
    if (count > 0)
        qsort(m->sorted, count, sizeof *m->sorted, compare_naturally);
    for (size_t i = 0; i < sgm_network_layers(m->network) && next < count; i++) {
        size_t length =
            has_rows(sgm__torch_type_of(m, i)) ? module_length(m->sorted[next], sgm__torch_type_of(m, i)) : 0;
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
