/* What networks of pictures have in common: preprocessor_config.json, which says how a picture becomes their
 * input, and the classes at their end.
 *
 * The file is of one of three processors. That of ViT brings both sides to a size; that of MobileNet the
 * shorter one, and cuts the middle out; that of ConvNeXT, which ResNet has, too, cuts out a share of it.
 * Older files have the size as one number. */
#include "architectures/settings.h"

#include <math.h>
#include <string.h>

/* Of a side, in pixels. */
#define LARGEST_SIDE 8192
/* From this size on ConvNeXT's processor takes the whole picture. */
#define WHOLE_PICTURE 384

static bool begins(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* A side in pixels. */
static int64_t side(sgm__description *s, const char *key, int64_t otherwise)
{
    int64_t pixels = sgm__setting_steps(s, key, otherwise);
    if (pixels > LARGEST_SIDE)
        sgm__describe_fail(s, SGM_ERROR_FORMAT, "'%s' is %lld; a side of a picture has at most %d pixels",
                           key, (long long)pixels, LARGEST_SIDE);
    return pixels;
}

/* Height and width under a key: {"height": 224, "width": 224}, or one number for both. */
static void read_sides(sgm__description *s, const char *key, sgm__picture *picture)
{
    char height[64], width[64];
    snprintf(height, sizeof height, "%s.height", key);
    snprintf(width, sizeof width, "%s.width", key);
    if (!sgm__setting_has(s, height)) {
        picture->width = picture->height = side(s, key, 0);
        return;
    }
    picture->height = side(s, height, 0);
    picture->width = side(s, width, 0);
}

/* ConvNeXT's: the shorter side is size / share, of which the middle is taken. */
static void read_share(sgm__description *s, int64_t size, sgm__picture *picture)
{
    double share = sgm__setting_number(s, "crop_pct", 224.0 / 256), shortest = (double)size / share;
    picture->width = picture->height = size;
    if (size >= WHOLE_PICTURE)
        return;
    if (shortest > LARGEST_SIDE || share > 1)
        sgm__describe_fail(s, SGM_ERROR_FORMAT, "'crop_pct' is %g; a share up to 1 is wanted", share);
    else
        picture->shortest = (int64_t)shortest;
}

/* Both sides are brought to a size. DeiT's processor then cuts the middle out, and others if they say so. */
static void read_whole(sgm__description *s, const char *processor, sgm__picture *picture)
{
    sgm__picture middle = {0};
    read_sides(s, "size", picture);
    if (!sgm__setting_flag(s, "do_center_crop", begins(processor, "DeiT")))
        return;
    read_sides(s, "crop_size", &middle);
    if (middle.width != picture->width || middle.height != picture->height)
        sgm__describe_fail(
            s, SGM_ERROR_UNSUPPORTED,
            "'do_center_crop' cuts %lld x %lld pixels out of %lld x %lld; a middle is only cut "
            "where 'size' is that of the shorter side (shortest_edge)",
            (long long)middle.width, (long long)middle.height, (long long)picture->width,
            (long long)picture->height);
}

static void read_size(sgm__description *s, const char *processor, sgm__picture *picture)
{
    bool share = begins(processor, "ConvNext");
    bool shorter = sgm__setting_has(s, "size.shortest_edge");
    if (!sgm__setting_flag(s, "do_resize", true))
        sgm__describe_fail(s, SGM_ERROR_UNSUPPORTED,
                           "'do_resize' is false; pictures of any size are not taken");
    if (!share && !shorter && !begins(processor, "MobileNet")) {
        read_whole(s, processor, picture);
        return;
    }
    int64_t size = side(s, shorter ? "size.shortest_edge" : "size", 0);
    if (share) {
        read_share(s, size, picture);
        return;
    }
    picture->shortest = size;
    if (!sgm__setting_flag(s, "do_center_crop", true))
        sgm__describe_fail(
            s, SGM_ERROR_UNSUPPORTED,
            "'do_center_crop' is false: pictures keep their proportions, and a network here takes "
            "them of one size");
    read_sides(s, "crop_size", picture);
    if (size < picture->width || size < picture->height)
        sgm__describe_fail(s, SGM_ERROR_UNSUPPORTED,
                           "'crop_size' is larger than 'size'; pictures with a border are not made");
}

/* Numbers for each channel; all `otherwise` if they are not said. */
static void read_channels(sgm__description *s, const char *key, double otherwise, double numbers[3])
{
    const json_t *list = json_object_get(s->config, key);
    for (size_t i = 0; i < 3; i++) {
        const json_t *number = json_array_get(list, i);
        numbers[i] = list == NULL ? otherwise : json_number_value(number);
        if (list != NULL && !(json_is_number(number) && numbers[i] >= 0 && isfinite(numbers[i])))
            sgm__describe_fail(s, SGM_ERROR_FORMAT, "'%s': three numbers are wanted, one for each colour",
                               key);
    }
}

/* Bytes times a factor, less the mean, by the deviation; here in terms of bytes that are divided by 255. */
static void read_normalisation(sgm__description *s, sgm__picture *picture)
{
    double factor = sgm__setting_flag(s, "do_rescale", true)
                        ? 255 * sgm__setting_number(s, "rescale_factor", 1.0 / 255)
                        : 255;
    bool normalises = sgm__setting_flag(s, "do_normalize", true);
    read_channels(s, "image_mean", 0.5, picture->mean);
    read_channels(s, "image_std", 0.5, picture->deviation);
    for (size_t i = 0; i < 3; i++) {
        picture->mean[i] = normalises ? picture->mean[i] / factor : 0;
        picture->deviation[i] = normalises ? picture->deviation[i] / factor : 1 / factor;
        if (!(picture->deviation[i] > 0))
            sgm__describe_fail(s, SGM_ERROR_FORMAT, "'image_std': numbers above 0 are wanted");
    }
}

static void read_filter(sgm__description *s, sgm__picture *picture)
{
    int64_t filter = sgm__setting_steps(s, "resample", 2);
    if (filter != 2 && filter != 3)
        sgm__describe_fail(s, SGM_ERROR_UNSUPPORTED,
                           "'resample' is %lld; 2 (bilinear) and 3 (bicubic) are known", (long long)filter);
    snprintf(picture->filter, sizeof picture->filter, "%s", filter == 3 ? "bicubic" : "bilinear");
}

/* Its keys are read as those of config.json, so that messages name this file. */
static void read_processor(sgm__description *d)
{
    sgm__description s = {.config = d->processor, .path = d->processor_path};
    const char *processor =
        sgm__setting_text(&s, "image_processor_type", sgm__setting_text(&s, "feature_extractor_type", ""));
    static const char *const others[] = {"do_pad", "do_flip_channel_order", "rescale_offset"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        sgm__setting_must_be(&s, others[i], false);
    read_size(&s, processor, &d->picture);
    read_filter(&s, &d->picture);
    read_normalisation(&s, &d->picture);
    d->picture.processed = d->picture.channels == 3;
    if (d->status == SGM_OK)
        d->status = s.status;
}

void sgm__describe_pictures(sgm__description *d, int64_t size)
{
    d->picture =
        (sgm__picture){.width = size, .height = size, .channels = sgm__setting_size(d, "num_channels", 3)};
    if (size > LARGEST_SIDE)
        sgm__describe_fail(d, SGM_ERROR_FORMAT, "pictures of %lld pixels on a side; at most %d are possible",
                           (long long)size, LARGEST_SIDE);
    if (d->processor != NULL)
        read_processor(d);
    sgm__describe_task(d, "classify embed",
                       sgm__setting_is_for(d, "ForImageClassification") || d->wanted_classes > 0 ? "classify"
                                                                                                 : "embed");
    sgm__network_put(d, "input(%lld, %lld, %lld)", (long long)d->picture.channels,
                     (long long)d->picture.height, (long long)d->picture.width);
}

void sgm__network_classes(sgm__description *d)
{
    if (strcmp(d->task, "classify") != 0)
        return;
    int64_t classes = sgm__describe_classes(d);
    sgm__network_put(d, " + dense(%lld, name=classifier)", (long long)classes);
    sgm__network_cost(d, classes);
}
