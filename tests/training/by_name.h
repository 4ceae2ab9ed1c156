/* What a trainer shows, by name: numbers, texts and elements of tensors; and setting it. */
#ifndef SIGMA_TEST_BY_NAME_H
#define SIGMA_TEST_BY_NAME_H

#include "waves.h"

__attribute__((unused)) static bool has(sgm_trainer *trainer, const char *identifier)
{
    sgm_content content;
    if (sgm_registry_resolve_one(sgm_trainer_registry(trainer), identifier, &content) != SGM_OK)
        return false;
    sgm_content_clear(&content);
    return true;
}

__attribute__((unused)) static double number_of(sgm_trainer *trainer, const char *identifier)
{
    sgm_content content;
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(trainer), identifier, &content));
    CHECK(content.kind == SGM_KIND_NUMBER || content.kind == SGM_KIND_INTEGER);
    return content.kind == SGM_KIND_INTEGER ? (double)content.as.integer : content.as.number;
}

/* As it is written; until three others have been asked for. */
__attribute__((unused)) static const char *described(sgm_trainer *trainer, const char *identifier)
{
    static char texts[4][256];
    static int next;
    char *kept = texts[next++ % 4];
    sgm_content content;
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(trainer), identifier, &content));
    char *text = sgm_content_describe(&content);
    snprintf(kept, sizeof texts[0], "%s", text);
    sgm_string_free(text);
    sgm_content_clear(&content);
    return kept;
}

/* All that match, with spaces between them; until the next call. */
__attribute__((unused)) static const char *identifiers_of(sgm_trainer *trainer, const char *identifier)
{
    static char text[1024];
    sgm_matches matches;
    CHECK_OK(sgm_registry_resolve(sgm_trainer_registry(trainer), identifier, &matches));
    text[0] = '\0';
    for (size_t i = 0; i < matches.count; i++) {
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "%s%s", i > 0 ? " " : "", matches.items[i].identifier);
    }
    sgm_matches_free(&matches);
    return text;
}

/* Element (2, 1) of a matrix, by its identifier. */
__attribute__((unused)) static double element_of(sgm_trainer *trainer, const char *identifier)
{
    sgm_content content;
    CHECK_OK(sgm_registry_resolve_one(sgm_trainer_registry(trainer), identifier, &content));
    CHECK_INT(content.kind, SGM_KIND_TENSOR);
    double value = sgm_tensor_get(content.as.tensor, (const int64_t[]){2, 1});
    sgm_content_clear(&content);
    return value;
}

/* The same of a state. */
__attribute__((unused)) static double weight_of(sgm_trainer *trainer, const char *state)
{
    sgm_tensor *tensor = sgm_trainer_get(trainer, state);
    CHECK_OK(tensor);
    double value = sgm_tensor_get(tensor, (const int64_t[]){2, 1});
    sgm_tensor_free(tensor);
    return value;
}

__attribute__((unused)) static sgm_status set(sgm_trainer *trainer, const char *identifier,
                                              sgm_content content)
{
    return sgm_registry_resolve_set(sgm_trainer_registry(trainer), identifier, content, NULL, NULL);
}

#endif
