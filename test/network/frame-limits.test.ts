/** Frames are bounded by address, and a peer pays for its own alone. Streams of QUIC, which has no frames here, are bounded as frames are. */
import { expect, test } from 'vitest';
import { FrameLimits } from '../../node/network/thread/frame-limits.ts';

function connection(name: string) {
  const muxer = Object.assign(new EventTarget(), { streams: [] });
  const open = () => muxer.dispatchEvent(new CustomEvent('stream', { detail: { protocol: '', send: () => true } }));
  return { remotePeer: name, muxer, open };
}

test('who opens streams without end is noticed, on all its connections together, and others are not', () => {
  let now = 0;
  const limits = new FrameLimits(() => now);
  const floods: string[] = [];
  const watch = (holder: string, name: string) => {
    const { open, ...made } = connection(name);
    limits.limit(made as never, holder, () => floods.push(holder));
    return open;
  };
  const [first, second, other] = [watch('one', 'a'), watch('one', 'b'), watch('other', 'c')];
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

test('who floods pays for it, and not an honest peer at the same address that comes when nothing is left', () => {
  let now = 0;
  const limits = new FrameLimits(() => now);
  const floods: string[] = [];
  const watch = (name: string) => {
    const { open, ...made } = connection(name);
    limits.limit(made as never, 'one address', () => floods.push(name));
    return open;
  };
  const [liar, honest] = [watch('liar'), watch('honest')];
  for (let i = 0; i < 1_300; i++) liar();
  expect(new Set(floods)).toEqual(new Set(['liar']));
  floods.length = 0;
  // As much as the address may have, without end, and what a peer needs that syncs.
  for (let i = 0; i < 1_000; i++) {
    now += 20;
    for (let frames = 0; frames < 48; frames += 8) liar();
    honest();
  }
  expect(floods.filter((name) => name === 'honest')).toEqual([]);
});
