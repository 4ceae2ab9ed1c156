/* A tokenizer as a member of a JSON object: the pairs of the tokens behind those of bytes, from 256 on. See
 * tokenizer.h. */
#include "data/tokens/tokenizer.h"
#include "text/json_members.h"

#define MEMBER "tokenizer"

void sgm__tokenizer_put(const sgm_tokenizer *tokenizer, json_t *object, bool *failed)
{
    int64_t pairs = tokenizer->vocabulary - SGM__BYTES;
    json_t *list = pairs > 0 ? json_array() : NULL;
    for (int64_t i = 0; i < pairs; i++) {
        const int32_t *parts = tokenizer->parts[i];
        *failed |= json_array_append_new(list, json_pack("[ii]", (int)parts[0], (int)parts[1])) != 0;
    }
    if (pairs > 0)
        sgm__json_put(object, MEMBER, list, failed);
}

/* Adds the token of one pair. */
static sgm_status take_pair(sgm_tokenizer *tokenizer, const json_t *pair)
{
    const json_t *left = json_array_get(pair, 0), *right = json_array_get(pair, 1);
    json_int_t vocabulary = tokenizer->vocabulary, one = json_integer_value(left),
               other = json_integer_value(right);
    if (json_array_size(pair) != 2 || !json_is_integer(left) || !json_is_integer(right) || one < 0 ||
        other < 0 || one >= vocabulary || other >= vocabulary)
        return sgm__json_fail_member(MEMBER,
                                     "a list of pairs of tokens, each of two that are there before it,");
    return sgm__tokenizer_add(tokenizer, (int32_t)one, (int32_t)other);
}

static sgm_status take_pairs(sgm_tokenizer *tokenizer, const json_t *object)
{
    const json_t *list = json_object_get(object, MEMBER);
    if (list != NULL && json_array_size(list) == 0)
        return sgm__json_fail_member(MEMBER, "a list of pairs of tokens");
    for (size_t i = 0; i < json_array_size(list); i++)
        SGM_TRY(take_pair(tokenizer, json_array_get(list, i)));
    return SGM_OK;
}

sgm_tokenizer *sgm__tokenizer_take(const json_t *object)
{
    sgm_tokenizer *tokenizer = sgm_byte_tokenizer();
    if (tokenizer == NULL || take_pairs(tokenizer, object) == SGM_OK)
        return tokenizer;
    sgm_tokenizer_free(tokenizer);
    return NULL;
}
