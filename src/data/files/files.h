/* Lists of files and pipelines of them. Internal to src/data/files.
 *
 * files.c lists a folder, files_table.c a table with transcripts, files_fit.c makes a pipeline of what was
 * learnt of the files (picture_fit.c and the like), files_apply.c makes the inputs of single files by it,
 * files_extractor.c the examples of a folder. */
#ifndef SGM_DATA_FILES_FILES_H
#define SGM_DATA_FILES_FILES_H

#include "data/kinds/picture.h"
#include "data/table/pipeline.h"

struct sgm_files {
    char *path;
    const sgm__file_kind *kind;
    sgm__class_folder folder; /* of transcripts without classes */
    char **transcripts;       /* of each file, owned; NULL: there are classes */
    char **masks;             /* of each file, owned; NULL: they have none */
    size_t mask_capacity;
};

/* --- files_table.c --- */
/* Lists what a table has in its columns `file`, by paths from where the table is, and `text`. */
sgm_status sgm__files_list_table(sgm_files *files);
/* Copies the UTF-8 character at `text`, and a NUL; returns the next one. NULL: the text is at its end, or not
 * UTF-8 there. */
const char *sgm__next_character(const char *text, char character[5]);

/* The files of a part of a split, or with `others` all but these; without a split all. */
typedef struct sgm__files_part {
    const sgm_split *split;
    int32_t part;
    bool others;
} sgm__files_part;

/* The split must be of as many files as there are, and have the part. */
sgm_status sgm__files_check_part(const sgm_files *files, const sgm__files_part *part);
bool sgm__files_is_of_part(const sgm__files_part *part, int64_t file);

/* Adds which files there are, with their classes. */
void sgm__files_describe(const sgm_files *files, sgm__key *key);

/* --- files_threads.c --- */
#define SGM__MAXIMUM_FILE_THREADS 64
/* As many threads as were asked for, 0: as there are processors; at most SGM__MAXIMUM_FILE_THREADS. */
int32_t sgm__files_threads(int32_t asked);
/* Calls `visit` for items 0 to count - 1, on so many threads, which are numbered from 0. */
sgm_status sgm__files_visit(int64_t count, int32_t threads,
                            sgm_status (*visit)(void *user, int32_t thread, int64_t item), void *user);

/* --- files_fit.c --- */
/* Before a form is fitted: the list must be of the kind (`who` is named in the message), and have two classes
 * and the part. */
sgm_status sgm__files_check_fit(const sgm_files *files, const sgm__file_kind *kind,
                                const sgm__files_part *part, const char *who);
/* Calls `learn` with each file of the part, on so many threads, each with a number of its own; a part without
 * any is an error. */
sgm_status sgm__files_learn(const sgm_files *files, const sgm__files_part *part, int32_t threads,
                            sgm_status (*learn)(void *learner, int32_t thread, const sgm_file *file),
                            void *learner);
/* masks.c: a pipeline of pictures with masks, whose classes are found in these. */
sgm_pipeline *sgm__masked_pipeline(const sgm_files *files, const sgm__picture_form *form, int32_t threads);
/* A pipeline of the form, which is taken also on failure, with the classes of the files. */
sgm_pipeline *sgm__files_pipeline(const sgm_files *files, void *form);

#endif
