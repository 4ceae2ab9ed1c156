/* tokenizer.json: what is read must also take a text apart and put it together again. */
#include "fuzz.h"

#include <sigma/tokenizer.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] =
        "Hello, World!  1234 \xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80 can't \n\n aaaaaaaaaa \xff<s>";
    fuzz_write("tokenizer.json", data, size);
    sgm_pretrained_tokenizer *tokenizer = sgm_pretrained_tokenizer_open(fuzz_folder());
    sgm_tensor *ids =
        tokenizer != NULL ? sgm_pretrained_tokenizer_encode(tokenizer, text, sizeof text - 1) : NULL;
    if (ids != NULL)
        sgm_string_free(sgm_pretrained_tokenizer_decode(
            tokenizer, sgm_tensor_const_data(ids), (size_t)sgm_shape_elements(sgm_tensor_shape(ids)), NULL));
    sgm_tensor_free(ids);
    sgm_pretrained_tokenizer_free(tokenizer);
    return 0;
}
