# shellcheck shell=bash
# Debian packages without installing any: private apt states, one a release,
# below the cache. The system's own apt is not touched. Sourced by others.
#
# bookworm has kernels 6.1 and 6.12 and linux-source-6.12; trixie with its
# backports has the newest. SLABCTL_VM_MIRROR names another archive.

keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# The archive this machine uses already, or Debian's own.
debian_mirror() {
    local own
    own=$(apt-get indextargets --format '$(REPO_URI)' 2>/dev/null |
        grep -E '/debian/?$' | head -n 1) || true
    echo "${SLABCTL_VM_MIRROR:-${own:-http://deb.debian.org/debian}}"
}

# debian_state RELEASE: makes the private state when it is missing or a day
# old, and has later calls of apt use it.
debian_state() {
    local release=$1 state=$cache/apt/$1 mirror tail
    [ -r "$keyring" ] || skip "no $keyring (package debian-archive-keyring)"
    mirror=$(debian_mirror)
    tail="[arch=amd64 signed-by=$keyring]"
    mkdir -p "$state"/{lists/partial,archives/partial,dpkg}
    : >>"$state/dpkg/status"
    {
        echo "deb $tail $mirror $release main"
        echo "deb $tail ${mirror%/}-security $release-security main"
        [ "$release" != trixie ] || echo "deb $tail $mirror $release-backports main"
    } >"$state/sources.list"
    cat >"$state/apt.conf" <<CONF
APT::Architecture "amd64";
APT::Architectures { "amd64"; };
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Dir::Etc::sourcelist "$state/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::State "$state";
Dir::State::status "$state/dpkg/status";
Dir::State::lists "$state/lists";
Dir::Cache "$state";
Dir::Cache::archives "$state/archives";
CONF
    [ "$release" != trixie ] || echo 'APT::Default-Release "trixie-backports";' >>"$state/apt.conf"
    export APT_CONFIG=$state/apt.conf APT_ROOT=$state
    if [ -z "$(find "$state/lists" -name '*Packages*' -mtime -1 -print -quit)" ]; then
        say "reading Debian's package lists ($release)"
        apt-get -qq update || skip "Debian's package lists ($release) cannot be read"
    fi
}

# debian_fetch DIR PACKAGE..: downloads packages, their signatures checked by
# apt, and unpacks them below DIR.
debian_fetch() {
    local dir=$1 tmp deb
    shift
    tmp=$(mktemp -d -p "$cache")
    (cd "$tmp" && apt-get -qq download "$@") || skip "cannot download $*"
    mkdir -p "$dir"
    for deb in "$tmp"/*.deb; do
        dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$dir" --keep-directory-symlink
    done
    rm -rf "$tmp"
}

# debian_newest PATTERN: of the packages whose name matches, the newest version's; or nothing.
debian_newest() {
    apt-cache pkgnames linux- | grep -E "^$1\$" | sort -V | tail -n 1 || true
}

# debian_root DIR PACKAGE..: unpacks packages and all they depend on below DIR,
# with a shell and the usual programs. No package's script is run.
debian_root() {
    local dir=$1 archives=$APT_ROOT/archives deb
    shift
    rm -f "$archives"/*.deb
    apt-get -qq -y -d install "$@" \
        bash binutils coreutils dash findutils gawk grep sed >/dev/null || skip "cannot download $*"
    mkdir -p "$dir"/{usr/{bin,sbin,lib,lib64},dev,proc,tmp}
    ln -s usr/bin "$dir/bin"
    ln -s usr/sbin "$dir/sbin"
    ln -s usr/lib "$dir/lib"
    ln -s usr/lib64 "$dir/lib64"
    for deb in "$archives"/*.deb; do
        dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$dir" --keep-directory-symlink \
            --exclude './usr/share/doc' --exclude './usr/share/man' --exclude './usr/share/locale' \
            --exclude './lib/modules/*/kernel' --exclude './usr/lib/modules/*/kernel'
    done
    rm -f "$archives"/*.deb
    # What packages' scripts would have made.
    [ -e "$dir/usr/bin/sh" ] || ln -s dash "$dir/usr/bin/sh"
    [ -e "$dir/usr/bin/awk" ] || ln -s gawk "$dir/usr/bin/awk"
    local gcc
    for gcc in "$dir"/usr/bin/gcc-[0-9]*; do
        [ -e "$dir/usr/bin/gcc" ] || ln -s "${gcc##*/}" "$dir/usr/bin/gcc"
    done
}

# in_root DIR COMMAND: runs a shell command there, as root of its own user namespace.
in_root() {
    : >>"$1/dev/null"
    # shellcheck disable=SC2016
    unshare --map-root-user --mount --pid --fork sh -c '
        mount --bind /dev/null "$0/dev/null" && mount -t proc proc "$0/proc" &&
            exec chroot "$0" /usr/bin/env -i PATH=/usr/bin:/usr/sbin HOME=/tmp LC_ALL=C sh -c "$1"' "$1" "$2"
}
