/* Pipelines: the numbers of columns against scikit-learn's, missing and unknown values, what is kept as JSON,
 * and what is refused. */
#include "base/allocator.h"
#include "base/base.h"
#include "data_test.h"
#include <sigma/table.h>

#include <math.h>

/* 5 rows; `age` has one value missing, `town` too, `postcode` is a kind in spite of its digits. */
static const char pets[] = "id,age,town,postcode,born,species,note\n"
                           "a1,4,Bonn,53111,1970-01-03,dog,x1\n"
                           "a2,6.5,Ulm,53111,1970-01-01,cat,x2\n"
                           "a3,1,,9,1970-01-05,cat,x3\n"
                           "a4,9,Bonn,53111,1970-01-02,bird,x4\n"
                           "a5,2.5,Aachen,9,1970-01-04,cat,x5\n"
                           "a6,NA,Bonn,100,1970-01-03,dog,x6\n";

static const char *file(const char *name, const char *content)
{
    const char *path = data_path(name);
    CHECK_OK(sgm__file_write_atomic(path, content, strlen(content)));
    return path;
}

static sgm_table *pets_table(void)
{
    sgm_table *table = sgm_table_open(file("pets.csv", pets));
    CHECK(table != NULL);
    return table;
}

/* The first block of what an extractor gives, which is freed. */
static sgm_block *block_of(sgm_extractor *extractor)
{
    sgm_block *block = NULL;
    if (extractor != NULL)
        CHECK_OK(sgm_extractor_extract(extractor, 100, &block));
    sgm_extractor_free(extractor);
    return block;
}

/* One number of an example. */
static double value(const sgm_block *block, const char *field, int64_t example, int64_t index)
{
    return sgm_tensor_get(sgm_block_field(block, field), (int64_t[]){example, index});
}

#define CHECK_ROW(block, field, example, ...)                                                                \
    do {                                                                                                     \
        const double expected[] = {__VA_ARGS__};                                                             \
        for (int64_t k = 0; k < (int64_t)(sizeof expected / sizeof *expected); k++)                          \
            CHECK_NEAR(value(block, field, example, k), expected[k], 1e-6);                                  \
    } while (0)

TEST(columns_become_numbers)
{
    sgm_table *table = pets_table();
    sgm_pipeline *pipeline = sgm_pipeline_fit(table, .targets = {"species"}, .drop = {"id", "note"},
                                              .categorical = {"postcode"}, .scale = SGM_SCALE_NONE);
    sgm_table_free(table);
    CHECK(pipeline != NULL);
    /* age, 3 towns, 3 postcodes, born */
    CHECK_INT(sgm_pipeline_width(pipeline, "inputs"), 8);
    CHECK_INT(sgm_pipeline_width(pipeline, "targets"), 3);
    CHECK_INT(sgm_pipeline_width(pipeline, "nothing"), 0);
    CHECK_STR(sgm_pipeline_column(pipeline, 0), "age");
    CHECK_STR(sgm_pipeline_column(pipeline, 4), "species");
    CHECK(sgm_pipeline_column(pipeline, 5) == NULL);
    const char *const *classes = sgm_pipeline_classes(pipeline);
    CHECK_STR(classes[0], "bird");
    CHECK_STR(classes[1], "cat");
    CHECK_STR(classes[2], "dog");
    CHECK(classes[3] == NULL);
    sgm_block *block = block_of(sgm_pipeline_extractor(pipeline, data_path("pets.csv")));
    CHECK_INT(block->count, 6);
    /* towns by their bytes: Aachen, Bonn, Ulm; postcodes by their size: 9, 100, 53111 */
    CHECK_ROW(block, "inputs", 0, 4, 0, 1, 0, 0, 0, 1, 2);
    CHECK_ROW(block, "inputs", 2, 1, 0, 0, 0, 1, 0, 0, 4);
    CHECK_ROW(block, "inputs", 4, 2.5, 1, 0, 0, 1, 0, 0, 3);
    CHECK_ROW(block, "inputs", 5, 4.6, 0, 1, 0, 0, 1, 0, 2);
    CHECK_ROW(block, "targets", 0, 0, 0, 1);
    CHECK_ROW(block, "targets", 3, 1, 0, 0);
    sgm_block_free(block);
    sgm_pipeline_free(pipeline);
}

