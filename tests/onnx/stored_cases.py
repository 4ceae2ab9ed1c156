#!/usr/bin/env python3
"""Writes stored_cases.bin: models with inputs and the outputs that they must give.

    python3 tests/onnx/stored_cases.py > tests/onnx/stored_cases.bin

Some are official cases of the Python package onnx 1.23; the others are pipelines of scikit-learn, converted by
skl2onnx, and a model with a function of its own, with the outputs that ONNX Runtime gives. Wants numpy, onnx, onnxruntime, scikit-learn and skl2onnx. The
file has blocks, each with its length in 4 bytes, the lowest first; a case is its name, the model, the number of
its inputs (in one byte), these, the number of its outputs, and these.
"""
import re
import struct
import sys
import warnings

import numpy
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases
from skl2onnx import to_onnx
from sklearn.datasets import load_iris
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, RandomForestClassifier
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier

OFFICIAL = r"""test_(
    add_(int8|int16|uint16|uint32|uint64)|sub_uint16|mul_int8|div_int8|max_float16|min_uint64|
    cast_(FLOAT|FLOAT16)_to_(FLOAT16|FLOAT8E4M3FN|FLOAT8E5M2|FLOAT8E4M3FNUZ|FLOAT4E2M1|INT4|UINT4|INT2)|
    cast_(FLOAT8E5M2|FLOAT8E4M3FN|INT4|UINT4|FLOAT4E2M1|UINT2)_to_FLOAT|cast_no_saturate_FLOAT_to_FLOAT8E5M2|
    cast_e8m0_FLOAT_to_FLOAT8E8M0|quantizelinear_(int8|int4|e4m3fn|blocked_symmetric)|dequantizelinear_(int4|blocked)|
    bitshift_(left_uint16|right_int8_negative_input|left_int32_overflow)|bitwise_(and_ui8_bcast_4v3d|not_3d)|
    bitcast_(float32_to_int32|int8_to_uint8)|attention_4d_gqa_with_past_and_present|attention_3d_gqa_causal|
    attention_4d_softcap|attention_4d_causal_padded_kv_bf16|attention_4d_diff_heads_mask4d_padded_kv|
    rotary_embedding(_interleaved|_with_rotary_dim)|rms_normalization_3d_axis1_epsilon|group_normalization_epsilon|
    l[12]normalization_axis_0|swish|swiglu|einsum_(batch_diagonal|inner_prod|transpose|batch_matmul|sum)|
    cumprod_1d_reverse_exclusive|cumprod_2d_axis_0|scatternd_(max|multiply)|scatter_elements_with_reduction_min|
    gridsample_(bicubic_align_corners_0_additional_1|reflection_padding|volumetric_bilinear_align_corners_1)|wrap_pad|
    nonmaxsuppression_(two_classes|center_point_box_format)|center_crop_pad_crop_and_pad|spacetodepth_crd_mode_example|
    resize_downsample_scales_(cubic|linear)_antialias|resize_upsample_scales_linear_half_pixel_symmetric|
    resize_(upsample_sizes_nearest_not_smaller|downsample_sizes_nearest_not_larger|tf_crop_and_resize_axes_3_2)
    )$"""


def block(data):
    sys.stdout.buffer.write(struct.pack("<I", len(data)) + data)


def tensor(value, name):
    proto = value if isinstance(value, TensorProto) else numpy_helper.from_array(numpy.asarray(value), name)
    return proto.SerializeToString()


def store(name, model, inputs, outputs):
    block(name.encode())
    block(model.SerializeToString())
    for declared, values in ((model.graph.input, inputs), (model.graph.output, outputs)):
        block(bytes([len(values)]))
        for info, value in zip(declared, values):
            block(tensor(value, info.name))


def store_official():
    for case in sorted(collect_testcases(None), key=lambda case: case.name):
        if re.match(OFFICIAL, case.name, re.VERBOSE):
            store(case.name, case.model, *case.data_sets[0])


