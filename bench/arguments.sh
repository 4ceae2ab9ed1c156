# The arguments of this folder's scripts, which source it behind their usage(): --help prints that, other options are errors.
# shellcheck shell=bash
case "${1:-}" in
-h | --help)
    usage
    exit 0
    ;;
-*)
    usage >&2
    exit 2
    ;;
esac