/* scikit-learn 1.9.1: StandardScaler, MinMaxScaler, RobustScaler of [4, 6.5, 1, 9, 2.5]. */
TEST(scales)
{
    static const struct {
        sgm_scale scale;
        double expected[5];
    } cases[] = {{SGM_SCALE_STANDARD, {-0.210299891, 0.665949655, -1.26179935, 1.5421992, -0.736049619}},
                 {SGM_SCALE_MIN_MAX, {0.375, 0.6875, 0, 1, 0.1875}},
                 {SGM_SCALE_ROBUST, {0, 0.625, -0.75, 1.25, -0.375}},
                 {SGM_SCALE_NONE, {4, 6.5, 1, 9, 2.5}}};
    sgm_table *table = sgm_table_open(file("x.csv", "x,same,y\n4,7,4\n6.5,7,6.5\n1,7,1\n9,7,9\n2.5,7,2.5\n"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sgm_pipeline *pipeline = sgm_pipeline_fit(table, .targets = {"y"}, .scale = cases[i].scale);
        sgm_block *block = block_of(sgm_pipeline_extractor(pipeline, data_path("x.csv")));
        CHECK(sgm_pipeline_classes(pipeline) == NULL);
        for (int64_t row = 0; row < 5; row++) {
            CHECK_NEAR(value(block, "inputs", row, 0), cases[i].expected[row], 1e-6);
            CHECK_NEAR(value(block, "targets", row, 0), cases[i].expected[row], 1e-6);
            /* a column of equal values is shifted only */
            CHECK_NEAR(value(block, "inputs", row, 1), cases[i].scale == SGM_SCALE_NONE ? 7 : 0, 1e-6);
        }
        CHECK_NEAR(sgm_pipeline_restore(pipeline, 0, cases[i].expected[3]), 9, 1e-7);
        CHECK_NEAR(sgm_pipeline_restore(pipeline, 2, 5), 5, 0); /* no such target */
        sgm_block_free(block);
        sgm_pipeline_free(pipeline);
    }
    sgm_table_free(table);
}

/* --- dates --- */

/* Leap days, years before 1970, times; the last row has no date. */
static const char dated[] =
    "born,y\n2024-02-29T13:00,1\n1999-12-31T00:30,2\n2021-07-05 23:59:59.5,3\n1969-12-31,4\n,5\n";

static sgm_block *dates_of(sgm_column_dates dates, sgm_scale scale)
{
    sgm_table *table = sgm_table_open(file("dates.csv", dated));
    sgm_pipeline *pipeline = sgm_pipeline_fit(table, .targets = {"y"}, .dates = {dates},
                                              .scales = {{"born", scale}}, .scale = SGM_SCALE_NONE);
    sgm_table_free(table);
    CHECK(pipeline != NULL);
    char *json = sgm_pipeline_json(pipeline); /* what is kept does the same */
    sgm_pipeline *again = sgm_pipeline_parse(json);
    sgm_block *block = block_of(sgm_pipeline_extractor(again, data_path("dates.csv")));
    sgm_string_free(json);
    sgm_pipeline_free(pipeline);
    sgm_pipeline_free(again);
    return block;
}

/* Python's datetime and math: the year scaled to mean 0 and deviation 1, sine and cosine of the month, of the
 * weekday and of the hour. The missing date is the mean one, Monday 2003-12-01 21:22. */
TEST(dates_in_parts)
{
    sgm_block *block = dates_of((sgm_column_dates){"born", SGM_DATE_PARTS, NULL}, SGM_SCALE_STANDARD);
    CHECK_INT(sgm_tensor_shape(sgm_block_field(block, "inputs"))->dims[1], 7);
    CHECK_ROW(block, "inputs", 0, 0.942999178, 0.5, 0.866025404, 0.433883739, -0.900968868, -0.258819045,
              -0.965925826);
    CHECK_ROW(block, "inputs", 1, -0.19314441, -0.5, 0.866025404, -0.433883739, -0.900968868, 0, 1);
    CHECK_ROW(block, "inputs", 2, 0.806661948, 0, -1, 0, 1, -0.258819045, 0.965925826);
    CHECK_ROW(block, "inputs", 3, -1.55651672, -0.5, 0.866025404, 0.974927912, -0.222520934, 0, 1);
    CHECK_ROW(block, "inputs", 4, -0.0113614359, -0.5, 0.866025404, 0, 1, -0.707106781, 0.707106781);
    sgm_block_free(block);
    block = dates_of((sgm_column_dates){"born", SGM_DATE_PARTS, NULL}, SGM_SCALE_MIN_MAX);
    CHECK_ROW(block, "inputs", 1, 30.0 / 55);
    sgm_block_free(block);
    /* no hour where no row has a time */
    sgm_table *table = sgm_table_open(file("d.csv", "d,y\n2000-01-01,1\n0000-01-01,2\n9999-12-31,3\n"));
    sgm_pipeline *pipeline = sgm_pipeline_fit(table, .targets = {"y"}, .dates = {{"d", SGM_DATE_PARTS, NULL}},
                                              .scale = SGM_SCALE_NONE);
    sgm_table_free(table);
    CHECK_INT(sgm_pipeline_width(pipeline, "inputs"), 5);
    block = block_of(sgm_pipeline_extractor(pipeline, data_path("d.csv")));
    /* Saturday, Saturday, Friday */
    CHECK_ROW(block, "inputs", 0, 2000, 0, 1, -0.974927912, -0.222520934);
    CHECK_ROW(block, "inputs", 1, 0, 0, 1, -0.974927912, -0.222520934);
    CHECK_ROW(block, "inputs", 2, 9999, -0.5, 0.866025404, -0.433883739, -0.900968868);
    sgm_block_free(block);
    sgm_pipeline_free(pipeline);
}

TEST(dates_as_ages)
{
    /* the newest date is 2024-02-29T13:00; the mean is 7394.65 days before it */
    sgm_block *block = dates_of((sgm_column_dates){"born", SGM_DATE_AGE, NULL}, SGM_SCALE_NONE);
    CHECK_NEAR(value(block, "inputs", 0, 0), 0, 0);
    CHECK_NEAR(value(block, "inputs", 3, 0), 19783.5416667, 1e-3);
    CHECK_NEAR(value(block, "inputs", 4, 0), 7394.6510431, 1e-3);
    sgm_block_free(block);
    block = dates_of((sgm_column_dates){"born", SGM_DATE_AGE, "01.03.2024"}, SGM_SCALE_NONE);
    CHECK_NEAR(value(block, "inputs", 0, 0), 11.0 / 24, 1e-6);
    sgm_block_free(block);
    /* scaled, an age is a day with its sign turned */
    sgm_block *days = dates_of((sgm_column_dates){"born", SGM_DATE_DAYS, NULL}, SGM_SCALE_ROBUST);
    block = dates_of((sgm_column_dates){"born", SGM_DATE_AGE, NULL}, SGM_SCALE_ROBUST);
    for (int64_t i = 0; i < 5; i++)
        CHECK_NEAR(value(block, "inputs", i, 0), -value(days, "inputs", i, 0), 1e-6);
    sgm_block_free(days);
    sgm_block_free(block);
}

/* They are divided by their mean in the table, 2; a file without the column has the weight 1 in each row. */
TEST(rows_have_weights)
{
    sgm_table *table = sgm_table_open(file("w.csv", "x,sure,y\n1,0,2\n2,5,3\n3,1,5\n"));
    sgm_pipeline *fitted =
        sgm_pipeline_fit(table, .targets = {"y"}, .weights = "sure", .scale = SGM_SCALE_NONE);
    char *json = sgm_pipeline_json(fitted), *network = sgm_pipeline_network(fitted);
    sgm_pipeline *pipeline = sgm_pipeline_parse(json);
    CHECK(strstr(json, "\"name\":\"sure\",\"kind\":\"number\",\"field\":\"weights\",\"required\":true") !=
          NULL);
    CHECK_STR(network,
              "input(1) + dense(64, relu) + dense(64, relu) + dense(1) + mean_squared(weights=weights)");
    CHECK_INT(sgm_pipeline_width(pipeline, "inputs"), 1);
    CHECK_INT(sgm_pipeline_width(pipeline, "weights"), 1);
    CHECK_STR(sgm_pipeline_column(pipeline, 2), "sure");
    sgm_block *block = block_of(sgm_pipeline_extractor(pipeline, data_path("w.csv")));
    for (int64_t i = 0; i < 3; i++)
        CHECK_NEAR(value(block, "weights", i, 0), ((const double[]){0, 2.5, 0.5})[i], 1e-7);
    sgm_block_free(block);
    block = block_of(sgm_pipeline_extractor(pipeline, file("new.csv", "y,x\n4,5\n")));
    CHECK_NEAR(value(block, "weights", 0, 0), 1, 0);
    sgm_block_free(block);
    sgm_extractor *extractor = sgm_pipeline_extractor(pipeline, file("new.csv", "y,x,sure\n4,5,-1\n"));
    CHECK_INT(sgm_extractor_extract(extractor, 9, &block), SGM_ERROR_FORMAT);
    CHECK(strstr(sgm_last_error(), "line 2, column 'sure': \"-1\" is below 0, and a weight is 0 or more"));
    sgm_extractor_free(extractor);
    CHECK_ERROR(sgm_pipeline_fit(table, .targets = {"y"}, .weights = "y"), "column 'y' has the weights, and");
    sgm_string_free(json);
    sgm_string_free(network);
    sgm_pipeline_free(pipeline);
    sgm_pipeline_free(fitted);
    sgm_table_free(table);
    table = sgm_table_open(file("w.csv", "x,sure,y\n1,0,2\n2,0,3\n"));
    CHECK_ERROR(sgm_pipeline_fit(table, .targets = {"y"}, .weights = "sure"),
                "weights: column 'sure' should hold numbers from 0 on, of which some are above 0");
    sgm_table_free(table);
}

/* Behind the targets the numbers of an output go on with their standard deviations. */
TEST(deviations_have_units)
{
    sgm_table *table = sgm_table_open(file("d.csv", "x,y,z\n1,10,0\n2,30,4\n"));
    sgm_pipeline *pipeline = sgm_pipeline_fit(table, .targets = {"y", "z"}, .scale = SGM_SCALE_MIN_MAX);
    sgm_table_free(table);
    CHECK_NEAR(sgm_pipeline_restore(pipeline, 0, 0.5), 20, 1e-12);
    CHECK_NEAR(sgm_pipeline_restore(pipeline, 2, 0.5), 10, 1e-12);
    CHECK_NEAR(sgm_pipeline_restore(pipeline, 3, 0.5), 2, 1e-12);
    CHECK_NEAR(sgm_pipeline_restore(pipeline, 4, 0.5), 0.5, 0);
    sgm_pipeline_free(pipeline);
}

TEST(columns_have_choices_of_their_own)
{
    sgm_table *table = pets_table();
    sgm_pipeline *pipeline = sgm_pipeline_fit(
        table, .targets = {"species"}, .drop = {"id", "note", "postcode"}, .scale = SGM_SCALE_NONE,
        .scales = {{"age", SGM_SCALE_MIN_MAX}}, .impute = SGM_IMPUTE_REFUSE,
        .imputes = {{"age", SGM_IMPUTE_MEDIAN}, {"town", SGM_IMPUTE_FLAG}});
    sgm_block *block = block_of(sgm_pipeline_extractor(pipeline, data_path("pets.csv")));
    /* age, 3 towns and their flag, born in days */
    CHECK_ROW(block, "inputs", 1, 0.6875, 0, 0, 1, 0, 0);
    CHECK_ROW(block, "inputs", 2, 0, 0, 0, 0, 1, 4);
    CHECK_ROW(block, "inputs", 5, 0.375, 0, 1, 0, 0, 2);
    sgm_block_free(block);
    sgm_pipeline_free(pipeline);
    pipeline = sgm_pipeline_fit(table, .targets = {"species"}, .drop = {"id", "note", "born"},
                                .embedding = {{"town", 8}, {"postcode", 0}});
    char *network = sgm_pipeline_network(pipeline);
    CHECK(strstr(network, "input(1, name=\"town\") + embedding(4, 8) + flatten") != NULL);
    CHECK(strstr(network, "input(1, name=\"postcode\") + embedding(4, 2) + flatten") != NULL);
    sgm_string_free(network);
    sgm_pipeline_free(pipeline);
    CHECK_ERROR(sgm_pipeline_fit(table, .targets = {"species"}, .scales = {{"town", SGM_SCALE_NONE}}),
                "scale: column 'town' holds categories, which have no scale");
    CHECK_ERROR(sgm_pipeline_fit(table, .targets = {"species"}, .dates = {{"age", SGM_DATE_AGE, NULL}}),
                "dates: column 'age' holds numbers and no dates");
    CHECK_ERROR(sgm_pipeline_fit(table, .targets = {"born"}, .dates = {{"born", SGM_DATE_AGE, NULL}}),
                "column 'born' is a target, and named once more");
    CHECK_ERROR(sgm_pipeline_fit(table, .targets = {"age"}, .dates = {{"born", SGM_DATE_AGE, "never"}}),
                "dates: column 'born': \"never\" is no date, such as 2026-11-23");
    CHECK_ERROR(
        sgm_pipeline_fit(table, .targets = {"age"}, .dates = {{"born", SGM_DATE_PARTS, "2000-01-01"}}),
        "dates: column 'born': only an age has a reference date");
    CHECK_ERROR(sgm_pipeline_fit(table, .targets = {"age"}, .embedding = {{"town", -1}}),
                "embedding: column 'town': a size from 1 to 10000 was expected, -1 came");
    CHECK_ERROR(sgm_pipeline_fit(table, .targets = {"age"}, .imputes = {{"twon", SGM_IMPUTE_FLAG}}),
                "impute: ");
    sgm_table_free(table);
}

TEST(missing_values)
{
    /* age: mean 4.6, median 4; the most frequent of both columns is their first here */
    static const struct {
        sgm_impute impute;
        double age[2], town[4]; /* of the row without the value; flags behind */
    } cases[] = {{SGM_IMPUTE_MEAN, {4.6}, {0, 0, 0}},
                 {SGM_IMPUTE_MEDIAN, {4}, {0, 0, 0}},
                 {SGM_IMPUTE_MOST_FREQUENT, {1}, {0, 1, 0}},
                 {SGM_IMPUTE_FLAG, {4.6, 1}, {0, 0, 0, 1}}};
    sgm_table *table = pets_table();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sgm_pipeline *pipeline =
            sgm_pipeline_fit(table, .targets = {"species"}, .drop = {"id", "note", "born", "postcode"},
                             .impute = cases[i].impute, .scale = SGM_SCALE_NONE);
        sgm_block *block = block_of(sgm_pipeline_extractor(pipeline, data_path("pets.csv")));
        int64_t flags = cases[i].impute == SGM_IMPUTE_FLAG;
        CHECK_INT(sgm_pipeline_width(pipeline, "inputs"), 4 + 2 * flags);
        for (int64_t k = 0; k < 1 + flags; k++)
            CHECK_NEAR(value(block, "inputs", 5, k), cases[i].age[k], 1e-6);
        for (int64_t k = 0; k < 3 + flags; k++)
            CHECK_NEAR(value(block, "inputs", 2, 1 + flags + k), cases[i].town[k], 0);
        if (flags == 1) /* a row that has all */
            CHECK_ROW(block, "inputs", 0, 4, 0, 0, 1, 0, 0);
        sgm_block_free(block);
        sgm_pipeline_free(pipeline);
    }
    sgm_pipeline *pipeline = sgm_pipeline_fit(table, .targets = {"species"}, .impute = SGM_IMPUTE_REFUSE);
    sgm_extractor *extractor = sgm_pipeline_extractor(pipeline, data_path("pets.csv"));
    sgm_block *block = NULL;
    CHECK_INT(sgm_extractor_extract(extractor, 100, &block), SGM_ERROR_FORMAT);
    CHECK(strstr(
        sgm_last_error(),
        "pets.csv: line 7, column 'age': the value is missing, which 'impute' refuses; leave the row out"));
    sgm_extractor_free(extractor);
    sgm_pipeline_free(pipeline);
    sgm_table_free(table);
}

