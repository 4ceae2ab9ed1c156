/* Implements contents of entries: constructors, copies, comparison, text, and checks against the row of an
 * option.
 *
 * A content (sgm_content in sigma/registry.h) is a kind and a union. Constructors borrow; sgm__content_copy
 * makes a content that owns its text or a reference to its tensor or registry, and sgm_content_clear gives
 * these back. The checks at the end are the only place where bounds and choices of options are tested:
 * entries (entry.c), settings (setting.c) and configurations all come here, and so give the same messages. */
#include "registry/registry_internal.h"

#include <math.h>

#define ENDLESS 1e30 /* a maximum from here on means that there is none */

const char *sgm_kind_name(sgm_kind kind)
{
    static const char *const names[] = {"nothing", "boolean", "integer", "number",
                                        "text",    "tensor",  "registry"};
    return (unsigned)kind <= SGM_KIND_REGISTRY ? names[kind] : "unknown kind";
}

/* A kind with its article, for "expected an integer, got ...". */
const char *sgm__kind_article(sgm_kind kind)
{
    static const char *const names[] = {
        "nothing", "a boolean (true or false)", "an integer", "a number", "a text", "a tensor", "a registry"};
    return (unsigned)kind <= SGM_KIND_REGISTRY ? names[kind] : "an unknown kind";
}

sgm_content sgm_boolean_content(bool value)
{
    return (sgm_content){.kind = SGM_KIND_BOOLEAN, .as.boolean = value};
}

sgm_content sgm_integer_content(int64_t value)
{
    return (sgm_content){.kind = SGM_KIND_INTEGER, .as.integer = value};
}

sgm_content sgm_number_content(double value)
{
    return (sgm_content){.kind = SGM_KIND_NUMBER, .as.number = value};
}

sgm_content sgm_text_content(const char *value)
{
    return (sgm_content){.kind = SGM_KIND_TEXT, .as.text = value};
}

sgm_content sgm_tensor_content(sgm_tensor *value)
{
    return (sgm_content){.kind = SGM_KIND_TENSOR, .as.tensor = value};
}

sgm_content sgm_registry_content(sgm_registry *value)
{
    return (sgm_content){.kind = SGM_KIND_REGISTRY, .as.registry = value};
}

/* Empties *content before anything is freed, as freeing a registry may call functions of the program. */
void sgm_content_clear(sgm_content *content)
{
    if (content == NULL)
        return;
    sgm_content old = *content;
    *content = (sgm_content){0};
    if (old.kind == SGM_KIND_TEXT)
        sgm__free((void *)(uintptr_t)old.as.text);
    else if (old.kind == SGM_KIND_TENSOR)
        sgm_tensor_free(old.as.tensor);
    else if (old.kind == SGM_KIND_REGISTRY)
        sgm_registry_free(old.as.registry);
}

/* For contents that come from programs. */
sgm_status sgm__content_check(const sgm_content *content)
{
    if (content->kind <= SGM_KIND_NOTHING || content->kind > SGM_KIND_REGISTRY)
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected a content, got %s", sgm_kind_name(content->kind));
    if ((content->kind == SGM_KIND_TEXT && content->as.text == NULL) ||
        (content->kind == SGM_KIND_TENSOR && content->as.tensor == NULL) ||
        (content->kind == SGM_KIND_REGISTRY && content->as.registry == NULL))
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected %s, got NULL", sgm__kind_article(content->kind));
    return SGM_OK;
}

/* Called with the lock, which is why a registry is retained directly: sgm_registry_retain would do the same,
 * but a copy through a read-only registry must be a view. */
sgm_status sgm__content_copy(const sgm_content *content, bool read_only, sgm_content *copy)
{
    sgm_content made = *content;
    *copy = (sgm_content){0};
    if (made.kind == SGM_KIND_TEXT) {
        made.as.text = sgm__strdup(made.as.text);
        if (made.as.text == NULL)
            return SGM_ERROR_MEMORY;
    } else if (made.kind == SGM_KIND_TENSOR) {
        sgm_tensor_retain(made.as.tensor);
    } else if (made.kind == SGM_KIND_REGISTRY) {
        sgm__core *core = made.as.registry->core;
        sgm__core_retain(core);
        made.as.registry = read_only ? &core->view : made.as.registry;
    }
    *copy = made;
    return SGM_OK;
}

/* Compares bytes of contiguous copies: so NaNs equal themselves, and 0 differs from -0. Without memory for
 * the copies the tensors count as different. */
