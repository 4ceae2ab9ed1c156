#!/usr/bin/env bash
# Every example that is a test of itself runs, says something, and reaches what it should: it fails otherwise.
set -u
passed=0 failed=0
export SIGMA_DATA_DIR=$SIGMA_SOURCE_DIR/data
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$SIGMA_SOURCE_DIR" || exit 1

# verdict NAME STATUS
verdict()
{
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
    else
        echo "FAILED: $1: $(cat "$folder/out")"
        failed=$((failed + 1))
    fi
}

for call in eager composed_op native_op custom_layer ctc characters xor autoencoder tictactoe 'vae 80' gpt 'gan 80' 'detection 3'; do
    # shellcheck disable=SC2086 # a name and its arguments
    "$SIGMA_BUILD_DIR"/examples/$call >"$folder/out" 2>&1 && [ -s "$folder/out" ]
    verdict "$call" $?
done

# file NAME MEASURE MINIMUM MAXIMUM ARGUMENTS...: what the last line of the training says of its validation
file()
{
    "$SIGMA_BUILD_DIR/sigma" train "examples/$1" --quiet --folder "$folder/${1%.yaml}" "${@:5}" >"$folder/out" 2>&1
    sed -n "s/^validation: .*$2 \\([0-9.]*\\).*/\\1/p" "$folder/out" |
        awk -v minimum="$3" -v maximum="$4" '{ good = $1 >= minimum && $1 <= maximum } END { exit !good }'
    verdict "$1" $?
}
file iris.yaml accuracy 90 100
file regression.yaml loss 0 0.06
file digits.yaml accuracy 95 100 epochs=15
file images.yaml accuracy 96 100 epochs=4

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
