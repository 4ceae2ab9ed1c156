/* Examples as texts, for networks of tokens whose texts the caller of sgm__serve_start can encode: the core
 * has no tokenizer. Internal to src/monitors/serve.
 *
 *     {"input": ["a text", {"text": "one of two", "pair": "the other"}]}
 */
#ifndef SGM_MONITORS_SERVE_TEXTS_H
#define SGM_MONITORS_SERVE_TEXTS_H

#include "infer/signature.h"
#include "monitors/serve/serve.h"

#include <jansson.h>

/* Whether an example is a text, or a pair of texts. */
bool sgm__serve_is_text(const json_t *example);
/* The predictions (count, ...) for a list of texts and pairs; the caller frees them. NULL and an error that
 * names the example, counted from 0, or says that the network gives something for each token. */
sgm_tensor *sgm__serve_predict_texts(const sgm__serve_texts *texts, const sgm__signature *signature,
                                     const json_t *list);

#endif
