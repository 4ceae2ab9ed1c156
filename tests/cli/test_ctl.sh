#!/bin/bash
# sigma ctl: a training in the background, steered from here.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

# ctl CODE ARGUMENTS...
ctl()
{
    local wanted=$1
    shift
    run "$wanted" ctl "$@"
}

# --- usage, and nobody there ---
ctl 2
has err 'expected the folder of a run and a command, got 0 words'
ctl 2 run
ctl 2 run puase
has err "unknown command 'puase' \(did you mean 'pause'\?\)"
ctl 2 run set optimiser.learning_rate
has err 'set takes 2 words, got 1'
ctl 2 run pause now
ctl 1 missing status
has err "^sigma ctl: there is no folder 'missing'"
mkdir empty
ctl 1 empty status
has err "^sigma ctl: nothing runs in 'empty' now$"
mkdir -p shelf/old shelf/new shelf/other
touch -d '2 hours ago' shelf/old/journal.jsonl
touch shelf/new/journal.jsonl
ctl 1 shelf status
has err "^sigma ctl: 'shelf' is a folder of runs: name one of them, such as the newest, shelf/new$"

# --- a training ---
"$sigma" train "$examples/digits.yaml" epochs=1000000 'approve=[reset]' --folder run >train.out 2>train.err </dev/null &
process=$!
for _ in $(seq 200); do
    "$sigma" ctl run status >out 2>err && break
    sleep 0.05
done
ctl 0 run status
has out '^state +running$'
has out '^epochs +1000000$'
[ "$(stat -c %a run/control.sock)" = 600 ]
verdict "the mode of the socket" $?

ctl 0 run pause
wait_for '^state +paused$'
before=$(awk '$1 == "iteration" { print $2 }' out)
ctl 0 run status --json
has out '^\{"ok":true,"trainer":"[^"]+","state":"paused","epoch":[0-9]+,"iteration":'"$before"','
ctl 0 run set optimiser.learning_rate 0.0125
has out '^optimiser.learning_rate = 0.0125$'
has run/journal.jsonl '"iteration":'"$before"',"who":"ctl","what":"optimiser.learning_rate","old":0.[0-9]+,"new":0.0125,"checksum":'
ctl 0 run get 'optimiser.*learning_rate'
has out '^optimiser.learning_rate = 0.0125$'
has out '^optimiser.current_learning_rate = '
ctl 0 run branch slow '{"optimiser.learning_rate": 0.001, "optimiser.beta1": 0.5}'
has out '^trainer +slow$'
has out '^checkpoint +slow$'
ctl 0 run-slow get optimiser.learning_rate optimiser.beta1
has out '^optimiser.learning_rate = 0.001$'
has out '^optimiser.beta1 = 0.5$'
ctl 0 run-slow stop
ctl 0 run branch waits --paused
for _ in $(seq 100); do
    "$sigma" ctl run-waits status >out 2>err && break
    sleep 0.05
