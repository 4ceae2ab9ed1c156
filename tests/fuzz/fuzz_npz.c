/* Archives of NumPy's arrays. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sgm_bundle_free(sgm_bundle_load(fuzz_write("file.npz", data, size)));
    return 0;
}
