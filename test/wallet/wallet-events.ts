/** The events of a wallet daemon over its WebSocket, for tests. */
import { onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { readToken } from '../../wallet/rpc/token.ts';

export type WalletEvent = { method?: string; params?: Record<string, unknown> };

/** The list that events are added to. It is returned when the daemon has confirmed the subscription: nothing that happens later is missed. */
export async function walletEvents(rpc: string, file: string, names: readonly string[]): Promise<WalletEvent[]> {
  const headers = { authorization: `Bearer ${readToken(`${file}.token`)}` };
  const socket = new WebSocket(`ws://${rpc}/v1/ws`, { headers });
  onTestFinished(() => socket.terminate());
  const events: WalletEvent[] = [];
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.once('open', () =>
      socket.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'subscribe', params: { events: names } })),
    );
    socket.on('message', (data) => {
      const message = JSON.parse(String(data)) as WalletEvent & { id?: number; error?: { message: string } };
      if (message.method !== undefined) events.push(message);
      else if (message.error === undefined) resolve();
      else reject(new Error(message.error.message));
    });
  });
  return events;
}
