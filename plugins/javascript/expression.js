// expression.js - a regular expression, taken apart: what it consists of, and how long the engine could need for it.
//
// The engine has accepted the expression: what is met here is right, and means what it means there. Whether one character
// matches a class is always asked of the engine, so case folding, properties and the like have one definition.
//
// Invariant X1: bound(n) is not below the number of steps that the engine takes for one exec on n characters.
(function () {
'use strict';

const { apply } = Reflect;
const NativeRegExp = RegExp;
const nativeExec = RegExp.prototype.exec;
const modes = { IGNORE_CASE: 1, MULTILINE: 2, DOT_ALL: 4, UNICODE: 8, SETS: 16 };
const { IGNORE_CASE, MULTILINE, DOT_ALL, UNICODE, SETS } = modes;
const MANY = 2 ** 31 - 1; // "without end"

// ---- One character

// Is a character in a class? Asked of the engine once per character and class.
class Tester {
    constructor(source, mode) {
        this.expression = new NativeRegExp(`^(?:${source})$`, (mode & IGNORE_CASE ? 'i' : '') + (mode & DOT_ALL ? 's' : '') +
            (mode & SETS ? 'v' : mode & UNICODE ? 'u' : ''));
        this.latin = new Int8Array(256); // 0: not asked yet, 1: no, 2: yes
        this.wide = null;
        this.astral = null;
        this.ascii = false;
    }
    ask(code) {
        return apply(nativeExec, this.expression, [String.fromCodePoint(code)]) !== null;
    }
    test(code) {
        if (code < 256) {
            if (this.latin[code] === 0)
                this.latin[code] = this.ask(code) ? 2 : 1;
            return this.latin[code] === 2;
        }
        if (code < 65536) {
            if (this.wide === null)
                this.wide = new Int8Array(65536);
            if (this.wide[code] === 0)
                this.wide[code] = this.ask(code) ? 2 : 1;
            return this.wide[code] === 2;
        }
        if (this.astral === null)
            this.astral = new Map();
        let is = this.astral.get(code);
        if (is === undefined)
            this.astral.set(code, is = this.ask(code));
        return is;
    }
}

// ---- Parsing

const types = { EMPTY: 0, CHAR: 1, SEQ: 2, ALT: 3, GROUP: 4, LOOP: 5, ASSERT: 6, LOOK: 7, BACK: 8, STRINGS: 9 };
const { EMPTY, CHAR, SEQ, ALT, GROUP, LOOP, ASSERT, LOOK, BACK, STRINGS } = types;
const kinds = { BEGIN: 0, END: 1, WORD: 2, NOT_WORD: 3 };
const { BEGIN, END, WORD, NOT_WORD } = kinds;
const PROPERTIES_OF_STRINGS = /^\\p\{(?:Basic_Emoji|Emoji_Keycap_Sequence|RGI_(?:Modifier|Flag|Emoji_Modifier|Emoji_Flag|Emoji_Tag|Emoji_ZWJ)_Sequence|RGI_Emoji)\}$/;
// Classes that hold nothing beyond ASCII (but for what folds into it, in Unicode).
const ASCII_ONLY = /^(?:\\[wdnrtfv]|\[(?!\^)(?:[ -Z_-~]|\\[wdnrtfv.*+?^$()[\]{}|/-])*\])$/;
const isDigit = (c) => c >= '0' && c <= '9';
const isOctal = (c) => c >= '0' && c <= '7';
const isHex = (text) => apply(nativeExec, /^[0-9a-fA-F]+$/, [text]) !== null;
const isLetter = (c) => (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

class Parser {
    constructor(source, mode) {
        this.source = source;
        this.mode = mode;
        this.unicode = (mode & (UNICODE | SETS)) !== 0;
        this.at = 0;
        this.testers = new Map();
        this.group = 0; // the last that was opened
        this.names = []; // [name, group]
        this.backs = false;
        this.count();
    }
    // How many groups there are, and whether some have names: an escape before them may mean them.
    count() {
        this.groups = 0;
        this.named = false;
        const { source } = this;
        for (let i = 0; i < source.length; i++) {
            const c = source[i];
            if (c === '\\') {
                i++;
            } else if (c === '[') {
                i = this.classEnd(i) - 1;
            } else if (c === '(') {
                if (source[i + 1] !== '?') {
                    this.groups++;
                } else if (source[i + 2] === '<' && source[i + 3] !== '=' && source[i + 3] !== '!') {
                    this.groups++;
                    this.named = true;
                }
            }
        }
    }
    // Past the class that begins at i.
    classEnd(i) {
        const { source } = this;
        let depth = 0;
        for (; i < source.length; i++) {
            if (source[i] === '\\')
                i++;
            else if (source[i] === '[' && (depth === 0 || this.mode & SETS))
                depth++;
            else if (source[i] === ']' && --depth === 0)
                return i + 1;
        }
        return i;
    }
    parse() {
        return this.alternatives(this.mode);
    }
    alternatives(mode) {
        const items = [this.sequence(mode)];
        while (this.source[this.at] === '|') {
            this.at++;
            items.push(this.sequence(mode));
        }
        return items.length === 1 ? items[0] : { type: ALT, items };
    }
    sequence(mode) {
        const items = [];
        while (this.at < this.source.length && this.source[this.at] !== '|' && this.source[this.at] !== ')') {
            const from = this.group;
            items.push(this.quantified(this.term(mode), from));
        }
        return items.length === 1 ? items[0] : { type: SEQ, items };
    }
    quantified(body, from) {
        const { source } = this;
        let min, max;
        switch (source[this.at]) {
        case '*': min = 0, max = MANY, this.at++; break;
        case '+': min = 1, max = MANY, this.at++; break;
        case '?': min = 0, max = 1, this.at++; break;
        case '{': {
            const found = apply(nativeExec, /^\{([0-9]+)(?:(,)([0-9]*))?\}/, [source.slice(this.at, this.at + 1000)]);
            if (found === null)
                return body;
            min = Math.min(Number(found[1]), MANY);
            max = found[2] === undefined ? min : found[3] === '' ? MANY : Math.min(Number(found[3]), MANY);
            this.at += found[0].length;
            break;
        }
        default: return body;
        }
        const greedy = source[this.at] !== '?';
        if (!greedy)
            this.at++;
        return { type: LOOP, body, min, max, greedy, from: from + 1, to: this.group };
    }
    // A character, known by its number.
    literal(code, mode) {
        if (!(mode & IGNORE_CASE))
            return { type: CHAR, code, tester: null };
        const hex = code.toString(16);
        return this.set(this.unicode ? `\\u{${hex}}` : `\\u${hex.padStart(4, '0')}`, mode);
    }
    set(source, mode) {
        const key = (mode & ~MULTILINE) + source;
        let tester = this.testers.get(key);
        if (tester === undefined) {
            this.testers.set(key, tester = new Tester(source, mode));
            tester.ascii = apply(nativeExec, ASCII_ONLY, [source]) !== null && !(this.unicode && mode & IGNORE_CASE);
        }
        return { type: CHAR, code: -1, tester };
    }
    strings(source, mode) {
        return { type: STRINGS, tester: new Tester(source, mode), longest: Math.max(source.length, 64) };
    }
    term(mode) {
        const { source } = this;
        const start = this.at;
        const c = source[this.at++];
        switch (c) {
        case '^': return { type: ASSERT, kind: BEGIN, multiline: (mode & MULTILINE) !== 0 };
        case '$': return { type: ASSERT, kind: END, multiline: (mode & MULTILINE) !== 0 };
        case '(': return this.bracket(mode);
        case '.': return this.set('.', mode);
        case '[':
            this.at = this.classEnd(start);
            return mode & SETS && apply(nativeExec, /\\q|\\p/, [source.slice(start, this.at)]) !== null ? this.strings(source.slice(start, this.at), mode)
                : this.set(source.slice(start, this.at), mode);
        case '\\': return this.escape(mode);
        }
        const code = this.unicode ? source.codePointAt(start) : source.charCodeAt(start);
        if (code > 65535)
            this.at++;
        return this.literal(code, mode);
    }
    close(node) {
        this.at++; // )
        return node;
    }
    bracket(mode) {
        const { source } = this;
        if (source[this.at] !== '?') {
            const index = ++this.group;
            return this.close({ type: GROUP, index, body: this.alternatives(mode) });
        }
        const from = this.group + 1;
        const look = (size, behind, negative) => {
            this.at += size;
            const body = this.alternatives(mode);
            return this.close({ type: LOOK, behind, negative, body, from, to: this.group });
        };
        if (source.startsWith('?=', this.at))
            return look(2, false, false);
        if (source.startsWith('?!', this.at))
            return look(2, false, true);
        if (source.startsWith('?<=', this.at))
            return look(3, true, false);
        if (source.startsWith('?<!', this.at))
            return look(3, true, true);
        if (source.startsWith('?<', this.at)) {
            const end = source.indexOf('>', this.at);
            const index = ++this.group;
            this.names.push([this.name(source.slice(this.at + 2, end)), index]);
            this.at = end + 1;
            return this.close({ type: GROUP, index, body: this.alternatives(mode) });
        }
        // (?:, or (?ims-ims:
        let on = true;
        for (this.at++; source[this.at] !== ':'; this.at++) {
            const c = source[this.at];
            const bit = c === 'i' ? IGNORE_CASE : c === 'm' ? MULTILINE : c === 's' ? DOT_ALL : 0;
            if (c === '-')
                on = false;
            else
                mode = on ? mode | bit : mode & ~bit;
        }
        this.at++;
        return this.close(this.alternatives(mode));
    }
    name(text) {
        return !text.includes('\\') ? text : text.replace(/\\u\{([0-9a-fA-F]+)\}|\\u([0-9a-fA-F]{4})/g, (all, long, short) =>
            long === undefined ? String.fromCharCode(parseInt(short, 16)) : String.fromCodePoint(parseInt(long, 16)));
    }
    back(groups, mode) {
        this.backs = true;
        return { type: BACK, groups, mode };
    }
    escape(mode) {
        const { source } = this;
        const start = this.at - 1;
        const c = source[this.at++];
        switch (c) {
        case 'b': return { type: ASSERT, kind: WORD, tester: this.set('\\w', mode).tester };
        case 'B': return { type: ASSERT, kind: NOT_WORD, tester: this.set('\\w', mode).tester };
        case 'd': case 'D': case 'w': case 'W': case 's': case 'S': return this.set(`\\${c}`, mode);
        case 'f': return this.literal(12, mode);
        case 'n': return this.literal(10, mode);
        case 'r': return this.literal(13, mode);
        case 't': return this.literal(9, mode);
        case 'v': return this.literal(11, mode);
        case 'p': case 'P':
            if (this.unicode) {
                this.at = source.indexOf('}', this.at) + 1;
                const text = source.slice(start, this.at);
                return mode & SETS && apply(nativeExec, PROPERTIES_OF_STRINGS, [text]) !== null ? this.strings(text, mode) : this.set(text, mode);
            }
            break;
        case 'k':
            if (this.unicode || this.named) {
                const end = source.indexOf('>', this.at);
                const name = this.name(source.slice(this.at + 1, end));
                this.at = end + 1;
                return this.back(name, mode); // which groups have it is known in the end
            }
            break;
        case 'c':
            if (this.at < source.length && isLetter(source[this.at]))
                return this.literal(source.charCodeAt(this.at++) % 32, mode);
            this.at = start + 1; // the backslash stands for itself
            return this.literal(92, mode);
        case 'x': {
            const hex = source.slice(this.at, this.at + 2);
            if (hex.length === 2 && isHex(hex)) {
                this.at += 2;
                return this.literal(parseInt(hex, 16), mode);
            }
            break;
        }
        case 'u': {
            const code = this.unicodeEscape();
            if (code >= 0)
                return this.literal(code, mode);
            break;
        }
        }
        if (c >= '1' && c <= '9') {
            let end = this.at;
            while (end < source.length && isDigit(source[end]))
                end++;
            const index = Number(source.slice(start + 1, end));
            if (this.unicode || index <= this.groups) {
                this.at = end;
                return this.back([index], mode);
            }
        }
        if (isOctal(c)) {
            let end = this.at;
            const digits = c <= '3' ? 3 : 2;
            while (end < source.length && end - start - 1 < digits && isOctal(source[end]))
                end++;
            this.at = end;
            return this.literal(parseInt(source.slice(start + 1, end), 8), mode);
        }
        return this.literal(source.charCodeAt(start + 1), mode);
    }
    unicodeEscape() {
        const { source } = this;
        if (this.unicode && source[this.at] === '{') {
            const end = source.indexOf('}', this.at);
            const code = parseInt(source.slice(this.at + 1, end), 16);
            this.at = end + 1;
            return code;
        }
        const four = (at) => {
            const hex = source.slice(at, at + 4);
            return hex.length === 4 && isHex(hex) ? parseInt(hex, 16) : -1;
        };
        const code = four(this.at);
        if (code < 0)
            return -1;
        this.at += 4;
        if (this.unicode && code >= 0xD800 && code < 0xDC00 && source.startsWith('\\u', this.at)) {
            const low = four(this.at + 2);
            if (low >= 0xDC00 && low < 0xE000) {
                this.at += 6;
                return (code - 0xD800) * 1024 + low - 0xDC00 + 65536;
            }
        }
        return code;
    }
}

// ---- The bound

// Sets of characters: 128 of ASCII, one for all others, one for the end of the text.
const OTHERS = 128, TEXT_END = 129, SET_SIZE = 130;
const newSet = (fill) => new Uint8Array(SET_SIZE).fill(fill);
const NONE = newSet(0), ALL = newSet(1);
const isDisjoint = (a, b) => {
    for (let i = 0; i < SET_SIZE; i++)
        if (a[i] & b[i])
            return false;
    return true;
};
const union = (a, b) => {
    const made = new Uint8Array(SET_SIZE);
    for (let i = 0; i < SET_SIZE; i++)
        made[i] = a[i] | b[i];
    return made;
};

// What a part can begin with, and whether it can match nothing without asking for anything: noted in it.
function prepare(node) {
    switch (node.type) {
    case CHAR: {
        node.nullable = false;
        node.width = 1;
        node.first = newSet(0);
        for (let code = 0; code < 128; code++)
            node.first[code] = node.tester === null ? code === node.code : node.tester.test(code);
        node.first[OTHERS] = node.tester !== null ? !node.tester.ascii : node.code > 127;
        break;
    }
    case SEQ:
    case ALT: {
        for (const item of node.items)
            prepare(item);
        const sequence = node.type === SEQ;
        node.nullable = sequence ? node.items.every((item) => item.nullable) : node.items.some((item) => item.nullable);
        node.width = sequence ? node.items.reduce((sum, item) => sum + item.width, 0) : Math.min(...node.items.map((item) => item.width));
        node.first = NONE;
        for (const item of node.items) {
            node.first = union(node.first, item.first);
            if (sequence && !item.nullable)
                break;
        }
        break;
    }
    case GROUP:
        prepare(node.body);
        ({ nullable: node.nullable, width: node.width, first: node.first } = node.body);
        break;
    case LOOP:
        prepare(node.body);
        node.nullable = node.min === 0 || node.body.nullable;
        node.width = Math.min(node.min * node.body.width, MANY);
        node.first = node.max === 0 ? NONE : node.body.first;
        break;
    case ASSERT:
        node.nullable = false; // it asks
        node.width = 0;
        node.first = ALL;
        if (node.kind === END) {
            node.first = newSet(0);
            node.first[TEXT_END] = 1;
            if (node.multiline)
                node.first[10] = node.first[13] = node.first[OTHERS] = 1;
        }
        break;
    case LOOK:
        prepare(node.body);
        // falls through
    case BACK:
    case STRINGS:
        node.nullable = false;
        node.width = 0;
        node.first = ALL;
        break;
    default:
        node.nullable = true;
        node.width = 0;
        node.first = NONE;
    }
}

// Can it match nothing, whatever that takes? Turns of a loop over it may not get on.
const mayBeEmpty = (node) => node.width === 0;

const geometric = (base, from, to) => {
    let sum = 0, power = base ** from;
    for (let i = from; i <= to && sum < 1e18; i++, power *= base)
        sum += power;
    return sum;
};

// ways: how many ends of this part get past the first look at what follows. steps: that are not paid for by characters
// passed. scan: those that are, for as many characters as there are. `n`: length of the text.
function cost(node, follow, n) {
    switch (node.type) {
    case CHAR: return { ways: 1, steps: 1, scan: 0 };
    case SEQ: {
        const follows = [];
        let next = follow;
        for (let i = node.items.length; i-- > 0;) {
            follows[i] = next;
            next = node.items[i].nullable ? union(node.items[i].first, next) : node.items[i].first;
        }
        let ways = 1, steps = 0, scan = 0;
        for (let i = 0; i < node.items.length; i++) {
            const item = cost(node.items[i], follows[i], n);
            steps += ways * item.steps;
            scan += ways * item.scan;
            ways *= item.ways;
        }
        return { ways, steps: steps + 1, scan };
    }
    case ALT: {
        let ways = 0, most = 0, steps = 1, scan = 0, apart = true, before = NONE;
        for (const item of node.items) {
            const one = cost(item, follow, n), first = item.nullable ? union(item.first, follow) : item.first;
            apart = apart && !item.nullable && isDisjoint(before, first);
            before = union(before, first);
            ways += one.ways;
            most = Math.max(most, one.ways);
            steps += one.steps;
            scan += one.scan;
        }
        return { ways: apart ? most : ways, steps, scan };
    }
    case GROUP: return cost(node.body, follow, n);
    case LOOP: {
        const { body, min, max } = node;
        if (max === 0)
            return { ways: 1, steps: 1, scan: 0 };
        const turns = Math.min(max, mayBeEmpty(body) ? min + n + 1 : Math.floor(n / body.width) + 1);
        const one = cost(body, union(body.first, follow), n);
        const certain = !mayBeEmpty(body) && isDisjoint(body.first, follow);
        const ends = Math.max(turns - min, 0) + 1;
        if (body.type === CHAR)
            return { ways: certain ? 1 : ends, steps: 2, scan: 2 * turns };
        if (one.ways <= 1 && !mayBeEmpty(body))
            return { ways: certain ? 1 : ends, steps: 2, scan: 2 * turns * one.steps + 2 * one.scan };
        const ways = geometric(Math.max(one.ways, 1) + (mayBeEmpty(body) ? 1 : 0), Math.min(min, turns), turns);
        return { ways, steps: ways * (one.steps + one.scan + 1), scan: 0 };
    }
    case LOOK: {
        const one = cost(node.body, NONE, n);
        return { ways: 1, steps: one.steps + one.scan + 1, scan: 0 };
    }
    case BACK: return { ways: 1, steps: n + 1, scan: 0 };
    case STRINGS: return { ways: 16, steps: 64, scan: 0 };
    default: return { ways: 1, steps: 1, scan: 0 };
    }
}

// Without what stands at the end and can't fail: an attempt that fails has not come there.
function failing(node) {
    if (node.type === LOOP && node.min === 0)
        return { type: EMPTY, nullable: true, width: 0, first: NONE };
    if (node.type === LOOP && node.body.type === CHAR)
        return { ...node, max: node.min };
    if (node.type === GROUP)
        return failing(node.body);
    if (node.type !== SEQ)
        return node;
    const items = [...node.items];
    while (items.length > 0) {
        const last = failing(items.pop());
        if (last.type !== EMPTY) {
            items.push(last);
            break;
        }
    }
    return { ...node, items };
}

const isAnchored = (node) => (node.type === ASSERT && node.kind === BEGIN && !node.multiline) ||
    (node.type === SEQ && node.items.length > 0 && isAnchored(node.items[0])) || (node.type === ALT && node.items.every(isAnchored)) ||
    (node.type === GROUP && isAnchored(node.body));

function bound(root, n) {
    const whole = cost(root, NONE, n), failed = cost(failing(root), NONE, n);
    return (isAnchored(root) ? 1 : n + 1) * (failed.steps + failed.scan) + n + whole.steps + whole.scan;
}

return { modes, types, kinds, MANY, TEXT_END, OTHERS, Tester, Parser, prepare, mayBeEmpty, isAnchored, bound, nativeExec };
})
