#!/bin/bash
# Tries the Debian packages of a release as a stranger would, in an empty Debian that is started for this and thrown away: lintian, install, start
# the services, mine until a payout is final, back up, upgrade to the packages of a second folder, mine on, restore the backup, remove, purge.
#
#   scripts/release/try-packages.sh DIR [NEWER_DIR]
#
# Needs root, mmdebstrap, curl and Debian's mirror (MIRROR, SUITE), and for the first check lintian; 2 GB in TMPDIR and some ten minutes. EMPTY names the
# folder of an empty Debian with what is included below, which is copied instead. The system inside has its own network, processes and mounts: nothing
# outside is changed. Prints what each step took.
set -euo pipefail

[ $# -ge 1 ] && [ -d "$1" ] || { sed -n '2,10s/^# \?//p' "$0"; exit 2; }
first=$(realpath "$1")
newer=${2:+$(realpath "$2")}
[ "$(id -u)" = 0 ] || { echo 'try-packages: this needs root' >&2; exit 1; }
architecture=$(dpkg --print-architecture)
work=$(mktemp -d "${TMPDIR:-/tmp}/svc-try-XXXXXX")
root=$work/root
boot='' init=''

finish() {
  [ -z "$init" ] || kill -KILL "$init" 2>/dev/null || true
  [ -z "$boot" ] || wait "$boot" 2>/dev/null || true
  rm -rf --one-file-system "$work"
}
trap finish EXIT

from=0
step() { from=$SECONDS; printf '%-50s' "$1"; }
done_() { printf '%4d s  %s\n' $((SECONDS - from)) "${1:-}"; }
fail() { printf '\ntry-packages: %s\n' "$*" >&2; exit 1; }
# A command inside the started system; a command of this machine in its network.
inside() { nsenter --target "$init" --all --root --wdns=/ env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C HOME=/root "$@"; }
web() { nsenter --target "$init" --net curl --silent --fail --max-time 10 "http://127.0.0.1:28740/api/v1/$1"; }
# Waits for a command, up to a number of seconds.
await() {
  local until=$((SECONDS + $1)) && shift
  until "$@" >"$work/last" 2>&1; do
    [ $SECONDS -lt $until ] || { show_logs; fail "this did not come: $* ($(tail -n 3 "$work/last"))"; }
    sleep 1
  done
}
show_logs() { inside journalctl --no-pager --lines 15 -u svcd -u svc-wallet -u svc-pool -u svc-proxy -u svc-miner >&2 || true; }
bytes() { du -bc "$@" | tail -n 1 | cut -f 1; }
megabytes() { echo "$(( ($1 + 500000) / 1000000 )) MB"; }

start_system() {
  # A group of processes for it: systemd wants one that it may write to, under either kind of cgroups.
  unshare --mount --pid --ipc --uts --net --cgroup --fork --kill-child bash -c '
    set -e
    mount --make-rprivate /
    mount --bind "$0" "$0"
    mount -t proc proc "$0/proc"
    mount -t sysfs -o ro sysfs "$0/sys"
    if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
      mount -t cgroup2 cgroup2 "$0/sys/fs/cgroup"
    else
      mount -t tmpfs tmpfs "$0/sys/fs/cgroup"
      mkdir "$0/sys/fs/cgroup/systemd"
      mount -t cgroup -o none,name=systemd cgroup "$0/sys/fs/cgroup/systemd"
    fi
    mount -t tmpfs tmpfs "$0/run"
    mount -t tmpfs tmpfs "$0/tmp"
    # Credentials of services come into view by shared mounts.
    mount --make-rshared "$0"
    exec env -i container=svc PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$0" /lib/systemd/systemd --system systemd.unit=multi-user.target
  ' "$root" >"$work/boot.log" 2>&1 </dev/null &
  boot=$!
  local until=$((SECONDS + 60))
  until init=$(pgrep -P "$boot") && [ "$(cat "/proc/$init/comm" 2>/dev/null)" = systemd ]; do
    [ $SECONDS -lt $until ] || fail "the system does not start: $(tail -n 3 "$work/boot.log")"
    sleep 0.2
  done
  await 60 inside systemctl is-system-running --wait
}

install_from() {
  rm -rf "$root/packages"
  mkdir "$root/packages"
  cp "$1"/*_"$architecture".deb "$root/packages/"
  inside sh -c 'apt-get install --yes --no-install-recommends /packages/*.deb' >"$work/apt.log" 2>&1 || { tail -n 20 "$work/apt.log" >&2; fail 'the packages could not be installed'; }
}
version_of() { dpkg-deb --field "$1"/svc-common_*_"$architecture".deb Version; }
insist_version() {
  for program in svcd svc-bridge svc-pool svc-proxy svc-wallet svc-miner; do
    [ "$(inside $program --version)" = "$program $(version_of "$1")" ] || fail "$program is not of version $(version_of "$1")"
  done
}

SERVICES='svcd svc-wallet svc-pool svc-bridge svc-proxy svc-miner'
are_active() { for service in $SERVICES; do inside systemctl is-active --quiet "$service"; done; }
# A figure of the miner, in atoms or hashes; amounts are decimal texts.
figure() { web "miners/$address" | tr ',{' '\n\n' | sed -n "s/^\"$1\":\"\{0,1\}\([0-9.]*\).*/\1/p" | head -n 1; }
is_above() { awk "BEGIN { exit !(\"$(figure "$1")\" + 0 > $2 + 0) }"; }

if command -v lintian >/dev/null; then
  step 'lintian'
  # Packages that are made for a test are not compressed.
  lintian --fail-on error --suppress-tags uses-no-compression-for-control-tarball,uses-no-compression-for-data-tarball "${newer:-$first}"/*_"$architecture".deb >"$work/lintian.log" 2>&1 || { cat "$work/lintian.log" >&2; fail 'lintian found errors'; }
  done_ "no errors, $(grep -c '^W:' "$work/lintian.log" || true) warnings"
fi

step 'an empty Debian'
if [ -n "${EMPTY:-}" ]; then cp -a "$EMPTY" "$root"; else
  mmdebstrap --quiet --variant=apt --mode=root --include=systemd,systemd-sysv,dbus,adduser,libstdc++6 "${SUITE:-bookworm}" "$root" ${MIRROR:-} >"$work/mm.log" 2>&1 || { tail "$work/mm.log" >&2; fail 'mmdebstrap failed'; }
fi
empty=$(bytes "$root")
start_system
! inside sh -c 'command -v node' >/dev/null || fail 'there is a Node already'
done_ "$(megabytes "$empty")"

step "install $(version_of "$first")"
install_from "$first"
insist_version "$first"
done_ "packages $(megabytes "$(bytes "$root/packages")"), installed $(megabytes "$(bytes "$root/usr/lib/svc")")"
[ "$(inside stat -c '%a %U %G' /etc/svc/pool.json)" = '640 root svc-pool' ] || fail 'others can read the config file of the pool'
[ "$(inside stat -c '%a %U' /var/lib/svc-wallet)" = '700 svc-wallet' ] || fail 'others can read the directory of the wallet'
for service in $SERVICES; do ! inside systemctl is-active --quiet "$service" || fail "$service was started by the installation"; done

step 'wallet, config files, services'
inside runuser -u svc-wallet -- svc-wallet init --file /var/lib/svc-wallet/wallet.json --network development --generate-password >"$work/words" 2>&1
inside svc-wallet init --file /var/lib/try.json --network development --generate-password >>"$work/words" 2>&1
address=$(inside svc-wallet new-address --file /var/lib/try.json | head -n 1)
# A chain and slices that are quick, so that a payout is final in minutes.
config() { sed -i "s|^{|{\n  $2,|" "$root/etc/svc/$1"; }
config node.json '"cut-millis": 500'
config pool.json '"slice-cuts": 24, "payout-interval": "5s", "payout-min": "0.01", "start-work": 256'
sed -i -e 's|stratum2+tls://pool.example:28720|stratum2+tcp://127.0.0.1:28720|' -e "s|ADDRESS|$address|" "$root/etc/svc/proxy.json"
sed -i -e 's|"stratum2+tls://pool.example:28720"|"stratum+tcp://127.0.0.1:28720", "stratum+tcp://127.0.0.1:28780"|' -e "s|ADDRESS|$address|" "$root/etc/svc/miner.json"
config miner.json '"network": "development", "gpu": false, "cpu-threads": 1'
inside systemctl set-property --runtime svc-miner.service CPUQuota=50%
inside systemctl enable --now $SERVICES >"$work/enable.log" 2>&1 || { show_logs; fail 'the services do not start'; }
await 120 web pool
await 60 are_active
done_

step 'mine until a payout is final'
await 420 is_above paid 0
done_ "paid $(figure paid)"

step 'back up'
inside runuser -u svc-pool -- svc-pool backup --data-dir /var/lib/svc-pool --to /var/lib/svc-pool/backup >"$work/backup.log" 2>&1 || { cat "$work/backup.log" >&2; fail 'no backup'; }
backup=$(inside sh -c 'ls -d /var/lib/svc-pool/backup/books-*')
done_ "$(megabytes "$(bytes "$root$backup")")"

if [ -n "$newer" ]; then
  step "upgrade to $(version_of "$newer")"
  before=$(figure paid)
  pid=$(inside systemctl show --property=MainPID --value svc-pool)
  install_from "$newer"
  insist_version "$newer"
  await 120 web pool
  await 60 are_active
  [ "$(inside systemctl show --property=MainPID --value svc-pool)" != "$pid" ] || fail 'the pool was not restarted'
  done_
  step 'mine on until the next payout is final'
  is_above paid "$before" || await 420 is_above paid "$before"
  done_ "paid $before, then $(figure paid)"

  step "restore the backup of $(version_of "$first")"
  inside systemctl stop svc-pool
  inside runuser -u svc-pool -- svc-pool restore "$backup" --data-dir /var/lib/svc-pool >"$work/restore.log" 2>&1 || { cat "$work/restore.log" >&2; fail 'the backup could not be restored'; }
  inside systemctl start svc-pool
  await 120 web pool
  await 300 is_above paid "$before"
  done_ "paid $(figure paid) by the chain again"
fi

step 'remove'
inside sh -c "apt-get remove --yes 'svc-*'" >"$work/apt.log" 2>&1 || { tail "$work/apt.log" >&2; fail 'the packages could not be removed'; }
[ -f "$root/etc/svc/pool.json" ] || fail 'a config file is gone'
! ls "$root/usr/bin" "$root/usr/lib" "$root/lib/systemd/system" | grep '^svc' || fail 'something is left'
for service in $SERVICES; do ! inside systemctl is-active --quiet "$service" || fail "$service still runs"; done
done_
step 'purge'
inside sh -c "apt-get purge --yes 'svc-*'" >"$work/apt.log" 2>&1 || { tail "$work/apt.log" >&2; fail 'the packages could not be purged'; }
[ ! -e "$root/etc/svc" ] || fail "config files are left: $(ls "$root/etc/svc")"
[ -s "$root/var/lib/svc-wallet/wallet.json" ] || fail 'the wallet is gone'
done_ 'the wallet stays'
echo "all of it: $SECONDS s"
