/**
 * A miner's own payout threshold, proven by the key of its address (protocol/address-proof.ts). The challenge itself binds
 * address, threshold and time under a secret that all instances share, so nothing is kept between the two requests. The
 * books keep the time of the last change that was made, and only newer requests count: a change cannot be made twice.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { verifyMessage } from '../../node/ml-dsa.ts';
import {
  type AddressProof,
  type AddressProofRequest,
  PROOF_VERSION,
  readProofRequest,
  verifyAddressProof,
} from '../../protocol/address-proof.ts';
import { parseAtoms } from '../../protocol/amount.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import type { NetworkName } from '../../protocol/network.ts';
import type { Sql } from '../database/connect.ts';
import { ApiRefusal } from './api-error.ts';
import type { Account } from './miner-view.ts';

const VALID_MILLIS = 15 * 60_000;
const SECRET = 'payout_threshold_secret';

export type PayoutThresholdOptions = {
  readonly network: NetworkName;
  /** Smallest threshold: below it a payment costs more than it is worth. */
  readonly least: bigint;
  /** Name of the pool: it is part of what the miner signs. */
  readonly pool: string;
};

export class PayoutThreshold {
  readonly #options: PayoutThresholdOptions;
  readonly #sql: Sql;
  readonly #now: () => number;
  #secret: Promise<string> | undefined;

  constructor(options: PayoutThresholdOptions, dependencies: { sql: Sql; now: () => number }) {
    this.#options = options;
    this.#sql = dependencies.sql;
    this.#now = dependencies.now;
  }

  #sharedSecret(): Promise<string> {
    this.#secret ??= (async () => {
      await this
        .#sql`insert into settings values (${SECRET}, ${randomBytes(32).toString('hex')}) on conflict do nothing`;
      const [row] = await this.#sql<{ value: string }[]>`select value from settings where name = ${SECRET}`;
      return (row as { value: string }).value;
    })();
    this.#secret.catch(() => {
      this.#secret = undefined;
    });
    return this.#secret;
  }

  async #challenge(address: string, threshold: bigint, createdMillis: number): Promise<string> {
    const text = `${this.#options.network}/${address}/${threshold}/${createdMillis}`;
    return createHmac('sha256', await this.#sharedSecret())
      .update(text)
      .digest('hex');
  }

  #purpose(threshold: bigint): string {
    return `payout threshold of ${threshold} atoms at the pool "${this.#options.pool}"`;
  }

  /** Later than every change that was made, whatever a clock did meanwhile. */
  async #created(address: string): Promise<number> {
    const [row] = await this.#sql<{ millis: bigint | null }[]>`select payout_min_millis as millis from accounts
      where address = ${address}`;
    return Math.max(this.#now(), Number(row?.millis ?? -1n) + 1);
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
      throw new ApiRefusal('bad_request', `the threshold is at least ${this.#options.least} atoms`);
    return threshold;
  }

  async request(address: string, thresholdAtoms: unknown): Promise<AddressProofRequest> {
    const threshold = this.#threshold(thresholdAtoms);
    const created = await this.#created(address);
    const request: AddressProofRequest = {
      version: PROOF_VERSION,
      network: this.#options.network,
      address,
      purpose: this.#purpose(threshold),
      challenge: await this.#challenge(address, threshold, created),
      created_millis: created,
      expires_millis: created + VALID_MILLIS,
    };
    try {
      readProofRequest(request, this.#options.network);
    } catch (error) {
      if (error instanceof ProtocolError) throw new ApiRefusal('bad_request', error.message);
      throw error;
    }
    return request;
  }

  async change(account: Account, thresholdAtoms: unknown, request: AddressProofRequest, proof: AddressProof) {
    const threshold = this.#threshold(thresholdAtoms);
    const isShaped = typeof request === 'object' && request !== null && typeof proof === 'object' && proof !== null;
    if (!isShaped || request.address !== account.address || !Number.isSafeInteger(request.created_millis))
      throw new ApiRefusal('bad_request', 'request and proof are those of this address');
    const expected = Buffer.from(await this.#challenge(account.address, threshold, request.created_millis));
    const given = Buffer.from(String(request.challenge));
    const isOurs = given.length === expected.length && timingSafeEqual(given, expected);
    const isMeant = request.purpose === this.#purpose(threshold);
    if (!isOurs || !isMeant || request.expires_millis !== request.created_millis + VALID_MILLIS)
      throw new ApiRefusal('forbidden', 'the request was not made here, or is for another threshold');
    const verdict = verifyAddressProof(request, proof, {
      network: this.#options.network,
      nowMillis: this.#now(),
      verify: verifyMessage,
    });
    if (!verdict.valid) throw new ApiRefusal('forbidden', `the proof does not hold: ${verdict.reason}`);
    const made = await this
      .#sql`update accounts set payout_min = ${threshold}, payout_min_millis = ${request.created_millis}
      where id = ${account.id} and coalesce(payout_min_millis, -1) < ${request.created_millis} returning id`;
    if (made.length === 0)
      throw new ApiRefusal('conflict', 'this change was made already, or a newer one was: ask for a new request');
    return { address: account.address, payout_min_atoms: String(threshold) };
  }
}
