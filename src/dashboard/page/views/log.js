// A trial's log while it grows: the end first, earlier parts on request.
import {h, panel, save} from '../dom.js';
import {bytes} from '../format.js';

const piece = 65536;
// The most characters that stay in the page, as a log may have gigabytes.
const kept = 2_000_000;

export function makeLog(app, trial) {
  const text = h('pre', {class: 'log', tabindex: 0, 'aria-label': `Log of trial ${trial}`, dir: 'ltr'});
  const earlier = h('button', {type: 'button', class: 'quiet small', hidden: true, onclick: () => loadEarlier()}, 'Earlier');
  const follow = h('button', {type: 'button', class: 'quiet small', hidden: true, onclick: () => { text.scrollTop = text.scrollHeight; }}, 'To the end');
  const size = h('span', {class: 'muted'});
  const keepButton = h('button', {type: 'button', class: 'quiet small', onclick: () => save(new Blob([text.textContent], {type: 'text/plain'}), `trial-${trial}.log`)}, 'Save');
  const element = panel('Log', {tools: [size, earlier, follow, keepButton], class: 'log-panel', hidden: true}, text);
  let from = null;
  let to = null;

  const atEnd = () => text.scrollHeight - text.scrollTop - text.clientHeight < 24;

  function paint(total) {
    earlier.hidden = from === 0 || from === null;
    size.textContent = from > 0 ? `the last ${bytes(to - from)} of ${bytes(total)}` : bytes(total);
    follow.hidden = atEnd();
  }
  text.addEventListener('scroll', () => {
    follow.hidden = atEnd();
  });

  async function loadEarlier() {
    const begin = Math.max(0, from - piece);
    const answer = await app.get('/api/log', {trial, from: begin});
    // The answer may overlap with what is shown already.
    const bytesWanted = from - answer.from;
    const whole = new TextEncoder().encode(answer.text);
    const added = answer.to - answer.from === whole.length ? new TextDecoder().decode(whole.slice(0, bytesWanted)) : answer.text.slice(0, bytesWanted);
    const height = text.scrollHeight;
    text.prepend(document.createTextNode(added));
    text.scrollTop += text.scrollHeight - height;
    from = answer.from;
    paint(answer.size);
  }

  return {
    element,
    async refresh(total, signal) {
      element.hidden = !(total > 0);
      if (!(total > 0) || (to !== null && total === to)) return;
      const shrunk = to !== null && total < to;
      let answer = await app.get('/api/log', to === null || shrunk ? {trial} : {trial, from: to}, signal);
      if (signal.aborted) return;
      const stay = to === null || atEnd();
      if (to === null || shrunk || answer.from !== to) {
        text.replaceChildren();
        from = answer.from;
      }
      for (;;) {
        text.append(document.createTextNode(answer.text));
        to = answer.to;
        if (answer.to >= answer.size || answer.text === '') break;
        if (answer.size - answer.to > kept) {
          answer = await app.get('/api/log', {trial}, signal);
          text.replaceChildren();
          from = answer.from;
        } else {
          answer = await app.get('/api/log', {trial, from: to}, signal);
        }
        if (signal.aborted) return;
      }
      while (text.textContent.length > kept && text.childNodes.length > 1) {
        from += new TextEncoder().encode(text.firstChild.data).length;
        text.firstChild.remove();
      }
      if (stay) text.scrollTop = text.scrollHeight;
      paint(answer.size);
    },
  };
}
