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
file wdbc.yaml accuracy 93 100
file images.yaml accuracy 96 100 epochs=4

# imported NAME MINIMUM: a file of settings whose data are not here learns made-up rows of their form, from the file beside it
imported()
{
    cp "examples/$1" "$folder/$1"
    "$SIGMA_BUILD_DIR/sigma" train "$folder/$1" --quiet --folder "$folder/${1%.yaml}" epochs=20 >"$folder/out" 2>&1
    sed -n 's/^validation: .*accuracy \([0-9.]*\).*/\1/p' "$folder/out" |
        awk -v minimum="$2" '{ good = $1 >= minimum } END { exit !good }'
    verdict "$1 with rows of its form" $?
}

# The disease follows the chest pain; some vessels and thal are missing.
awk 'BEGIN { srand(7); for (i = 0; i < 300; i++) { pain = 1 + int(4 * rand())
    printf "%d.0,%d,%d.0,%d,%d,%d,%d,%d,%d,%.1f,%d,%s,%s,%d\n", 30 + 40 * rand(), 2 * rand(), pain, 110 + 50 * rand(), 180 + 90 * rand(),
        2 * rand(), 3 * rand(), 90 + 90 * rand(), 2 * rand(), 4 * rand(), 1 + 3 * rand(), i % 40 ? int(4 * rand()) ".0" : "?",
        i % 50 ? "3.0" : "?", pain } }' >"$folder/processed.cleveland.data"
imported heart.yaml 85
# A voice with the disease has a larger spread.
awk 'BEGIN { srand(8); printf "name"; for (k = 1; k <= 16; k++) printf ",MDVP:%d(Hz)", k; print ",status,RPDE,DFA,spread1,spread2,D2,PPE"
    for (i = 0; i < 200; i++) { sick = int(2 * rand()); printf "phon_R01_S%02d_%d", i / 6, 1 + i % 6
        for (k = 0; k < 16; k++) printf ",%.5f", 100 * rand(); printf ",%d", sick
        for (k = 0; k < 6; k++) printf ",%.6f", (k == 2 ? sick : 0) + rand() - 0.5; print "" } }' >"$folder/parkinsons.data"
imported parkinsons.yaml 85
# Who has the middle of the lowest row wins.
awk 'BEGIN { srand(9); split("b x o", piece, " "); split("draw win loss", end, " "); for (i = 0; i < 1500; i++) { for (k = 0; k < 42; k++) {
    which = 1 + int(3 * rand()); if (k == 18) middle = which; printf "%s,", piece[which] } print end[middle] } }' >"$folder/connect-4.data"
gzip -c "$folder/connect-4.data" >"$folder/connect-4.data.Z" # what packs it is found by content
imported connect4.yaml 85

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