done
has out '^state +paused$'
ctl 0 run-waits stop
ctl 1 run pause --paused
has err "pause has no field 'paused'"
ctl 1 run branch slow
has err "there is a checkpoint 'slow' already"
ctl 1 run branch other 'optimiser.learning_rate=1'
has err "'set' must be an object of identifiers and values, such as"
ctl 1 run save slow replace --role steer
has err "replacing a checkpoint needs the role 'admin', this is 'steer'"
ctl 1 run set optimiser.learning_rate fast
has err "^sigma ctl: optimiser.learning_rate: expected a number, got 'fast'"
ctl 1 run set optimiser.learning_rate -1e-3
has err 'expected a number of at least 0, got -0.001$'
ctl 2 run set optimiser.learning_rate -x
has err "unknown option '-x'"
ctl 1 run set epoch 7
has err '^sigma ctl: .*epoch'
ctl 0 run list optimiser
has out '^optimiser.learning_rate +number +set +size of a step, before the schedule \(0 to 1e\+30\)$'
has out '^optimiser.schedule.kind +text +set .*: constant, step, exponential, cosine, one_cycle, plateau$'
ctl 0 run set optimiser.schedule.kind cosine
has out "^optimiser.schedule.kind = 'cosine'\$"
ctl 1 run set optimiser.schedule.kind cosin
has err "optimiser.schedule.kind: expected one of 'constant', .* got 'cosin'; did you mean 'cosine'"
ctl 0 run set iterator.shuffle false
has out '^iterator.shuffle = false$'
ctl 1 run set iterator.shuffle perhaps
has err 'iterator.shuffle: expected a boolean'
ctl 0 run set iterator.minibatch_size 50
ctl 1 run set iterator.minibatch_size 0
has err 'iterator.minibatch_size: expected an integer from 1 to 10000000 examples, got 0'
ctl 0 run set optimiser.frozen '1-dense.biases'
has out "^optimiser.frozen = '1-dense.biases'\$"
ctl 0 run set optimiser.frozen ''
ctl 0 run freeze '*.weights'
has out "^optimiser.frozen = '\*.weights'\$"
ctl 0 run unfreeze '1-dense.*' --dry-run
has out '^optimiser.frozen "\*.weights" -> "\*.weights, !1-dense.\*", from the next iteration on$'
ctl 0 run unfreeze '1-dense.*'
has out "^optimiser.frozen = '\*.weights, !1-dense.\*'\$"
has run/journal.jsonl '"who":"ctl","what":"optimiser.frozen","old":"\*.weights","new":"\*.weights, !1-dense.\*"'
ctl 0 run undo
ctl 0 run undo
ctl 0 run get optimiser.frozen
has out "^optimiser.frozen = ''\$"
ctl 1 run freeze '1-dens.*'
has err "^sigma ctl: freezing '1-dens.\*' matches no parameter of the network \(did you mean '1-dense.\*'\?\)"
ctl 2 run freeze
has err 'freeze takes 1 word, got 0'
ctl 1 run set optimiser.frozen '*.wieghts'
has err "optimiser.frozen: freezing '.*' matches no parameter"
ctl 0 run set optimiser.beta2 0.5
ctl 0 run undo
has out '^undone +[0-9]+$'
ctl 0 run get optimiser.beta1 optimiser.beta2 optimiser.epsilon
same "several values, in their order" "$(cut -d ' ' -f 1 out | tr '\n' ' ')" \
    "optimiser.beta1 optimiser.beta2 optimiser.epsilon "
ctl 1 run get optimiser.beta1 optimiser.beta3 optimiser.epsilon
has out '^optimiser.beta1 = '
has err 'beta3'
same "nothing behind the one that is not there" "$(grep -c epsilon out)" 0
ctl 2 run get optimiser.beta1 optimiser.beta2 beta.npy
has err 'get takes at most 2 words, got 3'
ctl 0 run get optimiser.beta2
has out '^optimiser.beta2 = 0.999$'
ctl 0 run set optimiser.beta2 0.25 --dry-run
has out '^optimiser.beta2 0.999 -> 0.25, from the next iteration on$'
ctl 0 run get optimiser.beta2
has out '^optimiser.beta2 = 0.999$'
ctl 0 run set optimiser.beta2 0.25 --by anna --reason 'less memory'
has run/journal.jsonl '"who":"ctl:anna","reason":"less memory","what":"optimiser.beta2","old":0.999,"new":0.25,'
ctl 0 run changes
has out 'optimiser.beta2 +0.999 -> 0.25, by ctl:anna: less memory$'
ctl 0 run undo
ctl 1 run set optimiser.beta2 0.25 --role look
has err "^sigma ctl: set needs the role 'steer', this is 'look'"
ctl 0 run reset --role steer --reason 'all wrong'
has out '^pending +1$'
has out "^expires +[0-9]{2}:[0-9]{2}:[0-9]{2}, if nobody approves it before: 'sigma ctl FOLDER pending' tells$"
ctl 0 run deny 1 --reason 'not yet'
ctl 0 run pending
has out '^ +1  denied   ctl: reset: all wrong, by ctl: not yet$'
ctl 0 run describe optimiser.beta2
has out '^role +admin$'
has out '^set +steer +changes values'
has out '^optimiser.beta2 +number +set '
ctl 0 run --help
has out '^  set IDENTIFIER VALUE.FILE.npy$'
same "the width of the help" "$(awk 'length > 110' out)" ""
ctl 1 run undo 1000000
has err "has no change 1000000; the newest is "
ctl 0 run changes
has out '^ +[0-9]+ +epoch [0-9]+, iteration [0-9]+ +optimiser.beta2 +0.5 -> 0.999, by ctl$'
ctl 1 run set network.layers.1-dense.size 3
has err 'network.layers.1-dense.size is read-only'
ctl 0 run set 'network.layers.*<cost>.importance' 2
ctl 1 run get optimiser.gradients.1-dense.weights
has err 'gradients are kept from now on'
ctl 0 run get 'optimiser.*.*'
ctl 0 run step 3
wait_for "^iteration +$((before + 3))\$"
wait_for '^state +paused$'
ctl 0 run save here
has out '^file +here.safetensors$'
"$sigma" inspect run/here.safetensors >out 2>err
verdict "the checkpoint that was saved" $?
ctl 1 run save ../here
ctl 2 run get
has err 'get takes at least 1 word, got 0'
# --- a process that is stopped ---
kill -STOP $process
began=$SECONDS
ctl 1 run status
has err "^sigma ctl: process $process, which trains in 'run', is stopped and does not answer; 'kill -CONT $process' lets it go on"
ctl 1 run set optimiser.learning_rate 0.75
has err 'is stopped and does not answer; .* The command is withdrawn'
asks=() # more than its socket lets wait
for _ in $(seq 20); do
    "$sigma" ctl run status >/dev/null 2>&1 &
    asks+=("$!")
