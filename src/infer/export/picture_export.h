/* What an exported network that was trained on pictures takes with it: the normalisation of its pipeline
 * (sigma/picture.h), as C and as operations of a graph. Scaling stays with the caller, who has the picture.
 * Internal to src/infer/export. */
#ifndef SGM_INFER_EXPORT_PICTURE_EXPORT_H
#define SGM_INFER_EXPORT_PICTURE_EXPORT_H

#include "infer/export/table_export.h"

/* Whether a function for pixels can be written: the network takes the pipeline's pictures and nothing else,
 * and has one output. */
bool sgm__picture_fits(const sgm__table_program *program);
/* Appends what users see of the file (NAME_predict_pixels, NAME_class), and what they do not. */
sgm_status sgm__picture_write_source(const sgm__table_program *program, const sgm__source_request *request,
                                     sgm__text *interface, sgm__text *code);

/* As sgm__picture_fits, of a graph of a prediction. */
bool sgm__picture_fits_graph(const sgm_graph *prediction, const sgm_pipeline *pipeline);
/* The graph of a prediction whose input is pixels, uint8 of the shape (examples, channels, height, width). A
 * new graph; NULL on failure. */
sgm_graph *sgm__picture_graph(const sgm_graph *prediction, const sgm_pipeline *pipeline);

#endif
