/* What a pass (pass.h) needs of a csv reader beside its rows: its pieces. Internal to src/data/csv. */
#ifndef SGM_DATA_CSV_READER_CSV_H
#define SGM_DATA_CSV_READER_CSV_H

#include "data/csv/csv.h"

/* NULL if the reader is of another type. */
typedef struct sgm__csv_reader sgm__csv_reader;
sgm__csv_reader *sgm__csv_reader_of(sgm_reader *reader);
const sgm__csv_format *sgm__csv_reader_format(const sgm__csv_reader *reader);
/* The next piece, or what is left of the one that rows were read from; its `done` may be above 0. */
sgm_status sgm__csv_reader_cut(sgm__csv_reader *reader, sgm__csv_piece *piece);
/* Told of the first rows of the file: keeps the number of columns. */
void sgm__csv_reader_note_columns(sgm__csv_reader *reader, const sgm__csv_rows *rows);
/* Logs rows that were left out; called in the order of the file. */
void sgm__csv_reader_log_ragged(sgm__csv_reader *reader, const sgm__csv_ragged *ragged);

#endif
