/* Folders of sounds and their pipelines: spectrograms and other rates by the formulas, what is learnt of a
 * part, what is kept as JSON, and files that are damaged. */
#include "base/allocator.h"
#include "base/base.h"
#include "data/kinds/sound.h"
#include "data_test.h"
#include "sound_files.h"
#include <sigma/network.h>
#include <sigma/sound.h>

#include <math.h>
#include <sys/stat.h>

#define RATE 8000
#define COUNT 400
#define PI 3.14159265358979323846

static const char *path_of(const char *folder, const char *class, const char *name)
{
    static char path[512];
    mkdir(data_path(folder), 0755);
    snprintf(path, sizeof path, "%s/%s", data_path(folder), class);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/%s/%s", data_path(folder), class, name);
    return path;
}

/* The sound of sound_reference.py, at another loudness. */
static void write_tone(const char *path, int rate, int count, double loudness)
{
    double samples[4 * COUNT];
    for (int i = 0; i < count; i++)
        samples[i] = loudness * (0.5 * sin(2 * PI * 440 * i / rate) + 0.25 * sin(2 * PI * 1234 * i / rate));
    CHECK_INT(sound_write(path, rate, 1, samples, count), 0);
}

/* Whether sounds can be read here; else the test is skipped. */
static bool has_library(void)
{
    const char *path = data_path("there.wav");
    write_tone(path, RATE, COUNT, 1);
    sgm__sound_file *sound = sgm__sound_open(&(const sgm_file){.name = path});
    sgm__sound_close(sound);
    if (sound == NULL)
        CHECK(strstr(sgm_last_error(), "install the package libsndfile1") != NULL);
    return sound != NULL;
}

#define NEED_LIBRARY()                                                                                       \
    do {                                                                                                     \
        if (!has_library())                                                                                  \
            SKIP("libsndfile is not installed");                                                             \
    } while (0)

/* --- numbers: those of sound_reference.py --- */

static const sgm__sound_form form = {
    .rate = RATE, .samples = COUNT, .mels = 8, .window = 50, .hop = 32, .deviation = 1};

static sgm_status read_sound(const sgm__sound_form *of, const sgm_file *file, float *numbers)
{
    int64_t count;
    return sgm__sound_read(of, file, numbers, &count);
}

TEST(spectrograms_are_those_of_the_formula)
{
    static const struct {
        int32_t band, frame;
        double decibels;
    } known[] = {
        {0, 0, 9.409989523},  {0, 6, 4.824647757},  {1, 3, 16.854145731},   {3, 12, 7.005650074},
        {5, 7, -3.394018355}, {7, 0, -9.607537084}, {7, 12, -17.881205774},
    };
    NEED_LIBRARY();
    const char *path = data_path("tone.wav");
    float decibels[8 * 13];
    write_tone(path, RATE, COUNT, 1);
    CHECK_INT(sgm__log_mel_frames(&form), 13);
    CHECK_OK(read_sound(&form, &(const sgm_file){.name = path}, decibels));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        CHECK_NEAR((double)decibels[known[i].band * 13 + known[i].frame], known[i].decibels, 2e-5);
}

TEST(other_rates_are_those_of_the_formula)
{
    static const struct {
        int32_t rate, count, at;
        double sample;
    } known[] = {
        {12000, 600, 0, 0.001165361},    {12000, 600, 1, 0.236708689},    {12000, 600, 7, 0.253370448},
        {12000, 600, 100, -0.188017869}, {12000, 600, 599, -0.174560598}, {5000, 250, 0, 0.050255085},
        {5000, 250, 1, 0.501154529},     {5000, 250, 7, -0.579856423},    {5000, 250, 100, -0.701010766},
        {5000, 250, 249, -0.203119021},
    };
    NEED_LIBRARY();
    const char *path = data_path("tone.wav");
    write_tone(path, RATE, COUNT, 1);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        float samples[700];
        const sgm__sound_form waveform = {.rate = known[i].rate, .samples = 700, .deviation = 1};
        CHECK_OK(read_sound(&waveform, &(const sgm_file){.name = path}, samples));
        CHECK_NEAR((double)samples[known[i].at], known[i].sample, 1e-6);
        CHECK_NEAR((double)samples[known[i].count], 0, 0); /* silence behind */
        /* A shorter input is the beginning of the same samples. */
        const sgm__sound_form cut = {.rate = known[i].rate, .samples = 150, .deviation = 1};
        float beginning[150];
        CHECK_OK(read_sound(&cut, &(const sgm_file){.name = path}, beginning));
        CHECK(memcmp(beginning, samples, sizeof beginning) == 0);
    }
}

