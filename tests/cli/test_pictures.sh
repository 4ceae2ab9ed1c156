#!/bin/bash
# Folders of pictures: a file of a few lines trains, predict, eval and serve take the files and answer with the names
# of the classes, and mistakes are told with the file and what to do.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

# shellcheck disable=SC2046 # words are wanted
cc -std=c17 -D_GNU_SOURCE -I"$SIGMA_SOURCE_DIR/tests/data" "$SIGMA_SOURCE_DIR/tests/cli/write_pictures.c" \
    -o write_pictures $(pkg-config --cflags --libs libpng libjpeg) >out 2>err
verdict 'the program that writes pictures is compiled' $?
./write_pictures pets 200 16
same 'so many pictures' "$(find pets -name '*.png' | wc -l)" 600

cat >pets.yaml <<'YAML'
network: auto
data:
  training: {images: pets}
  split: {share: [0.7, 0.15, 0.15]}
  batch: 32
epochs: 5
seed: 1
YAML

# --- looking, training ---
run 0 data pets
has out '^pets: 600 pictures in 3 classes, 16 x 16 pixels$'
has out '^  rabbit: 200, 16 x 16 pixels$'
run 0 data pets.yaml
has out 'inputs.*3, 16, 16'
run 0 train pets.yaml --folder run
has out '^network: input\(3, 16, 16\) \+ convolution\(16, 3, relu, same\) \+ max_pooling\(2\) \+ convolution\(32, .*dense\(3\) \+ softmax_cross_entropy$'
has out '^validation: .*accuracy (100\.00|9[5-9]\.[0-9]+) % \(90 examples\)$'
has out '^test: .*accuracy (100\.00|9[5-9]\.[0-9]+) % \(90 examples\)$'
grep -aq 'kind.":."pictures' run/checkpoint.safetensors
verdict 'the checkpoint has the pipeline' $? out
run 0 train run --resume epochs=6 --quiet
run 0 train pets.yaml 'data.augment=flip(0.5)' epochs=1 --folder augmented --quiet

# --- a folder itself ---
run 0 train pets/ epochs=1 --folder itself
has out '^network: input\(3, 16, 16\) \+ convolution'
has out '^validation: .*\(120 examples\)$'
has itself/config.yaml '^    images: .*/pets$'
has itself/config.yaml 'early_stopper\(validation\.loss, patience=10\)'
(cd pets && "$sigma" train . epochs=1 --folder ../beside --quiet >../out 2>../err)
code 0 $? 'the folder where one is'
mkdir -p hollow
run 2 train hollow
has err "^sigma train: 'hollow' has no config\.yaml, .*and no pictures, sounds or texts in folders of classes"
run 2 train pets --resume
has err "'pets' has no config\.yaml, .*nothing can be resumed"
run 2 train pets --target a
has err '--target is for a table, FILE\.csv'

