/* A network that was trained on a table, taken elsewhere: the C and the ONNX model that are exported, and the
 * model that a program loads, predict for raw rows what the trainer predicts by way of the pipeline. */
#include "compiled.h"
#include "data/data_test.h"
#include <sigma/sigma.h>

#define ROWS 200
#define TRAINING_ROWS 400
#define COLUMNS 6
/* Relative to the numbers, of which the largest are prices of some 100,000. Differences come from float32, in
 * which the networks compute: other orders of sums. */
#define TOLERANCE 1e-6

static const char *const names[COLUMNS] = {"area", "rooms", "town", "zip code", "built", "class"};

/* A row as the table has it; the struct that the exported C declares has the same members. */
typedef struct raw {
    double area, rooms;
    const char *town, *zip, *built, *kind;
} raw;

static uint64_t state;
static double random_number(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 40) / (double)(1 << 24);
}

/* Towns need quoting in C: letters beyond ASCII, quotes, what could be a trigraph. Cells may be missing in
 * each way that there is. */
static raw make_row(int number)
{
    static const char *const towns[] = {"K\xc3\xb6ln", "the \"new\" one?\?/", "Ulm"};
    static const char *const zips[] = {"50667", "89073", "0"};
    static const char *const kinds[] = {"flat", "house", "shed", "NA"};
    static char dates[TRAINING_ROWS][48];
    int year = 50 + (int)(random_number() * 50), day = 10 + (int)(random_number() * 18);
    if (number % 2 == 0)
        snprintf(dates[number], sizeof dates[number], "19%02d-06-%02dT12:30:15.5", year, day);
    else
        snprintf(dates[number], sizeof dates[number], "%02d.02.19%02d", day, year);
    return (raw){.area = number % 17 == 3 ? (double)NAN : floor(random_number() * 20000) / 100,
                 .rooms = floor(random_number() * 9) - 2,
                 .town = number % 13 == 5 ? NULL : towns[(int)(random_number() * 3)],
                 .zip = zips[(int)(random_number() * 3)],
                 .built = number % 19 == 7 ? "" : dates[number],
                 .kind = kinds[(int)(random_number() * 4)]};
}

static void make_rows(raw *rows, int count, uint64_t seed)
{
    state = seed;
    for (int i = 0; i < count; i++)
        rows[i] = make_row(i);
}

/* The file: targets, and a column that is dropped, stand among the others. */
static const char *write_table(const raw *rows)
{
    sgm__text text = {0};
    sgm__text_append(&text, "id,area,price,rooms,town,zip code,built,species,class,rent\n");
    for (int i = 0; i < TRAINING_ROWS; i++) {
        const raw *r = &rows[i];
        double area = isnan(r->area) ? 80 : r->area;
        char number[32] = "";
        if (!isnan(r->area))
            snprintf(number, sizeof number, "%.2f", r->area);
        sgm__text_append(&text, "%d,%s,%.2f,%g,%s,%s,%s,%s,%s,%.3f\n", i, number,
                         100000 + 3000 * area + 20000 * r->rooms, r->rooms,
                         r->town == NULL                ? ""
                         : strchr(r->town, '"') != NULL ? "\"the \"\"new\"\" one?\?/\""
                                                        : r->town,
                         r->zip, r->built,
                         area > 120  ? "large"
                         : area > 60 ? "mid *\\/"
                                     : "small",
                         r->kind, 0.01 * area + 0.1 * r->rooms);
    }
    const char *path = data_path("rows.csv");
    CHECK_OK(sgm__file_write_atomic(path, text.data, text.length));
    sgm__text_free(&text);
    return path;
}

/* A trained network, and everything that it has become. */
typedef struct trained {
    sgm_env *env, *loading;
    sgm_trainer *trainer;
    sgm_pipeline *pipeline;
    sgm_model *model;
    void *library;
    int (*predict_rows)(const raw *rows, double *outputs, const char **problem);
    const char *(*class_of)(int index);
    raw rows[ROWS];
    int64_t outputs;
} trained;

