/* Pictures as a kind of files (kind.h): PNG and JPEG, scaled to one size, with normalised channels. */
#include "data/kinds/picture.h"

#include <math.h>

#define LARGEST_SIDE 32768
#define MAXIMUM_NUMBERS (1 << 27) /* of a picture */
/* The network that is proposed halves pictures until their shorter side is smaller than this. */
#define SMALLEST_SIDE 8
#define MAXIMUM_CHANNELS 64

static sgm_status check(const void *pointer)
{
    const sgm__picture_form *form = pointer;
    if (form->channels != 1 && form->channels != 3)
        return sgm_fail(SGM_ERROR_ARGUMENT, "1 or 3 channels of a picture were expected, %d came",
                        (int)form->channels);
    if (form->width < 1 || form->height < 1 || form->width > LARGEST_SIDE || form->height > LARGEST_SIDE ||
        (int64_t)form->width * form->height * form->channels > MAXIMUM_NUMBERS)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "pictures of 1 to %d pixels on a side and %d numbers at most were expected, %d x %d "
                        "of %d channels came",
                        LARGEST_SIDE, MAXIMUM_NUMBERS, (int)form->width, (int)form->height,
                        (int)form->channels);
    if (form->shortest != 0 && (form->filter == SGM__IMAGE_AREA || form->shortest < form->width ||
                                form->shortest < form->height || form->shortest > LARGEST_SIDE))
        return sgm_fail(
            SGM_ERROR_FORMAT,
            "a picture of %d x %d pixels is cut out of one whose shorter side has as many or more, "
            "up to %d, by a filter: 'shortest' is %d, 'filter' %s",
            (int)form->width, (int)form->height, LARGEST_SIDE, (int)form->shortest,
            sgm__image_filter_name(form->filter));
    for (int32_t i = 0; i < form->channels; i++)
        if (!isfinite(form->mean[i]) || !(form->deviation[i] > 0) || !isfinite(form->deviation[i]))
            return sgm_fail(SGM_ERROR_FORMAT, "channel %d: a mean and a deviation above 0 were expected",
                            (int)i);
    return SGM_OK;
}

static sgm_shape shape(const void *pointer)
{
    const sgm__picture_form *form = pointer;
    return sgm_shape_of(form->channels, form->height, form->width);
}

/* --- reading --- */

/* Bytes stand row by row with the channels of a pixel together; inputs have one plane for each channel. */
static void normalise(const sgm__picture_form *form, const unsigned char *bytes, float *to)
{
    size_t pixels = (size_t)form->width * (size_t)form->height, channels = (size_t)form->channels;
    for (size_t c = 0; c < channels; c++) {
        float values[256];
        for (int byte = 0; byte < 256; byte++)
            values[byte] = (float)((byte / 255.0 - form->mean[c]) / form->deviation[c]);
        for (size_t i = 0; i < pixels; i++)
            to[c * pixels + i] = values[bytes[i * channels + c]];
    }
}

/* Into `memory`, which is empty before; in its own size if width and height are 0. */
static sgm_status decode(const sgm_file *file, int32_t *width, int32_t *height, int32_t channels,
                         sgm__bytes *memory)
{
    memory->length = 0;
    return file->bytes != NULL ? sgm__image_decode_memory(file->name, file->bytes, file->length, width,
                                                          height, channels, memory)
                               : sgm__image_decode(file->name, width, height, channels, memory);
}

/* The size that a picture has before its middle is cut out; a longer side is rounded down. */
static void find_scaled(const sgm__picture_form *form, const sgm__image *image, int32_t *width,
                        int32_t *height)
{
    int64_t shorter = image->width < image->height ? image->width : image->height;
    *width = form->width;
    *height = form->height;
    if (form->shortest == 0)
        return;
    *width = (int32_t)((int64_t)image->width * form->shortest / shorter);
    *height = (int32_t)((int64_t)image->height * form->shortest / shorter);
}

/* Moves the middle of a picture to its front. */
static void cut_middle(const sgm__picture_form *form, unsigned char *pixels, int32_t width, int32_t height)
{
    size_t pixel = (size_t)form->channels, row = (size_t)form->width * pixel;
    const unsigned char *from =
        pixels +
        ((size_t)((height - form->height) / 2) * (size_t)width + (size_t)((width - form->width) / 2)) * pixel;
    for (int32_t y = 0; y < form->height; y++)
        memmove(pixels + (size_t)y * row, from + (size_t)y * (size_t)width * pixel, row);
}

static sgm_status read_filtered(const sgm__picture_form *form, const sgm_file *file, sgm__bytes *memory,
                                float *inputs)
{
    sgm__image image = {.channels = form->channels};
    int32_t width, height;
    SGM_TRY(decode(file, &image.width, &image.height, form->channels, memory));
    image.pixels = memory->data;
    find_scaled(form, &image, &width, &height);
    if (width > LARGEST_SIDE || height > LARGEST_SIDE)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "%s: %d x %d pixels are too long for their width; cut it to what matters", file->name,
                        (int)image.width, (int)image.height);
    unsigned char *scaled = sgm__calloc((size_t)width * (size_t)height, (size_t)form->channels);
    sgm_status status =
        scaled != NULL ? sgm__image_resize(form->filter, &image, width, height, scaled) : SGM_ERROR_MEMORY;
    if (status == SGM_OK) {
        cut_middle(form, scaled, width, height);
        normalise(form, scaled, inputs);
    }
    sgm__free(scaled);
    return status;
}

