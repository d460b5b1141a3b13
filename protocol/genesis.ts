/**
 * The genesis document (ledger rule 32): canonical bytes from which the chain id and the first state follow. It mints exactly
 * 20,000,000 coins: what the first validators have bonded, and outputs.
 */
import { ADDRESS_PAYLOAD_BYTES, payloadKind } from './address.ts';
import { checkAmount, MAX_SUPPLY } from './amount.ts';
import { ByteReader, type Bytes, ByteWriter, concat } from './bytes.ts';
import { MAX_COMMITTEE } from './cut.ts';
import { GENESIS_SUPPLY } from './emission.ts';
import { ProtocolError } from './errors.ts';
import { id, LABELS } from './identifier.ts';
import { NETWORKS, type NetworkName, networkById } from './network.ts';
import { type Outpoint, type Output, PUBLIC_KEY_BYTES } from './transaction.ts';

export const GENESIS_VERSION = 1;
export const MIN_SELF_BOND = 100_000n * 100_000_000n;
/** A guard for readers, far above what any genesis needs. */
const MAX_GENESIS_OUTPUTS = 2_000_000;

export type GenesisValidator = {
  readonly publicKey: Bytes;
  readonly principal: bigint;
  readonly rewardAddress: Bytes;
};

export type Genesis = {
  readonly network: NetworkName;
  readonly timestampMillis: number;
  /** Cuts of a PoW epoch. */
  readonly powEpochLength: number;
  /** Work of a block anchored at cut 0, and the least work a block may ever have. */
  readonly initialWork: bigint;
  readonly minimumWork: bigint;
  readonly validators: readonly GenesisValidator[];
  readonly outputs: readonly Output[];
};

function check(genesis: Genesis): void {
  if (genesis.validators.length < 1 || genesis.validators.length > MAX_COMMITTEE)
    throw new ProtocolError('out_of_range', `a chain starts with 1 to ${MAX_COMMITTEE} validators`);
  if (genesis.outputs.length > MAX_GENESIS_OUTPUTS) throw new ProtocolError('too_long', 'too many genesis outputs');
  if (genesis.powEpochLength < 1) throw new ProtocolError('out_of_range', 'a PoW epoch has at least one cut');
  if (genesis.minimumWork < 1n || genesis.initialWork < genesis.minimumWork)
    throw new ProtocolError('out_of_range', 'the first work is below the least work');
  let sum = 0n;
  for (const { principal, rewardAddress } of genesis.validators) {
    payloadKind(rewardAddress);
    if (principal < MIN_SELF_BOND || principal > MAX_SUPPLY)
      throw new ProtocolError('amount_range', 'a validator bonds at least 100,000 coins');
    sum += principal;
  }
  for (const { address, amount } of genesis.outputs) {
    payloadKind(address);
    if (amount < 1n) throw new ProtocolError('amount_range', 'an output holds at least one atom');
    sum += checkAmount(amount);
  }
  if (sum !== GENESIS_SUPPLY)
    throw new ProtocolError('amount_range', `genesis hands out ${sum} atoms instead of ${GENESIS_SUPPLY}`);
}

export function encodeGenesis(genesis: Genesis): Uint8Array<ArrayBuffer> {
  check(genesis);
  const writer = new ByteWriter(16_384)
    .u32(GENESIS_VERSION)
    .u32(NETWORKS[genesis.network].id)
    .height(genesis.timestampMillis)
    .height(genesis.powEpochLength)
    .u64(genesis.initialWork)
    .u64(genesis.minimumWork)
    .u8(genesis.validators.length);
  for (const { publicKey, principal, rewardAddress } of genesis.validators) {
    if (publicKey.length !== PUBLIC_KEY_BYTES)
      throw new ProtocolError('out_of_range', `a public key has ${PUBLIC_KEY_BYTES} bytes`);
    writer.raw(publicKey).u64(principal).raw(rewardAddress);
  }
  writer.u32(genesis.outputs.length);
  for (const { address, amount } of genesis.outputs) writer.raw(address).u64(amount);
  return writer.done();
}

export function decodeGenesis(bytes: Bytes): Genesis {
  const reader = new ByteReader(bytes);
  const version = reader.u32();
  if (version !== GENESIS_VERSION) throw new ProtocolError('unsupported_version', `genesis version ${version}`);
  const base = {
    network: networkById(reader.u32()).name,
    timestampMillis: reader.height(),
    powEpochLength: reader.height(),
    initialWork: reader.u64(),
    minimumWork: reader.u64(),
  };
  const validators: GenesisValidator[] = [];
  for (let left = reader.u8(); left > 0; left--)
    validators.push({
      publicKey: reader.take(PUBLIC_KEY_BYTES),
      principal: reader.u64(),
      rewardAddress: reader.take(ADDRESS_PAYLOAD_BYTES),
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

export const validatorId = (publicKey: Bytes): Uint8Array<ArrayBuffer> => id(LABELS.validator, publicKey);
/** The position of a validator's own bond. */
export const selfBondId = (validator: Bytes): Uint8Array<ArrayBuffer> => id(LABELS.position, validator);
