/* Kernels: the items of a group run one after the other on stacks of their own; one that comes to a barrier
 * waits there until all others have come. The items of every other group run backward, so that what depends
 * on their order is seen. */
#include "fake.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK ((size_t)128 << 10)

#ifdef __x86_64__
/* Leaves the stack that is used for another, with what a function has to keep. */
void fake_switch(void **from, void *to);
__asm__(".text\n"
        ".type fake_switch,@function\n"
        "fake_switch:\n"
        "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
        "movq %rsp,(%rdi)\n"
        "movq %rsi,%rsp\n"
        "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\n"
        "ret\n"
        ".size fake_switch,.-fake_switch\n");
typedef void *place;
#else
typedef ucontext_t place;
#endif

typedef struct fibre {
    place at;
    unsigned char *stack;
    unsigned item;
} fibre;

/* The group that this thread runs. */
typedef struct group {
    const fake_work *launch;
    const fake_module *module;
    void *parameters[FAKE_PARAMETERS];
    unsigned number, next; /* of the group, of items begun */
    bool done;             /* the fibre that came back has nothing left to do */
    fibre fibres[FAKE_GROUP];
    fibre *running;
    place scheduler;
} group;

static _Thread_local group *current;

#ifdef __x86_64__
static void resume(group *g, fibre *f)
{
    g->running = f;
    fake_switch(&g->scheduler, f->at);
}

static void pause_fibre(group *g)
{
    fake_switch(&g->running->at, g->scheduler);
}
#else
static void resume(group *g, fibre *f)
{
    g->running = f;
    swapcontext(&g->scheduler, &f->at);
}

static void pause_fibre(group *g)
{
    swapcontext(&g->running->at, &g->scheduler);
}
#endif

/* Begins items until one waits or none is left. */
static void run_items(void)
{
    group *g = current;
    while (g->next < g->launch->group) {
        unsigned item = g->number % 2 == 0 ? g->next : g->launch->group - 1 - g->next;
        g->next++;
        g->running->item = item;
        g->module->indices[0][0] = item;
        g->launch->function->call(g->parameters);
    }
    g->done = true;
    pause_fibre(g);
}

static void wait_for_all(void)
{
    pause_fibre(current);
}

static void start(fibre *f)
{
    if (f->stack == NULL) {
        f->stack =
            mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (f->stack == MAP_FAILED)
            fake_wrong("the computer's memory is used up");
    }
#ifdef __x86_64__
    void **top = (void **)(void *)(f->stack + STACK);
    void (*begin)(void) = run_items;
    *--top = NULL; /* so that the stack is aligned as after a call */
    memcpy(--top, &begin, sizeof begin);
    f->at = top - 6;
#else
    getcontext(&f->at);
    f->at.uc_stack.ss_sp = f->stack;
    f->at.uc_stack.ss_size = STACK;
    makecontext(&f->at, run_items, 0);
#endif
}

static void run_group(group *g, unsigned number)
{
    unsigned items = g->launch->group, waiting = 0;
    g->number = number;
    g->next = 0;
    g->module->indices[1][0] = number;
    while (g->next < items) {
        fibre *f = &g->fibres[waiting];
        start(f);
        g->done = false;
        resume(g, f);
        waiting += !g->done;
    }
    while (waiting > 0) {
        unsigned still = 0;
        if (waiting != items)
            fake_wrong("%s: a barrier is reached by %u of %u items of group %u", g->launch->function->name,
                       waiting, items, number);
        for (unsigned i = 0; i < items; i++) {
            g->module->indices[0][0] = g->fibres[i].item;
            g->done = false;
            resume(g, &g->fibres[i]);
            still += !g->done;
        }
        waiting = still;
    }
}

/* --- what a kernel does wrong --- */

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    char text[512], where[128];
    const group *g = current;
    if (g != NULL) {
        int length = snprintf(text, sizeof text, "stand-in for CUDA: %s, group %u, item %u touches %s\n",
                              g->launch->function->name, g->number, g->module->indices[0][0],
                              fake_explain(info->si_addr, where, sizeof where));
        ssize_t written = write(2, text, (size_t)length);
        (void)written;
    }
    signal(number, SIG_DFL);
    raise(number);
}

static void watch_for_faults(void)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO}, before;
    action.sa_sigaction = on_fault;
    if (sigaction(SIGSEGV, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
        sigaction(SIGSEGV, &action, NULL);
}

void fake_run(struct cu_context_ *context, const fake_work *launch)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static group room; /* and its stacks: one kernel runs at a time */
    pthread_once(&once, watch_for_faults);
    if (launch->function->module == NULL)
        fake_wrong("%s is run after its module was unloaded", launch->function->name);
    if (launch->function->module->context != context)
        fake_wrong("%s of another device is run", launch->function->name);
    pthread_mutex_lock(&lock);
    current = &room;
    room.launch = launch;
    memcpy(room.parameters, launch->parameters, (size_t)launch->function->parameters * sizeof(void *));
    room.module = launch->function->module;
    *room.module->barrier = wait_for_all;
    room.module->indices[2][0] = launch->group;
    room.module->indices[3][0] = launch->groups;
    for (unsigned number = 0; number < launch->groups; number++)
        run_group(&room, number);
    current = NULL;
    pthread_mutex_unlock(&lock);
}
