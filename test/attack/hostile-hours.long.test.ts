/**
 * A malicious pool over simulated hours. Whatever it says, it can make the miner build few datasets, never switches it off for
 * long, and neither fills the log; the next pool gives work meanwhile, and the first one gets its miner back once it is honest.
 */
import { expect, test } from 'vitest';
import { POW_EPOCH_CUTS } from '../../protocol/network.ts';
import { type Link, type Script, World } from './simulated-miner.ts';

const MINUTE = 60_000;
const HONEST: Script = {};
const linesOf = (world: World): number => world.log.split('\n').length - 1;

test('a pool that claims the end of an epoch, of the next, and so on: six datasets in 200 minutes, then the honest pool', async () => {
  let epoch = 0;
  const next = (link: Link): void => link.notify(world.job(link, { height: ++epoch * POW_EPOCH_CUTS - 10 }));
  const liar: Script = {
    begin: next,
    tick: (link, now) => {
      if (now % MINUTE === 0) next(link);
    },
  };
  const world: World = new World({ scripts: [liar, HONEST] });
  await world.run(200 * MINUTE);
  const fromLiar = world.device.built.filter((built) => built !== 0);
  expect(fromLiar.length).toBeLessThanOrEqual(6);
  expect(world.checked.length).toBeLessThanOrEqual(8);
  world.scripts[0] = { isUp: () => false };
  await world.run(3 * MINUTE);
  expect(world.workingFor).toBe(1);
  expect(world.device.job?.epoch).toBe(0);
});

test('a wait of 49 days is one of two minutes, and the next pool is used at once', async () => {
  const banned: Script = {
    subscribe: (link, id) => {
      link.ban(id, 4_294_967_295);
      return true;
    },
  };
  const world = new World({ scripts: [banned, HONEST] });
  await world.run(5_000);
  expect(world.workingFor).toBe(1);
  world.scripts[0] = HONEST;
  await world.run(3 * MINUTE);
  expect(world.workingFor).toBe(0);
});

test('one injected line stops the miner of a single pool for two minutes at most', async () => {
  const world = new World({ scripts: [HONEST] });
  await world.run(MINUTE);
  (world.links.at(-1) as Link).ban(null, 4_294_967_295);
  await world.run(2 * MINUTE + 5_000);
  expect(world.workingFor).toBe(0);
});

test('reconnect with a wait of 0, again and again: few connections, and work all the time', async () => {
  const mover: Script = {
    begin: (link) => {
      link.notify(world.job(link, {}));
      for (let i = 0; i < 10; i++) link.reconnect({ host: '', port: 0, waitMillis: 0 });
    },
  };
  const world: World = new World({ scripts: [mover] });
  await world.run(60 * MINUTE);
  expect(world.links.length).toBeLessThan(100);
  expect(world.workingFor).toBe(0);
  expect(linesOf(world)).toBeLessThan(400);
});

test('a reconnect in 49 days is one in two minutes', async () => {
  const mover: Script = {
    begin: (link) => {
      link.notify(world.job(link, {}));
      link.reconnect({ host: '', port: 0, waitMillis: 4_294_967_295 });
    },
  };
  const world: World = new World({ scripts: [mover] });
  await world.run(10_000);
  const before = world.links.length;
  await world.run(3 * MINUTE);
  expect(world.links.length).toBe(before + 1);
});

test('a pool that gives a job and hangs up each time is left alone for longer and longer', async () => {
  const flapper: Script = {
    begin: (link) => link.notify(world.job(link, {})),
    tick: (link) => link.drop(),
  };
  const world: World = new World({ scripts: [flapper, HONEST] });
  let working = 0;
  await world.run(60 * MINUTE, () => {
    if (world.workingFor === 1) working += 250;
  });
  expect(world.links.length).toBeLessThan(200);
  expect(working).toBeGreaterThan(55 * MINUTE);
  expect(linesOf(world)).toBeLessThan(400);
});

test('a pool that is never ready is left for the next one', async () => {
  const lazy: Script = {
    authorize: (link, id) => {
      link.fail(id, 31);
      return true;
    },
  };
  const world = new World({ scripts: [lazy, HONEST] });
  await world.run(2 * MINUTE);
  expect(world.workingFor).toBe(1);
  await world.run(60 * MINUTE);
  expect(linesOf(world)).toBeLessThan(400);
});

test('a pool that refuses every share is left for the next one', async () => {
  const refuser: Script = {
    submit: (link, id) => {
      link.fail(id, 23);
      return true;
    },
  };
  const world = new World({ scripts: [refuser, HONEST] });
  let working = 0;
  await world.run(60 * MINUTE, () => {
    if (world.now % 2_000 === 0) world.device.find();
    if (world.workingFor === 1) working += 250;
  });
  // A hundred seconds each time, at growing distances.
  expect(working).toBeGreaterThan(50 * MINUTE);
  world.scripts[1] = { isUp: () => false };
  await world.run(10_000);
  expect(world.workingFor).toBe(0);
});

test('a pool that sends no second job is left for the next one', async () => {
  const world = new World({ scripts: [{ tick: () => undefined }, HONEST] });
  await world.run(9 * MINUTE);
  expect(world.workingFor).toBe(0);
  await world.run(3 * MINUTE);
  expect(world.workingFor).toBe(1);
});

test('any line that a server can cause comes once a minute and kind', async () => {
  let n = 0;
  const noisy: Script = {
    begin: (link) => link.notify(world.job(link, {})),
    submit: (link, id) => {
      if (++n % 2 === 0) return false;
      link.fail(id, n % 4 === 1 ? 21 : 27);
      return true;
    },
    tick: (link) => {
      for (let i = 0; i < 5; i++) link.fail(null, 31);
      link.reconnect({ host: 'elsewhere', port: 1, waitMillis: 0 });
      link.notify(world.job(link, { shareWork: 1n }));
    },
  };
  const world: World = new World({ scripts: [noisy] });
  await world.run(5 * MINUTE, () => {
    for (let i = 0; i < 5; i++) world.device.find();
  });
  expect(world.submits).toBeGreaterThan(1_000);
  expect(world.log.length).toBeLessThan(20_000);
  expect(world.log).toMatch(/share accepted/);
  expect(world.log).toMatch(/shares accepted count=\d+ work=\d+/);
});

test('a pool that was left for a worthless job gets its miner back once it is honest', async () => {
  const liar: Script = { begin: (link) => link.notify(world.job(link, { epoch: 77 })) };
  const world: World = new World({ scripts: [liar, HONEST] });
  await world.run(5 * MINUTE);
  expect(world.workingFor).toBe(1);
  world.scripts[0] = HONEST;
  await world.run(30 * MINUTE);
  expect(world.workingFor).toBe(0);
});