TEST(embeddings_have_fields_of_their_own)
{
    sgm_table *table = pets_table();
    sgm_pipeline *pipeline = sgm_pipeline_fit(table, .targets = {"species"}, .drop = {"id", "note"},
                                              .embedding = {{.column = "town"}, {.column = "postcode"}});
    sgm_table_free(table);
    CHECK_INT(sgm_pipeline_width(pipeline, "inputs"), 2);
    CHECK_INT(sgm_pipeline_width(pipeline, "town"), 1);
    sgm_block *block = block_of(sgm_pipeline_extractor(pipeline, data_path("pets.csv")));
    CHECK_NEAR(value(block, "town", 0, 0), 1, 0);
    CHECK_NEAR(value(block, "town", 1, 0), 2, 0);
    CHECK_NEAR(value(block, "town", 2, 0), 3, 0); /* missing */
    CHECK_NEAR(value(block, "postcode", 5, 0), 1, 0);
    sgm_block_free(block);
    sgm_pipeline_free(pipeline);
}

/* Input layers are named after fields, and take letters, digits, '_' and '-' only. */
TEST(fields_have_names_that_networks_can_have)
{
    sgm_table *table =
        sgm_table_open(file("t.csv", "\"home \"\"town, #\",x,home_town,y\na,1,c,2\nb,2,d,3\n"));
    sgm_pipeline *pipeline = sgm_pipeline_fit(
        table, .targets = {"y"}, .embedding = {{.column = "home \"town, #"}}, .drop = {"home_town"});
    CHECK_INT(sgm_pipeline_width(pipeline, "home__town___"), 1);
    char *network = sgm_pipeline_network(pipeline);
    CHECK(network != NULL && strstr(network, "name=\"home__town___\"") != NULL);
    sgm_string_free(network);
    sgm_pipeline_free(pipeline);
    sgm_table_free(table);
    table = sgm_table_open(file("t.csv", "home town,home_town,y\na,c,2\nb,d,3\n"));
    CHECK_ERROR(sgm_pipeline_fit(table, .targets = {"y"},
                                 .embedding = {{.column = "home town"}, {.column = "home_town"}}),
                "column 'home_town' and another one would both be the field 'home_town'");
    sgm_table_free(table);
}

