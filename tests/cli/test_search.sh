#!/bin/bash
# sigma search: messages, results, and that a search that was killed ends as one that was not.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

# search CODE ARGUMENTS...
search()
{
    local wanted=$1
    shift
    run "$wanted" search "$@"
}

# results FOLDER: the table without the seconds.
results()
{
    sed -E 's/,[0-9]+\.[0-9]{3},(done|dropped|failed|waiting)/,\1/' "$1/results.csv"
}

# wrong VALUES MESSAGE: a field with these lines is refused.
wrong()
{
    printf 'network: input(4) + dense(3) + softmax_cross_entropy\ndata: iris\nsearch:\n%s\n' "$1" >wrong.yaml
    search 2 wrong.yaml --folder wrong
    has err "$2"
}

# --- usage and mistakes, each with its place ---
search 0 --help
has out '^  search\.minimum_epochs +integer '
search 2
search 2 missing.yaml
has err 'missing.yaml'
search 2 "$examples/iris.yaml"
has err 'iris.yaml: search: is missing'
wrong '  values: {}' 'search.values: expected a map from keys to lists'
wrong '  methd: grid' "wrong.yaml:4:3: search.methd: unknown key \(did you mean 'method'\?\)"
wrong '  method: gird' "wrong.yaml:4:11: search.method: unknown 'gird' \(did you mean 'grid'\?\)"
wrong '  values:
    optimiser.learning_rat: [1]' "wrong.yaml:5:5: search.values: optimiser.learning_rat: unknown key \(did you mean 'learning_rate'\?\)"
wrong '  values:
    optimiser.momentum: [0.5, 2]' 'wrong.yaml:5:31: optimiser.momentum: expected a number from .* got .2.'
wrong '  values:
    data.batch: []' 'wrong.yaml:5:17: search.values.data.batch: expected at least one value in the list'
wrong '  values:
    data.batch: [8, 16, 8]' "wrong.yaml:5:25: search.values.data.batch: '8' is here twice"
wrong '  values:
    data.batch: {from: 8, to: 16}' 'wrong.yaml:5:17: search.values.data.batch: a grid wants a list'
wrong '  method: random
  values:
    data.batch: {from: 0.5, to: 16}' 'wrong.yaml:6:24: data.batch: expected a whole number'
wrong '  method: random
  values:
    optimiser.learning_rate: {from: 0.1, to: 0.01}' 'wrong.yaml:6:46: .*expected more than 0.1'
wrong '  method: random
  values:
    optimiser.learning_rate: {frm: 8, to: 16}' \
    'wrong.yaml:6:31: search.values.optimiser.learning_rate: frm: unknown key'
wrong '  method: random
  values:
    network: {from: 1, to: 2}' 'wrong.yaml:6:14: search.values.network: a range is for numbers'
wrong '  values:
    epochs: [1, 2]' 'wrong.yaml:5:5: search.values.epochs: all trials of a search have this in common'
wrong '  method: halving
  values:
    data.batch: [8, 16]' 'halving shares out epochs'
wrong '  values:
    optimiser.beta1: {from: 0.1, to: 0.9, steps: 200}
    optimiser.beta2: {from: 0.1, to: 0.9, steps: 200}' 'the grid has 40000 points'
[ ! -e wrong ]
verdict "a mistake leaves no folder" $?
search 1 "$examples/search.yaml" search.objective=validation.los epochs=3 --folder los --quiet
has err "did you mean 'validation.loss'"

# --- a search, whole ---
search 0 "$examples/search.yaml" --folder whole
has out '^halving: 27 trials to 1 epoch, then 9 trials to 3 epochs, then 3 trials to 9 epochs, then 1 trial to 27 epochs'
has out '^\[27/27\] trial-[0-9]+: learning_rate '
has out '^best: trial-[0-9]+, validation.loss [0-9.]+: whole/best.yaml$'
[ "$(grep -c '' whole/results.csv)" -eq 28 ]
verdict "a line for each trial" $?
search 2 "$examples/search.yaml" --folder whole
has err 'whole has a search already: --resume goes on with it'
search 0 whole --resume
has out '^best: trial-'
search 1 "$examples/search.yaml" --folder whole --resume data.drop_last=true
has err 'drop_last: was false, is true'
# What was found is what training with it gives.
"$sigma" train whole/best.yaml --folder again --quiet >out 2>err
best=$(sed -n '2s/^[0-9]*,\([0-9.]*\),.*/\1/p' whole/results.csv)
has out "^validation: loss $(printf %.4f "$best"),"
"$sigma" eval "whole/trial-$(printf %03d "$(sed -n '2s/,.*//p' whole/results.csv)")" >out 2>err
has out "^validation: loss $(printf %.4f "$best"),"

