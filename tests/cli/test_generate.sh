#!/bin/bash
# Texts from the command line: learning tokens, training on them, going on with a text.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

for _ in 1 2 3 4; do
    printf 'row, row, row your boat, gently down the stream. merrily, merrily, life is but a dream. '
done >song.txt

# --- tokens ---
run 0 tokenize song.txt --vocabulary 280 --output song.tokens
has out '^280 tokens in song.tokens; the text.s 352 bytes are [0-9]+ of them'
has song.tokens '^sigma-bpe 1$'
same "a line for each pair" "$(wc -l <song.tokens)" 25
run 2 tokenize song.txt
has err 'expected a text and --output FILE'
run 1 tokenize missing.txt --output none
has err "missing.txt"
run 1 tokenize song.txt --vocabulary 100 --output none
has err 'a tokenizer has 256 to 1048576 tokens, not 100'

# --- a network of bytes, and one of pairs ---
cat >bytes.yaml <<'YAML'
network: input(16) + embedding(256, 16) + lstm(48, forget_bias=1) + dense(256, time_distributed) + softmax_cross_entropy
data:
  training: {text: song.txt, window: 16, step: 1}
  validation: {text: song.txt, window: 16, share: 0.5}
  batch: 11
optimiser: {type: adam, learning_rate: 0.01}
seed: 1
epochs: 12
YAML
run 0 train bytes.yaml --folder bytes --quiet
same "that a letter is the target of the place before it is no leak" "$(grep -c 'correlation\|different sizes' err)" 0
run 0 generate bytes --text 'row, row, row yo' --count 32 --greedy
same "the song goes on" "$(cat out)" 'row, row, row your boat, gently down the stream.'
run 0 generate bytes --text 'row' --count 40 --temperature 3 --seed 5
cp out first
run 0 generate bytes --text 'row' --count 40 --temperature 3 --seed 5
same "the same seed says the same" "$(cat out)" "$(cat first)"
run 0 generate bytes --text 'row' --count 40 --temperature 3 --seed 6
[ "$(cat out)" != "$(cat first)" ]
verdict "another seed says something else" $?
run 0 generate bytes --numbers --text '114 111 119' --count 3 --greedy
has out '^114 111 119 44 32 114$'
run 0 generate bytes --count 5
same "without a text it begins at a line's end" "$(wc -l <out)" 1

sed 's/embedding(256/embedding(280/; s/dense(256/dense(280/; s/song.txt,/song.txt, tokenizer: song.tokens,/; s/window: 16/window: 8/; s/input(16)/input(8)/; s/lstm(48, forget_bias=1)/positions + transformer(2, causal)/' \
    bytes.yaml >pairs.yaml
run 0 train pairs.yaml --folder pairs --quiet
run 0 generate pairs --text 'row, row, row your' --count 12 --top-k 1
has out '^row, row, row your boat'
run 0 generate pairs --tokenizer song.tokens --text 'merrily' --count 3 --top-p 0.01
run 0 generate bytes --text 'row, row, row yo' --count 32 --min-p 1 --temperature 3
same "only the likeliest are as likely as the likeliest" "$(cat out)" 'row, row, row your boat, gently down the stream.'
run 0 generate bytes --text 'row, row, row yo' --count 8 --greedy --repetition-penalty 1000
same "no letter comes twice" "$(cut -c17- out | fold -w1 | sort | uniq -d | wc -l)" 0

# --- beams ---
run 0 generate bytes --text 'row, row, row yo' --count 32 --beams 3
same "beams go on with the song" "$(cat out)" 'row, row, row your boat, gently down the stream.'
run 0 generate bytes --text 'row, row, row yo' --count 12 --beams 2 --length-penalty 0 --stop ' boat'
same "beams end before a text" "$(cat out)" 'row, row, row your'
run 0 generate bytes --text 'row, row, row yo' --count 32 --greedy --stop gently --stop ' boat' --stop stream
same "of several texts to stop at the first that comes counts" "$(cat out)" 'row, row, row your'
run 2 generate bytes --stop a --stop ''
has err 'stop: expected a text that is not empty'
run 1 generate bytes --beams 5000
has err '--beams 5000: a generator reads 1 to 4096 sequences side by side, not 5000; take fewer'
run 2 generate bytes --beams 2 --top-k 3
has err 'beams: expected without --temperature'
run 2 generate bytes --length-penalty 2
has err 'length-penalty: expected with --beams of 2 or more only'
run 2 generate bytes --beams 2 --length-penalty x
has err "length-penalty: expected a number, got 'x'"

