/* Writes a folder of sounds for the tests of the command: tones of three pitches in noise, each of another
 * pitch within its band, loudness and beginning.
 *
 *     write_sounds FOLDER COUNT RATE SAMPLES     FOLDER/low/0.wav, ... of COUNT sounds for each class
 *
 * or words of tones, each letter a pitch of its own, and a table of them:
 *
 *     write_sounds FOLDER COUNT RATE             FOLDER/0.wav, ... and FOLDER/words.csv */
#include "../data/sound_files.h"

#include <stdlib.h>
#include <sys/stat.h>

#define MAXIMUM_SAMPLES 65536

static double uniform(void)
{
    return rand() / ((double)RAND_MAX + 1);
}

static void write_one(const char *path, double pitch, int rate, int count)
{
    static double samples[MAXIMUM_SAMPLES];
    double loudness = 0.2 + 0.6 * uniform(), phase = uniform(), begin = 0.3 * uniform() * count;
    pitch *= 0.95 + 0.1 * uniform();
    for (int i = 0; i < count; i++) {
        double tone = i >= begin ? loudness * sin(6.283185307179586 * (pitch * i / rate + phase)) : 0;
        samples[i] = tone + 0.1 * (uniform() - 0.5);
    }
    sound_write(path, rate, 1, samples, count);
}

/* Appends a tone, or with pitch 0 silence, of so many milliseconds at least and at most. */
static int append(double *samples, int at, int rate, double pitch, int least, int most)
{
    int count = (int)((least + (most - least) * uniform()) * rate / 1000);
    for (int i = 0; i < count; i++)
        samples[at + i] = 0.6 * sin(6.283185307179586 * pitch * i / rate) + 0.05 * (uniform() - 0.5);
    return at + count;
}

static void write_word(const char *path, const char *word, int rate)
{
    static double samples[MAXIMUM_SAMPLES];
    int count = append(samples, 0, rate, 0, 10, 60);
    for (; *word != '\0'; word++) {
        count = append(samples, count, rate, 300 * pow(1.6, *word - 'a'), 50, 90);
        count = append(samples, count, rate, 0, 30, 60);
    }
    sound_write(path, rate, 1, samples, count);
}

static int write_words(const char *folder, int count, int rate)
{
    char path[512];
    snprintf(path, sizeof path, "%s/words.csv", folder);
    FILE *table = fopen(path, "w");
    if (table == NULL)
        return 1;
    fprintf(table, "file,text\n");
    for (int i = 0; i < count; i++) {
        char word[5] = {0};
        int letters = 1 + (int)(4 * uniform());
        for (int k = 0; k < letters; k++)
            word[k] = (char)('a' + (int)(4 * uniform()));
        fprintf(table, "%d.wav,%s\n", i, word);
        snprintf(path, sizeof path, "%s/%d.wav", folder, i);
        write_word(path, word, rate);
    }
    return fclose(table);
}

static void write_classes(const char *folder, int count, int rate, int samples)
{
    static const char *const classes[] = {"high", "low", "middle"};
    static const double pitches[] = {1760, 440, 880};
    char path[512];
    for (int class = 0; class < 3; class ++) {
        snprintf(path, sizeof path, "%s/%s", folder, classes[class]);
        mkdir(path, 0755);
        for (int i = 0; i < count; i++) {
            snprintf(path, sizeof path, "%s/%s/%d.wav", folder, classes[class], i);
            write_one(path, pitches[class], rate, samples);
        }
    }
}

int main(int count, char **arguments)
{
    if (count < 4 || count > 5 || (count == 5 && atoi(arguments[4]) > MAXIMUM_SAMPLES))
        return 2;
    srand(7);
    mkdir(arguments[1], 0755);
    if (count == 4)
        return write_words(arguments[1], atoi(arguments[2]), atoi(arguments[3]));
    write_classes(arguments[1], atoi(arguments[2]), atoi(arguments[3]), atoi(arguments[4]));
    return 0;
}
