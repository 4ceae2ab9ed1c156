/* Times tiles of bfloat16 beside those of float32. They take turns, so that whatever else runs meanwhile
 * slows both, and the fastest of some runs counts. */
#include "handlers/cpu/product/bfloat16_speed.h"
#include "base/base.h"
#include "handlers/cpu/pool.h"

#include <pthread.h>

#define NUMBERS 256 /* along k: so deep is a tile in the first cache */
#define TILES 16    /* at a time, some 30 microseconds */
#define RUNS 12

/* Largest tiles of one type; returns seconds for each multiplication. `bytes`: of each of the three parts of
 * the memory, operands and sums. */
static double time_tiles(const sgm__tiles *tiles, int64_t numbers, unsigned char *memory, size_t bytes)
{
    bool block = tiles->block != NULL;
    int32_t configured = 0;
    sgm__tile tile = {.depth = NUMBERS / numbers,
                      .a = memory,
                      .a_row = NUMBERS / numbers,
                      .a_step = tiles->rows,
                      .b = memory + bytes,
                      .b_stride = tiles->columns,
                      .c = memory + 2 * bytes,
                      .c_stride = tiles->columns,
                      .sums = (float *)(void *)(memory + 2 * bytes),
                      .sums_stride = tiles->columns,
                      .rows = tiles->rows,
                      .columns = tiles->columns,
                      .configured = &configured};
    sgm__tile_function function = block ? tiles->block : tiles->packed.wide[tiles->rows - 1];
    double since = sgm__now();
    for (int i = 0; i < TILES; i++)
        function(&tile);
    if (block)
        tiles->block_end();
    return (sgm__now() - since) / (TILES * NUMBERS * tiles->rows * tiles->columns);
}

static double measure(const sgm__tiles *halves, const sgm__tiles *singles)
{
    size_t bytes = (size_t)NUMBERS * SGM__BLOCK_COLUMNS * sizeof(float);
    unsigned char *memory = sgm__calloc(3, bytes);
    double least_half = 1, least_single = 1;
    for (int i = 0; memory != NULL && i < RUNS; i++) {
        double half = time_tiles(halves, 2, memory, bytes), single = time_tiles(singles, 1, memory, bytes);
        least_half = half < least_half ? half : least_half;
        least_single = single < least_single ? single : least_single;
    }
    sgm__free(memory);
    return memory != NULL && least_half > 0 ? least_single / least_half : 0;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

double sgm__bfloat16_speed(const sgm__tiles *halves, const sgm__tiles *singles)
{
    static double speeds[2]; /* of pairs and of blocks */
    double *speed = &speeds[halves->block != NULL];
    pthread_mutex_lock(&lock);
    if (*speed == 0)
        *speed = measure(halves, singles);
    double now = *speed;
    pthread_mutex_unlock(&lock);
    return now;
}
