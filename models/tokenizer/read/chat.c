/* Chats as models were taught to read them. A template in tokenizer_config.json is a program in a language of
 * its own; it is not run, but recognised by what only its family writes. */
#include "tokenizer/read/json.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct chat_text {
    const sgm_pretrained_tokenizer *tokenizer;
    const sgm_chat_message *messages;
    size_t count;
    bool answer;
    sgm__buffer out;
} chat_text;

/* How a family writes a chat, and what its templates are known by. */
struct sgm__family {
    const char *name, *sign, *other_sign; /* texts that a template of it has; NULL: any */
    sgm_status (*write)(chat_text *chat);
};

static sgm_status add(chat_text *chat, const char *text)
{
    return sgm__buffer_add(&chat->out, text, strlen(text));
}

/* Without the white space around, as templates' `trim`; `inner`: only without that behind. */
static sgm_status add_trimmed(chat_text *chat, const char *text, bool inner)
{
    static const char spaces[] = " \t\n\v\f\r";
    size_t size;
    text += inner ? 0 : strspn(text, spaces);
    size = strlen(text);
    while (size > 0 && strchr(spaces, text[size - 1]))
        size--;
    return sgm__buffer_add(&chat->out, text, size);
}

/* Some families know users and assistants alone, in turns. */
static sgm_status check_turns(const chat_text *chat, size_t first)
{
    for (size_t i = first; i < chat->count; i++)
        if (strcmp(chat->messages[i].role, (i - first) % 2 == 0 ? "user" : "assistant") != 0)
            return sgm_fail(
                SGM_ERROR_ARGUMENT,
                "message %zu is of '%.40s'; chats with this model are of user and assistant in turns", i,
                chat->messages[i].role);
    return SGM_OK;
}

static bool is_role(const sgm_chat_message *message, const char *role)
{
    return strcmp(message->role, role) == 0;
}

/* Qwen, SmolLM and others: OpenAI's ChatML. A chat without a system's message gets the template's own. */
static sgm_status write_chatml(chat_text *chat)
{
    const char *system = chat->tokenizer->chat.system;
    if (*system && !is_role(&chat->messages[0], "system")) {
        SGM__PASS(add(chat, "<|im_start|>system\n"));
        SGM__PASS(add(chat, system));
        SGM__PASS(add(chat, "<|im_end|>\n"));
    }
    for (size_t i = 0; i < chat->count; i++) {
        SGM__PASS(add(chat, "<|im_start|>"));
        SGM__PASS(add(chat, chat->messages[i].role));
        SGM__PASS(add(chat, "\n"));
        SGM__PASS(add(chat, chat->messages[i].content));
        SGM__PASS(add(chat, "<|im_end|>\n"));
    }
    return chat->answer ? add(chat, "<|im_start|>assistant\n") : SGM_OK;
}

/* TinyLlama, Zephyr. */
static sgm_status write_zephyr(chat_text *chat)
{
    for (size_t i = 0; i < chat->count; i++) {
        SGM__PASS(add(chat, "<|"));
        SGM__PASS(add(chat, chat->messages[i].role));
        SGM__PASS(add(chat, "|>\n"));
        SGM__PASS(add(chat, chat->messages[i].content));
        SGM__PASS(add(chat, chat->tokenizer->chat.end));
        SGM__PASS(add(chat, "\n"));
    }
    return chat->answer ? add(chat, "<|assistant|>\n") : SGM_OK;
}

static sgm_status write_llama3(chat_text *chat)
{
    SGM__PASS(add(chat, chat->tokenizer->chat.begin));
    for (size_t i = 0; i < chat->count; i++) {
        SGM__PASS(add(chat, "<|start_header_id|>"));
        SGM__PASS(add(chat, chat->messages[i].role));
        SGM__PASS(add(chat, "<|end_header_id|>\n\n"));
        SGM__PASS(add_trimmed(chat, chat->messages[i].content, false));
        SGM__PASS(add(chat, "<|eot_id|>"));
    }
    return chat->answer ? add(chat, "<|start_header_id|>assistant<|end_header_id|>\n\n") : SGM_OK;
}

/* Llama 2: "<s>[INST] question [/INST] answer </s>"; the system's message is within the first question. */
static sgm_status write_llama2(chat_text *chat)
{
    const bool system = is_role(&chat->messages[0], "system");
    SGM__PASS(check_turns(chat, system));
    for (size_t i = system; i < chat->count; i++) {
        if (is_role(&chat->messages[i], "user")) {
            SGM__PASS(add(chat, chat->tokenizer->chat.begin));
            SGM__PASS(add(chat, "[INST] "));
            if (system && i == 1) {
                SGM__PASS(add(chat, "<<SYS>>\n"));
                SGM__PASS(add(chat, chat->messages[0].content));
                SGM__PASS(add(chat, "\n<</SYS>>\n\n"));
            }
            SGM__PASS(add_trimmed(chat, chat->messages[i].content, system && i == 1));
            SGM__PASS(add(chat, " [/INST]"));
        } else {
            SGM__PASS(add(chat, " "));
            SGM__PASS(add_trimmed(chat, chat->messages[i].content, false));
            SGM__PASS(add(chat, " "));
            SGM__PASS(add(chat, chat->tokenizer->chat.end));
        }
    }
    return SGM_OK;
}

