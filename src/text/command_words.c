/* Reads the words of a command: see command_words.h. */
#include "text/command_words.h"
#include "base/characters.h"

#define LONGEST 4096 /* bytes of a command */

void sgm__command_words_free(char **words)
{
    for (size_t i = 0; words != NULL && words[i] != NULL; i++)
        sgm__free(words[i]);
    sgm__free(words);
}

/* Appends the word at *at, and moves *at behind it. */
static sgm_status read_word(const char **at, char **words, size_t *count)
{
    sgm__text word = {0};
    bool quoted = false;
    sgm__text_append(&word, "%s", ""); /* '' is a word, too */
    for (; **at != '\0' && (quoted || **at != ' '); ++*at) {
        if (**at == '\'')
            quoted = !quoted;
        else
            sgm__text_append_bytes(&word, *at, 1);
    }
    if (quoted) {
        sgm__text_free(&word);
        return sgm_fail(SGM_ERROR_FORMAT, "the command has a ' without another one behind");
    }
    words[*count] = sgm__text_take(&word);
    return words[(*count)++] != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

sgm_status sgm__command_words(const char *text, char ***words)
{
    size_t length = strlen(text), count = 0;
    *words = NULL;
    if (length > LONGEST)
        return sgm_fail(SGM_ERROR_FORMAT, "a command has at most %d bytes", LONGEST);
    char **list = sgm__calloc(length / 2 + 2, sizeof *list);
    sgm_status status = list != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    for (const char *at = text; status == SGM_OK && *at != '\0';)
        if (*at == ' ')
            at++;
        else
            status = read_word(&at, list, &count);
    if (status == SGM_OK && (count == 0 || list[0][0] == '\0'))
        status = sgm_fail(SGM_ERROR_FORMAT, "the command names no program");
    if (status == SGM_OK)
        *words = list;
    else
        sgm__command_words_free(list);
    return status;
}
