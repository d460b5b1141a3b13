/**
 * A node that lies: an HTTP and WebSocket server in front of a real one, which passes everything on and changes what a lie tells
 * it to. As a program: lying-node-program.ts.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { WebSocket, WebSocketServer } from 'ws';

export type Asked = { readonly method: string; readonly path: string; readonly body: Buffer };
export type Answered = { readonly status: number; readonly headers: Record<string, string>; readonly body: Buffer };

export type Lie = {
  /** What the real node is asked instead. */
  ask?(asked: Asked): Asked;
  /** Takes the whole answer over; `truth` asks the real node. */
  http?(asked: Asked, response: ServerResponse, truth: () => Promise<Answered>): unknown;
  /** Changes a JSON document of the real node; what it returns is sent. */
  json?(asked: Asked, document: Json): unknown;
  /** Each frame of the real node; without it frames pass. */
  frame?(text: string, send: (data: string | Buffer) => void, socket: WebSocket): void;
  /** Instead of a connection to the real node. */
  socket?(socket: WebSocket): void;
  upgrade?(request: IncomingMessage, socket: Duplex): void;
};

// biome-ignore lint/suspicious/noExplicitAny: a lie may put anything anywhere
export type Json = any;

const HOP = new Set(['connection', 'keep-alive', 'transfer-encoding', 'content-length', 'host']);

export class LyingNode {
  lie: Lie = {};
  /** Paths in the order they were asked for. */
  readonly asked: string[] = [];
  readonly #target: string;
  readonly #server: Server;
  readonly #sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false });
  readonly #upstream = new Set<WebSocket>();
  readonly #upgraded = new Set<Duplex>();

  private constructor(target: string) {
    this.#target = target;
    this.#server = createServer((request, response) => void this.#answer(request, response));
    this.#server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head));
  }

  static async start(target: string, port = 0): Promise<LyingNode> {
    const made = new LyingNode(target.replace(/\/+$/, ''));
    await new Promise<void>((resolve) => made.#server.listen(port, '127.0.0.1', resolve));
    return made;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Connections by WebSocket that are open now. */
  get readers(): number {
    return this.#sockets.clients.size;
  }

  /** Ends what is open, so that clients connect anew and meet the present lie. */
  dropReaders(): void {
    for (const client of this.#sockets.clients) client.terminate();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => undefined);
    try {
      const parts: Buffer[] = [];
      for await (const part of request as AsyncIterable<Buffer>) parts.push(part);
      const asked = { method: request.method ?? '', path: request.url ?? '', body: Buffer.concat(parts) };
      this.asked.push(asked.path);
      const { http, json, ask } = this.lie;
      const truth = () => this.#truth(ask?.(asked) ?? asked, request);
      if (http !== undefined) await http(asked, response, truth);
      else send(response, json === undefined ? await truth() : changed(asked, await truth(), json));
    } catch {
      response.destroy();
    }
  }

  async #truth({ method, path, body }: Asked, request: IncomingMessage): Promise<Answered> {
    const headers = Object.entries(request.headers).filter(([name]) => !HOP.has(name)) as [string, string][];
    const answer = await fetch(`${this.#target}${path}`, {
      method,
      headers,
      ...(method === 'POST' ? { body: new Uint8Array(body) } : {}),
    });
    const kept = [...answer.headers].filter(([name]) => !HOP.has(name));
    const bytes = Buffer.from(await answer.arrayBuffer());
    return { status: answer.status, headers: Object.fromEntries(kept), body: bytes };
  }

  #upgrade(request: IncomingMessage, duplex: Duplex, head: Buffer): void {
    duplex.on('error', () => undefined);
    this.#upgraded.add(duplex);
    duplex.on('close', () => this.#upgraded.delete(duplex));
    this.asked.push(request.url ?? '');
    if (this.lie.upgrade !== undefined) {
      this.lie.upgrade(request, duplex);
      return;
    }
    const protocols = (request.headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim());
    this.#sockets.handleUpgrade(request, duplex, head, (client) => {
      client.on('error', () => undefined);
      if (this.lie.socket !== undefined) return this.lie.socket(client);
      const real = new WebSocket(`${this.#target.replace('http', 'ws')}${request.url}`, protocols);
      this.#upstream.add(real);
      real.on('error', () => client.terminate());
      real.on('close', (code) => client.close(code === 1000 ? 1000 : 1001));
      real.on('message', (data: Buffer) => {
        const pass = (frame: string | Buffer) => {
          if (client.readyState === WebSocket.OPEN) client.send(frame, { binary: typeof frame !== 'string' });
        };
        if (this.lie.frame === undefined) pass(data.toString());
        else this.lie.frame(data.toString(), pass, client);
      });
      client.on('close', () => {
        this.#upstream.delete(real);
        real.terminate();
      });
    });
  }

  async close(): Promise<void> {
    for (const socket of [...this.#sockets.clients, ...this.#upstream]) socket.terminate();
    for (const duplex of this.#upgraded) duplex.destroy();
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }
}

function send(response: ServerResponse, { status, headers, body }: Answered): void {
  response.writeHead(status, { ...headers, 'content-length': body.length }).end(body);
}

function changed(asked: Asked, answer: Answered, json: NonNullable<Lie['json']>): Answered {
  if (answer.status !== 200) return answer;
  const document = json(asked, JSON.parse(answer.body.toString()));
  return { ...answer, body: Buffer.from(typeof document === 'string' ? document : JSON.stringify(document)) };
}