static trained train(const sgm_pipeline_options *options, sgm_dtype precision, double average)
{
    static raw rows[TRAINING_ROWS];
    trained t = {.env = sgm_env_create("houses", .seed = 3, .precision = precision)};
    make_rows(rows, TRAINING_ROWS, 1);
    make_rows(t.rows, ROWS, 2);
    const char *path = write_table(rows);
    sgm_table *table = sgm_table_open(path);
    t.pipeline = sgm_pipeline_fit_with(table, options);
    sgm_table_free(table);
    CHECK_OK(t.pipeline);
    t.outputs = sgm_pipeline_width(t.pipeline, "targets");
    char *network = sgm_pipeline_network(t.pipeline);
    sgm_dataset *data = sgm_dataset_create("houses", .extractor = sgm_pipeline_extractor(t.pipeline, path));
    CHECK_OK(sgm_dataset_set_pipeline(data, t.pipeline));
    t.trainer = sgm_trainer_create(t.env, "houses");
    CHECK_OK(sgm_trainer_set_network(t.trainer, network));
    CHECK_OK(sgm_trainer_set_optimiser(t.trainer, sgm_adam(.learning_rate = 0.01, .average = average)));
    CHECK_OK(sgm_trainer_set_data(t.trainer, sgm_minibatches(data, .size = 20)));
    CHECK_OK(sgm_env_run(t.env, .epochs = 3));
    sgm_string_free(network);
    sgm_dataset_free(data);
    return t;
}

/* Exports C, and loads a checkpoint into a model. */
static void take_along(trained *t)
{
    const char *source = data_path("houses.c"), *checkpoint = data_path("houses.safetensors");
    CHECK_OK(sgm_trainer_export_c(t->trainer, source, .name = "houses"));
    t->library = load_c_file(source, "", data_path("houses.so"));
    find_c(t->library, "houses_predict_rows", &t->predict_rows);
    if (sgm_pipeline_classes(t->pipeline) != NULL)
        find_c(t->library, "houses_class", &t->class_of);
    CHECK_OK(sgm_trainer_save(t->trainer, checkpoint));
    t->loading = sgm_env_create("elsewhere");
    t->model = sgm_model_load(t->loading, checkpoint);
    CHECK_OK(t->model);
}

static void end(trained *t)
{
    if (t->library != NULL)
        dlclose(t->library);
    sgm_env_free(t->loading);
    sgm_env_free(t->env);
    sgm_pipeline_free(t->pipeline);
}

/* --- the four ways --- */

/* What `sigma predict` and `sigma serve` do: cells are texts, and the trainer predicts. */
static double *reference(const trained *t)
{
    static char texts[2 * ROWS][32];
    const char *cells[ROWS * COLUMNS];
    for (int i = 0; i < ROWS; i++) {
        const raw *r = &t->rows[i];
        snprintf(texts[2 * i], sizeof *texts, "%.17g", r->area);
        snprintf(texts[2 * i + 1], sizeof *texts, "%.17g", r->rooms);
        memcpy(cells + i * COLUMNS,
               ((const char *[]){isnan(r->area) ? NULL : texts[2 * i], texts[2 * i + 1], r->town, r->zip,
                                 r->built, r->kind}),
               COLUMNS * sizeof *cells);
    }
    sgm_block *block = sgm_pipeline_apply(t->pipeline, names, COLUMNS, cells, ROWS);
    CHECK_OK(block);
    sgm_tensor *outputs = sgm_trainer_predict_block(t->trainer, block, NULL);
    CHECK_OK(outputs);
    double *numbers = calloc((size_t)(ROWS * t->outputs), sizeof *numbers);
    CHECK_OK(sgm_tensor_read(outputs, numbers, (size_t)(ROWS * t->outputs)));
    for (int64_t i = 0; i < ROWS * t->outputs; i++)
        numbers[i] = sgm_pipeline_restore(t->pipeline, (size_t)(i % t->outputs), numbers[i]);
    sgm_tensor_free(outputs);
    sgm_block_free(block);
    return numbers;
}

