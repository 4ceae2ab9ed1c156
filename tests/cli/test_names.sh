#!/bin/bash
# Names of other programs on the command line and in files; reporters that print without an option; networks that
# predict and say nothing of how they were trained.
. "${0%/*}/check.sh"

cat >typed.yaml <<'END'
model: "input(4) + linear(10) + relu + linear(3) + cross_entropy"
data: {train: iris, batch_size: 16}
optimizer: {type: sgd, lr: 0.1}
num_epochs: 2
callbacks: [accuracy_reporter(training), "value_reporter(loss lr)"]
folder: run
END
run 0 train typed.yaml batch_size=32
has err "names: 'linear' is called 'dense' here$"
has err "names: 'relu' is called 'activation\(relu\)' here$"
has err "names: 'batch_size' is called 'data.batch' here$"
has err "names: 'lr' is called 'optimiser.learning_rate' here$"
same "notes of one name" "$(grep -c "'linear' is called" err)" 1
# What is kept has the names here, so nothing is noted any more.
has run/config.yaml '^network: "?input\(4\) \+ dense\(10\) \+ activation\(relu\) \+ dense\(3\) \+ softmax_cross_entropy'
has run/config.yaml 'batch: 32'
run 0 train run/config.yaml epochs=3 --resume
same "notes of a file that was kept" "$(grep -c 'is called' err)" 0

# Reporters were asked for: their lines need no option, and end where somebody chooses a level.
same "lines of a reporter" "$(grep -c 'training.loss = .*optimiser.learning_rate = 0.1' err)" 1
has err 'top1 = [01]\.?[0-9]*$'
run 0 train run/config.yaml epochs=4 --resume --log-level warning
same "lines of a reporter, with a level" "$(grep -c ' = ' err)" 0
SIGMA_LOG=error "$sigma" train run/config.yaml epochs=5 --resume >out 2>err
same "lines of a reporter, with a variable" "$(grep -c ' = ' err)" 0
run 2 train typed.yaml validation_split=0.2
has err "validation_split: unknown key \(did you mean 'data.split'\?\): it is the share that trains"
run 2 fit typed.yaml
has err "unknown command 'fit' \(did you mean 'train'\?\)"

# Two names of one thing: neither value is dropped in silence.
sed 's/batch_size: 16/batch: 8, batch_size: 16/' typed.yaml >twice.yaml
run 2 train twice.yaml
has err "twice.yaml:2:.*data.batch_size: is the same as 'batch', which line 2 gives as 'batch'; remove one of them$"
sed 's/lr: 0.1/lr: 0.1, learning_rate: 0.2/' typed.yaml >twice.yaml
run 2 train twice.yaml
has err "twice.yaml:3:.*optimiser.lr: is the same as 'learning_rate', which line 3 gives as 'learning_rate'; remove"
sed 's/optimizer: .*/optimiser: {type: sgd, learning_rate: 0.1}/; $a lr: 0.5' typed.yaml >twice.yaml
run 2 train twice.yaml
has err "twice.yaml:7:.*lr: is the same as 'optimiser.learning_rate', which line 3 gives as "

# The manual has the whole table.
run 0 info --names
awk '/^## Names of other programs/ { found = 1 } found && /^```$/ { exit } inside { print } found && /^```text$/ { inside = 1 }' \
    "$SIGMA_SOURCE_DIR/docs/manual/10-reference.md" >manual
cmp -s out manual
verdict "the manual's table is that of the command" $? manual

# What a name is.
run 0 info linear
has out "^'linear' is called dense here"
has out '^layer dense: .*'
has out '^  formula    y = activation'
has out '^    size  *a whole number from 1 to 1000000000, required: '
run 0 info momentum
has out '^    momentum  *a number from 0 to 0\.9+, default 0\.9: '
has out '^  optimiser\.momentum  *number'
run 0 info nadam
has out "^'nadam' is likely meant to be adam$"
run 0 info data.batch
has out '^  data\.batch  *integer  size of a minibatch'
run 2 info densse
has err "there is nothing named 'densse' \(did you mean 'dense'\?\)"
run 0 info cma_es
has out '^    population +a whole number from 0 to 1000000 candidates, default 0: '
# --- arguments, and words that are given as one, lead to what takes them ---
run 0 info cpu
has out '^  example    handler: cpu\(bfloat16=amx\)$'
has out '^    instructions       one of portable, .*: its vectors'
has out '^    exact              true or false: '
run 0 info bfloat16
has out '^  precision  .* of parameters and results'
has out '^  operator\.bfloat16 '
has out '^  handler cpu$'
has out '^    bfloat16           one of own, amx, onednn, float32: '
same "an argument that is a key is told once" "$(grep -c 'gradients are sent as bfloat16' out)" 1
run 0 info amx
same "a word leads to what takes it" "$(sed 's/: what.*//' out)" "$(printf '%s\n' arguments '  handler cpu' \
    '    bfloat16           one of own, amx, onednn, float32')"
run 0 info adam
same "what has a name is told without what takes it" "$(grep -c '^arguments' out)" 0
same "adam has no population" "$(grep -c population out)" 0
for kind in layers costs activations optimisers schedules initialisers modifiers hooks metrics rules augmentations \
    operators handlers keys; do
    run 0 info --$kind
done

# A run with much that only a training uses, some of which is not there any more, or is set otherwise by now.
cat >much.yaml <<'END'
network: input(4) + dense(6, relu) + dense(3) + softmax_cross_entropy
data: iris
optimiser: {type: momentum, learning_rate: 0.1, average: 0.9}
operator: {type: gradients, workers: 2}
modifiers: {"*.weights": max_norm(3)}
freeze: [1-dense.biases]
hooks: ["value_reporter(training.loss)", "statistics(network.layers.*.weights)", "early_stopper(training.loss)"]
rules: ["after 1 epochs set optimiser.learning_rate *= 0.5"]
epochs: 2
folder: much
END
run 0 train much.yaml
printf '5.1,3.5,1.4,0.2\n6.2,2.8,4.8,1.8\n' >flowers.csv
run 0 predict much flowers.csv
cp out before
sed -i 's/learning_rate: 0.1$/learning_rate: 0.7/; s/type: momentum/type: adam/; /^ *momentum/d' much/config.yaml
sed -i 's/"statistics([^"]*"/progress_reporter/; s/type: gradients/type: parameters/' much/config.yaml
for level in debug info warning error; do
    run 0 predict much flowers.csv --log-level $level
    cmp -s out before
    verdict "predictions with the level $level" $?
    same "messages of a prediction with the level $level" "$(grep -icE 'optimiser|rate|hook|rule|train|freeze|worker' err)" 0
done
run 0 eval much --data iris
same "messages of a measurement" "$(cat err)" ""
run 0 export --weights weights.safetensors much
same "messages of an export" "$(cat err)" ""
finish
