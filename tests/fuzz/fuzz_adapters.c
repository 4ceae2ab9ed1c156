/* adapter_config.json of PEFT, for a model that is there. */
#include "fuzz.h"

#include <sigma/models.h>

#define FIXTURES "tests/models/fixtures/"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static sgm_pretrained *model;
    if (model == NULL) {
        fuzz_copy(FIXTURES "llama_peft/adapter_model.safetensors", "adapter_model.safetensors");
        fuzz_expect((model = sgm_pretrained_open(FIXTURES "llama")) != NULL, "sgm_pretrained_open");
    }
    sgm_env *env = sgm_env_create("fuzz", .threads = 1);
    sgm_trainer *trainer = sgm_trainer_create(env, "model");
    fuzz_expect(sgm_trainer_set_network(trainer, sgm_pretrained_network(model)) == SGM_OK, "set_network");
    fuzz_write("adapter_config.json", data, size);
    (void)sgm_pretrained_adapt(model, trainer, fuzz_folder());
    sgm_env_free(env);
    return 0;
}
