/* A reader of folders of images: FOLDER/CLASS/IMAGE, PNG or JPEG.
 *
 * An example is one line of bytes: height * width * channels of the image, row by row with the channels of a
 * pixel together, and behind them one byte with the number of its class; extractors of arrays
 * (extractor_array.c) take them apart. Classes are numbered in the byte order of their folders' names. The
 * images of the classes alternate in proportion to their numbers, so every stretch of the examples has them
 * all. Files are decoded when they are read (image_decode.c), one after the other; nothing but their names
 * is kept. */
#include "data/read/reader.h"
#include <errno.h>
#include <stdlib.h>
#include <strings.h>

/* A class is one byte of an example; sizes are bounded as those of decoded images. */
#define MAXIMUM_CLASSES 256
#define LARGEST_SIZE 32768

/* One image. `place` orders the images of all classes: image i of n has (i + 1/2) / n. */
typedef struct image_file {
    char *path;
    double place; /* in its class, from 0 to 1 */
    uint8_t class;
} image_file;

/* The reader's state. Sizes are 0 until the first image has told them, unless the options did. */
typedef struct image_reader {
    char *folder;
    int32_t width, height, channels;
    image_file *files;
    size_t count, capacity, next;
    sgm__bytes bytes;
} image_reader;

/* As sgm__folder_list, with a message. */
static sgm_status list_folder(const char *path, struct dirent ***entries, int *count)
{
    *count = sgm__folder_list(path, entries);
    if (*count >= 0)
        return SGM_OK;
    return sgm_fail(errno == ENOENT ? SGM_ERROR_NOT_FOUND : SGM_ERROR_FILE,
                    "%s: the folder cannot be read: %s; it should have one folder of images for each class",
                    path, sgm__errno_text(errno));
}

/* Decides by the name's ending, in upper or lower case; the content is checked when it is decoded. */
static bool is_image_name(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot != NULL &&
           (strcasecmp(dot, ".png") == 0 || strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0);
}

/* Appends the images among the entries of one class, and spreads their places evenly between 0 and 1. */
static sgm_status add_images(image_reader *self, const char *folder, struct dirent **entries, int count,
                             uint8_t class)
{
    size_t first = self->count;
    for (int i = 0; i < count; i++) {
        if (!is_image_name(entries[i]->d_name))
            continue;
        SGM_TRY(sgm__reserve(&self->files, &self->capacity, self->count + 1, sizeof *self->files));
        char *path = sgm__format("%s/%s", folder, entries[i]->d_name);
        if (path == NULL)
            return SGM_ERROR_MEMORY;
        self->files[self->count++] = (image_file){.path = path, .class = class};
    }
    for (size_t i = first; i < self->count; i++)
        self->files[i].place = ((double)(i - first) + 0.5) / (double)(self->count - first);
    return SGM_OK;
}

/* A folder without images is a class nevertheless, so removing its images does not renumber the others. */
static sgm_status add_class(image_reader *self, const char *folder, uint8_t class)
{
    struct dirent **entries;
    int count;
    SGM_TRY(list_folder(folder, &entries, &count));
    sgm_status status = add_images(self, folder, entries, count, class);
    sgm__folder_list_free(entries, count);
    return status;
}

/* Every folder among the entries is a class; files beside them are ignored. */
static sgm_status add_classes(image_reader *self, struct dirent **entries, int count)
{
    int classes = 0;
    for (int i = 0; i < count; i++) {
        char *path = sgm__format("%s/%s", self->folder, entries[i]->d_name);
        if (path == NULL)
            return SGM_ERROR_MEMORY;
        sgm_status status = SGM_OK;
        if (sgm__is_folder(path) && classes == MAXIMUM_CLASSES)
            status = sgm_fail(SGM_ERROR_UNSUPPORTED,
                              "%s: at most %d classes (folders) were expected, '%s' is one more; "
                              "join some",
                              self->folder, MAXIMUM_CLASSES, entries[i]->d_name);
        else if (sgm__is_folder(path))
            status = add_class(self, path, (uint8_t)classes++);
        sgm__free(path);
        SGM_TRY(status);
    }
    return SGM_OK;
}

/* Orders images by place, and at equal places by class. Places are unique within a class, so the order is
 * total. */
static int compare_files(const void *a, const void *b)
{
    const image_file *x = a, *y = b;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return x->class - y->class; /* in one class no place comes twice */
}

