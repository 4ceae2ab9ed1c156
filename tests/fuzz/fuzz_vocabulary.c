/* vocab.txt of BERT. */
#include "fuzz.h"

#include <sigma/tokenizer.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] = "Unaffable \xc3\x89t\xc3\xa9 ##s, \xe4\xb8\xad\xe6\x96\x87 [SEP]";
    fuzz_write("vocab.txt", data, size);
    sgm_pretrained_tokenizer *tokenizer = sgm_pretrained_tokenizer_open(fuzz_folder());
    sgm_tensor *ids =
        tokenizer != NULL ? sgm_pretrained_tokenizer_encode(tokenizer, text, sizeof text - 1) : NULL;
    sgm_tensor_free(ids);
    sgm_pretrained_tokenizer_free(tokenizer);
    return 0;
}
