/* Decodes WAV and FLAC files with libsndfile, which is loaded when the first sound is read; see sound.h.
 *
 * What the library declares is declared here once more, as it has been since its version 1.0.18, so that
 * Sigma is built without its headers and runs without it. Files come from anywhere: what a header promises is
 * not believed, memory grows with what is really read, and a file that ends early is an error, never
 * silence. */
#include "base/plugin.h"
#include "data/kinds/sound.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sys/stat.h>

#define PACKAGE "libsndfile1"
#define LARGEST_RATE 768000
#define MAXIMUM_CHANNELS 64
#define LARGEST_SAMPLE 65536.0 /* some files have numbers of 16 bits as float */
#define CHUNK 4096             /* samples of all channels that are read at once */

/* --- the library --- */

typedef int64_t sf_count;

typedef struct sf_info {
    sf_count frames;
    int rate, channels, format, sections, seekable;
} sf_info;

typedef struct sf_virtual {
    sf_count (*length)(void *user);
    sf_count (*seek)(sf_count offset, int whence, void *user);
    sf_count (*read)(void *to, sf_count count, void *user);
    sf_count (*write)(const void *from, sf_count count, void *user);
    sf_count (*tell)(void *user);
} sf_virtual;

#define MODE_READ 0x10
#define FORMAT_KIND 0x0FFF0000

static struct {
    void *(*open)(const char *path, int mode, sf_info *info);
    void *(*open_virtual)(sf_virtual *io, int mode, sf_info *info, void *user);
    sf_count (*read)(void *file, float *to, sf_count frames);
    int (*close)(void *file);
    const char *(*mistake)(void *file);
    bool is_there;
} sndfile;

static void load(void)
{
    static const char *const names[] = {"libsndfile.so.1", "libsndfile.so"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && library == NULL; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    sndfile.is_there = library != NULL && sgm__find_function(library, "sf_open", &sndfile.open) &&
                       sgm__find_function(library, "sf_open_virtual", &sndfile.open_virtual) &&
                       sgm__find_function(library, "sf_readf_float", &sndfile.read) &&
                       sgm__find_function(library, "sf_close", &sndfile.close) &&
                       sgm__find_function(library, "sf_strerror", &sndfile.mistake);
}

static sgm_status need_library(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return sndfile.is_there ? SGM_OK
                            : sgm_fail(SGM_ERROR_UNSUPPORTED,
                                       "sounds are read by libsndfile, which is not there; install the "
                                       "package " PACKAGE);
}

/* --- a file in memory --- */

struct sgm__sound_file {
    const sgm_file *file;
    void *opened;
    sf_info info;
    sf_count at; /* in the bytes of a file in memory */
};

static sf_count memory_length(void *user)
{
    return (sf_count)((sgm__sound_file *)user)->file->length;
}

static sf_count memory_seek(sf_count offset, int whence, void *user)
{
    sgm__sound_file *sound = user;
    sf_count length = memory_length(user), base = whence == SEEK_CUR   ? sound->at
                                                  : whence == SEEK_END ? length
                                                                       : 0;
    if (offset < -base || offset > length - base)
        return -1;
    return sound->at = base + offset;
}

static sf_count memory_read(void *to, sf_count count, void *user)
{
    sgm__sound_file *sound = user;
    sf_count rest = memory_length(user) - sound->at;
    count = count < rest ? count : rest;
    if (count <= 0)
        return 0;
    memcpy(to, (const char *)sound->file->bytes + sound->at, (size_t)count);
    sound->at += count;
    return count;
}

static sf_count memory_write(const void *from, sf_count count, void *user)
{
    (void)from, (void)count, (void)user;
    return 0;
}

static sf_count memory_tell(void *user)
{
    return ((sgm__sound_file *)user)->at;
}

/* --- opening --- */

/* The first bytes of a file, and how long it is. */
static sgm_status look(const sgm_file *file, unsigned char head[12], uint64_t *length)
{
    *length = file->length;
    memset(head, 0, 12);
    if (file->bytes != NULL) {
        memcpy(head, file->bytes, file->length < 12 ? file->length : 12);
        return SGM_OK;
    }
    struct stat about;
    FILE *stream = fopen(file->name, "rb");
    if (stream == NULL || fstat(fileno(stream), &about) != 0) {
        sgm_status status = sgm_fail(errno == ENOENT ? SGM_ERROR_NOT_FOUND : SGM_ERROR_FILE,
                                     "%s: the file cannot be read: %s", file->name, sgm__errno_text(errno));
        if (stream != NULL)
            fclose(stream);
        return status;
    }
    *length = S_ISREG(about.st_mode) ? (uint64_t)about.st_size : 0;
    *length = fread(head, 1, 12, stream) == 12 ? *length : 0;
    fclose(stream);
    return SGM_OK;
}

/* A WAV file says how long it is, in bytes behind the first 8; writers that cannot know say 0 or more than
 * any file has. The last byte of padding is often forgotten. */
static sgm_status check_whole(const sgm_file *file, const unsigned char head[12], uint64_t length)
{
    uint64_t promised =
        (uint64_t)head[4] | (uint64_t)head[5] << 8 | (uint64_t)head[6] << 16 | (uint64_t)head[7] << 24;
    if (memcmp(head, "RIFF", 4) != 0 || promised == 0 || promised >= 0x7FFFFF00 || promised + 8 <= length + 1)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_FORMAT, "%s: the file is cut off: it has %llu bytes of %llu", file->name,
                    (unsigned long long)length, (unsigned long long)promised + 8);
}

