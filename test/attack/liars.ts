/**
 * A node that syncs among peers that a test speaks for, in virtual time: the real sync with all its choices of whom to
 * ask, over a chain of headers, certificates and blocks without contents. The committee needs no signatures: what is
 * certified is what has a certificate.
 */
import { vi } from 'vitest';
import type { Member } from '../../node/chain/certificate.ts';
import type { CutLedger } from '../../node/chain/cut-ledger.ts';
import { nameOf } from '../../node/ledger/registration.ts';
import type { AskCode } from '../../node/network/peers/peer-fault.ts';
import { afterFault, type Fault, isBeyondBearing, NO_FAULT, type Score } from '../../node/network/peers/peer-score.ts';
import { CHUNK_BYTES, encodeChunk } from '../../node/network/snapshots/snapshot-messages.ts';
import { CutSync } from '../../node/network/sync/cut-sync.ts';
import {
  decodeSyncQuestion,
  encodeBlocksAnswer,
  encodeCutsAnswer,
  encodeHeadersAnswer,
  type SyncQuestion,
} from '../../node/network/sync/sync-messages.ts';
import { PROTOCOLS } from '../../node/network/thread/host-types.ts';
import { type Bytes, concat } from '../../protocol/bytes.ts';
import { blocksRoot, type Certificate, cutId, encodeCutHeader } from '../../protocol/ledger/cut.ts';
import { blockId, HEADER_BYTES } from '../../protocol/ledger/header.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { quietLog } from '../quiet-log.ts';

export const CUT_MILLIS = 2_500;
const SOME = new Uint8Array(48).fill(7);
const OTHER = new Uint8Array(48).fill(8);
const CERTIFICATE: Certificate = { round: 1, signatures: [] };

export type Question = Exclude<SyncQuestion, { readonly type: 'snapshots' | 'part' }>;
/** What a peer answers: bytes, `busy`, or never. It may take its time. */
export type Answer = (question: Question) => Promise<Uint8Array | 'busy' | 'silent'>;

type Cut = { readonly header: Uint8Array; readonly cutId: Bytes; readonly content: Uint8Array };

export class LiarsBed {
  readonly cuts: Cut[] = [];
  readonly #blocks = new Map<string, { readonly header: Bytes; readonly body: Bytes }>();
  readonly intervalCuts: number;
  /** The newest cut of the network. */
  tip: number;
  height = 0;
  readonly sync: CutSync;
  readonly peers = new Map<string, Answer>();
  readonly scores = new Map<string, Score>();
  readonly blamed: string[] = [];
  /** Cuts that this node has with a certificate. */
  readonly certified = new Set<number>();
  /** Versions of cuts that this node does not know. */
  readonly updates: number[] = [];
  readonly asked: { readonly peer: string; readonly type: string; readonly at: number; readonly height: number }[] = [];
  barred: (peer: string) => void = () => undefined;
  readonly #lines = new Map<string, number>();

  readonly chainId = SOME;

  /** `members`: of a committee whose signatures count. `partsAt`: from there on it is another chain, with the same signers. */
  constructor(
    length: number,
    tip: number,
    intervalCuts: number,
    {
      members,
      checkpoints = [],
      partsAt = length,
      bodyBytes = () => 100,
    }: {
      readonly members?: readonly Member[];
      readonly checkpoints?: readonly number[];
      readonly partsAt?: number;
      readonly bodyBytes?: (height: number) => number;
    } = {},
  ) {
    this.tip = tip;
    this.intervalCuts = intervalCuts;
    for (let height = 0; height < length; height++)
      this.#append(height, height < partsAt ? SOME : OTHER, new Uint8Array(bodyBytes(height)));
    const here = new Set<string>();
    const place = (of: number) => ({ height: of, cutId: (this.cuts[of] as Cut).cutId });
    const ledger = {
      chainId: SOME,
      networkId: NETWORKS.development.id,
      intervalCuts,
      head: () => place(this.height),
      // A total below nothing: no signature is more than two thirds of it.
      committee: () => ({ members: members ?? [{ publicKey: SOME, stake: -1n }] }),
      isHere: (id: Bytes) => here.has(nameOf(id)),
      settled: async () => undefined,
      admit: async (header: Bytes, body: Bytes) => {
        const id = nameOf(blockId(header));
        if (body.length !== this.#blocks.get(id)?.body.length) return 'wrong_body';
        here.add(id);
        return 'here';
      },
      forget: async () => undefined,
      fail: () => undefined,
      refute: async () => undefined,
    };
    this.sync = new CutSync({
      ledger: ledger as unknown as CutLedger,
      adopt: async ({ header: { height } }, { round }) => {
        if (height === this.height + 1) this.height = height;
        if (round === CERTIFICATE.round) this.certified.add(height);
        return 'final';
      },
      hasNeighbours: false,
      network: {
        ask: (peer, _, bytes) => this.#ask(peer, decodeSyncQuestion(bytes) as Question),
        fault: (peer, fault, reason) => this.#fault(peer, fault, reason),
      },
      log: quietLog,
      checkpoints: checkpoints.map(place),
      steady: () => Date.now(),
      probeMillis: 3 * CUT_MILLIS,
      isAtTip: () => this.tip - this.height <= 24,
      updateRequired: (version) => void this.updates.push(version),
    });
  }

  #append(height: number, stateRoot: Bytes, body: Bytes): void {
    const block = new Uint8Array(HEADER_BYTES);
    new DataView(block.buffer).setUint32(0, height, true);
    const ids = height === 0 ? [] : [blockId(block)];
    for (const id of ids) this.#blocks.set(nameOf(id), { header: block, body });
    const header = encodeCutHeader({
      networkId: NETWORKS.development.id,
      height,
      timestampMillis: height * CUT_MILLIS,
      previousId: this.cuts[height - 1]?.cutId ?? SOME,
      blocksRoot: blocksRoot(ids),
      stateRoot,
      validatorSetId: SOME,
      blockCount: ids.length,
      signers: 0n,
    });
    this.cuts.push({ header, cutId: cutId(header), content: concat(header, ...ids) });
  }

