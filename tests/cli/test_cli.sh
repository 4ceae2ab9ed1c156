#!/bin/bash
# The command, from outside: what it prints, where, and with which exit code.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

# --- help, version, usage ---
run 0 --help
has out '^  train '
run 0 --version
has out '^sigma [0-9]+\.[0-9]+\.[0-9]+$'
run 2
run 2 trian
has err "did you mean 'train'"
for command in train ctl eval predict generate tokenize export serve inspect data info; do
    run 0 "$command" --help
    has out "^Usage: sigma $command"
    has out '^Exit codes: 0 done'
    run 2 "$command" --hepl
    has err "unknown option '--hepl' \(did you mean '--help'\?\)"
done
run 2 train
run 2 train a.yaml --folder
has err '--folder expects a value'
run 2 train a.yaml --folder --quiet
has err "--folder expects a value, got the option '--quiet'; a value that begins so is given as --folder=--quiet"
run 2 generate a --log-level -h
has err "--log-level expects a value, got the option '-h'"
run 2 predict a --data --
has err "--data expects a value, got the option '--'"
run 2 predict a --count 0 b
has err "a whole number of at least 1, got '0'"

# --- a number out of range is told the range, in the user's words ---
iris=$examples/iris.yaml
refuse() # PATTERN ARGUMENTS...: sigma train says it
{
    local pattern=$1
    shift
    "$sigma" train "$iris" --folder refused "$@" >out 2>err </dev/null
    has err "$pattern"
    same "C in the message for $*" "$(grep -oE 'sgm_[a-z_]+|SGM_[A-Z_]+|JSON_[A-Z_]+' err)" ""
    rm -rf refused
}
refuse "learning_rate: expected a number from 0 to 1e\+30, got '1e400'" optimiser.learning_rate=1e400
refuse "seed: expected a whole number from 0 to 9e\+18, got '-1'" seed=-1
refuse "'size' of dense takes a whole number from 1 to 1000000000, found '99999999999999999999'" \
    "network=input(4) + dense(99999999999999999999) + softmax_cross_entropy"
refuse "a share of 0.5 of the examples, from 0.8 on, would end at 1.3: it has to be above 0 and to end at 1" \
    "data.training={dataset: iris, begin: 0.8, share: 0.5}"
printf '1,2,0\n' >few.csv
printf 'network: input(2) + dense(1) + squared_difference\ndata: {training: {csv: few.csv, input_range: [0, 0], fields: {inputs: 0-1, targets: 2}}}\n' >few.yaml
iris=few.yaml refuse 'the input range 0 to 0 is empty; its two ends have to differ'
: >empty.txt
run 1 tokenize empty.txt --output tokens
has err '^sigma tokenize: .*there is no text to train a tokenizer on: it is empty$'
echo 'this is only a text' >words.txt
run 1 eval words.txt --data iris
has err "'words.txt': it is no safetensors file: its first 8 bytes give no length of a header, from 2 to 100000000$"

# --- what a message repeats does not steer the terminal ---
escape=$(printf '\033[2J\302\2330m\377\rküche')
for words in "train $escape" "$escape" "predict --$escape" "data csv=$escape" "train $examples/iris.yaml $escape=1"; do
    # shellcheck disable=SC2086 # words
    "$sigma" $words >out 2>err </dev/null
    has err '\?\[2J\?\?0m\?\?küche'
    same "control characters of '$words'" "$(LC_ALL=C tr -d '\n\t\040-\176' <err | LC_ALL=C tr -d '\303\274')" ""
done
run 2 train missing.yaml
has err "missing.yaml"
run 2 train "$examples/iris.yaml" --monitor 9000
has err "argument '9000': a port is given as --monitor=9000"
mkdir no-config
run 2 train no-config --resume
has err "'no-config' has no config.yaml"
rmdir no-config
run 2 data table.npy
has err "^sigma data: cannot open 'table\\.npy': No such file"
run 2 train "$examples/iris.yaml" data.training=table.csv
has err "data.training: there is no dataset 'table.csv'; of files: \{csv: FILE"
run 1 eval "$examples/iris.yaml"
has err "iris.yaml' describes a training: 'sigma train' makes a folder of it"
run 1 info ./missing
has err "^sigma info: there is no checkpoint and no folder of a run './missing'$"
run 0 help train
has out '^Usage: sigma train FILE'
for option in folder resume from quiet paused monitor monitor-wait json-lines tensorboard; do
    has out "^  --$option"
done
same "no line of the help is longer than 112 columns" "$(awk 'length > 112' out)" ""
cat >shares.yaml <<'EOF'
network: input(64) + embedding(256, 4) + dense(256, time_distributed) + softmax_cross_entropy
data: text:shares.yaml
EOF
run 1 train shares.yaml
has err "examples of the shape \(64, 256\), layer '0-input' wants \(64,\): .*of a text, 'text: FILE' gives numbers"
run 2 train "$examples/iris.yaml" epochs=none
has err "argument 'epochs=none': epochs: expected a whole number"
run 2 train "$examples/iris.yaml" --epochs 3
has err "unknown option '--epochs'; a key of the file is given as KEY=VALUE"
run 2 train "$examples/iris.yaml" optimiser.learning_rat=1
has err "did you mean 'learning_rate'"
printf 'network: input(4)\nepochz: 3\n' >wrong.yaml
run 2 train wrong.yaml
has err '^sigma train: wrong.yaml:2:1: epochz: unknown key'
same "no folder is left by a wrong configuration" "$(ls -d runs 2>/dev/null)" ""