# --- asking ---
run 0 predict run pets/cat/0.png pets/dog/7.png blue.jpg
has out '^pets/cat/0\.png: cat 0\.[0-9]{4} \(dog 0\.[0-9]{4}, rabbit 0\.[0-9]{4}\)$|^pets/cat/0\.png: cat 1\.0000'
has out '^pets/dog/7\.png: dog '
has out '^blue\.jpg: (cat|dog|rabbit) '
run 0 predict run pets/rabbit/3.png --json
has out '^\{"file": "pets/rabbit/3\.png", "class": "rabbit", "probability": [0-9.]+, "probabilities": \{"cat": [0-9.e-]+, "dog": [0-9.e-]+, "rabbit": [0-9.]+\}\}$'
# More than a chunk, each picture in its class.
run 0 predict run pets/*/?.png pets/*/1?.png
same 'answers for several chunks' "$(grep -cE 'pets/(cat|dog|rabbit)/[0-9]+\.png: (cat|dog|rabbit) ' out)" 60
same 'right ones among them' "$(sed -nE 's,^pets/([a-z]+)/[0-9]+\.png: ([a-z]+) .*,\1 \2,p' out | awk '$1 == $2 {right++} END {print (right >= 57)}')" 1
sed -nE 's,^(pets/[a-z]+/[0-9]+\.png): ([a-z]+) .*,\1\,\2,p' out >printed
run 0 predict run pets/*/?.png pets/*/1?.png --output answers.csv
same 'the table of answers says how many' "$(cat out)" 'answers.csv: 60 predictions'
same 'its header' "$(head -1 answers.csv)" 'file,prediction,probability_cat,probability_dog,probability_rabbit'
same 'it has the answers that are printed' "$(tail -n +2 answers.csv | cut -d, -f1,2)" "$(cat printed)"
cp pets/cat/0.png 'cat, "quoted".png'
run 0 predict run 'cat, "quoted".png' --output quoted.csv
has quoted.csv '^"cat, ""quoted""\.png",cat,0\.[0-9]+,'
run 1 predict run pets/dog/7.png --output answers.csv --id a
has err '^sigma predict: --id copies columns of a table by its columns. names; this input has no such names$'
run 0 predict run --data test --output test.csv
same 'examples of a dataset have no files' "$(head -1 test.csv), $(wc -l <test.csv)" 'prediction,probability_cat,probability_dog,probability_rabbit, 91'
run 0 predict run pets/cat/0.png pets/dog/7.png --count 1
same '--count is for files, too' "$(cut -d: -f1 out)" pets/cat/0.png
run 1 predict run pets/cat/0.png --unknown=ignore
has err "^sigma predict: --unknown is for categories of a table by its columns' names; leave it out"
run 1 predict run cat.png missing.png --output never.csv
[ ! -e never.csv ]
verdict 'no table of answers where a file cannot be read' $?
run 0 predict run --data test
same 'as many answers as examples' "$(wc -l <out)" 90
run 0 eval run pets/
has out '^pets/: .*\(600 examples\)$'
has out '^  2 rabbit '
run 1 eval run pets/ --unknown=ignore
has err '--unknown is for categories of a table, and the network was trained on pictures; leave it out'
# Mistakes are told with the names of the files; those of a part are the part's own.
mkdir -p mixed/cat mixed/dog && cp pets/cat/[0-3].png mixed/cat && cp pets/dog/[0-3].png mixed/dog
cp pets/cat/9.png mixed/dog/wrong.png
run 0 eval run mixed
has out "^  worst mistakes: .*mixed/dog/wrong\\.png, dog predicted as cat"
run 0 eval run mixed --json
has out '"worst_mistakes_files": \[("[^"]*", )*"mixed/dog/wrong\.png"'
cp -r pets kept
for picture in pets/cat/*; do
    cp pets/dog/1.png "$picture"
done
run 0 eval run --data test --json
sed 's/.*"worst_mistakes_files": //' out | grep -o '/pets/[a-z]*/' | sort | uniq -c >files
has files '^ *[1-9][0-9]* /pets/cat/$'
same 'only cats are taken for others' "$(grep -vc cat files)" 0
rm -r pets && mv kept pets
# A folder of other sizes, with one class, is measured by the names.
mkdir -p others && ./write_pictures others 5 24 && rm -r others/cat others/dog
run 0 eval run others
has out '^others: .*\(5 examples\)$'

# --- other shapes ---
run 0 train pets.yaml 'data.training={images: pets, size: [12, 8], channels: 1}' epochs=1 --folder grey
has out '^network: input\(1, 8, 12\) '
run 1 train pets.yaml 'network=input(3, 8, 8) + dense(3) + softmax_cross_entropy' epochs=1 --folder sides
has err 'wants \(3, 8, 8\): .*; of pictures, .size. scales them$'
echo '{data: {training: {images: pets}, split: {folds: 2}}, epochs: 1}' >folds.yaml
run 0 train folds.yaml --folder folds --quiet

# --- serving ---
serve run
ask()
{
    curl -s -H 'Authorization: Bearer 0123456789abcdef-secret' "$@" "$address/api/predict" >out 2>err
}
cp pets/cat/5.png cat.png
eval "$(grep '^curl' serve.out) -s" >out 2>err
has out '"class":\[0\],"label":\["cat"\]'
ask -F a=@pets/dog/1.png -F b=@pets/rabbit/1.png -F c=@cat.png
has out '"label":\["dog","rabbit","cat"\]'
ask -H 'Content-Type: image/png' --data-binary @pets/dog/1.png
has out '"label":\["dog"\]'
ask -H 'Content-Type: image/jpeg' --data-binary @blue.jpg
has out '"output":\[\[[0-9.e,-]+\]\]'
ask -F a=@pets.yaml
has out '"error":"pets\.yaml: a PNG or JPEG image was expected'
ask -F a=text
has out 'part 1 of the form is no file; send pictures as files, such as curl -F picture=@cat\.png'
ask -H 'Content-Type: multipart/form-data' --data-binary x
has out 'names no boundary'
ask -H 'Content-Type: multipart/form-data; boundary=x' --data-binary '--x'
has out 'the form does not end with its boundary'
ask -H 'Content-Type: image/png' --data-binary ''
has out 'the body: a PNG or JPEG image was expected, no byte came'
ask -H 'Content-Type: text/css' --data-binary x
has out 'expected a body of one of the types application/json image/png'
ask -H 'Content-Type: application/json' -d '{"input": [{"a": 1}]}'
has out 'expected the shape \(3, 16, 16\)'
same 'without the token' "$(curl -s -o /dev/null -w '%{http_code}' -F a=@cat.png "$address/api/predict")" 401
end_serve
run 0 train "$examples/iris.yaml" epochs=1 --quiet --folder iris
run 1 eval iris pets
has err 'on folders of files \(images'
run 1 predict iris pets/cat/0.png pets/dog/0.png
has err 'one file was expected, got 2; only pictures and the like can be several'

