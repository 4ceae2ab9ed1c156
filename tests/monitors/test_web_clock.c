/* The web monitor where somebody sets the computer's clock back: nothing waits for the hour to come again. */
#include "environment/environment_test.h"
#include "monitors/web_client.h"

#include <sys/syscall.h>

#define PATIENCE 10.0
#define SET_BACK 3600 /* seconds */

/* In place of the C library's: time as it was read before the clock was set back. What waits until a time by
 * that clock waits for an hour. */
int clock_gettime(clockid_t clock, struct timespec *time)
{
    int result = (int)syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && clock == CLOCK_REALTIME)
        time->tv_sec += SET_BACK;
    return result;
}

TEST(a_clock_that_is_set_back_stops_nothing)
{
    sgm_env *env = sgm_env_create("watched", .handler = "reference", .seed = 11);
    sgm_trainer *trainer = line_trainer(env, "line");
    sgm_monitor *monitor = sgm_web_monitor(.quiet = true);
    double begun = sgm__now();
    CHECK_OK(trainer);
    CHECK_OK(sgm_env_add_monitor(env, monitor));
    CHECK_OK(sgm_env_run_background(env, .epochs = 100000000, .paused = true));
    while (sgm_trainer_get_state(trainer) != SGM_TRAINER_PAUSED)
        usleep(1000);
    web_client client = web_client_of(sgm_web_monitor_url(monitor));
    json_decref(web_post(&client, "/api/command", "{\"command\":\"step\",\"iterations\":3}"));
    CHECK_INT(client.code, 200);
    json_decref(
        web_post(&client, "/api/histogram-watch", "{\"identifier\":\"network.layers.1-dense.weights\"}"));
    CHECK_INT(client.code, 200);
    for (bool seen = false; !seen;) {
        json_t *curve = web_get(&client, "/api/series?id=optimiser.loss"),
               *spread = web_get(&client, "/api/histogram?id=network.layers.1-dense.weights&history=1");
        seen = json_array_size(web_at(curve, "series/0/x")) > 0 &&
               json_array_size(web_at(spread, "history")) > 0;
        json_decref(curve);
        json_decref(spread);
        if (sgm__now() - begun > PATIENCE)
            TEST_FAIL("the monitor's threads wait for the clock");
        usleep(10000);
    }
    CHECK_OK(sgm_env_stop(env, "seen enough"));
    CHECK_OK(sgm_env_wait(env));
    sgm_env_free(env);
    CHECK(sgm__now() - begun < PATIENCE);
}
