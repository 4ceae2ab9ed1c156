/* Times tiles of bfloat16 beside those of float32. They take turns, so that whatever else runs meanwhile
 * slows both, and the fastest of some runs counts. */
#include "handlers/cpu/product/bfloat16_speed.h"
#include "base/base.h"
#include "handlers/cpu/pool.h"

#include <pthread.h>

#define NUMBERS 256 /* along k: so deep is a tile in the first cache */
#define TILES 16    /* at a time, some 30 microseconds */
#define RUNS 12

/* The largest tile of one type: seconds of the fastest of some runs, kept in *fastest. */
static void time_tile(const sgm__tiles *tiles, int64_t numbers, unsigned char *memory, size_t bytes,
                      double *fastest)
{
    sgm__tile tile = {.depth = NUMBERS / numbers,
                      .a = memory,
                      .a_step = tiles->rows,
                      .b = memory + bytes,
                      .b_stride = tiles->columns,
                      .c = memory + 2 * bytes,
                      .c_stride = tiles->columns,
                      .sums = (float *)(void *)(memory + 2 * bytes),
                      .sums_stride = tiles->columns};
    double since = sgm__now();
    for (int i = 0; i < TILES; i++)
        tiles->packed.wide[tiles->rows - 1](&tile);
    double seconds = sgm__now() - since;
    *fastest = seconds < *fastest ? seconds : *fastest;
}

static double measure_tiles(const sgm__vector *vector)
{
    size_t bytes = (size_t)NUMBERS * (size_t)vector->f32.columns * sizeof(float);
    unsigned char *memory = sgm__calloc(3, bytes);
    double halves = 1, singles = 1;
    for (int i = 0; memory != NULL && i < RUNS; i++) {
        time_tile(&vector->pairs, 2, memory, bytes, &halves);
        time_tile(&vector->f32, 1, memory, bytes, &singles);
    }
    sgm__free(memory);
    return memory != NULL && halves > 0 ? singles / halves : 0;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

double sgm__bfloat16_speed(const sgm__vector *vector)
{
    static double speed;
    pthread_mutex_lock(&lock);
    if (speed == 0)
        speed = measure_tiles(vector);
    double now = speed;
    pthread_mutex_unlock(&lock);
    return now;
}
