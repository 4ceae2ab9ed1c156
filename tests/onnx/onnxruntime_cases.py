#!/usr/bin/env python3
"""Writes onnxruntime_cases.h: models of one node, inputs, and the outputs that ONNX Runtime 1.32 gives; and models that
must be refused. Wants the Python packages onnx, onnxruntime and numpy:
    python3 tests/onnx/onnxruntime_cases.py > tests/onnx/onnxruntime_cases.h
"""
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(7)


def floats(*shape):
    return random.standard_normal(shape).astype(np.float32)


def octets(*shape):
    return random.integers(0, 256, shape).astype(np.uint8)


def number(value, dtype=np.float32):
    return np.array(value, dtype)


def make_model(operator, inputs, attributes, opset, outputs, made=("y",), known=False):
    names = ["" if x is None else f"i{i}" for i, x in enumerate(inputs)]
    declared = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
                for n, x in zip(names, inputs) if x is not None]
    given = outputs if outputs else [onnx.ValueInfoProto(name="y")]
    node = helper.make_node(operator, names, made, **attributes)
    values = [numpy_helper.from_array(x, n) for n, x in zip(names, inputs) if x is not None]
    graph = helper.make_graph([node], "g", [] if known else declared, given, values if known else None)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def as_string(data):
    """Letters and digits as they are, other bytes as octal numbers, with three digits only where a digit follows."""
    parts = []
    for byte, after in zip(data, data[1:] + b" "):
        character = chr(byte)
        if byte < 128 and character.isalnum():
            parts.append(character)
        else:
            parts.append(f"\\{byte:03o}" if chr(after) in "01234567" else f"\\{byte:o}")
    lines, line = [], ""
    for part in parts:
        if len(line) + len(part) > 100:
            lines, line = lines + [line], ""
        line += part
    lines.append(line)
    return "\n        ".join(f'"{line}"' for line in lines)


def print_bytes(data, end=","):
    print(f"     {{{len(data)}, {as_string(data)}}}{end}")


def named(inputs):
    return {f"i{i}": x for i, x in enumerate(inputs) if x is not None}


def run(operator, inputs, attributes, opset, made=("y",)):
    model = make_model(operator, inputs, attributes, opset, None, made).SerializeToString()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(["y"], named(inputs))[0]


def case(name, operator, inputs, attributes, opset=13, y=None, made=("y",)):
    """`made`: names of the outputs of the operator. y: the output of that name; by default what ONNX Runtime gives."""
    if y is None:
        y = run(operator, inputs, attributes, opset, made)
    feeds = named(inputs)
    output = helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(y.dtype), y.shape)
    print(f'    {{"{name}",')
    print_bytes(make_model(operator, inputs, attributes, opset, [output], made).SerializeToString())
    print("     {", end="")
    for n, x in feeds.items():
        data = numpy_helper.from_array(x, n).SerializeToString()
        print(f'{{"{n}", {{{len(data)}, {as_string(data)}}}}},')
    print("     },")
    print_bytes(numpy_helper.from_array(y, "y").SerializeToString())
    print("    },")


def refused(name, message, operator, inputs, attributes, opset=13):
    output = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    print(f'    {{"{name}", "{message}",')
    print_bytes(make_model(operator, inputs, attributes, opset, output, known=True).SerializeToString())
    print("    },")


print("""/* Written by onnxruntime_cases.py. */
#include <stddef.h>

typedef struct bytes {
    size_t length;
    const char *data;
} bytes;

/* clang-format off */
static const struct {
    const char *name;
    bytes model;
    struct {
        const char *name; /* NULL: no more */
        bytes tensor;
    } inputs[9];
    bytes output;
} runtime_cases[] = {""")
special = np.array([0, -0.0, 1, -1, 3, -3, 7.5, -7.5, 1e30, -1e30, np.inf, -np.inf, np.nan, 2, 5], np.float32)
a, b = np.meshgrid(special, special)
case("mod of floats", "Mod", [a.copy(), b.copy()], {"fmod": 1})
case("mod of int32", "Mod", [np.array([7, -7, 7, -7, 2**31 - 1], np.int32), np.array([3, 3, -3, -3, 10], np.int32)], {})
case("mod of int64", "Mod", [np.array([2**62 + 5, -2**62 - 5], np.int64), np.array([1000, 1000], np.int64)], {})
# ONNX Runtime has one zero point for all filters, so each filter is a convolution of numbers that are whole.
x, w, zero = octets(1, 2, 4, 4), octets(2, 2, 2, 2), np.array([10, 100], np.uint8)
centred = [x.astype(np.float32) - 3, w.astype(np.float32) - zero.reshape(2, 1, 1, 1)]
case("filters with zero points", "ConvInteger", [x, w, number(3, np.uint8), zero], {}, 10,
     run("Conv", centred, {}, 11).astype(np.int32))
