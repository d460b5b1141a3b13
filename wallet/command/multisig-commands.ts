/**
 * `svc-wallet multisig ...`: an address of several members, and payments from it. The members exchange files: a public
 * key, the descriptor of the address, packages. None contains a secret. Every file is text in one line, and none that
 * exists is replaced.
 */
import { existsSync, readFileSync } from 'node:fs';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import {
  combinePackages,
  decodePackage,
  encodePackage,
  missingSignatures,
} from '../../protocol/transactions/multisig-package.ts';
import { flag, integer, path, text } from '../../runtime/command-line/command-line.ts';
import { createDurably } from '../../runtime/files/durable-file.ts';
import { type Command, commandTable } from '../../runtime/program.ts';
import { verifySignature } from '../keys/signing.ts';
import { WalletError } from '../wallet-error.ts';
import { type Context, confirmed, show, withSession } from './commands.ts';
import { jsonOption, sessionOptions } from './options.ts';
import { terminalPrompt } from './prompt.ts';
import { reviewText } from './review-text.ts';
import type { Fields } from './session.ts';
import { walletCommand, yes } from './wallet-command.ts';

/** The largest package in hex, and room. */
const MAX_FILE = 512 * 1024;

function readWord(file: string): string {
  let word: string;
  try {
    word = readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new WalletError('file_missing', `${file} cannot be read: ${(error as Error).message}`, { path: file });
  }
  if (word.length > MAX_FILE)
    throw new WalletError('multisig_package_invalid', `${file} is too long`, { reason: 'too_long' });
  return word;
}

async function writeWord(file: string, word: string): Promise<void> {
  let made: boolean;
  try {
    made = await createDurably(file, `${word}\n`, 0o644);
  } catch (error) {
    throw new WalletError('file_unwritable', `${file} cannot be written: ${(error as Error).message}`, { path: file });
  }
  if (!made) throw new WalletError('file_exists', `${file} exists: nothing is overwritten`, { path: file });
}

function readDescriptorFile(file: string): { threshold: number; members: string[] } {
  try {
    const { threshold, members } = JSON.parse(readWord(file)) as { threshold: unknown; members: unknown };
    if (Array.isArray(members) && members.every((member) => typeof member === 'string'))
      return { threshold: Number(threshold), members };
  } catch (error) {
    if (error instanceof WalletError) throw error;
  }
  throw new WalletError('multisig_descriptor_invalid', `${file} is no descriptor of a multisig address`, {
    path: file,
  });
}

function groupText(group: Fields): string {
  const own = group.own_members as number[];
  const mine = own.length === 0 ? 'none of its members is this wallet' : `this wallet is member ${own.join(' and ')}`;
  return `${group.address}\n${group.threshold}-of-${group.members}, ${mine}\nCompare the whole address with the other members before anybody pays to it.\n`;
}

const watch = (context: Context, params: Fields, also: (group: Fields) => Promise<void>): Promise<number> =>
  withSession(context, async (session) => {
    const group = await session.call('multisig_watch', params);
    await also(group);
    return show(context, group, () => groupText(group));
  });

const seen = ({ prompt }: Context, review: Fields, { full: isWhole }: { readonly full: boolean }): string =>
  reviewText(review, isWhole, prompt.columns);

type Proposing = {
  readonly out: string;
  readonly full: boolean;
  readonly payload: string | undefined;
  readonly validCuts: number;
  readonly inline: boolean;
  readonly replaces: string | undefined;
};

/** A payment in several packages has files FILE, FILE.2 and so on. */
function refuseParts(file: string): void {
  const [, base, part] = /^(.*)\.(\d+)$/.exec(file) ?? [];
  const isLater = base !== undefined && Number(part) > 1 && existsSync(base);
  if (isLater || existsSync(`${file}.2`))
    throw new WalletError(
      'multisig_not_replaceable',
      `${isLater ? base : file} is one of several packages that pay together: the others could still be sent`,
      { reason: 'parts', path: file },
    );
}

const replacedText = (file: string, review: string): string =>
  `In place of ${file}, of which at most this or the new one can be paid:\n${review}\nThe new package:\n`;

const propose = (context: Context, payment: Fields, how: Proposing): Promise<number> =>
  withSession(context, async (session) => {
    if (how.replaces !== undefined) refuseParts(how.replaces);
    const { packages, replaces } = await session.call('multisig_propose', {
      ...payment,
      valid_cuts: how.validCuts,
      inline: how.inline,
      ...(how.payload === undefined ? {} : { payload_text: how.payload }),
      ...(how.replaces === undefined ? {} : { replaces: readWord(how.replaces) }),
    });
    const made = (packages as Fields[]).map(({ package: word, ...review }, i) => ({
      file: i === 0 ? how.out : `${how.out}.${i + 1}`,
      word: word as string,
      review,
    }));
    for (const { file, word } of made) await writeWord(file, word);
    const shown = made.map(({ file, review }) => ({ file, ...review }));
    const old = replaces === undefined ? {} : { replaces };
    const before = how.replaces === undefined ? '' : replacedText(how.replaces, seen(context, replaces as Fields, how));
    return show(
      context,
      { packages: shown, ...old },
      () => before + made.map(({ file, review }) => `${file}\n${seen(context, review, how)}`).join('\n'),
    );
  });

