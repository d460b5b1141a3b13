/** Prompts at the terminal: passwords without echo, and confirmation before money moves. */
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';

export type Prompt = {
  /** False without a terminal. */
  readonly interactive: boolean;
  /** Width of the narrower of both outputs, if there is a terminal. */
  readonly columns?: number | undefined;
  ask(question: string): Promise<string>;
  askHidden(question: string): Promise<string>;
  /** Everything up to the end of the input. */
  readAll(): Promise<string>;
};

function question(text: string, hidden: boolean): Promise<string> {
  process.stderr.write(text);
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: hidden ? silent : process.stderr, terminal: hidden });
  return new Promise((resolve) => {
    let answer = '';
    lines.once('line', (line) => {
      answer = line;
      lines.close();
    });
    lines.once('close', () => {
      if (hidden) process.stderr.write('\n');
      resolve(answer);
    });
  });
}

function narrowest(): number | undefined {
  const widths = [process.stdout.columns, process.stderr.columns].filter((columns) => columns > 0);
  return widths.length === 0 ? undefined : Math.min(...widths);
}

export const terminalPrompt: Prompt = {
  interactive: process.stdin.isTTY === true,
  get columns() {
    return narrowest();
  },
  ask: (text) => question(text, false),
  askHidden: (text) => question(text, true),
  async readAll() {
    const parts: Buffer[] = [];
    for await (const part of process.stdin) parts.push(part as Buffer);
    return Buffer.concat(parts).toString('utf8');
  },
};
