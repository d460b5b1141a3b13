/** A validator whose words the benchmark holds: real ledger, store, log, signatures and sockets, and what it says passes through `says`. It finds a block for every cut. */
import { join } from 'node:path';
import { createVerifier, type Verifier } from '../../../kernels/verifier.ts';
import { ConsensusDriver } from '../../../node/consensus/driver/driver.ts';
import type { Peer } from '../../../node/consensus/engine/effects.ts';
import { ConsensusLog } from '../../../node/consensus/log/log-file.ts';
import { Overlay } from '../../../node/consensus/reach/overlay.ts';
import type { Transport } from '../../../node/consensus/reach/transport.ts';
import { developmentKey, validatorName } from '../../../node/genesis/development.ts';
import { signMessageAside } from '../../../node/ml-dsa.ts';
import { type ConsensusNode, createNode } from '../../../node/node.ts';
import { type Bytes, equalBytes } from '../../../protocol/bytes.ts';
import { decodeBody, encodeBody, transactionsRoot } from '../../../protocol/ledger/body.ts';
import type { Genesis } from '../../../protocol/ledger/genesis.ts';
import { decodeHeader, encodeHeader, NONCE_OFFSET } from '../../../protocol/ledger/header.ts';
import { NETWORKS } from '../../../protocol/network.ts';
import { validatorId } from '../../../protocol/staking/names.ts';
import { steadyMillis } from '../../../runtime/clock/clock.ts';
import { treasuryOutput } from '../../network/peers.ts';
import { payment, silentLog } from '../../node/bed.ts';

const BOB = developmentKey('bob').address;
const LONG_VALID = 1_000_000;

export type FoundBlock = { readonly id: Bytes; readonly header: Bytes; readonly body: Bytes };
type Says = (bytes: Bytes, to: Peer) => Bytes | undefined;
const honest: Says = (bytes) => bytes;

export class LyingMember {
  readonly node: ConsensusNode;
  readonly transport: Overlay;
  readonly #driver: ConsensusDriver;
  readonly #verifier: Verifier;
  readonly #unsubscribe: () => void;
  /** Undefined: it is not sent. */
  says: Says = honest;
  /** Told of each block that it finds, in the moment in which it offers it. */
  found: (block: FoundBlock) => void = () => undefined;
  #blocks = 0;

  private constructor(
    node: ConsensusNode,
    transport: Overlay,
    verifier: Verifier,
    driverOf: (transport: Transport) => ConsensusDriver,
  ) {
    this.node = node;
    this.transport = transport;
    this.#verifier = verifier;
    this.#driver = driverOf({
      process: transport.process,
      start: (events) => transport.start(events),
      peers: () => transport.peers(),
      known: () => transport.known(),
      isKnown: (peer) => transport.isKnown(peer),
      limitKey: (peer) => transport.limitKey(peer),
      accountOf: (peer) => transport.accountOf(peer),
      accountByWay: (peer) => transport.accountByWay(peer),
      nearest: (peer) => transport.nearest(peer),
      company: () => transport.company(),
      proven: (peer) => transport.proven(peer),
      send: (peer, bytes) => this.send(peer, this.says(bytes, peer)),
      drop: (peer, reason) => transport.drop(peer, reason),
      close: () => transport.close(),
    });
    this.#unsubscribe = node.on('cut', () => void this.#mine().catch(() => undefined));
  }

  static async open(
    directory: string,
    genesis: Genesis,
    member: number,
    port: number,
    cutMillis: number,
  ): Promise<LyingMember> {
    const { publicKey, privateKey } = developmentKey(validatorName(member));
    const verifier = createVerifier({ network: NETWORKS.development, mode: 'full', threads: 1 });
    const node = await createNode(
      { storeDirectory: join(directory, 'store'), genesis, cutMillis, makesCuts: false, signatureThreads: 1 },
      {
        verifier,
        certify: async () => ({ round: 0, signatures: [] }),
        now: (): number => steadyMillis(),
        random: (limit) => Math.floor(limit / 2),
        log: silentLog,
      },
    );
    const transport = new Overlay(
      { chainId: node.chain.chainId, binds: [{ host: '127.0.0.1', port }], neighbours: [] },
      {
        log: silentLog,
        steady: steadyMillis,
        signer: { publicKey, sign: (message) => signMessageAside(privateKey, message) },
        members: () => node.ledger.committee(node.chain.head().height + 1)?.members ?? [],
      },
    );
    await transport.listen();
    const owner = { chainId: node.chain.chainId, validatorId: validatorId(publicKey) };
    const signer = { publicKey, privateKey, ...(await ConsensusLog.open(join(directory, 'log'), owner)) };
    const lying = new LyingMember(
      node,
      transport,
      verifier,
      (doctored) =>
        new ConsensusDriver(cutMillis, {
          node,
          transport: doctored,
          signer,
          log: silentLog,
          now: (): number => steadyMillis(),
          steady: steadyMillis,
        }),
    );
    lying.#driver.start();
    return lying;
  }

  send(peer: Peer, bytes: Bytes | undefined): void {
    if (bytes !== undefined) this.transport.send(peer, bytes);
  }

  /** Whether this neighbour is the validator. */
  isMember(peer: Peer, member: number): boolean {
    const key = this.transport.proven(peer)?.key;
    return key !== undefined && equalBytes(key, developmentKey(validatorName(member)).publicKey);
  }

  /** Whether it was to propose at this height, in this round or an earlier one. */
  isTurn(height: number, round: number): boolean {
    const { committee, self } = this.#driver.state;
    return Array.from({ length: round + 1 }, (_, r) => committee.proposer(height, r)).includes(self);
  }

  honest(): void {
    this.says = honest;
    this.found = () => undefined;
  }

  /** With two payments in it, whether they can be executed or not: bodies without transactions cannot be spoiled in all ways. */
  async #mine(): Promise<void> {
    const { chain } = this.node;
    const number = this.#blocks++;
    const transactions = [0, 1].map((i) =>
      payment(chain, [treasuryOutput(chain, 20 + i)], [], { validUntil: LONG_VALID + 2 * number + i }),
    );
    const template = this.node.template({ payout: BOB, maxTransactions: 0, draw: number });
    const body = { ...decodeBody(template.body), transactions };
    const header = encodeHeader({ ...decodeHeader(template.header), transactionsRoot: transactionsRoot(body) });
    const bytes = encodeBody(body);
    for (let nonce = 0n; ; nonce++) {
      new DataView(header.buffer).setBigUint64(NONCE_OFFSET, nonce, true);
      const outcome = await this.node.submitBlock(header, bytes, 'own');
      if (outcome.status === 'accepted') return this.found({ id: outcome.id, header, body: bytes });
      if (outcome.status !== 'refused' || outcome.error.code !== 'pow_above_target') return;
    }
  }

  async close(): Promise<void> {
    this.#unsubscribe();
    await this.#driver.close();
    await this.node.close();
    await this.#verifier.close();
  }
}
