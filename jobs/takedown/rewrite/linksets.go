package rewrite

import (
	"errors"
	"fmt"
	"reflect"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/stages"
)

var linkCells = cellsOf(stages.FileLinks, reflect.TypeFor[schema.Link]())

// editLinks edits the links in a set as if each were a row of links. A set without links goes.
func (r *Rewriter) editLinks(s *schema.LinkSet) (c changed, err error) {
	var kept schema.LinkEncoder
	kept.Begin(s.Source)
	err = schema.EachLink(s.SourceSURT, s.Source, string(s.Links), func(l *schema.Link) error {
		one := *l
		of := apply(r.Matcher, linkCells, reflect.ValueOf(&one).Elem())
		if of.dropped {
			c.links++
			return nil
		}
		c.cleared += of.cleared
		c.mentions += of.mentions
		kept.Add(&one)
		return nil
	})
	if errors.Is(err, schema.ErrLinkSet) {
		err = fmt.Errorf("links of %q: %w: %w", s.Source, err, manifest.ErrCorrupt)
	}
	switch {
	case err != nil:
	case kept.Len() == 0:
		return changed{dropped: true, links: c.links}, nil
	case c.links+c.cleared > 0:
		*s = kept.Set(s.SourceSURT, s.Source, s.Redirect)
	}
	return c, err
}
