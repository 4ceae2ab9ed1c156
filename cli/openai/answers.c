/* Texts go on, and are answered: as one object at the end, or as server-sent events while they are made. */
#include "openai/asking.h"
#include "text/json_text.h"

#include <stdio.h>

/* Tokens of a text at most where the network has no limit of steps, and where a completion does not say how
 * many. */
#define MOST_TOKENS 4096
/* Tokens of a question to such a network at most. */
#define MOST_READ 32768
/* Texts of a request that go on side by side. */
#define SIDE_BY_SIDE 8
#define USUAL_COMPLETION 16

/* The answer to a request while it is made. */
typedef struct answering {
    asking *ask;
    const sampling_options *sampling;
    bool is_chat;
    bool is_lost; /* nobody waits for the answer, or there is no memory for it */
    char id[48];
    int64_t created;    /* seconds of Unix time */
    int64_t read, made; /* tokens of all texts */
} answering;

/* One of its texts. */
typedef struct answered_text {
    answering *answering;
    size_t index;
    size_t most; /* tokens that may be drawn */
    speech speech;
    sgm__text waiting;  /* bytes that are no whole character yet */
    sgm__text text;     /* whole characters that were not sent; without events, all of them */
    const char *reason; /* why it has ended; NULL: it goes on */
} answered_text;

/* --- objects of the API --- */

static json_t *usage_of(const answering *a)
{
    return json_pack("{s:I, s:I, s:I}", "prompt_tokens", (json_int_t)a->read, "completion_tokens",
                     (json_int_t)a->made, "total_tokens", (json_int_t)(a->read + a->made));
}

/* The object around choices, whose reference it takes. */
static json_t *frame(const answering *a, const char *object, json_t *choices)
{
    return json_pack("{s:s, s:s, s:I, s:s, s:o}", "id", a->id, "object", object, "created",
                     (json_int_t)a->created, "model", a->ask->server->name, "choices", choices);
}

/* A choice with `content`: {"message": ...}, {"delta": ...} or {"text": ...}. `finish` NULL: it goes on. */
static json_t *choice(size_t index, const char *key, json_t *content, const char *finish)
{
    return json_pack("{s:I, s:o, s:n, s:s?}", "index", (json_int_t)index, key, content, "logprobs",
                     "finish_reason", finish);
}

/* --- events --- */

/* Sends an event and frees the text; without one there was no memory. */
static void send_text(answering *a, char *text)
{
    a->is_lost = text == NULL || a->is_lost ||
                 !sgm__http_send(a->ask->request, "text/event-stream", text, strlen(text));
    sgm__free(text);
}

/* Takes the reference. */
static void send_event(answering *a, json_t *event)
{
    char *json = sgm__json_text(event);
    send_text(a, json != NULL ? sgm__format("data: %s\n\n", json) : NULL);
    sgm__free(json);
    json_decref(event);
}

/* An event with choices, whose reference it takes. Where the last event has the numbers of tokens, all others
 * say that they have none. */
static void send_choices(answering *a, json_t *choices, json_t *usage)
{
    json_t *event = frame(a, a->is_chat ? "chat.completion.chunk" : "text_completion", choices);
    if (a->sampling->tells_usage)
        json_object_set_new(event, "usage", usage != NULL ? usage : json_null());
    send_event(a, event);
}

static void send_part(answering *a, size_t index, const char *text, const char *finish)
{
    json_t *content = !a->is_chat      ? json_string(text)
                      : finish != NULL ? json_object()
                                       : json_pack("{s:s}", "content", text);
    send_choices(a, json_pack("[o]", choice(index, a->is_chat ? "delta" : "text", content, finish)), NULL);
}

/* The first event of a chat, which has one text, says whose answer it is. */
static void send_role(answering *a)
{
    json_t *content = json_pack("{s:s, s:s}", "role", "assistant", "content", "");
    send_choices(a, json_pack("[o]", choice(0, "delta", content, NULL)), NULL);
}

static void send_end(answering *a)
{
    if (a->sampling->tells_usage)
        send_choices(a, json_array(), usage_of(a));
    send_text(a, sgm__strdup("data: [DONE]\n\n"));
}

/* --- one text --- */

