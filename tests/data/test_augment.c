/* Augmentation: pictures against PyTorch's, what is drawn, threads, going on from a state, bad texts. */
#include "augment_torch.h"
#include "data/augment.h"
#include "data/dataset.h"
#include "pipeline_test.h"
#include <sigma/sigma.h>

/* --- one picture --- */

#define CHANNELS 2
#define HEIGHT 5
#define WIDTH 6
#define PIXELS (CHANNELS * HEIGHT * WIDTH)

static float pixels[PIXELS], room[PIXELS];

static const sgm__picture *fresh(void)
{
    static const sgm__picture picture = {pixels, room, CHANNELS, HEIGHT, WIDTH, false};
    for (int i = 0; i < PIXELS; i++)
        pixels[i] = (float)sin(0.7 * i);
    return &picture;
}

static void check_pixels(const double *expected)
{
    for (int i = 0; i < PIXELS; i++)
        CHECK_NEAR(pixels[i], expected[i], 1e-6);
}

TEST(pictures_are_changed_as_by_pytorch)
{
    sgm__picture_rotate(fresh(), 25, 0.5F);
    check_pixels(torch_rotated_25);
    sgm__picture_rotate(fresh(), -100, 0);
    check_pixels(torch_rotated_minus_100);
    sgm__picture_crop(fresh(), 0.7, 0.9, 0.4);
    check_pixels(torch_cropped);
    sgm__picture_shift(fresh(), 2, -1, 0.25F);
    check_pixels(torch_shifted);
    sgm__picture_mirror(fresh(), true, true);
    check_pixels(torch_flipped);
}