static void compare(const trained *t, const char *way, int64_t row, const double *actual,
                    const double *wanted)
{
    for (int64_t i = 0; i < t->outputs; i++) {
        double tolerance = TOLERANCE * (1 + fabs(wanted[i]));
        if (!(fabs(actual[i] - wanted[i]) <= tolerance))
            TEST_FAIL("%s: row %d, output %d: %.12g, expected %.12g", way, (int)row, (int)i, actual[i],
                      wanted[i]);
    }
}

static void compare_c(const trained *t, const double *wanted)
{
    double outputs[8];
    const char *problem = NULL;
    for (int i = 0; i < ROWS; i++) {
        if (t->predict_rows(&t->rows[i], outputs, &problem) != 0)
            TEST_FAIL("row %d: %s", i, problem);
        compare(t, "C", i, outputs, wanted + i * t->outputs);
    }
}

/* Columns in another order, numbers as numbers, and one column more. */
static void compare_model(const trained *t, const double *wanted)
{
    static const char *const columns[] = {"class", "more", "built", "rooms", "area", "zip code", "town"};
    sgm_cell cells[ROWS * 7];
    for (int i = 0; i < ROWS; i++) {
        const raw *r = &t->rows[i];
        memcpy(cells + i * 7,
               ((sgm_cell[]){sgm_cell_of_text(r->kind), sgm_cell_of_text("x"), sgm_cell_of_text(r->built),
                             sgm_cell_of_number(r->rooms), sgm_cell_of_number(r->area),
                             sgm_cell_of_number(atof(r->zip)), sgm_cell_of_text(r->town)}),
               7 * sizeof *cells);
    }
    sgm_tensor *outputs = sgm_model_predict_rows(t->model, columns, 7, cells, ROWS);
    CHECK_OK(outputs);
    CHECK_INT(sgm_tensor_dtype(outputs), SGM_FLOAT64);
    const double *numbers = sgm_tensor_const_data(outputs);
    const char *const *classes = sgm_pipeline_classes(t->pipeline);
    for (int64_t i = 0; i < ROWS; i++) {
        const double *row = wanted + i * t->outputs;
        compare(t, "sgm_model_predict_rows", i, numbers + i * t->outputs, row);
        int64_t best = 0;
        for (int64_t k = 1; k < t->outputs; k++)
            best = row[k] > row[best] ? k : best;
        if (classes != NULL) {
            CHECK_STR(sgm_model_class(t->model, outputs, i), classes[best]);
            CHECK_STR(t->class_of((int)best), classes[best]);
        } else {
            CHECK(sgm_model_class(t->model, outputs, i) == NULL);
        }
    }
    sgm_tensor_free(outputs);
}

/* The number of a category in the model's list, which its metadata have: -1 for a missing one. */
static int64_t category(const trained *t, const char *name, const char *text)
{
    char wanted[64], *json = sgm_pipeline_json(t->pipeline);
    int64_t number = 0;
    snprintf(wanted, sizeof wanted, "\"name\":\"%s\"", name);
    const char *at = strstr(strstr(json, wanted), "\"categories\":[") + strlen("\"categories\":[");
    char quoted[64], *to = quoted;
    *to++ = '"';
    for (const char *c = text != NULL ? text : ""; *c != '\0'; *to++ = *c++)
        if (*c == '"')
            *to++ = '\\';
    strcpy(to, "\"");
    bool missing = text == NULL || strcmp(text, "NA") == 0;
    for (; !missing && strncmp(at, quoted, strlen(quoted)) != 0; number++) {
        at++; /* the quotation mark, then up to the one that ends the text */
        for (; *at != '"'; at++)
            at += *at == '\\';
        CHECK(at[1] == ',');
        at += 2;
    }
    sgm_string_free(json);
    return missing ? -1 : number;
}