case("filters with scales", "QLinearConv",
     [octets(1, 2, 5, 4), number(.02), number(120, np.uint8), octets(3, 2, 2, 3),
      np.array([.004, .01, .002], np.float32), np.full(3, 90, np.uint8), number(.05), number(30, np.uint8),
      np.array([100, -700, 1500], np.int32)], {"pads": [1, 0, 0, 1]}, 10)
# Nor has it zero points and scales for each row.
a, b = octets(3, 4), octets(4, 2)
rows, columns = np.array([1, 50, 200], np.uint8), np.array([9, 180], np.uint8)
product = (a.astype(np.int32) - rows.reshape(3, 1)) @ (b.astype(np.int32) - columns)
case("rows and columns with zero points", "MatMulInteger", [a, b, rows, columns], {}, 10, product)
scales = [np.array([.02, .01, .03], np.float32), np.array([.01, .002], np.float32)]
y = np.rint(product * (scales[0].astype(float).reshape(3, 1) * scales[1].astype(float) / .1))
case("rows and columns with scales", "QLinearMatMul",
     [a, scales[0], rows, b, scales[1], columns, number(.1), number(90, np.uint8)], {}, 10,
     np.clip(y + 90, 0, 255).astype(np.uint8))
case("columns of a batch with zero points", "MatMulInteger",
     [octets(2, 3, 4), octets(2, 4, 3), number(7, np.uint8), octets(2, 1, 3)], {}, 10)
case("columns with scales", "QLinearMatMul",
     [octets(3, 4), number(.02), number(100, np.uint8), octets(4, 3), np.array([.01, .002, .03], np.float32),
      np.full(3, 77, np.uint8), number(.1), number(9, np.uint8)], {}, 10)
case("another axis is quantised", "QuantizeLinear",
     [20 * floats(3, 2, 2), np.array([.1, .5, .3], np.float32), np.array([3, 90, 128], np.uint8)], {"axis": -3})
case("a larger picture from corner to corner", "Resize",
     [floats(1, 1, 7, 9), None, np.array([1, 1, 1.5, 1.5], np.float32)],
     {"mode": "linear", "coordinate_transformation_mode": "align_corners"})
case("a smaller picture from corner to corner", "Resize",
     [floats(1, 2, 5, 4), None, np.array([1, 1, .7, .6], np.float32)],
     {"mode": "cubic", "coordinate_transformation_mode": "align_corners"})