/* Columns are found by their names, in any order; others are passed over. */
TEST(other_files)
{
    sgm_table *table = pets_table();
    sgm_pipeline *pipeline = sgm_pipeline_fit(table, .targets = {"species"}, .drop = {"id", "note", "born"},
                                              .scale = SGM_SCALE_NONE);
    sgm_table_free(table);
    const char *path = file("new.csv", "more;town;postcode;age\n0;Ulm;7;3\n0;Rom;8;4\n");
    CHECK_ERROR(sgm_pipeline_extractor(NULL, path), "a pipeline");
    sgm_extractor *extractor = sgm_pipeline_extractor(pipeline, path);
    sgm_block *block = NULL;
    CHECK_INT(sgm_extractor_extract(extractor, 9, &block), SGM_ERROR_NOT_FOUND);
    CHECK(strstr(sgm_last_error(), "new.csv has no column 'species'"));
    sgm_extractor_free(extractor);
    extractor = sgm_pipeline_extractor(pipeline, path, .inputs_only = true);
    CHECK_OK(sgm_extractor_extract(extractor, 1, &block));
    CHECK_INT(block->field_count, 1);
    CHECK_ROW(block, "inputs", 0, 3, 0, 0, 1, 7);
    sgm_block_free(block);
    CHECK_INT(sgm_extractor_extract(extractor, 1, &block), SGM_ERROR_FORMAT);
    CHECK(strstr(sgm_last_error(),
                 "new.csv: line 3, column 'town': \"Rom\" is none of the 3 categories that the pipeline "
                 "knows (Aachen, Bonn, ...); correct it, leave it empty, or ignore unknown ones "
                 "(--unknown=ignore, ignore_unknown)"));
    sgm_extractor_free(extractor);
    extractor = sgm_pipeline_extractor(pipeline, path, .inputs_only = true, .ignore_unknown = true);
    for (int pass = 0; pass < 2; pass++) { /* the header is read anew */
        CHECK_OK(sgm_extractor_extract(extractor, 9, &block));
        CHECK_INT(block->count, 2);
        CHECK_ROW(block, "inputs", 1, 4, 0, 0, 0, 8);
        sgm_block_free(block);
        CHECK_OK(sgm_extractor_rewind(extractor));
    }
    sgm_extractor_free(extractor);

    extractor = sgm_pipeline_extractor(pipeline, file("new.csv", "age,town,postcode\nold,Ulm,1\n"),
                                       .inputs_only = true);
    CHECK_INT(sgm_extractor_extract(extractor, 9, &block), SGM_ERROR_FORMAT);
    CHECK(strstr(sgm_last_error(),
                 "new.csv: line 2, column 'age': \"old\" is no number; correct it, or leave it empty"));
    sgm_extractor_free(extractor);
    extractor = sgm_pipeline_extractor(pipeline, file("new.csv", "Age,town,postcode,species\n"));
    CHECK_INT(sgm_extractor_extract(extractor, 9, &block), SGM_ERROR_NOT_FOUND);
    CHECK(strstr(sgm_last_error(), "new.csv has no column 'age'; did you mean 'Age'?"));
    sgm_extractor_free(extractor);
    extractor = sgm_pipeline_extractor(pipeline, file("new.csv", "age,town,postcode,species\n1,Ulm,1,fish\n"),
                                       .ignore_unknown = true);
    CHECK_INT(sgm_extractor_extract(extractor, 9, &block), SGM_ERROR_FORMAT);
    CHECK(strstr(sgm_last_error(), "line 2, column 'species': \"fish\" is none of the 3"));
    sgm_extractor_free(extractor);
    extractor =
        sgm_pipeline_extractor(pipeline, file("new.csv", "age,town,postcode,species\n1e300,Ulm,1,cat\n"));
    CHECK_INT(sgm_extractor_extract(extractor, 9, &block), SGM_ERROR_NUMERIC);
    CHECK(strstr(sgm_last_error(), "\"1e300\" is too large for float32"));
    sgm_extractor_free(extractor);
    extractor = sgm_pipeline_extractor(pipeline, file("new.csv", "age,town,postcode,species\n1,Ulm,1,\n"));
    CHECK_INT(sgm_extractor_extract(extractor, 9, &block), SGM_ERROR_FORMAT);
    CHECK(strstr(
        sgm_last_error(),
        "column 'species': the target is missing; fill it in, or leave such rows out: missing_target: skip"));
    sgm_extractor_free(extractor);
    sgm_pipeline_free(pipeline);
}

