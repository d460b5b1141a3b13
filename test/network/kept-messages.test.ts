/** A message of gossip is kept until it is delivered, and passed on: its own bytes, and not what came around it. */
import { expect, test } from 'vitest';
import { limitGiven, screen } from '../../node/network/thread/gossip-rpc.ts';

test('of a small message in a large frame only the message is kept and passed on', async () => {
  const library: object[] = [];
  const heard: (Uint8Array | undefined)[] = [];
  const gossip = {
    handleReceivedRpc: async (_: unknown, { messages }: { messages: object[] }) => void library.push(...messages),
  };
  screen(gossip as never, { mayCome: () => true, heard: (_, __, data) => void heard.push(data) });
  const frame = new Uint8Array(1_024 * 1_024).fill(7);
  // A sender may name an author of any length, for which it is not charged.
  const message = { from: frame.subarray(200), topic: 'transactions', data: frame.subarray(100, 164) };
  await gossip.handleReceivedRpc('stranger', { messages: [message] });
  const [data] = heard;
  expect(library).toEqual([{ topic: 'transactions', data }]);
  expect([data?.length, data?.buffer.byteLength, data?.[0]]).toEqual([64, 64, 7]);
});

test('for how long a peer wants no messages is not remembered for longer than a minute', async () => {
  const backoffs: (number | undefined)[] = [];
  type Rpc = { readonly control: { readonly prune: { readonly backoff?: number }[] } };
  const gossip = {
    handleReceivedRpc: async (_: unknown, { control }: Rpc) =>
      void backoffs.push(...control.prune.map(({ backoff }) => backoff)),
  };
  limitGiven(gossip as never);
  await gossip.handleReceivedRpc('stranger', { control: { prune: [{ backoff: 2 ** 52 }, { backoff: 10 }, {}] } });
  expect(backoffs).toEqual([60, 10, 60]);
});
