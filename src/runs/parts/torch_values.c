/* Parameters in PyTorch's layouts: the conversion of a bundle in either direction.
 *
 * PyTorch has matrices as (outputs, inputs), this library as (inputs, outputs); recurrent modules have two
 * vectors of biases where this library has their sum. trainer_checkpoint.c calls this between a file and the
 * comparison (parts_fit.c), which then checks shapes: nothing here depends on whether a tensor fits. */
#include "optim/optimiser.h"
#include "runs/parts/torch_modules.h"

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
static double forget_bias(const sgm__torch_modules *m, size_t layer)
{
    sgm_content content = {0};
    if (strcmp(sgm__torch_type_of(m, layer), "lstm") != 0 ||
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
static sgm_tensor *add_biases(const sgm__torch_modules *m, size_t layer, sgm_tensor *first,
                              const sgm_tensor *second, double sign)
{
    sgm_dtype dtype = sgm_tensor_dtype(first); /* a sum of two bfloat16 keeps more digits as float32 */
    sgm_tensor *sum = sgm_tensor_cast(first, dtype == SGM_BFLOAT16 ? SGM_FLOAT32 : dtype);
    int64_t size = sgm_shape_elements(sgm_tensor_shape(first));
    double forget = forget_bias(m, layer);
    int64_t added = strcmp(sgm__torch_type_of(m, layer), "gru") == 0 ? size / 3 * 2 : size;
    for (int64_t i = 0; sum != NULL && second != NULL && i < added; i++)
        sgm_tensor_set(sum, &i, sgm_tensor_get(first, &i) + sgm_tensor_get(second, &i));
    for (int64_t i = size / 4; sum != NULL && forget != 0 && i < size / 2; i++)
        sgm_tensor_set(sum, &i, sgm_tensor_get(sum, &i) + sign * forget);
    return sum;
}

/* An LSTM without biases still adds its forget bias, for which PyTorch's has no place. */
static sgm_status check_forget_biases(const sgm__torch_modules *m)
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
static sgm_tensor *take(sgm__torch_modules *m, size_t layer, const char *theirs)
{
    char *name = sgm__format("%s.%s", sgm__torch_module_of(m, layer), theirs);
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
static sgm_tensor *import_biases(sgm__torch_modules *m, size_t layer, const sgm__torch_row *row,
                                 sgm_tensor *first)
{
    const sgm_tensor *second = take(m, layer, row->second);
    if (second != NULL && sgm_shape_equal(sgm_tensor_shape(first), sgm_tensor_shape(second)) &&
        sgm_tensor_shape(first)->rank == 1)
        return add_biases(m, layer, first, second, -1);
    sgm_fail(SGM_ERROR_FORMAT, "'%s.%s' %s: it is added to '%s', which is a vector of the same length",
             sgm__torch_module_of(m, layer), row->second, second != NULL ? "has another shape" : "is missing",
             row->theirs);
    return NULL;
}

/* Converts a tensor of PyTorch; the result is the caller's. */
static sgm_tensor *import_value(sgm__torch_modules *m, size_t layer, const sgm__torch_row *row,
                                sgm_tensor *value)
{
    int64_t size = sgm_shape_elements(sgm_tensor_shape(value));
    switch (row->how) {
    case SGM__TORCH_TRANSPOSED:
        return turn(value);
    case SGM__TORCH_BIASES:
        return import_biases(m, layer, row, value);
    case SGM__TORCH_NEW_GATE:
        return sgm_tensor_slice(value, 0, size / 3 * 2, size, 1);
    case SGM__TORCH_AS_IS:
        break;
    }
    return sgm_tensor_retain(value);
}

/* Adds the parameters of one layer, as far as the file has them; missing ones are noticed when the bundle
 * is compared with the trainer. */
static sgm_status import_layer(sgm__torch_modules *m, size_t layer, sgm_bundle *own)
{
    const sgm__torch_row *row;
    for (size_t i = 0; (row = sgm__torch_row_at(i)) != NULL; i++) {
        sgm_tensor *value =
            strcmp(row->layer, sgm__torch_type_of(m, layer)) == 0 ? take(m, layer, row->theirs) : NULL;
        if (value == NULL)
            continue;
        sgm_tensor *made = import_value(m, layer, row, value);
        char *name = sgm__format("%s.%s", sgm_network_layer_name(m->network, layer), row->own);
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
static bool is_of_layer(const sgm__torch_modules *m, const char *name)
{
    for (size_t i = 0; i < sgm_network_layers(m->network); i++) {
        const char *layer = sgm_network_layer_name(m->network, i);
        if (sgm__begins_with(name, layer) && name[strlen(layer)] == '.')
            return true;
    }
    return false;
}

/* Takes tensors under this library's own names: parameters that PyTorch does not have were exported so. */
static sgm_status import_others(sgm__torch_modules *m, sgm_bundle *own)
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
static sgm_status check_used(const sgm__torch_modules *m)
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
    sgm__torch_modules m;
    sgm_bundle *own = sgm_bundle_create();
    sgm_status status = sgm__torch_modules_open(&m, network, names, theirs);
    if (status == SGM_OK)
        status = own != NULL ? sgm__torch_modules_pair_in_order(&m) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = check_forget_biases(&m);
    for (size_t i = 0; status == SGM_OK && i < sgm_network_layers(network); i++)
        status = import_layer(&m, i, own);
    if (status == SGM_OK)
        status = import_others(&m, own);
    if (status == SGM_OK && !skip_mismatch)
        status = check_used(&m);
    sgm__torch_modules_close(&m);
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
static sgm_tensor *own_value(const sgm__torch_modules *m, const sgm_bundle *own, size_t layer,
                             const char *name)
{
    char *full = sgm__format("%s.%s", sgm_network_layer_name(m->network, layer), name);
    sgm_tensor *found = full != NULL && sgm_bundle_has(own, full) ? sgm_bundle_get(own, full) : NULL;
    sgm__free(full);
    return found;
}

/* Adds PyTorch's second vector of biases: zeros, as the first has the whole sum, but for the new gate of a
 * GRU, which this library keeps apart (recurrent_biases). */
static sgm_status give_second(const sgm__torch_modules *m, size_t layer, const sgm__torch_row *row,
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
    sgm_status status = give(theirs, sgm__torch_module_of(m, layer), row->second, second);
    sgm_tensor_free(second);
    return status;
}

/* Adds one parameter of a layer under PyTorch's name. NEW_GATE has no tensor of its own: give_second
 * writes it. */
static sgm_status export_row(const sgm__torch_modules *m, size_t layer, const sgm__torch_row *row,
                             const sgm_bundle *own, sgm_bundle *theirs)
{
    sgm_tensor *value = own_value(m, own, layer, row->own);
    if (value == NULL || row->how == SGM__TORCH_NEW_GATE)
        return SGM_OK;
    sgm_tensor *made = row->how == SGM__TORCH_TRANSPOSED ? turn(value)
                       : row->how == SGM__TORCH_BIASES   ? add_biases(m, layer, value, NULL, 1)
                                                         : sgm_tensor_retain(value);
    sgm_status status = give(theirs, sgm__torch_module_of(m, layer), row->theirs, made);
    sgm_tensor_free(made);
    return status == SGM_OK && row->how == SGM__TORCH_BIASES ? give_second(m, layer, row, own, value, theirs)
                                                             : status;
}

static sgm_status export_layer(const sgm__torch_modules *m, size_t layer, const sgm_bundle *own,
                               sgm_bundle *theirs)
{
    const sgm__torch_row *row;
    for (size_t i = 0; (row = sgm__torch_row_at(i)) != NULL; i++)
        if (strcmp(row->layer, sgm__torch_type_of(m, layer)) == 0)
            SGM_TRY(export_row(m, layer, row, own, theirs));
    return SGM_OK;
}

/* Whether a row of the table covers the parameter of this name. */
static bool has_module(const sgm__torch_modules *m, const sgm_bundle *own, const char *name)
{
    const sgm__torch_row *row;
    for (size_t k = 0; k < sgm_network_layers(m->network); k++)
        for (size_t r = 0; (row = sgm__torch_row_at(r)) != NULL; r++)
            if (strcmp(row->layer, sgm__torch_type_of(m, k)) == 0 &&
                own_value(m, own, k, row->own) == sgm_bundle_get(own, name))
                return true;
    return false;
}

/* Adds parameters that no row covers under their own names, so that nothing is lost, and lists them in
 * `kept`. Moving averages, which are copies of parameters, are left out. */
static sgm_status export_others(const sgm__torch_modules *m, const sgm_bundle *own, sgm_bundle *theirs,
                                sgm__text *kept)
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
    sgm__torch_modules m;
    sgm__text kept = {0};
    sgm_bundle *theirs = sgm_bundle_create();
    sgm_status status = sgm__torch_modules_open(&m, network, names, own);
    if (status == SGM_OK)
        status = theirs != NULL ? sgm_bundle_set_text(theirs, "format", "pt") : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = check_forget_biases(&m);
    for (size_t i = 0; status == SGM_OK && i < sgm_network_layers(network); i++)
        status = export_layer(&m, i, own, theirs);
    if (status == SGM_OK)
        status = export_others(&m, own, theirs, &kept);
    if (status == SGM_OK && kept.length > 0)
        sgm__log(SGM_LOG_WARNING, source,
                 "PyTorch has no module with such parameters, which keep their names in the file: %.800s",
                 kept.data);
    sgm__text_free(&kept);
    sgm__torch_modules_close(&m);
    if (status == SGM_OK)
        return theirs;
    sgm_bundle_free(theirs);
    return NULL;
}
