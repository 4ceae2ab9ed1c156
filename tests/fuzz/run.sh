#!/bin/bash
# Runs the fuzzers of a build, one after the other, each from its seeds and from what earlier runs found.
set -u
cd "$(dirname "$0")/../.." || exit 2
root=$PWD
build=${1:-build/fuzz}
seconds=${2:-60}
wanted=${3:-.}
usage="usage: tests/fuzz/run.sh [BUILD [SECONDS [PATTERN]]]   (build/fuzz, 60 s each, all)"
if [[ $build == -* || ! $seconds =~ ^[0-9]+$ ]]; then
    echo "$usage" >&2
    exit 2
fi
models=tests/models

# The models of tests/onnx/stored_cases.bin, one file for each: most operators are in them.
stored_models()
{
    mkdir -p "$build/stored"
    python3 - "$build/stored" <<'END'
import struct, sys
data, at, count = open("tests/onnx/stored_cases.bin", "rb").read(), 0, 0
def block():
    global at
    size = struct.unpack_from("<I", data, at)[0]
    at += 4 + size
    return data[at - size:at]
while at < len(data):
    block()  # its name
    model, count = block(), count + 1
    for _ in range(2):  # inputs, outputs
        for _ in range(block()[0]):
            block()
    open(f"{sys.argv[1]}/{count}.onnx", "wb").write(model)
    print(f"{sys.argv[1]}/{count}.onnx")
END
}

# Files that a reader takes. Short ones: a change of one byte in many seldom matters.
seeds_of()
{
    case $1 in
    safetensors) printf '%s\n' $models/onnx/expected.safetensors $models/fixtures/*_peft/adapter_model.safetensors ;;
    npz) find tests -name '*.npz' ;;
    onnx)
        printf '%s\n' $models/onnx/*.onnx
        stored_models
        ;;
    config) printf '%s\n' $models/fixtures/*/config.json ;;
    index) printf '%s\n' $models/fixtures/*/model.safetensors.index.json ;;
    adapters) printf '%s\n' $models/fixtures/*/adapter_config.json ;;
    tokenizer) printf '%s\n' $models/data/{bert,clip,gpt2,llama2,qwen,t5,roberta}.json ;;
    lines)
        for line in '{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}]}' \
            '{"prompt": "2 + 2 =", "completion": " 4"}' '{"text": "a b c"}' '{"text": "a", "label": "good"}' \
            '{"text": "a", "pair": "b", "label": 1}' '{"anchor": "a", "positive": "b", "negative": "c"}'; do
            printf '%s\n' "$line" "$line" >"$build/$(sha1sum <<<"$line" | cut -c1-12).jsonl"
        done
        ls "$build"/*.jsonl
        ;;
    gguf) printf '%s\n' $models/gguf/*.gguf ;;
    external)
        # Float, int64, int4 and nothing at all; what lies beside the model is behind the empty line.
        printf '%s\n' 'tensor 1 2 3' 'location weights' 'offset 4' 'length 24' 'tensor 7 2' 'location below/weights' \
            'length 16' 'tensor 22 5' 'location weights' 'offset 61' 'tensor 2 0' 'location weights' 'length 0' '' \
            0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_ >"$build/external.txt" # 64 bytes
        # What is refused: links, a pipe, a folder, what leads out.
        for place in link up/secret pipe below ../secret below/../../secret /etc/passwd; do
            printf '%s\n' 'tensor 2 4' "location $place" 'length 4' '' abcd >"$build/external_$(sha1sum <<<"$place" | cut -c1-12).txt"
        done
        ls "$build"/external*.txt
        ;;
    vocabulary) printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' un '##aff' '##able' , 中 >"$build/vocab.txt" && echo "$build/vocab.txt" ;;
    esac
}

export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1
mkdir -p "$build/findings"
SIGMA_FUZZ_FOLDER=$(mktemp -d /dev/shm/sigma-fuzz-XXXXXX) || exit 2 # in memory
export SIGMA_FUZZ_FOLDER
trap 'rm -rf "$SIGMA_FUZZ_FOLDER"' EXIT
count=0 findings=0
for program in "$build"/tests/fuzz/fuzz_*; do
    name=${program##*/fuzz_}
    [[ $name =~ $wanted ]] || continue
    corpus=$build/corpus/$name seeds=$build/seeds/$name
    rm -rf "$seeds"
    mkdir -p "$corpus" "$seeds"
    while read -r file; do
        cp "$file" "$seeds/$(sha1sum <"$file" | cut -c1-12)"
    done < <(seeds_of "$name")
    # Names between quotes, which a reader looks for: letter by letter they are seldom found.
    cat "$seeds"/* 2>/dev/null | grep -aoE '"[A-Za-z0-9_.]{2,40}"' | sort -u >"$seeds.words"
    words=()
    [ -s "$seeds.words" ] && words=("-dict=$seeds.words")
    log=$build/findings/$name.log
    "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=512 -verbosity=1 -print_final_stats=1 \
        "${words[@]}" -artifact_prefix="$root/$build/findings/$name-" "$corpus" "$seeds" >"$log" 2>&1
    result=$?
    count=$((count + 1))
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    covered=$(sed -nE 's/.* cov: ([0-9]+) .*/\1/p' "$log" | tail -1)
    printf '%-14s %9s runs, %6s edges covered' "$name" "${runs:-?}" "${covered:-?}"
    if [ "$result" = 0 ]; then
        echo
    else
        findings=$((findings + 1))
        printf ': %s\n' "$(grep -m 1 -E 'ERROR: |runtime error: ' "$log" || tail -1 "$log")" "    $log"
    fi
done
if [ "$count" = 0 ]; then
    echo "There is no fuzzer '$wanted' in $build; make fuzz builds them (clang)." >&2
    exit 2
fi
echo "$count fuzzers, $findings findings"
[ "$findings" = 0 ]
