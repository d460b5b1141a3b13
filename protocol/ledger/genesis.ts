/**
 * The genesis document (ledger rule 32): canonical bytes from which the chain id and the first state follow. It mints exactly
 * 20,000,000 coins: what the first validators have bonded, and outputs.
 */
import { ADDRESS_PAYLOAD_BYTES, payloadKind } from '../address.ts';
import { checkAmount, MAX_SUPPLY } from '../amount.ts';
import { ByteReader, type Bytes, ByteWriter, concat, toHex } from '../bytes.ts';
import { id, LABELS } from '../crypto/identifier.ts';
import { ProtocolError } from '../errors.ts';
import { INTERVAL_CUTS, NETWORKS, type NetworkName, networkById } from '../network.ts';
import { decodeEndpoint } from '../staking/endpoint.ts';
import { ATTENDANCE_WINDOWS, MIN_SELF_BOND } from '../staking/limits.ts';
import { checkCommission, checkOwner } from '../staking/operation.ts';
import { type Outpoint, type Output, PUBLIC_KEY_BYTES } from '../transactions/transaction.ts';
import { GENESIS_SUPPLY } from './emission.ts';

/** With a seed. Without one the document is of version 2, which is the same without that field. */
const SEEDED_VERSION = 3;
const UNSEEDED_VERSION = 2;
export const genesisVersion = ({ seed }: Pick<Genesis, 'seed'>): number =>
  seed === undefined ? UNSEEDED_VERSION : SEEDED_VERSION;

/** Throws for a version that is not read; says whether a document of this one has a seed. */
export function isSeeded(version: number): boolean {
  if (version !== SEEDED_VERSION && version !== UNSEEDED_VERSION)
    throw new ProtocolError(
      'unsupported_version',
      `genesis version ${version}: this release reads versions ${UNSEEDED_VERSION} and ${SEEDED_VERSION}; start a new chain`,
    );
  return version === SEEDED_VERSION;
}

export const SEED_BYTES = 32;
/** As many as 20,000,000 coins can bond. */
export const MAX_GENESIS_VALIDATORS = 200;
/** Shortest interval of a development network, and what every interval is a multiple of: an epoch has 12 attendance windows. */
export const MIN_INTERVAL_CUTS = 24;
/** A guard for readers, far above what any genesis needs. */
const MAX_GENESIS_OUTPUTS = 2_000_000;

export type GenesisValidator = {
  readonly publicKey: Bytes;
  readonly principal: bigint;
  readonly owner: Bytes;
  readonly rewardAddress: Bytes;
  /** Basis points. */
  readonly commission: number;
  readonly endpoint: Bytes;
};

export type NamedValidator = GenesisValidator & { readonly network: NetworkName };

export type Genesis = {
  readonly network: NetworkName;
  readonly timestampMillis: number;
  /** Cuts of a PoW epoch. */
  readonly powEpochLength: number;
  /** Work of a block anchored at cut 0, and the least work a block may ever have. */
  readonly initialWork: bigint;
  readonly minimumWork: bigint;
  /** Cuts of an interval: 34,560 on every network but development. */
  readonly intervalCuts: number;
  /** Random bytes of a development chain: its validators, amounts and even its time can be those of another one. */
  readonly seed?: Bytes;
  readonly validators: readonly GenesisValidator[];
  readonly outputs: readonly Output[];
};

function check(genesis: Genesis): void {
  if (genesis.validators.length < 1 || genesis.validators.length > MAX_GENESIS_VALIDATORS)
    throw new ProtocolError('out_of_range', `a chain starts with 1 to ${MAX_GENESIS_VALIDATORS} validators`);
  checkInterval(genesis);
  if (genesis.outputs.length > MAX_GENESIS_OUTPUTS) throw new ProtocolError('too_long', 'too many genesis outputs');
  if (genesis.seed !== undefined && genesis.seed.length !== SEED_BYTES)
    throw new ProtocolError('out_of_range', `a seed has ${SEED_BYTES} bytes`);
  if (genesis.powEpochLength < 1) throw new ProtocolError('out_of_range', 'a PoW epoch has at least one cut');
  if (genesis.minimumWork < 1n || genesis.initialWork < genesis.minimumWork)
    throw new ProtocolError('out_of_range', 'the first work is below the least work');
  let sum = 0n;
  const keys = new Set<string>();
  for (const validator of genesis.validators) {
    keys.add(toHex(validator.publicKey));
    checkGenesisValidator(validator);
    sum += validator.principal;
  }
  if (keys.size !== genesis.validators.length)
    throw new ProtocolError('duplicate_entry', 'two validators have one consensus key');
  for (const { address, amount } of genesis.outputs) {
    payloadKind(address);
    if (amount < 1n) throw new ProtocolError('amount_range', 'an output holds at least one atom');
    sum += checkAmount(amount);
  }
  if (sum !== GENESIS_SUPPLY)
    throw new ProtocolError('amount_range', `genesis hands out ${sum} atoms instead of ${GENESIS_SUPPLY}`);
}

