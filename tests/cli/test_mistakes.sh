#!/bin/bash
# Mistakes of newcomers: what is typed or written wrongly, and what the message must say: the thing, the place and the remedy.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

awk 'BEGIN { srand(2); print "id,age,town,price,kind"
    for (i = 0; i < 60; i++) print i "," int(rand() * 50) "," (i % 3 ? "Ulm" : "Bonn") "," int(rand() * 1000) "," (i % 2 ? "cat" : "dog") }' >pets.csv
cat >pets.yaml <<'YAML'
data:
  training: {csv: pets.csv, target: kind, drop: [id]}
  split: 0.8
epochs: 1
YAML
run 0 train pets.yaml --folder good --quiet
sed '5s/,.*/,4/' pets.csv >short.csv                    # a row with two cells
sed '4s/dog/d"og/; 5s/,\(Ulm\|Bonn\),/,"\1,/' pets.csv >quote.csv    # a quote that is never closed
sed '7s/^[^,]*,[^,]*/5,old/' pets.csv >word.csv         # a word among numbers
sed 's/,kind$/,age/' pets.csv >twice.csv                # two columns of one name
sed '1d; s/,/;/g' pets.csv >headless.csv                # no header
head -1 pets.csv >empty.csv
: >nothing.csv
printf 'age;town;price\n4;Ulm;1\n' >semicolon.csv
printf 'age,price\n4,1\n' >missing.csv
printf 'age,town,price\n4,Trier,1\n' >town.csv
printf 'age,town,price\nold,Ulm,1\n' >old.csv
printf 'PK\003\004\000\000' >pets.xlsx
printf 'data:\n\ttraining: pets.csv\n' >tab.yaml
printf 'data:\n  training: {csv: pets.csv, target: kind\nepochs: 1\n' >brace.yaml
printf 'data:\n  training: pets.csv\n' >name.yaml
printf 'data: {training: {csv: pets.csv, target: kind}}\nepochs: 1\nepochs: 2\n' >double.yaml
printf 'data:\n  training: {csv: pets.csv, target: kind}\n  trainnig: {csv: pets.csv}\n' >misspelt.yaml

awk 'BEGIN { print "area;price;floor"; for (i = 1; i < 200; i++) printf "%d,5;%d,5;%d\n", i, 2 * i, i % 5 }' >comma.csv

# mistake CODE "MESSAGE" ARGUMENTS...: the command fails with CODE, and its message matches.
mistake()
{
    local wanted=$1 message=$2
    shift 2
    run "$wanted" "$@"
    has err "$message"
}
changed() { local wanted=$1 message=$2; shift 2; mistake "$wanted" "$message" train pets.yaml --folder never --quiet "$@"; }

# --- the command line ---
mistake 2 "unknown command 'trian' \(did you mean 'train'\?\)" trian pets.yaml
mistake 2 "cannot open 'pet\.yaml': No such file" train pet.yaml
mistake 2 "unknown option '--epochs'; a key of the file is given as KEY=VALUE, without dashes: epochs=VALUE;" train pets.yaml --epochs 3
mistake 2 "without dashes: data.batch=VALUE;" train pets.yaml --data.batch=8
mkdir pictures
mistake 2 "'pictures' has no config\.yaml.*no pictures, sounds or texts in folders of classes: put those of each class into a folder, pictures/CLASS/" train pictures
mistake 2 "--data takes a name; a file stands alone: sigma eval good pets\.csv" eval good --data pets.csv
mistake 2 "--data takes a name; a file stands alone: sigma predict good pets\.csv" predict good --data pets.csv
mistake 2 "expected a file that describes what to train" train
mistake 2 "good has a checkpoint already: --resume goes on from it, --folder names another" train pets.yaml --folder good
mistake 2 "--resume needs the folder of the run: --folder DIR" train pets.yaml --resume
mistake 2 "there is no run 'goood' to resume" train goood --resume
mistake 2 "expected a checkpoint and --data NAME, --text TEXT or a file" predict good
mistake 1 "no checkpoint and no folder of a run 'goood'" predict goood pets.csv
mistake 1 "'pets\.yaml' describes a training: 'sigma train' makes a folder of it" predict pets.yaml pets.csv
mistake 1 "cannot open 'pest\.csv'.*check the path" predict good pest.csv
mistake 2 "--port: expected a whole number from 1 to 65535, got '99999'" serve good --port 99999
mistake 1 "nothing runs in 'good' now; 'sigma train good --resume' goes on" ctl good get training.loss
mistake 2 "expected what to write, such as --c FILE\.c" export good
mistake 2 "search: is missing, such as search: \{values:" search pets.yaml

