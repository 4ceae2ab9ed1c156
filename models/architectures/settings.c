/* Reading config.json for an architecture, and writing its network. See settings.h. */
#include "architectures/settings.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Steps of a network whose model would take more, unless the caller wants so many. */
#define DEFAULT_CONTEXT 1024

void sgm__describe_fail(sgm__description *d, sgm_status status, const char *format, ...)
{
    char message[600];
    va_list arguments;
    if (d->status != SGM_OK)
        return;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    d->status = sgm_fail(status, "'%s': %s", d->path, message);
}

/* --- values --- */

/* NULL: absent, or null. */
static const json_t *find(const sgm__description *d, const char *key)
{
    const json_t *value = d->config;
    for (const char *dot; (dot = strchr(key, '.')) != NULL; key = dot + 1) {
        char group[64];
        snprintf(group, sizeof group, "%.*s", (int)(dot - key), key);
        value = json_object_get(value, group);
    }
    value = json_object_get(value, key);
    return json_is_null(value) ? NULL : value;
}

bool sgm__setting_has(const sgm__description *d, const char *key)
{
    return find(d, key) != NULL;
}

/* What messages call a key: by its name in the metadata, where settings come of those. */
static const char *named(sgm__description *d, const char *key)
{
    const sgm__gguf_setting *setting = d->gguf != NULL ? d->gguf->settings : NULL;
    for (; setting != NULL && setting->own != NULL; setting++)
        if (strcmp(setting->own, key) == 0) {
            snprintf(d->named, sizeof d->named, "%s.%s", d->gguf->type, setting->theirs);
            return d->named;
        }
    return key;
}

/* What a value is, for messages. */
static const char *shown(const json_t *value, char text[80])
{
    char *dumped = value != NULL ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    snprintf(text, 80, "%.60s%s", dumped != NULL ? dumped : "",
             dumped != NULL && strlen(dumped) > 60 ? "..." : "");
    free(dumped);
    return text;
}

static int64_t whole(sgm__description *d, const char *key, int64_t most, int64_t otherwise)
{
    const json_t *value = find(d, key);
    char text[80];
    if (value == NULL && otherwise > 0)
        return otherwise;
    if (value == NULL)
        sgm__describe_fail(d, SGM_ERROR_FORMAT, "'%s' is missing; a whole number is wanted", named(d, key));
    else if (!json_is_integer(value) || json_integer_value(value) < 1 || json_integer_value(value) > most)
        sgm__describe_fail(d, SGM_ERROR_FORMAT, "'%s' is %s; a whole number from 1 to %lld is wanted",
                           named(d, key), shown(value, text), (long long)most);
    return d->status == SGM_OK ? json_integer_value(value) : 1;
}

/* So that a small file cannot ask for a large network. */
static int64_t at_most(sgm__description *d, const char *key, int64_t number, int64_t most, const char *what)
{
    if (number <= most || d->status != SGM_OK)
        return number;
    sgm__describe_fail(d, SGM_ERROR_FORMAT, "'%s' is %lld, but the files have %lld %s in all", named(d, key),
                       (long long)number, (long long)most, what);
    return 1;
}

int64_t sgm__setting_size(sgm__description *d, const char *key, int64_t otherwise)
{
    return at_most(d, key, whole(d, key, SGM__LARGEST_SIZE, otherwise), d->elements, "numbers");
}

int64_t sgm__setting_steps(sgm__description *d, const char *key, int64_t otherwise)
{
    return whole(d, key, SGM__LARGEST_SIZE, otherwise);
}

int64_t sgm__setting_token(sgm__description *d, const char *key, int64_t otherwise)
{
    const json_t *value = find(d, key);
    char text[80];
    if (value == NULL)
        return otherwise;
    if (json_is_integer(value) && json_integer_value(value) >= 0 &&
        json_integer_value(value) <= SGM__LARGEST_SIZE)
        return json_integer_value(value);
    sgm__describe_fail(d, SGM_ERROR_FORMAT, "'%s' is %s; a whole number from 0 to %d is wanted",
                       named(d, key), shown(value, text), SGM__LARGEST_SIZE);
    return otherwise;
}

int64_t sgm__setting_layers(sgm__description *d, const char *key)
{
    return at_most(d, key, whole(d, key, SGM__MOST_LAYERS, 0), d->tensor_count, "tensors");
}

int64_t sgm__setting_members(sgm__description *d, const char *key, int64_t otherwise)
{
    const json_t *value = find(d, key);
    char text[80];
    if (value == NULL)
        return otherwise;
    if (json_is_object(value) && json_object_size(value) > 0)
        return (int64_t)json_object_size(value);
    sgm__describe_fail(d, SGM_ERROR_FORMAT, "'%s' is %s; an object with members is wanted", named(d, key),
                       shown(value, text));
    return otherwise;
}

