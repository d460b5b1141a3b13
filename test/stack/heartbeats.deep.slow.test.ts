/** The validators of `npm start -- --validators 4`, as processes with days of 24 cuts, mined at the first alone: each sends its heartbeats, and after three epochs and more all have their seats. */
import { mkdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { createApiClient } from '../../protocol/api/client.ts';
import { freePorts } from '../../runtime/free-port.ts';
import { nodeTransport } from '../../runtime/node-client/node-transport.ts';
import { files, url, validatorParts } from '../../stack/parts.ts';
import { RunningPart, runToEnd } from '../../stack/process.ts';
import { temporaryDirectory } from '../temporary.ts';
import { stackPorts } from './stack-fixture.ts';
import { mineWaiting } from './validator-network.ts';

const VALIDATORS = 4;
const PACE = { cutMillis: 120, sliceCuts: 24, payoutInterval: '5s' };

test('after three epochs all are still members', async () => {
  const data = temporaryDirectory();
  mkdirSync(files(data).logs, { recursive: true });
  const chain = ['--interval-cuts', '24', '--initial-work', '1', '--minimum-work', '1'];
  const words = ['--out', files(data).network, '--validators', String(VALIDATORS), ...chain];
  await runToEnd('svcd', ['development-network', ...words]);
  const ports = await stackPorts();
  const free = await freePorts(3 * VALIDATORS);
  const validators = Array.from({ length: VALIDATORS }, (_, member) => ({
    overlay: free[member] as number,
    api: member === 0 ? ports.api : (free[VALIDATORS + member] as number),
    peers: free[2 * VALIDATORS + member] as number,
  }));
  const parts = validatorParts(data, ports, PACE, validators).map((part) => new RunningPart(part));
  let isOver = false;
  const mining = (async () => {
    for (let draw = 0; !isOver; draw++) {
      await mineWaiting(ports.mining, draw).catch(() => undefined);
      await sleep(2 * PACE.cutMillis);
    }
  })();
  onTestFinished(async () => {
    isOver = true;
    await Promise.all([mining, ...parts.map((part) => part.stop())]);
  });
  await Promise.all(parts.map((part) => part.ready(new AbortController().signal)));
  const client = createApiClient({ baseUrl: url(ports.api) }, nodeTransport());
  const shown = () => client.stakingValidators({});
  // Genesis counts as the heartbeat of epoch 0, and is good for a seat in epoch 2.
  await expect.poll(async () => (await shown()).epoch, { interval: 200 }).toBeGreaterThanOrEqual(4);
  const { validators: found, epoch } = await shown();
  expect(found).toHaveLength(VALIDATORS);
  for (const { state, heartbeat_epoch: beat } of found) {
    expect(state).toBe('committee');
    expect(beat).toBeGreaterThanOrEqual(epoch - 2);
  }
});
