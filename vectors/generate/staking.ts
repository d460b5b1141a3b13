/** Staking (ledger rules 31, 61 and 62): votes, endpoints, every operation with its bytes, and the messages that are signed. Keys and signatures are patterns. */
import { keyAddressPayload } from '../../protocol/address.ts';
import { type Bytes, toHex, utf8 } from '../../protocol/bytes.ts';
import { encodeVote, type Vote, voteMessage } from '../../protocol/consensus/vote.ts';
import { id, LABELS } from '../../protocol/crypto/identifier.ts';
import { PUBLIC_KEY_BYTES, SIGNATURE_BYTES } from '../../protocol/crypto/key-sizes.ts';
import { type NamedValidator, registrationMessage } from '../../protocol/ledger/genesis.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { type Endpoint, encodeEndpoint } from '../../protocol/staking/endpoint.ts';
import {
  consensusKeyHash,
  delegationId,
  endpointMessage,
  possessionMessage,
  selfBondId,
  validatorId,
  withdrawalOutpoint,
} from '../../protocol/staking/names.ts';
import { encodeOperation, type StakingOperation } from '../../protocol/staking/operation.ts';
import { pattern } from './pattern.ts';

const COIN = 100_000_000n;
const chainId = id(LABELS.chain, utf8('vectors'));
const key = pattern('staking/key', PUBLIC_KEY_BYTES);
const nextKey = pattern('staking/next key', PUBLIC_KEY_BYTES);
const owner = keyAddressPayload(pattern('staking/owner', PUBLIC_KEY_BYTES));
const rewardAddress = keyAddressPayload(pattern('staking/rewards', PUBLIC_KEY_BYTES));
const validator = validatorId(key);
const position = delegationId(pattern('staking/bond', 48));
const signature = (name: string): Bytes => pattern(`staking/${name}`, SIGNATURE_BYTES);

const ENDPOINTS: readonly Endpoint[] = [
  { overlayKey: pattern('staking/overlay', 32), routes: [] },
  {
    overlayKey: pattern('staking/overlay', 32),
    routes: [
      { kind: 'ipv4', host: Uint8Array.of(192, 0, 2, 7), port: 28_704 },
      { kind: 'ipv6', host: pattern('staking/ipv6', 16), port: 1 },
      { kind: 'name', host: utf8('validator.example.org'), port: 65_535 },
      { kind: 'name', host: utf8('x'), port: 443 },
    ],
  },
];
const [plain, routed] = ENDPOINTS.map(encodeEndpoint) as [Bytes, Bytes];

const vote = (cutId: Bytes): Vote => ({ kind: 'prevote', height: 123_456, round: 2, cutId });
const VOTES: readonly Vote[] = [
  vote(pattern('staking/cut', 48)),
  vote(new Uint8Array(48)),
  { kind: 'precommit', height: 0, round: 0, cutId: pattern('staking/cut', 48) },
];

export const OPERATIONS: readonly StakingOperation[] = [
  {
    name: 'register',
    consensusKey: key,
    possession: signature('possession'),
    owner,
    rewardAddress,
    amount: 100_000n * COIN,
    commission: 500,
    endpoint: routed,
  },
  { name: 'bond', validator, owner, rewardAddress, amount: 100n * COIN },
  { name: 'unbond', position, amount: 0n },
  { name: 'unbond', position, amount: 250n * COIN + 1n },
  { name: 'withdraw', position },
  { name: 'reward_address', position, address: rewardAddress },
  { name: 'heartbeat', validator, epoch: 365 },
  { name: 'rotate', validator, consensusKey: nextKey, possession: signature('next possession'), endpoint: plain },
  { name: 'endpoint', validator, endpoint: routed, signature: signature('endpoint') },
  { name: 'commission', validator, commission: 1_000 },
  { name: 'exit', validator },
  {
    name: 'evidence',
    validator,
    votes: [
      { vote: VOTES[0] as Vote, signature: signature('first vote') },
      { vote: VOTES[1] as Vote, signature: signature('second vote') },
    ],
  },
];

const REGISTRATION: NamedValidator = {
  network: 'testnet',
  publicKey: key,
  principal: 100_000n * COIN,
  owner,
  rewardAddress,
  commission: 500,
  endpoint: routed,
};

const shown = (value: unknown): unknown => {
  if (value instanceof Uint8Array) return toHex(value);
  if (typeof value === 'bigint') return value.toString();
  if (Array.isArray(value)) return value.map(shown);
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([field, inner]) => [snake(field), shown(inner)]));
  return value;
};
const snake = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

export function stakingVectors() {
  return {
    chain_id: toHex(chainId),
    identifiers: {
      consensus_key: toHex(key),
      validator_id: toHex(validator),
      self_bond: toHex(selfBondId(validator)),
      consensus_key_hash: toHex(consensusKeyHash(key)),
      transaction_id: toHex(pattern('staking/bond', 48)),
      delegation: toHex(position),
      withdrawal: toHex(withdrawalOutpoint(position, pattern('staking/withdrawal', 48)).transactionId),
      withdrawal_transaction_id: toHex(pattern('staking/withdrawal', 48)),
    },
    messages: {
      possession: toHex(possessionMessage(chainId, owner, key)),
      endpoint: toHex(endpointMessage(chainId, validator, routed)),
    },
    genesis_registration: {
      ...(shown(REGISTRATION) as object),
      network_id: NETWORKS[REGISTRATION.network].id,
      message: toHex(registrationMessage(REGISTRATION)),
    },
    votes: VOTES.map((each) => ({
      ...(shown(each) as object),
      bytes: toHex(encodeVote(each)),
      message: toHex(voteMessage(chainId, each)),
    })),
    endpoints: ENDPOINTS.map((each) => ({ ...(shown(each) as object), bytes: toHex(encodeEndpoint(each)) })),
    operations: OPERATIONS.map((operation) => {
      const { type, data } = encodeOperation(operation);
      return { type, ...(shown(operation) as object), data: toHex(data) };
    }),
  };
}
