/** The write-ahead log (consensus rules 11 and 12) on a real disk: torn at every byte, damaged, foreign, full, and what a restarted member takes up from it. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import type { Effect, Event, LogRecord, Unsigned } from '../../node/consensus/engine/effects.ts';
import { step } from '../../node/consensus/engine/engine.ts';
import { COVERED_TICKS, LISTEN_TICKS, listenFirst } from '../../node/consensus/engine/listening.ts';
import { openState, recover } from '../../node/consensus/engine/recovery.ts';
import { NIL, PRECOMMIT, PREVOTE } from '../../node/consensus/engine/votes.ts';
import { ConsensusLog, type OpenedLog, readLog } from '../../node/consensus/log/log-file.ts';
import { readFrames } from '../../node/consensus/log/log-frames.ts';
import { decodeRecord, encodeRecord } from '../../node/consensus/log/log-record.ts';
import { level } from '../level.ts';
import { smallDisk } from '../pool/small-disk.ts';
import { fuzzDecoder } from '../protocol/fuzz.ts';
import { temporaryDirectory } from '../temporary.ts';
import { CUT, committee, HEIGHT, LOG_OWNER, lockedMember, SELF, SIGNATURE, vote } from './locked-member.ts';

const owner = LOG_OWNER;

async function written(records: readonly LogRecord[]): Promise<{ directory: string; file: string; bytes: Buffer }> {
  const directory = temporaryDirectory();
  const { log } = await ConsensusLog.open(directory, owner);
  for (const record of records) await log.append(record);
  await log.close();
  const file = join(directory, readdirSync(directory)[0] as string);
  return { directory, file, bytes: readFileSync(file) };
}

async function reopened(directory: string) {
  const { log, recovered } = await ConsensusLog.open(directory, owner);
  await log.close();
  return recovered;
}

test('a restarted member has its lock, its valid value and its place, and signs nothing at or below it', async () => {
  const records = lockedMember();
  expect(
    records.map(({ message }) => (message.type === 'vote' ? [message.vote.round, message.vote.kind] : [])),
  ).toEqual([
    [0, PREVOTE],
    [0, PRECOMMIT],
    [1, PREVOTE],
  ]);
  const { directory } = await written(records);
  const recovered = await reopened(directory);
  expect(recovered).toEqual(recover(records));
  const state = openState(HEIGHT, committee, SELF, undefined, recovered);
  expect(state).toMatchObject({ lockedRound: 0, locked: CUT, validRound: 0, valid: CUT, round: 1 });
  const effects = step(state, { type: 'begin' });
  expect(state.step).toBe('prevote');
  // The same bytes again, and nothing new.
  expect(effects.filter((effect) => effect.do === 'sign')).toEqual([]);
  expect(effects.filter((effect) => effect.do === 'send').map(({ message }) => message)).toEqual(
    records.map(({ message }) => message),
  );
  // The next step is signed.
  const later = [1, 2].flatMap((member) => step(state, { type: 'vote', vote: vote(PREVOTE, 1, member, NIL) }));
  expect(later.flatMap((effect) => (effect.do === 'sign' ? [effect.message] : []))).toMatchObject([
    { type: 'vote', vote: { kind: PRECOMMIT, round: 1, cut: NIL } },
  ]);
});

test('a log that was cut at every byte opens with the records that are whole, and never with anything else', async () => {
  const records = lockedMember();
  const { directory, file, bytes } = await written(records);
  let last = 0;
  for (let length = 0; length <= bytes.length; length++) {
    const recovered = recover(readLog(bytes.subarray(0, length), HEIGHT, owner).records);
    const whole = recovered?.messages.length ?? 0;
    expect(whole === last || whole === last + 1).toBe(true);
    last = whole;
    expect(recovered).toEqual(recover(records.slice(0, whole)));
    // Syncing takes its time: the file itself is cut at some of the places.
    if (length % 16 !== 0) continue;
    writeFileSync(file, bytes.subarray(0, length));
    expect(await reopened(directory)).toEqual(recovered);
    // The next record comes in the place of the torn part, and whole records follow each other again.
    if (length % 64 !== 0) continue;
    const { log } = await ConsensusLog.open(directory, owner);
    await log.append(records[whole % records.length] as LogRecord);
    await log.close();
    const { goodBytes, payloads } = readFrames(readFileSync(file));
    expect([goodBytes, payloads.length]).toEqual([readFileSync(file).length, whole + 1]);
  }
  expect(last).toBe(records.length);
});

/** It starts, its own votes come at that tick, and everything that makes it go on at every tick. */
function startedWith({ recovered, coversTo }: OpenedLog, brought: readonly Unsigned[], tick: number): Effect[] {
  const state = openState(HEIGHT, committee, SELF, undefined, recovered);
  listenFirst(state, coversTo);
  const effects: Effect[] = [];
  const feed = (event: Event): void => {
    const out = step(state, event);
    effects.push(...out);
    for (const effect of out)
      if (effect.do === 'sign') feed({ type: 'signed', message: effect.message, signature: SIGNATURE });
  };
  feed({ type: 'begin' });
  for (let ticks = 0; ticks < 40; ticks++) {
    if (ticks === tick) for (const message of brought) if (message.type === 'vote') feed(message);
    feed({ type: 'tick' });
    for (const kind of [PREVOTE, PRECOMMIT] as const)
      for (const member of [1, 2]) feed({ type: 'vote', vote: vote(kind, state.round, member, NIL) });
    for (const kind of ['propose', 'prevote', 'precommit'] as const)
      feed({ type: 'timeout', kind, height: HEIGHT, round: state.round });
  }
  return effects;
}

