/** A node whose lists never end: the wallet gives up, instead of reading until its memory is full. */
import { expect, test } from 'vitest';
import { changesOfAddresses, changesOfCut, genesisOutputs, transactionsOfCut } from '../../wallet/chain/node-link.ts';

/** Every page names a next one; `cursorOf` makes its name. */
function endlessNode(cursorOf: (page: number) => string) {
  let asked = 0;
  const page = async () => {
    // Far more than is read: without a limit the test would not end.
    if (++asked > 100_000) throw new Error('read on and on');
    return { changes: [], transactions: [], utxos: [], indexed_height: 10, next_cursor: cursorOf(asked) };
  };
  return { addressChanges: page, cutChanges: page, cutTransactions: page, addressesUtxos: page } as never;
}

for (const [name, cursorOf] of [
  ['new pages', String],
  ['the same page', () => 'again'],
] as const)
  test(`lists that go on with ${name} are not believed`, async () => {
    const refused = { code: 'node_unreachable', message: expect.stringContaining('does not end') };
    await expect(changesOfAddresses(endlessNode(cursorOf), ['a'], 0, 10)).rejects.toMatchObject(refused);
    await expect(changesOfCut(endlessNode(cursorOf), 5)).rejects.toMatchObject(refused);
    await expect(transactionsOfCut(endlessNode(cursorOf), 5, new Set(['x']))).rejects.toMatchObject(refused);
    await expect(genesisOutputs(endlessNode(cursorOf), ['a'])).rejects.toMatchObject(refused);
  });
