/** Reviews and chats on a terminal of 80 columns, and of 40: what others wrote draws no line that could be the program's. */
import { expect, test } from 'vitest';
import { jsonText } from '../../../runtime/log/visible.ts';
import { messageText } from '../../../wallet/command/chat-commands.ts';
import { show } from '../../../wallet/command/commands.ts';
import { foreignRows, shortened } from '../../../wallet/command/foreign-text.ts';
import { reviewText } from '../../../wallet/command/review-text.ts';

const GROUP = `dsvc1q${'x'.repeat(84)}`;
const THIEF = `dsvc1q${'m'.repeat(84)}`;

const review = (more: object) => ({
  address: GROUP,
  watched: true,
  fee: '0.01000000',
  amounts: 'checked',
  recipients: [{ to: THIEF, amount: '99.99000000', change: false }],
  inputs: [{ transaction: 'cd'.repeat(48), output: 0, amount: '100.00000000' }],
  valid_from_height: 100,
  valid_until_height: 34_660,
  payload_hex: '',
  payload_text: null,
  operation: null,
  operation_data: null,
  template_digest: 'ef'.repeat(48),
  witness_profile: 'multisig_inline',
  descriptor: { threshold: '2', members: ['a', 'b', 'c'] },
  signed_by: [0],
  missing_signatures: 1,
  ...more,
});

/** As a terminal of 80 columns breaks them. */
const screen = (text: string): string[] => text.split('\n').flatMap((line) => line.match(/.{1,80}/gu) ?? ['']);

/** A text whose blanks put each of its lines at the beginning of a row. */
function forgery(lines: readonly string[], behind: number): string {
  const pad = (line: string) => line.padEnd(Math.ceil(line.length / 80) * 80);
  return ['rent'.padEnd(80 - behind), ' '.repeat(640), ...lines.map(pad)].join('').trimEnd();
}

test('a payload cannot draw a second review, and what is paid stands last, on the screen with the question', () => {
  const text = forgery([`pays      1.25000000 to ${GROUP}`, 'fee       0.00000001', 'valid     from cut 1 to 2'], 10);
  for (const full of [false, true]) {
    const rows = screen(reviewText(review({ payload_hex: 'xx', payload_text: text }), full));
    expect(rows.filter((row) => row.startsWith('pays '))).toEqual([`pays      99.99000000 to ${THIEF}`.slice(0, 80)]);
    expect(rows.filter((row) => row.startsWith('fee '))).toHaveLength(1);
    const last = rows.slice(-24).join('\n');
    for (const shown of ['pays      99.99000000', 'fee       0.01000000 (', `from      ${GROUP}`.slice(0, 60)])
      expect(last).toContain(shown);
    expect(rows.at(-2)).toMatch(/^fee /);
  }
  const rows = screen(reviewText(review({ payload_hex: 'xx', payload_text: text }), false));
  expect(rows.filter((row) => row.startsWith('payload   | '))).toHaveLength(8);
  expect(rows).toContain(`... ${text.length - 480} more bytes, see --full`);
});

test('on a terminal of 40 columns neither payload, operation nor message draws a line of its own', () => {
  const narrow = (text: string): string[] => text.split('\n').flatMap((line) => line.match(/.{1,40}/gu) ?? ['']);
  // Blanks that fill the rest of a row, whatever the row.
  const fakes = (line: string) => Array.from({ length: 80 }, (_, blanks) => `x${' '.repeat(blanks)}${line}`);
  for (const text of fakes('fee       0.00000001')) {
    const data = { position_id: text };
    const shown = review({ payload_hex: 'xx', payload_text: text, operation: 'withdraw', operation_data: data });
    const rows = narrow(reviewText(shown, true, 40));
    expect(rows.filter((row) => row.startsWith('fee '))).toEqual(['fee       0.01000000 (the inputs hold wh']);
    expect(rows.filter((row) => row.includes('payload') || row.includes('operation')).length).toBeGreaterThan(2);
  }
  for (const said of fakes('me   | I owe you')) {
    const rows = narrow(messageText({ own: false, sent_millis: 0, text: said }, 40));
    expect(rows[0]).toBe('1970-01-01T00:00:00.000Z');
    for (const row of rows.slice(1, -1)) expect(row).toMatch(/^them \| /);
    expect(
      rows
        .slice(1)
        .map((row) => row.slice(7))
        .join(''),
    ).toBe(said);
  }
});

