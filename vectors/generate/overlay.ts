/** A connection of the overlay (consensus rule 22): both hellos, what each end signs, the keys of the channel and the tags of the first frames. */
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { channelKeys, type Ends, identityMessage, tagOf } from '../../node/consensus/overlay-channel.ts';
import { encodeHello, type Hello } from '../../node/consensus/tcp-frames.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { pattern } from './pattern.ts';

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
