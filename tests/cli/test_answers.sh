#!/bin/bash
# predict --output: a table of answers with the columns of --id, prediction and probabilities, or numbers in the units of
# the table.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

# The species follows from the weight, the price from weight and age.
awk 'BEGIN {
    srand(7); split("cat dog rabbit", species, " ")
    print "id,name,weight,age,fur,species,price"
    for (i = 1; i <= 600; i++) {
        k = int(rand() * 3) + 1; age = int(rand() * 10)
        weight = k == 1 ? 4 + rand() : k == 2 ? 20 + 10 * rand() : 1 + rand()
        printf "%d,\"n, %d\",%.2f,%d,%s,%s,%.2f\n", i, i, weight, age, k == 1 ? "short" : "long", species[k], 100 * weight + 50 * age
    }
}' >pets.csv
echo 'data: {training: {csv: pets.csv, target: species, drop: [id, name, price]}}' >pets.yaml
run 0 train pets.yaml --folder pets --quiet epochs=10 seed=1
echo 'data: {training: {csv: pets.csv, target: price, drop: [id, name, species], embedding: fur}}' >price.yaml
run 0 train price.yaml --folder price --quiet epochs=30 seed=1
echo 'data: {training: {csv: pets.csv, target: [price, age], drop: [id, name, species]}}' >two.yaml
run 0 train two.yaml --folder two --quiet epochs=10 seed=1

# --- classes: the file says what the standard output says ---
run 0 predict pets pets.csv
cp out printed
run 0 predict pets pets.csv --output answers.csv --id id
has out '^answers\.csv: 600 predictions$'
same 'the header of classes' "$(head -1 answers.csv)" 'id,prediction,probability_cat,probability_dog,probability_rabbit'
same 'the same classes' "$(tail -n +2 answers.csv | cut -d, -f2)" "$(cut -d' ' -f1 printed)"
same 'ids of the input, in order' "$(tail -n +2 answers.csv | cut -d, -f1)" "$(seq 600)"
awk -F, 'NR == FNR { split($0, word, " "); wanted[FNR] = word[2]; next }
    FNR > 1 { sum = $3 + $4 + $5; best = $3 > $4 ? $3 : $4; best = $5 > best ? $5 : best
        if (sum < 0.99999 || sum > 1.00001 || best - wanted[FNR - 1] > 0.0001 || wanted[FNR - 1] - best > 0.0001) exit 1 }' printed answers.csv
verdict 'probabilities sum to 1, and the largest is the one that is printed' $?
run 0 predict pets pets.csv --output quoted.csv --id name,id --count 2
same 'cells with commas are quoted' "$(cut -d, -f1-4 quoted.csv)" 'name,id,prediction,probability_cat
"n, 1",1,'"$(sed -n '1s/ .*//p' printed)"'
"n, 2",2,'"$(sed -n '2s/ .*//p' printed)"
"$sigma" predict pets - --output piped.csv --id id <pets.csv >out 2>err
code 0 $? 'predict - --output'
same 'the standard input gives the same table' "$(cat piped.csv)" "$(cat answers.csv)"
run 0 predict pets pets.csv --output answers.csv.gz --id id
same 'a packed table' "$(zcat answers.csv.gz)" "$(cat answers.csv)"
run 0 predict pets --data training --count 3 --output data.csv
same 'the header of a dataset' "$(head -1 data.csv)" 'prediction,probability_cat,probability_dog,probability_rabbit'
same 'lines of a dataset' "$(wc -l <data.csv)" 4

# --- probabilities of all classes ---
run 0 predict pets pets.csv --probabilities
awk 'NF != 6 || $2 < $4 || $4 < $6 { exit 1 }' out
verdict 'all classes, the likeliest first' $?
same 'the first is the class' "$(cut -d' ' -f1,2 out)" "$(cat printed)"
run 0 predict pets pets.csv --probabilities --json --count 1
has out '"probabilities": \{"cat": [0-9.e-]+, "dog": [0-9.e-]+, "rabbit": [0-9.e-]+\}, "outputs"'

# --- numbers, in the units of the table; the network has two inputs ---
run 0 predict price pets.csv
cp out printed
run 0 predict price pets.csv --output prices.csv --id id,price
same 'the header of one number' "$(head -1 prices.csv)" 'id,price,prediction'
tail -n +2 prices.csv | cut -d, -f3 | paste -d' ' - printed | awk '{ d = ($1 - $2) / $2; if (d > 1e-6 || d < -1e-6) exit 1 }'
verdict 'numbers are those that are printed' $?
awk -F, 'NR > 1 { e = $2 - $3; sum += e < 0 ? -e : e } END { exit sum / (NR - 1) > 100 }' prices.csv
verdict 'prices are near the true ones' $?
run 0 predict two pets.csv --output two.csv --count 1
same 'the header of two numbers' "$(head -1 two.csv)" 'prediction_price,prediction_age'

# --- nothing is written in part ---
echo before >kept.csv
sed '300s/,[^,]*,[^,]*,[^,]*$/,curly,cat,1/' pets.csv >wrong.csv
run 1 predict pets wrong.csv --output kept.csv --id id
has err "wrong\.csv: line 300, column 'fur': \"curly\""
same 'a failure leaves the file' "$(cat kept.csv)" before
ln -s pets.csv link.csv
run 2 predict pets pets.csv --output ./link.csv --id id
has err "--output: './link\.csv' is what is read; name another file for the answers"
run 1 predict pets pets.csv --output nowhere/answers.csv
has err "^sigma predict: --output: cannot create 'nowhere/answers\.csv\.tmp'"
run 1 predict pets pets.csv --output kept.csv --id nix
has err "^sigma predict: --id: pets\.csv has no column 'nix'; its first line names the columns$"
run 1 predict pets pets.csv --output never.csv --id Id
has err "^sigma predict: --id: pets\.csv has no column 'Id'; did you mean 'id'\?$"
same 'no file of a part is left' "$(ls ./*.tmp 2>/dev/null)" ''

# --- wrong usage ---
run 2 predict pets pets.csv --id id
has err '^sigma predict: --id is for --output FILE, which gets these columns'
run 2 predict pets pets.csv --output kept.csv --json
has err 'expected --output FILE, which is a table, or --json, got both'
run 1 predict pets --data training --output kept.csv --id id
has err "^sigma predict: --id copies columns of a table by its columns' names; this input has no such names$"
run 1 predict price pets.csv --probabilities
has err '^sigma predict: --probabilities: the network does not tell one class for each example; leave it out$'

finish