const SIGNING = {
  refused: 'Nothing was signed.',
  missing: 'a key signs after a yes: answer at a terminal, or give --digest with the digest of the review',
};

type FeeWish = { readonly anyFee: boolean };
const feeTerms = ({ anyFee: isAny }: FeeWish): Fields => (isAny ? { any_fee: true } : {});

type SigningWish = FeeWish & {
  readonly digest: string | undefined;
  readonly trustAmounts: boolean;
  readonly full: boolean;
};

/** The digest that is signed is that of the package as this command has shown it, or the one that was given. */
const sign = (context: Context, word: string, out: string, how: SigningWish): Promise<number> =>
  withSession(context, async (session) => {
    const review = await session.call('multisig_review', { package: word });
    if (how.digest === undefined) {
      if (!context.values.json) context.terminal.err(seen(context, review, how));
      if (!(await confirmed(context, false, 'Sign this?', SIGNING))) return 1;
    }
    const signed = await session.call('multisig_sign', {
      package: word,
      template_digest: how.digest ?? review.template_digest,
      ...(how.trustAmounts ? { trust_amounts: true } : {}),
      ...feeTerms(how),
    });
    await writeWord(out, signed.package as string);
    const { package: _, ...rest } = signed;
    return show(
      context,
      { file: out, ...rest },
      () => `${out}: signatures still needed: ${signed.missing_signatures}\n`,
    );
  });

type SendingWish = FeeWish & { readonly yes: boolean; readonly full: boolean };

const send = (context: Context, word: string, how: SendingWish): Promise<number> =>
  withSession(context, async (session) => {
    const review = await session.call('multisig_review', { package: word });
    if (!how.yes && !context.values.json) context.terminal.err(seen(context, review, how));
    if (!(await confirmed(context, how.yes, 'Send this?'))) return 1;
    const result = await session.call('multisig_send', { package: word, ...feeTerms(how) });
    return show(context, result, () => `transaction ${result.transaction}\n`);
  });

/** Needs no wallet: anyone who has the packages may combine them. */
async function combine(files: readonly string[], out: string): Promise<Fields> {
  try {
    const packages = files.map((file) => decodePackage(fromHex(readWord(file)), { verify: verifySignature }));
    const all = combinePackages(packages);
    await writeWord(out, toHex(encodePackage(all)));
    return {
      file: out,
      template_digest: toHex(all.digest),
      signed_by: all.signed.map(({ member }) => member),
      missing_signatures: missingSignatures(all),
    };
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    throw new WalletError('multisig_package_invalid', error.message, { reason: error.code });
  }
}

const out = path({ help: 'the file to write; an existing one is never replaced', required: true });
const label = text({ help: 'a name for it', default: '' });
const full = flag({ help: 'show payload and operation in full, however long they are' });
const anyFee = flag({ help: 'allow a fee above the limit of the wallet (100 atoms per mass)' });
const PACKAGE = { name: 'PACKAGE', help: 'a file of `propose`, `sign` or `combine`' };
const DESCRIPTOR = { name: 'DESCRIPTOR', help: 'the file of `create`' };

