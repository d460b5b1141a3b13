/**
 * The Debian packages. At the deep level those of this machine's architecture are installed into an empty Debian without Node, used there,
 * removed and purged; that needs root, and Debian's mirror.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { freePorts } from '../../runtime/free-port.ts';
import { buildDebianPackages, debianVersion, installedUnit } from '../../scripts/release/debian-packages.ts';
import { FILES, ROOT, read } from '../guards/project-files.ts';
import { level } from '../level.ts';
import { temporaryDirectory } from '../temporary.ts';

const UNITS = FILES.filter((path) => path.startsWith('deploy/systemd/'));

test('a prerelease comes before its release in the order of Debian too', () => {
  expect(debianVersion('1.2.3')).toBe('1.2.3');
  expect(debianVersion('1.2.3-rc.1')).toBe('1.2.3~rc.1');
});

test('installed units start what the packages install, with the config file that they install', () => {
  expect(UNITS.length).toBe(5);
  for (const path of UNITS) {
    const unit = installedUnit(read(path));
    expect(unit, path).not.toContain('/opt/');
    const [, program = '', config = ''] =
      /^ExecStart=\/usr\/bin\/([a-z-]+) .*--config \/etc\/svc\/([a-z]+\.json)/m.exec(unit) ?? [];
    expect(Object.keys(packageJson.bin), path).toContain(program);
    expect(FILES).toContain(`deploy/config/${config}`);
  }
});

/** What a command printed; it must succeed. */
async function run(command: string, words: readonly string[], cwd: string): Promise<string> {
  const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/root', DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' };
  const child = spawn(command, words, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (data: Buffer) => {
      said = (said + data.toString()).slice(-100_000);
    });
  const code = await new Promise((resolve) => child.once('close', resolve));
  expect(code, `${command} ${words.join(' ')}: ${said.slice(-4_000)}`).toBe(0);
  return said;
}

const USE = `set -e
! command -v node
test "$(stat -c '%a %U %G' /etc/svc/pool.json)" = '640 root svc-pool'
test "$(stat -c '%a %U' /var/lib/svc-wallet)" = '700 svc-wallet'
runuser -u svc-wallet -- svc-wallet init --file /var/lib/svc-wallet/wallet.json --generate-password >/dev/null
address=$(runuser -u svc-wallet -- svc-wallet new-address --file /var/lib/svc-wallet/wallet.json | head -n 1)
cd /
runuser -u svc-pool -- svc-pool run --data-dir /var/lib/svc-pool --pplns-listen 127.0.0.1:$1 --pplns-listen-ws off \\
  --solo-listen off --solo-listen-ws off --web-bind 127.0.0.1:$2 --start-work 256 >/tmp/pool.log 2>&1 &
pool=$!
svc-miner -o stratum+tcp://127.0.0.1:$1 -u "$address.rig" --no-gpu --cpu-threads 1 --network development --data-dir /tmp/miner >/tmp/miner.log 2>&1 &
miner=$!
until grep -q 'shares* accepted' /tmp/miner.log; do
  kill -0 $pool || { cat /tmp/pool.log; exit 1; }
  kill -0 $miner || { cat /tmp/miner.log; exit 1; }
  tail -n 1 /tmp/pool.log
  sleep 1
done
kill $miner $pool
wait
`;

if (level === 'deep')
  test('packages in an empty Debian: installed, a pool takes a share, removed, purged; the wallet stays', async () => {
    const folder = temporaryDirectory();
    const [root, out, scratch] = ['root', 'out', 'scratch'].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    for (const path of [out, scratch]) mkdirSync(path);
    const arch = process.arch === 'arm64' ? 'arm64' : 'amd64';
    buildDebianPackages(arch, {
      clone: ROOT,
      scratch,
      seconds: 1_700_000_000,
      maintainer: 'A Test <test@example.org>',
      out,
      compression: 'gzip',
    });
    expect(readdirSync(out).length).toBe(6);
    // A script of Perl that needs nothing but apt: no package of this machine changes.
    await run('apt-get', ['download', 'mmdebstrap'], scratch);
    await run('sh', ['-c', 'dpkg-deb -x mmdebstrap_*.deb mmdebstrap'], scratch);
    const words = ['--variant=apt', '--mode=root', `--customize-hook=copy-in ${out} /`, 'bookworm', root];
    await run('perl', [join(scratch, 'mmdebstrap/usr/bin/mmdebstrap'), ...words], scratch);
    await run('mount', ['-t', 'proc', 'proc', join(root, 'proc')], folder);
    onTestFinished(async () => void (await run('umount', ['--lazy', join(root, 'proc')], folder)));
    const inside = (line: string) => run('chroot', [root, 'sh', '-c', line], folder);
    await inside('apt-get update && apt-get install -y --no-install-recommends /out/*.deb');
    for (const name of Object.keys(packageJson.bin))
      expect(await inside(`${name} --version`)).toBe(`${name} ${packageJson.version}\n`);
    writeFileSync(join(root, 'use.sh'), USE);
    const [pplns = 0, web = 0] = await freePorts(2);
    await inside(`sh /use.sh ${pplns} ${web}`);

    await inside("apt-get remove -y 'svc-*'");
    expect(await inside('ls /etc/svc')).toContain('pool.json');
    expect(await inside('ls /usr/bin /usr/lib /lib/systemd/system')).not.toMatch(/^svc/m);
    await inside("apt-get purge -y 'svc-*'");
    expect(await inside('ls /etc')).not.toMatch(/^svc$/m);
    expect(readFileSync(join(root, 'var/lib/svc-wallet/wallet.json')).length).toBeGreaterThan(0);
  });
