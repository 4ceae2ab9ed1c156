#!/bin/bash
# What the character LSTM and the small GPT learn of a text, in PyTorch and here; see usage() below.
set -u

here=$(cd "$(dirname "$0")" && pwd)

usage()
{
    cat <<'END'
usage: bench/text.sh TEXT [BUILD]

Trains both networks on the file TEXT in PyTorch, then with Sigma from the same weights and with the same
minibatches, and prints the losses of both side by side, in nats per character. Time: some 25 minutes on a quiet machine.

Environment:
  NETWORKS  of these alone ("lstm gpt")
  STEPS     of each (2000)
  EVERY     steps between two lines (500)
  THREADS   of both (1)
  PYTHON    a Python with PyTorch, tried besides python3 and /usr/bin/python3
END
}

case "${1:-}" in
-h | --help)
    usage
    exit 0
    ;;
"" | -*)
    usage >&2
    exit 2
    ;;
esac
text=$1
build=${2:-$here/../build/release}
steps=${STEPS:-2000}
every=${EVERY:-500}
threads=${THREADS:-1}
limit=7200
if [ ! -x "$build/bench/text" ]; then
    echo "text: $build has no bench/text; cmake --build $build --target bench-programs makes it" >&2
    exit 1
fi
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
# shellcheck source=bench/peers/torch.sh
. "$here/peers/torch.sh"
if [ "${#torch_pythons[@]}" -eq 0 ]; then
    echo "text: no PyTorch to compare with: $torch_install" >&2
    exit 1
fi
printf '%-8s %6s %12s %12s %12s %12s\n' network step "PyTorch's" ours "PyTorch's" ours
printf '%-8s %6s %25s %25s\n' "" "" training validation
for network in ${NETWORKS:-lstm gpt}; do
    torch_run 0 "$here/text_torch.py" --text "$text" --network "$network" --steps "$steps" --every "$every" \
        --threads "$threads" --start "$scratch/start" >"$scratch/torch" || exit 1
    "$build/bench/text" "$network" "$text" "$scratch/start" "$every" "$threads" >"$scratch/sigma" || exit 1
    paste -d ' ' "$scratch/torch" "$scratch/sigma" | awk -v network="$network" '
        { printf "%-8s %6d %12.4f %12.4f %12.4f %12.4f\n", network, $2, $4, $12, $6, $14 }'
done
