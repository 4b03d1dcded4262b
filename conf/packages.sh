# Package lists and their installation; sourced by conf/quickstart and tests/run.

PACKAGES_BUILD="gcc libc6-dev make autoconf automake pkg-config libfcgi-dev libmariadb-dev libjansson-dev \
libyaml-dev libcurl4-openssl-dev libstemmer-dev libunistring-dev libssl-dev"
PACKAGES_RUN="mariadb-server-core mariadb-client-core nginx curl jq ca-certificates"

# missing_packages NAME…: those of them that are not installed
missing_packages() {
	for p in "$@"; do
		dpkg-query -W -f='${Status}\n' "$p" 2>/dev/null | grep -q '^install ok installed$' || printf '%s ' "$p"
	done
}

# install_packages NAME…: install what is missing; no service of a package is started
install_packages() {
	missing=$(missing_packages "$@")
	[ -n "$missing" ] || return 0
	line="apt-get install -y --no-install-recommends $missing"
	if ! command -v apt-get >/dev/null; then
		echo "These packages are missing, and there is no apt-get here: $missing" >&2
		return 1
	fi
	if [ "$(id -u)" = 0 ]; then
		sudo=
	elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
		sudo=sudo
	else
		echo "Packages are missing. Run this as root, then start again:" >&2
		echo "  $line" >&2
		return 1
	fi
	echo "Installing: $missing"
	made=
	if [ ! -e /usr/sbin/policy-rc.d ]; then
		printf '#!/bin/sh\nexit 101\n' | $sudo tee /usr/sbin/policy-rc.d >/dev/null
		$sudo chmod 755 /usr/sbin/policy-rc.d
		made=1
	fi
	log=$(mktemp)
	status=0
	{ $sudo apt-get update -q && $sudo env DEBIAN_FRONTEND=noninteractive $line; } >"$log" 2>&1 || status=$?
	[ -z "$made" ] || $sudo rm -f /usr/sbin/policy-rc.d
	if [ $status != 0 ]; then
		tail -n 20 "$log" >&2
		echo "The packages could not be installed: $missing" >&2
	fi
	rm -f "$log"
	return $status
}
