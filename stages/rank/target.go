package rank

import (
	"cmp"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
)

const (
	maxAnchors  = 256 // largest number of distinct anchor texts that are counted for a target, first those of the first source
	keepAnchors = 5   // number of anchor texts in a row
)

// target adds up the edges of one target at a time. Memory depends on the number of hosts and on
// maxAnchors, but not on the number of sources.
type target struct {
	row      schema.Inlink
	followed map[schema.LinkKind]bool
	ids      map[string]int32 // number of each host
	source   string           // source of the last counted edge

	number int32   // number of the current target, from 1
	seen   []int32 // for each host, the number of the last target to which the host links

	anchors map[string]int64 // number of edges with each anchor text
}

func newTarget(g *graph, cfg Config) *target {
	t := &target{ids: g.ids, seen: make([]int32, len(g.names)), followed: map[schema.LinkKind]bool{}, anchors: map[string]int64{}}
	for _, k := range cfg.Followed {
		t.followed[k] = true
	}
	return t
}

// reset starts a new row for the target of the edge e.
func (t *target) reset(e *schema.Edge) {
	t.row = schema.Inlink{SURT: e.TargetSURT, URL: e.Target}
	t.source = ""
	t.number++
	clear(t.anchors)
}

// add counts an edge. Edges of a target must come in the order of their sources.
func (t *target) add(e *schema.Edge) {
	t.row.Spellings = schema.Spellings(t.row.Spellings).Add(e.Spelling)
	if e.Spelling != "" && !t.followed[e.Kind] {
		return // links of this kind are not followed: the edge has only the spelling
	}
	if e.Source != t.source && e.Source != e.Target {
		t.row.Inlinks++
		if id, ok := t.ids[e.SourceHost]; ok && t.seen[id] != t.number {
			t.seen[id] = t.number
			t.row.InlinkHosts++
		}
	}
	t.source = e.Source
	if e.Anchor != "" {
		if _, known := t.anchors[e.Anchor]; known || len(t.anchors) < maxAnchors {
			t.anchors[e.Anchor]++
		}
	}
	t.row.LastMod = max(t.row.LastMod, e.LastMod)
	kind := t.followed[e.Kind]
	counts := kind && !e.Nofollow
	t.row.FollowKind = t.row.FollowKind || kind
	switch {
	case counts && !t.row.Followed:
		// The first followed link overwrites the depth and source of links that are not followed.
		t.row.Followed, t.row.SourceDepth, t.row.FirstSource = true, e.SourceDepth, e.Source
	case counts == t.row.Followed && (t.row.FirstSource == "" || e.SourceDepth < t.row.SourceDepth):
		t.row.SourceDepth, t.row.FirstSource = e.SourceDepth, e.Source
	}
}

// finish completes the row with the most frequent anchor texts, and returns it.
func (t *target) finish() schema.Inlink {
	texts := make([]string, 0, len(t.anchors))
	for text := range t.anchors {
		texts = append(texts, text)
	}
	slices.SortFunc(texts, func(a, b string) int {
		return cmp.Or(cmp.Compare(t.anchors[b], t.anchors[a]), strings.Compare(a, b))
	})
	t.row.Anchors = texts[:min(keepAnchors, len(texts))]
	return t.row
}
