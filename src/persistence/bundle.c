/* Keeps bundles, named tensors and named texts in memory, on their way to a file or from one.
 *
 * A bundle keeps a reference to each tensor and copies of all texts. Tensors are many (one for each parameter
 * and each state of the optimiser), so they have an index of names; texts are few and are searched. Names and
 * texts are checked for UTF-8 when they are added, so that saving cannot fail for them. Loading uses
 * sgm__bundle_append, which skips the checks that the reader of the file has made. */
#include "persistence/bundle.h"

#include <jansson.h>

sgm_bundle *sgm_bundle_create(void)
{
    return sgm__calloc(1, sizeof(sgm_bundle));
}

void sgm_bundle_free(sgm_bundle *bundle)
{
    if (bundle == NULL)
        return;
    for (size_t i = 0; i < bundle->count; i++) {
        sgm__free(bundle->tensors[i].name);
        sgm_tensor_free(bundle->tensors[i].tensor);
    }
    for (size_t i = 0; i < bundle->text_count; i++) {
        sgm__free(bundle->texts[i].key);
        sgm__free(bundle->texts[i].text);
    }
    sgm__name_index_free(&bundle->index);
    sgm__free(bundle->tensors);
    sgm__free(bundle->texts);
    sgm__free(bundle);
}

bool sgm__bundle_find(const sgm_bundle *bundle, const char *name, size_t *place)
{
    uintptr_t found;
    if (!sgm__name_index_find(&bundle->index, name, &found))
        return false;
    *place = (size_t)found;
    return true;
}

/* NULL: none of that name. */
static sgm__bundle_tensor *find_entry(const sgm_bundle *bundle, const char *name)
{
    size_t place;
    return sgm__bundle_find(bundle, name, &place) ? &bundle->tensors[place] : NULL;
}

/* Borrowed; NULL: none of that name. */
static sgm_tensor *find(const sgm_bundle *bundle, const char *name)
{
    const sgm__bundle_tensor *entry = find_entry(bundle, name);
    return entry != NULL ? entry->tensor : NULL;
}

/* The header of a safetensors file is JSON, which holds only UTF-8; jansson's own constructor is the check.
 */
