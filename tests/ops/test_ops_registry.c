/* Operations by name, and operations from outside. */
#include "op_values.h"

#include <pthread.h>

static sgm_value compose_swish(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                               const sgm_attributes *attributes)
{
    (void)count, (void)attributes;
    return sgm_multiply(graph, inputs[0], sgm_sigmoid(graph, inputs[0]));
}

static const sgm_op swish = {.api = SGM_OP_API,
                             .name = "swish_of_test",
                             .doc = "x * sigmoid(x)",
                             .min_inputs = 1,
                             .max_inputs = 1,
                             .compose = compose_swish};

TEST(operations_are_found_by_name)
{
    CHECK_STR(sgm_find_op("matmul")->name, "matmul");
    CHECK_STR(sgm_find_op("softmax")->name, "softmax");
    CHECK_ERROR(sgm_find_op("matmull"), "there is no operation 'matmull'; did you mean 'matmul'?");
    CHECK_ERROR(sgm_find_op("qqqqqqqqqqqq"), "there is no operation 'qqqqqqqqqqqq'");
    CHECK_INT(sgm_last_status(), SGM_ERROR_NOT_FOUND);
    CHECK_ERROR(sgm_find_op(NULL), "there is no operation ''");
}

TEST(the_list_has_every_operation_once_and_documented)
{
    for (size_t i = 0; sgm_op_at(i) != NULL; i++) {
        CHECK(sgm_op_at(i)->doc != NULL && sgm_op_at(i)->doc[0] != '\0');
        CHECK(sgm_find_op(sgm_op_at(i)->name) == sgm_op_at(i));
        bool computes =
            sgm_op_at(i)->compose != NULL || sgm_op_at(i)->scalar != NULL || sgm_op_at(i)->forward != NULL;
        CHECK(computes);
    }
}

TEST(operations_from_outside_are_registered_and_used)
{
    CHECK_OK(sgm_register_op(&swish));
    CHECK_OK(sgm_register_op(&swish)); /* again is no harm */
    CHECK(sgm_find_op("swish_of_test") == &swish);
    sgm_graph *g = sgm_graph_create();
    sgm_value x = op_constant(g, SGM_FLOAT64, NULL, OP_LIST(2));
    op_expect(g, sgm_record(g, sgm_find_op("swish_of_test"), &x, 1, NULL), OP_LIST(1.7615941559557649));
}

TEST(tables_that_cannot_work_are_refused)
{
    sgm_op op = swish;
    op.name = "matmul";
    CHECK_ERROR(sgm_register_op(&op), "there is another operation matmul");
    op.name = "Swish";
    CHECK_ERROR(sgm_register_op(&op), "'Swish' cannot name an operation");
    op.name = NULL;
    CHECK_ERROR(sgm_register_op(&op), "cannot name an operation");
    op = swish, op.name = "other", op.compose = NULL;
    CHECK_ERROR(sgm_register_op(&op),
                "operation other wants compose, or infer and one of scalar and forward");
    op = swish, op.name = "other", op.max_inputs = 0;
    CHECK_ERROR(sgm_register_op(&op), "a range of inputs, not 1 to 0");
    op = swish, op.name = "other", op.api = 99;
    CHECK_ERROR(sgm_register_op(&op), "compile it again");
    CHECK_ERROR(sgm_register_op(NULL), "was expected");
}

#define MANY 40
static char names[MANY][24];
static sgm_op many[MANY];

static void *register_half(void *argument)
{
    bool *failed = argument;
    for (int i = 0; i < MANY; i++)
        if (sgm_register_op(&many[i]) != SGM_OK || sgm_find_op(names[i]) != &many[i])
            *failed = true;
    return NULL;
}

TEST(any_thread_may_register)
{
    bool failed[2] = {false, false};
    pthread_t threads[2];
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "many_%d", i);
        many[i] = swish;
        many[i].name = names[i];
    }
    for (int i = 0; i < 2; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, register_half, &failed[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    CHECK(!failed[0] && !failed[1]);
    for (size_t i = 0; sgm_op_at(i) != NULL; i++)
        CHECK(sgm_find_op(sgm_op_at(i)->name) == sgm_op_at(i));
}