TEST(a_quarter_turn_goes_against_the_clock)
{
    float square[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, scratch[9];
    const float transposed[] = {3, 6, 9, 2, 5, 8, 1, 4, 7};
    sgm__picture_rotate(&(sgm__picture){square, scratch, 1, 3, 3, false}, 90, 0);
    for (int i = 0; i < 9; i++)
        CHECK_NEAR(square[i], transposed[i], 1e-6);
}

TEST(a_square_is_put_over_what_is_inside)
{
    sgm__picture_erase(fresh(), -1, 4, 3, 7);
    for (int i = 0; i < PIXELS; i++) {
        int y = i / WIDTH % HEIGHT, x = i % WIDTH;
        CHECK_NEAR(pixels[i], y < 2 && x >= 4 ? 7 : sin(0.7 * i), 1e-6);
    }
    sgm__picture_erase(fresh(), 3, -2, 1000000, 7);
    for (int i = 0; i < PIXELS; i++)
        CHECK_NEAR(pixels[i], i / WIDTH % HEIGHT >= 3 ? 7 : sin(0.7 * i), 1e-6);
}

/* --- minibatches --- */

#define TOTAL 45
#define SIDE 8
#define CLASSES 3

/* Picture i has the pixel (2, 3) of brightness 1 + i, and class i % 3. */
static sgm_dataset *dots(void)
{
    sgm_shape shape = sgm_shape_of(TOTAL, SIDE, SIDE), classes = sgm_shape_of(TOTAL, CLASSES);
    sgm_tensor *inputs = sgm_tensor_create(SGM_FLOAT32, &shape);
    sgm_tensor *targets = sgm_tensor_create(SGM_FLOAT32, &classes);
    for (int64_t i = 0; i < TOTAL; i++) {
        sgm_tensor_set(inputs, (const int64_t[]){i, 2, 3}, (double)(1 + i));
        sgm_tensor_set(targets, (const int64_t[]){i, i % CLASSES}, 1);
    }
    sgm_dataset *dataset = sgm_dataset_create_from("dots", (const char *const[]){"inputs", "targets"},
                                                   (sgm_tensor *const[]){inputs, targets}, 2);
    sgm_tensor_free(inputs);
    sgm_tensor_free(targets);
    return dataset;
}

/* Pictures without symmetry. */
static sgm_dataset *patterns(void)
{
    sgm_shape shape = sgm_shape_of(TOTAL, SIDE, SIDE), classes = sgm_shape_of(TOTAL, CLASSES);
    sgm_tensor *inputs = sgm_tensor_create(SGM_FLOAT32, &shape);
    sgm_tensor *targets = sgm_tensor_create(SGM_FLOAT32, &classes);
    for (int64_t i = 0; i < TOTAL; i++) {
        for (int64_t p = 0; p < SIDE * SIDE; p++)
            sgm_tensor_set(inputs, (const int64_t[]){i, p / SIDE, p % SIDE},
                           (double)((i * 7 + p / SIDE * 3 + p % SIDE * 5) % 11));
        sgm_tensor_set(targets, (const int64_t[]){i, i % CLASSES}, 1);
    }
    sgm_dataset *dataset = sgm_dataset_create_from("patterns", (const char *const[]){"inputs", "targets"},
                                                   (sgm_tensor *const[]){inputs, targets}, 2);
    sgm_tensor_free(inputs);
    sgm_tensor_free(targets);
    return dataset;
}

static double weigh(const sgm_block *batch, int64_t example)
{
    double sum = 0;
    for (int64_t p = 0; p < SIDE * SIDE; p++)
        sum += pipeline_at(batch, "inputs", example, (int32_t)p) * (double)(p + 1);
    for (int64_t c = 0; c < CLASSES; c++)
        sum += 1000 * pipeline_at(batch, "targets", example, (int32_t)c) * (double)(c + 1);
    return sum;
}

typedef struct sums {
    int64_t examples;
    uint64_t hash; /* of everything, in order */
} sums;

/* What is left of the epoch at hand. */
static sums rest_of_epoch(sgm_iterator *iterator)
{
    sums all = {0};
    const sgm_block *batch;
    for (;;) {
        CHECK_OK(sgm_iterator_next(iterator, &batch));
        if (batch == NULL)
            return all;
        all.examples += batch->count;
        for (int32_t s = 0; s < batch->field_count; s++) {
            const sgm_tensor *values = batch->fields[s].values;
            size_t bytes = (size_t)sgm_shape_elements(sgm_tensor_shape(values)) * sizeof(float);
            all.hash = sgm__hash(sgm_tensor_const_data(values), bytes, all.hash);
        }
    }
}

#define EVERYTHING                                                                                           \
    "crop(0.7) + flip(0.5, 0.5) + shift(2, fill=0.5) + rotate(20) + cutout(3) + noise(0.01) + mixup(0.4)"

TEST(images_do_not_depend_on_threads)
{
    uint64_t expected[3] = {0};
    sgm_dataset *dataset = dots();
    for (int64_t threads = 0; threads <= 8; threads++) {
        sgm_iterator *iterator =
            sgm_minibatches(dataset, .size = 4, .seed = 7, .augment = EVERYTHING,
                            .prefetch_threads = threads > 0 ? threads : 1, .no_prefetch = threads == 0);
        for (int e = 0; e < 3; e++) {
            sums all = rest_of_epoch(iterator);
            CHECK_INT(all.examples, TOTAL);
            if (threads == 0)
                expected[e] = all.hash;
            CHECK(all.hash == expected[e]);
        }
        sgm_iterator_free(iterator);
    }
    CHECK(expected[0] != expected[1] && expected[1] != expected[2]);
    sgm_iterator *other = sgm_minibatches(dataset, .size = 4, .seed = 8, .augment = EVERYTHING);
    CHECK(rest_of_epoch(other).hash != expected[0]);
    sgm_iterator_free(other);
    sgm_dataset_free(dataset);
    CHECK_INT(atomic_load(&allocator_live), 0);
}

TEST(a_run_that_goes_on_sees_the_same_images)
{
    sgm_dataset *dataset = dots();
    sgm_iterator *whole = sgm_minibatches(dataset, .size = 4, .seed = 7, .augment = EVERYTHING);
    rest_of_epoch(whole);
    const sgm_block *batch;
    for (int i = 0; i < 5; i++)
        CHECK_OK(sgm_iterator_next(whole, &batch));
    sgm_iterator_state state;
    sgm_iterator_get_state(whole, &state);
    CHECK_INT(state.epoch, 1);
    CHECK_INT(state.batches, 5);
    sums expected = rest_of_epoch(whole);
    sgm_iterator *second =
        sgm_minibatches(dataset, .size = 4, .seed = 7, .augment = EVERYTHING, .prefetch_threads = 3);
    CHECK_OK(sgm_iterator_next(second, &batch)); /* some are on their way when it is set */
    CHECK_OK(sgm_iterator_set_state(second, &state));
    CHECK(rest_of_epoch(second).hash == expected.hash);
    /* and again, from the middle of an epoch to before it */
    CHECK_OK(sgm_iterator_set_state(second, &state));
    CHECK_OK(sgm_iterator_next(second, &batch));
    CHECK_OK(sgm_iterator_set_state(second, &state));
    CHECK(rest_of_epoch(second).hash == expected.hash);
    sgm_iterator_free(second);
    sgm_iterator_free(whole);
    sgm_dataset_free(dataset);
}

/* Who skips a minibatch has the next ones as if it had been given. */
TEST(skipping_changes_no_image)
{
    sgm_dataset *dataset = patterns();
    for (int threads = 0; threads < 2; threads++) {
        sgm_iterator *all = sgm_minibatches(dataset, .size = 4, .seed = 7, .augment = EVERYTHING);
        sgm_iterator *skipping = sgm_minibatches(dataset, .size = 4, .seed = 7, .augment = EVERYTHING,
                                                 .no_prefetch = threads == 0);
        const sgm_block *a, *b;
        for (int i = 0; i < 8; i++) {
            if (i % 3 == 0)
                sgm__iterator_skip_next(skipping);
            CHECK_OK(sgm_iterator_next(all, &a));
            CHECK_OK(sgm_iterator_next(skipping, &b));
            for (int64_t k = 0; i % 3 != 0 && k < 4; k++)
                CHECK_NEAR(weigh(a, k), weigh(b, k), 0);
        }
        sgm_iterator_free(all);
        sgm_iterator_free(skipping);
    }
    sgm_dataset_free(dataset);
}

TEST(a_new_size_counts_from_the_next_epoch_on)
{
    sgm_dataset *dataset = dots();
    sgm_iterator *iterator =
        sgm_minibatches(dataset, .size = 4, .augment = "shift(1)", .prefetch_threads = 2, .drop_last = true);
    const sgm_block *batch;
    CHECK_OK(sgm_iterator_next(iterator, &batch));
    sgm_content size = sgm_integer_content(10);
    CHECK_OK(sgm_iterator_set(iterator, "minibatch_size", &size));
    CHECK_INT(rest_of_epoch(iterator).examples, 40);
    CHECK_INT(rest_of_epoch(iterator).examples, 40);
    CHECK_OK(sgm_iterator_next(iterator, &batch));
    CHECK_INT(batch->count, 10);
    size = sgm_integer_content(100); /* more than there are */
    CHECK_OK(sgm_iterator_set(iterator, "minibatch_size", &size));
    rest_of_epoch(iterator);
    CHECK_INT(rest_of_epoch(iterator).examples, 0);
    sgm_iterator_free(iterator);
    sgm_dataset_free(dataset);
    CHECK_INT(atomic_load(&allocator_live), 0);
}

/* One full minibatch an epoch: the second slot of the ring sees but the rest, which is left out, first. */
TEST(epochs_of_one_minibatch_and_a_rest)
{
    sgm_dataset *dataset = dots();
    sgm_iterator *iterator =
        sgm_minibatches(dataset, .size = TOTAL - 2, .augment = "mixup(0.2)", .drop_last = true);
    for (int e = 0; e < 4; e++)
        CHECK_INT(rest_of_epoch(iterator).examples, TOTAL - 2);
    sgm_iterator_free(iterator);
    sgm_dataset_free(dataset);
}

/* What is drawn for a seed is part of what a run is. Of the first examples of an epoch: pixels, and targets,
 * times weights that tell places apart. */
TEST(what_is_drawn_for_a_seed_never_changes)
{
    enum { EXAMPLES = 4 };
    static const struct {
        const char *augment;
        double epochs[2][EXAMPLES];
    } golden[] = {
        {"crop(0.7)", {{11383.92, 12265.30, 13633.89, 11377.65}, {11262.99, 12358.35, 13440.57, 11303.75}}},
        {"flip(0.5, 0.5)",
         {{11089.00, 12494.00, 13287.00, 11228.00}, {11089.00, 12494.00, 13281.00, 11644.00}}},
        {"shift(2, fill=0.5)",
         {{7278.50, 11031.00, 10663.00, 10227.00}, {10689.00, 10331.00, 9259.00, 7157.50}}},
        {"rotate(20)", {{11093.20, 11961.83, 12039.47, 10507.60}, {11327.56, 11422.11, 13200.94, 10271.95}}},
        {"cutout(3)", {{10381.00, 10784.00, 12333.00, 9542.00}, {10911.00, 11405.00, 11986.00, 8903.00}}},
        {"noise(0.1)", {{11573.07, 12460.33, 13283.61, 11191.65}, {11570.26, 12540.13, 13297.12, 11176.00}}},
        {"mixup(0.4)", {{11703.27, 11178.86, 11860.10, 12400.60}, {11806.32, 12417.18, 13245.36, 12302.51}}},
        {"crop(0.7) + flip(0.5, 0.5) + shift(2, fill=0.5) + rotate(20) + cutout(3) + noise(0.1) + mixup(0.4)",
         {{8293.24, 8936.05, 10879.17, 10486.37}, {9277.34, 8807.42, 10673.20, 11142.15}}},
    };
    sgm_dataset *dataset = patterns();
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        sgm_iterator *iterator = sgm_minibatches(dataset, .size = EXAMPLES, .seed = 7, .no_shuffle = true,
                                                 .augment = golden[i].augment);
        const sgm_block *batch;
        for (int64_t e = 0; e < 2; e++) {
            CHECK_OK(sgm_iterator_set_state(iterator, &(sgm_iterator_state){.epoch = e}));
            CHECK_OK(sgm_iterator_next(iterator, &batch));
            for (int64_t k = 0; k < EXAMPLES; k++)
                CHECK_NEAR(weigh(batch, k), golden[i].epochs[e][k], 0.02);
        }
        sgm_iterator_free(iterator);
    }
    sgm_dataset_free(dataset);
}

