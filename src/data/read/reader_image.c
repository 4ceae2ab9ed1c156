/* A reader of folders of images: FOLDER/CLASS/IMAGE, PNG or JPEG.
 *
 * An example is one line of bytes: height * width * channels of the image, row by row with the channels of a
 * pixel together, and behind them one byte with the number of its class; extractors of arrays
 * (extractor_array.c) take them apart. class_folder.c lists the images. Files are decoded when they are read
 * (image_decode.c), one after the other; nothing but their names is kept. */
#include "data/read/class_folder.h"
#include "data/read/reader.h"

/* A class is one byte of an example; sizes are bounded as those of decoded images. */
#define MAXIMUM_CLASSES 256
#define LARGEST_SIZE 32768

/* The reader's state. Sizes are 0 until the first image has told them, unless the options did. */
typedef struct image_reader {
    char *path; /* of the folder */
    int32_t width, height, channels;
    sgm__class_folder images;
    size_t next;
    sgm__bytes bytes;
} image_reader;

/* Lists all images in the order in which they are read, replacing an older list. */
static sgm_status list_files(image_reader *self)
{
    SGM_TRY(sgm__class_folder_list(&self->images, self->path, &sgm__picture_names, false));
    if (self->images.class_count > MAXIMUM_CLASSES)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "%s: at most %d classes (folders) were expected, '%s' is one more; join some",
                        self->path, MAXIMUM_CLASSES, self->images.classes[MAXIMUM_CLASSES]);
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
    return sgm__image_decode(self->images.files[0].path, &self->width, &self->height, self->channels,
                             &self->bytes);
}

/* Up to `count` examples, decoded one behind the other into `bytes`. */
static sgm_status image_read(void *user, int64_t count, sgm_examples *examples)
{
    image_reader *self = user;
    int64_t done = 0;
    for (self->bytes.length = 0; done < count && self->next < self->images.count; done++) {
        const sgm__class_file *file = &self->images.files[self->next++];
        SGM_TRY(sgm__image_decode(file->path, &self->width, &self->height, self->channels, &self->bytes));
        SGM_TRY(sgm__bytes_reserve(&self->bytes, 1));
        self->bytes.data[self->bytes.length++] = (unsigned char)file->class;
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
    sgm__class_folder_free(&self->images);
    sgm__bytes_free(&self->bytes);
    sgm__free(self->path);
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

/* The list is made when the reader is prepared, which this does not wait for: a folder may change until then.
 */
static void image_describe(const void *pointer, sgm__key *key)
{
    const image_reader *self = pointer;
    sgm__class_folder images = {0};
    if (sgm__class_folder_list(&images, self->path, &sgm__picture_names, false) != SGM_OK) {
        sgm__key_refuse(key, self->path);
        sgm_clear_error();
    }
    sgm__class_folder_describe(&images, key);
    sgm__class_folder_free(&images);
    sgm__key_add_number(key, self->width);
    sgm__key_add_number(key, self->height);
    sgm__key_add_number(key, self->channels);
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
    self->path = sgm__strdup(folder);
    if (self->path == NULL) {
        image_free(self);
        return NULL;
    }
    return sgm__reader_create(&type, self, folder, image_describe);
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
