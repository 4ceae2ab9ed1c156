/* Examples as JSON objects by the names of a table's columns, for networks that were trained on one
 * (sigma/table.h). Internal to src/monitors/serve.
 *
 *     {"input": [{"age": 3.5, "town": "Bonn"}, {"age": null, "town": "Ulm"}]}
 */
#ifndef SGM_MONITORS_SERVE_ROWS_H
#define SGM_MONITORS_SERVE_ROWS_H

#include <jansson.h>
#include <sigma/table.h>

/* The fields of the network's inputs for a list of objects, filled up to `room` rows, which repeat the first
 * one. The caller frees the block. Each object has all columns of inputs: texts, numbers, or null where there
 * is no value; other members are passed over. With `ignore_unknown` a category that was in no row of the
 * training counts as null. */
sgm_block *sgm__serve_rows(const sgm_pipeline *pipeline, const json_t *list, int64_t room,
                           bool ignore_unknown);
/* An object with all columns of inputs, each null, to be shown as an example. */
json_t *sgm__serve_empty_row(const sgm_pipeline *pipeline);

#endif
