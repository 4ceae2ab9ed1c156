#!/bin/bash
# Tables by names where more than one training goes on: searches, workers, a run that is steered, folds with weights.
# Each checkpoint keeps the pipeline, so that it can be asked.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

awk 'BEGIN {
    srand(3); split("Ulm Bonn Kiel", towns, " "); print "id,size,town,built,sure,price"
    for (i = 1; i <= 400; i++) {
        size = 20 + 100 * rand(); town = int(rand() * 3) + 1
        printf "%d,%.2f,%s,%d-%02d-03,%d,%.2f\n", i, size, towns[town], 1990 + int(rand() * 30), 1 + int(rand() * 12), 1 + int(rand() * 3),
               1000 * size + 20000 * town
    }
}' >houses.csv
cat >houses.yaml <<'YAML'
data:
  training: {csv: houses.csv, target: price, drop: [id], embedding: {town: 3}, dates: {built: parts}, weights: sure}
  split: 0.8
optimiser: {type: adam, learning_rate: 0.01}
epochs: 8
seed: 1
YAML

# answers RUN: it predicts prices of all rows, in the units of the table.
answers()
{
    run 0 predict "$1" houses.csv
    awk '$1 > 20000 && $1 < 250000 { good++ } END { exit !(NR == 400 && good > 380) }' out
    verdict "$1 predicts prices" $? out
}

# --- a search over what is done with columns, and over the network's learning ---
(cat houses.yaml; printf 'search:\n  values: {optimiser.learning_rate: [0.01, 0.02], data.training.scale.size: [standard, robust]}\n') >search.yaml
run 0 search search.yaml --folder search --quiet
same 'trials' "$(tail -n +2 search/results.csv | grep -c ',done')" 4
best=$(find search -name checkpoint.safetensors | head -1)
answers "${best%/*}"

# --- workers, which share minibatches or merge parameters ---
for operator in gradients parameters; do
    run 0 train houses.yaml --folder $operator --quiet "operator={type: $operator, workers: 2}"
    answers $operator
done
run 0 train houses.yaml --folder alone --quiet
run 0 eval alone --data validation --json
cp out alone.json
run 0 eval gradients --data validation --json
paste -d' ' alone.json out | sed -E 's/"loss": ([0-9.e-]+)/\n\1\n/g' | grep -E '^[0-9.e-]+$' |
    awk '{ loss[NR] = $1 } END { d = loss[1] - loss[2]; exit !(NR == 2 && d < 1e-3 && d > -1e-3) }'
verdict 'two workers with weights do what one does' $? alone.json out

# --- a run that is steered: back to its beginning, which leaves a branch, and on ---
"$sigma" train houses.yaml --folder run epochs=100000 >train.out 2>train.err </dev/null &
process=$!
wait_for 'epoch +[1-9]'
run 0 ctl run reset
wait_for 'epoch +[1-9]'
run 0 ctl run save kept
run 0 ctl run stop
wait "$process"
code 0 $? 'the run ends'
process=
has run/journal.jsonl '"event":"reset"'
answers run
answers run/kept.safetensors

# --- folds ---
run 0 train houses.yaml --folder folds --quiet 'data.split={folds: 2}'
has out '^2 folds: loss [0-9.]+, deviation [0-9.]+'
answers folds/fold-1
finish