static sgm_onnx *export_onnx(const trained *t, int64_t batch)
{
    const char *path = data_path("houses.onnx");
    sgm_status status = sgm_trainer_export_onnx(t->trainer, path, .batch = batch);
    if (status == SGM_ERROR_UNSUPPORTED && strstr(sgm_last_error(), "built without ONNX") != NULL)
        return NULL;
    CHECK_OK(status);
    sgm_onnx *model = sgm_onnx_load(path, .handler = "cpu");
    CHECK_OK(model);
    char *json = sgm_pipeline_json(t->pipeline);
    CHECK_STR(sgm_onnx_metadata(model, "sigma.pipeline"), json);
    CHECK(sgm_onnx_metadata(model, "sigma") == NULL);
    sgm_string_free(json);
    return model;
}

/* Sets an input from `count` numbers. */
static void set_column(sgm_onnx *model, const char *name, sgm_dtype dtype, const double *numbers,
                       int64_t count)
{
    sgm_shape shape = sgm_shape_of(count, 1);
    sgm_tensor *tensor = sgm_tensor_create(dtype, &shape);
    CHECK_OK(sgm_tensor_write(tensor, numbers, (size_t)count));
    CHECK_OK(sgm_onnx_set(model, name, tensor));
    sgm_tensor_free(tensor);
}

/* Days since 1970-01-01, by the C library. */
static double days_of(const char *date)
{
    struct tm tm = {0};
    if (*date == '\0')
        return NAN;
    bool has_time = strchr(date, 'T') != NULL;
    CHECK(strptime(date, has_time ? "%Y-%m-%dT%H:%M:%S" : "%d.%m.%Y", &tm) != NULL);
    return ((double)timegm(&tm) + (has_time ? 0.5 : 0)) / 86400;
}

static void set_columns(const trained *t, sgm_onnx *model, int64_t count)
{
    double numbers[COLUMNS][ROWS];
    for (int64_t i = 0; i < count; i++) {
        const raw *r = &t->rows[i];
        numbers[0][i] = r->area;
        numbers[1][i] = r->rooms;
        numbers[2][i] = (double)category(t, "town", r->town);
        numbers[3][i] = (double)category(t, "zip code", r->zip);
        numbers[4][i] = days_of(r->built);
        numbers[5][i] = (double)category(t, "class", r->kind);
    }
    for (int i = 0; i < COLUMNS; i++)
        set_column(model, names[i], i == 2 || i == 3 || i == 5 ? SGM_INT64 : SGM_FLOAT64, numbers[i], count);
}

static void compare_onnx(const trained *t, const double *wanted)
{
    sgm_onnx *model = export_onnx(t, 0);
    for (int64_t count = ROWS; model != NULL && count > 0; count = count == ROWS ? 1 : 0) {
        set_columns(t, model, count);
        CHECK_OK(sgm_onnx_run(model));
        sgm_tensor *outputs = sgm_onnx_get(model, sgm_onnx_output_at(model, 0));
        CHECK_OK(outputs);
        double *numbers = calloc((size_t)(count * t->outputs), sizeof *numbers);
        CHECK_OK(sgm_tensor_read(outputs, numbers, (size_t)(count * t->outputs)));
        for (int64_t i = 0; i < count; i++)
            compare(t, "ONNX", i, numbers + i * t->outputs, wanted + i * t->outputs);
        free(numbers);
        sgm_tensor_free(outputs);
    }
    sgm_onnx_free(model);
}

static void check(const sgm_pipeline_options *options, sgm_dtype precision, double average)
{
    trained t = train(options, precision, average);
    take_along(&t);
    double *wanted = reference(&t);
    compare_c(&t, wanted);
    compare_model(&t, wanted);
    compare_onnx(&t, wanted);
    free(wanted);
    end(&t);
}

#define PIPELINE(...) (&(sgm_pipeline_options){.struct_size = sizeof(sgm_pipeline_options), __VA_ARGS__})

