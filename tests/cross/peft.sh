#!/bin/bash
# Adapters that `sigma export --peft` writes are read by the library PEFT, to the same scores, and so are the
# adapters of a run that trained them. Needs Python with peft and transformers; not part of `make test`.
#
#   PYTHON=python3 tests/cross/peft.sh build/release/sigma
set -eu
sigma=$(realpath "$1")
fixtures=$(realpath "$(dirname "$0")/../models/fixtures")
check=$fixtures/../fixtures.py
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cd "$folder"
for name in gpt2 llama qwen3 llama_patterns gpt2_layers bert_classify roberta_classify; do
    model=$fixtures/${name%_patterns}
    model=${model%_layers}
    "$sigma" import "$model" --peft "$fixtures/${name}_peft" --into "$name" >/dev/null
    "$sigma" export --peft "$name-peft" "$name"
    "${PYTHON:-python3}" "$check" --check "$name-peft" "$fixtures/${name}_peft" "$model"
done
