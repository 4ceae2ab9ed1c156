/* How a request wants a text to be continued. */
#include "openai/asking.h"

#include <sys/random.h>

/* As `sigma generate` has them. */
#define HIGHEST_TEMPERATURE 1e6
#define HIGHEST_PENALTY 1e6

sgm_status random_number(uint64_t *number)
{
    return getrandom(number, sizeof *number, 0) == sizeof *number
               ? SGM_OK
               : sgm_fail(SGM_ERROR_STATE, "the system gives no random numbers");
}

/* "stop": a text or a list of them. */
static sgm_status read_stops(asking *ask, sampling_options *s)
{
    const char **texts;
    const json_t *stop = ask_value(ask, "stop");
    if (stop == NULL || (json_is_array(stop) && json_array_size(stop) == 0))
        return SGM_OK;
    SGM_TRY(ask_texts(ask, "stop", MOST_STOPS, &texts, &s->stop_count));
    memcpy(s->stops, texts, s->stop_count * sizeof *texts);
    sgm__free(texts);
    return SGM_OK;
}

/* Both names are of one number; of two, the smaller counts. */
static sgm_status read_count(asking *ask, sampling_options *s)
{
    int64_t completion = 0;
    SGM_TRY(ask_integer(ask, "max_tokens", 1, INT64_MAX, &s->count));
    SGM_TRY(ask_integer(ask, "max_completion_tokens", 1, INT64_MAX, &completion));
    if (s->count == 0 || (completion > 0 && completion < s->count))
        s->count = completion;
    return SGM_OK;
}

static sgm_status read_stream(asking *ask, sampling_options *s)
{
    const json_t *options = ask_value(ask, "stream_options");
    SGM_TRY(ask_flag(ask, "stream", &s->streams));
    if (options == NULL)
        return SGM_OK;
    const json_t *usage = json_object_get(options, "include_usage");
    if (!s->streams || !json_is_object(options) || (usage != NULL && !json_is_boolean(usage)))
        return ask_refuse(ask, "stream_options", "expected {\"include_usage\": true}, with \"stream\": true");
    s->tells_usage = json_is_true(usage);
    return SGM_OK;
}

/* In the API the temperature 0, and the share 0, mean the likeliest token; -1 tokens all of them. */
sgm_status sampling_read(asking *ask, sampling_options *s)
{
    sgm_generation_options *how = &s->how;
    double temperature = 1, top_p = 1, penalty = 1;
    int64_t seed = 0, top_k = 0;
    *s = (sampling_options){.how.struct_size = sizeof s->how};
    SGM_TRY(read_count(ask, s));
    SGM_TRY(read_stops(ask, s));
    SGM_TRY(read_stream(ask, s));
    SGM_TRY(ask_number(ask, "temperature", 0, HIGHEST_TEMPERATURE, &temperature));
    SGM_TRY(ask_number(ask, "top_p", 0, 1, &top_p));
    SGM_TRY(ask_integer(ask, "top_k", -1, INT64_MAX, &top_k));
    SGM_TRY(ask_number(ask, "min_p", 0, 1, &how->min_p));
    SGM_TRY(ask_number(ask, "repetition_penalty", 1e-6, HIGHEST_PENALTY, &penalty));
    s->is_seeded = ask_value(ask, "seed") != NULL;
    if (s->is_seeded) {
        SGM_TRY(ask_integer(ask, "seed", INT64_MIN, INT64_MAX, &seed));
        how->seed = (uint64_t)seed;
    }
    how->greedy = temperature == 0 || top_p == 0;
    how->temperature = temperature;
    how->top_p = top_p;
    how->top_k = top_k > 0 ? top_k : 0;
    how->repetition_penalty = penalty;
    return SGM_OK;
}
