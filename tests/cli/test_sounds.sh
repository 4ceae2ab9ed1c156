#!/bin/bash
# Folders of sounds: a file of a few lines trains, predict, eval and serve take the files and answer with the names of
# the classes, and mistakes are told with the file and what to do.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

cc -std=c17 -D_GNU_SOURCE "$SIGMA_SOURCE_DIR/tests/cli/write_sounds.c" -o write_sounds -lm >out 2>err
verdict 'the program that writes sounds is compiled' $?
./write_sounds tones 60 8000 4000
same 'so many sounds' "$(find tones -name '*.wav' | wc -l)" 180

"$sigma" data tones >out 2>err
if grep -q 'install the package libsndfile1' err; then
    echo 'test_sounds.sh: skipped: libsndfile is not installed'
    echo "$passed passed, $failed failed, 1 skipped"
    exit $((failed > 0))
fi

cat >tones.yaml <<'YAML'
network: auto
data:
  training: {sounds: tones}
  split: {share: [0.7, 0.15, 0.15]}
  batch: 16
epochs: 4
seed: 1
YAML

# --- looking, training ---
run 0 data tones
has out '^tones: 180 sounds in 3 classes, 0\.5 s at 8000 Hz$'
has out '^  middle: 60, 0\.5 s at 8000 Hz$'
run 0 data tones.yaml
has out 'inputs.*1, 64, 51'
run 0 train tones.yaml --folder run
has out '^network: input\(1, 64, 51\) \+ convolution\(16, 3, relu, same\) \+ max_pooling\(2\) .*dense\(3\) \+ softmax_cross_entropy$'
has out '^validation: .*accuracy (100\.00|9[5-9]\.[0-9]+) % \(27 examples\)$'
has out '^test: .*accuracy (100\.00|9[5-9]\.[0-9]+) % \(27 examples\)$'
grep -aq 'kind.":."sounds' run/checkpoint.safetensors
verdict 'the checkpoint has the pipeline' $? out
run 0 train run --resume epochs=5 --quiet

# --- asking ---
run 0 predict run tones/low/0.wav tones/high/7.wav
has out '^tones/low/0\.wav: low 0\.[0-9]{4} \(high 0\.[0-9]{4}, middle 0\.[0-9]{4}\)$|^tones/low/0\.wav: low 1\.0000'
has out '^tones/high/7\.wav: high '
run 0 predict run tones/middle/3.wav --json
has out '^\{"file": "tones/middle/3\.wav", "class": "middle", "probability": [0-9.]+, "probabilities": \{"high": '
run 0 eval run tones/
has out '^tones/: .*\(180 examples\)$'
# Another rate and another length: the same tones.
./write_sounds others 5 22050 20000
run 0 eval run others
has out '^others: .*accuracy 100\.00 % \(15 examples\)$'

# --- other inputs ---
run 0 train tones.yaml 'data.training={sounds: tones, rate: 4000, seconds: 0.25, mels: 16, window: 128, hop: 50}' epochs=1 --folder small
has out '^network: input\(1, 16, 21\) '
run 0 train tones.yaml 'data.training={sounds: tones, rate: 4000, features: waveform}' --folder wave
has out '^network: input\(1, 2000\) \+ convolution_1d\(16, 9, relu, same\) \+ max_pooling_1d\(4\) '
has out '^validation: .*accuracy (100\.00|9[5-9]\.[0-9]+) % \(27 examples\)$'

# --- serving ---
ask()
{
    curl -s -H 'Authorization: Bearer 0123456789abcdef-secret' "$@" "$address/api/predict" >out 2>err
}
serve run
cp tones/high/5.wav tone.wav
eval "$(grep '^curl' serve.out) -s" >out 2>err
has out '"class":\[0\],"label":\["high"\]'
ask -F a=@tones/low/1.wav -F b=@tones/middle/1.wav
has out '"label":\["low","middle"\]'
ask -H 'Content-Type: audio/wav' --data-binary @tones/low/2.wav
has out '"label":\["low"\]'
ask -H 'Content-Type: image/png' --data-binary @tones/low/2.wav
has out 'the network takes sounds, of one of the types audio/wav'
ask -F a=@tones.yaml
has out '"error":"tones\.yaml: a WAV or FLAC file was expected'
ask -H 'Content-Type: audio/wav' --data-binary ''
has out 'the body: a WAV or FLAC file was expected, no byte came'
head -c 5000 tone.wav >cut.wav
ask -H 'Content-Type: audio/wav' --data-binary @cut.wav
has out 'the body: the file is cut off: it has 5000 bytes of 8044'
end_serve

# --- words: the labels of ctc ---
./write_sounds words 400 8000
cat >words.yaml <<'YAML'
data:
  training: {sounds: words/words.csv, mels: 24, hop: 160}
  split: 0.8
  batch: 16
