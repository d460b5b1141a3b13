/**
 * Live figures: one WebSocket per page, reconnected with a growing, jittered wait. While it is disconnected the page
 * says so and keeps its data. After a tab slept for an hour its socket is dead: silence for too long counts as
 * disconnected.
 */
import type { LiveFrame } from '../../pool/api/documents.ts';
import { apiUrl } from './client.ts';

export type LiveState = 'connecting' | 'live' | 'away';
type Listener = (frame: LiveFrame) => void;

export const FIRST_WAIT = 1000;
const LONGEST_WAIT = 30_000;
const SILENCE = 45_000;

export const nextWait = (wait: number, random: number): number => Math.min(LONGEST_WAIT, wait * 2) * (0.5 + random / 2);

export class LiveFeed {
  state: LiveState = 'connecting';
  readonly #listeners = new Set<Listener>();
  readonly #watchers = new Set<(state: LiveState) => void>();
  #socket: WebSocket | undefined;
  #wait = FIRST_WAIT;
  #heardAt = Date.now();

  constructor() {
    this.#connect();
    setInterval(() => this.#checkSilence(), 5000);
    addEventListener('online', () => this.#checkSilence());
    document.addEventListener('visibilitychange', () => this.#checkSilence());
  }

  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  watch(watcher: (state: LiveState) => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  #set(state: LiveState): void {
    this.state = state;
    for (const watcher of this.#watchers) watcher(state);
  }

  #connect(): void {
    const url = apiUrl('live');
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    const socket = new WebSocket(url);
    this.#socket = socket;
    this.#heardAt = Date.now();
    socket.onmessage = (event) => {
      this.#heardAt = Date.now();
      this.#wait = FIRST_WAIT;
      if (this.state !== 'live') this.#set('live');
      const frame = parse(event.data);
      if (frame !== undefined) for (const listener of this.#listeners) listener(frame);
    };
    socket.onclose = () => {
      if (this.#socket !== socket) return;
      this.#socket = undefined;
      this.#set('away');
      setTimeout(() => this.#connect(), this.#wait);
      this.#wait = nextWait(this.#wait, Math.random());
    };
  }

  #checkSilence(): void {
    if (this.#socket !== undefined && Date.now() - this.#heardAt > SILENCE) this.#socket.close();
  }
}

function parse(data: unknown): LiveFrame | undefined {
  try {
    const frame = JSON.parse(String(data)) as LiveFrame;
    return typeof frame?.type === 'string' ? frame : undefined;
  } catch {
    return undefined;
  }
}
