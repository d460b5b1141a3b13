/**
 * The eleven staking operations (ledger rule 62): the bytes after the type byte of a transaction's operation, and everything that can be
 * checked of it without the ledger. A transaction with an operation that cannot be read is invalid.
 */
import { ADDRESS_PAYLOAD_BYTES, payloadKind } from '../address.ts';
import { checkAmount } from '../amount.ts';
import { ByteReader, type Bytes, ByteWriter } from '../bytes.ts';
import { areContrary, encodeVote, readVote, type Vote } from '../consensus/vote.ts';
import { ID_BYTES } from '../crypto/identifier.ts';
import { PUBLIC_KEY_BYTES, SIGNATURE_BYTES } from '../crypto/key-sizes.ts';
import { ProtocolError } from '../errors.ts';
import { decodeEndpoint } from './endpoint.ts';
import { COMMISSION_STEP, MAX_COMMISSION, MIN_DELEGATION, MIN_SELF_BOND } from './limits.ts';

export const OPERATION_TYPES = {
  register: 1,
  bond: 2,
  unbond: 3,
  withdraw: 4,
  reward_address: 5,
  heartbeat: 6,
  rotate: 7,
  endpoint: 8,
  commission: 9,
  exit: 10,
  evidence: 11,
} as const;
export type OperationName = keyof typeof OPERATION_TYPES;

/** As a transaction carries it. */
export type Operation = { readonly type: number; readonly data: Bytes };

export type Register = {
  readonly name: 'register';
  readonly consensusKey: Bytes;
  /** The consensus key's signature over owner and key. */
  readonly possession: Bytes;
  readonly owner: Bytes;
  readonly rewardAddress: Bytes;
  readonly amount: bigint;
  /** Basis points. */
  readonly commission: number;
  readonly endpoint: Bytes;
};
export type Bond = {
  readonly name: 'bond';
  readonly validator: Bytes;
  readonly owner: Bytes;
  readonly rewardAddress: Bytes;
  readonly amount: bigint;
};
/** `amount` 0 unbonds all. */
export type Unbond = { readonly name: 'unbond'; readonly position: Bytes; readonly amount: bigint };
export type Withdraw = { readonly name: 'withdraw'; readonly position: Bytes };
export type RewardAddress = { readonly name: 'reward_address'; readonly position: Bytes; readonly address: Bytes };
export type Heartbeat = { readonly name: 'heartbeat'; readonly validator: Bytes; readonly epoch: number };
export type Rotate = {
  readonly name: 'rotate';
  readonly validator: Bytes;
  readonly consensusKey: Bytes;
  readonly possession: Bytes;
  readonly endpoint: Bytes;
};
export type ChangeEndpoint = {
  readonly name: 'endpoint';
  readonly validator: Bytes;
  readonly endpoint: Bytes;
  /** The active consensus key's. */
  readonly signature: Bytes;
};
export type ChangeCommission = { readonly name: 'commission'; readonly validator: Bytes; readonly commission: number };
export type Exit = { readonly name: 'exit'; readonly validator: Bytes };
export type SignedVote = { readonly vote: Vote; readonly signature: Bytes };
export type Evidence = {
  readonly name: 'evidence';
  readonly validator: Bytes;
  readonly votes: readonly [SignedVote, SignedVote];
};

export type StakingOperation =
  | Register
  | Bond
  | Unbond
  | Withdraw
  | RewardAddress
  | Heartbeat
  | Rotate
  | ChangeEndpoint
  | ChangeCommission
  | Exit
  | Evidence;

export const MAX_OPERATION_BYTES = 8192;

const sized = (bytes: Bytes, length: number, what: string): Bytes => {
  if (bytes.length !== length) throw new ProtocolError('out_of_range', `${what} has ${length} bytes`);
  return bytes;
};

export function checkCommission(basisPoints: number): number {
  if (basisPoints > MAX_COMMISSION || basisPoints % COMMISSION_STEP !== 0)
    throw new ProtocolError('out_of_range', `a commission is 0 to ${MAX_COMMISSION} basis points in steps of 10`);
  return basisPoints;
}

