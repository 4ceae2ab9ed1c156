/* `sigma predict MODEL --text TEXT`, or a file with a text on each line: for a network of tokens that
 * 'sigma import' made, by the tokenizer of its folder (sigma_models). */
#include "predict/predict.h"
#include <sigma/models.h>
#include <sigma/tokenizer.h>

#include <stdio.h>

/* Texts that are predicted and printed at once. */
#define CHUNK 1024

/* Lines are ended in place; *count of them. The list is freed with sgm__free. */
static char **cut_lines(sgm__text *text, size_t *count)
{
    size_t lines = 1;
    for (size_t i = 0; i < text->length; i++)
        lines += text->data[i] == '\n';
    char **list = sgm__calloc(lines, sizeof *list);
    *count = 0;
    for (size_t i = 0, first = 0; list != NULL && i < text->length; i++)
        if (text->data[i] == '\n' || i + 1 == text->length) {
            size_t end = text->data[i] == '\n' ? i : i + 1;
            list[(*count)++] = text->data + first;
            text->data[end - (end > first && text->data[end - 1] == '\r')] = '\0';
            first = i + 1;
        }
    return list;
}

/* The file's text; of no file, that of the standard input. */
static sgm_status read_text(const char *path, sgm__text *text)
{
    char part[65536];
    size_t got;
    if (path == NULL)
        return predict_read_standard_input(text);
    FILE *file = sgm__file_open_stream(path);
    if (file == NULL)
        return sgm__last_failure();
    while ((got = fread(part, 1, sizeof part, file)) > 0)
        sgm__text_append_bytes(text, part, got);
    bool failed = ferror(file) != 0;
    fclose(file);
    return failed         ? sgm_fail(SGM_ERROR_FILE, "cannot read '%s'", path)
           : text->failed ? sgm__fail_memory(text->length)
                          : SGM_OK;
}

/* Texts that have more tokens than the network reads. */
typedef struct cut_texts {
    size_t count;
    int64_t most; /* tokens of the longest */
} cut_texts;

/* Special tokens around a text, or a pair. */
#define MOST_SPECIAL 4

/* A token is at least a byte of its text, so that most texts need no count. */
static sgm_status count_cut(const prediction *p, const sgm_pretrained_tokenizer *tokenizer, const char *text,
                            const char *pair, cut_texts *cut)
{
    const int64_t longest = p->signature.example.dims[0];
    const size_t size = strlen(text), pair_size = pair != NULL ? strlen(pair) : 0;
    if (size + pair_size + MOST_SPECIAL <= (size_t)longest)
        return SGM_OK;
    sgm_tensor *tokens =
        sgm_pretrained_tokenizer_encode(tokenizer, text, size, .pair = pair, .pair_size = pair_size);
    if (tokens == NULL)
        return sgm__last_failure();
    const int64_t count = sgm_tensor_shape(tokens)->dims[0];
    cut->count += count > longest;
    cut->most = count > cut->most ? count : cut->most;
    sgm_tensor_free(tokens);
    return SGM_OK;
}

/* What is left out may decide, and nothing else tells. */
static sgm_status warn_of_cut(const prediction *p, const sgm_pretrained_tokenizer *tokenizer, char **lines,
                              const char *const *pairs, size_t count)
{
    cut_texts cut = {0};
    const long long longest = (long long)p->signature.example.dims[0];
    const size_t read = p->limit >= 0 && (size_t)p->limit < count ? (size_t)p->limit : count;
    for (size_t i = 0; i < read; i++)
        SGM_TRY(count_cut(p, tokenizer, lines[i], pairs != NULL ? pairs[i] : NULL, &cut));
    if (cut.count > 0 && count == 1)
        complain("warning: the text has %lld tokens, and the network reads %lld: the rest is left out\n",
                 (long long)cut.most, longest);
    else if (cut.count > 0)
        complain(
            "warning: %zu of %zu texts have more tokens than the %lld that the network reads, the longest "
            "%lld: the rest is left out\n",
            cut.count, read, longest, (long long)cut.most);
    return SGM_OK;
}

