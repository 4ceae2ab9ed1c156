/* Chats as models were taught to read them. A template is a program in a language of its own (Jinja), which
 * is not run: those that are known are recognised by a hash of their whole text, so that none is taken for
 * another. */
#include "tokenizer/read/json.h"
#include "tokenizer/text/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Why chats are refused, of a model that has a template. */
#define NOT_KNOWN "a chat template that is not known"

typedef struct chat_text {
    const sgm_pretrained_tokenizer *tokenizer;
    const sgm_chat_message *messages;
    size_t count, shown; /* all messages; the first ones, which are written */
    bool answer;
    time_t now; /* for templates that write the day */
    sgm__buffer out;
} chat_text;

struct sgm__family {
    const char *name;
    uint64_t hash;      /* of a template of it, as hash_of makes it */
    const char *system; /* what the template says where a chat has no message of a system; "": nothing */
    sgm_status (*write)(chat_text *chat);
};

static sgm_status add(chat_text *chat, const char *text)
{
    return sgm__buffer_add(&chat->out, text, strlen(text));
}

/* A token of the ends of a text, by its key in tokenizer_config.json. Jinja joins no text to one that is
 * missing. */
static sgm_status add_token(chat_text *chat, const char *token, const char *key)
{
    return *token ? add(chat, token)
                  : sgm_fail(SGM_ERROR_UNSUPPORTED,
                             "the model's chat template needs the %s, which its files do not name; add it to "
                             "tokenizer_config.json (in GGUF: tokenizer.ggml.%s_id)",
                             key, key);
}

/* White space as Python's str.strip has it: four controls besides Unicode's. */
static bool is_python_space(uint32_t character)
{
    return sgm__unicode_is_space(character) || (character >= 0x1c && character <= 0x1f);
}

/* Without the white space around. */
static sgm_status add_trimmed(chat_text *chat, const char *text)
{
    size_t start = 0, next = 0, end = strlen(text);
    while (start < end && is_python_space(sgm__utf8_next(text, &next)))
        start = next;
    while (end > start) {
        const size_t last = sgm__utf8_before(text, end);
        next = last;
        if (!is_python_space(sgm__utf8_next(text, &next)))
            break;
        end = last;
    }
    return sgm__buffer_add(&chat->out, text + start, end - start);
}

static bool is_role(const sgm_chat_message *message, const char *role)
{
    return strcmp(message->role, role) == 0;
}

/* OpenAI's ChatML. */
static sgm_status write_chatml(chat_text *chat)
{
    const char *system = chat->tokenizer->chat.family->system;
    if (*system && !is_role(&chat->messages[0], "system")) {
        SGM__PASS(add(chat, "<|im_start|>system\n"));
        SGM__PASS(add(chat, system));
        SGM__PASS(add(chat, "<|im_end|>\n"));
    }
    for (size_t i = 0; i < chat->shown; i++) {
        SGM__PASS(add(chat, "<|im_start|>"));
        SGM__PASS(add(chat, chat->messages[i].role));
        SGM__PASS(add(chat, "\n"));
        SGM__PASS(add(chat, chat->messages[i].content));
        SGM__PASS(add(chat, "<|im_end|>\n"));
    }
    return chat->answer ? add(chat, "<|im_start|>assistant\n") : SGM_OK;
}

/* --- Qwen3, whose answers may begin with what the model thought: <think> ... </think> --- */
#define THINK "<think>"
#define THOUGHT "</think>"

typedef struct span {
    const char *text;
    size_t size;
} span;

static span without_line_ends(span s, bool left, bool right)
{
    for (; left && s.size > 0 && *s.text == '\n'; s.text++)
        s.size--;
    while (right && s.size > 0 && s.text[s.size - 1] == '\n')
        s.size--;
    return s;
}

/* What follows the last `mark`; the whole where there is none. */
static span behind_last(span s, const char *mark)
{
    const size_t size = strlen(mark);
    for (size_t at = s.size >= size ? s.size - size + 1 : 0; at-- > 0;)
        if (memcmp(s.text + at, mark, size) == 0)
            return (span){s.text + at + size, s.size - at - size};
    return s;
}

/* Parts an answer into thoughts, which may be empty, and what was said. */
static void part_answer(const char *content, span *thoughts, span *said)
{
    const char *end = strstr(content, THOUGHT);
    *thoughts = (span){content, 0};
    *said = (span){content, strlen(content)};
    if (!end)
        return;
    *said = without_line_ends(behind_last(*said, THOUGHT), true, false);
    *thoughts = without_line_ends((span){content, (size_t)(end - content)}, false, true);
    *thoughts = without_line_ends(behind_last(*thoughts, THINK), true, true);
}

