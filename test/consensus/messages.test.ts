/** Messages between validators: vectors, the decoders' property, sizes, and what a relay cannot spoil. */
import {
  createCipheriv,
  createHash,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  hkdfSync,
  verify,
} from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { decodeForward, encodeForward } from '../../node/consensus/driver/forwarding.ts';
import { decodeMessage, encodeMessage, MAX_MESSAGE_BYTES } from '../../node/consensus/driver/messages.ts';
import { decodeCircuitMessage, encodeCircuitMessage } from '../../node/consensus/relays/circuit-messages.ts';
import { decodeRecord, signRecord } from '../../node/consensus/relays/relay-record.ts';
import { type Bytes, fromHex, toHex } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { consensusMessages } from '../../vectors/generate/consensus.ts';
import { fuzzDecoder } from '../protocol/fuzz.ts';

type Vectors = {
  proposers: {
    validator_set_id: string;
    stakes: string[];
    turns: { height: number; round: number; point: string; member: number }[];
  };
  messages: { name: string; hex: string }[];
  forward: { members: string; hex: string };
  connection: Record<
    'dialler' | 'dialled',
    { channel_secret: string; hello: string; signed: string; key: string; frames: { bytes: string; tag: string }[] }
  >;
  relay_record: Record<'overlay_key' | 'chain_id' | 'validator' | 'sequence' | 'expiry' | 'bytes', string> & {
    relays: string[];
  };
};
const vectors: Vectors = JSON.parse(
  readFileSync(new URL('../../vectors/consensus.json', import.meta.url), 'utf8'),
) as Vectors;

test('messages are read as they were written', () => {
  for (const [i, { name, message }] of consensusMessages().entries()) {
    const { hex } = vectors.messages[i] as { hex: string };
    expect(toHex(encodeMessage(message)), name).toBe(hex);
    const read = decodeMessage(fromHex(hex));
    // The round of a final cut's proposal is its certificate's.
    expect(read, name).toEqual(message);
  }
});

test('a message to forward: for whom, and a vote or a proposal as it is sent otherwise, nothing else', () => {
  const { members, hex } = vectors.forward;
  const { message, bytes } = decodeForward(fromHex(hex)) ?? {};
  expect(toHex(fromHex(hex).subarray(0, 9))).toBe('130900000000000000');
  expect([decodeForward(fromHex(hex))?.members, message?.type]).toEqual([BigInt(members), 'vote']);
  expect(vectors.messages.map(({ hex: each }) => each)).toContain(toHex(bytes ?? new Uint8Array()));
  for (const { name, hex: inner } of vectors.messages) {
    const forward = () => decodeForward(encodeForward(1n, fromHex(inner)));
    const { type } = decodeMessage(fromHex(inner));
    if (type === 'vote' || type === 'proposal') expect(forward()?.message.type, name).toBe(type);
    else expect(forward, name).toThrow('is not forwarded');
    expect(decodeForward(fromHex(inner)), name).toBeUndefined();
  }
  fuzzDecoder({
    name: 'message to forward',
    decode: (input) => {
      const forward = decodeForward(input);
      if (forward === undefined) throw new ProtocolError('unsupported_kind', 'another message');
      return forward;
    },
    encode: (forward) => encodeForward(forward.members, forward.bytes),
    samples: [fromHex(hex)],
  });
});

test('who proposes follows from SHA-384 and the stakes alone', () => {
  const { validator_set_id, stakes, turns } = vectors.proposers;
  const total = stakes.reduce((sum, stake) => sum + BigInt(stake), 0n);
  for (const { height, round, point, member } of turns) {
    const bytes = Buffer.alloc(60);
    Buffer.from(validator_set_id, 'hex').copy(bytes);
    bytes.writeBigUInt64LE(BigInt(height), 48);
    bytes.writeUInt32LE(round, 56);
    const digest = createHash('sha384').update('SVC_PROPOSER_V1\0').update(bytes).digest();
    const value = BigInt(`0x${Buffer.from(digest.subarray(0, 16)).reverse().toString('hex')}`);
    expect(String(value)).toBe(point);
    let left = value % total;
    let at = 0;
    while (left >= BigInt(stakes[at] as string)) left -= BigInt(stakes[at++] as string);
    expect(at).toBe(member);
  }
});

