/* What lines of texts are, and the classes that their labels name (sigma/text_data.h). */
#include "tokenizer/text_classes.h"
#include "text.h"
#include "tokenizer/json_lines.h"

#include <sigma/text_data.h>
#include <stdlib.h>
#include <string.h>

#define MOST_CLASSES 100000

/* --- what a line is --- */

static sgm_status keep_first(void *user, const json_t *object)
{
    *(json_t **)user = json_incref((json_t *)(uintptr_t)object);
    return SGM_OK;
}

/* The first object of a file, which the caller releases. */
static json_t *first_line(const char *path)
{
    json_t *first = NULL;
    if (!path)
        sgm_fail(SGM_ERROR_ARGUMENT, "the path of a file of texts is NULL");
    else if (sgm__json_lines_read(path, 1, "expected an object on each line", keep_first, &first, NULL) ==
                 SGM_OK &&
             !first)
        sgm_fail(SGM_ERROR_FORMAT, "%s: there are no lines", path);
    return first;
}

/* Data of preferences has labels, too: {"prompt": ..., "completion": ..., "label": true}. */
static bool is_chat(const json_t *line)
{
    return json_object_get(line, "messages") || json_object_get(line, "prompt");
}

sgm_text_lines sgm_text_lines_of(const char *path)
{
    json_t *first = first_line(path);
    const sgm_text_lines kind = !first                             ? SGM_TEXT_LINES_FAILED
                                : is_chat(first)                   ? SGM_TEXT_LINES_OTHERS
                                : json_object_get(first, "label")  ? SGM_TEXT_LINES_LABELLED
                                : json_object_get(first, "anchor") ? SGM_TEXT_LINES_PAIRS
                                                                   : SGM_TEXT_LINES_OTHERS;
    json_decref(first);
    return kind;
}

bool sgm_labelled_text_has_pairs(const char *path)
{
    json_t *first = first_line(path);
    const bool has_pairs = first && json_object_get(first, "pair");
    json_decref(first);
    return has_pairs;
}

int64_t sgm_text_pair_size(const char *path)
{
    json_t *first = first_line(path);
    const int64_t size = !first ? 0 : json_object_get(first, "negative") ? 3 : 2;
    json_decref(first);
    return size;
}

/* --- labels --- */

sgm_status sgm__text_label(const json_t *object, const char **text, char **label)
{
    const json_t *given = json_object_get(object, "label");
    *text = json_string_value(json_object_get(object, "text"));
    *label = json_is_string(given)    ? sgm__new_text("%s", json_string_value(given))
             : json_is_integer(given) ? sgm__new_text("%lld", (long long)json_integer_value(given))
                                      : NULL;
    if (*text && *label && **label)
        return SGM_OK;
    const bool right = *text && (json_is_integer(given) || json_string_length(given) > 0);
    free(*label);
    *label = NULL;
    return right ? SGM_ERROR_MEMORY : sgm_fail(SGM_ERROR_FORMAT, SGM__LABELLED_EXPECTED);
}

/* Labels as keys, in the order in which they come. */
static sgm_status note_label(void *user, const json_t *object)
{
    json_t *seen = user;
    const char *text;
    char *label;
    sgm_status status = sgm__text_label(object, &text, &label);
    if (status != SGM_OK)
        return status;
    if (json_object_set_new(seen, label, json_true()) != 0)
        status = sgm_fail(SGM_ERROR_MEMORY, "no memory for the names of classes");
    else if (json_object_size(seen) > MOST_CLASSES)
        status = sgm_fail(SGM_ERROR_FORMAT, "there are more than %d classes", MOST_CLASSES);
    free(label);
    return status;
}

static bool is_number(const char *label, long long *number)
{
    char *end, again[32];
    *number = strtoll(label, &end, 10);
    snprintf(again, sizeof again, "%lld", *number);
    return end != label && strcmp(again, label) == 0;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int by_number(const void *a, const void *b)
{
    long long first, second;
    is_number(*(const char *const *)a, &first);
    is_number(*(const char *const *)b, &second);
    return first < second ? -1 : first > second;
}

static char **sorted(json_t *seen)
{
    const size_t total = json_object_size(seen);
    char **classes = calloc(total + 1, sizeof *classes);
    bool numbers = true, failed = !classes;
    size_t count = 0;
    const char *label;
    json_t *value;
    long long number;
    json_object_foreach(seen, label, value)
    {
        numbers = numbers && is_number(label, &number);
        failed = failed || !(classes[count++] = strdup(label));
    }
    if (failed) {
        sgm_fail(SGM_ERROR_MEMORY, "no memory for the names of %zu classes", total);
        sgm_text_classes_free(classes);
        return NULL;
    }
    qsort(classes, total, sizeof *classes, numbers ? by_number : by_bytes);
    return classes;
}

char **sgm_labelled_text_classes(const char *path)
{
    json_t *seen = json_object();
    char **classes = NULL;
    if (!path || !seen)
        sgm_fail(path ? SGM_ERROR_MEMORY : SGM_ERROR_ARGUMENT, "classes of texts need the path of a file");
    else if (sgm__json_lines_read(path, 0, SGM__LABELLED_EXPECTED, note_label, seen, NULL) == SGM_OK) {
        if (json_object_size(seen) < 2)
            sgm_fail(SGM_ERROR_FORMAT, "%s: expected texts of at least 2 classes, got %zu", path,
                     json_object_size(seen));
        else
            classes = sorted(seen);
    }
    json_decref(seen);
    return classes;
}

void sgm_text_classes_free(char **classes)
{
    for (size_t i = 0; classes && classes[i]; i++)
        free(classes[i]);
    free(classes);
}
