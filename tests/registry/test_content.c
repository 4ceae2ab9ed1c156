/* Contents: as texts, from texts, equal ones. */
#include "test.h"

#include "registry/registry_test.h"

TEST(contents_describe_themselves)
{
    sgm_registry *registry = sgm_registry_create();
    CHECK_OK(sgm_registry_set(registry, "number", sgm_number_content(0.01)));
    CHECK_STR(described(registry, "number"), "0.01");
    CHECK_OK(sgm_registry_set(registry, "number", sgm_number_content(0.1 + 0.2)));
    CHECK_STR(described(registry, "number"), "0.30000000000000004");
    CHECK_OK(sgm_registry_set(registry, "integer", sgm_integer_content(-3)));
    CHECK_STR(described(registry, "integer"), "-3");
    CHECK_OK(sgm_registry_set(registry, "boolean", sgm_boolean_content(true)));
    CHECK_STR(described(registry, "boolean"), "true");
    CHECK_OK(sgm_registry_set(registry, "text", sgm_text_content("a b")));
    CHECK_STR(described(registry, "text"), "'a b'");
    sgm_shape matrix = sgm_shape_of(784, 100);
    sgm_tensor *tensor = sgm_tensor_create(SGM_FLOAT32, &matrix);
    CHECK_OK(sgm_registry_set(registry, "tensor", sgm_tensor_content(tensor)));
    sgm_tensor_free(tensor);
    CHECK_STR(described(registry, "tensor"), "float32 (784, 100)");
    sgm_registry *child = grow(registry, "child", NULL, NULL);
    CHECK_OK(sgm_registry_set(child, "a", sgm_integer_content(1)));
    CHECK_STR(described(registry, "child"), "registry of 1");
    CHECK_STR(sgm_kind_name(SGM_KIND_TENSOR), "tensor");
    CHECK_STR(sgm_kind_name((sgm_kind)77), "unknown kind");
    sgm_registry_free(registry);
}

TEST(contents_are_read_from_text)
{
    static const struct {
        const char *text;
        sgm_kind kind;
        const char *expected; /* a description, or part of the error */
    } cases[] = {
        {"0.5", SGM_KIND_NUMBER, "0.5"},
        {"-12", SGM_KIND_INTEGER, "-12"},
        {"true", SGM_KIND_BOOLEAN, "true"},
        {"off", SGM_KIND_BOOLEAN, "false"},
        {"banana", SGM_KIND_TEXT, "'banana'"},
        {"", SGM_KIND_TEXT, "''"},
        {"banana", SGM_KIND_NUMBER, "expected a number, got 'banana'"},
        {"1.5", SGM_KIND_INTEGER, "expected an integer, got '1.5'"},
        {"maybe", SGM_KIND_BOOLEAN, "expected a boolean (true or false), got 'maybe'"},
        {"99999999999999999999", SGM_KIND_INTEGER, "expected an integer"},
        {"x", SGM_KIND_TENSOR, "a tensor cannot be read from a text"},
        {"x", SGM_KIND_REGISTRY, "a registry cannot be read from a text"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sgm_content content = {0};
        if (sgm_content_parse(cases[i].text, cases[i].kind, &content) != SGM_OK) {
            CHECK(strstr(sgm_last_error(), cases[i].expected) != NULL);
            continue;
        }
        CHECK_INT(content.kind, cases[i].kind);
        char *text = sgm_content_describe(&content);
        CHECK_STR(text, cases[i].expected);
        sgm_string_free(text);
        sgm_content_clear(&content);
    }
}

TEST(equal_contents_are_equal)
{
    float values[] = {1, 2};
    sgm_shape pair = sgm_shape_of(2);
    sgm_tensor *a = sgm_tensor_create_from(SGM_FLOAT32, &pair, values);
    sgm_tensor *b = sgm_tensor_create_from(SGM_FLOAT32, &pair, values);
    sgm_registry *registry = sgm_registry_create(), *view = sgm_registry_create_read_only(registry);
    sgm_content left[] = {sgm_number_content(NAN), sgm_text_content("a"), sgm_tensor_content(a),
                          sgm_registry_content(registry), sgm_boolean_content(true)};
    sgm_content right[] = {sgm_number_content(NAN), sgm_text_content("a"), sgm_tensor_content(b),
                           sgm_registry_content(view), sgm_boolean_content(true)};
    for (size_t i = 0; i < 5; i++)
        for (size_t j = 0; j < 5; j++)
            CHECK_INT(sgm_content_equal(&left[i], &right[j]), i == j);
    sgm_tensor_set(b, (int64_t[]){1}, 3);
    CHECK(!sgm_content_equal(&left[2], &right[2]));
    sgm_content one = sgm_integer_content(1), number = sgm_number_content(1);
    CHECK(!sgm_content_equal(&one, &number));
    sgm_registry_free(view);
    sgm_registry_free(registry);
    sgm_tensor_free(a);
    sgm_tensor_free(b);
}
