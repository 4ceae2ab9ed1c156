/* GET /api/losses: how wrong the network is about each of many examples, so that the page can say which of
 * them got better or worse.
 *
 * Costs give one number for a minibatch, so the loss is computed here from the prediction: minus the
 * logarithm of the share of the true class for networks that classify, else the mean squared difference
 * from the targets. A pass (example_pass.h) takes the examples evenly from all of the data. */
#include "monitors/web/inspect/example_pass.h"
#include "monitors/web/inspect/inspect.h"

#include <math.h>

/* Examples in an answer, usually and at most. */
#define USUAL_EXAMPLES 1000
#define MAXIMUM_EXAMPLES 10000
/* A share of 0 has no logarithm; no loss is larger than that of this one. */
#define LEAST_SHARE 1e-7

/* An answer in the making. */
typedef struct losses {
    int64_t stride;  /* every stride-th example is taken */
    sgm__text items; /* [index,target,prediction,loss],... */
} losses;

static bool takes(void *user, int64_t index, int64_t target)
{
    const losses *all = user;
    (void)target;
    return index % all->stride == 0;
}

static bool never(void *user, int64_t index)
{
    (void)user, (void)index;
    return false;
}

/* A single output is the share of the second class. NAN: the example has no class. */
static double loss_of_class(const sgm__example_pass *own, const sgm__example *taken)
{
    if (taken->target < 0)
        return NAN;
    double share = own->prediction.width > 1 ? taken->outputs[taken->target]
                   : taken->target == 1      ? taken->outputs[0]
                                             : 1 - taken->outputs[0];
    return -log(fmin(fmax(share, LEAST_SHARE), 1));
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

static sgm_status append_loss(void *user, const sgm__example_pass *own, const sgm__example *taken)
{
    losses *all = user;
    double loss = NAN;
    if (own->classifies)
        loss = loss_of_class(own, taken);
    else
        SGM_TRY(loss_of_numbers(own, taken, &loss));
    sgm__text_append(&all->items, all->items.length > 0 ? ",[%lld" : "[%lld", (long long)taken->index);
    append_class(&all->items, taken->target);
    append_class(&all->items, taken->prediction);
    sgm__text_append(&all->items, ",");
    sgm__inspect_append_short(&all->items, loss);
    sgm__text_append(&all->items, "]");
    return all->items.failed ? SGM_ERROR_MEMORY : SGM_OK;
}

static sgm_status measure(sgm__example_pass *own, int64_t maximum, sgm__http_answer *answer)
{
    losses all = {0};
    const sgm__example_looker who = {.wants = takes, .take = append_loss, .has_all = never, .user = &all};
    int64_t examples;
    SGM_TRY(sgm_dataset_examples(own->dataset, &examples));
    all.stride = examples > maximum ? (examples + maximum - 1) / maximum : 1;
    sgm_status status = sgm__example_pass_look(own, &who);
    if (status == SGM_OK) {
        sgm__text text = {0};
        sgm__text_append(&text, "{\"iteration\":%lld,\"data\":%s", (long long)own->network.iteration,
                         own->data);
        sgm__web_append_member(&text, "examples", (double)examples);
        sgm__text_append(&text, ",\"items\":[%s]}", all.items.data != NULL ? all.items.data : "");
        status = sgm__web_answer(answer, &text);
    }
    sgm__text_free(&all.items);
    return status;
}

sgm_status sgm__inspect_losses(void *watched, const sgm__http_request *request, sgm__http_answer *answer)
{
    int64_t maximum;
    SGM_TRY(sgm__inspect_count(request, "examples", USUAL_EXAMPLES, 1, MAXIMUM_EXAMPLES, &maximum));
    sgm__example_pass *own = sgm__example_pass_begin(watched, request, NULL);
    if (own == NULL)
        return sgm__last_failure();
    sgm_status status = measure(own, maximum, answer);
    sgm__example_pass_free(own);
    return status;
}
