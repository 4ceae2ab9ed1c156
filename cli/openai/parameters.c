/* The parameters of OpenAI's API: which are read, which are passed over, and which are refused unless they
 * change nothing. */
#include "openai/asking.h"
#include "text/json_text.h"

#include <stdarg.h>
#include <stdio.h>

/* Those without `nothing` are read, or passed over since they change no answer. */
typedef struct parameter {
    const char *name;
    unsigned endpoints;  /* the requests that have it */
    const char *nothing; /* the value, beside null, that changes nothing; any other is refused */
} parameter;
#define TEXTS (ENDPOINT_CHAT | ENDPOINT_COMPLETION)
#define ALL (TEXTS | ENDPOINT_EMBEDDINGS)

static const parameter parameters[] = {
    /* Read. */
    {"model", ALL, NULL},
    {"messages", ENDPOINT_CHAT, NULL},
    {"prompt", ENDPOINT_COMPLETION, NULL},
    {"input", ENDPOINT_EMBEDDINGS, NULL},
    {"encoding_format", ENDPOINT_EMBEDDINGS, NULL},
    {"dimensions", ENDPOINT_EMBEDDINGS, NULL},
    {"stream", TEXTS, NULL},
    {"stream_options", TEXTS, NULL},
    {"max_tokens", TEXTS, NULL},
    {"max_completion_tokens", ENDPOINT_CHAT, NULL},
    {"temperature", TEXTS, NULL},
    {"top_p", TEXTS, NULL},
    {"top_k", TEXTS, NULL},
    {"min_p", TEXTS, NULL},
    {"repetition_penalty", TEXTS, NULL},
    {"seed", TEXTS, NULL},
    {"stop", TEXTS, NULL},
    /* Passed over. */
    {"user", ALL, NULL},
    {"metadata", ENDPOINT_CHAT, NULL},
    {"store", ENDPOINT_CHAT, NULL},
    {"service_tier", ENDPOINT_CHAT, NULL},
    {"safety_identifier", ENDPOINT_CHAT, NULL},
    {"prompt_cache_key", ENDPOINT_CHAT, NULL},
    {"prompt_cache_retention", ENDPOINT_CHAT, NULL},
    {"parallel_tool_calls", ENDPOINT_CHAT, NULL},
    /* Not done. */
    {"n", TEXTS, "1"},
    {"best_of", ENDPOINT_COMPLETION, "1"},
    {"echo", ENDPOINT_COMPLETION, "false"},
    {"suffix", ENDPOINT_COMPLETION, "\"\""},
    {"logprobs", ENDPOINT_CHAT, "false"},
    {"logprobs", ENDPOINT_COMPLETION, "null"},
    {"top_logprobs", ENDPOINT_CHAT, "0"},
    {"logit_bias", TEXTS, "{}"},
    {"frequency_penalty", TEXTS, "0"},
    {"presence_penalty", TEXTS, "0"},
    {"tools", ENDPOINT_CHAT, "[]"},
    {"tool_choice", ENDPOINT_CHAT, "\"none\""},
    {"functions", ENDPOINT_CHAT, "[]"},
    {"function_call", ENDPOINT_CHAT, "\"none\""},
    {"response_format", ENDPOINT_CHAT, "{\"type\":\"text\"}"},
    {"modalities", ENDPOINT_CHAT, "[\"text\"]"},
    {"audio", ENDPOINT_CHAT, "null"},
    {"prediction", ENDPOINT_CHAT, "null"},
    {"reasoning_effort", ENDPOINT_CHAT, "\"none\""},
    {"verbosity", ENDPOINT_CHAT, "\"medium\""},
    {"web_search_options", ENDPOINT_CHAT, "null"},
};

