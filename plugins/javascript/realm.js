// realm.js - what every function finds when it runs: a world without clock, chance or place, in which nothing can be
// changed, and its inputs as views that record what is looked at. Evaluated once per engine, before any other script.
//
// Invariants:
//   R1. Nothing reachable from a function, other than what it made itself in this run, can be changed: so no run can
//       leave anything behind for another one. harden() freezes everything that can be reached from the global object.
//   R2. Nothing reachable depends on the time, the machine, its locale, chance, or the garbage collector.
//   R3. A view gives nothing away without the engine (view.c) knowing: its traps are the only way in.
//   R4. Nothing in here looks a property up on an object of the user's where a look-up by the user would not do so.
//
// `host` holds the functions of view.c and engine.c. `out` is memory shared with them; after each call out[0] says what
// the answer is, out[1] and out[2] are a view's number and length. What makes regular expressions stoppable is given as
// three scripts (regexp.js).
(function (host, out, makeExpression, makeMachine, makeRegExp) {
'use strict';

const SCALAR = 0, OBJECT = 1, ARRAY = 2, ABSENT = 3, CELL = 4, BULK = 5, VIEW = 6, TEXT = 7, REFUSED = 8;
const MAX_TEXT = 64 * 1024 * 1024; // of a result; memory takes no larger document
const MAX_DEPTH = 500;
const { Promise } = globalThis;
const MAX_STRING = 256 * 1024 * 1024;
const MAX_URI = 16 * 1024 * 1024; // these look at no clock, and take a second for so many
const EXACT = 2 ** 53;
const global = globalThis;
const regexps = makeRegExp(makeMachine(makeExpression()));
const { fetch, has: present, keys: keysOf, mark, text: textOf, place, log } = host;

// ---- Inputs as views

// A private name can be put on a proxy without its traps knowing: so a view is told apart from everything else.
class Stamp extends (function (object) { return object; }) {
    #view;
    constructor(object, view) {
        super(object);
        this.#view = view;
    }
    static of(object) {
        return #view in object ? object.#view : null;
    }
}

const absent = Symbol('absent');
const objectTarget = {}, arrayTarget = []; // shared: views define nothing on them

function freezeDeep(value) {
    if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
        Object.freeze(value);
        if (Array.isArray(value)) {
            for (let i = 0; i < value.length; i++)
                freezeDeep(value[i]);
        } else {
            for (const key in value)
                freezeDeep(value[key]);
        }
    }
    return value;
}

// Integers beyond 2^53 are BigInt; the engine says whether the text may have some.
const revive = (key, value, context) => {
    if (typeof value !== 'number' || (value < EXACT && value > -EXACT) || !/^-?[0-9]+$/.test(context.source))
        return value;
    const exact = BigInt(context.source);
    return exact > BigInt(EXACT) || exact < -BigInt(EXACT) ? exact : value;
};
const parse = (text, big) => freezeDeep(big ? JSON.parse(text, revive) : JSON.parse(text));

function newView() {
    const array = out[0] === ARRAY;
    const view = array ? new ArrayView(out[1], out[2]) : new ObjectView(out[1]);
    const proxy = new Proxy(array ? arrayTarget : objectTarget, view);
    new Stamp(proxy, view);
    return proxy;
}

function refuseWrite(view, key, what) {
    throw new TypeError(`inputs are read-only: can't ${what} ${place(view.id, String(key))}; ` +
                        'return a new value, or bind the input with asCell and use its set()');
}

class View {
    constructor(id) {
        this.id = id;
        this.seen = null;  // what was taken already: the same object again, and no second read
        this.bulk = null;  // everything at once, once much was taken one by one
        this.shallow = false;
    }
    // The value of a key that was not taken before. Sets out[0]; undefined for ABSENT.
    take(key) {
        if (this.bulk !== null) {
            const there = Object.hasOwn(this.bulk, key);
            out[0] = there ? SCALAR : ABSENT;
            return there ? this.bulk[key] : undefined;
        }
        let value = fetch(this.id, key);
        const kind = out[0];
        if (kind === BULK) {
            const text = textOf(this.id);
            this.bulk = parse(text, out[1] !== 0);
            return this.take(key);
        }
        if (kind === OBJECT || kind === ARRAY)
            value = newView();
        else if (kind === CELL)
            value = new Cell(out[1]);
        if (this.seen === null)
            this.seen = new Map();
        this.seen.set(key, kind === ABSENT ? absent : value);
        out[0] = kind === ABSENT ? ABSENT : SCALAR;
        return value;
    }
    look() {
        if (!this.shallow) {
            this.shallow = true;
            mark(this.id);
        }
    }
    descriptor(proxyTarget, key) {
        // An accessor: whoever asks only whether a key is there or enumerable has not seen its value.
        const view = this;
        return { get() { return view.get(proxyTarget, key); }, set: undefined, enumerable: true, configurable: true };
    }
    set(target, key) { refuseWrite(this, key, 'set'); }
    defineProperty(target, key) { refuseWrite(this, key, 'define'); }
    deleteProperty(target, key) { refuseWrite(this, key, 'delete'); }
    setPrototypeOf() { refuseWrite(this, '', 'change the prototype of'); }
    preventExtensions() { refuseWrite(this, '', 'freeze'); }
}

class ObjectView extends View {
    get(target, key) {
        if (typeof key === 'symbol')
            return target[key];
        if (this.seen !== null) {
            const value = this.seen.get(key);
            if (value !== undefined)
                return value === absent ? target[key] : value;
        }
        const value = this.take(key);
        return out[0] === ABSENT ? target[key] : value;
    }
    owns(key) {
        if (typeof key === 'symbol')
            return false;
        const there = this.bulk !== null ? Object.hasOwn(this.bulk, key) : present(this.id, key);
        if (there)
            this.look();
        return there;
    }
    has(target, key) {
        return this.owns(key) || key in target;
    }
    ownKeys() {
        this.look();
        return keysOf(this.id);
    }
    getOwnPropertyDescriptor(target, key) {
        return this.owns(key) ? this.descriptor(target, key) : undefined;
    }
}

const isIndex = (key) => {
    const code = key.charCodeAt(0);
    return code >= 48 && code <= 57 && String(key >>> 0) === key;
};

class ArrayView extends View {
    constructor(id, length) {
        super(id);
        this.length = length;
    }
    get(target, key) {
        if (typeof key === 'symbol')
            return target[key];
        if (key === 'length') {
            this.look();
            return this.length;
        }
        if (this.seen !== null) {
            const value = this.seen.get(key);
            if (value !== undefined)
                return value === absent ? undefined : value;
        }
        if (!isIndex(key))
            return target[key];
        return this.take(key);
    }
    owns(key) {
        if (typeof key === 'symbol')
            return false;
        if (key === 'length') {
            this.look();
            return true;
        }
        if (!isIndex(key))
            return false;
        this.look();
        return (key >>> 0) < this.length;
    }
    has(target, key) {
        return this.owns(key) || key in target;
    }
    ownKeys() {
        this.look();
        const keys = [];
        for (let i = 0; i < this.length; i++)
            keys.push(String(i));
        keys.push('length');
        return keys;
    }
    getOwnPropertyDescriptor(target, key) {
        if (!this.owns(key))
            return undefined;
        if (key === 'length')
            return { value: this.length, writable: true, enumerable: false, configurable: false };
        return this.descriptor(target, key);
    }
}
// Traps that are not there are looked for up to the end of the chain.
Object.setPrototypeOf(View.prototype, null);

// ---- Cells

class Cell {
    #id;
    constructor(id) {
        this.#id = id;
        Object.freeze(this);
    }
    static is(object) {
        return #id in object;
    }
    get() {
        const value = host.peek(this.#id);
        return out[0] === OBJECT || out[0] === ARRAY ? newView() : out[0] === ABSENT ? undefined : value;
    }
    set(value) {
        host.write(this.#id, serialize(value, 'the value given to set()'));
    }
    update(change) {
        if (typeof change === 'function') {
            this.set(change(this.get()));
        } else if (typeof change === 'object' && change !== null && !Array.isArray(change)) {
            for (const key of Object.keys(change))
                this.key(key).set(change[key]);
        } else {
            throw new TypeError('update() takes a function from the old value to the new one, or an object with the members to set');
        }
    }
    push(...items) {
        const texts = [];
        for (let i = 0; i < items.length; i++)
            texts.push(serialize(items[i], 'the value given to push()'));
        host.push(this.#id, `[${texts.join()}]`);
    }
    send(event) {
        host.send(this.#id, serialize(event === undefined ? null : event, 'the event given to send()'));
    }
    key(key) {
        if (typeof key !== 'string' && typeof key !== 'number')
            throw new TypeError('key() takes a key or an index');
        host.cellKey(this.#id, String(key));
        return new Cell(out[1]);
    }
}

// ---- Values on their way out

let total = 0, subject = '';
const trail = []; // keys from the value that is being written down to where it is

function whereAt(depth) {
    let text = '';
    for (let i = 0; i < depth && i < 20; i++)
        text += '/' + String(trail[i]).replaceAll('~', '~0').replaceAll('/', '~1');
    return depth === 0 ? subject : `${subject}, at "${text}"${depth > 20 ? '...' : ''},`;
}

function refuse(depth, what) {
    out[0] = REFUSED;
    throw new TypeError(`${whereAt(depth)} ${what}`.toWellFormed());
}

function count(depth, size) {
    total += size;
    if (total > MAX_TEXT)
        refuse(0, `is larger than ${MAX_TEXT / 1048576} MiB of JSON`);
}

function numberText(value, depth) {
    if (value - value !== 0)
        refuse(depth, `is ${value}: JSON has no form for it`);
    count(depth, 8);
    // Without an exponent it would be an integer of 64 bits, and exact, which it is not.
    return (value > EXACT || value < -EXACT) && value % 1 === 0 ? value.toExponential() : String(value);
}

function bigText(value, depth) {
    if (BigInt.asIntN(64, value) !== value)
        refuse(depth, 'is an integer beyond 64 bits: convert it, for example with String()');
    count(depth, 20);
    return String(value);
}

function stringText(value, depth) {
    count(depth, value.length + 2);
    if (!value.isWellFormed())
        refuse(depth, 'is a string with half a surrogate pair in it: use toWellFormed()');
    return JSON.stringify(value);
}

const advice = new Map([
    [Map, 'a Map: use Object.fromEntries(map) or [...map]'],
    [Set, 'a Set: use [...set]'],
    [WeakMap, 'a WeakMap'],
    [WeakSet, 'a WeakSet'],
    [Promise, 'a promise'],
    [RegExp, 'a regular expression: use its source'],
    [Error, 'an Error: throw it, or use its message'],
    [ArrayBuffer, 'an ArrayBuffer: use an array of numbers, or text'],
    [DataView, 'a DataView: use an array of numbers, or text'],
    [Object.getPrototypeOf(Uint8Array), 'a typed array: use Array.from()'],
    [Symbol, 'a symbol'],
]);

function tooDeep(value, depth) {
    // Only here is it asked whether it is a circle: circles get here, too.
    let at = root;
    const seen = new Map();
    for (let i = 0; i <= depth && typeof at === 'object' && at !== null; i++) {
        if (seen.has(at)) {
            const first = seen.get(at);
            refuse(i, `is the same object as ${first === 0 ? 'the whole' : `the one ${i - first} levels above it`}: a cycle`);
        }
        seen.set(at, i);
        at = at[trail[i]];
    }
    refuse(0, `is nested deeper than ${MAX_DEPTH} levels`);
}
let root;

function objectText(value, depth) {
    if (depth >= MAX_DEPTH)
        tooDeep(value, depth);
    const view = Stamp.of(value);
    if (view !== null) {
        const text = textOf(view.id);
        count(depth, text.length);
        return text;
    }
    if (Cell.is(value))
        refuse(depth, 'is a cell: use its get()');
    if (Array.isArray(value)) {
        let text = '[';
        const length = value.length;
        count(depth, 2 + length);
        for (let i = 0; i < length; i++) {
            trail[depth] = i;
            const item = value[i];
            text += (i === 0 ? '' : ',') + (item === undefined ? 'null' : valueText(item, depth + 1));
        }
        return text + ']';
    }
    const prototype = Object.getPrototypeOf(value);
    if (prototype !== Object.prototype && prototype !== null) {
        for (const [type, what] of advice)
            if (value instanceof type)
                refuse(depth, `is ${what}`);
        if (value instanceof Number || value instanceof String || value instanceof Boolean || value instanceof BigInt)
            return valueText(value.valueOf(), depth);
    }
    const toJSON = value.toJSON;
    if (typeof toJSON === 'function') {
        const other = toJSON.call(value, depth === 0 ? '' : String(trail[depth - 1]));
        trail[depth] = 'toJSON()';
        return other === undefined ? 'null' : valueText(other, depth + 1);
    }
    let text = '';
    const keys = Object.keys(value);
    count(depth, 2);
    for (let i = 0; i < keys.length; i++) {
        const key = keys[i];
        trail[depth] = key;
        const own = Object.getOwnPropertyDescriptor(value, key);
        if (own === undefined)
            continue;
        if (own.get !== undefined || own.set !== undefined)
            refuse(depth + 1, 'is a getter: give its value');
        const item = own.value;
        if (item === undefined)
            continue;
        text += (text === '' ? '' : ',') + stringText(key, depth + 1) + ':' + valueText(item, depth + 1);
    }
    return '{' + text + '}';
}

function valueText(value, depth) {
    switch (typeof value) {
    case 'number': return numberText(value, depth);
    case 'string': return stringText(value, depth);
    case 'boolean': return value ? 'true' : 'false';
    case 'undefined': return 'null';
    case 'object': return value === null ? 'null' : objectText(value, depth);
    case 'bigint': return bigText(value, depth);
    case 'function': return refuse(depth, `is a function${value.name ? ` (${value.name})` : ''}: call it, or leave it out`);
    default: return refuse(depth, 'is a symbol: use a string');
    }
}

function serialize(value, what) {
    total = 0;
    subject = what;
    root = value;
    try {
        return valueText(value, 0);
    } finally {
        root = undefined;
    }
}

// Scalars go to the engine as they are, a view by its number, everything else as JSON text.
function finish(value) {
    out[0] = SCALAR;
    switch (typeof value) {
    case 'number':
        if (value - value !== 0)
            break;
        return value;
    case 'boolean': return value;
    case 'undefined': return null;
    case 'object': {
        if (value === null)
            return null;
        const view = Stamp.of(value);
        if (view !== null) {
            out[0] = VIEW;
            out[1] = view.id;
            return null;
        }
    }
    }
    const text = serialize(value, 'the result');
    out[0] = TEXT;
    return text;
}

// ---- Running

const HANDLER = 1, POSITIONAL = 2, FACTORY = 4;

function callWith(fn, mode, id, positions, event) {
    if (mode === 0) {
        out[0] = OBJECT;
        out[1] = id;
        return fn(newView());
    }
    const args = [];
    if (mode & HANDLER)
        args.push(event);
    out[0] = OBJECT;
    out[1] = id;
    const inputs = newView();
    if (mode & POSITIONAL) {
        for (let i = 0; i < positions; i++)
            args.push(inputs[i]);
    } else {
        args.push(inputs);
    }
    return fn(...args);
}

function invoke(fn, mode, id, positions, name, event, big) {
    if (mode & HANDLER && typeof event === 'string' && big >= 0)
        event = parse(event, big !== 0);
    if (mode & FACTORY)
        fn = fn()[name];
    return finish(callWith(fn, mode & (HANDLER | POSITIONAL), id, positions, event));
}

// After a run that was stopped. Says in which regular expression it was, if it was in one.
function forget() {
    root = undefined;
    trail.length = 0;
    return regexps.under();
}

// ---- The console

function inspect(value) {
    switch (typeof value) {
    case 'string': return value;
    case 'bigint': return `${value}n`;
    case 'function': return `[function ${value.name || '(anonymous)'}]`;
    case 'symbol': return String(value);
    case 'object':
        if (value === null)
            return 'null';
        if (value instanceof Error)
            return `${value.name}: ${value.message}`;
        if (value instanceof Map)
            return `Map(${value.size}) ${inspect([...value])}`;
        if (value instanceof Set)
            return `Set(${value.size}) ${inspect([...value])}`;
        if (Cell.is(value))
            return '[cell]';
        try {
            return JSON.stringify(value, (key, item) => typeof item === 'bigint' ? `${item}n`
                : typeof item === 'function' ? `[function ${item.name}]` : item);
        } catch (error) {
            if (error instanceof RangeError || error instanceof TypeError)
                return Object.prototype.toString.call(value);
            throw error;
        }
    default: return String(value);
    }
}

const say = (prefix) => (...values) => {
    let line = prefix;
    for (let i = 0; i < values.length; i++)
        line += (i === 0 ? '' : ' ') + inspect(values[i]);
    log(line);
};
const console = {
    log: say(''), info: say(''), debug: say(''), warn: say('warning: '), error: say('error: '),
    assert(condition, ...values) {
        if (!condition)
            say('assertion failed: ')(...values);
    },
};

// ---- The world

function remove(object, ...keys) {
    for (const key of keys)
        delete object[key];
}

function limitSizes() {
    // One call of these could take all memory before anybody can look.
    const { repeat, padStart, padEnd } = String.prototype;
    const guard = (name, original, size) => {
        const guarded = { [name](...args) {
            const length = size(this, args);
            if (length > MAX_STRING)
                throw new RangeError(`${name}() of ${length} characters: the limit is ${MAX_STRING}`);
            return original.apply(this, args);
        } }[name];
        String.prototype[name] = guarded;
    };
    guard('repeat', repeat, (self, [n]) => String(self).length * Number(n));
    guard('padStart', padStart, (self, [n]) => Number(n));
    guard('padEnd', padEnd, (self, [n]) => Number(n));
    for (const name of ['encodeURI', 'encodeURIComponent', 'decodeURI', 'decodeURIComponent']) {
        const original = global[name];
        global[name] = { [name](value) {
            const text = `${value}`;
            if (text.length > MAX_URI)
                throw new RangeError(`${name}() of ${text.length} characters: the limit is ${MAX_URI}`);
            return original(text);
        } }[name];
    }
    const guardConstructor = (name) => {
        const original = global[name];
        const guarded = new Proxy(original, {
            construct(target, args, newTarget) {
                if (Number(args[0]) > MAX_STRING)
                    throw new RangeError(`new ${name}(${args[0]}): the limit is ${MAX_STRING}`);
                return Reflect.construct(target, args.length > 1 && name === 'ArrayBuffer' ? [args[0]] : args,
                                         newTarget === guarded ? target : newTarget);
            },
        });
        original.prototype.constructor = guarded;
        global[name] = guarded;
    };
    for (const name of ['ArrayBuffer', 'Int8Array', 'Uint8Array', 'Uint8ClampedArray', 'Int16Array', 'Uint16Array', 'Int32Array',
                        'Uint32Array', 'Float16Array', 'Float32Array', 'Float64Array', 'BigInt64Array', 'BigUint64Array'])
        if (global[name])
            guardConstructor(name);
    remove(ArrayBuffer.prototype, 'resize', 'transfer', 'transferToFixedLength');
}

// Objects that no name leads to.
const hidden = () => [
    (async () => {}).constructor, (function* () {}).constructor, (async function* () {}).constructor, (function* () {})(),
    (async function* () {})(), Promise.prototype,
    [][Symbol.iterator](), new Map().entries(), new Set().entries(), ''[Symbol.iterator](), ''.matchAll(/x/g),
    Iterator.from({ next() {} }), [].values().map((x) => x), (function () { return arguments; })(),
    Object.getOwnPropertyDescriptor(function () {}.prototype, 'constructor'), Cell, Cell.prototype,
];

function removeAmbient() {
    remove(global, 'Date', 'Intl', 'WeakRef', 'FinalizationRegistry', 'WebAssembly', 'SharedArrayBuffer', 'Atomics', 'performance',
           'Temporal', 'ShadowRealm', 'console', 'escape', 'unescape', 'eval', 'Loader', '$vm', 'gc', 'print', 'setTimeout',
           'queueMicrotask', 'DisposableStack', 'AsyncDisposableStack');
    // Nothing is left to be done after a run: no step of a promise can be asked for (the engine refuses async functions).
    remove(Promise.prototype, ...Reflect.ownKeys(Promise.prototype));
    remove(global, 'Promise');
    remove(Math, 'random');
    remove(Array, 'fromAsync');
    remove(String.prototype, 'localeCompare', 'toLocaleLowerCase', 'toLocaleUpperCase');
    for (const prototype of [Object.prototype, Array.prototype, Number.prototype, BigInt.prototype, Object.getPrototypeOf(Uint8Array).prototype])
        remove(prototype, 'toLocaleString');
    for (const key of Object.getOwnPropertyNames(RegExp)) // what the last match was: left behind by whoever ran before
        if (!['length', 'name', 'prototype', 'escape'].includes(key))
            delete RegExp[key];
    Error.stackTraceLimit = 30;
    remove(Error, 'captureStackTrace');
}

// A property of a frozen prototype can't be assigned to on objects that inherit it. Where programs do so (the name of an
// error, toString of an object) it becomes an accessor that makes an own property.
function allowOverride(prototype, keys) {
    for (const key of keys) {
        const own = Object.getOwnPropertyDescriptor(prototype, key);
        if (!own || !('value' in own) || !own.configurable)
            continue;
        const value = own.value;
        Object.defineProperty(prototype, key, {
            get() { return value; },
            set(other) {
                if (this === prototype)
                    throw new TypeError(`Attempted to assign to readonly property ${String(key)}`);
                Object.defineProperty(this, key, { value: other, writable: true, enumerable: true, configurable: true });
            },
            enumerable: false,
            configurable: false,
        });
    }
}

let frozen = new Set(); // the realm

// Freezes everything that can be reached from these objects, except for the realm itself.
function freezeFrom(...todo) {
    const seen = new Set();
    while (todo.length > 0) {
        const object = todo.pop();
        if ((typeof object !== 'object' && typeof object !== 'function') || object === null || seen.has(object) || frozen.has(object))
            continue;
        seen.add(object);
        todo.push(Object.getPrototypeOf(object));
        for (const key of Reflect.ownKeys(object)) {
            const own = Object.getOwnPropertyDescriptor(object, key);
            if ('value' in own)
                todo.push(own.value);
            else
                todo.push(own.get, own.set);
        }
    }
    for (const object of seen)
        Object.freeze(object);
    return seen;
}

function harden() {
    const errors = [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError, AggregateError];
    allowOverride(Object.prototype, Object.getOwnPropertyNames(Object.prototype));
    for (const error of errors)
        allowOverride(error.prototype, ['constructor', 'name', 'message', 'toString']);
    frozen = freezeFrom(global, ...hidden());
}

removeAmbient();
limitSizes();
regexps.install();
Object.defineProperty(global, 'console', { value: console, writable: false, enumerable: false, configurable: false });
harden();
// A function's own objects (its prototype) live as long as it does, over many runs.
const freeze = made => { freezeFrom(made); };
return { invoke, forget, freeze, parse, serialize };
})