/* Where the dot of each picture went: how often to each place. */
TEST(shifts_are_drawn_evenly)
{
    int hits[5][5] = {{0}};
    sgm_dataset *dataset = dots();
    sgm_iterator *iterator = sgm_minibatches(dataset, .size = 9, .augment = "shift(2)");
    const sgm_block *batch;
    for (int e = 0; e < 100;) {
        CHECK_OK(sgm_iterator_next(iterator, &batch));
        e += batch == NULL;
        for (int64_t i = 0; batch != NULL && i < batch->count; i++) {
            const float *picture =
                (const float *)sgm_tensor_const_data(sgm_block_field(batch, "inputs")) + i * SIDE * SIDE;
            int found = 0;
            for (int y = 0; y < 5; y++)
                for (int x = 0; x < 5; x++)
                    if (picture[y * SIDE + x + 1] > 0)
                        hits[y][x]++, found++;
            CHECK_INT(found, 1);
        }
    }
    /* chi-squared with 24 degrees of freedom: above 51.2 once in a thousand */
    double expected = 100.0 * TOTAL / 25, chi = 0;
    for (int i = 0; i < 25; i++)
        chi += (hits[i / 5][i % 5] - expected) * (hits[i / 5][i % 5] - expected) / expected;
    CHECK(chi < 51.2);
    sgm_iterator_free(iterator);
    sgm_dataset_free(dataset);
}

