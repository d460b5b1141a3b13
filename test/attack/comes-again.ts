/** One at a validator's overlay, with a member's key or without, that says as much as it likes, ends its connection, and comes again. */
import { connect, type Socket } from 'node:net';
import { encodeIdentity, FrameReader, MAX_FRAME_BYTES, TAG_BYTES } from '../../node/consensus/reach/tcp-frames.ts';
import type { developmentKey } from '../../node/genesis/development.ts';
import { signMessage } from '../../node/ml-dsa.ts';
import { type Bytes, concat } from '../../protocol/bytes.ts';
import { RawEnd } from '../consensus/raw-end.ts';

type Key = Pick<ReturnType<typeof developmentKey>, 'publicKey' | 'privateKey'>;

export class ComesAgain {
  readonly #says: readonly Bytes[];
  readonly #timer: NodeJS.Timeout;
  readonly #sockets = new Set<Socket>();
  /** How often it was heard to the end of its handshake. */
  met = 0;

  constructor(port: number, chainId: Bytes, says: readonly Bytes[], everyMillis: number, key?: Key) {
    this.#says = says;
    this.#timer = setInterval(() => this.#come(port, chainId, key), everyMillis);
  }

  #come(port: number, chainId: Bytes, key: Key | undefined): void {
    const socket = connect({ host: '127.0.0.1', port });
    const [end, reader] = [new RawEnd(chainId, key?.publicKey), new FrameReader()];
    this.#sockets.add(socket);
    let isIdentified = false;
    socket.on('connect', () => void socket.write(end.greeting));
    socket.on('error', () => undefined);
    socket.on('close', () => this.#sockets.delete(socket));
    socket.on('data', (piece) => {
      for (const frame of reader.push(piece)) {
        if (!end.isMet) {
          reader.limit = MAX_FRAME_BYTES + TAG_BYTES;
          end.meet(frame);
          const identity = key && { publicKey: key.publicKey, signature: signMessage(key.privateKey, end.message) };
          socket.write(end.frame(encodeIdentity(identity)));
        } else if (!isIdentified) {
          isIdentified = true;
          this.met++;
          socket.end(concat(...this.#says.map((bytes) => end.frame(bytes))));
        }
      }
    });
  }

  close(): void {
    clearInterval(this.#timer);
    for (const socket of this.#sockets) socket.destroy();
  }
}
