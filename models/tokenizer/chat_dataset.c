/* Lines of chats, of prompts with completions and of texts as examples of the next token (sigma/chats.h).
 *
 * Each example is encoded as a whole. Where an answer begins and ends in it is found by encoding the text up
 * to there as well: the answer's tokens begin where the two differ. So a token that lies across the border
 * belongs to the answer, and no token is another one than in the whole text. */
#include "options.h"
#include "text.h"
#include "tokenizer/json_lines.h"
#include "tokenizer/tokenizer.h"

#include <sigma/chats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEFAULT_WINDOW 512
#define LONGEST_WINDOW (1 << 20)
#define MOST_MESSAGES 10000
#define OPEN_ROWS                                                                                            \
    64 /* that are looked at for room, so that a file of a million lines is not read for hours */
#define IGNORED (-1.0F)
#define EXPECTED                                                                                             \
    "expected an object with messages, with prompt and completion, or with text, such as "                   \
    "{\"prompt\": \"2 + 2 =\", \"completion\": \" 4\"}"

typedef struct collection {
    const sgm_pretrained_tokenizer *tokenizer;
    int64_t window;
    bool packing;
    time_t now; /* one for the whole file: a chat and its beginnings may have the date in them */
    float *inputs, *targets, *starts; /* (counts.rows, window) each; starts: with packing */
    int64_t *used;                    /* places of each row that have tokens */
    size_t capacity;                  /* rows that there is room for */
    int64_t line;                     /* that is read, from 1 */
    sgm_chat_counts counts;
} collection;

/* --- one example --- */

/* A text as tokens, and which of them are learnt. */
typedef struct example {
    sgm_tensor *tensor;
    const int64_t *tokens;
    int64_t count;
    bool *learnt;
} example;

static void example_free(example *e)
{
    sgm_tensor_free(e->tensor);
    free(e->learnt);
}

static sgm_tensor *encode(const collection *c, const char *text, bool special)
{
    return sgm_pretrained_tokenizer_encode(c->tokenizer, text, strlen(text), .no_special = !special);
}

static sgm_status example_of(const collection *c, const char *text, bool special, example *e)
{
    *e = (example){.tensor = encode(c, text, special)};
    if (!e->tensor)
        return sgm_last_status();
    e->tokens = sgm_tensor_const_data(e->tensor);
    e->count = sgm_tensor_shape(e->tensor)->dims[0];
    e->learnt = calloc((size_t)e->count + 1, sizeof *e->learnt);
    return e->learnt ? SGM_OK : sgm_fail(SGM_ERROR_MEMORY, "no memory for a text");
}

/* How many tokens of the example are those of `text`, which it begins with; -1: out of memory. */
static int64_t shared(const collection *c, const example *e, const char *text, bool special)
{
    sgm_tensor *tensor = encode(c, text, special);
    const int64_t *tokens = tensor ? sgm_tensor_const_data(tensor) : NULL;
    const int64_t most = tensor ? sgm_tensor_shape(tensor)->dims[0] : 0;
    int64_t count = 0;
    while (count < most && count < e->count && tokens[count] == e->tokens[count])
        count++;
    sgm_tensor_free(tensor);
    return tensor ? count : -1;
}

static sgm_status learn(example *e, int64_t begin, int64_t end)
{
    if (begin < 0 || end < 0)
        return sgm_last_status();
    for (int64_t i = begin; i < end; i++)
        e->learnt[i] = true;
    return SGM_OK;
}

static sgm_status grow(float **list, size_t bytes)
{
    float *grown = realloc(*list, bytes);
    if (!grown)
        return sgm_fail(SGM_ERROR_MEMORY, "no memory for examples of %zu bytes", bytes);
    *list = grown;
    return SGM_OK;
}

static sgm_status make_room(collection *c)
{
    const size_t capacity = c->capacity ? 2 * c->capacity : 64, bytes = (size_t)c->window * sizeof(float);
    if ((size_t)c->counts.rows < c->capacity)
        return SGM_OK;
    SGM__PASS(grow(&c->inputs, capacity * bytes));
    SGM__PASS(grow(&c->targets, capacity * bytes));
    if (c->packing)
        SGM__PASS(grow(&c->starts, capacity * bytes));
    int64_t *used = realloc(c->used, capacity * sizeof *used);
    if (!used)
        return sgm_fail(SGM_ERROR_MEMORY, "no memory for %zu rows", capacity);
    c->used = used;
    c->capacity = capacity;
    return SGM_OK;
}

/* Says that places from `first` on belong to what begins there. */
static void start(collection *c, int64_t row, int64_t first)
{
    for (int64_t i = first; i < c->window && c->packing; i++)
        c->starts[row * c->window + i] = (float)first;
}

