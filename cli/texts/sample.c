/* Texts that a language model goes on with while it is trained, one after each epoch: the hook `sample`.
 *
 * Each time a generator is made of the parameters as they are then (sgm_generator_create), which has a
 * session and random numbers of its own: the training's are not touched, and a run that is resumed says the
 * same. What is said goes to the log, to samples.jsonl in the run's folder, and, as JSON, to shared.samples,
 * which the page shows. Which tokenizer there is, the configuration says that sample_begin got. */
#include "texts/sample.h"
#include "base/log_sink.h"
#include "journal/run_lines.h"
#include "text/json_text.h"
#include "texts/texts.h"
#include "trainer/view.h"

#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>

#define NAME "sample"
#define SHARED "samples" /* shared.samples */

/* --- the tokenizer --- */

static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER; /* over a whole sample: branches have threads of their own */
static const config *present;  /* NULL: no training has begun */
static text_codec codec;       /* of `present`, */
static bool is_open;           /* if it was needed */

void sample_begin(const config *c)
{
    sample_end();
    pthread_mutex_lock(&lock);
    present = c;
    pthread_mutex_unlock(&lock);
}

void sample_end(void)
{
    pthread_mutex_lock(&lock);
    if (is_open)
        text_codec_close(&codec);
    is_open = false;
    present = NULL;
    pthread_mutex_unlock(&lock);
}

/* With the lock. */
static sgm_status open_codec(void)
{
    if (is_open)
        return SGM_OK;
    if (present == NULL)
        return sgm_fail(SGM_ERROR_STATE,
                        NAME ": there is no tokenizer here; 'sigma train' and 'sigma finetune' "
                             "have that of their data");
    sgm_status status = text_codec_open_config(&codec, present);
    is_open = status == SGM_OK;
    if (!is_open)
        text_codec_close(&codec);
    return status;
}

/* --- saying --- */

typedef struct sample {
    char *prompt;
    int64_t count;
    sgm_generation_options how; /* tokens are drawn */
    bool chat;
    bool checked; /* once before the run is enough */
} sample;

static bool keep_part(void *user, const char *text, size_t size)
{
    sgm__text_append_bytes(user, text, size);
    return true;
}

static sgm_tensor *tokens_of(const sample *self)
{
    const sgm_chat_message message = {"user", self->prompt};
    return self->chat ? text_codec_encode_chat(&codec, &message, 1) : text_codec_encode(&codec, self->prompt);
}

/* Appends up to `count` tokens that follow the prompt, as bytes. With the lock. */
static sgm_status go_on(const sample *self, sgm_generator *generator, size_t count, sgm__text *bytes)
{
    speech s = {.codec = &codec, .say = keep_part, .user = bytes};
    sgm_tensor *begin = tokens_of(self);
    sgm_status status = begin != NULL ? speech_begin(&s) : sgm__last_failure();
    if (status == SGM_OK && sgm_tensor_shape(begin)->dims[0] == 0)
        status = sgm_fail(SGM_ERROR_ARGUMENT, "the prompt has no tokens to begin with");
    if (status == SGM_OK) {
        sgm_generation_options how = self->how;
        how.told = speech_take;
        how.user = &s;
        status = sgm_generator_generate(generator, sgm_tensor_const_data(begin),
                                        (size_t)sgm_tensor_shape(begin)->dims[0], NULL, count, &how);
        sgm_status said = speech_end(&s);
        status = status == SGM_OK ? said : status;
    }
    sgm_tensor_free(begin);
    speech_free(&s);
    return status;
}

/* *text becomes what follows the prompt, whole characters of UTF-8; sgm__free. */
static sgm_status say(const sample *self, sgm_trainer *trainer, size_t count, char **text)
{
    sgm__text bytes = {0}, waiting = {0}, whole = {0};
    pthread_mutex_lock(&lock);
    sgm_status status = open_codec();
    sgm_generator *generator = status == SGM_OK ? sgm_generator_create(trainer) : NULL;
    if (status == SGM_OK)
        status = generator != NULL ? go_on(self, generator, count, &bytes) : sgm__last_failure();
    sgm_generator_free(generator);
    pthread_mutex_unlock(&lock);
    if (status == SGM_OK)
        take_characters(&waiting, bytes.data != NULL ? bytes.data : "", bytes.length, true, &whole);
    sgm__text_append(&whole, "%s", "");
    *text = sgm__text_take(&whole);
    sgm__text_free(&waiting);
    sgm__text_free(&bytes);
    return status == SGM_OK && *text == NULL ? SGM_ERROR_MEMORY : status;
}

/* --- telling --- */