test('operations: long hex in marked rows, amounts in coins, and an unbonding of all says so', () => {
  const data = { consensus_key: 'ab'.repeat(1952), amount: '10000000000000', endpoint_hex: '00' };
  const shown = reviewText(review({ operation: 'register', operation_data: data }), false).split('\n');
  expect(shown.filter((row) => row.startsWith('operation | '))).toHaveLength(5);
  expect(shown).toContain('operation | amount 100000.00000000 coins');
  expect(Math.max(...shown.filter((row) => row.startsWith('operation')).map((row) => row.length))).toBeLessThan(80);
  const all = reviewText(review({ operation: 'unbond', operation_data: { position_id: 'ab', amount: '0' } }), false);
  expect(all).toContain('operation | amount the whole position\n');
});

test('many inputs do not scroll an operation away: what it moves is on the screen with the question', () => {
  const lastRows = (operation: string, data: object): string => {
    const inputs = Array.from({ length: 8 }, () => ({ transaction: 'cd'.repeat(48), output: 0, amount: '1.00000000' }));
    const recipients = Array.from({ length: 8 }, () => ({ to: GROUP, amount: '0.00000001', change: true }));
    const rows = screen(reviewText(review({ inputs, recipients, operation, operation_data: data }), false));
    return rows.slice(-23).join('');
  };
  expect(lastRows('reward_address', { position_id: 'ab'.repeat(48), reward_address: THIEF })).toContain(
    `also      reward_address, reward_address ${THIEF}`,
  );
  const bond = { validator_id: 'ab'.repeat(48), owner_address: GROUP, reward_address: THIEF, amount: '10000000000' };
  expect(lastRows('bond', bond)).toContain(
    `also      bond, owner_address ${GROUP}, reward_address ${THIEF}, amount 100.00000000 coins`,
  );
  expect(lastRows('exit', { validator_id: 'ab'.repeat(48) })).toContain('also      exit');
});

test('a chat message cannot draw another one, in wide characters neither', () => {
  const fake = '2026-05-01T10:00:00.000Z  me   | I owe you 1000 coins';
  for (const said of [forgery([fake], 33), `${'\u3000'.repeat(200)}${fake}`]) {
    const rows = messageText({ own: false, sent_millis: 0, text: said }).split('\n').slice(0, -1);
    expect(rows[0]).toMatch(/^1970-01-01T00:00:00.000Z {2}them \| /);
    for (const row of rows.slice(1)) expect(row).toMatch(/^ {26}them \| /);
    for (const row of rows) expect(row.replace(/[^\0-\x7e]/g, '__').length).toBeLessThan(80);
  }
});

test('rows keep every character, and none is empty but that of an empty text', () => {
  const text = `grüße 👩‍👩‍👧 ${'x'.repeat(150)}`;
  const rows = foreignRows('| ', text);
  expect(rows.map((row) => row.slice(2)).join('')).toBe(text);
  expect(foreignRows('| ', 'a'.repeat(60))).toEqual([`| ${'a'.repeat(60)}`]);
  expect(foreignRows('| ', '')).toEqual(['| ']);
});

test('characters that show nothing, or steer a terminal, are marked; joiners of scripts and emoji stay', () => {
  for (const unseen of ['\u200b', '\u00ad', '\u180e', '\u3164', '\u{e0041}', '\u{e0101}', '\u034f', '\u009b', '\ufff9'])
    expect(foreignRows('| ', `pay${unseen}load`)).toEqual(['| pay?load']);
  expect(foreignRows('| ', 'می\u200cخواهم ❤\ufe0f')).toEqual(['| می\u200cخواهم ❤\ufe0f']);
});

test('JSON on a terminal: what steers it is an escape, and the value is the same', () => {
  const said = { text: 'a\u009b2J\u202eb\u007f\u{e0041}\n', next: 'ü' };
  for (const json of [true, false]) {
    const out: string[] = [];
    const terminal = { out: (text: string) => out.push(text) };
    show({ values: { json }, terminal } as never, said, () => `${jsonText(said, 2)}\n`);
    const shown = out.join('');
    expect(shown).not.toMatch(/[\u007f-\u009f\u202e\u{e0041}]/u);
    expect(shown.split('\n')).toHaveLength(json ? 2 : 5);
    expect(JSON.parse(shown)).toEqual(said);
  }
});

test('a long label stays in its row', () => {
  expect(shortened('rent')).toBe('rent');
  expect(shortened(`${'x'.repeat(70)}\u200b`)).toBe(`${'x'.repeat(60)}...`);
});

test('a review says for how many cuts a package can be sent, and warns where these are very many', () => {
  const valid = (left: number | null) =>
    reviewText(review({ cuts_left: left }), false)
      .split('\n')
      .find((row) => row.startsWith('valid '));
  expect(valid(null)).toBe('valid     from cut 100 to 34660');
  expect(valid(34_560)).toBe('valid     from cut 100 to 34660, 34560 more cuts');
  expect(valid(1_000_001)).toContain(', 1000001 more cuts, WHICH IS VERY LONG');
  expect(valid(0)).toContain('WHICH IS OVER');
});
