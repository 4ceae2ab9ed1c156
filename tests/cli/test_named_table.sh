#!/bin/bash
# Tables by the names of their columns: a file of a few lines trains, and predict answers in the terms of the table.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

# The species follows from weight and fur, whatever the other columns are; the price from weight and age.
awk 'BEGIN {
    srand(7); split("cat dog rabbit", species, " "); split("short long none", furs, " ")
    print "id,name,weight,fur,born,species,price"
    for (i = 1; i <= 600; i++) {
        k = int(rand() * 3) + 1; age = int(rand() * 10)
        weight = k == 1 ? 4 + rand() : k == 2 ? 20 + 10 * rand() : 1 + rand()
        printf "%d,n%d,%s,%s,%d-06-01,%s,%.2f\n", i, i, i % 50 == 0 ? "" : sprintf("%.2f", weight),
               furs[k], 2010 + age, species[k], 100 * weight + 50 * age
    }
}' >pets.csv

cat >pets.yaml <<'YAML'
data:
  training: {csv: pets.csv, target: species, drop: [id, name, price], shuffled: true, share: 0.8}
  validation: {csv: pets.csv, shuffled: true, begin: 0.8}
epochs: 10
YAML
run 0 train pets.yaml --folder pets
has out '^network: input\(5\) \+ dense\(64, relu\) \+ dense\(64, relu\) \+ dense\(3\) \+ softmax_cross_entropy$'
has out '^validation: loss .*, accuracy 100\.00 % \(120 examples\)$'
has pets/config.yaml '^network: "input\(5\) \+ dense'

# --- questions: other columns, another order, another separator, no target ---
printf 'fur;more;born;weight\nshort;x;2015-06-01;4.5\nlong;y;2012-01-01;\nnone;z;;1.2\n' >new.csv
run 0 predict pets new.csv
same 'classes by name' "$(cut -d' ' -f1 out | tr '\n' ' ')" 'cat dog rabbit '
run 0 predict pets new.csv --json --count 1
has out '^\{"example": 0, "class": "cat", "probability": 0\.9.*, "outputs": \[0\.9'
"$sigma" predict pets - <new.csv >piped 2>&1
code 0 $? 'predict - of a table by names'
"$sigma" predict pets new.csv >named
same 'the standard input gives the same' "$(cat piped)" "$(cat named)"
gzip -k pets.csv
run 0 predict pets pets.csv.gz
same 'predictions of all rows' "$(cut -d' ' -f1 out)" "$(tail -n +2 pets.csv | cut -d, -f6)"
run 0 predict pets --data validation --count 1
has out '^(cat|dog|rabbit) '
run 0 eval pets --data validation
has out 'accuracy 100\.00 %'

run 0 eval pets pets.csv
has out '^pets\.csv: loss .*, accuracy 100\.00 % \(600 examples\)$'
has out '^  0 cat  '
run 1 eval pets new.csv
has err "new\.csv has no column 'species'"
run 2 eval pets new.csv --data iris
has err 'expected --data NAME or a table or folder of files, got both'

printf 'x,kind\n1,a\033]0;z\007\n2,b\033]0;z\007\n' >steer.csv
printf 'data: {training: {csv: steer.csv, target: kind}}\nepochs: 1\n' >steer.yaml
run 0 train steer.yaml --folder steer --quiet
run 0 predict steer steer.csv
has out '^[ab]\?\]0;z\? 0\.'
printf 'x,kind\n1,a\n2,a\n' >steer.csv
run 1 train steer.yaml --folder never
has err "the target 'kind' has one class in all rows, so there is nothing to tell apart"