done
wait "${asks[@]}"
ctl 1 run status
has err "^sigma ctl: process $process, which trains in 'run', is stopped and does not answer"
[ $((SECONDS - began)) -lt 20 ]
verdict "all are told in time" $?
kill -CONT $process
ctl 0 run get optimiser.learning_rate
has out '^optimiser.learning_rate = 0.0125$'
has run/log.txt 'ctl: set optimiser.learning_rate 0.75 was not done: who asked has left$'
ctl 2 run status --timeout 0
ctl 0 run status --timeout 30

# --- tensors ---
ctl 0 run get network.layers.3-dense.biases biases.npy
[ -s biases.npy ]
verdict "a tensor in a file" $?
ctl 0 run set network.layers.3-dense.biases '[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]'
has out '^network.layers.3-dense.biases = '
has run/journal.jsonl '"who":"ctl","what":"network.layers.3-dense.biases","old":\{"shape":\[[0-9]+\],"norm":.*"new":.*9'
ctl 0 run get network.layers.3-dense.biases changed.npy
[ "$(cmp -s biases.npy changed.npy; echo $?)" = 1 ]
verdict "the tensor has changed" $?
ctl 0 run set network.layers.3-dense.biases biases.npy
ctl 0 run get network.layers.3-dense.biases again.npy
cmp biases.npy again.npy
verdict "the tensor of the file" $?
ctl 1 run set network.layers.3-dense.weights biases.npy
has err '^sigma ctl: network.layers.3-dense.weights: .*biases.npy: expected values of shape \(256, 10\), got \(10,\)$'
ctl 1 run set network.layers.3-dense.biases '[0, 1]'
has err 'expected values of shape \(10,\), got \(2,\)'
ctl 1 run set network.layers.3-dense.biases zero
has err "expected a list such as \[0, 1, 2\], or a .npy file, got 'zero'"
ctl 1 run set network.layers.3-dense.biases missing.npy
has err 'missing.npy'
ctl 1 run set optimiser.learning_rate biases.npy
has err 'a file is for tensors'
ctl 1 run get optimiser.learning_rate rate.npy
has err 'a file takes one tensor'
ctl 1 run get network.layers.3-dense.biases missing/biases.npy
has err 'missing/biases.npy'

