// A chart's numbers as a table, made when somebody opens it. A cell is a text, or a text with the address it leads to.

function filled(cell, content) {
  const { text, url } = typeof content === "object" && content !== null ? content : { text: content };
  if (!url) {
    cell.textContent = text;
    return cell;
  }
  const link = document.createElement("a");
  link.href = url;
  link.textContent = text;
  cell.append(link);
  return cell;
}

// Rows begin with what they are about.
export function tableOf(heads, rows) {
  const table = document.createElement("table");
  table.className = "chart-numbers";
  [heads, ...rows].forEach((contents, place) => {
    const row = table.insertRow();
    contents.forEach((content, column) => {
      const cell = filled(document.createElement(place === 0 || column === 0 ? "th" : "td"), content);
      if (cell.tagName === "TH") cell.scope = place === 0 ? "col" : "row";
      row.append(cell);
    });
  });
  return table;
}
