/**
 * A full node in a temporary directory with clock and randomness in the test's hands: cuts are made by hand, payments are signed with
 * real keys. The PoW is a plain hash unless a test names a verifier, because here the ledger is under test, not the hash.
 */
import { hash as nodeHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { certifyWith } from '../../node/chain/certificate.ts';
import type { Chain, FullNode, Submission, UnspentOutput } from '../../node/full-node.ts';
import {
  type DevelopmentGenesis,
  type DevelopmentKey,
  developmentGenesis,
  developmentKey,
  TREASURY,
  validatorName,
} from '../../node/genesis/development.ts';
import type { CreatedOutput, CutEffects } from '../../node/ledger/effects.ts';
import { signMessage } from '../../node/ml-dsa.ts';
import { createNode, type NodeDependencies, type NodeOptions } from '../../node/node.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { genesisOutpoint, SEED_BYTES } from '../../protocol/ledger/genesis.ts';
import { NONCE_OFFSET } from '../../protocol/ledger/header.ts';
import { meetsTarget, targetToBytes } from '../../protocol/ledger/target.ts';
import { massOf, minimumFee } from '../../protocol/transactions/fee.ts';
import {
  encodeTransaction,
  encodeTransactionBody,
  type Output,
  type SingleWitness,
  spendMessage,
  type TransactionBody,
  type Witness,
} from '../../protocol/transactions/transaction.ts';
import { createLogger, readLevelFilter } from '../../runtime/log/log.ts';
import type { LogSink } from '../../runtime/log/log-file.ts';
import { randomOf } from '../random.ts';

export const START_MILLIS = 1_800_000_000_000;
/** For a chain that several nodes, or one node again and again, begin from the same settings. */
export const KNOWN_SEED = new Uint8Array(SEED_BYTES);

export const quickHash = (header: Bytes): Uint8Array<ArrayBuffer> =>
  new Uint8Array(nodeHash('sha256', header, 'buffer'));

const silent: LogSink = { write: () => undefined, flush: () => undefined, close: () => undefined };
export const silentLog = createLogger(
  'test',
  { filter: readLevelFilter('off'), format: 'text' },
  { sink: silent, now: () => 0 },
);

export const developmentKeys = (count: number) =>
  Array.from({ length: count }, (_, member) => developmentKey(validatorName(member)).privateKey);

export type BedSettings = {
  readonly seed?: number;
  readonly genesis?: Partial<DevelopmentGenesis>;
  readonly options?: Partial<NodeOptions>;
  readonly dependencies?: Partial<NodeDependencies>;
};

export class Bed {
  node!: FullNode;
  readonly directory = mkdtempSync(join(tmpdir(), 'svc-node-'));
  now = START_MILLIS;
  readonly random: (limit: number) => number;
  readonly #settings: BedSettings;

  private constructor(settings: BedSettings) {
    this.#settings = settings;
    this.random = randomOf(settings.seed ?? 1);
  }

  static async open(settings: BedSettings = {}): Promise<Bed> {
    const bed = new Bed(settings);
    await bed.openNode();
    return bed;
  }

  async openNode(): Promise<void> {
    const { genesis, options, dependencies } = this.#settings;
    this.node = await createNode(
      {
        storeDirectory: join(this.directory, 'store'),
        genesis: developmentGenesis({
          timestampMillis: START_MILLIS,
          seed: KNOWN_SEED,
          initialWork: 1n,
          minimumWork: 1n,
          validators: 1,
          ...genesis,
        }),
        cutMillis: 0,
        ...options,
      },
      {
        verifier: { prepare: async () => undefined, hash: async (_, header) => quickHash(header) },
        certify: certifyWith(developmentKeys(genesis?.validators ?? 1)),
        now: () => this.now,
        random: this.random,
        log: silentLog,
        ...dependencies,
      },
    );
  }

  /** Stops the node and opens it again from its store; `meanwhile` may do something to that. */
  async reopen(meanwhile?: (storeDirectory: string) => void): Promise<void> {
    await this.node.close();
    meanwhile?.(join(this.directory, 'store'));
    await this.openNode();
  }

  async seal(cuts = 1): Promise<CutEffects> {
    let last: CutEffects | undefined;
    for (let i = 0; i < cuts; i++) {
      this.now += 2_500;
      last = await this.node.seal();
    }
    return last as CutEffects;
  }

  /** A block on the newest cut; searches a nonce for the plain hash. */
  make(payout: Bytes, maxTransactions = 1_000, draw = 0): { header: Uint8Array<ArrayBuffer>; body: Bytes } {
    const template = this.node.template({ payout, maxTransactions, draw });
    return { header: searchNonce(template.header, template.target), body: template.body };
  }

  async mine(payout: Bytes, maxTransactions?: number, draw?: number): Promise<Bytes> {
    const { header, body } = this.make(payout, maxTransactions, draw);
    const outcome = await this.node.submitBlock(header, body);
    if (outcome.status !== 'accepted') throw new Error(`the block was not accepted: ${JSON.stringify(outcome)}`);
    return outcome.id;
  }

  genesisOutput(index: number): UnspentOutput {
    const output = this.node.chain.genesis.outputs[index] as Output;
    return { outpoint: genesisOutpoint(this.node.chain.chainId, index), ...output, source: 'genesis' };
  }

  /** Outputs of the treasury as genesis made them. */
  treasury(index: number): UnspentOutput {
    return this.genesisOutput(this.node.chain.genesis.outputs.length - 64 + index);
  }

  /** A signed payment: everything that is neither an output nor the fee goes back to the payer. */
  payment(
    spends: readonly UnspentOutput[],
    outputs: readonly Output[],
    choices: PaymentChoices = {},
  ): Uint8Array<ArrayBuffer> {
    return payment(this.node.chain, spends, outputs, choices);
  }

  async pay(
    spends: readonly UnspentOutput[],
    outputs: readonly Output[],
    choices: PaymentChoices = {},
  ): Promise<Submission> {
    return await this.node.submitTransaction(this.payment(spends, outputs, choices), choices.origin);
  }

  async close(): Promise<void> {
    await this.node.close();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

export type PaymentChoices = {
  readonly key?: DevelopmentKey;
  readonly feePerMass?: bigint;
  readonly fee?: bigint;
  readonly validFrom?: number;
  readonly validUntil?: number;
  readonly profile?: SingleWitness['profile'];
  readonly change?: boolean;
  readonly origin?: 'own' | 'relayed';
  /** Signatures made before, by message: signing is random, and two runs of one simulation must send the same bytes. */
  readonly signatures?: Map<string, Uint8Array<ArrayBuffer>>;
};

export function payment(
  chain: Pick<Chain, 'chainId' | 'head'>,
  spends: readonly UnspentOutput[],
  outputs: readonly Output[],
  choices: PaymentChoices = {},
): Uint8Array<ArrayBuffer> {
  const key = choices.key ?? developmentKey(TREASURY);
  const profile = choices.profile ?? 'inline';
  const change = choices.change ?? true;
  const mass = massOf({
    witnesses: spends.map(() => profile),
    inputs: spends.length,
    outputs: outputs.length + (change ? 1 : 0),
    payloadBytes: 0,
  });
  const fee = choices.fee ?? minimumFee(mass, choices.feePerMass);
  let left = -fee;
  for (const { amount } of spends) left += amount;
  for (const { amount } of outputs) left -= amount;
  const body: TransactionBody = {
    chainId: chain.chainId,
    validFromHeight: choices.validFrom ?? 0,
    validUntilHeight: choices.validUntil ?? chain.head().height + 1_000,
    inputs: spends.map(({ outpoint }) => outpoint),
    outputs: change ? [...outputs, { address: key.address, amount: left }] : [...outputs],
    payload: new Uint8Array(0),
  };
  const bytes = encodeTransactionBody(body);
  const witnesses = spends.map((output, i): Witness => {
    const message = spendMessage(bytes, i, output);
    const name = Buffer.from(message).toString('hex');
    const signature = choices.signatures?.get(name) ?? signMessage(key.privateKey, message);
    choices.signatures?.set(name, signature);
    return profile === 'inline' ? { profile, publicKey: key.publicKey, signature } : { profile, signature };
  });
  return encodeTransaction({ body, witnesses });
}

export function searchNonce(template: Bytes, target: bigint, hash = quickHash): Uint8Array<ArrayBuffer> {
  const header = Uint8Array.from(template);
  const view = new DataView(header.buffer);
  const bytes = targetToBytes(target);
  for (let nonce = 0n; ; nonce++) {
    view.setBigUint64(NONCE_OFFSET, nonce, true);
    if (meetsTarget(hash(header), bytes)) return header;
  }
}

export const createdFor = (effects: CutEffects, address: Bytes): CreatedOutput[] =>
  effects.created.filter((output) => Buffer.compare(output.address, address) === 0);