bool sgm__setting_has_members(sgm__description *d, const char *key)
{
    const json_t *value = find(d, key);
    char text[80];
    if (value != NULL && !json_is_object(value))
        sgm__describe_fail(d, SGM_ERROR_FORMAT, "'%s' is %s; an object is wanted", named(d, key),
                           shown(value, text));
    return json_object_size(value) > 0;
}

size_t sgm__setting_list(sgm__description *d, const char *key, int64_t most, int64_t *numbers, size_t room)
{
    const json_t *list = find(d, key);
    size_t count = json_array_size(list);
    bool good = count > 0 && count <= room;
    char text[80];
    for (size_t i = 0; good && i < count; i++) {
        const json_t *value = json_array_get(list, i);
        numbers[i] = json_integer_value(value);
        good = json_is_integer(value) && numbers[i] >= 1 && numbers[i] <= most;
    }
    if (!good)
        sgm__describe_fail(d, SGM_ERROR_FORMAT,
                           "'%s' is %s; a list of 1 to %zu whole numbers from 1 to %lld is wanted",
                           named(d, key), shown(list, text), room, (long long)most);
    return good ? count : 0;
}

double sgm__setting_number(sgm__description *d, const char *key, double otherwise)
{
    const json_t *value = find(d, key);
    char text[80];
    if (value == NULL && otherwise > 0)
        return otherwise;
    if (json_is_number(value) && json_number_value(value) > 0 && isfinite(json_number_value(value)))
        return json_number_value(value);
    sgm__describe_fail(d, SGM_ERROR_FORMAT, "'%s' is %s; a number above 0 is wanted", named(d, key),
                       value != NULL ? shown(value, text) : "missing");
    return 1;
}

bool sgm__setting_flag(sgm__description *d, const char *key, bool otherwise)
{
    const json_t *value = find(d, key);
    char text[80];
    if (value == NULL)
        return otherwise;
    if (!json_is_boolean(value))
        sgm__describe_fail(d, SGM_ERROR_FORMAT, "'%s' is %s; true or false is wanted", named(d, key),
                           shown(value, text));
    return json_is_true(value);
}

const char *sgm__setting_text(sgm__description *d, const char *key, const char *otherwise)
{
    const json_t *value = find(d, key);
    char text[80];
    if (value == NULL)
        return otherwise;
    if (json_is_string(value))
        return json_string_value(value);
    sgm__describe_fail(d, SGM_ERROR_FORMAT, "'%s' is %s; a text is wanted", named(d, key),
                       shown(value, text));
    return otherwise;
}

const char *sgm__setting_activation(sgm__description *d, const char *key, const char *otherwise)
{
    static const struct {
        const char *theirs, *own;
    } names[] = {{"gelu", "gelu"},           {"gelu_new", "gelu_tanh"}, {"gelu_pytorch_tanh", "gelu_tanh"},
                 {"gelu_fast", "gelu_tanh"}, {"silu", "silu"},          {"swish", "silu"},
                 {"relu", "relu"},           {"tanh", "tanh"},          {"relu6", "relu6"}};
    const char *name = sgm__setting_text(d, key, otherwise);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].theirs, name) == 0)
            return names[i].own;
    sgm__describe_fail(d, SGM_ERROR_UNSUPPORTED,
                       "'%s' is \"%.40s\", which is not known; these are: gelu, gelu_new, gelu_pytorch_tanh, "
                       "gelu_fast, silu, swish, relu, relu6, tanh",
                       named(d, key), name);
    return "identity";
}

void sgm__setting_must_be(sgm__description *d, const char *key, bool value)
{
    if (sgm__setting_flag(d, key, value) != value)
        sgm__describe_fail(d, SGM_ERROR_UNSUPPORTED, "'%s' is %s; models are only read where it is %s",
                           named(d, key), value ? "false" : "true", value ? "true" : "false");
}

bool sgm__setting_is_for(const sgm__description *d, const char *ending)
{
    const json_t *classes = find(d, "architectures");
    for (size_t i = 0; i < json_array_size(classes); i++) {
        const char *name = json_string_value(json_array_get(classes, i));
        size_t length = name != NULL ? strlen(name) : 0, end = strlen(ending);
        if (name != NULL && length >= end && strcmp(name + length - end, ending) == 0)
            return true;
    }
    return false;
}

/* --- what comes of it --- */

#define LETTERS_ALIKE 3 /* at the beginning of a task and of what is taken for it */

/* Whether `word` is one of the words of a text. */
static bool is_among(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = words; (at = strstr(at, word)) != NULL; at += length)
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0') && length > 0)
            return true;
    return false;
}

