#!/bin/bash
# sigma eval of an ONNX model on a table: what `sigma predict` says of its rows, counted here.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

# store NAME FILE: the model of this name of tests/onnx/stored_cases.py: its name and its length are before it.
cases=$SIGMA_SOURCE_DIR/tests/onnx/stored_cases.bin
store()
{
    local at length
    at=$(($(LC_ALL=C grep -abo "$1"'[^ ]' "$cases" | head -n 1 | cut -d: -f1) + ${#1}))
    length=$(od -An -tu4 -j $at -N 4 "$cases" | tr -d ' ')
    tail -c +$((at + 5)) "$cases" | head -c "$length" >"$2"
}

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