static void send_characters(answered_text *t)
{
    answering *a = t->answering;
    if (t->text.length > 0 && a->sampling->streams) {
        send_part(a, t->index, t->text.data, NULL);
        sgm__text_free(&t->text);
    }
}

/* The callback of speech. */
static bool say(void *user, const char *text, size_t size)
{
    answered_text *t = user;
    take_characters(&t->waiting, text, size, false, &t->text);
    send_characters(t);
    t->answering->is_lost = t->answering->is_lost || t->waiting.failed || t->text.failed;
    return !t->answering->is_lost;
}

/* The last part of a text, and why it ends here. */
static void finish_text(answered_text *t)
{
    answering *a = t->answering;
    if (speech_end(&t->speech) != SGM_OK || a->is_lost)
        return;
    t->reason = t->speech.has_ended ? "stop" : "length";
    take_characters(&t->waiting, "", 0, true, &t->text);
    a->is_lost = t->waiting.failed || t->text.failed;
    send_characters(t);
    if (a->sampling->streams)
        send_part(a, t->index, "", t->reason);
}

/* The generator's callback for each token: a text that has ended is finished at once, while others go on. */
static bool take(void *user, int64_t token)
{
    answered_text *t = user;
    const bool goes_on = speech_take(&t->speech, token) && (size_t)t->speech.drawn < t->most;
    if (!goes_on)
        finish_text(t);
    return goes_on;
}

/* The generator's callback between tokens: nobody may wait any more. */
static bool proceed(void *user)
{
    answering *a = user;
    a->is_lost = a->is_lost || !ask_proceed(a->ask);
    return !a->is_lost;
}

static int64_t tokens_of(const sgm_tensor *tokens)
{
    return sgm_tensor_shape(tokens)->dims[0];
}

/* How many tokens may follow. */
static int64_t room_behind(const openai *server, const sgm_tensor *begin)
{
    int64_t places = sgm_generator_places(server->generator);
    if (places > 0)
        return places - tokens_of(begin);
    return tokens_of(begin) <= MOST_READ ? MOST_TOKENS : 0;
}

/* How many tokens may be drawn. */
static int64_t count_of(const answering *a, const sgm_tensor *begin)
{
    int64_t room = room_behind(a->ask->server, begin), asked = a->sampling->count;
    if (asked == 0)
        asked = a->is_chat ? room : USUAL_COMPLETION;
    return asked < room ? asked : room;
}

/* Gets ready to go on with text `index`, whose tokens are `begin`. */
static sgm_status begin_text(answering *a, answered_text *t, size_t index, const sgm_tensor *begin,
                             sgm_continuation *continuation)
{
    const sampling_options *sampling = a->sampling;
    *t = (answered_text){.answering = a,
                         .index = index,
                         .most = (size_t)count_of(a, begin),
                         .speech = {.codec = &a->ask->server->codec,
                                    .stops = sampling->stops,
                                    .stop_count = sampling->stop_count,
                                    .say = say,
                                    .user = t}};
    *continuation = (sgm_continuation){.begin = sgm_tensor_const_data(begin),
                                       .begin_count = (size_t)tokens_of(begin),
                                       .count = t->most,
                                       .user = t};
    if (!sampling->is_seeded) /* else texts with the same beginning would be the same */
        SGM_TRY(random_number(&continuation->seed));
    return speech_begin(&t->speech);
}

/* --- all of them --- */

static sgm_status check_room(asking *ask, const char *param, const sgm_tensor *begin)
{
    if (tokens_of(begin) == 0)
        return ask_refuse(ask, param, "the text has no tokens");
    if (room_behind(ask->server, begin) > 0)
        return SGM_OK;
    int64_t places = sgm_generator_places(ask->server->generator);
    ask->code = "context_length_exceeded";
    return ask_refuse(ask, param, "%lld tokens are too many for this model, which takes %lld%s",
                      (long long)tokens_of(begin), (long long)(places > 0 ? places : MOST_READ),
                      places > 0 ? " with the answer" : "");
}

/* The generator of several texts is made for the first request that has some. */
static sgm_generator *generator_for(openai *server, size_t count)
{
    if (count == 1)
        return server->generator;
    if (server->several == NULL)
        server->several = sgm_generator_create(server->saved->trainer, .sequences = SIDE_BY_SIDE);
    return server->several;
}

