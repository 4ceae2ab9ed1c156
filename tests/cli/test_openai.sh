#!/bin/bash
# sigma serve --openai: what client programs of OpenAI's API send, and what they should not.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

# ask ROUTE BODY [OPTIONS OF CURL]: the answer's body in out, its code in `status`.
ask()
{
    status=$(curl -s -N -o out -w '%{http_code}' -H "Authorization: Bearer $(cat token)" \
        -H 'Content-Type: application/json' --data-binary "$2" "${@:3}" "$address/v1/$1" 2>err)
}

# gives ROUTE BODY PATTERN: the answer has the code 200 and matches.
gives()
{
    ask "$1" "$2"
    same "$2" "$status" 200
    has out "$3"
}

# refuses ROUTE CODE BODY PARAM PATTERN: an error object for a parameter ("null": for none) whose message matches.
refuses()
{
    ask "$1" "$3"
    same "$3" "$status" "$2"
    has out "\"param\":$4,"
    has out "^\{\"error\":\{\"message\":\".*$5"
}

# --- wrong usage ---
run 2 serve run --tokenizer file
has err '--tokenizer: expected with --openai only'
run 2 serve run --openai --unknown=ignore
has err '--unknown: expected without --openai only'
run 0 train "$examples/iris.yaml" epochs=1 --quiet --folder flowers
run 1 serve flowers --openai
has err '^sigma serve: '

# --- a model of others that answers chats; its tokens are letters ---
cp -r "$SIGMA_SOURCE_DIR/tests/models/fixtures/gpt2" model
sed -i '/"eos_token_id"/d' model/config.json model/generation_config.json # of the fixture's own tokens
awk 'BEGIN {
    printf "{\"model\": {\"type\": \"BPE\", \"merges\": [], \"vocab\": {\"Ġ\": 0, \"<|im_start|>\": 58, \"<|im_end|>\": 59"
    for (i = 1; i < 27; i++) printf ", \"%c\": %d", 96 + i, i
    print "}}, \"added_tokens\": [{\"id\": 58, \"content\": \"<|im_start|>\", \"special\": true},"
    print "{\"id\": 59, \"content\": \"<|im_end|>\", \"special\": true}], \"decoder\": {\"type\": \"ByteLevel\"},"
    print "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false}}" }' >model/tokenizer.json
# shellcheck disable=SC2016 # dollars of the template
template='{% for message in messages %}{{'"'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'"'}}{% endfor %}{% if add_generation_prompt %}{{ '"'<|im_start|>assistant\\n'"' }}{% endif %}'
echo "{\"eos_token\": \"<|im_end|>\", \"chat_template\": \"$template\"}" >model/tokenizer_config.json
for i in a b c d e f g h; do
    echo "{\"messages\": [{\"role\": \"user\", \"content\": \"$i\"}, {\"role\": \"assistant\", \"content\": \"yes\"}]}"
done >chats.jsonl
run 0 finetune model --data chats.jsonl --into speaker --epochs 30 --learning-rate 0.02 --context 32 --quiet
# Every token that the model names ends a text: "e" is 5.
cp -r speaker short
sed -i 's/^{/{"eos_token_id": [59, 5],/' short/model/generation_config.json
run 0 generate short --chat --text d --greedy
same "a second token that ends a text" "$(cat out)" y
run 0 generate short --chat --text d --beams 2
same "the same of beams" "$(cat out)" y
serve speaker --openai --log-level debug
has serve.out '^serve: http://127\.0\.0\.1:[0-9]+/v1, model speaker$'
line=$(grep '^curl' serve.out)
eval "${line/Hello/d} -s" >out 2>err
has out '"object":"text_completion"'

