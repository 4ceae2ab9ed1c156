/* A tokenizer that could be opened also takes a text apart, puts it together again and writes a chat. */
#ifndef TESTS_FUZZ_TOKENS_H
#define TESTS_FUZZ_TOKENS_H

#include "fuzz.h"

#include <sigma/tokenizer.h>

static inline void fuzz_tokenize(const char *path)
{
    static const char text[] =
        "Hello, World!  1234 \xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80 can't \n\n aaaaaaaaaa \xff<s> [SEP]";
    const sgm_chat_message message = {"user", "Hello"};
    sgm_pretrained_tokenizer *tokenizer = sgm_pretrained_tokenizer_open(path);
    if (tokenizer == NULL)
        return;
    sgm_tensor *ids = sgm_pretrained_tokenizer_encode(tokenizer, text, sizeof text - 1);
    if (ids != NULL)
        sgm_string_free(sgm_pretrained_tokenizer_decode(
            tokenizer, sgm_tensor_const_data(ids), (size_t)sgm_shape_elements(sgm_tensor_shape(ids)), NULL));
    sgm_string_free(sgm_pretrained_tokenizer_chat(tokenizer, &message, 1, true));
    sgm_tensor_free(ids);
    sgm_pretrained_tokenizer_free(tokenizer);
}

#endif
