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

# ranks COUNT ARGUMENTS...: in the background, as it becomes mpirun; each writes log.RANK
ranks()
{
    local count=$1
    shift
    # shellcheck disable=SC2016 # each rank has its own
    exec mpirun -n "$count" --oversubscribe --bind-to none bash -c \
        'SIGMA_LOG_FILE=log.${OMPI_COMM_WORLD_RANK:-$PMI_RANK} exec "$0" "$@"' \
        "$sigma" train "$examples/digits.yaml" threads=1 operator=mpi "$@"
}

# A line for each iteration, and where a pause was; without times and processes.
told()
{
    sed -nE 's/^[^]]*\] info digits: (optimiser.learning_rate = .*|paused after .*|training ended after [^,]*,[^,]*),?.*/\1/p' "log.$1"
}

# process_of RANK: as its log has it
process_of()
{
    sed -nE '1s/^[^[]*\[([0-9]+)\].*/\1/p' "log.$1"
}

# --- a launcher that does not speak with the processes' MPI ---
SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=3 run 1 train "$examples/digits.yaml" operator=mpi epochs=1 --folder alone
has err '^sigma train: process 1 on [^ ]+: .*srun has started 3 processes, but each of them is alone for '

# --- interrupted while ranks join: it says so, and the launcher ends the others ---
# Open MPI 4's mpirun ends all ranks, but then waits for itself without end, where a rank dies while the two shake hands.
# That is over once the rank looks for ways to send (mca_pml_*.so); from then on it waits for the others in MPI_Init. Other
# MPIs have no such files: there the signal comes after ten seconds.
# shellcheck disable=SC2016 # each rank has its own
mpirun -n 2 --oversubscribe --bind-to none bash -c \
    'rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; echo $$ >"joins.$rank"; [ "$rank" = 0 ] || sleep 60; exec "$0" "$@"' \
    "$sigma" train "$examples/digits.yaml" operator=mpi epochs=1 --folder never >train.out 2>train.err </dev/null &
process=$!
for _ in $(seq 200); do
    [ -s joins.0 ] && grep -q mca_pml_ "/proc/$(cat joins.0)/maps" && break
    sleep 0.05
done
kill -TERM "$(cat joins.0)"
wait "$process"
code 130 $? "ranks that were interrupted while they joined"
process=
has train.err '^sigma train: process 0 on [^ ]+: interrupted before training began: nothing was saved$'
ranks 2 epochs=1 --folder never --resume --quiet >train.out 2>train.err </dev/null &
wait $!
code 0 $? "resuming what never began"
has train.out '^never has no checkpoint to resume from: training begins anew$'

# --- each rank tells itself when a pause and values have come to it ---
for count in 2 4; do
    rm -f log.*
    ranks "$count" epochs=1000000 operator.timeout=20 --folder "run$count" --quiet \
        "hooks=['every 1 iteration value_reporter(optimiser.learning_rate)']" >train.out 2>train.err </dev/null &
    process=$!
    wait_for '^state +running$' "run$count"
    run 0 ctl "run$count" pause
    wait_for '^state +paused$' "run$count"
    before=$(awk '$1 == "iteration" { print $2 }' out)
    run 0 ctl "run$count" set optimiser.learning_rate 0.002
    run 0 ctl "run$count" step 3
    wait_for "^iteration +$((before + 3))\$" "run$count"
    wait_for '^state +paused$' "run$count"
    run 0 ctl "run$count" set optimiser.learning_rate 0.001
    run 0 ctl "run$count" stop enough # amid the pause
    wait $process
    code 0 $? "$count ranks that were stopped amid a pause"
    process=
    has log.0 "training begins .* $count ranks of 1 worker that share memory\$"
    told 0 >wanted
    for rank in $(seq $((count - 1))); do
        told "$rank" >had
        cmp wanted had >/dev/null
        verdict "rank $rank of $count has done other things than rank 0" $? wanted had
    done
    head -n "$before" wanted | sort -u >out
    same "learning rates before" "$(cat out)" "optimiser.learning_rate = 0.005"
    tail -n +$((before + 1)) wanted >out
    same "what came then" "$(sed -E 's/epoch [0-9]+/epoch/' out | tr '\n' ';')" "paused after epoch, iteration $before;$(
        )optimiser.learning_rate = 0.002;optimiser.learning_rate = 0.002;optimiser.learning_rate = 0.002;$(
        )paused after epoch, iteration $((before + 3));training ended after epoch, iteration $((before + 3));"
