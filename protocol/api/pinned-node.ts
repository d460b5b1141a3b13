/**
 * Answers of a node whose identity is pinned (specification: Authentication, rule 7): each must be signed by one of the
 * pinned identities, for the request that was sent and for one chain. The key comes from the node itself and must hash
 * to a pinned identity; the chain is the configured one, or the one that the node reports, kept once a signature covered it.
 */
import { ml_dsa65 } from '@noble/post-quantum/ml-dsa.js';
import { type Bytes, fromHex } from '../bytes.ts';
import { ApiError, type RawAnswer } from './client-calls.ts';
import { nodeIdentity } from './documents.ts';
import { check, type Infer } from './schema.ts';
import { serviceIdentity, type VerifySignature, verifySignedAnswer } from './signed-answer.ts';

export type Pin = {
  /** One or more identities, of the nodes that may answer. */
  readonly identity: string | readonly string[];
  readonly chainId?: string;
};

export type ProvenCall = {
  readonly method: string;
  readonly target: string;
  readonly requestBody: Bytes;
  readonly nonce: Bytes;
};

/** The portable default; callers may pass a faster one. */
const portableVerify: VerifySignature = (signature, message, publicKey) =>
  ml_dsa65.verify(signature, message, publicKey);

type Known = { readonly identity: Bytes; readonly publicKey: Bytes; readonly chainId: Bytes };

export class PinnedNode {
  readonly #identities: ReadonlySet<string>;
  readonly #fetchIdentity: () => Promise<unknown>;
  readonly #verify: VerifySignature;
  #chainId: Bytes | undefined;
  #known: Promise<Known> | undefined;

  /** `fetchIdentity` gives the document of GET /v1/node/identity, as it came. */
  constructor(pin: Pin, fetchIdentity: () => Promise<unknown>, verify: VerifySignature = portableVerify) {
    this.#identities = new Set(typeof pin.identity === 'string' ? [pin.identity] : pin.identity);
    this.#chainId = pin.chainId === undefined ? undefined : fromHex(pin.chainId);
    this.#fetchIdentity = fetchIdentity;
    this.#verify = verify;
  }

  /** Throws `client_answer_unproven` unless a pinned node signed the answer. */
  async prove(call: ProvenCall, answer: RawAnswer): Promise<void> {
    const first = this.#verdict(call, answer, await this.#key());
    if (first === undefined) return;
    // Another of the pinned nodes may have taken its place; and a chain that no signature has covered may be a false one.
    const isDoubtful = first === 'answer_identity' || this.#chainId === undefined;
    const again = isDoubtful ? this.#verdict(call, answer, await this.#key(true)) : first;
    if (again !== undefined) throw new ApiError('client_answer_unproven', answer.status, again);
  }

  #verdict(call: ProvenCall, answer: RawAnswer, { identity, publicKey, chainId }: Known): string | undefined {
    const verdict = verifySignedAnswer(
      {
        ...call,
        status: answer.status,
        answerBody: answer.bytes,
        chainId: this.#chainId ?? chainId,
        header: answer.header,
        publicKey,
        pinnedIdentity: identity,
      },
      this.#verify,
    );
    if (!verdict.ok) return verdict.problem;
    this.#chainId ??= chainId;
    return undefined;
  }

  #key(anew = false): Promise<Known> {
    if (this.#known === undefined || anew) {
      const asked = this.#askKey();
      this.#known = asked;
      // A failed read is not cached.
      asked.catch(() => {
        if (this.#known === asked) this.#known = undefined;
      });
    }
    return this.#known;
  }

  async #askKey(): Promise<Known> {
    const document = await this.#fetchIdentity();
    if (check(nodeIdentity, document, '', { unknownFields: 'ignore' }) !== undefined)
      throw new ApiError('client_bad_answer', 0, 'not an identity document');
    const { public_key, identity, chain_id } = document as Infer<typeof nodeIdentity>;
    const publicKey = fromHex(public_key);
    const own = serviceIdentity(publicKey);
    if (!this.#identities.has(identity) || !own.every((byte, i) => byte === fromHex(identity)[i]))
      throw new ApiError('client_answer_unproven', 0, 'the server has another identity than the pinned one');
    return { identity: own, publicKey, chainId: this.#chainId ?? fromHex(chain_id) };
  }
}
