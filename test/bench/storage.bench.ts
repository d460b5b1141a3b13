/**
 * What a node writes to its disk for a cut, by kind of record, and what that is a day in each storage mode. Words: cuts=, blocks=, payments= (of a cut). Certificates are reckoned for a committee of 100 of which all sign:
 * their length is that of the signatures.
 */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { ClassicLevel } from 'classic-level';
import type { UnspentOutput } from '../../node/full-node.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { addressIndex } from '../../node/index/address-index.ts';
import { CERTIFICATE_STEP, CERTIFICATES_KEPT } from '../../node/store/kept-certificates.ts';
import { INTERVAL_CUTS } from '../../protocol/network.ts';
import { decodeTransaction, transactionIdOfWire } from '../../protocol/transactions/transaction.ts';
import { Bed } from '../node/bed.ts';
import { type Bench, bench } from './harness.ts';

const MEBIBYTE = 1024 * 1024;
const CERTIFICATE_BYTES = 5 + 100 * 3_310;
const [ALICE, BOB] = [developmentKey('alice').address, developmentKey('bob').address];
/** By the first letter of a key (node/store/keys.ts). The state is written over and over and does not grow by itself. */
const KINDS: Readonly<Record<string, string>> = {
  C: 'cuts',
  B: 'blocks',
  D: 'bodies',
  T: 'transactions',
  X: 'spent',
  I: 'index',
};

async function kindsOf(directory: string): Promise<Map<string, number>> {
  const db = new ClassicLevel<Uint8Array, Uint8Array>(directory, {
    keyEncoding: 'view',
    valueEncoding: 'view',
    compression: false,
  });
  const bytes = new Map<string, number>();
  for await (const [key, value] of db.iterator()) {
    const kind = KINDS[String.fromCharCode(key[0] as number)] ?? 'state';
    bytes.set(kind, (bytes.get(kind) ?? 0) + key.length + value.length);
  }
  await db.compactRange(Buffer.of(0), Buffer.of(255));
  await db.close();
  return bytes;
}

const sizeOf = (directory: string): number =>
  readdirSync(directory).reduce((sum, file) => sum + statSync(join(directory, file)).size, 0);

/** Each cut spends what earlier ones gave back, so that any number of payments can be made of the treasury's outputs. */
async function pay(bed: Bed, purses: UnspentOutput[], from: number, payments: number): Promise<void> {
  for (let i = 0; i < payments; i++) {
    const at = (from + i) % purses.length;
    const wire = bed.payment([purses[at] as UnspentOutput], [{ address: BOB, amount: 5n }]);
    const outcome = await bed.node.submitTransaction(wire);
    if (outcome.status !== 'accepted') throw new Error(`not accepted: ${JSON.stringify(outcome)}`);
    const { body } = decodeTransaction(wire);
    const back = body.outputs.length - 1;
    const change = body.outputs[back];
    if (change === undefined) throw new Error('nothing came back');
    purses[at] = {
      outpoint: { transactionId: transactionIdOfWire(wire), outputIndex: back },
      ...change,
      source: 'regular',
    };
  }
}

type Load = { readonly cuts: number; readonly blocks: number; readonly payments: number };

/** Bytes of a cut by kind, and of the whole directory. */
async function measure({ cuts, blocks, payments }: Load): Promise<{ kinds: Map<string, number>; directory: number }> {
  const bed = await Bed.open({ dependencies: { indexers: [addressIndex] } });
  try {
    const purses = Array.from({ length: 64 }, (_, i) => bed.treasury(i));
    for (let cut = 0; cut < cuts; cut++) {
      await pay(bed, purses, cut * payments, payments);
      for (let draw = 0; draw < blocks; draw++) await bed.mine(ALICE, 1_000, draw);
      await bed.seal();
    }
    await bed.node.close();
    const store = join(bed.directory, 'store');
    const kinds = await kindsOf(store);
    for (const [kind, bytes] of kinds) kinds.set(kind, bytes / cuts);
    return { kinds, directory: sizeOf(store) / cuts };
  } finally {
    await bed.close();
  }
}

function report(
  b: Bench,
  { cuts, blocks, payments }: Load,
  kinds: ReadonlyMap<string, number>,
  directory: number,
): void {
  b.note(
    `${cuts} cuts of ${blocks} blocks and ${payments} payments; each payment has one input with its key and two outputs`,
  );
  for (const [kind, bytes] of kinds) b.figure(`cut-${kind}`, bytes, 'B');
  b.figure('cut-directory', directory, 'B');
  const mebibytes = (bytes: number): number => bytes / MEBIBYTE;
  const bodies = (kinds.get('bodies') ?? 0) * INTERVAL_CUTS;
  const records = ['cuts', 'blocks', 'transactions', 'spent', 'index'].reduce(
    (sum, kind) => sum + (kinds.get(kind) ?? 0),
    0,
  );
  const steps = INTERVAL_CUTS / CERTIFICATE_STEP;
  b.figure('day-full', mebibytes(records * INTERVAL_CUTS + bodies + CERTIFICATE_BYTES), 'MiB');
  b.figure('day-archive', mebibytes((records + CERTIFICATE_BYTES) * INTERVAL_CUTS + bodies), 'MiB');
  b.figure('day-pruned', mebibytes(records * INTERVAL_CUTS + CERTIFICATE_BYTES), 'MiB');
  b.figure('once-certificates-of-an-hour', mebibytes(CERTIFICATES_KEPT * CERTIFICATE_BYTES), 'MiB');
  b.figure('once-certificates-of-ten-days-full', mebibytes(10 * steps * CERTIFICATE_BYTES), 'MiB');
  b.figure('once-bodies-of-an-hour-pruned', mebibytes((bodies / INTERVAL_CUTS) * CERTIFICATES_KEPT), 'MiB');
}

export default bench('disk of a node: bytes of a cut by kind, and of a day in each storage mode', async (b) => {
  const word = (name: string, standard: number): number =>
    Number(b.words.find((given) => given.startsWith(`${name}=`))?.slice(name.length + 1) ?? standard);
  const load = { cuts: word('cuts', 300), blocks: word('blocks', 4), payments: word('payments', 0) };
  const { kinds, directory } = await measure(load);
  report(b, load, kinds, directory);
});
