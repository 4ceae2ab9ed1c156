/* The words of a command that a rule runs. Internal.
 *
 * Words have spaces between them; between single quotes a word may have spaces. No other character means
 * anything: no shell reads the text, so nothing in it is replaced, and several commands cannot stand in it.
 */
#ifndef SGM_TEXT_COMMAND_WORDS_H
#define SGM_TEXT_COMMAND_WORDS_H

#include "base/base.h"

/* *words: with NULL at the end; sgm__command_words_free. An error says what is wrong with the text. */
sgm_status sgm__command_words(const char *text, char ***words);
void sgm__command_words_free(char **words);

#endif