# --- several texts ---
printf 'row, row, row yo\nmerrily, mer\n\nlife is but a "dr\n' >texts.txt
run 0 generate bytes --texts texts.txt --count 12 --greedy --batch 2
same "a line for each text" "$(wc -l <out)" 4
has out '^\{"text":"merrily, mer","continuation":"rily, merril"\}$'
has out '^\{"text":"life is but a \\"dr","continuation":"'
"$sigma" generate bytes --texts - --count 8 --greedy --stop , <texts.txt >out 2>err
code 0 $? 'texts of the standard input'
has out '^\{"text":"row, row, row yo","continuation":"ur boat"\}$'
printf '114 111 119\n109 101 114 114\n\n100 114 101\n32\n' >numbers.txt
run 0 generate bytes --numbers --texts numbers.txt --count 12 --temperature 2 --seed 4 --batch 3
cp out together
while IFS= read -r text; do
    run 0 generate bytes --numbers --text "${text:-0}" --count 12 --temperature 2 --seed 4
    cut -c"$((1 + ${#text} + (${#text} == 0)))-" out | sed "s/^/$text/"
done <numbers.txt >alone
same "each is what it is alone" "$(cat together)" "$(grep '[0-9] ' alone)"
printf '1\n300\n' >numbers.txt
run 1 generate bytes --numbers --texts numbers.txt
has err 'numbers.txt, from line 1 on: text 1: 300 is no token'
printf '1\nx\n' >numbers.txt
run 1 generate bytes --numbers --texts numbers.txt
has err "numbers.txt, line 2: the text: expected whole numbers, got 'x'"
printf 'a\0b\n' >zero.txt
run 1 generate bytes --texts zero.txt
has err 'zero.txt, line 1: expected a text, got a zero byte'
run 1 generate bytes --texts missing.txt
has err 'missing.txt'
: >none.txt
run 1 generate bytes --texts none.txt
has err 'none.txt: expected at least one line'
run 0 generate bytes --texts texts.txt --count 8 --beams 2
has out '^\{"text":"row, row, row yo","continuation":"ur boat,"\}$'
same "a line for each text of beams" "$(wc -l <out)" 4
run 2 generate bytes --texts texts.txt --beams 2 --batch 2
has err 'batch: expected with --texts only, and not with --beams'
run 2 generate bytes --texts texts.txt --text row
has err 'text, --texts: expected one of them'
run 2 generate bytes --text row --text boat
has err '^sigma generate: --text is given 2 times; several texts are lines of --texts FILE; see'
run 2 predict bytes --text row --text boat
has err '^sigma predict: --text is given 2 times; several texts are lines of FILE.txt, or with '
run 0 generate bytes --text row --count 40
same "a network of bytes goes on for ever" "$(cat err)" ''
run 2 generate bytes --text row --batch 2
has err 'batch: expected with --texts only'

# --- mistakes ---
run 1 generate bytes --tokenizer song.tokens
has err "the tokenizer song.tokens has 280 tokens, but layer '1-embedding' knows 256: both must be of one size; --tokenizer names another"
cp pairs/checkpoint.safetensors alone.safetensors
run 0 generate alone.safetensors --text row --count 3 --seed 1
has err "^warning: the tokenizer of bytes has 256 tokens, but layer '1-embedding' knows 280"
run 1 generate bytes --tokenizer song.txt
has err 'song.txt: this is no tokenizer'
run 1 generate bytes --numbers --text '1 x'
has err "expected whole numbers, got 'x'"
run 1 generate bytes --numbers --text '256'
has err '256 is no token'
run 2 generate bytes --top-k 0
has err "top-k: expected a whole number of at least 1, got '0'; see"
run 2 generate bytes --temperature 0
has err "^sigma generate: --temperature: expected a number from 1e-06 to 1000000, got '0'; --greedy takes the likeliest token each time; see"
run 2 generate bytes --temperature nan
has err "temperature: expected a number from 1e-06 to 1000000, got 'nan'"
run 2 generate bytes --top-p 0
has err "^sigma generate: --top-p: expected a number from 1e-06 to 1, got '0'; see"
run 2 generate bytes --top-p 1.5
has err "top-p: expected a number from 1e-06 to 1, got '1.5'"
run 2 generate bytes --min-p 1.5
has err "min-p: expected a number from 0 to 1, got '1.5'"
run 2 generate bytes --repetition-penalty 0
has err "repetition-penalty: expected a number from 1e-06 to 1000000, got '0'"
run 2 generate bytes --text ''
has err 'expected something to begin with'
run 2 generate
has err 'expected one checkpoint or folder of a run'
sed 's/lstm(48, forget_bias=1)/lstm(8, bidirectional)/; s/epochs: 12/epochs: 1/' bytes.yaml >ahead.yaml
run 0 train ahead.yaml --folder ahead --quiet
run 1 generate ahead
has err "^sigma generate: the network does not continue texts, 'sigma predict' is for it: .*sequences cannot be read step by step: it begins with the last one"
sed 's/song.txt,/song.txt, tokenizer: missing.tokens,/' bytes.yaml >missing.yaml
run 1 train missing.yaml --folder missing
has err 'missing.tokens'

finish
