/* Turns the bytes of an ONNX file into messages in memory, believing nothing in them before it is checked.
 *
 * Called by model.c (a whole model) and by tests (a single tensor, sgm_onnx_parse_tensor). protobuf-c's
 * reader recurses into nested messages without a limit and allocates as it goes; so `check` walks the same
 * bytes first and measures the nesting. Allocations go through the library's allocator, so that tests can
 * make each one fail. */
#include "onnx/wire/wire.h"

#include <sigma/onnx.h>

/* A subgraph counts 3 levels (node, attribute, graph), so this allows about 20 subgraphs in each other;
 * import.c allows 8. Each level costs a stack frame of `check` and one of protobuf-c. */
#define DEEPEST_MESSAGE 64

static void *allocate(void *user, size_t size)
{
    (void)user;
    return sgm__alloc(size);
}

static void release(void *user, void *memory)
{
    (void)user;
    sgm__free(memory);
}

static ProtobufCAllocator allocator = {.alloc = allocate, .free = release};

/* --- a first walk over the bytes, which only looks how deep messages lie in each other --- */

/* What is left of the bytes of one message. */
typedef struct bytes {
    const uint8_t *at, *end;
} bytes;

/* A variable-length integer of protobuf: 7 bits in each byte, the lowest first, the top bit set in all but
 * the last byte. At most 10 bytes; bits above 64 are dropped. */
static bool read_number(bytes *b, uint64_t *number)
{
    *number = 0;
    for (int shift = 0; shift < 70 && b->at < b->end; shift += 7) {
        uint8_t byte = *b->at++;
        if (shift < 64)
            *number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

static bool skip(bytes *b, uint64_t count)
{
    if (count > (uint64_t)(b->end - b->at))
        return false;
    b->at += count;
    return true;
}

typedef enum shape_of_bytes { WHOLE, DAMAGED, TOO_DEEP } shape_of_bytes;

/* Walks the fields of one message. A field is a key (number << 3 | wire type) and a payload; only a
 * length-delimited field whose descriptor says "message" is entered. `depth` is how many further levels
 * are allowed. A group (wire types 3 and 4, obsolete) counts as damage. protobuf-c checks the contents of
 * the fields afterwards. */
static shape_of_bytes check(const ProtobufCMessageDescriptor *type, bytes b, int depth)
{
    enum { NUMBER = 0, EIGHT_BYTES = 1, BLOCK = 2, FOUR_BYTES = 5 };
    while (b.at < b.end) {
        uint64_t key, value;
        if (!read_number(&b, &key))
            return DAMAGED;
        if ((key & 7) == NUMBER && read_number(&b, &value))
            continue;
        if ((key & 7) == EIGHT_BYTES && skip(&b, 8))
            continue;
        if ((key & 7) == FOUR_BYTES && skip(&b, 4))
            continue;
        if ((key & 7) != BLOCK || !read_number(&b, &value) || value > (uint64_t)(b.end - b.at))
            return DAMAGED;
        const ProtobufCFieldDescriptor *field =
            key >> 3 <= INT32_MAX ? protobuf_c_message_descriptor_get_field(type, (unsigned)(key >> 3))
                                  : NULL;
        bool nested = field != NULL && field->type == PROTOBUF_C_TYPE_MESSAGE;
        if (nested && depth == 0)
            return TOO_DEEP;
        shape_of_bytes inside =
            nested ? check(field->descriptor, (bytes){b.at, b.at + value}, depth - 1) : WHOLE;
        if (inside != WHOLE)
            return inside;
        b.at += value;
    }
    return WHOLE;
}

/* --- the second one, which reads --- */

/* Checks, then reads. `what` names the kind of message in errors. The caller owns the result. */
static void *unpack(const ProtobufCMessageDescriptor *type, const void *data, size_t length, const char *what)
{
    bytes all = {data, (const uint8_t *)data + length};
    ProtobufCMessage *message = NULL;
    shape_of_bytes found = check(type, all, DEEPEST_MESSAGE);
    if (found == TOO_DEEP) {
        sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "the messages of this %s of ONNX lie in each other more than %d deep (each subgraph counts 3)",
            what, DEEPEST_MESSAGE);
        return NULL;
    }
    if (found == WHOLE)
        message = protobuf_c_message_unpack(type, &allocator, length, data);
    if (message == NULL)
        sgm_fail(SGM_ERROR_FORMAT,
                 "these %zu bytes are no %s of ONNX: it is cut off, damaged or something else", length, what);
    return message;
}

Onnx__ModelProto *sgm__onnx_unpack_model(const void *data, size_t length)
{
    return unpack(&onnx__model_proto__descriptor, data, length, "model");
}

void sgm__onnx_free_model(Onnx__ModelProto *model)
{
    if (model != NULL)
        onnx__model_proto__free_unpacked(model, &allocator);
}

void sgm__onnx_drop_data(Onnx__TensorProto *proto)
{
    release(NULL, proto->raw_data.data);
    proto->raw_data = (ProtobufCBinaryData){0};
    proto->has_raw_data = false;
}

/* A file with a single TensorProto, as ONNX's test data has it. The message is freed, the tensor has a
 * copy. */
sgm_tensor *sgm_onnx_parse_tensor(const void *data, size_t length)
{
    if (data == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "reading a tensor of ONNX wants its bytes");
        return NULL;
    }
    Onnx__TensorProto *proto = unpack(&onnx__tensor_proto__descriptor, data, length, "tensor");
    if (proto == NULL)
        return NULL;
    sgm_tensor *tensor = sgm__onnx_tensor(proto, NULL);
    onnx__tensor_proto__free_unpacked(proto, &allocator);
    return tensor;
}
