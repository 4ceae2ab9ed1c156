#!/bin/bash
# sigma inspect and predict of an ONNX model: it answers as the network does from which it was exported.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

run 0 train "$examples/iris.yaml" epochs=3 --quiet --folder run
run 0 export --onnx iris.onnx run
printf '5.1,3.5,1.4,0.2\n6.2,2.9,4.3,1.3\n7.1,3.0,5.9,2.1\n' >flowers.csv

# --- what it is ---
run 0 inspect iris.onnx
has out '^inputs .-1: any'
has out ' float32  .-1, 4.'
has out '^graph of 1 examples'
run 0 inspect iris.onnx --graph --batch 7
has out '^graph of 7 examples'
has out "output .2-dense. = "

# --- what it predicts ---
run 0 predict iris.onnx flowers.csv
[ "$(wc -l <out)" -eq 3 ] && [ "$(head -n 1 out | wc -w)" -eq 3 ]
verdict "a line of three numbers for each flower" $?
awk '{ sum = $1 + $2 + $3; if (sum < 0.9999 || sum > 1.0001) exit 1 }' out
verdict "the numbers of a flower are probabilities" $?
run 0 predict iris.onnx flowers.csv --count 2
[ "$(wc -l <out)" -eq 2 ]
verdict "--count ends predictions" $?
run 0 predict iris.onnx flowers.csv --json
has out '^.*"example": 2, "outputs": .[0-9.]+, [0-9.]+, [0-9.]+'
cp out model.json
run 0 predict run flowers.csv --json
numbers='s/.*\[\([-0-9.e, ]*\)\].*/\1/p'
diff <(sed -n "$numbers" model.json) <(sed -n "$numbers" out) >/dev/null
verdict "the model predicts what its network does" $?
run 0 predict iris.onnx flowers.csv --output answers.csv
[ "$(wc -l <answers.csv)" -eq 4 ]
verdict "--output has a header and a line for each flower" $?

# shellcheck source=tests/cli/stored_onnx.sh
. "$SIGMA_SOURCE_DIR/tests/cli/stored_onnx.sh"

# ask BODY: what the server says.
ask()
{
    curl -s -H "Authorization: Bearer $(cat token)" -H 'Content-Type: application/json' -d "$1" \
        "$address/api/predict" >out
}

# --- classes that have names ---
store 'names of classes' names.onnx
printf '1,2\n4,-1\n' >points.csv
run 0 inspect names.onnx
has out '^  label  *numbers of classes'
has out '^  2 yes$'
run 0 predict names.onnx points.csv
has out '^no 5 2 -3.5$'
run 0 predict names.onnx points.csv --json
has out '"example": 1, "class": "yes", "outputs": .2, -4, 4'
run 0 predict names.onnx points.csv --output answers.csv
has answers.csv '^class,prediction_0,prediction_1,prediction_2$'
has answers.csv '^yes,2,-4,4$'

serve names.onnx --log-level info
has serve.err 'runs the model as it is: .names.onnx. is a pipeline of scikit-learn or the like .it has .LinearClassifier. of ai.onnx.ml.'
ask '{"input": [[1, 2], [4, -1], [1, 2]]}'
has out '^."output":..5,2,-3.5.,.2,-4,4.,.5,2,-3.5..,"class":.0,2,0.,"label":."no","yes","no".}$'
ask '{"input": [[1, 2, 3]]}'
has out 'example 0 of .input.: expected the shape .2,.'
curl -s -H "Authorization: Bearer $(cat token)" "$address/api/model" >out
has out '"input":.2.,"output":.3.,"classifies":true,"classes":."no","","yes".'
end_serve

# --- classes that are numbers: a pipeline of scikit-learn has them in front of the probabilities ---
store 'logistic regression of three classes' numbers.onnx
echo '-2,0,0.5,1' >points.csv
run 0 inspect numbers.onnx
run 0 predict numbers.onnx points.csv --json
has out '"example": 0, "class": [0-2], "outputs": .[0-9.e-]+, [0-9.e-]+, [0-9.e-]+.'
class=$(sed -nE 's/.*"class": ([0-9]).*/\1/p' out)
serve numbers.onnx
ask '{"input": [[-2, 0, 0.5, 1]]}'
has out "\"output\":..[0-9.e-]+,[0-9.e-]+,[0-9.e-]+..,\"class\":.$class.}$"
end_serve

# --- a model that was exported for four examples takes six ---
cp "$SIGMA_SOURCE_DIR/tests/models/onnx/means.onnx" four.onnx
awk 'BEGIN { for (i = 0; i < 6; i++) for (k = 1; k <= 24; k++) printf "%g%s", sin(24 * i + k), k < 24 ? "," : "\n" }' \
    >six.csv
run 0 predict four.onnx six.csv
cp out six.txt
run 0 import four.onnx --into network
run 0 predict network six.csv
paste six.txt out | awk '{ for (i = 1; i <= 3; i++) if (($i - $(i + 3)) ^ 2 > 1e-10) exit 1; lines++ }
    END { exit lines != 6 || NF != 6 }'
verdict "six predictions of a model of four examples are those of its network" $?

# --- what is refused ---
store 'a function of the model' two.onnx
run 1 serve two.onnx
has err "'two.onnx' has 2 inputs \('a', 'b'\), and a server takes the examples of one"
run 1 import two.onnx
has err "has the inputs 'a', 'b' and the outputs"
run 1 predict iris.onnx --data test
has err 'an ONNX model has none: name a file'
printf '1,2,3\n' >short.csv
run 1 predict iris.onnx short.csv
has err "line 1: expected 4 numbers, as the network.s input, got 3"
head -c 200 iris.onnx >cut.onnx
run 1 predict cut.onnx flowers.csv
has err "'cut.onnx': these 200 bytes are no model of ONNX"
run 1 inspect cut.onnx
has err 'no model of ONNX'
run 1 inspect missing.onnx
has err 'missing.onnx'
finish