test('a log that was torn at any byte covers no height: the vote that is torn may be out, and is never followed by another', async () => {
  const records = lockedMember();
  const { directory, file, bytes } = await written(records);
  let end = 0;
  const ends = new Set(readFrames(bytes).payloads.map(({ length }) => (end += 20 + length)));
  const isNear = (length: number) => length < 3 || [-2, -1, 0, 1, 2].some((by) => ends.has(length + by));
  for (let length = 1; length <= bytes.length; length++) {
    // Around the end of a record, and at every seventh byte at quick: opening takes its time.
    if (level === 'quick' && length % 7 !== 0 && !isNear(length)) continue;
    writeFileSync(file, bytes.subarray(0, length));
    const { log, ...opened } = await ConsensusLog.open(directory, owner);
    await log.close();
    const whole = opened.recovered?.messages.length ?? 0;
    const isTorn = opened.torn !== undefined;
    expect([length, isTorn]).toEqual([length, !ends.has(length)]);
    expect(opened.coversTo).toBe(isTorn ? -1 : HEIGHT);
    // Started again before it has written anything, it finds the same.
    if (isTorn) expect(readFileSync(file).length).toBe(length);
    const out = records.slice(0, whole + (isTorn ? 1 : 0)).map(({ message }) => message);
    const signed = new Map(out.map((message) => [placeOf(message), cutOf(message)]));
    // Neighbours are slow: what they have comes while it would listen without a log.
    for (const tick of isTorn ? [0, COVERED_TICKS, LISTEN_TICKS - 1] : [0]) {
      const effects = startedWith({ log, ...opened }, out, tick);
      expect(effects.filter((effect) => effect.do === 'stop')).toEqual([]);
      for (const effect of effects)
        if (effect.do === 'sign')
          expect([length, tick, signed.get(placeOf(effect.message)) ?? cutOf(effect.message)]).toEqual([
            length,
            tick,
            cutOf(effect.message),
          ]);
    }
  }
});

/** The power fails in the n-th call to the disk, of which a half is done, and stays away; false if there are fewer. */
async function isCutOff(calls: number, directory: string, record: LogRecord): Promise<boolean> {
  const { log } = await ConsensusLog.open(directory, owner);
  const probe = await open(join(directory, 'probe'), 'w');
  const handles: Record<string, (...of: unknown[]) => unknown> = Object.getPrototypeOf(probe);
  await probe.close();
  let left = calls;
  const spies = ['write', 'truncate', 'datasync'].map((name) => {
    const real = handles[name] as (...of: unknown[]) => unknown;
    return vi.spyOn(handles, name).mockImplementation(async function (this: unknown, ...of) {
      if (left-- > 0) return await real.apply(this, of);
      const [bytes, at, length, position] = of as [Uint8Array, number, number, number];
      if (name === 'write' && left === -1) await real.call(this, bytes, at, length >> 1, position);
      throw new Error('no power');
    });
  });
  const cut = await log.append(record).then(
    () => false,
    () => true,
  );
  for (const spy of spies) spy.mockRestore();
  await log.close();
  return cut;
}

test('a torn end is not gone before a whole record is in its place, whenever the power fails', async () => {
  const records = lockedMember() as [LogRecord, LogRecord];
  const { directory, file, bytes } = await written(records);
  const whole = readFrames(bytes)
    .payloads.slice(0, 2)
    .map(({ length }) => 20 + length);
  const [first, second] = whole as [number, number];
  const next = { ...records[0], height: HEIGHT + 1 };
  const nextFile = join(directory, '0000000000000006.log');
  // A torn end that is longer than the record, one that is shorter, and the file of the next height without a record.
  for (const [ends, record] of [
    [[bytes.subarray(0, first + second - 1)], records[1]],
    [
      [bytes.subarray(0, first + second - 1)],
      { ...records[1], polkas: [], proposals: [], lockedRound: -1, locked: NIL, validRound: -1, valid: NIL },
    ],
    [[bytes.subarray(0, first + 1)], records[1]],
    [[bytes.subarray(0, first), bytes.subarray(0, 30)], next],
  ] as const)
    for (let calls = 0, cut = true; cut; calls++) {
      rmSync(nextFile, { force: true });
      for (const [i, end] of ends.entries()) writeFileSync([file, nextFile][i] as string, end);
      cut = await isCutOff(calls, directory, record);
      const { log, recovered, coversTo } = await ConsensusLog.open(directory, owner);
      await log.close();
      const isThere = recovered?.height === record.height && recovered.messages.length === (record === next ? 1 : 2);
      if (!isThere) expect([calls, coversTo]).toEqual([calls, -1]);
      if (!cut) expect([isThere, coversTo]).toEqual([true, record.height]);
    }
});

