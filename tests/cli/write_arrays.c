/* Writes an archive of named arrays for the tests of the command: points in a square, the quarter in which
 * each lies, and both numbers of the points by themselves.
 *
 *     write_arrays FILE.npz ROWS SEED     arrays x (rows, 2), y and up (rows), inputs and column (rows, 1),
 * which is up, and few (4); prints y */
#include <sigma/sigma.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state;
static double random_number(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 40) / (double)(1 << 24);
}

static sgm_status add(sgm_bundle *bundle, const char *name, const double *numbers, int64_t rows,
                      int64_t columns)
{
    sgm_shape shape = columns > 0 ? sgm_shape_of(rows, columns) : sgm_shape_of(rows);
    sgm_tensor *tensor = sgm_tensor_create(SGM_FLOAT32, &shape);
    sgm_status status = tensor != NULL ? sgm_tensor_write(tensor, numbers, (size_t)sgm_shape_elements(&shape))
                                       : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = sgm_bundle_add(bundle, name, tensor);
    sgm_tensor_free(tensor);
    return status;
}

int main(int count, char **arguments)
{
    int64_t rows = count == 4 ? atoi(arguments[2]) : 0;
    double *points = calloc((size_t)rows * 5 + 1, sizeof *points);
    if (points == NULL || rows < 1)
        return 2;
    double *quarters = points + 2 * rows, *across = quarters + rows, *up = across + rows;
    state = (uint64_t)atoi(arguments[3]);
    for (int64_t i = 0; i < rows; i++) {
        across[i] = points[2 * i] = 2 * random_number() - 1;
        up[i] = points[2 * i + 1] = 2 * random_number() - 1;
        quarters[i] = (points[2 * i] > 0) + 2 * (points[2 * i + 1] > 0);
        printf("%d\n", (int)quarters[i]);
    }
    sgm_bundle *bundle = sgm_bundle_create();
    bool good = add(bundle, "x", points, rows, 2) == SGM_OK &&
                add(bundle, "y", quarters, rows, 0) == SGM_OK &&
                add(bundle, "inputs", across, rows, 1) == SGM_OK &&
                add(bundle, "up", up, rows, 0) == SGM_OK && add(bundle, "column", up, rows, 1) == SGM_OK &&
                add(bundle, "few", (const double[]){1, 2, NAN, 5}, 4, 0) == SGM_OK &&
                sgm_bundle_save(bundle, arguments[1]) == SGM_OK;
    if (!good)
        fprintf(stderr, "write_arrays: %s\n", sgm_last_error());
    sgm_bundle_free(bundle);
    free(points);
    return !good;
}
