/* Files of tensors: safetensors, as checkpoints and models of others have it. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sgm_bundle_free(sgm_bundle_load(fuzz_write("file.safetensors", data, size)));
    return 0;
}
