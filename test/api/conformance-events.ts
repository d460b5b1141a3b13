/** Rows of the specification's tables: frames, topics and events; the methods and commands of other programs. */
import { expect } from 'vitest';
import { named, type Row, subject, tested, titled } from './conformance-rows.ts';

export const EVENTS_ROWS: readonly Row[] = [
  tested(
    'Events: /v1/events',
    'checkpoint, then one `cut_finalized` per height',
    'test/api/events.long.test.ts',
    async () => {
      const opened = subject.bed.socket('/v1/events?after_height=95', 'svc.node-events.v1');
      expect((await opened.next()).type).toBe('checkpoint');
      const frame = await opened.next();
      expect(frame).toMatchObject({
        type: 'cut_finalized',
        data: {
          api_version: 1,
          cut: { height: 96 },
          registered_work: 0,
          executed_work: 0,
          stake_rewards: '0',
          stake_payouts: [],
        },
      });
      expect(frame.data.rewards).toMatchObject([{ block_id: subject.block, output_index: 0 }]);
    },
  ),
  titled(
    'Events: /v1/events',
    '`after_height` replays one hour',
    'test/api/events.long.test.ts',
    'a height older than an hour',
  ),
  titled(
    'Events: /v1/events',
    '`resync_required` with `history_unavailable`, then closed',
    'test/api/events.long.test.ts',
    'a height older than an hour, or above the head, is history_unavailable and closes',
  ),

  ...(['subscribe', 'request', 'unsubscribe', 'ping'] as const).map((type) =>
    tested('Events: client frames of /v1/ws', `\`${type}\``, 'test/api/live.test.ts', async () => {
      const opened = subject.bed.socket('/v1/ws', 'svc.node-api.v1');
      await opened.opened();
      const subscribed = async () => {
        opened.send('subscribe', { id: 'a', topic: 'cuts' });
        return (await opened.next()).data.subscription;
      };
      if (type === 'subscribe') expect(await subscribed()).toBe(1);
      else if (type === 'unsubscribe') {
        const subscription = await subscribed();
        opened.send(type, { id: 'b', subscription });
        expect(await opened.next()).toEqual({ type: 'unsubscribed', data: { id: 'b', subscription } });
      } else if (type === 'request') {
        opened.send(type, { id: 'c', path: '/v1/mempool' });
        expect(await opened.next()).toMatchObject({ type: 'response', data: { id: 'c', status: 200 } });
      } else {
        opened.send(type, { id: 'd' });
        expect(await opened.next()).toEqual({ type: 'pong', data: { id: 'd' } });
      }
      opened.ws.close();
    }),
  ),

  titled('Events: topics of /v1/ws', '`cuts`', 'test/api/live.test.ts', 'cuts, blocks and the state topics'),
  titled('Events: topics of /v1/ws', '`blocks`', 'test/api/live.test.ts', 'cuts, blocks and the state topics'),
  titled('Events: topics of /v1/ws', '`mempool`', 'test/api/live.test.ts', 'cuts, blocks and the state topics'),
  titled('Events: topics of /v1/ws', '`rates`', 'test/api/live.test.ts', 'cuts, blocks and the state topics'),
  titled('Events: topics of /v1/ws', '`sync`', 'test/api/live.test.ts', 'cuts, blocks and the state topics'),
  titled('Events: topics of /v1/ws', '`transaction`', 'test/api/live.test.ts', 'a transaction by its own topic'),
  titled('Events: topics of /v1/ws', '`addresses`', 'test/api/live.test.ts', 'addresses: seen, removed, changed'),
  titled(
    'Events: topics of /v1/ws',
    '`mempool_transactions`',
    'test/api/live.test.ts',
    'addresses: seen, removed, changed',
  ),

  titled('Events: reasons of resync_required', '`stream_lagged`', 'test/api/live.test.ts', 'a slow reader loses'),
  titled(
    'Events: reasons of resync_required',
    '`stream_restarted` on `/v1/events`',
    'test/api/events.long.test.ts',
    'streams get a notice when the node behind them was restarted',
  ),
  titled(
    'Events: reasons of resync_required',
    '`stream_restarted` on `/v1/ws`: the subscription stays open',
    'test/api/live.test.ts',
    'subscriptions outlive a restart of the node behind the API',
  ),
  titled(
    'Events: reasons of resync_required',
    '`history_unavailable`',
    'test/api/events.long.test.ts',
    'older than an hour',
  ),
  tested('Events: status stream', 'snapshot, updates, end at the final status', 'test/api/live.test.ts', async () => {
    const opened = subject.bed.socket(
      `/v1/transactions/${subject.transaction}/status/stream`,
      'svc.transaction-status.v1',
    );
    expect(await opened.next()).toMatchObject({ type: 'snapshot', data: { lifecycle: 'finalized' } });
    expect((await opened.closed).code).toBe(1000);
  }),
  ...['validators', 'positions', 'stake', 'unstake', 'withdraw'].map((name) =>
    named('Methods of the wallet daemon', 'Staking', `\`${name}\``, 'test/wallet/staking/rows.long.test.ts'),
  ),
  ...(
    [
      ['`svcd run --metrics-bind`', 'test/node/metrics-bind.slow.test.ts'],
      ['`svcd validator-endpoint`', 'test/consensus/overlay-key.test.ts'],
      ['`validator-register`', 'test/wallet/staking/operator-rows.long.test.ts'],
      ['`positions`, `validators`', 'test/wallet/staking/operator-rows.long.test.ts'],
      ['`validator-key-export`', 'test/wallet/staking/key-files.long.test.ts'],
      ['`validator-heartbeat-fee-key-export`', 'test/wallet/staking/key-files.long.test.ts'],
      ['`validator-heartbeat`', 'test/wallet/staking/operator-changes.long.test.ts'],
      ['`reward-address`', 'test/wallet/staking/operator-rows.long.test.ts'],
      ['`validator-rotate`', 'test/wallet/staking/operator-changes.long.test.ts'],
      ['`validator-endpoint`', 'test/wallet/staking/operator-changes.long.test.ts'],
      ['`validator-commission`', 'test/wallet/staking/operator-changes.long.test.ts'],
      ['`validator-exit`', 'test/wallet/staking/operator-changes.long.test.ts'],
    ] as const
  ).map(([row, where]) => named('Operator commands', 'Operator commands', row, where)),
  titled(
    'Operator commands',
    'all of them, as docs/validator.md has them',
    'test/guards/documented-commands.slow.test.ts',
    'every program line of the documents is one that its program takes',
  ),
];