def as_numbers(output, classes):
    """What tensors of numbers have in the place of ONNX's: of maps the matrix of their values, of names of classes the numbers."""
    if isinstance(output, list):
        return numpy.float32([[each[name] for name in classes] for each in output])
    return numpy.int64([list(classes).index(text) for text in output]) if output.dtype == object else output


def store_pipeline(name, pipeline, x, y, zipmap=False):
    pipeline.fit(x, y)
    options = {"zipmap": zipmap} if hasattr(pipeline, "classes_") else None
    model = to_onnx(pipeline, x[:1], target_opset=18, options=options)
    some = x[::11]
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    outputs = session.run(None, {model.graph.input[0].name: some})
    store(name, model, [some], [as_numbers(output, getattr(pipeline, "classes_", None)) for output in outputs])


def store_pipelines():
    x, y = load_iris(return_X_y=True)
    x = x.astype(numpy.float32)
    price = (x @ [1, 2, -1, 3]).astype(numpy.float32)
    two = (y == 1).astype(int)
    store_pipeline("linear regression of scaled numbers", make_pipeline(StandardScaler(), LinearRegression()), x, price)
    store_pipeline("logistic regression of three classes", make_pipeline(Normalizer("l1"), LogisticRegression()), x, y)
    store_pipeline("logistic regression of two classes", make_pipeline(StandardScaler(), LogisticRegression()), x, two)
    store_pipeline("a tree", DecisionTreeClassifier(max_depth=3, random_state=1), x, y)
    store_pipeline("a forest", RandomForestClassifier(4, max_depth=3, random_state=1), x, y)
    store_pipeline("a forest of two classes", RandomForestClassifier(4, max_depth=3, random_state=1), x, two)
    store_pipeline("a forest of numbers", RandomForestRegressor(4, max_depth=3, random_state=1), x, price)
    store_pipeline("boosted trees", GradientBoostingRegressor(n_estimators=5, max_depth=2, random_state=1), x, price)
    store_pipeline("boosted trees of two classes",
                   GradientBoostingClassifier(n_estimators=5, max_depth=2, random_state=1), x, two)


def store_function():
    """y = leaky(a) + leaky(b): a function of the model with an attribute of its caller and an input left out."""
    node, info = helper.make_node, helper.make_tensor_value_info
    slope = node("LeakyRelu", ["x"], ["bent"])
    reference = helper.make_attribute("alpha", 0.0)
    reference.ref_attr_name = "steepness"
    slope.attribute.append(reference)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    leaky = helper.make_function("own", "Leaky", ["x", "low", "high"], ["y"],
                                 [slope, node("Clip", ["bent", "low", "high"], ["y"])], opsets[:1], ["steepness"])
    graph = helper.make_graph(
        [node("Leaky", ["a", "low"], ["p"], domain="own", steepness=0.5),
         node("Leaky", ["b", "", "low"], ["q"], domain="own", steepness=0.25), node("Add", ["p", "q"], ["y"])], "g",
        [info("a", TensorProto.FLOAT, [4]), info("b", TensorProto.FLOAT, [4])], [info("y", TensorProto.FLOAT, [4])],
        [numpy_helper.from_array(numpy.float32(-1), "low")])
    model = helper.make_model(graph, opset_imports=opsets, functions=[leaky], ir_version=8)
    feeds = {"a": numpy.float32([-8, -1, 0, 3]), "b": numpy.float32([-2, -8, 4, 5])}
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    store("a function of the model", model, list(feeds.values()), session.run(None, feeds))


