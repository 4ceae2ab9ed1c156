# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is used where it is sourced
# Sourced by the benchmarks: the networks whose training steps are measured. Each row has an id, NAME-OPTIMISER-PRECISION:
# rows, and of each optimiser_of, batch_of, precision_of, megaflops_of and megabytes_of (the minimum of work and traffic of a
# step), notation_of (ours), model_of and sizes_of (bench_torch.py's), extra_of (more arguments of bench/step), with_fann, threads_of (where more would be no use).

rows=()
declare -A optimiser_of batch_of precision_of megaflops_of megabytes_of notation_of model_of sizes_of extra_of with_fann
declare -A threads_of

# Work: the multiply-adds of products and convolutions count two, forward, for the gradients of weights, and for those of
# inputs but where the input is the data. Traffic, with 4 bytes a number: parameters are read forward and backward, read and
# written by the update (which takes gradients from the cache), and so are two more numbers each with Adam; an output of a
# layer is written and read forward, read backward, and its gradient written and read.
workload() # name optimiser batch precisions megaflops parameters outputs-of-an-example model notation [arguments of step]
{
    local precision id
    [ -n "${WORKLOADS:-}" ] && [[ " $WORKLOADS " != *" $1 "* ]] && return
    for precision in $4; do
        [ -n "${PRECISIONS:-}" ] && [[ " $PRECISIONS " != *" $precision "* ]] && continue
        id=$1-$2-$precision
        rows+=("$id")
        optimiser_of[$id]=$2 batch_of[$id]=$3 precision_of[$id]=$precision megaflops_of[$id]=$5 model_of[$id]=$8
        notation_of[$id]=$9 extra_of[$id]=${10:-}
        megabytes_of[$id]=$(awk -v parameters="$6" -v outputs="$7" -v batch="$3" -v optimiser="$2" 'BEGIN {
            printf "%.6f", 4 * (parameters * (optimiser == "sgd" ? 4 : 8) + outputs * batch * 5) / 1e6 }')
    done
}

# Dense layers with relu. FANN is for small networks with plain gradient descent.
mlp() # name optimiser batch precisions sizes [fann]
{
    local work parameters outputs notation id
    read -r work parameters outputs < <(awk -v sizes="$5" -v batch="$3" 'BEGIN {
        count = split(sizes, size, ",")
        for (i = 1; i < count; i++) {
            work += 2 * batch * size[i] * size[i + 1] * (i == 1 ? 2 : 3)
            parameters += (size[i] + 1) * size[i + 1]
            outputs += size[i + 1]
        }
        printf "%.6f %d %d\n", work / 1e6, parameters, outputs }')
    notation=$(awk -v sizes="$5" 'BEGIN {
        count = split(sizes, size, ",")
        printf "input(%d)", size[1]
        for (i = 2; i <= count; i++)
            printf " + dense(%d%s)", size[i], i < count ? ", relu" : ""
        print " + softmax_cross_entropy" }')
    workload "$1" "$2" "$3" "$4" "$work" "$parameters" "$outputs" dense "$notation"
    for id in "$1-$2-float32" "$1-$2-tf32" "$1-$2-bfloat16"; do
        sizes_of[$id]=$5
    done
    with_fann[$1-$2-float32]=${6:-}
}

mlp A sgd 100 "float32 bfloat16" 784,1024,1024,10
mlp A adam 100 float32 784,1024,1024,10
mlp small sgd 100 "float32 bfloat16" 784,128,64,10 fann
mlp iris sgd 10 float32 4,12,10,3 fann
threads_of[iris-sgd-float32]=1
# Outputs: convolutions before and after pooling, dense layers.
workload lenet sgd 64 "float32 bfloat16" 1427.079168 184586 28298 lenet \
    "input(28, 28) + convolution(32, 5, relu) + max_pooling(2) + convolution(64, 5, relu) + max_pooling(2) \
+ dense(128, relu) + dense(10) + softmax_cross_entropy"
# At each of 64 steps: the embedding, gates, cell and output of two layers, the logits.
workload lstm sgd 32 "float32 bfloat16" 11478.761472 944577 208960 lstm \
    "input(64) + embedding(65, 128) + lstm(256) + lstm(256) + dense(65, time_distributed) + softmax_cross_entropy" "-v 65"
# At each of 64 places: the embedding, the last normalisation and the logits; in each of 4 blocks two normalisations,
# queries, keys and values, 4 x 64 scores, what they give, two sums, and twice the 512 of the wide layer.
workload gpt adamw 12 "float32 bfloat16" 3964.207104 809856 610368 gpt \
    "input(64) + embedding(65, 128, name=tokens) + positions + transformer(4, causal) + transformer(4, causal) \
+ transformer(4, causal) + transformer(4, causal) + layer_norm + tied_dense(tokens) + softmax_cross_entropy" "-v 65"
