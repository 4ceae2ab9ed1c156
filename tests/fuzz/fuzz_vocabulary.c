/* vocab.txt of BERT. */
#include "tokens.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_write("vocab.txt", data, size);
    fuzz_tokenize(fuzz_folder());
    return 0;
}
