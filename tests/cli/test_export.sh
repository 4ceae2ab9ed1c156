#!/bin/bash
# sigma export: what it writes is compiled, and answers as sigma predict does.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

run 0 train "$examples/iris.yaml" epochs=3 --quiet --folder run

# --- weights, in NumPy's format and under PyTorch's names ---
run 0 export --weights w.npz run
LC_ALL=C tr -cd '[:print:]\n' <w.npz >out
has out '1-dense.weights.npy'
run 0 export --weights w.safetensors --names 'torch(1-dense=fc1, 2-dense=fc2)' run
LC_ALL=C tr -cd '[:print:]\n' <w.safetensors >out
has out '"fc1.weight":{"dtype":"F32","shape":\[16,4\]'
run 0 train "$examples/iris.yaml" epochs=1 --quiet --folder begun start_from.run=w.safetensors \
    'start_from.names=torch(1-dense=fc1, 2-dense=fc2)'
run 1 train "$examples/iris.yaml" epochs=1 --quiet --folder unbegun start_from.run=w.safetensors start_from.names=torhc
has err "names 'torhc': expected"
run 2 export --c net.c --names torch run
has err '^sigma export: --names is not for --c'
run 1 export --weights w.bin run
has err 'must end in .npz or .safetensors'

# --- usage ---
run 2 export run
has err 'expected what to write'
run 2 export --c net.c
has err 'expected one checkpoint or folder, got 0'
run 2 export --c net.c --batch 0 run
has err 'a whole number of at least 1'
run 1 export --c net.c --name '1x' run
has err "'1x' cannot begin names of C"
run 1 export --c nowhere/net.c run
has err '^sigma export: .*nowhere/net.c'
run 1 export --c net.c missing
[ ! -e net.c ]
verdict "a failure leaves no file" $?

# --- a program with the file ---
run 0 export --c my-net.c run
strict=(cc -std=c99 -pedantic -Wall -Wextra -Werror)
"${strict[@]}" -O1 -c my-net.c -o net.o 2>err
code 0 $? "the file compiles"
cat >main.c <<'END'
#define MY_NET_DECLARATIONS
#include "my-net.c"
#include <stdio.h>

int main(void)
{
    MY_NET_REAL inputs[MY_NET_PREDICT_INPUTS], outputs[MY_NET_PREDICT_OUTPUTS];
    for (;;) {
        for (int i = 0; i < MY_NET_PREDICT_INPUTS; i++)
            if (scanf("%f,", &inputs[i]) != 1)
                return 0;
        if (my_net_predict(inputs, outputs) != 0)
            return 1;
        int best = 0;
        for (int i = 1; i < MY_NET_PREDICT_OUTPUTS; i++)
            best = outputs[i] > outputs[best] ? i : best;
        printf("%d %.4f\n", best, (double)outputs[best]);
    }
}
END
"${strict[@]}" main.c net.o -o main 2>err
code 0 $? "a program with the file compiles, and links without the library of mathematics"
printf '0.1,0.2,0.3,0.4\n0.9,0.1,0.8,0.7\n0.5,0.5,0.1,0\n' >table.csv
run 0 predict run table.csv
./main <table.csv >answers 2>err
diff out answers >err
verdict "the file answers as sigma predict does" $?

cp main.c main.cpp
c++ -std=c++17 -Wall -Wextra -Werror main.cpp net.o -o main-cpp 2>err && ./main-cpp <table.csv >again 2>>err && diff answers again
verdict "C++ calls it, too" $?

# --- training ---
longest=a_name_of_forty_letters_is_the_longest__
run 0 export --c train.c --train --batch 4 --name "$longest" run
"${strict[@]}" -O1 -c train.c -o train.o 2>err
code 0 $? "the file with a training step compiles"
has train.c "^int ${longest}_train_step\\("
has train.c "^#define ${longest^^}_TRAIN_STEP_INPUTS 16 "
run 1 export --c train.c --name "${longest}_" run
has err 'cannot begin names of C'

# --- ONNX ---
run 2 export --onnx net.onnx --train run
has err '--train is not for --onnx'
run 2 export --onnx net.onnx --c net.c run
has err 'one file at a time'
if "$sigma" export --onnx my-net.onnx run 2>err; then
    grep -aq '1-dense.weights' my-net.onnx && grep -aq 'my_net' my-net.onnx
    verdict "the ONNX model has the names of parameters, and the file's" $?
    run 0 export --onnx fixed.onnx --batch 4 --name flowers run
    grep -aq 'flowers' fixed.onnx
    verdict "the graph of the ONNX model has the name that was given" $?
else
    has err 'built without ONNX'
fi


# --- what was written, where that is a file ---
run 0 export --c said.c run
has out "^written: said.c, $(awk -v n="$(stat -c %s said.c)" 'BEGIN { printf "%.1f kB", n / 1000 }')$"
run 0 import "$SIGMA_SOURCE_DIR/tests/models/fixtures/gpt2" --into gpt2
run 0 export --hf folder gpt2
has out '^written: folder, [0-9.]+ kB$'
"$sigma" export --c /dev/stdout --name said run 2>err | cat >piped.c
cmp <(grep -v '^ \*' said.c) <(grep -v '^ \*' piped.c)
verdict "the file alone goes through a pipe" $?
ln -s /proc/self/fd/1 standard_output # as /dev/stdout is
"$sigma" export --c standard_output --name said run >redirected.c 2>err
cmp <(grep -v '^ \*' piped.c) <(grep -v '^ \*' redirected.c) && [ -L standard_output ]
verdict "and into the file that the output is redirected to" $?
run 0 train "$examples/iris.yaml" epochs=1 --quiet --folder large 'network=input(4) + dense(1000) + dense(900) + dense(3) + softmax_cross_entropy'
run 0 export --c large.c large
has err '^note: 0.9086 million parameters become about 14.5 MB of C$'
has out '^written: large.c, 14\.[0-9] MB$'
finish