def store_windows():
    """Windows over three axes, with steps, gaps and padding: convolutions in groups, one transposed, poolings."""
    node, info = helper.make_node, helper.make_tensor_value_info
    generator = numpy.random.default_rng(7)
    weights = [generator.normal(size=size).astype(numpy.float32) for size in [(4, 2, 2, 3, 2), (4, 3, 3, 2, 1)]]
    biases = generator.normal(size=6).astype(numpy.float32)
    x = generator.normal(size=(2, 4, 5, 6, 5)).astype(numpy.float32)
    graph = helper.make_graph(
        [node("Conv", ["x", "w"], ["y"], group=2, strides=[2, 1, 2], dilations=[2, 1, 1], pads=[1, 0, 1, 2, 1, 0]),
         node("ConvTranspose", ["y", "v", "b"], ["z"], group=2, strides=[2, 3, 1], dilations=[1, 2, 1],
              pads=[1, 0, 0, 2, 1, 0], output_padding=[1, 2, 0]),
         node("AveragePool", ["x"], ["a"], kernel_shape=[2, 3, 2], dilations=[2, 1, 2], pads=[1, 1, 0, 0, 1, 1]),
         node("AveragePool", ["x"], ["c"], kernel_shape=[2, 3, 2], pads=[1, 1, 0, 0, 1, 1], count_include_pad=1,
              strides=[2, 2, 1], ceil_mode=1),
         node("MaxPool", ["x"], ["m"], kernel_shape=[2, 3, 2], dilations=[2, 1, 2], pads=[1, 1, 0, 0, 1, 1]),
         node("LpPool", ["x"], ["l"], kernel_shape=[2, 3, 2], pads=[1, 1, 0, 0, 1, 1], p=3)], "g",
        [info("x", TensorProto.FLOAT, x.shape)],
        [info(name, TensorProto.FLOAT, None) for name in "yzacml"],
        [numpy_helper.from_array(value, name) for value, name in zip([*weights, biases], "wvb")])
    store_session("windows of three axes", graph, [x])


def store_sequences():
    """What is split is squared entry by entry, then entries are put in, taken out and put together."""
    node, info = helper.make_node, helper.make_tensor_value_info
    square = helper.make_graph([node("Mul", ["e", "e"], ["s"]), node("Add", ["s", "one"], ["t"])], "body",
                               [info("e", TensorProto.FLOAT, None), info("one", TensorProto.FLOAT, None)],
                               [info("s", TensorProto.FLOAT, None), info("t", TensorProto.FLOAT, None)])
    numbers = {"two": numpy.int64(2), "first": numpy.int64(0), "last": numpy.int64(-1), "one": numpy.float32(1)}
    graph = helper.make_graph(
        [node("SplitToSequence", ["x", "two"], ["parts"], axis=1),
         node("SequenceMap", ["parts", "one"], ["squares", "larger"], body=square),
         node("SequenceLength", ["squares"], ["length"]),
         node("SequenceAt", ["larger", "last"], ["newest"]),
         node("SequenceInsert", ["squares", "newest", "first"], ["longer"]),
         node("SequenceErase", ["longer", "last"], ["shorter"]),
         node("ConcatFromSequence", ["shorter"], ["wide"], axis=1),
         node("SplitToSequence", ["x"], ["rows"], keepdims=0),
         node("SequenceEmpty", [], ["empty"]),
         node("SequenceInsert", ["empty", "newest"], ["single"]),
         node("SequenceErase", ["rows"], ["fewer"]),
         node("ConcatFromSequence", ["fewer"], ["deep"], axis=-1, new_axis=1),
         node("SequenceAt", ["single", "first"], ["same"])], "g",
        [info("x", TensorProto.FLOAT, [3, 5])],
        [info("length", TensorProto.INT64, [])] +
        [info(name, TensorProto.FLOAT, None) for name in ["wide", "deep", "same"]],
        [numpy_helper.from_array(numpy.asarray(value), name) for name, value in numbers.items()])
    store_session("sequences", graph, [numpy.arange(15, dtype=numpy.float32).reshape(3, 5)])


