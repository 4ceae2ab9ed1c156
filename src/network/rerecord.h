/* Recording a network again, where only its dynamic layers can differ. Internal. */
#ifndef SGM_NETWORK_RERECORD_H
#define SGM_NETWORK_RERECORD_H

#include <sigma/handler.h>
#include <sigma/network.h>

/* As sgm_network_record, into a graph that still has the network's newest recording and whatever its user
 * recorded behind it. Dynamic layers are re-recorded, others only where something before them differs.
 *
 * *same: nothing differs: the graph is as it was, with all that is behind the network. Else it has the new
 * recording alone. A graph that is not fit for it is cleared first. */
sgm_status sgm__network_rerecord(sgm_network *network, sgm_graph *graph, const sgm_recording_options *options,
                                 sgm_recording *recording, bool *same);

/* An input of recordings of a part of a minibatch: the share of its examples that the part has. */
#define SGM__SHARE "trainer.share"
/* The share of what a part counts, `count`, in the sum over all workers, in this type. */
sgm_value sgm__part_share_of(sgm_graph *graph, sgm_value count, sgm_dtype dtype);

/* Names of the states that layers remember from minibatch to minibatch, of all recordings so far; NULL past
 * the last. The trainer fills them with zeros at the beginning of each epoch. */
const char *sgm__network_memory_at(const sgm_network *network, size_t index);
/* Tells a program of the newest recording which of its inputs must be whole numbers, up to which number, and
 * for which layer. */
sgm_status sgm__network_expect_indices(const sgm_network *network, sgm_program *program);
/* Field, layer and largest number of entry `index` of these demands; false past the last. */
bool sgm__network_index_at(const sgm_network *network, size_t index, const char **field, const char **layer,
                           int64_t *maximum);
/* The parameter of that name in the newest recording, NULL if it has none; valid until the next recording. */
const sgm_parameter *sgm__network_parameter(const sgm_network *network, const char *name);
/* Behind the name of a matrix that adapters keep as 8 bits (sgm_parameter.quantizes). */
#define SGM__CODES_SUFFIX "_codes"
#define SGM__SCALES_SUFFIX "_scales"
/* The scales of the matrix of that name in the newest recording, whose type of numbers is the matrix' own;
 * NULL: it has none. And the codes, whose shape is the matrix' own. */
const sgm_parameter *sgm__network_scales(const sgm_network *network, const char *matrix);
const sgm_parameter *sgm__network_codes(const sgm_network *network, const char *matrix);
/* What the adapters of a parameter of the newest recording, which has some, make of its product y with x;
 * recorded into another graph, as outside of training. */
sgm_value sgm__adapters_record(sgm_network *network, sgm_graph *graph, const sgm_recording_options *options,
                               const char *parameter, sgm_value x, sgm_value y);
/* Always fails: the examples of a field have the shape `there`, a recording wants `wanted`. The message
 * names the layer that wants them so, and what would fit (shape_mismatch.c). */
sgm_status sgm__network_shape_mismatch(const sgm_network *network, const sgm_graph *graph, const char *field,
                                       const sgm_shape *there, const sgm_shape *wanted);

#endif
