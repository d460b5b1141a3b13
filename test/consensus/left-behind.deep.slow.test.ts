/** Four validators as processes without registered routes. One has no neighbours and one peer; later it is away for long and has neighbours and no peer. */
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { developmentFiles, writeDevelopmentNetwork } from '../../node/genesis/development-network.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { freePorts } from '../../runtime/free-port.ts';
import { Svcd } from '../network/svcd.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';

const VALIDATORS = 4;
const CUT_MILLIS = 250;
const NOT_SYNCED = 503;

test('a validator with one peer alone follows to the head; one that was away says synced and gives templates only when it is back', async () => {
  const directory = temporaryDirectory();
  const network = join(directory, 'network');
  await writeDevelopmentNetwork(network, { timestampMillis: steadyMillis(), validators: VALIDATORS });
  const files = developmentFiles(network);
  const ports = await freePorts(3 * VALIDATORS + 1);
  const at = (port: number) => `127.0.0.1:${ports[port]}`;
  const peerPort = 3 * VALIDATORS;
  const validator = (member: number, ...words: string[]) =>
    new Svcd({ api: ports[VALIDATORS + 2 * member] as number, mining: ports[VALIDATORS + 2 * member + 1] as number }, [
      '--data-dir',
      join(directory, `validator-${member}`),
      '--genesis',
      files.genesis,
      '--cut-millis',
      String(CUT_MILLIS),
      '--overlay-listen',
      at(member),
      '--consensus-key-file',
      files.key(member),
      '--consensus-password-file',
      files.password,
      ...words,
    ]);
  const neighbours = (...members: number[]) => members.flatMap((member) => ['--neighbour', at(member)]);
  const others = [
    validator(0, ...neighbours(1, 2), '--p2p-listen', at(peerPort)),
    validator(1, ...neighbours(2)),
    validator(2),
  ] as const;
  const last = VALIDATORS - 1;
  const alone = validator(last, '--bootstrap', `/ip4/127.0.0.1/tcp/${ports[peerPort]}`);
  const back = validator(last, ...neighbours(0, 1, 2));
  onTestFinished(async () => {
    await Promise.all([...others, alone, back].map((svcd) => svcd.end('SIGKILL')));
  });
  for (const svcd of others) svcd.start();
  const [first] = others;
  await until(async () => (await first.height()) >= 30);
  alone.start();
  await until(async () => {
    const [there, here] = [await first.height(), await alone.sync()];
    return here?.synced && here.finalized_height > 40 && there - here.finalized_height <= 4;
  });
  expect(await alone.sync()).toMatchObject({ peers: 1, best_peer_height: expect.any(Number) });
  await alone.end('SIGKILL');
  // So far that work on its newest cut could not be registered any more.
  const left = await first.height();
  await until(async () => (await first.height()) > left + REGISTRATION_WINDOW);
  const head = await first.height();
  back.start();
  await until(async () => {
    const status = await back.template().catch(() => NOT_SYNCED);
    const sync = await back.sync();
    if (sync === undefined) return false;
    const behind = head - sync.finalized_height;
    if (status !== NOT_SYNCED || sync.synced) expect(behind).toBeLessThan(REGISTRATION_WINDOW / 2);
    if (sync.best_peer_height !== null)
      expect(sync.best_peer_height - sync.finalized_height).toBeLessThanOrEqual(sync.behind_by);
    return sync.synced && status !== NOT_SYNCED && behind <= 0;
  });
});
