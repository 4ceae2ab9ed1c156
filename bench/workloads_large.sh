# shellcheck shell=bash
# Sourced by bench.sh after workloads.sh: more rows, of the networks that take tens of milliseconds to seconds a step on a
# processor. Work and outputs are counted as there.

# 784-4096-4096-10.
mlp dense4096 sgd 256 "float32 bfloat16" 784,4096,4096,10

# ResNet-18 for images of 32 x 32: a convolution of 64, then two blocks each of 64, 128, 256 and 512.
block()
{
    echo "add(identity, convolution($1, 3, same, no_bias) + batch_norm + activation(relu) + convolution($1, 3, same, no_bias)" \
        "+ batch_norm) + activation(relu)"
}
# Half as high and wide, with other channels.
halving_block()
{
    echo "add(convolution($1, 1, stride=2, no_bias) + batch_norm, convolution($1, 3, stride=2, padding=1, no_bias)" \
        "+ batch_norm + activation(relu) + convolution($1, 3, same, no_bias) + batch_norm) + activation(relu)"
}
workload resnet sgd 32 "float32 bfloat16" 106527.916032 11173962 1475082 resnet \
    "input(3, 32, 32) + convolution(64, 3, same, no_bias) + batch_norm + activation(relu) + $(block 64) + $(block 64) \
+ $(halving_block 128) + $(block 128) + $(halving_block 256) + $(block 256) + $(halving_block 512) + $(block 512) \
+ global_average_pooling + dense(10) + softmax_cross_entropy"

# Five pairs of a convolution for each channel and one of all channels of a pixel, as in MobileNet.
pair() # channels filters stride
{
    echo "convolution($1, 3, stride=$3, padding=1, groups=$1, no_bias) + batch_norm + activation(relu)" \
        "+ convolution($2, 1, no_bias) + batch_norm + activation(relu)"
}
workload depthwise sgd 32 "float32 bfloat16" 3116.335104 136778 606474 depthwise \
    "input(3, 32, 32) + convolution(32, 3, same, no_bias) + batch_norm + activation(relu) + $(pair 32 64 1) \
+ $(pair 64 128 2) + $(pair 128 128 1) + $(pair 128 256 2) + $(pair 256 256 1) + global_average_pooling + dense(10) \
+ softmax_cross_entropy"

# At each of 64 steps: the embedding, gates and output of two layers, the logits.
workload gru sgd 32 "float32 bfloat16" 8660.189184 716225 143424 gru \
    "input(64) + embedding(65, 128) + gru(256) + gru(256) + dense(65, time_distributed) + softmax_cross_entropy" "-v 65"

workload audio sgd 16 "float32 bfloat16" 1806.483456 94220 112140 audio \
    "input(1, 8000) + convolution_1d(32, 9, stride=4, padding=4, relu) + convolution_1d(64, 9, stride=4, padding=4, relu) \
+ convolution_1d(128, 9, stride=4, padding=4, relu) + global_average_pooling + dense(12) + softmax_cross_entropy"

transformers() # blocks heads
{
    local text='' i
    for ((i = 0; i < $1; i++)); do
        text+="transformer($2, causal) + "
    done
    echo "${text}layer_norm + tied_dense(tokens) + softmax_cross_entropy"
}
workload long adamw 4 "float32 bfloat16" 52344.913920 3356160 12976128 long \
    "input(512) + embedding(256, 256, name=tokens) + positions + $(transformers 4 4)" "-v 256"
workload gpt2 adamw 4 "float32 bfloat16" 191557.140480 123702528 13341760 gpt2 \
    "input(64) + embedding(50257, 768, name=tokens) + positions + $(transformers 12 12)" "-v 50257"
