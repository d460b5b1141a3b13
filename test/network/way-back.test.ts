/** The way back from a trusted cut by headers: walked once, on from where peers were busy; peers take turns, and short or late answers do not hold it up. */
import { expect, test, vi } from 'vitest';
import { AskError, faultOf } from '../../node/network/peers/peer-fault.ts';
import { trustedHeader, WayBack } from '../../node/network/snapshots/snapshot-link.ts';
import { decodeSyncQuestion, encodeHeadersAnswer, MAX_HEADERS } from '../../node/network/sync/sync-messages.ts';
import { toHex } from '../../protocol/bytes.ts';
import { type CutHeader, cutId, encodeCutHeader } from '../../protocol/ledger/cut.ts';

const TOP = 3_000;
const SOME = new Uint8Array(48).fill(7);

function chainOf(length: number): { readonly headers: Uint8Array[]; readonly last: CutHeader } {
  const headers: Uint8Array[] = [];
  let last: CutHeader | undefined;
  for (let height = 0; height < length; height++) {
    const previousId = height === 0 ? SOME : cutId(headers[height - 1] as Uint8Array);
    const roots = { blocksRoot: SOME, stateRoot: SOME, validatorSetId: SOME };
    last = { networkId: 1, height, timestampMillis: height, previousId, ...roots, blockCount: 0, signers: 0n };
    headers.push(encodeCutHeader(last));
  }
  return { headers, last: last as CutHeader };
}

const { headers, last } = chainOf(TOP + 1);
const idAt = (height: number): string => toHex(cutId(headers[height] as Uint8Array));

type Answer = (to: number, count: number) => Promise<Uint8Array> | Uint8Array;
const answerOf = (to: number, count: number): Uint8Array =>
  encodeHeadersAnswer({ headers: headers.slice(to - count + 1, to + 1), certificate: undefined });

function walking(peers: Record<string, Answer>) {
  const asked: string[] = [];
  const faults: string[] = [];
  const clock = { now: 1 };
  const back = new WayBack(last, {
    ask: async (peer, bytes) => {
      const question = decodeSyncQuestion(bytes);
      if (question.type !== 'headers') throw new Error('another question');
      asked.push(`${peer} ${question.to}`);
      return await (peers[peer] as Answer)(question.to, question.count);
    },
    blame: (error, peer) => void faults.push(`${peer} ${faultOf(error)}`),
    steady: () => clock.now,
  });
  const idOf = async (height: number) => {
    const id = await back.idOf(height, Object.keys(peers));
    return id === undefined ? undefined : toHex(id);
  };
  return { asked, faults, clock, back, idOf };
}

test('it is walked once, and what lies on it is known without a question', async () => {
  const { asked, idOf, back } = walking({ a: answerOf, b: answerOf });
  expect(await idOf(383)).toBe(idAt(383));
  expect(asked).toEqual(['a 2999', `a ${2_999 - MAX_HEADERS}`, `a ${2_999 - 2 * MAX_HEADERS}`]);
  expect([await idOf(2_975), await idOf(479)]).toEqual([idAt(2_975), idAt(479)]);
  expect(asked.length).toBe(3);
  expect(await idOf(287)).toBe(idAt(287));
  expect(asked.length).toBe(4);
  const at = (height: number) => back.leadsTo({ height, cutId: SOME });
  // No snapshot is made of the last two.
  expect([at(383), at(TOP + 95), at(384), at(95)]).toEqual([true, false, false, false]);
});

test('those that delivered take turns', async () => {
  let isBusy = false;
  const { asked, idOf } = walking({
    a: (to, count) => {
      if (isBusy) throw new AskError('busy', 'the peer is busy');
      return answerOf(to, count);
    },
    b: answerOf,
  });
  await idOf(2_975);
  isBusy = true;
  await idOf(2_879);
  isBusy = false;
  // It is asked again where the other one does not answer, and then both are.
  expect(asked.map((line) => line[0])).toEqual(['a', 'a', 'b']);
  await idOf(2_783);
  expect(asked.at(-1)).toMatch(/^b/);
});

