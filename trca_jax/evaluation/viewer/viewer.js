// Shows the episodes of the page's data. Every text becomes a text node; nothing is ever parsed as markup.
'use strict';
(() => {
  const root = document.getElementById('viewer');
  if (!root) return;
  const data = JSON.parse(document.getElementById('data').textContent);
  const files = data.files.filter((file) => file.groups.length);
  const MARKS = {evidence: '●', execution: '▲', invalidity: '✕'};
  const at = {file: 0, group: 0, rollout: 0, step: 0};

  // An element: 'tag.class.class' or 'svg:tag.class'; functions among the attributes are listeners.
  function h(name, attributes, ...content) {
    const [tag, ...classes] = name.split('.');
    const drawn = tag.startsWith('svg:');
    const element = drawn
      ? document.createElementNS('http://www.w3.org/2000/svg', tag.slice(4))
      : document.createElement(tag);
    if (classes.length) element.setAttribute('class', classes.join(' '));
    for (const [key, value] of Object.entries(attributes || {})) {
      if (typeof value === 'function') element.addEventListener(key, value);
      else if (value !== null && value !== false) element.setAttribute(key, value);
    }
    element.append(...content.flat(2).filter((part) => part !== null && part !== ''));
    return element;
  }
  const text = (place) => (place < 0 ? null : data.texts[place]);
  const signed = (x) => (x === null ? '–' : `${x > 0 ? '+' : '−'}${Math.abs(x).toFixed(2)}`.replace(/^.0\.00$/, '0.00'));
  const clamp = (x, n) => Math.min(Math.max(x, 0), n - 1);
  const tone = (x) => (x > 0.005 ? '.up' : x < -0.005 ? '.down' : '');
  const named = (letter, sub) => [letter, h('sub', null, sub)];
  const plural = (n, what) => `${n} ${what}${n === 1 ? '' : 's'}`;

  const file = () => files[at.file];
  const group = () => file().groups[at.group];
  const rollout = () => group().rollouts[at.rollout];
  function read([action, answer, thought, context, where, items, foundational, breakthrough, env, back, step, all]) {
    return {action: text(action), answer: text(answer), thought: text(thought), context, where: text(where),
      items: items.map((j) => data.items[j]), foundational, breakthrough, env, back, step, all};
  }

  function go(change, focus) {
    Object.assign(at, change);
    at.group = clamp(at.group, file().groups.length);
    at.rollout = clamp(at.rollout, group().rollouts.length);
    at.step = clamp(at.step, Math.max(rollout().steps.length, 1));
    const active = document.activeElement;
    const kept = ['select', '.group[aria-current]', '.rollout[aria-pressed=true]'].find((x) => active.matches(x.replace(/\[.*/, '')));
    history.replaceState(null, '', `#${file().key}/${group().number}/${at.rollout + 1}/${at.step + 1}`);
    draw();
    if (kept && !focus) root.querySelector(kept).focus({preventScroll: true});
    const row = root.querySelector('.step.open > .row');
    if (focus && row) {
      row.focus({preventScroll: true});
      row.parentNode.scrollIntoView({block: 'nearest'});
    }
  }
  function fromHash() {
    const [key, number, r, t] = location.hash.slice(1).split('/');
    const f = files.findIndex((one) => one.key === key);
    const g = f < 0 ? -1 : files[f].groups.findIndex((one) => one.number === Number(number));
    if (g < 0) return false;
    go({file: f, group: g, rollout: (parseInt(r) || 1) - 1, step: (parseInt(t) || 1) - 1}, Boolean(t));
    return true;
  }
  // The group that shows most: some won and some lost, or else the first; its first rollout that was won.
  function telling(f) {
    const groups = files[f].groups;
    const mixed = groups.findIndex((one) => new Set(one.rollouts.map((x) => x.end === 'won')).size > 1);
    const g = Math.max(mixed, 0);
    return {file: f, group: g, rollout: Math.max(groups[g].rollouts.findIndex((x) => x.end === 'won'), 0), step: 0};
  }

  function picker() {
    const choose = h('select', {'aria-label': 'file of episodes', change: (e) => go(telling(Number(e.target.value)))},
      files.map((one, f) => h('option', {value: f, selected: f === at.file ? '' : null}, one.label)));
    const left = file().left_out;
    const list = file().groups.map((one, g) => h('li', null,
      h('button.group', {'aria-current': g === at.group ? 'true' : null, click: () => go({group: g, rollout: 0, step: 0})},
        h('span.dots', {'aria-hidden': 'true'}, one.rollouts.map((x) => h(`i.${x.end === 'won' ? 'won' : 'lost'}`))),
        h('span.told', null, one.instruction),
        h('span.count', null, `${one.rollouts.filter((x) => x.end === 'won').length} of ${one.rollouts.length} won`))));
    return h('nav.picker', {'aria-label': 'groups'}, choose, h('ul', null, list),
      left ? h('p.under', null, `${plural(left, 'more group')} of this file ${left > 1 ? 'are' : 'is'} not on the page.`) : '');
  }

  function strip(steps) {
    const n = Math.max(steps.length, root.clientWidth < 600 ? 16 : 30);
    const tall = Math.max(...steps.map((s) => Math.abs(s.all)), Math.abs(rollout().episode), 0.01);
    const y = (x) => 32 - 30 * x / tall;
    const bars = steps.map((s, t) => h('svg:g' + (t === at.step ? '.here' : ''), {click: () => go({step: t}, true)},
      h('svg:rect.hit', {x: 24 * t, y: 0, width: 24, height: 100}),
      h('svg:rect.bar', {x: 24 * t + 5, y: Math.min(y(s.all), 32), width: 14, height: Math.max(Math.abs(y(s.all) - 32), 1)}),
      s.items.slice(0, 3).map((item, i) => h(`svg:text.mark.${item.category}`, {x: 24 * t + 12, y: 97 - 12 * i}, MARKS[item.category]))));
    const level = y(rollout().episode);
    return [h('figure.strip', null, h('svg:svg', {viewBox: `0 0 ${24 * n} 100`, role: 'img', 'aria-label': 'advantage of every step'},
      h('svg:line.grid', {x1: 0, x2: 24 * steps.length, y1: 32, y2: 32}), bars,
      h('svg:line.level', {x1: 0, x2: 24 * steps.length, y1: level, y2: level}))),
      h('p.under', null, 'Bars: the advantage A of each step. Dashed: ', named('A', 'E'), ', equal for all steps. Below: operators that fired.')];
  }

  function numbers(s) {
    const rubric = [[named('r', 'F'), 'foundational', s.foundational], [named('r', 'B'), 'breakthrough', s.breakthrough]];
    const rows = [...(file().rubric ? rubric : []), [named('r', 'env'), 'environment', s.env], ['G', 'return', s.back],
      [named('A', 'E'), 'of the rollout', rollout().episode], [named('A', 'S'), 'of the step', s.step], ['A', 'advantage', s.all]];
    return h('dl.numbers', null, rows.map(([name, what, x]) =>
      h('div', null, h('dt', null, name, h('small', null, what)), h('dd' + tone(x), null, signed(x)))));
  }

  function fired(s) {
    if (!s.items.length) return h('p.under', null, 'No operator fired.');
    return h('ul.fired', null, s.items.map((item) => h('li', null, h(`span.mark.${item.category}`, {title: item.category}, MARKS[item.category]),
      h('div', null, h('b', null, item.name), ' ', h('span.under', null, item.category), h('code', null, item.when), h('p', null, item.doc)))));
  }

  // What all rollouts of the group did in the same context: each action with its mean return, best first.
  function siblings(s) {
    const found = new Map();
    let count = 0;
    const rollouts = new Set();
    group().rollouts.forEach((one, r) => one.steps.map(read).forEach((other, t) => {
      if (other.context !== s.context) return;
      count += 1;
      rollouts.add(r);
      const key = other.action ?? '(no action)';
      if (!found.has(key)) found.set(key, []);
      found.get(key).push({r, t, ...other});
    }));
    const mean = (places, name) => places.reduce((sum, p) => sum + p[name], 0) / places.length;
    const rows = [...found].map(([action, places]) => ({action, places, back: mean(places, 'back'), step: mean(places, 'step')}));
    if (file().credited) rows.sort((a, b) => b.back - a.back);
    else rows.sort((a, b) => b.places.length - a.places.length);
    const widest = Math.max(...rows.map((row) => Math.abs(row.step)), 0.01);
    const own = (row) => row.action === (s.action ?? '(no action)');
    const shown = rows.filter((row, i) => i < 12 || own(row));
    const body = shown.map((row) => h('tr' + (own(row) ? '.own' : ''), null,
      h('th', {scope: 'row'}, row.action), file().credited ? [h('td.number', null, signed(row.back)),
        h('td', null, h('span.mean' + tone(row.step), null, signed(row.step)), h('svg:svg.tilt', {viewBox: '0 0 80 14', 'aria-hidden': 'true'},
          h('svg:line.grid', {x1: 40, x2: 40, y1: 0, y2: 14}),
          h('svg:rect.bar' + tone(row.step), {x: 40 + Math.min(36 * row.step / widest, 0), y: 3, width: Math.max(Math.abs(36 * row.step / widest), 1), height: 8}))) ] : '',
      h('td', null, row.places.slice(0, 6).flatMap((p) => [h('button.link', {click: () => go({rollout: p.r, step: p.t}, true),
        'aria-label': `rollout ${p.r + 1}, step ${p.t + 1}`}, `${p.r + 1}·${p.t + 1}`), ' ']),
        row.places.length > 6 ? h('span.under', null, ` +${row.places.length - 6}`) : '')));
    return h('div.siblings', null, h('h4', null, 'In the same context'),
      h('p.under', null, s.where ? h('span.where', null, s.where) : 'The same observation', ` — ${plural(count, 'step')} of ${plural(rollouts.size, 'rollout')}`),
      h('div.wide', null, h('table', null, h('thead', null, h('tr', null, h('th', {scope: 'col'}, 'action'),
        file().credited ? [h('th', {scope: 'col'}, 'mean G'), h('th', {scope: 'col'}, 'mean ', named('A', 'S'))] : '',
        h('th', {scope: 'col'}, 'rollout·step'))), h('tbody', null, body))),
      rows.length > shown.length ? h('p.under', null, `and ${plural(rows.length - shown.length, 'other action')}`) : '');
  }

  function stepItem(s, t) {
    const open = t === at.step;
    return h('li.step' + (open ? '.open' : ''), null,
      h('button.row', {'aria-expanded': String(open), click: () => go({step: t}, true)}, h('span.no', null, String(t + 1)),
        h('span.action', null, s.action ?? 'no action could be read'),
        h('span.marks', null, s.items.map((item) => h(`span.mark.${item.category}`, {title: item.name}, MARKS[item.category]))),
        file().credited ? h('span.number' + tone(s.all), null, signed(s.all)) : ''),
      h('p.answer', null, s.answer),
      open ? h('div.detail', null, s.thought ? h('blockquote', null, h('small', null, s.action === null ? 'what it said' : 'thought'), s.thought) : '',
        fired(s), file().credited ? numbers(s) : '', siblings(s)) : '');
  }

  function episode() {
    const steps = rollout().steps.map(read), one = rollout();
    const ends = {won: 'won', lost: 'lost', 'cut off': 'lost: cut off at the limit', ended: 'lost', failed: `the infrastructure failed: ${one.failure}`};
    return h('article', null, h('header', null, h('h3', null, group().instruction), h('p.under', null, group().kind),
      h('div.rollouts', {role: 'group', 'aria-label': 'rollouts'}, group().rollouts.map((x, r) =>
        h(`button.rollout.${x.end === 'won' ? 'won' : 'lost'}`, {'aria-pressed': String(r === at.rollout), click: () => go({rollout: r, step: 0}),
          'aria-label': `rollout ${r + 1}, ${x.end === 'won' ? 'won' : 'lost'}`}, h('b', null, String(r + 1)), h('small', null, `${x.steps.length} steps`)))),
      h('p', null, `Rollout ${at.rollout + 1} of ${group().rollouts.length}: ${ends[one.end]}, ${plural(steps.length, 'step')}`,
        file().credited ? [', ', named('A', 'E'), ' ', h('b', null, signed(one.episode))] : '')),
      file().credited && steps.length ? strip(steps) : '',
      h('ol', null, h('li.step.scene', null, h('p.answer', null, text(one.first))), steps.map(stepItem)));
  }

  function draw() {
    const before = root.querySelector('.picker ul'), scrolled = before ? before.scrollTop : 0;
    root.replaceChildren(picker(), episode());
    const list = root.querySelector('.picker ul'), here = list.querySelector('[aria-current]');
    const top = here.offsetTop, bottom = top + here.offsetHeight - list.clientHeight;
    list.scrollTop = Math.max(Math.min(scrolled, top), bottom);
  }

  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(SELECT|INPUT|TEXTAREA)$/.test(event.target.tagName)) return;
    const inside = root.contains(event.target);  // elsewhere the arrows scroll the page
    const moves = {j: ['step', 1], k: ['step', -1], ']': ['rollout', 1], '[': ['rollout', -1], '}': ['group', 1], '{': ['group', -1]};
    if (inside) Object.assign(moves, {ArrowDown: moves.j, ArrowUp: moves.k, ArrowRight: moves[']'], ArrowLeft: moves['[']});
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    const [name, by] = move;
    const first = {group: {rollout: 0, step: 0}, rollout: {step: 0}, step: {}}[name];
    go({...first, [name]: Math.max(at[name] + by, 0)}, true);
  });
  addEventListener('hashchange', fromHash);
  if (!fromHash()) go(telling(0));
})();