/* The newest message of the user that is none of a tool; if there is none, the last message. */
static size_t last_question(const chat_text *chat)
{
    static const char begin[] = "<tool_response>", end[] = "</tool_response>";
    for (size_t i = chat->count; i-- > 0;) {
        const char *content = chat->messages[i].content;
        const size_t size = strlen(content);
        const bool of_tool = strncmp(content, begin, sizeof begin - 1) == 0 && size >= sizeof end - 1 &&
                             strcmp(content + size - (sizeof end - 1), end) == 0;
        if (is_role(&chat->messages[i], "user") && !of_tool)
            return i;
    }
    return chat->count - 1;
}

/* Thoughts are left out up to the newest question, and written behind it, where the last answer has some even
 * if they are empty. */
static sgm_status write_qwen3(chat_text *chat)
{
    const size_t question = last_question(chat);
    for (size_t i = 0; i < chat->shown; i++) {
        span thoughts = {"", 0}, said = {chat->messages[i].content, strlen(chat->messages[i].content)};
        SGM__PASS(add(chat, "<|im_start|>"));
        SGM__PASS(add(chat, chat->messages[i].role));
        SGM__PASS(add(chat, "\n"));
        if (is_role(&chat->messages[i], "assistant"))
            part_answer(chat->messages[i].content, &thoughts, &said);
        if (is_role(&chat->messages[i], "assistant") && i > question &&
            (i + 1 == chat->count || thoughts.size > 0)) {
            SGM__PASS(add(chat, THINK "\n"));
            SGM__PASS(sgm__buffer_add(&chat->out, thoughts.text, thoughts.size));
            SGM__PASS(add(chat, "\n" THOUGHT "\n\n"));
            said = without_line_ends(said, true, false);
        }
        SGM__PASS(sgm__buffer_add(&chat->out, said.text, said.size));
        SGM__PASS(add(chat, "<|im_end|>\n"));
    }
    return chat->answer ? add(chat, "<|im_start|>assistant\n") : SGM_OK;
}

static sgm_status write_zephyr(chat_text *chat)
{
    for (size_t i = 0; i < chat->shown; i++) {
        SGM__PASS(add(chat, "<|"));
        SGM__PASS(add(chat, chat->messages[i].role));
        SGM__PASS(add(chat, "|>\n"));
        SGM__PASS(add(chat, chat->messages[i].content));
        SGM__PASS(add_token(chat, chat->tokenizer->chat.end, "eos_token"));
        SGM__PASS(add(chat, "\n"));
    }
    return chat->answer ? add(chat, "<|assistant|>\n") : SGM_OK;
}

/* --- Llama 3, 3.1 and 3.2 --- */

static sgm_status add_llama3_header(chat_text *chat, const char *role)
{
    SGM__PASS(add(chat, "<|start_header_id|>"));
    SGM__PASS(add(chat, role));
    return add(chat, "<|end_header_id|>\n\n");
}

/* The messages from `first` on, and the beginning of an answer. */
static sgm_status add_llama3_messages(chat_text *chat, size_t first)
{
    for (size_t i = first; i < chat->shown; i++) {
        SGM__PASS(add_llama3_header(chat, chat->messages[i].role));
        SGM__PASS(add_trimmed(chat, chat->messages[i].content));
        SGM__PASS(add(chat, "<|eot_id|>"));
    }
    return chat->answer ? add_llama3_header(chat, "assistant") : SGM_OK;
}

static sgm_status write_llama3(chat_text *chat)
{
    SGM__PASS(add_token(chat, chat->tokenizer->chat.begin, "bos_token"));
    return add_llama3_messages(chat, 0);
}

/* Each chat begins with a message of the system that has the date; what the chat's own one says follows in
 * it. */
static sgm_status write_with_date(chat_text *chat, const char *date)
{
    const bool has_system = is_role(&chat->messages[0], "system");
    SGM__PASS(add(chat, chat->tokenizer->chat.begin));
    SGM__PASS(add_llama3_header(chat, "system"));
    SGM__PASS(add(chat, "Cutting Knowledge Date: December 2023\nToday Date: "));
    SGM__PASS(add(chat, date));
    SGM__PASS(add(chat, "\n\n"));
    if (has_system)
        SGM__PASS(add_trimmed(chat, chat->messages[0].content));
    SGM__PASS(add(chat, "<|eot_id|>"));
    return add_llama3_messages(chat, has_system);
}

static sgm_status write_llama3_1(chat_text *chat)
{
    return write_with_date(chat, "26 Jul 2024");
}

