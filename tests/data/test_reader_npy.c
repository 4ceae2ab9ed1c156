/* The npy reader: element types, headers, archives of arrays. */
#include "reader_test.h"
#include <archive.h>
#include <archive_entry.h>

/* A file of format version `version` with this dictionary; returns its length. */
static size_t make_npy(char *out, int version, const char *header, const char *elements, size_t length)
{
    size_t text = strlen(header), prefix = version == 1 ? 10 : 12;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (char)version;
    out[7] = 0;
    memset(out + 8, 0, 4);
    out[8] = (char)(text & 255);
    out[9] = (char)(text >> 8);
    memcpy(out + prefix, header, text);
    memcpy(out + prefix + text, elements, length);
    return prefix + text + length;
}

static void check_npy(int version, const char *header, const char *elements, size_t length, sgm_dtype dtype,
                      const double *expected)
{
    char bytes[1024];
    size_t size = make_npy(bytes, version, header, elements, length);
    sgm_reader *reader = sgm_npy_reader(sgm_memory_source("a.npy", bytes, size), NULL);
    sgm_examples r;
    CHECK_OK(sgm_reader_read(reader, 10, &r));
    CHECK_INT(r.count, 2);
    CHECK_INT(sgm_tensor_dtype(r.values), dtype);
    CHECK_NEAR(at(&r, 0), expected[0], 0);
    CHECK_NEAR(at(&r, 1), expected[1], 0);
    CHECK_OK(sgm_reader_read(reader, 10, &r));
    CHECK_INT(r.count, 0);
    sgm_reader_free(reader);
}

#define HEADER(descr) "{'descr': '" descr "', 'fortran_order': False, 'shape': (2,), }            \n"

TEST(npy_element_types_and_byte_orders)
{
    check_npy(1, HEADER("|u1"), "\x01\xff", 2, SGM_UINT8, (double[]){1, 255});
    check_npy(1, HEADER("|b1"), "\0\x01", 2, SGM_BOOL, (double[]){0, 1});
    check_npy(1, HEADER("|i1"), "\x01\xff", 2, SGM_INT32, (double[]){1, -1});
    check_npy(1, HEADER("<i2"), "\x02\x01\xfe\xff", 4, SGM_INT32, (double[]){258, -2});
    check_npy(1, HEADER(">u2"), "\x01\x02\xff\xfe", 4, SGM_INT32, (double[]){258, 65534});
    check_npy(1, HEADER("<i4"), "\0\x01\0\0\0\xff\xff\xff", 8, SGM_INT32, (double[]){256, -256});
    check_npy(1, HEADER("<u4"), "\0\x01\0\0\xff\xff\xff\xff", 8, SGM_INT64, (double[]){256, 4294967295.0});
    check_npy(2, HEADER(">i8"), "\0\0\0\0\0\0\0\x07\xff\xff\xff\xff\xff\xff\xff\xfe", 16, SGM_INT64,
              (double[]){7, -2});
    check_npy(2, HEADER("<u8"), "\x07\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0", 16, SGM_INT64, (double[]){7, 256});
    check_npy(3, HEADER("<f4"), "\0\0\xc0\x3f\0\0\0\xc0", 8, SGM_FLOAT32, (double[]){1.5, -2});
    check_npy(3, HEADER(">f4"), "\x3f\xc0\0\0\xc0\0\0\0", 8, SGM_FLOAT32, (double[]){1.5, -2});
    check_npy(1, HEADER(">f8"), "\x3f\xf8\0\0\0\0\0\0\xc0\0\0\0\0\0\0\0", 16, SGM_FLOAT64,
              (double[]){1.5, -2});
    /* half precision: the largest number, and the smallest subnormal one, negative; then infinity and NaN */
    check_npy(1, HEADER("<f2"), "\xff\x7b\x01\x80", 4, SGM_FLOAT32, (double[]){65504, -0x1p-24});
    check_npy(1, HEADER("<f2"), "\x55\x35\x00\xfc", 4, SGM_FLOAT32, (double[]){0.333251953125, -INFINITY});
    check_npy(1, HEADER("<f2"), "\x00\x7e\x00\x80", 4, SGM_FLOAT32, (double[]){NAN, -0.0});
}

