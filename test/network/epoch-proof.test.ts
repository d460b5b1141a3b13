/** The identifiers of an old epoch, by headers back from its end: what is proven is kept where a peer is busy. */
import { expect, test } from 'vitest';
import { certifyWith, type Member } from '../../node/chain/certificate.ts';
import type { CutLedger } from '../../node/chain/cut-ledger.ts';
import { rawPublicKey } from '../../node/ml-dsa.ts';
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

test('of an epoch no header is asked for twice where nobody answers some of the questions', async () => {
  const [key] = developmentKeys(1);
  if (key === undefined) throw new Error('no key');
  const members: Member[] = [{ publicKey: rawPublicKey(key), stake: 1n }];
  const end = { height: CUTS - 1, cutId: idAt(CUTS - 1) };
  const certificate = await certifyWith([key])({ chainId: SOME, ...end, committee: members });
  const ledger = {
    chainId: SOME,
    intervalCuts: CUTS,
    head: () => ({ height: 0, cutId: idAt(0) }),
    committee: () => ({ members }),
  } as unknown as CutLedger;
  const answered: number[] = [];
  let asked = 0;
  const epochs = new EpochProof(ledger, async (peer, question, read) => {
    // Every second question finds the peer busy.
    if (question.type !== 'headers' || ++asked % 2 === 0) return undefined;
    const { to, count } = question;
    answered.push(to);
    const found = headers.slice(to - count + 1, to + 1);
    return await read(
      peer,
      encodeHeadersAnswer({ headers: found, certificate: to === end.height ? certificate : undefined }),
    );
  });
  const idOf = (height: number) => epochs.idOf('peer', height, 1);
  await expect(idOf(95)).rejects.toThrow('nobody has the headers');
  await expect(idOf(95)).rejects.toThrow('nobody has the headers');
  expect(await idOf(95)).toEqual(idAt(95));
  expect(await idOf(CUTS - 1)).toEqual(end.cutId);
  expect(answered).toEqual([CUTS - 1, CUTS - 1 - MAX_HEADERS, CUTS - 1 - 2 * MAX_HEADERS]);
});
