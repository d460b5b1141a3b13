/**
 * The shipped WebAssembly with a call at every condition of a branch and every address of memory, so that a test can compare what two secrets make it do. The names of its functions come from a second
 * build with names; its code must be the shipped code, byte for byte.
 */
import { join } from 'node:path';
import { main } from 'assemblyscript/asc';
import binaryen from 'binaryen';
import { MODULE_COMPILE_OPTIONS } from '../../scripts/module-options.mjs';

const SOURCE = join(import.meta.dirname, '../../module/assembly/index.ts');

export async function namedBuild(): Promise<Uint8Array> {
  const made: Uint8Array[] = [];
  const { error } = await main([SOURCE, '--outFile', 'named.wasm', ...MODULE_COMPILE_OPTIONS, '--debug'], {
    writeFile: (name, content) => {
      if (name.endsWith('.wasm')) made.push(content as Uint8Array);
    },
  });
  if (error) throw error;
  return made[0] as Uint8Array;
}

const CODE_SECTION = 10;

/** The section with the code of all functions. */
export function codeOf(wasm: Uint8Array): Buffer {
  let at = 8;
  while (at < wasm.length) {
    const section = wasm[at++];
    let [length, shift, byte] = [0, 0, 0];
    do {
      byte = wasm[at++] as number;
      length |= (byte & 127) << shift;
      shift += 7;
    } while (byte & 128);
    if (section === CODE_SECTION) return Buffer.from(wasm.subarray(at, at + length));
    at += length;
  }
  throw new Error('no code');
}

type Tree = string | Tree[];

function parse(text: string): Tree[] {
  const stack: Tree[][] = [[]];
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[()]|[^\s()"]+/g)) {
    if (token === '(') stack.push([]);
    else if (token === ')') {
      const done = stack.pop() as Tree[];
      (stack.at(-1) as Tree[]).push(done);
    } else (stack.at(-1) as Tree[]).push(token);
  }
  return stack[0] as Tree[];
}

const print = (tree: Tree): string => (typeof tree === 'string' ? tree : `(${tree.map(print).join(' ')})`);

export type Site = { readonly of: string; readonly what: string };

/** Which operands of an instruction are recorded: conditions, addresses, lengths. */
function toldOperands(node: readonly Tree[]): readonly number[] {
  const head = node[0] as string;
  const operands = node.flatMap((child, i) => (Array.isArray(child) && child[0] !== 'result' ? [i] : []));
  if (head === 'if') return operands.slice(0, 1);
  if (head === 'br_if' || head === 'select') return operands.slice(-1);
  if (/^\w+\.(load|store)/.test(head)) return operands.slice(0, 1);
  if (head === 'memory.copy') return operands.slice(0, 3);
  if (head === 'memory.fill') return [operands[0], operands[2]] as number[];
  if (/\.(div|rem)_/.test(head)) return operands;
  if (head === 'br_table' || head === 'call_indirect') throw new Error(`${head} is not looked at`);
  return [];
}

export function traced(wasm: Uint8Array): { readonly wasm: Uint8Array; readonly sites: readonly Site[] } {
  const module = binaryen.readBinary(wasm);
  const [tree] = parse(module.emitText()) as [Tree[]];
  module.dispose();
  const sites: Site[] = [];
  const mark = (node: Tree, of: string): Tree => {
    if (typeof node === 'string') return node;
    const told = toldOperands(node);
    return node.map((child, i) => {
      const inner = mark(child, of);
      if (!told.includes(i)) return inner;
      sites.push({ of, what: node[0] as string });
      return ['call', '$tell', ['i32.const', String(sites.length - 1)], inner];
    });
  };
  const fields = tree.map((field) =>
    Array.isArray(field) && field[0] === 'func' ? mark(field, String(field[1])) : field,
  );
  const at = fields.findIndex((field) => Array.isArray(field) && field[0] === 'import');
  fields.splice(at, 0, parse('(import "env" "tell" (func $tell (param i32 i32) (result i32)))')[0] as Tree);
  const made = binaryen.parseText(print(fields));
  made.setFeatures(binaryen.Features.All);
  const bytes = made.emitBinary();
  made.dispose();
  return { wasm: bytes, sites };
}
