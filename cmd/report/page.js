"use strict";
(() => {
	const all = (selector, root) => Array.from((root || document).querySelectorAll(selector));
	const tableOf = (id) => document.querySelector(`table[data-table="${CSS.escape(id)}"]`);
	const valueOf = (cell) => {
		const v = cell.dataset.v;
		if (v === undefined) return cell.textContent;
		return v === "" ? null : cell.classList.contains("n") ? Number(v) : v;
	};

	// Tables sort by a column. The first click puts the largest number, or the first text, on top.
	const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en");
	for (const table of all("table")) {
		const heads = all("thead th", table);
		heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
			const first = head.classList.contains("n") ? "descending" : "ascending";
			const other = first === "ascending" ? "descending" : "ascending";
			const order = head.getAttribute("aria-sort") === first ? other : first;
			heads.forEach((h) => h.removeAttribute("aria-sort"));
			head.setAttribute("aria-sort", order);
			const sign = order === "ascending" ? 1 : -1;
			const rows = all("tbody tr", table).map((row) => [valueOf(row.cells[column]), row]);
			rows.sort(([a], [b]) => a === null ? (b === null ? 0 : 1) : b === null ? -1 : sign * compare(a, b));
			table.tBodies[0].append(...rows.map(([, row]) => row));
		}));
	}

	// Tables show only the rows that hold all words of the filter.
	for (const input of all("input[data-filter]")) {
		const rows = all("tbody tr", tableOf(input.dataset.filter));
		const status = input.closest("p").querySelector("[role=status]");
		input.addEventListener("input", () => {
			const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
			let shown = 0;
			for (const row of rows) {
				const text = row.textContent.toLowerCase();
				row.hidden = !words.every((w) => text.includes(w));
				shown += row.hidden ? 0 : 1;
			}
			status.textContent = words.length ? `${shown} of ${rows.length} rows` : "";
		});
	}

	// The keyboard stops at a table only if the table scrolls.
	const scrolls = new ResizeObserver((entries) => {
		for (const {target} of entries) {
			if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
			else target.removeAttribute("tabindex");
		}
	});
	for (const region of all(".scroll")) scrolls.observe(region);

	// Charts draw the rows of their tables.
	const dark = matchMedia("(prefers-color-scheme: dark)");
	const print = matchMedia("print");
	const palettes = {
		light: {text: "#57606a", grid: "#e3e6ea", lines: ["#0b5cad", "#b3541e", "#1a6e35", "#7a3fa0", "#8a5a00"]},
		dark: {text: "#a2adb8", grid: "#2b333c", lines: ["#7cb8f5", "#f0a070", "#74d08f", "#c9a0ee", "#f0c050"]},
	};
	const dashes = [[], [6, 4], [2, 3], [10, 4, 2, 4], [1, 5]];
	const short = (v, bytes) => {
		if (v === null || v === undefined) return "–";
		const units = bytes ? [" B", " kB", " MB", " GB", " TB"] : ["", " k", " M", " G", " T"];
		let i = 0;
		while (Math.abs(v) >= 1000 && i < units.length - 1) { v /= 1000; i++; }
		return Number(v.toPrecision(3)) + units[i];
	};
	const two = (n) => String(n).padStart(2, "0");
	const time = (s) => {
		const d = new Date(s * 1000);
		return `${d.getUTCFullYear()}-${two(d.getUTCMonth() + 1)}-${two(d.getUTCDate())} ${two(d.getUTCHours())}:${two(d.getUTCMinutes())}:${two(d.getUTCSeconds())}`;
	};

	// ticks writes the times of an axis: the date under the first, and under the first of each day.
	const ticks = (splits, step) => {
		let day = "";
		return splits.map((s) => {
			const text = time(s), of = text.slice(0, 10);
			if (step >= 86400) return of;
			const clock = step < 60 ? text.slice(11) : text.slice(11, 16);
			const first = of !== day;
			day = of;
			return first ? clock + "\n" + of : clock;
		});
	};

	// points returns the data of a chart: times, then the values of each series. Between rounds, and
	// where a row is missing, values are null or 0.
	const points = (figure) => {
		const x = Number(figure.dataset.x), y = figure.dataset.y.split(",").map(Number), step = Number(figure.dataset.step);
		const rate = figure.dataset.rate === "true", gaps = figure.dataset.gaps === "true";
		const data = [[], ...y.map(() => [])];
		const push = (at, values) => {
			const last = data[0].length - 1;
			if (last >= 0 && data[0][last] >= at) {
				if (!rate) at = data[0][last] + 0.001;
				else { values.forEach((v, i) => { data[i + 1][last] += v; }); return; }
			}
			data[0].push(at);
			values.forEach((v, i) => data[i + 1].push(v));
		};
		let round = null, last = null;
		for (const row of all("tbody tr", tableOf(figure.dataset.table))) {
			const at = Date.parse(valueOf(row.cells[x])) / 1000, of = valueOf(row.cells[0]);
			const values = y.map((c) => { const v = valueOf(row.cells[c]); return v !== null && rate ? v / step : v; });
			if (gaps && round !== null && of !== round) push(last + 0.001, y.map(() => null));
			if (!gaps && last !== null && at - last > step) {
				push(last + step, y.map(() => 0));
				if (at - last > 2 * step) push(at - step, y.map(() => 0));
			}
			push(at, values);
			round = of;
			last = at;
		}
		return data;
	};

	const draw = (figure) => {
		const table = tableOf(figure.dataset.table);
		const heads = all("thead th", table);
		const y = figure.dataset.y.split(",").map(Number);
		const bytes = heads[y[0]].dataset.unit === "bytes";
		const suffix = figure.dataset.rate === "true" ? " / s" : "";
		const colors = palettes[dark.matches && !print.matches ? "dark" : "light"];
		const format = (v) => v === null || v === undefined ? "–" : short(v, bytes) + suffix;
		const names = y.map((c) => heads[c].querySelector("button").firstChild.textContent);
		const data = points(figure);
		const few = data[0].length < 2;
		const axis = {stroke: colors.text, grid: {stroke: colors.grid, width: 1}, ticks: {stroke: colors.grid, width: 1}, font: "12px system-ui, sans-serif"};
		figure.replaceChildren();
		const plot = new uPlot({
			width: figure.clientWidth || 640, height: 230, padding: [null, 28, null, null], tzDate: (ts) => uPlot.tzDate(new Date(ts * 1000), "Etc/UTC"),
			cursor: {y: false, drag: {x: false, y: false}},
			scales: {y: {range: (u, min, max) => [0, max > 0 ? max * 1.08 : 1]}},
			axes: [{...axis, space: 70, values: (u, splits, i, space, step) => ticks(splits, step)}, {...axis, size: 76, values: (u, splits) => splits.map(format)}],
			series: [{label: "time, UTC", value: (u, v) => v === null || v === undefined ? "–" : time(v)}, ...names.map((label, i) => ({
				label, stroke: colors.lines[i % 5], width: 2, dash: dashes[i % 5], points: {show: few}, spanGaps: false, value: (u, v) => format(v),
			}))],
		}, data, figure);
		figure.plot = {plot, data, names, format};
	};

	const readout = (figure, at) => {
		const {plot, data, names, format} = figure.plot;
		figure.at = at;
		plot.setCursor({left: plot.valToPos(data[0][at], "x"), top: 10});
		figure.nextElementSibling.textContent = `${time(data[0][at])}: ` + names.map((n, i) => `${n} ${format(data[i + 1][at])}`).join(", ");
	};

	const figures = all("figure.chart");
	for (const figure of figures) {
		draw(figure);
		figure.addEventListener("keydown", (event) => {
			const last = figure.plot.data[0].length - 1, now = figure.at ?? -1;
			const to = {ArrowRight: Math.min(now + 1, last), ArrowLeft: Math.max(now - 1, 0), Home: 0, End: last}[event.key];
			if (to === undefined || last < 0) return;
			event.preventDefault();
			readout(figure, to);
		});
		let width = figure.clientWidth;
		new ResizeObserver(() => {
			if (figure.clientWidth === width) return;
			width = figure.clientWidth;
			figure.plot.plot.setSize({width, height: 230});
		}).observe(figure);
	}
	const again = () => figures.forEach(draw);
	dark.addEventListener("change", again);
	print.addEventListener("change", again);
})();
