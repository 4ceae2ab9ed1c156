#!/usr/bin/env python3
"""Runs the official cases of ONNX's operators, and counts those that pass, are wrong, and are refused.

    tests/cross/onnx_cases.py [--library build/release/libsigma.so] [--list OUTCOME] [--reasons] [PATTERN]

The cases are those of the installed Python package onnx, made anew by its own generator; PATTERN is a regular
expression for their names. --list prints the cases with that outcome (passed, wrong, refused, otherwise) and why;
--reasons counts the refusals by what they say. A model that crashes is "wrong": each runs in a process of its
own. Types that tensors lack are expected in the wider one that holds them (docs/onnx.md). Needs
numpy and onnx; not part of `make test`, which runs the cases of Debian's older package.
"""
import argparse
import collections
import ctypes
import os
import re
import signal
import sys
import warnings

import numpy
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

OUTCOMES = ["passed", "wrong", "refused", "otherwise"]

# In the order of sgm_dtype (sigma/tensor.h); bfloat16 has no type in NumPy: its bits are read.
DTYPES = [numpy.float32, numpy.float64, numpy.int32, numpy.int64, numpy.uint8, numpy.bool_, numpy.uint16]
BFLOAT16 = 6


class Shape(ctypes.Structure):
    _fields_ = [("rank", ctypes.c_int32), ("dims", ctypes.c_int64 * 8)]


def open_library(path):
    """The functions of sigma/onnx.h and sigma/tensor.h that are called here, with their types."""
    library = ctypes.CDLL(path)
    text, pointer, size = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t
    for name, result, arguments in [
        ("sgm_onnx_parse", pointer, [text, size, pointer]),
        ("sgm_onnx_input_at", text, [pointer, size, pointer]),
        ("sgm_onnx_set", ctypes.c_int, [pointer, text, pointer]),
        ("sgm_onnx_run", ctypes.c_int, [pointer]),
        ("sgm_onnx_get", pointer, [pointer, text]),
        ("sgm_onnx_parse_tensor", pointer, [text, size]),
        ("sgm_tensor_dtype", ctypes.c_int, [pointer]),
        ("sgm_tensor_shape", ctypes.POINTER(Shape), [pointer]),
        ("sgm_tensor_data", pointer, [pointer]),
        ("sgm_last_error", text, []),
    ]:
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Refused(Exception):
    """The library says why it does not run a case."""


def refuse(library):
    raise Refused(library.sgm_last_error().decode(errors="replace"))


def give(library, model, name, value):
    if isinstance(value, (list, dict, type(None))):
        raise Refused(f"the case gives a {type(value).__name__}, and tensors alone are set")
    proto = value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(numpy.asarray(value))
    data = proto.SerializeToString()
    tensor = library.sgm_onnx_parse_tensor(data, len(data))
    if not tensor or library.sgm_onnx_set(model, name, tensor) != 0:
        refuse(library)


def take(library, model, name):
    """An output as an array of NumPy."""
    tensor = library.sgm_onnx_get(model, name.encode())
    if not tensor:
        refuse(library)
    shape = library.sgm_tensor_shape(tensor).contents
    dims = [shape.dims[i] for i in range(shape.rank)]
    dtype = library.sgm_tensor_dtype(tensor)
    count = int(numpy.prod(dims, dtype=numpy.int64))
    data = ctypes.string_at(library.sgm_tensor_data(tensor), count * numpy.dtype(DTYPES[dtype]).itemsize)
    values = numpy.frombuffer(data, DTYPES[dtype]).reshape(dims)
    return (values.astype(numpy.uint32) << 16).view(numpy.float32) if dtype == BFLOAT16 else values


def holds(have, expected):
    """Whether an array of type `have` is how values of type `expected` are given."""
    name = str(expected)
    if re.match(r"u?int(2|4|16)$|int8$", name):
        name = "int32"
    elif name in ("uint32", "uint64"):
        name = "int64"
    elif re.match(r"b?float(4|6|8|16)(_|$)", name):
        name = "float32"
    return str(have) == name


def differs(case, actual, expected):
    """Why they are not equal, by the tolerances of the case; "" if they are."""
    if isinstance(expected, onnx.TensorProto):
        expected = numpy_helper.to_array(expected)
    expected = numpy.asarray(expected)
    if not holds(actual.dtype, expected.dtype):
        return f"{actual.dtype} for {expected.dtype}"
    if actual.shape != expected.shape:
        return f"shape {actual.shape} for {expected.shape}"
    rtol = max(case.rtol, 2**-6) if str(expected.dtype) == "bfloat16" else case.rtol  # as ONNX's own runner
    close = numpy.allclose(actual.astype(float), expected.astype(float), rtol, case.atol, equal_nan=True)
    return "" if close else "other values"


# Cases that expect other values for a reason (docs/decisions.md): of "align_corners" with scales that give a size
# with a fraction what no runtime gives; of float16 what comes of rounding at each step of a sum.
OTHERWISE = ["test_resize_downsample_scales_linear_align_corners",
             "test_resize_downsample_scales_cubic_align_corners",
             "test_attention_4d_causal_fp16_expanded"]


def run(library, case):
    """(outcome, why)"""
    data = case.model.SerializeToString()
    try:
        model = library.sgm_onnx_parse(data, len(data), None)
        if not model:
            raise Refused("at loading: " + library.sgm_last_error().decode(errors="replace"))
        for inputs, outputs in case.data_sets:
            for i, value in enumerate(inputs):
                name = library.sgm_onnx_input_at(model, i, None)
                if name is not None:
                    give(library, model, name, value)
            if library.sgm_onnx_run(model) != 0:
                refuse(library)
            for declared, value in zip(case.model.graph.output, outputs):
                if isinstance(value, (list, dict, type(None))):
                    raise Refused(f"the case expects a {type(value).__name__}")
                why = differs(case, take(library, model, declared.name), value)
                if why:
                    return "otherwise" if case.name in OTHERWISE else "wrong", f"output '{declared.name}': {why}"
    except Refused as refused:
        return "refused", str(refused)
    return "passed", ""


def run_apart(library, case):
    """As `run`, in a process that may crash."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        outcome, why = run(library, case)
        os.write(writer, f"{outcome}\n{why}"[:4000].encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        told = pipe.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    return tuple(told.split("\n", 1)) if status == 0 else ("wrong", f"ended with status {status}")


def reason(case, why):
    """What many refusals share: names and numbers are taken out."""
    return re.sub(r"node \d+, '[^']*' ", "", re.sub(r"(?<![a-z])\d+", "N", why))[:120]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", default="build/release/libsigma.so")
    parser.add_argument("--list", choices=OUTCOMES)
    parser.add_argument("--reasons", action="store_true")
    parser.add_argument("pattern", nargs="?", default="")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    numpy.seterr(all="ignore")
    library = open_library(options.library)
    counts, reasons = collections.Counter(), collections.Counter()
    for case in sorted(collect_testcases(None), key=lambda case: case.name):
        if not re.search(options.pattern, case.name):
            continue
        outcome, why = run_apart(library, case)
        counts[outcome] += 1
        if outcome == "refused":
            reasons[reason(case, why)] += 1
        if outcome == options.list:
            print(f"{case.name}: {why}" if why else case.name)
    for text, count in reasons.most_common() if options.reasons else []:
        print(f"{count:5} {text}")
    print(", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES))
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