# --- rows without a target ---
awk -F, -v OFS=, 'NR > 1 && NR % 10 == 0 { $6 = "" } { print }' pets.csv >lacking.csv
grep -v ',,[0-9.]*$' lacking.csv >kept.csv
cat >lacking.yaml <<'YAML'
data: {training: {csv: lacking.csv, target: species, drop: [id, name, price]}, split: {share: 0.7, group: born}}
epochs: 3
seed: 2
YAML
run 1 train lacking.yaml --folder lacking --quiet
has err "lacking\.csv: line 10, column 'species': the target is missing; fill it in, or leave such rows out: missing_target: skip"
run 0 train lacking.yaml --folder lacking --quiet data.training.missing_target=skip data.cache=true
has err 'lacking\.csv: 60 rows without a target are left out'
run 0 train lacking.yaml --folder whole --quiet data.training.csv=kept.csv
for part in training validation; do
    run 0 eval whole --data $part --json
    cp out kept.json
    run 0 eval lacking --data $part --json
    same "$part data are those without the rows" "$(cat out)" "$(cat kept.json)"
done
run 0 eval lacking lacking.csv
has out '\(540 examples\)$'
run 0 predict lacking lacking.csv --id id --output answers.csv
same 'a prediction for each row' "$(cut -d, -f1 answers.csv)" "$(cut -d, -f1 lacking.csv)"
run 0 train lacking.yaml --folder again --quiet data.training.missing_target=skip data.cache=true
run 0 eval again --data validation --json
same 'what was kept of the extracted rows is the same' "$(cat out)" "$(cat kept.json)"
run 0 train lacking.yaml --folder folds --quiet data.training.missing_target=skip data.split='{folds: 2}'
has out '^2 folds: '
run 2 train lacking.yaml --folder never data.training.missing_target=drop
has err "data\.training\.missing_target.*refuse.*skip"

# --- wrong questions ---
printf 'fur,born,weight\nshort,2015-06-01,heavy\n' >wrong.csv
run 1 predict pets wrong.csv
has err "wrong\.csv: line 2, column 'weight': \"heavy\" is no number; correct it, or leave it empty$"
printf 'fur;born;weight\nshort;2015-06-01;4,5\n' >wrong.csv
run 1 predict pets wrong.csv
has err "\"4,5\" is no number, as the table of the training has a decimal point; correct it, or leave it empty$"
printf 'fur,born,weight\nshort,06/01/2015,4.5\n' >wrong.csv
run 1 predict pets wrong.csv
has err "column 'born': \"06/01/2015\" is no date, such as 2026-11-23 or 23\.11\.2026; correct it, or leave it empty$"
printf 'fur,born,weight\ncurly,2015-06-01,4.5\n' >wrong.csv
run 1 predict pets wrong.csv
has err "line 2, column 'fur': \"curly\" is none of the 3 categories that the pipeline knows \(long, none, \.\.\.\); correct it, leave"
run 0 predict pets wrong.csv --unknown=ignore
has out '^(cat|dog|rabbit) '
printf 'furr,born,weight\nlong,2015-06-01,4.5\n' >wrong.csv
run 1 predict pets wrong.csv
has err "wrong\.csv has no column 'fur'; did you mean 'furr'\?$"
printf 'fur,born,fur,weight\nlong,2015-06-01,none,4.5\n' >wrong.csv
run 1 predict pets wrong.csv
has err "wrong\.csv has two columns 'fur'; remove one of them$"
printf 'fur,born,weight\n' >wrong.csv
run 1 predict pets wrong.csv
has err 'wrong\.csv: there are no examples$'

# --- numbers are predicted in the units of the table ---
cat >price.yaml <<'YAML'
data: {training: {csv: pets.csv, target: price, drop: [id, name, species], embedding: fur, impute: median}}
epochs: 40
seed: 1
YAML
run 0 train price.yaml --folder price
has out '^network: branch0 = input\(2\); branch1 = input\(1, name="fur"\) \+ embedding\(4, 2\) \+ flatten; concatenate'
printf 'weight,fur,born\n25,long,2015-06-01\n4.5,short,2011-06-01\n' >new.csv
run 0 predict price new.csv
awk 'NR == 1 { wanted = 2750 } NR == 2 { wanted = 500 } { if ($1 < wanted - 150 || $1 > wanted + 150) exit 1 }' out
verdict 'prices near 2750 and 500' $? out

