/* The handler `null`: it has memory but computes nothing.
 *
 * With it, a run costs what a program costs besides its mathematics: feeding, bookkeeping, reading.
 * Results are whatever is in the memory, zeros at first. It supports no
 * operation, so the planner expands all composed ones, as it does for the reference handler.
 */
#include "handlers/host.h"

static void describe(void *self, sgm__text *text)
{
    (void)self;
    sgm__text_append(text, "null: real memory, computes nothing\n");
}

static const char *support(void *self, const sgm_op *op, sgm_dtype dtype)
{
    (void)self, (void)op, (void)dtype;
    return "none";
}

/* The executable is the plan itself: sessions take NULL for none. */
static sgm_status compile(void *self, const sgm__plan *plan, void **executable)
{
    (void)self;
    *executable = (void *)(uintptr_t)plan;
    return SGM_OK;
}

static void discard(void *self, void *executable)
{
    (void)self, (void)executable;
}

static sgm_status run(void *self, void *executable, const sgm__memory *memory, int32_t first, int32_t count)
{
    (void)self, (void)executable, (void)memory, (void)first, (void)count;
    return SGM_OK;
}

const sgm__handler_type sgm__null_handler = {
    .name = "null",
    .doc = "real memory, computes nothing",
    .flags = SGM__HANDLER_HOST,
    .open = sgm__host_open,
    .close = sgm__host_close,
    .describe = describe,
    .support = support,
    SGM__HOST_BUFFERS,
    .compile = compile,
    .discard = discard,
    .run = run,
};
