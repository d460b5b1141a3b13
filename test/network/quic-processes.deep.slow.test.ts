/** `svcd run` over QUIC as operators start it: it follows, ends at SIGTERM with connections open, and says why where there is none. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { developmentKey } from '../../node/genesis/development.ts';
import { formatAddress } from '../../protocol/address.ts';
import { freePorts } from '../../runtime/free-port.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';
import { freeUdpPort, quicTest } from './quic.ts';
import { Svcd } from './svcd.ts';

const MAIN = fileURLToPath(new URL('../../node/main.ts', import.meta.url));

quicTest('a node follows another over QUIC alone, and both end at SIGTERM', async () => {
  const directory = temporaryDirectory();
  const [port, ports] = [await freeUdpPort(), await freePorts(4)];
  const quic = `/ip4/127.0.0.1/udp/${port}/quic-v1`;
  const genesis = join(directory, 'genesis.json');
  const address = formatAddress(developmentKey('alice').address, 'development');
  const funds = ['--development-validators', '1', '--fund', `${address}=19000000`];
  expect(spawnSync(process.execPath, [MAIN, 'genesis', ...funds, '--out', genesis]).status).toBe(0);
  const [first, second] = [
    ['first', '--p2p-listen', quic],
    ['second', '--bootstrap', quic],
  ].map(([name = '', ...words], i) => {
    const own = { api: ports[2 * i] as number, mining: ports[2 * i + 1] as number };
    return new Svcd(own, ['--genesis', genesis, '--data-dir', join(directory, name), '--cut-millis', '200', ...words]);
  }) as [Svcd, Svcd];
  onTestFinished(async () => {
    await Promise.all([first, second].map((svcd) => svcd.end('SIGKILL')));
  });
  first.start();
  second.start();
  await until(async () => (await second.height()) >= 5 && (await second.sync())?.synced === true);
  const ways = async () =>
    (await second.peers<{ peers: { address: string }[] }>())?.peers.map(({ address }) => /\/quic-v1/.test(address));
  await until(async () => (await ways())?.length === 1);
  expect(await ways()).toEqual([true]);
  await Promise.all([first.end('SIGTERM'), second.end('SIGTERM')]);
  expect([first.exitCode, second.exitCode]).toEqual([0, 0]);
  for (const { output } of [first, second]) expect(output).not.toMatch(/defect|fatal|panick/i);
});

/** The package's own way to another native part: one that is not there. */
const ABSENT = { ...process.env, NAPI_RS_NATIVE_LIBRARY_PATH: '/nowhere/quic.node' };

test('where the native part is absent, listening on QUIC ends the start with what to do, and routes are of TCP', () => {
  const directory = temporaryDirectory();
  const run = (...words: string[]) =>
    spawnSync(process.execPath, [MAIN, ...words, '--data-dir', directory], { env: ABSENT, encoding: 'utf8' });
  const listening = run('run', '--p2p-listen', '/ip4/127.0.0.1/udp/0/quic-v1', '--api-bind', '0', '--mining-bind', '0');
  expect(listening.status).toBe(1);
  expect(listening.stderr + listening.stdout).toMatch(/asks for QUIC: .* does not load .*\/tcp\/PORT.*p2p_listen/);
  const endpoint = run('validator-endpoint', '--route', 'validator.example.org');
  expect(endpoint.stdout).toMatch(/^[0-9a-f]+\n$/);
  // The endpoint is registered for the machine of the validator, which may be another one.
  expect(endpoint.stderr).toBe('');
});