/* Samples are hundredths; the second channel has half of the first. */
TEST(channels_are_mixed)
{
    NEED_LIBRARY();
    const char *path = data_path("stereo.wav");
    double samples[40];
    float read[20];
    for (int i = 0; i < 40; i++)
        samples[i] = 0.01 * (i / 2) / (1 + i % 2);
    CHECK_INT(sound_write(path, RATE, 2, samples, 20), 0);
    const sgm__sound_form waveform = {.rate = RATE, .samples = 20, .deviation = 1};
    CHECK_OK(read_sound(&waveform, &(const sgm_file){.name = path}, read));
    for (int i = 0; i < 20; i++)
        CHECK_NEAR((double)read[i], 0.0075 * i, 5e-5);
}

/* --- pipelines --- */

/* Four sounds of two classes: each has a loudness of its own. */
static sgm_files *four(void)
{
    static const char *const classes[] = {"a", "b"}, *const names[] = {"0.wav", "0.WAV", "1.wav", "1.wav"};
    for (int k = 0; k < 4; k++)
        write_tone(path_of("tones", classes[k % 2], names[k]), RATE, COUNT - 50 * k, 0.25 * (k + 1));
    sgm_files *files = sgm_files_open(data_path("tones"), "sounds");
    CHECK(files != NULL);
    CHECK_INT(sgm_files_count(files), 4);
    return files;
}

/* Mean and deviation over the examples of a block. */
static void measure(const sgm_block *block, double *mean, double *deviation)
{
    sgm_tensor *inputs = sgm_block_field(block, "inputs");
    const float *numbers = sgm_tensor_const_data(inputs);
    int64_t count = sgm_shape_elements(sgm_tensor_shape(inputs));
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)numbers[i];
    *mean = sum / (double)count;
    for (int64_t i = 0; i < count; i++)
        squares += pow((double)numbers[i] - *mean, 2);
    *deviation = sqrt(squares / (double)count);
}

/* The inputs of what was learnt have mean 0 and deviation 1, those of the rest others; both kinds of inputs.
 */
TEST(a_part_is_learnt)
{
    NEED_LIBRARY();
    sgm_files *files = four();
    const double keys[] = {0, 1, 2, 3};
    sgm_split *split = sgm_split_create(4, keys, .kind = SGM_SPLIT_TIME, .shares = {0.75, 0.25});
    for (int features = 0; features < 2; features++) {
        sgm_pipeline *pipeline =
            sgm_sound_pipeline(files, .features = (sgm_sound_features)features, .split = split);
        CHECK(pipeline != NULL);
        for (int part = 0; part < 2; part++) {
            double mean, deviation;
            sgm_block *block;
            sgm_extractor *extractor =
                sgm_files_extractor(pipeline, data_path("tones"), .split = split, .part = part);
            CHECK_OK(sgm_extractor_extract(extractor, 9, &block));
            CHECK_INT(block->count, part == 0 ? 3 : 1);
            measure(block, &mean, &deviation);
            if (part == 0) {
                CHECK_NEAR(mean, 0, 1e-5);
                CHECK_NEAR(deviation, 1, 1e-5);
            } else {
                CHECK(fabs(deviation - 1) > 0.05);
            }
            CHECK_NEAR(sgm_tensor_get(sgm_block_field(block, "targets"), (int64_t[]){0, part}), 1, 0);
            sgm_block_free(block);
            sgm_extractor_free(extractor);
        }
        sgm_pipeline_free(pipeline);
    }
    sgm_split_free(split);
    sgm_files_free(files);
}

