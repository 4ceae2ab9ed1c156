#!/bin/bash
# Training that is killed again and again ends where training that was left alone ends, byte for byte.
#
#     tests/endurance/kill_resume.sh [TIMES] [SEED]      (100 times; a build in build/release, or SIGMA_BUILD_DIR)
#
# Each time a run with hooks of every kind is ended by kill -9 (or, one time in five, by SIGTERM) at random moments and
# resumed until it is through. Then everything that it leaves is compared with the uninterrupted run: checkpoints,
# metrics, and that no temporary file, socket or damaged line is left.
set -u
times=${1:-100} seed=${2:-$RANDOM}
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
sigma=${SIGMA_BUILD_DIR:-$source_dir/build/release}/sigma
export SIGMA_DATA_DIR=$source_dir/data
folder=$(mktemp -d) || exit 1
process=
trap '[ -z "$process" ] || kill -KILL "$process" 2>/dev/null; rm -rf "$folder"' EXIT
cd "$folder" || exit 1
RANDOM=$seed
passed=0 failed=0 kills=0
epochs=$((times < 10 ? 6 : 14)) # at least

describe()
{
    cat >"$1.yaml" <<END
network: input(8, 8) + dense(24, relu) + dropout(0.3) + dense(16, tanh) + dense(10) + softmax_cross_entropy
data: {training: digits, validation: digits-test, batch: 16}
optimiser:
  type: adam
  learning_rate: 0.002
  accumulate: 2
  average: 0.98
  clip_norm: 1
  weight_decay: 0.001
  schedule: {kind: $2, period: 7, factor: 0.3, warm_up: 1}
modifiers: {"*.weights": max_norm(4)}
rules:
  - if validation.loss increases 2 times then set optimiser.learning_rate *= 0.8
  - every 1 epoch if validation.accuracy reaches maximum then save "best"
  - every 7 iterations if validation.roc_auc > 0.9 repeated 5 times then set optimiser.clip_norm *= 0.99
  - every 50 iterations if shared.cost > 1 repeated 3 times then set optimiser.clip_norm *= 0.95
  - after 400 iterations set optimiser.weight_decay = 0.0005
hooks:
  - accumulator(optimiser.loss, name=cost, mean=true, reset_every=70)
  - every 3 iterations accumulator(training.accuracy, name=accuracy, each_epoch=true)
  - every 2 epochs accumulator(validation.loss, name=rare)
  - running_time(span=8)
  - f1(data=validation)
  - every 2 epochs roc_auc(data=validation)
  - accumulator(validation.f1, name=f1)
  - last_checkpoints(count=2)
  - best_checkpoints(validation.accuracy, count=2)
  - nan_watch()
  - every 10 iterations value_reporter(training.loss shared.*, background=true)
  - every 1 epoch value_reporter(validation.*, with_time=true)
  - every 61 iterations save("checkpoint")
  - at epoch 5 save("epoch-{epoch}")
  - early_stopper(validation.loss, patience=3)
epochs: $3
seed: $4
END
    if [ $((i % 3)) -ne 0 ] && "$sigma" train --help | grep -qE '^ *operator\.workers'; then
        echo "operator: {type: $([ $((i % 3)) -eq 1 ] && echo gradients || echo parameters), workers: 2}" >>"$1.yaml"
    fi
}

fail()
{
    echo "kill_resume.sh: FAILED (seed $seed): $1" >&2
    failed=$((failed + 1))
}

# What a run leaves, without what the clock decides.
summary()
{
    (cd "$1" && for file in *; do
        case $file in
        *.jsonl) sed -E 's/"(seconds|when)":("[^"]*"|[^,}]*),?//g' "$file" >"../$2.$file" ;;
        *.safetensors) sha256sum <"$file" >"../$2.$file" ;;
        esac
        echo "$file"
    done | grep -vxE 'journal.jsonl|(metrics|histograms)-before-[0-9]+.jsonl') >"$2.names"
    # a change after the last checkpoint is made, and told, again; what came before the first is kept aside
}

# Ends a run at random moments until it is through: within a part of the milliseconds that a whole one takes, and then
# a little later each time.
torture()
{
    local name=$1 duration=$2 code=130 starts=0 wait_for
    while [ "$code" -ne 0 ]; do
        if [ $((starts += 1)) -gt 400 ]; then
            fail "$name does not come to its end"
            return 1
        fi
        "$sigma" train "$name.yaml" --folder "$name" --resume --quiet >"$name.log" 2>&1 </dev/null &
        process=$!
        wait_for=$(((RANDOM % (duration * 4 / 10 + 10 * starts)) + duration / 20))
        sleep "$((wait_for / 1000)).$(printf '%03d' $((wait_for % 1000)))"
        if [ $((RANDOM % 5)) -eq 0 ]; then
            kill -TERM "$process" 2>/dev/null
        else
            kill -KILL "$process" 2>/dev/null
        fi
        wait "$process" 2>/dev/null
        code=$?
        process=
        case $code in
        0) ;;
        137 | 143 | 130) kills=$((kills + 1)) ;;
        *)
            fail "$name ended with $code: $(cat "$name.log")"
            return 1
            ;;
        esac
    done
}

compare()
{
    local name=$1 file
    summary whole whole-is
    summary "$name" "$name-is"
    if ! cmp -s whole-is.names "$name-is.names"; then
        fail "$name left other files: $(diff whole-is.names "$name-is.names" | tr '\n' ' ')"
        return 1
    fi
    for file in whole-is.*.safetensors whole-is.metrics.jsonl; do
        if ! cmp -s "$file" "$name-is${file#whole-is}"; then
            fail "$name: ${file#whole-is.} differs from the uninterrupted run's"
            return 1
        fi
    done
    if grep -vqE '^\{.*\}$' "$name/journal.jsonl"; then
        fail "$name: journal.jsonl has a damaged line"
        return 1
    fi
}

kinds=(cosine step plateau one_cycle)
for ((i = 1; i <= times; i++)); do
    kind=${kinds[$((i % 4))]}
    rm -rf whole* victim*
    describe whole "$kind" $((epochs + RANDOM % 6)) "$i"
    sed "s/^name:.*//" whole.yaml >victim.yaml
    # The experiment's name is no part of a checkpoint.
    start=$(date +%s%3N)
    if ! "$sigma" train whole.yaml --folder whole --quiet >whole.log 2>&1 </dev/null; then
        fail "the uninterrupted run: $(cat whole.log)"
    elif torture victim "$(($(date +%s%3N) - start))" && compare victim; then
        passed=$((passed + 1))
    fi
done
echo "$kills interruptions" >&2
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
