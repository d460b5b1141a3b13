/** Libraries of another architecture from the Debian mirror of this machine, without changing anything of its package lists. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const PACKAGES = ['libvulkan1', 'libstdc++6', 'libgcc-s1'];
const DEBIAN_NAMES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

/** The unpacked folder; undefined if there is no apt, or the mirror is unavailable. */
export function fetchDebianLibraries(arch: string, scratch: string): string | undefined {
  const apt = join(scratch, 'apt');
  const unpacked = join(apt, 'unpacked');
  for (const path of ['lists/partial', 'cache/archives/partial', 'unpacked'])
    mkdirSync(join(apt, path), { recursive: true });
  const own = [
    `Dir::State::Lists=${join(apt, 'lists')}`,
    'Dir::State::status=/dev/null',
    `Dir::Cache=${join(apt, 'cache')}`,
    `APT::Architecture=${DEBIAN_NAMES[arch]}`,
    `APT::Architectures=${DEBIAN_NAMES[arch]}`,
    'APT::Sandbox::User=root',
    'Debug::NoLocking=1',
  ].flatMap((setting) => ['-o', setting]);
  const quiet = { cwd: apt, stdio: 'ignore' } as const;
  try {
    execFileSync('apt-get', [...own, 'update'], quiet);
    execFileSync('apt-get', [...own, 'download', ...PACKAGES], quiet);
    for (const name of readdirSync(apt))
      if (name.endsWith('.deb')) execFileSync('dpkg-deb', ['-x', join(apt, name), unpacked], quiet);
    return unpacked;
  } catch {
    return undefined;
  }
}
