/** A real node with its address index and the public API on a free port; cuts, blocks and payments are made by the test. */
import { onTestFinished } from 'vitest';
import { WebSocket as WsSocket } from 'ws';
import { type ApiOptions, type PublicApi, startApi } from '../../node/api/api.ts';
import { newIdentity } from '../../node/api/identity.ts';
import { developmentKey, TREASURY } from '../../node/genesis/development.ts';
import { addressIndex } from '../../node/index/address-index.ts';
import { formatAddress } from '../../protocol/address.ts';
import { type ApiClient, createApiClient } from '../../protocol/api/client.ts';
import { toHex } from '../../protocol/bytes.ts';
import { apiClientDependencies } from '../../runtime/node-client/api-client.ts';
import { Bed, type BedSettings, silentLog } from '../node/bed.ts';
import { watch } from '../watch/watch.ts';

export const VERSION = '0.0.0-test';
export const identity = newIdentity();
export const addressOf = (name: string): string => formatAddress(developmentKey(name).address, 'development');

export type ApiBedSettings = {
  readonly bed?: BedSettings;
  readonly api?: Partial<ApiOptions>;
  readonly ready?: boolean;
};

export class ApiBed {
  readonly bed: Bed;
  api: PublicApi;
  readonly #settings: ApiBedSettings;

  private constructor(bed: Bed, api: PublicApi, settings: ApiBedSettings) {
    this.bed = bed;
    this.api = api;
    this.#settings = settings;
  }

  static async open(settings: ApiBedSettings = {}): Promise<ApiBed> {
    const bed = await Bed.open({
      ...settings.bed,
      dependencies: { indexers: [addressIndex], ...settings.bed?.dependencies },
    });
    const api = await ApiBed.#start(bed, settings, 0);
    const made = new ApiBed(bed, api, settings);
    if (settings.ready !== false) api.serve(bed.node);
    return made;
  }

  /** For one test: closed when it ends. */
  static async forTest(settings: ApiBedSettings = {}): Promise<ApiBed> {
    const made = await ApiBed.open(settings);
    onTestFinished(() => made.close());
    return made;
  }

  static #start(bed: Bed, settings: ApiBedSettings, port: number): Promise<PublicApi> {
    return startApi(
      { bind: { host: '127.0.0.1', port }, version: VERSION, network: 'development', ...settings.api },
      { identity, now: () => bed.now, log: silentLog },
    );
  }

  get base(): string {
    return `http://127.0.0.1:${this.api.address.port}`;
  }

  get client(): ApiClient {
    return createApiClient({ baseUrl: this.base }, apiClientDependencies());
  }

  /** Stops API and node and starts both again, on the same port and store. */
  async restart(meanwhile?: (storeDirectory: string) => void): Promise<void> {
    const { port } = this.api.address;
    await this.api.close();
    await this.bed.reopen(meanwhile);
    this.api = await ApiBed.#start(this.bed, this.#settings, port);
    this.api.serve(this.bed.node);
  }

  async close(): Promise<void> {
    await this.api.close();
    await this.bed.close();
  }

  /** Pays from an output of the treasury, and mines the payment. Returns the transaction's id. */
  async pay(treasuryOutput: number, to: string, amount: bigint): Promise<string> {
    const result = await this.bed.pay(
      [this.bed.treasury(treasuryOutput)],
      [{ address: developmentKey(to).address, amount }],
    );
    if (result.status === 'refused') throw new Error(`${result.error.code}: ${result.error.message}`);
    return toHex(result.id);
  }

  get(path: string, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(`${this.base}${path}`, { headers });
  }

  post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(`${this.base}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
    } as RequestInit);
  }

  socket(path: string, subprotocol: string, headers: Record<string, string> = {}): TestSocket {
    return new TestSocket(new WsSocket(`${this.base.replace('http', 'ws')}${path}`, [subprotocol], { headers }));
  }
}

export type TestFrame = { readonly type: string; readonly data: Record<string, unknown> };

/** A socket whose frames are taken one at a time. */
export class TestSocket {
  readonly ws: WsSocket;
  readonly closed: Promise<{ code: number; reason: string }>;
  /** Status and body of a refused handshake. */
  readonly refused: Promise<{ status: number; body: string }>;
  readonly #frames: TestFrame[] = [];
  #wake: (() => void) | undefined;

  constructor(ws: WsSocket) {
    this.ws = ws;
    ws.on('message', (data: Buffer) => {
      this.#frames.push(JSON.parse(data.toString()) as TestFrame);
      this.#wake?.();
    });
    ws.on('error', () => undefined);
    this.closed = new Promise((resolve) => {
      ws.on('close', (code: number, reason: Buffer) => resolve({ code, reason: reason.toString() }));
    });
    this.refused = new Promise((resolve) => {
      ws.on('unexpected-response', (_, response) => {
        let body = '';
        response.on('data', (part: Buffer) => {
          body += part.toString();
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
      });
    });
    onTestFinished(() => ws.terminate());
  }

  opened(): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.ws.readyState === this.ws.OPEN) resolve();
      this.ws.once('open', () => resolve());
      this.ws.once('close', () => reject(new Error('the socket was closed')));
    });
  }

  async next(): Promise<TestFrame> {
    while (this.#frames.length === 0) {
      const arrival = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      await watch.waitFor('a frame of the API', arrival);
    }
    return this.#frames.shift() as TestFrame;
  }

  /** The next frame of this type; others are passed over. */
  async until(type: string): Promise<TestFrame> {
    for (;;) {
      const frame = await this.next();
      if (frame.type === type) return frame;
    }
  }

  send(type: string, data: unknown): void {
    this.ws.send(JSON.stringify({ type, data }));
  }

  get waiting(): number {
    return this.#frames.length;
  }
}

export const treasury = (): string => addressOf(TREASURY);
