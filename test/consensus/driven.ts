/** Full nodes whose cuts are made by the driver: real ledgers, stores, logs and signatures, with a network in memory and a plain hash for the PoW. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Checkpoint } from '../../node/chain/checkpoints.ts';
import { ConsensusDriver, type DriverDependencies, type Signer } from '../../node/consensus/driver/driver.ts';
import { ConsensusLog } from '../../node/consensus/log/log-file.ts';
import { developmentGenesis, developmentKey, validatorName } from '../../node/genesis/development.ts';
import { type ConsensusNode, createNode } from '../../node/node.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { chainId, encodeGenesis } from '../../protocol/ledger/genesis.ts';
import { validatorId } from '../../protocol/staking/names.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { quickHash, searchNonce, silentLog } from '../node/bed.ts';
import { MemoryNetwork } from './memory-network.ts';

export const MEMBERS = 4;
/** Quick enough for a test, slow enough for a busy machine; rounds that fail wait longer and longer anyway. */
export const CUT_MILLIS = 150;

export type Driven = { readonly node: ConsensusNode; readonly driver: ConsensusDriver };

export class DrivenNetwork {
  readonly directory = mkdtempSync(join(tmpdir(), 'svc-driven-'));
  readonly network = new MemoryNetwork();
  readonly running = new Map<string, Driven>();
  readonly #genesis;

  constructor(intervalCuts = 24) {
    this.#genesis = developmentGenesis({
      timestampMillis: steadyMillis(),
      initialWork: 1n,
      minimumWork: 1n,
      validators: MEMBERS,
      intervalCuts,
    });
  }

  get chainId(): Bytes {
    return chainId(encodeGenesis(this.#genesis));
  }

  /** `member` undefined: a node that only follows. The same name opens the same store again. */
  async start(
    name: string,
    member?: number,
    altered: Partial<DriverDependencies> = {},
    checkpoints: readonly Checkpoint[] = [],
    /** The node as the driver sees it. */
    shown: (node: ConsensusNode) => ConsensusNode = (node) => node,
  ): Promise<Driven> {
    const node = await createNode(
      {
        storeDirectory: join(this.directory, name, 'store'),
        genesis: this.#genesis,
        cutMillis: CUT_MILLIS,
        makesCuts: false,
        checkpoints,
      },
      {
        verifier: { prepare: async () => undefined, hash: async (_, header) => quickHash(header) },
        certify: async () => ({ round: 0, signatures: [] }),
        now: (): number => steadyMillis(),
        random: (limit) => Math.floor(limit / 2),
        log: silentLog,
      },
    );
    const signer =
      altered.signer ?? (member === undefined ? undefined : await this.signer(name, member, node.chain.chainId));
    if (signer !== undefined) this.network.keys.set(name, signer.publicKey);
    const driver = new ConsensusDriver(CUT_MILLIS, {
      node: shown(node),
      transport: this.network.transport(name),
      ...(signer && { signer }),
      log: silentLog,
      now: (): number => steadyMillis(),
      steady: steadyMillis,
      ...altered,
    });
    driver.start();
    this.running.set(name, { node, driver });
    return { node, driver };
  }

  async signer(name: string, member: number, chainId: Bytes): Promise<Signer> {
    const { publicKey, privateKey } = developmentKey(validatorName(member));
    const owner = { chainId, validatorId: validatorId(publicKey) };
    return { publicKey, privateKey, ...(await ConsensusLog.open(join(this.directory, name, 'log'), owner)) };
  }

  async stop(name: string): Promise<void> {
    const { node, driver } = this.running.get(name) as Driven;
    this.running.delete(name);
    await driver.close();
    await node.close();
  }

  async close(): Promise<void> {
    for (const name of [...this.running.keys()]) await this.stop(name);
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** Without an `extranonce` of its own a block may have the body of another. */
export async function mineOn(node: ConsensusNode, payout: Bytes, extranonce?: Bytes): Promise<Bytes> {
  const template = node.template({ payout, maxTransactions: 100, draw: 0, ...(extranonce && { extranonce }) });
  const outcome = await node.submitBlock(searchNonce(template.header, template.target), template.body);
  if (outcome.status === 'refused') throw new Error(`the block was refused: ${outcome.error.code}`);
  return outcome.id;
}