/* `pairs` NULL: there are none; else as many as lines. */
static sgm_status predict_lines(prediction *p, const sgm_pretrained_tokenizer *tokenizer, char **lines,
                                const char *const *pairs, size_t count)
{
    SGM_TRY(warn_of_cut(p, tokenizer, lines, pairs, count));
    if (pairs == NULL && predict_fills(p))
        return predict_fill(p, tokenizer, lines, count);
    const char *segments = p->signature.segments[0] != '\0' ? p->signature.segments : NULL;
    for (size_t i = 0; i < count && !predict_is_done(p); i += CHUNK)
        SGM_TRY(predict_outputs(
            p,
            sgm_pretrained_predict_texts(p->s.trainer, tokenizer, (const char *const *)lines + i,
                                         count - i < CHUNK ? count - i : CHUNK,
                                         .longest = p->signature.example.dims[0],
                                         .inputs = p->signature.input, .lengths = p->signature.lengths,
                                         .segments = segments, .pairs = pairs != NULL ? pairs + i : NULL),
            NULL));
    return SGM_OK;
}

/* Whether the input is tokens, of which a field says how many there are. */
static bool is_encoder(const prediction *p)
{
    return p->onnx.onnx == NULL && p->signature.lengths[0] != '\0' && p->signature.example.rank == 1;
}

bool predict_takes_texts(const prediction *p)
{
    char *folder = is_encoder(p) ? saved_tokenizer(&p->s) : NULL;
    sgm__free(folder);
    return folder != NULL;
}

/* Whether the cost of the model's classes judges each by itself; one alone is a label, too. */
static bool has_labels(const prediction *p)
{
    static const char of_labels[] = "binary_cross_entropy";
    const char *cost = network_find_cost(p->s.network);
    return strcmp(sgm_pretrained_describe(p->model)->task, "classify") == 0 && cost != NULL &&
           strncmp(cost, of_labels, strlen(of_labels)) == 0;
}

sgm_status predict_texts(prediction *p, const char *given, const char *pair, const char *path)
{
    char *missing = is_encoder(p) ? saved_missing_tokenizer(&p->s) : NULL;
    if (missing != NULL) {
        sgm_fail(SGM_ERROR_NOT_FOUND,
                 "texts are read by the tokenizer of the model, and there is no " TOKENIZER_FILES
                 " in '%s'; put it there",
                 missing);
        sgm__free(missing);
        return SGM_ERROR_NOT_FOUND;
    }
    if (!predict_takes_texts(p))
        return sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "texts are for encoders that 'sigma import' read with their tokenizer, whose input has "
            "lengths; this network takes a file or --data");
    char *folder = saved_tokenizer(&p->s), *model = saved_model(&p->s);
    sgm_pretrained_tokenizer *tokenizer = folder != NULL ? sgm_pretrained_tokenizer_open(folder) : NULL;
    sgm__text text = {0};
    p->model = model != NULL && tokenizer != NULL ? sgm_pretrained_open(model) : NULL;
    sgm_status status = p->model != NULL ? SGM_OK : sgm__last_failure();
    p->has_labels = status == SGM_OK && has_labels(p);
    if (status == SGM_OK && given != NULL && strcmp(given, "-") != 0)
        status =
            predict_lines(p, tokenizer, (char *[]){(char *)(uintptr_t)given}, pair != NULL ? &pair : NULL, 1);
    else if (status == SGM_OK && (status = read_text(path, &text)) == SGM_OK) {
        size_t count = 0;
        sgm__text_append_bytes(&text, "", 1); /* room for the end of the last line */
        text.length--;
        char **lines = text.failed ? NULL : cut_lines(&text, &count);
        status = lines != NULL ? predict_lines(p, tokenizer, lines, NULL, count) : sgm__last_failure();
        sgm__free(lines);
    }
    sgm__text_free(&text);
    sgm_pretrained_tokenizer_free(tokenizer);
    sgm__free(model);
    sgm__free(folder);
    return status;
}
