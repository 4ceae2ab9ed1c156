#!/bin/bash
# sigma eval of an ONNX model on a table: what `sigma predict` says of its rows, counted here.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

# shellcheck source=tests/cli/stored_onnx.sh
. "$SIGMA_SOURCE_DIR/tests/cli/stored_onnx.sh"

# outputs MODEL: what the model gives for the first four columns of numbered.csv, with commas between the numbers.
outputs()
{
    cut -d, -f -4 numbered.csv >inputs.csv
    "$sigma" predict "$1" inputs.csv --json >answers
    sed 's/.*"outputs": \[\([^]]*\)\].*/\1/; s/ //g' answers
}

# count MODEL: `right`, the share of right answers, `loss`, and `row`, what examples of class 0 are taken for, of the classes 0, 1, ... in the last column of numbered.csv.
count()
{
    read -r right loss row < <(outputs "$1" | paste -d'|' - numbered.csv | awk -F'|' '{
        n = split($1, p, ","); split($2, row, ","); best = 1
        for (i = 2; i <= n; i++) if (p[i] > p[best]) best = i
        right += best - 1 == row[5]; taken[best] += row[5] == 0
        share = p[row[5] + 1]; loss -= log(share > 1 ? 1 : share < 1.1920929e-7 ? 1.1920929e-7 : share) }
        END { printf "%.2f %.4f %d, %d, %d\n", 100 * right / NR, loss / NR, taken[1], taken[2], taken[3] }')
}

tail -n +2 "$SIGMA_SOURCE_DIR/data/iris.csv" >numbered.csv
sed 's/0$/setosa/; s/1$/versicolor/; s/2$/virginica/' numbered.csv >named.csv
run 0 train "$examples/iris.yaml" --quiet --folder run
run 0 export --onnx iris.onnx run

# --- a network's model, whose classes have numbers ---
count iris.onnx
run 0 eval iris.onnx numbered.csv
has out "^numbered.csv: loss $loss, accuracy $right % .150 examples.$"
has out '^  precision 0.*, recall 0.*, f1 0.*, roc_auc 0'
run 0 eval iris.onnx numbered.csv --json --plot matrix.svg
has out "\"examples\": 150, \"confusion\": \[\[$row\]"
has matrix.svg '^<svg'
run 0 eval iris.onnx numbered.csv --metrics none
same "no metrics but loss and accuracy" "$(wc -l <out)" 1
run 0 eval iris.onnx named.csv
has out "^named.csv: loss $loss, accuracy $right % .150 examples.$"
has err 'note: the model does not name its classes, so they are numbered in alphabetical order: setosa 0, versicolor 1, virginica 2; '
{ echo 'kind,a,b,c,d' && awk -F, '{ print $5 "," $1 "," $2 "," $3 "," $4 }' numbered.csv; } >first.csv
run 0 eval iris.onnx first.csv --target kind
has out "^first.csv: loss $loss, accuracy $right % .150 examples.$"
run 0 import iris.onnx --into imported
run 0 eval imported numbered.csv
has out "^numbered.csv: loss $loss, accuracy $right % .150 examples.$"

# --- pipelines of scikit-learn, which become no network ---
store 'logistic regression of three classes' numbers.onnx
count numbers.onnx
run 0 eval numbers.onnx numbered.csv
has out "^numbered.csv: loss $loss, accuracy $right % .150 examples.$"
store 'a tree of names' names.onnx
count names.onnx
run 0 eval names.onnx named.csv
has out "^named.csv: loss $loss, accuracy $right % .150 examples.$"
has out '^  1 versicolor '
same "its classes have names, so nothing is guessed" "$(cat err)" ""
store 'a machine of two classes, rbf' fives.onnx
awk -F, '{ print $1 "," $2 "," $3 "," $4 "," 5 * ($5 == 1) }' numbered.csv >fives.csv
outputs fives.onnx >/dev/null
right=$(sed 's/.*"class": \([0-9]*\),.*/\1/' answers | paste -d, fives.csv - |
    awk -F, '{ right += $5 == $6 } END { printf "%.2f", 100 * right / NR }')
run 0 eval fives.onnx fives.csv
has out "^fives.csv: accuracy $right % .150 examples.$"
has out '^  1 5 '

