/* GET /api/losses: how wrong the network is about each of many examples, so that the page can say which of
 * them got better or worse.
 *
 * Costs give one number for a minibatch, so the loss is computed here from the prediction: minus the
 * logarithm of the probability of the true class for networks that classify, else the mean squared difference
 * from the targets. A pass (example_pass.h) takes the examples evenly from all of the data. */
#include "monitors/web/inspect/example_pass.h"
#include "monitors/web/inspect/inspect.h"

#include <math.h>

/* Examples in an answer, usually and at most. */
#define DEFAULT_EXAMPLES 1000
#define MAXIMUM_EXAMPLES 10000
/* A probability of 0 has no logarithm; no loss is larger than that of this one. */
#define MINIMUM_PROBABILITY 1e-7

/* A single output is the probability of the second class. NAN: the example has no class. */
static double loss_of_class(const sgm__example_pass *own, const sgm__example *taken)
{
    if (taken->target < 0)
        return NAN;
    double probability = own->prediction.width > 1 ? taken->outputs[taken->target]
                         : taken->target == 1      ? taken->outputs[0]
                                                   : 1 - taken->outputs[0];
    return -log(fmin(fmax(probability, MINIMUM_PROBABILITY), 1));
}

/* From the targets, of which there must be as many as outputs. */
static sgm_status loss_of_numbers(const sgm__example_pass *own, const sgm__example *taken, double *loss)
{
    int64_t count;
    const float *targets = sgm__example_values(own->block, own->targets, taken->row, &count);
    if (targets == NULL)
        return sgm__last_failure();
    if (count != own->prediction.width)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "no loss of single examples: field '%s' has %lld numbers for each, the network gives "
                        "%lld; look at the cost of all, /api/series",
                        own->targets, (long long)count, (long long)own->prediction.width);
    *loss = 0;
    for (int64_t i = 0; i < count; i++)
        *loss += (taken->outputs[i] - targets[i]) * (taken->outputs[i] - targets[i]) / (double)count;
    return SGM_OK;
}

static void append_class(sgm__text *text, int64_t number)
{
    sgm__text_append(text, ",");
    sgm__web_append_number(text, number >= 0 ? (double)number : NAN);
}

/* [index,target,prediction,loss] */
static sgm_status append_loss(void *user, const sgm__example_pass *own, const sgm__example *taken)
{
    sgm__text *items = user;
    double loss = NAN;
    if (own->classifies)
        loss = loss_of_class(own, taken);
    else
        SGM_TRY(loss_of_numbers(own, taken, &loss));
    sgm__text_append(items, items->length > 0 ? ",[%lld" : "[%lld", (long long)taken->index);
    append_class(items, taken->target);
    append_class(items, taken->prediction);
    sgm__text_append(items, ",");
    sgm__inspect_append_short(items, loss);
    sgm__text_append(items, "]");
    return items->failed ? SGM_ERROR_MEMORY : SGM_OK;
}

static sgm_status measure(sgm__example_pass *own, int64_t maximum, sgm__http_answer *answer)
{
    sgm__text items = {0};
    const sgm__example_looker who = {.maximum = maximum, .take = append_loss, .user = &items};
    sgm_status status = sgm__example_pass_look(own, &who);
    if (status == SGM_OK) {
        sgm__text text = {0};
        sgm__example_pass_append_head(&text, own);
        sgm__text_append(&text, ",\"items\":[%s]}", items.data != NULL ? items.data : "");
        status = sgm__web_answer(answer, &text);
    }
    sgm__text_free(&items);
    return status;
}

sgm_status sgm__inspect_losses(void *watched, const sgm__http_request *request, sgm__http_answer *answer)
{
    int64_t maximum;
    SGM_TRY(sgm__inspect_count(request, "examples", DEFAULT_EXAMPLES, 1, MAXIMUM_EXAMPLES, &maximum));
    sgm__example_pass *own = sgm__example_pass_begin(watched, request, NULL);
    if (own == NULL)
        return sgm__last_failure();
    sgm_status status = measure(own, maximum, answer);
    sgm__example_pass_free(own);
    return status;
}