TEST(shapes_and_defaults)
{
    NEED_LIBRARY();
    sgm_files *files = four();
    sgm_shape shape;
    sgm_pipeline *pipeline = sgm_sound_pipeline(files, .mels = 20);
    CHECK_STR(sgm_pipeline_kind(pipeline), "sounds");
    CHECK_OK(sgm_pipeline_shape(pipeline, "inputs", &shape));
    CHECK(sgm_shape_equal(&shape, &(const sgm_shape){.rank = 3, .dims = {1, 20, 1 + COUNT / 80}}));
    sgm_pipeline_free(pipeline);
    pipeline = sgm_sound_pipeline(files, .rate = 4000, .seconds = 0.02, .features = SGM_SOUND_WAVEFORM);
    CHECK_OK(sgm_pipeline_shape(pipeline, "inputs", &shape));
    CHECK(sgm_shape_equal(&shape, &(const sgm_shape){.rank = 2, .dims = {1, 80}}));
    char *network = sgm_pipeline_network(pipeline);
    CHECK_STR(network,
              "input(1, 80) + convolution_1d(16, 9, relu, same) + max_pooling_1d(4) + dense(64, relu) "
              "+ dense(2) + softmax_cross_entropy");
    sgm_network *parsed = sgm_network_parse(network);
    CHECK(parsed != NULL);
    sgm_network_free(parsed);
    sgm_string_free(network);
    sgm_pipeline_free(pipeline);
    sgm_files_free(files);
}

/* --- files --- */

/* A file and its bytes in memory are one sound. Cut anywhere, it is an error that names it. */
TEST(sounds_in_memory_and_damaged)
{
    NEED_LIBRARY();
    const char *path = data_path("short.wav");
    float from_file[8 * 13], from_memory[8 * 13];
    char *bytes;
    size_t length;
    write_tone(path, RATE, 60, 1);
    CHECK_OK(sgm__file_read(path, 1 << 20, &bytes, &length));
    sgm_file file = {.name = "memory.wav", .bytes = bytes, .length = length};
    CHECK_OK(read_sound(&form, &(const sgm_file){.name = path}, from_file));
    CHECK_OK(read_sound(&form, &file, from_memory));
    CHECK(memcmp(from_file, from_memory, sizeof from_file) == 0);
    /* The last byte is one that writers forget where a chunk is odd. */
    for (file.length = 0; file.length < length - 1; file.length++) {
        CHECK(read_sound(&form, &file, from_memory) != SGM_OK);
        CHECK(strstr(sgm_last_error(), "memory.wav: ") != NULL);
    }
    file.length = length;
    sound_put((unsigned char *)bytes + 4, 36, 4);
    sound_put((unsigned char *)bytes + 40, 0, 4);
    CHECK_ERROR(read_sound(&form, &file, from_memory), "memory.wav: the file has no sample");
    memcpy(bytes + 8, "AVI ", 4);
    CHECK_ERROR(read_sound(&form, &file, from_memory), "memory.wav: a WAV or FLAC file was expected");
    sgm__free(bytes);
    CHECK_ERROR(read_sound(&form, &(const sgm_file){.name = "/no/where.wav"}, from_file),
                "/no/where.wav: the file cannot be read: No such file");
}