sgm_status ask_refuse(asking *ask, const char *param, const char *format, ...)
{
    char why[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    snprintf(ask->param, sizeof ask->param, "%s", param);
    sgm__make_printable(ask->param);
    if (ask->status == 0)
        ask->status = 400;
    return sgm_fail(SGM_ERROR_ARGUMENT, "'%s': %s", ask->param, sgm__make_printable(why));
}

bool ask_proceed(void *user)
{
    const asking *ask = user;
    return !sgm__http_has_left(ask->request) && !atomic_load(ask->request->ending);
}

sgm_status ask_fail_inside(asking *ask, sgm_status status)
{
    ask->status = 500;
    return status;
}

static const parameter *find(const char *name, endpoint asked)
{
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++)
        if ((parameters[i].endpoints & asked) != 0 && strcmp(parameters[i].name, name) == 0)
            return &parameters[i];
    return NULL;
}

/* Whether a value is what its row says changes nothing; 1.0 is 1. */
static bool changes_nothing(const json_t *value, const char *nothing)
{
    double number;
    if (json_is_null(value))
        return true;
    if (json_is_number(value))
        return sgm__parse_double(nothing, &number) && json_number_value(value) == number;
    char *text = sgm__json_text(value);
    bool is_same = text != NULL && strcmp(text, nothing) == 0;
    sgm__free(text);
    return is_same;
}

static sgm_status check_parameter(asking *ask, const char *name, const json_t *value)
{
    const parameter *known = find(name, ask->endpoint);
    if (known == NULL) {
        ask->code = "unknown_parameter";
        return ask_refuse(ask, name, "this parameter is not known here");
    }
    if (known->nothing == NULL || changes_nothing(value, known->nothing))
        return SGM_OK;
    ask->code = "unsupported_parameter";
    return strcmp(known->nothing, "null") == 0
               ? ask_refuse(ask, name, "this is not done here; leave it out")
               : ask_refuse(ask, name, "this is not done here; leave it out, or say %s", known->nothing);
}

/* There is one model, so that a request need not name it. */
static sgm_status check_model(asking *ask)
{
    const json_t *model = ask_value(ask, "model");
    if (model == NULL)
        return SGM_OK;
    if (!json_is_string(model))
        return ask_refuse(ask, "model", "expected a text");
    if (strcmp(json_string_value(model), ask->server->name) == 0)
        return SGM_OK;
    ask->status = 404;
    ask->code = "model_not_found";
    return ask_refuse(ask, "model", "there is no '%.100s' here; the model is '%s'", json_string_value(model),
                      ask->server->name);
}

sgm_status ask_begin(asking *ask)
{
    const char *name;
    json_t *value, *body = sgm__http_object(ask->request);
    if (body == NULL)
        return sgm__last_failure();
    ask->body = body;
    json_object_foreach(body, name, value)
    {
        SGM_TRY(check_parameter(ask, name, value));
    }
    return check_model(ask);
}

const json_t *ask_value(const asking *ask, const char *name)
{
    const json_t *value = json_object_get(ask->body, name);
    return json_is_null(value) ? NULL : value;
}

sgm_status ask_number(asking *ask, const char *name, double minimum, double maximum, double *value)
{
    const json_t *given = ask_value(ask, name);
    if (given == NULL)
        return SGM_OK;
    double number = json_number_value(given);
    if (!json_is_number(given) || !(number >= minimum && number <= maximum))
        return ask_refuse(ask, name, "expected a number from %g to %g", minimum, maximum);
    *value = number;
    return SGM_OK;
}

sgm_status ask_integer(asking *ask, const char *name, int64_t minimum, int64_t maximum, int64_t *value)
{
    const json_t *given = ask_value(ask, name);
    if (given == NULL)
        return SGM_OK;
    json_int_t number = json_integer_value(given);
    if (!json_is_integer(given) || number < minimum || number > maximum)
        return ask_refuse(ask, name, "expected a whole number from %lld to %lld", (long long)minimum,
                          (long long)maximum);
    *value = number;
    return SGM_OK;
}

sgm_status ask_flag(asking *ask, const char *name, bool *value)
{
    const json_t *given = ask_value(ask, name);
    if (given != NULL && !json_is_boolean(given))
        return ask_refuse(ask, name, "expected true or false");
    *value = given != NULL ? json_is_true(given) : *value;
    return SGM_OK;
}
