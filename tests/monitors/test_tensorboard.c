/* Files for TensorBoard: bytes that its own writer made of the same messages, and what a training leaves. */
#include "base/folder.h"
#include "environment/environment_test.h"
#include "monitors/event_file.h"

#include <glob.h>
#include <unistd.h>

/* By tensorboard 2.21's RecordWriter and protocol buffers, as hexadecimal numbers
 * (tests/monitors/tensorboard_records.py). */
static const char version_record[] =
    "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c";
static const char scalars_record[] =
    "3a000000000000001295eae209000088252b48da4110ac022a2c0a140a0d6c6f73732f747261696e696e67150000803e"
    "0a140a0d6c6561726e696e675f726174651552499db990c6d56d";
static const char histogram_record[] =
    "2a02000000000000b2edb18209000000000000004010012a9c040a99040a01772a930409000000000000f0bf11000000"
    "0000000040190000000000001040210000000000000c4029000000000080224032f001cdccccccccccecbf9a99999999"
    "99e9bf666666666666e6bf333333333333e3bf000000000000e0bf989999999999d9bf323333333333d3bf9899999999"
    "99c9bf989999999999b9bf0000000000000000a09999999999b93fa09999999999c93f343333333333d33f9c99999999"
    "99d93f000000000000e03f343333333333e33f686666666666e63f9a9999999999e93fceccccccccccec3f0000000000"
    "00f03f9a9999999999f13f343333333333f33fceccccccccccf43f686666666666f63f000000000000f83f9a99999999"
    "99f93f343333333333fb3fceccccccccccfc3f686666666666fe3f00000000000000403af001000000000000f03f0000"
    "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000f03f0000000000000000000000000000000000000000000000000000"
    "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "000000000000000000000000000000000000000000000000000000000000000000000000004001a80e6b";
static const char equal_record[] =
    "5500000000000000d7df0fc109000000000000004010012a480a460a01772a41090000000000001c4011000000000000"
    "1c4019000000000000084021000000000000354029000000000060624032080000000000001c403a0800000000000008"
    "404ee70ba8";
static const char restart_record[] = "0f000000000000006d532b0909000000000000084010053a020801a2cd6142";

static void check_bytes(sgm__text *made, const char *wanted)
{
    sgm__text shown = {0};
    CHECK(!made->failed);
    for (size_t i = 0; i < made->length; i++)
        sgm__text_append(&shown, "%02x", (unsigned char)made->data[i]);
    CHECK_STR(shown.data, wanted);
    sgm__text_free(&shown);
    sgm__text_free(made);
}

TEST(checksums_are_those_of_the_standard)
{
    char zeros[32] = {0}, ones[32];
    memset(ones, 0xff, sizeof ones);
    CHECK_INT(sgm__crc32c("123456789", 9), 0xE3069283u);
    CHECK_INT(sgm__crc32c(zeros, sizeof zeros), 0x8A9136AAu); /* RFC 3720, B.4 */
    CHECK_INT(sgm__crc32c(ones, sizeof ones), 0x62A8AB43u);
    CHECK_INT(sgm__crc32c("", 0), 0);
}

TEST(records_are_those_of_tensorboard)
{
    sgm__text made = {0}, summary = {0};
    sgm__event_version(&made, 1.5);
    check_bytes(&made, version_record);
    sgm__summary_scalar(&summary, "loss/training", 0.25);
    sgm__summary_scalar(&summary, "learning_rate", -3e-4);
    sgm__event_summary(&made, 1763749014.125, 300, &summary);
    sgm__text_free(&summary);
    check_bytes(&made, scalars_record);
    sgm__event_restart(&made, 3, 5);
    check_bytes(&made, restart_record);
}

