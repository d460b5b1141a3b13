/**
 * Announcements of final cuts: header and block identifiers, without the certificate, which is requested from a peer.
 * An announcement is relayed once this node has the cut itself, so only after a certificate proved it.
 */
import { type Bytes, concat, equalBytes } from '../../../protocol/bytes.ts';
import { decodeProposedCut, type ProposedCut } from '../../../protocol/consensus/proposal.ts';
import { ProtocolError } from '../../../protocol/errors.ts';
import type { FullNode } from '../../full-node.ts';
import { nameOf } from '../../ledger/registration.ts';
import type { Fault } from '../peers/peer-score.ts';
import type { Finding, PeerName, Topic, Verdict } from '../thread/host-types.ts';

/** How long an announcement may wait for its cut. */
const WAIT_MILLIS = 10_000;
/** Announcements of one peer that wait. There is one true cut of a height; peers that announced others are barred once it is known. */
const PER_PEER = 4;
/** Announcements of older cuts are useless. */
const OLD_CUTS = 2;
/** Announcements further ahead only indicate a height; their cut is not waited for. */
const NEAR_CUTS = 3;

export type CutGossipDependencies = {
  readonly node: Pick<FullNode, 'chain' | 'on'>;
  readonly publish: (topic: Topic, data: Bytes) => void;
  readonly fault: (peer: PeerName, fault: Fault, reason: string) => void;
  /** Cuts fetched while catching up are not announced. */
  readonly isSynced: () => boolean;
  /** A peer announces a cut of this height. */
  readonly heard: (peer: PeerName, height: number) => void;
  /** Both the peer and this node have the cut of this height. */
  readonly proved: (peer: PeerName, height: number) => void;
};

export class CutGossip {
  readonly #with: CutGossipDependencies;
  readonly #unsubscribe: () => void;
  readonly #waiting = new Set<{
    readonly peer: PeerName;
    readonly height: number;
    readonly name: string;
    settle(): void;
  }>();

  constructor(dependencies: CutGossipDependencies) {
    this.#with = dependencies;
    this.#unsubscribe = dependencies.node.on('cut', ({ header, cutId, headerBytes, registered }) => {
      const waiting = [...this.#waiting];
      for (const announced of waiting) if (announced.height <= header.height) announced.settle();
      // One that came as an announcement is relayed as such.
      if (waiting.some(({ name }) => name === nameOf(cutId)) || !dependencies.isSynced()) return;
      dependencies.publish('cuts', concat(headerBytes, ...registered.map(({ id }) => id)));
    });
  }

  close(): void {
    this.#unsubscribe();
    for (const announced of [...this.#waiting]) announced.settle();
  }

  async judge(peer: PeerName, data: Bytes): Promise<Finding> {
    let cut: ProposedCut;
    try {
      cut = decodeProposedCut(data);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#with.fault(peer, 'malformed', error.message);
      return 'reject';
    }
    const { height } = cut.header;
    const head = this.#with.node.chain.head().height;
    if (height <= head) return this.#compare(peer, cut);
    this.#with.heard(peer, height);
    if (height > head + NEAR_CUTS) return 'ignore';
    const own = [...this.#waiting].filter((announced) => announced.peer === peer);
    if (own.length >= PER_PEER) return 'undelivered';
    await this.#arrival(peer, height, nameOf(cut.cutId));
    return height <= this.#with.node.chain.head().height ? this.#compare(peer, cut) : 'ignore';
  }

  #compare(peer: PeerName, { header: { height }, cutId }: ProposedCut): Verdict {
    const { chain } = this.#with.node;
    const own = chain.cut(height);
    if (own === undefined) return 'ignore';
    if (!equalBytes(own.cutId, cutId)) {
      // No honest peer relays a cut without a certificate.
      this.#with.fault(peer, 'false_proof', `another cut ${height}`);
      return 'reject';
    }
    this.#with.proved(peer, height);
    return height + OLD_CUTS >= chain.head().height ? 'accept' : 'ignore';
  }

  #arrival(peer: PeerName, height: number, name: string): Promise<void> {
    return new Promise((resolve) => {
      const announced = {
        peer,
        height,
        name,
        settle: () => {
          clearTimeout(timer);
          this.#waiting.delete(announced);
          resolve();
        },
      };
      const timer = setTimeout(announced.settle, WAIT_MILLIS);
      this.#waiting.add(announced);
    });
  }
}
