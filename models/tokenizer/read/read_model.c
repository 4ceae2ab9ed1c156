/* The model of tokenizer.json: its vocabulary, and what it makes tokens by. */
#include "tokenizer/read/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static sgm_status add_token(sgm__vocabulary *vocabulary, const sgm__node *node, const char *text, size_t size,
                            json_int_t id, size_t count)
{
    size_t other_size;
    const char *other;

    if (id < 0 || id >= SGM__MOST_TOKENS || (size_t)id >= count + SGM__MOST_GAPS)
        return sgm__node_fail(
            node, SGM_ERROR_FORMAT,
            "'%.60s' has the number %lld; numbers of %zu tokens are from 0 on, without large gaps", text,
            (long long)id, count);
    other = sgm__vocabulary_token(vocabulary, (uint32_t)id, &other_size);
    if (other)
        return sgm__node_fail(node, SGM_ERROR_FORMAT, "'%.60s' and '%.60s' have the same number %lld", other,
                              text, (long long)id);
    return sgm__vocabulary_add(vocabulary, text, size, (uint32_t)id);
}

sgm_status sgm__read_vocabulary(sgm__vocabulary *vocabulary, const sgm__node *node)
{
    const sgm__node vocab = sgm__node_get(node, "vocab");
    const size_t count = json_object_size(vocab.value);
    void *at;

    if (!json_is_object(vocab.value))
        return sgm__node_fail(&vocab, SGM_ERROR_TYPE, "expected an object of tokens and their numbers");
    for (at = json_object_iter((json_t *)(uintptr_t)vocab.value); at;
         at = json_object_iter_next((json_t *)(uintptr_t)vocab.value, at)) {
        const char *text = json_object_iter_key(at);
        const json_t *id = json_object_iter_value(at);
        if (!json_is_integer(id))
            return sgm__node_fail(&vocab, SGM_ERROR_TYPE, "the number of '%.60s' is not a whole number",
                                  text);
        SGM__PASS(add_token(vocabulary, &vocab, text, strlen(text), json_integer_value(id), count));
    }
    return SGM_OK;
}

/* "unk_token": its number. */
static sgm_status read_unknown(sgm__model *model, const sgm__node *node, bool required)
{
    const sgm__node unknown = sgm__node_get(node, "unk_token");
    const char *text = "";
    size_t size = 0;

    if (!unknown.value && !required)
        return SGM_OK;
    SGM__PASS(sgm__node_text(node, "unk_token", &text, &size));
    model->unknown = sgm__vocabulary_find(&model->vocabulary, text, size);
    return model->unknown != SGM__NONE
               ? SGM_OK
               : sgm__node_fail(&unknown, SGM_ERROR_NOT_FOUND, "'%.60s' is not in the vocabulary", text);
}

/* --- byte pairs --- */
/* "a b" or ["a", "b"]. */
static sgm_status read_merge(const sgm__node *node, const char **first, size_t *first_size,
                             const char **second, size_t *second_size)
{
    const json_t *a = json_array_get(node->value, 0), *b = json_array_get(node->value, 1);
    if (json_is_string(a) && json_is_string(b) && json_array_size(node->value) == 2) {
        *first = json_string_value(a);
        *first_size = json_string_length(a);
        *second = json_string_value(b);
        *second_size = json_string_length(b);
        return SGM_OK;
    }
    if (json_is_string(node->value)) {
        const char *text = json_string_value(node->value), *space = strchr(text, ' ');
        if (space && !strchr(space + 1, ' ')) {
            *first = text;
            *first_size = (size_t)(space - text);
            *second = space + 1;
            *second_size = strlen(space + 1);
            return SGM_OK;
        }
    }
    return sgm__node_fail(node, SGM_ERROR_FORMAT,
                          "expected two tokens: \"FIRST SECOND\" or [\"FIRST\", \"SECOND\"]");
}

static sgm_status read_merges(sgm__model *model, const sgm__node *node)
{
    sgm__node list;
    sgm__buffer joined = {0};
    sgm_status status = sgm__node_array(node, "merges", &list);

    for (size_t i = 0; status == SGM_OK && i < json_array_size(list.value); i++) {
        const sgm__node one = sgm__node_at(&list, i);
        const char *texts[2];
        size_t sizes[2];
        status = read_merge(&one, &texts[0], &sizes[0], &texts[1], &sizes[1]);
        if (status == SGM_OK)
            status = sgm__node_within(&one, sgm__bpe_add_merge(model, &joined, texts, sizes, (uint32_t)i));
    }
    sgm__buffer_free(&joined);
    return status;
}

/* An empty text stands for none. */
static sgm_status read_affix(const sgm__node *node, const char *key, char **out)
{
    size_t size;
    SGM__PASS(sgm__node_copy(node, key, out, &size));
    if (*out && size == 0) {
        free(*out);
        *out = NULL;
    }
    return SGM_OK;
}

