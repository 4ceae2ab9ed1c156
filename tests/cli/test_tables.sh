#!/bin/bash
# Tables as beginners of machine learning meet them (tables.awk): a file of five lines reaches what scikit-learn reaches
# with the same preprocessing, network and optimiser. golden_tables.py made its figures, with scikit-learn 1.9.1: accuracy
# 0.8227 (0.8170 to 0.8285 with ten seeds), R squared 0.9856 (0.9834 to 0.9867).
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

within() # NAME LOW HIGH: the number behind "NAME": in the JSON of out
{
    awk -F"\"$1\": " -v low="$2" -v high="$3" '{ split($2, number, /[,}]/); exit !(number[1] >= low && number[1] <= high) }' out
    verdict "$1 from $2 to $3" $?
}

for kind in passengers houses; do
    awk -v kind=$kind -f "$SIGMA_SOURCE_DIR/tests/cli/tables.awk" >$kind.csv
done
cat >passengers.yaml <<'YAML'
data:
  training: {csv: passengers.csv, target: survived, drop: [id, name], categorical: class, share: 0.8}
  validation: {csv: passengers.csv, begin: 0.8}
epochs: 10
YAML
cat >houses.yaml <<'YAML'
data:
  training: {csv: houses.csv, target: price, drop: [id, note], share: 0.8}
  validation: {csv: houses.csv, begin: 0.8}
epochs: 10
YAML

run 0 train passengers.yaml --folder passengers --quiet
run 0 eval passengers --json
within accuracy 0.8145 0.8309
run 0 predict passengers passengers.csv
same 'a prediction for each row' "$(wc -l <out)" 10000
awk 'NR > 8000 { print $1 }' out >predicted
awk -F, 'NR > 8001 { print $NF }' passengers.csv | paste -d' ' predicted - | awk '{ good += $1 == $2 } END { exit !(good > 1629 && good < 1662) }'
verdict 'classes by name agree with the column in as many rows as eval counts' $?

run 0 train houses.yaml --folder houses --quiet
run 0 eval houses --json
within r_squared 0.9757 0.9955
run 0 predict houses houses.csv
awk -F, 'NR > 1 { print $NF }' houses.csv | paste -d' ' out - |
    awk 'NR > 8000 { error += ($1 - $2) ^ 2; sum += $2; squares += $2 ^ 2; n++ }
         END { r = 1 - error / (squares - sum ^ 2 / n); exit !(r > 0.9757 && r < 0.9955) }'
verdict 'R squared of the predictions in units of the price' $?
finish