TEST(mixup_mixes_labels_as_it_mixes_images)
{
    sgm_dataset *dataset = dots();
    sgm_iterator *iterator = sgm_minibatches(dataset, .size = 9, .augment = "mixup(1)");
    const sgm_block *batch;
    CHECK_OK(sgm_iterator_next(iterator, &batch));
    int mixed = 0;
    double sum = 0;
    for (int64_t i = 0; i < batch->count; i++) {
        double share[CLASSES], all = 0;
        for (int k = 0; k < CLASSES; k++)
            all += share[k] = pipeline_at(batch, "targets", i, k);
        CHECK_NEAR(all, 1, 1e-6);
        mixed += share[0] < 0.999 && share[1] < 0.999 && share[2] < 0.999;
        sum += pipeline_at(batch, "inputs", i, 2 * SIDE + 3);
    }
    CHECK(mixed >= 3);
    CHECK(sum > 9 * 1 && sum < 9 * TOTAL);
    /* without mixup the first batch has these examples; each picture is a share of one and the rest of
     * another
     */
    sgm_iterator *plain = sgm_minibatches(dataset, .size = 9);
    const sgm_block *old;
    CHECK_OK(sgm_iterator_next(plain, &old));
    for (int64_t i = 0; i < 9; i++) {
        double now = pipeline_at(batch, "inputs", i, 2 * SIDE + 3),
               own = pipeline_at(old, "inputs", i, 2 * SIDE + 3);
        bool explained = false;
        for (int64_t k = 0; k < 9; k++) {
            double other = pipeline_at(old, "inputs", k, 2 * SIDE + 3), share = (now - other) / (own - other);
            bool fits = k != i;
            for (int c = 0; c < CLASSES; c++) {
                double wanted = share * pipeline_at(old, "targets", i, c) +
                                (1 - share) * pipeline_at(old, "targets", k, c);
                fits = fits && fabs(pipeline_at(batch, "targets", i, c) - wanted) < 1e-5;
            }
            explained |= fits;
        }
        CHECK(explained);
    }
    sgm_iterator_free(plain);
    sgm_iterator_free(iterator);
    sgm_dataset_free(dataset);
}

