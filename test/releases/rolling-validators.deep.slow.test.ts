/**
 * A rolling upgrade of four validators while blocks are found, twice: to the next release from the first to the last, and to the one after it from the
 * last to the first. At every step validators of two releases make cuts together.
 */

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { ValidatorProcesses } from '../consensus/processes.ts';
import { temporaryDirectory } from '../temporary.ts';
import { nextRelease, OLDER_RELEASE } from './next-release.ts';

const CUT_MILLIS = 400;
/** Final cuts with each mixture of releases. */
const CUTS_BETWEEN = 4;

let processes: ValidatorProcesses | undefined;
afterEach(() => processes?.close());

test('four validators go to the next release one after the other, in both orders: every block is in the chain, nobody votes twice, and all have one chain and state', async () => {
  const network = new ValidatorProcesses(temporaryDirectory());
  processes = network;
  await network.prepare(CUT_MILLIS);
  const older = join(OLDER_RELEASE, 'node/main.ts');
  for (const process of network.all) process.start(older);
  await network.reached(2);
  for (const validator of network.validators) await network.signs(validator);

  const blocks: string[] = [];
  let isOver = false;
  const mining = (async () => {
    while (!isOver) {
      // While the cuts wait for a validator the node gives no templates.
      const found = await network.mine().catch(() => sleep(CUT_MILLIS));
      if (found !== undefined) blocks.push(found);
    }
  })();
  const releaseOf = async (port: number): Promise<string> => {
    const answer = await fetch(`http://127.0.0.1:${port}/v1/node/status`);
    return ((await answer.json()) as { version: string }).version;
  };
  const steps: string[] = [];
  for (const [version, order] of [
    ['1.0.1', network.validators],
    ['1.0.2', network.validators.toReversed()],
  ] as const) {
    const main = join(nextRelease(version, 0), 'node/main.js');
    for (const validator of order) {
      const others = network.all.filter((process) => process !== validator);
      await validator.end('SIGTERM');
      const heights = await Promise.all(others.map((process) => process.height()));
      await network.reached(Math.max(...heights) + 1, others);
      validator.start(main);
      await network.reached((await network.highest()) + CUTS_BETWEEN);
      await network.signs(validator);
      expect(await releaseOf(validator.ports.api)).toBe(version);
      steps.push(`${validator.name} ${version}: height ${await network.highest()}, ${blocks.length} blocks`);
    }
  }
  isOver = true;
  await mining;
  await network.reached((await network.highest()) + 3);
  await network.end('SIGTERM');
  console.log(steps.join('\n'));

  expect(blocks.length).toBeGreaterThan(50);
  const registered = await network.registeredAt(0, blocks);
  expect(blocks.filter((_, i) => registered[i] === undefined)).toEqual([]);
  const twice = [...network.votes].filter(([, cuts]) => cuts.size > 1);
  expect(twice).toEqual([]);
  const { chains, blocks: counted } = await network.chains();
  const lowest = Math.min(...chains.map((chain) => chain.length));
  for (const chain of chains) expect(chain.slice(0, lowest)).toEqual((chains[0] as string[]).slice(0, lowest));
  expect(counted[0]).toBe(blocks.length);
});
