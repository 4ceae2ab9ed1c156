/* The tables of routes of the three servers, as they are in the library, and a server that has one of them
 * with functions that do nothing. For tests that walk all routes. */
#ifndef SIGMA_HTTP_TABLES_H
#define SIGMA_HTTP_TABLES_H

#include "http_client.h"
#include "monitors/runs/runs_internal.h"
#include "monitors/serve/routes.h"
#include "monitors/web/web.h"

#define TABLE_LARGEST 64
#define ADMIN_TOKEN "0123456789abcdef-ADMIN"
#define STEER_TOKEN "0123456789abcdef-STEER"
#define LOOK_TOKEN "0123456789abcdef-LOOK0"

typedef struct table {
    const char *name; /* "monitor", "runs", "serve" */
    sgm__http_route routes[TABLE_LARGEST];
    size_t count;
} table;

static inline void table_add(table *t, const sgm__http_route *routes, size_t count)
{
    CHECK(t->count + count <= TABLE_LARGEST);
    for (size_t i = 0; i < count; i++)
        t->routes[t->count++] = routes[i];
}

#define TABLE_COUNT 3
static inline table table_at(size_t index)
{
    table t = {.name = (const char *const[]){"monitor", "runs", "serve"}[index]};
    if (index == 1)
        table_add(&t, sgm__runs_routes, sgm__runs_route_count);
    else if (index == 2)
        table_add(&t, sgm__serve_routes, sgm__serve_route_count);
#define TABLE_PART(part) table_add(&t, sgm__web_##part.routes, sgm__web_##part.route_count);
    if (index == 0) {
        SGM__WEB_PARTS(TABLE_PART)
    }
#undef TABLE_PART
    return t;
}

static atomic_int table_acted; /* how often a function of a route was reached */

static inline sgm_status table_act(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    (void)user, (void)request, (void)answer;
    atomic_fetch_add(&table_acted, 1);
    return SGM_OK;
}

/* `t` must stay while the server runs. */
static inline sgm__http *table_serve(table *t, sgm__http_options options)
{
    for (size_t i = 0; i < t->count; i++)
        t->routes[i].act = table_act;
    options.routes = t->routes;
    options.route_count = t->count;
    options.token = ADMIN_TOKEN;
    options.tokens = "# for others\nlook " LOOK_TOKEN "\n\n  steer " STEER_TOKEN " anna\n";
    sgm__http *server = sgm__http_start(&options);
    if (server == NULL)
        TEST_FAIL("no server: %s", sgm_last_error());
    return server;
}

#endif