# --- who may ask, and what there is ---
curl -s "$address/v1/models" >out
has out '^\{"error":\{"message":"the token is missing.*","type":"invalid_request_error","param":null,"code":"invalid_api_key"\}\}$'
curl -s -H "Authorization: Bearer $(cat token)" "$address/v1/models" >out
has out '^\{"object":"list","data":\[\{"id":"speaker","object":"model","created":[0-9]+,"owned_by":"sigma"\}\]\}$'
curl -s -H "Authorization: Bearer $(cat token)" "$address/v1/models/speaker" >out
has out '^\{"id":"speaker","object":"model"'
curl -s -H "Authorization: Bearer $(cat token)" "$address/v1/models/gpt" >out
has out "there is no such model here; the model is 'speaker'"

# --- chats ---
user='"messages": [{"role": "user", "content": "d"}]'
gives chat/completions "{$user, \"temperature\": 0, \"user\": \"me\", \"metadata\": {\"a\": \"b\"}}" \
    '^\{"id":"chatcmpl-[0-9a-f]{16}","object":"chat\.completion","created":[0-9]+,"model":"speaker","choices":\[\{"index":0,"message":\{"role":"assistant","content":"yes","refusal":null\},"logprobs":null,"finish_reason":"stop"\}\],"usage":\{"prompt_tokens":17,"completion_tokens":4,"total_tokens":21\}\}$'
gives chat/completions "{$user, \"temperature\": 0, \"max_completion_tokens\": 2, \"max_tokens\": 9}" \
    '"content":"ye",.*"finish_reason":"length".*"completion_tokens":2,'
gives chat/completions "{$user, \"temperature\": 0, \"stop\": [\"x\", \"s\"]}" '"content":"ye",.*"finish_reason":"stop"'
gives chat/completions '{"messages": [{"role": "user", "content": [{"type": "text", "text": "d"}], "tool_calls": null}], "top_p": 0}' \
    '"content":"yes"'
run 0 generate speaker --chat --text d --seed 7 --temperature 3
said=$(cat out)
gives chat/completions "{$user, \"temperature\": 3, \"seed\": 7, \"model\": \"speaker\"}" "\"content\":\"$said\""
ask chat/completions "{$user, \"temperature\": 3}"
sed -E 's/"(id|created)":[^,]*,//g' out >first
for _ in 1 2 3 4 5 6 7 8; do
    ask chat/completions "{$user, \"temperature\": 3}"
    sed -E 's/"(id|created)":[^,]*,//g' out | cmp -s - first || break
done
! sed -E 's/"(id|created)":[^,]*,//g' out | cmp -s - first
verdict "without a seed answers differ" $?

# --- the same as events ---
ask chat/completions "{$user, \"temperature\": 0, \"stream\": true, \"stream_options\": {\"include_usage\": true}}" -D headers
has headers '^Content-Type: text/event-stream'
same "all events are of one answer" "$(grep -o '"id":"[^"]*"' out | sort -u | wc -l)" 1
sed -E 's/^data: \{"id":"[^"]*","object":"chat\.completion\.chunk","created":[0-9]+,"model":"speaker",//' out >events
cat >expected <<'EVENTS'
"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"usage":null}

"choices":[{"index":0,"delta":{"content":"y"},"logprobs":null,"finish_reason":null}],"usage":null}

"choices":[{"index":0,"delta":{"content":"e"},"logprobs":null,"finish_reason":null}],"usage":null}

"choices":[{"index":0,"delta":{"content":"s"},"logprobs":null,"finish_reason":null}],"usage":null}

"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null}

"choices":[],"usage":{"prompt_tokens":17,"completion_tokens":4,"total_tokens":21}}

data: [DONE]

