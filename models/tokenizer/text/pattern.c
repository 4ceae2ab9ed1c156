#include "tokenizer/text/pattern.h"
#include "tokenizer/text/utf8.h"

#include <stdlib.h>
#include <string.h>

/* Steps of one match. A token's expression takes some for each byte of a run of spaces or letters; one that
 * backtracks from every place takes more than any time. */
#define MOST_STEPS 20000000
#define MOST_DEPTH 1000000
/* Bytes of the pattern and of what PCRE2 may take for one match. */
#define LONGEST_EXPRESSION 65536
#define MOST_KILOBYTES 65536

sgm_status sgm__pattern_open_regex(sgm__pattern *pattern, const char *expression, size_t size)
{
    pcre2_compile_context *context = NULL;
    sgm__buffer translated = {0};
    sgm_status status = SGM_OK;
    PCRE2_UCHAR reason[128];
    PCRE2_SIZE place = 0;
    int code = 0;

    if (size > LONGEST_EXPRESSION)
        return sgm_fail(SGM_ERROR_LIMIT, "a regular expression of %zu bytes; at most %d may be one", size,
                        LONGEST_EXPRESSION);
    status = sgm__pattern_translate(expression, size, &translated);
    if (status == SGM_OK && !(pattern->text = sgm__copy_text(expression, size)))
        status = SGM_ERROR_MEMORY;
    if (status == SGM_OK && !(context = pcre2_compile_context_create(NULL)))
        status = sgm_fail(SGM_ERROR_MEMORY, "out of memory for a regular expression");
    if (status == SGM_OK) {
        pattern->size = size;
        pcre2_set_newline(context, PCRE2_NEWLINE_LF);
        pattern->code = pcre2_compile((PCRE2_SPTR)(size > 0 ? translated.data : ""), translated.size,
                                      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                                      &code, &place, context);
        if (!pattern->code) {
            pcre2_get_error_message(code, reason, sizeof reason);
            status = sgm_fail(SGM_ERROR_FORMAT, "the regular expression '%.200s' cannot be read: %s",
                              pattern->text, (const char *)reason);
        } else {
            uint32_t matches_empty = 1;
            pcre2_pattern_info(pattern->code, PCRE2_INFO_MATCHEMPTY, &matches_empty);
            pattern->may_be_empty = matches_empty != 0;
            pattern->compiled = pcre2_jit_compile(pattern->code, PCRE2_JIT_COMPLETE) == 0;
        }
    }
    pcre2_compile_context_free(context);
    sgm__buffer_free(&translated);
    return status;
}

sgm_status sgm__pattern_open_string(sgm__pattern *pattern, const char *text, size_t size)
{
    if (size == 0) /* is everywhere, as an empty expression is */
        return sgm__pattern_open_regex(pattern, text, size);
    pattern->text = sgm__copy_text(text, size);
    pattern->size = size;
    return pattern->text ? SGM_OK : SGM_ERROR_MEMORY;
}

void sgm__pattern_free(sgm__pattern *pattern)
{
    pcre2_code_free(pattern->code);
    free(pattern->text);
    *pattern = (sgm__pattern){0};
}

void sgm__matcher_free(sgm__matcher *matcher)
{
    pcre2_match_data_free(matcher->data);
    pcre2_match_context_free(matcher->context);
    *matcher = (sgm__matcher){0};
}

static sgm_status prepare(sgm__matcher *matcher)
{
    matcher->data = pcre2_match_data_create(1, NULL);
    matcher->context = pcre2_match_context_create(NULL);
    if (!matcher->data || !matcher->context)
        return sgm_fail(SGM_ERROR_MEMORY, "out of memory for a regular expression");
    pcre2_set_match_limit(matcher->context, MOST_STEPS);
    pcre2_set_depth_limit(matcher->context, MOST_DEPTH);
    pcre2_set_heap_limit(matcher->context, MOST_KILOBYTES);
    return SGM_OK;
}

static int match(const sgm__pattern *pattern, const sgm__matcher *matcher, const char *text, size_t size,
                 size_t from)
{
    const PCRE2_SPTR subject = (PCRE2_SPTR)text;
    int found = PCRE2_ERROR_JIT_STACKLIMIT;
    if (pattern->compiled)
        found = pcre2_jit_match(pattern->code, subject, size, from, PCRE2_NO_UTF_CHECK, matcher->data,
                                matcher->context);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) /* machine code has 32 kB; without, it takes more */
        found = pcre2_match(pattern->code, subject, size, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                            matcher->data, matcher->context);
    return found;
}

static void next_string(const sgm__pattern *pattern, const char *text, size_t size, sgm__match *last)
{
    const char *found = memmem(text + last->end, size - last->end, pattern->text, pattern->size);
    const size_t start = found ? (size_t)(found - text) : size;
    *last = (sgm__match){start, found ? start + pattern->size : size, found != NULL};
}

sgm_status sgm__pattern_next(const sgm__pattern *pattern, sgm__matcher *matcher, const char *text,
                             size_t size, sgm__match *last)
{
    const bool has_last = last->found;
    size_t from = last->end;

    if (!pattern->code)
        return next_string(pattern, text, size, last), SGM_OK;
    if (!matcher->data)
        SGM__PASS(prepare(matcher));
    last->found = false;
    while (size > 0 && (from < size || (from == size && pattern->may_be_empty))) {
        const PCRE2_SIZE *places = pcre2_get_ovector_pointer(matcher->data);
        const int found = match(pattern, matcher, text, size, from);
        if (found == PCRE2_ERROR_NOMATCH)
            break;
        if (found < 0)
            return sgm_fail(
                SGM_ERROR_LIMIT,
                "the regular expression '%.200s' takes too long at byte %zu of a text of %zu bytes; split "
                "the text, or take another tokenizer",
                pattern->text, from, size);
        if (places[1] > places[0] || !has_last || places[0] != last->end) {
            *last = (sgm__match){places[0], places[1], true};
            return SGM_OK;
        }
        from += from < size ? sgm__utf8_length(text[from]) : 1;
    }
    return SGM_OK;
}
