# Shared by the scripts of this folder, which source it first. It leaves them in the root of the tree.

root=$(cd "$(dirname "$0")/.." && pwd -P) || exit 1
cd "$root" || exit 1

# Results go to stdout, progress messages to stderr.
say() { printf '==> %s\n' "$*" >&2; }

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# Print the comment at the top of the script.
usage() { sed -n '2,/^[^#]/{/^#/{s/^# \{0,1\}//;p;};}' "$0"; }

# Run a command, and show the last lines of its output if it fails.
quietly() {
    log=$1
    shift
    mkdir -p "$(dirname "$log")"
    "$@" >"$log" 2>&1 </dev/null && return 0
    status=$?
    tail -n 40 "$log" >&2
    printf '%s: this failed with status %s, its whole output is in %s: %s\n' \
        "${0##*/}" "$status" "$log" "$*" >&2
    return "$status"
}
