// builder.js - the functions that a pattern written in JavaScript calls, and what they make: the JSON form of a pattern
// (docs/pattern-format.md). Evaluated in the realm of realm.js when the first pattern is read.
//
// While a pattern is built nothing is known yet: what stands for an argument, a cell or the output of a node is a
// reference, a proxy that knows its place and nothing else. Taking a member of one gives a reference to that member.
(function (serialize) {
'use strict';

const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/;
const NODE_OPTIONS = ['title', 'description', 'debounceMs', 'throttleMs', 'noDebounce', 'onRestart', 'verifier', 'argumentSchema',
                      'resultSchema', 'materializerWriteInputPaths', 'output', 'metadata', 'returns'];
// What a child finds in its argument by itself, and inputs of the node whose child it is.
const CHILD_NAMES = new Set(['element', 'index', 'accumulator', 'list', 'keys', 'initial']);
// Members that a list or a text has, and a reference to one has not.
const NOT_YET = new Set(['length', 'map', 'filter', 'reduce', 'forEach', 'push', 'slice', 'join', 'includes', 'some', 'every',
                         'toString', 'valueOf', 'split', 'toFixed', 'concat', 'sort', 'get', 'set', 'update']);

class Stamp extends (function (object) { return object; }) {
    #ref;
    constructor(object, ref) {
        super(object);
        this.#ref = ref;
    }
    static of(object) {
        return (typeof object === 'object' || typeof object === 'function') && object !== null && #ref in object ? object.#ref : null;
    }
}

function fail(message) {
    throw new TypeError(message);
}

let graph = null; // the one that is being built

const refTarget = {};
class Reference {
    constructor(owner, path, cell) {
        this.owner = owner; // {name, kind, graph}: the argument, a cell or a node; named in the end
        this.path = path;
        this.asCell = cell;
    }
    describe() {
        return [this.owner.name || this.owner.hint || this.owner.kind, ...this.path].join('/');
    }
    get(target, key) {
        if (typeof key === 'symbol') {
            if (key === Symbol.toPrimitive)
                return () => fail(`${this.describe()} is not known while the graph is built: compute with it in ` +
                                  `computed({x: ${this.describe()}}, ({x}) => ...)`);
            if (key === Symbol.iterator)
                return () => fail(`${this.describe()} is not known while the graph is built: it can't be gone through; use map(list, fn)`);
            return undefined;
        }
        if (key === 'toJSON' || key === 'then')
            return undefined;
        if (NOT_YET.has(key))
            fail(`${this.describe()} is not known while the graph is built: it has no .${key}; ` +
                 `compute with it in computed({x: ${this.describe()}}, ({x}) => ...), or write member(ref, "${key}") for a member of that name`);
        if (this.owner.kind === 'argument' && this.path.length === 0)
            this.owner.seen.add(key);
        return reference(this.owner, [...this.path, key]);
    }
    set(target, key) {
        fail(`${this.describe()}/${String(key)} can't be set while the graph is built: use handler(...)`);
    }
    has() { fail(`${this.describe()} is not known while the graph is built`); }
    ownKeys() { fail(`${this.describe()} is not known while the graph is built: name the members that are needed`); }
    getPrototypeOf() { fail(`${this.describe()} is not known while the graph is built: it has no type yet`); }
    defineProperty() { fail('a reference can\'t be changed'); }
    deleteProperty() { fail('a reference can\'t be changed'); }
}
Object.setPrototypeOf(Reference.prototype, null);

function reference(owner, path, cell = false) {
    const ref = new Reference(owner, path, cell);
    const proxy = new Proxy(refTarget, ref);
    new Stamp(proxy, ref);
    return proxy;
}

// Does a handler get it as a cell? What nodes compute, and the copy that a child has of its element, can't be written
// to; a stream is sent to.
const writable = (owner) => owner.kind === 'node' ? owner.members.stream === true : owner.kind === 'cell' || owner.graph.captures === null;
const escapeKey = (key) => key.replaceAll('~', '~0').replaceAll('/', '~1');

// A child pattern names something of the pattern around it: it gets it as a member of its argument, and the node whose
// child it is gets it as an input. `cells` as for a binding.
function captureOf(ref, what, cells) {
    let around = graph.outer;
    while (around && around !== ref.owner.graph)
        around = around.outer;
    if (!around || graph.captures === null)
        fail(`${what} refers to ${ref.describe()} of another pattern: pass it in as an input`);
    const cell = ref.asCell || (cells && writable(ref.owner));
    let found = graph.captures.find((c) => c.ref.owner === ref.owner && c.cell === cell && c.ref.path.length === ref.path.length &&
                                           c.ref.path.every((key, i) => key === ref.path[i]));
    if (!found) {
        const wish = [...ref.path].reverse().find((key) => NAME.test(key) && !/^[0-9]/.test(key)) || ref.owner.name || ref.owner.hint || ref.owner.kind;
        const base = NAME.test(wish) ? wish : 'outer';
        let name = base;
        for (let i = 2; CHILD_NAMES.has(name) || graph.captures.some((c) => c.name === name); i++)
            name = `${base}-${i}`;
        found = { name, ref, cell };
        graph.captures.push(found);
    }
    return cell ? { $: `argument/${found.name}`, asCell: true } : { $: `argument/${found.name}` };
}

// A binding: values as they are, references by name. `cells`: references to what can be written become cells.
function binding(value, what, cells, depth = 0) {
    const ref = Stamp.of(value);
    if (ref !== null) {
        if (ref.owner.graph !== graph)
            return captureOf(ref, what, cells);
        const made = { $: [ref.owner.name, ...ref.path.map(escapeKey)].join('/') };
        if (ref.asCell || (cells && writable(ref.owner)))
            made.asCell = true;
        return made;
    }
    if (typeof value === 'function')
        fail(`${what} is a function${value.name ? ` (${value.name})` : ''}: call it with its inputs`);
    if (typeof value !== 'object' || value === null)
        return value;
    if (depth > 400)
        fail(`${what} is nested too deeply, or in a circle`);
    if (Array.isArray(value))
        return value.map((item) => binding(item, what, cells, depth + 1));
    const made = {};
    for (const key of Object.keys(value))
        if (value[key] !== undefined)
            made[key] = binding(value[key], what, cells, depth + 1);
    return '$' in made || '$literal' in made || '/' in made ? { $literal: made } : made;
}

const bare = (text) => text.replace(/\/\*[^]*?\*\/|\/\/[^\n]*|'(?:[^'\\\n]|\\[^])*'|"(?:[^"\\\n]|\\[^])*"/g, ' ');

// Names that stand around the function and not in it. Names of the argument's members are looked for, and those that the
// file declares at the beginning of a line, unless the function has templates or regular expressions, which are not read
// here. Whatever else is not there is told when the function runs.
const DECLARED = /^(?:\(?function\([^)]*\)\{\s*;)?(?:const|let|var|function\*?|class)\s+([A-Za-z_$][\w$]*)/gm;
let declared = [];
function captured(text, names) {
    const code = bare(text);
    const head = /^\s*(?:function[^(]*)?\(/.test(code) ? code.slice(0, code.search(/=>|\)\s*\{/) + 1) : code.slice(0, code.indexOf('=>'));
    for (const name of names) {
        if (!/^[A-Za-z_$][\w$]*$/.test(name))
            continue;
        const quoted = name.replaceAll('$', '\\$');
        const used = new RegExp(`(^|[^.\\w$]|\\.\\.\\.)${quoted}(?![\\w$]|\\s*:(?!:))`).test(code.slice(head.length));
        const declared = new RegExp(`(^|[^.\\w$])${quoted}(?![\\w$])`).test(head) ||
            new RegExp(`\\b(?:(?:const|let|var)\\b[^;=]*|(?:function|class|catch)\\b[^{]*)[^.\\w$]${quoted}(?![\\w$])`).test(code) ||
            new RegExp(`(?:[(,{\\[]\\s*${quoted}\\s*(?:[,)}\\]=][^;]*)?|\\b${quoted}\\s*)=>`).test(code.slice(head.length + 1));
        if (used && !declared)
            return name;
    }
    return null;
}

function functionText(fn, what) {
    if (typeof fn !== 'function')
        fail(`${what} takes a function`);
    const text = Function.prototype.toString.call(fn).replaceAll('$truth_(/*stet~*/', '').replaceAll('/*stet~*/)', '');
    if (/\[native code\]\s*\}$/.test(text))
        fail(`${what}: a function of the language can't be sent as text: write (x) => ${fn.name}(x)`);
    if (/^class\b/.test(text))
        fail(`${what}: a class is no function`);
    if (!/^(?:function\b|\(|[\w$]+\s*=>)/.test(text))
        fail(`${what}: write it as an arrow function, or with the word function`);
    const around = declared.length > 0 && !/[`/]/.test(bare(text)) ? captured(text, declared) : null;
    if (around !== null && !graph.argument.seen.has(around))
        fail(`${what}${fn.name ? ` (${fn.name})` : ''} uses ${around}, which the file declares outside of it: a function travels as its ` +
             `text; define it inside of the function, or pass it in: computed({${around}}, ({${around}}) => ...)`);
    const name = captured(text, graph.argument.seen);
    if (name !== null)
        fail(`${what}${fn.name ? ` (${fn.name})` : ''} uses ${name}, which stands outside of it: a function travels as its text; ` +
             `pass it in: computed({${name}}, ({${name}}) => ...)`);
    return text;
}

const isInputs = (value) => typeof value === 'object' && value !== null && !Array.isArray(value) && Stamp.of(value) === null;
const needGraph = (what) => graph || fail(`${what} belongs into the function of a pattern: pattern("name", defaults, (argument) => ...)`);

function addNode(what, hint, module, args, options, members) {
    needGraph(what);
    for (const key of Object.keys(options))
        if (key !== 'id' && key !== 'limits' && !NODE_OPTIONS.includes(key))
            fail(`${what} has no option ${key}`);
    const node = { kind: 'node', name: options.id, hint, what, graph, module, args, options, members };
    if (options.id !== undefined && !NAME.test(options.id))
        fail(`${what}: "${options.id}" is no name`);
    graph.nodes.push(node);
    return reference(node, []);
}

// One object of inputs by name, or inputs by position.
const inputsOf = (args) => args.length === 0 ? {} : args.length === 1 && isInputs(args[0]) ? args[0] : args;

function javascript(what, fn, options, extra) {
    needGraph(what);
    const module = { type: 'javascript', implementation: functionText(fn, what), ...extra };
    if (options.limits)
        module.limits = options.limits;
    return module;
}

const lift = (fn, options = {}) => (...args) =>
    addNode('lift', fn.name, javascript('lift', fn, options), inputsOf(args), options, {});
function computed(inputs, fn, options = {}) {
    if (typeof inputs === 'function')
        [inputs, fn] = [fn === undefined ? {} : fn, inputs];
    return addNode('computed', fn.name, javascript('computed', fn, options), inputs, options, {});
}
const effect = (fn, options = {}) => (...args) =>
    addNode('effect', fn.name, javascript('effect', fn, options), inputsOf(args), options, { kind: 'effect' });
const handler = (fn, options = {}) => (...args) =>
    addNode('handler', fn.name, javascript('handler', fn, options, { handler: true }), inputsOf(args), options, { stream: true });
const ref = (name, options = {}) => (...args) =>
    addNode(`ref("${name}")`, name, { type: 'ref', ref: name }, inputsOf(args), options, {});
const when = (condition, value, options = {}) =>
    addNode('when', 'when', { type: 'ref', ref: 'when' }, { condition, value }, options, {});
const ifElse = (condition, then, otherwise, options = {}) =>
    addNode('ifElse', 'ifElse', { type: 'ref', ref: 'ifElse' }, { condition, then, else: otherwise }, options, {});

function split(options) {
    const own = {}, module = {};
    for (const key of Object.keys(options))
        (key === 'id' || NODE_OPTIONS.includes(key) ? own : module)[key] = options[key];
    return [own, module];
}
function command(argv, inputs = {}, options = {}) {
    const [own, module] = split(options);
    delete module.kind; // of the node
    const what = typeof argv === 'string' ? { shell: argv } : { argv };
    return addNode('command', 'command', { type: 'command', ...what, ...module }, inputs, own, options.kind ? { kind: options.kind } : {});
}
function call(descriptor, inputs = {}, options = {}) {
    if (!isInputs(descriptor))
        fail('call takes the members of a call module, the inputs, and options');
    return addNode('call', 'call', { type: 'call', ...descriptor }, inputs, options, {});
}

// "FILE.py:FUNCTION" as a function of its inputs, as lift is one.
function python(text, options = {}) {
    const [own, module] = split(options);
    const colon = typeof text === 'string' ? text.lastIndexOf(':') : -1;
    if (colon < 1 || colon === text.length - 1)
        fail('python takes "FILE.py:FUNCTION", and options');
    const members = module.handler === true ? { stream: true } : options.kind ? { kind: options.kind } : {};
    delete module.kind; // of the node
    const implementation = { file: text.slice(0, colon), export: text.slice(colon + 1) };
    return (...args) => addNode('python', implementation.export, { type: 'python', implementation, ...module }, inputsOf(args), own, members);
}

function cell(initial, options = {}) {
    needGraph('cell');
    const made = { kind: 'cell', name: options.name, hint: 'cell', graph, initial, options };
    if (options.name !== undefined && !NAME.test(options.name))
        fail(`cell: "${options.name}" is no name`);
    graph.cells.push(made);
    return reference(made, []);
}

function member(value, key) {
    const of = Stamp.of(value) || fail('member takes a reference and a key');
    return reference(of.owner, [...of.path, String(key)], of.asCell);
}
function asCell(value) {
    const of = Stamp.of(value) || fail('asCell takes a reference');
    return reference(of.owner, of.path, true);
}

// One child pattern per element of a list. The function builds it from references to what its argument has.
function eachElement(what, list, fn, options, members, inputs) {
    needGraph(what);
    if (typeof fn !== 'function')
        fail(`${what} takes a list and a function that builds a pattern for one element`);
    const { key, ...own } = options;
    const captures = [];
    const child = build(own.id || fn.name || 'element', undefined, (argument) => fn(...members.map((name) => argument[name])), {}, captures);
    if (child.result === undefined)
        fail(`${what}: the function that builds the pattern of an element returns nothing`);
    const module = { type: 'ref', ref: what, pattern: child };
    const args = { list, ...inputs };
    for (const c of captures)
        args[c.name] = reference(c.ref.owner, c.ref.path, c.cell);
    if (typeof key === 'function')
        args.keys = addNode(what, 'keys', { type: 'javascript', implementation: eachKey(key) }, { list }, {}, {});
    else if (key !== undefined)
        module.key = key;
    return addNode(what, what, module, args, own, {});
}
// Travels as text, with the text of the key function in it.
function eachKey(key) {
    return `({list}) => (list || []).map((element) => (${functionText(key, 'the key')})(element))`;
}
const map = (list, fn, options = {}) => eachElement('map', list, fn, options, ['element', 'index'], {});
const filter = (list, fn, options = {}) => eachElement('filter', list, fn, options, ['element', 'index'], {});
function reduce(list, fn, initial, options = {}) {
    return eachElement('reduce', list, fn, options, ['accumulator', 'element', 'index'], initial === undefined ? {} : { initial });
}
const unless = (condition, value, options = {}) =>
    addNode('unless', 'unless', { type: 'ref', ref: 'unless' }, { condition, value }, options, {});

function giveNames(made, result) {
    const taken = new Set(['argument', 'result']);
    const owners = [...made.cells, ...made.nodes];
    for (const owner of owners) {
        if (!owner.name)
            continue;
        if (taken.has(owner.name))
            fail(`the name "${owner.name}" is given twice`);
        taken.add(owner.name);
    }
    // What the result calls it; else the name of its function; else what it is.
    if (isInputs(result)) {
        for (const key of Object.keys(result)) {
            const of = Stamp.of(result[key]);
            if (of !== null && of.path.length === 0 && of.owner.graph === made && !of.owner.name && NAME.test(key) && !taken.has(key)) {
                of.owner.name = key;
                taken.add(key);
            }
        }
    }
    for (const owner of owners) {
        if (owner.name)
            continue;
        const base = owner.hint && NAME.test(owner.hint) ? owner.hint : owner.what || owner.kind;
        let name = base;
        for (let i = 2; taken.has(name); i++)
            name = `${base}-${i}`;
        owner.name = name;
        taken.add(name);
    }
}

function build(name, defaults, fn, head = {}, captures = null) {
    const outer = graph;
    graph = { outer, captures, cells: [], nodes: [], argument: { kind: 'argument', name: 'argument', graph: null, seen: new Set() } };
    graph.argument.graph = graph;
    try {
        const result = fn(reference(graph.argument, []));
        giveNames(graph, result);
        const made = { pattern: 1, name, ...head };
        if (defaults !== undefined)
            made.argument = { default: defaults };
        if (graph.cells.length > 0) {
            made.cells = {};
            for (const c of graph.cells) {
                made.cells[c.name] = c.initial === undefined ? {} : { default: c.initial };
                if (c.options.schema)
                    made.cells[c.name].schema = c.options.schema;
            }
        }
        made.nodes = graph.nodes.map((node) => {
            const own = { id: node.name };
            const stream = node.members.stream === true;
            if (stream)
                own.stream = { $: node.name };
            if (node.members.kind)
                own.kind = node.members.kind;
            own.inputs = binding(node.args, `an input of ${node.name}`, stream);
            own.module = node.module;
            for (const key of NODE_OPTIONS)
                if (node.options[key] !== undefined)
                    own[key] = key === 'output' ? binding(node.options.output, `the output of ${node.name}`, false) : node.options[key];
            return own;
        });
        if (result !== undefined)
            made.result = binding(result, 'the result', false);
        return made;
    } finally {
        graph = outer;
    }
}

let patterns = [];
class Pattern {
    constructor(json) {
        this.json = json;
    }
}

function pattern(name, defaults, fn, options = {}) {
    if (typeof defaults === 'function')
        [defaults, fn, options] = [undefined, defaults, fn === undefined ? {} : fn];
    if (typeof name !== 'string' || !NAME.test(name))
        fail('pattern takes a name: letters, digits, "_", "-" and "."');
    if (typeof fn !== 'function')
        fail('pattern takes a name, the default argument, and a function from the argument to the result');
    if (graph)
        fail('a pattern inside a pattern: use map(list, fn)');
    const head = {};
    for (const key of ['version', 'title', 'description'])
        if (options[key] !== undefined)
            head[key] = options[key];
    const made = new Pattern(build(name, defaults, fn, head));
    if (options.schema !== undefined)
        made.json.argument = { ...made.json.argument, schema: options.schema };
    patterns.push(made);
    return made;
}

// Called with what stands in a condition of the file (truth.c).
function $truth_(...all) {
    const value = all[all.length - 1], ref = Stamp.of(value);
    if (ref !== null)
        fail(`${ref.describe()} is not known while the graph is built: it can't be asked or compared here; ` +
             `choose with ifElse(condition, then, otherwise) or when(condition, value), or compute with it in lift(fn) or computed`);
    return value;
}

const functions = { $truth_, pattern, lift, computed, handler, effect, cell, map, filter, reduce, when, unless, ifElse, command, call, python, ref, member, asCell };

// `script`: the file as a function of the functions above that returns its exports.
function evaluate(script) {
    patterns = [];
    graph = null;
    declared = [...bare(Function.prototype.toString.call(script)).matchAll(DECLARED)].map((found) => found[1]);
    const exported = script(...Object.values(functions));
    const chosen = exported.default instanceof Pattern ? exported.default : patterns.length === 1 ? patterns[0] : null;
    if (chosen === null)
        fail(patterns.length === 0 ? 'it makes no pattern: call pattern("name", defaults, (argument) => result)'
            : `it makes ${patterns.length} patterns: say which with export default`);
    patterns = [];
    return serialize(chosen.json, 'the pattern');
}

return { evaluate, names: Object.keys(functions).join() };
})
