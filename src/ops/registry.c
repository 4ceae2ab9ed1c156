/* Operations by name: those that come with the library, and those that programs have registered.
 *
 * Networks find activations by name, and inspection lists all operations; recording goes by the tables
 * themselves and needs no search. Built-in operations come from the lists in sigma/graph.h and ops.h,
 * so an operation that is added there is found here. The lock guards the list of registered operations,
 * which any thread may extend. Tables are static and never removed, so a pointer stays valid. all_reduce
 * (all_reduce.c) is not listed: networks cannot name it. */
#include "ops/ops.h"

#define ENTRY(name) &sgm__op_##name,
#define DOCUMENTED_ENTRY(name, doc) ENTRY(name)
static const sgm_op *const built_in[] = {SGM_UNARY_LIST(DOCUMENTED_ENTRY)
                                             SGM_COMPOSED_UNARY_LIST(DOCUMENTED_ENTRY)
                                                 SGM_BINARY_LIST(DOCUMENTED_ENTRY) SGM__NATIVE_LIST(ENTRY)
                                                     SGM__WHOLE_LIST(ENTRY) ENTRY(select) ENTRY(cast)};
#define BUILT_IN_COUNT (sizeof built_in / sizeof *built_in)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const sgm_op **registered; /* guarded by the lock, and so are its counts */
static size_t registered_count, registered_capacity;

/* The library's operations first, then registered ones. With the lock. */
static const sgm_op *entry_at(size_t index)
{
    if (index < BUILT_IN_COUNT)
        return built_in[index];
    index -= BUILT_IN_COUNT;
    return index < registered_count ? registered[index] : NULL;
}

/* Linear search, with the lock; NULL without an error. */
static const sgm_op *find(const char *name)
{
    const sgm_op *op;
    for (size_t i = 0; (op = entry_at(i)) != NULL; i++)
        if (strcmp(op->name, name) == 0)
            return op;
    return NULL;
}

/* Names stand in texts of networks, so they are lower case letters, digits and underscores, a letter first.
 */
static bool is_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    return name != NULL && *name >= 'a' && *name <= 'z' && name[strspn(name, letters)] == '\0';
}

/* Checks all that the recorder and the handlers rely on: an operation is either composed of others, or has a
 * rule for types and a way to compute it. */
static sgm_status check_table(const sgm_op *op)
{
    if (op == NULL || op->api != SGM_OP_API)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "an operation for interface %u of operations was expected, not %u: compile it again",
                        (unsigned)SGM_OP_API, op != NULL ? op->api : 0);
    if (!is_name(op->name))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "'%s' cannot name an operation: use lower case letters, digits and underscores",
                        op->name != NULL ? op->name : "");
    if (op->doc == NULL || op->min_inputs < 0 || op->max_inputs < op->min_inputs)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "operation %s wants a line of documentation and a range of inputs, not %d to %d",
                        op->name, op->min_inputs, op->max_inputs);
    bool native = op->infer != NULL && (op->scalar != NULL || op->forward != NULL);
    if (op->compose == NULL && !native)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "operation %s wants compose, or infer and one of scalar and forward", op->name);
    if (op->scalar != NULL && (op->flags & SGM_OP_ELEMENTWISE) == 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "operation %s has a scalar formula, but is not elementwise",
                        op->name);
    return SGM_OK;
}

/* The same table may be registered again; another one of its name may not. With the lock. */
static sgm_status append(const sgm_op *op)
{
    const sgm_op *known = find(op->name);
    if (known == op)
        return SGM_OK;
    if (known != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "there is another operation %s (%s): choose another name",
                        op->name, known->doc);
    SGM_TRY(sgm__reserve(&registered, &registered_capacity, registered_count + 1, sizeof(const sgm_op *)));
    registered[registered_count++] = op;
    return SGM_OK;
}

/* The table must stay as long as the process. */
sgm_status sgm_register_op(const sgm_op *op)
{
    SGM_TRY(check_table(op));
    pthread_mutex_lock(&lock);
    sgm_status status = append(op);
    pthread_mutex_unlock(&lock);
    return status;
}

/* The error names the nearest operation. With the lock. */
static void fail_unknown(const char *name)
{
    size_t count = BUILT_IN_COUNT + registered_count;
    const char **names = sgm__alloc(count * sizeof(const char *));
    if (names == NULL)
        return;
    for (size_t i = 0; i < count; i++)
        names[i] = entry_at(i)->name;
    const char *nearest = sgm__nearest(name, names, count);
    if (nearest != NULL)
        sgm_fail(SGM_ERROR_NOT_FOUND, "there is no operation '%s'; did you mean '%s'?", name, nearest);
    else
        sgm_fail(SGM_ERROR_NOT_FOUND, "there is no operation '%s'", name);
    sgm__free(names);
}

const sgm_op *sgm_find_op(const char *name)
{
    if (name == NULL)
        name = "";
    pthread_mutex_lock(&lock);
    const sgm_op *op = find(name);
    if (op == NULL)
        fail_unknown(name);
    pthread_mutex_unlock(&lock);
    return op;
}

const sgm_op *sgm_op_at(size_t index)
{
    pthread_mutex_lock(&lock);
    const sgm_op *op = entry_at(index);
    pthread_mutex_unlock(&lock);
    return op;
}