function checkBonded(amount: bigint, least: bigint): bigint {
  checkAmount(amount);
  if (amount < least) throw new ProtocolError('amount_range', `at least ${least} atoms are bonded`);
  return amount;
}

/** An address that can sign: nobody can sign for the burn address, so its property would be lost. */
export function checkOwner(address: Bytes): Bytes {
  if (payloadKind(address) === 'burn') throw new ProtocolError('address_kind', 'the burn address owns nothing');
  return address;
}

/** Throws a ProtocolError for an operation that can never be applied, whatever the ledger's state. */
function check(operation: StakingOperation): void {
  switch (operation.name) {
    case 'register':
      sized(operation.consensusKey, PUBLIC_KEY_BYTES, 'a public key');
      sized(operation.possession, SIGNATURE_BYTES, 'a signature');
      checkOwner(operation.owner);
      payloadKind(operation.rewardAddress);
      checkBonded(operation.amount, MIN_SELF_BOND);
      checkCommission(operation.commission);
      decodeEndpoint(operation.endpoint);
      return;
    case 'bond':
      sized(operation.validator, ID_BYTES, 'an identifier');
      checkOwner(operation.owner);
      payloadKind(operation.rewardAddress);
      checkBonded(operation.amount, MIN_DELEGATION);
      return;
    case 'unbond':
      sized(operation.position, ID_BYTES, 'an identifier');
      if (operation.amount !== 0n) checkBonded(operation.amount, MIN_DELEGATION);
      return;
    case 'withdraw':
      sized(operation.position, ID_BYTES, 'an identifier');
      return;
    case 'reward_address':
      sized(operation.position, ID_BYTES, 'an identifier');
      payloadKind(operation.address);
      return;
    case 'rotate':
      sized(operation.validator, ID_BYTES, 'an identifier');
      sized(operation.consensusKey, PUBLIC_KEY_BYTES, 'a public key');
      sized(operation.possession, SIGNATURE_BYTES, 'a signature');
      decodeEndpoint(operation.endpoint);
      return;
    case 'endpoint':
      sized(operation.validator, ID_BYTES, 'an identifier');
      sized(operation.signature, SIGNATURE_BYTES, 'a signature');
      decodeEndpoint(operation.endpoint);
      return;
    case 'commission':
      sized(operation.validator, ID_BYTES, 'an identifier');
      checkCommission(operation.commission);
      return;
    case 'heartbeat':
    case 'exit':
      sized(operation.validator, ID_BYTES, 'an identifier');
      return;
    case 'evidence': {
      sized(operation.validator, ID_BYTES, 'an identifier');
      const [first, second] = operation.votes;
      for (const { signature } of operation.votes) sized(signature, SIGNATURE_BYTES, 'a signature');
      if (!areContrary(first.vote, second.vote))
        throw new ProtocolError('not_canonical', 'evidence is two different votes of one height, round and kind');
    }
  }
}

function write(writer: ByteWriter, operation: StakingOperation): ByteWriter {
  switch (operation.name) {
    case 'register':
      return writer
        .raw(operation.consensusKey)
        .raw(operation.possession)
        .raw(operation.owner)
        .raw(operation.rewardAddress)
        .u64(operation.amount)
        .u16(operation.commission)
        .raw(operation.endpoint);
    case 'bond':
      return writer.raw(operation.validator).raw(operation.owner).raw(operation.rewardAddress).u64(operation.amount);
    case 'unbond':
      return writer.raw(operation.position).u64(operation.amount);
    case 'withdraw':
      return writer.raw(operation.position);
    case 'reward_address':
      return writer.raw(operation.position).raw(operation.address);
    case 'heartbeat':
      return writer.raw(operation.validator).height(operation.epoch);
    case 'rotate':
      return writer
        .raw(operation.validator)
        .raw(operation.consensusKey)
        .raw(operation.possession)
        .raw(operation.endpoint);
    case 'endpoint':
      return writer.raw(operation.validator).raw(operation.signature).raw(operation.endpoint);
    case 'commission':
      return writer.raw(operation.validator).u16(operation.commission);
    case 'exit':
      return writer.raw(operation.validator);
    case 'evidence':
      writer.raw(operation.validator);
      for (const { vote, signature } of operation.votes) writer.raw(encodeVote(vote)).raw(signature);
      return writer;
  }
}

