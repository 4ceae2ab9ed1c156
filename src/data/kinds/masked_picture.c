/* Pictures with masks as a kind of files (kind.h): the inputs of pictures, and the class of each pixel as
 * target. */
#include "data/kinds/masked_picture.h"

/* The network that is proposed halves pictures at most so often, and not below this side. */
#define MAXIMUM_LEVELS 3
#define SMALLEST_SIDE 8
#define FIRST_CHANNELS 16

static sgm_status check(const void *pointer)
{
    const sgm__masked_form *form = pointer;
    SGM_TRY(sgm__pictures.check(&form->picture));
    if (form->class_count < 2 || form->class_count > SGM__MASK_VALUES)
        return sgm_fail(SGM_ERROR_FORMAT, "masks with 2 to %d different values were expected, there are %d",
                        SGM__MASK_VALUES, (int)form->class_count);
    for (int32_t i = 1; i < form->class_count; i++)
        if (form->values[i] <= form->values[i - 1])
            return sgm_fail(SGM_ERROR_FORMAT, "values of masks in rising order were expected");
    return SGM_OK;
}

static sgm_shape shape(const void *pointer)
{
    return sgm__pictures.shape(pointer);
}

/* (height, width): a class for each pixel. */
static sgm_shape target_shape(const void *pointer)
{
    const sgm__masked_form *form = pointer;
    return sgm_shape_of(form->picture.height, form->picture.width);
}

static sgm_status read_picture(const void *pointer, const sgm_file *file, sgm__bytes *memory, float *inputs)
{
    return sgm__pictures.read(pointer, file, memory, inputs);
}

static int32_t class_of(const sgm__masked_form *form, unsigned char value)
{
    for (int32_t i = 0; i < form->class_count; i++)
        if (form->values[i] == value)
            return i;
    return -1;
}

static sgm_status read_target(const void *pointer, const char *path, sgm__bytes *memory, float *targets)
{
    const sgm__masked_form *form = pointer;
    int32_t width = form->picture.width, height = form->picture.height, classes[SGM__MASK_VALUES];
    for (int value = 0; value < SGM__MASK_VALUES; value++)
        classes[value] = class_of(form, (unsigned char)value);
    memory->length = 0;
    SGM_TRY(sgm__mask_decode(path, &width, &height, memory));
    for (size_t i = 0; i < memory->length; i++) {
        int32_t class = classes[memory->data[i]];
        if (class < 0)
            return sgm_fail(
                SGM_ERROR_FORMAT,
                "%s: the value %d is in no mask of the training data, so it is no class: correct the "
                "mask",
                path, (int)memory->data[i]);
        targets[i] = (float)class;
    }
    return SGM_OK;
}

/* --- JSON: that of pictures, and "values":[0,255] --- */

static void put(const void *pointer, json_t *object, bool *failed)
{
    const sgm__masked_form *form = pointer;
    double values[SGM__MASK_VALUES];
    for (int32_t i = 0; i < form->class_count; i++)
        values[i] = form->values[i];
    sgm__pictures.put(&form->picture, object, failed);
    sgm__json_put_numbers(object, "values", values, (size_t)form->class_count, failed);
}

static sgm_status take(void *pointer, const json_t *object)
{
    static const char expected[] = "a list of 2 to 256 whole numbers from 0 to 255";
    sgm__masked_form *form = pointer;
    double values[SGM__MASK_VALUES];
    size_t count = json_array_size(json_object_get(object, "values"));
    SGM_TRY(sgm__pictures.take(&form->picture, object));
    if (count < 2 || count > SGM__MASK_VALUES)
        return sgm__json_fail_member("values", expected);
    SGM_TRY(sgm__json_take_numbers(object, "values", count, expected, values));
    for (size_t i = 0; i < count; i++) {
        if (!(values[i] >= 0 && values[i] <= 255) || values[i] != (double)(int)values[i])
            return sgm__json_fail_member("values", expected);
        form->values[i] = (unsigned char)values[i];
    }
    form->class_count = (int32_t)count;
    return SGM_OK;
}

/* --- the network that is proposed: a U-Net (Ronneberger et al., 2015) whose skip connections are added, not
 * concatenated (LinkNet: Chaurasia and Culurciello, 2017), with as many levels as the sides can be halved ---
 */

static int levels_of(const sgm__picture_form *form)
{
    int32_t width = form->width, height = form->height;
    int levels = 0;
    while (levels < MAXIMUM_LEVELS && width % 2 == 0 && height % 2 == 0 && width >= SMALLEST_SIDE &&
           height >= SMALLEST_SIDE) {
        width /= 2;
        height /= 2;
        levels++;
    }
    return levels;
}

static void propose(const void *pointer, sgm__text *text)
{
    const sgm__masked_form *form = pointer;
    const sgm__picture_form *picture = &form->picture;
    int levels = levels_of(picture);
    sgm__text_append(text, "down0 = input(%d, %d, %d) + convolution(%d, 3, relu, same); ",
                     (int)picture->channels, (int)picture->height, (int)picture->width, FIRST_CHANNELS);
    for (int i = 1; i <= levels; i++)
        sgm__text_append(text, "down%d = down%d + max_pooling(2) + convolution(%d, 3, relu, same); ", i,
                         i - 1, FIRST_CHANNELS << i);
    for (int i = levels - 1; i >= 0; i--) {
        char below[64];
        snprintf(below, sizeof below, i + 1 == levels ? "down%d" : "across%d", i + 1);
        sgm__text_append(text, "up%d = %s + upsampling(2) + convolution(%d, 3, relu, same); ", i, below,
                         FIRST_CHANNELS << i);
        if (i > 0)
            sgm__text_append(text, "across%d = add(down%d, up%d) + convolution(%d, 3, relu, same); ", i, i, i,
                             FIRST_CHANNELS << i);
    }
    sgm__text_append(text, levels > 0 ? "add(down0, up0)" : "down0");
    sgm__text_append(text, " + convolution(%d, 3, relu, same) + convolution(%d, 1) + permute(2, 3, 1)",
                     FIRST_CHANNELS, (int)form->class_count);
}

const sgm__file_kind sgm__masked_pictures = {
    .name = "masked pictures",
    .names = &sgm__picture_names,
    .media_types = SGM__PICTURE_TYPES,
    .form_size = sizeof(sgm__masked_form),
    .check = check,
    .shape = shape,
    .read = read_picture,
    .target_shape = target_shape,
    .read_target = read_target,
    .put = put,
    .take = take,
    .members = (const char *const[]){"width", "height", "channels", "mean", "deviation", "values", NULL},
    .network = propose,
};
