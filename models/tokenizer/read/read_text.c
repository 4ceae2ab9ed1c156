/* Files of before tokenizer.json: BERT's vocab.txt, GPT-2's vocab.json and merges.txt. */
#include "tokenizer/read/json.h"
#include "tokenizer/text/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The next line of a text, without its end; false: there is none. */
static bool next_line(const sgm__buffer *text, size_t *at, const char **line, size_t *size)
{
    const char *end;
    if (*at >= text->size)
        return false;
    *line = text->data + *at;
    end = memchr(*line, '\n', text->size - *at);
    *size = end ? (size_t)(end - *line) : text->size - *at;
    *at += *size + 1;
    if (*size > 0 && (*line)[*size - 1] == '\r')
        --*size;
    return true;
}

static sgm_status read_valid_file(const char *path, sgm__buffer *out)
{
    SGM__PASS(sgm__read_file(path, out));
    if (sgm__utf8_is_valid(out->data, out->size))
        return SGM_OK;
    return sgm_fail(SGM_ERROR_FORMAT, "%s is no UTF-8", path);
}

/* A special token, if the vocabulary has it; its number, or SGM__NONE. */
static sgm_status add_special(sgm_pretrained_tokenizer *tokenizer, const char *name, uint32_t *id)
{
    sgm__added_token token = {.content = (char *)(uintptr_t)name, .size = strlen(name), .special = true};
    *id = token.id = sgm__vocabulary_find(&tokenizer->model.vocabulary, name, token.size);
    return token.id == SGM__NONE ? SGM_OK : sgm__tokenizer_add_token(tokenizer, &token);
}

/* --- BERT --- */
static sgm_status add_bert_template(sgm_pretrained_tokenizer *tokenizer, uint32_t begin, uint32_t end)
{
    const sgm__template_part parts[] = {{SGM__SPECIAL, begin, 0},
                                        {SGM__TEXT_A, 0, 0},
                                        {SGM__SPECIAL, end, 0},
                                        {SGM__TEXT_B, 0, 1},
                                        {SGM__SPECIAL, end, 1}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (i < 3)
            SGM__PASS(sgm__template_add(&tokenizer->single, parts[i]));
        SGM__PASS(sgm__template_add(&tokenizer->pair, parts[i]));
    }
    return SGM_OK;
}

static sgm_status read_bert_vocabulary(sgm_pretrained_tokenizer *tokenizer, const char *path)
{
    sgm__model *model = &tokenizer->model;
    sgm__buffer text = {0};
    const char *line;
    size_t at = 0, size;
    uint32_t id = 0;
    sgm_status status = read_valid_file(path, &text);

    while (status == SGM_OK && next_line(&text, &at, &line, &size)) {
        if (id == SGM__MOST_TOKENS)
            status = sgm_fail(SGM_ERROR_LIMIT, "%s has over %u lines, more than any vocabulary", path, id);
        else
            status = sgm__vocabulary_add(&model->vocabulary, line, size, id++);
    }
    sgm__buffer_free(&text);
    return status;
}

/* What tokenizer_config.json says of BERT's; it need not be there. */
static sgm_status read_bert_config(const char *path, bool *lowercase, bool *ideographs, bool *accents)
{
    json_t *root = NULL;
    sgm__node node = {NULL, path, ""};
    sgm_status status;

    *lowercase = *ideographs = *accents = true;
    if (access(path, F_OK) != 0)
        return SGM_OK;
    if (!(root = sgm__json_load_settings(path)))
        return sgm_last_status();
    node.value = root;
    status = sgm__node_bool(&node, "do_lower_case", true, lowercase);
    if (status == SGM_OK)
        status = sgm__node_bool(&node, "tokenize_chinese_chars", true, ideographs);
    if (status == SGM_OK)
        status = sgm__node_bool(&node, "strip_accents", *lowercase, accents);
    json_decref(root);
    return status;
}

