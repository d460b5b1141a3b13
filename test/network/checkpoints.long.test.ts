/** A long-range attack: another past, signed by the keys of the true committee, longer than the true one. Checkpoints refuse it, before anything of it is executed. */
import { expect, onTestFinished, test } from 'vitest';
import { type Checkpoint, checkpointsOf, checkStoredChain } from '../../node/chain/checkpoints.ts';
import { networkOptions } from '../../node/network/network-options.ts';
import { toHex } from '../../protocol/bytes.ts';
import type { LogFields } from '../../runtime/log/log.ts';
import { quietLog } from '../quiet-log.ts';
import { headOf, NetBed, type NetNode, until } from './peers.ts';

let bed: NetBed;
/** Both have the keys of all validators. */
let honest: NetNode;
let forger: NetNode;

async function open(): Promise<void> {
  // Batches end with epochs too, where no identifier of the way back is kept.
  bed = new NetBed({ intervalCuts: 60 });
  honest = await bed.start('honest', {});
  await bed.seal(honest, 1, 1);
  await bed.seal(honest, 109);
  forger = await bed.start('forger', {});
  await bed.seal(forger, 125);
  onTestFinished(() => bed.close());
}

const at = ({ view }: NetNode): string => view.addresses[0] as string;
const height = ({ node }: NetNode): number => node.chain.head().height;

const checkpointOf = ({ node }: NetNode, of: number): Checkpoint => {
  const cut = node.chain.cut(of);
  if (cut === undefined) throw new Error(`no cut ${of}`);
  return { height: of, cutId: cut.cutId };
};

test('a node with checkpoints follows the chain that has them, and bars a peer with another past', async () => {
  await open();
  const said: LogFields[] = [];
  const log = {
    ...quietLog,
    info: (message: string, fields?: LogFields) => {
      if (message === 'a peer is barred') said.push(fields ?? {});
    },
  };
  const checkpoints = [100, 105].map((of) => checkpointOf(honest, of));
  const fresh = await bed.start('fresh', { bootstrap: [at(forger)], follows: true }, () => ({ checkpoints, log }));
  await until(() => said.length > 0);
  expect(said[0]).toMatchObject({ fault: 'false_proof', reason: 'its cut 100 contradicts the checkpoint' });
  expect(height(fresh)).toBe(0);
  await fresh.close();
  const again = await bed.start('fresh', { bootstrap: [at(forger), at(honest)], follows: true }, () => ({
    checkpoints,
  }));
  await until(() => height(again) === 110);
  expect(headOf(again)).toBe(headOf(honest));
});

test('one that already followed the other past says so and stops; a chain that has passed the checkpoint is not opened', async () => {
  await open();
  // It was fooled as long as it knew no better.
  const fooled = await bed.start('fooled', { bootstrap: [at(forger)], follows: true });
  await until(() => height(fooled) === 125);
  expect(() => checkStoredChain(fooled.node.chain, [checkpointOf(forger, 40)])).not.toThrow();
  expect(() => checkStoredChain(fooled.node.chain, [checkpointOf(honest, 40)])).toThrow(
    /^cut 40 of this data directory is [0-9a-f]+, and the checkpoint is .*sync into a new data directory$/,
  );
  await bed.seal(honest, 30);
  const faults: string[] = [];
  await fooled.close();
  // Its own chain ends before the checkpoint: only the way back from it shows.
  const checkpoints = [checkpointOf(honest, 130)];
  const again = await bed.start('fooled', { bootstrap: [at(honest)], follows: true }, (node) => {
    node.on('fault', ({ message }) => void faults.push(message));
    return { checkpoints };
  });
  await until(() => faults.length > 0);
  expect(faults[0]).toMatch(/^cut 125 of this data directory does not lead to the checkpoint of cut 130: /);
  expect(height(again)).toBe(125);
});

test('checkpoints are read as HEIGHT:CUT_ID, and two of one height must agree', () => {
  const cutId = new Uint8Array(48).fill(7);
  const read = (word: string) => networkOptions.checkpoint.read([word], 'checkpoint');
  expect(read(`40:${toHex(cutId)}`)).toEqual([{ height: 40, cutId }]);
  for (const word of ['40', toHex(cutId), `40:${toHex(cutId)}00`, `x:${toHex(cutId)}`])
    expect(() => read(word)).toThrow(/HEIGHT:CUT_ID/);
  const one = { height: 40, cutId };
  expect(checkpointsOf('development', [{ height: 50, cutId }, one, one])).toEqual([one, { height: 50, cutId }]);
  const other = { height: 40, cutId: new Uint8Array(48) };
  expect(() => checkpointsOf('development', [one, other])).toThrow(/different cuts of height 40/);
});