/* 60 samples, the k-th 100 k / 32768, as libFLAC 1.4.2 writes them. Cut anywhere it is an error. */
TEST(flac)
{
    static const unsigned char bytes[] = {
        0x66, 0x4c, 0x61, 0x43, 0x00, 0x00, 0x00, 0x22, 0x10, 0x00, 0x10, 0x00, 0x00, 0x00, 0x17, 0x00,
        0x00, 0x17, 0x01, 0xf4, 0x00, 0xf0, 0x00, 0x00, 0x00, 0x3c, 0x2e, 0xcd, 0xa5, 0x80, 0x96, 0xd3,
        0xe9, 0xab, 0x3d, 0xc8, 0x2e, 0x41, 0x62, 0x65, 0x78, 0x41, 0x84, 0x00, 0x00, 0x28, 0x20, 0x00,
        0x00, 0x00, 0x72, 0x65, 0x66, 0x65, 0x72, 0x65, 0x6e, 0x63, 0x65, 0x20, 0x6c, 0x69, 0x62, 0x46,
        0x4c, 0x41, 0x43, 0x20, 0x31, 0x2e, 0x34, 0x2e, 0x32, 0x20, 0x32, 0x30, 0x32, 0x32, 0x31, 0x30,
        0x32, 0x32, 0x00, 0x00, 0x00, 0x00, 0xff, 0xf8, 0x64, 0x08, 0x00, 0x3b, 0x42, 0x15, 0x40, 0x00,
        0x00, 0x64, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xc0, 0x78, 0xab};
    const sgm__sound_form waveform = {.rate = RATE, .samples = 60, .deviation = 1};
    float samples[60];
    NEED_LIBRARY();
    sgm_file file = {.name = "memory.flac", .bytes = bytes, .length = sizeof bytes};
    CHECK_OK(read_sound(&waveform, &file, samples));
    for (int k = 0; k < 60; k++)
        CHECK_NEAR((double)samples[k], 100 * k / 32768.0, 1e-7);
    for (file.length = 0; file.length < sizeof bytes; file.length++)
        CHECK_ERROR(read_sound(&waveform, &file, samples), "memory.flac: ");
}

/* Any byte of the header may be any: nothing crashes, and numbers are finite. */
TEST(any_header)
{
    NEED_LIBRARY();
    const char *path = data_path("header.wav");
    float numbers[8 * 13];
    char *bytes;
    size_t length;
    write_tone(path, RATE, 60, 1);
    CHECK_OK(sgm__file_read(path, 1 << 20, &bytes, &length));
    for (size_t at = 0; at < SOUND_HEADER; at++)
        for (int other = 1; other < 256; other += 9) {
            bytes[at] = (char)(bytes[at] ^ other);
            const sgm_file file = {.name = "memory.wav", .bytes = bytes, .length = length};
            if (read_sound(&form, &file, numbers) == SGM_OK)
                for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
                    CHECK(isfinite(numbers[i]));
            bytes[at] = (char)(bytes[at] ^ other);
        }
    sgm__free(bytes);
}

/* --- what is kept --- */

static const char kept[] = "{\"version\":1,\"kind\":\"sounds\",\"rate\":8000,\"samples\":4000,\"mels\":40,"
                           "\"window\":200,\"hop\":80,\"mean\":-40.5,\"deviation\":20.25,"
                           "\"classes\":[\"high\",\"low\"]}";

TEST(what_is_kept_reads_back)
{
    sgm_pipeline *pipeline = sgm_pipeline_parse(kept);
    char *json = sgm_pipeline_json(pipeline), *network = sgm_pipeline_network(pipeline);
    CHECK_STR(json, kept);
    CHECK_STR(network,
              "input(1, 40, 51) + convolution(16, 3, relu, same) + max_pooling(2) + convolution(32, 3, "
              "relu, same) + max_pooling(2) + convolution(64, 3, relu, same) + max_pooling(2) + "
              "dense(64, relu) + dense(2) + softmax_cross_entropy");
    sgm_string_free(json);
    sgm_string_free(network);
    sgm_pipeline_free(pipeline);
}

