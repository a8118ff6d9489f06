// Questions to a transcript, as "roost export --format jsonl" writes it.
import assert from 'node:assert/strict';

// prompted returns the texts that a person wrote. Those that roost adds carry a note.
export const prompted = (items) => items.filter((i) => i.type === 'user' && !i.note).map((i) => texts(i, 'text'));

export const toolsOf = (items) => items.filter((i) => i.type === 'tool');

// partsOf returns the texts of the blocks of one type.
export const partsOf = (items, type) => items.filter((i) => i.type === 'assistant').flatMap((i) => i.blocks ?? []).filter((b) => b.type === type).map((b) => b.text);

// spoken returns what the model said in answer to each prompt.
export function spoken(items) {
  const answers = [];
  for (const item of items) {
    if (item.type === 'user' && !item.note) answers.push('');
    if (item.type === 'assistant') answers[answers.length - 1] += texts(item, 'text');
  }
  return answers;
}

// whole checks that nothing of a session is open or lost: answers have one of the given
// statuses, and each call has one result, which comes after it.
export function whole(items, statuses = ['complete']) {
  const open = new Set();
  const seen = new Set();
  for (const item of items) {
    if (item.type === 'user') assert.equal(open.size, 0, `calls without a result before ${item.id}: ${[...open]}`);
    if (item.type === 'assistant') {
      assert.ok(statuses.includes(item.status), `answer ${item.id} is ${item.status}: ${item.error ?? ''}`);
      for (const { call } of (item.blocks ?? []).filter((b) => b.type === 'call')) {
        assert.ok(!seen.has(call), `call ${call} comes twice`);
        seen.add(call);
        open.add(call);
      }
    }
    if (item.type === 'tool') {
      assert.ok(open.delete(item.call), `a result without a call, or a second one: ${item.call}`);
      assert.ok(['complete', 'failed', 'aborted'].includes(item.status), `call ${item.call} is ${item.status}`);
    }
  }
  assert.equal(open.size, 0, `calls without a result: ${[...open]}`);
}

const texts = (item, type) => (item.blocks ?? []).filter((b) => b.type === type).map((b) => b.text).join('');
