/* Files of GGUF: a model and its tokenizer in one. */
#include "fuzz.h"

#include <sigma/models.h>
#include <sigma/tokenizer.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_write("model.gguf", data, size);
    sgm_pretrained_free(sgm_pretrained_open(path));
    sgm_pretrained_tokenizer_free(sgm_pretrained_tokenizer_open(path));
    return 0;
}
