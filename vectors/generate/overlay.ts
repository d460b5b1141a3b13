/** A connection of the overlay (consensus rule 22): both hellos, what each end signs, the keys of the channel and the tags of the first frames. And a record of relays (rule 24). */
import { createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto';
import { channelKeys, type Ends, identityMessage, tagOf } from '../../node/consensus/link/channel.ts';
import { encodeHello, type Hello } from '../../node/consensus/link/frames.ts';
import { signRecord } from '../../node/consensus/relays/relay-record.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { pattern } from './pattern.ts';

const ED25519_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const PREFIX = Buffer.from('302e020100300506032b656e04220420', 'hex');

const secretOf = (bytes: Bytes): KeyObject =>
  createPrivateKey({ key: Buffer.concat([PREFIX, bytes]), format: 'der', type: 'pkcs8' });

function helloOf(name: string, validator: Bytes): { hello: Hello; secret: Bytes } {
  const secret = pattern(`overlay/${name} secret`, 32);
  const der = createPublicKey(secretOf(secret)).export({ format: 'der', type: 'spki' });
  const hello = {
    chainId: pattern('overlay/chain', 48),
    process: pattern(`overlay/${name} process`, 16),
    challenge: pattern(`overlay/${name} connection`, 32),
    channelKey: new Uint8Array(der.subarray(-32)),
    validator,
  };
  return { hello, secret };
}

export function relayRecordVector(): unknown {
  const secret = pattern('overlay/key secret', 32);
  const key = createPrivateKey({ key: Buffer.concat([ED25519_PREFIX, secret]), format: 'der', type: 'pkcs8' });
  const der = createPublicKey(key).export({ format: 'der', type: 'spki' });
  const record = {
    chainId: pattern('overlay/chain', 48),
    validator: pattern('overlay/validator', 48),
    sequence: 1_800_000_000_000n,
    expiry: 1_800_000_600_000n,
    relays: [pattern('overlay/relay 0', 48), pattern('overlay/relay 1', 48)],
  };
  return {
    overlay_secret: toHex(secret),
    overlay_key: toHex(new Uint8Array(der.subarray(-32))),
    chain_id: toHex(record.chainId),
    validator: toHex(record.validator),
    sequence: String(record.sequence),
    expiry: String(record.expiry),
    relays: record.relays.map(toHex),
    bytes: toHex(signRecord(record, (message) => sign(null, message, key)).bytes),
  };
}

export function overlayVectors(): unknown {
  const dialler = helloOf('dialler', pattern('overlay/validator', 48));
  const dialled = helloOf('dialled', new Uint8Array(48));
  const ends: Ends = { dialler: dialler.hello, dialled: dialled.hello };
  const keys = channelKeys(secretOf(dialler.secret), dialled.hello.channelKey, ends);
  const bytes = pattern('overlay/frame', 100);
  const endOf = (role: 'dialler' | 'dialled', { hello, secret }: typeof dialler) => ({
    channel_secret: toHex(secret),
    hello: toHex(encodeHello(hello)),
    signed: toHex(identityMessage(role, ends)),
    key: toHex(keys[role]),
    frames: [new Uint8Array(0), bytes].map((frame, number) => ({
      bytes: toHex(frame),
      tag: toHex(tagOf(keys[role], number, frame)),
    })),
  });
  return { dialler: endOf('dialler', dialler), dialled: endOf('dialled', dialled) };
}
