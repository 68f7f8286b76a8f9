// If a part of the page cannot be loaded (the network changed, the server was stopped), the page would stay empty. This
// script reloads it several times, then shows a message. It is not a module, because modules may be what is missing.
(() => {
  const most = 5;
  const tried = Number(new URLSearchParams(location.search).get('again') ?? 0);
  addEventListener('error', ({target}) => {
    if (!(target instanceof HTMLScriptElement) || target.type !== 'module') return;
    if (tried < most) {
      setTimeout(() => location.replace(`?again=${tried + 1}${location.hash}`), 300 * 2 ** tried);
      return;
    }
    const line = document.createElement('p');
    line.className = 'noscript';
    line.textContent = 'The page could not be loaded whole. Is the server still there? Reloading tries again.';
    document.body.append(line);
  }, true);
})();
