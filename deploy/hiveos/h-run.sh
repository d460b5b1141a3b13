#!/usr/bin/env bash
# HiveOS runs this to mine. What the miner says is shown, and kept in the log.
set -o pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/h-manifest.conf"
mapfile -t options < "$here/options"
mkdir -p "$(dirname "$CUSTOM_LOG_BASENAME")"
"$here/svc-miner" --config "$CUSTOM_CONFIG_FILENAME" "${options[@]}" 2>&1 | tee --append "$CUSTOM_LOG_BASENAME.log"