# --- training, resuming ---
run 0 train "$examples/iris.yaml" epochs=2 seed=3 --folder run
same "a line for each epoch" "$(grep -c '^epoch [12]/2 loss ' out)" 2
same "no carriage returns" "$(grep -c "$(printf '\r')" out)" 0
has out '^validation: loss [0-9.]+, accuracy [0-9.]+ % \(30 examples\)$'
has out '^checkpoint: run/checkpoint.safetensors$'
same "errors" "$(cat err)" ""
same "lines of metrics" "$(wc -l <run/metrics.jsonl)" 2
has run/config.yaml '^epochs: 2$'
has run/config.yaml '^    share: 0.8$'
run 2 train "$examples/iris.yaml" --folder run
has err 'has a checkpoint already'
run 2 train "$examples/iris.yaml" --resume
has err '--resume needs the folder'
run 0 train run/config.yaml epochs=4 --resume --quiet
same "no progress when quiet" "$(grep -c '^epoch' out)" 0
same "lines of metrics after resuming" "$(wc -l <run/metrics.jsonl)" 4
# Two runs in a row end where one run ends.
run 0 train "$examples/iris.yaml" epochs=4 seed=3 --folder whole
"$sigma" eval run >resumed.txt
"$sigma" eval whole >whole.txt
same "resumed like uninterrupted" "$(cat resumed.txt)" "$(cat whole.txt)"
run 0 train "$examples/iris.yaml" epochs=1
has out '^checkpoint: runs/iris-[0-9]{8}-[0-9]{6}/checkpoint.safetensors$'
run 1 train "$examples/iris.yaml" 'network=input(5) + dense(3) + softmax_cross_entropy' --folder shapes
has err "^sigma train: argument 'network=.*': network and data.training do not fit: field 'inputs' has examples of the shape \(4,\), layer '0-input' wants \(5,\): let it have the shape \(4,\)"
same "no folder is left by data that do not fit" "$(ls -d shapes 2>/dev/null)" ""
printf 'data: iris\nnetwork: "input(4) + dense(4) + softmax_cross_entropy"\n' >unfit.yaml
run 1 train unfit.yaml --folder shapes
has err "^sigma train: unfit.yaml:2:10: network and data.training do not fit: field 'targets' has examples of the shape"
printf 'data: iris\nnetwork: "input(4) + convolution(3, 3) + dense(3) + softmax_cross_entropy"\n' >unfit.yaml
run 1 train unfit.yaml --folder shapes
has err '^sigma train: unfit.yaml:2:10: network: layer 1-convolution: convolution wants examples of \(height, width\)'

# An optimiser whose memory has shapes of its own.
run 0 train "$examples/iris.yaml" optimiser.type=adafactor epochs=1 seed=3 --folder factored --quiet
run 0 train factored/config.yaml epochs=2 --resume --quiet
run 0 train "$examples/iris.yaml" optimiser.type=adafactor epochs=2 seed=3 --folder factored-whole --quiet
"$sigma" eval factored >resumed.txt
"$sigma" eval factored-whole >whole.txt
same "rows and columns resumed" "$(cat resumed.txt)" "$(cat whole.txt)"
run 0 train $iris epochs=1 --folder merged --quiet operator=gradients operator.workers=2 name=merged
run 0 train merged epochs=2 --resume --quiet operator.type=parameters operator.threads=2 threads=1 name=other
has err 'warning: this run goes on otherwise than it began:$'
has err '^  operator.type: was gradients, is parameters$'
same "keys that change nothing" "$(grep -cE 'threads|name|epochs' err)" 0
same "something was evaluated" "$(grep -c accuracy whole.txt)" 1

# Two outputs, each with a column of the table and a cost of its own.
run 0 train "$examples/outputs.yaml" --folder outputs
has out '^epoch 20/20 loss 0\.[0-2][0-9]* accuracy 9[0-9.]+ %'

# --- beginning with another run ---
run 0 train "$examples/iris.yaml" epochs=1 --folder begun --from whole
has out '^starting from .*/whole/checkpoint.safetensors: parameters$'
has out '^epoch 1/1 '
has begun/config.yaml '^  run: .*/whole$'
run 0 train begun epochs=2 --resume # which does not start again
same "lines about the start" "$(grep -c '^starting' out)" 0
run 1 train "$examples/iris.yaml" --folder other --from whole 'network=input(4) + dense(16, tanh) + dense(9, relu) + dense(3) + softmax_cross_entropy'
has err "start_from.skip_mismatch=true .*'2-dense.weights' is float32 \(16, 3\), the network wants float32 \(16, 9\); .*'3-dense.weights' is missing"
same "no folder is left by a start that does not fit" "$(ls -d other 2>/dev/null)" ""
sed 's/\\"version\\":2/\\"version\\":1/' whole/checkpoint.safetensors >old.safetensors
run 1 train "$examples/iris.yaml" --folder other --from old.safetensors
has err "start_from: '[^']*old.safetensors': the header is damaged" # and no hint that does not help
run 0 train "$examples/iris.yaml" epochs=1 --folder other --from whole start_from.skip_mismatch=true 'network=input(4) + dense(16, tanh) + dense(9, relu) + dense(3) + softmax_cross_entropy'
has out "^left as it is: '2-dense.weights' is float32"
run 0 train "$examples/iris.yaml" epochs=6 --folder moved --from whole/checkpoint.safetensors 'start_from.parts=[everything, -settings]'
same "epochs that were left" "$(grep -c '^epoch [56]/6' out)" 2
run 2 train "$examples/iris.yaml" --from whole --resume --folder begun
has err 'leave --from out'
run 2 train "$examples/iris.yaml" 'start_from.parts=[paramters]'
has err "did you mean 'parameters'"
run 1 train "$examples/iris.yaml" --from nowhere
has err "start_from: .*nowhere"

# --- what must not go wrong ---
run 2 train "$examples/iris.yaml" name=../elsewhere
has err "without '/'"
run 2 train "$examples/iris.yaml" handler=debug:debug:cpu
has err "there is no handler 'debug:debug:cpu'.*; there are cpu"
cp run/config.yaml kept.yaml
run 1 train run/config.yaml --resume 'network=input(4) + dense(3) + softmax_cross_entropy'
has err 'is of the network "input\(4\) \+ dense\(16'
same "a resume that fails keeps the configuration" "$(cat run/config.yaml)" "$(cat kept.yaml)"
run 0 train run/config.yaml --resume
has out '^nothing to do: 4 of 4 epochs are done$'
run 0 train run --resume epochs=2
has out '^nothing to do: 4 of 2 epochs are done$'
same "nor does one that has nothing to do change it" "$(cat run/config.yaml)" "$(cat kept.yaml)"
run 1 train "$examples/iris.yaml" 'network=input(4) + dense(3) + mean_squared' optimiser.type=gradient_descent \
    optimiser.learning_rate=1e6 --folder diverged
