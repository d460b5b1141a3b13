/**
 * The development network's genesis (ledger rule 32, docs/node.md): four validators inside the node and a treasury whose key everyone can
 * derive. Its coins are worth nothing by design.
 */
import { type KeyObject, randomBytes } from 'node:crypto';
import { keyAddressPayload } from '../../protocol/address.ts';
import { ATOMS_PER_COIN, formatCoins } from '../../protocol/amount.ts';
import { type Bytes, utf8 } from '../../protocol/bytes.ts';
import { id } from '../../protocol/crypto/identifier.ts';
import { GENESIS_SUPPLY } from '../../protocol/ledger/emission.ts';
import { type Genesis, type GenesisValidator, SEED_BYTES } from '../../protocol/ledger/genesis.ts';
import { INTERVAL_CUTS, POW_EPOCH_CUTS } from '../../protocol/network.ts';
import { encodeEndpoint } from '../../protocol/staking/endpoint.ts';
import type { Output } from '../../protocol/transactions/transaction.ts';
import { privateKeyOfSeed, rawPublicKey } from '../ml-dsa.ts';

const LABEL = 'SVC_DEVELOPMENT_KEY_V1';
const BOND = 1_000_000n * ATOMS_PER_COIN;
/** Further keys that a node holds: this many validators of a trial chain can run inside it. */
export const EMBEDDED_VALIDATORS = 16;
/** The treasury is split so that tests and a faucet can spend many outputs in one cut. */
const TREASURY_OUTPUTS = 64n;

export const DEVELOPMENT_DEFAULTS = {
  validators: 4,
  powEpochLength: POW_EPOCH_CUTS,
  initialWork: 4_096n,
  minimumWork: 64n,
  intervalCuts: INTERVAL_CUTS,
} as const;

/** The key called `name` is the ML-DSA-65 key of the first 32 bytes of id("SVC_DEVELOPMENT_KEY_V1", name). */
export const developmentSeed = (name: string): Uint8Array<ArrayBuffer> => id(LABEL, utf8(name)).slice(0, 32);

export type DevelopmentKey = { readonly privateKey: KeyObject; readonly publicKey: Bytes; readonly address: Bytes };

const keys = new Map<string, DevelopmentKey>();

export function developmentKey(name: string): DevelopmentKey {
  const known = keys.get(name);
  if (known !== undefined) return known;
  const privateKey = privateKeyOfSeed(developmentSeed(name));
  const publicKey = rawPublicKey(privateKey);
  const key = { privateKey, publicKey, address: keyAddressPayload(publicKey) };
  keys.set(name, key);
  return key;
}

export const TREASURY = 'treasury';
export const validatorName = (member: number): string => `validator ${member}`;
/** The key that pays for the heartbeats of a separate validator. */
export const feeName = (member: number): string => `${validatorName(member)} fees`;

/** A validator whose key everybody can derive. It has no overlay connections. */
export function developmentValidator(member: number): GenesisValidator {
  const { publicKey, address } = developmentKey(validatorName(member));
  const endpoint = encodeEndpoint({ overlayKey: developmentSeed(`${validatorName(member)} overlay`), routes: [] });
  return { publicKey, principal: BOND, owner: address, rewardAddress: address, commission: 0, endpoint };
}

/** For the genesis of a new chain: no two chains have one identifier, also when they start in the same millisecond. */
export const newSeed = (): Bytes => Uint8Array.from(randomBytes(SEED_BYTES));

export type DevelopmentGenesis = {
  readonly timestampMillis: number;
  /** For a chain that is known beforehand; drawn if it is not given. */
  readonly seed?: Bytes;
  readonly powEpochLength?: number;
  readonly initialWork?: bigint;
  readonly minimumWork?: bigint;
  readonly validators?: number;
  readonly intervalCuts?: number;
  /** Outputs for addresses that a developer wants to have coins. */
  readonly fund?: readonly Output[];
};

export function developmentGenesis(settings: DevelopmentGenesis): Genesis {
  const { validators, powEpochLength, initialWork, minimumWork, intervalCuts } = {
    ...DEVELOPMENT_DEFAULTS,
    ...settings,
  };
  const fund = settings.fund ?? [];
  let left = GENESIS_SUPPLY - BigInt(validators) * BOND;
  for (const { amount } of fund) left -= amount;
  if (left < TREASURY_OUTPUTS)
    throw new RangeError(`${formatCoins(TREASURY_OUTPUTS - left)} coins too many are funded: name smaller amounts`);
  const treasury = developmentKey(TREASURY).address;
  const part = left / TREASURY_OUTPUTS;
  const outputs = [...fund];
  for (let i = 1n; i <= TREASURY_OUTPUTS; i++)
    outputs.push({ address: treasury, amount: i < TREASURY_OUTPUTS ? part : left - part * (TREASURY_OUTPUTS - 1n) });
  return {
    network: 'development',
    timestampMillis: settings.timestampMillis,
    powEpochLength,
    initialWork: initialWork < minimumWork ? minimumWork : initialWork,
    minimumWork,
    intervalCuts,
    seed: settings.seed ?? newSeed(),
    validators: Array.from({ length: validators }, (_, member) => developmentValidator(member)),
    outputs,
  };
}