static sgm_status check_text(const char *text, const char *what)
{
    json_t *json = json_string(text);
    if (json == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s must be text in UTF-8", what);
    json_decref(json);
    return SGM_OK;
}

/* Whatever can fail comes first: name, room and index, then adding. */
sgm_status sgm__bundle_append(sgm_bundle *bundle, const char *name, sgm_tensor *tensor)
{
    char *copy = sgm__strdup(name);
    sgm_status status = copy == NULL ? SGM_ERROR_MEMORY : SGM_OK;
    if (status == SGM_OK)
        status =
            sgm__reserve(&bundle->tensors, &bundle->capacity, bundle->count + 1, sizeof(sgm__bundle_tensor));
    if (status == SGM_OK)
        status = sgm__name_index_reserve(&bundle->index, 1);
    if (status != SGM_OK) {
        sgm__free(copy);
        sgm_tensor_free(tensor);
        return status;
    }
    sgm__name_index_add(&bundle->index, copy, bundle->count);
    bundle->tensors[bundle->count++] = (sgm__bundle_tensor){copy, tensor, false};
    return SGM_OK;
}

/* "__metadata__" is where safetensors keeps texts. */
sgm_status sgm_bundle_add(sgm_bundle *bundle, const char *name, sgm_tensor *tensor)
{
    if (bundle == NULL || name == NULL || tensor == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "adding to a bundle needs the bundle, a name and a tensor");
    if (name[0] == '\0' || strcmp(name, "__metadata__") == 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a tensor in a bundle cannot be named '%s'", name);
    SGM_TRY(check_text(name, "the name of a tensor in a bundle"));
    if (find(bundle, name) != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "the bundle has a tensor '%s' already", name);
    return sgm__bundle_append(bundle, name, sgm_tensor_retain(tensor));
}

/* Keys of the file's own texts: see SGM__CHECKSUM_PREFIX. */
bool sgm__is_checksum_key(const char *key)
{
    return sgm__begins_with(key, SGM__CHECKSUM_PREFIX);
}

/* Replaces the text if the key exists. */
sgm_status sgm_bundle_set_text(sgm_bundle *bundle, const char *key, const char *text)
{
    if (bundle == NULL || key == NULL || text == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a text of a bundle needs the bundle, a key and the text");
    if (sgm__is_checksum_key(key))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "a text of a bundle cannot be named '%.100s': '" SGM__CHECKSUM_PREFIX
                        "...' is for the checksums that saving adds",
                        key);
    SGM_TRY(check_text(key, "the key of a text in a bundle"));
    SGM_TRY(check_text(text, "a text in a bundle"));
    char *copy = sgm__strdup(text);
    if (copy == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < bundle->text_count; i++)
        if (strcmp(bundle->texts[i].key, key) == 0) {
            sgm__free(bundle->texts[i].text);
            bundle->texts[i].text = copy;
            return SGM_OK;
        }
    char *key_copy = sgm__strdup(key);
    sgm_status status = key_copy == NULL ? SGM_ERROR_MEMORY : SGM_OK;
    if (status == SGM_OK)
        status = sgm__reserve(&bundle->texts, &bundle->text_capacity, bundle->text_count + 1,
                              sizeof(sgm__bundle_text));
    if (status != SGM_OK) {
        sgm__free(copy);
        sgm__free(key_copy);
        return status;
    }
    bundle->texts[bundle->text_count++] = (sgm__bundle_text){key_copy, copy};
    return SGM_OK;
}

/* The tensor is borrowed. A name that does not exist is an error with the nearest name, or with the number of
 * tensors that are there. */
sgm_tensor *sgm_bundle_get(const sgm_bundle *bundle, const char *name)
{
    if (bundle == NULL || name == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "looking in a bundle needs the bundle and a name");
        return NULL;
    }
    sgm_tensor *tensor = find(bundle, name);
    if (tensor != NULL)
        return tensor;
    const char **names = sgm__calloc(bundle->count + 1, sizeof(const char *));
    if (names == NULL)
        return NULL;
    for (size_t i = 0; i < bundle->count; i++)
        names[i] = bundle->tensors[i].name;
    const char *nearest = sgm__nearest(name, names, bundle->count);
    if (nearest != NULL)
        sgm_fail(SGM_ERROR_NOT_FOUND, "the bundle has no tensor '%s' (did you mean '%s'?)", name, nearest);
    else
        sgm_fail(SGM_ERROR_NOT_FOUND, "the bundle has no tensor '%s'; it has %zu others", name,
                 bundle->count);
    sgm__free(names);
    return NULL;
}

bool sgm_bundle_is_half(const sgm_bundle *bundle, const char *name)
{
    const sgm__bundle_tensor *entry = bundle != NULL && name != NULL ? find_entry(bundle, name) : NULL;
    return entry != NULL && entry->half;
}

sgm_status sgm_bundle_set_half(sgm_bundle *bundle, const char *name, bool half)
{
    const sgm_tensor *tensor = sgm_bundle_get(bundle, name);
    if (tensor == NULL)
        return sgm_last_status();
    if (half && sgm_tensor_dtype(tensor) != SGM_FLOAT32)
        return sgm_fail(SGM_ERROR_ARGUMENT, "'%s' is %s; float16 in a file is for tensors of float32", name,
                        sgm_dtype_name(sgm_tensor_dtype(tensor)));
    find_entry(bundle, name)->half = half;
    return SGM_OK;
}

static const char *find_text(const sgm_bundle *bundle, const char *key)
{
    for (size_t i = 0; bundle != NULL && key != NULL && i < bundle->text_count; i++)
        if (strcmp(bundle->texts[i].key, key) == 0)
            return bundle->texts[i].text;
    return NULL;
}

/* Borrowed, until the text is replaced or the bundle freed. */
const char *sgm_bundle_get_text(const sgm_bundle *bundle, const char *key)
{
    const char *text = find_text(bundle, key);
    if (text == NULL)
        sgm_fail(SGM_ERROR_NOT_FOUND, "the bundle has no text '%s'", key != NULL ? key : "");
    return text;
}

bool sgm__bundle_has_text(const sgm_bundle *bundle, const char *key)
{
    return find_text(bundle, key) != NULL;
}

bool sgm_bundle_has(const sgm_bundle *bundle, const char *name)
{
    return bundle != NULL && name != NULL && find(bundle, name) != NULL;
}

size_t sgm_bundle_count(const sgm_bundle *bundle)
{
    return bundle != NULL ? bundle->count : 0;
}

const char *sgm_bundle_name_at(const sgm_bundle *bundle, size_t index)
{
    return bundle != NULL && index < bundle->count ? bundle->tensors[index].name : NULL;
}
