#!/bin/bash
# Pictures with masks: a file of a few lines trains, eval measures intersection over union, predict writes masks that
# are those of the training data again, and mistakes are told with the file and what to do.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

# shellcheck disable=SC2046 # words are wanted
cc -std=c17 -D_GNU_SOURCE -I"$SIGMA_SOURCE_DIR/tests/data" "$SIGMA_SOURCE_DIR/tests/cli/write_masks.c" \
    -o write_masks $(pkg-config --cflags --libs libpng libjpeg) >out 2>err
verdict 'the program that writes masks is compiled' $?
./write_masks shapes 150 16

cat >shapes.yaml <<'YAML'
network: auto
data:
  training: {images: shapes/photos, masks: shapes/masks}
  split: {share: [0.8, 0.1, 0.1]}
  batch: 8
  augment: flip(0.5, 0.5) + shift(2) + rotate(20)
optimiser: {type: adam, learning_rate: 0.003}
epochs: 12
seed: 1
YAML

# --- training ---
run 0 data shapes.yaml
has out 'inputs.*3, 16, 16'
has out 'targets.*16, 16'
run 0 train shapes.yaml --folder run
has out '^network: down0 = input\(3, 16, 16\) \+ convolution\(16, 3, relu, same\).*add\(down0, up0\).*convolution\(3, 1\) \+ permute\(2, 3, 1\) \+ softmax_cross_entropy$'
grep -aq 'kind.":."masked pictures' run/checkpoint.safetensors
verdict 'the checkpoint has the pipeline' $? out
run 0 train run --resume epochs=13 --quiet

# --- measuring ---
run 0 eval run --json
has out '"mean_iou": (1|0\.[89])'
has out '"accuracy": (1|0\.9)'
run 0 eval run shapes/photos --masks shapes/masks
has out '^shapes/photos: .*\(150 examples\)$'
has out 'mean_iou (1\.0|0\.[89])'
run 0 eval run --metrics 'mean_iou' --data test
has out 'mean_iou (1\.0|0\.[89])'

# --- masks of pictures ---
run 0 predict run shapes/photos/0.png --output one.png
has out '^shapes/photos/0\.png: 0 [0-9.]+ %, 1 [0-9.]+ %, 2 [0-9.]+ %$'
run 0 predict run shapes/photos/?.png shapes/blue.jpg --output written
same 'a mask for each picture' "$(find written -name '*.png' | wc -l)" 11
cmp one.png written/0.png >out 2>err
verdict 'masks do not depend on their number' $?
# What was predicted are masks that can be learnt from, and in which most pixels are right.
mkdir copies && cp shapes/photos/?.png copies
run 0 eval run copies --masks written
has out 'mean_iou 1\.0000'
run 0 data --clear-cache
run 0 train shapes.yaml data.training.masks=written data.training.images=copies data.split.share=0.5 epochs=1 --folder second --quiet
run 0 predict run shapes/photos/0.png --json
has out '^\{"file": "shapes/photos/0\.png", "shares": \{"0": [0-9.]+, "1": [0-9.e-]+, "2": [0-9.e-]+\}\}$'
# The exported C takes the same pixels, and gives as many of each class.
run 0 export --c shapes.c run
cat >main.c <<'END'
#define SHAPES_DECLARATIONS
#include "shapes.c"
#include <png.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    static unsigned char pixels[SHAPES_WIDTH * SHAPES_HEIGHT * SHAPES_CHANNELS];
    static SHAPES_REAL outputs[SHAPES_PREDICT_OUTPUTS];
    enum { CLASSES = SHAPES_PREDICT_OUTPUTS / (SHAPES_WIDTH * SHAPES_HEIGHT) };
    int counts[CLASSES] = {0};
    png_image image = {.version = PNG_IMAGE_VERSION};
    if (argc < 2 || !png_image_begin_read_from_file(&image, argv[1]))
        return 1;
    image.format = PNG_FORMAT_RGB;
    if (!png_image_finish_read(&image, NULL, pixels, 0, NULL) || shapes_predict_pixels(pixels, outputs) != 0)
        return 2;
    for (int i = 0; i < SHAPES_WIDTH * SHAPES_HEIGHT; i++) {
        int best = 0;
        for (int k = 1; k < CLASSES; k++)
            best = outputs[i * CLASSES + k] > outputs[i * CLASSES + best] ? k : best;
        counts[best]++;
    }
    for (int k = 0; k < CLASSES; k++)
        printf("%s %d\n", shapes_class(k), counts[k]);
    return 0;
}
END
# shellcheck disable=SC2046 # words are wanted
cc -std=c17 -Wall -Wextra -O1 shapes.c main.c -o program $(pkg-config --cflags --libs libpng) -lm >out 2>err
code 0 $? 'a program with the exported C of masks is compiled'
for photo in 0 1 2; do
    run 0 predict run "shapes/photos/$photo.png" --json
    sed 's/.*"shares": {//' out | grep -oE '"[0-9]+": [0-9.e-]+' | tr -d '":' | awk '{ printf "%s %d\n", $1, $2 * 256 + 0.5 }' >wanted
    ./program "shapes/photos/$photo.png" >counted
    same "pixels of each class of photo $photo" "$(cat counted)" "$(cat wanted)"
