/**
 * A change that the holder of an address makes with its key (protocol/transactions/address-proof.ts). The challenge itself binds
 * address, change and time under a secret that all instances share, so nothing is stored between the two requests. The
 * time is stored with each change, and only newer requests count: a change cannot be replayed.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { verifyMessage } from '../../../node/ml-dsa.ts';
import { ProtocolError } from '../../../protocol/errors.ts';
import type { NetworkName } from '../../../protocol/network.ts';
import {
  type AddressProof,
  type AddressProofRequest,
  PROOF_VERSION,
  readProofRequest,
  verifyAddressProof,
} from '../../../protocol/transactions/address-proof.ts';
import type { WallClock } from '../../../runtime/clock/clock.ts';
import type { Sql } from '../../database/connect.ts';
import { ApiRefusal } from '../api-error.ts';

const VALID_MILLIS = 15 * 60_000;
/** Named after the threshold, the first such change; kept, so that requests from before an upgrade stay valid. */
const SECRET = 'payout_threshold_secret';

export type Change = {
  readonly address: string;
  /** The text bound by the challenge; different for every change. */
  readonly bound: string;
  /** The text that the holder reads and signs. */
  readonly purpose: string;
  /** The noun in the refusal 'the request was not made here, or is for another ...'. */
  readonly what: string;
};

export class SignedChange {
  readonly #network: NetworkName;
  readonly #sql: Sql;
  readonly #now: WallClock;
  #secret: Promise<string> | undefined;

  constructor(network: NetworkName, dependencies: { sql: Sql; now: WallClock }) {
    this.#network = network;
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

  async #challenge({ address, bound }: Change, createdMillis: number): Promise<string> {
    return createHmac('sha256', await this.#sharedSecret())
      .update(`${this.#network}/${address}/${bound}/${createdMillis}`)
      .digest('hex');
  }

  /** `newest`: time of the last change. The request gets a later time, even if the clock went back. */
  async request(change: Change, newest: number): Promise<AddressProofRequest> {
    const created = Math.max(this.#now(), newest + 1);
    const request: AddressProofRequest = {
      version: PROOF_VERSION,
      network: this.#network,
      address: change.address,
      purpose: change.purpose,
      challenge: await this.#challenge(change, created),
      created_millis: created,
      expires_millis: created + VALID_MILLIS,
    };
    try {
      readProofRequest(request, this.#network);
    } catch (error) {
      if (error instanceof ProtocolError) throw new ApiRefusal('bad_request', error.message);
      throw error;
    }
    return request;
  }

  /** Throws a refusal unless the key of the address signed this very change. The caller compares the time. */
  async insist(change: Change, request: AddressProofRequest, proof: AddressProof): Promise<void> {
    const isShaped = typeof request === 'object' && request !== null && typeof proof === 'object' && proof !== null;
    if (!isShaped || request.address !== change.address || !Number.isSafeInteger(request.created_millis))
      throw new ApiRefusal('bad_request', 'request and proof must be those of this address');
    const expected = Buffer.from(await this.#challenge(change, request.created_millis));
    const given = Buffer.from(String(request.challenge));
    const isOurs = given.length === expected.length && timingSafeEqual(given, expected);
    const isMeant = request.purpose === change.purpose;
    if (!isOurs || !isMeant || request.expires_millis !== request.created_millis + VALID_MILLIS)
      throw new ApiRefusal('forbidden', `the request was not made here, or is for another ${change.what}`);
    const verdict = verifyAddressProof(request, proof, {
      network: this.#network,
      nowMillis: this.#now(),
      verify: verifyMessage,
    });
    if (!verdict.valid) throw new ApiRefusal('forbidden', `the proof does not hold: ${verdict.reason}`);
  }
}

export const madeAlready = () =>
  new ApiRefusal('conflict', 'this change was made already, or a newer one was: ask for a new request');
