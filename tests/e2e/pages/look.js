// What a person would complain about in the page that is open, a line each.
(() => {
  const complaints = [];
  const complain = (what, element) => {
    const text = (element?.textContent ?? "").trim().slice(0, 40);
    complaints.push(`${what}: <${element?.tagName.toLowerCase() ?? "page"}> ${text}`);
  };

  const page = document.documentElement;
  if (!page.lang) complain("the page has no language", page);
  if (!document.title) complain("the page has no title", page);
  if (document.querySelectorAll("h1").length !== 1) complain("the page has not one main heading", page);
  if (page.scrollWidth > window.innerWidth) complain(`the page is ${page.scrollWidth} wide in a window of ${window.innerWidth}`, page);

  const hidden = (element) => !element.checkVisibility() || element.closest("details:not([open]) > :not(summary)");
  // A drawing may be too wide for a small window; then it scrolls within its place.
  for (const drawing of document.querySelectorAll("svg")) {
    if (hidden(drawing)) continue;
    const box = drawing.getBoundingClientRect();
    if (box.width < 100 || box.height < 40) complain(`a drawing of ${box.width} by ${box.height}`, drawing);
    if (drawing.getAttribute("role") !== "img" || !(drawing.ariaLabel || drawing.getAttribute("aria-labelledby")))
      complain("a drawing without words for who cannot see it", drawing);
    // Half a line's width may stand out.
    const within = (inner) => inner.left >= box.left - 2 && inner.right <= box.right + 2 && inner.top >= box.top - 2 && inner.bottom <= box.bottom + 2;
    for (const part of drawing.querySelectorAll("path, polyline, line, rect, circle, text"))
      if (!within(part.getBoundingClientRect())) complain("a part stands out of its drawing", part);
    const words = [...drawing.querySelectorAll("text")].map((text) => [text, text.getBoundingClientRect()]);
    for (const [text, place] of words) if (place.height < 10) complain(`words ${place.height.toFixed(1)} high`, text);
    words.forEach(([text, a], i) =>
      words.slice(i + 1).forEach(([, b]) => {
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (wide > 1 && high > 3) complain("words lie on one another", text);
      }),
    );
  }

  for (const table of document.querySelectorAll("table"))
    if (!table.querySelector("th")) complain("a table without headings", table);

  // Contrast as WCAG 2.2 counts it: 4.5 for text, 3 for large text.
  const channels = (color) => color.match(/[\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => {
    const linear = (value) => ((value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  };
  const background = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = channels(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] > 0.99) return color;
    }
    return [255, 255, 255];
  };
  const seen = new Set();
  const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (words.nextNode()) {
    const element = words.currentNode.parentElement;
    if (seen.has(element) || !words.currentNode.data.trim() || hidden(element) || element.closest("title, style")) continue;
    seen.add(element);
    const style = getComputedStyle(element);
    const [a, b] = [luminance(channels(element.closest("svg") ? style.fill : style.color)), luminance(background(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
    if (contrast < (large ? 3 : 4.5)) complain(`text with a contrast of ${contrast.toFixed(1)}`, element);
  }
  return complaints;
})()