test('a record of relays: what is signed follows from its bytes by SHA-384, and the signature is the one of Ed25519', () => {
  const { overlay_key, chain_id, validator, sequence, expiry, relays, bytes } = vectors.relay_record;
  const all = Buffer.from(bytes, 'hex');
  const body = all.subarray(0, -64);
  expect(toHex(body.subarray(0, 96))).toBe(chain_id + validator);
  expect([body.readBigUInt64LE(96), body.readBigUInt64LE(104), body[112]]).toEqual([
    BigInt(sequence),
    BigInt(expiry),
    2,
  ]);
  expect(toHex(body.subarray(113))).toBe(relays.join(''));
  const der = Buffer.from(`302a300506032b6570032100${overlay_key}`, 'hex');
  const key = createPublicKey({ key: der, format: 'der', type: 'spki' });
  const signed = createHash('sha384').update('SVC_RELAY_RECORD_V1\0').update(body).digest();
  expect(verify(null, signed, key, all.subarray(-64))).toBe(true);
  expect(decodeRecord(all).record).toMatchObject({
    sequence: BigInt(sequence),
    relays: relays.map((each) => fromHex(each)),
  });
});

test('fuzzed records and messages about relays are read as they were written, or are a ProtocolError', () => {
  const { bytes } = vectors.relay_record;
  fuzzDecoder({
    name: 'relay record',
    decode: decodeRecord,
    encode: (signed) => signRecord(signed.record, () => signed.bytes.subarray(-64)).bytes,
    samples: [fromHex(bytes)],
  });
  fuzzDecoder({
    name: 'message about relays',
    decode: (input) => {
      const message = decodeCircuitMessage(input);
      if (message === undefined) throw new ProtocolError('unsupported_kind', 'another message');
      return message;
    },
    encode: encodeCircuitMessage,
    samples: [`0e${bytes}`, '0f', '10', `11${'07'.repeat(48)}`, `12${'07'.repeat(48)}02${'08'.repeat(16)}`].map((hex) =>
      fromHex(hex),
    ),
  });
});

test('a connection: what each end signs, the keys of the channel and the tags follow from both hellos by SHA-384, X25519, HKDF and AES-GCM', () => {
  const { dialler, dialled } = vectors.connection;
  const label = Buffer.from('SVC_OVERLAY_V2\0');
  const both = Buffer.from(dialler.hello + dialled.hello, 'hex');
  const hash = (first: number) => createHash('sha384').update(label).update(Uint8Array.of(first)).update(both).digest();
  expect([hash(1).toString('hex'), hash(2).toString('hex')]).toEqual([dialler.signed, dialled.signed]);
  const pkcs8 = `302e020100300506032b656e04220420${dialled.channel_secret}`;
  const privateKey = createPrivateKey({ key: Buffer.from(pkcs8, 'hex'), format: 'der', type: 'pkcs8' });
  const start = 2 * (4 + 2 + 48 + 16 + 32);
  const spki = `302a300506032b656e032100${dialler.hello.slice(start, start + 64)}`;
  const publicKey = createPublicKey({ key: Buffer.from(spki, 'hex'), format: 'der', type: 'spki' });
  const keys = Buffer.from(hkdfSync('sha384', diffieHellman({ privateKey, publicKey }), hash(0), 'channel', 64));
  expect(keys.toString('hex')).toBe(dialler.key + dialled.key);
  for (const { key, frames } of [dialler, dialled])
    for (const [number, { bytes, tag }] of frames.entries()) {
      const nonce = Buffer.alloc(12);
      nonce.writeUInt32LE(number);
      const cipher = createCipheriv('aes-256-gcm', Buffer.from(key, 'hex'), nonce);
      cipher.setAAD(Buffer.from(bytes, 'hex')).final();
      expect(cipher.getAuthTag().toString('hex')).toBe(tag);
    }
});

test('every decoder gives back the same bytes or refuses', () => {
  const samples = consensusMessages().map(({ message }) => encodeMessage(message));
  fuzzDecoder({ name: 'consensus message', decode: decodeMessage, encode: encodeMessage, samples });
});

const refusal = (bytes: Bytes): string => {
  try {
    decodeMessage(bytes);
    return 'read';
  } catch (error) {
    if (error instanceof ProtocolError) return error.code;
    throw error;
  }
};

test('junk of 64 MiB is refused by its length, and a valid round that is not before the round', () => {
  const junk = new Uint8Array(64 * 1024 * 1024);
  junk[0] = 1;
  expect(refusal(junk)).toBe('too_long');
  const [proposal] = consensusMessages();
  const bytes = encodeMessage((proposal as { message: Parameters<typeof encodeMessage>[0] }).message);
  const later = bytes.slice();
  later[13] = 2;
  expect(refusal(later)).toBe('not_canonical');
});

test('the largest message fits', () => {
  const final = consensusMessages().find(({ name }) => name === 'final cut')?.message;
  if (final?.type !== 'finalized') throw new Error('no final cut');
  const votes = Array.from({ length: 64 }, (_, member) => ({ ...final.finalized.proof.votes[0]!, member }));
  const bytes = encodeMessage({
    type: 'finalized',
    finalized: { ...final.finalized, proof: { ...final.finalized.proof, votes } },
  });
  expect(bytes.length + 62 * 48).toBeLessThan(MAX_MESSAGE_BYTES);
});