has err 'the loss is (infinite|not a number) at iteration [0-9]+, in epoch [0-9]+: lower the learning rate'
has err 'the hook nan_watch, or handler debug:cpu, names'
run 0 find-rate "$examples/iris.yaml" --iterations 50 --curve curve.jsonl
has out '^the loss falls fastest at [0-9.e-]+ \(O\), and is lowest at [0-9.e-]+; try:$'
has out 'optimiser.learning_rate=0\.[0-9]+$'
same "a curve has its points" "$(head -c 30 curve.jsonl)" '{"iteration":1,"rate":1e-07,"l'
run 0 find-rate "$examples/iris.yaml" --minimum 1e-9 --maximum 1e-7
has out '^no rate can be proposed: the loss does not fall clearly, by '
run 2 find-rate "$examples/iris.yaml" --minimum -1
has err 'expected a number above 0'
run 1 find-rate "$examples/iris.yaml" --iterations 3
has err '10 to 100000 iterations'
run 1 train "$examples/iris.yaml" 'freeze=[1-dense.weihgts]' --folder frozen
has err "freezing '1-dense.weihgts' matches no parameter"
sed '$a initialisers: {"*.biases": constant(0), "9-dense.*": he}' "$examples/iris.yaml" >patterns.yaml
run 1 train patterns.yaml --folder patterns
has err "^sigma train: patterns.yaml:12:[0-9]+: initialisers.9-dense.\*: trainer '.*': the initialiser for '9-dense.\*' matches no parameter of the network"
run 1 train "$examples/iris.yaml" 'initialisers.9-dense.*=he' --folder patterns
has err "^sigma train: argument 'initialisers.9-dense.\*=he': initialisers.9-dense.\*: .*the initialiser for '9-dense.\*' matches no parameter"
sed '$a modifiers:\n  9-dense.*: max_norm(2)' "$examples/iris.yaml" >patterns.yaml
run 1 train patterns.yaml --folder patterns
has err "^sigma train: patterns.yaml:13:[0-9]+: modifiers.9-dense.\*: .*the modifier for '9-dense.\*' matches no parameter"
[ ! -e patterns ]
verdict "no folder of a run that cannot be" $?
run 2 train "$examples/iris.yaml" 'freeze=[a!]'
has err "argument 'freeze=\[a!\]': freeze: pattern, column 2"
run 2 train "$examples/iris.yaml" 'initialisers.*.weights=constant(nan)'
has err "column 10: constant: value: expected a number, found 'nan'"
run 2 train "$examples/iris.yaml" data.training.dataset=nothing
mkdir -p elsewhere
seq 100 >elsewhere/numbers.txt
printf 'network: input(64, 256) + flatten + dense(2) + output\ndata: text:numbers.txt\n' >elsewhere/text.yaml
run 0 data elsewhere/text.yaml --count 1
has out '^  4 examples$'
printf 'network: input(4) + dense(3) + softmax_cross_entropy\n' >nodata.yaml
run 2 train nodata.yaml
has err 'there is no training data'
(ulimit -f 1 && exec "$sigma" train "$examples/digits.yaml" epochs=1 --folder small) >out 2>err
code 1 $? "a file that may not grow"
has err "cannot write 'small/checkpoint.safetensors.tmp'"
(ulimit -f 16 && exec "$sigma" train "$examples/iris.yaml" epochs=400 --folder grows --quiet) >out 2>err
code 1 $? "a file that may not grow any more"
has err "cannot write 'grows/(metrics|journal).jsonl': File too large"
"$sigma" --help >/dev/full 2>err
code 1 $? "a full disk"
printf '1,2,0\n3,4\n\n5,6,1\nx,6,1\n' >ragged.csv
printf 'network: input(2) + dense(2) + softmax_cross_entropy\ndata: {training: {csv: ragged.csv, classes: 2, skip_ragged: true, fields: {inputs: 0-1, targets: 2}}}\n' >ragged.yaml
run 1 train ragged.yaml
has err 'ragged.csv: line 5, column 0 \(from 0\): "x" is not a number'
sed -i '$d' ragged.csv
run 0 train ragged.yaml epochs=1
has err 'line 2 has 2 columns instead of 3 and is left out'

run 2 train "$examples/iris.yaml" epochs=1 seed=2 epochs=2
has err "epochs is given twice: 'epochs=1' and 'epochs=2'"
printf 'network: input(2) + dense(2) + softmax_cross_entropy\ndata: {csv: ragged.csv}\n' >place.yaml
run 2 train place.yaml
has err "data.csv: unknown key here; 'csv' belongs below 'training'"

# A table may be packed.
printf '1,2,0\n3,4,1\n5,6,1\n' | gzip >packed.csv.gz
run 0 train ragged.yaml epochs=1 data.training.csv=packed.csv.gz name=packed folder=packed
printf '1,2\n3,4\n' >plain.csv
gzip -k plain.csv
run 0 predict packed plain.csv
cp out plain.out
run 0 predict packed plain.csv.gz
same "a packed table gives what it gives unpacked" "$(cat out)" "$(cat plain.out)"
run 2 train "$examples/iris.yaml" seed=-1
has err "seed: expected a whole number from 0 to 9e\+18, got '-1'"

# --- folders of runs ---
# A run that is moved goes on where it is now.
run 0 train "$examples/iris.yaml" epochs=1 --folder first
mv first second
run 0 train second epochs=2 --resume
has out '^checkpoint: second/checkpoint.safetensors$'
same "nothing at the old place" "$(ls -d first 2>/dev/null)" ""
run 0 train second/config.yaml epochs=3 --resume
has out '^checkpoint: second/checkpoint.safetensors$'
same "no warnings when nothing but the length changes" "$(cat err)" ""
run 2 train second
has err 'second has a checkpoint already'
run 0 train "$examples/iris.yaml" epochs=1 --resume --folder empty
has out '^empty has no checkpoint to resume from: training begins anew$'
run 0 train second epochs=4 data.batch=20 optimiser.type=momentum --resume
has err '^  data.batch: was 10, is 20$'
has err 'trained with the optimiser adam, training goes on with momentum'
same "only what differs is told" "$(grep -c ': was ' err)" 1