done

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
run 0 ctl run attach 'every iteration if external "go" then set optimiser.clip_norm = 5'
run 0 ctl run press go
run 0 ctl run step 3
sleep 0.3
wait_for '^state +paused$'
has out "^iteration +$((before + 3))\$"
run 0 ctl run get optimiser.clip_norm
has out '^optimiser.clip_norm = 5$' # pressed on all ranks: hooks that ask on one alone end the run
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
has run/journal.jsonl '"what":"optimiser.learning_rate".*"new":0.002'

# --- the optimiser state that another rank has ---
ranks 2 epochs=1000000 operator.sharded=true operator.timeout=20 --folder parts --quiet >train.out 2>train.err </dev/null &
process=$!
wait_for '^iteration +[1-9]' parts
run 0 ctl parts get 'optimiser.slots.*.*.biases'
[ "$(grep -cE '^optimiser.slots.(momentum|squared_gradient).[13]-dense.biases = ' out)" = 4 ]
verdict "the memory of all ranks is shown" $? out err
run 1 ctl parts set 'optimiser.slots.momentum.3-dense.biases' '[0, 0, 0, 0, 0, 0, 0, 0, 0, 0]'
has err "'optimiser.momentum.3-dense.biases' is in rank 1's part of the optimiser state"
run 0 ctl parts stop
wait "$process"
code 0 $? "ranks of whose memory one was shown"
process=

# Who asks a rank that hangs is told which it is, and so is who looks at what the run has said.
rm -f log.*
ranks 2 epochs=1000000 operator.sharded=true operator.timeout=5 --folder hung --quiet >train.out 2>train.err </dev/null &
process=$!
wait_for '^iteration +[1-9]' hung
run 0 ctl hung pause
wait_for '^state +paused$' hung
hung=$(process_of 1)
kill -STOP "$hung"
run 1 ctl hung get optimiser.slots.momentum.3-dense.biases
has err 'has waited for .* for 5 seconds .*there is no answer from rank 1 '
wait "$process"
code 1 $? "ranks of which one hung"
process=
kill -KILL "$hung" 2>/dev/null
has train.err 'process 0 .*there is no answer from rank 1 '

# --- one rank is interrupted: all stop at the same iteration, and a checkpoint is there ---
rm -f log.*
ranks 2 epochs=1000000 operator.check_every=1 --folder other --quiet >train.out 2>train.err </dev/null &
process=$!
for _ in $(seq 200); do
    "$sigma" ctl other status >out 2>err && grep -qE '^iteration +[1-9]' out && break
    sleep 0.05
done
kill -TERM "$(process_of 1)"
wait "$process"
[ $? -eq 130 ]
verdict "an interrupted job ends with 130" $? train.out train.err
process=
run 0 inspect other/checkpoint.safetensors
has train.out '^stopped; go on with: mpirun -n 2 sigma train other --resume$'

# --- the same amid a pause: the others hear of it within a second or two ---
rm -f log.*
ranks 2 epochs=1000000 --folder third --quiet >train.out 2>train.err </dev/null &
process=$!
wait_for '^state +running$' third
run 0 ctl third pause
wait_for '^state +paused$' third
kill -TERM "$(process_of 1)"
(sleep 20 && kill -KILL "$process") 2>/dev/null &
killer=$!
wait "$process"
code 130 $? "a paused job that was interrupted"
kill "$killer"
process=

# --- a replay has one process, which gives the same parameters ---
(ranks 2 epochs=2 --folder short --quiet) >train.out 2>train.err </dev/null
code 0 $? "a short run of two ranks"
refusal='a run of several processes \(operator mpi\) is not replayed by such, .* take one process \(operator gradients\) with as many workers'
run 1 replay short --into again --quiet
has err "$refusal"
run 1 replay short --check
has err "$refusal"
mpirun -n 2 --oversubscribe --bind-to none "$sigma" replay short --into again --quiet >out 2>err </dev/null
verdict "ranks replay nothing" $((! $?))
has err "process 1 on .*$refusal"
[ ! -e again ]
verdict "a refused replay leaves no folder" $?
cp -r short copy
sed -i '/^operator:/,/^[a-z]*:/{s/type: mpi/type: gradients\n  workers: 2/; /timeout\|check_every\|bucket\|bfloat16\|sharded/d}' copy/config.yaml
run 0 replay copy --into again --inexact --quiet
for folder in short again; do
    run 0 export --weights "$folder.safetensors" "$folder"
done
cmp short.safetensors again.safetensors >out 2>&1
verdict "one process with two workers gives the parameters of two ranks" $? out

finish