# --- the same, killed again and again ---
for lines in 3 12 32; do
    "$sigma" search "$examples/search.yaml" --folder killed --resume >out 2>err </dev/null &
    process=$!
    for _ in $(seq 400); do
        [ "$(cat killed/search.jsonl 2>/dev/null | wc -l)" -ge "$lines" ] && break
        sleep 0.01
    done
    kill -KILL "$process"
    wait "$process" 2>/dev/null
    process=
done
search 0 killed --resume
diff <(results whole) <(results killed) >err
verdict "a search that was killed has other results" $?
cmp whole/best.yaml killed/best.yaml >err
verdict "a search that was killed has another best.yaml" $?

# --- tpe with pruning: the table, importance, and the same after it was killed ---
cat >tpe.yaml <<'YAML'
network: input(4) + dense(16, tanh) + dense(3) + softmax_cross_entropy
data:
  training: {dataset: iris, share: 0.8}
  validation: {dataset: iris, begin: 0.8, share: 0.2}
optimiser: adam
epochs: 9
search:
  method: tpe
  pruning: median
  prune_after_epochs: 2
  trials: 24
  values:
    optimiser.learning_rate: {from: 1e-4, to: 0.1, scale: log}
    data.batch: [8, 16, 32]
YAML
search 0 tpe.yaml --folder tpe
has out '^tpe: 24 trials to 9 epochs; objective validation.loss'
has out '^\[[0-9]+/24\] trial-0[0-9]+: learning_rate .* after [2-8] epochs, pruned, '
has out '^importance: optimiser.learning_rate 0\.[0-9]+, data.batch 0\.[0-9]+$'
has tpe/results.csv ',dropped,$'
[ "$(grep -c '"state":"begun"' tpe/search.jsonl)" -eq 14 ]
verdict "a line for each trial whose values were chosen" $?
for lines in 6 20 34; do
    "$sigma" search tpe.yaml --folder tpe-killed --resume >out 2>err </dev/null &
    process=$!
    for _ in $(seq 400); do
        [ "$(cat tpe-killed/search.jsonl 2>/dev/null | wc -l)" -ge "$lines" ] && break
        sleep 0.01
    done
    kill -KILL "$process"
    wait "$process" 2>/dev/null
    process=
done
search 0 tpe-killed --resume
diff <(results tpe) <(results tpe-killed) >err
verdict "a search with tpe and pruning that was killed has other results" $?
search 1 tpe.yaml search.startup_trials=9 --folder tpe --resume
has err 'its startup_trials was 10, is 9'
search 0 tpe --resume # what was refused has not changed the folder
has out '^best: trial-0'
cp -r tpe damaged
sed -i '9s/.*/{"trial": 1/' damaged/search.jsonl
search 1 damaged --resume
has err 'damaged/search\.jsonl:9: this is no JSON object'
! grep -q '^best' out && cmp tpe/best.yaml damaged/best.yaml 2>err
verdict "a damaged record is no result" $?
wrong '  method: halving
  pruning: median
  values:
    data.batch: [8, 16]' 'halving stops trials itself: leave pruning out'
wrong '  pruning: medain
  values:
    data.batch: [8, 16]' "search.pruning: unknown 'medain' \(did you mean 'median'\?\)"

# --- interrupted: the message says how to go on ---
"$sigma" search "$examples/search.yaml" epochs=2700 search.at_once=1 --folder stopped >out 2>err </dev/null &
process=$!
for _ in $(seq 400); do
    [ "$(cat stopped/search.jsonl 2>/dev/null | wc -l)" -ge 2 ] && break
    sleep 0.01
done
kill -TERM "$process"
wait "$process"
code=$?
process=
[ "$code" -eq 130 ]
verdict "an interrupted search ended with $code, expected 130" $?
has out '^stopped; go on with: sigma search stopped --resume$'

# --- trials that fail ---
cat >wild.yaml <<'YAML'
network: input(4) + dense(16, relu) + dense(3) + squared_difference
data:
  training: {dataset: iris, share: 0.8}
  validation: {dataset: iris, begin: 0.8, share: 0.2}
optimiser: gradient_descent
epochs: 2
search:
  values:
    optimiser.learning_rate: [0.001, 1e6]
    seed: [1, 2]
YAML
search 0 wild.yaml --folder wild
has out '^\[[34]/4\] trial-00[34]: learning_rate 1000000, seed [12]: failed: the loss is'
has wild/results.csv '^3,,1000000,1,0,[0-9.]+,failed,"?the loss is'
[ "$(head -n 3 wild/results.csv | cut -d, -f2 | sort -u | wc -l)" -eq 3 ]
verdict "another seed, another result" $?
search 0 wild --resume
search 1 wild.yaml search.objective=validation.accuracy --folder none
has err 'all 4 trials have failed, the first one so: validation.accuracy is not a finite number after epoch 1'

finish
