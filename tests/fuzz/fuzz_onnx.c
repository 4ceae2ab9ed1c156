/* Models of ONNX, whose tensors may lie in files beside them; they are read, checked and recorded, but not
 * run. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t numbers[256];
    static bool prepared;
    if (!prepared)
        fuzz_write("data.bin", numbers, sizeof numbers);
    prepared = true;
    sgm_onnx *model = sgm_onnx_load(fuzz_write("model.onnx", data, size), .threads = 1);
    if (model != NULL) {
        sgm_graph *graph = sgm_graph_create();
        (void)sgm_onnx_import(model, graph, 2);
        sgm_graph_free(graph);
    }
    sgm_onnx_free(model);
    return 0;
}
