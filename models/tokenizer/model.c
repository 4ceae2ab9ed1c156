#include "tokenizer/model.h"
#include "tokenizer/text/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sgm__model_free(sgm__model *model)
{
    sgm__vocabulary_free(&model->vocabulary);
    sgm__table_free(&model->bpe.merges);
    free(model->bpe.whole);
    free(model->bpe.prefix);
    free(model->bpe.suffix);
    free(model->wordpiece.prefix);
    free(model->unigram.scores);
    sgm__trie_free(&model->unigram.trie);
    *model = (sgm__model){0};
}

void sgm__scratch_free(sgm__scratch *scratch)
{
    free(scratch->symbols);
    free(scratch->heap);
    free(scratch->steps);
    sgm__buffer_free(&scratch->text);
    *scratch = (sgm__scratch){0};
}

sgm_status sgm__model_prepare(sgm__model *model)
{
    char name[8];
    for (unsigned byte = 0; byte < 256; byte++) {
        snprintf(name, sizeof name, "<0x%02X>", byte);
        model->bytes[byte] = sgm__vocabulary_find(&model->vocabulary, name, 6);
    }
    return model->kind == SGM__BPE ? sgm__bpe_prepare(model) : SGM_OK;
}

bool sgm__model_has_bytes(const sgm__model *model, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (model->bytes[(unsigned char)text[i]] == SGM__NONE)
            return false;
    return true;
}

sgm_status sgm__model_encode(const sgm__model *model, sgm__scratch *scratch, const char *text, size_t size,
                             sgm__ids *out)
{
    switch (model->kind) {
    case SGM__WORDPIECE:
        return sgm__wordpiece_encode(model, scratch, text, size, out);
    case SGM__UNIGRAM:
        return sgm__unigram_encode(model, scratch, text, size, out);
    case SGM__BPE:
        break;
    }
    return sgm__bpe_encode(model, scratch, text, size, out);
}

static size_t count_characters(const char *text, size_t size)
{
    size_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += ((unsigned char)text[i] & 0xc0) != 0x80;
    return count;
}

/* The longest token that a word begins with, then the longest one that the rest begins with, and so on; a
 * word that some rest has none of is unknown as a whole (Wu et al., 2016). */
sgm_status sgm__wordpiece_encode(const sgm__model *model, sgm__scratch *scratch, const char *text,
                                 size_t size, sgm__ids *out)
{
    const char *prefix = model->wordpiece.prefix;
    const size_t prefix_size = strlen(prefix), before = out->count;
    size_t start = count_characters(text, size) > model->wordpiece.longest ? size : 0;
    bool is_known = start < size;

    scratch->text.size = 0;
    SGM__PASS(sgm__buffer_add(&scratch->text, prefix, prefix_size));
    SGM__PASS(sgm__buffer_add(&scratch->text, text, size));
    while (is_known && start < size) {
        const size_t head = start > 0 ? prefix_size : 0;
        char *part = scratch->text.data + prefix_size + start - head;
        size_t end = size;
        uint32_t id = SGM__NONE;
        memcpy(part, prefix, head);
        while (end > start &&
               (id = sgm__vocabulary_find(&model->vocabulary, part, head + end - start)) == SGM__NONE)
            end = sgm__utf8_before(text, end);
        is_known = id != SGM__NONE;
        if (is_known)
            SGM__PASS(sgm__ids_add(out, id));
        start = end;
    }
    if (is_known)
        return SGM_OK;
    out->count = before;
    return sgm__ids_add(out, model->unknown);
}
