#!/bin/bash
# Compiled kernels on disk: two trainings that begin at once, with none there, do not disturb each other.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

# PoCL would compile each kernel again for each number of groups.
export SIGMA_CACHE_DIR=$folder/cache POCL_WORK_GROUP_SPECIALIZATION=0
network='input(8, 8) + dense(10) + softmax_cross_entropy'

# train FOLDER: two epochs on the device; what it says goes to FOLDER.out and FOLDER.err.
train()
{
    SIGMA_LOG=debug "$sigma" train "$examples/digits.yaml" handler=opencl epochs=2 "network=$network" \
        --folder "$1" >"$1.out" 2>"$1.err" </dev/null
}

# results FOLDER: the validation's loss and accuracy.
results()
{
    grep -E '^validation: ' "$1.out"
}

if ! "$sigma" info | grep -q 'opencl: device 0'; then
    echo "test_kernels.sh: skipped: there is no OpenCL device"
    echo "0 passed, 0 failed, 1 skipped"
    exit 77
fi

train first &
other=$!
train second
code 0 $? 'the second training'
wait "$other"
code 0 $? 'the first training'
same 'both learn the same' "$(results first)" "$(results second)"

# The third finds every program there, and each file whole.
files=$(cd cache/kernels && ls)
train third
code 0 $? 'the third training'
same 'the third learns the same' "$(results third)" "$(results first)"
same 'nothing is made again' "$(cd cache/kernels && ls)" "$files"
same 'no file is damaged' "$(grep -c 'is damaged' third.err)" 0
same 'nothing is in the midst of being written' "$(grep -c 'tmp\|-.*-' <<<"$files")" 0
finish
