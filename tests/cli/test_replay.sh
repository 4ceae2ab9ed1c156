#!/bin/bash
# sigma replay: a run that was steered is trained again, with all that was done to it.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

# ctl ARGUMENTS...: done to the run, which waits.
ctl()
{
    run 0 ctl run "$@"
}

# until ITERATION: the run has trained so far, and waits.
until_iteration()
{
    ctl step "$1"
    for _ in $(seq 400); do
        "$sigma" ctl run status >out 2>err && grep -qE '^state +paused$' out && return
        sleep 0.05
    done
    verdict "the run pauses" 1
}

# --- usage ---
run 2 replay
has err 'expected the folder of a run'
run 2 replay nothing
has err "'nothing' is no folder of a run: it has no config.yaml"
run 2 replay nothing --until 0
has err -- '--until'

# --- a run that is steered, killed and resumed ---
begin()
{
    "$sigma" train "$@" --folder run --paused >train.out 2>train.err </dev/null &
    process=$!
    for _ in $(seq 400); do
        "$sigma" ctl run status >out 2>err && grep -qE '^state +paused$' out && return
        sleep 0.05
    done
    verdict "the run begins" 1 train.out train.err
}
begin "$examples/digits.yaml" epochs=6
until_iteration 60
ctl set optimiser.learning_rate 0.0125
ctl save here
until_iteration 30
ctl attach 'every 2 epochs set optimiser.learning_rate *= 0.5'
ctl restore here
until_iteration 90
ctl set optimiser.beta1 0.8
kill -KILL "$process"
wait "$process" 2>/dev/null
begin run --resume
ctl resume
wait "$process"
code 0 $? "the run ends"
process=

# --- what was done ---
run 0 replay run --list
has out '^ +[0-9]+ +0 +[0-9]+ +60  ctl +optimiser.learning_rate was set to 0.0125$'
has out '  ctl +hook rule#1 was attached: every 2 epochs set optimiser.learning_rate \*= 0.5$'
has out ' here was restored$'
has out ' optimiser.beta1 was set to 0.8$'
number=$(awk '/learning_rate was set/ { print $1 }' out)
run 0 replay run --list --json
has out '"text": "here was restored"'

# --- only checked ---
run 0 replay run --check
has out '^the replay can be done, bit for bit$'
run 1 replay run --check --without 1
has err '1 is no intervention that can be left out; there are: '
run 1 replay run --check --until 1000000
has err 'until: the run .run. has [0-9]+ iterations'
[ ! -e check ]
verdict "a check makes no folder" $?
run 2 replay run --check --list
has err -- '--list only lists: of the other options it takes --json'

# --- once more ---
run 0 replay run --into again --quiet
has out '^the checkpoint is that of run, bit for bit$'
cmp run/checkpoint.safetensors again/checkpoint.safetensors
verdict "the same checkpoint" $?
run 2 replay run --into again --quiet
has err 'again has a checkpoint already: --into names another folder'
run 0 replay run --into without --without "$number" --quiet
! cmp -s run/checkpoint.safetensors without/checkpoint.safetensors
verdict "another checkpoint without the change" $?
run 1 replay run --into none --without 1 --quiet
has err '1 is no intervention that can be left out; there are: '
run 2 replay run --without here
has err "--without: expected numbers of the list, such as 12,15, got 'here'"
run 0 replay run --into part --until 100 --quiet
has part/journal.jsonl '"event":"end",.*"iteration":100,'

# --- of a run that goes on meanwhile ---
"$sigma" train "$examples/digits.yaml" epochs=100000 --folder goes-on --quiet >train.out 2>train.err </dev/null &
process=$!
for _ in $(seq 400); do
    [ -e goes-on/checkpoint.safetensors ] && break
    sleep 0.05
done
run 0 replay goes-on --into of-going-on --quiet
has out '^the checkpoint is that of goes-on, bit for bit$'
kill "$process"
wait "$process"
process=

# --- of runs that are killed at any moment ---
for i in $(seq 8); do
    "$sigma" train "$examples/digits.yaml" epochs=100000 --folder "killed-$i" --quiet >train.out 2>train.err </dev/null &
    process=$!
    for _ in $(seq 400); do
        [ -e "killed-$i/checkpoint.safetensors" ] && break
        sleep 0.05
    done
    sleep "0.0$i"
    kill -KILL "$process"
    wait "$process" 2>/dev/null
    process=
    run 0 replay "killed-$i" --check
done

# --- what cannot be the same ---
sed -i 's/^seed: .*/seed: 77/' run/config.yaml
run 1 replay run --into none --quiet
has err "the replay of 'run' cannot give the same bits:"
has err "the seed was '[0-9]+' when it began, and is '77'"
[ ! -e none ]
verdict "a replay that is refused leaves no folder" $?
run 1 replay run --check
has err "the seed was '[0-9]+' when it began, and is '77'"
run 0 replay run --check --inexact
has out '^the replay can be done$'
run 0 replay run --into inexact --inexact --quiet
has out '^the checkpoint is not that of run$'
sed -i '3s/iteration/Iteration/' run/journal.jsonl
run 1 replay run --list
has err "'run/journal.jsonl', line 3: its checksum is another"

finish