# --- a sorted table, split ---
for i in $(seq 100); do echo "$i,$((i > 50))"; done >sorted.csv
cat >sorted.yaml <<'END'
network: input(1) + dense(2) + softmax_cross_entropy
data:
  training: {csv: sorted.csv, fields: {inputs: 0, targets: 1}, classes: 2, shuffled: true, share: 0.5}
  validation: {csv: sorted.csv, fields: {inputs: 0, targets: 1}, classes: 2, shuffled: true, begin: 0.5}
END
run 0 data sorted.yaml --count 100
same "examples of both parts" "$(grep -c '^  50 examples$' out)" 2
has out '^    classes 0: 2[0-9], 1: 2[0-9]$'
same "each example is in one part" \
    "$(grep -c '    inputs: ' out) $(grep '    inputs: ' out | sort -u | wc -l)" "100 100"
run 0 train sorted.yaml --quiet
same "no warning when shuffled" "$(cat err)" ""
run 0 train sorted.yaml data.training.shuffled=false data.validation.shuffled=false --quiet
has err '^warning: data.training: none of the 50 examples is of class .1.; if the file is sorted'
has err '^warning: data.validation: none of the 50 examples is of class .0.; if'
run 2 train "$examples/iris.yaml" data.training.shuffled=true
has err 'data.training.shuffled: is for csv, inputs and images'

# --- measuring, asking, looking ---
run 0 eval run --json
has out '^\{"data": "validation", "loss": [0-9.e-]+, "accuracy": [0-9.]+, "examples": 30, "counted": \{"of": "iris", "examples": 150, "begin": 0\.8, "end": 1\}, "confusion": \[\[.*"f1": [01].*"roc_auc_per_class": \[[01.]+, .*\]\}$'
run 0 eval run --json --metrics none
has out '"accuracy": [0-9.]+, "examples": 30, "counted": \{[^}]*\}\}$'
run 0 eval run
has out '^validation: loss [0-9.]+, accuracy [0-9.]+ % \(30 examples\)$'
has out '^  precision [0-9.]+, recall [0-9.]+, f1 [0-9.]+, roc_auc [0-9.]+$'
has out '^  target . output .* examples   recall$'
has out '^  [012] .* [0-9.]+ %$'
run 0 eval run --metrics 'top_k(1, 2), perplexity'
has out '^  top_1 [0-9.]+, top_2 [0-9.]+, perplexity [0-9.]+$'
run 1 eval run --metrics confusio
has err "metrics 'confusio': column 1: unknown metric 'confusio' \(did you mean 'confusion'"
run 1 eval run --metrics binary_accuracy
has err 'binary_accuracy wants one output, but there are 3'
run 0 eval run/checkpoint.safetensors --data training
has out '\(120 examples\)$'
cp run/checkpoint.safetensors alone.safetensors
run 2 eval alone.safetensors
run 0 eval alone.safetensors --data iris
has out '\(150 examples\)$'
# A checkpoint alone shows its precision, and averages of parameters that are measured instead of them.
run 0 train "$examples/iris.yaml" epochs=2 precision=float64 optimiser.average=0.9 --folder wide
cp wide/checkpoint.safetensors wide.safetensors
"$sigma" eval wide --data iris >with.txt
"$sigma" eval wide.safetensors --data iris >alone.txt
same "a checkpoint alone is measured as with its configuration" "$(cat alone.txt)" "$(cat with.txt)"
has alone.txt '\(150 examples\)$'
# Mixed precision says which way its products go; its checkpoints are like any other.
run 0 train "$examples/iris.yaml" epochs=2 precision=bfloat16 --folder mixed
has mixed/log.txt 'products of bfloat16: (.*float32|own (loops with AVX512_BF16|blocks with AMX)|oneDNN .*AMX)'
run 0 inspect mixed
has out '^  bfloat16, with float32 parameters; products (.*float32|own (loops with AVX512_BF16|blocks with AMX)|oneDNN .*AMX)'
cp mixed/checkpoint.safetensors mixed.safetensors
run 0 eval mixed.safetensors --data iris
has out '\(150 examples\)$'
run 1 eval alone.safetensors --data iriss
has err 'iris'
run 1 eval missing.safetensors
has err "^sigma eval: there is no checkpoint and no folder of a run 'missing.safetensors'"
mkdir -p shelf/one
run 1 eval shelf --data iris
has err "^sigma eval: there is no checkpoint.safetensors in 'shelf'; a training writes it there"
cp -r run shelf/two
run 1 eval shelf --data iris
has err "^sigma eval: 'shelf' is a folder of runs: name one of them, such as the newest, shelf/two$"
run 1 train $iris --folder from-shelf --from shelf
has err "^sigma train: start_from: '/.*/shelf' is a folder of runs: name one of them, such as the newest, /.*/shelf/two$"
run 1 train $iris --folder from-shelf --from nowhere
has err "^sigma train: start_from: there is no checkpoint and no folder of a run '/.*/nowhere'$"
head -c 100 alone.safetensors >cut.safetensors
run 1 eval cut.safetensors --data iris
has err 'cut.safetensors'
run 0 predict run --data iris --count 5
same "lines of predictions" "$(wc -l <out)" 5
has out '^[012] (0\.[0-9]{4}|1\.0000)$'
cat >steps.yaml <<'END'
network: input(3, lengths=steps) + embedding(4, 4) + dense(3, time_distributed) + ctc(2, skip)
data:
  training: {csv: steps.csv, fields: {inputs: 0-2, steps: 3, targets: 4-5}}
