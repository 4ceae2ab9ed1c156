/* Oniguruma's regular expressions, which the library `tokenizers` runs, as PCRE2's.
 *
 * Most is the same in both. Where one text means two things it is rewritten here; what PCRE2 has no equal of
 * is an error that names it: an expression never silently means something else. */
#include "tokenizer/text/pattern.h"

#include <string.h>

typedef struct reader {
    const char *text;
    size_t size, at;
    bool in_set;  /* between [ and ] */
    size_t depth; /* groups that are open ... */
    size_t
        caseless; /* ... and one more than those around what letters of both cases match; 0: nothing does */
    sgm__buffer *out;
} reader;

/* What is written otherwise: outside of a set, and as a part of one (NULL: it has no equal there). */
static const struct {
    const char *text, *outside, *inside;
} rewritten[] = {
#define SPACE                                                                                                \
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{" \
    "3000}"
#define NO_SPACE                                                                                             \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}" \
    "-"                                                                                                      \
    "\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}"
#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"
#define LATIN_NUMBERS "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}" /* which \w has only outside of a set */
    /* PCRE2 takes U+180E for a space, marks for no part of a word, and \v for all ends of lines. */
    {"\\s", "[" SPACE "]", SPACE},
    {"\\S", "[^" SPACE "]", NO_SPACE},
    {"\\w", "[" WORD LATIN_NUMBERS "]", WORD},
    {"\\W", "[^" WORD LATIN_NUMBERS "]", NULL},
    {"\\v", "\\x{b}", "\\x{b}"},
    {"\\h", "[0-9a-fA-F]", "0-9a-fA-F"},
    {"\\H", "[^0-9a-fA-F]", NULL},
    {"[:space:]", NULL, SPACE},
    {"[:alpha:]", NULL, "\\p{Alphabetic}"},
    {"[:alnum:]", NULL, "\\p{Alphabetic}\\p{Nd}"},
    {"[:word:]", NULL, WORD},
    {"[:punct:]", NULL, "\\p{P}\\p{S}"},
    {"[:digit:]", NULL, "\\p{Nd}"},
    {"[:xdigit:]", NULL, "0-9a-fA-F"},
    {"[:upper:]", NULL, "\\p{Uppercase}"},
    {"[:lower:]", NULL, "\\p{Lowercase}"},
    {"[:cntrl:]", NULL, "\\p{Cc}"},
};

/* What has no equal, by how it begins. Borders of words are those of \w, which differs. */
static const struct {
    const char *text, *what;
    bool in_set;
} refused[] = {
    {"\\b", "a border of a word", false},
    {"\\B", "a border of a word", false},
    {"\\X", "a text segment", false},
    {"\\K", "\\K", false},
    {"\\G", "\\G", false},
    {"\\g", "a call of a group", false},
    {"(?~", "an absent operator", false},
    {"(?{", "a callout", false},
    {"(*", "a callout", false},
    {"&&", "an intersection of sets", true},
    {"[", "a set within a set", true},
    {"\\N", "\\N", false},
    {"\\Q", "\\Q", false},
    {"\\C", "a control character by its letter", false},
    {"\\E", "\\E", false},
};

static sgm_status add(const reader *in, const char *text)
{
    return sgm__buffer_add(in->out, text, strlen(text));
}

static sgm_status refuse(const reader *in, const char *what)
{
    return sgm_fail(SGM_ERROR_UNSUPPORTED,
                    "the regular expression '%.*s' has %s at byte %zu, which is not supported",
                    in->size < 200 ? (int)in->size : 200, in->text, what, in->at);
}

static bool begins(const reader *in, const char *text)
{
    const size_t length = strlen(text);
    return in->size - in->at >= length && memcmp(in->text + in->at, text, length) == 0;
}

static sgm_status copy(reader *in, size_t count)
{
    if (count > in->size - in->at)
        return refuse(in, "no end");
    in->at += count;
    return sgm__buffer_add(in->out, in->text + in->at - count, count);
}

/* \p{Han}: PCRE2 would also take what is only used with Han. Categories have one or two letters. */
static sgm_status read_property(reader *in)
{
    static const char *const binary[] = {"Any",         "Alphabetic", "Uppercase",   "Lowercase",
                                         "White_Space", "Emoji",      "Ideographic", "Extended_Pictographic"};
    const char *name = in->text + in->at + 3;
    const char *end = memchr(in->text + in->at, '}', in->size - in->at);
    bool script;

    if (!end || end < name)
        return refuse(in, "a property without an end");
    if (in->in_set && in->caseless > 0) /* the set has the other case of all letters, too */
        return refuse(in, "a property in a set of both cases");
    SGM__PASS(copy(in, 3));
    if (*name == '^') {
        SGM__PASS(copy(in, 1));
        name++;
    }
    script = end - name > 2;
    for (size_t i = 0; i < sizeof binary / sizeof *binary; i++)
        if ((size_t)(end - name) == strlen(binary[i]) && memcmp(name, binary[i], strlen(binary[i])) == 0)
            script = false;
    if (script)
        SGM__PASS(add(in, "sc:"));
    return copy(in, (size_t)(end - name) + 1);
}

static bool is_digit_at(const reader *in, size_t at, int base)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    return at < in->size && memchr(digits, in->text[at], base == 16 ? 22 : 8);
}

