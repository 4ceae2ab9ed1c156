/* oneDNN, loaded at run time: products of bfloat16 with float32 sums. Internal.
 *
 * With AMX oneDNN multiplies tiles of bfloat16; without, it has kernels for AVX-512 that are slower than
 * float32's. Versions 2 and 3 are known. It gets one thread and memory from us.
 */
#ifndef SGM_HANDLERS_CPU_PRODUCT_ONEDNN_H
#define SGM_HANDLERS_CPU_PRODUCT_ONEDNN_H

#include "handlers/cpu/product/product.h"

typedef struct sgm__onednn sgm__onednn;
typedef struct sgm__onednn_product sgm__onednn_product;

/* The library, as dlopen gives it; NULL if it is not installed. */
void *sgm__onednn_open(void);
/* "2.6.3"; "" if the library does not say. */
const char *sgm__onednn_version(void *library, char *text, size_t size);

/* NULL, and an error, if the library is not there or has no such products for this processor. */
sgm__onednn *sgm__onednn_create(void);
void sgm__onednn_free(sgm__onednn *onednn);
const char *sgm__onednn_text(const sgm__onednn *onednn); /* "oneDNN 2.6.3" */

/* One product of this shape and these strides (addresses do not count), all of bfloat16, for one thread at a
 * time; freed before the library's object. NULL: the library refuses it, or no memory. */
sgm__onednn_product *sgm__onednn_product_create(const sgm__onednn *onednn, const sgm__product *product);
void sgm__onednn_product_free(sgm__onednn_product *product);
/* False: the library failed. Sets no error, as it is called on any thread. */
bool sgm__onednn_product_run(sgm__onednn_product *product, const void *a, const void *b, void *c);

#endif
