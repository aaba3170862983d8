// regexp.js - regular expressions that can always be stopped. The engine's own matcher looks at no clock: one match that
// tries everything (`/a*a*a*a*b/` on a long text) would hold the process for as long as it takes. So every match comes
// through here, by way of RegExp.prototype.exec:
//
//   1. A bound on the steps that the engine could need for a text of n characters is derived from what of the expression
//      is ambiguous (expression.js). Most expressions on most texts stay below MAX_STEPS: these are the engine's.
//   2. Everything else is matched by a machine (machine.js) that gives the same answer, and can be stopped.
//
// test/property/regexp.c holds both against each other, but for some corners in which the engine is known to be wrong.
(function (parts) {
'use strict';

const { modes, bound, nativeExec, Machine } = parts;
const { UNICODE, SETS } = modes;
const { apply, ownKeys } = Reflect;
const { getPrototypeOf } = Object;
const NativeRegExp = RegExp;
const prototype = RegExp.prototype;

const MAX_STEPS = 2 ** 26; // of the engine's: a tenth of a second
const MAX_EXPRESSIONS = 10000; // kept

// ---- Expressions

let matching = null; // what the machine is at, for the message of a run that was stopped in it

class Expression {
    constructor(source, mode) {
        this.source = source;
        this.unicode = (mode & (UNICODE | SETS)) !== 0;
        this.machine = new Machine(source, mode);
        // Up to this many characters the engine is fast enough, whatever they are: to within an eighth.
        const fits = (n) => bound(this.machine.root, n) <= MAX_STEPS;
        let low = -1, high = 31;
        while (high - low > 1) {
            const middle = (low + high) >> 1;
            if (fits(2 ** middle))
                low = middle;
            else
                high = middle;
        }
        let limit = low < 0 ? 0 : 2 ** low;
        for (let step = limit / 2; step >= 1 && step >= limit / 16; step /= 2)
            if (fits(limit + step))
                limit += step;
        this.limit = limit;
    }
    // exec() of an expression, on text.
    exec(regexp, text) {
        if (text.length <= this.limit)
            return apply(nativeExec, regexp, [text]);
        const moves = apply(isGlobal, regexp, NOTHING), sticky = apply(isSticky, regexp, NOTHING);
        const from = Math.max(Math.trunc(Number(regexp.lastIndex)) || 0, 0);
        if (!moves && !sticky)
            return this.found(regexp, text, this.search(text, 0, false));
        const found = from > text.length ? null : this.search(text, from, sticky);
        regexp.lastIndex = found === null ? 0 : found[1];
        return this.found(regexp, text, found);
    }
    search(text, from, sticky) {
        matching = this;
        const found = this.machine.search(text, from, sticky);
        matching = null;
        return found;
    }
    found(regexp, text, registers) {
        if (registers === null)
            return null;
        const { groups, names } = this.machine;
        const result = [], places = [];
        for (let i = 0; i <= groups; i++) {
            const from = registers[2 * i], to = registers[2 * i + 1];
            const is = from >= 0 && to >= 0;
            result.push(is ? text.slice(from, to) : undefined);
            places.push(is ? [from, to] : undefined);
        }
        const named = (list) => {
            if (names.length === 0)
                return undefined;
            const made = Object.create(null);
            for (const [name, group] of names)
                if (!(name in made) || list[group] !== undefined)
                    made[name] = list[group];
            return made;
        };
        result.index = registers[0];
        result.input = text;
        result.groups = named(result);
        if (apply(hasIndices, regexp, NOTHING)) {
            places.groups = named(places);
            result.indices = places;
        }
        return result;
    }
}

const NOTHING = [];
const getter = (name) => Object.getOwnPropertyDescriptor(prototype, name).get;
const sourceOf = getter('source'), isGlobal = getter('global'), isSticky = getter('sticky'), hasIndices = getter('hasIndices');
const modeGetters = ['ignoreCase', 'multiline', 'dotAll', 'unicode', 'unicodeSets'].map(getter);
let known = new Map(), count = 0;

function expressionOf(regexp) {
    const source = apply(sourceOf, regexp, NOTHING);
    let mode = 0;
    for (let i = 0; i < 5; i++)
        mode |= apply(modeGetters[i], regexp, NOTHING) ? 1 << i : 0;
    let all = known.get(source);
    if (all === undefined) {
        if (++count > MAX_EXPRESSIONS) {
            known = new Map();
            count = 1;
        }
        known.set(source, all = []);
    }
    return all[mode] ??= new Expression(source, mode);
}

// ---- Methods. With an exec of ours the engine takes its slow way through the others: right, and for replace() and split()
// more than slow. These two are written out for expressions that nobody has changed.

const isOrdinary = (regexp) => typeof regexp === 'object' && regexp !== null && getPrototypeOf(regexp) === prototype &&
    ownKeys(regexp).length === 1 && typeof regexp.lastIndex === 'number';

const after = (text, at, unicode) => at + (unicode && text.codePointAt(at) > 65535 ? 2 : 1);

function replace(regexp, expression, text, replacement) {
    const functional = typeof replacement === 'function';
    const results = [];
    if (apply(isGlobal, regexp, NOTHING)) {
        regexp.lastIndex = 0;
        for (let found; (found = expression.exec(regexp, text)) !== null;) {
            results.push(found);
            if (found[0] === '')
                regexp.lastIndex = after(text, regexp.lastIndex, expression.unicode);
        }
    } else {
        const found = expression.exec(regexp, text);
        if (found !== null)
            results.push(found);
    }
    let made = '', end = 0;
    for (let i = 0; i < results.length; i++) {
        const found = results[i], at = found.index;
        made += text.slice(end, at);
        if (!functional) {
            made += replacement;
        } else if (found.groups === undefined) {
            made += `${found.length === 1 ? replacement(found[0], at, text) : replacement(...found, at, text)}`;
        } else {
            made += `${replacement(...found, at, text, found.groups)}`;
        }
        end = at + found[0].length;
    }
    return made + text.slice(end);
}

function split(expression, searcher, text, limit) {
    const parts = [];
    if (limit === 0)
        return parts;
    if (text === '')
        return expression.exec(searcher, text) === null ? [text] : parts;
    let from = 0, look = 0;
    while (look < text.length) {
        searcher.lastIndex = look;
        const found = expression.exec(searcher, text);
        if (found === null || found.index >= text.length)
            break;
        const end = found.index + found[0].length;
        if (end === from) {
            look = after(text, look, expression.unicode);
            continue;
        }
        if (parts.push(text.slice(from, found.index)) === limit)
            return parts;
        for (let i = 1; i < found.length; i++)
            if (parts.push(found[i]) === limit)
                return parts;
        from = look = end;
    }
    parts.push(text.slice(from));
    return parts;
}

function install() {
    const { [Symbol.replace]: nativeReplace, [Symbol.split]: nativeSplit } = prototype;
    const methods = {
        exec(string) {
            return expressionOf(this).exec(this, `${string}`);
        },
        [Symbol.replace](string, replacement) {
            if (!isOrdinary(this))
                return apply(nativeReplace, this, [string, replacement]);
            const text = `${string}`;
            const by = typeof replacement === 'function' ? replacement : `${replacement}`;
            return typeof by === 'string' && by.includes('$') ? apply(nativeReplace, this, [text, by]) : replace(this, expressionOf(this), text, by);
        },
        [Symbol.split](string, limit) {
            if (!isOrdinary(this))
                return apply(nativeSplit, this, [string, limit]);
            const searcher = new NativeRegExp(this, `${this.flags.replace('y', '').replace('g', '')}g`);
            return split(expressionOf(this), searcher, `${string}`, limit === undefined ? 2 ** 32 - 1 : limit >>> 0);
        },
    };
    for (const key of ownKeys(methods))
        Object.defineProperty(prototype, key, { value: methods[key], writable: true, enumerable: false, configurable: true });
}

// Where a run that was stopped was, if it was in a match.
function under() {
    const at = matching;
    matching = null;
    return at === null ? '' : `/${at.source.length > 60 ? `${at.source.slice(0, 60)}...` : at.source}/`;
}

return { install, under, Expression };
})