/* Mean 1/2 and variance 1 / (4 (2 alpha + 1)). */
TEST(shares_have_the_moments_of_beta)
{
    const double alphas[] = {0.05, 0.2, 1, 3};
    for (int a = 0; a < 4; a++) {
        sgm__random random = sgm__random_make(1, 2);
        double sum = 0, squares = 0;
        for (int i = 0; i < 20000; i++) {
            double x = sgm__random_beta(&random, alphas[a]);
            CHECK(x >= 0 && x <= 1);
            sum += x;
            squares += (x - 0.5) * (x - 0.5);
        }
        CHECK_NEAR(sum / 20000, 0.5, 0.012);
        CHECK_NEAR(squares / 20000, 1 / (4 * (2 * alphas[a] + 1)), 0.003);
    }
}

/* --- what is refused --- */

static void check_refused(const char *text, const char *message)
{
    CHECK_ERROR(sgm_augmentation_check(text), message);
}

TEST(bad_texts)
{
    check_refused("shfit(2)", "augment: column 1: unknown augmentation 'shfit' (did you mean 'shift'?)");
    check_refused("sparkle", "there are crop, flip, shift, rotate, cutout, noise, mixup");
    check_refused("flip + crop(1.5)",
                  "augment: column 13: crop: minimum: expected a number from 0.01 to 1, not 1.5");
    check_refused("shift(1.5)", "maximum: expected a whole number from 0 to 1000000 pixels, not 1.5");
    check_refused("shift(1e300)", "maximum: expected");
    check_refused("rotate(nan)", "column 8: rotate: maximum: expected a number from 0, found 'nan'");
    check_refused("rotate(degrees=3)", "expected an argument of rotate (maximum, fill), found 'degrees'");
    check_refused("cutout(0)", "size: expected a whole number from 1 to 1000000 pixels, not 0");
    check_refused("flip(0.5, 0.5, 0.5)", "column 16: flip takes at most 2 arguments");
    check_refused("mixup(0)", "alpha: expected a number from 0.01 to 4, not 0");
    check_refused("flip + ", "column 8: expected a name, found the end");
    check_refused("", "column 1: expected a name, found the end");
    check_refused("flip shift", "column 6: expected '+' with another step, or the end, found 'shift'");
    check_refused("flip(0.5", "expected ',' with another argument, or ')', found the end");
    check_refused("flip+flip+flip+flip+flip+flip+flip+flip+flip+flip+flip+flip+flip+flip+flip+flip+flip",
                  "more than 16 steps");
    CHECK_OK(sgm_augmentation_check("noise(standard_deviation=1e+0)+ flip ( vertical = 1 )"));
    CHECK_OK(sgm_augmentation_check(EVERYTHING));
    CHECK_OK(sgm_augmentation_check(" none "));
    CHECK_ERROR(sgm_augmentation_check("none + shift(1)"), "unknown augmentation 'none'");
}

