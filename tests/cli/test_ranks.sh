#!/bin/bash
# sigma train under mpirun: rank 0 has the folder and hears the commands, which act on all ranks at the same iteration.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

if ! command -v mpirun >/dev/null; then
    echo "test_ranks: skipped: there is no mpirun here (Debian: openmpi-bin)"
    echo "0 passed, 0 failed, 1 skipped"
    exit 77
fi
if [ ! -e "$SIGMA_BUILD_DIR/plugins/libsigma-mpi.so" ]; then
    echo "test_ranks: skipped: the plug-in mpi was not built (Debian: libopenmpi-dev)"
    echo "0 passed, 0 failed, 1 skipped"
    exit 77
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS=detect_leaks=0

# ranks COUNT ARGUMENTS...: in the background, as it becomes mpirun
ranks()
{
    local count=$1
    shift
    exec mpirun -n "$count" --oversubscribe --bind-to none "$sigma" train "$examples/digits.yaml" threads=1 operator=mpi "$@"
}

# wait_for PATTERN: the status comes to have such a line.
wait_for()
{
    for _ in $(seq 200); do
        "$sigma" ctl run status >out 2>err
        grep -qE -- "$1" out && break
        sleep 0.05
    done
    has out "$1"
}

# Each iteration compares the states of all ranks: one that hears of a change an iteration later ends the run.
ranks 3 epochs=1000000 operator.check_every=1 operator.timeout=10 --folder run --quiet >train.out 2>train.err </dev/null &
process=$!
for _ in $(seq 200); do
    "$sigma" ctl run status >out 2>err && break
    sleep 0.05
done
wait_for '^state +running$'
run 0 ctl run set optimiser.learning_rate 0.0125
has out '^optimiser.learning_rate = 0.0125$'
run 0 ctl run pause
wait_for '^state +paused$'
before=$(awk '$1 == "iteration" { print $2 }' out)
run 0 ctl run set optimiser.learning_rate 0.002
run 0 ctl run set 'network.layers.3-dense.biases' '[0, 0, 0, 0, 0.5, 0, 0, 0, 0, 0]'
run 0 ctl run attach 'every 2 iterations accumulator(training.loss, mine)'
run 0 ctl run step 3
sleep 0.3
wait_for '^state +paused$'
has out "^iteration +$((before + 3))\$"
run 0 ctl run get optimiser.learning_rate
run 0 ctl run get 'operator.ranks.*.*'
for rank in 0 1 2; do
    has out "^operator.ranks.$rank.rate = [0-9.]*[1-9]"
    has out "^operator.ranks.$rank.computing = [0-9.]*[1-9]"
    has out "^operator.ranks.$rank.waiting = [0-9.e-]*[1-9]"
    has out "^operator.ranks.$rank.traffic = [1-9]"
done
run 0 ctl run save mine
run 0 ctl run resume
wait_for '^state +running$'
run 0 ctl run undo
sleep 0.2
run 0 ctl run restore mine
sleep 0.2
run 0 ctl run reset
sleep 0.2
wait_for '^state +running$'
run 0 ctl run stop enough
wait $process
verdict "the ranks end well" $?
[ ! -s train.err ]
verdict "nothing is wrong: $(head -c 300 train.err)" $?
[ "$(grep -c '^checkpoint: run/' train.out)" = 1 ]
verdict "one rank tells of the end" $?
has run/changes.jsonl '"what":"optimiser.learning_rate".*"new":0.002'

# --- one rank is interrupted: all stop at the same iteration, and a checkpoint is there ---
ranks 2 epochs=1000000 operator.check_every=1 --folder other --quiet >train.out 2>train.err </dev/null &
process=$!
for _ in $(seq 200); do
    "$sigma" ctl other status >out 2>err && grep -qE '^iteration +[1-9]' out && break
    sleep 0.05
done
kill -TERM "$(pgrep -P "$process" | tail -n 1)"
wait "$process"
[ $? -eq 130 ]
verdict "an interrupted job ends with 130" $? train.out train.err
process=
run 0 inspect other/checkpoint.safetensors
has train.out '^stopped; go on with: sigma train other --resume$'

finish
