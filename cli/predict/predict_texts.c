/* `sigma predict MODEL --text TEXT`, or a file with a text on each line: for a network of tokens that
 * 'sigma import' made, by the tokenizer of its folder (sigma_models). */
#include "predict/predict.h"
#include <sigma/models.h>
#include <sigma/tokenizer.h>

#include <jansson.h>
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

/* --- lines of JSON --- */

/* Texts of lines {"text": "...", "pair": "..."}, and what they are in. */
typedef struct json_lines {
    json_t *objects;
    char **texts;
    const char **pairs; /* NULL where a line has none */
    size_t count;
} json_lines;

static void json_lines_free(json_lines *lines)
{
    json_decref(lines->objects);
    sgm__free(lines->texts);
    sgm__free(lines->pairs);
}

/* Adds a line, which has a pair if the first one has. */
static sgm_status add_line(json_lines *lines, const char *line)
{
    json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    const char *text = json_string_value(json_object_get(object, "text"));
    const char *pair = json_string_value(json_object_get(object, "pair"));
    const bool is_whole = text != NULL && (lines->count == 0 || (pair != NULL) == (lines->pairs[0] != NULL));
    if (!is_whole || json_array_append(lines->objects, object) != 0) {
        json_decref(object);
        return sgm_fail(SGM_ERROR_FORMAT,
                        "expected an object with a text, and all or none with a pair, such as "
                        "{\"text\": \"a large cat\"}");
    }
    json_decref(object);
    lines->texts[lines->count] = (char *)(uintptr_t)text;
    lines->pairs[lines->count++] = pair;
    return SGM_OK;
}

/* Blank lines are passed over. */
static sgm_status read_objects(const char *path, char *const *given, size_t count, json_lines *lines)
{
    *lines = (json_lines){.objects = json_array(),
                          .texts = sgm__calloc(count + 1, sizeof *lines->texts),
                          .pairs = sgm__calloc(count + 1, sizeof *lines->pairs)};
    if (lines->objects == NULL || lines->texts == NULL || lines->pairs == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++)
        if (given[i][strspn(given[i], " \t")] != '\0' && add_line(lines, given[i]) != SGM_OK)
            return sgm__fail_within("%s:%zu", path, i + 1);
    return SGM_OK;
}

/* --- texts that are too long --- */

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

/* The lines of a file, which are objects if its name says so. */
static sgm_status predict_file_lines(prediction *p, const sgm_pretrained_tokenizer *tokenizer,
                                     const char *path, char **lines, size_t count)
{
    if (path == NULL || !ends_with(path, ".jsonl"))
        return predict_lines(p, tokenizer, lines, NULL, count);
    json_lines objects;
    sgm_status status = read_objects(path, lines, count, &objects);
    const bool has_pairs = status == SGM_OK && objects.count > 0 && objects.pairs[0] != NULL;
    if (status == SGM_OK)
        status = predict_lines(p, tokenizer, objects.texts, has_pairs ? objects.pairs : NULL, objects.count);
    json_lines_free(&objects);
    return status;
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
        sgm_fail(SGM_ERROR_NOT_FOUND, NO_TOKENIZER "; put it there", missing);
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
        status = lines != NULL ? predict_file_lines(p, tokenizer, path, lines, count) : sgm__last_failure();
        sgm__free(lines);
    }
    sgm__text_free(&text);
    sgm_pretrained_tokenizer_free(tokenizer);
    sgm__free(model);
    sgm__free(folder);
    return status;
}
