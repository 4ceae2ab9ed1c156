/* Looks up names of other programs (names.h) in the table of names_table.c. */
#include "text/names.h"
#include "base/characters.h"
#include "base/log_sink.h"

#include <stdio.h>

/* How many names are noted at most: each once. */
#define MAXIMUM_NOTES 64

/* --- words --- */

/* The next character that counts, in lower case, from *at on, which goes behind it; 0: the end. A space ends
 * a word. */
static char next_letter(const char **at)
{
    while (**at == '_' || **at == '-')
        (*at)++;
    char c = **at;
    if (c == '\0' || c == ' ')
        return '\0';
    (*at)++;
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Whether two words are the same but for case, '_' and '-'. */
static bool is_same(const char *a, const char *b)
{
    for (;;) {
        char one = next_letter(&a), other = next_letter(&b);
        if (one != other)
            return false;
        if (one == '\0')
            return *a == '\0' || *b == '\0' || *a == *b;
    }
}

bool sgm__name_row_says(const sgm__name_row *row, const char *word)
{
    if (strchr(word, ' ') != NULL)
        return false;
    for (const char *typed = row->typed; typed != NULL;) {
        if (is_same(typed, word))
            return true;
        typed = strchr(typed, ' ');
        if (typed != NULL)
            typed++;
    }
    return false;
}

static bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count && name != NULL; i++)
        if (names[i] != NULL && strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* --- notes --- */

static _Thread_local sgm__names_replaced *collected; /* NULL: nobody wants them */

/* A word that is too long, or one too many, stays as it is. */
static void collect(const char *word, const char *real)
{
    sgm__names_replaced *all = collected;
    if (all == NULL || all->count == sizeof all->items / sizeof *all->items ||
        strlen(word) >= sizeof all->items->word || strlen(real) >= sizeof all->items->real)
        return;
    snprintf(all->items[all->count].word, sizeof all->items->word, "%s", word);
    snprintf(all->items[all->count++].real, sizeof all->items->real, "%s", real);
}

void sgm__names_begin(sgm__names_replaced *replaced)
{
    replaced->outer = collected;
    replaced->count = 0;
    collected = replaced;
}

void sgm__names_end(sgm__names_replaced *replaced)
{
    collected = replaced->outer;
    for (size_t i = 0; i < replaced->count; i++)
        collect(replaced->items[i].word, replaced->items[i].real);
}

void sgm__name_note_value(const char *word)
{
    const char *real = collected != NULL ? sgm__name_value(word) : NULL;
    if (real != NULL)
        sgm__name_note(word, real);
}

static bool is_of_word(char c)
{
    return sgm__is_alphanumeric(c) || c == '_' || c == '-' || c == '.';
}

/* Texts in quotes stay: they are no names. */
char *sgm__names_replace(const char *text, const sgm__names_replaced *replaced)
{
    sgm__text out = {0};
    bool quoted = false;
    while (*text != '\0') {
        size_t length = 0, found = 0;
        while (is_of_word(text[length]))
            length++;
        while (found < replaced->count && (strlen(replaced->items[found].word) != length ||
                                           strncmp(replaced->items[found].word, text, length) != 0))
            found++;
        if (length > 0 && !quoted && found < replaced->count)
            sgm__text_append(&out, "%s", replaced->items[found].real);
        else
            sgm__text_append_bytes(&out, text, length > 0 ? length : 1);
        quoted ^= length == 0 && *text == '"';
        text += length > 0 ? length : 1;
    }
    return sgm__text_take(&out);
}

/* Words are remembered by their hashes, so that a note needs no memory. */
void sgm__name_note(const char *word, const char *real)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t noted[MAXIMUM_NOTES];
    static size_t count;
    uint64_t hash = sgm__hash_text(word) ^ (sgm__hash_text(real) << 1);
    bool known = false;
    collect(word, real);
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count && !known; i++)
        known = noted[i] == hash;
    bool is_new = !known && count < MAXIMUM_NOTES;
    if (is_new)
        noted[count++] = hash;
    pthread_mutex_unlock(&lock);
    if (is_new)
        sgm__log_note("names", "'%.60s' is called '%.60s' here", word, real);
}

/* --- looking up --- */

static const sgm__name_row *find_row(sgm__name_kind kind, const char *word)
{
    const sgm__name_row *row;
    for (size_t i = 0; (row = sgm__name_row_at(i)) != NULL; i++)
        if (row->kind == kind && sgm__name_row_says(row, word))
            return row;
    return NULL;
}

bool sgm__name_is_known(sgm__name_kind kind, const char *word)
{
    return find_row(kind, word) != NULL;
}

const char *sgm__name_value(const char *word)
{
    const sgm__name_row *row = find_row(SGM__NAME_VALUE, word);
    return row != NULL ? row->real : NULL;
}

/* A row goes before the spelling: "BatchNorm" has other arguments than batch_norm, though it is spelled
 * alike. */
const char *sgm__name_real(sgm__name_kind kind, const char *word, const char *const *names, size_t count,
                           const sgm__name_row **found)
{
    const sgm__name_row *row;
    if (found != NULL)
        *found = NULL;
    for (size_t i = 0; (row = sgm__name_row_at(i)) != NULL; i++) {
        if (row->kind != kind || !sgm__name_row_says(row, word) || !is_among(row->real, names, count))
            continue;
        if (row->near)
            return NULL;
        if (found != NULL)
            *found = row;
        sgm__name_note(word, row->real);
        return row->real;
    }
    for (size_t i = 0; i < count; i++)
        if (names[i] != NULL && strchr(word, ' ') == NULL && is_same(names[i], word)) {
            sgm__name_note(word, names[i]);
            return names[i];
        }
    return NULL;
}

/* Appends to the hint; what does not fit is left out. */
static void append(char hint[SGM__NAME_HINT], const char *before, const char *text)
{
    size_t length = strlen(hint);
    snprintf(hint + length, SGM__NAME_HINT - length, "%s%s", before, text);
}

char *sgm__name_hint(sgm__name_kind kind, const char *word, const char *const *names, size_t count,
                     char hint[SGM__NAME_HINT])
{
    const sgm__name_row *row;
    const char *advice = NULL;
    hint[0] = '\0';
    for (size_t i = 0; (row = sgm__name_row_at(i)) != NULL; i++) {
        if (row->kind != kind || !sgm__name_row_says(row, word))
            continue;
        advice = row->advice;
        if (row->real != NULL && is_among(row->real, names, count))
            append(hint, hint[0] == '\0' ? " (did you mean '" : "' or '", row->real);
    }
    const char *nearest = hint[0] == '\0' && advice == NULL ? sgm__nearest(word, names, count) : NULL;
    if (nearest != NULL)
        append(hint, " (did you mean '", nearest);
    if (hint[0] != '\0')
        append(hint, "", "'?)");
    if (advice != NULL)
        append(hint, ": ", advice);
    return hint;
}
