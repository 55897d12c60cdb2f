# Shared by the tests of this folder, which source it with $build and $work set: an installed marey, and programs built
# with nothing else. CC, CXX, CMAKE and PKG_CONFIG name the tools to do it with.

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# Install the component `c` into an empty folder and move it to $prefix, a path with a space: nothing may know where it
# was installed to.
install_and_move() {
    rm -rf "$work"
    mkdir -p "$work"
    "$CMAKE" --install "$build" --component c --prefix "$work/first" >"$work/install.log"
    prefix="$work/moved here"
    mv "$work/first" "$prefix"
}

# Let pkg-config look into $prefix, and programs find the libraries there.
use_pkg_config() {
    PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name marey.pc)")
    LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH")
    export PKG_CONFIG_PATH LD_LIBRARY_PATH
}

# compile PACKAGE COMPILER SOURCE PROGRAM; pkg-config escapes the space in the path for a shell to read.
compile() {
    flags=$("$PKG_CONFIG" --cflags --libs "$1") || die "pkg-config does not find $1"
    eval "$2 -Wall -Wextra -Werror -o \"\$4\" \"\$3\" $flags -lm -pthread"
}

# Record a program by the installed command and look for a range in what the installed command reads.
record_and_find() {
    rm -rf run.marey
    "$prefix/bin/marey" run -q -o run.marey -- "$1" >program.out || die "$1 failed under marey run"
    "$prefix/bin/marey" report run.marey --csv >report.csv || die "marey report failed"
    grep -q "^$2," report.csv || die "the recording of $1 has no range '$2'"
}
