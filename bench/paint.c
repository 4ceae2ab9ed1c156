/* A page with much to draw: build/release/bench/paint [SERIES [POINTS]]
 *
 * Serves a monitor whose charts show SERIES values (default 100) of POINTS points each (default 100,000), ten
 * to a chart, until Ctrl-C. How long the first paint takes is the browser's to say: its console knows
 * performance.getEntriesByName('first-contentful-paint'), and its network panel when the curves came.
 */
#include "base/base.h"
#include "measure.h"
#include "monitors/web/web_internal.h"
#include "random_data.h"
#include <sigma/sigma.h>

#include <stdio.h>
#include <unistd.h>

#define MAXIMUM_SERIES 640
#define MAXIMUM_POINTS 10000000
#define IN_A_CHART 10

static void check(bool good)
{
    if (good)
        return;
    fprintf(stderr, "paint: %s\n", sgm_last_error());
    exit(1);
}

/* A tab with a chart for each ten. */
static char *tabs_of(int64_t series)
{
    sgm__text text = {0};
    sgm__text_append(&text, "[{\"title\":\"Much\",\"panels\":[");
    for (int64_t i = 0; i < series; i++) {
        bool begins = i % IN_A_CHART == 0, ends = i % IN_A_CHART == IN_A_CHART - 1 || i == series - 1;
        if (begins)
            sgm__text_append(&text, "%s{\"kind\":\"chart\",\"w\":6,\"h\":8,\"options\":{\"series\":[",
                             i > 0 ? "," : "");
        sgm__text_append(&text, "%s\"walks.value_%lld\"%s", begins ? "" : ",", (long long)i,
                         ends ? "]}}" : "");
    }
    sgm__text_append(&text, "]}]");
    return text.data;
}

/* Walks of a drunkard, as if they had been recorded. */
static void record(sgm_trainer *trainer, sgm__web_recording *recording, int64_t series, int64_t points)
{
    sgm__random random = sgm__random_make(1, 1);
    sgm_registry *walks = sgm_registry_create();
    check(walks != NULL && sgm_registry_put(sgm_trainer_registry(trainer), "walks", walks) == SGM_OK);
    for (int64_t i = 0; i < series; i++) {
        char name[32], identifier[48];
        double value = (double)i;
        snprintf(name, sizeof name, "value_%lld", (long long)i);
        snprintf(identifier, sizeof identifier, "walks.%s", name);
        check(sgm_registry_set(walks, name, sgm_number_content(value)) == SGM_OK);
        sgm__web_item *item = sgm__web_add_item(recording, identifier, false);
        check(item != NULL);
        item->active = true;
        for (int64_t k = 1; k <= points; k++)
            check(sgm__series_append(item->series, k, value += sgm__random_uniform(&random) - 0.5) == SGM_OK);
    }
    for (int64_t k = 1; k <= points; k++)
        check(sgm__clock_append(recording->clock, (sgm__clock_tick){k, (double)k / 100, (double)k / 10}) ==
              SGM_OK);
    sgm_registry_free(walks);
}

static int64_t argument(int argc, char **argv, int index, int64_t usual, int64_t maximum)
{
    int64_t value = usual;
    if (argc > index && (!sgm__parse_int64(argv[index], &value) || value < 1 || value > maximum)) {
        fprintf(stderr, "paint: expected a number from 1 to %lld, got '%s'\n", (long long)maximum,
                argv[index]);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    int64_t series = argument(argc, argv, 1, 100, MAXIMUM_SERIES);
    int64_t points = argument(argc, argv, 2, 100000, MAXIMUM_POINTS);
    sgm_env *env = sgm_env_create("paint", .seed = 1);
    sgm_trainer *trainer = sgm_trainer_create(env, "trainer");
    sgm_dataset *data = random_classes(100, 4, 3);
    sgm_trainer_set_network(trainer, "input(4) + dense(3) + softmax_cross_entropy");
    sgm_trainer_set_data(trainer, sgm_minibatches(data, .size = 10));
    sgm_trainer_set_optimiser(trainer, sgm_gradient_descent());
    char *tabs = tabs_of(series);
    sgm_monitor *monitor = sgm_web_monitor(.tabs = tabs);
    check(tabs != NULL && sgm_env_add_monitor(env, monitor) == SGM_OK);
    check(sgm_env_prepare(env) == SGM_OK);
    const sgm__web *web = (const sgm__web *)monitor;
    record(trainer, web->trainers[0]->states[SGM__WEB_live], series, points);
    printf("%lld values of %lld points each are there; Ctrl-C ends it\n", (long long)series,
           (long long)points);
    fflush(stdout);
    pause();
    sgm_env_free(env);
    sgm_dataset_free(data);
    sgm__free(tabs);
    return 0;
}
