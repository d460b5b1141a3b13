/** One end of a stream of which a test is the other end: it says what comes, and whether it reads. */
import { AbstractStream } from '@libp2p/utils';

const PIECE = new Uint8Array(256 * 1_024);
const NO_LOG = Object.assign(() => undefined, { error: () => undefined, trace: () => undefined });

export class FedStream extends AbstractStream {
  sent = 0;
  readonly #reads: boolean;

  constructor(name: string, reads = true) {
    super({ id: name, direction: 'outbound', log: NO_LOG as never, protocol: '/svc/sync/1' });
    this.#reads = reads;
  }

  sendData(data: { readonly byteLength: number }) {
    this.sent += data.byteLength;
    return { sentBytes: data.byteLength, canSendMore: this.#reads };
  }

  sendReset(): void {}
  sendPause(): void {}
  sendResume(): void {}
  async sendCloseWrite(): Promise<void> {}
  async sendCloseRead(): Promise<void> {}

  /** `head`: as the length is written before a frame, perhaps with the frame. */
  brings(head: Uint8Array, bytes = 0): void {
    this.onData(head);
    for (let left = bytes; left > 0; left -= PIECE.length) this.onData(PIECE);
  }
}
