package show

import (
	"strings"
	"testing"
	"time"

	"crawlbatch.io/crawlbatch/planner/slowest"
	"crawlbatch.io/crawlbatch/planner/source"
)

func TestSlowestSaysWhatABudgetWouldChange(t *testing.T) {
	var out strings.Builder
	if err := Slowest(&out, []slowest.Host{
		{Host: "www.example.com", Domain: "example.com", URLs: 10_000, Each: 2 * time.Second},
		{Host: "down.test", Domain: "down.test", URLs: 40, Each: 2 * time.Second, Unreachable: 18 * time.Minute},
		{Host: "b.test", Domain: "b.test", URLs: 40, Each: 1500 * time.Millisecond},
		{Host: "quick.test", Domain: "quick.test", URLs: 29, Each: 2 * time.Second},
	}); err != nil {
		t.Fatal(err)
	}
	want := `the slowest hosts, one of each domain:
  www.example.com: 10,000 URLs at one each 2.0 s = 5.56 h
  down.test: 40 URLs; its robots.txt was unreachable, and the tries for it take 0.30 h
  b.test: 40 URLs at one each 1.5 s = 0.02 h
  plan.budgets.domains of 5,000 for example.com would end this host in at most 2.78 h
`
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	if err := Slowest(&out, nil); err != nil || out.Len() > 0 {
		t.Errorf("without slow hosts: %q, %v", out.String(), err)
	}
}

func TestAPlanSaysWhatURLFiltersAnswered(t *testing.T) {
	var out strings.Builder
	if err := FilterAnswers(&out, source.FilterAnswers{}); err != nil || out.Len() > 0 {
		t.Errorf("no filter was asked: %q, %v", out.String(), err)
	}
	if err := FilterAnswers(&out, source.FilterAnswers{Absent: 1990, Found: 3000, NotFound: 10}); err != nil {
		t.Fatal(err)
	}
	if want := "asked the URL filters of earlier rounds 5,000 times: 1,990 absent, 3,000 found, 10 looked up in vain (0.50 %)\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