/* One more row, of zeros and of targets that do not count. */
static sgm_status add_row(collection *c)
{
    SGM__PASS(make_room(c));
    const int64_t row = c->counts.rows++;
    for (int64_t i = row * c->window; i < (row + 1) * c->window; i++) {
        c->inputs[i] = 0;
        c->targets[i] = IGNORED;
    }
    c->used[row] = 0;
    start(c, row, 0);
    return SGM_OK;
}

/* The row for an example of so many tokens; -1: there is no memory for a new one. */
static int64_t row_for(collection *c, int64_t count)
{
    const int64_t rows = c->counts.rows;
    for (int64_t i = rows > OPEN_ROWS ? rows - OPEN_ROWS : 0; i < rows && c->packing; i++)
        if (c->used[i] + count <= c->window)
            return i;
    return add_row(c) == SGM_OK ? rows : -1;
}

/* Counts a line of which nothing is learnt: there is nothing, or it lies behind the window. */
static void leave_out(collection *c, const example *e)
{
    sgm_chat_counts *counts = &c->counts;
    bool answered = false;
    for (int64_t i = 1; i < e->count; i++)
        answered = answered || e->learnt[i];
    int64_t *first = answered ? &counts->behind_line : &counts->unanswered_line;
    counts->left_out++;
    counts->unanswered += !answered;
    if (*first == 0)
        *first = c->line;
}

/* The first tokens of the example, unless there is nothing to be learnt among them. What fills up the row
 * behind them is by itself. */
static sgm_status add(collection *c, const example *e)
{
    const int64_t count = e->count - 1 < c->window ? e->count - 1 : c->window;
    int64_t learnt = 0;
    for (int64_t i = 0; i < count; i++)
        learnt += e->learnt[i + 1];
    if (e->count - 1 > c->counts.longest)
        c->counts.longest = e->count - 1;
    if (learnt == 0) {
        leave_out(c, e);
        return SGM_OK;
    }
    const int64_t row = row_for(c, count);
    if (row < 0)
        return sgm_last_status();
    float *inputs = c->inputs + row * c->window + c->used[row];
    float *targets = c->targets + row * c->window + c->used[row];
    for (int64_t i = 0; i < count; i++) {
        inputs[i] = (float)e->tokens[i];
        if (e->learnt[i + 1])
            targets[i] = (float)e->tokens[i + 1];
    }
    c->used[row] += count;
    start(c, row, c->used[row]);
    c->counts.examples++;
    c->counts.cut += e->count - 1 > c->window;
    c->counts.tokens += count;
    c->counts.learnt += learnt;
    return SGM_OK;
}

/* --- the three kinds of lines --- */

/* "PROMPT COMPLETION END", of which the prompt is not learnt. */
static sgm_status add_completion(collection *c, const char *prompt, const char *completion)
{
    const char *end = c->tokenizer->chat.end ? c->tokenizer->chat.end : "";
    char *text = sgm__new_text("%s%s%s", prompt, completion, end);
    example e = {0};
    sgm_status status = text ? example_of(c, text, true, &e) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = learn(&e, *prompt ? shared(c, &e, prompt, true) : 0, e.count);
    if (status == SGM_OK)
        status = add(c, &e);
    example_free(&e);
    free(text);
    return status;
}

/* The tokens up to the end of the first `shown` messages, or to the beginning of an answer to them. */
static int64_t place_of(const collection *c, const example *e, const sgm_chat_message *messages, size_t count,
                        size_t shown, bool answer)
{
    char *text = sgm__chat_beginning(c->tokenizer, messages, count, c->now, shown, answer);
    const int64_t place = text ? shared(c, e, text, false) : -1;
    sgm_string_free(text);
    return place;
}

static sgm_status learn_answers(const collection *c, const sgm_chat_message *messages, size_t count,
                                example *e)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(messages[i].role, "assistant") != 0)
            continue;
        if (i == 0)
            return sgm_fail(SGM_ERROR_FORMAT, "the assistant speaks first; expected a message of the user "
                                              "or the system before its answer");
        const int64_t begin = place_of(c, e, messages, count, i, true);
        SGM__PASS(learn(e, begin, i + 1 < count ? place_of(c, e, messages, count, i + 1, false) : e->count));
    }
    return SGM_OK;
}

static sgm_status add_messages(collection *c, const json_t *list)
{
    const size_t count = json_array_size(list);
    if (count == 0 || count > MOST_MESSAGES)
        return sgm_fail(SGM_ERROR_FORMAT, "messages: expected a list of 1 to %d messages", MOST_MESSAGES);
    sgm_chat_message *messages = calloc(count, sizeof *messages);
    if (!messages)
        return sgm_fail(SGM_ERROR_MEMORY, "no memory for %zu messages", count);
    for (size_t i = 0; i < count; i++) {
        const json_t *message = json_array_get(list, i);
        messages[i] = (sgm_chat_message){json_string_value(json_object_get(message, "role")),
                                         json_string_value(json_object_get(message, "content"))};
    }
    char *text = sgm__chat_beginning(c->tokenizer, messages, count, c->now, count, false);
    example e = {0};
    if (!text && sgm_pretrained_tokenizer_chat_family(c->tokenizer) == NULL)
        sgm_fail(sgm_last_status(),
                 "%s; write each chat as prompt and completion, with what the model wants around a message",
                 sgm_last_error());
    sgm_status status = text ? example_of(c, text, false, &e) : sgm_last_status();
    if (status == SGM_OK)
        status = learn_answers(c, messages, count, &e);
    if (status == SGM_OK)
        status = add(c, &e);
    example_free(&e);
    sgm_string_free(text);
    free(messages);
    return status;
}

