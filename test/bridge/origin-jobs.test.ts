/** Jobs made from those of another server: each connection has a generation of its own on them. */
import { expect, test } from 'vitest';
import { MOST_PARTS, type TemplatePart } from '../../bridge/nodes/origin-job.ts';
import { beginGenerations, ConnectionCounter, connectionNumberMemory } from '../../bridge/session/extranonce.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { NONCE_OFFSET } from '../../protocol/ledger/header.ts';
import { targetOfWork, targetToBytes } from '../../protocol/ledger/target.ts';
import { BRIDGE } from './bed.ts';
import { type DeskBed, deskBed } from './desk-bed.ts';
import { DeskFarm } from './desk-farm.ts';
import { accountOf, addressOf } from './stratum-client.ts';
import { TemplateSource } from './template-source.ts';

const hash = (header: Bytes): Bytes => new Uint8Array(32).fill(header[NONCE_OFFSET] as number);

/** A job of the other server's session of this number. */
async function publish(bed: DeskBed, session: number, part?: TemplatePart): Promise<void> {
  const source = new TemplateSource();
  source.blockWork = 64n;
  source.height = 1_000 + session;
  const { header } = await source.template(0);
  const origin = {
    session: `${session}`,
    jobId: session,
    extranonceHead: new Uint8Array(14).fill(session),
    firstGeneration: 0,
    shareTarget: targetToBytes(targetOfWork(32n)),
  };
  const place = part === undefined ? { draw: 0, draws: 1 } : { draw: part.draw, draws: MOST_PARTS };
  const ofPart = part === undefined ? {} : { account: part.account };
  const template = { serial: 10 + session, header, epoch: 0, ...place, isFresh: false, cutHeight: 0, told: 0 };
  const templates = [{ ...template, origin: { ...origin, ...ofPart } }];
  bed.desk.publish({ templates, headHeight: source.height, clean: true, ...(part === undefined ? {} : { part }) });
  await bed.settle();
}

const extranonces = ({ said }: DeskFarm): string[] =>
  said.flatMap((frame) => (frame.type === 'job' ? [toHex(frame.job.extranonce)] : []));

const head = (session: number): string => `0${session}`.repeat(14);

test('a connection that resumes on a job of another session of that server takes a generation of there', async () => {
  const bed = await deskBed({ hash });
  await publish(bed, 1);
  const [rig, other] = [new DeskFarm(bed), new DeskFarm(bed)];
  const session = await rig.login();
  await other.login();
  expect(extranonces(rig)).toEqual([`${head(1)}00000000`]);
  expect(extranonces(other)).toEqual([`${head(1)}01000000`]);
  rig.end();
  await bed.settle();
  await publish(bed, 2);
  expect(extranonces(other).at(-1)).toBe(`${head(2)}02000000`);
  const again = new DeskFarm(bed);
  expect(await again.login({ session })).toBe(session);
  expect(extranonces(again)).toEqual([`${head(2)}03000000`]);
});

test('a connection whose address has no work any more is ended after a minute, so that its miner is told why; others stay', async () => {
  const bed = await deskBed({ hash });
  const accounts = [1, 2].map(accountOf);
  const worksFor = { address: addressOf(77), account: accountOf(77), keepsAddresses: true } as const;
  const partOf = (i: number) => ({ draw: 5 + i, account: toHex(accounts[i]!) });
  for (const i of [0, 1]) await publish(bed, 1 + i, partOf(i));
  const rigs: DeskFarm[] = [];
  for (const i of [0, 1]) {
    const rig = new DeskFarm(bed, { ...BRIDGE, worksFor });
    await rig.login({ account: 1 + i });
    expect(extranonces(rig)).toHaveLength(1);
    rigs.push(rig);
  }
  const [one, two] = rigs as [DeskFarm, DeskFarm];
  bed.desk.publish({ templates: [], headHeight: 1_000, clean: true, part: partOf(0) });
  const pass = (millis: number) => {
    bed.clock += millis;
    for (let i = 0; i < 40; i++) bed.desk.tick();
  };
  pass(1_000);
  bed.desk.ready = false;
  pass(120_000);
  bed.desk.ready = true;
  pass(1_000);
  pass(59_000);
  expect([one.conversation.isEnding, two.conversation.isEnding]).toEqual([false, false]);
  pass(2_000);
  expect([one.conversation.isEnding, two.conversation.isEnding]).toEqual([true, false]);
});

test('where all have one header, no two connections have the same prefix, however many came and went', async () => {
  const bed = await deskBed({ hash });
  const service = { ...BRIDGE, nonceEnd: Uint8Array.of(1, 2) };
  const prefix = async (): Promise<[DeskFarm, string]> => {
    const rig = new DeskFarm(bed, service);
    await rig.send({ type: 'subscribe', subscribe: { agent: 'x/1', tag: '', session: null } });
    const [answer] = rig.said;
    return [rig, answer?.type === 'subscribed' ? toHex(answer.subscribed.noncePrefix) : ''];
  };
  const [[, first], [second, other]] = [await prefix(), await prefix()];
  expect([first, other]).toEqual(['00000102', '00010102']);
  for (let i = 2; i < 0x1_0000; i++) bed.desk.freePrefix(bed.desk.takePrefix());
  second.end();
  expect((await prefix())[1]).toBe(other);
});

test('a new session at the other server begins generations anew, not the prefixes of those that stay', () => {
  const memory = connectionNumberMemory();
  const [one, two] = [1, 2].map((thread) => new ConnectionCounter(new Uint8Array(8), thread, memory));
  const held = [one?.takePrefix(), two?.takePrefix()];
  beginGenerations(memory, 0);
  expect([...held, one?.takePrefix(), two?.generation(0, 0)]).toEqual([0, 1, 2, 0]);
});
