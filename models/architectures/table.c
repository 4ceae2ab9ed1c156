/* The architectures that are known. */
#include "architectures/architectures.h"
#include <sigma/models.h>

static const sgm__architecture *const table[] = {
    &sgm__gpt2,    &sgm__llama,       &sgm__mistral,    &sgm__qwen2, &sgm__qwen3,  &sgm__bert,
    &sgm__roberta, &sgm__xlm_roberta, &sgm__distilbert, &sgm__vit,   &sgm__resnet, &sgm__mobilenet_v2};

const sgm__architecture *sgm__architecture_at(size_t index)
{
    return index < sizeof table / sizeof *table ? table[index] : NULL;
}

const char *sgm_architecture_at(size_t index)
{
    const sgm__architecture *architecture = sgm__architecture_at(index);
    return architecture != NULL ? architecture->type : NULL;
}