run 0 eval price pets.csv --json
awk -F'"mean_absolute_error": ' '{ split($2, error, ","); exit !(error[1] > 5 && error[1] < 150) }' out
verdict 'the mean absolute error is in the units of the price' $?

# --- columns with choices of their own ---
cat >own.yaml <<'YAML'
data:
  training: {csv: pets.csv, target: price, drop: [id, name, species], embedding: {fur: 3}, impute: {weight: median, "*": flag},
             scale: {price: none, weight: robust}, dates: {born: age(2030-01-01)}}
optimiser: {learning_rate: 0.02}
epochs: 3
YAML
run 0 train own.yaml --folder own --quiet
has own/config.yaml '^network: "branch0 = input\(2\); branch1 = input\(1, name=\\"fur\\"\) \+ embedding\(4, 3\)'
has own/config.yaml '^      fur: "3"$'
has own/config.yaml '^      "\*": flag$'
has own/config.yaml '^      born: "age\(2030-01-01\)"$'
tr -d '\n' <own/checkpoint.safetensors | grep -aoE '"columns.{900}' >pipeline
tr -d '\\' <pipeline >kept
has kept '"dates":"age","factor":[0-9.]+,"field":"inputs","impute":[0-9.]+,"kind":"date","name":"born","offset":[0-9.]+,"reference":21915\.0'
has kept '"factor":1\.0,"field":"targets","kind":"number","name":"price","offset":0\.0'
run 0 train own --resume epochs=4 --quiet
run 0 train own.yaml --folder one data.training.scale=none 'data.training.dates={born: parts}' data.training.impute.weight=mean --quiet
has one/config.yaml '^      weight: mean$'
has one/config.yaml '^      "\*": none$'
has one/config.yaml '^      born: parts$'

# --- a run that goes on keeps its pipeline, though rows were added that change means and categories ---
sha256sum pets/checkpoint.safetensors >before
echo '601,n601,900,curly,2020-01-01,horse,1' >>pets.csv
run 1 train pets --resume epochs=11
has err "pets\.csv: line 602, column 'fur': \"curly\" is none of the 3 categories"
sha256sum --check --status before
verdict 'a refused resume leaves the checkpoint' $?
sed -i '$d' pets.csv
echo '601,n601,900,long,2020-01-01,dog,1' >>pets.csv
run 0 train pets --resume epochs=11
has out '^epoch 11/11 '

# --- the same over HTTP, with rows as objects: classes by name, numbers in the units of the table ---
ask()
{
    curl -s -H 'Authorization: Bearer 0123456789abcdef-secret' -H 'Content-Type: application/json' -d "$1" "$address/api/predict" >out
}
serve pets
eval "$(grep '^curl' serve.out) -s" >out 2>err
has out '"label":\["(cat|dog|rabbit)"\]'
ask '{"input": [{"fur": "short", "weight": 4.5, "born": "2015-06-01"}, {"weight": null, "fur": "long", "born": null, "more": 1}]}'
has out '"label":\["cat","dog"\]'
ask '{"input": [{"fur": "curly", "weight": 4.5, "born": null}]}'
has out "row 1, column 'fur': .*curly.* is none of the 3 categories"
ask '{"input": [{"fur": "long", "born": null}]}'
has out "row 1 of 'input' has no column 'weight'; null says that there is no value"
ask '{"input": [{"fur": "long", "weight": [1], "born": null}]}'
has out "row 1 of 'input', column 'weight': a text, a number or null was expected"
ask '{"input": [{"fur": "long", "weight": 3, "born": null}, [1, 2, 3]]}'
has out "row 2 of 'input': an object with the table's columns was expected"
ask '{"input": [[0, 0, 1, 0, 0]]}'
has out '"label":\["(cat|dog|rabbit)"\]'
curl -s -H 'Authorization: Bearer 0123456789abcdef-secret' "$address/api/model" >out
has out '"row":\{"weight":null,"fur":null,"born":null\}'
end_serve
serve price
ask '{"input": [{"fur": "long", "weight": 25, "born": "2015-06-01"}, {"fur": "short", "weight": 4.5, "born": "2011-06-01"}]}'
sed -E 's/.*\[\[([0-9.]+)\],\[([0-9.]+)\]\].*/\1\n\2/' out >served
run 0 predict price new.csv
paste -d' ' served out | awk '{ if (($1 - $2) ^ 2 > (1e-6 * $2) ^ 2) exit 1 }'
verdict 'serve and predict give the same prices' $? served out
ask '{"input": [[0, 0]]}'
has out 'the network has several inputs; expected objects'
end_serve

