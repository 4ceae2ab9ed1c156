/* `sigma predict MODEL --text 'The capital of France is [MASK].'`: which tokens a masked language model holds
 * likely for each token that is masked.
 *
 * Printed is a line for each of them, the likeliest token first, as words: numbers of tokens say nothing to a
 * reader. */
#include "predict/predict.h"
#include <math.h>
#include <sigma/models.h>
#include <sigma/tokenizer.h>

#include <stdio.h>

/* Tokens that are printed for each one that is masked. */
#define BEST 5

/* What models call the token; -1: there is none. */
static int64_t find_mask(const sgm_pretrained_tokenizer *tokenizer, const char **name)
{
    static const char *const names[] = {"[MASK]", "<mask>"};
    int64_t mask = -1;
    for (size_t i = 0; i < sizeof names / sizeof *names && mask < 0; i++) {
        *name = names[i];
        mask = sgm_pretrained_tokenizer_id(tokenizer, names[i]);
    }
    return mask;
}

bool predict_fills(const prediction *p)
{
    return p->answers == NULL && strcmp(sgm_pretrained_describe(p->model)->task, "fill") == 0;
}

/* The likeliest of those behind `last`, in the order of their probabilities; of equal ones the first. */
static int64_t next_best(const double *shares, int64_t count, int64_t last)
{
    int64_t best = -1;
    for (int64_t i = 0; i < count; i++) {
        const double before = last < 0 ? INFINITY : shares[last];
        const bool is_behind = shares[i] < before || (shares[i] == before && i > last);
        if (is_behind && (best < 0 || shares[i] > shares[best]))
            best = i;
    }
    return best;
}

/* A token as it stands in a text, without the blank that may be a part of it. */
static void print_token(const prediction *p, const sgm_pretrained_tokenizer *tokenizer, int64_t token)
{
    char *text = sgm_pretrained_tokenizer_decode(tokenizer, &token, 1, NULL);
    const char *word = text != NULL ? text + strspn(text, " ") : "";
    if (p->json)
        print_json_text(word);
    else
        print_name(word);
    sgm_string_free(text);
}

static void print_json_best(const prediction *p, const sgm_pretrained_tokenizer *tokenizer,
                            const double *shares, int64_t count, int64_t place)
{
    int64_t token = -1;
    printf("{\"place\": %lld, \"tokens\": [", (long long)place);
    for (int i = 0; i < BEST && (token = next_best(shares, count, token)) >= 0; i++) {
        fputs(i > 0 ? ", {\"token\": " : "{\"token\": ", stdout);
        print_token(p, tokenizer, token);
        printf(", \"id\": %lld, \"probability\": ", (long long)token);
        print_json_element(shares[token], p->wide);
        putchar('}');
    }
    fputs("]}", stdout);
}

/* "paris 0.4168 (lille 0.0714, lyon 0.0633)". */
static void print_best(const prediction *p, const sgm_pretrained_tokenizer *tokenizer, const double *shares,
                       int64_t count)
{
    int64_t token = -1;
    for (int i = 0; i < BEST && (token = next_best(shares, count, token)) >= 0; i++) {
        fputs(i == 0 ? "" : i == 1 ? " (" : ", ", stdout);
        print_token(p, tokenizer, token);
        printf(" %.4f", shares[token]);
    }
    puts(count > 1 ? ")" : "");
}

/* `outputs` has a row of probabilities for each token. */
static sgm_status print_masked(const prediction *p, const sgm_pretrained_tokenizer *tokenizer,
                               const sgm_tensor *tokens, int64_t mask, const sgm_tensor *outputs)
{
    const sgm_shape *shape = sgm_tensor_shape(outputs);
    const int64_t *ids = sgm_tensor_const_data(tokens);
    const int64_t count = shape->dims[shape->rank - 1], numbers = sgm_shape_elements(shape);
    double *shares = sgm__calloc((size_t)numbers, sizeof *shares);
    sgm_status status = shares != NULL ? sgm_tensor_read(outputs, shares, (size_t)numbers) : SGM_ERROR_MEMORY;
    if (p->json && status == SGM_OK)
        printf("{\"example\": %lld, \"masks\": [", (long long)p->done);
    for (int64_t i = 0, printed = 0; i < sgm_tensor_shape(tokens)->dims[0] && status == SGM_OK; i++) {
        if (ids[i] != mask)
            continue;
        if (p->json) {
            fputs(printed++ > 0 ? ", " : "", stdout);
            print_json_best(p, tokenizer, shares + i * count, count, i);
        } else {
            print_best(p, tokenizer, shares + i * count, count);
        }
    }
    if (p->json && status == SGM_OK)
        puts("]}");
    sgm__free(shares);
    return status;
}

static bool has_token(const sgm_tensor *tokens, int64_t token)
{
    const int64_t *ids = sgm_tensor_const_data(tokens);
    bool found = false;
    for (int64_t i = 0; i < sgm_tensor_shape(tokens)->dims[0]; i++)
        found = found || ids[i] == token;
    return found;
}

static sgm_status fill_line(prediction *p, const sgm_pretrained_tokenizer *tokenizer, const char *line)
{
    const char *name;
    const int64_t longest = p->signature.example.dims[0], mask = find_mask(tokenizer, &name);
    if (mask < 0)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "the tokenizer has no token [MASK] or <mask>, which the model "
                                               "would fill");
    sgm_tensor *tokens = sgm_pretrained_tokenizer_encode(tokenizer, line, strlen(line), .longest = longest);
    sgm_tensor *outputs = NULL;
    sgm_status status = tokens != NULL ? SGM_OK : sgm__last_failure();
    if (status == SGM_OK && !has_token(tokens, mask))
        status = sgm_fail(SGM_ERROR_ARGUMENT,
                          "text %lld has no %s among its first %lld tokens: this model says which word is "
                          "masked, as in 'The capital of France is %s.'",
                          (long long)p->done + 1, name, (long long)longest, name);
    if (status == SGM_OK) {
        outputs = sgm_pretrained_predict_texts(
            p->s.trainer, tokenizer, &line, 1, .longest = longest, .inputs = p->signature.input,
            .lengths = p->signature.lengths,
            .segments = p->signature.segments[0] != '\0' ? p->signature.segments : NULL);
        status = outputs != NULL ? SGM_OK : sgm__last_failure();
    }
    if (status == SGM_OK) {
        p->wide = sgm_tensor_dtype(outputs) == SGM_FLOAT64;
        status = print_masked(p, tokenizer, tokens, mask, outputs);
    }
    sgm_tensor_free(outputs);
    sgm_tensor_free(tokens);
    return status;
}

/* One by one, as each text has an output of its own length. */
sgm_status predict_fill(prediction *p, const sgm_pretrained_tokenizer *tokenizer, char *const *lines,
                        size_t count)
{
    for (size_t i = 0; i < count && !predict_is_done(p); i++, p->done++)
        SGM_TRY(fill_line(p, tokenizer, lines[i]));
    return SGM_OK;
}
