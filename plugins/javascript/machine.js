// machine.js - matches a regular expression as the language's specification says, as a script that can be stopped (regexp.js
// says why). The expression becomes a program; what is left to be tried lies on a stack, what was saved since on a trail.
//
// A head of a loop, at a place of the text, from which nothing matched is marked once the match has taken long, and not
// tried again: most expressions are then linear in the text.
//
// Invariant X2: what a mark says must not depend on how the head was reached. So inside of loops whose turns are counted,
// inside of lookarounds, and where there are back references, there are no marks.
(function (parts) {
'use strict';

const { modes, types, kinds, MANY, TEXT_END, OTHERS, Tester, Parser, prepare, mayBeEmpty, isAnchored, nativeExec } = parts;
const { IGNORE_CASE, UNICODE, SETS } = modes;
const { CHAR, SEQ, ALT, GROUP, LOOP, ASSERT, LOOK, BACK, STRINGS } = types;
const { BEGIN, END, WORD } = kinds;
const { apply } = Reflect;

const MAX_MARKS = 2 ** 31; // bits
const MAX_STACK = 2 ** 26;

// ---- The program of the machine: four numbers an instruction

const I_CHAR = 0, I_SET = 1, I_CHAR_BACK = 2, I_SET_BACK = 3, I_RUN = 4, I_SPLIT = 5, I_HEAD = 6, I_JUMP = 7, I_SAVE = 8, I_BEGIN = 9,
    I_END = 10, I_WORD = 11, I_BACKREF = 12, I_LOOK = 13, I_LOOK_END = 14, I_START = 15, I_COUNT = 16, I_TURN = 17, I_ACCEPT = 18,
    I_STRINGS = 19;

class Compiler {
    constructor(parser) {
        this.parser = parser;
        this.code = [];
        this.testers = [];
        this.runs = [];
        this.references = [];
        this.registers = 2 * (parser.groups + 1);
        this.heads = 0;
        this.unmarked = parser.backs ? 1 : 0; // how many of what has no marks inside this is in
    }
    emit(op, a = 0, b = 0, c = 0) {
        this.code.push(op, a, b, c);
        return this.code.length - 4;
    }
    get here() {
        return this.code.length;
    }
    tester(tester) {
        let i = this.testers.indexOf(tester);
        if (i < 0)
            i = this.testers.push(tester) - 1;
        return i;
    }
    // A set that is always asked through a tester: a half of a pair, as a character, is not the half of a pair.
    node(node, backward) {
        switch (node.type) {
        case CHAR: {
            const { unicode } = this.parser;
            if (node.tester === null && !(unicode && node.code >= 0xD800 && (node.code < 0xE000 || node.code > 65535)))
                this.emit(backward ? I_CHAR_BACK : I_CHAR, node.code);
            else
                this.emit(backward ? I_SET_BACK : I_SET, this.tester(node.tester ?? new Tester(`\\u{${node.code.toString(16)}}`, UNICODE)));
            break;
        }
        case SEQ:
            for (let i = 0; i < node.items.length; i++)
                this.node(node.items[backward ? node.items.length - 1 - i : i], backward);
            break;
        case ALT: {
            const jumps = [];
            for (let i = 0; i < node.items.length; i++) {
                const last = i === node.items.length - 1;
                const split = last ? -1 : this.emit(I_SPLIT);
                if (!last)
                    this.code[split + 1] = this.here;
                this.node(node.items[i], backward);
                if (!last) {
                    jumps.push(this.emit(I_JUMP));
                    this.code[split + 2] = this.here;
                }
            }
            for (const jump of jumps)
                this.code[jump + 1] = this.here;
            break;
        }
        case GROUP:
            this.emit(I_SAVE, 2 * node.index + (backward ? 1 : 0));
            this.node(node.body, backward);
            this.emit(I_SAVE, 2 * node.index + (backward ? 0 : 1));
            break;
        case LOOP: this.loop(node, backward); break;
        case ASSERT:
            if (node.kind === BEGIN || node.kind === END)
                this.emit(node.kind === BEGIN ? I_BEGIN : I_END, node.multiline ? 1 : 0);
            else
                this.emit(I_WORD, node.kind === WORD ? 1 : 0, this.tester(node.tester));
            break;
        case LOOK: {
            const register = this.registers;
            this.registers += 3;
            this.unmarked++;
            const look = this.emit(I_LOOK, register, node.negative ? 1 : 0);
            this.node(node.body, node.behind);
            this.emit(I_LOOK_END, register, node.negative ? 1 : 0);
            this.code[look + 3] = this.here;
            this.unmarked--;
            break;
        }
        case BACK: {
            const groups = typeof node.groups === 'string' ? this.parser.names.filter(([name]) => name === node.groups).map(([, i]) => i) : node.groups;
            this.references.push({ groups, mode: node.mode, pairs: new Map() });
            this.emit(I_BACKREF, this.references.length - 1, backward ? 1 : 0);
            break;
        }
        case STRINGS:
            this.emit(I_STRINGS, this.tester(node.tester), node.longest, backward ? 1 : 0);
            break;
        }
    }
    clear(node) {
        for (let group = node.from; group <= node.to; group++) {
            this.emit(I_SAVE, 2 * group, 1);
            this.emit(I_SAVE, 2 * group + 1, 1);
        }
    }
    loop(node, backward) {
        const { body, min, max, greedy } = node;
        if (max === 0)
            return;
        if (body.type === CHAR && !backward) {
            const tester = body.tester ?? new Tester(this.parser.unicode ? `\\u{${body.code.toString(16)}}` : `\\u${body.code.toString(16).padStart(4, '0')}`,
                                                     this.parser.unicode ? UNICODE : 0);
            const head = this.unmarked === 0 && max === MANY ? this.heads++ : -1;
            this.runs.push({ min, max, greedy, head });
            this.emit(I_RUN, this.tester(tester), this.runs.length - 1);
            return;
        }
        if (!mayBeEmpty(body) && max === MANY && min <= 1) {
            const head = this.unmarked === 0 ? this.heads++ : -1;
            const jump = min === 0 ? this.emit(I_JUMP) : -1;
            const start = this.here;
            this.clear(node);
            this.node(body, backward);
            if (jump >= 0)
                this.code[jump + 1] = this.here;
            const at = this.emit(I_HEAD, 0, 0, head);
            this.code[at + (greedy ? 1 : 2)] = start;
            this.code[at + (greedy ? 2 : 1)] = this.here;
            return;
        }
        if (!mayBeEmpty(body) && max === 1) {
            if (min === 1) {
                this.node(body, backward);
                return;
            }
            const split = this.emit(I_SPLIT);
            const start = this.here;
            this.node(body, backward);
            this.code[split + (greedy ? 1 : 2)] = start;
            this.code[split + (greedy ? 2 : 1)] = this.here;
            return;
        }
        const register = this.registers;
        const head = this.unmarked === 0 && max === MANY ? this.heads++ : -1;
        this.registers += 2;
        this.unmarked++;
        this.emit(I_START, register);
        this.runs.push({ min, max, greedy, head });
        const count = this.emit(I_COUNT, register, this.runs.length - 1);
        this.emit(I_TURN, register);
        this.clear(node);
        this.node(body, backward);
        this.emit(I_JUMP, count);
        this.code[count + 3] = this.here;
        this.unmarked--;
    }
}

const isHigh = (code) => (code & 0xFC00) === 0xD800;
const isLow = (code) => (code & 0xFC00) === 0xDC00;
const isLineEnd = (code) => code === 10 || code === 13 || code === 0x2028 || code === 0x2029;

// ---- The machine

class Machine {
    constructor(source, mode) {
        const parser = new Parser(source, mode);
        this.root = parser.parse();
        prepare(this.root);
        const compiler = new Compiler(parser);
        compiler.node(this.root, false);
        compiler.emit(I_ACCEPT);
        this.code = Int32Array.from(compiler.code);
        this.testers = compiler.testers;
        this.runs = compiler.runs;
        this.references = compiler.references;
        this.heads = compiler.heads;
        this.groups = parser.groups;
        this.names = parser.names;
        this.unicode = parser.unicode;
        this.anchored = isAnchored(this.root);
        this.first = this.root.nullable || this.root.width === 0 ? null : this.root.first;
        this.registers = new Int32Array(compiler.registers);
        this.eager = false; // for tests: marks from the start
        this.marks = null;
        this.steps = 0;
        this.stack = new Int32Array(1024);
        this.trail = new Int32Array(1024);
    }
    // The registers of the first match at or after `from` (with `sticky`: at it), or null.
    search(text, from, sticky) {
        const n = text.length;
        const { first, unicode } = this;
        this.registers.fill(-1);
        this.marks = null;
        this.steps = this.eager ? Infinity : 0;
        this.consider(n);
        for (let at = from; at <= n; at++) {
            if (first !== null) {
                const code = at < n ? text.charCodeAt(at) : -1;
                if (first[code < 0 ? TEXT_END : code < 128 ? code : OTHERS] === 0) {
                    if (sticky)
                        break;
                    continue;
                }
            }
            if (unicode && at > 0 && at < n && isLow(text.charCodeAt(at)) && isHigh(text.charCodeAt(at - 1)))
                continue;
            const end = this.run(text, at);
            if (end >= 0) {
                this.registers[0] = at;
                this.registers[1] = end;
                this.rest();
                return this.registers;
            }
            if (sticky || this.anchored)
                break;
        }
        this.rest();
        return null;
    }
    // What a large match needed is not kept.
    rest() {
        this.marks = null;
        if (this.stack.length > 65536)
            this.stack = new Int32Array(1024);
        if (this.trail.length > 65536)
            this.trail = new Int32Array(1024);
    }
    // Every 4096 steps or so: is it time to write down what has failed?
    consider(n) {
        if (this.marks === null && this.heads > 0 && this.steps > 8 * n + 4096 && this.heads * (n + 1) <= MAX_MARKS)
            this.marks = new Uint8Array(Math.ceil(this.heads * (n + 1) / 8));
    }
    grow(array) {
        if (array.length >= MAX_STACK)
            throw new RangeError('a regular expression needs more than 256 MiB to match a text: make it simpler, or the text shorter');
        const larger = new Int32Array(2 * array.length);
        larger.set(array);
        return larger;
    }
    same(reference, a, b) {
        if (a === b)
            return true;
        if (!(reference.mode & IGNORE_CASE))
            return false;
        const key = a * 0x110000 + b;
        let is = reference.pairs.get(key);
        if (is === undefined) {
            const hex = a.toString(16);
            is = new Tester(this.unicode ? `\\u{${hex}}` : `\\u${hex.padStart(4, '0')}`, reference.mode & ~SETS | (this.unicode ? UNICODE : 0)).ask(b);
            reference.pairs.set(key, is);
        }
        return is;
    }
    // Where the text of the group ends if it stands at `pos`, or -1.
    reference(reference, text, pos, backward) {
        const { registers, unicode } = this;
        for (const group of reference.groups) {
            const from = registers[2 * group], to = registers[2 * group + 1];
            if (from < 0 || to < 0)
                continue;
            const length = to - from;
            const start = backward ? pos - length : pos;
            if (start < 0 || start + length > text.length)
                return -1;
            for (let i = 0; i < length; i++) {
                let a = text.charCodeAt(from + i), b = text.charCodeAt(start + i);
                if (unicode && a !== b) {
                    if (isLow(a) && i > 0 && isHigh(text.charCodeAt(from + i - 1)))
                        continue;
                    a = text.codePointAt(from + i);
                    b = text.codePointAt(start + i);
                } else if (unicode && isHigh(a) && reference.mode & IGNORE_CASE) {
                    a = text.codePointAt(from + i);
                    b = text.codePointAt(start + i);
                }
                if (!this.same(reference, a, b))
                    return -1;
            }
            return backward ? start : start + length;
        }
        return pos;
    }
    run(text, at) {
        const { code, testers, runs, registers, unicode } = this;
        const n = text.length;
        let { stack, trail, marks } = this;
        let pc = 0, pos = at, sp = 0, tp = 0, steps = 0, ok = true;
        for (;;) {
            if (!ok) {
                // Back to what was left to be tried.
                ok = true;
                if ((++steps & 4095) === 0) {
                    this.steps += 4096;
                    this.consider(n);
                    marks = this.marks;
                }
                if (sp === 0) {
                    while (tp > 0) {
                        tp -= 2;
                        registers[trail[tp]] = trail[tp + 1];
                    }
                    this.stack = stack;
                    this.trail = trail;
                    this.steps += steps & 4095;
                    return -1;
                }
                sp -= 4;
                pc = stack[sp];
                pos = stack[sp + 1];
                for (const height = stack[sp + 2]; tp > height;) {
                    tp -= 2;
                    registers[trail[tp]] = trail[tp + 1];
                }
                if (pc < 0 && code[pc = ~pc] === I_RUN) {
                    // The run gives one back, or takes one more.
                    const run = runs[code[pc + 2]];
                    const limit = stack[sp + 3];
                    if (run.greedy) {
                        pos -= unicode && pos - 2 >= limit && isLow(text.charCodeAt(pos - 1)) && isHigh(text.charCodeAt(pos - 2)) ? 2 : 1;
                        if (pos > limit) {
                            stack[sp + 1] = pos;
                            sp += 4;
                        }
                    } else {
                        const c = pos < n ? (unicode ? text.codePointAt(pos) : text.charCodeAt(pos)) : -1;
                        if (c < 0 || !testers[code[pc + 1]].test(c)) {
                            ok = false;
                            continue;
                        }
                        pos += c > 65535 ? 2 : 1;
                        if (marks !== null && run.head >= 0) {
                            const bit = run.head * (n + 1) + pos;
                            if (marks[bit >>> 3] & 1 << (bit & 7)) {
                                ok = false;
                                continue;
                            }
                            marks[bit >>> 3] |= 1 << (bit & 7);
                        }
                        if (limit > 1) {
                            stack[sp + 1] = pos;
                            stack[sp + 3] = limit === MANY ? MANY : limit - 1;
                            sp += 4;
                        }
                    }
                    pc += 4;
                } else if (stack[sp] < 0) {
                    // The next shorter one.
                    const end = this.strings(text, pos, code[pc + 3], testers[code[pc + 1]], stack[sp + 3] - 1);
                    if (end < 0) {
                        ok = false;
                        continue;
                    }
                    if (end > 0) {
                        stack[sp + 3] = end;
                        sp += 4;
                    }
                    pos += code[pc + 3] ? -end : end;
                    pc += 4;
                }
            }
            if (sp + 8 > stack.length)
                stack = this.grow(stack);
            if (tp + 8 > trail.length)
                trail = this.grow(trail);
            switch (code[pc]) {
            case I_CHAR:
                if (pos < n && text.charCodeAt(pos) === code[pc + 1]) {
                    pos++;
                    pc += 4;
                } else {
                    ok = false;
                }
                break;
            case I_SET: {
                const c = pos < n ? (unicode ? text.codePointAt(pos) : text.charCodeAt(pos)) : -1;
                if (c >= 0 && testers[code[pc + 1]].test(c)) {
                    pos += c > 65535 ? 2 : 1;
                    pc += 4;
                } else {
                    ok = false;
                }
                break;
            }
            case I_CHAR_BACK:
                if (pos > 0 && text.charCodeAt(pos - 1) === code[pc + 1]) {
                    pos--;
                    pc += 4;
                } else {
                    ok = false;
                }
                break;
            case I_SET_BACK: {
                let c = pos > 0 ? text.charCodeAt(pos - 1) : -1;
                if (unicode && pos > 1 && isLow(c) && isHigh(text.charCodeAt(pos - 2)))
                    c = text.codePointAt(pos - 2);
                if (c >= 0 && testers[code[pc + 1]].test(c)) {
                    pos -= c > 65535 ? 2 : 1;
                    pc += 4;
                } else {
                    ok = false;
                }
                break;
            }
            case I_RUN: {
                const tester = testers[code[pc + 1]], run = runs[code[pc + 2]];
                const { min, max, head } = run;
                const start = pos;
                let count = 0;
                for (; count < min && ok; count++) {
                    const c = pos < n ? (unicode ? text.codePointAt(pos) : text.charCodeAt(pos)) : -1;
                    if (c < 0 || !tester.test(c))
                        ok = false;
                    else
                        pos += c > 65535 ? 2 : 1;
                }
                const base = head >= 0 && marks !== null ? head * (n + 1) : -1;
                if (ok && base >= 0) {
                    const bit = base + pos;
                    ok = (marks[bit >>> 3] & 1 << (bit & 7)) === 0;
                    marks[bit >>> 3] |= 1 << (bit & 7);
                }
                if (!ok)
                    break;
                if (!run.greedy) {
                    if (max > min) {
                        stack[sp] = ~pc; // a retry of this instruction
                        stack[sp + 1] = pos;
                        stack[sp + 2] = tp;
                        stack[sp + 3] = max === MANY ? MANY : max - min;
                        sp += 4;
                    }
                    pc += 4;
                    break;
                }
                const least = pos;
                while (count < max && pos < n) {
                    const c = unicode ? text.codePointAt(pos) : text.charCodeAt(pos);
                    if (!tester.test(c))
                        break;
                    const next = pos + (c > 65535 ? 2 : 1);
                    if (base >= 0) {
                        const bit = base + next;
                        if (marks[bit >>> 3] & 1 << (bit & 7))
                            break; // from there on all was tried
                        marks[bit >>> 3] |= 1 << (bit & 7);
                    }
                    pos = next;
                    count++;
                }
                if (pos - start > 64) {
                    this.steps += pos - start;
                    this.consider(n);
                    marks = this.marks;
                }
                if (pos > least) {
                    stack[sp] = ~pc; // a retry of this instruction
                    stack[sp + 1] = pos;
                    stack[sp + 2] = tp;
                    stack[sp + 3] = least;
                    sp += 4;
                }
                pc += 4;
                break;
            }
            case I_HEAD:
                if (marks !== null && code[pc + 3] >= 0) {
                    const bit = code[pc + 3] * (n + 1) + pos;
                    if (marks[bit >>> 3] & 1 << (bit & 7)) {
                        ok = false;
                        break;
                    }
                    marks[bit >>> 3] |= 1 << (bit & 7);
                }
                // falls through
            case I_SPLIT:
                stack[sp] = code[pc + 2];
                stack[sp + 1] = pos;
                stack[sp + 2] = tp;
                sp += 4;
                pc = code[pc + 1];
                break;
            case I_JUMP:
                pc = code[pc + 1];
                break;
            case I_SAVE: {
                const register = code[pc + 1], value = code[pc + 2] ? -1 : pos;
                if (registers[register] !== value) {
                    trail[tp] = register;
                    trail[tp + 1] = registers[register];
                    tp += 2;
                    registers[register] = value;
                }
                pc += 4;
                break;
            }
            case I_BEGIN:
                ok = pos === 0 || (code[pc + 1] !== 0 && isLineEnd(text.charCodeAt(pos - 1)));
                pc += 4;
                break;
            case I_END:
                ok = pos === n || (code[pc + 1] !== 0 && isLineEnd(text.charCodeAt(pos)));
                pc += 4;
                break;
            case I_WORD: {
                const word = testers[code[pc + 2]];
                const before = pos > 0 && word.test(text.charCodeAt(pos - 1)), after = pos < n && word.test(text.charCodeAt(pos));
                ok = (before !== after) === (code[pc + 1] === 1);
                pc += 4;
                break;
            }
            case I_BACKREF: {
                pos = this.reference(this.references[code[pc + 1]], text, pos, code[pc + 2] === 1);
                ok = pos >= 0;
                pc += 4;
                break;
            }
            case I_STRINGS: {
                const end = this.strings(text, pos, code[pc + 3], testers[code[pc + 1]], code[pc + 2]);
                if (end < 0) {
                    ok = false;
                    break;
                }
                if (end > 0) {
                    stack[sp] = ~pc; // a retry of this instruction
                    stack[sp + 1] = pos;
                    stack[sp + 2] = tp;
                    stack[sp + 3] = end;
                    sp += 4;
                }
                pos += code[pc + 3] ? -end : end;
                pc += 4;
                break;
            }
            case I_LOOK: {
                const register = code[pc + 1];
                registers[register] = sp;
                registers[register + 1] = pos;
                registers[register + 2] = tp;
                if (code[pc + 2] === 1) {
                    stack[sp] = code[pc + 3];
                    stack[sp + 1] = pos;
                    stack[sp + 2] = tp;
                    sp += 4;
                }
                pc += 4;
                break;
            }
            case I_LOOK_END: {
                const register = code[pc + 1];
                sp = registers[register];
                pos = registers[register + 1];
                if (code[pc + 2] === 1)
                    ok = false; // what was saved since is undone by whoever is gone back to
                pc += 4;
                break;
            }
            case I_START: {
                const register = code[pc + 1];
                trail[tp] = register;
                trail[tp + 1] = registers[register];
                trail[tp + 2] = register + 1;
                trail[tp + 3] = registers[register + 1];
                tp += 4;
                registers[register] = 0;
                registers[register + 1] = -1;
                pc += 4;
                break;
            }
            case I_COUNT: {
                const register = code[pc + 1], run = runs[code[pc + 2]];
                const count = registers[register];
                if (count < run.min) {
                    pc += 4;
                } else if (count > run.min && registers[register + 1] === pos) {
                    ok = false; // a turn that got nowhere
                } else if (count >= run.max) {
                    pc = code[pc + 3];
                } else {
                    if (marks !== null && run.head >= 0) {
                        const bit = run.head * (n + 1) + pos;
                        if (marks[bit >>> 3] & 1 << (bit & 7)) {
                            ok = false;
                            break;
                        }
                        marks[bit >>> 3] |= 1 << (bit & 7);
                    }
                    stack[sp] = run.greedy ? code[pc + 3] : pc + 4;
                    stack[sp + 1] = pos;
                    stack[sp + 2] = tp;
                    sp += 4;
                    pc = run.greedy ? pc + 4 : code[pc + 3];
                }
                break;
            }
            case I_TURN: {
                const register = code[pc + 1];
                trail[tp] = register;
                trail[tp + 1] = registers[register];
                trail[tp + 2] = register + 1;
                trail[tp + 3] = registers[register + 1];
                tp += 4;
                registers[register]++;
                registers[register + 1] = pos;
                pc += 4;
                break;
            }
            case I_ACCEPT:
                this.stack = stack;
                this.trail = trail;
                return pos;
            }
        }
    }
    // The longest of at most `longest` units that such a class of strings matches here; -1: none.
    strings(text, pos, backward, tester, longest) {
        for (let size = Math.min(longest, backward ? pos : text.length - pos); size >= 0; size--) {
            const part = backward ? text.slice(pos - size, pos) : text.slice(pos, pos + size);
            if (apply(nativeExec, tester.expression, [part]) !== null)
                return size;
        }
        return -1;
    }
}

return { ...parts, Machine };
})
