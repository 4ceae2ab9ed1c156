#!/bin/bash
# Rules that unfreeze a network of pictures layer by layer: the example of the manual's chapter on fine-tuning, resumed and
# replayed to the bit, and what is told of patterns that match nothing.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

# shellcheck disable=SC2046
cc -std=c17 -D_GNU_SOURCE -I"$SIGMA_SOURCE_DIR/tests/data" "$SIGMA_SOURCE_DIR/tests/cli/write_pictures.c" \
    -o write_pictures $(pkg-config --cflags --libs libpng libjpeg) >out 2>err
verdict "pictures can be written" $?
./write_pictures pets 40 32
run 0 import "$SIGMA_SOURCE_DIR/tests/models/fixtures/resnet" --classes 3 --into resnet

# --- the manual's file ---
awk '/^## Layer by layer/ { here = 1 } here && /^```$/ && inside { exit } here && inside { print } here && /^```yaml$/ { inside = 1 }' \
    "$SIGMA_SOURCE_DIR/docs/manual/30-fine-tuning.md" >pets.yaml
has pets.yaml '^- at epoch 2 unfreeze "stage1_\*\.\*"$'
run 0 train pets.yaml --folder run
has run/config.yaml '^    size: \["32", "32"\]$' # as the model has it
changes() { grep -o '"epoch":[0-9]*,"iteration".*"what":"optimiser.frozen".*"new":"[^"]*"' "$1" | sed 's/,"iteration.*"new":/ /'; }
same "what is frozen, and from when on" "$(changes run/journal.jsonl)" '"epoch":2 "*.*, !classifier.*, !stage1_*.*"
"epoch":4 "*.*, !classifier.*, !stage1_*.*, !stage0_*.*"
"epoch":6 ""'

# --- to the bit ---
for cut in 11 12 13 24 30 36 41; do
    run 0 train pets.yaml --folder "part-$cut" "iterations=$cut" --quiet
    run 0 train pets.yaml --folder "part-$cut" --resume --quiet
    cmp run/checkpoint.safetensors "part-$cut/checkpoint.safetensors"
    verdict "a run that is resumed at iteration $cut ends with the same bits" $?
done
run 0 replay run --into again --quiet
has out '^the checkpoint is that of run, bit for bit$'
run 0 replay part-30 --into once-more --quiet
has out '^the checkpoint is that of part-30, bit for bit$'

# --- mistakes ---
sed 's/stage1_/stag1_/' pets.yaml >wrong.yaml
run 2 train wrong.yaml --folder wrong
has err "^sigma train: wrong.yaml:9:3: rules: hook 'at epoch 2 unfreeze .stag1_\*\.\*.': unfreezing 'stag1_\*\.\*' matches no parameter of the network"
sed 's/!classifier/!clasifier/' pets.yaml >wrong.yaml
run 1 train wrong.yaml --folder wrong
has err "^sigma train: wrong.yaml:7:17: freeze: .*unfreezing 'clasifier.\*' matches no parameter of the network \(did you mean 'classifier.\*'\?\)"
run 1 train pets.yaml 'freeze=["*.*"]' --folder wrong
has err "freeze: .*freezing '\*\.\*': nothing is left to train: all parameters are frozen; leave out those that go on"
sed 's/!classifier\.\*/classifier.*/' pets.yaml >wrong.yaml
run 1 train wrong.yaml --folder wrong
has err "^sigma train: wrong.yaml:7:17: freeze: .*freezing 'classifier\.\*': nothing is left to train"
run 2 train pets.yaml 'rules=[at epoch 2 unfreez "a"]' --folder wrong
has err "did you mean 'unfreeze'"
run 2 train pets.yaml 'rules=[at epoch 2 freeze "*.*"]' --folder wrong
has err "rules: hook 'at epoch 2 freeze .\*\.\*.': freezing '\*\.\*': nothing would be left to train"
[ ! -e wrong ]
verdict "nothing is left of what was refused" $?
finish
