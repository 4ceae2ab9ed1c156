/* Arithmetic on tensors without a graph: a straight line through points, by the normal equations. */
#include <math.h>
#include <sigma/sigma.h>
#include <stdio.h>

#define POINTS 5

int main(void)
{
    sgm_shape matrix = sgm_shape_of(POINTS, 2), vector = sgm_shape_of(POINTS);
    /* Each row is (1, x); y is near 1 + 2 x. */
    const double rows[] = {1, 0, 1, 1, 1, 2, 1, 3, 1, 4}, values[] = {1.1, 2.9, 5.2, 6.8, 9.0};
    sgm_handler *cpu = sgm_handler_create("cpu");
    sgm_tensor *x = sgm_tensor_create_from(SGM_FLOAT64, &matrix, rows);
    sgm_tensor *y = sgm_tensor_create_from(SGM_FLOAT64, &vector, values);

    sgm_tensor *transposed = sgm_eager_transpose(cpu, x);
    sgm_tensor *squares = sgm_eager_matmul(cpu, transposed, x);
    sgm_tensor *column = sgm_tensor_reshape(y, &(sgm_shape){2, {POINTS, 1}});
    sgm_tensor *products = sgm_eager_matmul(cpu, transposed, column);
    sgm_tensor *line =
        sgm_eager_solve(cpu, squares, products); /* (2, 1): where it begins, and how steep it is */
    sgm_tensor *on_line = sgm_eager_matmul(cpu, x, line);
    sgm_tensor *differences = sgm_eager_subtract(cpu, on_line, column);

    bool good = line != NULL && differences != NULL;
    if (!good) {
        fprintf(stderr, "%s\n", sgm_last_error()); /* the first call that failed made all behind it NULL */
        return 1;
    }
    double found[2], wrong[POINTS], largest = 0;
    sgm_tensor_read(line, found, 2);
    sgm_tensor_read(differences, wrong, POINTS);
    for (int i = 0; i < POINTS; i++)
        largest = fmax(largest, fabs(wrong[i]));
    printf("y = %.2f + %.2f x, at most %.2f from the points\n", found[0], found[1], largest);

    sgm_tensor *all[] = {x, y, transposed, squares, column, products, line, on_line, differences};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        sgm_tensor_free(all[i]);
    sgm_handler_free(cpu);
    return fabs(found[1] - 1.97) > 1e-9;
}