# --- which class a target is ---
count iris.onnx
sed 's/$/.0/' numbered.csv >floats.csv
run 0 eval iris.onnx floats.csv
has out "^floats.csv: loss $loss, accuracy $right % .150 examples.$"
same "whole numbers with a point are numbers, so nothing is guessed" "$(cat err)" ""
count names.onnx
run 0 eval names.onnx floats.csv
has out "^floats.csv: loss $loss, accuracy $right % .150 examples.$"
grep -v setosa named.csv >two.csv
for model in iris.onnx numbers.onnx; do
    run 1 eval $model two.csv
    has err 'two.csv: the table has 2 classes by name, and the model 3 without names: write their numbers, from 0$'
done
grep -v ',1$' numbered.csv >some.csv
{ cat some.csv && echo '1,2,3,4,NaN'; } >missing.csv
run 1 eval iris.onnx missing.csv
has err "missing.csv: line 101: the target 'NaN' is no whole number, and '0' of line 1 is a number: call all classes by numbers, or all by names$"
{ echo '0,1,2,3,target' && cat some.csv; } >heading.csv
run 1 eval iris.onnx heading.csv
has err "heading.csv: line 1: the target 'target' is no whole number, and '0' of line 2 is a number"
sed 's/$/.5/' numbered.csv >halves.csv
run 1 eval iris.onnx halves.csv
has err "halves.csv: line 1: the target '0.5' is no whole number, and the model tells classes apart$"

# The model of numbers with the classes 1, 2 and 3: the attribute's integers are patched.
awk -F, '{ print $1 "," $2 "," $3 "," $4 "," $5 + 1 }' numbered.csv >from_1.csv
LC_ALL=C sed 's/@\x00@\x01@\x02/@\x01@\x02@\x03/' numbers.onnx >from_1.onnx
count numbers.onnx
run 0 eval from_1.onnx from_1.csv
has out "^from_1.csv: loss $loss, accuracy $right % .150 examples.$"
run 1 eval from_1.onnx numbered.csv
has err "numbered.csv: line 1: the target '0' is no class of the model, which has 3 and tells those from 1 to 3$"
# Of what it tells 1 and 2 alone, no number is beyond those of three classes from 0.
outputs from_1.onnx >/dev/null
sed 's/.*"class": \([0-9]*\),.*/\1/' answers | paste -d, numbered.csv - | grep -v ',3$' | cut -d, -f -5 >begin.csv
run 1 eval from_1.onnx begin.csv
has err "begin.csv: line 1: the target '0' is no class of the model, which has 3 and tells those from 1 to 2$"
run 1 eval numbers.onnx from_1.csv
has err "from_1.csv: line 101: the target '3' is no class of the model, which has 3 and tells those from 0 to 2$"
run 1 eval from_1.onnx named.csv
has err 'named.csv: the table has 3 classes by name, and the model tells 1, 2, 3 without names: write the numbers of its classes$'

# The model of names with numbers as such: a 1 is the first class, and not the second from 0.
LC_ALL=C sed 's/setosa/000001/g; s/versicolor/0000000002/g; s/virginica/000000003/g' names.onnx >digits.onnx
count names.onnx
run 0 eval digits.onnx from_1.csv
has out "^from_1.csv: loss $loss, accuracy $right % .150 examples.$"
run 1 eval digits.onnx numbered.csv
has err "numbered.csv: line 1: '0' is no class of the model, which names '000001', '0000000002', '000000003'$"

# --- numbers ---
store 'linear regression of scaled numbers' price.onnx
awk -F, '{ print $1 "," $2 "," $3 "," $4 "," $1 + 2 * $2 - $3 + 2.7 * $4 }' numbered.csv >priced.csv
error=$(outputs price.onnx | paste -d, priced.csv - |
    awk -F, '{ sum += ($5 - $6) ^ 2 } END { print sum / NR }')
run 0 eval price.onnx priced.csv
sed -n 's/^priced.csv: mean squared error \([0-9.e-]*\) (150 examples)$/\1/p' out |
    awk -v wanted="$error" '{ difference = $1 / wanted - 1 } END { exit !(NR == 1 && difference ^ 2 < 1e-8) }'
verdict "the mean squared error is $error" $?
has out '^  mean_absolute_error '
run 1 eval price.onnx priced.csv --plot numbers.svg
has err '^sigma eval: --plot draws the classes of such a table'
run 1 eval price.onnx priced.csv --metrics nothing
has err "^sigma eval: metrics 'nothing': .*unknown metric"
run 1 eval price.onnx named.csv
has err "^sigma eval: named.csv: line 1: the model gives numbers, so its target is one, too: got 'setosa'$"