END
printf '1,1,2,3,1,2\n2,0,0,1,2,0\n' >steps.csv
run 0 train steps.yaml epochs=1 --folder steps
run 0 predict steps --data training
same "lines of labels" "$(wc -l <out)" 2
printf '1,1,2\n2,0,0\n' >given.csv
printf '3\n1\n' >lengths.csv
cp out expected
run 0 predict steps given.csv --lengths lengths.csv
same "labels of a file" "$(cat out)" "$(cat expected)"
run 0 predict steps given.csv --lengths lengths.csv --json
has out '"labels": \['
printf '3\n' >lengths.csv
run 1 predict steps given.csv --lengths lengths.csv
has err 'there are 1 lengths, and more examples'
printf '3\n1.5\n' >lengths.csv
run 1 predict steps given.csv --lengths lengths.csv
has err "'steps' at \[1\]: expected a whole number from 0 to 3, got 1.5"
run 1 predict run given.csv --lengths lengths.csv
has err "the network's input has no lengths"
printf 'a,b,c,d\n0.5,0.5,0.5,0.5\n0.1,0.2,0.3,0.4\n' >table.csv
run 0 predict run table.csv --json
same "lines of a table" "$(wc -l <out)" 2
has out '^\{"example": 1, "class": [012], "probability": [0-9.]+, "outputs": \[[0-9., e-]+\]\}$'
"$sigma" predict run - <table.csv >out 2>err
code 0 $? "predict -"
same "lines of standard input" "$(wc -l <out)" 2
printf '1,2,3,4\n1,2,x,4\n' >bad.csv
run 1 predict run bad.csv
has err "^sigma predict: bad.csv: line 2, column 2 \(from 0\): expected a number, got 'x'"
printf '1,2,3\n' >short.csv
run 1 predict run short.csv
has err 'expected 4 numbers, as the network.s input, got 3: --separator says'
printf '0.5;abc\n' | "$sigma" predict run - >out 2>err
code 1 $? "predict with another separator"
has err 'expected 4 numbers'
printf 'a,b,c,d\n' >heading.csv
run 1 predict run heading.csv
has err 'there are no examples behind the heading'
printf '1,2,3,4,setosa\n' >wide.csv
run 1 predict run wide.csv
has err 'leave other columns out; --data training predicts'
run 1 eval wide.csv
has err 'a checkpoint or the folder of a run is expected here'
printf '1,2,3,nan\n' >nan.csv
run 1 predict run nan.csv
has err "expected a number, got 'nan'"
printf '5,3,1,1\n1,2,1e39,4\n' >large.csv
run 1 predict run large.csv
has err "large.csv: line 2, column 2 \(from 0\): expected a number that fits float32, got '1e39'"
# The same in an array of float64: 1, 2, 3 and 1e39.
{
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 4), }"
    printf '\0\0\0\0\0\0\360\077\0\0\0\0\0\0\0\100\0\0\0\0\0\0\010\100\035\112\234\364\207\202\007\110'
} >large.npy
run 1 predict run large.npy
has err 'large.npy: example 0, element 3 \(both from 0\): 1e\+39 is too large for float32'
run 1 predict run missing.csv
has err "^sigma predict: cannot open 'missing.csv': No such file or directory; check the path"
run 1 eval run --data digits
has err "data 'digits': field 'inputs' has examples of the shape \(8, 8\), layer '0-input' wants \(4,\)"
# Numbers of a file are scaled as those of the training were.
printf '0,10,0\n10,0,1\n8,3,1\n2,9,0\n' >scale.csv
cut -d, -f1,2 scale.csv >scale-inputs.csv
printf 'network: input(2) + dense(2) + softmax_cross_entropy\ndata: {training: {csv: scale.csv, classes: 2, input_range: [0, 10], fields: {inputs: 0-1, targets: 2}}, shuffle: false}\n' >scale.yaml
run 0 train scale.yaml epochs=3 --folder scaled
run 0 predict scaled --data training
cp out expected
run 0 predict scaled scale-inputs.csv
same "predictions of a file that is scaled" "$(cat out)" "$(cat expected)"
sed -i 's/input_range: .*/input_range: [3, 3]/' scaled/config.yaml
run 0 predict scaled scale-inputs.csv
same "an empty range scales nothing" "$(grep -c nan out)" 0
run 2 predict run
sed 's/dense(16, tanh)/dansa(16, tanh)/' run/checkpoint.safetensors >own.safetensors
run 1 inspect own.safetensors
has err 'own.safetensors.: the header is damaged, or another program wrote it: its CRC-32 is'
sed -i 's/sigma.checksum/sigma.whatever/g' own.safetensors # as a program that drops checksums leaves it
run 0 inspect own.safetensors
has out "cannot be shown: column [0-9]+: unknown layer 'dansa'"
has out '^  1-dense.weights +64  float32  \(4, 16\)$'
has out '^  all +131  524 bytes$'
run 1 inspect own.safetensors --graph
has err "unknown layer 'dansa'"
run 1 inspect missing.safetensors
has err 'missing.safetensors'
run 0 train "$examples/iris.yaml" iterations=5 --folder part
has out '^epoch 1/50 \(5 of 12 batches\) loss '
printf '5.1,3.5,setosa\n4.9,3.0,virginica\n' >names.csv
printf 'network: input(2) + dense(2) + softmax_cross_entropy\ndata: {training: {csv: names.csv, class_names: [setosa, virginca], fields: {inputs: 0-1, targets: 2}}}\n' >names.yaml
run 1 train names.yaml
has err '"virginica" is none of the 2 texts that are mapped \(keys for such a table: skip_rows, classes, class_names'
run 0 train names.yaml 'data.training.class_names=[setosa, virginica]'

# Texts of other columns: numbers, for training and for questions.
{
    echo 'colour,size,kind'
    for i in 1 2 3 4 5 6 7 8; do printf 'red,%s,good\nblue,%s,poor\n"light green",NA,good\n' "$i" "$i"; done
} >apples.csv
cat >apples.yaml <<'EOF'
network: input(2) + dense(8, tanh) + dense(2) + softmax_cross_entropy
data:
  training: {csv: apples.csv, skip_rows: 1, missing: NA, fields: {inputs: 0-1, targets: 2}, class_names: [poor, good],
             texts: {0: [blue, red, light green]}}
  batch: 24
optimiser: {type: adam, learning_rate: 0.1}
epochs: 60
EOF
run 0 train apples.yaml --folder apples --quiet
has apples/config.yaml '^ *"?0"?: "?blue, red, light green"?$'
run 0 data apples.yaml --count 3
has out 'inputs: 1 1$'
has out 'inputs: 0 1$'
has out 'inputs: 2 0$'
printf 'colour,size\nred,3\nblue,3\nlight green,NA\nlight green,\n' >given.csv
run 0 predict apples given.csv
same "texts of the inputs are those of the training" "$(cut -d ' ' -f 1 out | tr '\n' ' ')" "1 0 1 1 "
network='n = input(1); c = input(1, name=colour) + embedding(3, 2) + flatten; concatenate(n, c) + dense(8, tanh) + dense(2)'
run 0 train apples.yaml --folder kinds --quiet "network=$network + softmax_cross_entropy" \
    'data.training.fields={inputs: 1, colour: 0, targets: 2}'