/* A text of which not all could be said has no reason to end. */
static sgm_status check_ends(const answering *a, const answered_text *texts, size_t count)
{
    if (a->is_lost)
        return sgm_fail(SGM_ERROR_INTERRUPTED, "nobody waits for the answer any more");
    for (size_t i = 0; i < count; i++)
        if (texts[i].reason == NULL)
            return texts[i].speech.status;
    return SGM_OK;
}

static sgm_status continue_all(answering *a, answered_text *texts, sgm_continuation *continuations,
                               sgm_tensor *const *begins, size_t count)
{
    sgm_generation_options how = a->sampling->how;
    sgm_generator *generator = generator_for(a->ask->server, count);
    if (generator == NULL)
        return sgm__last_failure();
    how.told = take;
    how.proceed = proceed;
    how.user = a;
    for (size_t i = 0; i < count; i++)
        SGM_TRY(begin_text(a, &texts[i], i, begins[i], &continuations[i]));
    if (a->sampling->streams && a->is_chat)
        send_role(a);
    sgm_status status = sgm_generator_generate_all(generator, continuations, count, &how);
    for (size_t i = 0; i < count; i++) {
        a->read += tokens_of(begins[i]);
        a->made += texts[i].speech.drawn;
    }
    return status == SGM_OK || a->is_lost ? check_ends(a, texts, count) : status;
}

/* The texts as choices; NULL: out of memory. */
static json_t *choices_of(const answering *a, const answered_text *texts, size_t count)
{
    json_t *choices = json_array();
    for (size_t i = 0; i < count; i++) {
        const char *text = texts[i].text.data != NULL ? texts[i].text.data : "";
        json_t *content = a->is_chat
                              ? json_pack("{s:s, s:s, s:n}", "role", "assistant", "content", text, "refusal")
                              : json_string(text);
        json_t *made = choice(i, a->is_chat ? "message" : "text", content, texts[i].reason);
        if (json_array_append_new(choices, made) != 0) {
            json_decref(choices);
            return NULL;
        }
    }
    return choices;
}

/* Events that have begun end with what went wrong. */
static sgm_status finish(answering *a, sgm_status status, const answered_text *texts, size_t count,
                         sgm__http_answer *answer)
{
    if (a->sampling->streams) {
        if (status == SGM_OK)
            send_end(a);
        else if (!a->is_lost)
            send_event(a, openai_error(500, sgm_last_error()));
        return status;
    }
    if (status != SGM_OK)
        return ask_fail_inside(a->ask, status);
    json_t *made = frame(a, a->is_chat ? "chat.completion" : "text_completion", choices_of(a, texts, count));
    json_object_set_new(made, "usage", usage_of(a));
    return sgm__http_answer_json(answer, made);
}

static void free_texts(answered_text *texts, size_t count)
{
    for (size_t i = 0; texts != NULL && i < count; i++) {
        speech_free(&texts[i].speech);
        sgm__text_free(&texts[i].waiting);
        sgm__text_free(&texts[i].text);
    }
    sgm__free(texts);
}

sgm_status answer_texts(asking *ask, const sampling_options *sampling, const char *param,
                        sgm_tensor *const *begins, size_t count, sgm__http_answer *answer)
{
    uint64_t number;
    answering a = {
        .ask = ask, .sampling = sampling, .is_chat = ask->endpoint == ENDPOINT_CHAT, .created = unix_time()};
    for (size_t i = 0; i < count; i++)
        SGM_TRY(check_room(ask, param, begins[i]));
    SGM_TRY(random_number(&number));
    snprintf(a.id, sizeof a.id, "%s-%016llx", a.is_chat ? "chatcmpl" : "cmpl", (unsigned long long)number);
    answered_text *texts = sgm__calloc(count, sizeof *texts);
    sgm_continuation *continuations = sgm__calloc(count, sizeof *continuations);
    sgm_status status = texts != NULL && continuations != NULL
                            ? continue_all(&a, texts, continuations, begins, count)
                            : SGM_ERROR_MEMORY;
    status = finish(&a, status, texts, count, answer);
    free_texts(texts, count);
    sgm__free(continuations);
    return status;
}