TEST(classes)
{
    check(PIPELINE(.targets = {"species"}, .drop = {"id", "price", "rent"}, .categorical = {"zip code"},
                   .impute = SGM_IMPUTE_FLAG),
          SGM_FLOAT32, 0);
}

TEST(numbers_in_their_units)
{
    check(PIPELINE(.targets = {"price", "rent"}, .drop = {"id", "species"}, .categorical = {"zip code"},
                   .embedding = {{.column = "class"}, {.column = "town"}}, .impute = SGM_IMPUTE_MOST_FREQUENT,
                   .scale = SGM_SCALE_MIN_MAX),
          SGM_FLOAT32, 0);
}

/* Year, month, weekday and hour of dates, of which some have a time. */
TEST(dates_in_parts)
{
    check(PIPELINE(.targets = {"price", "rent"}, .drop = {"id", "species"}, .categorical = {"zip code"},
                   .dates = {{"built", SGM_DATE_PARTS, NULL}}, .impute = SGM_IMPUTE_FLAG,
                   .imputes = {{"area", SGM_IMPUTE_MEDIAN}}),
          SGM_FLOAT32, 0);
}

/* Computed in double, and predicted by averages of the parameters. */
TEST(double_precision_and_averages)
{
    check(PIPELINE(.targets = {"price"}, .drop = {"id", "species", "rent"}, .categorical = {"zip code"},
                   .dates = {{"built", SGM_DATE_AGE, "2000-01-01"}}, .embedding = {{.column = "class"}},
                   .impute = SGM_IMPUTE_MEDIAN, .scale = SGM_SCALE_ROBUST),
          SGM_FLOAT64, 0.9);
}

/* --- what is refused --- */

static const sgm_pipeline_options strict = {.struct_size = sizeof strict,
                                            .targets = {"rent"},
                                            .drop = {"id", "species", "price"},
                                            .categorical = {"zip code"},
                                            .embedding = {{.column = "class"}},
                                            .impute = SGM_IMPUTE_MEAN};

static const raw good = {.area = 80, .rooms = 3, .town = "Ulm", .zip = "0", .built = "", .kind = "flat"};

/* The C refuses a row with this reason. */
static void refuse_c(const trained *t, raw row, const char *reason)
{
    double output = 7;
    const char *problem = NULL;
    CHECK_INT(t->predict_rows(&row, &output, &problem), 1);
    CHECK_STR(problem, reason);
    CHECK_INT(t->predict_rows(&row, &output, NULL), 1);
    CHECK_NEAR(output, 7, 0);
}

TEST(c_says_what_is_wrong_with_a_row)
{
    trained t = train(&strict, SGM_FLOAT32, 0);
    take_along(&t);
    raw row = good;
    double output, other;
    CHECK_INT(t.predict_rows(&row, &output, NULL), 0);
    row.town = "Bonn";
    refuse_c(&t, row,
             "column 'town': the text is none of the 3 categories that the network knows (K\xc3\xb6ln, Ulm, "
             "...); correct it, or leave it empty");
    row = good;
    row.built = "30.02.1990";
    refuse_c(&t, row, "column 'built': the text is no date; correct it, or leave it empty");
    row.built = "1990-02-27T24:00";
    refuse_c(&t, row, "column 'built': the text is no date; correct it, or leave it empty");
    row = good;
    row.area = INFINITY;
    refuse_c(&t, row, "column 'area': the number is too large");
    row = good;
    row.kind = "tower"; /* the index of an embedding */
    refuse_c(
        &t, row,
        "column 'class': the text is none of the 3 categories that the network knows (flat, house, ...); "
        "correct it, or leave it empty");
    row = good; /* a category that is a number, written otherwise */
    row.zip = "0.0e3";
    CHECK_INT(t.predict_rows(&row, &other, NULL), 0);
    CHECK_NEAR(other, output, 0);
    end(&t);
}

