/* The factors that stretch rotary positions as those of Llama 3.1: high frequencies stay, low ones are
 * divided by a factor, and a band between goes from one to the other. config.json says by which numbers; a
 * file of GGUF has the factors themselves. */
#include "gguf/names.h"

#include <math.h>

/* Steps that models were first trained for: powers of 2. */
#define FEWEST_STEPS 16
#define MOST_STEPS (1 << 20)

/* That of pair `index` of `count`. */
static double factor_of(const sgm__gguf_bands *bands, size_t index, size_t count)
{
    const double length = 2 * acos(-1) * pow(bands->base, (double)index / (double)count);
    const double share = ((double)bands->steps / length - bands->low) / (bands->high - bands->low);
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

bool sgm__gguf_bands_find(sgm__gguf_bands *bands, const float *factors, size_t count)
{
    bands->low = 1;
    bands->high = 4;
    bands->factor = 1;
    for (size_t i = 0; i < count; i++)
        bands->factor = factors[i] > bands->factor ? factors[i] : bands->factor;
    for (bands->steps = FEWEST_STEPS; bands->steps <= MOST_STEPS; bands->steps *= 2)
        if (give_factors(bands, factors, count))
            return true;
    return false;
}
