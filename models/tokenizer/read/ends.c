/* Tokens that end a text: a model that was taught chats often has one more than its tokenizer names. */
#include "tokenizer/read/json.h"

#include <stdlib.h>
#include <unistd.h>

static bool is_among(const struct sgm__ends *ends, int64_t id)
{
    for (size_t i = 0; i < ends->count; i++)
        if (ends->ids[i] == id)
            return true;
    return false;
}

static sgm_status add(sgm_pretrained_tokenizer *tokenizer, const sgm__node *node)
{
    struct sgm__ends *ends = &tokenizer->ends;
    const double number = json_number_value(node->value);
    size_t size;

    if (!json_is_number(node->value) || !(number >= 0 && number < SGM__MOST_TOKENS))
        return sgm__node_fail(node, SGM_ERROR_TYPE, "expected the number of a token, or a list of such");
    if (!sgm__tokenizer_text(tokenizer, (int64_t)number, &size) || is_among(ends, (int64_t)number))
        return SGM_OK;
    if (ends->count == SGM__MOST_ENDS)
        return sgm__node_fail(node, SGM_ERROR_LIMIT, "more than %d tokens that end a text", SGM__MOST_ENDS);
    ends->ids[ends->count++] = (int64_t)number;
    return SGM_OK;
}

static sgm_status add_all(sgm_pretrained_tokenizer *tokenizer, const sgm__node *root, bool *is_there)
{
    const sgm__node node = sgm__node_get(root, "eos_token_id");
    *is_there = node.value != NULL;
    if (node.value && !json_is_array(node.value))
        return add(tokenizer, &node);
    for (size_t i = 0; i < json_array_size(node.value); i++) {
        const sgm__node one = sgm__node_at(&node, i);
        SGM__PASS(add(tokenizer, &one));
    }
    return SGM_OK;
}

static sgm_status read_file(sgm_pretrained_tokenizer *tokenizer, const char *path, bool *is_there)
{
    json_t *root;
    sgm__node node = {NULL, path, ""};
    sgm_status status;

    if (access(path, F_OK) != 0)
        return SGM_OK;
    if (!(root = sgm__json_load_settings(path)))
        return sgm_last_status();
    node.value = root;
    status = add_all(tokenizer, &node, is_there);
    json_decref(root);
    return status;
}

void sgm__take_end(sgm_pretrained_tokenizer *tokenizer)
{
    const char *end = tokenizer->chat.end;
    const int64_t id = end && *end ? sgm_pretrained_tokenizer_id(tokenizer, end) : -1;
    if (id >= 0)
        tokenizer->ends = (struct sgm__ends){{id}, 1};
}

sgm_status sgm__read_ends(sgm_pretrained_tokenizer *tokenizer, const char *generation, const char *config)
{
    bool is_there = false;
    size_t size;
    const char *text;

    sgm__take_end(tokenizer);
    SGM__PASS(read_file(tokenizer, generation, &is_there));
    if (!is_there)
        SGM__PASS(read_file(tokenizer, config, &is_there));
    if (tokenizer->ends.count == 0 || (tokenizer->chat.end && *tokenizer->chat.end))
        return SGM_OK;
    text = sgm__tokenizer_text(tokenizer, tokenizer->ends.ids[0], &size);
    free(tokenizer->chat.end);
    tokenizer->chat.end = sgm__copy_text(text, size);
    return tokenizer->chat.end ? SGM_OK : SGM_ERROR_MEMORY;
}