static sgm_status add_object(void *user, const json_t *object)
{
    collection *c = user;
    const json_t *messages = json_object_get(object, "messages");
    const char *prompt = json_string_value(json_object_get(object, "prompt"));
    const char *completion = json_string_value(json_object_get(object, "completion"));
    const char *text = json_string_value(json_object_get(object, "text"));
    if (messages)
        return add_messages(c, messages);
    if (prompt && completion)
        return add_completion(c, prompt, completion);
    if (text && !*text) {
        leave_out(c, &(example){0});
        return SGM_OK;
    }
    return text ? add_completion(c, "", text) : sgm_fail(SGM_ERROR_FORMAT, EXPECTED);
}

/* --- the file --- */

/* Why no line became an example, and what helps: answers that lie behind the window are there. */
static sgm_status fail_empty(const collection *c, const char *path)
{
    const long long none = (long long)c->counts.unanswered, behind = (long long)c->counts.left_out - none;
    char answers[160] = "", places[200] = "";
    if (none == 0 && behind == 0)
        return sgm_fail(SGM_ERROR_FORMAT, "%s: there is nothing to learn: there are no lines", path);
    if (none > 0)
        snprintf(answers, sizeof answers,
                 "%lld line%s no message of the assistant, no completion and no text, or an empty one", none,
                 none == 1 ? " has" : "s have");
    if (behind > 0)
        snprintf(places, sizeof places,
                 "%sthe answer%s of %lld line%s behind token %lld: take a longer window, --context of 'sigma "
                 "finetune'; the longest line has %lld tokens",
                 none > 0 ? "; " : "", behind == 1 ? "" : "s", behind, behind == 1 ? " begins" : "s begin",
                 (long long)c->window, (long long)c->counts.longest);
    return sgm_fail(SGM_ERROR_FORMAT, "%s: there is nothing to learn: %s%s", path, answers, places);
}

static sgm_status read_lines(collection *c, const char *path)
{
    sgm_status status = sgm__json_lines_read(path, 0, EXPECTED, add_object, c, &c->line);
    return status == SGM_OK && c->counts.examples == 0 ? fail_empty(c, path) : status;
}

/* The dataset copies its fields. */
static sgm_dataset *dataset_of(const collection *c, const char *name)
{
    static const char *const names[] = {"inputs", "targets", "starts"};
    const sgm_shape shape = sgm_shape_of(c->counts.rows, c->window);
    float *const values[] = {c->inputs, c->targets, c->starts};
    const size_t count = c->packing ? 3 : 2;
    sgm_tensor *fields[3] = {NULL};
    bool made = true;
    for (size_t i = 0; i < count && made; i++) {
        fields[i] = sgm_tensor_wrap(SGM_FLOAT32, &shape, values[i], NULL, NULL);
        made = fields[i] != NULL;
    }
    sgm_dataset *dataset = made ? sgm_dataset_create_from(name, names, fields, count) : NULL;
    for (size_t i = 0; i < count; i++)
        sgm_tensor_free(fields[i]);
    return dataset;
}

sgm_dataset *sgm_chat_dataset_with(const char *name, const sgm_pretrained_tokenizer *tokenizer,
                                   const char *path, const sgm_chat_dataset_options *options)
{
    sgm_chat_dataset_options given;
    if (sgm__take_options(&given, sizeof given, options) != SGM_OK)
        return NULL;
    collection c = {.tokenizer = tokenizer,
                    .window = given.window ? given.window : DEFAULT_WINDOW,
                    .packing = given.packing,
                    .now = time(NULL)};
    sgm_dataset *dataset = NULL;
    if (!tokenizer || !path)
        sgm_fail(SGM_ERROR_ARGUMENT, "chats need a tokenizer and the path of a file");
    else if (c.window < 1 || c.window > LONGEST_WINDOW)
        sgm_fail(SGM_ERROR_ARGUMENT, "the window of chats is 1 to %d tokens, not %lld", LONGEST_WINDOW,
                 (long long)c.window);
    else if (read_lines(&c, path) == SGM_OK)
        dataset = dataset_of(&c, name);
    if (given.counts)
        *given.counts = c.counts;
    free(c.inputs);
    free(c.targets);
    free(c.starts);
    free(c.used);
    return dataset;
}
