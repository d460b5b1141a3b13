/** What a node finds when it opens its store: a last cut that is not whole is refused with its reason, and bodies that `svcd prune` deleted are not missed. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ClassicLevel } from 'classic-level';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { developmentKey } from '../../node/genesis/development.ts';
import { KEYS } from '../../node/store/keys.ts';
import { type Certificate, decodeCertificate, encodeCertificate } from '../../protocol/ledger/cut.ts';
import { Bed } from './bed.ts';

const alice = developmentKey('alice').address;
const MAIN = fileURLToPath(new URL('../../node/main.ts', import.meta.url));

let bed: Bed;
beforeEach(async () => {
  bed = await Bed.open();
});
afterEach(async () => {
  await bed.close();
});

/** Changes the store while no node has it open. */
async function alter(change: (db: ClassicLevel<Uint8Array, Uint8Array>) => Promise<void>): Promise<void> {
  await bed.node.close();
  const db = new ClassicLevel<Uint8Array, Uint8Array>(join(bed.directory, 'store'), {
    keyEncoding: 'view',
    valueEncoding: 'view',
  });
  await db.open();
  await change(db);
  await db.close();
}

const certificateOf = async (db: ClassicLevel<Uint8Array, Uint8Array>, height: number) =>
  decodeCertificate((await db.get(KEYS.certificate(height))) as Uint8Array);

test('a last cut whose certificate does not verify is refused, and the store is not kept locked', async () => {
  await bed.close();
  bed = await Bed.open({ genesis: { validators: 4 } });
  await bed.seal(3);
  let good = new Uint8Array(0);
  await alter(async (db) => {
    good = new Uint8Array((await db.get(KEYS.certificate(3))) as Uint8Array);
    const certificate = await certificateOf(db, 3);
    const { signature } = certificate.signatures[0] as Certificate['signatures'][number];
    signature[100] = (signature[100] as number) ^ 1;
    await db.put(KEYS.certificate(3), encodeCertificate(certificate));
  });
  const refusal = { code: 'store_damaged', message: 'the certificate of cut 3 does not verify' };
  await expect(bed.openNode()).rejects.toMatchObject(refusal);
  // Two of four members are less than two thirds.
  const { round, signatures } = decodeCertificate(good);
  const put = (certificate: Certificate) => alter((db) => db.put(KEYS.certificate(3), encodeCertificate(certificate)));
  await put({ round, signatures: signatures.slice(0, 2) });
  await expect(bed.openNode()).rejects.toMatchObject(refusal);
  // The round is signed: precommits of round 0 are none of round 1.
  await put({ round: 1, signatures });
  await expect(bed.openNode()).rejects.toMatchObject(refusal);
  // That of the cut before is no certificate of this one.
  await alter(async (db) => db.put(KEYS.certificate(3), encodeCertificate(await certificateOf(db, 2))));
  await expect(bed.openNode()).rejects.toMatchObject(refusal);
  await alter((db) => db.del(KEYS.certificate(3)));
  await expect(bed.openNode()).rejects.toMatchObject({ code: 'store_damaged' });
  await alter((db) => db.put(KEYS.certificate(3), good));
  await bed.openNode();
  expect(bed.node.chain.head().height).toBe(3);
});

test('a store of another format is refused, with what to do', async () => {
  await alter((db) => db.put(KEYS.format, Buffer.from('3')));
  await expect(bed.openNode()).rejects.toMatchObject({
    code: 'store_format',
    message: expect.stringMatching(
      /has the format 3, and this release reads 4: use the release that wrote it, or a new/,
    ),
  });
  await alter((db) => db.put(KEYS.format, Buffer.from('4')));
  await bed.openNode();
});

test('a record of a committed set that was damaged is noticed when it is read', async () => {
  await bed.seal(2);
  // 64 outputs of the treasury: the first record of the set holds all of its nodes.
  await alter(async (db) => {
    const key = Buffer.from('6f0000', 'hex');
    const record = new Uint8Array((await db.get(key)) as Uint8Array);
    record[40] = (record[40] as number) ^ 1;
    await db.put(key, record);
  });
  await bed.openNode();
  expect(() => bed.node.chain.output(bed.treasury(1).outpoint)).toThrow(/state record 6f0000 is damaged/);
});

test('a state that is not that of the last cut is refused', async () => {
  await bed.seal(2);
  await alter(async (db) => {
    const state = new Uint8Array((await db.get(KEYS.state)) as Uint8Array);
    // The first byte of `minted`.
    const at = 48 + 8 + 48 + 8 + 5 * 64;
    state.set([(state[at] as number) ^ 1], at);
    await db.put(KEYS.state, state);
  });
  await expect(bed.openNode()).rejects.toMatchObject({ code: 'store_damaged' });
});

test('svcd prune deletes old bodies and nothing else; the chain goes on', async () => {
  const old = [await bed.mine(alice), await bed.mine(alice)];
  await bed.pay([bed.treasury(0)], [{ address: alice, amount: 5n }]);
  const paying = await bed.mine(alice);
  const [pending] = [...bed.node.mempool.list()];
  await bed.seal(150);
  const recent = await bed.mine(alice);
  await bed.seal(1);
  const waiting = await bed.mine(alice);
  await bed.node.close();
  const words = [MAIN, 'prune', '--data-dir', bed.directory, '--keep-cuts', '96'];
  const run = () => promisify(execFile)(process.execPath, words);
  expect((await run()).stdout).toBe('3 bodies deleted\n');
  expect((await run()).stdout).toBe('0 bodies deleted\n');
  await bed.openNode();
  for (const id of [...old, paying]) {
    expect(bed.node.chain.blockBody(id)).toBeUndefined();
    expect(bed.node.chain.block(id)).toMatchObject({ registeredHeight: 1, reward: { state: 'paid', height: 96 } });
  }
  for (const id of [recent, waiting]) expect(bed.node.chain.blockBody(id)).toBeDefined();
  // What the pruned block did stays known, down to the output and its proof.
  const id = pending?.id ?? new Uint8Array();
  expect(bed.node.chain.transactionStatus(id)).toMatchObject({ lifecycle: 'finalized', final: true });
  expect(bed.node.chain.output({ transactionId: id, outputIndex: 0 })).toMatchObject({ amount: 5n });
  expect((await bed.seal(1)).registered.map((block) => block.id)).toEqual([waiting]);
});
