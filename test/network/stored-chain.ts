import { LedgerStore } from '../../node/store/ledger-store.ts';
import { toHex } from '../../protocol/bytes.ts';

/** Identifier and state root of every cut of an ended node. */
export async function rootsOf(storeDirectory: string): Promise<string[]> {
  const store = await LedgerStore.open(storeDirectory);
  const { height } = store.state();
  const roots = Array.from({ length: height + 1 }, (_, at) => {
    const cut = store.cut(at);
    return cut === undefined ? '' : `${toHex(cut.cutId)} ${toHex(cut.header.stateRoot)}`;
  });
  await store.close();
  return roots;
}
