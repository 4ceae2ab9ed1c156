/* The part `inspect`: the table of its routes and functions. None of the routes is quick, since all of them
 * wait for a trainer's lock; so they run one after the other. */
#include "monitors/web/inspect/inspect.h"

static const sgm__http_route routes[] = {
    {"GET", "/api/network", .act = sgm__web_on_trainer, .action = sgm__inspect_network},
    {"GET", "/api/histogram", .act = sgm__inspect_histogram},
    {"GET", "/api/data", .act = sgm__web_on_trainer, .action = sgm__inspect_data},
    {"GET", "/api/confusion", .act = sgm__web_on_trainer, .action = sgm__inspect_confusion},
    {"GET", "/api/layer", .act = sgm__web_on_trainer, .action = sgm__inspect_layer},
    {"GET", "/api/losses", .act = sgm__web_on_trainer, .action = sgm__inspect_losses},
    {"GET", "/api/picture", .act = sgm__web_on_trainer, .action = sgm__inspect_picture},
    {"POST", "/api/histogram-watch", .act = sgm__web_on_trainer, .action = sgm__inspect_watch},
};

const sgm__web_part sgm__web_inspect = {.routes = routes,
                                        .route_count = sizeof routes / sizeof *routes,
                                        .create = sgm__inspect_create,
                                        .free = sgm__inspect_free,
                                        .tick = sgm__inspect_tick,
                                        .attach = sgm__inspect_attach,
                                        .progress = sgm__inspect_progress,
                                        .free_trainer = sgm__inspect_free_trainer};
