/**
 * A proxy between two validators: it hands bytes on, keeps what both say, and can part them. Everything that one of them ever sends the other goes through it, also in the moments after a restart.
 */
import { connect, createServer, type Server, type Socket } from 'node:net';
import { FrameReader, MAX_FRAME_BYTES, TAG_BYTES } from '../../node/consensus/link/frames.ts';
import type { Bytes } from '../../protocol/bytes.ts';

export class OverlayProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isParted = false;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async open(port: number, to: number, heard: (frame: Bytes) => void): Promise<OverlayProxy> {
    const proxy = new OverlayProxy(createServer((near) => proxy.#join(near, to, heard)));
    await new Promise<void>((resolve) => proxy.#server.listen(port, '127.0.0.1', resolve));
    return proxy;
  }

  #join(near: Socket, to: number, heard: (frame: Bytes) => void): void {
    const far = connect({ host: '127.0.0.1', port: to });
    for (const [from, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(from);
      const reader = new FrameReader();
      reader.limit = MAX_FRAME_BYTES + TAG_BYTES;
      from.setNoDelay(true);
      from.on('error', () => undefined);
      from.on('close', () => {
        this.#sockets.delete(from);
        other.destroy();
      });
      from.on('data', (piece: Buffer) => {
        for (const frame of reader.push(piece)) heard(frame.subarray(0, Math.max(0, frame.length - TAG_BYTES)));
        other.write(piece);
      });
      if (this.#isParted) from.pause();
    }
  }

  /** Nothing goes through any more; nobody is told. */
  part(): void {
    this.#isParted = true;
    for (const socket of this.#sockets) socket.pause();
  }

  heal(): void {
    this.#isParted = false;
    for (const socket of this.#sockets) socket.resume();
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
