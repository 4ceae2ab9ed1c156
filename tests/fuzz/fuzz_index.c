/* model.safetensors.index.json: which tensor is in which of several files. */
#include "fuzz.h"

#include <sigma/models.h>

#define FIXTURE "tests/models/fixtures/llama/"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const files[] = {"config.json", "model-00001-of-00003.safetensors",
                                        "model-00002-of-00003.safetensors",
                                        "model-00003-of-00003.safetensors"};
    static bool prepared;
    for (size_t i = 0; i < sizeof files / sizeof *files && !prepared; i++) {
        char source[200];
        snprintf(source, sizeof source, FIXTURE "%s", files[i]);
        fuzz_copy(source, files[i]);
    }
    prepared = true;
    fuzz_write("model.safetensors.index.json", data, size);
    sgm_pretrained_free(sgm_pretrained_open(fuzz_folder()));
    return 0;
}
