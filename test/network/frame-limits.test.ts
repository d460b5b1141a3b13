/** Streams of QUIC, which has no frames here, are bounded as frames are. */
import { expect, test } from 'vitest';
import { FrameLimits } from '../../node/network/thread/frame-limits.ts';

function connection() {
  const muxer = Object.assign(new EventTarget(), { streams: [] });
  const open = () => muxer.dispatchEvent(new CustomEvent('stream', { detail: { protocol: '', send: () => true } }));
  return { muxer, open };
}

test('who opens streams without end is noticed, on all its connections together, and others are not', () => {
  let now = 0;
  const limits = new FrameLimits(() => now);
  const floods: string[] = [];
  const watch = (holder: string) => {
    const { open, ...made } = connection();
    limits.limit(made as never, holder, () => floods.push(holder));
    return open;
  };
  const [first, second, other] = [watch('one'), watch('one'), watch('other')];
  for (let i = 0; i < 700; i++) {
    first();
    other();
  }
  expect(floods).toEqual([]);
  for (let i = 0; i < 700; i++) second();
  expect(new Set(floods)).toEqual(new Set(['one']));
  floods.length = 0;
  // As many questions as a peer may ask go on without end.
  for (let i = 0; i < 3_000; i++) {
    now += 20;
    other();
  }
  expect(floods).toEqual([]);
});