TEST(what_is_kept_is_checked)
{
    static const struct {
        const char *part, *other, *message;
    } cases[] = {
        {"\"rate\":8000", "\"rate\":0", "'rate': a whole number above 0"},
        {"\"rate\":8000", "\"rate\":9999999", "of 1 to 768000 in a second"},
        {"\"samples\":4000", "\"samples\":2000000000", "sounds of 1 to 134217728 samples"},
        {"\"mels\":40", "\"mels\":2000", "1 to 1024 mels"},
        {"\"mels\":40", "\"mels\":200",
         "200 mels are too many for a window of 200 samples at 8000 Hz: band "},
        {"\"mels\":40,", "", "'mels': a whole number beside window and hop"},
        {"\"window\":200", "\"window\":9000", "a window of 2 samples to one second"},
        {"\"hop\":80", "\"hop\":201", "a hop of 1 sample to the window"},
        {"20.25", "0", "a deviation above 0"},
        {"-40.5", "\"x\"", "'mean': a number"},
        {"\"hop\"", "\"width\":3,\"hop\"", "'width' is no member of it"},
        {"\"classes\"", "\"characters\"", "'labels': a whole number above 0"},
        {"\"classes\"", "\"labels\":2,\"classes\"", "'labels' is no member of it"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *at = strstr(kept, cases[i].part);
        CHECK(at != NULL);
        char *text =
            sgm__format("%.*s%s%s", (int)(at - kept), kept, cases[i].other, at + strlen(cases[i].part));
        CHECK_ERROR(sgm_pipeline_parse(text), cases[i].message);
        sgm__free(text);
    }
}

/* --- transcripts --- */

/* Three sounds of 400, 240 and 100 samples, with texts; the table has one more column. */
static const char *said(void)
{
    static const char table[] = "speaker,file,text\n1,0.wav,abä\n2,1.wav,b\n1,2.wav,bb a\n";
    static const int counts[] = {COUNT, 240, 100};
    static char path[512];
    char name[16];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%d.wav", i);
        write_tone(path_of("said", "x", name), RATE, counts[i], 1);
    }
    snprintf(path, sizeof path, "%s", path_of("said", "x", "words.csv"));
    FILE *file = fopen(path, "w");
    fputs(table, file);
    fclose(file);
    return path;
}

/* Frames come first; how many count is 1 + samples / hop; labels are the places of characters from 1 on. */
TEST(transcripts_become_labels)
{
    static const double labels[3][4] = {{2, 3, 4, 0}, {3, 0, 0, 0}, {3, 3, 1, 2}};
    static const double lengths[] = {1 + COUNT / 32, 1 + 240 / 32, 1 + 100 / 32};
    NEED_LIBRARY();
    const char *path = said();
    sgm_files *files = sgm_files_open(path, "sounds");
    CHECK(files != NULL);
    CHECK_INT(sgm_files_count(files), 3);
    CHECK_STR(sgm_files_transcript(files, 2), "bb a");
    CHECK(sgm_files_transcript(files, 3) == NULL);
    CHECK(sgm_files_classes(files)[0] == NULL);
    CHECK_INT(sgm_files_class(files, 0), -1);
    CHECK_ERROR(sgm_sound_pipeline(files, .features = SGM_SOUND_WAVEFORM), "a log_mel, not a waveform");
    sgm_pipeline *pipeline = sgm_sound_pipeline(files, .mels = 8, .window = 50, .hop = 32);
    CHECK(pipeline != NULL);
    CHECK(sgm_pipeline_classes(pipeline) == NULL);
    const char *const *characters = sgm_pipeline_characters(pipeline);
    CHECK_STR(characters[0], " ");
    CHECK_STR(characters[3], "ä");
    CHECK(characters[4] == NULL);
    sgm_extractor *extractor = sgm_files_extractor(pipeline, path);
    sgm_block *block;
    CHECK_OK(sgm_extractor_extract(extractor, 9, &block));
    CHECK_INT(block->count, 3);
    sgm_tensor *inputs = sgm_block_field(block, "inputs");
    CHECK(sgm_shape_equal(sgm_tensor_shape(inputs), &(const sgm_shape){.rank = 3, .dims = {3, 13, 8}}));
    for (int64_t i = 0; i < 3; i++) {
        CHECK_NEAR(sgm_tensor_get(sgm_block_field(block, "lengths"), &i), lengths[i], 0);
        for (int64_t k = 0; k < 4; k++)
            CHECK_NEAR(sgm_tensor_get(sgm_block_field(block, "targets"), (int64_t[]){i, k}), labels[i][k], 0);
    }
    /* Mean and deviation are those of all numbers, so differences of two numbers tell the deviation. */
    double a = sgm_tensor_get(inputs, (int64_t[]){0, 3, 1}),
           b = sgm_tensor_get(inputs, (int64_t[]){0, 12, 3}),
           c = sgm_tensor_get(inputs, (int64_t[]){0, 7, 5});
    CHECK_NEAR((a - b) / (a - c), (16.854145731 - 7.005650074) / (16.854145731 + 3.394018355), 1e-5);
    sgm_block_free(block);
    sgm_extractor_free(extractor);
    char *json = sgm_pipeline_json(pipeline), *network = sgm_pipeline_network(pipeline);
    CHECK(strstr(json, "\"characters\":[\" \",\"a\",\"b\",\"ä\"],\"labels\":4}") != NULL);
    CHECK_STR(network,
              "input(13, 8, lengths=lengths) + gru(64, bidirectional) + dense(5, time_distributed) + "
              "ctc(4)");
    sgm_pipeline *again = sgm_pipeline_parse(json);
    char *json_again = again != NULL ? sgm_pipeline_json(again) : NULL;
    CHECK_STR(json_again, json);
    sgm_string_free(json);
    sgm_string_free(json_again);
    sgm_string_free(network);
    sgm_pipeline_free(again);
    sgm_pipeline_free(pipeline);
    sgm_files_free(files);
}