/* The day where the program runs. Its month is in English, which strftime would write as the locale has it.
 */
static sgm_status write_llama3_2(chat_text *chat)
{
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    struct tm day;
    char date[40];
    if (localtime_r(&chat->now, &day) == NULL)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "the chat has the date of today in it, and the system's clock has none: it is at %lld s; set it",
            (long long)chat->now);
    snprintf(date, sizeof date, "%02d %s %d", day.tm_mday, months[day.tm_mon], day.tm_year + 1900);
    return write_with_date(chat, date);
}

/* It knows users and assistants alone, in turns. */
static sgm_status write_mistral(chat_text *chat)
{
    SGM__PASS(add(chat, chat->tokenizer->chat.begin));
    for (size_t i = 0; i < chat->shown; i++) {
        const bool user = i % 2 == 0;
        if (!is_role(&chat->messages[i], user ? "user" : "assistant"))
            return sgm_fail(
                SGM_ERROR_ARGUMENT,
                "message %zu is of '%.40s'; chats with this model are of user and assistant in turns", i,
                chat->messages[i].role);
        SGM__PASS(add(chat, user ? "[INST] " : ""));
        SGM__PASS(add(chat, chat->messages[i].content));
        SGM__PASS(user ? add(chat, " [/INST]") : add_token(chat, chat->tokenizer->chat.end, "eos_token"));
    }
    return SGM_OK;
}

static const struct sgm__family families[] = {
    {"chatml", 0x88bf4138d5c826f0, "", write_chatml},                             /* SmolLM, OpenHermes */
    {"chatml", 0xc867da37c989d41f, "You are a helpful assistant", write_chatml},  /* Qwen1.5 */
    {"chatml", 0x8a87094e0e1e24c5, "You are a helpful assistant.", write_chatml}, /* Qwen2 */
    {"chatml", 0x45ec583d4d25bc3a, "You are a helpful AI assistant named SmolLM, trained by Hugging Face",
     write_chatml},
    {"chatml", 0x11d394755cef9355, "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.",
     write_chatml},                                   /* Qwen2.5 */
    {"chatml", 0xe62b0eb869d628c3, "", write_chatml}, /* Qwen3 of 2507, which does not think */
    {"qwen3", 0x521e84e1430005c3, "", write_qwen3},
    {"zephyr", 0xcd8b49000db02c2c, "", write_zephyr}, /* Zephyr, TinyLlama */
    {"llama-3", 0x0e60067a5537498e, "", write_llama3},
    {"llama-3.1", 0x4fd30286bc0da17c, "", write_llama3_1},
    {"llama-3.2", 0x1a6da26e3aef1b34, "", write_llama3_2}, /* of texts alone: 1B and 3B */
    {"mistral", 0x8c734b90b4f8d84d, "", write_mistral},    /* Mistral 0.2 */
};

/* FNV-1a of a template. Some files have the two characters \\n where others have the end of a line, which is
 * the same to Jinja; and it does not count one at the end. */
static uint64_t hash_of(const char *template, size_t size)
{
    uint64_t hash = 0xcbf29ce484222325u;
    size -= size > 0 && template[size - 1] == '\n';
    for (size_t i = 0; i < size; i++) {
        const bool is_line_end = template[i] == '\\' && template[i + 1] == 'n';
        i += is_line_end;
        hash = (hash ^ (is_line_end ? '\n' : (unsigned char)template[i])) * 0x100000001b3u;
    }
    return hash;
}