/* Several rows in a call; nothing is given if one of them is refused. */
TEST(rows_in_one_call)
{
    trained t = train(&strict, SGM_FLOAT32, 0);
    raw rows[] = {good, {.area = NAN, .rooms = -1}, good};
    double wanted[3], outputs[3] = {7, 7, 7};
    const char *problem = NULL;
    take_along(&t);
    const char *source = data_path("rows.c");
    for (int i = 0; i < 3; i++)
        CHECK_INT(t.predict_rows(&rows[i], &wanted[i], &problem), 0);
    CHECK_OK(sgm_trainer_export_c(t.trainer, source, .name = "three", .batch = 3));
    void *library = load_c_file(source, "", data_path("rows.so"));
    find_c(library, "three_predict_rows", &t.predict_rows);
    rows[1].town = "Bonn";
    CHECK_INT(t.predict_rows(rows, outputs, &problem), 2);
    CHECK_NEAR(outputs[0], 7, 0);
    rows[1].town = "NA";
    CHECK_INT(t.predict_rows(rows, outputs, &problem), 0);
    for (int i = 0; i < 3; i++)
        CHECK_NEAR(outputs[i], wanted[i], 1e-6);
    dlclose(library);
    end(&t);
}

TEST(missing_values_that_are_needed)
{
    trained t = train(PIPELINE(.targets = {"rent"},
                               .drop = {"id", "species", "price", "area", "town", "built", "class"},
                               .embedding = {{.column = "zip code"}}, .categorical = {"zip code"},
                               .impute = SGM_IMPUTE_REFUSE),
                      SGM_FLOAT32, 0);
    take_along(&t);
    struct {
        double rooms;
        const char *zip;
    } row = {.rooms = 3};
    int (*predict_rows)(const void *, double *, const char **);
    double output;
    const char *problem;
    find_c(t.library, "houses_predict_rows", &predict_rows);
    CHECK_INT(predict_rows(&row, &output, &problem), 1);
    CHECK_STR(problem, "column 'zip code': the value is missing, which 'impute' refuses");
    row.zip = "50667";
    CHECK_INT(predict_rows(&row, &output, &problem), 0);
    row.rooms = NAN;
    CHECK_INT(predict_rows(&row, &output, &problem), 1);
    CHECK_STR(problem, "column 'rooms': the value is missing, which 'impute' refuses");
    sgm_onnx *model = export_onnx(&t, 3);
    if (model != NULL) {
        set_column(model, "rooms", SGM_FLOAT64, (double[]){3, NAN, 3}, 3);
        set_column(model, "zip code", SGM_INT64, (double[]){1, 1, -1}, 3);
        CHECK_OK(sgm_onnx_run(model));
        sgm_tensor *outputs = sgm_onnx_get(model, sgm_onnx_output_at(model, 0));
        for (int64_t i = 0; i < 3; i++)
            CHECK_INT(isnan(sgm_tensor_get(outputs, (const int64_t[]){i, 0})), i > 0);
        CHECK_NEAR(sgm_tensor_get(outputs, (const int64_t[]){0, 0}), output, 1e-6);
        sgm_tensor_free(outputs);
    }
    sgm_onnx_free(model);
    end(&t);
}

