/* "messages" of a chat: what was said, as the tokens that the model was taught to read. */
#include "openai/asking.h"

#include <stdio.h>

/* The chat while it is read; contents are owned. */
typedef struct chat_messages {
    sgm_chat_message *messages;
    size_t count;
} chat_messages;

/* Refuses message `index`, for its member `key`. */
static sgm_status refuse(asking *ask, size_t index, const char *key, const char *why)
{
    char param[80];
    snprintf(param, sizeof param, "messages[%zu]%s%.40s", index, *key != '\0' ? "." : "", key);
    return ask_refuse(ask, param, "%s", why);
}

/* The parts of a content that is a list, one behind the other: {"type": "text", "text": ...}. */
static sgm_status join_parts(asking *ask, size_t index, const json_t *parts, sgm__text *content)
{
    size_t i;
    json_t *part;
    json_array_foreach(parts, i, part)
    {
        const char *type = json_string_value(json_object_get(part, "type"));
        const char *text = json_string_value(json_object_get(part, "text"));
        if (type == NULL || strcmp(type, "text") != 0 || text == NULL)
            return refuse(ask, index, "content",
                          "expected a text, or parts {\"type\": \"text\", \"text\": TEXT}; others, such as "
                          "pictures, are not taken here");
        sgm__text_append_bytes(content, text, strlen(text));
    }
    return SGM_OK;
}

static sgm_status read_content(asking *ask, size_t index, const json_t *content, char **taken)
{
    sgm__text text = {0};
    if (!json_is_string(content) && json_array_size(content) == 0)
        return refuse(ask, index, "content", "expected a text");
    sgm__text_append_bytes(&text, "", 0);
    sgm_status status = SGM_OK;
    if (json_is_string(content))
        sgm__text_append_bytes(&text, json_string_value(content), json_string_length(content));
    else
        status = join_parts(ask, index, content, &text);
    if (status == SGM_OK && (*taken = sgm__text_take(&text)) == NULL)
        status = SGM_ERROR_MEMORY;
    sgm__text_free(&text);
    return status;
}

/* "developer" is what newer models call the system. */
static const char *role_of(const json_t *message)
{
    static const char *const roles[] = {"system", "user", "assistant"};
    const char *role = json_string_value(json_object_get(message, "role"));
    if (role != NULL && strcmp(role, "developer") == 0)
        return roles[0];
    for (size_t i = 0; role != NULL && i < sizeof roles / sizeof *roles; i++)
        if (strcmp(role, roles[i]) == 0)
            return roles[i];
    return NULL;
}

/* Clients send answers back as they got them, with members that are empty; one that is not would be part of
 * what the model reads. */
static sgm_status check_members(asking *ask, size_t index, const json_t *message)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)message, key, value)
    {
        bool is_empty = json_is_null(value) || (json_is_array(value) && json_array_size(value) == 0) ||
                        (json_is_object(value) && json_object_size(value) == 0);
        if (!is_empty && strcmp(key, "role") != 0 && strcmp(key, "content") != 0)
            return refuse(ask, index, key, "this is not done here; leave it out");
    }
    return SGM_OK;
}

static sgm_status read_message(asking *ask, size_t index, const json_t *message, sgm_chat_message *taken)
{
    char *content = NULL;
    if (!json_is_object(message))
        return refuse(ask, index, "", "expected {\"role\": ROLE, \"content\": TEXT}");
    if ((taken->role = role_of(message)) == NULL)
        return refuse(ask, index, "role", "expected system, developer, user or assistant");
    SGM_TRY(check_members(ask, index, message));
    SGM_TRY(read_content(ask, index, json_object_get(message, "content"), &content));
    taken->content = content;
    return SGM_OK;
}

static sgm_status read_all(asking *ask, const json_t *list, chat_messages *chat)
{
    for (; chat->count < json_array_size(list); chat->count++)
        SGM_TRY(
            read_message(ask, chat->count, json_array_get(list, chat->count), &chat->messages[chat->count]));
    return SGM_OK;
}

/* What a template does not take, such as roles in another order, is a mistake of the request. */
sgm_status messages_read(asking *ask, sgm_tensor **tokens)
{
    const json_t *list = ask_value(ask, "messages");
    chat_messages chat = {0};
    *tokens = NULL;
    if (json_array_size(list) == 0)
        return ask_refuse(ask, "messages", "expected a list of messages");
    chat.messages = sgm__calloc(json_array_size(list), sizeof *chat.messages);
    sgm_status status = chat.messages != NULL ? read_all(ask, list, &chat) : SGM_ERROR_MEMORY;
    if (status == SGM_OK &&
        (*tokens = text_codec_encode_chat(&ask->server->codec, chat.messages, chat.count)) == NULL) {
        status = sgm__last_failure();
        if (status != SGM_ERROR_MEMORY)
            status = ask_refuse(ask, "messages", "%s", sgm_last_error());
    }
    for (size_t i = 0; i < chat.count; i++)
        sgm__free((char *)(uintptr_t)chat.messages[i].content);
    sgm__free(chat.messages);
    return status;
}
