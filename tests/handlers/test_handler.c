/* Handlers by name, and what they say of themselves. */
#include "handlers/devices.h"
#include "handlers/graphs.h"

static void check_described(const sgm_handler *handler, const char *part)
{
    char *text = sgm_handler_describe(handler);
    CHECK_OK(text);
    if (strstr(text, part) == NULL)
        TEST_FAIL("\"%s\" is not in \"%s\"", part, text);
    sgm_string_free(text);
}

TEST(every_name_can_be_created_and_describes_itself)
{
    bool reference = false, watched = false;
    size_t count = 0;
    for (const char *name; (name = sgm_handler_name_at(count)) != NULL; count++) {
        sgm_handler *handler = sgm_handler_create(name);
        if (handler == NULL && is_device_name(name)) {
            CHECK(strlen(sgm_last_error()) > 20); /* a sentence */
            continue;
        }
        CHECK_OK(handler);
        CHECK_STR(sgm_handler_name(handler), name);
        const char *inner = strchr(name, ':');
        check_described(handler, inner != NULL ? inner + 1 : name);
        check_described(handler, inner != NULL ? "debug: stops at NaN" : "\n");
        reference = reference || strcmp(name, "reference") == 0;
        watched = watched || strcmp(name, "debug:reference") == 0;
        sgm_handler_free(handler);
    }
    CHECK(reference && watched);
    CHECK(count >= 4);
    CHECK(sgm_handler_name_at(SIZE_MAX) == NULL);
}

TEST(unknown_names)
{
    CHECK_ERROR(sgm_handler_create("refrence"),
                "there is no handler 'refrence' (did you mean 'reference'?); there are cpu, reference, ");
    CHECK_ERROR(sgm_handler_create("quantum"), "there is no handler 'quantum'; there are");
    CHECK_ERROR(sgm_handler_create("quantum"), "null, and debug:NAME");
    CHECK_ERROR(sgm_handler_create(""), "there is no handler ''");
    CHECK_ERROR(sgm_handler_create("debug:refrence"), "did you mean 'reference'");
    CHECK_ERROR(sgm_handler_create("debug:debug:null"), "there is no handler 'debug:debug:null'; there are");
    CHECK_ERROR(sgm_handler_create("debug:"), "there is no handler ''");
    CHECK_ERROR(sgm_handler_create("debug"), "'debug:reference'");
    CHECK_ERROR(sgm_handler_create(NULL), "wants a name");
    CHECK_INT(sgm_last_status(), SGM_ERROR_ARGUMENT);
}

/* The first line with `name`, as described by a handler of this text. */
static void check_line(const char *text, const char *expected)
{
    sgm_handler *handler = sgm_handler_create(text, .threads = 1);
    CHECK_OK(handler);
    CHECK_STR(sgm_handler_name(handler), text);
    check_described(handler, expected);
    sgm_handler_free(handler);
}

TEST(options_behind_the_name)
{
    check_line("cpu(instructions=portable)", "instructions: portable\n");
    check_line("cpu( dense = own , approximate=true)", "approximate: exp to 0.011 %, tanh to 0.0001\n");
    check_line("cpu(bfloat16=float32)", "products of bfloat16: through float32, as asked for\n");
    check_line("debug:cpu(instructions=portable)", "instructions: portable\n");
    check_line("cpu()", "threads: 1\n");
    CHECK_ERROR(sgm_handler_create("cpu(dnse=own)"), "there is no option 'dnse' (did you mean 'dense'?)");
    CHECK_ERROR(sgm_handler_create("cpu(dense=own"), "expected ')' at the end");
    CHECK_ERROR(sgm_handler_create("cpu(dense)"),
                "expected 'option=value' between the brackets, got 'dense'");
    CHECK_ERROR(sgm_handler_create("cpu(dense=own,,)"), "expected 'option=value'");
    CHECK_ERROR(sgm_handler_create("cpu(dense=own, dense=openblas)"), "dense is given twice");
    CHECK_ERROR(sgm_handler_create("cpu(dense=mkl)"), "dense is 'mkl'");
    CHECK_ERROR(sgm_handler_create("cpu(approximate=yes)"), "approximate: expected true or false, got 'yes'");
    CHECK_ERROR(sgm_handler_create("cpu(keep_subnormals=1)"),
                "keep_subnormals: expected true or false, got '1'");
    CHECK_ERROR(sgm_handler_create("cpu(bfloat16=mma)"),
                "bfloat16 is 'mma'; give \"own\", \"amx\", \"onednn\" or \"float32\"");
    CHECK_ERROR(sgm_handler_create("cpu(instructions=mmx)"),
                "instructions is 'mmx'; for this kind of processor there are: portable");
    CHECK_ERROR(sgm_handler_create("null(dense=own)"),
                "only cpu, opencl and cuda have options in brackets: leave them out");
    CHECK_ERROR(
        sgm_handler_create("cpu(device=1)"),
        "cpu has no option 'device', which is one of opencl: leave it out, or take that handler; there "
        "are dense, instructions, bfloat16, approximate, exact and keep_subnormals");
    CHECK_ERROR(sgm_handler_create("opencl(devise=1)"),
                "there is no option 'devise' (did you mean 'device'?); there is device");
    CHECK_ERROR(sgm_handler_create("cuda(tf23=true)"),
                "there is no option 'tf23' (did you mean 'tf32'?); there are device and tf32");
    CHECK_ERROR(sgm_handler_create("cuda(device=-1)"), "device: expected a whole number from 0 on, got '-1'");
    CHECK_ERROR(sgm_handler_create("opencl(device=two)"), "got 'two'");
    CHECK_ERROR(
        sgm_handler_create("opencl(tf32=true)"),
        "handler 'opencl(tf32=true)': opencl has no option 'tf32', which is one of cuda: leave it out, or "
        "take that handler; there is device");
    CHECK_ERROR(sgm_handler_create("opencl", .tf32 = true),
                "handler 'opencl': opencl has no option 'tf32', which is one of cuda: leave it out, or take");
    CHECK_ERROR(sgm_handler_create("cpu(dense=oooooooooooooooooooooooooooooooooooooooooooo)"), "is too long");
    char name[300];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    CHECK_ERROR(sgm_handler_create(name), "at most 127 characters");
}