TEST(models_say_what_is_wrong_with_a_row)
{
    trained t = train(&strict, SGM_FLOAT32, 0);
    take_along(&t);
    const char *const columns[] = {"area", "rooms", "town", "zip code", "built", "class"};
    sgm_cell cells[12] = {0};
    cells[0] = cells[6] = sgm_cell_of_number(80);
    cells[2] = sgm_cell_of_text("Ulm");
    cells[8] = sgm_cell_of_text("Bonn");
    CHECK(sgm_model_predict_rows(t.model, columns, 6, cells, 2) == NULL);
    CHECK(strstr(sgm_last_error(), "row 2, column 'town': \"Bonn\" is none of the 3 categories"));
    cells[8] = sgm_cell_of_number(NAN);
    cells[6] = sgm_cell_of_text("big");
    CHECK(sgm_model_predict_rows(t.model, columns, 6, cells, 2) == NULL);
    CHECK(strstr(sgm_last_error(), "row 2, column 'area': \"big\" is no number"));
    CHECK(sgm_model_predict_rows(t.model, columns, 5, cells, 1) == NULL);
    CHECK(strstr(sgm_last_error(), "has no column 'class'"));
    CHECK(sgm_model_predict_rows(t.model, columns, 6, cells, -1) == NULL);
    CHECK(sgm_model_predict_rows(t.model, columns, 6, cells, 0) == NULL);
    sgm_tensor *outputs = sgm_model_predict_rows(t.model, columns, 6, cells, 1);
    CHECK_OK(outputs); /* what was refused has changed nothing */
    CHECK_OK(sgm_env_status(t.loading));
    CHECK(sgm_model_class(t.model, outputs, 1) == NULL);
    sgm_tensor_free(outputs);
    CHECK(sgm_model_load(t.loading, "nowhere") == NULL);
    CHECK(strstr(sgm_env_error(t.loading), "nowhere"));
    CHECK(sgm_model_load(NULL, "nowhere") == NULL);
    end(&t);
}

/* A model of layers takes no rows, whether it was trained or not; a loaded one goes on training. */
TEST(models_without_a_table)
{
    sgm_shape two = sgm_shape_of(4, 2), one = sgm_shape_of(4, 1);
    sgm_tensor *x = sgm_tensor_create_from(SGM_FLOAT32, &two, (float[]){0, 0, 0, 1, 1, 0, 1, 1}),
               *y = sgm_tensor_create_from(SGM_FLOAT32, &one, (float[]){0, 1, 1, 2});
    sgm_env *env = sgm_env_create("models", .seed = 1);
    sgm_model *model = sgm_sequential(env, sgm_dense(.size = 1));
    sgm_cell cell = sgm_cell_of_number(1);
    CHECK(sgm_model_predict_rows(model, names, 1, &cell, 1) == NULL);
    CHECK(strstr(sgm_last_error(), "not trained yet"));
    CHECK_OK(sgm_model_train(model, x, y, .epochs = 2));
    CHECK(sgm_model_predict_rows(model, names, 1, &cell, 1) == NULL);
    CHECK(strstr(sgm_last_error(), "not trained on a table"));
    const char *path = data_path("plain.safetensors");
    CHECK_OK(sgm_trainer_save(sgm_model_trainer(model), path));
    sgm_model *loaded = sgm_model_load(env, path);
    CHECK_OK(loaded);
    sgm_tensor *before = sgm_model_predict(model, x), *after = sgm_model_predict(loaded, x);
    for (int64_t i = 0; i < 4; i++)
        CHECK_NEAR(sgm_tensor_get(after, (const int64_t[]){i, 0}),
                   sgm_tensor_get(before, (const int64_t[]){i, 0}), 0);
    CHECK_OK(sgm_model_train(loaded, x, y, .epochs = 1));
    sgm_tensor_free(before);
    sgm_tensor_free(after);
    sgm_tensor_free(x);
    sgm_tensor_free(y);
    sgm_env_free(env);
}

/* An ONNX model has no messages: predictions of a row that the pipeline refuses are NaN, those of others are
 * not. */