EVENTS
cmp expected events >err
verdict "the events of a chat" $? events
ask chat/completions "{$user, \"temperature\": 0, \"stream\": true, \"stop\": \"s\"}"
same "a stop text in events" "$(grep -o '"content":"[^"]*"' out | cut -d'"' -f4 | tr -d '\n')" ye
has out '^data: \[DONE\]$'

# --- texts that go on ---
run 0 generate speaker --text abc --count 8 --seed 3 --temperature 2 --top-k 20 --top-p 0.9 --min-p 0.01 --repetition-penalty 1.1
said=$(sed 's/^abc//' out)
how='"seed": 3, "temperature": 2, "top_k": 20, "top_p": 0.9, "min_p": 0.01, "repetition_penalty": 1.1, "max_tokens": 8'
gives completions "{\"prompt\": \"abc\", $how}" "\"text\":\"$said\",\"logprobs\":null,\"finish_reason\":\"(stop|length)\""
gives completions "{\"prompt\": [\"a\", \"abc\"], $how}" "\{\"index\":1,\"text\":\"$said\""
gives completions "{\"prompt\": [1, 2, 3], $how}" "\"text\":\"$said\",.*\"prompt_tokens\":3,"
gives completions "{\"prompt\": [[1], [1, 2, 3]], $how}" "\{\"index\":1,\"text\":\"$said\".*\"prompt_tokens\":4,"
ask completions "{\"prompt\": [\"a\", \"abc\"], $how, \"stream\": true}"
same "what ends a text comes once for each" "$(grep -o '"finish_reason":"' out | wc -l)" 2
same "a list in events" "$(grep '"index":1,' out | grep -o '"text":"[^"]*"' | cut -d'"' -f4 | tr -d '\n')" "$said"
gives completions '{"prompt": "abc", "temperature": 0, "max_tokens": 9223372036854775807}' '"finish_reason":"stop"'
gives completions '{"prompt": "abc", "n": 1, "best_of": null, "echo": false, "logit_bias": {}, "presence_penalty": 0.0}' '"text"'

# --- what is refused, and by which name ---
refuses chat/completions 404 "{$user, \"model\": \"gpt\"}" '"model"' "there is no 'gpt' here"
has out '"code":"model_not_found"'
for other in '"n": 2' '"tools": [{"type": "function"}]' '"logprobs": true' '"frequency_penalty": 0.5' \
    '"response_format": {"type": "json_object"}' '"reasoning_effort": "high"' '"tool_choice": "auto"'; do
    name=$(echo "$other" | cut -d'"' -f2)
    refuses chat/completions 400 "{$user, $other}" "\"$name\"" "'$name': this is not done here"
    has out '"type":"invalid_request_error","param":"[a-z_]*","code":"unsupported_parameter"'
done
refuses completions 400 '{"prompt": "a", "suffix": "b"}' '"suffix"' 'this is not done here; leave it out'
refuses completions 400 '{"prompt": "a", "logprobs": 0}' '"logprobs"' 'this is not done here; leave it out$|this is not done here; leave it out"'
refuses completions 400 '{"prompt": "a", "temprature": 1}' '"temprature"' 'this parameter is not known here'
refuses completions 400 '{"prompt": "a", "messages": []}' '"messages"' 'this parameter is not known here'
refuses embeddings 400 '{"input": "a"}' '"input"' 'this model continues texts; it gives no embeddings'
for wrong in '"temperature": "1"' '"temperature": -1' '"temperature": true' '"top_p": 1.5' '"min_p": 2' '"top_k": 1.5' \
    '"seed": 1.5' '"seed": "a"' '"stream": 1' '"max_tokens": 0' '"max_tokens": -1' '"max_completion_tokens": 1e3' \
    '"stop": 5' '"stop": {}' '"stop": [""]' '"stop": ["a", 5]' '"stream_options": {"include_usage": true}' \
    '"repetition_penalty": 0' '"model": 5'; do
    name=$(echo "$wrong" | cut -d'"' -f2)
    refuses chat/completions 400 "{$user, $wrong}" "\"$name\"" "'$name': expected "
done
refuses chat/completions 400 '{}' '"messages"' 'expected a list of messages'
refuses chat/completions 400 '{"messages": []}' '"messages"' 'expected a list of messages'
refuses chat/completions 400 '{"messages": "d"}' '"messages"' 'expected a list of messages'
refuses chat/completions 400 '{"messages": [5]}' '"messages\[0\]"' 'expected \{\\"role\\": ROLE'
refuses chat/completions 400 '{"messages": [{"content": "d"}]}' '"messages\[0\].role"' 'expected system, developer'
refuses chat/completions 400 '{"messages": [{"role": "tool", "content": "d"}]}' '"messages\[0\].role"' 'expected system, developer'
refuses chat/completions 400 '{"messages": [{"role": "user"}]}' '"messages\[0\].content"' 'expected a text'
refuses chat/completions 400 '{"messages": [{"role": "user", "content": []}]}' '"messages\[0\].content"' 'expected a text'
refuses chat/completions 400 '{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}' '"messages\[0\].content"' 'such as pictures'
refuses chat/completions 400 '{"messages": [{"role": "user", "content": "d", "name": "me"}]}' '"messages\[0\].name"' 'leave it out'
# Ten texts, more than go on side by side, are what each is alone, each with its own end.
for i in a b c d e f g h i j; do
    ask completions "{\"prompt\": \"$i\", $how}"
    grep -o '"text":"[^"]*","logprobs":null,"finish_reason":"[a-z]*"' out
done >alone
ask completions "{\"prompt\": [\"a\", \"b\", \"c\", \"d\", \"e\", \"f\", \"g\", \"h\", \"i\", \"j\"], $how}"
grep -o '"text":"[^"]*","logprobs":null,"finish_reason":"[a-z]*"' out >together
cmp alone together >err
verdict "texts side by side are what they are alone" $? together
gives completions '{"prompt": ["a", "a", "a", "a"], "temperature": 3}' '"index":3'
[ "$(grep -o '"text":"[^"]*"' out | sort -u | wc -l)" -gt 1 ]
verdict "without a seed texts of one request differ" $? out
refuses completions 400 '{}' '"prompt"' 'expected a text, a list of texts, a list of tokens'
refuses completions 400 '{"prompt": 1}' '"prompt"' 'expected a text, a list of texts, a list of tokens'
refuses completions 400 '{"prompt": [true]}' '"prompt\[0\]"' 'expected a text, a list of texts, a list of tokens'
refuses completions 400 '{"prompt": [1, 1000]}' '"prompt\[1\]"' 'expected a token, a whole number from 0 to [0-9]+"'
refuses completions 400 '{"prompt": [-1]}' '"prompt\[0\]"' 'expected a token, a whole number from 0 to'
refuses completions 400 '{"prompt": [1.5]}' '"prompt\[0\]"' 'expected a token, a whole number from 0 to'
refuses completions 400 '{"prompt": [1, "a"]}' '"prompt\[1\]"' 'expected a token, a whole number from 0 to'
refuses completions 400 '{"prompt": [[1], [2, 9223372036854775807]]}' '"prompt\[1\]\[1\]"' 'expected a token, a whole number from 0 to'
refuses completions 400 '{"prompt": [[1], "a"]}' '"prompt\[1\]"' 'expected a list of tokens, as the first one'
refuses completions 400 '{"prompt": ["a", [1]]}' '"prompt\[1\]"' 'expected a text, as the first one'
refuses completions 400 '{"prompt": ["a", ""]}' '"prompt\[1\]"' 'expected a text that is not empty'
refuses completions 400 '{"prompt": [[1], []]}' '"prompt\[1\]"' 'expected at least 1 token'
refuses completions 400 '{"prompt": ""}' '"prompt"' 'expected a text that is not empty'
refuses completions 400 '{"prompt": []}' '"prompt"' 'expected 1 to 128 texts, got 0'
refuses completions 400 '{"prompt": "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"}' '"prompt"' '52 tokens are too many for this model, which takes 32 with the answer"'
has out '"code":"context_length_exceeded"'
refuses chat/completions 400 '{"messages": [{"role": "user", "content": "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"}]}' \
    '"messages"' '[0-9]+ tokens are too many for this model, which takes 32 with the answer"'
has out '"code":"context_length_exceeded"'
refuses completions 400 '{"prompt": "a", "prompt": "b"}' null 'expected a JSON object'
refuses completions 400 '{"prompt": "\u0000"}' null 'expected a JSON object'
refuses completions 400 '[]' null 'expected a JSON object'
printf '{"prompt": %100000s' '' | tr ' ' '[' >deep
refuses completions 400 @deep null 'expected a JSON object'
ask completions '{"prompt": "a"}' -H 'Content-Type: text/plain'
same "another type" "$status" 415
has out 'expected a body of type application/json: the header Content-Type says which it is'
ask completion '{"prompt": "a"}'
same "another path" "$status" 404
has out 'there is nothing here; the paths are: GET /v1/models, GET /v1/models/, POST /v1/chat/completions, POST /v1/completions, POST /v1/embeddings"'
gives completions '{"prompt": "a"}' '"text"'
end_serve

# --- a network of our own: bytes, no chats, and no limit of steps ---
for _ in 1 2 3 4; do printf 'g\xc3\xa4b \xe2\x82\xac '; done >song.txt
cat >bytes.yaml <<'YAML'
network: input(8) + embedding(256, 8) + lstm(24) + dense(256, time_distributed) + softmax_cross_entropy
data: {training: {text: song.txt, window: 8, step: 1}, batch: 8}
optimiser: {type: adam, learning_rate: 0.02}
epochs: 30
YAML
run 0 train bytes.yaml --folder bytes --quiet
serve bytes --openai --log-level debug
run 0 generate bytes --text g --count 18 --greedy
said=$(sed 's/^g//' out)
gives completions '{"prompt": "g", "temperature": 0, "max_tokens": 18}' "\"text\":\"$said\""
ask completions '{"prompt": "g", "temperature": 0, "max_tokens": 18, "stream": true}'
same "events have whole characters" "$(grep -o '"text":"[^"]*"' out | cut -d'"' -f4 | tr -d '\n')" "$said"
gives completions '{"prompt": "g", "temperature": 0, "max_tokens": 15}' $'"text":"[^"]* \xef\xbf\xbd","logprobs"'
gives completions '{"prompt": "g", "temperature": 0, "max_tokens": 9223372036854775807}' '"completion_tokens":4096,'
refuses completions 400 "{\"prompt\": \"$(head -c 32769 /dev/zero | tr '\0' g)\"}" '"prompt"' \
    '32769 tokens are too many for this model, which takes 32768"'
refuses chat/completions 400 "{$user}" '"messages"' 'chats are for models of others'

# A client that goes away ends what would take long; of two that wait behind it, one that has gone is passed over.
prompts=$(yes '"g"' | head -n 128 | paste -sd,)
curl -s -N -o long -H "Authorization: Bearer $(cat token)" -H 'Content-Type: application/json' \
    -d "{\"prompt\": [$prompts], \"max_tokens\": 9999999, \"stream\": true}" --max-time 1.5 "$address/v1/completions" &
for _ in $(seq 100); do
    [ -s long ] && break
    sleep 0.01
done
ask completions '{"prompt": "g"}' --max-time 0.1
same "a client that waits no longer" "$status" 000
gives completions '{"prompt": "g", "temperature": 0, "max_tokens": 18}' "\"text\":\"$said\""
has serve.err 'refused /v1/completions: nobody waits for the answer any more'
has serve.err 'refused /v1/completions: the client has left while its request waited'

# It is noticed while what it asks about is read, too: 128 texts of 32,768 tokens.
text=$(head -c 32768 /dev/zero | tr '\0' g)
yes "\"$text\"" | head -n 128 | paste -sd, | sed 's/.*/{"prompt": [&], "max_tokens": 1}/' >questions
ask completions @questions --max-time 1
begun=$SECONDS
gives completions '{"prompt": "g", "temperature": 0, "max_tokens": 18}' "\"text\":\"$said\""
same "the next one waits for a few steps at most" "$((SECONDS - begun < 5))" 1
same "the reading ended" "$(grep -c 'refused /v1/completions: nobody waits for the answer any more' serve.err)" 2
end_serve

# --- a model whose numbers are none: no request is to blame ---
cp -r model broken
size=$(stat -c %s broken/model.safetensors)
head -c 2000 /dev/zero | tr '\0' '\377' |
    dd of=broken/model.safetensors bs=1 seek=$((size - 2000)) conv=notrunc status=none
serve broken --openai
refuses completions 500 '{"prompt": "a"}' null 'nan.*","type":"server_error"'
end_serve

# --- vectors ---
cp -r "$SIGMA_SOURCE_DIR/tests/models/fixtures/bert_embed" encoder
printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\nc\n' >encoder/vocab.txt
run 0 predict encoder --text 'a b c'
numbers=$(tr ' ' '\n' <out | head -3 | cut -c1-8 | paste -sd' ')
serve encoder --openai --log-level debug
gives embeddings '{"input": ["c", "a b c"], "model": "encoder"}' '^\{"object":"list","data":\[\{"object":"embedding","index":0,"embedding":\[.*\]\},\{"object":"embedding","index":1,"embedding":\[.*\]\}\],"model":"encoder","usage":\{"prompt_tokens":8,"total_tokens":8\}\}$'
same "the vector of sigma predict" "$(sed -E 's/.*"index":1,"embedding":\[([^]]*)\].*/\1/' out | tr ',' '\n' | head -3 | cut -c1-8 | paste -sd' ')" "$numbers"
sed -E 's/.*"index":1,"embedding":\[([^]]*)\].*/\1/' out | tr ',' '\n' | cut -c1-7 >first
gives embeddings '{"input": "a b c", "encoding_format": "base64", "dimensions": 16}' '"embedding":"[A-Za-z0-9+/]+=*"'
sed -E 's/.*"embedding":"([^"]*)".*/\1/' out | base64 -d | od -An -v -t fF -w4 | tr -d ' ' | cut -c1-7 >second
same "as many numbers in base64" "$(wc -l <second)" 16
same "the same in base64" "$(cat second)" "$(cat first)"
refuses embeddings 400 '{"input": "a", "dimensions": 8}' '"dimensions"' 'a vector of this model has 16 numbers'
refuses embeddings 400 '{"input": "a", "encoding_format": "hex"}' '"encoding_format"' 'expected .*float'
gives embeddings '{"input": [2, 4, 5, 6, 3], "encoding_format": "base64"}' '"prompt_tokens":5,'
sed -E 's/.*"embedding":"([^"]*)".*/\1/' out | base64 -d | od -An -v -t fF -w4 | tr -d ' ' | cut -c1-7 >second
same "the same of tokens" "$(cat second)" "$(cat first)"
gives embeddings '{"input": [[2, 4, 3], [2, 4, 5, 6, 3]], "encoding_format": "base64"}' '"prompt_tokens":8,'
sed -E 's/.*"embedding":"([^"]*)".*/\1/' out | base64 -d | od -An -v -t fF -w4 | tr -d ' ' | cut -c1-7 >second
same "the same of lists of tokens" "$(cat second)" "$(cat first)"
refuses embeddings 400 '{}' '"input"' 'expected a text, a list of texts, a list of tokens'
refuses embeddings 400 '{"input": [[1, 1000]]}' '"input\[0\]\[1\]"' 'expected a token, a whole number from 0 to'
# A client that leaves while its texts are embedded: how fast that is depends on the machine.
words=$(yes a | head -n 22 | paste -sd' ')
yes "\"$words\"" | head -n 2048 | paste -sd, | sed 's/.*/{"input": [&]}/' >inputs
for wait in 0.01 0.02 0.03 0.05 0.08 0.1 0.15 0.2 0.3 0.5 1 2 4; do
    ask embeddings @inputs --max-time $wait
    gives embeddings '{"input": "a"}' '"embedding"'
    grep -q 'refused /v1/embeddings: nobody waits' serve.err && break
done
has serve.err 'refused /v1/embeddings: nobody waits for the answer any more'
refuses embeddings 400 '{"input": "a a a a a a a a a a a a a a a a a a a a a a a a a a"}' '"input"' 'text 0 has 28 tokens; this model takes 24'
has out '"code":"context_length_exceeded"'
refuses completions 400 '{"prompt": "a"}' '"prompt"' 'this model embeds texts, by /v1/embeddings'
end_serve
finish
