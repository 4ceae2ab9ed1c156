/* Streams, recordings, modules and launches. */
#include "fake.h"

#include <dlfcn.h>
#include <elf.h>
#include <time.h>
#include <unistd.h>

#define WAITING 256        /* work in a stream before some of it is done */
#define MAXIMUM_SECONDS 60 /* that a device waits for others: the real one would wait for ever */

static void *need(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (memory == NULL)
        fake_wrong("the computer's memory is used up");
    return memory;
}

static void append(fake_list *list, fake_work *work)
{
    *(list->first == NULL ? &list->first : list->last) = work;
    list->last = &work->next;
    list->count++;
}

/* False: it is not done yet. */
static bool do_work(struct cu_context_ *context, fake_work *w)
{
    switch (w->kind) {
    case FAKE_CLEAR:
        memset(fake_memory(context, w->to, w->bytes, "clearing"), w->value, w->bytes);
        break;
    case FAKE_COPY: {
        const void *from = fake_memory(context, w->from, w->bytes, "a copy");
        memmove(fake_memory(context, w->to, w->bytes, "a copy"), from, w->bytes);
        break;
    }
    case FAKE_UPLOAD:
        memcpy(fake_memory(context, w->to, w->bytes, "a transfer"), w->host, w->bytes);
        break;
    case FAKE_DOWNLOAD:
        memcpy(w->host, fake_memory(context, w->from, w->bytes, "a transfer"), w->bytes);
        break;
    case FAKE_FREE:
        fake_free(context, w->to);
        break;
    case FAKE_LAUNCH:
        fake_run(context, w);
        break;
    case FAKE_PRODUCT:
        fake_multiply(context, w->parameters);
        break;
    case FAKE_SUM:
        return fake_sum(w);
    }
    return true;
}

/* Until there is no work, or some that has to wait for another device. */
static bool go_on(struct cu_stream_ *stream)
{
    while (stream->list.first != NULL) {
        fake_work *work = stream->list.first;
        if (!do_work(stream->context, work))
            return false;
        stream->list.first = work->next;
        stream->list.count--;
        free(work);
    }
    return true;
}

void fake_finish(struct cu_stream_ *stream)
{
    for (time_t began = time(NULL); !go_on(stream); usleep(50))
        if (time(NULL) - began > MAXIMUM_SECONDS)
            fake_wrong("device %d is waited for, which waits for others in a sum", stream->context->number);
}

fake_work *fake_enqueue(struct cu_stream_ *stream, fake_kind kind, int parameters)
{
    if (stream->context != fake_current())
        fake_wrong("work for device %d is queued while device %d is current", stream->context->number,
                   fake_current()->number);
    if (stream->recording == NULL && stream->list.count >= WAITING)
        fake_finish(stream);
    fake_work *work = need(sizeof *work + (size_t)parameters * sizeof(void *));
    work->kind = kind;
    work->parameter_count = parameters;
    append(stream->recording != NULL ? &stream->recording->list : &stream->list, work);
    return work;
}

cu_result cuStreamCreate(cu_stream *stream, unsigned int flags)
{
    if (flags != CU_STREAM_APART)
        return CU_INVALID;
    *stream = need(sizeof **stream);
    (*stream)->context = fake_current();
    fake_current()->streams++;
    return CU_DONE;
}

cu_result cuStreamDestroy_v2(cu_stream stream)
{
    fake_finish(stream);
    if (stream->recording != NULL)
        fake_wrong("a stream is destroyed while it records");
    stream->context->streams--;
    free(stream);
    return CU_DONE;
}

cu_result cuStreamSynchronize(cu_stream stream)
{
    if (stream->recording != NULL)
        fake_wrong("a stream that records is waited for");
    if (stream->context != fake_current())
        fake_wrong("a stream of another device is waited for");
    fake_finish(stream);
    return CU_DONE;
}

cu_result cuStreamQuery(cu_stream stream)
{
    if (stream->recording != NULL || stream->context != fake_current())
        fake_wrong("a stream that records, or that of another device, is asked");
    return go_on(stream) ? CU_DONE : CU_NOT_READY;
}

/* An event: the stream in which it was recorded last. */
struct cu_event_ {
    struct cu_context_ *context;
    cu_stream stream;
};

cu_result cuEventCreate(cu_event *event, unsigned int flags)
{
    if (flags != CU_EVENT_UNTIMED)
        return CU_INVALID;
    *event = need(sizeof **event);
    (*event)->context = fake_current();
    (*event)->context->events++;
    return CU_DONE;
}

cu_result cuEventDestroy_v2(cu_event event)
{
    event->context->events--;
    free(event);
    return CU_DONE;
}

cu_result cuEventRecord(cu_event event, cu_stream stream)
{
    if (stream->recording != NULL)
        fake_wrong("an event is recorded");
    event->stream = stream;
    return CU_DONE;
}

cu_result cuEventSynchronize(cu_event event)
{
    if (event->stream != NULL)
        fake_finish(event->stream);
    return CU_DONE;
}

/* --- recordings --- */

cu_result cuStreamBeginCapture_v2(cu_stream stream, cu_capture_mode mode)
{
    if (mode != CU_CAPTURE_THREAD || stream->recording != NULL)
        return CU_INVALID;
    stream->recording = need(sizeof *stream->recording);
    return CU_DONE;
}

cu_result cuStreamEndCapture(cu_stream stream, cu_graph *graph)
{
    if (stream->recording == NULL)
        return CU_CAPTURE_UNMATCHED;
    *graph = stream->recording;
    stream->recording = NULL;
    stream->context->graphs++;
    return CU_DONE;
}