# --- what does not go together ---
refuse() # MESSAGE YAML
{
    printf '%s\n' "$2" >bad.yaml
    run 2 train bad.yaml --folder never
    has err "$1"
}
refuse 'data\.training: expected a target, such as target: species, or columns by their numbers' \
    'data: {training: {csv: pets.csv}}'
refuse 'dates and weights are for columns of a csv by their names, and do not go with fields' \
    'data: {training: {csv: pets.csv, target: species, fields: {inputs: 2}}}'
refuse "class_names, texts, classes, input_range and skip_rows are for columns by their numbers" \
    'data: {training: {csv: pets.csv, target: species, classes: 3}}'
refuse 'data\.validation: target, drop, .* stand in data\.training, and count for all data' \
    'data: {training: {csv: pets.csv, target: species}, validation: {csv: pets.csv, target: species}}'
refuse 'a csv without fields has the columns of data\.training, which has to be a csv with a target then' \
    'network: input(4) + dense(3) + softmax_cross_entropy
data: {training: iris, validation: {csv: pets.csv}}'
refuse "scale: .*'minmax'.*did you mean 'min_max'" 'data: {training: {csv: pets.csv, target: species, scale: minmax}}'
refuse "scale\.weight: .*'no'.*there are standard, min_max, robust, none" 'data: {training: {csv: pets.csv, target: species, scale: {weight: "no"}}}'
refuse "embedding\.fur: expected the size of an embedding, 1 to 10000, or auto, got '0'" \
    'data: {training: {csv: pets.csv, target: species, embedding: {fur: 0}}}'
refuse "dates\.born: unknown 'ages' \(did you mean 'age'\?\)" 'data: {training: {csv: pets.csv, target: species, dates: {born: ages}}}'
refuse 'dates: expected a map of texts, got ' 'data: {training: {csv: pets.csv, target: species, dates: age}}'
refuse 'network: is missing' 'data: {training: iris}'
printf 'data: {training: {csv: pets.csv, target: specie}}\n' >bad.yaml
run 1 train bad.yaml --folder never
has err "data\.training: targets: .*pets\.csv has no column 'specie'; did you mean 'species'\?$"

# --- a table itself, in place of a file that describes it ---
mkdir packed
gzip -c pets.csv >packed/pets.csv.gz
run 0 train packed/pets.csv.gz --target species --folder direct --quiet epochs=2 'data.training.drop=[id]'
has out '^validation: loss [0-9.]+, accuracy '
has direct/config.yaml "^name: pets$"
has direct/config.yaml "csv: .*/packed/pets\.csv\.gz$"
has direct/config.yaml 'target: \[species\]$'
has direct/config.yaml 'hooks: \["early_stopper\(validation\.loss, patience=10\)"\]$'
run 0 predict direct pets.csv
run 2 train pets.csv
has err "'pets\.csv' is a table: say what to predict, --target COLUMN; 'sigma data pets\.csv' shows the columns"
run 1 train pets.csv --target kind
has err "has no column 'kind'"
run 2 train bad.yaml --target species
has err "--target is for a table, FILE\.csv; in 'bad\.yaml' it is data\.training\.target"
finish
