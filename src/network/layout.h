/* How the layers of a network hang together, for those who draw it. Internal. */
#ifndef SGM_NETWORK_LAYOUT_H
#define SGM_NETWORK_LAYOUT_H

#include "base/base.h"
#include <sigma/network.h>

/* The numbers of the layers whose values this one gets, as long as the network; *count: how many. */
const int32_t *sgm__network_inputs(const sgm_network *network, size_t index, int32_t *count);
/* What the layer gave in the newest recording, which there has to be. */
sgm_value sgm__network_value(const sgm_network *network, size_t index);
/* Appends the arguments that were given or set, as they are now: "28, 28", "size=8, kernel=(3, 5), same". */
sgm_status sgm__network_write_arguments(sgm__text *text, const sgm_network *network, size_t index);

#endif
