/* Normalisers, pre-tokenisers and decoders of tokenizer.json. */
#include "tokenizer/read/json.h"
#include "tokenizer/text/utf8.h"

#include <stdlib.h>
#include <string.h>

/* Bytes that a step writes for each match: the longest honest one is some spaces. */
#define LONGEST_CONTENT 64

static sgm_status refuse(const sgm__node *node, const char *what, const char *type)
{
    return sgm__node_fail(node, SGM_ERROR_UNSUPPORTED, "the %s '%.60s' is not supported", what, type);
}

static sgm_status type_of(const sgm__node *node, size_t steps, const char **type)
{
    size_t size;
    if (steps >= SGM__MOST_STEPS)
        return sgm__node_fail(node, SGM_ERROR_LIMIT, "more than %d steps", SGM__MOST_STEPS);
    if (!json_is_object(node->value))
        return sgm__node_fail(node, SGM_ERROR_TYPE, "expected an object");
    return sgm__node_text(node, "type", type, &size);
}

static int base64_value(char digit)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = digit ? strchr(digits, digit) : NULL;
    return found ? (int)(found - digits) : -1;
}

static sgm_status read_charsmap(sgm__charsmap *charsmap, const sgm__node *node)
{
    const sgm__node map = sgm__node_get(node, "precompiled_charsmap");
    sgm__buffer bytes = {0};
    const char *text;
    size_t size;
    uint32_t bits = 0;
    sgm_status status;

    if (!map.value)
        return SGM_OK;
    SGM__PASS(sgm__node_text(node, "precompiled_charsmap", &text, &size));
    while (size > 0 && text[size - 1] == '=')
        size--;
    status = sgm__buffer_reserve(&bytes, size);
    for (size_t i = 0; i < size && status == SGM_OK; i++) {
        const int value = base64_value(text[i]);
        if (value < 0)
            status = sgm__node_fail(&map, SGM_ERROR_FORMAT, "byte %zu is no base64", i);
        bits = bits << 6 | (uint32_t)(value & 63);
        if (i % 4 != 0 && status == SGM_OK)
            bytes.data[bytes.size++] = (char)(bits >> (i % 4 == 1 ? 4 : i % 4 == 2 ? 2 : 0));
    }
    if (status == SGM_OK)
        status = sgm__node_within(
            &map, sgm__charsmap_read(charsmap, (const unsigned char *)bytes.data, bytes.size));
    sgm__buffer_free(&bytes);
    return status;
}

/* A text that a step writes for each match. */
static sgm_status read_content(const sgm__node *node, const char *key, char **out, size_t *size)
{
    const sgm__node content = sgm__node_get(node, key);
    const char *text;
    SGM__PASS(sgm__node_text(node, key, &text, size));
    if (*size > LONGEST_CONTENT)
        return sgm__node_fail(&content, SGM_ERROR_LIMIT, "a text of %zu bytes; at most %d are supported",
                              *size, LONGEST_CONTENT);
    return (*out = sgm__copy_text(text, *size)) ? SGM_OK : SGM_ERROR_MEMORY;
}

static sgm_status read_bert_normalizer(sgm__normalizers *normalizers, const sgm__node *node)
{
    bool clean, ideographs, lowercase, accents;
    SGM__PASS(sgm__node_bool(node, "clean_text", true, &clean));
    SGM__PASS(sgm__node_bool(node, "handle_chinese_chars", true, &ideographs));
    SGM__PASS(sgm__node_bool(node, "lowercase", true, &lowercase));
    SGM__PASS(sgm__node_bool(node, "strip_accents", lowercase, &accents));
    return sgm__add_bert_normalizers(normalizers, clean, ideographs, accents, lowercase);
}

static sgm_status read_strip(sgm__normalizers *normalizers, const sgm__node *node)
{
    bool left, right;
    SGM__PASS(sgm__node_bool(node, "strip_left", true, &left));
    SGM__PASS(sgm__node_bool(node, "strip_right", true, &right));
    if ((left && !sgm__new_normalizer(normalizers, SGM__STRIP_LEFT)) ||
        (right && !sgm__new_normalizer(normalizers, SGM__STRIP_RIGHT)))
        return SGM_ERROR_MEMORY;
    return SGM_OK;
}

