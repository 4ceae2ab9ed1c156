/* Texts go on, and are answered: as one object at the end, or as server-sent events while they are made. */
#include "openai/asking.h"
#include "text/json_text.h"

#include <stdio.h>

/* Tokens of a text at most where the network has no limit of steps, and where a completion does not say how
 * many. */
#define MOST_TOKENS 4096
/* Tokens of a question to such a network at most: it is read to its end, whoever waits. */
#define MOST_READ 32768
#define USUAL_COMPLETION 16

/* The answer to a request while it is made. */
typedef struct answering {
    asking *ask;
    const sampling_options *sampling;
    bool is_chat;
    bool is_lost; /* nobody waits for the answer, or there is no memory for it */
    char id[48];
    int64_t created;    /* seconds of Unix time */
    size_t index;       /* of the text */
    sgm__text waiting;  /* bytes that are no whole character yet */
    sgm__text text;     /* whole characters that were not sent; without events, all of them */
    json_t *choices;    /* without events: texts that are ready */
    int64_t read, made; /* tokens of all texts */
} answering;

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
static json_t *choice(const answering *a, const char *key, json_t *content, const char *finish)
{
    return json_pack("{s:I, s:o, s:n, s:s?}", "index", (json_int_t)a->index, key, content, "logprobs",
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

static void send_part(answering *a, const char *text, const char *finish)
{
    json_t *content = !a->is_chat      ? json_string(text)
                      : finish != NULL ? json_object()
                                       : json_pack("{s:s}", "content", text);
    send_choices(a, json_pack("[o]", choice(a, a->is_chat ? "delta" : "text", content, finish)), NULL);
}

/* The first event of a chat says whose answer it is. */
static void send_role(answering *a)
{
    json_t *content = json_pack("{s:s, s:s}", "role", "assistant", "content", "");
    send_choices(a, json_pack("[o]", choice(a, "delta", content, NULL)), NULL);
}

static void send_end(answering *a)
{
    if (a->sampling->tells_usage)
        send_choices(a, json_array(), usage_of(a));
    send_text(a, sgm__strdup("data: [DONE]\n\n"));
}

/* --- one text --- */

static void send_characters(answering *a)
{
    if (a->text.length > 0 && a->sampling->streams) {
        send_part(a, a->text.data, NULL);
        sgm__text_free(&a->text);
    }
}

/* The callback of speech. A client that has gone ends the text, and so does the end of the server. */
static bool say(void *user, const char *text, size_t size)
{
    answering *a = user;
    take_characters(&a->waiting, text, size, false, &a->text);
    send_characters(a);
    a->is_lost = a->is_lost || a->waiting.failed || a->text.failed || sgm__http_has_left(a->ask->request) ||
                 atomic_load(a->ask->request->ending);
    return !a->is_lost;
}

static void keep_choice(answering *a, const char *finish)
{
    const char *text = a->text.data != NULL ? a->text.data : "";
    json_t *content = a->is_chat
                          ? json_pack("{s:s, s:s, s:n}", "role", "assistant", "content", text, "refusal")
                          : json_string(text);
    if (json_array_append_new(a->choices, choice(a, a->is_chat ? "message" : "text", content, finish)) != 0)
        a->is_lost = true;
    sgm__text_free(&a->text);
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

/* The last part of a text, and why it ends here. */
static void finish_one(answering *a, const char *reason)
{
    take_characters(&a->waiting, "", 0, true, &a->text);
    a->is_lost = a->waiting.failed || a->text.failed;
    send_characters(a);
    if (a->sampling->streams)
        send_part(a, "", reason);
    else
        keep_choice(a, reason);
}

/* How many tokens may be drawn. */
static int64_t count_of(const answering *a, const sgm_tensor *begin)
{
    int64_t room = room_behind(a->ask->server, begin), asked = a->sampling->count;
    if (asked == 0)
        asked = a->is_chat ? room : USUAL_COMPLETION;
    return asked < room ? asked : room;
}

static sgm_status continue_one(answering *a, const sgm_tensor *begin)
{
    const sampling_options *sampling = a->sampling;
    sgm_generator *generator = a->ask->server->generator;
    sgm_generation_options how = sampling->how;
    speech s = {.codec = &a->ask->server->codec,
                .stops = sampling->stops,
                .stop_count = sampling->stop_count,
                .say = say,
                .user = a};
    how.told = speech_take;
    how.user = &s;
    if (!sampling->is_seeded) /* else texts with the same beginning would be the same */
        SGM_TRY(random_number(&how.seed));
    SGM_TRY(sgm_generator_reset(generator));
    if (sampling->streams && a->is_chat)
        send_role(a);
    sgm_status status = speech_begin(&s);
    if (status == SGM_OK)
        status = sgm_generator_generate(generator, sgm_tensor_const_data(begin), (size_t)tokens_of(begin),
                                        NULL, (size_t)count_of(a, begin), &how);
    if (status == SGM_OK)
        status = speech_end(&s);
    a->read += tokens_of(begin);
    a->made += s.drawn;
    if (status == SGM_OK && !a->is_lost)
        finish_one(a, s.has_ended ? "stop" : "length");
    speech_free(&s);
    if (status == SGM_OK && a->is_lost)
        status = sgm_fail(SGM_ERROR_INTERRUPTED, "nobody waits for the answer any more");
    return status;
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

static sgm_status continue_all(answering *a, sgm_tensor *const *begins, size_t count)
{
    for (a->index = 0; a->index < count; a->index++)
        SGM_TRY(continue_one(a, begins[a->index]));
    return SGM_OK;
}

/* Events that have begun end with what went wrong. */
static sgm_status finish(answering *a, sgm_status status, sgm__http_answer *answer)
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
    json_t *made = frame(a, a->is_chat ? "chat.completion" : "text_completion", json_incref(a->choices));
    json_object_set_new(made, "usage", usage_of(a));
    return sgm__http_answer_json(answer, made);
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
    a.choices = json_array();
    sgm_status status = finish(&a, continue_all(&a, begins, count), answer);
    json_decref(a.choices);
    sgm__text_free(&a.waiting);
    sgm__text_free(&a.text);
    return status;
}
