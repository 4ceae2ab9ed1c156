#!/bin/bash
# Training steps on a device, ours beside PyTorch's; see usage() below and docs/performance.md.
set -u

here=$(cd "$(dirname "$0")" && pwd)

usage()
{
    cat <<'END'
usage: bench/device.sh HANDLER [BUILD]

Measures training steps of networks of several sizes on a device by a handler ("cuda", "cuda(device=1)", "opencl"), and, on
CUDA, in PyTorch on the same device: eager, compiled, and compiled with CUDA graphs. Prints a table and writes
HOST-DATE-HANDLER.jsonl into RESULTS. BUILD is where `bench-programs` were built (build/release).

Environment:
  WORKLOADS     of these names alone ("A small iris lenet lstm gpt wide lenet-large gpt2")
  PRECISIONS    of these alone ("float32 tf32 bfloat16")
  WAYS          of PyTorch ("eager compiled graphs"); empty: none
  RESULTS       a folder (bench/results)
  PYTHON        a Python with PyTorch (python3)
  SECONDS_EACH  seconds for each measurement (2)
  SIZE          tiny: networks of the same kinds, small enough to try the benchmark itself
  TORCH_DEVICE  cpu: to try it without a GPU

A step is the mean over all steps that fit the time, the queue's end waited for. Each row and way also starts and compiles,
up to 300 s: where a command may take only minutes, name WORKLOADS or WAYS.
END
}

case "${1:-}" in
-h | --help)
    usage
    exit 0
    ;;
'' | -*)
    usage >&2
    exit 2
    ;;
esac

handler=$1
build=${2:-$here/../build/release}
seconds=${SECONDS_EACH:-2}
ways=${WAYS-eager compiled graphs}
python=${PYTHON:-python3}
wanted_precisions=${PRECISIONS:-}
size=${SIZE:-full}
[ -x "$build/bench/step" ] || {
    echo "device: $build has no bench/step; cmake --build $build --target bench-programs makes it" >&2
    exit 1
}
export SIGMA_PLUGIN_PATH=${SIGMA_PLUGIN_PATH:-$build/plugins}
answer=$("$build/bench/step" -n "input(4) + dense(4) + mean_squared" -b 2 -o gradient_descent -h "$handler" -s 0.01 2>&1) || {
    echo "device: there is nothing to measure: ${answer##*$'\n'}" >&2
    exit 1
}
[[ $handler == cuda* || -n ${TORCH_DEVICE:-} ]] || ways=
# shellcheck source=bench/workloads.sh
PRECISIONS='' . "$here/workloads.sh"
PRECISIONS=''
gpt2() # batch context blocks
{
    local notation block work
    notation="input($2) + embedding(50257, 768, name=tokens) + positions"
    for ((block = 0; block < $3; block++)); do
        notation+=" + transformer(12, causal)"
    done
    # Multiply-adds of a token: 12 * 768^2 in a block's matrices, 2 * 768 for each place it looks at (all, though half are
    # hidden), 768 * 50257 for the logits.
    work=$(awk -v batch="$1" -v context="$2" -v blocks="$3" 'BEGIN {
        printf "%.6f", 6 * batch * context * (blocks * (12 * 768 * 768 + 2 * 768 * context) + 768 * 50257) / 1e6 }')
    workload gpt2 adamw "$1" bfloat16 "$work" 124439808 0 gpt2 \
        "$notation + layer_norm + tied_dense(tokens) + softmax_cross_entropy" "-v 50257"
    sizes_of[gpt2-adamw-bfloat16]=$2,$3
    tokens_of[gpt2-adamw-bfloat16]=$(($1 * $2))
}
declare -A tokens_of
lenet="input(28, 28) + convolution(32, 5, relu) + max_pooling(2) + convolution(64, 5, relu) + max_pooling(2) \
+ dense(128, relu) + dense(10) + softmax_cross_entropy"
if [ "$size" = tiny ]; then
    rows=()
    mlp A sgd 10 "float32 tf32 bfloat16" 8,16,16,10
    mlp A adam 10 float32 8,16,16,10
    workload lenet sgd 2 float32 44.6 184586 28298 lenet "$lenet"
    [ "$size-${SIZE_GPT2:-}" = tiny-yes ] && gpt2 1 16 1
else
    # What was there comes in tf32, too, where it is large enough to gain.
    mlp A sgd 100 tf32 784,1024,1024,10
    mlp wide sgd 4096 "float32 tf32 bfloat16" 4096,4096,4096,4096,10
    workload lenet-large sgd 1024 "float32 tf32 bfloat16" 22833.266688 184586 28298 lenet "$lenet"
    gpt2 8 1024 12
fi
chosen=()
for row in "${rows[@]}"; do
    { [ -z "$wanted_precisions" ] || [[ " $wanted_precisions " == *" ${precision_of[$row]} "* ]]; } && chosen+=("$row")
done
[ ${#chosen[@]} -gt 0 ] || {
    echo "device: no workload is called '${WORKLOADS:-}' with precision '${wanted_precisions:-any}'" >&2
    exit 2
}
folder=${RESULTS:-$here/results}
mkdir -p "$folder" || exit 1
results=$folder/$(hostname)-$(date +%Y%m%d-%H%M%S)-${handler%%(*}.jsonl
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

# --- the device ---
about=$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null | head -n 1)
[[ $handler == cuda* ]] || about=
revision=$(git -C "$here" describe --always --dirty 2>/dev/null || cat "$here/../REVISION" 2>/dev/null || echo unknown)
date=$(date -Is)
echo "Training steps by handler '$handler': ${about:-$handler}; sigma $revision; $date."
# What NVIDIA says of its devices, without sparsity: TFLOP/s of bfloat16, tf32 and float32.
nominal()
{
    case "$about:$1" in
    *H200*:bfloat16 | *H100*:bfloat16) echo 989 ;;
    *H200*:tf32 | *H100*:tf32) echo 494 ;;
    *H200*:float32 | *H100*:float32) echo 67 ;;
    *A100*:bfloat16) echo 312 ;;
    *A100*:tf32) echo 156 ;;
    *A100*:float32) echo 19.5 ;;
    *) echo 0 ;;
    esac
}

