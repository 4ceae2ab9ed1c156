/* The factors that stretch rotary positions as those of Llama 3.1: high frequencies stay, low ones are
 * divided by a factor, and a band between goes from one to the other. config.json says by which numbers; a
 * file of GGUF has the factors themselves. */
#include "gguf/names.h"

#include <math.h>

/* Steps that models were first trained for: powers of 2. */
#define FEWEST_STEPS 16
#define MOST_STEPS (1 << 20)
#define USUAL_STEPS 8192

/* The steps in which pair `index` of `count` turns once. */
static double length_of(const sgm__gguf_bands *bands, size_t index, size_t count)
{
    return 2 * acos(-1) * pow(bands->base, (double)index / (double)count);
}

/* The factor of a pair. */
static double factor_of(const sgm__gguf_bands *bands, size_t index, size_t count)
{
    const double turns = (double)bands->steps / length_of(bands, index, count);
    const double share = (turns - bands->low) / (bands->high - bands->low);
    const double kept = share < 0 ? 0 : share > 1 ? 1 : share;
    return 1 / ((1 - kept) / bands->factor + kept);
}

void sgm__gguf_bands_factors(const sgm__gguf_bands *bands, float *factors, size_t count)
{
    for (size_t i = 0; i < count; i++)
        factors[i] = (float)factor_of(bands, i, count);
}

static bool give_factors(const sgm__gguf_bands *bands, const float *factors, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(fabs(factor_of(bands, i, count) - factors[i]) <= 1e-5 * factors[i]))
            return false;
    return true;
}

/* By bands of 1 and 4, which Llama 3.1 to 3.3 have, and powers of 2 as steps. */
static bool find_usual(sgm__gguf_bands *bands, const float *factors, size_t count)
{
    bands->low = 1;
    bands->high = 4;
    for (bands->steps = FEWEST_STEPS; bands->steps <= MOST_STEPS; bands->steps *= 2)
        if (give_factors(bands, factors, count))
            return true;
    return false;
}

/* Bands by the line through the shares of two pairs. Many bands and steps give the same line: the steps are
 * those of Llama 3.1. */
static bool find_by_line(sgm__gguf_bands *bands, const float *factors, size_t count, size_t from, size_t to)
{
    if (from == to || from >= count || to >= count)
        return false;
    double shares[2], turns[2];
    for (size_t i = 0; i < 2; i++) {
        const size_t index = i == 0 ? from : to;
        shares[i] = (1 / (double)factors[index] - 1 / bands->factor) / (1 - 1 / bands->factor);
        turns[i] = USUAL_STEPS / length_of(bands, index, count);
    }
    bands->steps = USUAL_STEPS;
    const double width = (turns[0] - turns[1]) / (shares[0] - shares[1]);
    bands->low = turns[0] - shares[0] * width;
    bands->high = bands->low + width;
    return bands->low > 0 && width > 0 && give_factors(bands, factors, count);
}

/* Bands that no pair turns often enough for, so that each has the whole factor. */
static bool find_above(sgm__gguf_bands *bands, const float *factors, size_t count)
{
    bands->steps = USUAL_STEPS;
    bands->low = 2 * USUAL_STEPS / length_of(bands, 0, count);
    bands->high = 2 * bands->low;
    return give_factors(bands, factors, count);
}

/* The line goes through the outermost pairs between the bands. If there is but one, through it and a
 * neighbour: the steeper line leaves all others outside. Where no pair has the whole factor, the largest one
 * that is there stands for it: 1 / factors of the others are on one line all the same. */
bool sgm__gguf_bands_find(sgm__gguf_bands *bands, const float *factors, size_t count)
{
    size_t first = 0, last = count - 1;
    bands->factor = 1;
    for (size_t i = 0; i < count; i++)
        bands->factor = factors[i] > bands->factor ? factors[i] : bands->factor;
    if (count == 0 || !isfinite(bands->factor))
        return false;
    while (first < count && factors[first] <= 1)
        first++;
    while (last > 0 && factors[last] >= bands->factor)
        last--;
    return find_usual(bands, factors, count) || find_by_line(bands, factors, count, first, last) ||
           find_by_line(bands, factors, count, first - 1, last) ||
           find_by_line(bands, factors, count, first, last + 1) || find_above(bands, factors, count);
}