# --- the file ---
mistake 2 "tab\.yaml:2.*tab" train tab.yaml
mistake 2 "brace\.yaml:[23]" train brace.yaml
mistake 2 "there is no dataset 'pets\.csv'; of files: \{csv: FILE, target: COLUMN\}" train name.yaml --folder never
mistake 2 "double\.yaml:3.*epochs.*twice" train double.yaml
mistake 2 "misspelt\.yaml:3.*trainnig: unknown key \(did you mean 'training'\?\)" train misspelt.yaml
changed 2 "epochs: expected a whole number from 1 to [0-9]+, got 'ten'" epochs=ten
changed 2 "learning_rate: expected a number from 0 to .*, got '0,1'" optimiser.learning_rate=0,1
changed 2 "unknown optimiser 'adamm' \(did you mean 'adam'\?" optimiser=adamm
changed 2 "scale: unknown 'normal'; there are standard, min_max, robust, none" data.training.scale=normal
changed 2 "impute: unknown 'zero'; there are mean, median" data.training.impute=zero
changed 2 "data\.split: expected a share between 0 and 1, such as 0\.8, got '80%'" data.split=80%
changed 2 "handler: there is no handler 'gpu' \(did you mean 'opencl' or 'cuda'\?\)" handler=gpu
changed 2 "expected ')' for the '\(' at column 17, found 'relu'" 'network=input(5) + dense(8 relu) + dense(2) + softmax_cross_entropy'
changed 2 "dense has no layer before it; start the chain with input" 'network=dense(8) + dense(2) + softmax_cross_entropy'
changed 1 "'inputs' has examples of the shape \(4,\), layer '0-input' wants \(9,\): let it have the shape \(4,\)" \
    'network=input(9) + dense(2) + softmax_cross_entropy'
changed 1 "field 'targets' has examples of the shape \(2,\), layer .* wants \(3,\).*let that give \(2,\)" \
    'network=input(4) + dense(3) + softmax_cross_entropy'

# --- the table ---
changed 1 "data\.training: cannot open '.*pest\.csv': No such file or directory; check the path" data.training.csv=pest.csv
changed 1 "pets\.csv has no column 'Kind'; did you mean 'kind'\?" data.training.target=Kind
changed 1 "has no column 'age,kind'; several columns are a list, \[a, b\]" data.training.target=age,kind
changed 1 "the target 'town' holds categories, and there are other targets" 'data.training.target=[town, price]'
changed 1 "short\.csv: line 5: 5 columns were expected as in line 1, 2 came; correct the row, or set skip_ragged" data.training.csv=short.csv
changed 1 "quote\.csv: line [45].*quote" data.training.csv=quote.csv
changed 1 "twice\.csv: the columns 1 and 4 \(from 0\) are both called 'age'; rename one" data.training.csv=twice.csv
changed 1 "headless\.csv has no column 'kind'; it has " data.training.csv=headless.csv
changed 1 "pets\.csv has no column 'kind'; its only column is '.*': 'separator' says what is between columns" \
    'data.training={separator: ;, target: kind}'
changed 1 "the target 'price' has '2,5', which looks like a number with a decimal comma: decimal: \",\" reads it" \
    'data.training={csv: comma.csv, target: price, drop: []}'
has err "column 'area': '1,5' looks like a number with a decimal comma: decimal: \",\" reads it"
changed 1 "nothing\.csv: the table is empty" data.training.csv=nothing.csv
changed 1 "empty\.csv: the table has no rows below its header" data.training.csv=empty.csv
awk 'BEGIN { print "age,class"; for (i = 0; i < 60; i++) print i * 7 % 60 "," i % 3 }' >numbers.csv
run 0 train numbers.csv --target class epochs=1 --folder numbers --quiet
has err "the target 'class' holds the numbers 0 to 2, which are learnt as sizes: if they are classes, name it in 'categorical'"
run 0 train numbers.csv --target class epochs=1 --folder classes --quiet 'data.training.categorical=[class]'
same "warnings where classes are named" "$(grep -c "learnt as sizes" err)" 0
mistake 1 "missing\.csv has no column 'town'" predict good missing.csv
mistake 1 "town\.csv.*line 2.*column 'town'.*\"Trier\" is none of the 2 categories" predict good town.csv
mistake 1 "old\.csv.*line 2.*column 'age'.*\"old\"" predict good old.csv
mistake 2 "pets\.xlsx is a table of another program: save it as CSV" data pets.xlsx
run 0 predict good semicolon.csv # this is none: the separator is found
mistake 1 "column 'age': line 7 has 'old' where the others are numbers or dates: correct it, leave it empty, say 'missing: old', or name the column in 'drop' or 'categorical'" train pets.yaml data.training.csv=word.csv --folder word --quiet
run 0 train pets.yaml data.training.csv=word.csv data.training.missing=old --folder word --quiet
run 0 data word.csv
has out "age: line 7 has 'old' where the others are numbers"
mkdir -p pictures
mistake 1 "pictures: is a folder, but the network was trained on a table: name one, FILE\.csv" eval good pictures

finish
