/** Staking operations, endpoints and votes: vectors, round trips, and every field at its bounds and past them. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { burnAddressPayload } from '../../protocol/address.ts';
import { MAX_SUPPLY } from '../../protocol/amount.ts';
import { type Bytes, fromHex, toHex, utf8 } from '../../protocol/bytes.ts';
import { decodeVote, encodeVote } from '../../protocol/consensus/vote.ts';
import { decodeEndpoint, encodeEndpoint } from '../../protocol/staking/endpoint.ts';
import {
  decodeOperation,
  encodeOperation,
  OPERATION_TYPES,
  type StakingOperation,
} from '../../protocol/staking/operation.ts';
import { OPERATIONS } from '../../vectors/generate/staking.ts';
import { fuzzDecoder } from './fuzz.ts';

type Vectors = {
  chain_id: string;
  identifiers: Record<string, string>;
  genesis_registration: Record<string, string> & { network_id: number; commission: number };
  votes: { bytes: string; message: string }[];
  endpoints: { bytes: string; routes: { port: number }[] }[];
  operations: { type: number; name: keyof typeof OPERATION_TYPES; data: string }[];
};
const vectors = JSON.parse(readFileSync(new URL('../../vectors/staking.json', import.meta.url), 'utf8')) as Vectors;
const COIN = 100_000_000n;
/** The identifier by its rule, with another hash than the code's. */
const labelled = (label: string, hex: string): string =>
  createHash('sha384').update(`${label}\0`).update(Buffer.from(hex, 'hex')).digest('hex');

test('every operation has a vector that reads back', () => {
  for (const { type, name, data } of vectors.operations) {
    const operation = decodeOperation({ type, data: fromHex(data) });
    expect(operation.name).toBe(name);
    expect(toHex(encodeOperation(operation).data)).toBe(data);
  }
  const seen = new Set(vectors.operations.map(({ name }) => name));
  expect([...seen].sort()).toEqual(Object.keys(OPERATION_TYPES).sort());
});

test('votes, endpoints and identifiers follow from their bytes', () => {
  for (const { bytes, message } of vectors.votes) {
    expect(toHex(encodeVote(decodeVote(fromHex(bytes))))).toBe(bytes);
    expect(labelled('SVC_VOTE_V1', vectors.chain_id + bytes)).toBe(message);
  }
  for (const { bytes, routes } of vectors.endpoints) {
    const endpoint = decodeEndpoint(fromHex(bytes));
    expect(toHex(encodeEndpoint(endpoint))).toBe(bytes);
    expect(endpoint.routes.map(({ port }) => port)).toEqual(routes.map(({ port }) => port));
  }
  const ids = vectors.identifiers as Record<
    'consensus_key' | 'validator_id' | 'self_bond' | 'delegation' | 'transaction_id',
    string
  >;
  expect(labelled('SVC_VALIDATOR_V1', ids.consensus_key)).toBe(ids.validator_id);
  expect(labelled('SVC_POSITION_V1', ids.validator_id)).toBe(ids.self_bond);
  expect(labelled('SVC_POSITION_V1', ids.transaction_id)).toBe(ids.delegation);
});

test('the message of a genesis registration covers its network and every term', () => {
  const of = vectors.genesis_registration;
  const whole = (value: number | bigint, bytes: number): string => {
    const buffer = Buffer.alloc(8);
    buffer.writeBigUInt64LE(BigInt(value));
    return buffer.subarray(0, bytes).toString('hex');
  };
  const { public_key: key, principal, owner, reward_address: rewards, endpoint } = of as Record<string, string>;
  const head = `${whole(of.network_id, 4)}${key}${whole(BigInt(principal as string), 8)}${owner}${rewards}`;
  const bytes = `${head}${whole(of.commission, 2)}${whole((endpoint as string).length / 2, 2)}${endpoint}`;
  expect(labelled('SVC_GENESIS_REGISTRATION_V1', bytes)).toBe(of.message);
});

const sample = <N extends StakingOperation['name']>(name: N): Extract<StakingOperation, { name: N }> =>
  OPERATIONS.find((operation) => operation.name === name) as Extract<StakingOperation, { name: N }>;