const placeOf = (message: Unsigned) =>
  message.type === 'vote' ? `${message.vote.round}/${message.vote.kind}` : `${message.proposal.round}/0`;
const cutOf = (message: Unsigned) => (message.type === 'vote' ? message.vote.cut : message.proposal.cut);

test('a byte that changed in the middle of the log keeps the validator from signing; at its end it is a torn write', async () => {
  const records = lockedMember();
  const { directory, file, bytes } = await written(records);
  const lastFrame = bytes.length - (20 + encodeRecord(records.at(-1) as LogRecord).length);
  for (let at = 0; at < bytes.length; at += 7) {
    const changed = Buffer.from(bytes);
    changed[at] = (changed[at] as number) ^ 0x55;
    writeFileSync(file, changed);
    if (at < lastFrame) await expect(reopened(directory)).rejects.toMatchObject({ code: 'log_damaged' });
    else {
      const { log, recovered, torn } = await ConsensusLog.open(directory, owner);
      await log.close();
      expect(recovered?.messages.length).toBe(records.length - 1);
      expect(torn).toBe(bytes.length - lastFrame);
    }
  }
});

test('a lock without its proof, and a log of another validator or chain, are refused', async () => {
  const records = lockedMember();
  const bare = records.map((record) => ({ ...record, polkas: [] }));
  const { directory } = await written(bare);
  await expect(reopened(directory)).rejects.toMatchObject({ code: 'log_lock_unproven' });
  // Votes of less than two thirds prove nothing.
  const weak = recover(
    records.map((record) => ({
      ...record,
      polkas: record.polkas.map((polka) => ({ ...polka, votes: polka.votes.slice(0, 2) })),
    })),
  );
  expect(() => openState(HEIGHT, committee, SELF, undefined, weak)).toThrow(/does not prove/);
  const other = await written(records);
  for (const foreign of [{ chainId: new Uint8Array(48) }, { validatorId: new Uint8Array(48) }])
    await expect(ConsensusLog.open(other.directory, { ...owner, ...foreign })).rejects.toMatchObject({
      code: 'log_foreign',
    });
});

test('the file of the height before stays until the next one has its first record', async () => {
  const records = lockedMember();
  const { directory } = await written(records);
  const next = { ...(records[0] as LogRecord), height: HEIGHT + 1 };
  const { log } = await ConsensusLog.open(directory, owner);
  await log.append(next);
  expect(readdirSync(directory)).toEqual(['0000000000000006.log']);
  await expect(log.append(records[0] as LogRecord)).rejects.toThrow(/below/);
  await log.close();
  const bytes = readFileSync(join(directory, '0000000000000006.log'));
  // A crash while the next file was begun: only a part of it is there, and the one before still counts.
  for (let length = 0; length < bytes.length; length += 5) {
    const { directory: both } = await written(records);
    writeFileSync(join(both, '0000000000000006.log'), bytes.subarray(0, length));
    expect((await reopened(both))?.height).toBe(HEIGHT);
  }
});

test('a full disk refuses the record, keeps what was written, and takes it once there is room', async () => {
  const directory = join(temporaryDirectory(), 'disk');
  const disk = smallDisk(directory);
  const records = lockedMember();
  const { log } = await ConsensusLog.open(join(directory, 'log'), owner);
  await log.append(records[0] as LogRecord);
  const large = {
    ...(records[1] as LogRecord),
    proposals: [{ ...(records[1]?.proposals[0] as LogRecord['proposals'][0]), content: new Uint8Array(256 * 1024) }],
  };
  disk.fill(process.pid);
  await expect(log.append(large)).rejects.toThrow();
  expect((await reopened(join(directory, 'log')))?.messages.length).toBe(1);
  disk.free(process.pid);
  await log.append(large);
  await log.close();
  expect((await reopened(join(directory, 'log')))?.messages.length).toBe(2);
});

test('records are read as they were written, and nothing else is read', () => {
  const samples = lockedMember().map(encodeRecord);
  for (const [i, record] of lockedMember().entries()) expect(decodeRecord(samples[i] as Uint8Array)).toEqual(record);
  fuzzDecoder({ name: 'log record', decode: decodeRecord, encode: encodeRecord, samples });
});
