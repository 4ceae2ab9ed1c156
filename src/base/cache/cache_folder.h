/* A folder of files that can be made again: compiled kernels, extracted blocks. Several processes may use it
 * at the same time.
 *
 * A file is used when it is read, which is noted as its time of change; the least recently used ones go when
 * the folder grows beyond its bounds. A file that is still being written has a name of its own that ends in
 * .part, and a lock that goes with its process, so that what a killed process leaves is found and deleted. */
#ifndef SGM_BASE_CACHE_FOLDER_H
#define SGM_BASE_CACHE_FOLDER_H

#include "base/base.h"

typedef struct sgm__cache_size {
    int64_t files;
    uint64_t bytes;
} sgm__cache_size;

/* Creates a locked file in the folder, which is made if it is missing. *path is owned; sgm__free. Returns the
 * descriptor, or -1 with errno set. */
int sgm__cache_part_create(const char *folder, char **path);
/* Writes a whole file at once, under a name that is not a path; a failure is logged and no error, as the file
 * can be made again. */
void sgm__cache_file_write(const char *folder, const char *name, const char *bytes, size_t length);
/* What such a file has, which is freed by sgm__free and ends in a 0 byte; NULL: there is none. One that is
 * damaged is deleted. */
char *sgm__cache_file_read(const char *folder, const char *name, size_t *length);
/* Notes that a file was used. */
void sgm__cache_file_used(const char *path);
/* Deletes files until the folder is within its bounds, and what was left unfinished. */
void sgm__cache_folder_limit(const char *folder, uint64_t bytes, int64_t files);
/* Files and bytes of a folder, or none if there is no such folder. */
sgm__cache_size sgm__cache_folder_measure(const char *folder);

#endif
