package fetch

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
	"crawlbatch.io/crawlbatch/stages/fetch/robots"
)

func TestRulesThatWaitInScratchAreTheSame(t *testing.T) {
	dir := t.TempDir()
	b := rulebook{dir: dir, max: 20_000}
	defer b.close()
	r := rand.New(rand.NewPCG(1, 1))
	var origins []*origin
	for i := range 300 {
		body := fmt.Sprintf("User-agent: *\nDisallow: /of-%d\nCrawl-delay: %d\n%s", i, i, strings.Repeat(fmt.Sprintf("Allow: /%d/x\n", i), i%20))
		o := &origin{}
		o.known = &inForce{rules: robots.Parse([]byte(body)).For("bot"), digest: fmt.Sprint(i)}
		origins = append(origins, o)
		if err := b.put(o); err != nil {
			t.Fatal(err)
		}
		if b.held > b.max {
			t.Fatalf("%d bytes are held, %d are allowed", b.held, b.max)
		}
	}
	inMemory := func() (n int) {
		for _, o := range origins {
			if o.known.rules != nil {
				n++
			}
		}
		return n
	}
	if n := inMemory(); n == 0 || n > 200 {
		t.Errorf("the rules of %d of 300 origins are in memory", n)
	}
	for range 2000 {
		i := r.IntN(300)
		known, err := b.rules(origins[i])
		if err != nil {
			t.Fatal(err)
		}
		if d, _ := known.rules.Delay(); known.digest != fmt.Sprint(i) || known.rules.Verdict(robots.Every, fmt.Sprintf("http://h/of-%d", i)).Allowed || int(d.Seconds()) != i {
			t.Fatalf("the rules of %d are others", i)
		}
		switch r.IntN(20) {
		case 0:
			b.drop(origins[i])
			if err := b.put(origins[i]); err != nil {
				t.Fatal(err)
			}
		}
		if b.held > b.max {
			t.Fatalf("%d bytes are held, %d are allowed", b.held, b.max)
		}
	}
	if b.recent.Len() != inMemory() {
		t.Errorf("%d are seated, %d in memory", b.recent.Len(), inMemory())
	}
	for _, o := range origins {
		b.drop(o)
	}
	if b.held != 0 || b.recent.Len() != 0 {
		t.Errorf("after all were dropped %d bytes of %d origins are held", b.held, b.recent.Len())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("scratch files are left: %v, %v", left, err)
	}
}

func TestManyHostsAreFetchedWithFewRulesInMemory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var urls []string
		for h := range 60 {
			for p := range 3 {
				urls = append(urls, fmt.Sprintf("http://h%d.com/p%d", h, p))
			}
			urls = append(urls, fmt.Sprintf("http://h%d.com/private", h))
		}
		l := newLab(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				fmt.Fprint(w, "User-agent: *\nDisallow: /private\n", strings.Repeat("Disallow: /nothing\n", 50))
				return
			}
			page(w, r)
		}, urls...)
		l.cfg.rules = 20_000 // of two hosts
		r, err := l.run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for u, f := range l.outcomes(r) {
			if denied := strings.HasSuffix(u, "/private"); denied != (f.Outcome == schema.RobotsDenied) || !denied && f.Outcome != schema.OK {
				t.Errorf("%s: %s %q", u, f.Outcome, f.Error)
			}
		}
		for _, q := range rowsOf[schema.Request](l, r, stages.FileRequests) {
			if q.Purpose == schema.ForPage && q.RobotsDigest == "" {
				t.Errorf("%s: no digest", q.URL)
			}
		}
	})
}