/** Throws a ProtocolError for one that no genesis has, whoever the others are. */
export function checkGenesisValidator({
  principal,
  owner,
  rewardAddress,
  commission,
  endpoint,
}: GenesisValidator): void {
  checkOwner(owner);
  payloadKind(rewardAddress);
  checkCommission(commission);
  decodeEndpoint(endpoint);
  if (principal < MIN_SELF_BOND || principal > MAX_SUPPLY)
    throw new ProtocolError('amount_range', 'a validator bonds at least 100,000 coins');
}

/** Throws a ProtocolError for a number of cuts that no interval of the network has. */
export function checkInterval({ network, intervalCuts }: Pick<Genesis, 'network' | 'intervalCuts'>): void {
  if (network !== 'development' && intervalCuts !== INTERVAL_CUTS)
    throw new ProtocolError('out_of_range', `an interval of ${network} has ${INTERVAL_CUTS} cuts`);
  if (intervalCuts < MIN_INTERVAL_CUTS || intervalCuts % ATTENDANCE_WINDOWS !== 0 || intervalCuts > INTERVAL_CUTS)
    throw new ProtocolError(
      'out_of_range',
      `an interval has ${MIN_INTERVAL_CUTS} to ${INTERVAL_CUTS} cuts, a multiple of ${ATTENDANCE_WINDOWS}`,
    );
}

function writeValidator(writer: ByteWriter, validator: GenesisValidator): ByteWriter {
  const { publicKey, principal, owner, rewardAddress, commission, endpoint } = validator;
  if (publicKey.length !== PUBLIC_KEY_BYTES)
    throw new ProtocolError('out_of_range', `a public key has ${PUBLIC_KEY_BYTES} bytes`);
  writer.raw(publicKey).u64(principal).raw(owner).raw(rewardAddress);
  return writer.u16(commission).u16(endpoint.length).raw(endpoint);
}

/**
 * The bytes that a consensus key signs to take part in a genesis, so that the registration cannot be changed. There is
 * no chain id yet.
 */
export const registrationMessage = ({ network, ...validator }: NamedValidator): Uint8Array<ArrayBuffer> =>
  id(LABELS.genesisRegistration, writeValidator(new ByteWriter(4096).u32(NETWORKS[network].id), validator).done());

export function encodeGenesis(genesis: Genesis): Uint8Array<ArrayBuffer> {
  check(genesis);
  const writer = new ByteWriter(16_384)
    .u32(genesisVersion(genesis))
    .u32(NETWORKS[genesis.network].id)
    .height(genesis.timestampMillis)
    .height(genesis.powEpochLength)
    .u64(genesis.initialWork)
    .u64(genesis.minimumWork)
    .u32(genesis.intervalCuts)
    .raw(genesis.seed ?? new Uint8Array(0))
    .u8(genesis.validators.length);
  for (const validator of genesis.validators) writeValidator(writer, validator);
  writer.u32(genesis.outputs.length);
  for (const { address, amount } of genesis.outputs) writer.raw(address).u64(amount);
  return writer.done();
}

export function decodeGenesis(bytes: Bytes): Genesis {
  const reader = new ByteReader(bytes);
  const seeded = isSeeded(reader.u32());
  const base = {
    network: networkById(reader.u32()).name,
    timestampMillis: reader.height(),
    powEpochLength: reader.height(),
    initialWork: reader.u64(),
    minimumWork: reader.u64(),
    intervalCuts: reader.u32(),
    ...(seeded && { seed: reader.take(SEED_BYTES) }),
  };
  const validators: GenesisValidator[] = [];
  for (let left = reader.u8(); left > 0; left--)
    validators.push({
      publicKey: reader.take(PUBLIC_KEY_BYTES),
      principal: reader.u64(),
      owner: reader.take(ADDRESS_PAYLOAD_BYTES),
      rewardAddress: reader.take(ADDRESS_PAYLOAD_BYTES),
      commission: reader.u16(),
      endpoint: reader.take(reader.u16()),
    });
  const count = reader.u32();
  if (count > MAX_GENESIS_OUTPUTS) throw new ProtocolError('too_long', 'too many genesis outputs');
  const outputs: Output[] = [];
  for (let i = 0; i < count; i++) outputs.push({ address: reader.take(ADDRESS_PAYLOAD_BYTES), amount: reader.u64() });
  reader.end();
  const genesis = { ...base, validators, outputs };
  check(genesis);
  return genesis;
}

export const chainId = (genesisBytes: Bytes): Uint8Array<ArrayBuffer> => id(LABELS.chain, genesisBytes);

/** Each output of genesis has a transaction id of its own, as rewards have. */
export const genesisOutpoint = (chain: Bytes, index: number): Outpoint => ({
  transactionId: id(LABELS.genesisOutput, concat(chain, new ByteWriter(4).u32(index).done())),
  outputIndex: 0,
});
