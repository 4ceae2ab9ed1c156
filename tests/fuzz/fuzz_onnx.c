/* Models of ONNX, whose tensors may lie in files beside them; they are read and checked, not run. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t numbers[256];
    static bool prepared;
    if (!prepared)
        fuzz_write("data.bin", numbers, sizeof numbers);
    prepared = true;
    sgm_onnx_free(sgm_onnx_load(fuzz_write("model.onnx", data, size)));
    return 0;
}