done
run 0 predict run shapes/blue.jpg --output blue.png
file blue.png 2>/dev/null | grep -q 'PNG' && has_size=$(file blue.png | grep -c '40 x 20') || has_size=1
same 'a mask has the size of its picture' "$has_size" 1

run 1 predict run photos.npy --output blue.png
has err '^sigma predict: --output: masks are written of files, as in sigma predict run cat\.png$'

# --- serving: the class of each pixel, as predict counts them ---
run 0 predict run shapes/photos/0.png --json
sed -E 's/.*"shares": \{"0": ([^,]+), "1": ([^,]+), "2": ([^}]+)\}.*/\1 \2 \3/' out |
    awk '{printf "%.0f %.0f %.0f", 256 * $1, 256 * $2, 256 * $3}' >wanted
serve run
curl -s -H 'Authorization: Bearer 0123456789abcdef-secret' -F picture=@shapes/photos/0.png "$address/api/predict" >out 2>err
grep -oE '"class":[^a-z"]*' out | tr -cs '0-9' '\n' |
    awk '/./ {count[$0]++} END {printf "%d %d %d", count[0], count[1], count[2]}' >served
same 'served classes of pixels' "$(cat served)" "$(cat wanted)"
end_serve

# --- grey masks, scaled ---
./write_masks greys 40 20 grey
run 0 train shapes.yaml data.training.images=greys/photos data.training.masks=greys/masks 'data.training.size=[12, 8]' \
    data.split.share=0.8 epochs=1 --folder grey --quiet
run 0 predict grey greys/photos/0.png
has out '^greys/photos/0\.png: 0 [0-9.]+ %, 128 [0-9.]+ %, 255 [0-9.]+ %$'

# --- mistakes ---
run 1 predict run shapes/photos/?.png --output many.png
has err 'many\.png is one mask, and there are 10 pictures; name a folder'
run 1 train shapes.yaml data.augment='mixup(0.2)' --folder mixed
has err 'mixup: targets are the class of each pixel'
rm shapes/masks/7.png
run 1 train shapes.yaml --folder missing
has err 'shapes/photos/7\.png: its mask was expected as .*shapes/masks/7\.png'
cp shapes/photos/7.png shapes/masks/7.png
run 1 train shapes.yaml --folder colours
has err 'shapes/masks/7\.png: a mask is a PNG file with a palette, or of grey'
cp greys/masks/7.png shapes/masks/7.png
run 1 train shapes.yaml --folder size
has err 'shapes/masks/7\.png is 20 x 20 pixels, but its picture .*shapes/photos/7\.png is 16 x 16'
printf 'no picture' >shapes/masks/7.png
run 1 train shapes.yaml --folder broken
has err 'shapes/masks/7\.png: a mask is a PNG file, and this is none'
printf 'data: {training: {inputs: x.npy, masks: shapes/masks}}\nnetwork: input(1) + dense(1) + mean_squared\n' >bare.yaml
run 2 train bare.yaml
has err 'data\.training: masks are those of images, which are missing'

finish