TEST(rows_in_memory)
{
    sgm_table *table = pets_table();
    sgm_pipeline *pipeline = sgm_pipeline_fit(table, .targets = {"species"}, .drop = {"id", "note", "born"},
                                              .scale = SGM_SCALE_NONE);
    sgm_table_free(table);
    const char *const names[] = {"postcode", "nothing", "age", "town"};
    const char *const cells[] = {"1", "x", "2", "Bonn", "3", NULL, NULL, "Ulm"};
    sgm_block *block = sgm_pipeline_apply(pipeline, names, 4, cells, 2);
    CHECK(block != NULL);
    CHECK_INT(block->count, 2);
    CHECK_ROW(block, "inputs", 0, 2, 0, 1, 0, 1);
    CHECK_ROW(block, "inputs", 1, 4.6, 0, 0, 1, 3);
    sgm_block_free(block);
    CHECK_ERROR(sgm_pipeline_apply(pipeline, names, 3, cells, 1), "what is asked has no column 'town'");
    CHECK_ERROR(sgm_pipeline_apply(pipeline, names, 4, cells, 0), "at least one row");
    const char *const wrong[] = {"1", "x", "two", "Bonn"};
    CHECK_ERROR(sgm_pipeline_apply(pipeline, names, 4, wrong, 1),
                "row 1, column 'age': \"two\" is no number");
    sgm_pipeline_free(pipeline);
}

