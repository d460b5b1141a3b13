/**
 * A lying member that says as much as it likes, ends its connection, and comes again: its number, the chain's identifier and ports of overlays. In a process of its
 * own, because what it says costs it as much as those that hear it.
 */
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { encodeBlockMessage } from '../../../node/consensus/driver/block-exchange.ts';
import { encodeIdentity, FrameReader, MAX_FRAME_BYTES, TAG_BYTES } from '../../../node/consensus/link/frames.ts';
import { ECHO_TYPES } from '../../../node/consensus/link/message-types.ts';
import { developmentKey, validatorName } from '../../../node/genesis/development.ts';
import { signMessage } from '../../../node/ml-dsa.ts';
import { type Bytes, concat, fromHex } from '../../../protocol/bytes.ts';
import { ID_BYTES } from '../../../protocol/crypto/identifier.ts';
import { haveAt } from '../../consensus/have-at.ts';
import { RawEnd } from '../../consensus/raw-end.ts';

/** As often as a member's key is checked. */
const AGAIN_MILLIS = 200;
const SAID_AT_ONCE = 1_000;
const FAR_AHEAD = 1_000_000;

const [member, chain, ...ports] = process.argv.slice(2) as [string, string, ...string[]];
const { publicKey, privateKey } = developmentKey(validatorName(Number(member)));
const kinds: readonly Bytes[] = [
  haveAt(1),
  haveAt(FAR_AHEAD),
  encodeBlockMessage({ type: 'offer', ids: Array.from({ length: 64 }, () => randomBytes(ID_BYTES)) }),
  new Uint8Array([ECHO_TYPES.question, ...randomBytes(8)]),
];
const says = Array.from({ length: SAID_AT_ONCE }, (_, i) => kinds[i % kinds.length] as Bytes);

function come(port: number): void {
  const socket = connect({ host: '127.0.0.1', port });
  const [end, reader] = [new RawEnd(fromHex(chain), publicKey), new FrameReader()];
  let isIdentified = false;
  socket.on('connect', () => void socket.write(end.greeting));
  socket.on('error', () => undefined);
  socket.on('data', (piece) => {
    for (const frame of reader.push(piece)) {
      if (!end.isMet) {
        reader.limit = MAX_FRAME_BYTES + TAG_BYTES;
        end.meet(frame);
        const signature = signMessage(privateKey, end.message);
        socket.write(end.frame(encodeIdentity({ publicKey, signature })));
      } else if (!isIdentified) {
        isIdentified = true;
        socket.end(concat(...says.map((bytes) => end.frame(bytes))));
      }
    }
  });
}

for (const port of ports) setInterval(() => come(Number(port)), AGAIN_MILLIS);