export function multisigCommands(name: string): Command {
  const own = `${name} multisig`;
  const context = (values: Context['values'], terminal: Context['terminal']): Context => ({
    values,
    terminal,
    prompt: terminalPrompt,
  });
  const commands = [
    walletCommand(
      {
        name: `${own} key`,
        summary: 'a public key of this wallet, for the others to make the address with',
        options: { ...sessionOptions, out, label },
        examples: [{ line: `${own} key --out anna.key`, says: 'send the file to the member who makes the address' }],
      },
      (values, _, terminal) =>
        withSession(context(values, terminal), async (session) => {
          const key = await session.call('multisig_key', values.label === '' ? {} : { label: values.label });
          await writeWord(values.out, key.public_key as string);
          return show(
            context(values, terminal),
            { file: values.out, ...key },
            () => `${values.out}: key of ${key.address}\n`,
          );
        }),
    ),
    walletCommand(
      {
        name: `${own} create`,
        summary: 'makes a shared address from the public keys of its members, writes its descriptor and watches it',
        options: {
          ...sessionOptions,
          threshold: integer({ help: 'how many must sign: 2 of 3 members, or 3 of 5', min: 2, max: 3, default: 2 }),
          out,
          label,
        },
        operands: [{ name: 'KEY', help: 'files of `key`, one of each member', rest: true }],
        examples: [{ line: `${own} create --out savings.json anna.key bert.key cleo.key`, says: 'two of these three' }],
      },
      (values, files, terminal) =>
        watch(
          context(values, terminal),
          { threshold: values.threshold, members: files.map(readWord), label: values.label },
          (group) => writeWord(values.out, JSON.stringify(group.descriptor)),
        ),
    ),
    walletCommand(
      {
        name: `${own} address`,
        summary: 'the address of a descriptor, to be compared with the other members; watches it from now on',
        options: { ...sessionOptions, label },
        operands: [DESCRIPTOR],
        examples: [{ line: `${own} address savings.json`, says: 'compare it to its last character' }],
      },
      (values, [file = ''], terminal) =>
        watch(context(values, terminal), { ...readDescriptorFile(file), label: values.label }, async () => undefined),
    ),
    walletCommand(
      {
        name: `${own} propose`,
        summary: 'writes an unsigned payment from a multisig address',
        options: {
          ...sessionOptions,
          out,
          full,
          payload: text({ help: 'text for the recipient, public on the chain' }),
          validCuts: integer({ help: 'cuts in which it can be sent', min: 10, max: 1_000_000, default: 34_560 }),
          inline: flag({ help: 'put whole keys into the package even where the chain has them: longer' }),
          replaces: path({ help: 'the package that this one replaces: at most one of the two can be paid' }),
        },
        operands: [
          { name: 'FROM', help: 'a multisig address that this wallet watches' },
          { name: 'ADDRESS', help: 'who is paid' },
          { name: 'AMOUNT', help: 'in coins, such as 1.25' },
        ],
        examples: [
          { line: `${own} propose dsvc1q... dsvc1... 1.25 --out rent.msig`, says: 'for the members to sign' },
          {
            line: `${own} propose dsvc1q... dsvc1... 1.50 --replaces rent.msig --out rent2.msig`,
            says: 'another amount: of rent.msig and rent2.msig at most one can be paid',
          },
        ],
      },
      (values, [address = '', to = '', amount = ''], terminal) =>
        propose(context(values, terminal), { address, to, amount }, values),
    ),
    walletCommand(
      {
        name: `${own} review`,
        summary: 'what a package does: read this before you sign',
        options: { ...sessionOptions, full },
        operands: [PACKAGE],
        examples: [
          { line: `${own} review rent.msig --json`, says: 'with `template_digest`, which `sign --digest` takes' },
        ],
      },
      (values, [file = ''], terminal) =>
        withSession(context(values, terminal), async (session) => {
          const review = await session.call('multisig_review', { package: readWord(file) });
          return show(context(values, terminal), review, () => seen(context(values, terminal), review, values));
        }),
    ),
    walletCommand(
      {
        name: `${own} sign`,
        summary: 'shows a package, asks, and signs it',
        options: {
          ...sessionOptions,
          out,
          full,
          anyFee,
          digest: text({ help: 'the digest of the review: signs that package and no other, without asking' }),
          trustAmounts: flag({ help: 'sign without a node that says what the inputs hold: the fee may be false' }),
        },
        operands: [PACKAGE],
        examples: [{ line: `${own} sign rent.msig --out rent-bert.msig`, says: 'asks before it signs' }],
      },
      (values, [file = ''], terminal) => sign(context(values, terminal), readWord(file), values.out, values),
    ),
    walletCommand(
      {
        name: `${own} combine`,
        summary: 'puts the signatures of several packages of one payment together',
        options: { ...jsonOption, out },
        operands: [{ name: 'PACKAGE', help: 'files of `sign`', rest: true }],
        examples: [
          { line: `${own} combine rent-bert.msig rent-cleo.msig --out rent-all.msig`, says: 'needs no wallet' },
        ],
      },
      async (values, files, terminal) => {
        const all = await combine(files, values.out);
        terminal.out(
          values.json
            ? `${JSON.stringify(all)}\n`
            : `${values.out}: signed by member ${(all.signed_by as number[]).join(' and ')}; ${all.missing_signatures} more needed\n`,
        );
        return 0;
      },
    ),
    walletCommand(
      {
        name: `${own} send`,
        summary: 'sends a package that enough members have signed; asks first. Sending it again is harmless',
        options: { ...sessionOptions, full, anyFee, yes },
        operands: [PACKAGE],
        examples: [{ line: `${own} send rent-all.msig`, says: 'asks before it sends' }],
      },
      (values, [file = ''], terminal) => send(context(values, terminal), readWord(file), values),
    ),
  ];
  return commandTable(own, 'addresses of several members, and payments from them (docs/wallet.md, Multisig)', commands);
}