test('strangers that are silent under ever new names are asked once, and not before each answer', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  try {
    const silent: Answer = () => new Promise(() => undefined);
    const names = Array.from({ length: 40 }, (_, i) => [`silent ${i}`, silent] as const);
    const peers = { ...Object.fromEntries(names), honest: answerOf };
    const { asked, back } = walking(peers);
    const strangers = names.map(([name]) => name);
    const idOf = async (height: number) => {
      // Those that were asked are gone, and others came.
      const left = strangers.filter((name) => !asked.some((line) => line.startsWith(`${name} `)));
      const found = back.idOf(height, [...left.slice(0, 10), 'honest']);
      await vi.advanceTimersByTimeAsync(20_000);
      return await Promise.race([found, undefined]);
    };
    for (let height = 2_975; height > 1_900; height -= 96) expect(await idOf(height), `${height}`).toBeDefined();
    expect(asked.filter((line) => line.startsWith('silent')).length).toBe(10);
  } finally {
    vi.useRealTimers();
  }
});

test('one that delivered and was busy once is asked before strangers, however new they are', async () => {
  let isBusy = false;
  const busy: Answer = () => {
    throw new AskError('busy', 'the peer is busy');
  };
  const peers: Record<string, Answer> = {
    honest: (to, count) => (isBusy ? busy(to, count) : answerOf(to, count)),
  };
  const { asked, idOf } = walking(peers);
  await idOf(2_975);
  isBusy = true;
  expect(await idOf(2_879)).toBeUndefined();
  isBusy = false;
  const { honest } = peers as { readonly honest: Answer };
  delete peers.honest;
  Object.assign(peers, { stranger: busy, honest });
  expect(await idOf(2_783)).toBe(idAt(2_783));
  expect(asked.filter((line) => line.startsWith('stranger'))).toEqual([]);
});

test('where all are busy it goes on later from where it was', async () => {
  let isBusy = false;
  const { asked, faults, idOf } = walking({
    a: (to, count) => {
      if (isBusy) throw new AskError('busy', 'the peer is busy');
      isBusy = true;
      return answerOf(to, count);
    },
  });
  expect(await idOf(191)).toBeUndefined();
  expect(asked).toEqual(['a 2999', 'a 1975']);
  isBusy = false;
  expect(await idOf(191)).toBeUndefined();
  isBusy = false;
  expect(await idOf(191)).toBe(idAt(191));
  expect(asked.slice(2)).toEqual(['a 1975', 'a 951', 'a 951']);
  expect(new Set(faults)).toEqual(new Set(['a undefined']));
});

test('one that sends a header at a time, or all of them late, is asked after the others; false ones cost their sender', async () => {
  const short = walking({ short: (to) => answerOf(to, 1), b: answerOf });
  expect(await short.idOf(191)).toBe(idAt(191));
  expect(short.asked.filter((line) => line.startsWith('short'))).toEqual(['short 2999']);
  const slow = walking({
    slow: (to, count) => {
      slow.clock.now += 19_000;
      return answerOf(to, count);
    },
    b: answerOf,
  });
  expect(await slow.idOf(191)).toBe(idAt(191));
  expect(slow.asked.filter((line) => line.startsWith('slow'))).toEqual(['slow 2999']);
  const liar = walking({ liar: (to, count) => answerOf(to - 1, count), b: answerOf });
  expect(await liar.idOf(191)).toBe(idAt(191));
  expect(liar.faults).toEqual(['liar false_proof']);
});

test('peers that never answer hold up neither the trusted cut nor the way back from it: others are asked beside them', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  try {
    const silent: Answer = () => new Promise(() => undefined);
    const { faults, idOf } = walking({ silent, other: silent, honest: answerOf });
    const found = idOf(2_975);
    const ask = async (peer: string) => (peer === 'honest' ? answerOf(TOP, 1) : await silent(0, 0));
    const heights = new Map(['silent', 'other', 'honest'].map((peer) => [peer, TOP]));
    const trusted = trustedHeader(cutId(headers[TOP] as Uint8Array), heights, { ask, blame: () => undefined });
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await Promise.race([found, 'nothing came'])).toBe(idAt(2_975));
    expect(await Promise.race([trusted, 'nothing came'])).toEqual(last);
    expect(faults).toEqual([]);
  } finally {
    vi.useRealTimers();
  }
});