case("the nearest of places that are nearly whole", "Resize",
     [floats(1, 1, 8, 8), None, np.array([1, 1, .6, .6], np.float32)],
     {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"})
for way in ("NOTSET", "SAME_UPPER", "SAME_LOWER"):
    case(f"a shape that cuts 3 off, {way}", "ConvTranspose", [floats(1, 1, 4), floats(1, 2, 5)],
         {"strides": [4], "dilations": [2], "output_shape": [18], "auto_pad": way}, 11)
case("sums of exponentials of infinities and large numbers", "ReduceLogSumExp",
     [np.array([[1, -np.inf, 2], [-np.inf] * 3, [np.inf, 1, 2], [3e38, -3e38, 0], [np.nan, 1, np.inf]], np.float32)],
     {"axes": [1], "keepdims": 0})
case("no padding at all", "Conv", [floats(1, 1, 6, 5), floats(1, 1, 3, 2)], {"auto_pad": "VALID"}, 11)
for mode in ("nearest", "linear"):
    for roi in ([0, 0, -.3, .2, 1, 1, 1.2, .7], [0, 0, .5, .6, 1, 1, 1.5, 2]):
        case(f"a part that is partly outside, {mode}", "Resize",
             [floats(1, 1, 5, 6), np.array(roi, np.float32), None, np.array([1, 1, 4, 7], np.int64)],
             {"mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 9.5})
    case(f"a part that is nowhere, {mode}", "Resize",
         [floats(1, 1, 5, 6), np.array([0, 0, np.nan, 0, 1, 1, 1, 1], np.float32), None, np.array([1, 1, 4, 7], np.int64)],
         {"mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 9.5}, 13,
         np.full((1, 1, 4, 7), 9.5, np.float32))
infinity = np.inf
edges = np.array([0, 1e-8, -1e-5, .01, -.5, 1, 1.9, -2.1, 30, 1.9e19, -3e38, infinity, -infinity, np.nan], np.float32)
case("asinh of large and small numbers", "Asinh", [edges], {}, 9)
case("acosh of large numbers, near 1, and where there is none", "Acosh",
     [np.array([1, 1 + 2**-23, 1.5, 2, 2.1, 1e4, 1.9e19, 3e38, infinity, .5, -2, -1e10, -1e30, np.nan],
              np.float32)], {}, 9)
edges = np.array([0, 1e-8, -1e-5, .01, -.5, 20, 89, -89.2, infinity, -infinity, np.nan], np.float32)
case("sinh near 0 and where exp overflows", "Sinh", [edges], {}, 9)
case("cosh where exp overflows", "Cosh", [edges], {}, 9)
logarithms, classes = np.array([[-infinity, 0, -1], [-.5, -1, -infinity]], np.float32), np.array([1, 0], np.int64)
case("a cost with an impossible class", "NegativeLogLikelihoodLoss", [logarithms, classes], {})
case("a cost of the impossible", "NegativeLogLikelihoodLoss", [logarithms, np.array([0, 0], np.int64)], {})
case("a cost with an impossible class and weights", "SoftmaxCrossEntropyLoss",
     [logarithms, classes, np.array([.5, 2, 1], np.float32)], {})
large = np.array([2**53 + 1, -2**53 - 1, 2**62 + 1, -2**62 - 3, 7, -7, 0, -2**63], np.int64)
case("quotients of large integers", "Div", [large, np.array([3, 3, -5, 7, -2, 2, 9, 1], np.int64)], {})
base, power = np.array([3, -3, 7, 2, -1, 0], np.int64), np.array([39, 39, 22, 62, 3, 0], np.int64)
case("powers of integers", "Pow", [base, power], {}, 13, base**power)
case("inverse powers of integers", "Pow", [np.array([1, -1, -1, 2], np.int64), np.array([-3, -3, -4, -1], np.int64)], {})
left, right = np.array([[2**53 + 1, 2], [3, 4]], np.int64), np.array([[3, 1], [1, 2**53 + 1]], np.int64)
case("products of large integers", "MatMul", [left, right], {})
case("a range of large integers", "Range", [number(2**53 + 1, np.int64), number(2**53 + 8, np.int64), number(3, np.int64)], {})
case("a range backwards", "Range", [number(2**63 - 1, np.int64), number(-2**63, np.int64), number(-2**62 - 1, np.int64)], {},
     13, np.array([2**63 - 1, 2**62 - 2, -3, -2**62 - 4], np.int64))
for reverse in (0, 1):
    case("a sum of large and infinite numbers without themselves", "CumSum",
         [np.array([[1e8, 1, 2, 3], [1, infinity, 2, 3], [1, 2, 3e8, 1]], np.float32), number(1, np.int64)],
         {"exclusive": 1, "reverse": reverse}, 11)
for made in (["y", "a", "b"], ["a", "y", "b"], ["a", "b", "y"]):
    case("zeros are quantised", "DynamicQuantizeLinear", [np.zeros(3, np.float32)], {}, 11, made=made)
case("what a condition lets through", "Compress", [floats(3, 2), np.array([True, False, True])], {"axis": 0}, 9)
case("where it is not 0", "NonZero", [np.array([[1, 0], [3, 3]], np.float32)], {})
case("a slice backwards from before the first entry, and from behind the last", "Slice",
     [np.arange(12, dtype=np.float32).reshape(3, 4), np.array([-9, 9], np.int64), np.array([-2**63, -2**63], np.int64),
      np.array([0, 1], np.int64), np.array([-1, -2], np.int64)], {})
print("};\n\nstatic const struct {\n    const char *name, *message;\n    bytes model;\n} refused_models[] = {")
picture, weights = floats(1, 4, 4, 4), floats(1, 4, 2, 2)
refused("an attribute of a later opset", "(SpaceToDepth of opset 13): its attribute 'mode' is not known",
        "SpaceToDepth", [picture], {"blocksize": 2, "mode": "CRD"})
refused("an attribute that nobody knows", "(Gemm of opset 13): its attribute 'transC' is not known", "Gemm",
        [floats(2, 2), floats(2, 2)], {"transC": 1})
refused("an attribute of another kind", "its attribute 'axis' is not an integer", "Softmax", [floats(2, 2)],
        {"axis": 1.0})
refused("an unknown way of padding", "'auto_pad' is none of NOTSET, SAME_UPPER, SAME_LOWER and VALID", "Conv",
        [picture, weights], {"auto_pad": "SAME"})
refused("no group", "'group' is 0, and must be at least 1", "Conv", [picture, weights], {"group": 0})
refused("blocks of another size", "scales of blocks of 3 do not go with the data", "DequantizeLinear",
        [octets(7, 2), floats(2, 2), octets(2, 2)], {"axis": 0, "block_size": 3}, 21)
refused("an opset to come", "it is of opset 99: those from 1 to 28 are known here", "Relu", [picture], {}, 99)
refused("an opset of nonsense", "it is of opset 4611686018427387904: those from 1 to 28", "Relu", [picture], {}, 2**62)
refused("parts that are not there", "'num_outputs' is 3, and it has 1 outputs", "Split", [picture],
        {"num_outputs": 3}, 18)
refused("a node that makes too much", "it makes 1073741825 elements of 1; where that is more, at most 268435456 are made",
        "Pad", [floats(1)], {"pads": [0, 2**30], "mode": "constant"}, 2)
refused("the number of entries in an attribute of earlier opsets", "(TopK of opset 11): its attribute 'k' is not known",
        "TopK", [floats(3), np.array([2], np.int64)], {"k": 3}, 11)
refused("no number of entries", "the first -1 of 3 entries", "TopK", [floats(3)], {}, 1)
refused("an axis of earlier opsets", "(Add of opset 13): its attribute 'axis' is not known", "Add", [floats(2), floats(2)],
        {"axis": 0})
refused("scales for other axes", "'scales' has 2 numbers, expected 4", "Upsample",
        [picture, np.array([1, 1, 2, 2], np.float32)], {"scales": [2.0, 2.0]}, 9)
refused("the largest of large integers", "numbers of int64 are not pooled here", "MaxPool", [np.zeros((1, 1, 4), np.int64)],
        {"kernel_shape": [2]}, 12)
for depth in (1e30, np.nan, -1):
    refused("classes without a number", "is no number of classes", "OneHot",
            [np.array([1], np.int64), number(depth), floats(2)], {})
refused("a range that never arrives", "a range has at most 134217728 numbers", "Range",
        [number(1, np.int64), number(2, np.int64), number(0, np.int64)], {})
branches = [helper.make_graph([helper.make_node(name, ["x"], ["y"])], name, [],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]) for name in ("Relu", "Bend")]
choice = helper.make_graph(
    [helper.make_node("If", ["true"], ["y"], then_branch=branches[0], else_branch=branches[1])], "g",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    [numpy_helper.from_array(np.array(True), "true")])
print('    {"an operator in a branch that is not taken", "(Bend of opset 13): operator \'Bend\' is not supported",')
print_bytes(helper.make_model(choice, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString())
print("    },")
body = helper.make_graph(
    [helper.make_node("Add", ["i", "one"], ["j"]), helper.make_node("Less", ["j", "n"], ["more"])], "body",
    [helper.make_tensor_value_info("round", TensorProto.INT64, []), helper.make_tensor_value_info("c", TensorProto.BOOL, []),
     helper.make_tensor_value_info("i", TensorProto.INT64, [])],
    [helper.make_tensor_value_info("more", TensorProto.BOOL, []), helper.make_tensor_value_info("j", TensorProto.INT64, [])])
graph = helper.make_graph(
    [helper.make_node("Loop", ["", "true", "zero"], ["y"], body=body)], "g",
    [helper.make_tensor_value_info("n", TensorProto.INT64, [])], [helper.make_tensor_value_info("y", TensorProto.INT64, [])],
    [numpy_helper.from_array(np.array(x), name) for x, name in ((1, "one"), (0, "zero"), (True, "true"))])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
print("};\n\n/* y counts to n. */\nstatic const bytes counting_loop =")
print_bytes(model.SerializeToString(), ";")
print("/* clang-format on */")
