/** A miner's own payout threshold, changed with the key of its address (signed-change.ts). */

import { ATOMS_PER_COIN, formatCoins, parseAtoms } from '../../../protocol/amount.ts';
import { ProtocolError } from '../../../protocol/errors.ts';
import type { NetworkName } from '../../../protocol/network.ts';
import type { AddressProof, AddressProofRequest } from '../../../protocol/transactions/address-proof.ts';
import type { WallClock } from '../../../runtime/clock/clock.ts';
import type { Sql } from '../../database/connect.ts';
import { endMillis, type LedgerDate, noteEarlier } from '../../payout/earlier-minimums.ts';
import { ApiRefusal } from '../api-error.ts';
import type { Account } from './miner-view.ts';
import { type Change, madeAlready, SignedChange } from './signed-change.ts';

export type PayoutThresholdOptions = {
  readonly network: NetworkName;
  /** Smallest threshold: below it a payment costs more than it is worth. */
  readonly least: bigint;
  /** Name of the pool: it is part of what the miner signs. */
  readonly pool: string;
};

/** A digit too many must not leave a miner unpaid for years. */
export const MAX_THRESHOLD = 10_000n * ATOMS_PER_COIN;

export class PayoutThreshold {
  readonly #options: PayoutThresholdOptions;
  readonly #sql: Sql;
  readonly #signed: SignedChange;
  readonly #endMillis: () => number;

  constructor(
    options: PayoutThresholdOptions,
    dependencies: { sql: Sql; now: WallClock; chain: () => LedgerDate | undefined },
  ) {
    this.#options = options;
    this.#sql = dependencies.sql;
    this.#endMillis = () => endMillis(dependencies.now(), dependencies.chain());
    this.#signed = new SignedChange(options.network, dependencies);
  }

  #change(address: string, threshold: bigint): Change {
    const purpose = `payout threshold of ${threshold} atoms at the pool "${this.#options.pool}"`;
    return { address, bound: String(threshold), purpose, what: 'threshold' };
  }

  #threshold(value: unknown): bigint {
    let threshold: bigint;
    try {
      threshold = parseAtoms(typeof value === 'string' ? value : '');
    } catch (error) {
      if (error instanceof ProtocolError) throw new ApiRefusal('bad_request', `threshold_atoms: ${error.message}`);
      throw error;
    }
    if (threshold < this.#options.least)
      throw new ApiRefusal('bad_request', `the threshold must be at least ${formatCoins(this.#options.least)} coins`);
    const { least } = this.#options;
    const most = least > MAX_THRESHOLD ? least : MAX_THRESHOLD;
    if (threshold > most)
      throw new ApiRefusal('bad_request', `the threshold must be at most ${formatCoins(most)} coins`);
    return threshold;
  }

  async request(address: string, thresholdAtoms: unknown): Promise<AddressProofRequest> {
    const threshold = this.#threshold(thresholdAtoms);
    const [row] = await this.#sql<{ millis: bigint | null }[]>`select payout_min_millis as millis from accounts
      where address = ${address}`;
    return this.#signed.request(this.#change(address, threshold), Number(row?.millis ?? -1n));
  }

  async change(account: Account, thresholdAtoms: unknown, request: AddressProofRequest, proof: AddressProof) {
    const threshold = this.#threshold(thresholdAtoms);
    await this.#signed.insist(this.#change(account.address, threshold), request, proof);
    await this.#sql.begin(async (transaction) => {
      const [before] = await transaction<{ atoms: bigint | null }[]>`select payout_min as atoms from accounts
        where id = ${account.id} and coalesce(payout_min_millis, -1) < ${request.created_millis} for update`;
      if (before === undefined) throw madeAlready();
      await transaction`update accounts set payout_min = ${threshold}, payout_min_millis = ${request.created_millis}
        where id = ${account.id}`;
      const atoms = before.atoms ?? this.#options.least;
      if (atoms > threshold) await noteEarlier(transaction, account.id, { atoms, untilMillis: this.#endMillis() });
    });
    return { address: account.address, payout_min_atoms: String(threshold) };
  }
}