# --- what is refused ---
cut -d, -f -4 numbered.csv >inputs.csv
run 1 eval iris.onnx inputs.csv
has err 'inputs.csv: there are 4 columns, and the model takes 4 numbers: the target is missing, which stands behind them'
sed 's/,/,1,/' numbered.csv >wide.csv
run 1 eval iris.onnx wide.csv
has err 'wide.csv: there are 6 columns; expected 5: 4 numbers that the model takes, and behind them the class, or 3 targets: leave other columns out'
{ cat numbered.csv && echo '1,2,3,4,7'; } >seven.csv
run 1 eval iris.onnx seven.csv
has err "seven.csv: line 151: the target '7' is class 7 of 4 different ones, and the model gives 3 numbers, for classes from 0$"
{ cat named.csv && echo '1,2,3,4,rose'; } >rose.csv
run 1 eval names.onnx rose.csv
has err "rose.csv: line 151: 'rose' is no class of the model, which names 'setosa', 'versicolor', 'virginica'$"
{ cat named.csv && echo '1,2,x,4,setosa'; } >letter.csv
run 1 eval names.onnx letter.csv
has err "letter.csv: line 151, column 2 .from 0.: expected a number that fits float32, got 'x'$"
run 1 eval iris.onnx first.csv --target species
has err "first.csv: --target: there is no column 'species'"
run 1 eval iris.onnx numbered.csv --target kind
has err 'the first line has numbers, and no names of columns'
run 2 eval names.onnx
has err 'names.onnx has no data of its own: say what to measure it on: sigma eval names.onnx FILE.csv'
store 'a function of the model' two.onnx
run 1 eval two.onnx numbered.csv
has err "'two.onnx' has 2 inputs, and a table has the examples of one"

# --- what is no number, and whose fault it is ---
# Numbers that overflow float32, which tanh would keep small.
sed 's/tanh/relu/' "$examples/iris.yaml" >relu.yaml
run 0 train relu.yaml --quiet --folder relu
run 0 export --onnx relu.onnx relu
{ echo 'a,b,c,d,kind' && cat numbered.csv && echo '3e38,-3e38,3e38,-3e38,0'; } >large.csv
for model in relu.onnx price.onnx relu; do
    run 1 eval $model large.csv
    has err '^sigma eval: large.csv: line 152: the model gives [a-z]* for it, which is no finite number'
done
for file in lines.jsonl lines.jsonl.gz; do
    echo '{"kind": 0, "a": 1, "b": 2, "c": 3, "d": 4}' >lines.jsonl
    gzip -f -k lines.jsonl
    run 1 eval iris.onnx $file
    has err "^sigma eval: $file: a model of ONNX is measured on a table, FILE.csv: "
    run 1 eval imported $file
    has err "^sigma eval: $file: "
done
rm lines.jsonl lines.jsonl.gz
run 1 eval price.onnx priced.csv --int8
has err '^sigma eval: price.onnx: int8: there is nothing to quantize'

# --- a pipeline is not trained on, and neither learns a network of numbers from lines ---
for model in numbers.onnx price.onnx; do
    run 1 import $model
    has err "'$model' is a pipeline of scikit-learn .*which becomes no network and cannot be trained on: 'sigma predict', 'sigma eval' and 'sigma serve' run it as it is; 'sigma train TABLE.csv --target COLUMN' trains"
done
for data in named.csv lines.jsonl; do
    run 2 finetune iris.onnx --data $data
    has err "'iris.onnx' takes numbers, not texts; it is trained by 'sigma train' of a file with from: RUN, of 'sigma import iris.onnx --task classify --into RUN', and data: .training: .csv: FILE.csv, target: COLUMN, scale: none..$"
    run 2 finetune imported --data $data
    has err "'imported' takes numbers, not texts; it is trained by 'sigma train' of a file with from: imported and data: "
done
run 2 finetune numbers.onnx --data named.csv
has err "'numbers.onnx' is a pipeline of scikit-learn"
run 1 generate iris.onnx --text hi
has err "'iris.onnx' does not continue texts, it tells classes: use 'sigma predict'$"
finish