static bool tensors_equal(const sgm_tensor *a, const sgm_tensor *b)
{
    if (a == b)
        return true;
    if (a == NULL || b == NULL || sgm_tensor_dtype(a) != sgm_tensor_dtype(b) ||
        !sgm_shape_equal(sgm_tensor_shape(a), sgm_tensor_shape(b)))
        return false;
    sgm_tensor *rows_a = sgm_tensor_copy(a), *rows_b = sgm_tensor_copy(b);
    size_t size = (size_t)sgm_shape_elements(sgm_tensor_shape(a)) * sgm_dtype_size(sgm_tensor_dtype(a));
    bool equal =
        rows_a != NULL && rows_b != NULL &&
        (size == 0 || memcmp(sgm_tensor_const_data(rows_a), sgm_tensor_const_data(rows_b), size) == 0);
    sgm_tensor_free(rows_a);
    sgm_tensor_free(rows_b);
    return equal;
}

static bool texts_equal(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* A registry and its read-only view are equal: both are handles of the same core. */
static bool registries_equal(const sgm_registry *a, const sgm_registry *b)
{
    return a == b || (a != NULL && b != NULL && a->core == b->core);
}

/* Contents of different kinds differ, even an integer and a number of equal value. */
bool sgm_content_equal(const sgm_content *a, const sgm_content *b)
{
    if (a == NULL || b == NULL || a->kind != b->kind)
        return a == b;
    switch (a->kind) {
    case SGM_KIND_NOTHING:
        return true;
    case SGM_KIND_BOOLEAN:
        return a->as.boolean == b->as.boolean;
    case SGM_KIND_INTEGER:
        return a->as.integer == b->as.integer;
    case SGM_KIND_NUMBER: /* NaN equals NaN: a loss that stays NaN does not change */
        return a->as.number == b->as.number || (isnan(a->as.number) && isnan(b->as.number));
    case SGM_KIND_TEXT:
        return texts_equal(a->as.text, b->as.text);
    case SGM_KIND_TENSOR:
        return tensors_equal(a->as.tensor, b->as.tensor);
    case SGM_KIND_REGISTRY:
        return registries_equal(a->as.registry, b->as.registry);
    }
    return false;
}

bool sgm__content_same(const sgm_content *a, const sgm_content *b)
{
    return a->kind != SGM_KIND_TENSOR && sgm_content_equal(a, b);
}

/* Type and shape, "float32 (3, 4)": the numbers may be millions. */
static char *tensor_text(const sgm_tensor *tensor)
{
    char shape[128];
    if (tensor == NULL)
        return sgm__strdup("no tensor");
    return sgm__format("%s %s", sgm_dtype_name(sgm_tensor_dtype(tensor)),
                       sgm_shape_text(sgm_tensor_shape(tensor), shape, sizeof shape));
}

/* Takes no lock: a registry is described by its kind alone. Texts are cut off at `maximum_text` bytes. */
static char *describe(const sgm_content *content, int maximum_text)
{
    char number[32];
    switch (content->kind) {
    case SGM_KIND_BOOLEAN:
        return sgm__strdup(content->as.boolean ? "true" : "false");
    case SGM_KIND_INTEGER:
        return sgm__format("%lld", (long long)content->as.integer);
    case SGM_KIND_NUMBER:
        return sgm__strdup(sgm__number_text(content->as.number, number, sizeof number));
    case SGM_KIND_TEXT:
        return content->as.text != NULL ? sgm__format("'%.*s'", maximum_text, content->as.text)
                                        : sgm__strdup("no text");
    case SGM_KIND_TENSOR:
        return tensor_text(content->as.tensor);
    case SGM_KIND_NOTHING:
    case SGM_KIND_REGISTRY:
        break;
    }
    return sgm__strdup(sgm_kind_name(content->kind));
}

/* Cuts texts off at 100 bytes, as messages quote it. */
char *sgm__content_text(const sgm_content *content)
{
    return describe(content, 100);
}

/* Takes the tree's lock to count a registry's entries, so it is not for use with the lock held. */
char *sgm_content_describe(const sgm_content *content)
{
    if (content == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "expected a content to describe, got NULL");
        return NULL;
    }
    if (content->kind == SGM_KIND_REGISTRY && content->as.registry != NULL)
        return sgm__format("registry of %zu", sgm_registry_count(content->as.registry));
    return describe(content, INT32_MAX);
}

/* Words alternate between false and true. */
static bool parse_boolean(const char *text, bool *value)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(text, words[i]) == 0) {
            *value = i % 2 == 1;
            return true;
        }
    }
    return false;
}

/* Used for words of a command line, of a configuration and of the web page. The content belongs to the
 * caller. */