static sgm_status check_format(const sgm_file *file)
{
    unsigned char head[12];
    uint64_t length;
    SGM_TRY(look(file, head, &length));
    bool is_wave =
        (memcmp(head, "RIFF", 4) == 0 || memcmp(head, "RF64", 4) == 0) && memcmp(head + 8, "WAVE", 4) == 0;
    if (length < 12 || (!is_wave && memcmp(head, "fLaC", 4) != 0))
        return sgm_fail(SGM_ERROR_FORMAT, "%s: a WAV or FLAC file was expected%s", file->name,
                        length == 0 ? ", no byte came" : "");
    return check_whole(file, head, length);
}

static sgm_status check_info(const sgm__sound_file *sound)
{
    const sf_info *info = &sound->info;
    if (info->rate < 1 || info->rate > LARGEST_RATE || info->channels < 1 ||
        info->channels > MAXIMUM_CHANNELS)
        return sgm_fail(SGM_ERROR_FORMAT,
                        "%s: 1 to %d channels of 1 to %d samples a second were expected, %d of %d came",
                        sound->file->name, MAXIMUM_CHANNELS, LARGEST_RATE, info->channels, info->rate);
    return info->frames > 0
               ? SGM_OK
               : sgm_fail(SGM_ERROR_FORMAT, "%s: the file has no sample; take it out", sound->file->name);
}

static sgm_status open_file(sgm__sound_file *sound)
{
    sf_virtual io = {memory_length, memory_seek, memory_read, memory_write, memory_tell};
    const sgm_file *file = sound->file;
    SGM_TRY(need_library());
    SGM_TRY(check_format(file));
    sound->opened = file->bytes != NULL ? sndfile.open_virtual(&io, MODE_READ, &sound->info, sound)
                                        : sndfile.open(file->name, MODE_READ, &sound->info);
    if (sound->opened == NULL)
        return sgm_fail(SGM_ERROR_FORMAT, "%s: cannot be decoded: %s", file->name, sndfile.mistake(NULL));
    return check_info(sound);
}

sgm__sound_file *sgm__sound_open(const sgm_file *file)
{
    sgm__sound_file *sound = sgm__calloc(1, sizeof *sound);
    if (sound == NULL)
        return NULL;
    sound->file = file;
    if (open_file(sound) == SGM_OK)
        return sound;
    sgm__sound_close(sound);
    return NULL;
}

void sgm__sound_close(sgm__sound_file *sound)
{
    if (sound != NULL && sound->opened != NULL)
        sndfile.close(sound->opened);
    sgm__free(sound);
}

int32_t sgm__sound_rate(const sgm__sound_file *sound)
{
    return sound->info.rate;
}

int64_t sgm__sound_count(const sgm__sound_file *sound)
{
    return sound->info.frames;
}

/* --- samples --- */

void sgm__wave_free(sgm__wave *wave)
{
    sgm__free(wave->samples);
    *wave = (sgm__wave){0};
}

/* Appends the means of the channels. */
static sgm_status append(const sgm__sound_file *sound, const float *chunk, int64_t count, sgm__wave *wave)
{
    int channels = sound->info.channels;
    for (int64_t i = 0; i < count; i++) {
        double sum = 0;
        for (int c = 0; c < channels; c++)
            sum += (double)chunk[i * channels + c];
        if (!(fabs(sum / channels) <= LARGEST_SAMPLE))
            return sgm_fail(SGM_ERROR_NUMERIC, "%s: sample %lld is %g; samples from -1 to 1 were expected",
                            sound->file->name, (long long)wave->count, sum / channels);
        wave->samples[wave->count++] = (float)(sum / channels);
    }
    return SGM_OK;
}

sgm_status sgm__sound_decode(sgm__sound_file *sound, int64_t most, sgm__wave *wave)
{
    float chunk[CHUNK];
    size_t capacity = 0;
    int64_t wanted = most < sound->info.frames ? most : sound->info.frames;
    *wave = (sgm__wave){.rate = sound->info.rate};
    sgm_status status = SGM_OK;
    while (wave->count < wanted && status == SGM_OK) {
        int64_t room = CHUNK / sound->info.channels, rest = wanted - wave->count;
        int64_t count = sndfile.read(sound->opened, chunk, rest < room ? rest : room);
        if (count <= 0)
            status = sgm_fail(SGM_ERROR_FORMAT, "%s: cannot be decoded: it ends after %lld of %lld samples",
                              sound->file->name, (long long)wave->count, (long long)sound->info.frames);
        else
            status =
                sgm__reserve(&wave->samples, &capacity, (size_t)(wave->count + count), sizeof *wave->samples);
        if (status == SGM_OK)
            status = append(sound, chunk, count, wave);
    }
    if (status != SGM_OK)
        sgm__wave_free(wave);
    return status;
}