run 0 predict kinds --data training --count 3
same "a network of two fields predicts for data" "$(cut -d ' ' -f 1 out | tr '\n' ' ')" "1 0 1 "
run 0 predict kinds --data training
same "all examples of it" "$(wc -l <out)" 24
run 1 predict kinds given.csv
has err 'given\.csv: a file has one input, but the network has 2; FILE\.npz with an array for each, called as the inputs are, or --data'
run 1 serve kinds
has err 'a network with one input was expected; this one has 2'
printf 'green,3\n' >given.csv
run 1 predict apples given.csv
has err "line 1, column 0 \(from 0\): expected one of blue, red, light green, got 'green'"
run 1 train apples.yaml --folder unmapped 'data.training.texts={0: blue}'
has err '"red" is none of the 1 texts that are mapped \(keys for such a table: skip_rows, classes, class_names, texts'
run 2 train apples.yaml 'data.training.texts={colour: blue}'
has err "data.training.texts: expected columns from 0, such as 0-3 or 4, got 'colour'"
run 2 train apples.yaml 'data.training.texts={0: [blue, [red]]}'
has err 'data.training.texts.0: expected a list of texts, got a list'
run 2 train apples.yaml 'data.training.texts={0: "blue,,red"}'
has err "expected texts with a comma between them, got 'blue,,red'"
sed 's/csv: apples.csv, skip_rows: 1, /dataset: iris, /' apples.yaml >iris-texts.yaml
run 2 train iris-texts.yaml
has err 'data.training.texts: are for csv'
run 0 inspect run --graph --program
has out '^  1-dense.weights +64  float32  \(4, 16\)$'
has out '^  all +131  524 bytes$'
has out '^memory of a training step of 10 examples$'
has out '^%0 = input '
printf 'network: "input(8) + 6 * dense(64, tanh) + dense(1) + mean_squared"\nmemory: 0.6\n' >deep.yaml
run 0 inspect deep.yaml --batch 2000
has out '^  [0-9]+ of them are computed again; else the peak is [0-9.]+ MB$'
printf 'network: input(1) + dense(1) + mean_squared\n' >tiny.yaml
run 0 inspect tiny.yaml --batch 1
has out '^  1 thread: under 0.1 us a step, estimated from its shapes'
run 0 inspect "$examples/digits.yaml" --batch 5
has out '^memory of a training step of 5 examples$'
run 0 inspect "$examples/iris.yaml" 'network=input(4) + dense(5, tanh) + dense(3) + softmax_cross_entropy' data.batch=7 precision=float64
has out '^  1-dense.weights +20  float64  \(4, 5\)$'
has out '^memory of a training step of 7 examples$'
run 2 inspect "$examples/iris.yaml" data.batch=7 data.batch=8
has err "^sigma inspect: data.batch is given twice: 'data.batch=7' and 'data.batch=8'"
run 2 inspect "$examples/iris.yaml" data.batsh=7
has err "^sigma inspect: argument 'data.batsh=7': data.batsh: unknown key"
run 2 inspect "$examples/iris.yaml" seven
has err "^sigma inspect: argument 'seven': expected KEY=VALUE"
run 2 inspect run data.batch=7
has err "^sigma inspect: 'data.batch=7': KEY=VALUE is for a configuration, run/config.yaml data.batch=7;"
run 2 inspect run/checkpoint.safetensors data.batch=7
has err "^sigma inspect: 'data.batch=7': KEY=VALUE is for a configuration, FILE.yaml, and not for 'run/checkpoint"
run 2 inspect run other
has err '^sigma inspect: expected one checkpoint, folder or file, got 2'
run 2 inspect
has err '^sigma inspect: expected one checkpoint, folder or file, got 0'
cp table.csv table.txt
run 2 data table.txt
has err 'table.txt is a file: text:table.txt shows'
run 0 data table.csv
has out '^    0  a       number '
run 0 data digits --count 1
has out '^  1,500 examples$'
has out '^    classes 0: [0-9]+, 1: '
same "a picture of 8 lines" "$(grep -c '^      |.*|$' out)" 8
run 0 data "$examples/iris.yaml"
has out '^training$'
has out '^  120 examples$'
run 2 data iriss
printf '%s\n' 'network: input(8, 8) + dense(10) + softmax_cross_entropy' \
    'data: {training: digits, augment: shift(1) + mixup}' >augmented.yaml
run 0 data augmented.yaml --count 1
has out '^training, augmented: shift\(1\) \+ mixup$'
same "the picture twice, 8 lines each" "$(grep -c '^      |.*|$' out)" 16
run 0 train augmented.yaml epochs=2 --folder augmented
run 0 train augmented.yaml epochs=1 --folder augmented-part --quiet
run 0 train augmented.yaml epochs=2 --folder augmented-part --resume --quiet data.prefetch_threads=3
cmp augmented/checkpoint.safetensors augmented-part/checkpoint.safetensors
verdict "a resumed run sees the same images" $?
run 2 train augmented.yaml data.training.augment='shift(1)'
has err "data\.training\.augment: unknown key here; 'augment' belongs beside 'data\.training'"
printf '%s\n' 'data: {training: {dataset: digits, augment: shift(1)}}' >misplaced.yaml
run 2 train misplaced.yaml
has err "misplaced\.yaml:1:.*: unknown key here; 'augment' belongs beside 'data\.training'"
run 2 train augmented.yaml data.augment='shft(1)'
has err "data.augment: augment: column 1: unknown augmentation 'shft' \(did you mean 'shift'"
run 1 train augmented.yaml data.augment=flip data.training=iris 'network=input(4) + dense(3) + softmax_cross_entropy' \
    --folder no-pictures
has err 'flip wants pictures'
run 0 info
has out '^  cpu$'
has out '^  iris +here$'

# --- regression: other costs, files of the user's own ---
printf '%s\n' x,y 0,1 1,3 2,5 3,7 4,9 5,11 >line.csv
cat >line.yaml <<'END'
network: input(1) + dense(1) + mean_squared
data:
  training: {csv: line.csv, skip_rows: 1, fields: {inputs: 0, targets: 1}}
  test: {csv: line.csv, skip_rows: 1, fields: {inputs: 0, targets: 1}}
  batch: 6
