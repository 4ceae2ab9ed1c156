/* Texts with their classes, and texts that are like each other, as examples for encoders (sigma/text_data.h).
 *
 * Each text is a row of tokens with its special ones, as sgm_pretrained_predict_texts makes it, and its
 * length. */
#include "options.h"
#include "text.h"
#include "tokenizer/json_lines.h"
#include "tokenizer/text_classes.h"
#include "tokenizer/tokenizer.h"

#include <sigma/text_data.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_WINDOW 512
#define LONGEST_WINDOW (1 << 20)
#define PAIR_EXPECTED                                                                                        \
    "expected an object with anchor and positive, and perhaps negative, such as {\"anchor\": \"a large "     \
    "cat\", "                                                                                                \
    "\"positive\": \"a big cat\"}"

typedef struct collection {
    const sgm_pretrained_tokenizer *tokenizer;
    int64_t window, count, room; /* rows that are there, and that there is room for */
    float *inputs, *lengths;     /* (rows, window) and (rows) */
    float *segments;             /* (rows, window); NULL: texts have no pairs */
    bool pairs;                  /* labelled texts have */
    float *numbers;              /* (rows): of classes; of pairs 0 */
    json_t *classes;             /* numbers of classes by their names; NULL: these are pairs */
    int64_t group;               /* texts of a line of pairs; 0: none was read yet */
    sgm_text_counts counts;
} collection;

/* --- rows --- */

static sgm_status grow(float **list, size_t bytes)
{
    float *grown = realloc(*list, bytes);
    if (!grown)
        return sgm_fail(SGM_ERROR_MEMORY, "no memory for texts of %zu bytes", bytes);
    *list = grown;
    return SGM_OK;
}

static sgm_status make_room(collection *c)
{
    if (c->count < c->room)
        return SGM_OK;
    const size_t room = c->room > 0 ? 2 * (size_t)c->room : 64;
    SGM__PASS(grow(&c->inputs, room * (size_t)c->window * sizeof(float)));
    SGM__PASS(grow(&c->lengths, room * sizeof(float)));
    if (c->pairs)
        SGM__PASS(grow(&c->segments, room * (size_t)c->window * sizeof(float)));
    SGM__PASS(grow(&c->numbers, room * sizeof(float)));
    c->room = (int64_t)room;
    return SGM_OK;
}

/* The tokens of a text and its pair, if there is one, cut to so many; *segments if the collection has pairs.
 * The caller frees both. NULL: an error. */
static sgm_tensor *encode_up_to(const collection *c, const char *text, const char *pair, int64_t longest,
                                sgm_tensor **segments)
{
    return sgm_pretrained_tokenizer_encode(c->tokenizer, text, strlen(text), .longest = longest, .pair = pair,
                                           .pair_size = pair ? strlen(pair) : 0,
                                           .segments = c->pairs ? segments : NULL);
}

/* The same, all, and cut to the window where these are more. */
static sgm_tensor *encode(const collection *c, const char *text, const char *pair, int64_t *all,
                          sgm_tensor **segments)
{
    sgm_tensor *tokens = encode_up_to(c, text, pair, 0, segments);
    *all = tokens ? sgm_tensor_shape(tokens)->dims[0] : 0;
    if (*all <= c->window)
        return tokens;
    sgm_tensor_free(tokens);
    sgm_tensor_free(*segments);
    *segments = NULL;
    return encode_up_to(c, text, pair, c->window, segments);
}

/* Row number c->count of a field. Numbers behind a text do not count, so that any fits; 0 is one of every
 * vocabulary. */
static void fill_row(const collection *c, float *field, const sgm_tensor *numbers)
{
    const int64_t *from = sgm_tensor_const_data(numbers), count = sgm_tensor_shape(numbers)->dims[0];
    for (int64_t i = 0; i < c->window; i++)
        field[c->count * c->window + i] = i < count ? (float)from[i] : 0;
}