TEST(tables_without_a_header)
{
    sgm_table *table = sgm_table_open(file("h.csv", "1;x;2,5\n3;y;4,5\n"), .decimal = ',', .missing = "-");
    sgm_pipeline *pipeline = sgm_pipeline_fit(table, .targets = {"1"}, .scale = SGM_SCALE_NONE);
    sgm_table_free(table);
    const char *path = file("new.csv", "7;y;-\n");
    sgm_block *block = block_of(sgm_pipeline_extractor(pipeline, path, .separator = ';'));
    CHECK_ROW(block, "inputs", 0, 7, 3.5);
    CHECK_ROW(block, "targets", 0, 0, 1);
    sgm_block_free(block);
    sgm_extractor *extractor = sgm_pipeline_extractor(pipeline, file("new.csv", "7;y\n"));
    CHECK_INT(sgm_extractor_extract(extractor, 9, &block), SGM_ERROR_FORMAT);
    CHECK(strstr(sgm_last_error(), "the pipeline reads column 2 (from 0), but the table has 2"));
    sgm_extractor_free(extractor);
    sgm_pipeline_free(pipeline);
}

/* Numbers that are kinds are the same kind however they are written, and stand in their order. */
TEST(categories_of_numbers)
{
    sgm_table *table = sgm_table_open(
        file("k.csv", "k;y\n10,0;1\n1;2\n1,0;3\n1,00;4\n2,5;5\n-0;6\n0;7\n;8\n"), .decimal = ',');
    sgm_pipeline *pipeline = sgm_pipeline_fit(table, .targets = {"y"}, .categorical = {"k"},
                                              .scale = SGM_SCALE_NONE, .impute = SGM_IMPUTE_MOST_FREQUENT);
    sgm_table_free(table);
    CHECK_INT(sgm_pipeline_width(pipeline, "inputs"), 4); /* 0, 1, 2.5, 10 */
    sgm_block *block = block_of(sgm_pipeline_extractor(pipeline, data_path("k.csv")));
    static const int64_t places[] = {3, 1, 1, 1, 2, 0, 0};
    for (int64_t row = 0; row < 7; row++)
        for (int64_t i = 0; i < 4; i++)
            CHECK_NEAR(value(block, "inputs", row, i), i == places[row], 0);
    sgm_block_free(block);
    char *json = sgm_pipeline_json(pipeline);
    CHECK(strstr(json, "\"categories\":[\"0\",\"1\",\"2.5\",\"10\"]") != NULL);
    sgm_string_free(json);
    sgm_pipeline_free(pipeline);
}

/* Fields have shorter names than columns: they are cut, where that leaves them different. */
TEST(long_names_of_fields)
{
    sgm_table *table = sgm_table_open(file(
        "l.csv",
        "the district in which the house stands,the district in which the house stood,y\na,b,1\nb,a,2\n"));
    sgm_pipeline *pipeline = sgm_pipeline_fit(
        table, .targets = {"y"}, .embedding = {{.column = "the district in which the house stands"}});
    CHECK_INT(sgm_pipeline_width(pipeline, "the_district_in_which_the_house"), 1);
    sgm_pipeline_free(pipeline);
    CHECK_ERROR(sgm_pipeline_fit(table, .targets = {"y"},
                                 .embedding = {{.column = "the district in which the house stands"},
                                               {.column = "the district in which the house stood"}}),
                "would both be the field 'the_district_in_which_the_house'; rename one");
    sgm_table_free(table);
}

TEST(numbers_without_a_finite_mean)
{
    sgm_table *table = sgm_table_open(file("x.csv", "x,y\n1e308,1\n-1e308,2\n1e308,3\n"));
    CHECK_ERROR(sgm_pipeline_fit(table, .targets = {"y"}),
                "x.csv: the numbers of column 'x' are too large for their mean or range; drop the column");
    sgm_table_free(table);
}

/* --- what is kept --- */

