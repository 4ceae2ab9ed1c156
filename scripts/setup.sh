#!/bin/bash
# Installs what Sigma needs to be built, on Debian and its relatives: scripts/setup.sh [--test] [--dev]
# --test adds the browser that some tests use, --dev clang with its sanitizers, what the format and
# lint checks use, and Doxygen.
# Does nothing, quickly, when all is there.
set -u

required=(build-essential cmake ninja-build pkg-config libyaml-dev libjansson-dev libcurl4-openssl-dev
    libarchive-dev libmicrohttpd-dev libpng-dev libjpeg-dev nettle-dev libpcre2-dev libicu-dev libjs-dygraphs)
# Loaded at run time where they are found; the first name that the distribution knows is taken.
optional=(libopenblas0-serial "libdnnl2 libdnnl3 libdnnl3.6" libsndfile1)
# Without these it is built without ONNX.
optional+=(libprotobuf-c-dev protobuf-c-compiler libonnx-dev)
# Without one of these there are no ranks on several machines,
optional+=("libopenmpi-dev libmpich-dev")
# and without this no handler for OpenCL devices.
optional+=(ocl-icd-opencl-dev)
modules=(yaml-0.1 jansson libcurl libarchive libmicrohttpd libpng libjpeg nettle libpcre2-8 icu-uc)
tried=$(dirname "$0")/../build/.setup-tried
why="Sigma is faster, reads sounds, reads and writes ONNX, trains on several machines and uses OpenCL devices with these packages"
for argument in "$@"; do
    case $argument in
    --test)
        optional+=(chromium chromium-driver libonnx-testdata "openmpi-bin mpich" pocl-opencl-icd)
        tried+=-test
        why="Sigma is faster, can do more, or more of it is tested, with these packages"
        ;;
    --dev)
        required+=(clang "clang-format-14 clang-format" clang-tidy cppcheck valgrind python3 doxygen)
        optional+=("libclang-rt-dev libclang-rt-14-dev") # elsewhere clang brings its sanitizers
        tried+=-dev
        ;;
    *)
        echo "setup: unknown option '$argument'; there are --test and --dev" >&2
        exit 2
        ;;
    esac
done

installed()
{
    [ "$(dpkg-query -W -f='${Status}' "$1" 2>/dev/null)" = "install ok installed" ]
}

# Each argument is one need: a package, or several alternatives separated by spaces.
missing_of()
{
    local need name
    for need in "$@"; do
        for name in $need; do
            installed "$name" && continue 2
        done
        echo "$need"
    done
}

complain()
{
    echo "setup: $1" >&2
    echo "setup: please install these (Debian's names): ${missing[*]}" >&2
    exit 1
}

# Without Debian's tools, look for the programs and libraries themselves.
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    missing=()
    for program in cc cmake ninja pkg-config; do
        command -v "$program" >/dev/null || missing+=("$program")
    done
    for module in "${modules[@]}"; do
        pkg-config --exists "$module" 2>/dev/null || missing+=("$module")
    done
    [ ${#missing[@]} -eq 0 ] && exit 0
    missing=("${required[@]}")
    complain "there is no apt-get here"
fi

mapfile -t missing < <(missing_of "${required[@]}")
mapfile -t wished < <(missing_of "${optional[@]}")
# What Sigma does without is tried once, and is no reason to ask for a password.
if [ ${#missing[@]} -eq 0 ]; then
    [ ${#wished[@]} -eq 0 ] || [ -e "$tried" ] && exit 0
    if [ "$(id -u)" -ne 0 ]; then
        echo "setup: $why: ${wished[*]}"
        exit 0
    fi
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || complain "packages are missing, and this user may not install them (no sudo)"
    as_root=(sudo)
fi

# The first alternative that apt knows; the first one where it knows none, so that its name is in the message.
choose()
{
    local name
    for name in $1; do
        [ -n "$(apt-cache policy "$name" 2>/dev/null | grep -E 'Candidate: [^(]')" ] && echo "$name" && return
    done
    echo "${1%% *}"
}

install()
{
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

echo "setup: installing ${missing[*]} ${wished[*]}"
"${as_root[@]}" apt-get update || echo "setup: the list of packages could not be renewed; trying with the old one" >&2
names=()
for need in "${missing[@]}"; do
    names+=("$(choose "$need")")
done
if [ ${#names[@]} -gt 0 ] && ! install "${names[@]}"; then
    complain "apt-get could not install all that is missing"
fi
for need in "${wished[@]}"; do
    install "$(choose "$need")" ||
        echo "setup: none of '$need' could be installed; Sigma works without, but slower, with less that it can do, or less of it is tested" >&2
done
mkdir -p "${tried%/*}" && touch "$tried"
