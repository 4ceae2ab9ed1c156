#!/bin/bash
# Folders of pictures here and in torchvision; see usage() below.
set -u

here=$(cd "$(dirname "$0")" && pwd)

usage()
{
    cat <<'END'
usage: bench/pictures.sh [BUILD]

Writes JPEG and PNG files of 256 x 256 pixels, and reads them as inputs of 3 x 64 x 64: decoded, scaled and normalised,
here and, where it is found, by torchvision with as many workers as we have threads. The two take turns, and a table has
the medians of all passes (3 a round) by the clock in pictures a second, the ratio, and the time of a processor for a
picture, which other programs on the machine change less.

Environment:
  COUNT     pictures of each format (2000)
  THREADS   threads, and workers of torchvision's DataLoader ("1 2"); one is torchvision without a worker, too
  ROUNDS    turns (3)
  PYTHON    a Python with torchvision (python3)
END
}

# shellcheck source=bench/arguments.sh
. "$here/arguments.sh"
build=${1:-$here/../build/release}
python=${PYTHON:-python3}
if [ ! -x "$build/bench/pictures" ]; then
    echo "pictures: $build has no bench/pictures; cmake --build $build --target bench-programs makes it" >&2
    exit 1
fi
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
"$build/bench/pictures" make "$scratch" "${COUNT:-2000}" || exit 1
if ! "$python" -c 'import torchvision' 2>/dev/null; then
    echo "torchvision is not here to compare with: pip install torchvision, then PYTHON=..."
    python=
fi
for ((round = 0; round < ${ROUNDS:-3}; round++)); do
    for format in jpeg png; do
        for threads in ${THREADS:-1 2}; do
            "$build/bench/pictures" read "$scratch/$format" "$threads" || exit 1
            [ -z "$python" ] || "$python" "$here/pictures_torch.py" "$scratch/$format" "$threads" || exit 1
            [ -z "$python" ] || [ "$threads" != 1 ] || "$python" "$here/pictures_torch.py" "$scratch/$format" 0 || exit 1
        done
    done
done >"$scratch/passes" || exit 1
awk -f "$here/pictures.awk" "$scratch/passes"