TEST(the_table_says_what_there_is)
{
    for (size_t i = 0; sgm_augmentation_at(i) != NULL; i++) {
        const sgm_augmentation_type *type = sgm_augmentation_at(i);
        CHECK(strlen(type->doc) > 10 && type->argument_count >= 1);
        CHECK_OK(sgm_augmentation_check(type->name)); /* defaults are within bounds */
        for (size_t k = 0; k < type->argument_count; k++)
            CHECK(type->arguments[k].doc != NULL && type->arguments[k].maximum > type->arguments[k].minimum);
    }
}

static void check_first(sgm_dataset *dataset, const char *augment, const char *message)
{
    const sgm_block *batch;
    sgm_iterator *iterator = sgm_minibatches(dataset, .size = 10, .augment = augment);
    CHECK(iterator != NULL);
    for (int i = 0; i < 2; i++) /* a second try fails, too */
        CHECK_ERROR(sgm_iterator_next(iterator, &batch), message);
    sgm_iterator_free(iterator);
    sgm_dataset_free(dataset);
}

TEST(data_that_do_not_fit)
{
    check_first(sgm_dataset_open("iris"), "flip",
                "flip wants pictures, (height, width) or (channels, height, width)");
    check_first(sgm_dataset_create("numbers", .extractor = counting_extractor(20, 2)), "mixup",
                "field \"targets\" has one number an example, and numbers of classes cannot be mixed");
    check_first(sgm_dataset_create("numbers", .extractor = sgm_array_extractor(counting_make(20, 2),
                                                                               .regions = {{.field = "x"}})),
                "noise", "the data has no field \"inputs\" to change");
    sgm_dataset *dataset = dots();
    CHECK_ERROR(sgm_minibatches(dataset, .augment = "flp"),
                "dots: augment: column 1: unknown augmentation 'flp' (did you mean 'flip'?)");
    CHECK_ERROR(sgm_minibatches(dataset, .augment = "flip", .prefetch_threads = 65),
                "prefetch_threads: expected an integer from 1 to 64, got 65");
    sgm_dataset_free(dataset);
    CHECK_INT(atomic_load(&allocator_live), 0);
}

/* A block that cannot be read: what comes before it is given first, then the failure, at each try. */
TEST(a_failure_comes_where_it_is)
{
    sgm_dataset *dataset =
        sgm_dataset_create("torn",
                           .extractor = sgm_csv_extractor(
                               sgm_csv_reader(sgm_memory_source("t", "1,2\n3,4\n5,6\n7,8\nx,9\n1,2\n", 24)),
                               .fields = {{"inputs", 0, 1}}),
                           .block_size = 2);
    sgm_iterator *iterator = sgm_minibatches(dataset, .size = 2, .augment = "noise(0.5)",
                                             .prefetch_threads = 8, .no_shuffle = true);
    const sgm_block *batch;
    for (int i = 0; i < 2; i++)
        CHECK_OK(sgm_iterator_next(iterator, &batch));
    CHECK_INT(batch->count, 2);
    for (int i = 0; i < 3; i++)
        CHECK_ERROR(sgm_iterator_next(iterator, &batch), "line 5");
    sgm_iterator_free(iterator);
    sgm_dataset_free(dataset);
}

