/**
 * Four validators in processes of their own, and a miner whose blocks have them check false signatures: cuts go on, no
 * cut takes more of them than the rule allows, and every one is paid for its work like any other block.
 */
import { afterEach, expect, test } from 'vitest';
import type { UnspentOutput } from '../../node/full-node.ts';
import { MAX_CUT_SIGNATURES } from '../../protocol/ledger/cut.ts';
import { chainId, encodeGenesis, genesisOutpoint } from '../../protocol/ledger/genesis.ts';
import type { Output } from '../../protocol/transactions/transaction.ts';
import { ValidatorProcesses } from '../consensus/processes.ts';
import { payment } from '../node/bed.ts';
import { temporaryDirectory } from '../temporary.ts';
import { falseEighths, PER_BLOCK } from './costly-blocks.ts';

/** A node gives no templates when its newest cut is 24 of these old: the blocks must be found before. */
const CUT_MILLIS = 2_500;
/** Two cuts' worth. */
const BLOCKS = 8;

let running: ValidatorProcesses | undefined;
afterEach(async () => {
  await running?.close();
});

test('four validators make cuts while a miner fills its blocks with false signatures', async () => {
  const processes = new ValidatorProcesses(temporaryDirectory());
  running = processes;
  await processes.prepare(CUT_MILLIS);
  for (const process of processes.all) process.start();
  await processes.reached(2);
  const { genesis } = processes;
  const chain = { chainId: chainId(encodeGenesis(genesis)), head: () => ({ height: 0 }) } as Parameters<
    typeof payment
  >[0];
  const treasury = (i: number): UnspentOutput => {
    const index = genesis.outputs.length - 64 + i;
    const outpoint = genesisOutpoint(chain.chainId, index);
    return { ...(genesis.outputs[index] as Output), outpoint, source: 'genesis' };
  };
  const isRegistered = async (block: string): Promise<boolean> => {
    const answer = await fetch(`http://127.0.0.1:${processes.plain.ports.api}/v1/blocks/${block}`);
    return ((await answer.json()) as { registered_cut?: unknown }).registered_cut != null;
  };
  // The key must be registered for witnesses that are short enough for so many in a block.
  const first = await processes.mine([payment(chain, [treasury(63)], [])]);
  await expect.poll(() => isRegistered(first)).toBe(true);

  const spends = Array.from({ length: 8 }, (_, i) => treasury(i));
  const bodies = Array.from({ length: BLOCKS }, (_, b) => falseEighths(chain, spends, b * PER_BLOCK));
  const blocks: string[] = [];
  const before = await processes.highest();
  // Without these two there is no cut, so that all blocks wait for the same one.
  const held = processes.validators.slice(2);
  for (const validator of held) validator.signal('SIGSTOP');
  for (const transactions of bodies) blocks.push(await processes.mine(transactions));
  for (const validator of held) validator.signal('SIGCONT');
  for (const block of blocks) await expect.poll(() => isRegistered(block)).toBe(true);
  await processes.reached(Math.max(before + 3, await processes.highest()));

  await processes.end('SIGTERM');
  const perCut = new Map<number | undefined, number>();
  for (const height of await processes.registeredAt(0, blocks)) perCut.set(height, (perCut.get(height) ?? 0) + 1);
  expect(perCut.has(undefined)).toBe(false);
  for (const taken of perCut.values()) expect(taken * PER_BLOCK * 8).toBeLessThanOrEqual(MAX_CUT_SIGNATURES);
  const { chains } = await processes.chains();
  const lowest = Math.min(...chains.map((cuts) => cuts.length));
  for (const cuts of chains) expect(cuts.slice(0, lowest)).toEqual((chains[0] as string[]).slice(0, lowest));
});
