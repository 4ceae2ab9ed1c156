/* Recording a network again, where only its dynamic layers can differ. Internal. */
#ifndef SGM_NETWORK_AGAIN_H
#define SGM_NETWORK_AGAIN_H

#include <sigma/handler.h>
#include <sigma/network.h>

/* As sgm_network_record, into a graph that still has the network's newest recording and whatever its user
 * recorded behind it. Dynamic layers are recorded again, others only where something before them differs.
 *
 * *same: nothing differs: the graph is as it was, with all that is behind the network. Else it has the new
 * recording alone. A graph that is not fit for it is cleared first. */
sgm_status sgm__network_record_again(sgm_network *network, sgm_graph *graph,
                                     const sgm_recording_options *options, sgm_recording *recording,
                                     bool *same);

/* An input of recordings of a part of a minibatch: the share of its records that the part has. */
#define SGM__SHARE "trainer.share"
/* The share of what a part counts, `count`, in the sum over all workers, in this type. */
sgm_value sgm__part_share_of(sgm_graph *graph, sgm_value count, sgm_dtype dtype);

/* Names of states that the layers remember from minibatch to minibatch, as far as they were recorded; NULL
 * past the last. They are zeros at the beginning of each epoch. */
const char *sgm__network_memory_at(const sgm_network *network, size_t index);
/* What is fed to a program of the newest recording is checked where layers take it as numbers of something.
 */
sgm_status sgm__network_expect_indices(const sgm_network *network, sgm_program *program);
/* Section and layer of these, and the largest number; false: past the last. */
bool sgm__network_index_at(const sgm_network *network, size_t index, const char **section, const char **layer,
                           int64_t *most);
/* The parameter of that name in the newest recording, until the next one; NULL: it has none. */
const sgm_parameter *sgm__network_parameter(const sgm_network *network, const char *name);
/* Fails: the records of a section, `there`, are none that fit the `wanted` ones of a recording. Says which
 * layer wants them so, and what would fit (misfit.c). */
sgm_status sgm__network_misfit(const sgm_network *network, const sgm_graph *graph, const char *section,
                               const sgm_shape *there, const sgm_shape *wanted);

#endif