static void write_table(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
}

TEST(mistakes_of_transcripts)
{
    NEED_LIBRARY();
    static const struct {
        const char *table, *message;
    } cases[] = {
        {"", "the column 'file' is missing: a table of sounds has the columns 'file' and 'text'"},
        {"file,words\n0.wav,a\n", "the column 'text' is missing"},
        {"file,text\n", "the table has no row"},
        {"file,text\n0.wav,a\n,b\n", "line 3: the name of a file was expected"},
        {"file,text\n0.wav,\n", "line 2: the text of a sound was expected, in UTF-8; the cell is empty"},
        {"file,text\n0.wav,a\xff\n", "line 2: the text of a sound was expected, in UTF-8"},
        {"file,text\n0.wav\n", "line 2"},
    };
    sgm_files *files = sgm_files_open(said(), "sounds");
    sgm_pipeline *pipeline = sgm_sound_pipeline(files, .mels = 8);
    const char *path = path_of("said", "x", "wrong.csv");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_table(path, cases[i].table);
        CHECK_ERROR(sgm_files_open(path, "sounds"), cases[i].message);
        CHECK(strstr(sgm_last_error(), "wrong.csv: ") != NULL);
    }
    CHECK_ERROR(sgm_files_open(path, "pictures"), "a folder with a folder of pictures for each class");
    sgm_block *block;
    write_table(path, "file,text\n0.wav,abc\n");
    sgm_extractor *extractor = sgm_files_extractor(pipeline, path);
    CHECK_ERROR(sgm_extractor_extract(extractor, 9, &block),
                "0.wav: its text has the character 'c', which no");
    sgm_extractor_free(extractor);
    write_table(path, "file,text\n0.wav,abaab\n");
    extractor = sgm_files_extractor(pipeline, path);
    CHECK_ERROR(sgm_extractor_extract(extractor, 9, &block),
                "more characters than the longest when the network "
                "was trained, 4");
    sgm_extractor_free(extractor);
    CHECK_ERROR(sgm_files_extractor(pipeline, data_path("tones")),
                "was trained on a table with the columns 'file' and 'text'");
    sgm_pipeline_free(pipeline);
    sgm_files_free(files);
}

