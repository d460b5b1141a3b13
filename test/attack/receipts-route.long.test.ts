/** Receipts that are asked for cost what they cost: a stranger nothing, an account the few leaves beside its own, and the client pays for those. */
import { readFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { readReceiptsAnswer } from '../../miner/books/pool-reads.ts';
import { receiptRefusal } from '../../protocol/books/receipt.ts';
import { useSha384 } from '../../protocol/crypto/identifier.ts';
import { judgeEvidence } from '../../protocol/evidence/receipt-evidence.ts';
import { PUBLIC_PREFIX } from '../../runtime/native/ml-dsa.ts';
import { nativeSha384, nativeSha384OfTwo, useNativeSha384 } from '../../runtime/native/native-sha384.ts';
import { account, SLICE_CUTS } from '../pool/books-bed.ts';
import { exampleOf, shapeOf } from '../pool/books-examples.ts';
import { freshIdentity } from '../pool/fresh-identity.ts';
import { newPoolKey, openFrontEnd, openReceipts } from '../pool/receipts-bed.ts';

const MINERS = 700;
const WORKERS = 700;
const share = (miner: number, worker = 'rig', service: 'pplns' | 'solo' = 'pplns') => ({
  kind: 'share' as const,
  service,
  account: account(`miner ${miner}`),
  worker,
  work: 10n,
  atMillis: Date.now(),
  identity: freshIdentity(),
});

test('a request hashes and is charged for what is near the account’s own receipts', async () => {
  const key = newPoolKey();
  const end = await openFrontEnd();
  const bed = await openReceipts(key, [end]);
  await bed.books.height(0);
  await bed.books.height(SLICE_CUTS);
  await bed.look();
  for (let slice = 1; slice <= 2; slice++) {
    await end.write([
      ...Array.from({ length: MINERS }, (_, i) => share(i)),
      ...Array.from({ length: 90 }, (_, i) => share(3, `rig ${i}`)),
      share(5, 'alone', 'solo'),
    ]);
    await bed.take(end);
    await bed.books.height((slice + 1) * SLICE_CUTS);
    await bed.look();
  }
  await bed.maker.round();
  expect(bed.delivered.length).toBe(4);

  let hashes = 0;
  const counting = (run: typeof nativeSha384) => (bytes: Uint8Array) => {
    hashes++;
    return run(bytes);
  };
  useSha384(counting(nativeSha384), (head, rest) => {
    hashes++;
    return nativeSha384OfTwo(head, rest);
  });
  onTestFinished(useNativeSha384);
  const ask = async (name: string) => {
    hashes = 0;
    let leaves = 0;
    const onBuilt = (built: number) => {
      leaves += built;
    };
    const { slices } = await bed.view.ofAccount({ payload: account(name), after: 0, onBuilt });
    return { slices, hashes, leaves };
  };
  const stranger = await ask('a stranger');
  expect(stranger).toMatchObject({ slices: [], hashes: 0, leaves: 0 });
  // The first question builds the trees of both slices of the books; from then on only the branches are made.
  const first = await ask('miner 7');
  expect(first.leaves).toBeGreaterThan(2 * MINERS);
  const again = await ask('miner 7');
  expect(again.slices.map(({ receipts }) => receipts.length)).toEqual([1, 1]);
  expect(again.leaves).toBeGreaterThan(0);
  expect(again.leaves).toBeLessThan(MINERS / 2);
  expect(again.hashes).toBeLessThan(MINERS / 2);
  // As the document of the books shows it, key and wrapping included.
  const shown = shapeOf(exampleOf('miners/dminer1.../receipts'));
  expect(new Set(shapeOf(await bed.view.ofAccount({ payload: account('miner 7'), after: 0 })))).toEqual(new Set(shown));
  expect(readFileSync(new URL('../../docs/protocol/books.md', import.meta.url), 'utf8')).toContain(
    `\`${PUBLIC_PREFIX.toString('hex')}\``,
  );
  // Every receipt is good, wherever it is: in the first place, the last, across pages, alone in its tree.
  for (const miner of [3, 5, 7, ...Array.from({ length: 12 }, (_, i) => i * 57 + 1)]) {
    const { slices } = await ask(`miner ${miner}`);
    const wanted = miner === 3 ? [91, 91] : miner === 5 ? [1, 1, 1, 1] : [1, 1];
    expect(slices.map(({ receipts }) => receipts.length)).toEqual(wanted);
    for (const { receipts, leaf, record } of slices) {
      const few = receipts.length > 2 ? [receipts[0], receipts[40], receipts.at(-1)] : receipts;
      for (const receipt of few) expect(receiptRefusal(receipt as (typeof receipts)[0], key.publicKey)).toBeUndefined();
      const evidence = { format: 'svc-pool-evidence-1' as const, pool_key: '', receipts: few as typeof receipts };
      expect(judgeEvidence({ ...evidence, leaf, record }, key.publicKey)).toMatchObject({ why: 'books_suffice' });
    }
  }

  // An account with many workers gets its receipts page by page: each is some 8 KB, and nobody may have the pool make them all at once.
  await end.write(Array.from({ length: WORKERS }, (_, i) => share(0, `rig ${i}`)));
  await bed.take(end);
  await bed.books.height(4 * SLICE_CUTS);
  await bed.look();
  await bed.maker.round();
  const workers: string[] = [];
  let [after, cursor, asked]: [number, string | undefined, number] = [2, undefined, 0];
  for (;;) {
    const page = await bed.view.ofAccount({ payload: account('miner 0'), after, cursor });
    asked++;
    const receipts = page.slices.flatMap((slice) => slice.receipts);
    expect(receipts.length).toBeLessThanOrEqual(256);
    expect(JSON.stringify(page).length).toBeLessThan(3 * 1024 * 1024);
    workers.push(...receipts.map(({ worker }) => worker));
    if (!page.more) break;
    expect(page.next_cursor !== undefined || page.through > after).toBe(true);
    [after, cursor] = [page.through, page.next_cursor];
  }
  expect([workers.length, new Set(workers).size, asked >= 3]).toEqual([WORKERS, WORKERS, true]);
  // Asked for by name, one worker of them gets its own in one small answer, wherever it stands, and pays for one page.
  for (const worker of ['rig 0', 'rig 1', `rig ${WORKERS - 1}`, 'rig 300', ...workers.slice(30, 36)]) {
    let leaves = 0;
    const onBuilt = (built: number) => {
      leaves += built;
    };
    const page = await bed.view.sheets({ payload: account('miner 0'), after: 2, worker, onBuilt });
    expect(page.more).toBe(false);
    const { slices } = readReceiptsAnswer(JSON.parse(JSON.stringify(page)));
    expect(slices.flatMap(({ receipts }) => receipts.map((receipt) => receipt.worker))).toEqual([worker]);
    const [{ receipts, leaf, record }] = slices as [(typeof slices)[0]];
    expect(receiptRefusal(receipts[0] as (typeof receipts)[0], key.publicKey)).toBeUndefined();
    const evidence = { format: 'svc-pool-evidence-1' as const, pool_key: '', receipts, leaf, record };
    // The receipt of one worker says what was signed for the whole account.
    expect(judgeEvidence(evidence, key.publicKey)).toMatchObject({
      why: 'books_suffice',
      signed: BigInt(WORKERS) * 10n,
    });
    expect(JSON.stringify(page).length).toBeLessThan(32 * 1024);
    expect(leaves).toBeLessThanOrEqual(64);
  }
  const none = await bed.view.sheets({ payload: account('miner 0'), after: 2, worker: 'nobody' });
  expect(none.slices).toEqual([]);
  // All of them, with one signature for each sheet: a fraction of the bytes.
  const sheets = await bed.view.sheets({ payload: account('miner 0'), after: 2 });
  const plain = await bed.view.ofAccount({ payload: account('miner 0'), after: 2 });
  expect(sheets.slices[0]?.sheets).toHaveLength(1);
  expect(readReceiptsAnswer(JSON.parse(JSON.stringify(sheets))).slices).toEqual(
    readReceiptsAnswer(JSON.parse(JSON.stringify(plain))).slices,
  );
  expect(JSON.stringify(sheets).length * 3).toBeLessThan(JSON.stringify(plain).length);
});