static void forget_files(image_reader *self)
{
    for (size_t i = 0; i < self->count; i++)
        sgm__free(self->files[i].path);
    self->count = 0;
}

/* Lists all images in the order in which they are read, replacing an older list. */
static sgm_status list_files(image_reader *self)
{
    struct dirent **entries;
    int count;
    forget_files(self);
    SGM_TRY(list_folder(self->folder, &entries, &count));
    sgm_status status = add_classes(self, entries, count);
    sgm__folder_list_free(entries, count);
    SGM_TRY(status);
    if (self->count == 0)
        return sgm_fail(SGM_ERROR_NOT_FOUND,
                        "%s: no image was found; PNG and JPEG files were expected in folders with the "
                        "names of the classes, e.g. %s/cat/1.png",
                        self->folder, self->folder);
    qsort(self->files, self->count, sizeof *self->files, compare_files);
    return SGM_OK;
}

/* Without a size in the options the first image is decoded for its size, to which all others are scaled. */
static sgm_status image_prepare(void *user)
{
    image_reader *self = user;
    SGM_TRY(list_files(self));
    self->bytes.length = 0;
    if (self->width > 0)
        return SGM_OK;
    return sgm__image_decode(self->files[0].path, &self->width, &self->height, self->channels, &self->bytes);
}

/* Up to `count` examples, decoded one behind the other into `bytes`. */
static sgm_status image_read(void *user, int64_t count, sgm_examples *examples)
{
    image_reader *self = user;
    int64_t done = 0;
    for (self->bytes.length = 0; done < count && self->next < self->count; done++) {
        const image_file *file = &self->files[self->next++];
        SGM_TRY(sgm__image_decode(file->path, &self->width, &self->height, self->channels, &self->bytes));
        SGM_TRY(sgm__bytes_reserve(&self->bytes, 1));
        self->bytes.data[self->bytes.length++] = file->class;
    }
    if (done == 0)
        return SGM_OK;
    sgm_shape example = sgm_shape_of((int64_t)self->width * self->height * self->channels + 1);
    return sgm__bytes_publish(&self->bytes, SGM_UINT8, done, &example, examples);
}

static sgm_status image_rewind(void *user)
{
    ((image_reader *)user)->next = 0;
    return SGM_OK;
}

static void image_free(void *user)
{
    image_reader *self = user;
    forget_files(self);
    sgm__free(self->files);
    sgm__bytes_free(&self->bytes);
    sgm__free(self->folder);
    sgm__free(self);
}

static sgm_status check_arguments(const char *folder, const sgm_image_options *options)
{
    if (folder == NULL || *folder == '\0')
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "an image reader needs a folder, an empty name came; name the folder");
    int width = options->width, height = options->height;
    if (width < 0 || height < 0 || width > LARGEST_SIZE || height > LARGEST_SIZE ||
        (width == 0) != (height == 0))
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "%s: a width and a height from 1 to %d were expected, or neither, %d and %d came; give both",
            folder, LARGEST_SIZE, width, height);
    return SGM_OK;
}

sgm_reader *sgm_image_reader_with(const char *folder, const sgm_image_options *given)
{
    static const sgm_reader_type type = {"images", image_prepare, image_read, image_rewind, image_free};
    sgm_image_options options;
    if (sgm__options_read(&options, sizeof options, given, "sgm_image_reader") != SGM_OK ||
        check_arguments(folder, &options) != SGM_OK)
        return NULL;
    image_reader *self = sgm__calloc(1, sizeof *self);
    if (self == NULL)
        return NULL;
    self->width = options.width;
    self->height = options.height;
    self->channels = options.grey ? 1 : 3;
    self->folder = sgm__strdup(folder);
    if (self->folder == NULL) {
        image_free(self);
        return NULL;
    }
    return sgm_reader_create(&type, self, folder);
}

/* (height, width, channels); prepares the reader, as the size may come from the first image. */
sgm_status sgm_image_reader_shape(sgm_reader *reader, sgm_shape *shape)
{
    if (reader == NULL)
        return sgm__fail_missing("reader");
    const image_reader *self = sgm__reader_self(reader, image_read);
    if (self == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: a reader of images was expected; make it with sgm_image_reader",
                        sgm_reader_name(reader));
    SGM_TRY(sgm_reader_prepare(reader));
    *shape = sgm_shape_of(self->height, self->width, self->channels);
    return SGM_OK;
}