  /** As a peer with the whole chain. `to`: the last cut of an answer; certificates as it keeps them. */
  truth(
    question: Question,
    { most = 96, head = this.tip, bodiesFrom = 0, isCertified = (_: number): boolean => true } = {},
  ): Uint8Array {
    if (question.type === 'blockPart') {
      const { header, body } = this.#blocks.get(nameOf(question.id)) ?? {
        header: new Uint8Array(0),
        body: new Uint8Array(0),
      };
      const block = concat(header, body);
      return encodeChunk({ length: block.length, bytes: block.subarray(question.from, question.from + CHUNK_BYTES) });
    }
    if (question.type === 'blocks')
      return encodeBlocksAnswer(question.ids.slice(0, 64).map((id) => this.#blocks.get(nameOf(id))));
    if (question.type === 'headers') {
      const { to, count } = question;
      if (to > head) return encodeHeadersAnswer({ headers: [], certificate: undefined });
      const headers = this.cuts.slice(Math.max(0, to - count + 1), to + 1).map(({ header }) => header);
      const isEnd = (to + 1) % this.intervalCuts === 0;
      return encodeHeadersAnswer({ headers, certificate: isEnd || isCertified(to) ? CERTIFICATE : undefined });
    }
    const { from } = question;
    if (from < bodiesFrom) return encodeCutsAnswer({ head, bodiesFrom }, [], []);
    const epochEnd = (Math.floor(from / this.intervalCuts) + 1) * this.intervalCuts - 1;
    const last = Math.min(head, from + Math.min(most, question.count) - 1, epochEnd);
    const heights = Array.from({ length: Math.max(0, last - from + 1) }, (_, i) => from + i);
    const certificates = heights.flatMap((height, index) =>
      isCertified(height) || height === epochEnd ? [{ index, certificate: CERTIFICATE }] : [],
    );
    return encodeCutsAnswer(
      { head, bodiesFrom },
      heights.map((height) => (this.cuts[height] as Cut).content),
      question.isBrief ? certificates.slice(-1) : certificates,
    );
  }

  /** Of the cut that has this block; -1 for none. */
  heightOf(id: Bytes): number {
    const header = this.#blocks.get(nameOf(id))?.header;
    return header === undefined ? -1 : new DataView(header.buffer).getUint32(0, true);
  }

  join(peer: string, claim: number, answer: Answer): void {
    this.peers.set(peer, answer);
    this.sync.heights.joined(peer, claim);
    this.sync.wake();
  }

  leave(peer: string): void {
    if (!this.peers.delete(peer)) return;
    this.sync.heights.left(peer);
  }

  /** It announces a cut. */
  announce(peer: string, height: number): void {
    this.sync.heights.heard(peer, height);
    this.sync.wake();
  }

  #fault(peer: string, fault: Fault, reason: string): void {
    this.blamed.push(`${peer} ${fault} ${reason}`);
    const score = afterFault(this.scores.get(peer) ?? NO_FAULT, fault, Date.now());
    this.scores.set(peer, score);
    if (!isBeyondBearing(score) || !this.peers.has(peer)) return;
    this.leave(peer);
    this.barred(peer);
  }

  /** As the network's thread asks: so many at once, for so long. */
  async #ask(peer: string, question: Question): Promise<Uint8Array> {
    const { asked, millis } = PROTOCOLS.sync;
    for (const end = Date.now() + millis; (this.#lines.get(peer) ?? 0) >= asked; ) {
      if (Date.now() >= end) throw askError('not_asked', 'other questions took the time');
      await pause(50);
    }
    const answer = this.peers.get(peer);
    if (answer === undefined) throw askError('not_asked', 'the peer is gone');
    this.#lines.set(peer, (this.#lines.get(peer) ?? 0) + 1);
    this.asked.push({ peer, type: question.type, at: Date.now(), height: this.height });
    try {
      // A timer that goes on would hold the answer.
      const late = Promise.withResolvers<'silent'>();
      const timer = setTimeout(() => late.resolve('silent'), millis);
      const given = await Promise.race([answer(question), late.promise]).finally(() => clearTimeout(timer));
      if (given === 'silent') await pause(millis);
      if (!this.peers.has(peer)) throw askError('not_asked', 'the peer is gone');
      if (given === 'silent') throw askError('unanswered', 'no answer');
      if (given === 'busy') throw askError('busy', 'the peer is busy');
      return given;
    } finally {
      this.#lines.set(peer, (this.#lines.get(peer) ?? 1) - 1);
    }
  }
}

/** As errors of questions come from the network's thread: the code alone says what they are. */
const askError = (code: AskCode, reason: string): Error => Object.assign(new Error(reason), { code });

export const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis));

/** Time goes on until it holds, or so many virtual milliseconds have passed: how many did. */
export async function passing(isOver: () => boolean, most: number, step = 50): Promise<number> {
  const began = Date.now();
  while (!isOver() && Date.now() - began < most) await vi.advanceTimersByTimeAsync(step);
  return Date.now() - began;
}