/* `pair` NULL: there is none. */
static sgm_status add_text(collection *c, const char *text, const char *pair, int64_t number)
{
    int64_t all;
    sgm_tensor *segments = NULL, *tokens = encode(c, text, pair, &all, &segments);
    sgm_status status = tokens ? make_room(c) : sgm_last_status();
    if (status == SGM_OK) {
        const int64_t count = sgm_tensor_shape(tokens)->dims[0];
        fill_row(c, c->inputs, tokens);
        if (c->pairs)
            fill_row(c, c->segments, segments);
        c->lengths[c->count] = (float)count;
        c->numbers[c->count++] = (float)number;
        c->counts.texts++;
        c->counts.cut += all > count;
        c->counts.empty += !*text || (pair && !*pair);
        c->counts.tokens += count;
        c->counts.longest = all > c->counts.longest ? all : c->counts.longest;
    }
    sgm_tensor_free(tokens);
    sgm_tensor_free(segments);
    return status;
}

/* --- lines --- */

static sgm_status add_labelled(void *user, const json_t *object)
{
    collection *c = user;
    const char *text;
    char *label;
    const json_t *given = json_object_get(object, "pair");
    if (c->count == 0)
        c->pairs = given != NULL;
    if (c->pairs ? !json_is_string(given) : given != NULL)
        return sgm_fail(SGM_ERROR_FORMAT, c->pairs ? "expected a text as pair, as the first line has one"
                                                   : "this line has a pair, and the first one has none");
    SGM__PASS(sgm__text_label(object, &text, &label));
    const json_t *number = json_object_get(c->classes, label);
    sgm_status status =
        number ? add_text(c, text, json_string_value(given), json_integer_value(number))
               : sgm_fail(SGM_ERROR_FORMAT, "the label '%.100s' is none of the %zu classes that are learnt",
                          label, json_object_size(c->classes));
    free(label);
    return status;
}

static sgm_status add_pair(void *user, const json_t *object)
{
    static const char *const keys[] = {"anchor", "positive", "negative"};
    collection *c = user;
    const char *texts[3];
    int64_t count = 0;
    for (int i = 0; i < 3; i++)
        if ((texts[i] = json_string_value(json_object_get(object, keys[i]))) != NULL)
            count = i + 1;
        else if (i < 2 || json_object_get(object, keys[i]))
            return sgm_fail(SGM_ERROR_FORMAT, PAIR_EXPECTED);
    if (c->group > 0 && c->group != count)
        return sgm_fail(SGM_ERROR_FORMAT,
                        "this line has %s, and the lines before have %s; each or none has a negative",
                        count == 3 ? "a negative" : "none", c->group == 3 ? "one" : "none");
    c->group = count;
    for (int64_t i = 0; i < count; i++)
        SGM__PASS(add_text(c, texts[i], NULL, 0));
    return SGM_OK;
}

/* --- datasets --- */

#define MOST_SHARES ((int64_t)1 << 28) /* a gigabyte */

/* (rows, classes), 1 where the row's class is. */
static sgm_tensor *shares_of(const collection *c)
{
    const int64_t classes = (int64_t)json_object_size(c->classes);
    const sgm_shape shape = sgm_shape_of(c->count, classes);
    if (c->count > 0 && classes > MOST_SHARES / c->count) {
        sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "%lld classes of %lld lines are too many: the targets would be %lld numbers, of %lld at most; "
            "is the label the number of a line?",
            (long long)classes, (long long)c->count, (long long)(classes * c->count), (long long)MOST_SHARES);
        return NULL;
    }
    sgm_tensor *shares = sgm_tensor_create(SGM_FLOAT32, &shape);
    for (int64_t i = 0; shares && i < c->count; i++)
        ((float *)sgm_tensor_data(shares))[i * classes + (int64_t)c->numbers[i]] = 1;
    return shares;
}

/* The dataset copies its fields. */
static sgm_dataset *dataset_of(const collection *c, const char *name)
{
    const sgm_shape rows = sgm_shape_of(c->count, c->window), line = sgm_shape_of(c->count);
    const size_t count = c->pairs ? 4 : c->classes ? 3 : 2;
    sgm_tensor *fields[] = {sgm_tensor_wrap(SGM_FLOAT32, &rows, c->inputs, NULL, NULL),
                            sgm_tensor_wrap(SGM_FLOAT32, &line, c->lengths, NULL, NULL),
                            c->classes ? shares_of(c) : NULL,
                            c->pairs ? sgm_tensor_wrap(SGM_FLOAT32, &rows, c->segments, NULL, NULL) : NULL};
    bool there = true;
    for (size_t i = 0; i < count; i++)
        there = there && fields[i];
    sgm_dataset *dataset =
        there ? sgm_dataset_create_from(
                    name, (const char *const[]){"inputs", "lengths", "targets", "segments"}, fields, count)
              : NULL;
    for (int i = 0; i < 4; i++)
        sgm_tensor_free(fields[i]);
    return dataset;
}

