/** vectors/rewards.json on the real ledger: the blocks it names are registered, their transactions executed, their anchors paid. */
import { expect, test } from 'vitest';
import { developmentGenesis } from '../../node/genesis/development.ts';
import type { Registrable } from '../../node/ledger/registration.ts';
import { readTransaction, type WorkBlock } from '../../node/ledger/work-block.ts';
import { fromHex } from '../../protocol/bytes.ts';
import { genesisOutpoint } from '../../protocol/ledger/genesis.ts';
import {
  encodeTransaction,
  type Output,
  PUBLIC_KEY_BYTES,
  SIGNATURE_BYTES,
} from '../../protocol/transactions/transaction.ts';
import vectors from '../../vectors/rewards.json' with { type: 'json' };
import { START_MILLIS } from './bed.ts';
import { MemoryLedger } from './memory-ledger.ts';

const genesis = developmentGenesis({ timestampMillis: START_MILLIS, validators: 1 });

test('every anchor of the tables is paid as they say', () => {
  const ledger = new MemoryLedger(genesis);
  const { chainId } = ledger.state;
  let spent = 0;
  /** A payment to oneself that leaves exactly this fee. Witnesses are not checked here. */
  const paying = (fee: number) => {
    const { address, amount } = genesis.outputs[spent] as Output;
    const body = {
      chainId,
      validFromHeight: 0,
      validUntilHeight: 1_000,
      inputs: [genesisOutpoint(chainId, spent)],
      outputs: [{ address, amount: amount - BigInt(fee) }],
      payload: new Uint8Array(0),
    };
    spent++;
    const witness = {
      profile: 'inline',
      publicKey: new Uint8Array(PUBLIC_KEY_BYTES),
      signature: new Uint8Array(SIGNATURE_BYTES),
    } as const;
    return readTransaction(encodeTransaction({ body, witnesses: [witness] }), chainId);
  };
  const block = (anchorHeight: number, id: string, fees: readonly number[]): WorkBlock & Registrable =>
    ({
      id: fromHex(id),
      bodyId: fromHex(id),
      hash: fromHex(id).subarray(0, 32),
      header: { anchorHeight },
      headerBytes: new Uint8Array(312),
      bodyBytes: new Uint8Array(0),
      body: { payout: new Uint8Array(49), extranonce: new Uint8Array(1), parents: [], transactions: [] },
      work: 1n,
      transactions: fees.map(paying),
      signatures: 0,
    }) as unknown as WorkBlock & Registrable;

  for (let height = 1; height <= 105; height++) {
    const anchor = vectors.anchors.find((entry) => entry.anchor === height - 1);
    const registered = (anchor?.blocks ?? []).filter((entry) => !('expires' in entry));
    const effects = ledger.next({ blocks: registered.map((entry) => block(height - 1, entry.block_id, entry.fees)) });
    expect(effects.transactions.every(({ outcome }) => outcome === 'executed')).toBe(true);
    const due = vectors.anchors.find((entry) => entry.paid_in_cut === height);
    if (due === undefined) continue;
    const name = (id: string) => due.blocks.find((entry) => entry.block_id === id)?.name;
    expect(
      effects.rewards.map((reward) => ({
        block: name(Buffer.from(reward.blockId).toString('hex')),
        subsidy: reward.subsidy.toString(),
        fees: reward.fees.toString(),
        amount: reward.amount.toString(),
      })),
    ).toEqual(due.payouts);
    expect(ledger.state.workCarry.toString()).toBe(due.carried_out);
  }
});

test('the tables add up: what goes in comes out or is carried on', () => {
  let carried = 0n;
  for (const anchor of vectors.anchors) {
    expect(BigInt(anchor.carried_in)).toBe(carried);
    carried = BigInt(anchor.carried_out);
    const paid = anchor.payouts.reduce((sum, payout) => sum + BigInt(payout.subsidy), 0n);
    expect(paid + carried).toBe(BigInt(anchor.work_half) + BigInt(anchor.carried_in));
  }
});
