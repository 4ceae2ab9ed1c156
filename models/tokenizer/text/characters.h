/* Kinds of characters and normal forms, as the library `tokenizers` has them.
 *
 * That library takes each of them from another package, and so from another version of Unicode: punctuation
 * and controls from 8.0, normal forms from 9.0. ICU knows in which version each character came, so the
 * answers here are the same whatever ICU is installed. White space and numbers are those of the installed
 * ICU. */
#ifndef SIGMA_MODELS_CHARACTERS_H
#define SIGMA_MODELS_CHARACTERS_H

#include "tokenizer/text/buffer.h"

bool sgm__unicode_is_space(uint32_t character);
bool sgm__unicode_is_numeric(uint32_t character);
/* Of ASCII all that is neither a letter, a digit, a space nor a control; else what Unicode calls so. */
bool sgm__unicode_is_punctuation(uint32_t character);
/* Controls, formats and private characters, but not \t, \n and \r. */
bool sgm__unicode_is_control(uint32_t character);
/* Marks that take no space of their own (Mn), and all marks. */
bool sgm__unicode_is_nonspacing_mark(uint32_t character);
bool sgm__unicode_is_mark(uint32_t character);
/* What \w of Rust's regular expressions matches. */
bool sgm__unicode_is_word(uint32_t character);
/* The ideographs that BERT takes for words. */
bool sgm__unicode_is_ideograph(uint32_t character);

/* A normal form: "NFC", "NFD", "NFKC", "NFKD". */
typedef struct sgm__normal_form sgm__normal_form;
/* NULL and an error on failure; `name` is one of the four. */
sgm__normal_form *sgm__normal_form_open(const char *name);
void sgm__normal_form_free(sgm__normal_form *form);
/* Adds the normal form of a valid text. */
sgm_status sgm__normal_form_apply(const sgm__normal_form *form, const char *text, size_t size,
                                  sgm__buffer *out);
/* Adds the text in small letters, character by character. */
sgm_status sgm__lowercase(const char *text, size_t size, sgm__buffer *out);

#endif