/* \x and \377 are bytes, of a character's UTF-8 from 80 on: those are refused, not taken for its number. */
static bool is_byte_of_character(const reader *in)
{
    const size_t at = in->at + 1;
    if (begins(in, "\\x") && !begins(in, "\\x{"))
        return !is_digit_at(in, at + 1, 16) || (is_digit_at(in, at + 2, 16) && in->text[at + 1] > '7');
    return at < in->size && (in->text[at] == '2' || in->text[at] == '3') && is_digit_at(in, at + 1, 8) &&
           is_digit_at(in, at + 2, 8);
}

/* A backslash and what belongs to it. */
static sgm_status read_escape(reader *in)
{
    if (begins(in, "\\p{") || begins(in, "\\P{"))
        return read_property(in);
    if (begins(in, "\\p") || begins(in, "\\P"))
        return refuse(in, "a property without braces");
    if (is_byte_of_character(in))
        return refuse(in, "a byte that is no character");
    if (begins(in, "\\u")) {
        in->at += 2;
        SGM__PASS(add(in, "\\x{"));
        SGM__PASS(copy(in, 4));
        return add(in, "}");
    }
    return copy(in, 2);
}

static sgm_status read_group_border(reader *in)
{
    if (in->text[in->at] == '(') {
        in->depth++;
    } else if (in->depth > 0) {
        in->depth--;
        in->caseless = in->caseless > in->depth + 1 ? 0 : in->caseless;
    }
    return copy(in, 1);
}

/* (?m: is what PCRE2 calls (?s:; lines end at \n for ^ and $ without being asked. What (?i) changes ends with
 * the group around it; alternatives behind it are its own, which PCRE2 has only where a group begins. */
static sgm_status read_flags(reader *in)
{
    const bool begins_group =
        in->at == 0 || (in->text[in->at - 1] == '(' && (in->at < 2 || in->text[in->at - 2] != '\\'));
    bool on = true, caseless = in->caseless > 0;
    const size_t start = in->at;

    SGM__PASS(copy(in, 2));
    for (; in->at < in->size && memchr("imx-", in->text[in->at], 4); in->at++) {
        const char flag = in->text[in->at];
        on &= flag != '-';
        caseless = flag == 'i' ? on : caseless;
        SGM__PASS(sgm__buffer_add(in->out, flag == 'm' ? "s" : &flag, 1));
    }
    if (begins(in, ")") && in->at > start + 2 && !begins_group)
        return refuse(in, "options within a group");
    in->depth++;
    if (caseless != (in->caseless > 0))
        in->caseless = !caseless ? 0 : begins(in, ")") ? in->depth : in->depth + 1;
    return SGM_OK;
}

/* {2,}, {,3}; a + behind repeats the repeat, and so does a ? behind {2}, which PCRE2 takes for something
 * else. */
static sgm_status read_count(reader *in)
{
    const char *end = memchr(in->text + in->at, '}', in->size - in->at);
    const size_t length = end ? (size_t)(end - (in->text + in->at)) + 1 : 0;
    char behind;

    if (length < 3 || begins(in, "{,}") || /* which are these characters */
        strspn(in->text + in->at + 1, "0123456789,") != length - 2)
        return copy(in, 1);
    behind = in->at + length < in->size ? in->text[in->at + length] : 0;
    if (behind == '+' || (behind == '?' && !memchr(in->text + in->at, ',', length)))
        return refuse(in, "a repeat of a repeat");
    SGM__PASS(copy(in, 1));
    if (in->text[in->at] == ',')
        SGM__PASS(add(in, "0"));
    return copy(in, length - 1);
}

static sgm_status read_set_border(reader *in)
{
    if (in->in_set) {
        in->in_set = false;
        return copy(in, 1);
    }
    in->in_set = true;
    SGM__PASS(copy(in, begins(in, "[^") ? 2 : 1));
    return begins(in, "]") ? copy(in, 1) : SGM_OK;
}

static sgm_status read_one(reader *in)
{
    for (size_t i = 0; i < sizeof rewritten / sizeof *rewritten; i++) {
        const char *text = in->in_set ? rewritten[i].inside : rewritten[i].outside;
        if (!begins(in, rewritten[i].text) || (!in->in_set && rewritten[i].text[0] == '['))
            continue;
        if (!text)
            return refuse(in, "a negated class within a set");
        if (in->caseless > 0 && (begins(in, "[:upper:]") || begins(in, "[:lower:]")))
            return refuse(in, "letters of one case in a set of both");
        in->at += strlen(rewritten[i].text);
        return add(in, text);
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (in->in_set == refused[i].in_set && begins(in, refused[i].text))
            return refuse(in, refused[i].what);
    if (begins(in, "\\"))
        return read_escape(in);
    if (begins(in, in->in_set ? "]" : "["))
        return read_set_border(in);
    if (!in->in_set && begins(in, "(?"))
        return read_flags(in);
    if (!in->in_set && (begins(in, "(") || begins(in, ")")))
        return read_group_border(in);
    if (!in->in_set && begins(in, "{"))
        return read_count(in);
    return copy(in, 1);
}

sgm_status sgm__pattern_translate(const char *expression, size_t size, sgm__buffer *out)
{
    reader in = {.text = expression, .size = size, .out = out};
    while (in.at < size)
        SGM__PASS(read_one(&in));
    return SGM_OK;
}
