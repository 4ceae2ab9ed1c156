/* Texts of `sigma serve`, for encoders that 'sigma import' or 'sigma finetune' read with their tokenizer. */
#ifndef SGM_CLI_TEXTS_SERVED_H
#define SGM_CLI_TEXTS_SERVED_H

#include "config/saved.h"
#include "monitors/serve/serve.h"

#include <sigma/tokenizer.h>

/* What the server asks; zero: the network takes no texts. */
typedef struct served_texts {
    sgm_trainer *trainer; /* borrowed */
    sgm_pretrained_tokenizer *tokenizer;
    sgm__signature signature;
    char **classes; /* names, NULL behind the last; NULL: the model names none */
} served_texts;
/* Between saved_describe and saved_load: whether the network takes texts; *takes. A network that can take
 * pairs of them then does so. */
sgm_status served_texts_find(saved *s, bool *takes);
/* Opens the tokenizer, and copies the names of classes that the model has. On failure it may be closed as
 * well. */
sgm_status served_texts_open(served_texts *texts, const saved *s);
/* For sgm__serve_options; `texts` has to live as long as the server. */
sgm__serve_texts served_texts_hook(served_texts *texts);
void served_texts_close(served_texts *texts);

#endif