optimiser: {type: momentum, learning_rate: 0.02}
epochs: 400
END
run 0 train line.yaml --folder line --quiet
has out '^test: loss 0.000[0-9] \(6 examples\)$'
run 0 train line.yaml --folder normed --quiet epochs=1 'network=input(1) + batch_norm + dense(1) + mean_squared'
printf '10\n' | "$sigma" predict line - >out 2>err
has out '^(21|20\.9[0-9]*|21\.0[0-9]*)$'

# --- what is no ordinary file ---
# Nobody writes to the pipe: whoever opened it would wait for ever.
mkfifo pipe
for words in 'eval pipe' 'inspect pipe' 'info pipe' 'serve pipe' 'train pipe' 'tokenize pipe --output t' 'predict pipe line.csv' \
    'predict line pipe' 'train line.yaml --folder piped data.training.csv=pipe'; do
    # shellcheck disable=SC2086 # the words of a command
    timeout 20 "$sigma" $words >out 2>err </dev/null
    ended=$?
    same "sigma $words ends by itself" "$((ended == 1 || ended == 2))" 1
    has err "'?([^ ]*/)?pipe'?: it is a named pipe, expected a file"
done
# What the shell holds open for the command has somebody at its other end.
run 0 predict line <(printf '10\n')
has out '^(21|20\.9[0-9]*|21\.0[0-9]*)$'
printf '10\n' | "$sigma" predict line /dev/stdin >out 2>err
has out '^(21|20\.9[0-9]*|21\.0[0-9]*)$'
run 1 predict line /dev/zero
has err "cannot read '/dev/zero': it is a device, expected a file"

# --- arrays ---
# Which of several arrays is meant, their order in the file does not say.
run 0 export --weights two.npz line
printf 'network: input(1) + dense(1) + mean_squared\ndata: {training: {inputs: two.npz, targets: two.npz}}\n' >npz.yaml
run 1 train npz.yaml epochs=1 --folder npz
has err 'two.npz: expected one file in the archive, it has [0-9]: 1-dense.*, 1-dense.*; name the one that is meant'
run 0 train npz.yaml epochs=1 --folder npz data.training.inputs=two.npz:1-dense.weights data.training.targets=two.npz:1-dense.weights
run 1 train npz.yaml epochs=1 --folder npz-no data.training.inputs=two.npz:other
has err 'no file other.npy; it has: 1-dense'

# --- rules ---
run 0 train "$examples/iris.yaml" epochs=500 --folder ruled \
    'rules=["after 2 epochs save \"two\"", "if training.loss < 0.3 then stop \"good enough\""]'
has out '^stopped by .*good enough$'
same "a checkpoint of a rule" "$(ls ruled/two.safetensors)" ruled/two.safetensors
run 2 train "$examples/iris.yaml" --folder unruled 'rules=["if training.loss stals 5 epochs then stop"]'
has err "column 18.*did you mean 'stalls'"

# --- hooks ---
run 0 train "$examples/iris.yaml" epochs=500 --folder hooked \
    'hooks=["at epoch 2 save(\"epoch-{epoch}\")", "early_stopper(training.loss, 2, maximum) if epoch > 3"]'
has out '^stopped by early_stopper: training.loss has had no new maximum for 2 checks$'
same "a checkpoint of a hook" "$(ls hooked/epoch-2.safetensors)" hooked/epoch-2.safetensors
run 2 train "$examples/iris.yaml" --folder unhooked 'hooks=["early_stoper(training.loss)"]'
has err "column 1.*did you mean 'early_stopper'"
run 0 info "$examples/iris.yaml"
has out '^  1 thread: about [0-9.]+ us a step, estimated from its shapes'
run 0 info "$examples/iris.yaml" data.batch=7
has out '^training step of 7 examples on cpu'
run 2 info "$examples/iris.yaml" data.batch=7 data.batch=8
run 2 info "$examples/iris.yaml" two
run 2 info hooked data.batch=7
has err "^sigma info: 'data.batch=7': KEY=VALUE is for a configuration, hooked/config.yaml data.batch=7"
run 2 info one two
has err "expected one name, checkpoint, folder or file, got 2"
run 0 info --augmentations
has out '^augmentation shift: moves the picture by whole pixels$'
run 0 info --hooks
has out '^\[local\] \[every epoch\] early_stopper\('

# --- other monitors ---