optimiser: {type: adam, learning_rate: 0.01}
epochs: 6
seed: 1
YAML
run 0 train words.yaml --folder heard
has out '^network: input\([0-9]+, 24, lengths=lengths\) \+ gru\(64, bidirectional\) \+ dense\(5, time_distributed\) \+ ctc\(4\)$'
has out '^validation: loss 0\.[0-9]+ \(80 examples\)$'
run 0 predict heard words/*.wav
sort out | sed 's,^words/,,; s,: ,\,,' >answers
tail -n +2 words/words.csv | sort >wanted
same 'words that are heard without a mistake, of 400 at least 380' "$(comm -12 answers wanted | awk 'END {print (NR >= 380)}')" 1
run 0 predict heard words/*.wav --output heard.csv
same 'a table of what is heard' "$(head -1 heard.csv)" 'file,prediction'
same 'the same words' "$(tail -n +2 heard.csv | sed 's,^words/,,' | sort)" "$(sed 's/ *$//' answers)"
run 0 predict heard words/0.wav --json
has out "^\{\"file\": \"words/0\.wav\", \"text\": \"$(sed -n 's/^0\.wav,//p' words/words.csv)\"\}$"
run 0 eval heard words/words.csv
has out '^words/words\.csv: loss 0\.[0-9]+ \(400 examples\)$'
has out '^  character_error_rate 0\.0[0-4][0-9]*, text_accuracy (0\.9[5-9]|1\.00)'
# What is counted, by hand: of three texts of two letters one loses its last letter.
{ head -n 1 words/words.csv; grep -E '^[0-9]+\.wav,(ab|ba)$' words/words.csv | head -n 3; } >words/three.csv
run 0 eval heard words/three.csv --json
has out '"character_error_rate": 0, "text_accuracy": 1'
sed -E '2s/,(.).$/,\1/' words/three.csv >words/short.csv
run 0 eval heard words/short.csv --json
has out '"character_error_rate": 0\.2, "text_accuracy": 0\.66666'
run 0 predict heard --data validation --count 2
same 'texts of two examples' "$(grep -cE '^[abcd]{1,4}$' out)" 2
serve heard
ask -F a=@words/0.wav
has out "\"label\":\[\[$(sed -n 's/^0\.wav,//p' words/words.csv | sed 's/./"&",/g; s/,$//')\]\]"
end_serve
run 1 eval heard tones
has err "was trained on a table with the columns 'file' and 'text'"
run 1 eval run words/words.csv
has err 'was trained on a folder of classes'

# --- mistakes ---
mistake()
{
    run 1 train wrong.yaml --folder mistaken
    has err "$1"
    [ ! -e mistaken ]
    verdict "a mistake leaves no folder: $1" $?
}
echo '{data: {training: {sounds: wrong}}, epochs: 1}' >wrong.yaml
mkdir -p wrong/low wrong/high
mistake 'wrong/high: the folder of a class has no sound; WAV and FLAC files were expected'
cp tone.wav wrong/high && cp tone.wav wrong/low/0.wav && touch wrong/low/x.mp3
mistake 'wrong/low/x\.mp3: WAV and FLAC sounds are read; convert it'
mv wrong/low/x.mp3 wrong/low/1.wav
mistake 'wrong/low/1\.wav: a WAV or FLAC file was expected, no byte came'
cp cut.wav wrong/low/1.wav
mistake 'wrong/low/1\.wav: the file is cut off: it has 5000 bytes of 8044'
cp others/low/0.wav wrong/low/1.wav
mistake 'wrong/low/1\.wav has 22050 samples a second, but .*/wrong/low/0\.wav has 8000; .*rate: 8000'
run 0 data wrong
has out '^rates differ: say to which all are brought, such as rate: 8000'
run 1 predict run tones.yaml
has err 'tones\.yaml: a WAV or FLAC file was expected'
run 1 predict run tones/
has err 'tones/: is a folder; name its sounds, tones//\*\.wav'

# --- mistakes of the file ---
run 2 train tones.yaml data.training.features=mfcc
has err "unknown 'mfcc'; there are log_mel, waveform"
run 2 train tones.yaml 'data.training={sounds: tones, features: waveform, mels: 8}'
has err 'mels, window and hop are for features: log_mel'
echo '{data: {training: {csv: a.csv, target: a, rate: 8000}}}' >mixed.yaml
run 2 train mixed.yaml
has err 'rate, seconds, features, mels, window and hop are for sounds'
run 2 train tones.yaml data.training.images=pets
has err 'expected one of dataset, csv, inputs, images, sounds, .*text, chats, .*; got 2'
echo '{network: input(4) + dense(3) + softmax_cross_entropy, data: {training: {images: pets}, validation: {sounds: tones}}}' >mixed.yaml
run 2 train mixed.yaml
has err 'which has to be sounds then'
finish
