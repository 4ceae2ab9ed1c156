#!/bin/bash
# --int8 of eval, predict, serve and export: what it costs is told, and what cannot be rounded is an error.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

run 0 train "$examples/digits.yaml" epochs=6 --quiet --folder run

# --- accuracy: of 297 digits at most 6 are told apart otherwise ---
run 0 eval run --int8 --json
has out '"loss_float32": 0\.[0-9]*, "accuracy_float32": 0\.[0-9]*'
python3 - <<'END'
import json
told = json.loads(open("out").read())
assert told["accuracy_float32"] > 0.9, told
assert abs(told["accuracy"] - told["accuracy_float32"]) <= 6 / 297, told
assert 0 < abs(told["loss"] - told["loss_float32"]) < 0.05, told
END
verdict "int8 is nearly as accurate as float32" $?
run 0 eval run --int8
has out '^  loss_float32 0\.[0-9]*, accuracy_float32 0\.[0-9]*, precision'
run 0 eval run
! grep -q float32 out
verdict "float32 is not named without --int8" $?

# --- of bfloat16 the numbers beside int8's are those of bfloat16 ---
run 0 train "$examples/digits.yaml" epochs=1 precision=bfloat16 --quiet --folder narrow
run 0 eval narrow --json
cp out alone
run 0 eval narrow --int8 --json
python3 - <<'END'
import json
alone, told = json.loads(open("alone").read()), json.loads(open("out").read())
assert told["loss_bfloat16"] == alone["loss"] != told["loss"], (alone, told)
assert told["accuracy_bfloat16"] == alone["accuracy"], (alone, told)
assert "loss_float32" not in told and "accuracy_float32" not in told, told
END
verdict "the precision that was compared with is named" $?

# --- predictions: the same digits for nearly all, with other probabilities ---
run 0 predict run --data digits-test --count 100
cp out exact
run 0 predict run --data digits-test --count 100 --int8
! cmp -s out exact
verdict "int8 gives other probabilities" $?
[ "$(paste -d' ' exact out | awk '{ same += $1 == $(NF / 2 + 1) } END { print same }')" -ge 97 ]
verdict "int8 gives the same digits" $?

# --- a file of a quarter ---
if "$sigma" export --onnx exact.onnx run 2>err; then
    run 0 export --onnx rounded.onnx run --int8
    # 64 x 256 weights; those of 256 x 10 are too small. 16,384 codes and 256 scales.
    same "what was rounded is told" "$(head -1 out)" \
        'int8: 1 of 2 matrix products became products of integers; their weights took 65.5 kB and take 17.4 kB'
    [ $(($(stat -c %s exact.onnx) * 10)) -gt $(($(stat -c %s rounded.onnx) * 25)) ]
    verdict "weights of 8 bits make a smaller file" $?
    LC_ALL=C tr -cd '[:print:]\n' <rounded.onnx >out
    has out DynamicQuantizeLinear
    has out MatMulInteger
fi
run 0 train "$examples/digits.yaml" epochs=1 data.batch=500 --quiet --folder steps \
    'network=input(8, 8) + lstm(64) + select(7) + dense(10) + softmax_cross_entropy'
if "$sigma" export --onnx steps.onnx steps --int8 >out 2>err; then
    # 64 x 256 weights of seven steps, as the first begins with zeros; 8 x 256 of the inputs are too small.
    has out '^int8: 7 of 9 matrix products .* took 65\.5 kB and take 17\.4 kB$'
fi
run 2 export --c net.c run --int8
has err '^sigma export: --int8 is for --onnx'

# --- what cannot be rounded ---
run 0 train "$examples/iris.yaml" epochs=1 --quiet --folder small
run 1 predict small --data iris --int8
has err 'there is nothing to quantize'
run 0 train "$examples/digits.yaml" epochs=1 precision=float64 --quiet --folder wide
run 1 predict wide --data digits-test --int8
has err 'computes in float64: train it with precision float32, or leave int8 out'
run 1 serve wide --int8
has err 'computes in float64'

finish