TEST(histograms_leave_out_what_is_no_number)
{
    sgm__text made = {0}, summary = {0};
    sgm__summary_histogram(&summary, "w", (const double[]){-1, NAN, 0.5, 2, INFINITY, 2}, 6);
    sgm__event_summary(&made, 2, 1, &summary);
    sgm__text_free(&summary);
    check_bytes(&made, histogram_record);
    sgm__summary_histogram(&summary, "w", (const double[]){7, 7, 7}, 3);
    sgm__event_summary(&made, 2, 1, &summary);
    check_bytes(&made, equal_record);
    size_t before = summary.length;
    sgm__summary_histogram(&summary, "w", (const double[]){NAN}, 1);
    CHECK_INT(summary.length, before);
    sgm__text_free(&summary);
}

/* --- what a training leaves --- */

static uint64_t number(const char *bytes, int size)
{
    uint64_t value = 0;
    for (int i = size; i-- > 0;)
        value = value << 8 | (unsigned char)bytes[i];
    return value;
}

static uint32_t mask(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

/* How many records of the file hold `text`; all checksums are right, and nothing is behind the last. */
static int records_with(const char *bytes, size_t length, const char *text)
{
    int count = 0;
    size_t at = 0;
    while (at < length) {
        CHECK(length - at >= 16);
        size_t size = number(bytes + at, 8);
        CHECK_INT(number(bytes + at + 8, 4), mask(sgm__crc32c(bytes + at, 8)));
        CHECK(size <= length - at - 16);
        CHECK_INT(number(bytes + at + 12 + size, 4), mask(sgm__crc32c(bytes + at + 12, size)));
        count += memmem(bytes + at + 12, size, text, strlen(text)) != NULL;
        at += size + 16;
    }
    return count;
}

static char *read_events(size_t *length)
{
    glob_t found;
    char *bytes = NULL;
    CHECK_INT(glob(in_folder("runs/line/events.out.tfevents.*"), 0, NULL, &found), 0);
    CHECK_INT(found.gl_pathc, 1);
    CHECK_OK(sgm__file_read(found.gl_pathv[0], 1 << 20, &bytes, length));
    globfree(&found);
    return bytes;
}

TEST(a_training_leaves_scalars_and_histograms)
{
    open_folder();
    sgm_env *env = sgm_env_create("e", .handler = "reference", .seed = 7);
    sgm_trainer *trainer = line_trainer(env, "line");
    sgm_dataset *data = line_dataset();
    CHECK_OK(sgm_trainer_add_data(trainer, "check", sgm_by_block(data)));
    CHECK_OK(sgm_env_add_monitor(
        env, sgm_tensorboard_monitor(.folder = in_folder("runs"), .every_iterations = 3)));
    CHECK_OK(sgm_env_run(env, .epochs = 2));
    size_t length;
    char *bytes = read_events(&length);
    CHECK_INT(records_with(bytes, length, "brain.Event:2"), 1);
    CHECK_INT(records_with(bytes, length, "loss/minibatch"), 4); /* iterations 3 and 6, two epochs */
    CHECK_INT(records_with(bytes, length, "learning_rate"), 4);
    CHECK_INT(records_with(bytes, length, "loss/training"), 2);
    CHECK_INT(records_with(bytes, length, "loss/check"), 2);
    CHECK_INT(records_with(bytes, length, "accuracy/"), 0); /* means nothing here */
    int histograms = records_with(bytes, length, "1-dense/weights");
    CHECK(histograms >= 1 && histograms <= 2); /* by what they take */
    sgm__free(bytes);
    sgm_env_free(env);
    sgm_dataset_free(data);
    close_folder();
}

TEST(wrong_options)
{
    CHECK(sgm_tensorboard_monitor() == NULL);
    CHECK(strstr(sgm_last_error(), "expected a folder for its files"));
    CHECK(sgm_tensorboard_monitor(.folder = "/dev/null/x") == NULL);
    CHECK(sgm_tensorboard_monitor(.folder = "/tmp", .every_seconds = NAN) == NULL);
    CHECK(strstr(sgm_last_error(), "every_seconds: expected 0 or more"));
}
