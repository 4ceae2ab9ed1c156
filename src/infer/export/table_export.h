/* What an exported network that was trained on a table takes with it: its pipeline (sigma/table.h), as C and
 * as operations of a graph. Internal to src/infer/export.
 *
 * table_fields.c says which inputs are fields of the table. table_source.c writes the C, with the fixed
 * functions of table_functions.c and table_tokens.c; table_graph.c records the operations. Both do what
 * data/table/pipeline_apply.c does with a row. */
#ifndef SGM_INFER_EXPORT_TABLE_EXPORT_H
#define SGM_INFER_EXPORT_TABLE_EXPORT_H

#include "data/table/pipeline.h"
#include "handlers/source/source.h"

/* --- as C --- */

/* The function that the rows are for. */
typedef struct sgm__table_program {
    const sgm_pipeline *pipeline;
    const sgm__plan *plan;           /* of the prediction */
    const sgm__source_input *inputs; /* of the plan: the parameters of the function, one for each field */
    int64_t rows;                    /* that one call takes */
} sgm__table_program;

/* Whether a function for rows can be written: the network has one output, and takes fields of the pipeline
 * alone. */
bool sgm__table_fits(const sgm__table_program *program);
/* The field of an input of the plan; -1: none. */
int32_t sgm__table_field_of_input(const sgm__table_program *program, int32_t input);
/* Appends what users see of the file (a struct of a row, NAME_predict_rows, NAME_class), and what they do
 * not. */
sgm_status sgm__table_write_source(const sgm__table_program *program, const sgm__source_request *request,
                                   sgm__text *interface, sgm__text *code);

/* Appends the declaration of NAME_class, and the function; nothing if the targets have no classes. */
void sgm__table_declare_class(const sgm_pipeline *pipeline, const sgm__source_request *request,
                              sgm__text *text);
void sgm__table_write_class(const sgm_pipeline *pipeline, const sgm__source_request *request,
                            sgm__text *text);

/* Fixed functions that the code may call: bits. */
enum {
    SGM__TABLE_TEXTS = 1,   /* comparing texts, and looking for one in a list */
    SGM__TABLE_NUMBERS = 2, /* numbers in texts, for categories that are numbers */
    SGM__TABLE_DATES = 4,
    SGM__TABLE_PARTS = 8, /* of dates */
    SGM__TABLE_HOURS = 16,
    SGM__TABLE_TOKENS = 32 /* of texts */
};
/* Appends the functions, in which cells are written as in the table of the pipeline. */
void sgm__table_write_functions(const sgm__source_request *request, const sgm_pipeline *pipeline,
                                unsigned needed, sgm__text *text);
/* Appends the function that reads the tokens of a text, with the pairs of the tokenizer. */
void sgm__table_write_tokens(const sgm__source_request *request, const sgm_tokenizer *tokenizer,
                             sgm__text *text);
/* Appends a string of C, with its quotes. */
void sgm__table_quote(const char *string, sgm__text *text);

/* --- as operations --- */

/* As sgm__table_fits and sgm__table_field_of_input, of a graph of a prediction; an instruction that is no
 * input is of no field. */
bool sgm__table_fits_graph(const sgm_graph *prediction, const sgm_pipeline *pipeline);
int32_t sgm__table_field_of_instruction(const sgm_graph *graph, const sgm__instruction *instruction,
                                        const sgm_pipeline *pipeline);
/* The graph of a prediction with the pipeline in front and behind: its inputs are columns, and predictions of
 * numbers have the units of the table. A new graph; NULL on failure. */
sgm_graph *sgm__table_graph(const sgm_graph *prediction, const sgm_pipeline *pipeline);

#endif