TEST(onnx_gives_nan_for_refused_rows)
{
    trained t = train(&strict, SGM_FLOAT32, 0);
    sgm_onnx *model = export_onnx(&t, 4);
    if (model != NULL) {
        set_columns(&t, model, 4);
        set_column(model, "rooms", SGM_FLOAT64, (double[]){1, NAN, INFINITY, 1e300}, 4);
        CHECK_OK(sgm_onnx_run(model));
        sgm_tensor *outputs = sgm_onnx_get(model, sgm_onnx_output_at(model, 0));
        for (int64_t i = 0; i < 4; i++)
            CHECK_INT(isnan(sgm_tensor_get(outputs, (const int64_t[]){i, 0})), i >= 2);
        sgm_tensor_free(outputs);
        set_columns(&t, model, 4);
        set_column(model, "town", SGM_INT64, (double[]){-1, 2, 3, -2}, 4);
        CHECK_OK(sgm_onnx_run(model));
        outputs = sgm_onnx_get(model, sgm_onnx_output_at(model, 0));
        for (int64_t i = 0; i < 4; i++)
            CHECK_INT(isnan(sgm_tensor_get(outputs, (const int64_t[]){i, 0})), i >= 2);
        sgm_tensor_free(outputs);
        set_columns(&t, model, 4);
        set_column(model, "class", SGM_INT64, (double[]){-1, 2, 3, -2}, 4);
        CHECK_OK(sgm_onnx_run(model));
        outputs = sgm_onnx_get(model, sgm_onnx_output_at(model, 0));
        for (int64_t i = 0; i < 4; i++)
            CHECK_INT(isnan(sgm_tensor_get(outputs, (const int64_t[]){i, 0})), i >= 2);
        sgm_tensor_free(outputs);
    }
    sgm_onnx_free(model);
    end(&t);
}

/* A network that takes more numbers than the columns of its pipeline make has no use for rows: what is
 * exported takes the numbers. */
TEST(a_pipeline_that_does_not_fit_is_left_out)
{
    sgm_pipeline *pipeline =
        sgm_pipeline_parse("{\"version\":1,\"header\":true,\"decimal\":\".\",\"columns\":["
                           "{\"name\":\"a\",\"kind\":\"category\",\"field\":\"inputs\",\"impute\":null,"
                           "\"categories\":[\"x\",\"y\"]},"
                           "{\"name\":\"b\",\"kind\":\"number\",\"field\":\"targets\",\"required\":true,"
                           "\"offset\":0,\"factor\":1}]}");
    float inputs[4 * 3] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}, targets[4] = {1, 2, 3, 4};
    sgm_shape three = sgm_shape_of(4, 3), one = sgm_shape_of(4, 1);
    sgm_tensor *x = sgm_tensor_create_from(SGM_FLOAT32, &three, inputs),
               *y = sgm_tensor_create_from(SGM_FLOAT32, &one, targets);
    sgm_env *env = sgm_env_create("misfit", .seed = 1);
    sgm_dataset *data =
        sgm_dataset_create_from("misfit", (const char *[]){"inputs", "targets"}, (sgm_tensor *[]){x, y}, 2);
    CHECK_OK(sgm_dataset_set_pipeline(data, pipeline));
    sgm_trainer *trainer = sgm_trainer_create(env, "misfit");
    CHECK_OK(sgm_trainer_set_network(trainer, "input(3) + dense(1) + mean_squared"));
    CHECK_OK(sgm_trainer_set_optimiser(trainer, sgm_adam(.learning_rate = 0.01)));
    CHECK_OK(sgm_trainer_set_data(trainer, sgm_minibatches(data, .size = 2)));
    CHECK_OK(sgm_env_run(env, .epochs = 1));
    const char *path = data_path("misfit.c"), *onnx = data_path("misfit.onnx");
    char *text = NULL;
    size_t length;
    CHECK_OK(sgm_trainer_export_c(trainer, path, .name = "misfit"));
    CHECK_OK(sgm__file_read(path, 1 << 20, &text, &length));
    CHECK(strstr(text, "misfit_predict(") != NULL && strstr(text, "misfit_row") == NULL);
    if (sgm_trainer_export_onnx(trainer, onnx) != SGM_ERROR_UNSUPPORTED) {
        sgm_onnx *model = sgm_onnx_load(onnx, .handler = "cpu");
        CHECK_OK(sgm_onnx_set(model, "inputs", x));
        CHECK_OK(sgm_onnx_run(model));
        sgm_onnx_free(model);
    }
    sgm__free(text);
    sgm_tensor_free(x);
    sgm_tensor_free(y);
    sgm_dataset_free(data);
    sgm_pipeline_free(pipeline);
    sgm_env_free(env);
}
