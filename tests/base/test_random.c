#include "base/base.h"
#include "test.h"

static void check_philox(uint64_t seed, uint64_t stream, uint64_t counter, const uint32_t expected[4])
{
    uint32_t out[4];
    sgm__philox(seed, stream, counter, out);
    for (int i = 0; i < 4; i++)
        CHECK_INT(out[i], expected[i]);
}

/* The known answers that come with Random123, the authors' library. */
TEST(philox_gives_the_published_answers)
{
    check_philox(0, 0, 0, (const uint32_t[]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    check_philox(UINT64_MAX, UINT64_MAX, UINT64_MAX,
                 (const uint32_t[]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    /* counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0: lowest words first */
    check_philox(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88,
                 (const uint32_t[]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST(a_sequence_is_philox_block_by_block)
{
    sgm__random random = sgm__random_make(42, 7);
    for (uint64_t block = 0; block < 3; block++) {
        uint32_t expected[4];
        sgm__philox(42, 7, block, expected);
        for (int i = 0; i < 4; i++)
            CHECK_INT(sgm__random_uint32(&random), expected[i]);
    }
}

TEST(a_copied_state_continues_alike)
{
    sgm__random first = sgm__random_make(1, 2);
    for (int i = 0; i < 7; i++)
        sgm__random_uint32(&first);
    sgm__random second = first;
    for (int i = 0; i < 100; i++)
        CHECK_NEAR(sgm__random_normal(&first), sgm__random_normal(&second), 0);
}

TEST(a_damaged_state_reads_nothing_outside)
{
    sgm__random random = sgm__random_make(1, 2);
    random.left = 4000000000u;
    sgm__random_uint32(&random);
    CHECK_INT(random.left, 3);
}

TEST(bounded_numbers_are_even)
{
    sgm__random random = sgm__random_make(3, 0);
    int counts[6] = {0};
    for (int i = 0; i < 60000; i++)
        counts[sgm__random_below(&random, 6)]++;
    for (int i = 0; i < 6; i++)
        CHECK_NEAR(counts[i], 10000, 400); /* more than four standard deviations */
    for (int i = 0; i < 10; i++)
        CHECK_INT(sgm__random_below(&random, 1), 0);
    /* Just over half of all numbers: without rejection the lower half would come twice as often. */
    uint64_t bound = ((uint64_t)1 << 63) + 1, low = 0;
    for (int i = 0; i < 10000; i++) {
        uint64_t value = sgm__random_below(&random, bound);
        CHECK(value < bound);
        low += value < bound / 2;
    }
    CHECK_NEAR(low, 5000, 250);
}

TEST(uniform_numbers_have_the_right_moments)
{
    sgm__random random = sgm__random_make(4, 0);
    const int count = 100000;
    double sum = 0, squares = 0, minimum = 1, maximum = 0;
    for (int i = 0; i < count; i++) {
        double x = sgm__random_uniform(&random);
        sum += x;
        squares += x * x;
        minimum = x < minimum ? x : minimum;
        maximum = x > maximum ? x : maximum;
    }
    CHECK(minimum >= 0 && minimum < 1e-3 && maximum < 1 && maximum > 1 - 1e-3);
    CHECK_NEAR(sum / count, 0.5, 0.005);
    CHECK_NEAR(squares / count, 1.0 / 3, 0.005);
}

TEST(normal_numbers_have_the_right_moments)
{
    sgm__random random = sgm__random_make(5, 0);
    const int count = 200000;
    double sums[5] = {0};
    int beyond = 0;
    for (int i = 0; i < count; i++) {
        double x = sgm__random_normal(&random), power = 1;
        CHECK(isfinite(x));
        for (int k = 0; k < 5; k++, power *= x)
            sums[k] += power;
        beyond += fabs(x) > 1.959963985;
    }
    CHECK_NEAR(sums[1] / count, 0, 0.01);
    CHECK_NEAR(sums[2] / count, 1, 0.015);
    CHECK_NEAR(sums[3] / count, 0, 0.04);
    CHECK_NEAR(sums[4] / count, 3, 0.12);
    CHECK_NEAR((double)beyond / count, 0.05, 0.003);
}

TEST(hashes_tell_near_inputs_apart)
{
    unsigned char bytes[32] = {0};
    uint64_t hashes[33 + 256];
    size_t count = 0;
    for (size_t length = 0; length <= 32; length++)
        hashes[count++] = sgm__hash(bytes, length, 0);
    for (size_t bit = 0; bit < 256; bit++) {
        bytes[bit / 8] = (unsigned char)(1u << bit % 8);
        hashes[count++] = sgm__hash(bytes, 32, 0);
        bytes[bit / 8] = 0;
    }
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            CHECK(hashes[i] != hashes[k]);
    CHECK(sgm__hash("abc", 3, 1) != sgm__hash("abc", 3, 2));
    CHECK(sgm__hash_text("abc") == sgm__hash("abc", 3, 0));
}

TEST(one_bit_changes_half_of_the_hash)
{
    uint64_t key = 0x0123456789abcdef;
    int changed = 0;
    for (int bit = 0; bit < 64; bit++) {
        uint64_t other = key ^ (uint64_t)1 << bit;
        changed += __builtin_popcountll(sgm__hash(&key, 8, 0) ^ sgm__hash(&other, 8, 0));
    }
    CHECK_NEAR(changed / 64.0, 32, 2);
}
