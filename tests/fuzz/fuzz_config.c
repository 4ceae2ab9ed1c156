/* config.json of a model's folder, beside the tensors of a model of the architecture that it names. */
#include "fuzz.h"

#include <sigma/models.h>

/* The text between the quotes behind "model_type"; "" if it is not there. */
static void find_architecture(const uint8_t *data, size_t size, char name[32])
{
    const uint8_t *at = memmem(data, size, "\"model_type\": \"", 15);
    size_t length = 0;
    if (at != NULL)
        for (at += 15; at + length < data + size && length < 31 && at[length] != '"'; length++)
            name[length] = (char)at[length];
    name[length] = '\0';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const fixtures[] = {"llama3",       "gpt2",   "mistral",        "qwen2",
                                           "qwen3",        "resnet", "bert_classify",  "roberta_fill",
                                           "mobilenet_v2", "vit",    "distilbert_fill"};
    static size_t copied = SIZE_MAX;
    char architecture[32], source[100];
    find_architecture(data, size, architecture);
    size_t chosen = 0;
    for (size_t i = 1; i < sizeof fixtures / sizeof *fixtures && *architecture != '\0'; i++)
        if (strncmp(fixtures[i], architecture, strlen(architecture)) == 0)
            chosen = i;
    snprintf(source, sizeof source, "tests/models/fixtures/%s/model.safetensors", fixtures[chosen]);
    if (chosen != copied)
        fuzz_copy(source, "model.safetensors");
    copied = chosen;
    fuzz_write("config.json", data, size);
    sgm_pretrained_free(sgm_pretrained_open(fuzz_folder()));
    return 0;
}