TEST(no_memory_for_transcripts)
{
    NEED_LIBRARY();
    const char *path = said();
    bool done = false;
    for (long n = 1; !done; n++) {
        allocator_start(n);
        sgm_files *files = sgm_files_open(path, "sounds");
        sgm_pipeline *pipeline = files != NULL ? sgm_sound_pipeline(files, .mels = 8) : NULL;
        sgm_extractor *extractor = pipeline != NULL ? sgm_files_extractor(pipeline, path) : NULL;
        sgm_block *block = NULL;
        if (extractor != NULL && sgm_extractor_extract(extractor, 9, &block) == SGM_OK)
            done = block != NULL;
        else
            CHECK_INT(sgm_last_status(), SGM_ERROR_MEMORY);
        sgm_block_free(block);
        sgm_extractor_free(extractor);
        sgm_pipeline_free(pipeline);
        sgm_files_free(files);
        long live = atomic_load(&allocator_live);
        allocator_stop();
        CHECK_INT(live, 0);
        CHECK(n < 5000);
    }
}

TEST(mistakes)
{
    NEED_LIBRARY();
    sgm_files *files = four();
    CHECK_ERROR(sgm_sound_pipeline(NULL), "a list of files");
    CHECK_ERROR(sgm_sound_pipeline(files, .rate = -1), "rate, seconds (a day at most), mels, window and hop");
    CHECK_ERROR(sgm_sound_pipeline(files, .seconds = NAN), "rate, seconds (a day at most)");
    CHECK_ERROR(sgm_sound_pipeline(files, .features = SGM_SOUND_WAVEFORM, .mels = 3), "not for a waveform");
    CHECK_ERROR(sgm_sound_pipeline(files, .features = (sgm_sound_features)2), "features from 0 to 1");
    CHECK_ERROR(sgm_sound_pipeline(files, .hop = 3000), "a hop of 1 sample to the window");
    sgm_files_free(files);
    write_tone(path_of("rates", "a", "0.wav"), RATE, COUNT, 1);
    write_tone(path_of("rates", "b", "0.wav"), 11025, COUNT, 1);
    files = sgm_files_open(data_path("rates"), "sounds");
    CHECK_ERROR(sgm_sound_pipeline(files), "b/0.wav has 11025 samples a second, but ");
    CHECK_ERROR(sgm_sound_pipeline(files),
                "a/0.wav has 8000; a network takes sounds of one rate: say to which all are "
                "brought, such as rate: 8000");
    sgm_files_free(files);
    write_tone(path_of("long", "a", "0.wav"), RATE, COUNT, 1);
    write_tone(path_of("long", "b", "0.wav"), 5, COUNT, 1);
    files = sgm_files_open(data_path("long"), "sounds");
    CHECK_ERROR(sgm_sound_pipeline(files, .rate = 8000), "b/0.wav lasts 80 s, and shorter sounds");
    sgm_files_free(files);
}

/* Without memory at any place of Sigma's: an error, and nothing is lost. */
TEST(no_memory)
{
    NEED_LIBRARY();
    sgm_files_free(four());
    bool done = false;
    for (long n = 1; !done; n++) {
        allocator_start(n);
        sgm_files *files = sgm_files_open(data_path("tones"), "sounds");
        sgm_pipeline *pipeline = files != NULL ? sgm_sound_pipeline(files, .rate = 6000, .mels = 8) : NULL;
        sgm_extractor *extractor =
            pipeline != NULL ? sgm_files_extractor(pipeline, data_path("tones")) : NULL;
        sgm_block *block = NULL;
        if (extractor != NULL && sgm_extractor_extract(extractor, 9, &block) == SGM_OK)
            done = block != NULL;
        else
            CHECK_INT(sgm_last_status(), SGM_ERROR_MEMORY);
        sgm_block_free(block);
        sgm_extractor_free(extractor);
        sgm_pipeline_free(pipeline);
        sgm_files_free(files);
        long live = atomic_load(&allocator_live);
        allocator_stop();
        CHECK_INT(live, 0);
        CHECK(n < 5000);
    }
}
