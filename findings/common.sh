# Functions shared by the scripts in this folder; sourced, not run.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export LC_ALL=C
unset PYTHONUNBUFFERED PYTHONPATH

# debian PACKAGE=VERSION...: unpacks Debian's packages below $tmp/root, without installing them.
debian() {
  mkdir -p "$tmp/root" "$tmp/debs"
  (cd "$tmp/debs" && apt-get -q=2 -o APT::Sandbox::User=root download "$@" >/dev/null && for deb in *.deb; do dpkg -x "$deb" "$tmp/root"; done)
}

# python NAME PACKAGE==VERSION...: a virtual environment in $tmp/NAME with these packages.
python() {
  python3 -m venv "$tmp/$1"
  "$tmp/$1/bin/pip" -q --disable-pip-version-check install "${@:2}"
}

# expect WHAT EXPECTED SEEN: ends the script with 1 if what was seen is not what was written down.
expect() {
  printf '%s: %s\n' "$1" "$3"
  [[ $2 == "$3" ]] || { printf 'CHANGED: expected %s\n' "$2"; exit 1; }
}
