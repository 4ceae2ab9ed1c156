/* The key `sample`: the text of the hook (cli/texts/sample.c) that a prompt stands for. */
#include "config/config.h"
#include "text/phrase.h"

#include <math.h>

/* A text of hooks has no control characters, so line ends are written as \n. */
static char *escape(const char *text)
{
    sgm__text out = {0};
    sgm__text_append(&out, "%s", "");
    for (; *text != '\0'; text++)
        if (*text == '\n' || *text == '\t' || *text == '\\')
            sgm__text_append(&out, "\\%c", *text == '\n' ? 'n' : *text == '\t' ? 't' : '\\');
        else
            sgm__text_append_bytes(&out, text, 1);
    return sgm__text_take(&out);
}

char *sample_text(const sample_config *s, const char *prompt)
{
    sgm__text text = {0};
    char *escaped = escape(prompt);
    sgm__text_append(&text, "every epoch sample(");
    sgm__append_string(&text, escaped != NULL ? escaped : "");
    sgm__text_append(&text, ", count=%lld", (long long)s->count);
    if (!isnan(s->temperature)) {
        sgm__text_append(&text, ", temperature=");
        sgm__append_number(&text, s->temperature);
    }
    sgm__text_append(&text, "%s%s)", s->greedy ? ", greedy=true" : "", s->chat ? ", chat=true" : "");
    text.failed |= escaped == NULL;
    sgm__free(escaped);
    return sgm__text_take(&text);
}
