package report

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	cdpnetwork "github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The environment variables of the tests in a browser. `make test-browser` sets them.
const (
	modules     = "CRAWLBATCH_BROWSER"     // directory whose node_modules folder holds axe-core
	screenshots = "CRAWLBATCH_SCREENSHOTS" // directory for screenshots; unset: none
)

// browser is a page in Chromium.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	faults   []string // errors and warnings of the console
	requests []string // URLs of requests, the page's own excluded
}

// openPage opens a page from disk.
func openPage(t *testing.T, html string) *browser {
	t.Helper()
	if os.Getenv(modules) == "" {
		t.Skipf("set %s to the directory where npm installed axe-core, and install Chromium: `make test-browser` runs this test", modules)
	}
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(html), 0o600); err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.WSURLReadTimeout(2*time.Minute))
	allocated, stopAll := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stopAll)
	ctx, stop := chromedp.NewContext(allocated)
	t.Cleanup(stop)
	b := &browser{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	call(b, cdpnetwork.Enable, cdpnetwork.EnableParams{})
	b.do(chromedp.Navigate("file://"+file), chromedp.WaitReady(chromedp.CSS("figure.chart canvas")))
	return b
}

func (b *browser) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		b.faults = append(b.faults, fmt.Sprintf("console.%s", e.Type))
	case *runtime.EventExceptionThrown:
		b.faults = append(b.faults, e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		b.faults = append(b.faults, e.Entry.Text)
	case *cdpnetwork.EventRequestWillBeSent:
		if e.Request.URL != e.DocumentURL {
			b.requests = append(b.requests, e.Request.URL)
		}
	}
}

// do runs actions that must succeed.
func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// call sends a command that must succeed.
func call[P, R any](b *browser, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	r, err := chromedp.Call(b.ctx, command, params)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// js returns the value of an expression.
func js[T any](b *browser, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%.200s: %v", expression, err)
	}
	return v
}

// theme selects the theme, the width in CSS pixels, and the medium.
func (b *browser) theme(name string, width int64, medium string) {
	b.t.Helper()
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: medium, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
	b.do(chromedp.EmulateViewport(width, 900))
	js[bool](b, "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
}

// shoot takes a screenshot of the whole page if somebody wants to look at it.
func (b *browser) shoot(name string) {
	b.t.Helper()
	dir := os.Getenv(screenshots)
	if dir == "" {
		return
	}
	height := js[float64](b, "document.documentElement.scrollHeight")
	width := js[float64](b, "innerWidth")
	const tall = 1800
	for i := 0; float64(i)*tall < height; i++ {
		beyond := true
		shot := call(b, cdppage.CaptureScreenshot, cdppage.CaptureScreenshotParams{
			CaptureBeyondViewport: &beyond, Clip: &cdppage.Viewport{Y: float64(i) * tall, Width: width, Height: min(tall, height-float64(i)*tall), Scale: 1},
		})
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%02d.png", name, i)), shot.Data, 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
}

// silent fails the test if the page logged something or sent a request.
func (b *browser) silent() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.faults) > 0 {
		b.t.Errorf("console: %q", b.faults)
	}
	if len(b.requests) > 0 {
		b.t.Errorf("requests: %q", b.requests)
	}
}

// browsed makes a page with every section, hostile texts included.
func browsed(t *testing.T) string {
	f := newFake(t, 60)
	f.round(4000)
	f.round(2500)
	return pageOf(t, f.report())
}

func TestBrowserShowsThePage(t *testing.T) {
	b := openPage(t, browsed(t))
	for _, theme := range []string{"light", "dark"} {
		b.theme(theme, 1280, "screen")
		if n := js[int](b, "document.querySelectorAll('figure.chart canvas').length"); n != 4 {
			t.Errorf("%s: %d charts", theme, n)
		}
		b.accessible(theme)
		b.shoot(theme)
		b.theme(theme, 375, "screen")
		if wide := js[[]string](b, wider); len(wide) > 0 {
			t.Errorf("%s: on a phone, these are wider than the page: %q", theme, wide)
		}
		b.accessible(theme + " on a phone")
		b.shoot("phone-" + theme)
	}
	b.theme("dark", 760, "print")
	if ink := js[string](b, "getComputedStyle(document.body).color + ' on ' + getComputedStyle(document.body).backgroundColor"); ink != "rgb(0, 0, 0) on rgb(255, 255, 255)" {
		t.Errorf("print: %s", ink)
	}
	pdf := call(b, cdppage.PrintToPDF, cdppage.PrintToPDFParams{}).Data
	if !strings.HasPrefix(string(pdf), "%PDF") || len(pdf) < 50_000 {
		t.Errorf("a PDF of %d bytes", len(pdf))
	}
	b.shoot("print")
	b.silent()
}

// wider lists the elements that make the page scroll sideways.
const wider = `document.documentElement.scrollWidth <= innerWidth ? [] :
	Array.from(document.querySelectorAll("body *")).filter((e) => !e.closest(".scroll, pre, .skip, .only-read") && e.getBoundingClientRect().right > innerWidth + 1)
		.map((e) => e.tagName + "." + e.className + " " + e.textContent.slice(0, 40)).slice(0, 9)`

