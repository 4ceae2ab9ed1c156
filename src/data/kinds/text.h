/* What is fitted to files of text. Internal. */
#ifndef SGM_DATA_KINDS_TEXT_H
#define SGM_DATA_KINDS_TEXT_H

#include "data/kinds/kind.h"
#include "data/tokens/tokenizer.h"

/* Of a text its first tokens are read. */
typedef struct sgm__text_form {
    int32_t window;
    sgm_tokenizer *tokenizer; /* owned */
} sgm__text_form;

#endif
