/** `svc-wallet chat ...`: asks for chats, accepts them, writes and reads. What others wrote is shown in marked rows, with control characters made visible. */
import { integer, text } from '../../runtime/command-line/command-line.ts';
import { type Command, commandTable } from '../../runtime/program.ts';
import {
  all,
  type Context,
  confirmed,
  newRequestId,
  show,
  tellRepeated,
  warnOfStaleFigures,
  withSession,
} from './commands.ts';
import { foreignRows, visible } from './foreign-text.ts';
import { sessionOptions } from './options.ts';
import { terminalPrompt } from './prompt.ts';
import type { Fields } from './session.ts';
import { walletCommand, yes } from './wallet-command.ts';

const sendOptions = {
  ...sessionOptions,
  yes,
  requestId: text({ help: 'your own id for this command: the same command with the same id never pays twice' }),
} as const;

const CHAT = { name: 'CHAT', help: 'its name, or the other’s address' } as const;

type Sending = {
  readonly method: string;
  readonly params: Fields;
  readonly yes: boolean;
  readonly requestId: string | undefined;
  readonly question: string;
};

/** Shows the other party from the wallet's own records: a chat's name may be 32 meaningless characters. */
const partnerText = ({ peer_address: peer, requester_messenger_id: id }: Fields): string =>
  (peer === undefined ? '' : `with          ${peer}\n`) +
  (id === undefined ? '' : `messenger id  ${id} (compare it with the other person, if it matters who they are)\n`);

/** Pays one atom and a fee, after confirmation. */
const pay = (context: Context, { method, params, yes: isSure, requestId: given, question }: Sending): Promise<number> =>
  withSession(context, async (session) => {
    const requestId = given ?? newRequestId();
    const order = { ...params, request_id: requestId };
    const quote = await session.call(method, { ...order, dry_run: true });
    const isNew = quote.duplicate !== true;
    if (isNew && !context.values.json) context.terminal.err(partnerText(quote));
    if (isNew && !(await confirmed(context, isSure, `${question}, one atom and a fee of ${quote.fee}?`))) return 1;
    context.terminal.err(`request ${requestId}\n`);
    const result = await session.call(method, order);
    if (result.duplicate === true) tellRepeated(context, 'payment', result);
    return show(context, result, () => `sent, fee ${result.fee}\ntransaction ${result.transaction}\n`);
  });

const listChats = (context: Context): Promise<number> =>
  withSession(context, async (session) => {
    await warnOfStaleFigures(context, session);
    const result = await session.call('chats', {});
    const chats = result.chats as Fields[];
    return show(context, result, () =>
      chats.length === 0
        ? 'no chats\n'
        : chats
            .map(
              ({ chat, state, peer_address: peer, requester_messenger_id: id, requested_by: by }) =>
                `${chat}  ${String(state).padEnd(9)}  ${peer}\n${' '.repeat(34)}asked by ${by}, messenger id ${id}\n`,
            )
            .join(''),
    );
  });

/** A message, oldest row first: each row says who wrote it. */
export function messageText({ own, sent_millis: sent, text: said }: Fields, columns?: number): string {
  const time = new Date(Math.min(Number(sent), 8.64e15)).toISOString();
  const room = { head: `${time}  `, ...(columns === undefined ? {} : { columns }) };
  const rows = foreignRows(own ? 'me   | ' : 'them | ', String(said ?? '(cannot be read)'), room);
  return `${rows.join('\n')}\n`;
}

const readChat = (context: Context, chat: string, limit: number): Promise<number> =>
  withSession(context, async (session) => {
    await warnOfStaleFigures(context, session);
    const messages = (await all(session, 'chat_messages', 'messages', Number.MAX_SAFE_INTEGER, { chat })).slice(-limit);
    return show(context, { messages }, () =>
      messages.map((message) => messageText(message, context.prompt.columns)).join(''),
    );
  });

export function chatCommands(program: string): Command {
  const name = `${program} chat`;
  const commands = [
    walletCommand(
      { name: `${name} list`, summary: 'chats and requests that wait', options: sessionOptions },
      (values, _, terminal) => listChats({ values, terminal, prompt: terminalPrompt }),
    ),
    walletCommand(
      {
        name: `${name} request`,
        summary: 'invites the owner of an address to a chat; asks first',
        options: {
          ...sendOptions,
          from: text({
            help: 'your address that asks (default: that of the largest output)',
            placeholder: 'ADDRESS',
          }),
        },
        operands: [{ name: 'ADDRESS', help: 'who is asked' }],
        examples: [{ line: `${name} request dsvc1...`, says: 'shows the fee and asks before it pays' }],
      },
      (values, [to = ''], terminal) => {
        const params = { to, ...(values.from === undefined ? {} : { from_address: values.from }) };
        const { yes: isSure, requestId } = values;
        const sending = { method: 'chat_request', params, yes: isSure, requestId, question: `Ask ${to} for a chat` };
        return pay({ values, terminal, prompt: terminalPrompt }, sending);
      },
    ),
    walletCommand(
      {
        name: `${name} accept`,
        summary: 'accepts a request; asks first',
        options: sendOptions,
        operands: [CHAT],
        examples: [{ line: `${name} accept dsvc1...`, says: 'shows address and messenger id, then asks' }],
      },
      (values, [chat = ''], terminal) => {
        const { yes: isSure, requestId } = values;
        const question = `Accept the chat ${visible(chat)}`;
        const sending = { method: 'chat_accept', params: { chat }, yes: isSure, requestId, question };
        return pay({ values, terminal, prompt: terminalPrompt }, sending);
      },
    ),
    walletCommand(
      {
        name: `${name} send`,
        summary: 'writes a message; asks first',
        options: sendOptions,
        operands: [CHAT, { name: 'TEXT', help: 'without it, standard input', optional: true }],
        examples: [{ line: `${name} send dsvc1... 'see you at noon'`, says: 'asks before it sends' }],
      },
      async (values, [chat = '', given], terminal) => {
        const said = given ?? (await terminalPrompt.readAll()).replace(/\r?\n$/, '');
        const { yes: isSure, requestId } = values;
        const question = `Write ${new TextEncoder().encode(said).length} bytes to ${visible(chat)}`;
        const sending = { method: 'chat_send', params: { chat, text: said }, yes: isSure, requestId, question };
        return pay({ values, terminal, prompt: terminalPrompt }, sending);
      },
    ),
    walletCommand(
      {
        name: `${name} read`,
        summary: 'what was said, oldest first',
        options: {
          ...sessionOptions,
          limit: integer({ help: 'newest messages to show', min: 1, max: 1_000_000, default: 100 }),
        },
        operands: [CHAT],
        examples: [{ line: `${name} read dsvc1... --limit 20`, says: 'the newest twenty' }],
      },
      (values, [chat = ''], terminal) => readChat({ values, terminal, prompt: terminalPrompt }, chat, values.limit),
    ),
  ];
  return commandTable(name, 'end-to-end encrypted chats over payments of one atom', commands);
}