sgm_status sgm__read_bert_file(sgm_pretrained_tokenizer *tokenizer, const char *path, const char *config)
{
    static const char *const names[] = {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"};
    sgm__model *model = &tokenizer->model;
    uint32_t ids[sizeof names / sizeof *names];
    bool lowercase, ideographs, accents;
    sgm__decoder *decoder;

    model->kind = SGM__WORDPIECE;
    model->wordpiece.longest = 100;
    if (!(model->wordpiece.prefix = sgm__copy_text("##", 2)))
        return SGM_ERROR_MEMORY;
    SGM__PASS(read_bert_vocabulary(tokenizer, path));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        SGM__PASS(add_special(tokenizer, names[i], &ids[i]));
        if (i < 3 && ids[i] == SGM__NONE)
            return sgm_fail(SGM_ERROR_NOT_FOUND, "%s has no line '%s'; it must be the vocabulary of a BERT",
                            path, names[i]);
    }
    model->unknown = ids[0];
    SGM__PASS(add_bert_template(tokenizer, ids[1], ids[2]));
    SGM__PASS(read_bert_config(config, &lowercase, &ideographs, &accents));
    SGM__PASS(sgm__add_bert_normalizers(&tokenizer->normalizers, true, ideographs, accents, lowercase));
    SGM__PASS(sgm__add_bert_splitters(&tokenizer->splitters));
    if (!(decoder = sgm__new_decoder(&tokenizer->decoders, SGM__DECODE_WORDPIECE)) ||
        !(decoder->text = sgm__copy_text("##", 2)))
        return SGM_ERROR_MEMORY;
    decoder->size = 2;
    decoder->flag = true;
    return SGM_OK;
}

/* --- GPT-2 --- */
static sgm_status read_merge_lines(sgm__model *model, const char *path, const sgm__buffer *text)
{
    const char *line;
    size_t at = 0, size, number = 0;
    uint32_t rank = 0;
    sgm__buffer joined = {0};
    sgm_status status = SGM_OK;

    while (status == SGM_OK && next_line(text, &at, &line, &size)) {
        const char *space = memchr(line, ' ', size);
        const char *second = space ? space + 1 : line + size;
        number++;
        if (size == 0 || (number == 1 && size >= 8 && memcmp(line, "#version", 8) == 0))
            continue;
        if (!space || memchr(second, ' ', (size_t)(line + size - second))) {
            status =
                sgm_fail(SGM_ERROR_FORMAT, "%s:%zu: expected two tokens with a space between", path, number);
            break;
        }
        status =
            sgm__bpe_add_merge(model, &joined, (const char *[]){line, second},
                               (size_t[]){(size_t)(space - line), (size_t)(line + size - second)}, rank++);
        if (status != SGM_OK) {
            char message[300];
            strncpy(message, sgm_last_error(), sizeof message - 1)[sizeof message - 1] = 0;
            status = sgm_fail(status, "%s:%zu: %s", path, number, message);
        }
    }
    sgm__buffer_free(&joined);
    return status;
}

sgm_status sgm__read_gpt2_files(sgm_pretrained_tokenizer *tokenizer, const char *vocabulary,
                                const char *merges)
{
    sgm__buffer text = {0};
    uint32_t id;
    json_t *root = sgm__json_load(vocabulary);
    json_t *model = root ? json_pack("{s:o}", "vocab", root) : NULL;
    const sgm__node node = {model, vocabulary, ""};
    sgm_status status = model ? sgm__read_vocabulary(&tokenizer->model.vocabulary, &node) : sgm_last_status();

    json_decref(model);
    if (status == SGM_OK)
        status = read_valid_file(merges, &text);
    if (status == SGM_OK)
        status = read_merge_lines(&tokenizer->model, merges, &text);
    sgm__buffer_free(&text);
    SGM__PASS(status);
    if (sgm__vocabulary_find(&tokenizer->model.vocabulary, "</s>", 4) != SGM__NONE)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "%s has '</s>', so it is not GPT-2's; its model needs a tokenizer.json", vocabulary);
    SGM__PASS(add_special(tokenizer, "<|endoftext|>", &id));
    SGM__PASS(sgm__add_byte_splitters(&tokenizer->splitters, false, true));
    return sgm__new_decoder(&tokenizer->decoders, SGM__DECODE_BYTES) ? SGM_OK : SGM_ERROR_MEMORY;
}
