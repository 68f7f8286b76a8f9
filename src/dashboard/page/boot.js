// Where a part of the page could not be loaded (the network changed just then, the server was ended), a person would look at
// nothing: it is tried again, and then said. Not a module, so that it is there when modules are not.
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
