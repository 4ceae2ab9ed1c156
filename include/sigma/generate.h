/* Going on with a sequence: token after token from a trained network.
 *
 *     sgm_generator *generator = sgm_generator_create(trainer);
 *     sgm_generate(generator, prompt, prompt_count, tokens, 100, SGM_GENERATION(.seed = 1, .temperature =
 * 0.8)); sgm_generator_free(generator);
 *
 * The network reads a sequence of tokens, input(TIME) of numbers or input(TIME, TOKENS) of shares, and gives
 * a share for each token that may come next, at each step or behind the last one. It is run one step at a
 * time: what layers need of the steps before (keys and values of attention, what recurrent layers remember)
 * they keep. So a token costs one step, not TIME of them, and the shares are those of all steps at once. */
#ifndef SIGMA_GENERATE_H
#define SIGMA_GENERATE_H

#include <sigma/training.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sgm_generator sgm_generator;
/* With the parameters that the trainer has now, which are copied; its environment must outlive the generator.
 * A network that looks ahead (bidirectional, attention without `causal`, convolutions) is an error. */
SGM_API sgm_generator *sgm_generator_create(sgm_trainer *trainer);
SGM_API void sgm_generator_free(sgm_generator *generator);
/* How many tokens there are, and how many steps it looks back at most (0: any number of them). */
SGM_API int64_t sgm_generator_vocabulary(const sgm_generator *generator);
SGM_API int64_t sgm_generator_places(const sgm_generator *generator);
/* Forgets what was read. */
SGM_API sgm_status sgm_generator_reset(sgm_generator *generator);
/* Reads one more token. Then `shares` (vocabulary of them, until the next call; NULL: not wanted) has what
 * may follow. When it has read as many as there are places, it goes on with the newest half of them, read
 * again. */
SGM_API sgm_status sgm_generator_read(sgm_generator *generator, int64_t token, const double **shares);

typedef struct sgm_generation_options {
    size_t struct_size;
    uint64_t seed;
    double temperature; /* these as of sgm_sample_options */
    int64_t top_k;
    double top_p;
    bool greedy;
    bool (*told)(void *user, int64_t token); /* each token once it is drawn; false: that is enough */
    void *user;
} sgm_generation_options;
#define SGM_GENERATION(...) SGM_OPTIONS(sgm_generation_options, __VA_ARGS__)
/* Reads `begin_count` tokens (at least 1) after what was read before, then draws up to `count` that follow,
 * each of which is read in turn, into `tokens` (NULL: not wanted). The same seed gives the same tokens. */
SGM_API sgm_status sgm_generate(sgm_generator *generator, const int64_t *begin, size_t begin_count,
                                int64_t *tokens, size_t count, const sgm_generation_options *options);

#ifdef __cplusplus
}
#endif
#endif
