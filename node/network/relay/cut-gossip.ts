/**
 * Announcements of final cuts: header and block identifiers, without the certificate, which is requested from a peer.
 * An announcement is relayed once this node has the cut itself, so only after a certificate proved it. It is judged by
 * comparing its bytes with that cut: anybody can make some up, and hashing their blocks takes as long as a signature.
 */
import { type Bytes, concat, equalBytes } from '../../../protocol/bytes.ts';
import { ID_BYTES } from '../../../protocol/crypto/identifier.ts';
import { attempt } from '../../../protocol/errors.ts';
import { CUT_HEADER_BYTES, decodeCutHeader } from '../../../protocol/ledger/cut.ts';
import type { FullNode } from '../../full-node.ts';
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
    settle(): void;
  }>();

  constructor(dependencies: CutGossipDependencies) {
    this.#with = dependencies;
    this.#unsubscribe = dependencies.node.on('cut', ({ header, headerBytes, registered }) => {
      for (const announced of [...this.#waiting]) if (announced.height <= header.height) announced.settle();
      // Also where it came as an announcement, of which nobody may wait for the verdict any more. It is sent once.
      if (dependencies.isSynced()) dependencies.publish('cuts', concat(headerBytes, ...registered.map(({ id }) => id)));
    });
  }

  close(): void {
    this.#unsubscribe();
    for (const announced of [...this.#waiting]) announced.settle();
  }

  async judge(peer: PeerName, data: Bytes): Promise<Finding> {
    const read = attempt(() => decodeCutHeader(data.subarray(0, CUT_HEADER_BYTES)));
    // A later release makes such cuts: the sync finds out whether they are final.
    if (!read.ok && read.error.code === 'unsupported_version') return 'ignore';
    if (!read.ok || data.length !== CUT_HEADER_BYTES + read.value.blockCount * ID_BYTES)
      return this.#malformed(peer, 'an announcement that is no cut');
    const { height } = read.value;
    const head = this.#with.node.chain.head().height;
    if (height + OLD_CUTS < head) return 'ignore';
    if (height <= head) return this.#compare(peer, height, data);
    this.#with.heard(peer, height);
    if (height > head + NEAR_CUTS) return 'ignore';
    const own = [...this.#waiting].filter((announced) => announced.peer === peer);
    if (own.length >= PER_PEER) return 'undelivered';
    await this.#arrival(peer, height);
    return height <= this.#with.node.chain.head().height ? this.#compare(peer, height, data) : 'ignore';
  }

  #malformed(peer: PeerName, reason: string): Verdict {
    this.#with.fault(peer, 'malformed', reason);
    return 'reject';
  }

  #compare(peer: PeerName, height: number, data: Bytes): Verdict {
    const { chain } = this.#with.node;
    const own = chain.cut(height);
    if (own === undefined) return 'ignore';
    if (!equalBytes(own.headerBytes, data.subarray(0, CUT_HEADER_BYTES))) {
      // No honest peer relays a cut without a certificate.
      this.#with.fault(peer, 'false_proof', `another cut ${height}`);
      return 'reject';
    }
    if (!equalBytes(concat(own.headerBytes, ...own.blockIds), data))
      return this.#malformed(peer, `other blocks than those of cut ${height}`);
    this.#with.proved(peer, height);
    return height + OLD_CUTS >= chain.head().height ? 'accept' : 'ignore';
  }

  #arrival(peer: PeerName, height: number): Promise<void> {
    return new Promise((resolve) => {
      const announced = {
        peer,
        height,
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
