/* GET /api/layer: what a layer gives for examples of the data, for the page to show in two dimensions.
 *
 * A pass (example_pass.h) takes examples evenly from all of the data. Layers give up to tens of thousands
 * of numbers for an example, which is too much to send for hundreds of examples: those of a wide layer are
 * gathered in `columns` sums, each number with a sign of its own (feature hashing, Weinberger et al. 2009).
 * Distances between examples stay the same but for a small error, which is all that a projection needs. */
#include "monitors/web/inspect/example_pass.h"
#include "monitors/web/inspect/inspect.h"

#include <math.h>

/* Examples in an answer, usually and at most; values of a layer in an answer. */
#define DEFAULT_EXAMPLES 500
#define MAXIMUM_EXAMPLES 2000
#define MAXIMUM_VALUES ((int64_t)1 << 20)

/* An answer in the making. */
typedef struct points {
    int64_t columns; /* values of each example in the answer */
    double *sums;    /* of one example, if the layer is wider than that; NULL: it is not */
    sgm__text items; /* JSON of the examples */
} points;

/* The same number of the layer always goes to the same sum, with the same sign. */
static const double *gather(const points *all, const double *values, int64_t width)
{
    memset(all->sums, 0, (size_t)all->columns * sizeof *all->sums);
    for (int64_t i = 0; i < width; i++) {
        uint64_t hash = sgm__hash(&i, sizeof i, 0);
        all->sums[(hash >> 1) % (uint64_t)all->columns] += (hash & 1) != 0 ? values[i] : -values[i];
    }
    return all->sums;
}

static sgm_status append_point(void *user, const sgm__example_pass *own, const sgm__example *taken)
{
    points *all = user;
    sgm__text *text = &all->items;
    const double *values = all->sums != NULL ? gather(all, taken->layer, own->layer.width) : taken->layer;
    sgm__example_append_head(text, taken);
    sgm__text_append(text, ",\"values\":[");
    for (int64_t i = 0; i < all->columns; i++) {
        if (i > 0)
            sgm__text_append_bytes(text, ",", 1);
        sgm__inspect_append_short(text, values[i]);
    }
    sgm__text_append(text, "]}");
    return text->failed ? SGM_ERROR_MEMORY : SGM_OK;
}

/* The layers that can be asked for. */
static void append_layers(sgm__text *text, const sgm__example_pass *own)
{
    const sgm_network *network = own->network.copied.network;
    int64_t width;
    sgm__text_append(text, ",\"layers\":[");
    for (size_t i = 0; i < sgm_network_layers(network); i++) {
        if (!sgm__example_pass_layer(own, i, &width) || width > SGM__PASS_WIDEST)
            continue;
        sgm__web_separate(text);
        sgm__web_append_text(text, sgm_network_layer_name(network, i));
    }
    sgm__text_append(text, "]");
}

static sgm_status give_points(const sgm__example_pass *own, const points *all, sgm__http_answer *answer)
{
    sgm__text text = {0};
    sgm__example_pass_append_head(&text, own);
    sgm__text_append(&text, ",\"layer\":");
    sgm__web_append_text(&text, own->layer_name);
    append_layers(&text, own);
    sgm__web_append_member(&text, "width", (double)own->layer.width);
    sgm__web_append_member(&text, "columns", (double)all->columns);
    sgm__text_append(&text, ",\"items\":[%s]}", all->items.data != NULL ? all->items.data : "");
    return sgm__web_answer(answer, &text);
}

static sgm_status project(sgm__example_pass *own, int64_t maximum, sgm__http_answer *answer)
{
    points all = {.columns = own->layer.width};
    const sgm__example_looker who = {.maximum = maximum, .take = append_point, .user = &all};
    int64_t most = MAXIMUM_VALUES / maximum;
    if (all.columns > most) {
        all.columns = most;
        all.sums = sgm__calloc((size_t)most, sizeof *all.sums);
        if (all.sums == NULL)
            return SGM_ERROR_MEMORY;
    }
    sgm_status status = sgm__example_pass_look(own, &who);
    if (status == SGM_OK)
        status = give_points(own, &all, answer);
    sgm__free(all.sums);
    sgm__text_free(&all.items);
    return status;
}

sgm_status sgm__inspect_layer(void *watched, const sgm__http_request *request, sgm__http_answer *answer)
{
    const char *layer = sgm__http_query(request, "layer", 0);
    int64_t maximum;
    SGM_TRY(sgm__inspect_count(request, "examples", DEFAULT_EXAMPLES, 1, MAXIMUM_EXAMPLES, &maximum));
    sgm__example_pass *own = sgm__example_pass_begin(watched, request, layer != NULL ? layer : "");
    if (own == NULL)
        return sgm__last_failure();
    sgm_status status = project(own, maximum, answer);
    sgm__example_pass_free(own);
    return status;
}