TEST(what_is_measured_is_not_augmented)
{
    sgm_env *env = sgm_env_create("augment", .seed = 1);
    sgm_trainer *trainer = sgm_trainer_create(env, "t");
    sgm_dataset *dataset = dots();
    CHECK_ERROR(sgm_trainer_add_data(trainer, "validation", sgm_minibatches(dataset, .augment = "flip")),
                "data 'validation': its examples would be augmented");
    sgm_env_free(env);
    sgm_dataset_free(dataset);
}

/* --- masks: the class of each pixel moves with it --- */

#define MASK_SIDE 12
#define MASK_COUNT 8

/* A square, whose pixels are 1 in the picture and of class 1. */
static sgm_dataset *squares(void)
{
    static float inputs[MASK_COUNT][MASK_SIDE][MASK_SIDE];
    for (int i = 0; i < MASK_COUNT; i++)
        for (int y = 0; y < MASK_SIDE; y++)
            for (int x = 0; x < MASK_SIDE; x++)
                inputs[i][y][x] = y >= 2 && y < 8 && x >= 4 && x < 10 - i / 4;
    sgm_shape picture = sgm_shape_of(MASK_COUNT, 1, MASK_SIDE, MASK_SIDE),
              mask = sgm_shape_of(MASK_COUNT, MASK_SIDE, MASK_SIDE);
    sgm_tensor *tensors[] = {sgm_tensor_create(SGM_FLOAT32, &picture), sgm_tensor_create(SGM_FLOAT32, &mask)};
    for (int i = 0; i < 2; i++)
        memcpy(sgm_tensor_data(tensors[i]), inputs, sizeof inputs);
    sgm_dataset *made =
        sgm_dataset_create_from("squares", (const char *const[]){"inputs", "targets"}, tensors, 2);
    sgm_tensor_free(tensors[0]);
    sgm_tensor_free(tensors[1]);
    return made;
}

/* Of all pixels of some epochs: the share that the mask has as the picture, rounded. All of it are classes.
 */
static double agreement(const char *augment)
{
    sgm_dataset *dataset = squares();
    sgm_iterator *iterator = sgm_minibatches(dataset, .size = MASK_COUNT, .augment = augment, .seed = 5);
    double same = 0, all = 0;
    for (int epoch = 0; epoch < 10; epoch++) {
        const sgm_block *batch;
        while (sgm_iterator_next(iterator, &batch) == SGM_OK && batch != NULL) {
            const float *inputs = sgm_tensor_const_data(sgm_block_field(batch, "inputs")),
                        *targets = sgm_tensor_const_data(sgm_block_field(batch, "targets"));
            for (int i = 0; i < MASK_COUNT * MASK_SIDE * MASK_SIDE; i++, all++) {
                CHECK(targets[i] == 0 || targets[i] == 1);
                same += targets[i] == roundf(inputs[i]);
            }
        }
    }
    sgm_iterator_free(iterator);
    sgm_dataset_free(dataset);
    return same / all;
}

TEST(masks_move_with_their_pictures)
{
    CHECK_NEAR(agreement("flip(0.5, 0.5) + shift(3)"), 1, 0);
    CHECK(agreement("rotate(40) + crop(0.5)") > 0.95);
    CHECK(agreement("cutout(4)") < 0.99); /* what is hidden is still there */
    CHECK(agreement("cutout(4)") > 0.8);
    check_first(squares(), "mixup(0.2)", "classes cannot be mixed");
}
