/* Writes a folder of sounds for the tests of the command: tones of three pitches in noise, each of another
 * pitch within its band, loudness and beginning.
 *
 *     write_sounds FOLDER COUNT RATE SAMPLES     FOLDER/low/0.wav, ... of COUNT sounds for each class */
#include "../data/sound_files.h"

#include <stdlib.h>
#include <sys/stat.h>

#define MOST_SAMPLES 65536

static double uniform(void)
{
    return rand() / ((double)RAND_MAX + 1);
}

static void write_one(const char *path, double pitch, int rate, int count)
{
    static double samples[MOST_SAMPLES];
    double loudness = 0.2 + 0.6 * uniform(), phase = uniform(), begin = 0.3 * uniform() * count;
    pitch *= 0.95 + 0.1 * uniform();
    for (int i = 0; i < count; i++) {
        double tone = i >= begin ? loudness * sin(6.283185307179586 * (pitch * i / rate + phase)) : 0;
        samples[i] = tone + 0.1 * (uniform() - 0.5);
    }
    sound_write(path, rate, 1, samples, count);
}

int main(int count, char **arguments)
{
    static const char *const classes[] = {"high", "low", "middle"};
    static const double pitches[] = {1760, 440, 880};
    char path[512];
    if (count != 5 || atoi(arguments[4]) > MOST_SAMPLES)
        return 2;
    srand(7);
    mkdir(arguments[1], 0755);
    for (int class = 0; class < 3; class ++) {
        snprintf(path, sizeof path, "%s/%s", arguments[1], classes[class]);
        mkdir(path, 0755);
        for (int i = 0; i < atoi(arguments[2]); i++) {
            snprintf(path, sizeof path, "%s/%s/%d.wav", arguments[1], classes[class], i);
            write_one(path, pitches[class], atoi(arguments[3]), atoi(arguments[4]));
        }
    }
    return 0;
}
