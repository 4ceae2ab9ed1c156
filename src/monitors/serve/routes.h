/* The table of routes of `sigma serve`, which tests walk. Internal to serve.c and tests. */
#ifndef SGM_MONITORS_SERVE_ROUTES_H
#define SGM_MONITORS_SERVE_ROUTES_H

#include "monitors/http/http.h"

extern const sgm__http_route sgm__serve_routes[];
extern const size_t sgm__serve_route_count;

#endif