static sgm_status read_normalizer_step(sgm__normalizers *normalizers, const sgm__node *node, const char *type)
{
    static const struct {
        const char *type;
        sgm__normalizer_kind kind;
    } kinds[] = {{"NFC", SGM__NORMAL_FORM},
                 {"NFD", SGM__NORMAL_FORM},
                 {"NFKC", SGM__NORMAL_FORM},
                 {"NFKD", SGM__NORMAL_FORM},
                 {"Lowercase", SGM__LOWERCASE},
                 {"Replace", SGM__REPLACE},
                 {"StripAccents", SGM__STRIP_ACCENTS},
                 {"Prepend", SGM__PREPEND},
                 {"Precompiled", SGM__CHARSMAP}};
    size_t kind = 0;
    sgm__normalizer *step;

    while (kind < sizeof kinds / sizeof *kinds && strcmp(type, kinds[kind].type) != 0)
        kind++;
    if (kind == sizeof kinds / sizeof *kinds)
        return refuse(node, "normalizer", type);
    if (!(step = sgm__new_normalizer(normalizers, kinds[kind].kind)))
        return SGM_ERROR_MEMORY;
    if (step->kind == SGM__NORMAL_FORM)
        return (step->form = sgm__normal_form_open(type)) ? SGM_OK : sgm_last_status();
    if (step->kind == SGM__CHARSMAP)
        return read_charsmap(&step->charsmap, node);
    if (step->kind == SGM__REPLACE)
        SGM__PASS(sgm__read_pattern(node, &step->pattern));
    if (step->kind == SGM__REPLACE || step->kind == SGM__PREPEND)
        return read_content(node, step->kind == SGM__REPLACE ? "content" : "prepend", &step->content,
                            &step->size);
    return SGM_OK;
}

sgm_status sgm__read_normalizer(sgm__normalizers *normalizers, const sgm__node *node, int depth)
{
    const char *type = "";
    SGM__PASS(type_of(node, normalizers->count, &type));
    if (strcmp(type, "Sequence") == 0) {
        SGM__READ_SEQUENCE(node, "normalizers", depth, sgm__read_normalizer, normalizers);
        return SGM_OK;
    }
    if (strcmp(type, "BertNormalizer") == 0)
        return read_bert_normalizer(normalizers, node);
    if (strcmp(type, "Strip") == 0)
        return read_strip(normalizers, node);
    return read_normalizer_step(normalizers, node, type);
}