// accessible runs axe-core on the page and fails the test for each serious or critical fault.
func (b *browser) accessible(name string) {
	b.t.Helper()
	axe, err := os.ReadFile(filepath.Join(os.Getenv(modules), "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		b.t.Fatal(err)
	}
	// Chromium evaluates the script from outside, so that the page's policy does not apply.
	js[bool](b, string(axe)+"; true")
	type fault struct {
		ID, Impact, Help string
		Nodes            []struct{ HTML, FailureSummary string }
	}
	var result struct {
		Violations []fault
		Passes     []struct{ ID string }
	}
	found := js[string](b, `axe.run(document, {resultTypes: ["violations", "passes"]}).then((r) => JSON.stringify({violations: r.violations, passes: r.passes.map((p) => ({id: p.id}))}))`)
	if err := json.Unmarshal([]byte(found), &result); err != nil {
		b.t.Fatal(err)
	}
	if len(result.Passes) < 20 {
		b.t.Errorf("%s: axe-core passed only %d rules", name, len(result.Passes))
	}
	for _, f := range result.Violations {
		if f.Impact == "serious" || f.Impact == "critical" {
			b.t.Errorf("%s: %s: %s, %d times, such as %+v", name, f.ID, f.Help, len(f.Nodes), f.Nodes[0])
		} else {
			b.t.Logf("%s: %s (%s): %s, such as %+v", name, f.ID, f.Impact, f.Help, f.Nodes[0])
		}
	}
}

func TestBrowserSortsAndFilters(t *testing.T) {
	b := openPage(t, browsed(t))
	b.theme("light", 1280, "screen")
	column := func(table string, n int) []string {
		return js[[]string](b, fmt.Sprintf(`Array.from(document.querySelectorAll('table[data-table=%s] tbody tr')).filter((r) => !r.hidden).map((r) => r.cells[%d].dataset.v ?? r.cells[%[2]d].textContent)`, table, n))
	}
	click := func(table string, n int) string {
		at := fmt.Sprintf(`document.querySelectorAll('table[data-table=%s] thead th')[%d]`, table, n)
		return js[string](b, at+`.querySelector("button").click(), `+at+`.getAttribute("aria-sort")`)
	}
	numbers := func(texts []string) (all []float64) {
		for _, s := range texts {
			n, err := strconv.ParseFloat(s, 64)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, n)
		}
		return all
	}
	if s := click("worst", 1); s != "descending" || !slices.IsSortedFunc(numbers(column("worst", 1)), func(x, y float64) int { return cmp.Compare(y, x) }) {
		t.Errorf("%s: %v", s, column("worst", 1))
	}
	if s := click("worst", 1); s != "ascending" || !slices.IsSorted(numbers(column("worst", 1))) {
		t.Errorf("%s: %v", s, column("worst", 1))
	}
	before := column("worst", 0)
	if s := click("worst", 0); s != "ascending" || slices.Equal(before, column("worst", 0)) {
		t.Errorf("%s: the hosts do not sort", s)
	}

	b.do(chromedp.SendKeys(chromedp.CSS(`input[data-filter=worst]`), "H0000 test"))
	shown := column("worst", 0)
	if len(shown) == 0 || len(shown) == len(before) {
		t.Errorf("the filter shows %d of %d rows", len(shown), len(before))
	}
	for _, host := range shown {
		if !strings.Contains(host, "h0000") {
			t.Errorf("the filter shows %q", host)
		}
	}
	if says := js[string](b, `document.querySelector("input[data-filter=worst]").closest("p").querySelector("[role=status]").textContent`); says != fmt.Sprintf("%d of %d rows", len(shown), len(before)) {
		t.Errorf("the filter says %q", says)
	}

	b.silent()
}

// TestBrowserReadsChartsByKeyboard moves through the page with the Tab key.
func TestBrowserReadsChartsByKeyboard(t *testing.T) {
	b := openPage(t, browsed(t))
	b.theme("light", 1280, "screen")
	// The keyboard reaches each chart, and the arrow keys read it.
	reached := 0
	js[bool](b, `document.getElementById("main").focus(), true`)
	for range 400 {
		b.do(chromedp.KeyEvent(kb.Tab))
		at := js[string](b, `document.activeElement.matches("figure.chart") ? document.activeElement.dataset.table : document.activeElement === document.body ? "end" : ""`)
		if at == "end" {
			break
		}
		if at == "" {
			continue
		}
		reached++
		b.do(chromedp.KeyEvent(kb.Home))
		first := js[string](b, `document.activeElement.nextElementSibling.textContent`)
		b.do(chromedp.KeyEvent(kb.ArrowRight))
		second := js[string](b, `document.activeElement.nextElementSibling.textContent`)
		if !strings.HasPrefix(first, "2026-1") || second == first || !strings.HasPrefix(second, "2026-1") {
			t.Errorf("chart %s reads %q, then %q", at, first, second)
		}
		if at == "left" {
			if row := js[string](b, `document.querySelector("table[data-table=left] tbody tr").cells[3].dataset.v`); !strings.Contains(first, "left "+row[:1]+".") {
				t.Errorf("chart %s reads %q, and the first row says %s", at, first, row)
			}
		}
		if reached == 4 {
			break
		}
	}
	if reached != 4 {
		t.Errorf("the keyboard reaches %d charts", reached)
	}
	b.silent()
}
