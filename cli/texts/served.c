/* Texts of `sigma serve`: the server has no tokenizer, this file gives it the one of the model of others. */
#include "texts/served.h"
#include "config/experiment.h"

sgm_status served_texts_find(saved *s, bool *takes)
{
    sgm__signature signature;
    char *folder = saved_tokenizer(s);
    *takes = false;
    sgm_status status = folder != NULL ? experiment_describe(s->network, &signature) : SGM_OK;
    if (status == SGM_OK && folder != NULL && signature.lengths[0] != '\0' && signature.example.rank == 1) {
        *takes = true;
        status = saved_take_pairs(s);
    }
    sgm__free(folder);
    return status;
}

static sgm_status copy_classes(served_texts *texts, const sgm_pretrained *model)
{
    size_t count = 0;
    while (sgm_pretrained_class(model, (int64_t)count) != NULL)
        count++;
    texts->classes = count > 0 ? sgm__calloc(count + 1, sizeof *texts->classes) : NULL;
    for (size_t i = 0; texts->classes != NULL && i < count; i++)
        if ((texts->classes[i] = sgm__strdup(sgm_pretrained_class(model, (int64_t)i))) == NULL)
            return SGM_ERROR_MEMORY;
    return count == 0 || texts->classes != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

sgm_status served_texts_open(served_texts *texts, const saved *s)
{
    char *folder = saved_tokenizer(s), *path = saved_model(s);
    texts->trainer = s->trainer;
    texts->tokenizer = folder != NULL ? sgm_pretrained_tokenizer_open(folder) : NULL;
    sgm_pretrained *model = texts->tokenizer != NULL && path != NULL ? sgm_pretrained_open(path) : NULL;
    sgm_status status =
        model != NULL ? experiment_describe(s->network, &texts->signature) : sgm__last_failure();
    if (status == SGM_OK)
        status = copy_classes(texts, model);
    sgm_pretrained_free(model);
    sgm__free(path);
    sgm__free(folder);
    return status;
}

/* A text that was cut could get another answer, and who asks would not know. */
static sgm_tensor *predict(void *user, const char *const *texts, const char *const *pairs, size_t count)
{
    const served_texts *own = user;
    const sgm__signature *signature = &own->signature;
    const char *segments = signature->segments[0] != '\0' ? signature->segments : NULL;
    return sgm_pretrained_predict_texts(own->trainer, own->tokenizer, texts, count,
                                        .longest = signature->example.dims[0], .inputs = signature->input,
                                        .lengths = signature->lengths, .segments = segments, .pairs = pairs,
                                        .no_cut = true);
}

sgm__serve_texts served_texts_hook(served_texts *texts)
{
    return (sgm__serve_texts){.predict = texts->tokenizer != NULL ? predict : NULL, .user = texts};
}

void served_texts_close(served_texts *texts)
{
    for (size_t i = 0; texts->classes != NULL && texts->classes[i] != NULL; i++)
        sgm__free(texts->classes[i]);
    sgm__free(texts->classes);
    sgm_pretrained_tokenizer_free(texts->tokenizer);
}