/* --- pre-tokenisers --- */
static sgm_status read_behavior(const sgm__node *node, sgm__behavior missing, sgm__behavior *out)
{
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext",
                                        "Contiguous"};
    const sgm__node behavior = sgm__node_get(node, "behavior");
    *out = missing;
    if (!behavior.value)
        return SGM_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (json_is_string(behavior.value) && strcmp(json_string_value(behavior.value), names[i]) == 0) {
            *out = (sgm__behavior)i;
            return SGM_OK;
        }
    return sgm__node_fail(&behavior, SGM_ERROR_TYPE,
                          "expected Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

/* One character, '▁' if there is none. */
static sgm_status read_mark(const sgm__node *node, const char *key, uint32_t *mark)
{
    const sgm__node place = sgm__node_get(node, key);
    const char *text = "\u2581";
    size_t size = 3, at = 0;
    if (place.value)
        SGM__PASS(sgm__node_text(node, key, &text, &size));
    *mark = size > 0 ? sgm__utf8_next(text, &at) : 0;
    return size > 0 && at == size ? SGM_OK : sgm__node_fail(&place, SGM_ERROR_TYPE, "expected one character");
}

/* "prepend_scheme", or what older files have for it. */
static sgm_status read_where(const sgm__node *node, sgm__where *out)
{
    static const char *const names[] = {"always", "first", "never"};
    const sgm__node scheme = sgm__node_get(node, "prepend_scheme");
    bool add_prefix_space;

    SGM__PASS(sgm__node_bool(node, "add_prefix_space", true, &add_prefix_space));
    *out = add_prefix_space ? SGM__ALWAYS : SGM__NEVER;
    for (size_t i = 0; scheme.value && i < 3; i++)
        if (json_is_string(scheme.value) && strcmp(json_string_value(scheme.value), names[i]) == 0) {
            *out = (sgm__where)i;
            return SGM_OK;
        }
    return scheme.value ? sgm__node_fail(&scheme, SGM_ERROR_TYPE, "expected always, first or never") : SGM_OK;
}

static sgm_status read_metaspace(sgm__splitters *splitters, const sgm__node *node)
{
    bool split;
    char mark[4];
    sgm__splitter *step = sgm__new_splitter(splitters, SGM__METASPACE);
    uint32_t character;

    if (!step)
        return SGM_ERROR_MEMORY;
    SGM__PASS(read_mark(node, "replacement", &step->mark));
    SGM__PASS(read_where(node, &step->before));
    SGM__PASS(sgm__node_bool(node, "split", true, &split));
    if (!split)
        return SGM_OK;
    character = step->mark;
    if (!(step = sgm__new_splitter(splitters, SGM__SPLIT_PATTERN)))
        return SGM_ERROR_MEMORY;
    step->behavior = SGM__MERGED_WITH_NEXT;
    return sgm__pattern_open_string(&step->pattern, mark, sgm__utf8_put(character, mark));
}

static sgm_status read_split(sgm__splitters *splitters, const sgm__node *node)
{
    sgm__splitter *step = sgm__new_splitter(splitters, SGM__SPLIT_PATTERN);
    if (!step)
        return SGM_ERROR_MEMORY;
    SGM__PASS(read_behavior(node, SGM__ISOLATED, &step->behavior));
    SGM__PASS(sgm__node_bool(node, "invert", false, &step->invert));
    return sgm__read_pattern(node, &step->pattern);
}

static sgm_status read_byte_level(sgm__splitters *splitters, const sgm__node *node)
{
    bool space, words;
    SGM__PASS(sgm__node_bool(node, "add_prefix_space", true, &space));
    SGM__PASS(sgm__node_bool(node, "use_regex", true, &words));
    return sgm__node_within(node, sgm__add_byte_splitters(splitters, space, words));
}

static sgm_status read_delimiter(sgm__splitters *splitters, const sgm__node *node)
{
    char mark[4];
    uint32_t character;
    sgm__splitter *step = sgm__new_splitter(splitters, SGM__SPLIT_PATTERN);
    if (!step)
        return SGM_ERROR_MEMORY;
    step->behavior = SGM__REMOVED;
    SGM__PASS(read_mark(node, "delimiter", &character));
    return sgm__pattern_open_string(&step->pattern, mark, sgm__utf8_put(character, mark));
}

/* Steps that split at characters of a kind. */
static sgm_status read_characters(sgm__splitters *splitters, const sgm__node *node, const char *type)
{
    sgm__splitter *step = sgm__new_splitter(splitters, SGM__SPLIT_CHARACTERS);
    bool each = false;
    if (!step)
        return SGM_ERROR_MEMORY;
    if (strcmp(type, "Punctuation") == 0) {
        step->is_border = sgm__unicode_is_punctuation;
        return read_behavior(node, SGM__ISOLATED, &step->behavior);
    }
    if (strcmp(type, "Digits") == 0) {
        step->is_border = sgm__unicode_is_numeric;
        SGM__PASS(sgm__node_bool(node, "individual_digits", false, &each));
        step->behavior = each ? SGM__ISOLATED : SGM__CONTIGUOUS;
        return SGM_OK;
    }
    step->is_border = sgm__unicode_is_space;
    step->behavior = SGM__REMOVED;
    return SGM_OK;
}

sgm_status sgm__read_splitter(sgm__splitters *splitters, const sgm__node *node, int depth)
{
    const char *type = "";
    SGM__PASS(type_of(node, splitters->count, &type));
    if (strcmp(type, "Sequence") == 0) {
        SGM__READ_SEQUENCE(node, "pretokenizers", depth, sgm__read_splitter, splitters);
        return SGM_OK;
    }
    if (strcmp(type, "ByteLevel") == 0)
        return read_byte_level(splitters, node);
    if (strcmp(type, "Metaspace") == 0)
        return read_metaspace(splitters, node);
    if (strcmp(type, "Split") == 0)
        return read_split(splitters, node);
    if (strcmp(type, "BertPreTokenizer") == 0)
        return sgm__add_bert_splitters(splitters);
    if (strcmp(type, "CharDelimiterSplit") == 0)
        return read_delimiter(splitters, node);
    if (strcmp(type, "Whitespace") == 0)
        return sgm__new_splitter(splitters, SGM__SPLIT_WORDS) ? SGM_OK : SGM_ERROR_MEMORY;
    if (strcmp(type, "Punctuation") == 0 || strcmp(type, "Digits") == 0 ||
        strcmp(type, "WhitespaceSplit") == 0)
        return read_characters(splitters, node, type);
    return refuse(node, "pre-tokenizer", type);
}

/* --- decoders --- */
static sgm_status read_decoder_text(sgm__decoder *step, const sgm__node *node, const char *key,
                                    const char *missing)
{
    SGM__PASS(sgm__node_copy(node, key, &step->text, &step->size));
    if (step->text)
        return SGM_OK;
    step->size = strlen(missing);
    return (step->text = sgm__copy_text(missing, step->size)) ? SGM_OK : SGM_ERROR_MEMORY;
}

static sgm_status read_decoder_options(sgm__decoder *step, const sgm__node *node)
{
    uint64_t left = 0, right = 0;
    sgm__where where;
    switch (step->kind) {
    case SGM__DECODE_WORDPIECE:
        SGM__PASS(sgm__node_bool(node, "cleanup", true, &step->flag));
        return read_decoder_text(step, node, "prefix", "##");
    case SGM__DECODE_METASPACE:
        SGM__PASS(read_where(node, &where));
        step->flag = where == SGM__NEVER;
        return read_decoder_text(step, node, "replacement", "\u2581");
    case SGM__DECODE_STRIP:
        SGM__PASS(sgm__node_count(node, "start", UINT32_MAX, &left));
        SGM__PASS(sgm__node_count(node, "stop", UINT32_MAX, &right));
        step->left = left;
        step->right = right;
        return read_decoder_text(step, node, "content", " ");
    case SGM__DECODE_REPLACE:
        SGM__PASS(sgm__read_pattern(node, &step->pattern));
        return read_content(node, "content", &step->text, &step->size);
    case SGM__DECODE_SUFFIX:
        SGM__PASS(read_decoder_text(step, node, "suffix", "</w>"));
        return step->size > 0 ? SGM_OK : refuse(node, "empty suffix of", "BPEDecoder");
    case SGM__DECODE_BYTES:
    case SGM__DECODE_FALLBACK:
    case SGM__DECODE_FUSE:
        break;
    }
    return SGM_OK;
}

sgm_status sgm__read_decoder(sgm__decoders *decoders, const sgm__node *node, int depth)
{
    static const struct {
        const char *type;
        sgm__decoder_kind kind;
    } kinds[] = {{"ByteLevel", SGM__DECODE_BYTES},     {"WordPiece", SGM__DECODE_WORDPIECE},
                 {"Metaspace", SGM__DECODE_METASPACE}, {"ByteFallback", SGM__DECODE_FALLBACK},
                 {"Fuse", SGM__DECODE_FUSE},           {"Strip", SGM__DECODE_STRIP},
                 {"Replace", SGM__DECODE_REPLACE},     {"BPEDecoder", SGM__DECODE_SUFFIX}};
    const char *type = "";

    SGM__PASS(type_of(node, decoders->count, &type));
    if (strcmp(type, "Sequence") == 0) {
        SGM__READ_SEQUENCE(node, "decoders", depth, sgm__read_decoder, decoders);
        return SGM_OK;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(type, kinds[i].type) == 0) {
            sgm__decoder *step = sgm__new_decoder(decoders, kinds[i].kind);
            return step ? read_decoder_options(step, node) : SGM_ERROR_MEMORY;
        }
    return refuse(node, "decoder", type);
}