TEST(npy_header_forms)
{
    const double expected[] = {1, 2};
    check_npy(1, "{\"shape\":(2L,1),\"fortran_order\":False,\"descr\":\"|u1\"}", "\1\2", 2, SGM_UINT8,
              expected);
    check_npy(1, "{ 'fortran_order' : True, 'descr': '|u1', 'shape': (2 ,) } \n", "\1\2", 2, SGM_UINT8,
              expected);
    check_npy(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 1, 1, 1, 1, 1, 1, 1,)}", "\1\2", 2,
              SGM_UINT8, expected);
}

/* As targets and as inputs an array of one axis is a number for each example. */
TEST(npy_of_one_axis)
{
    char bytes[1024];
    size_t size = make_npy(bytes, 1, HEADER("|u1"), "\x05\x07", 2);
    sgm_extractor *extractor =
        sgm_array_extractor(sgm_npy_reader(sgm_memory_source("a.npy", bytes, size), NULL),
                            .regions = {{.field = "inputs"}, {.field = "next", .offset = 1}});
    sgm_block *block;
    CHECK_OK(sgm_extractor_extract(extractor, 10, &block));
    sgm_tensor *inputs = sgm_block_field(block, "inputs");
    char text[64];
    CHECK_STR(sgm_shape_text(sgm_tensor_shape(inputs), text, sizeof text), "(1, 1)");
    CHECK_NEAR(sgm_tensor_get(inputs, (int64_t[]){0, 0}), 5, 0);
    CHECK_NEAR(sgm_tensor_get(sgm_block_field(block, "next"), (int64_t[]){0, 0}), 7, 0);
    sgm_block_free(block);
    sgm_extractor_free(extractor);
}

static void check_npy_error(const char *header, const char *part)
{
    char bytes[1024];
    size_t size = make_npy(bytes, 1, header, "\1\2\3\4\5\6\7\xff\1\2\3\4\5\6\7\xff", 16);
    sgm_reader *reader = sgm_npy_reader(sgm_memory_source("bad.npy", bytes, size), NULL);
    sgm_examples r;
    CHECK_ERROR(sgm_reader_read(reader, INT64_MAX, &r), part);
    CHECK_CONTAINS(sgm_last_error(), "bad.npy");
    sgm_reader_free(reader);
}

TEST(npy_errors)
{
    check_npy_error("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2)}", "ascontiguousarray");
    check_npy_error("{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", "Python objects");
    check_npy_error("{'descr': '<U5', 'fortran_order': False, 'shape': (2,)}", "this is text");
    check_npy_error("{'descr': '<c8', 'fortran_order': False, 'shape': (2,)}", "'<c8' came");
    check_npy_error("{'descr': '|i4', 'fortran_order': False, 'shape': (2,)}", "'|i4' came");
    check_npy_error("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", "structured");
    check_npy_error("{'descr': '|u1', 'fortran_order': False, 'shape': ()}", "no dimension");
    check_npy_error("{'descr': '|u1', 'fortran_order': False, 'shape': (2)}", "a comma in the shape");
    check_npy_error("{'descr': '|u1', 'fortran_order': False, 'shape': (-2,)}",
                    "a dimension was expected, '-2,)}' came");
    check_npy_error("{'descr': '|u1', 'fortran_order': False, 'shape': (9223372036854775808,)}",
                    "below 2^63");
    check_npy_error("{'descr': '|u1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", "at most 8");
    check_npy_error("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 9223372036854775807, 4)}",
                    "too large");
    check_npy_error(
        "{'descr': '|u1', 'fortran_order': False, 'shape': (9223372036854775807, 576460752303423487)}",
        "ends in example 0");
    check_npy_error("{'descr': '|u1', 'fortran_order': False}", "descr, fortran_order and shape");
    check_npy_error("{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (2,)}", "each once");
    check_npy_error("{'descr': '|u1', 'fortran_order': 0, 'shape': (2,)}", "True or False");
    check_npy_error("{'descr': '|u1', 'fortran_order': False, 'shape': (2,)} x", "nothing but blanks");
    check_npy_error("{'descr': '|u1' 'fortran_order': False, 'shape': (2,)}", "a comma or }");
    check_npy_error("{'descr': '|u1", "quoted text");
    check_npy_error("", "{ was expected");
    check_npy_error(HEADER("|u1"), "the file goes on at byte");
    check_npy_error("{'descr': '<u8', 'fortran_order': False, 'shape': (2,)}",
                    "example 0 has an unsigned number above");
    check_npy_error("{'descr': '|u1', 'fortran_order': False, 'shape': (17,)}", "promises 17 examples");
}