/* The word that begins as a misspelt one does, of *length characters; 0: none. */
static const char *near_word(const char *words, const char *word, size_t *length)
{
    const char *at = words;
    for (; *at != '\0'; at += *length + (at[*length] == ' ')) {
        *length = strcspn(at, " ");
        if (strncmp(at, word, LETTERS_ALIKE) == 0)
            return at;
    }
    *length = 0;
    return at;
}

/* The words become a list: embed, classify, fill. */
static void refuse_task(sgm__description *d, const char *tasks, const char *task)
{
    char list[128];
    size_t length = 0, meant = 0;
    const char *near = near_word(tasks, task, &meant);
    for (; *tasks != '\0' && length + 3 < sizeof list; tasks++) {
        if (*tasks == ' ')
            list[length++] = ',';
        list[length++] = *tasks;
    }
    list[length] = '\0';
    sgm__describe_fail(d, SGM_ERROR_ARGUMENT,
                       "the task '%.40s' is not one of this architecture; expected %s%s%.*s%s", task, list,
                       meant > 0 ? " (did you mean '" : "", (int)meant, near, meant > 0 ? "'?)" : "");
}

void sgm__describe_task(sgm__description *d, const char *tasks, const char *usual)
{
    const char *task = d->wanted_task != NULL ? d->wanted_task : usual;
    if (!is_among(tasks, task))
        refuse_task(d, tasks, task);
    else
        snprintf(d->task, sizeof d->task, "%s", task);
}

void sgm__describe_context(sgm__description *d, int64_t longest)
{
    d->longest = longest;
    int64_t usual = d->usual_context > 0 ? d->usual_context : DEFAULT_CONTEXT;
    d->context = d->wanted_context > 0 ? d->wanted_context : longest < usual ? longest : usual;
    if (d->context > longest)
        sgm__describe_fail(d, SGM_ERROR_ARGUMENT,
                           "a context of %lld steps is wanted, but the model was trained for %lld; choose at "
                           "most so many",
                           (long long)d->context, (long long)longest);
}

int64_t sgm__describe_tokens(sgm__description *d, const char *key)
{
    return d->tokens = sgm__setting_size(d, key, 0);
}

int64_t sgm__describe_classes(sgm__description *d)
{
    d->classes = d->wanted_classes > 0 ? d->wanted_classes : sgm__setting_members(d, "id2label", 2);
    return d->classes;
}

void sgm__describe_heads(sgm__description *d, int64_t heads, int64_t shared, int64_t size)
{
    d->queries = heads * size;
    d->keys = shared * size;
    if (d->queries > d->elements || d->keys > d->elements)
        sgm__describe_fail(
            d, SGM_ERROR_FORMAT, "%lld heads of %lld numbers are more than the files have, %lld",
            (long long)(heads > shared ? heads : shared), (long long)size, (long long)d->elements);
}

void sgm__network_put(sgm__description *d, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (vfprintf(d->text, format, arguments) < 0)
        sgm__describe_fail(d, SGM_ERROR_MEMORY, "no memory for the network");
    va_end(arguments);
}

void sgm__network_logits(sgm__description *d, bool tied)
{
    if (tied)
        sgm__network_put(d, " + tied_dense(of=tokens, name=logits)");
    else
        sgm__network_put(d, " + dense(%lld, time_distributed, no_bias, name=logits)", (long long)d->tokens);
    sgm__network_put(d, " + softmax_cross_entropy");
}

/* Each class by itself, yes or no; the mean over them, of which the cost has the sum. */
static void put_labels(sgm__description *d, int64_t classes)
{
    char share[SGM__NUMBER_TEXT];
    sgm__network_number(1.0 / (double)classes, share);
    sgm__network_put(d, " + binary_cross_entropy(importance=%s)", share);
}

/* Without a type transformers takes one output for a number. Classes that are begun anew are of no type. */
void sgm__network_cost(sgm__description *d, int64_t classes)
{
    const char *usual = classes > 1 ? "single_label_classification" : "regression";
    const char *type = d->wanted_classes > 0 ? usual : sgm__setting_text(d, "problem_type", usual);
    if (strcmp(type, "single_label_classification") == 0)
        sgm__network_put(d, " + softmax_cross_entropy");
    else if (strcmp(type, "regression") == 0)
        sgm__network_put(d, " + mean_squared");
    else if (strcmp(type, "multi_label_classification") == 0)
        put_labels(d, classes);
    else
        sgm__describe_fail(d, SGM_ERROR_UNSUPPORTED,
                           "'problem_type' is \"%.40s\"; these are known: single_label_classification, "
                           "multi_label_classification, regression",
                           type);
}

void sgm__network_number(double number, char text[SGM__NUMBER_TEXT])
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, SGM__NUMBER_TEXT, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            return;
    }
}
