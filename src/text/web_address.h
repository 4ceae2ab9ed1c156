/* Addresses of the web. Internal. */
#ifndef SGM_TEXT_WEB_ADDRESS_H
#define SGM_TEXT_WEB_ADDRESS_H

#include "base/base.h"

/* Fails, with an error that quotes it, unless a text is "http://HOST..." or "https://HOST...", of printable
 * ASCII and at most 2000 bytes. Nobody is asked whether the host is there. */
sgm_status sgm__web_address_check(const char *address);
/* Replaces percent sequences, %XX, by their bytes, in place. False: one is broken, or stands for a 0 byte. */
bool sgm__percent_decode(char *text);

#endif
