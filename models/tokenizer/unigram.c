/* The likeliest of all ways to write a piece as tokens (Kudo, 2018), found by Viterbi's algorithm. */
#include "tokenizer/model.h"
#include "tokenizer/text/utf8.h"

#include <stdlib.h>

static void offer(sgm__step *step, double score, size_t from, uint32_t id)
{
    if (step->from == SIZE_MAX || score > step->score)
        *step = (sgm__step){score, from, id};
}

/* The best way to each place, from the left. */
static sgm_status find_ways(const sgm__model *model, sgm__step *steps, const char *text, size_t size)
{
    const sgm__unigram *unigram = &model->unigram;
    for (size_t start = 0; start < size; start += sgm__utf8_length(text[start])) {
        const size_t length = sgm__utf8_length(text[start]);
        const double score = steps[start].score;
        bool has_single = false;
        uint32_t node = 0;
        for (size_t end = start; end < size;) {
            node = sgm__trie_next(&unigram->trie, node, text[end++]);
            if (node == SGM__NONE)
                break;
            if (unigram->trie.values[node] == SGM__NONE)
                continue;
            offer(&steps[end], score + unigram->scores[unigram->trie.values[node]], start,
                  unigram->trie.values[node]);
            has_single |= end - start == length;
        }
        if (has_single)
            continue;
        if (model->unknown == SGM__NONE)
            return sgm_fail(SGM_ERROR_FORMAT,
                            "the vocabulary has neither '%.*s' nor a token for what is unknown "
                            "(unk_id)",
                            (int)length, text + start);
        offer(&steps[start + length], score + unigram->unknown_score, start, model->unknown);
    }
    return SGM_OK;
}

static sgm_status add_part(const sgm__model *model, const char *text, size_t size, sgm__ids *out)
{
    const uint32_t id = sgm__vocabulary_find(&model->vocabulary, text, size);
    if (id != SGM__NONE)
        return sgm__ids_add(out, id);
    if (!model->byte_fallback || !sgm__model_has_bytes(model, text, size))
        return sgm__ids_add(out, model->unknown);
    for (size_t i = 0; i < size; i++)
        SGM__PASS(sgm__ids_add(out, model->bytes[(unsigned char)text[i]]));
    return SGM_OK;
}

/* Turns the way back into one forward: each step then says where the next one ends. */
static void reverse(sgm__step *steps, size_t size)
{
    size_t end = size, next = SIZE_MAX;
    while (end != SIZE_MAX) {
        const size_t from = end > 0 ? steps[end].from : SIZE_MAX;
        steps[end].from = next;
        next = end;
        end = from;
    }
}

sgm_status sgm__unigram_encode(const sgm__model *model, sgm__scratch *scratch, const char *text, size_t size,
                               sgm__ids *out)
{
    void *room = scratch->steps;
    sgm__step *steps;

    SGM__PASS(sgm__array_reserve(&room, &scratch->step_room, size + 1, sizeof *steps));
    steps = scratch->steps = room;
    for (size_t i = 0; i <= size; i++)
        steps[i] = (sgm__step){0, SIZE_MAX, SGM__NONE};
    SGM__PASS(find_ways(model, steps, text, size));
    reverse(steps, size);
    for (size_t at = 0; at < size;) {
        size_t end = steps[at].from;
        while (end < size && steps[end].id == model->unknown && steps[steps[end].from].id == model->unknown)
            end = steps[end].from; /* unknown ones side by side are one */
        SGM__PASS(add_part(model, text + at, end - at, out));
        at = end;
    }
    return SGM_OK;
}
