package publish

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/stages"
)

// A server that answers 200 for URLs that do not exist sends the same page at many paths. The hint
// soft_404 of a page depends on its words. A family of such pages needs none, and so is found in every
// language. These thresholds keep legitimate copies out: print versions and mirrored folders give a text
// a few paths, and parameters give it one.
const (
	familyPaths = 10 // a family has at least this number of distinct paths of one host
	familyWords = 10 // pages with fewer words have no family, because galleries and pages made by scripts have such texts
)

// member holds the columns of a page that decide whether it belongs to a family of soft 404s.
type member struct {
	SURT         string          `parquet:"url_surtkey"`
	URL          string          `parquet:"url"`
	Status       int16           `parquet:"fetch_status"`
	CanonicalURL string          `parquet:"canonical_url,optional"`
	WordCount    int32           `parquet:"word_count"`
	PageHint     schema.PageHint `parquet:"page_hint,optional"`
}

// clustered holds the columns of duplicates that families need.
type clustered struct {
	SURT           string `parquet:"url_surtkey"`
	URL            string `parquet:"url"`
	Representative string `parquet:"representative"`
	ClusterSize    int32  `parquet:"cluster_size"`
}

// family names the pages of one host in one cluster.
type family struct{ host, representative string }

// paths holds the first distinct paths of a family.
type paths struct {
	seen []string // at most familyPaths
	root bool     // the front page of the host belongs to the cluster: the whole site is one page
}

// families holds the clusters of a partition's pages that may be families of soft 404s.
type families map[family]*paths

// learnFamilies reads the partition's pages once. All pages of a host are in one partition. Memory holds
// at most familyPaths paths for each host and cluster with as many members.
func learnFamilies(ctx context.Context, env *stages.Env, pages, duplicates []string) (families, error) {
	found := families{}
	rows := table.Pull(table.Concat[clustered](ctx, env.Bucket, duplicates))
	defer rows.Close()
	for p, err := range table.Concat[member](ctx, env.Bucket, pages) {
		if err != nil {
			return nil, fmt.Errorf("read pages: %w", err)
		}
		d, err := rows.Find(func(d *clustered) int { return schema.CompareURLs(d.SURT, d.URL, p.SURT, p.URL) })
		if err != nil {
			return nil, fmt.Errorf("read duplicates: %w", err)
		}
		if d == nil || d.ClusterSize < familyPaths || !p.mayBelong() {
			continue
		}
		host, path, err := place(p.URL)
		if err != nil {
			return nil, err
		}
		f := family{host, strings.Clone(d.Representative)}
		if found[f] == nil {
			of, at, err := place(f.representative) // it may be of an earlier round, so that no row of pages shows it
			if err != nil {
				return nil, err
			}
			found[f] = &paths{root: of == host && at == "/"}
		}
		found[f].add(path)
	}
	return found, nil
}

// mayBelong reports whether a page may be a soft 404 of a family. A page that names another URL as its
// canonical one is a declared copy. A page with another hint is explained by this hint.
func (p *member) mayBelong() bool {
	return p.Status == 200 && p.WordCount >= familyWords && (p.CanonicalURL == "" || p.CanonicalURL == p.URL) &&
		(p.PageHint == "" || p.PageHint == schema.HintSoft404)
}

func (s *paths) add(path string) {
	s.root = s.root || path == "/"
	if len(s.seen) < familyPaths && !slices.Contains(s.seen, path) {
		s.seen = append(s.seen, path)
	}
}

// has reports whether a page belongs to a family of soft 404s.
func (f families) has(page *schema.Page, representative string) (bool, error) {
	m := member{URL: page.URL, Status: page.FetchStatus, CanonicalURL: page.CanonicalURL, WordCount: page.WordCount, PageHint: page.PageHint}
	if len(f) == 0 || !m.mayBelong() {
		return false, nil
	}
	host, _, err := place(page.URL)
	if err != nil {
		return false, err
	}
	s := f[family{host, representative}]
	return s != nil && len(s.seen) == familyPaths && !s.root, nil
}

// place returns the host and the path of a URL, without its parameters.
func place(url string) (host, path string, err error) {
	k, err := urlkey.KeyOf(url)
	if err != nil {
		return "", "", fmt.Errorf("page %q: %w: %w", url, err, stages.ErrPermanent)
	}
	_, rest, _ := strings.Cut(url, "://")
	rest, _, _ = strings.Cut(rest, "?")
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		path = rest[i:]
	}
	return strings.Clone(k.Host), strings.Clone(path), nil
}