run 0 train "$examples/iris.yaml" epochs=2 --folder told --json-lines told.jsonl --tensorboard
[ "$(grep -o '^{"event":"[a-z]*"' told.jsonl | cut -d'"' -f4 | tr '\n' ' ')" = 'start epoch epoch stop ' ]
verdict 'lines of JSON: one for each event' $? told.jsonl
[ "$(head -c 12 told/tensorboard/*/events.out.tfevents.* | od -An -tx1 | tr -d ' ')" = 1800000000000000a37f4b22 ]
verdict 'files for TensorBoard are in the folder of the run' $?
run 1 train "$examples/iris.yaml" epochs=1 --folder untold --json-lines no/where
has err 'cannot write lines of JSON to no/where: No such file or directory'

# --- messages ---
has ruled/log.txt '^[0-9-]{10} [0-9:.]{12} \[[0-9]+\] info iris: training begins after epoch 0, iteration 0: seed [0-9]+, cpu'
has ruled/log.txt ' info iris: training ended after epoch .*stopped by .*good enough$'
same "warnings only, unless asked" "$(cat err | grep -c info)" 0
run 0 train "$examples/iris.yaml" epochs=1 --folder logged --quiet --log-level info --log-file all.log
has err '^[0-9:.]{12} info iris: training begins'
has all.log ' info iris: running 1 trainer with seed [0-9]+$'
SIGMA_LOG=info SIGMA_LOG_FILE=variable.log "$sigma" train "$examples/iris.yaml" epochs=1 --folder logged2 >out 2>err
has err ' info iris: training ended'
has variable.log ' info iris: training ended'
SIGMA_LOG=info run 0 train "$examples/iris.yaml" epochs=1 --folder logged3 --log-level=off
same "an option counts more than the variable" "$(cat err)" ""
SIGMA_LOG=loud SIGMA_LOG_FILE=/nowhere/x run 0 train "$examples/iris.yaml" epochs=1 --folder logged4
has err "warning log: SIGMA_LOG is 'loud'; expected debug"
has err "warning log: SIGMA_LOG_FILE: '/nowhere/x' cannot be opened"
run 2 info --log-level loud
has err "^sigma info: --log-level: unknown log level 'loud'"
run 1 info --log-file /nowhere/x
has err "'/nowhere/x' cannot be opened"

# --- interruption ---
"$sigma" train "$examples/digits.yaml" epochs=1000000 --folder long >out 2>err </dev/null &
process=$!
for _ in $(seq 100); do
    [ -s long/metrics.jsonl ] && break
    sleep 0.1
done
kill -INT "$process"
wait "$process"
code 130 $? "an interrupted training"
process=
has out 'go on with: sigma train long --resume$'
run 0 inspect long
epochs=$(wc -l <long/metrics.jsonl)
run 0 train long "epochs=$((epochs + 1))" --resume --quiet
epochs=$(wc -l <long/metrics.jsonl)

# A closed terminal, and what a scheduler sends, keep a checkpoint too; but nohup means it.
begin_long() # FOLDER ARGUMENTS...: a training that has done an epoch, in the background
{
    local name=$1
    shift
    "$@" "$sigma" train "$examples/digits.yaml" epochs=1000000 --folder "$name" >out 2>err </dev/null &
    process=$!
    for _ in $(seq 200); do
        [ -s "$name/metrics.jsonl" ] && break
        sleep 0.05
    done
}
for signal in HUP USR1; do
    begin_long "ended-$signal" env
    kill -"$signal" "$process"
    wait "$process"
    code 130 $? "a training that got SIG$signal"
    process=
    has out "go on with: sigma train ended-$signal --resume$"
    run 0 train "ended-$signal" "epochs=$(($(wc -l <"ended-$signal/metrics.jsonl") + 1))" --resume --quiet
done
begin_long unended nohup
kill -HUP "$process"
before=$(wc -l <unended/metrics.jsonl)
for _ in $(seq 200); do
    [ "$(wc -l <unended/metrics.jsonl)" -gt "$((before + 1))" ] && break
    sleep 0.05
done
[ "$(wc -l <unended/metrics.jsonl)" -gt "$((before + 1))" ]
verdict "nohup: training goes on" $?
kill -TERM "$process"
wait "$process"
code 130 $? "a training with nohup"
process=
# One that waits to begin trains nothing when it is told to end.
"$sigma" train "$examples/iris.yaml" --paused --folder waiting >out 2>err </dev/null &
process=$!
wait_for '^state +paused' waiting
kill -TERM "$process"
wait "$process"
code 130 $? "SIGTERM before the first iteration"
process=
run 0 train waiting --resume iterations=1
[ "$(grep -c 'training ended after epoch 0, iteration 0,' waiting/log.txt)" -eq 1 ]
verdict "SIGTERM before the first iteration trains none" $? waiting/log.txt

# Whoever reads the output may go: nothing is lost by that but the output.
"$sigma" train "$examples/iris.yaml" epochs=3 --folder unread 2>err | :
code 1 "${PIPESTATUS[0]}" "a training whose output nobody reads"
has err '^sigma train: the output could not be written$'
same "which is through all the same" "$(wc -l <unread/metrics.jsonl)" 3
run 0 eval unread

# --- a run that ended before its first checkpoint ---
cp -r long lost
rm lost/checkpoint.safetensors
cp lost/metrics.jsonl kept.jsonl
run 0 train lost epochs=1 --resume
has out '^lost has no checkpoint to resume from: training begins anew$'
has err "ended before its first: training begins anew, and what 'lost/metrics.jsonl' had is kept in 'lost/metrics-before-1.jsonl'"
same "metrics of a run without a checkpoint are kept" "$(cat lost/metrics-before-1.jsonl)" "$(cat kept.jsonl)"
same "and the new ones are their own" "$(wc -l <lost/metrics.jsonl)" 1

# --- damage ---
cp -r long damaged
for at in 8 40 400 -1; do # of the header, and the last byte of the last tensor
    cp long/checkpoint.safetensors damaged/checkpoint.safetensors
    [ "$at" -lt 0 ] && at=$(($(stat -c %s damaged/checkpoint.safetensors) - 1))
    byte=$(od -An -tu1 -j "$at" -N 1 damaged/checkpoint.safetensors)
    # shellcheck disable=SC2059 # the byte is written as octal digits
    printf "\\$(printf %03o $((byte ^ 1)))" |
        dd of=damaged/checkpoint.safetensors bs=1 seek="$at" conv=notrunc status=none
    cp damaged/metrics.jsonl kept.jsonl
    run 1 train damaged "epochs=$((epochs + 2))" --resume --quiet
    has err "damaged/checkpoint.safetensors'"
    same "a resume that fails keeps the metrics" "$(cat damaged/metrics.jsonl)" "$(cat kept.jsonl)"
    run 1 eval damaged
    run 1 predict damaged --data training
done

# Before there is anything to keep, it ends at once: here it waits for its data.
mkfifo slow
exec 7<>slow
cat >slow.yaml <<END
network: input(2) + dense(2) + softmax_cross_entropy
data:
  training: {csv: /dev/fd/7, fields: {inputs: 0-1, targets: 2}}
optimiser: {type: adam}
END
for signal in INT TERM; do
    env --default-signal=INT "$sigma" train slow.yaml --folder never >out 2>err </dev/null &
    process=$!
    for _ in $(seq 100); do
        # It is no shell any more, and SIGTERM, number 15, is caught.
        grep -q '^sigma$' "/proc/$process/comm" && grep -qE '^SigCgt:.*[4-7c-f]...$' "/proc/$process/status" && break
        sleep 0.05
    done
    kill -"$signal" "$process"
    wait "$process"
    code 130 $? "SIG$signal while data are read"
    process=
    has err '^sigma train: interrupted before training began: nothing was saved$'
done
exec 7<&-
run 2 train never --resume
has err "there is no run 'never' to resume: one that never began has no folder; begin it with its file"

finish
