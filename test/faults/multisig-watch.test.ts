/** News of watched multisig addresses while the node fails, or its index is behind: every change is reported once. */
import { expect, test } from 'vitest';
import type { ChangeDocument } from '../../protocol/api/address-documents.ts';
import { EventHub } from '../../wallet/event-hub.ts';
import { MultisigWatch, type MultisigWatchDependencies } from '../../wallet/multisig/watch.ts';

function bed() {
  const state = { height: 5, indexed: 1000, fails: false };
  const told: unknown[] = [];
  const events = new EventHub();
  events.listen(({ params }) => void told.push(params.height));
  const changeAt = (finalized_height: number): ChangeDocument => ({
    finalized_height,
    address: 'group',
    kind: 'received',
    amount: '1',
    source: 'regular',
    outpoint: { transaction_id: 'aa', output_index: 0 },
    transaction_id: 'aa',
  });
  const client = {
    addressChanges: async ({ after_height }: { after_height: number }) => {
      if (state.fails) throw new Error('away');
      const heights = [6, 7, 8, 9].filter((one) => one > after_height && one <= state.indexed);
      return { changes: heights.map(changeAt), indexed_height: state.indexed };
    },
  };
  const book = {
    meta: {
      get indexedHeight() {
        return state.height;
      },
    },
    multisig: new Map([['group', { label: '' }]]),
  };
  return { state, told, watch: new MultisigWatch({ client, book, events } as unknown as MultisigWatchDependencies) };
}

test('what could not be read is reported at the next poll, and nothing twice', async () => {
  const { state, told, watch } = bed();
  await watch.look();
  state.height = 6;
  await watch.look();
  Object.assign(state, { height: 7, fails: true });
  await expect(watch.look()).rejects.toThrow('away');
  Object.assign(state, { height: 8, fails: false });
  await watch.look();
  await watch.look();
  expect(told).toEqual([6, 7, 8]);
});

test('a node whose index is behind the height that was read', async () => {
  const { state, told, watch } = bed();
  await watch.look();
  Object.assign(state, { height: 8, indexed: 6 });
  await watch.look();
  state.indexed = 9;
  await watch.look();
  state.height = 9;
  await watch.look();
  expect(told).toEqual([6, 7, 8, 9]);
});
