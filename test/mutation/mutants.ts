/**
 * Small faults, one at a time, of the kinds that cost money or safety: a check that is gone, a limit that is off by one, a
 * flush that never happens. Each is a piece of text in the place of another, so that the rest of the file stays as it is.
 */
import { parseAst } from 'vite';

export type Mutant = {
  readonly file: string;
  readonly line: number;
  readonly kind: Kind;
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
};

export type Kind =
  | 'boundary'
  | 'equality'
  | 'logic'
  | 'guard'
  | 'condition'
  | 'arithmetic'
  | 'extreme'
  | 'answer'
  | 'call'
  | 'durability';

type Node = { readonly type: string; readonly start: number; readonly end: number; readonly [field: string]: unknown };

const SWAPPED: Readonly<Record<string, readonly [Kind, string]>> = {
  '<': ['boundary', '<='],
  '<=': ['boundary', '<'],
  '>': ['boundary', '>='],
  '>=': ['boundary', '>'],
  '===': ['equality', '!=='],
  '!==': ['equality', '==='],
};

/** What makes bytes survive a power failure, or keeps a second writer out. */
const DURABLE = /sync|flush|fence|lock/i;
/** What only tells people something. */
const TOLD = /^(log|console)\b|\.(debug|info|warn|error|log|inc|observe|set)$/;
const LEAVES = new Set(['ReturnStatement', 'ThrowStatement', 'ContinueStatement', 'BreakStatement']);

export function mutantsOf(file: string, source: string): Mutant[] {
  const found: Mutant[] = [];
  const lineAt = lineFinder(source);
  const text = (node: Node): string => source.slice(node.start, node.end);
  const add = (kind: Kind, { start, end }: { start: number; end: number }, replacement: string): void => {
    found.push({ file, line: lineAt(start), kind, start, end, replacement });
  };

  const visit = (node: Node): void => {
    switch (node.type) {
      case 'BinaryExpression':
        binary(node);
        break;
      case 'LogicalExpression':
        if (node.operator !== '??')
          add(
            'logic',
            node,
            `(${text(node.left as Node)} ${node.operator === '&&' ? '||' : '&&'} ${text(node.right as Node)})`,
          );
        break;
      case 'IfStatement':
        if (leaves(node.consequent as Node) && node.alternate === null) add('guard', node.test as Node, 'false');
        else add('condition', node.test as Node, `!(${text(node.test as Node)})`);
        break;
      case 'ConditionalExpression':
        add('condition', node.test as Node, `!(${text(node.test as Node)})`);
        break;
      case 'MemberExpression':
        if (/^Math\.(min|max)$/.test(text(node)))
          add('extreme', node, text(node) === 'Math.min' ? 'Math.max' : 'Math.min');
        break;
      case 'ReturnStatement':
        if (isBoolean(node.argument)) add('answer', node.argument, String(!node.argument.value));
        break;
      case 'ArrowFunctionExpression':
        if (isBoolean(node.body)) add('answer', node.body, String(!node.body.value));
        break;
      case 'ExpressionStatement':
        statement(node);
        break;
      default:
    }
    for (const child of childrenOf(node)) visit(child);
  };

  const binary = (node: Node): void => {
    const [left, right] = [node.left as Node, node.right as Node];
    const operator = node.operator as string;
    const swapped = SWAPPED[operator];
    if (swapped !== undefined) add(swapped[0], node, `${text(left)} ${swapped[1]} ${text(right)}`);
    // A sum of texts is no arithmetic: of sums only those with a number in them are sure.
    if (operator === '-') add('arithmetic', node, `(${text(left)} + ${text(right)})`);
    if (operator === '+' && (isNumber(left) || isNumber(right)))
      add('arithmetic', node, `(${text(left)} - ${text(right)})`);
  };

  const statement = (node: Node): void => {
    const inner = node.expression as Node;
    const call = inner.type === 'AwaitExpression' ? (inner.argument as Node) : inner;
    if (call.type !== 'CallExpression') return;
    const callee = text(call.callee as Node);
    if (callee === 'super' || TOLD.test(callee)) return;
    add(DURABLE.test(callee) ? 'durability' : 'call', node, ';');
  };

  visit(parseAst(source, { lang: 'ts', astType: 'ts' }, file) as unknown as Node);
  return found;
}

/** The file with the fault in it. */
export const withMutant = (source: string, { start, end, replacement }: Mutant): string =>
  source.slice(0, start) + replacement + source.slice(end);

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as Node).type === 'string';

/** Types are left out: they are gone when the program runs. */
const childrenOf = (node: Node): Node[] =>
  Object.values(node)
    .flat()
    .filter(isNode)
    .filter(({ type }) => !/^TS(?!AsExpression|NonNull|Satisfies|ParameterProperty)/.test(type));

const leaves = (node: Node): boolean =>
  LEAVES.has(node.type) ||
  (node.type === 'BlockStatement' && leaves((node.body as Node[]).at(-1) ?? { ...node, type: '' }));

const isNumber = ({ type, value }: Node): boolean =>
  type === 'Literal' && (typeof value === 'number' || typeof value === 'bigint');

const isBoolean = (node: unknown): node is Node & { value: boolean } =>
  isNode(node) && node.type === 'Literal' && typeof node.value === 'boolean';

function lineFinder(source: string): (offset: number) => number {
  const starts = [0, ...[...source.matchAll(/\n/g)].map(({ index }) => index + 1)];
  return (offset) => starts.findLastIndex((start) => start <= offset) + 1;
}
