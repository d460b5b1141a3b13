/** A chain with payments, fees, parents and a delegation, and its snapshot after cut 191, written by the running node. The chain goes on two cuts meanwhile. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { UnspentOutput } from '../../node/full-node.ts';
import { developmentKey, TREASURY, validatorName } from '../../node/genesis/development.ts';
import type { NetworkDependencies } from '../../node/network/open-network.ts';
import type { ConsensusNode } from '../../node/node.ts';
import type { InstallSettings } from '../../node/snapshot/install-snapshot.ts';
import { SnapshotWriter } from '../../node/snapshot/snapshot-writer.ts';
import type { FrozenStore } from '../../node/store/database.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { decodeBody, encodeBody, parentsRoot } from '../../protocol/ledger/body.ts';
import { genesisOutpoint } from '../../protocol/ledger/genesis.ts';
import { decodeHeader, encodeHeader } from '../../protocol/ledger/header.ts';
import { validatorId } from '../../protocol/staking/names.ts';
import { decodeTransaction, type Output, transactionIdOfWire } from '../../protocol/transactions/transaction.ts';
import { NetBed, type NetNode } from '../network/peers.ts';
import { payment, searchNonce } from '../node/bed.ts';
import { quietLog } from '../quiet-log.ts';
import { operationTransaction } from '../staking/signed.ts';

export const SNAPSHOT = 2 * 96 - 1;
const TO_BOB = 5n;
const FUNDED = 40;
const BOB = developmentKey('bob').address;
const INTERVAL = 36;

export class SnapshotBed {
  readonly bed = new NetBed({
    intervalCuts: INTERVAL,
    fund: Array.from({ length: FUNDED }, () => ({ address: BOB, amount: TO_BOB })),
  });
  readonly folder = join(this.bed.directory, 'snapshots');
  readonly file = join(this.folder, `snapshot-${SNAPSHOT}`);
  source!: NetNode;
  /** The store as of the snapshot. */
  frozen!: FrozenStore;
  trust!: Bytes;
  /** Outputs of bob in the snapshot, five atoms each. */
  ofBob = FUNDED;
  #purse!: UnspentOutput;
  #writer!: SnapshotWriter;

  static async open(alter?: (node: ConsensusNode) => Partial<NetworkDependencies>): Promise<SnapshotBed> {
    const made = new SnapshotBed();
    const { bed } = made;
    const source = await bed.start('source', {}, alter);
    made.source = source;
    const { node } = source;
    made.#purse = made.#treasury(0);
    // What earlier runs left: of two whole ones the newer stays, and nothing of one that was not finished.
    mkdirSync(made.folder);
    for (const name of ['snapshot-3', 'snapshot-5', 'snapshot-7.part', 'notes'])
      writeFileSync(join(made.folder, name), '');
    made.#writer = new SnapshotWriter({ directory: made.folder, everyCuts: 96, node, log: quietLog });
    const delegated = node.submitTransaction(made.#delegation());
    if ((await delegated).status !== 'accepted') throw new Error('the delegation was not accepted');
    await made.seal(SNAPSHOT);
    made.frozen = node.frozen();
    made.trust = node.chain.head().cutId;
    await made.seal(2);
    await made.#writer.idle();
    return made;
  }

  #treasury(index: number): UnspentOutput {
    const { chain } = this.source.node;
    const place = chain.genesis.outputs.length - 64 + index;
    const output = chain.genesis.outputs[place] as Output;
    return { outpoint: genesisOutpoint(chain.chainId, place), ...output, source: 'genesis' };
  }

  #delegation(): Uint8Array {
    const key = developmentKey(TREASURY);
    const validator = validatorId(developmentKey(validatorName(0)).publicKey);
    const whose = { owner: key.address, rewardAddress: key.address };
    return operationTransaction(
      this.source.node.chain,
      { key, spend: this.#treasury(1) },
      { name: 'bond', validator, ...whose, amount: 10_000_000_000n },
      { signer: key },
    );
  }

  /** Cuts with a block each; every third time with a payment in it and a second block whose parent it is. */
  async seal(cuts: number): Promise<void> {
    const { node } = this.source;
    for (let i = 0; i < cuts; i++) {
      if (node.chain.head().height % 3 === 0) {
        const wire = payment(node.chain, [this.#purse], [{ address: BOB, amount: TO_BOB }]);
        const sent = await node.submitTransaction(wire);
        if (sent.status !== 'accepted') throw new Error(JSON.stringify(sent));
        const change = decodeTransaction(wire).body.outputs[1] as Output;
        const outpoint = { transactionId: transactionIdOfWire(wire), outputIndex: 1 };
        this.#purse = { outpoint, ...change, source: 'regular' };
        if (node.chain.head().height < SNAPSHOT) this.ofBob++;
        await this.bed.mine(node);
      }
      await this.bed.seal(this.source, 1, 1);
    }
  }

  /** A block whose parent is one that a cut registered long ago: the rules allow it. */
  blockOn(parent: Bytes): { readonly header: Uint8Array; readonly body: Uint8Array } {
    const { header, body, target } = this.source.node.template({ payout: BOB, maxTransactions: 0, draw: 0 });
    const withParent = { ...decodeBody(body), parents: [parent] };
    const changed = encodeHeader({ ...decodeHeader(header), parentsRoot: parentsRoot(withParent) });
    return { header: searchNonce(changed, target), body: encodeBody(withParent) };
  }

  /** Of a node of this name. */
  install(name: string, other: Partial<InstallSettings> = {}): InstallSettings {
    return {
      file: this.file,
      trust: this.trust,
      storeDirectory: join(this.bed.directory, name, 'store'),
      network: 'development',
      genesis: this.source.node.chain.genesis,
      nowMillis: this.bed.now,
      ...other,
    };
  }

  async close(): Promise<void> {
    await this.#writer.stop();
    await this.frozen.close();
    await this.bed.close();
  }
}
