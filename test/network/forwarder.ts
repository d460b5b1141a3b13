/** A port that leads to another one of this machine, until the test parts them: peers that know this port alone reach the node behind it only when the test lets them. */
import { connect, createServer, type Server, type Socket } from 'node:net';

const HOST = '127.0.0.1';

/** `refusing`: connections end, and new ones too. `silent`: nothing goes through and no side is informed, as where a cable is cut. */
export type Parting = 'refusing' | 'silent';

type Pair = readonly [Socket, Socket];

export class Forwarder {
  readonly #server: Server;
  readonly #to: number;
  readonly #pairs = new Set<Pair>();
  /** They came while nothing goes through. */
  readonly #waiting = new Set<Socket>();
  #parting: Parting | undefined;

  private constructor(to: number) {
    this.#to = to;
    this.#server = createServer((near) => this.#accept(near));
  }

  static async open(port: number, to: number): Promise<Forwarder> {
    const forwarder = new Forwarder(to);
    await new Promise<void>((resolve, reject) => {
      forwarder.#server.once('error', reject);
      forwarder.#server.listen(port, HOST, resolve);
    });
    return forwarder;
  }

  #accept(near: Socket): void {
    near.on('error', () => undefined);
    near.on('close', () => this.#waiting.delete(near));
    if (this.#parting === 'refusing') near.destroy();
    else if (this.#parting === 'silent') this.#waiting.add(near);
    else this.#join(near);
  }

  #join(near: Socket): void {
    const far = connect({ host: HOST, port: this.#to });
    far.on('error', () => undefined);
    const pair = [near, far] as const;
    this.#pairs.add(pair);
    for (const socket of pair) {
      socket.setNoDelay(true);
      socket.on('close', () => {
        this.#pairs.delete(pair);
        for (const other of pair) other.destroy();
      });
    }
    flow(pair);
  }

  part(parting: Parting): void {
    this.#parting = parting;
    for (const pair of this.#pairs)
      if (parting === 'silent') stop(pair);
      else for (const socket of pair) socket.destroy();
  }

  heal(): void {
    this.#parting = undefined;
    for (const pair of this.#pairs) flow(pair);
    for (const near of this.#waiting) this.#join(near);
    this.#waiting.clear();
  }

  async close(): Promise<void> {
    this.part('refusing');
    for (const near of this.#waiting) near.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

function flow([near, far]: Pair): void {
  near.pipe(far);
  far.pipe(near);
}

function stop([near, far]: Pair): void {
  for (const socket of [near, far]) {
    socket.unpipe();
    socket.pause();
  }
}
