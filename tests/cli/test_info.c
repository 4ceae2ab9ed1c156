/* What `sigma info NAME` says: every name has words, a formula where its kind has one, an example that can be
 * read, and words for each argument. A new layer, optimiser, hook and so on without them fails here. */
#include "test.h"

#include "handlers/handler_text.h"
#include "names/kinds.h"
#include <sigma/sigma.h>

static bool has_formulas(const char *kind)
{
    static const char *const kinds[] = {"layer",       "cost",     "optimiser", "schedule",
                                        "initialiser", "modifier", "metric",    "operator"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i], kind) == 0)
            return true;
    return false;
}

static void check_row(const named_kind *kind, const sgm__described *row)
{
    if (row->doc == NULL || row->doc[0] == '\0')
        TEST_FAIL("%s %s says nothing of itself", kind->name, row->name);
    if (has_formulas(kind->name) && row->formula == NULL)
        TEST_FAIL("%s %s has no formula", kind->name, row->name);
    for (size_t i = 0; i < row->argument_count; i++)
        if (row->arguments[i].doc == NULL || row->arguments[i].doc[0] == '\0')
            TEST_FAIL("the argument %s of %s %s has no words", row->arguments[i].name, kind->name, row->name);
    char *example = named_example(kind, row);
    if (strstr(example, row->name) == NULL)
        TEST_FAIL("the example of %s %s is of something else: %s", kind->name, row->name, example);
    if (kind->check(example) != SGM_OK)
        TEST_FAIL("the example of %s %s, %s: %s", kind->name, row->name, example, sgm_last_error());
    sgm__free(example);
}

TEST(every_name_is_explained_with_an_example_that_can_be_read)
{
    size_t all = 0;
    for (size_t i = 0; i < named_kind_count; i++) {
        sgm__described row;
        size_t count = 0;
        for (; named_kinds[i].describe(count, &row); count++)
            check_row(&named_kinds[i], &row);
        CHECK(count > 2);
        all += count;
    }
    CHECK(all > 150);
}

/* An example with a mistake would be found. */
TEST(the_check_of_examples_refuses_what_cannot_be_read)
{
    static const char *const wrong[] = {"dense", "nonsense(3)", "optimiser: {type: nonsense}",
                                        "handler: nonsense"};
    for (size_t i = 0; i < named_kind_count; i++)
        for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
            if (named_kinds[i].check(wrong[k]) == SGM_OK)
                TEST_FAIL("%s takes %s", named_kinds[i].name, wrong[k]);
}

/* Each word that is listed is one that the handler knows, whether the machine has it or not. */
TEST(options_of_handlers_take_the_words_that_are_listed)
{
    sgm__described cpu;
    const sgm_setting *settings;
    size_t count, words = 0;
    CHECK(sgm__handler_describe(0, &cpu, &settings, &count));
    CHECK_STR(cpu.name, "cpu");
    for (size_t i = 0; i < count; i++) {
        const sgm_option *option = &settings[i].option;
        char text[128];
        for (size_t k = 0; option->choices != NULL && option->choices[k] != NULL; k++, words++) {
            snprintf(text, sizeof text, "cpu(%s=%s)", option->name, option->choices[k]);
            if (sgm__handler_check(text) == SGM_ERROR_ARGUMENT)
                TEST_FAIL("%s: %s", text, sgm_last_error());
        }
        snprintf(text, sizeof text, "cpu(%s=nonsense)", option->name);
        CHECK_INT(sgm__handler_check(text), SGM_ERROR_ARGUMENT);
    }
    CHECK(words >= 3 + 2 + 4);
}

static sgm_value forward(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)call;
    (void)graph;
    (void)count;
    return inputs[0];
}

TEST(what_a_program_adds_is_explained_too)
{
    static const sgm_layer_type type = {.api = SGM_LAYER_API,
                                        .name = "spiral",
                                        .doc = "turns round",
                                        .min_inputs = 1,
                                        .max_inputs = 1,
                                        .forward = forward,
                                        .formula = "y = R x",
                                        .example = "spiral"};
    sgm__described row;
    CHECK(!named_find(&named_kinds[0], "spiral", &row));
    CHECK_OK(sgm_register_layer(&type));
    CHECK(named_find(&named_kinds[0], "spiral", &row));
    CHECK_STR(row.formula, "y = R x");
    check_row(&named_kinds[0], &row);
}