static sgm_status read_bpe(sgm__model *model, const sgm__node *node)
{
    const sgm__node dropout = sgm__node_get(node, "dropout");
    model->kind = SGM__BPE;
    if (dropout.value && json_number_value(dropout.value) != 0)
        return sgm__node_fail(&dropout, SGM_ERROR_UNSUPPORTED,
                              "merges that are left out at random are not supported; "
                              "set it to null");
    SGM__PASS(sgm__read_vocabulary(&model->vocabulary, node));
    SGM__PASS(read_unknown(model, node, false));
    SGM__PASS(sgm__node_bool(node, "fuse_unk", false, &model->bpe.fuse_unknown));
    SGM__PASS(sgm__node_bool(node, "byte_fallback", false, &model->byte_fallback));
    SGM__PASS(sgm__node_bool(node, "ignore_merges", false, &model->bpe.ignore_merges));
    SGM__PASS(read_affix(node, "continuing_subword_prefix", &model->bpe.prefix));
    SGM__PASS(read_affix(node, "end_of_word_suffix", &model->bpe.suffix));
    return read_merges(model, node);
}

/* --- the others --- */
/* Characters: each part of a word is looked up, which takes their square. */
#define LONGEST_WORD 1000

static sgm_status read_wordpiece(sgm__model *model, const sgm__node *node)
{
    uint64_t longest = 100;
    size_t size;
    model->kind = SGM__WORDPIECE;
    SGM__PASS(sgm__read_vocabulary(&model->vocabulary, node));
    SGM__PASS(read_unknown(model, node, true));
    SGM__PASS(sgm__node_copy(node, "continuing_subword_prefix", &model->wordpiece.prefix, &size));
    if (!model->wordpiece.prefix && !(model->wordpiece.prefix = sgm__copy_text("##", 2)))
        return SGM_ERROR_MEMORY;
    if (sgm__node_get(node, "max_input_chars_per_word").value)
        SGM__PASS(sgm__node_count(node, "max_input_chars_per_word", LONGEST_WORD, &longest));
    model->wordpiece.longest = longest;
    return SGM_OK;
}

static sgm_status read_unigram(sgm__model *model, const sgm__node *node)
{
    sgm__unigram *unigram = &model->unigram;
    double least = INFINITY;
    uint64_t unknown;
    sgm__node list;
    size_t count;

    model->kind = SGM__UNIGRAM;
    SGM__PASS(sgm__node_array(node, "vocab", &list));
    count = json_array_size(list.value);
    if (!(unigram->scores = sgm__allocate_zero(count, sizeof *unigram->scores)))
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const sgm__node one = sgm__node_at(&list, i);
        const json_t *text = json_array_get(one.value, 0), *score = json_array_get(one.value, 1);
        if (!json_is_string(text) || !json_is_number(score))
            return sgm__node_fail(&one, SGM_ERROR_TYPE, "expected [\"TOKEN\", SCORE]");
        SGM__PASS(add_token(&model->vocabulary, &one, json_string_value(text), json_string_length(text),
                            (json_int_t)i, count));
        SGM__PASS(
            sgm__trie_add(&unigram->trie, json_string_value(text), json_string_length(text), (uint32_t)i));
        unigram->scores[i] = json_number_value(score);
        least = unigram->scores[i] < least ? unigram->scores[i] : least;
    }
    unigram->unknown_score = least - 10;
    SGM__PASS(sgm__node_bool(node, "byte_fallback", false, &model->byte_fallback));
    if (!sgm__node_get(node, "unk_id").value)
        return SGM_OK;
    if (count == 0)
        return sgm__node_fail(&list, SGM_ERROR_FORMAT, "no tokens");
    SGM__PASS(sgm__node_count(node, "unk_id", count - 1, &unknown));
    model->unknown = (uint32_t)unknown;
    return SGM_OK;
}

/* Files of before 2020 do not say which model it is. */
static const char *guess_type(const sgm__node *node)
{
    if (json_is_array(sgm__node_get(node, "vocab").value))
        return "Unigram";
    return sgm__node_get(node, "merges").value ? "BPE" : "WordPiece";
}

sgm_status sgm__read_model(sgm_pretrained_tokenizer *tokenizer, const sgm__node *node)
{
    const char *type = guess_type(node);
    size_t size;
    if (sgm__node_get(node, "type").value)
        SGM__PASS(sgm__node_text(node, "type", &type, &size));
    if (strcmp(type, "BPE") == 0)
        return read_bpe(&tokenizer->model, node);
    if (strcmp(type, "WordPiece") == 0)
        return read_wordpiece(&tokenizer->model, node);
    if (strcmp(type, "Unigram") == 0)
        return read_unigram(&tokenizer->model, node);
    return sgm__node_fail(node, SGM_ERROR_UNSUPPORTED,
                          "the model '%.60s' is not supported; BPE, WordPiece and Unigram are", type);
}
