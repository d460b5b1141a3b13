/** The identifiers of an old epoch, by headers back from its end: what is proven is kept where a peer is busy. */
import { expect, test } from 'vitest';
import { certifyWith, type Member } from '../../node/chain/certificate.ts';
import type { CutLedger } from '../../node/chain/cut-ledger.ts';
import { rawPublicKey } from '../../node/ml-dsa.ts';
import { PeerFault } from '../../node/network/peers/peer-fault.ts';
import { UnprovenError } from '../../node/network/sync/cut-proof.ts';
import { EpochProof } from '../../node/network/sync/epoch-proof.ts';
import { encodeHeadersAnswer, MAX_HEADERS } from '../../node/network/sync/sync-messages.ts';
import { cutId, encodeCutHeader } from '../../protocol/ledger/cut.ts';
import { developmentKeys } from '../node/bed.ts';

const CUTS = 3 * MAX_HEADERS;
const SOME = new Uint8Array(48).fill(7);

const headers: Uint8Array[] = [];
for (let height = 0; height < CUTS; height++) {
  const previousId = height === 0 ? SOME : cutId(headers[height - 1] as Uint8Array);
  const roots = { blocksRoot: SOME, stateRoot: SOME, validatorSetId: SOME };
  headers.push(
    encodeCutHeader({
      networkId: 1,
      height,
      timestampMillis: height,
      previousId,
      ...roots,
      blockCount: 0,
      signers: 0n,
    }),
  );
}
const idAt = (height: number) => cutId(headers[height] as Uint8Array);

const [key] = developmentKeys(1);
if (key === undefined) throw new Error('no key');
const members: Member[] = [{ publicKey: rawPublicKey(key), stake: 1n }];
const end = { height: CUTS - 1, cutId: idAt(CUTS - 1) };
const certificate = await certifyWith([key])({ chainId: SOME, ...end, committee: members });
const ledgerWith = (headId: Uint8Array) =>
  ({
    chainId: SOME,
    intervalCuts: CUTS,
    head: () => ({ height: 0, cutId: headId }),
    committee: () => ({ members }),
  }) as unknown as CutLedger;
const answerOf = (to: number, count: number) =>
  encodeHeadersAnswer({
    headers: headers.slice(to - count + 1, to + 1),
    certificate: to === end.height ? certificate : undefined,
  });

test('of an epoch no header is asked for twice where nobody answers some of the questions', async () => {
  const answered: number[] = [];
  let asked = 0;
  const epochs = new EpochProof(ledgerWith(idAt(0)), async (peer, question, read) => {
    // Every second question finds the peer busy.
    const of = question();
    if (of === undefined || ++asked % 2 === 0) return undefined;
    answered.push(of.to);
    return await read(peer, answerOf(of.to, of.count), of);
  });
  const load = () => epochs.load('peer', 1);
  await expect(load()).rejects.toThrow('nobody has the headers');
  expect(epochs.idOf(95)).toBeUndefined();
  await expect(load()).rejects.toThrow('nobody has the headers');
  await load();
  expect(epochs.idOf(95)).toEqual(idAt(95));
  expect(epochs.idOf(CUTS - 1)).toEqual(end.cutId);
  expect(epochs.idOf(CUTS)).toBeUndefined();
  expect(answered).toEqual([CUTS - 1, CUTS - 1 - MAX_HEADERS, CUTS - 1 - 2 * MAX_HEADERS]);
});

test('an epoch that does not lead to the own head is one fault of one peer, however many answers wait for its headers', async () => {
  const epochs = new EpochProof(ledgerWith(SOME), async (peer, question, read) => {
    const of = question();
    return of && (await read(peer, answerOf(of.to, of.count), of));
  });
  const waiting = ['first', 'second', 'third'].map((peer) => epochs.load(peer, 1));
  const reasons = await Promise.all(waiting.map((one) => one.catch((error: unknown) => (error as Error).constructor)));
  expect(reasons).toEqual([PeerFault, UnprovenError, UnprovenError]);
});
