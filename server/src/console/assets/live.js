// Keeps parts of a page up to date in place: scroll position, selection and focus stay where they are.
'use strict';
(() => {
  const periodMs = 5000;
  const state = document.getElementById('live-state');

  // Whether somebody is using the part: replacing it would take the focus or the selection away.
  function isInUse(part) {
    const selection = document.getSelection();
    return part.contains(document.activeElement)
      || (selection && !selection.isCollapsed && part.contains(selection.anchorNode));
  }

  async function refresh() {
    if (document.hidden) return;
    try {
      const answer = await fetch(location.href, {cache: 'no-store'});
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
      for (const part of document.querySelectorAll('[data-live]')) {
        const next = fresh.getElementById(part.id);
        if (next && !isInUse(part) && part.innerHTML !== next.innerHTML) part.replaceChildren(...next.childNodes);
      }
      if (state.textContent) state.textContent = '';
    } catch (error) {
      const text = `The server does not answer (${error.message}): the figures are old.`;
      if (state.textContent !== text) state.textContent = text;
    }
    document.documentElement.dataset.refreshed = String(Number(document.documentElement.dataset.refreshed ?? 0) + 1);
  }

  setInterval(refresh, periodMs);
  document.addEventListener('visibilitychange', refresh);
})();