static fake_work *copy_of(const fake_work *work)
{
    size_t bytes = sizeof *work + (size_t)work->parameter_count * sizeof(void *);
    fake_work *copy = need(bytes);
    memcpy(copy, work, bytes);
    copy->next = NULL;
    return copy;
}

static void copy_list(fake_list *to, const fake_list *from)
{
    for (const fake_work *work = from->first; work != NULL; work = work->next)
        append(to, copy_of(work));
}

static void free_list(fake_list *list)
{
    for (fake_work *work = list->first, *next; work != NULL; work = next) {
        next = work->next;
        free(work);
    }
}

struct cu_graph_run_ {
    struct cu_context_ *context;
    fake_list list;
};

cu_result cuGraphInstantiateWithFlags(cu_graph_run *run, cu_graph graph, unsigned long long flags)
{
    if (flags != 0)
        return CU_INVALID;
    *run = need(sizeof **run);
    (*run)->context = fake_current();
    (*run)->context->graphs++;
    copy_list(&(*run)->list, &graph->list);
    return CU_DONE;
}

cu_result cuGraphDestroy(cu_graph graph)
{
    fake_current()->graphs--;
    free_list(&graph->list);
    free(graph);
    return CU_DONE;
}

cu_result cuGraphExecDestroy(cu_graph_run run)
{
    run->context->graphs--;
    free_list(&run->list);
    free(run);
    return CU_DONE;
}

cu_result cuGraphLaunch(cu_graph_run run, cu_stream stream)
{
    if (run->context != fake_current() || stream->context != fake_current() || stream->recording != NULL)
        fake_wrong("a recording is run where it does not belong");
    fake_finish(stream);
    copy_list(&stream->list, &run->list);
    return CU_DONE;
}

/* --- kernels --- */

struct cu_module_ {
    fake_module module;
};

static void *symbol_of(void *library, const char *prefix, const char *name)
{
    char symbol[256];
    snprintf(symbol, sizeof symbol, "%s%s", prefix, name);
    return dlsym(library, symbol);
}

/* The image is a shared library, which must have a name of its own to be loaded. */
static void *load_image(const void *image)
{
    Elf64_Ehdr header;
    char path[] = "/tmp/sigma-fake-cuda-XXXXXX";
    memcpy(&header, image, sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return NULL;
    size_t bytes = header.e_shoff + (size_t)header.e_shentsize * header.e_shnum;
    int file = mkstemp(path);
    if (file < 0)
        fake_wrong("%s cannot be made", path);
    void *library = NULL;
    if (write(file, image, bytes) == (ssize_t)bytes)
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    close(file);
    unlink(path);
    return library;
}

cu_result cuModuleLoadData(cu_module *module, const void *image)
{
    void *library = load_image(image);
    if (library == NULL)
        return CU_INVALID_IMAGE;
    *module = need(sizeof **module);
    fake_module *m = &(*module)->module;
    m->library = library;
    m->context = fake_current();
    m->indices = symbol_of(library, "fake_indices", "");
    m->barrier = symbol_of(library, "fake_barrier", "");
    if (m->indices == NULL || m->barrier == NULL)
        fake_wrong("a module that this stand-in has not compiled");
    m->context->modules++;
    return CU_DONE;
}

cu_result cuModuleUnload(cu_module module)
{
    fake_module *m = &module->module;
    if (m->context != fake_current())
        fake_wrong("a module of another device is unloaded");
    for (struct cu_function_ *f = m->context->functions; f != NULL; f = f->next)
        if (f->module == m)
            f->module = NULL;
    m->context->modules--;
    dlclose(m->library);
    free(module);
    return CU_DONE;
}

cu_result cuModuleGetFunction(cu_function *function, cu_module module, const char *name)
{
    fake_module *m = &module->module;
    void *call = symbol_of(m->library, "fake_call_", name);
    const int *facts = symbol_of(m->library, "fake_facts_", name);
    if (call == NULL || facts == NULL || facts[0] > FAKE_PARAMETERS)
        return CU_NOT_FOUND;
    *function = need(sizeof **function);
    snprintf((*function)->name, sizeof(*function)->name, "%s", name);
    memcpy(&(*function)->call, &call, sizeof call);
    (*function)->module = m;
    (*function)->parameters = facts[0];
    (*function)->group = facts[1];
    (*function)->next = m->context->functions;
    m->context->functions = *function;
    return CU_DONE;
}

cu_result cuLaunchKernel(cu_function function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                         unsigned int block_x, unsigned int block_y, unsigned int block_z,
                         unsigned int shared, cu_stream stream, void **parameters, void **extra)
{
    if (grid_y != 1 || grid_z != 1 || block_y != 1 || block_z != 1 || shared != 0 || extra != NULL)
        fake_wrong("a launch of %s in more than one dimension", function->name);
    if (grid_x == 0 || grid_x > INT32_MAX || block_x == 0 || block_x > FAKE_GROUP)
        return CU_INVALID;
    if ((int)block_x != function->group)
        fake_wrong("%s is launched with groups of %u, its text says %d", function->name, block_x,
                   function->group);
    fake_work *work = fake_enqueue(stream, FAKE_LAUNCH, function->parameters);
    work->function = function;
    work->groups = grid_x;
    work->group = block_x;
    for (int i = 0; i < function->parameters; i++)
        memcpy(&work->parameters[i], parameters[i], sizeof(void *));
    return CU_DONE;
}
