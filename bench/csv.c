/* Makes text tables, and measures how fast they are read; bench/csv.sh runs it beside other programs.
 *
 *     csv make numbers|digits|mixed MEGABYTES FILE
 *     csv describe|extract FILE THREADS
 *
 * `numbers` are 20 columns with six decimals, `digits` the same with seventeen digits, `mixed` 12 columns of
 * whole numbers, prices, towns, dates, notes (some in quotes, some missing) and coordinates. `describe` is
 * what `sigma data` does; `extract` reads the rows for training by a pipeline that was fitted before, block
 * by block. Prints seconds, seconds of the processors, and the process's largest memory in MB. */
#include "base/base.h"
#include "measure.h"
#include <sigma/sigma.h>

#include <sys/resource.h>

#define BLOCK 65536 /* examples */

static sgm__random random_state;

static double uniform(double from, double to)
{
    return from + (to - from) * sgm__random_uniform(&random_state);
}

static int below(int bound)
{
    return (int)sgm__random_below(&random_state, (uint64_t)bound);
}

/* --- tables --- */

static int write_header(FILE *file, const char *const *names, int count)
{
    int bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += names != NULL ? fprintf(file, "%s%s", i > 0 ? "," : "", names[i])
                               : fprintf(file, "%sx%d", i > 0 ? "," : "", i);
    return bytes + fprintf(file, "\n");
}

static int write_numbers(FILE *file, const char *format)
{
    int bytes = 0;
    for (int i = 0; i < 20; i++) {
        bytes += fprintf(file, format, uniform(-10, 10));
        bytes += fprintf(file, i < 19 ? "," : "\n");
    }
    return bytes;
}

static int write_mixed(FILE *file, int row)
{
    static const char *const towns[] = {"Bonn", "Berlin", "Ulm", "Hamburg", "Frankfurt am Main", "Köln"};
    static const char *const answers[] = {"yes", "no", "unknown"};
    int bytes = fprintf(file, "%d,%d,%.2f,%s,%s,%d-%02d-%02d,%.4f,%d,", row, below(90), uniform(0, 100000),
                        towns[below(6)], answers[below(3)], 1950 + below(60), 1 + below(12), 1 + below(28),
                        uniform(0, 1), 1 + below(9));
    int kind = below(4);
    if (kind == 0)
        bytes += fprintf(file, "\"a note, of %d words\"", below(100000));
    else if (kind < 3)
        bytes += fprintf(file, "note %d", below(1000000));
    if (below(20) > 0)
        bytes += fprintf(file, ",%.6f", uniform(-90, 90));
    else
        bytes += fprintf(file, ",");
    return bytes + fprintf(file, ",%.5f,%d\n", uniform(-180, 180), below(200000));
}

static int make(const char *kind, double megabytes, const char *path)
{
    static const char *const names[] = {"id",    "age",   "price", "town", "married", "born",
                                        "score", "rooms", "note",  "lat",  "lon",     "income"};
    bool is_mixed = strcmp(kind, "mixed") == 0;
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        perror(path);
        return 1;
    }
    random_state = sgm__random_make(1, 0);
    double bytes = write_header(file, is_mixed ? names : NULL, is_mixed ? 12 : 20);
    for (int row = 0; bytes < megabytes * 1e6; row++)
        bytes += is_mixed ? write_mixed(file, row)
                          : write_numbers(file, strcmp(kind, "digits") == 0 ? "%.17g" : "%.6f");
    return fclose(file) == 0 ? 0 : 1;
}

/* --- reading --- */

static double processor_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static int fail(void)
{
    fprintf(stderr, "csv: %s\n", sgm_last_error());
    return 1;
}

/* All blocks, one after the other, as a dataset that does not fit into memory reads them. */
static int64_t extract_all(sgm_extractor *extractor)
{
    int64_t rows = 0;
    for (;;) {
        sgm_block *block;
        if (sgm_extractor_extract(extractor, BLOCK, &block) != SGM_OK)
            return -1;
        if (block == NULL)
            return rows;
        rows += block->count;
        sgm_block_free(block);
    }
}

/* The pipeline is fitted to the whole table, which is not measured. */
static int measure_extract(const char *path, int32_t threads, double *seconds, double *processors)
{
    sgm_table *table = sgm_table_open(path, .threads = threads);
    if (table == NULL)
        return fail();
    size_t last = sgm_table_columns(table) - 1;
    sgm_pipeline *pipeline = sgm_pipeline_fit(table, .targets = {sgm_table_column_at(table, last)->name});
    sgm_extractor *extractor = sgm_pipeline_extractor(pipeline, path, .threads = threads);
    int64_t rows = -1;
    *seconds = now();
    *processors = processor_seconds();
    if (extractor != NULL)
        rows = extract_all(extractor);
    *seconds = now() - *seconds;
    *processors = processor_seconds() - *processors;
    int code = rows == sgm_table_rows(table) ? 0 : fail();
    sgm_extractor_free(extractor);
    sgm_pipeline_free(pipeline);
    sgm_table_free(table);
    return code;
}

static int measure_describe(const char *path, int32_t threads, double *seconds, double *processors)
{
    *seconds = now();
    *processors = processor_seconds();
    sgm_table *table = sgm_table_open(path, .threads = threads);
    *seconds = now() - *seconds;
    *processors = processor_seconds() - *processors;
    if (table == NULL)
        return fail();
    sgm_table_free(table);
    return 0;
}

int main(int count, char **words)
{
    if (count == 5 && strcmp(words[1], "make") == 0)
        return make(words[2], strtod(words[3], NULL), words[4]);
    bool describes = count == 4 && strcmp(words[1], "describe") == 0;
    if (!describes && !(count == 4 && strcmp(words[1], "extract") == 0)) {
        fprintf(stderr, "usage: csv make numbers|digits|mixed MEGABYTES FILE\n"
                        "       csv describe|extract FILE THREADS\n");
        return 2;
    }
    double seconds, processors;
    int32_t threads = (int32_t)strtol(words[3], NULL, 10);
    int code = describes ? measure_describe(words[2], threads, &seconds, &processors)
                         : measure_extract(words[2], threads, &seconds, &processors);
    if (code == 0)
        printf("%.4f %.4f %.1f\n", seconds, processors, peak_megabytes());
    return code;
}