static sgm_status write_mistral(chat_text *chat)
{
    SGM__PASS(check_turns(chat, 0));
    SGM__PASS(add(chat, chat->tokenizer->chat.begin));
    for (size_t i = 0; i < chat->count; i++) {
        const bool user = is_role(&chat->messages[i], "user");
        SGM__PASS(add(chat, user ? "[INST] " : ""));
        SGM__PASS(add(chat, chat->messages[i].content));
        SGM__PASS(add(chat, user ? " [/INST]" : chat->tokenizer->chat.end));
    }
    return SGM_OK;
}

static const struct sgm__family families[] = {
    {"chatml", "<|im_start|>", "<|im_end|>", write_chatml},
    {"zephyr", "<|user|>", "+ eos_token", write_zephyr},
    {"llama-3", "<|start_header_id|>", "<|eot_id|>", write_llama3},
    {"llama-2", "[INST]", "<<SYS>>", write_llama2},
    {"mistral", "'[INST] ' + message['content'] + ' [/INST]'", "message['content'] + eos_token}}",
     write_mistral},
};

/* What a template of no family asks for: the day. */
static const char *const refused[] = {"strftime_now", "Cutting Knowledge Date"};

/* What ChatML templates put in front of a chat that has no message of a system: the text in the template
 * itself. */
static sgm_status find_system(struct sgm__chat *chat, const char *template)
{
    static const char head[] = "<|im_start|>system";
    const char *found = template, *end;
    while ((found = strstr(found, head))) {
        found += sizeof head - 1;
        if (strncmp(found, "\\n", 2) != 0 && *found != '\n')
            continue;
        found += *found == '\n' ? 1 : 2;
        end = strstr(found, "<|im_end|>");
        if (!end || memchr(found, '\'', (size_t)(end - found)) || memchr(found, '{', (size_t)(end - found)))
            continue;
        free(chat->system);
        chat->system = sgm__copy_text(found, (size_t)(end - found));
        break;
    }
    return chat->system ? SGM_OK : SGM_ERROR_MEMORY;
}

static sgm_status recognise(struct sgm__chat *chat, const char *template)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (strstr(template, refused[i])) {
            chat->problem = refused[i];
            return SGM_OK;
        }
    for (size_t i = 0; !chat->family && i < sizeof families / sizeof *families; i++)
        if (strstr(template, families[i].sign) && strstr(template, families[i].other_sign))
            chat->family = &families[i];
    return chat->family && chat->family->write == write_chatml ? find_system(chat, template) : SGM_OK;
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
    const char *text;
    size_t size;

    SGM__PASS(read_token(root, "bos_token", &chat->begin));
    SGM__PASS(read_token(root, "eos_token", &chat->end));
    if (!(chat->system = sgm__copy_text("", 0)))
        return SGM_ERROR_MEMORY;
    if (!template.value)
        return SGM_OK;
    chat->problem = "a template of no known family";
    SGM__PASS(sgm__node_text(root, "chat_template", &text, &size));
    return recognise(chat, text);
}

sgm_status sgm__read_chat(sgm_pretrained_tokenizer *tokenizer, const char *config)
{
    json_t *root;
    sgm__node node = {NULL, config, ""};
    sgm_status status;

    tokenizer->chat.problem = "no chat_template in a tokenizer_config.json";
    if (access(config, F_OK) != 0)
        return SGM_OK;
    if (!(root = sgm__json_load(config)))
        return sgm_last_status();
    node.value = root;
    status = read_config(&tokenizer->chat, &node);
    json_decref(root);
    return status;
}

static sgm_status check(const chat_text *chat)
{
    if (!chat->tokenizer->chat.family)
        return sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "the model has %s; chats are known in these families: chatml, zephyr, llama-2, llama-3, mistral. "
            "Write the text as the model wants it and encode that",
            chat->tokenizer->chat.problem);
    if (chat->count == 0 || !chat->messages)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a chat needs at least one message");
    for (size_t i = 0; i < chat->count; i++)
        if (!chat->messages[i].role || !chat->messages[i].content)
            return sgm_fail(SGM_ERROR_ARGUMENT, "message %zu of the chat needs a role and a content", i);
    return SGM_OK;
}

char *sgm_pretrained_tokenizer_chat(const sgm_pretrained_tokenizer *tokenizer,
                                    const sgm_chat_message *messages, size_t count, bool answer)
{
    chat_text chat = {tokenizer, messages, count, answer, {0}};
    char *text = NULL;
    if (check(&chat) == SGM_OK && tokenizer->chat.family->write(&chat) == SGM_OK)
        text = sgm_string_create(chat.out.data, chat.out.size);
    sgm__buffer_free(&chat.out);
    return text;
}

const char *sgm_pretrained_tokenizer_chat_family(const sgm_pretrained_tokenizer *tokenizer)
{
    return tokenizer->chat.family ? tokenizer->chat.family->name : NULL;
}
