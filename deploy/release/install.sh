#!/bin/sh
# Installs a release of Passbook for the current user:
#
#   curl -fsSL https://github.com/passbook-run/passbook/releases/latest/download/install.sh | sh
#
# Options: --version v0.1.0 (the latest), --prefix DIR (~/.local), --from URL|DIR (where archive and checksums.txt are).
# Each version has a folder of its own, PREFIX/lib/passbook/VERSION: a worker that runs keeps its files. The programs in
# PREFIX/bin are links to the installed version. Nothing is changed if the checksum of the archive is wrong, or if gh is
# installed and does not find the signature of the release workflow.
set -eu

repository=https://github.com/passbook-run/passbook
version='' prefix=${HOME:-}/.local from=''

fail() {
	echo "install.sh: $*" >&2
	exit 1
}

while [ $# -gt 0 ]; do
	[ $# -gt 1 ] || case $1 in --help | -h) sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$0" && exit ;; *) fail "$1: a value is missing, or the option is unknown; --help lists the options" ;; esac
	case $1 in
	--version) version=$2 ;;
	--prefix) prefix=$2 ;;
	--from) from=$2 ;;
	*) fail "$1: unknown option; --help lists the options" ;;
	esac
	shift 2
done
case $prefix in /*) ;; *) fail "--prefix $prefix: give an absolute path" ;; esac
for dir in "$prefix/lib/passbook" "$prefix/bin"; do
	while [ ! -e "$dir" ]; do dir=$(dirname "$dir"); done
	if [ ! -d "$dir" ] || [ ! -w "$dir" ]; then
		fail "--prefix $prefix: $dir is not a folder in which you may write: choose another --prefix, or install as its owner"
	fi
done

case $(uname -s) in
Linux) os=linux ;;
Darwin) os=darwin ;;
*) fail "there is no release for $(uname -s): build from source, see README.md" ;;
esac
case $(uname -m) in
x86_64 | amd64) arch=amd64 ;;
aarch64 | arm64) arch=arm64 ;;
*) fail "there is no release for $(uname -m): build from source, see README.md" ;;
esac

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# get NAME: brings a file of the release to $tmp.
get() {
	case $from in
	'' | http://* | https://*)
		command -v curl >/dev/null || fail "install curl first"
		# what begins with https is not redirected to http
		curl -fsSL --proto-redir "=${base%%://*},https" -o "$tmp/$1" "$base/$1" || fail "$base/$1 cannot be downloaded"
		;;
	*) cp "$from/$1" "$tmp/$1" || fail "$from is not a folder with $1" ;;
	esac
}

if [ -n "$from" ]; then
	base=$from
elif [ -n "$version" ]; then
	base=$repository/releases/download/$version
else
	base=$repository/releases/latest/download
fi
get checksums.txt

# The archive of this system is a line of checksums.txt: its name has the version.
name=$(sed -n "s/^[0-9a-f]\{64\}  \(passbook_[^/ ]*_${os}_${arch}\.tar\.gz\)\$/\1/p" "$tmp/checksums.txt" | head -n 1)
[ -n "$name" ] || fail "$base/checksums.txt names no archive for $os on $arch"
found=v${name#passbook_}
found=${found%_"${os}"_"${arch}".tar.gz}
[ -z "$version" ] || [ "$version" = "$found" ] || fail "$base has version $found, not $version"
get "$name"

sum() {
	if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}
want=$(sed -n "s/^\([0-9a-f]*\)  $name\$/\1/p" "$tmp/checksums.txt")
[ "$(sum "$tmp/$name")" = "$want" ] || fail "the checksum of $name differs from the one in checksums.txt; nothing was installed"

# The release workflow signs checksums.txt and all that it lists, without a key that could leak.
signature=attestation.sigstore.json
if [ -d "$from" ] && [ ! -e "$from/$signature" ]; then
	signed="$from has no signature: it was built there, or copied without it."
elif command -v gh >/dev/null && gh attestation verify --help >/dev/null 2>&1; then
	get "$signature"
	gh attestation verify "$tmp/$name" --bundle "$tmp/$signature" --repo "${repository#https://github.com/}" \
		--signer-workflow "${repository#https://github.com/}/.github/workflows/release.yml" >"$tmp/gh.log" 2>&1 || {
		cat "$tmp/gh.log" >&2
		fail "$name has no signature of the release workflow of $repository; nothing was installed"
	}
	signed="The release workflow of $repository has signed it."
else
	signed="Its signature was not checked: that needs gh (https://cli.github.com)."
fi

tar -xzf "$tmp/$name" -C "$tmp"
lib=$prefix/lib/passbook
mkdir -p "$lib" "$prefix/bin"
new=$lib/.new-$$
rm -rf "$new"
cp -R "$tmp/${name%.tar.gz}" "$new"
"$new/passbook" --help >/dev/null || {
	rm -rf "$new"
	fail "the programs of $name do not run here; nothing was installed"
}
if [ -d "$lib/$found" ]; then
	rm -rf "$new" # installed before; its files may be in use
else
	mv "$new" "$lib/$found"
fi
for program in passbook starter worker; do
	[ -L "$prefix/bin/$program" ] || [ ! -e "$prefix/bin/$program" ] ||
		fail "$prefix/bin/$program is not a link of this script: remove it, or choose another --prefix"
	ln -s "$lib/$found/passbook" "$prefix/bin/.$program-$$"
	mv -f "$prefix/bin/.$program-$$" "$prefix/bin/$program"
done

echo "Passbook $found is in $lib/$found; $prefix/bin has passbook, and starter and worker, which are links to it."
echo "$signed"
case :$PATH: in
*:"$prefix/bin":*) ;;
*) echo "Add it to PATH: export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
echo "Next: passbook demo"
