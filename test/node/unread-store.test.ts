/** A store that cannot be read for a moment says nothing of a block or a cut: no block is left out, and no cut breaks a rule by it. A damaged one is the reason to stop, under its own name. */
import { ClassicLevel } from 'classic-level';
import { expect, onTestFinished, test } from 'vitest';
import type { CutLedgerParts } from '../../node/chain/cut-ledger.ts';
import { cutLedgerOf } from '../../node/chain/cut-ledger.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { DamagedRecordError, UnreadRecordError } from '../../node/ledger/unread-record.ts';
import type { ConsensusNode } from '../../node/node.ts';
import type { ProposedCut } from '../../protocol/consensus/proposal.ts';
import { Bed, silentLog } from './bed.ts';

const alice = developmentKey('alice').address;

/** All reads of all stores fail until the returned function is called. */
function brokenReads(): () => void {
  const { getSync } = ClassicLevel.prototype;
  const restore = () => {
    ClassicLevel.prototype.getSync = getSync;
  };
  onTestFinished(restore);
  ClassicLevel.prototype.getSync = () => {
    throw Object.assign(new Error('IO error: .ldb: Input/output error'), { code: 'LEVEL_IO_ERROR' });
  };
  return restore;
}

test('while the store cannot be read no block is left out of cuts, and no cut is judged; afterwards it is as before', async () => {
  const bed = await Bed.open();
  onTestFinished(() => bed.close());
  await bed.seal();
  await bed.pay([bed.treasury(0)], [{ address: alice, amount: 5n }]);
  const id = await bed.mine(alice);
  const { node } = bed;
  const { ledger } = node as ConsensusNode;
  const faults: Error[] = [];
  node.on('fault', (error) => void faults.push(error));
  const parts = { timestampMillis: bed.now + 2_500, signers: 1n };
  const { header, cutId } = ledger.make(parts).effects;
  const proposed = { header, cutId, blockIds: [id] } as unknown as ProposedCut;
  const mend = brokenReads();
  expect(() => ledger.make(parts)).toThrow(UnreadRecordError);
  for (let times = 0; times < 2; times++) expect(ledger.execute(proposed)).toBeUndefined();
  mend();
  expect(ledger.execute(proposed)).toMatchObject({ effects: { cutId } });
  expect(ledger.isHere(id)).toBe(true);
  expect((await bed.seal()).transactions.map(({ outcome }) => outcome)).toEqual(['executed']);
  expect(faults).toEqual([]);
});

test('a store that is damaged stops the node under its own name, and no rule is broken by it', () => {
  const [faults, block]: [Error[], { id: Uint8Array }] = [[], { id: new Uint8Array(48) }];
  const damaged = new DamagedRecordError('state record 6f0000 is damaged');
  const parts = {
    chain: { head: () => ({ height: 0 }), genesis: {} },
    pool: { get: () => block },
    cuts: {
      isDated: () => true,
      execute: () => {
        throw damaged;
      },
    },
    end: { fail: (error: Error) => void faults.push(error) },
    checkpoints: [],
    log: silentLog,
  } as unknown as CutLedgerParts;
  const cut = { header: { height: 1, timestampMillis: 0 }, cutId: block.id, blockIds: [block.id] };
  expect(cutLedgerOf(parts).execute(cut as unknown as ProposedCut)).toBeUndefined();
  expect(faults).toEqual([damaged]);
});