static json_t *describe(const sample *self, const sgm_hook_call *call, const char *text)
{
    return json_pack("{s:I, s:I, s:s, s:s}", "epoch", (json_int_t)call->epoch, "iteration",
                     (json_int_t)call->iteration, "prompt", self->prompt, "text", text);
}

static sgm_status write_line(const sgm_trainer *trainer, const json_t *said)
{
    const sgm__trainer_view view = sgm__trainer_look(trainer);
    if (view.folder == NULL)
        return SGM_OK;
    json_t *line = json_copy((json_t *)(uintptr_t)said);
    json_object_set_new(line, "branch", json_integer(view.branch));
    char *text = sgm__json_text(line);
    sgm_status status =
        text != NULL ? sgm__run_folder_append(view.folder, SGM__SAMPLES_FILE, text) : sgm__fail_memory(256);
    sgm__free(text);
    json_decref(line);
    return status;
}

/* The newest of each prompt, in the order in which they came first. */
static sgm_status share(sgm_hook_call *call, const json_t *said)
{
    sgm_content known = {0};
    bool has = sgm_hook_get(call, "shared." SHARED, &known) == SGM_OK && known.kind == SGM_KIND_TEXT;
    json_t *list = has ? json_loads(known.as.text, 0, NULL) : NULL;
    if (!json_is_array(list)) {
        json_decref(list);
        list = json_array();
    }
    size_t i = 0;
    while (i < json_array_size(list) &&
           !json_equal(json_object_get(json_array_get(list, i), "prompt"), json_object_get(said, "prompt")))
        i++;
    json_t *copy = json_copy((json_t *)(uintptr_t)said);
    int failed =
        i < json_array_size(list) ? json_array_set_new(list, i, copy) : json_array_append_new(list, copy);
    char *text = failed == 0 ? sgm__json_text(list) : NULL;
    sgm_status status =
        text != NULL ? sgm_hook_share(call, SHARED, sgm_text_content(text)) : sgm__fail_memory(256);
    sgm__free(text);
    json_decref(list);
    sgm_content_clear(&known);
    return status;
}

/* Both as JSON has them, so that they stay on one line, and their ends are seen. */
static void tell(const sgm_hook_call *call, const json_t *said)
{
    char *prompt = sgm__json_text(json_object_get(said, "prompt")),
         *text = sgm__json_text(json_object_get(said, "text"));
    if (prompt != NULL && text != NULL)
        sgm__log_note(call->trainer, "epoch %lld, iteration %lld: %s goes on with %s", (long long)call->epoch,
                      (long long)call->iteration, prompt, text);
    sgm__free(prompt);
    sgm__free(text);
}

/* --- the hook --- */

/* Where several processes train together all of them come here, and one tells. */
static sgm_status take_sample(void *user, sgm_hook_call *call)
{
    sample *self = user;
    sgm_trainer *trainer = sgm_hook_trainer(call);
    char *text = NULL;
    if (trainer == NULL)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, NAME " does not run in the background");
    sgm_status status = say(self, trainer, (size_t)self->count, &text);
    json_t *said = status == SGM_OK ? describe(self, call, text) : NULL;
    if (status == SGM_OK && said == NULL)
        status = sgm__fail_memory(256);
    if (status == SGM_OK && !sgm__trainer_follows(trainer)) {
        tell(call, said);
        status = write_line(trainer, said);
    }
    if (status == SGM_OK)
        status = share(call, said);
    json_decref(said);
    sgm__free(text);
    return status;
}

/* One token is said, so that a network that is none of a language, or a prompt that it does not know, is
 * found before hours of training. */
static sgm_status check(void *user, sgm_hook_call *call)
{
    sample *self = user;
    sgm_trainer *trainer = sgm_hook_trainer(call);
    char *text = NULL;
    if (trainer == NULL || self->checked)
        return SGM_OK;
    sgm_status status = say(self, trainer, 1, &text);
    self->checked = status == SGM_OK;
    sgm__free(text);
    return status;
}

static bool draws_alike(const sgm_generation_options *a, const sgm_generation_options *b)
{
    return a->seed == b->seed && a->temperature == b->temperature && a->top_k == b->top_k &&
           a->top_p == b->top_p && a->min_p == b->min_p && a->repetition_penalty == b->repetition_penalty &&
           a->greedy == b->greedy;
}

static bool is_equal(const void *a, const void *b)
{
    const sample *left = a, *right = b;
    return strcmp(left->prompt, right->prompt) == 0 && left->count == right->count &&
           draws_alike(&left->how, &right->how) && left->chat == right->chat;
}

static void free_sample(void *user)
{
    sgm__free(((sample *)user)->prompt);
    sgm__free(user);
}

