/* How the layers of a network hang together and what they gave, for the web page's picture of it. Internal.
 *
 * src/monitors/web/inspect/inspect_network.c calls these; recording and training do not. */
#ifndef SGM_NETWORK_LAYOUT_H
#define SGM_NETWORK_LAYOUT_H

#include "base/base.h"
#include <sigma/network.h>

/* The numbers of the layers whose values this one gets. The array belongs to the network and stays as long
 * as it; *count is its length. */
const int32_t *sgm__network_inputs(const sgm_network *network, size_t index, int32_t *count);
/* The value that the layer gave in the newest recording; the network must have been recorded. */
sgm_value sgm__network_value(const sgm_network *network, size_t index);
/* Appends the arguments that were given or set, as they are now: "28, 28", "size=8, kernel=(3, 5), same". */
sgm_status sgm__network_write_arguments(sgm__text *text, const sgm_network *network, size_t index);

#endif