/* An archive as numpy.savez makes it. */
static const char *write_npz(const char *name, int count, const char *compression)
{
    const char *path = data_path(name);
    char bytes[1024];
    struct archive *archive = archive_write_new();
    archive_write_set_format_zip(archive);
    archive_write_set_options(archive, compression);
    archive_write_open_filename(archive, path);
    const char *names[] = {"x.npy", "y.npy"};
    for (int i = 0; i < count; i++) {
        size_t size = make_npy(bytes, 1, HEADER("|u1"), i == 0 ? "\1\2" : "\3\4", 2);
        struct archive_entry *entry = archive_entry_new();
        archive_entry_set_pathname(entry, names[i]);
        archive_entry_set_filetype(entry, AE_IFREG);
        archive_entry_set_perm(entry, 0644);
        archive_entry_set_size(entry, (la_int64_t)size);
        archive_write_header(archive, entry);
        archive_write_data(archive, bytes, size);
        archive_entry_free(entry);
    }
    archive_write_close(archive);
    archive_write_free(archive);
    return path;
}

static void check_npz(const char *path, const char *array, double expected)
{
    sgm_reader *reader = sgm_npy_reader(sgm_file_source(path), array);
    sgm_examples r;
    for (int pass = 0; pass < 2; pass++) {
        CHECK_OK(sgm_reader_read(reader, 1, &r));
        CHECK_INT(r.count, 1);
        CHECK_NEAR(at(&r, 0), expected, 0);
        CHECK_OK(sgm_reader_rewind(reader));
    }
    sgm_reader_free(reader);
}

TEST(npz_members)
{
    const char *compressions[] = {"zip:compression=store", "zip:compression=deflate"};
    for (int i = 0; i < 2; i++) {
        const char *path = write_npz(i == 0 ? "store.npz" : "deflate.npz", 2, compressions[i]);
        check_npz(path, "x", 1);
        check_npz(path, "y", 3);
        check_npz(path, "y.npy", 3);
        sgm_reader *reader = sgm_npy_reader(sgm_file_source(path), "z");
        CHECK_ERROR(sgm_reader_prepare(reader), "z.npy; it has: x.npy, y.npy");
        sgm_reader_free(reader);
        reader = sgm_npy_reader(sgm_file_source(path), NULL); /* not the one that was saved first */
        CHECK_ERROR(sgm_reader_prepare(reader), "it has 2: x.npy, y.npy; name the one that is meant");
        sgm_reader_free(reader);
        check_npz(write_npz("one.npz", 1, compressions[i]), NULL, 1);
    }
    sgm_reader *reader = sgm_npy_reader(memory("\x93NUMPY\1"), "x");
    CHECK_ERROR(sgm_reader_prepare(reader), "not an .npz");
    sgm_reader_free(reader);
}
