import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { createLogger, readLevelFilter } from '../../runtime/log/log.ts';
import { Shutdown } from '../../runtime/shutdown.ts';

function make(limitMs = 1_000) {
  const lines: string[] = [];
  const sink = { write: (line: string) => void lines.push(line), flush: () => undefined, close: () => undefined };
  const log = createLogger('x', { filter: readLevelFilter('info'), format: 'text' }, { sink, now: () => 0 });
  const exits: number[] = [];
  const exited = Promise.withResolvers<number>();
  const emitter = new EventEmitter();
  const fake = Object.assign(emitter, {
    exit: (code: number) => {
      exits.push(code);
      exited.resolve(code);
    },
  }) as unknown as NodeJS.Process;
  const clock = { now: 0 };
  const shutdown = new Shutdown({ limitMs }, { log, process: fake, now: () => clock.now });
  return { shutdown, clock, emitter, exits, exited: exited.promise, lines };
}

test('a signal stops the parts once, last started first, and gives back the handlers', async () => {
  const { shutdown, emitter, exits } = make();
  const order: string[] = [];
  shutdown.add('store', () => void order.push('store'));
  shutdown.add('listener', async () => void order.push('listener'));
  emitter.emit('SIGTERM');
  expect(shutdown.signal.aborted).toBe(true);
  shutdown.request('again', 5);
  expect(await shutdown.done).toBe(0);
  expect(order).toEqual(['listener', 'store']);
  expect(exits).toEqual([]);
  expect(emitter.listenerCount('SIGTERM') + emitter.listenerCount('SIGINT')).toBe(0);
  shutdown.add('late', () => void order.push('late'));
  expect(order).toEqual(['listener', 'store', 'late']);
});

test('a part that fails to stop is named and the others still stop', async () => {
  const { shutdown, lines } = make();
  let stopped = false;
  shutdown.add('store', () => {
    stopped = true;
  });
  shutdown.add('broken', () => Promise.reject(new Error('no')));
  shutdown.request('done');
  expect(await shutdown.done).toBe(1);
  expect(stopped).toBe(true);
  expect(lines.join('')).toContain('a part failed to stop part=broken');
});

test('a second signal ends the process at once, unless it is the same Ctrl-C by another way', () => {
  const { shutdown, clock, emitter, exits } = make();
  shutdown.add('slow', () => new Promise(() => undefined));
  emitter.emit('SIGINT');
  clock.now = 499;
  emitter.emit('SIGINT');
  expect(exits).toEqual([]);
  clock.now = 500;
  emitter.emit('SIGINT');
  expect(exits).toEqual([130]);
});

test('the time limit ends the process and names the part', async () => {
  const { shutdown, exited, lines } = make(20);
  shutdown.add('slow', () => new Promise(() => undefined));
  shutdown.request('done');
  expect(await exited).toBe(1);
  expect(lines.join('')).toContain('stopping took too long part=slow limitMs=20');
});