export function encodeOperation(operation: StakingOperation): Operation {
  check(operation);
  return { type: OPERATION_TYPES[operation.name], data: write(new ByteWriter(256), operation).done() };
}

/** The rest; `check` decodes it, which bounds its length. */
const readEndpoint = (reader: ByteReader): Bytes => reader.take(reader.left);

const readSignedVote = (reader: ByteReader): SignedVote => ({
  vote: readVote(reader),
  signature: reader.take(SIGNATURE_BYTES),
});

const READERS: { readonly [N in OperationName]: (reader: ByteReader) => StakingOperation } = {
  register: (reader) => ({
    name: 'register',
    consensusKey: reader.take(PUBLIC_KEY_BYTES),
    possession: reader.take(SIGNATURE_BYTES),
    owner: reader.take(ADDRESS_PAYLOAD_BYTES),
    rewardAddress: reader.take(ADDRESS_PAYLOAD_BYTES),
    amount: reader.u64(),
    commission: reader.u16(),
    endpoint: readEndpoint(reader),
  }),
  bond: (reader) => ({
    name: 'bond',
    validator: reader.take(ID_BYTES),
    owner: reader.take(ADDRESS_PAYLOAD_BYTES),
    rewardAddress: reader.take(ADDRESS_PAYLOAD_BYTES),
    amount: reader.u64(),
  }),
  unbond: (reader) => ({ name: 'unbond', position: reader.take(ID_BYTES), amount: reader.u64() }),
  withdraw: (reader) => ({ name: 'withdraw', position: reader.take(ID_BYTES) }),
  reward_address: (reader) => ({
    name: 'reward_address',
    position: reader.take(ID_BYTES),
    address: reader.take(ADDRESS_PAYLOAD_BYTES),
  }),
  heartbeat: (reader) => ({ name: 'heartbeat', validator: reader.take(ID_BYTES), epoch: reader.height() }),
  rotate: (reader) => ({
    name: 'rotate',
    validator: reader.take(ID_BYTES),
    consensusKey: reader.take(PUBLIC_KEY_BYTES),
    possession: reader.take(SIGNATURE_BYTES),
    endpoint: readEndpoint(reader),
  }),
  endpoint: (reader) => ({
    name: 'endpoint',
    validator: reader.take(ID_BYTES),
    signature: reader.take(SIGNATURE_BYTES),
    endpoint: readEndpoint(reader),
  }),
  commission: (reader) => ({ name: 'commission', validator: reader.take(ID_BYTES), commission: reader.u16() }),
  exit: (reader) => ({ name: 'exit', validator: reader.take(ID_BYTES) }),
  evidence: (reader) => ({
    name: 'evidence',
    validator: reader.take(ID_BYTES),
    votes: [readSignedVote(reader), readSignedVote(reader)],
  }),
};

const NAMES = Object.keys(OPERATION_TYPES) as OperationName[];

export function decodeOperation({ type, data }: Operation): StakingOperation {
  const name = NAMES[type - 1];
  if (name === undefined) throw new ProtocolError('unsupported_kind', `operation type ${type} is not known`);
  const reader = new ByteReader(data);
  const operation = READERS[name](reader);
  reader.end();
  check(operation);
  return operation;
}

const SIGNATURES_INSIDE: Readonly<Partial<Record<OperationName, number>>> = {
  register: 1,
  rotate: 1,
  endpoint: 1,
  evidence: 2,
};

/** Signatures in the data of an operation, besides the witness of its signer. */
export const signaturesInside = ({ name }: StakingOperation): number => SIGNATURES_INSIDE[name] ?? 0;

/** The amount that a transaction bonds besides its outputs. */
export const bondedBy = (operation: StakingOperation | undefined): bigint =>
  operation?.name === 'register' || operation?.name === 'bond' ? operation.amount : 0n;
