/**
 * A chain of random work and payments on a real node and store, from one seed: miners that come and go, payments that chain, conflict and
 * repeat across blocks, burns. Signatures of payments are real; certificates only where the node is stopped and opened again, because 80,000 of them prove
 * nothing new.
 */
import { type Certify, certifyWith } from '../../node/chain/certificate.ts';
import type { UnspentOutput } from '../../node/full-node.ts';
import { developmentKey, TREASURY } from '../../node/genesis/development.ts';
import type { CutEffects } from '../../node/ledger/effects.ts';
import { burnAddressPayload } from '../../protocol/address.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { SIGNATURE_BYTES } from '../../protocol/transactions/transaction.ts';
import { randomOf } from '../random.ts';
import { Bed, developmentKeys } from './bed.ts';

/** Certificates that are signed only while `signed` is set: a store opens only if that of its last cut verifies. */
export function certificates(members: number): { signed: boolean; readonly certify: Certify } {
  const signature = new Uint8Array(SIGNATURE_BYTES);
  const blank = { round: 0, signatures: Array.from({ length: members }, (_, member) => ({ member, signature })) };
  const sign = certifyWith(developmentKeys(members));
  const maker: { signed: boolean; readonly certify: Certify } = {
    signed: true,
    certify: (cut) => (maker.signed ? sign(cut) : Promise.resolve(blank)),
  };
  return maker;
}

export type SimulationResult = {
  readonly stateRoot: string;
  readonly blocks: number;
  readonly executed: number;
  readonly failed: number;
  readonly stakePayouts: number;
  readonly expired: number;
};

export type SimulationSettings = {
  readonly cuts: number;
  readonly seed: number;
  readonly paymentsPerCut: number;
  readonly reopenEvery: number;
  readonly signatures: Map<string, Uint8Array<ArrayBuffer>>;
};

export async function simulate({
  cuts,
  seed,
  paymentsPerCut,
  reopenEvery,
  signatures,
}: SimulationSettings): Promise<SimulationResult> {
  const random = randomOf(seed);
  const validators = 3;
  const certificate = certificates(validators);
  const bed = await Bed.open({ seed, genesis: { validators }, dependencies: { certify: certificate.certify } });
  const miners = ['alice', 'bob', 'carol'].map((name) => developmentKey(name).address);
  const purse: UnspentOutput[] = Array.from({ length: 64 }, (_, i) => bed.treasury(i));
  const treasury = Buffer.from(developmentKey(TREASURY).address);
  const result = { blocks: 0, executed: 0, failed: 0, stakePayouts: 0, expired: 0 };
  try {
    for (let i = 0; i < cuts; i++) {
      for (let due = paymentsPerCut; random(1_000_000) < due * 1_000_000; due--) await payAtRandom();
      for (let found = random(4); found > 0; found--) {
        // Without parents in view of each other, two draws may carry the same transactions.
        const { header, body } = bed.make(miners[random(3)] as Bytes, random(3) * 5, random(1_000));
        if (random(50) > 0) await bed.node.submitBlock(header, body);
      }
      certificate.signed = random(reopenEvery) === 0;
      note(await bed.seal());
      if (certificate.signed) await bed.reopen();
    }
    const supply = bed.node.chain.supply();
    const held =
      supply.outputs + supply.bonded + supply.unbonding + supply.workReserve + supply.stakeReserve + supply.burned;
    if (held !== supply.minted || supply.minted + supply.unscheduled !== 200_000_000n * 100_000_000n)
      throw new Error('the supply does not add up');
    return { stateRoot: Buffer.from(bed.node.chain.head().stateRoot).toString('hex'), ...result };
  } finally {
    await bed.close();
  }

  async function payAtRandom(): Promise<void> {
    const at = random(purse.length);
    const spend = purse[at] as UnspentOutput;
    const address = random(20) === 0 ? burnAddressPayload() : (miners[random(3)] as Bytes);
    const amount = BigInt(1 + random(1_000_000));
    const outcome = await bed.pay([spend], [{ address, amount }], {
      feePerMass: BigInt(10 + random(3)),
      signatures,
    });
    // A second spend of the same output is refused while the first waits: that is a conflict at the door.
    if (outcome.status === 'refused') result.failed++;
  }

  function note(effects: CutEffects): void {
    const { figures } = effects;
    const held =
      figures.outputs +
      figures.bonded +
      figures.unbonding +
      figures.workReserve +
      figures.stakeReserve +
      figures.burned;
    if (held !== figures.minted) throw new Error(`the value equation fails at cut ${effects.header.height}`);
    result.blocks += effects.registered.length;
    result.stakePayouts += effects.stakePayouts.length;
    result.expired += effects.expired.length;
    for (const transaction of effects.transactions)
      if (transaction.outcome === 'executed') result.executed++;
      else if (transaction.outcome === 'failed') result.failed++;
    for (const output of effects.spent) {
      const at = purse.findIndex(
        ({ outpoint }) => Buffer.compare(outpoint.transactionId, output.outpoint.transactionId) === 0,
      );
      if (at >= 0) purse.splice(at, 1);
    }
    for (const output of effects.created) if (treasury.equals(output.address)) purse.push(output);
  }
}
