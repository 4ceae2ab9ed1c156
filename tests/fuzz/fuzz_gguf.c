/* Files of GGUF: a model, whose numbers a trainer loads, and its tokenizer in one. */
#include "tokens.h"

#include <sigma/models.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_write("model.gguf", data, size);
    sgm_pretrained *model = sgm_pretrained_open(path);
    if (model != NULL) {
        sgm_env *env = sgm_env_create("fuzz", .threads = 1);
        sgm_trainer *trainer = sgm_trainer_create(env, "model");
        if (sgm_trainer_set_network(trainer, sgm_pretrained_network(model)) == SGM_OK &&
            sgm_trainer_prepare(trainer) == SGM_OK)
            (void)sgm_pretrained_load(model, trainer);
        sgm_env_free(env);
    }
    sgm_pretrained_free(model);
    fuzz_tokenize(path);
    return 0;
}
