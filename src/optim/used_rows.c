/* Sparse parameters, of which only the rows are updated that a minibatch has used, such as an embedding's:
 * where all of a row's gradient is 0, the row and the optimiser's states of the row stay as they are.
 *
 * optimiser.c records this around the update of a parameter that is marked as sparse. Optimisers know nothing
 * of it: their update is recorded as for any parameter, and the assignments that it has added to the graph
 * are changed afterwards. Without it, momentum and weight decay would move rows that no example has used.
 * Rows are the first dimension. */
#include "optim/updates.h"

#include "graph/graph_internal.h"

sgm_value sgm__used_rows(sgm_graph *graph, sgm_value gradient)
{
    static const int32_t axes[] = {1, 2, 3, 4, 5, 6, 7};
    int32_t rank = sgm_value_type(graph, gradient).shape.rank;
    sgm_value zero = sgm_number(graph, 0);
    if (rank < 2)
        return sgm_not_equal(graph, gradient, zero);
    sgm_value size = sgm_reduce_sum(graph, sgm_absolute(graph, gradient), axes, rank - 1, true);
    return sgm_not_equal(graph, size, zero);
}

size_t sgm__assignments_so_far(const sgm_graph *graph)
{
    return graph->assignment_count;
}

sgm_value sgm__update_used_rows(sgm_graph *graph, sgm_value used, size_t assignments, sgm_value before,
                                sgm_value after)
{
    sgm_shape shape = sgm_value_type(graph, before).shape;
    for (size_t i = assignments; i < graph->assignment_count; i++) {
        sgm__assignment slot = graph->assignments[i];
        sgm_shape own = sgm_value_type(graph, slot.state).shape;
        if (own.rank != shape.rank || shape.rank == 0 || own.dims[0] != shape.dims[0])
            continue; /* a state of all rows together, such as a mean over rows */
        sgm_value kept = sgm_select(graph, used, slot.value, slot.state);
        graph->assignments[i].value = kept; /* the array may have moved */
    }
    return sgm_select(graph, used, after, before);
}