sgm_status sgm_content_parse(const char *text, sgm_kind kind, sgm_content *content)
{
    if (text == NULL || content == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected a text and a content to read it into, got NULL");
    sgm_content parsed = {.kind = kind};
    bool is_read = false;
    switch (kind) {
    case SGM_KIND_BOOLEAN:
        is_read = parse_boolean(text, &parsed.as.boolean);
        break;
    case SGM_KIND_INTEGER:
        is_read = sgm__parse_int64(text, &parsed.as.integer);
        break;
    case SGM_KIND_NUMBER:
        is_read = sgm__parse_double(text, &parsed.as.number);
        break;
    case SGM_KIND_TEXT:
        parsed.as.text = text;
        return sgm__content_copy(&parsed, false, content);
    case SGM_KIND_NOTHING:
    case SGM_KIND_TENSOR:
    case SGM_KIND_REGISTRY:
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "%s cannot be read from a text", sgm__kind_article(kind));
    }
    *content = is_read ? parsed : (sgm_content){0};
    if (!is_read)
        return sgm_fail(SGM_ERROR_TYPE, "expected %s, got '%.100s'", sgm__kind_article(kind), text);
    return SGM_OK;
}

/* --- checks against a kind and a row --- */

/* Numbers are never converted to integers, not even whole ones: a caller that means a count writes an
 * integer. */
sgm_status sgm__kind_convert(sgm_kind kind, const char *identifier, const sgm_content *content,
                             sgm_content *value)
{
    *value = *content;
    if (content->kind == kind)
        return SGM_OK;
    if (kind == SGM_KIND_NUMBER && content->kind == SGM_KIND_INTEGER) {
        *value = sgm_number_content((double)content->as.integer);
        return SGM_OK;
    }
    char *text = sgm__content_text(content);
    bool says_more = text != NULL && strcmp(text, sgm_kind_name(content->kind)) != 0;
    sgm_status status =
        sgm_fail(SGM_ERROR_TYPE, "%s: expected %s, got %s%s%s", identifier, sgm__kind_article(kind),
                 sgm_kind_name(content->kind), says_more ? " " : "", says_more ? text : "");
    sgm__free(text);
    return status;
}

/* NaN is outside of any bounds. If the value is too small and there is no real maximum, the message says "of
 * at least" and leaves the maximum out. */
static sgm_status check_bounds(const sgm_option *option, const char *identifier, const sgm_content *value)
{
    double number = value->kind == SGM_KIND_INTEGER ? (double)value->as.integer : value->as.number;
    if (option->minimum == option->maximum || (number >= option->minimum && number <= option->maximum))
        return SGM_OK;
    bool is_open = option->maximum >= ENDLESS && number < option->minimum;
    char minimum[32], maximum[32], got[32];
    return sgm_fail(SGM_ERROR_ARGUMENT, "%s: expected %s %s%s%s%s%s%s, got %s", identifier,
                    sgm__kind_article(value->kind), is_open ? "of at least " : "from ",
                    sgm__number_text(option->minimum, minimum, sizeof minimum), is_open ? "" : " to ",
                    is_open ? "" : sgm__number_text(option->maximum, maximum, sizeof maximum),
                    option->unit != NULL ? " " : "", option->unit != NULL ? option->unit : "",
                    sgm__number_text(number, got, sizeof got));
}

/* Names all choices, and the nearest one, if the text is none of them. */
static sgm_status check_choice(const sgm_option *option, const char *identifier, const char *text)
{
    size_t count = 0;
    if (option->choices == NULL)
        return SGM_OK;
    for (; option->choices[count] != NULL; count++)
        if (strcmp(option->choices[count], text) == 0)
            return SGM_OK;
    sgm__text list = {0};
    for (size_t i = 0; i < count; i++)
        sgm__text_append(&list, "%s'%s'", i > 0 ? ", " : "", option->choices[i]);
    char *choices = sgm__text_take(&list);
    if (choices == NULL)
        return SGM_ERROR_MEMORY;
    const char *nearest = sgm__nearest(text, option->choices, count);
    sgm_status status = sgm_fail(SGM_ERROR_ARGUMENT, "%s: expected one of %s, got '%.100s'%s%s%s", identifier,
                                 choices, text, nearest != NULL ? "; did you mean '" : "",
                                 nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
    sgm__free(choices);
    return status;
}

/* `value` is in the row's kind already. Booleans, tensors and registries have no bounds. */
sgm_status sgm__option_check(const sgm_option *option, const char *identifier, const sgm_content *value)
{
    if (option == NULL)
        return SGM_OK;
    if (value->kind == SGM_KIND_INTEGER || value->kind == SGM_KIND_NUMBER)
        return check_bounds(option, identifier, value);
    if (value->kind == SGM_KIND_TEXT)
        return check_choice(option, identifier, value->as.text);
    return SGM_OK;
}