/* Reads the file by `add`. */
static sgm_status collect(collection *c, const char *path, const char *expected,
                          sgm_status (*add)(void *user, const json_t *object))
{
    if (!c->tokenizer || !path)
        return sgm_fail(SGM_ERROR_ARGUMENT, "texts need a tokenizer and the path of a file");
    if (c->window < 1 || c->window > LONGEST_WINDOW)
        return sgm_fail(SGM_ERROR_ARGUMENT, "the window of texts is 1 to %d tokens, not %lld", LONGEST_WINDOW,
                        (long long)c->window);
    SGM__PASS(sgm__json_lines_read(path, 0, expected, add, c, NULL));
    return c->count > 0 ? SGM_OK : sgm_fail(SGM_ERROR_FORMAT, "%s: there are no texts", path);
}

static void collection_free(collection *c)
{
    json_decref(c->classes);
    free(c->inputs);
    free(c->lengths);
    free(c->segments);
    free(c->numbers);
}

/* NULL: out of memory, or a name twice. */
static json_t *number_classes(const char *const *names)
{
    json_t *classes = json_object();
    for (size_t i = 0; classes && names[i]; i++)
        if (json_object_get(classes, names[i]) ||
            json_object_set_new(classes, names[i], json_integer((json_int_t)i)) != 0) {
            sgm_fail(SGM_ERROR_ARGUMENT, "the class '%.100s' is given twice, or is not UTF-8", names[i]);
            json_decref(classes);
            return NULL;
        }
    return classes;
}

static sgm_dataset *labelled(collection *c, const char *name, const char *path, const char *const *classes)
{
    sgm_dataset *dataset = NULL;
    if ((c->classes = number_classes(classes)) != NULL &&
        collect(c, path, SGM__LABELLED_EXPECTED, add_labelled) == SGM_OK)
        dataset = dataset_of(c, name);
    if (dataset && sgm_dataset_set_class_names(dataset, classes) != SGM_OK) {
        sgm_dataset_free(dataset);
        dataset = NULL;
    }
    return dataset;
}

sgm_dataset *sgm_labelled_text_dataset_with(const char *name, const sgm_pretrained_tokenizer *tokenizer,
                                            const char *path, const sgm_text_data_options *options)
{
    sgm_text_data_options given;
    if (sgm__take_options(&given, sizeof given, options) != SGM_OK)
        return NULL;
    collection c = {.tokenizer = tokenizer, .window = given.window ? given.window : DEFAULT_WINDOW};
    char **learnt = given.classes ? NULL : sgm_labelled_text_classes(path);
    sgm_dataset *dataset =
        given.classes || learnt
            ? labelled(&c, name, path, given.classes ? given.classes : (const char *const *)learnt)
            : NULL;
    if (given.counts)
        *given.counts = c.counts;
    sgm_text_classes_free(learnt);
    collection_free(&c);
    return dataset;
}

sgm_dataset *sgm_text_pair_dataset_with(const char *name, const sgm_pretrained_tokenizer *tokenizer,
                                        const char *path, const sgm_text_data_options *options)
{
    sgm_text_data_options given;
    if (sgm__take_options(&given, sizeof given, options) != SGM_OK)
        return NULL;
    collection c = {.tokenizer = tokenizer, .window = given.window ? given.window : DEFAULT_WINDOW};
    sgm_dataset *dataset = NULL;
    if (collect(&c, path, PAIR_EXPECTED, add_pair) == SGM_OK)
        dataset = dataset_of(&c, name);
    if (dataset && sgm_dataset_set_group(dataset, c.group) != SGM_OK) {
        sgm_dataset_free(dataset);
        dataset = NULL;
    }
    if (given.counts)
        *given.counts = c.counts;
    collection_free(&c);
    return dataset;
}