static const sgm_hook_type sample_type = {.api = SGM_HOOK_API,
                                          .name = NAME,
                                          .doc = "says how a language model goes on with a text",
                                          .invoke = take_sample,
                                          .equal = is_equal,
                                          .free = free_sample,
                                          .only_global = "it samples the trainer, with all workers",
                                          .check = check};

/* --- as text --- */

/* A text of hooks has no control characters, so line ends are written as \n; *text may be the same as `from`.
 */
static void unescape(const char *from, char *text)
{
    for (; *from != '\0'; from++) {
        bool escapes = from[0] == '\\' && (from[1] == 'n' || from[1] == 't' || from[1] == '\\');
        from += escapes;
        *text++ = !escapes ? *from : *from == 'n' ? '\n' : *from == 't' ? '\t' : '\\';
    }
    *text = '\0';
}

/* Those of the hook alone; behind them come the rows of how tokens are drawn (sample_register). */
#define OWN_ARGUMENTS 3
#define MOST_ARGUMENTS 16
static sgm_option arguments[MOST_ARGUMENTS] = {
    {.name = "prompt",
     .kind = SGM_KIND_TEXT,
     .required = true,
     .doc = "what it goes on with; \\n in it is a line end"},
    {.name = "count",
     .kind = SGM_KIND_INTEGER,
     .minimum = 1,
     .maximum = 100000,
     .default_value = SAMPLE_COUNT,
     .doc = "of tokens, at most"},
    {.name = "chat",
     .kind = SGM_KIND_BOOLEAN,
     .doc = "the prompt is what a user says, in the template of a model of others"},
};

/* Numbers of arguments, as the members of options that they are. */
static sgm_status read_drawing(const sgm_hook_arguments *given, sgm_generation_options *how)
{
    size_t count;
    const sgm_setting *rows = sgm_generation_settings(&count);
    how->struct_size = sizeof *how;
    for (size_t i = 0; i < count; i++) {
        double number = sgm_hook_arguments_number(given, rows[i].option.name);
        const sgm_content content = rows[i].option.kind == SGM_KIND_BOOLEAN ? sgm_boolean_content(number != 0)
                                    : rows[i].option.kind == SGM_KIND_INTEGER
                                        ? sgm_integer_content((int64_t)number)
                                        : sgm_number_content(number);
        SGM_TRY(sgm_setting_set(&rows[i], how, NULL, &content));
    }
    return SGM_OK;
}

static sgm_hook *create(const sgm_hook_arguments *given, sgm_time_step when)
{
    const char *prompt = sgm_hook_arguments_text(given, "prompt");
    sample *self = sgm__calloc(1, sizeof *self);
    if (self == NULL || (self->prompt = sgm__strdup(prompt != NULL ? prompt : "")) == NULL) {
        sgm__free(self);
        return NULL;
    }
    unescape(self->prompt, self->prompt);
    self->count = (int64_t)sgm_hook_arguments_number(given, "count");
    self->chat = sgm_hook_arguments_number(given, "chat") != 0;
    if (read_drawing(given, &self->how) != SGM_OK) {
        free_sample(self);
        return NULL;
    }
    return sgm_hook_create(&sample_type, self, .when = when);
}

static sgm_hook_text_type text_type = {
    .api = SGM_HOOK_TEXT_API,
    .name = NAME,
    .doc = "says how a language model goes on with a text; into the log, the page and samples.jsonl",
    .arguments = arguments,
    .argument_count = OWN_ARGUMENTS,
    .create = create,
    .example = "every 100 iterations sample(\"Once upon a time\", count=60, temperature=0.8)",
};

void sample_register(void)
{
    size_t count;
    const sgm_setting *rows = sgm_generation_settings(&count);
    for (size_t i = 0; i < count && OWN_ARGUMENTS + i < MOST_ARGUMENTS; i++) {
        arguments[OWN_ARGUMENTS + i] = rows[i].option;
        text_type.argument_count = OWN_ARGUMENTS + i + 1;
    }
    sgm_register_hook(&text_type);
}

sgm_status sample_attach(sgm_trainer *trainer, const config *c)
{
    for (size_t i = 0; i < c->sample.prompts.count; i++) {
        char *text = sample_text(&c->sample, c->sample.prompts.items[i]);
        sgm_status status =
            text != NULL ? sgm_trainer_add_hook(trainer, sgm_hook_parse(text)) : SGM_ERROR_MEMORY;
        sgm__free(text);
        if (status != SGM_OK)
            return sgm__fail_within("%s", config_place(c, "sample"));
    }
    return SGM_OK;
}
