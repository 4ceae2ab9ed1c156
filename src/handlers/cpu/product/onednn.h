/* oneDNN, loaded at run time: products of bfloat16 with float32 sums. Internal.
 *
 * With AMX oneDNN multiplies tiles of bfloat16; without, it has kernels for AVX-512 that are slower than
 * those of float32. Versions 2 and 3 of the library are known. oneDNN gets one thread and no memory of its
 * own: matmul_onednn.c divides products among the pool's threads. bfloat16.c decides whether any of this is
 * used; dense.c uses the same library for products of float32. */
#ifndef SGM_HANDLERS_CPU_PRODUCT_ONEDNN_H
#define SGM_HANDLERS_CPU_PRODUCT_ONEDNN_H

#include "base/plugin.h"
#include "handlers/cpu/product/product.h"

typedef struct sgm__onednn sgm__onednn;
typedef struct sgm__onednn_product sgm__onednn_product;

/* The library's handle from dlopen; NULL if none is installed. */
void *sgm__onednn_open(void);
/* Writes "2.6.3" into `text` and returns it; "" if the library does not say. */
const char *sgm__onednn_version(void *library, char *text, size_t size);

/* NULL, with an error set, if the library is not installed or has no products of bfloat16 for this processor.
 */
sgm__onednn *sgm__onednn_create(void);
void sgm__onednn_free(sgm__onednn *onednn);
const char *sgm__onednn_text(const sgm__onednn *onednn); /* for users: "oneDNN 2.6.3" */

/* oneDNN's objects for one product of bfloat16 of this shape and these strides; addresses do not count. For
 * one thread at a time; to be freed before `onednn` is. Fails with SGM_ERROR_UNSUPPORTED if the library
 * refuses the shape. */
sgm_status sgm__onednn_product_create(const sgm__onednn *onednn, const sgm__product *product,
                                      sgm__onednn_product **created);
void sgm__onednn_product_free(sgm__onednn_product *product);
/* False: the library failed. Sets no error, as errors belong to a thread and this is called on any. */
bool sgm__onednn_product_run(sgm__onednn_product *product, const void *a, const void *b, void *c);

#endif