# --- ours: "us" or "failed WHY" ---
ours() # row
{
    local type=${optimiser_of[$1]} precision=${precision_of[$1]} on=$handler answer
    [ "$type" = sgd ] && type=gradient_descent
    if [ "$precision" = tf32 ]; then
        precision=float32
        on="${handler%)}"
        [[ $handler == *\) ]] && on+=", tf32=true)" || on+="(tf32=true)"
    fi
    # shellcheck disable=SC2086 # several arguments
    if answer=$(timeout 300 "$build/bench/step" -n "${notation_of[$1]}" -b "${batch_of[$1]}" -o "$type" -p "$precision" \
        ${extra_of[$1]} -h "$on" -s "$seconds" -m 2>"$scratch/errors"); then
        echo "${answer%% *}"
    elif [ $? = 124 ]; then
        echo "failed not ended within 300 s"
    else
        echo "failed $(tail -n 1 "$scratch/errors" | cut -c 1-300)"
    fi
}

record() # row program us-or-failed [MB]
{
    local nominal
    nominal=$(nominal "${precision_of[$1]}")
    awk -v row="$1" -v program="$2" -v answer="$3" -v memory="${4:-0}" -v work="${megaflops_of[$1]}" -v nominal="$nominal" \
        -v tokens="${tokens_of[$1]:-0}" -v base="${base:-0}" -v tail="\"device\": \"$about\", \"revision\": \"$revision\", \"date\": \"$date\"}" \
        -v file="$results" -v workload="${1%-*-*}" -v optimiser="${optimiser_of[$1]}" -v precision="${precision_of[$1]}" -v batch="${batch_of[$1]}" 'BEGIN {
        head = sprintf("{\"workload\": \"%s\", \"optimiser\": \"%s\", \"precision\": \"%s\", \"batch\": %d, \"program\": \"%s\", ",
            workload, optimiser, precision, batch, program)
        name = sprintf("%-12s %-6s %-9s %-17s", workload, optimiser, precision, program)
        if (answer ~ /^failed/) {
            gsub(/["\\]/, "", answer)
            printf "%s %s\n", name, answer
            printf "%s\"failed\": \"%s\", %s\n", head, substr(answer, 8), tail >>file
            exit
        }
        rate = work / answer / 1e6  # TFLOP/s
        printf "%s %12.1f us %9.2f TFLOP/s", name, answer, rate
        if (nominal > 0) printf " %5.1f%%", 100 * rate / nominal
        if (tokens > 0) printf " %10.0f tokens/s", tokens / answer * 1e6
        if (base > 0) printf "  x%.2f", answer / base
        printf "\n"
        printf "%s\"step_us\": %s, \"tflops\": %.4f, \"nominal_tflops\": %s, \"tokens_per_second\": %.1f, \"ratio\": %.4f, \"device_mb\": %s, %s\n",
            head, answer, rate, nominal, tokens / answer * 1e6, (base > 0 ? answer / base : 0), memory, tail >>file
    }'
}

# --- measuring: all of ours, then PyTorch in one process, as importing it takes long ---
declare -A base_of
echo "x: the program's time / ours; %: of what the device's maker says."
for row in "${chosen[@]}"; do
    answer=$(ours "$row")
    base=0 record "$row" Sigma "$answer"
    [[ $answer == failed* ]] || base_of[$row]=$answer
done
if [ -n "$ways" ]; then
    for row in "${chosen[@]}"; do
        for way in $ways; do
            echo "$row/$way ${model_of[$row]} ${sizes_of[$row]:--} ${batch_of[$row]} ${optimiser_of[$row]} ${precision_of[$row]} $way $seconds"
        done
    done >"$scratch/jobs"
    [ "$size" = full ] && for precision in float32 tf32 bfloat16; do
        echo "product-$precision/eager product 8192 1 sgd $precision eager 1"
    done >>"$scratch/jobs"
    "$python" "$here/device_torch.py" --device "${TORCH_DEVICE:-cuda}" <"$scratch/jobs" 2>"$scratch/errors" |
        while read -r name answer memory rest; do
            row=${name%/*}
            case $name in
            PyTorch) echo "PyTorch $answer $memory $rest" ;;
            product-*)
                awk -v name="$row" -v answer="$answer" 'BEGIN { printf "%s of 8192 x 8192 by PyTorch: %s\n", name,
                    answer + 0 > 0 ? sprintf("%.1f TFLOP/s", 2 * 8192 ^ 3 / answer / 1e6) : "failed" }'
                ;;
            *) base=${base_of[$row]:-0} record "$row" "PyTorch ${name#*/}" \
                "$answer$([ "$answer" = failed ] && echo " $memory $rest")" "$memory" ;;
            esac
        done
    case ${PIPESTATUS[0]} in
    0) ;;
    77) echo "PyTorch with CUDA is not here to compare with: PYTHON names a Python that has it." ;;
    *) echo "PyTorch ended: $(tail -n 1 "$scratch/errors" | cut -c 1-300)" ;;
    esac
fi
echo "Written to $results"