const short = (bytes: Bytes): Bytes => bytes.subarray(1);
const WRONG: [string, StakingOperation][] = [
  ['register below 100,000 coins', { ...sample('register'), amount: 100_000n * COIN - 1n }],
  ['register more than there can be', { ...sample('register'), amount: MAX_SUPPLY + 1n }],
  ['register at the end of 64 bits', { ...sample('register'), amount: (1n << 64n) - 1n }],
  ['register with 1,010 basis points', { ...sample('register'), commission: 1_010 }],
  ['register with 5 basis points', { ...sample('register'), commission: 5 }],
  ['register for the burn address', { ...sample('register'), owner: burnAddressPayload() }],
  ['register with a short key', { ...sample('register'), consensusKey: short(sample('register').consensusKey) }],
  ['register with a short proof', { ...sample('register'), possession: short(sample('register').possession) }],
  ['register with a reward address of no kind', { ...sample('register'), rewardAddress: new Uint8Array(49).fill(9) }],
  ['register without an endpoint', { ...sample('register'), endpoint: new Uint8Array(0) }],
  ['bond below 100 coins', { ...sample('bond'), amount: 100n * COIN - 1n }],
  ['bond nothing', { ...sample('bond'), amount: 0n }],
  ['bond at the end of 64 bits', { ...sample('bond'), amount: (1n << 64n) - 1n }],
  ['bond for the burn address', { ...sample('bond'), owner: burnAddressPayload() }],
  ['bond to a short identifier', { ...sample('bond'), validator: short(sample('bond').validator) }],
  ['unbond below 100 coins', { ...sample('unbond'), amount: 1n }],
  ['unbond at the end of 64 bits', { ...sample('unbond'), amount: (1n << 64n) - 1n }],
  ['unbond a short identifier', { ...sample('unbond'), position: new Uint8Array(47) }],
  ['withdraw a short identifier', { ...sample('withdraw'), position: new Uint8Array(49) }],
  ['redirect to an address of no kind', { ...sample('reward_address'), address: new Uint8Array(49).fill(7) }],
  ['heartbeat past 2^53', { ...sample('heartbeat'), epoch: 2 ** 54 }],
  ['rotate to a short key', { ...sample('rotate'), consensusKey: new Uint8Array(10) }],
  ['rotate with a short proof', { ...sample('rotate'), possession: short(sample('rotate').possession) }],
  ['rotate of a short identifier', { ...sample('rotate'), validator: short(sample('rotate').validator) }],
  ['endpoint of a short identifier', { ...sample('endpoint'), validator: short(sample('endpoint').validator) }],
  ['commission of a short identifier', { ...sample('commission'), validator: new Uint8Array(49) }],
  ['heartbeat of a short identifier', { ...sample('heartbeat'), validator: new Uint8Array(47) }],
  ['evidence of a short identifier', { ...sample('evidence'), validator: new Uint8Array(47) }],
  ['rotate with a long endpoint', { ...sample('rotate'), endpoint: new Uint8Array(2_000).fill(1) }],
  ['endpoint with a short signature', { ...sample('endpoint'), signature: new Uint8Array(3_308) }],
  ['commission past 10 %', { ...sample('commission'), commission: 65_530 }],
  ['exit of a short identifier', { ...sample('exit'), validator: new Uint8Array(0) }],
];

test.each(WRONG)('%s is refused before it is written, and when it is read', (_name, operation) => {
  expect(() => encodeOperation(operation)).toThrow();
});

test('evidence is two votes that contradict each other', () => {
  const evidence = sample('evidence');
  const [first, second] = evidence.votes;
  const votes = (change: Partial<(typeof second)['vote']>) =>
    encodeOperation({ ...evidence, votes: [first, { ...second, vote: { ...second.vote, ...change } }] });
  expect(() => votes({ cutId: first.vote.cutId })).toThrow(/two different votes/);
  expect(() => votes({ height: 1 })).toThrow(/two different votes/);
  expect(() => votes({ round: 9 })).toThrow(/two different votes/);
  expect(() => votes({ kind: 'precommit' })).toThrow(/two different votes/);
  // Two signatures over one vote are none, and bytes say the same as values.
  const { type, data } = encodeOperation(evidence);
  const same = Uint8Array.from(data);
  same.set(data.subarray(48, 48 + 61), 48 + 61 + 3_309);
  expect(() => decodeOperation({ type, data: same })).toThrow(/two different votes/);
});

test('an endpoint has at most four routes, each with a port and a host of its kind', () => {
  const overlayKey = new Uint8Array(32);
  const route = (kind: 'name' | 'ipv4' | 'ipv6', host: Bytes, port = 1) => ({
    overlayKey,
    routes: [{ kind, host, port }],
  });
  const good = route('name', utf8('a.b-c.example')).routes[0] as ReturnType<typeof route>['routes'][number];
  expect(() => encodeEndpoint({ overlayKey, routes: Array(5).fill(good) })).toThrow(/at most 4/);
  expect(() => encodeEndpoint(route('ipv4', new Uint8Array(16)))).toThrow(/16 bytes/);
  expect(() => encodeEndpoint(route('ipv6', new Uint8Array(4)))).toThrow(/4 bytes/);
  expect(() => encodeEndpoint(route('name', utf8('a'), 0))).toThrow(/port/);
  for (const name of ['', 'A.example', '-a', 'a..b', 'a b', 'ä.example', 'x'.repeat(64), 'a.'.repeat(127)])
    expect(() => encodeEndpoint(route('name', utf8(name))), name).toThrow();
});

test('operations of no type, or with bytes left over, are refused', () => {
  for (const type of [0, 12, 255])
    expect(() => decodeOperation({ type, data: new Uint8Array(48) })).toThrow(/not known/);
  for (const operation of OPERATIONS) {
    const { type, data } = encodeOperation(operation);
    const longer = new Uint8Array(data.length + 1);
    longer.set(data);
    expect(() => decodeOperation({ type, data: longer }), operation.name).toThrow();
    expect(() => decodeOperation({ type, data: data.subarray(1) }), operation.name).toThrow();
    expect(() => decodeOperation({ type, data: new Uint8Array(0) }), operation.name).toThrow();
  }
});

test.each((['bond', 'endpoint'] as const).map((name) => [name, sample(name)] as const))(
  '%s: broken bytes are refused, and only refused',
  (name, operation) => {
    const { type, data } = encodeOperation(operation);
    fuzzDecoder({
      name,
      decode: (bytes) => decodeOperation({ type, data: bytes }),
      encode: (value) => new Uint8Array(encodeOperation(value).data),
      samples: [new Uint8Array(data)],
    });
  },
);
