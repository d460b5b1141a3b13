#!/bin/sh
# Builds the images of all programs from a folder of Debian packages (dist/ of a release): deploy/build-images.sh DIR [NAME-PREFIX]
# With buildah, podman or docker, whichever is there; BASE names another base image, BUILD_WORDS more words of the build.
set -eu
[ $# -ge 1 ] && [ -d "$1" ] || { sed -n '2,3s/^# //p' "$0"; exit 2; }
packages=$1 prefix=${2:-} here=$(dirname "$0")
version=$(basename "$(ls "$packages"/svc-common_*.deb | head -n 1)" | cut -d _ -f 2 | tr '~' -)
for tool in buildah podman docker; do command -v $tool >/dev/null && break; done
[ "$tool" = buildah ] || [ "$tool" = podman ] && form='--format docker' || form=''
# Package, program and where it answers; the miner answers nobody.
while read -r package program health; do
  $tool build $form ${BUILD_WORDS:-} ${BASE:+--build-arg BASE=$BASE} --build-arg PACKAGE=$package --build-arg PROGRAM=$program --build-arg HEALTH=$health \
    -f "$here/Dockerfile" -t "$prefix$package:$version" -t "$prefix$package:latest" "$packages"
done <<LIST
svc-node svcd http://127.0.0.1:28701/health
svc-wallet svc-wallet http://127.0.0.1:28703/health
svc-pool svc-pool http://127.0.0.1:28740/ready
svc-bridge svc-bridge http://127.0.0.1:28771/v1/stats
svc-proxy svc-proxy http://127.0.0.1:28772/v1/stats
svc-miner svc-miner http://127.0.0.1:28770/v1/stats
LIST
