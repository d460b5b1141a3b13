/** The only way between nodes: a port that hands bytes on to another, and can be parted. Nodes that use it know nobody else: the address that they announce is of nobody. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { freePort } from '../../runtime/free-port.ts';
import type { NetBed, NetNode } from './peers.ts';

/** For documentation (RFC 5737): nobody has it, so nobody is told of it. */
const NOWHERE = '/ip4/192.0.2.1/tcp/1';

const multiaddr = (port: number): string => `/ip4/127.0.0.1/tcp/${port}`;

export type Placed = NetNode & { readonly port: number };

/** A node that has the peers it is configured with, and those that are configured with it. */
export async function startApart(bed: NetBed, name: string, bootstrap: readonly number[]): Promise<Placed> {
  const port = await freePort();
  const plan = { listen: [multiaddr(port)], announce: [NOWHERE], bootstrap: bootstrap.map(multiaddr) };
  const node = await bed.start(name, { ...plan, follows: bootstrap.length > 0 });
  return Object.assign(node, { port });
}

export class Cable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isParted = false;

  private constructor(to: number) {
    this.#server = createServer((near) => this.#join(near, to));
  }

  static async open(to: number): Promise<Cable> {
    const cable = new Cable(to);
    await new Promise<void>((resolve) => cable.#server.listen(0, '127.0.0.1', resolve));
    return cable;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  #join(near: Socket, to: number): void {
    const far = connect({ host: '127.0.0.1', port: to, noDelay: true });
    near.setNoDelay(true);
    for (const [from, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(from);
      from.on('error', () => undefined);
      from.on('close', () => {
        this.#sockets.delete(from);
        other.destroy();
      });
      from.on('data', (piece: Buffer) => void other.write(piece));
      if (this.#isParted) from.pause();
    }
  }

  /** Connections end; new ones are made, and nothing comes through them. */
  part(): void {
    this.#isParted = true;
    for (const socket of this.#sockets) socket.destroy();
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