/* A template, which replaces the one before. */
static sgm_status take_template(struct sgm__chat *chat, const char *template, size_t size)
{
    const uint64_t hash = hash_of(template, size);
    free(chat->template);
    chat->template = sgm__copy_text(template, size);
    chat->template_size = size;
    chat->problem = NOT_KNOWN;
    chat->family = NULL;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (families[i].hash == hash)
            chat->family = &families[i];
    return chat->template != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* "bos_token": "<s>", or an object whose content it is. */
static sgm_status read_token(const sgm__node *root, const char *key, char **out)
{
    const sgm__node node = sgm__node_get(root, key);
    size_t size;
    if (json_is_object(node.value))
        SGM__PASS(sgm__node_copy(&node, "content", out, &size));
    else
        SGM__PASS(sgm__node_copy(root, key, out, &size));
    return *out || (*out = sgm__copy_text("", 0)) ? SGM_OK : SGM_ERROR_MEMORY;
}

static sgm_status read_config(struct sgm__chat *chat, const sgm__node *root)
{
    const sgm__node template = sgm__node_get(root, "chat_template");

    SGM__PASS(read_token(root, "bos_token", &chat->begin));
    SGM__PASS(read_token(root, "eos_token", &chat->end));
    if (!template.value)
        return SGM_OK;
    chat->problem = NOT_KNOWN;
    return json_is_string(template.value)
               ? take_template(chat, json_string_value(template.value), json_string_length(template.value))
               : SGM_OK;
}

static sgm_status take_tokens(struct sgm__chat *chat, const char *begin, const char *end)
{
    chat->begin = sgm__copy_text(begin, strlen(begin));
    chat->end = sgm__copy_text(end, strlen(end));
    return chat->begin != NULL && chat->end != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

sgm_status sgm__chat_take(struct sgm__chat *chat, const char *template, size_t size, const char *begin,
                          const char *end)
{
    chat->problem = "no chat template";
    if (template != NULL)
        SGM__PASS(take_template(chat, template, size));
    return take_tokens(chat, begin, end);
}

static sgm_status read_config_file(struct sgm__chat *chat, const char *path)
{
    json_t *root = sgm__json_load_settings(path);
    const sgm__node node = {root, path, ""};
    if (root == NULL)
        return sgm_last_status();
    const sgm_status status = read_config(chat, &node);
    json_decref(root);
    return status;
}

/* Newer folders have the template in a file of its own, which counts. */
static sgm_status read_template_file(struct sgm__chat *chat, const char *path)
{
    sgm__buffer text = {0};
    sgm_status status = sgm__read_file(path, &text);
    if (status == SGM_OK)
        status = take_template(chat, text.data, text.size);
    sgm__buffer_free(&text);
    return status;
}

sgm_status sgm__read_chat(sgm_pretrained_tokenizer *tokenizer, const char *config, const char *template)
{
    struct sgm__chat *chat = &tokenizer->chat;
    chat->problem = "no chat template in a tokenizer_config.json or a chat_template.jinja";
    SGM__PASS(access(config, F_OK) == 0 ? read_config_file(chat, config) : take_tokens(chat, "", ""));
    return access(template, F_OK) == 0 ? read_template_file(chat, template) : SGM_OK;
}

static sgm_status check_message(const sgm_chat_message *message, size_t number)
{
    if (!message->role || !message->content)
        return sgm_fail(SGM_ERROR_ARGUMENT, "message %zu of the chat needs a role and a content", number);
    if (!is_role(message, "system") && !is_role(message, "user") && !is_role(message, "assistant"))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "message %zu of the chat is of '%.40s'; expected system, user or assistant", number,
                        message->role);
    return sgm__utf8_is_valid(message->content, strlen(message->content))
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT, "message %zu of the chat is no UTF-8", number);
}

static sgm_status check(const chat_text *chat)
{
    if (!chat->tokenizer)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a chat needs a tokenizer");
    if (!chat->tokenizer->chat.family)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "the model has %s; known are ChatML as SmolLM and Qwen have it, Zephyr, Llama 3, 3.1 "
                        "and 3.2, and Mistral 0.2",
                        chat->tokenizer->chat.problem);
    if (chat->count == 0 || !chat->messages)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a chat needs at least one message");
    for (size_t i = 0; i < chat->count; i++)
        SGM__PASS(check_message(&chat->messages[i], i));
    return SGM_OK;
}

char *sgm__chat_beginning(const sgm_pretrained_tokenizer *tokenizer, const sgm_chat_message *messages,
                          size_t count, time_t now, size_t shown, bool answer)
{
    chat_text chat = {tokenizer, messages, count, shown, answer, now, {0}};
    char *text = NULL;
    if (check(&chat) == SGM_OK && tokenizer->chat.family->write(&chat) == SGM_OK)
        text = sgm_string_create(chat.out.data, chat.out.size);
    sgm__buffer_free(&chat.out);
    return text;
}

char *sgm_pretrained_tokenizer_chat(const sgm_pretrained_tokenizer *tokenizer,
                                    const sgm_chat_message *messages, size_t count, bool answer)
{
    return sgm__chat_beginning(tokenizer, messages, count, time(NULL), count, answer);
}

const char *sgm_pretrained_tokenizer_chat_family(const sgm_pretrained_tokenizer *tokenizer)
{
    return tokenizer->chat.family ? tokenizer->chat.family->name : NULL;
}

bool sgm_pretrained_tokenizer_has_template(const sgm_pretrained_tokenizer *tokenizer)
{
    const char *problem = tokenizer->chat.problem;
    return tokenizer->chat.family || (problem && strcmp(problem, NOT_KNOWN) == 0);
}
