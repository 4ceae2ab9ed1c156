/* Kinds of files that are examples: what makes the numbers of an input of one file. Internal.
 *
 * A kind is a file of this folder with an sgm__file_kind, and a line in kinds.c. Folders of such files, their
 * splits and extractors (src/data/files), the JSON of their pipelines (src/data/table), the command and the
 * server know of a kind nothing but this. What is fitted to a kind's files is its *form*, a struct of its
 * own; a function that fits it is in src/data/files, as it needs many of them. */
#ifndef SGM_DATA_KINDS_KIND_H
#define SGM_DATA_KINDS_KIND_H

#include "data/read/class_folder.h"
#include "data/read/reader.h"
#include "text/json_members.h"
#include <sigma/files.h>

/* Media types of such files in the bodies of requests. */
#define SGM__PICTURE_TYPES "image/png image/jpeg"
#define SGM__SOUND_TYPES "audio/wav audio/x-wav audio/flac audio/x-flac"
#define SGM__TEXT_TYPES "text/plain"
#define SGM__FILE_TYPES SGM__PICTURE_TYPES " " SGM__SOUND_TYPES " " SGM__TEXT_TYPES

/* What a file says of itself without being decoded: width and height of a picture, seconds and rate of a
 * sound. */
typedef struct sgm__file_size {
    double numbers[2];
} sgm__file_size;

static inline bool sgm__file_sizes_differ(const sgm__file_size *a, const sgm__file_size *b)
{
    return a->numbers[0] != b->numbers[0] || a->numbers[1] != b->numbers[1];
}

typedef struct sgm__file_kind {
    const char *name; /* "pictures", also in the JSON of pipelines */
    const sgm__file_names *names;
    const char *media_types; /* one of the macros above */
    size_t form_size;
    void (*release)(void *form); /* what the form owns; NULL: nothing */
    sgm_status (*check)(const void *form);
    sgm_shape (*shape)(const void *form); /* of an example's inputs */
    /* Writes the inputs of one file; `memory` is used again for the next one. */
    sgm_status (*read)(const void *form, const sgm_file *file, sgm__bytes *memory, float *inputs);
    /* Of kinds whose files may have transcripts: makes a form one of sequences, whose inputs are (steps,
     * features); and reads one, of which the first *steps count. NULL: there are none. */
    void (*make_sequence)(void *form);
    sgm_status (*read_sequence)(const void *form, const sgm_file *file, sgm__bytes *memory, float *inputs,
                                float *steps);
    /* Of a kind whose targets are files, too: the shape of an example's, and what writes them. NULL: the
     * class of a file, one-hot. */
    sgm_shape (*target_shape)(const void *form);
    sgm_status (*read_target)(const void *form, const char *path, sgm__bytes *memory, float *targets);
    /* The form as members of a JSON object, and back from one whose members are `members`. */
    void (*put)(const void *form, json_t *object, bool *failed);
    sgm_status (*take)(void *form, const json_t *object);
    const char *const *members; /* NULL at the end */
    /* Layers from the input to the last but one of the network that is proposed. */
    void (*network)(const void *form, sgm__text *text);
    /* The size of a file; how sizes from `least` to `most` are told; and what to do if they differ. */
    sgm_status (*measure)(const char *path, sgm__file_size *size);
    void (*tell)(const sgm__file_size *least, const sgm__file_size *most, sgm__text *text);
    void (*advise)(const sgm__file_size *least, const sgm__file_size *most, sgm__text *text);
} sgm__file_kind;

extern const sgm__file_kind sgm__pictures, sgm__sounds, sgm__texts;

/* --- kinds.c --- */
/* NULL past the last one. */
const sgm__file_kind *sgm__file_kind_at(size_t index);
/* NULL and an error that names all kinds if there is none of this name. */
const sgm__file_kind *sgm__file_kind_find(const char *name);
/* "pictures, sounds", all names; sgm__free. */
char *sgm__file_kind_names(void);

#endif
