// Random regular expressions on random texts: the machine of plugins/javascript/machine.js against the engine. What stands
// in front of this file, put there by regexp.c, defines `parts` and `Expression`.
//
// The engine does not always do what the language says: in corners like (^a)?, a(|b){2}, pairs of surrogates with u, and
// groups inside of (?!...) it is wrong. So there is a judge: the specification's own way of matching, written down as it
// stands there (Judge). The machine must always agree with the judge; the engine may disagree with both now and then.

function generator(seed) {
    let state = seed >>> 0;
    const random = (n) => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        return Math.floor(state / 4294967296 * n);
    };
    return { random, pick: (list) => list[random(list.length)] };
}

const LETTERS = ['a', 'b', 'c'];
const MORE = ['a', 'b', 'c', 'A', 'B', '-', '1', ' ', '\n', 'é', 'É', 'k', 's', '_', '\r', '\u2028', 'aa', 'ab', '\u{1F600}', '\uD83D', '\uDE00'];

class Maker {
    constructor(seed) {
        Object.assign(this, generator(seed));
    }
    expression() {
        const { pick } = this;
        this.mode = pick([0, 0, 0, 1, 2, 4, 8, 16, 9, 17, 3, 10, 11, 24 & 8]);
        this.unicode = (this.mode & 24) !== 0;
        this.groups = 0;
        this.names = [];
        this.flags = (this.mode & 1 ? 'i' : '') + (this.mode & 2 ? 'm' : '') + (this.mode & 4 ? 's' : '') +
            (this.mode & 16 ? 'v' : this.mode & 8 ? 'u' : '');
        return this.choice(3);
    }
    choice(depth) {
        let made = this.sequence(depth);
        while (this.random(4) === 0)
            made += `|${this.sequence(depth)}`;
        return made;
    }
    sequence(depth) {
        let made = '';
        for (let i = this.random(4) + (this.random(8) ? 1 : 0); i > 0; i--)
            made += this.term(depth);
        return made;
    }
    term(depth) {
        const atom = this.atom(depth);
        if (this.random(5) > 1 || /^(?:\\[bB]|\$|\^|\(\?[=!]|\(\?<[=!]|a\{,2\})/.test(atom))
            return atom;
        return atom + this.pick(['*', '+', '?', '*?', '+?', '??', '{2}', '{1,2}', '{0,3}', '{2,}', '{0}', '{1,3}?']);
    }
    atom(depth) {
        const { pick, random } = this;
        const kind = random(22);
        if (kind < 8)
            return pick(LETTERS);
        if (kind < 10)
            return pick(['A', 'B', '-', '1', ' ', '\\n', 'é', 'É', 'k', '_', '\u{1F600}']);
        if (kind === 10)
            return pick(['\\d', '\\w', '\\s', '\\D', '\\W', '\\S', '.', '.']);
        if (kind === 11)
            return pick(['[ab]', '[^a]', '[a-c1]', '[\\w\\-]', '[^\\s]', '[]', '[^]', '[é-í]', '[\\b]', '[^b\\d]']);
        if (kind === 12)
            return pick(['\\b', '\\B', '$', '^']);
        if (kind === 13)
            return pick(this.unicode ? ['\\u{61}', '\\x62', '\\u0063', '\\p{L}', '\\P{Lu}', '\\cJ', '\\ud83d\\ude00', '\\ud83d']
                : ['\\x62', '\\u0063', '\\141', '\\cJ', '\\p', '{', 'a{,2}', '\\c', '\\u{2}', 'x\\x1', ']']);
        if (kind === 14 && this.groups > 0)
            return `(?:\\${1 + random(this.groups)})`;
        if (kind === 15 && this.names.length > 0)
            return `\\k<${pick(this.names)}>`;
        if (depth <= 0)
            return pick(LETTERS);
        if (kind < 18) {
            this.groups++;
            return `(${this.choice(depth - 1)})`;
        }
        if (kind === 19 && random(3) === 0) {
            const name = `n${this.names.length}`;
            this.groups++;
            this.names.push(name);
            return `(?<${name}>${this.choice(depth - 1)})`;
        }
        if (kind === 20)
            return `(${pick(['?=', '?<='])}${this.choice(depth - 1)})`;
        if (kind === 21)
            return `(${pick(['?!', '?<!'])}${this.choice(depth - 1)})`;
        return `(?${pick([':', ':', 'i:', 's:', '-i:'])}${this.choice(depth - 1)})`;
    }
    text() {
        let made = '';
        for (let i = this.random(10); i > 0; i--)
            made += this.random(2) ? this.pick(LETTERS) : this.pick(MORE);
        return made;
    }
}

const { CHAR, SEQ, ALT, GROUP, LOOP, ASSERT, LOOK, BACK } = parts.types;
const { BEGIN, END, WORD } = parts.kinds;

// Continuations all the way, as in the specification. `captures` are pairs; a matcher never changes what it was given.
class Judge {
    constructor(root, parser, text) {
        Object.assign(this, { root, text, unicode: parser.unicode, groups: parser.groups, names: parser.names });
    }
    search(from) {
        for (let at = from; at <= this.text.length; at++) {
            if (this.unicode && this.isInside(at))
                continue;
            const found = this.match(this.root, 1, at, new Array(this.groups + 1).fill(undefined), (pos, captures) => {
                const all = [...captures];
                all[0] = [at, pos];
                return all;
            });
            if (found !== null)
                return found;
        }
        return null;
    }
    isInside(at) {
        return at > 0 && at < this.text.length && (this.text.charCodeAt(at) & 0xFC00) === 0xDC00 && (this.text.charCodeAt(at - 1) & 0xFC00) === 0xD800;
    }
    // The character on that side of `pos`, and its size.
    character(pos, way) {
        const { text, unicode } = this;
        if (way > 0 ? pos >= text.length : pos <= 0)
            return [-1, 0];
        const at = way > 0 ? pos : pos - (unicode && this.isInside(pos - 1) ? 2 : 1);
        const code = unicode ? text.codePointAt(at) : text.charCodeAt(at);
        return [code, code > 65535 ? 2 : 1];
    }
    match(node, way, pos, captures, next) {
        const { text } = this;
        switch (node.type) {
        case CHAR: {
            const [code, size] = this.character(pos, way);
            const is = code >= 0 && (node.tester === null ? code === node.code : node.tester.test(code));
            return is ? next(pos + way * size, captures) : null;
        }
        case SEQ: {
            const from = (i, at, have) => i === node.items.length ? next(at, have)
                : this.match(node.items[way > 0 ? i : node.items.length - 1 - i], way, at, have, (p, c) => from(i + 1, p, c));
            return from(0, pos, captures);
        }
        case ALT:
            for (const item of node.items) {
                const found = this.match(item, way, pos, captures, next);
                if (found !== null)
                    return found;
            }
            return null;
        case GROUP:
            return this.match(node.body, way, pos, captures, (end, have) => {
                const all = [...have];
                all[node.index] = way > 0 ? [pos, end] : [end, pos];
                return next(end, all);
            });
        case LOOP: return this.repeat(node, way, node.min, node.max, pos, captures, next);
        case ASSERT: {
            const before = pos > 0 ? text.charCodeAt(pos - 1) : -1, after = pos < text.length ? text.charCodeAt(pos) : -1;
            const line = (code) => code < 0 || (node.multiline && '\n\r\u2028\u2029'.includes(String.fromCharCode(code)));
            const word = (code) => code >= 0 && node.tester.test(code);
            const is = node.kind === BEGIN ? line(before) : node.kind === END ? line(after)
                : (word(before) !== word(after)) === (node.kind === WORD);
            return is ? next(pos, captures) : null;
        }
        case LOOK: {
            const found = this.match(node.body, node.behind ? -1 : 1, pos, captures, (end, have) => have);
            if (node.negative)
                return found === null ? next(pos, captures) : null;
            return found === null ? null : next(pos, found);
        }
        case BACK: {
            const groups = typeof node.groups === 'string' ? this.names.filter(([name]) => name === node.groups).map(([, i]) => i) : node.groups;
            const [from, to] = captures[groups.find((group) => captures[group] !== undefined)] ?? [0, 0];
            const other = way > 0 ? pos : pos - (to - from);
            if (other < 0 || other + to - from > text.length)
                return null;
            const fold = (part) => node.mode & 1 ? part.toUpperCase() : part; // enough for the letters that are used here
            return fold(text.slice(from, to)) === fold(text.slice(other, other + to - from)) ? next(way > 0 ? other + to - from : other, captures) : null;
        }
        default: return next(pos, captures);
        }
    }
    repeat(node, way, min, max, pos, captures, next) {
        if (max === 0)
            return next(pos, captures);
        const again = () => {
            const clean = captures.map((pair, i) => i >= node.from && i <= node.to ? undefined : pair);
            return this.match(node.body, way, pos, clean, (end, have) => min === 0 && end === pos ? null
                : this.repeat(node, way, Math.max(min - 1, 0), max === parts.MANY ? max : max - 1, end, have, next));
        };
        if (min > 0)
            return again();
        return node.greedy ? again() ?? next(pos, captures) : next(pos, captures) ?? again();
    }
}

const shown = (found, text) => JSON.stringify(found === null ? null : [found[0][0], ...found.map((pair) => pair === undefined ? undefined : text.slice(...pair))]);

// {seed, count} to {same, matched, engine (how often it was wrong), different}
export function compare({ seed, count }) {
    const maker = new Maker(seed);
    let same = 0, matched = 0, engine = 0;
    for (let k = 0; k < count; k++) {
        const source = maker.expression();
        let regexp;
        try {
            regexp = new RegExp(source, `${maker.flags}g`);
        } catch {
            continue;
        }
        const expression = new Expression(regexp.source, maker.mode);
        const { machine } = expression;
        const parser = new parts.Parser(regexp.source, maker.mode);
        const root = parser.parse();
        for (let j = 0; j < 4; j++) {
            const text = maker.text(), from = maker.random(3) ? 0 : maker.random(text.length + 1);
            if (text.length > expression.limit)
                continue; // that would be the machine against itself, and take the judge too long
            machine.eager = maker.random(2) === 0;
            regexp.lastIndex = from;
            const theirs = regexp.exec(text), ours = machine.search(text, from, false);
            const made = ours === null ? null : expression.found(regexp, text, ours);
            const mine = JSON.stringify(made === null ? null : [made.index, ...made]);
            const right = shown(new Judge(root, parser, text).search(from), text);
            if (mine !== right)
                return { different: `/${source}/${maker.flags} on ${JSON.stringify(text)} from ${from}: judge ${right}, machine ${mine}` };
            if (JSON.stringify(theirs === null ? null : [theirs.index, ...theirs]) !== mine)
                engine++;
            same++;
            matched += made !== null;
        }
    }
    return { same, matched, engine };
}

// One expression on a text as long as the engine is trusted with, of the kind that makes it try most.
export function longest({ seed }) {
    const maker = new Maker(seed);
    for (;;) {
        const source = maker.expression();
        try {
            const expression = new Expression(new RegExp(source, maker.flags).source, maker.mode);
            if (expression.limit < 2)
                continue;
            const size = Math.min(expression.limit, 1 << 20), unit = maker.pick(['a', 'b', 'ab', 'aab', 'abc', ' a']);
            const text = unit.repeat(size / unit.length) + maker.pick(['', '!', 'c']);
            return { source, found: new RegExp(source, maker.flags).test(text.slice(0, size)) };
        } catch (error) {
            if (!(error instanceof SyntaxError))
                throw error;
        }
    }
}
