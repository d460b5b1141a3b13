/** What every program prints about itself from its option tables: its manual page, and what shells need to complete its words. */
import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { choice, flag, path } from '../../runtime/command-line/command-line.ts';
import { completions } from '../../runtime/command-line/completions.ts';
import { manPage } from '../../runtime/command-line/man-page.ts';
import { command, commandTable, startProgram, type Terminal, version } from '../../runtime/program.ts';

const leaf = (name: string) =>
  command(
    {
      name,
      summary: `Does ${name}.`,
      options: {
        network: choice({ help: "which one, it's needed" }, ['main', 'test']),
        dataDir: path({ help: '.begins with a dot', placeholder: 'DIR' }),
        yes: flag({ help: 'do not ask' }),
      },
      operands: [{ name: 'FILE', help: 'a \\file', optional: true }],
    },
    () => 0,
  );
const program = commandTable('svc-try', 'Tries things.', [
  leaf('svc-try run'),
  commandTable('svc-try snapshot', 'Snapshots.', [leaf('svc-try snapshot create')]),
]);

/** What bash offers for the last of the words. */
function offered(...words: string[]): string[] {
  const script = `${completions(program, 'bash')}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _svc_try; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr } = spawnSync('bash', ['-c', script, 'bash', 'svc-try', ...words], { encoding: 'utf8' });
  expect(stderr).toBe('');
  return stdout.split('\n').filter((line) => line !== '');
}

test('bash is offered commands, commands below them, options of the command, and the values of an option', () => {
  expect(offered('')).toEqual(['run', 'snapshot', '--config', '--help', '--version']);
  expect(offered('snapshot', '')).toContain('create');
  expect(offered('snapshot', '')).not.toContain('--network');
  expect(offered('snapshot', 'create', '--')).toEqual([
    '--network',
    '--data-dir',
    '--yes',
    '--config',
    '--help',
    '--version',
  ]);
  expect(offered('run', '--n')).toEqual(['--network']);
  expect(offered('run', '--network', '')).toEqual(['main', 'test']);
  // A path: bash offers files.
  expect(offered('run', '--data-dir', '')).toEqual([]);
});

test('zsh and fish are offered every command and option too', () => {
  for (const shell of ['zsh', 'fish'] as const) {
    const text = completions(program, shell);
    for (const word of ['run', 'snapshot', 'create', 'network', 'data-dir', 'yes', 'main test'])
      expect(text, shell).toContain(word);
  }
  expect(completions(program, 'fish')).toContain("-d 'which one, it'\\''s needed'");
});

test('the manual page has every command and option, and text never acts on the page', () => {
  const page = manPage(program, '1.2.3');
  expect(page).toContain('.TH SVC\\-TRY 1 "" "svc\\-stratum 1.2.3"\n.SH NAME\nsvc\\-try \\- Tries things\n');
  expect(page).toContain('.SS snapshot create\n');
  expect(page).toContain('\\fB\\-\\-data\\-dir DIR\\fR\n\\&.begins with a dot\n');
  expect(page).toContain('a \\efile');
});

test('the first word --man or --completions prints it; a shell that is not known is wrong usage', async () => {
  let [out, err] = ['', ''];
  const terminal: Terminal = {
    out: (text) => {
      out += text;
    },
    err: (text) => {
      err += text;
    },
    readText: () => '',
    env: {},
  };
  expect(await startProgram(program, ['--man'], terminal)).toBe(0);
  expect(out).toBe(manPage(program, version()));
  expect(await startProgram(program, ['--completions', 'csh'], terminal)).toBe(2);
  expect(err).toContain('bash, zsh, fish');
  out = '';
  expect(await startProgram(program, ['--completions', 'fish'], terminal)).toBe(0);
  expect(out).toBe(completions(program, 'fish'));
  out = '';
  expect(await startProgram(program, ['--help'], terminal)).toBe(0);
  expect(out).toContain('--completions SHELL');
});