# --- mistakes ---
# mistake PATTERN: training on the folder `wrong` fails so, and leaves no folder of a run.
mistake()
{
    run 1 train wrong.yaml --folder mistaken
    has err "$1"
    [ ! -e mistaken ]
    verdict "a mistake leaves no folder: $1" $?
}
echo '{data: {training: {images: wrong}}, epochs: 1}' >wrong.yaml
mistake 'wrong: the folder cannot be read'
mkdir wrong
mistake 'wrong: no picture was found; PNG and JPEG files were expected in folders'
mkdir wrong/cat
mistake 'wrong/cat: the folder of a class has no picture'
cp cat.png wrong/cat
mistake "wrong: there is a single class, 'cat'; at least two folders"
mkdir wrong/dog && cp cat.png wrong/dog/1.png && cp cat.png wrong/stray.png
mistake 'wrong/stray\.png: the picture lies beside the folders of the classes'
rm wrong/stray.png && touch wrong/dog/x.webp
mistake 'wrong/dog/x\.webp: PNG and JPEG pictures are read; convert it'
rm wrong/dog/x.webp && mkdir wrong/dog/more
mistake 'wrong/dog/more: a folder within the folder of a class'
rmdir wrong/dog/more && echo text >wrong/dog/2.png
mistake 'wrong/dog/2\.png: a PNG or JPEG image was expected'
head -c 200 cat.png >wrong/dog/2.png
mistake 'wrong/dog/2\.png: cannot be decoded at byte'
cp others/rabbit/0.png wrong/dog/2.png
mistake 'wrong/dog/2\.png is 24 x 24 pixels, but .*/wrong/dog/1\.png is 16 x 16; .*such as size: \[16, 16\]'
run 0 data wrong
has out '^sizes differ: say to which all are scaled, such as size: \[16, 16\]'
mkdir fish && cp -r pets/cat fish/fish
run 1 eval run fish
has err 'fish/fish: a class that no training picture had; .*cat, dog, rabbit'
run 1 predict run pets.yaml
has err 'pets\.yaml: a PNG or JPEG image was expected'
run 1 predict run cat.png missing.png
has err 'missing\.png'
run 1 predict run pets/
has err 'pets/: is a folder; name its pictures'

# --- what is exported takes the bytes of pictures, and no rows of a table ---
run 0 export --c pets.c run
same 'no rows in C' "$(grep -c 'pets_row' pets.c)" 0
has pets.c '^int pets_predict_pixels\(const unsigned char \*pixels, PETS_REAL \*outputs\)$'
"$sigma" export --onnx pets.onnx run 2>err || grep -q 'built without ONNX' err
verdict 'pictures as an ONNX model' $? err

# --- mistakes of the file ---
run 2 train pets.yaml data.training.channels=2
has err 'data\.training\.channels: expected 1 \(grey\) or 3 \(colours\), got 2'
run 2 train pets.yaml 'data.training.size=[8, 0]'
has err 'expected pixels, a whole number from 1 to 32768'
run 2 train pets.yaml 'data.training.size=[8, 8, 3]'
has err 'expected \[width, height\], got 3'
run 2 train pets.yaml data.training.classes=3
has err 'classes of images are their folders'
run 2 train pets.yaml data.training.csv=a.csv
has err 'expected one of dataset, csv, inputs, images, .*text, chats, .*; got 2'
echo '{network: input(4) + dense(3) + softmax_cross_entropy, data: {training: iris, validation: {images: pets}}}' >mixed.yaml
run 2 train mixed.yaml
has err 'which has to be images then'
finish