static sgm_status read_picture(const void *pointer, const sgm_file *file, sgm__bytes *memory, float *inputs)
{
    const sgm__picture_form *form = pointer;
    int32_t width = form->width, height = form->height;
    if (form->filter != SGM__IMAGE_AREA)
        return read_filtered(form, file, memory, inputs);
    SGM_TRY(decode(file, &width, &height, form->channels, memory));
    normalise(form, memory->data, inputs);
    return SGM_OK;
}

/* --- JSON: {"width":32,"height":32,"channels":3,"mean":[0.5,0.4,0.4],"deviation":[0.2,0.2,0.2]}, with
 * "filter":"bilinear" where it is none of areas, and "shortest":36 --- */

static void put(const void *pointer, json_t *object, bool *failed)
{
    const sgm__picture_form *form = pointer;
    sgm__json_put(object, "width", json_integer(form->width), failed);
    sgm__json_put(object, "height", json_integer(form->height), failed);
    sgm__json_put(object, "channels", json_integer(form->channels), failed);
    sgm__json_put_numbers(object, "mean", form->mean, (size_t)form->channels, failed);
    sgm__json_put_numbers(object, "deviation", form->deviation, (size_t)form->channels, failed);
    if (form->filter != SGM__IMAGE_AREA)
        sgm__json_put(object, "filter", json_string(sgm__image_filter_name(form->filter)), failed);
    if (form->shortest > 0)
        sgm__json_put(object, "shortest", json_integer(form->shortest), failed);
}

static sgm_status take(void *pointer, const json_t *object)
{
    static const char one_each[] = "a list of one number for each channel";
    sgm__picture_form *form = pointer;
    SGM_TRY(sgm__json_take_size(object, "width", &form->width));
    SGM_TRY(sgm__json_take_size(object, "height", &form->height));
    SGM_TRY(sgm__json_take_size(object, "channels", &form->channels));
    if (form->channels != 1 && form->channels != 3)
        return sgm__json_fail_member("channels", "1 or 3");
    const json_t *filter = json_object_get(object, "filter");
    if (filter != NULL &&
        (!json_is_string(filter) || !sgm__image_filter_find(json_string_value(filter), &form->filter)))
        return sgm__json_fail_member("filter", "area, bilinear or bicubic");
    if (json_object_get(object, "shortest") != NULL)
        SGM_TRY(sgm__json_take_size(object, "shortest", &form->shortest));
    SGM_TRY(sgm__json_take_numbers(object, "mean", (size_t)form->channels, one_each, form->mean));
    return sgm__json_take_numbers(object, "deviation", (size_t)form->channels, one_each, form->deviation);
}

/* --- the network that is proposed --- */

/* Each convolution has twice the channels of the one before, and sees a picture of half its sides. */
static void propose(const void *pointer, sgm__text *text)
{
    const sgm__picture_form *form = pointer;
    int32_t side = form->width < form->height ? form->width : form->height, channels = 16;
    sgm__text_append(text, "input(%d, %d, %d)", (int)form->channels, (int)form->height, (int)form->width);
    if (side < SMALLEST_SIDE)
        sgm__text_append(text, " + convolution(%d, 3, relu, same)", (int)channels);
    for (; side >= SMALLEST_SIDE; side /= 2) {
        sgm__text_append(text, " + convolution(%d, 3, relu, same) + max_pooling(2)", (int)channels);
        channels = channels < MAXIMUM_CHANNELS ? 2 * channels : MAXIMUM_CHANNELS;
    }
    sgm__text_append(text, " + dense(64, relu)");
}

/* --- sizes: width and height --- */

static sgm_status measure(const char *path, sgm__file_size *size)
{
    int32_t width, height;
    SGM_TRY(sgm__image_size(path, &width, &height));
    *size = (sgm__file_size){{width, height}};
    return SGM_OK;
}

/* "32 x 32 pixels", or "20 x 16 to 64 x 48 pixels" where widths or heights differ. */
static void tell(const sgm__file_size *least, const sgm__file_size *most, sgm__text *text)
{
    if (sgm__file_sizes_differ(least, most))
        sgm__text_append(text, "%.0f x %.0f to ", least->numbers[0], least->numbers[1]);
    sgm__text_append(text, "%.0f x %.0f pixels", most->numbers[0], most->numbers[1]);
}

static void advise(const sgm__file_size *least, const sgm__file_size *most, sgm__text *text)
{
    (void)most;
    sgm__text_append(text,
                     "sizes differ: say to which all are scaled, such as size: [%.0f, %.0f] in data.training",
                     least->numbers[0], least->numbers[1]);
}

const sgm__file_kind sgm__pictures = {
    .name = "pictures",
    .names = &sgm__picture_names,
    .media_types = SGM__PICTURE_TYPES,
    .form_size = sizeof(sgm__picture_form),
    .check = check,
    .shape = shape,
    .read = read_picture,
    .put = put,
    .take = take,
    .members =
        (const char *const[]){"width", "height", "channels", "mean", "deviation", "filter", "shortest", NULL},
    .network = propose,
    .measure = measure,
    .tell = tell,
    .advise = advise,
};
