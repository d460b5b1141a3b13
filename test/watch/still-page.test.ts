/** The watch in virtual time, beside programs that never rest: what is no movement. */
import { expect, test } from 'vitest';
import { Seen } from './seen.ts';
import { type Time, Watch } from './watch.ts';

const LIMITS = { millis: 300_000, stillMillis: 30_000 };

/** The test and its programs compute all the time. */
class VirtualTime implements Time {
  seconds = 0;
  readonly machine = { forget: () => {}, look: () => ({ share: 1, computes: true, works: true }) };
  #tick: (() => void) | undefined;

  nowMillis(): number {
    return this.seconds * 1_000;
  }

  every(_millis: number, tick: () => void): { stop(): void } {
    this.#tick = tick;
    const stop = () => {
      this.#tick = undefined;
    };
    return { stop };
  }

  async second(): Promise<void> {
    this.seconds++;
    this.#tick?.();
    for (let turn = 0; turn < 10; turn++) await null;
  }
}

/** What a test does in each second, and the failure that ends it. */
async function hang(each: (watch: Watch, time: VirtualTime) => unknown): Promise<{ after: number; message: string }> {
  const time = new VirtualTime();
  const watch = new Watch(1_000, time);
  let message = '';
  const act = async () => {
    for (; message === '' && time.seconds < 400; await time.second()) await each(watch, time);
    return 'never';
  };
  const guarded = watch.guard('a planted hang', LIMITS, act);
  await guarded.catch((error: Error) => {
    message = error.message;
  });
  return { after: time.seconds, message };
}

/** As a page of a pool that runs shows it: at each load another time, height and id. */
const pageAt = (seconds: number): string =>
  `Blocks at 12:${10 + (seconds % 50)}\nThe newest cut is 1,0${10 + seconds}, 7c${seconds}e1f9.\nFound: ${seconds % 3}`;

test('a page that is loaded again and again with the same words ends a test after 30 s, and is shown', async () => {
  const poll = (watch: Watch, look: () => Promise<string>) => {
    const polled = watch.polled(look);
    const { signal } = new AbortController();
    return () => polled({ signal });
  };
  let look: (() => Promise<string>) | undefined;
  const { after, message } = await hang((watch, time) => {
    look ??= poll(watch, async () => {
      await watch.waitFor(`the page loads`, Promise.resolve());
      await watch.waitFor(`the heading of load ${time.seconds}`, Promise.resolve());
      return pageAt(time.seconds);
    });
    return look();
  });
  // The first look that is taken note of comes after 3 s.
  expect(after).toBeLessThan(36);
  expect(message).toMatch(/^nothing that it waits for has moved for 30 s: a planted hang\nit waits:\n.*expect\.poll/);
  expect(message).toMatch(/last seen: Blocks at 12:\d\d\nThe newest cut/);
});

test('a wait on a page that shows the same words ends after 30 s, and what the page shows is said', async () => {
  let begun = false;
  const { after, message } = await hang((watch, time) => {
    if (!begun) watch.begin('locator.waitFor h1', { glance: async () => [pageAt(time.seconds)] });
    begun = true;
  });
  expect(after).toBeLessThan(36);
  expect(message).toMatch(/locator\.waitFor h1\n {4}last seen: \[\n? *'Blocks at/);
});

test('loads of a page one after the other, by a test that looks at it itself, end after 30 s', async () => {
  let seconds = 0;
  const glance = async () => [pageAt(seconds)];
  const { after } = await hang((watch, time) => {
    seconds = time.seconds;
    watch.begin('page.reload', { glance }).end();
  });
  expect(after).toBeLessThan(36);
});

test('a wait that fails and is begun again ends after 30 s', async () => {
  const { after } = await hang((watch, time) =>
    watch.waitFor(`attempt ${time.seconds}`, Promise.reject(new Error('not yet'))).catch(() => {}),
  );
  expect(after).toBeLessThan(36);
});

test('what comes again and again, a page with new words, and a count that rises go on up to the limit of the test', async () => {
  const words = (seconds: number) => [...`${seconds}`].map((digit) => 'abcdefghij'[Number(digit)]).join('');
  let begun = false;
  let look: (() => Promise<unknown>) | undefined;
  const nothing = new Promise<never>(() => {});
  const acts: ((watch: Watch, time: VirtualTime) => unknown)[] = [
    (watch) => watch.waitFor('a share', Promise.resolve()),
    (watch, time) => {
      if (!begun) watch.begin('locator.waitFor h1', { glance: async () => [`Block of ${words(time.seconds)}`] });
      begun = true;
    },
    (watch, time) => {
      const act = (given: () => Promise<unknown>) => {
        look = given;
        return nothing;
      };
      if (time.seconds === 0) void watch.lookFor('a block', () => ({ blocks: [{ amount: `${time.seconds}` }] }), act);
      return look?.();
    },
  ];
  for (const act of acts) {
    const { after, message } = await hang(act);
    expect(message).toMatch(/^it took longer than its limit of 300 s/);
    expect(after).toBe(300);
  }
});

test('what has been seen is no news: other figures in the same words, figures between those before, the same things in another order', () => {
  const seen = new Seen();
  const news = (value: unknown) => seen.moves(value);
  expect(news({ height: 5, words: ['one', 'two'] })).toBe(true);
  expect(news({ height: 9, words: ['one', 'two'] })).toBe(true);
  expect(news({ height: 7, words: ['two', 'one'] })).toBe(false);
  expect(news({ height: 7, words: ['two', 'one', 'one'] })).toBe(true);
  expect(news({ height: 7, words: ['two', 'three'] })).toBe(true);
  expect(news({ height: 7, words: [], open: true })).toBe(true);
  expect(news({ height: 7, open: false })).toBe(true);
  expect(news({ height: 7, open: true })).toBe(false);
  expect([news('12'), news('1,300'), news('250.5'), news(1_200n), news(Number.NaN), news(Number.NaN)]).toEqual([
    true,
    true,
    false,
    false,
    true,
    false,
  ]);
  expect([news('cut 5 of ab12'), news('cut 6 of cd34'), news('cut 7'), news(new Error('cut 7'))]).toEqual([
    true,
    false,
    true,
    false,
  ]);
  const loop: unknown[] = [];
  loop.push(loop);
  expect(news(loop)).toBe(true);
  expect(news(loop)).toBe(false);
});