static const char kept[] = "{\"version\":1,\"header\":true,\"decimal\":\".\",\"columns\":["
                           "{\"name\":\"age\",\"kind\":\"number\",\"field\":\"inputs\",\"impute\":4.0,"
                           "\"offset\":4.0,\"factor\":4.0},"
                           "{\"name\":\"town\",\"kind\":\"category\",\"field\":\"inputs\",\"impute\":null,"
                           "\"categories\":[\"Aachen\",\"Bonn\","
                           "\"Ulm\"]},"
                           "{\"name\":\"postcode\",\"kind\":\"category\",\"field\":\"postcode\",\"impute\":"
                           "null,\"categories\":[\"9\",\"100\","
                           "\"53111\"]},"
                           "{\"name\":\"species\",\"kind\":\"category\",\"field\":\"targets\",\"required\":"
                           "true,\"categories\":[\"bird\",\"cat\","
                           "\"dog\"]}]}";

TEST(what_is_kept_reads_back)
{
    sgm_table *table = pets_table();
    sgm_pipeline *pipeline = sgm_pipeline_fit(table, .targets = {"species"}, .drop = {"id", "note", "born"},
                                              .embedding = {{.column = "postcode"}},
                                              .scale = SGM_SCALE_ROBUST, .impute = SGM_IMPUTE_MEDIAN);
    sgm_table_free(table);
    char *json = sgm_pipeline_json(pipeline);
    CHECK_STR(json, kept);
    sgm_pipeline *again = sgm_pipeline_parse(json);
    char *second = sgm_pipeline_json(again);
    CHECK_STR(second, kept);
    sgm_block *one = block_of(sgm_pipeline_extractor(pipeline, data_path("pets.csv"))),
              *two = block_of(sgm_pipeline_extractor(again, data_path("pets.csv")));
    for (int32_t i = 0; i < one->field_count; i++)
        CHECK(memcmp(sgm_tensor_data(one->fields[i].values), sgm_tensor_data(two->fields[i].values),
                     sizeof(float) * (size_t)sgm_shape_elements(sgm_tensor_shape(one->fields[i].values))) ==
              0);
    sgm_block_free(one);
    sgm_block_free(two);
    sgm_string_free(json);
    sgm_string_free(second);
    sgm_pipeline_free(pipeline);
    sgm_pipeline_free(again);
}

/* The text with a part of it replaced, once. */
static char *with(const char *part, const char *other)
{
    const char *at = strstr(kept, part);
    CHECK(at != NULL);
    return sgm__format("%.*s%s%s", (int)(at - kept), kept, other, at + strlen(part));
}