def store_cubic():
    """A picture read beside its ends by cubic convolution, in each way of padding."""
    node, info = helper.make_node, helper.make_tensor_value_info
    x = numpy.sin(numpy.arange(12, dtype=numpy.float32) * 1.7).reshape(1, 1, 3, 4)
    places = (1.6 * numpy.sin(numpy.arange(24, dtype=numpy.float32) * 2.3)).reshape(1, 3, 4, 2)
    ways = [(padding, corners) for padding in ("border", "reflection", "zeros") for corners in (0, 1)]
    graph = helper.make_graph(
        [node("GridSample", ["x", "places"], [f"y{i}"], mode="bicubic", padding_mode=padding, align_corners=corners)
         for i, (padding, corners) in enumerate(ways)], "g",
        [info("x", TensorProto.FLOAT, x.shape), info("places", TensorProto.FLOAT, places.shape)],
        [info(f"y{i}", TensorProto.FLOAT, None) for i in range(len(ways))])
    store_session("cubic convolution beside the picture", graph, [x, places])


def store_casts():
    """Negative numbers wrap around where the type without signs is the larger one."""
    numbers = {"a": numpy.int16([-65, 0, 70]), "b": numpy.int32([-2**31, -1, 2**31 - 1]), "c": numpy.int8([-128, 5, 127])}
    types = [TensorProto.INT16, TensorProto.INT32, TensorProto.INT8]
    graph = helper.make_graph(
        [helper.make_node("Cast", [name], [name * 2], to=TensorProto.UINT32) for name in numbers], "g",
        [helper.make_tensor_value_info(name, dtype, [3]) for name, dtype in zip(numbers, types)],
        [helper.make_tensor_value_info(name * 2, TensorProto.UINT32, [3]) for name in numbers])
    store_session("casts to larger types without signs", graph, list(numbers.values()))


def store_named_pipelines():
    """Classes that are texts: of classifiers of ONNX's own, and of products of matrices."""
    iris = load_iris()
    x, y = iris.data.astype(numpy.float32), iris.target_names[iris.target]
    store_pipeline("logistic regression of three names", LogisticRegression(), x, y)
    store_pipeline("logistic regression of two names in maps", LogisticRegression(), x[50:], y[50:], zipmap=True)
    store_pipeline("a tree of names", DecisionTreeClassifier(max_depth=2, random_state=1), x, y)
    store_pipeline("a tree of two names", DecisionTreeClassifier(max_depth=2, random_state=1), x[50:], y[50:])
    store_pipeline("bayes of names", GaussianNB(), x, y)


def store_names():
    """One list of names twice: of a classifier, and as a tensor from which numbers choose."""
    node, info = helper.make_node, helper.make_tensor_value_info
    names = ["no", "", "yes"]
    graph = helper.make_graph(
        [node("LinearClassifier", ["x"], ["told", "scores"], domain="ai.onnx.ml", classlabels_strings=names,
              coefficients=[1.0, 2, -1, 1, 0.5, -2], intercepts=[0.0, 1, 0], post_transform="NONE"),
         node("Identity", ["told"], ["label"]),
         node("ArgMin", ["scores"], ["least"], axis=1, keepdims=0),
         node("ArrayFeatureExtractor", ["classes", "least"], ["row"], domain="ai.onnx.ml"),
         node("Reshape", ["row", "flat"], ["opposite"])], "g",
        [info("x", TensorProto.FLOAT, [None, 2])],
        [info("scores", TensorProto.FLOAT, None), info("label", TensorProto.STRING, None),
         info("opposite", TensorProto.STRING, None)],
        [helper.make_tensor("classes", TensorProto.STRING, [3], names),
         numpy_helper.from_array(numpy.int64([-1]), "flat")])
    store_session("names of classes", graph, [numpy.float32([[1, 2], [-3, 1], [0, -2], [4, -1], [-1, 1]])], names)


