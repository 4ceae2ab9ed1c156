#!/bin/bash
# Arrays of NumPy by their names: one file trains, evaluates and predicts, with one input and with several.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

# Points in a square, and in which quarter of it each lies.
if ! compile_with_library "$SIGMA_SOURCE_DIR/tests/cli/write_arrays.c" write_arrays; then
    echo 'test_arrays.sh: skipped: there is no libsigma.so to write arrays with'
    echo '0 passed, 0 failed, 1 skipped'
    exit 0
fi
./write_arrays points.npz 600 1 >/dev/null
./write_arrays new.npz 100 2 >wanted

cat >points.yaml <<'YAML'
network: input(2) + dense(32, relu) + dense(4) + softmax_cross_entropy
data:
  training: {inputs: points.npz:x, targets: points.npz:y, classes: 4}
  split: 0.8
optimiser: {type: adam, learning_rate: 0.01}
epochs: 30
YAML
same 'lines of the file' "$([ "$(wc -l <points.yaml)" -le 8 ] && echo few)" few
run 0 train points.yaml --folder points --quiet
run 0 eval points
awk -F'accuracy ' '/^validation/ { accuracy = $2 + 0 } END { exit !(accuracy >= 95) }' out
verdict 'an accuracy of 95 % or more' $? out
run 0 predict points new.npz:x
same 'predictions of all examples' "$(wc -l <out)" 100
cut -d' ' -f1 out | paste -d' ' - wanted | awk '{ good += $1 == $2 } END { exit !(NR == 100 && good >= 93) }'
verdict 'classes of new points' $? out wanted
run 0 predict points new.npz:x --output answers.csv --count 3
same 'a table of answers' "$(head -1 answers.csv; wc -l <answers.csv)" 'prediction,probability_0,probability_1,probability_2,probability_3
4'
run 1 predict points new.npz:y
has err 'expected examples of the shape \(2,\), as the network.s input, got \(\)'
run 1 train points.yaml --folder never data.training.targets=new.npz:y
has err "merge: 'inputs' has [0-9]+ (more )?examples (than what it is read beside|where 'targets' has 100): name arrays of one length"
run 1 predict points new.npz:z
has err "new\.npz.*'?z"
run 1 train points.yaml --folder never data.training.inputs=points.npz:y
has err "shape \(1,\), layer '0-input' wants \(2,\): let it have the shape \(1,\), or take other"
run 1 train points.yaml --folder never data.training.inputs=points.npz
has err 'points\.npz'

# --- what the arrays hold ---
export LC_ALL=C.UTF-8
run 0 data points.npz
has out '^points\.npz: 6 arrays$'
has out '^  array   type      shape             not finite     distribution      values$'
has out '^  few     float32   \(4,\)              1 \(25 %\)       █   █          █  1 to 5, mean 2\.667, standard deviation 1\.7$'
has out '^  x       float32   \(600, 2\)          -                                -0\.9'
has out '^  y       float32   \(600,\)            -              [▇█]    [▇█]    [▇█]    [▇█]  0 to 3, '
has out '^  column  float32   \(600, 1\)          -              [^ ]{16}  -'
run 0 data points.npz:few
has out '^  points\.npz:few  float32   \(4,\) '
run 2 data points.npz:fewer
has err 'has no file fewer\.npy; it has: '
printf '\x93NUMPY\x01\x00\x40\x00%-63s\n' "{'descr': '<U1', 'fortran_order': False, 'shape': (1,), }" >letters.npy
run 0 data letters.npy
has out "^  letters\.npy  .*'<U1' came; this is text: save the array as numbers"
head -c 400 points.npz >damaged.npz
run 1 data damaged.npz
has err 'damaged\.npz: cannot be unpacked at byte'
run 2 data points.npz --header yes
has err 'are for tables'

# --- a network with two inputs, whose fields are arrays of one archive ---
cat >two.yaml <<'YAML'
network: across = input(1); up = input(1, name=up); concatenate(across, up) + dense(32, relu) + dense(4) + softmax_cross_entropy
data:
  training: {inputs: points.npz:inputs, arrays: {up: points.npz:up}, targets: points.npz:y, classes: 4}
  split: 0.8
optimiser: {type: adam, learning_rate: 0.01}
epochs: 30
YAML
run 0 train two.yaml --folder two --quiet
has two/config.yaml '^      up: "?/.*/points\.npz:up"?$'
run 0 eval two
awk -F'accuracy ' '/^validation/ { accuracy = $2 + 0 } END { exit !(accuracy >= 95) }' out
verdict 'an accuracy of 95 % or more with two inputs' $? out
run 0 predict two new.npz
cut -d' ' -f1 out | paste -d' ' - wanted | awk '{ good += $1 == $2 } END { exit !(NR == 100 && good >= 93) }'
verdict 'classes of new points by two inputs' $? out wanted
run 1 predict two new.npz:x
has err 'a file has one input, but the network has 2; FILE\.npz with an array for each, called as the inputs are'

# --- one number for each example, with an axis of its own and without one: for inputs and for targets ---
cat >line.yaml <<'YAML'
network: input(1) + dense(1) + mean_squared
data: {training: {inputs: points.npz:up, targets: points.npz:up}, split: 0.8}
optimiser: {type: adam, learning_rate: 0.05}
epochs: 20
YAML
run 0 train line.yaml --folder flat --quiet
run 0 train line.yaml --folder column --quiet data.training.inputs=points.npz:column data.training.targets=points.npz:column
run 0 eval flat --metrics regression
cp out flat.out
awk '/r_squared/ { found = $NF > 0.99 } END { exit !found }' out
verdict 'the line is learnt' $? out
run 0 eval column --metrics regression
same 'metrics without an axis and with one' "$(cat flat.out)" "$(cat out)"
run 0 predict flat new.npz:up
cp out flat.out
run 0 predict column new.npz:column
same 'predictions without an axis and with one' "$(cat flat.out)" "$(cat out)"
run 0 train points.yaml --folder classes --quiet data.training.inputs=points.npz:up network='input(1) + dense(4) + softmax_cross_entropy'

echo 'data: {training: {dataset: iris, arrays: {up: points.npz:up}}}' >bad.yaml
run 2 train bad.yaml --folder never
has err 'arrays: are more fields beside inputs, which is missing'
finish