TEST(what_is_kept_is_checked)
{
    static const struct {
        const char *part, *other, *message;
    } cases[] = {
        {"\"version\":1", "\"version\":3",
         "'version': 1 or 2, which this version of Sigma reads, was expected"},
        {"\"factor\":4.0", "\"factor\":4.0,\"dates\":\"age\"", "'dates': age or parts, of a date"},
        {"\"kind\":\"number\"", "\"kind\":\"date\",\"dates\":\"year\"", "'dates': age or parts"},
        {"\"kind\":\"number\"", "\"kind\":\"date\",\"dates\":\"age\"", "'reference': a number"},
        {"\"kind\":\"number\",\"field\":\"inputs\",\"impute\":4.0",
         "\"kind\":\"date\",\"dates\":\"parts\",\"field\":\"inputs\",\"impute\":1e9",
         "'impute': a day of the years 0 to 9999 was expected"},
        {"\"kind\":\"category\"", "\"kind\":\"category\",\"embedding\":8",
         "'embedding': a whole number from 1 to 10,000, of a field of its own, was expected"},
        {"\"field\":\"postcode\"", "\"field\":\"postcode\",\"embedding\":0", "'embedding': a whole number"},
        {"\"decimal\":\".\"", "\"decimal\":\";\"", "'decimal'"},
        {"\"header\":true", "\"header\":1", "'header': true or false was expected"},
        {"\"header\":true", "\"header\":false",
         "column 0 (from 0): 'name': the number of a column was expected"},
        {"\"impute\":4.0", "\"impute\":\"4\"", "column 0 (from 0): 'impute': a number was expected"},
        {"\"impute\":4.0,", "", "'impute': a number"},
        {"\"impute\":4.0", "\"impute\":1e300",
         "'impute': a number that fits float32 when it is scaled was expected"},
        {"\"factor\":4.0", "\"factor\":0", "'factor': a number above 0 was expected"},
        {"\"factor\":4.0", "\"factor\":4.0,\"speed\":1", "'speed' is no member of it"},
        {"\"kind\":\"number\"", "\"kind\":\"story\"", "'kind': number, date, category or text was expected"},
        {"\"impute\":null", "\"impute\":\"Rom\"",
         "column 1 (from 0): 'impute': one of the categories, or null"},
        {"\"impute\":null", "\"impute\":null,\"required\":true", "'impute': nothing beside 'required'"},
        {"\"Bonn\"", "\"Ulm\"", "column 'town' has the category 'Ulm' twice"},
        {"\"Bonn\"", "7", "'categories': a list of texts"},
        {"[\"bird\",\"cat\",\"dog\"]", "[]", "a list of 1 to 1,000 texts"},
        {"\"field\":\"inputs\"", "\"field\":\"age\"",
         "the field 'age' is for one column of categories or texts alone"},
        {"\"field\":\"inputs\"", "\"field\":\"targets\"", "columns of targets come last"},
        {"\"field\":\"targets\"", "\"field\":\"inputs\"",
         "'columns': at least one column of inputs and one of targets"},
        {"\"field\":\"postcode\"", "\"field\":\"a name that is much longer than fields may have\"",
         "column 2 (from 0)"},
        {"{\"version\"", "[\"version\"", "a pipeline: line 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = with(cases[i].part, cases[i].other);
        CHECK_ERROR(sgm_pipeline_parse(text), cases[i].message);
        sgm__free(text);
    }
    for (size_t length = 0; length < strlen(kept); length++) {
        char *text = sgm__strndup(kept, length);
        CHECK_ERROR(sgm_pipeline_parse(text), "a pipeline: line 1");
        sgm__free(text);
    }
    CHECK_ERROR(sgm_pipeline_parse(NULL), "a text");
    CHECK_ERROR(sgm_pipeline_parse("[]"), "'version'");
}

TEST(options_are_checked)
{
    sgm_table *table = pets_table();
    CHECK_ERROR(sgm_pipeline_fit(NULL, .targets = {"age"}), "a table");
    CHECK_ERROR(sgm_pipeline_fit(table, .drop = {"age"}), "targets: which column is to be predicted?");
    CHECK_ERROR(sgm_pipeline_fit(table, .targets = {"specis"}), "targets: ");
    CHECK(strstr(sgm_last_error(), "pets.csv has no column 'specis'; did you mean 'species'?"));
    CHECK_ERROR(sgm_pipeline_fit(table, .targets = {"species"}, .drop = {"nmae"}), "drop: ");
    CHECK_ERROR(sgm_pipeline_fit(table, .targets = {"age"}, .drop = {"age"}),
                "column 'age' is a target, and named once more");
    CHECK_ERROR(sgm_pipeline_fit(table, .targets = {"age", "age"}), "targets: column 'age' is named twice");
    CHECK_ERROR(sgm_pipeline_fit(table, .targets = {"age", "species"}), "several targets have to be numbers");
    CHECK_ERROR(sgm_pipeline_fit(table, .targets = {"age"}, .scale = (sgm_scale)9), "a scale from 0 to 3");
    CHECK_ERROR(sgm_pipeline_fit(table, .targets = {"age"},
                                 .drop = {"id", "town", "postcode", "born", "species", "note"}),
                "no column is left to predict the targets from");
    sgm_table_free(table);
    table = sgm_table_open(file("t.csv", "inputs,empty,y\na,,1\nb,,2\n"));
    CHECK_ERROR(sgm_pipeline_fit(table, .targets = {"empty"}), "the target 'empty' has no value in any row");
    CHECK_ERROR(sgm_pipeline_fit(table, .targets = {"y"}, .embedding = {{.column = "inputs"}}),
                "a field cannot be called 'inputs'");
    sgm_table_free(table);
}

/* A dataset refuses a pipeline that no checkpoint could keep, before anything is trained. */
TEST(names_that_cannot_be_kept)
{
    sgm_table *table = sgm_table_open(file("t.csv", "caf\xe9,y\n1,2\n2,3\n"));
    sgm_pipeline *pipeline = sgm_pipeline_fit(table, .targets = {"y"});
    sgm_table_free(table);
    sgm_dataset *data =
        sgm_dataset_create("t", .extractor = sgm_pipeline_extractor(pipeline, data_path("t.csv")));
    CHECK(sgm_dataset_set_pipeline(data, pipeline) != SGM_OK);
    CHECK(strstr(sgm_last_error(), "is not UTF-8") != NULL);
    sgm_dataset_free(data);
    sgm_pipeline_free(pipeline);
}

/* pandas writes the numbers of rows into a column without a name. It is called by its number. */
TEST(columns_without_a_name)
{
    sgm_table *table = sgm_table_open(file("t.csv", ",x,y\n0,1,2\n4,2,3\n"));
    sgm_pipeline *pipeline = sgm_pipeline_fit(table, .targets = {"y"}, .scale = SGM_SCALE_NONE);
    sgm_table_free(table);
    sgm_block *block = block_of(sgm_pipeline_extractor(pipeline, data_path("t.csv")));
    CHECK_NEAR(value(block, "inputs", 1, 0), 4, 0);
    CHECK_NEAR(value(block, "inputs", 1, 1), 2, 0);
    sgm_block_free(block);
    sgm_pipeline_free(pipeline);
}

/* Without memory at any place: an error, and nothing is lost. */
TEST(no_memory)
{
    file("pets.csv", pets);
    bool done = false;
    for (long n = 1; !done; n++) {
        allocator_start(n);
        sgm_table *table = sgm_table_open(data_path("pets.csv"));
        sgm_pipeline *pipeline =
            table != NULL ? sgm_pipeline_fit(table, .targets = {"species"}, .embedding = {{.column = "town"}},
                                             .scale = SGM_SCALE_ROBUST)
                          : NULL;
        sgm_extractor *extractor =
            pipeline != NULL ? sgm_pipeline_extractor(pipeline, data_path("pets.csv")) : NULL;
        sgm_block *block = NULL;
        if (extractor != NULL && sgm_extractor_extract(extractor, 9, &block) == SGM_OK)
            done = block != NULL;
        else
            CHECK_INT(sgm_last_status(), SGM_ERROR_MEMORY);
        char *json = pipeline != NULL ? sgm_pipeline_json(pipeline) : NULL;
        sgm_string_free(json);
        sgm_block_free(block);
        sgm_extractor_free(extractor);
        sgm_pipeline_free(pipeline);
        sgm_table_free(table);
        long live = atomic_load(&allocator_live);
        allocator_stop();
        CHECK_INT(live, 0);
        CHECK(n < 5000);
    }
}
