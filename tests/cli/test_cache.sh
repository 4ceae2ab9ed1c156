#!/bin/bash
# Extracted data that is kept for other runs: pictures by themselves, tables where the file asks for it; how much there
# is, and how it is deleted.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

# shellcheck disable=SC2046 # words are wanted
cc -std=c17 -D_GNU_SOURCE -I"$SIGMA_SOURCE_DIR/tests/data" "$SIGMA_SOURCE_DIR/tests/cli/write_pictures.c" \
    -o write_pictures $(pkg-config --cflags --libs libpng libjpeg) >out 2>err
verdict 'the program that writes pictures is compiled' $?
cc -std=c17 -D_GNU_SOURCE "$SIGMA_SOURCE_DIR/tests/cli/count_opens.c" -o count_opens >out 2>err
verdict 'the program that counts is compiled' $?
./write_pictures pets 20 16
export SIGMA_CACHE_DIR=$PWD/kept

cat >pets.yaml <<'YAML'
network: input(3, 16, 16) + dense(3) + softmax_cross_entropy
data:
  training: {images: pets}
  split: 0.8
epochs: 2
seed: 1
YAML

run 0 info
has out '^  0 files, 0 bytes$'
run 0 train pets.yaml --folder first --quiet
run 0 info
has out '^  3 files, [0-9.]+ kB; '
./count_opens opened pets/cat pets/dog pets/rabbit -- "$sigma" train pets.yaml --folder second --quiet >out 2>err
code 0 $? 'a second run'
same 'no picture is opened by it' "$(cat opened)" 0
cmp first/checkpoint.safetensors second/checkpoint.safetensors >out 2>err
verdict 'a run on kept data is the same run' $?
same 'no more files' "$(find kept/data -name 'blocks-*' | wc -l)" 2
SIGMA_LOG=info run 0 train pets.yaml --folder again --quiet
has err "\"training\" is read from '.*kept/data/blocks-"

# A block that was damaged, and all of it.
for file in kept/data/blocks-*; do
    printf 'x' | dd of="$file" bs=1 seek=100 conv=notrunc 2>err
done
run 0 train pets.yaml --folder third --quiet
cmp first/checkpoint.safetensors third/checkpoint.safetensors >out 2>err
verdict 'a run on damaged data is the same run' $?
run 0 train pets.yaml --folder fourth --quiet

# --- off, elsewhere, and for tables ---
run 0 data --clear-cache
has out '^3 files deleted, [0-9.]+ kB$'
run 0 train pets.yaml data.cache=false --folder fifth --quiet
same 'nothing is kept' "$(find kept/data -type f | wc -l)" 0
run 0 train pets.yaml data.cache_folder=elsewhere --folder sixth --quiet
same 'kept elsewhere' "$(find elsewhere -name 'blocks-*' | wc -l)" 2
env -u SIGMA_CACHE_DIR -u HOME -u XDG_CACHE_HOME "$sigma" train pets.yaml --folder seventh --quiet >out 2>err
code 0 $? 'without a folder for a cache'
run 2 train pets.yaml data.cache=maybe
has err "data.cache.*(true|false)"

seq 1 300 | awk 'BEGIN {print "a,b,y"} {print $1 % 7 "," $1 % 5 "," ($1 % 7) * 2 - $1 % 5}' >t.csv
cat >t.yaml <<'YAML'
data:
  training: {csv: t.csv, target: y}
  split: 0.8
epochs: 1
YAML
run 0 train t.yaml --folder t1 --quiet
same 'tables are not kept by themselves' "$(find kept/data -type f | wc -l)" 0
run 0 train t.yaml data.cache=true --folder t2 --quiet
same 'but where that is asked for' "$(find kept/data -name 'blocks-*' | wc -l)" 2
sleep 0.1
echo 1,2,3 >>t.csv
run 0 train t.yaml data.cache=true --folder t3 --quiet
same 'a changed table is another one' "$(find kept/data -name 'blocks-*' | wc -l)" 4

# --- two runs at once, one of them killed ---
run 0 data --clear-cache
"$sigma" train pets.yaml --folder a --quiet >out 2>err &
"$sigma" train pets.yaml --folder b --quiet >out 2>err
wait
cmp a/checkpoint.safetensors b/checkpoint.safetensors >out 2>err
verdict 'two runs at once' $?
same 'one entry of each part' "$(find kept/data -name 'blocks-*' | wc -l)" 2
run 2 data --clear-cache pets

finish
