#include "tokenizer/split.h"
#include "tokenizer/text/characters.h"
#include "tokenizer/text/utf8.h"

#include <stdlib.h>
#include <string.h>

void sgm__splitters_free(sgm__splitters *splitters)
{
    for (size_t i = 0; i < splitters->count; i++)
        sgm__pattern_free(&splitters->steps[i].pattern);
    free(splitters->steps);
    *splitters = (sgm__splitters){0};
}

void sgm__pieces_free(sgm__pieces *pieces)
{
    sgm__buffer_free(&pieces->text);
    free(pieces->list);
    *pieces = (sgm__pieces){0};
}

static bool is_printable_byte(unsigned byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

/* Bytes that are no visible character have those from U+0100 on, in their order: 0 to 32, 127 to 160, 173. */
uint32_t sgm__byte_character(unsigned char byte)
{
    if (is_printable_byte(byte))
        return byte;
    return 0x100u + (byte <= 32 ? byte : byte <= 160 ? byte - 127u + 33 : 67);
}

int sgm__character_byte(uint32_t character)
{
    if (character < 0x100)
        return is_printable_byte(character) ? (int)character : -1;
    if (character > 0x143)
        return -1;
    character -= 0x100;
    return character <= 32 ? (int)character : character < 67 ? (int)character - 33 + 127 : 173;
}

static sgm_status add_piece(sgm__pieces *pieces, size_t at, size_t size, bool first)
{
    if (pieces->count == pieces->room) {
        void *list = pieces->list;
        SGM__PASS(sgm__array_reserve(&list, &pieces->room, pieces->count + 1, sizeof *pieces->list));
        pieces->list = list;
    }
    pieces->list[pieces->count++] = (sgm__piece){at, size, first};
    return SGM_OK;
}

/* --- steps that find borders --- */
/* The parts of one piece, in order; the last one waits for what may still join it. */
typedef struct piece_parts {
    const sgm__splitter *step;
    sgm__pieces *out;
    sgm__piece whole, last;
    bool has_last, last_matched;
} piece_parts;

static sgm_status flush(piece_parts *parts)
{
    const sgm__piece last = parts->last;
    if (!parts->has_last)
        return SGM_OK;
    parts->has_last = false;
    if (last.size == 0)
        return SGM_OK;
    return add_piece(parts->out, parts->whole.at + last.at, last.size, parts->whole.first && last.at == 0);
}

static bool joins(const piece_parts *parts, bool matched)
{
    switch (parts->step->behavior) {
    case SGM__MERGED_WITH_PREVIOUS:
        return matched && !parts->last_matched;
    case SGM__MERGED_WITH_NEXT:
        return !matched && parts->last_matched;
    case SGM__CONTIGUOUS:
        return matched == parts->last_matched;
    case SGM__REMOVED:
    case SGM__ISOLATED:
        break;
    }
    return false;
}

/* An empty match is a border too, and joins parts as any other; an empty part between two is nothing. */
static sgm_status add_part(piece_parts *parts, size_t start, size_t end, bool matched)
{
    if (start == end && !matched)
        return SGM_OK;
    matched ^= parts->step->invert;
    if (matched && parts->step->behavior == SGM__REMOVED)
        return SGM_OK;
    if (parts->has_last && joins(parts, matched)) {
        parts->last.size += end - start;
    } else {
        SGM__PASS(flush(parts));
        parts->last = (sgm__piece){start, end - start, false};
        parts->has_last = true;
    }
    parts->last_matched = matched;
    return SGM_OK;
}

static sgm_status split_pattern(piece_parts *parts, sgm__matcher *matcher, const char *text, size_t size)
{
    sgm__match match = {0};
    for (size_t done = 0;; done = match.end) {
        SGM__PASS(sgm__pattern_next(&parts->step->pattern, matcher, text, size, &match));
        if (!match.found)
            return add_part(parts, done, size, false);
        SGM__PASS(add_part(parts, done, match.start, false));
        SGM__PASS(add_part(parts, match.start, match.end, true));
    }
}

static sgm_status split_characters(piece_parts *parts, const char *text, size_t size)
{
    size_t at = 0, done = 0;
    while (at < size) {
        const size_t start = at;
        if (!parts->step->is_border(sgm__utf8_next(text, &at)))
            continue;
        SGM__PASS(add_part(parts, done, start, false));
        SGM__PASS(add_part(parts, start, at, true));
        done = at;
    }
    return add_part(parts, done, size, false);
}

static int kind_of(uint32_t character)
{
    return sgm__unicode_is_word(character) ? 1 : sgm__unicode_is_space(character) ? 0 : 2;
}

static sgm_status split_words(piece_parts *parts, const char *text, size_t size)
{
    size_t at = 0, done = 0;
    int kind = 0;
    while (at < size) {
        const size_t start = at;
        const int next = kind_of(sgm__utf8_next(text, &at));
        if (next != kind) {
            SGM__PASS(add_part(parts, done, start, kind == 0));
            done = start;
            kind = next;
        }
    }
    return add_part(parts, done, size, kind == 0);
}

/* The text stays as it is: it goes over to `out`. */
static sgm_status find_borders(const sgm__splitter *step, sgm__matcher *matcher, sgm__pieces *in,
                               sgm__pieces *out)
{
    const sgm__buffer text = in->text;
    in->text = out->text;
    out->text = text;
    for (size_t i = 0; i < in->count; i++) {
        piece_parts parts = {.step = step, .out = out, .whole = in->list[i]};
        const char *piece = text.data + parts.whole.at;
        SGM__PASS(step->kind == SGM__SPLIT_PATTERN ? split_pattern(&parts, matcher, piece, parts.whole.size)
                  : step->kind == SGM__SPLIT_CHARACTERS ? split_characters(&parts, piece, parts.whole.size)
                                                        : split_words(&parts, piece, parts.whole.size));
        SGM__PASS(flush(&parts));
    }
    return SGM_OK;
}

/* --- steps that write another text --- */
static sgm_status write_bytes(const char *text, size_t size, sgm__buffer *out)
{
    SGM__PASS(sgm__buffer_reserve(out, size * 2));
    for (size_t i = 0; i < size; i++)
        if (text[i] > ' ' && text[i] < 0x7f)
            out->data[out->size++] = text[i];
        else
            out->size += sgm__utf8_put(sgm__byte_character((unsigned char)text[i]), out->data + out->size);
    return SGM_OK;
}

static sgm_status write_marks(const sgm__splitter *step, const char *text, const sgm__piece *piece,
                              sgm__buffer *out)
{
    char mark[4];
    const size_t size = sgm__utf8_put(step->mark, mark);
    const bool begins = *text == ' ' || (piece->size >= size && memcmp(text, mark, size) == 0);

    if (!begins && (step->before == SGM__ALWAYS || (step->before == SGM__FIRST && piece->first)))
        SGM__PASS(sgm__buffer_add(out, mark, size));
    for (size_t i = 0; i < piece->size; i++)
        SGM__PASS(text[i] == ' ' ? sgm__buffer_add(out, mark, size) : sgm__buffer_add(out, text + i, 1));
    return SGM_OK;
}

static sgm_status write_piece(const sgm__splitter *step, const char *text, const sgm__piece *piece,
                              sgm__buffer *out)
{
    if (step->kind == SGM__BYTES)
        return write_bytes(text, piece->size, out);
    if (step->kind == SGM__METASPACE)
        return write_marks(step, text, piece, out);
    if (*text != ' ')
        SGM__PASS(sgm__buffer_add(out, " ", 1));
    return sgm__buffer_add(out, text, piece->size);
}

static sgm_status rewrite(const sgm__splitter *step, const sgm__pieces *in, sgm__pieces *out)
{
    for (size_t i = 0; i < in->count; i++) {
        const size_t start = out->text.size;
        SGM__PASS(write_piece(step, in->text.data + in->list[i].at, &in->list[i], &out->text));
        SGM__PASS(add_piece(out, start, out->text.size - start, in->list[i].first));
    }
    return SGM_OK;
}

sgm_status sgm__split(const sgm__splitters *splitters, sgm__matcher *matcher, const char *text, size_t size,
                      bool first, sgm__pieces pieces[2])
{
    pieces[0].text.size = pieces[0].count = 0;
    SGM__PASS(sgm__buffer_add(&pieces[0].text, text, size));
    SGM__PASS(add_piece(&pieces[0], 0, size, first));
    for (size_t i = 0; i < splitters->count; i++) {
        const sgm__splitter *step = &splitters->steps[i];
        sgm__pieces swap;
        pieces[1].text.size = pieces[1].count = 0;
        SGM__PASS(step->kind >= SGM__SPLIT_PATTERN ? find_borders(step, matcher, &pieces[0], &pieces[1])
                                                   : rewrite(step, &pieces[0], &pieces[1]));
        SGM__PASS(sgm__check_growth(size, pieces[1].text.size));
        swap = pieces[0];
        pieces[0] = pieces[1];
        pieces[1] = swap;
    }
    return SGM_OK;
}