TEST(options_are_checked)
{
    sgm_handler_options options = {.struct_size = 0};
    CHECK_ERROR(sgm_handler_create_with("null", &options), "struct_size of the options is 0");
    /* A caller from the future may not ask for what this library does not know. */
    struct {
        sgm_handler_options known;
        size_t unknown;
    } longer = {.known = {.struct_size = sizeof longer}, .unknown = 1};
    CHECK_ERROR(sgm_handler_create_with("null", &longer.known), "older than the headers");
    longer.unknown = 0;
    sgm_handler *handler = sgm_handler_create_with("null", &longer.known);
    CHECK_OK(handler);
    sgm_handler_free(handler);
    CHECK_ERROR(sgm_handler_create("null", .threads = -2), "threads is -2");
    CHECK_ERROR(sgm_handler_create("opencl", .device = -2), "device is -2; devices are numbered from 0");
    handler = sgm_handler_create_with("null", NULL);
    CHECK_OK(handler);
    sgm_handler_free(handler);
    /* A caller from before the last fields: what it did not know is not read. */
    options = (sgm_handler_options){
        .struct_size = offsetof(sgm_handler_options, report_only), .threads = 1, .report_only = true};
    handler = sgm_handler_create_with("debug:null", &options);
    CHECK_OK(handler);
    check_described(handler, "debug: stops");
    sgm_handler_free(handler);
    handler = sgm_handler_create("debug:null", .report_only = true);
    check_described(handler, "debug: warns");
    sgm_handler_free(handler);
}

TEST(support)
{
    sgm_handler *reference = sgm_handler_create("reference"), *null = sgm_handler_create("null");
    sgm_handler *watched = sgm_handler_create("debug:reference");
    CHECK_STR(sgm_handler_support(reference, "matmul", SGM_FLOAT32), "reference loop");
    CHECK_STR(sgm_handler_support(reference, "add", SGM_INT64), "reference loop");
    CHECK_STR(sgm_handler_support(reference, "softmax", SGM_FLOAT32), "composed");
    CHECK_STR(sgm_handler_support(watched, "matmul", SGM_FLOAT32), "reference loop");
    CHECK_STR(sgm_handler_support(watched, "silu", SGM_FLOAT64), "composed");
    CHECK_STR(sgm_handler_support(null, "matmul", SGM_FLOAT32), "none");
    CHECK_STR(sgm_handler_support(null, "softmax", SGM_FLOAT32), "composed");
    CHECK_STR(sgm_handler_support(reference, "matmull", SGM_FLOAT32), "none");
    CHECK(strstr(sgm_last_error(), "matmul") != NULL);
    CHECK_STR(sgm_handler_support(NULL, "matmul", SGM_FLOAT32), "none");
    sgm_handler_free(reference);
    sgm_handler_free(null);
    sgm_handler_free(watched);
}

TEST(null_pointers)
{
    sgm_handler_free(NULL);
    CHECK_STR(sgm_handler_name(NULL), "");
    CHECK_ERROR(sgm_handler_describe(NULL), "no handler");
}