# --- hooks that come and go ---
ctl 0 run attach 'every 2 iterations accumulator(training.loss, mine) if epoch > 0'
has out '^name +accumulator#1$'
ctl 1 run attach 'every 2 iterations accumulator(training.loss, mine) if epoch > 0'
has err "an equal hook is attached already, as 'accumulator#1'"
ctl 1 run attach 'acumulator(training.loss)'
has err "^sigma ctl: column 1: .*did you mean 'accumulator'\?"
ctl 0 run attach 'early_stopper(training.loss, 100000)'
ctl 0 run attach 'early_stopper(training.loss, 200000)'
ctl 0 run step 4
wait_for '^iteration +'$((before + 7))'$'
ctl 0 run hooks
has out '^accumulator#1 +2 runs +[0-9.]+ [nmu]?s +every 2 iterations if epoch > 0: every 2 iterations accumulator'
has out '^early_stopper#2 +0 runs .*every epoch if training.loss stalls 200000 epochs'
ctl 1 run detach early_stopper
has err 'there are early_stopper#1, early_stopper#2$'
ctl 0 run detach early_stopper#2
ctl 0 run detach early_stopper
ctl 1 run detach early_stopper
has err "no hook is named 'early_stopper'"
ctl 0 run attach 'every iteration if external "go on" then set optimiser.clip_norm = 7'
ctl 1 run press go
has err '^sigma ctl: no rule waits for external "go": there are "go on"$'
ctl 2 run press
has err 'press takes 1 word, got 0'
ctl 0 run press 'go on'
ctl 0 run step 1
wait_for '^iteration +'$((before + 8))'$'
ctl 0 run get optimiser.clip_norm
has out '^optimiser.clip_norm = 7$'
has run/journal.jsonl '"event":"press",.*"iteration":'$((before + 7))',"who":"ctl","name":"go on"'
has run/log.txt 'ctl: press go on, after epoch [0-9]+, iteration '$((before + 7))
ctl 0 run changes
has out 'button go on .*null -> "pressed", by ctl'
ctl 0 run detach rule
has run/journal.jsonl '"what":"hook early_stopper#1","old":"early_stopper\(training.loss, 100000\)","new":"none"'

# --- back ---
ctl 0 run restore here
ctl 0 run status
has out "^iteration +$((before + 3))\$"
has out '^state +paused$'
has run/journal.jsonl '"branch":0,.*"iteration":'$((before + 8))',"who":"ctl","name":"here",.*"begun":1,.*"left_checkpoint":"before-branch-1"'
"$sigma" inspect run/before-branch-1.safetensors >out 2>err
verdict "the checkpoint of what was left" $?
ctl 1 run restore missing
has err "has no checkpoint 'missing'"
ctl 1 run restore ../here
head -c 1000 run/here.safetensors >run/cut.safetensors
ctl 1 run restore cut
has err 'cut.safetensors'
ctl 0 run reset
ctl 0 run status
has out '^iteration +0$'
has out '^state +paused$'
ctl 0 run restore before-branch-2
ctl 0 run status
has out "^iteration +$((before + 3))\$"
[ "$(grep -c '"begun":' run/journal.jsonl)" = 3 ]
verdict "lines of branches" $?
ctl 0 run hooks
has out '^accumulator#1 '
rm -f run/full.safetensors && mkdir run/full.safetensors
ctl 1 run save full
has err 'full.safetensors'
rmdir run/full.safetensors

ctl 0 run resume
for _ in $(seq 200); do
    "$sigma" ctl run status >out 2>err
    [ "$(awk '$1 == "iteration" { print $2 }' out)" -gt "$((before + 3))" ] && break
    sleep 0.05
done
has out '^state +running$'
ctl 0 run stop 'seen enough'
wait "$process"
code=$?
verdict "the training ended with $code, expected 0" "$code"
process=
has train.out 'stopped by ctl: seen enough$'
[ ! -e run/control.sock ]
verdict "the socket is gone" $?
ctl 1 run status
has err "^sigma ctl: nothing runs in 'run' now; 'sigma train run --resume' goes on with that run"

# --- what a training that was killed leaves is no run, and in nobody's way ---
"$sigma" train "$examples/iris.yaml" epochs=1000000 --folder killed --quiet >train.out 2>train.err </dev/null &
process=$!
for _ in $(seq 200); do
    "$sigma" ctl killed status >out 2>err && break
    sleep 0.05
done
kill -KILL "$process"
wait "$process" 2>/dev/null
process=
[ -S killed/control.sock ]
verdict "a dead socket" $?
ctl 1 killed status
has err "nothing runs in 'killed' now"
"$sigma" train killed epochs=1 --resume --quiet >out 2>err </dev/null
verdict "a resume over a dead socket" $?
! grep -v 'the folder has no checkpoint' err | grep -q . && [ ! -e killed/control.sock ]
verdict "without a warning of it" $?

finish