def store_passed_names():
    """Names that go through a branch and a function before they are told."""
    node, info = helper.make_node, helper.make_tensor_value_info
    names = ["no", "", "yes"]
    branches = [helper.make_graph([node("Squeeze" if way else "Flatten", ["told"], [f"by_{way}"])], f"branch_{way}", [],
                                  [info(f"by_{way}", TensorProto.STRING, None)]) for way in range(2)]
    opsets = [helper.make_opsetid("", 19), helper.make_opsetid("ai.onnx.ml", 3), helper.make_opsetid("own", 1)]
    passes = helper.make_function("own", "Passes", ["given"], ["passed"],
                                  [node("Transpose", ["given"], ["turned"]), node("Identity", ["turned"], ["passed"])],
                                  opsets[:1])
    graph = helper.make_graph(
        [node("LinearClassifier", ["x"], ["told", "scores"], domain="ai.onnx.ml", classlabels_strings=names,
              coefficients=[1.0, 2, -1, 1, 0.5, -2], intercepts=[0.0, 1, 0], post_transform="NONE"),
         node("If", ["way"], ["chosen"], then_branch=branches[1], else_branch=branches[0]),
         node("Passes", ["chosen"], ["label"], domain="own")], "g", [info("x", TensorProto.FLOAT, [None, 2])],
        [info("scores", TensorProto.FLOAT, None), info("label", TensorProto.STRING, None)],
        [numpy_helper.from_array(numpy.bool_(True), "way")])
    model = helper.make_model(graph, opset_imports=opsets, functions=[passes], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    x = numpy.float32([[1, 2], [-3, 1], [0, -2]])
    store("names of classes in a branch", model, [x], [as_numbers(output, names) for output in session.run(None, {"x": x})])


def store_machines():
    """Support vector machines: kernels, decisions of two and of more classes, probabilities, outliers."""
    iris = load_iris()
    x, y = iris.data.astype(numpy.float32)[::3], iris.target[::3]
    names, price = iris.target_names[y], (x @ [1, 2, -1, 3]).astype(numpy.float32)
    kernel = {"gamma": 0.2, "coef0": 0.4}
    for name in ["linear", "poly", "rbf", "sigmoid"]:
        store_pipeline(f"a machine of numbers, {name}", make_pipeline(StandardScaler(), SVR(kernel=name, **kernel)), x, price)
        store_pipeline(f"a machine of two classes, {name}", SVC(kernel=name, **kernel), x, 5 * (y == 1))
        store_pipeline(f"a machine of probabilities, {name}", SVC(kernel=name, probability=True, random_state=1, **kernel), x, y)
    store_pipeline("a machine of pairs", SVC(decision_function_shape="ovo"), x, y)
    store_pipeline("a machine of two probabilities", SVC(probability=True, random_state=1), x, y == 1)
    store_pipeline("a machine of names", NuSVC(probability=True, random_state=1), x, names)
    store_pipeline("outliers", OneClassSVM(nu=0.3), x, y)
    node, info = helper.make_node, helper.make_tensor_value_info
    linear = {"domain": "ai.onnx.ml", "kernel_type": "LINEAR", "kernel_params": [0.0, 0, 0]}
    graph = helper.make_graph(
        [node("SVMClassifier", ["x"], ["label", "scores"], classlabels_ints=[4, 9, 2],
              coefficients=[1.0, 2, -0.5, 1, 0.1, 0.2], rho=[0.3, 0.2, 0.1], post_transform="SOFTMAX", **linear),
         node("SVMRegressor", ["x"], ["y"], coefficients=[1.0, -2], rho=[0.3], **linear)],
        "g", [info("x", TensorProto.FLOAT, [None, 2])],
        [info("label", TensorProto.INT64, None), info("scores", TensorProto.FLOAT, None), info("y", TensorProto.FLOAT, None)])
    store_session("linear machines", graph, [numpy.float32([[1, 2], [-3, 1], [0, -2], [4, -1], [-1, 1]])], [])


def store_session(name, graph, inputs, classes=None):
    """A model with the outputs of ONNX Runtime."""
    opsets = [helper.make_opsetid("", 19)] + [helper.make_opsetid("ai.onnx.ml", 3)] * (classes is not None)
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    outputs = session.run(None, dict(zip([value.name for value in graph.input], inputs)))
    store(name, model, inputs, [as_numbers(output, classes) for output in outputs])


warnings.simplefilter("ignore")
numpy.seterr(all="ignore")
store_official()
store_pipelines()
store_function()
store_windows()
store_sequences()
store_cubic()
store_casts()
store_named_pipelines()
store_names()
store_passed_names()
store_machines()
