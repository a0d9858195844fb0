package rewrite

import (
	"fmt"
	"reflect"
	"strings"

	"crawlbatch.io/crawlbatch/formats/takedown"
)

// effect says what happens to a row whose cell names a target.
type effect int

const (
	keep effect = iota // the cell is content of others, or holds no name
	drop               // the row is about the target, so it goes
	null               // the cell refers to the target, so it becomes null, or empty if the column has no nulls
)

// form is the form in which a column holds names.
type form int

const (
	noName   form = iota
	url           // a URL
	origin        // the scheme, the host and the port of URLs
	host          // a host name, with or without a port
	reversed      // a host name with its labels in reverse order
	text          // text in which a name may occur
)

type rule struct {
	form   form
	effect effect
}

// columns classifies the text columns of every dataset and working file. Columns of the same name
// hold the same kind of name, except those in exceptions.
var columns = map[string]rule{
	"url": {url, drop}, "host": {host, drop}, "domain": {host, drop},
	"url_host_name": {host, drop}, "url_host_registered_domain": {host, drop}, "url_host_private_domain": {host, drop},
	"url_host_name_reversed": {reversed, drop}, "origin": {origin, drop}, "entry": {text, drop},
	"target": {url, drop},

	"planned_url": {url, null}, "robots_for": {url, null}, "final_url": {url, null}, "redirect_target": {url, null}, "fetch_redirect": {url, null},
	"redirect_to": {url, null}, "canonical_url": {url, null}, "refresh_url": {url, null}, "og_url": {url, null},
	"og_image": {url, null}, "twitter_image": {url, null}, "favicon": {url, null}, "tdm_policy": {url, null},
	"duplicate_of": {url, null}, "representative": {url, null}, "via": {url, null}, "source": {url, null},
	"first_source": {url, null}, "named": {url, null}, "sent": {url, null}, "redirect_sent": {url, null},
	"robots_host": {host, null}, "listed_first_source": {text, null}, "listed_last_source": {text, null},
	"listed_first_at": {text, null}, "listed_last_at": {text, null},
	"error": {text, null}, "error_detail": {text, null}, "failure": {text, null}, "failure_detail": {text, null}, "detail": {text, null},

	// Content of others: it says what they wrote.
	"main": {text, keep}, "full": {text, keep}, "anchor": {text, keep}, "anchors": {text, keep}, "title": {text, keep},
	"description": {text, keep}, "keywords": {text, keep}, "author": {text, keep}, "og_title": {text, keep},
	"og_description": {text, keep}, "og_site_name": {text, keep}, "twitter_title": {text, keep}, "twitter_description": {text, keep},
	"twitter_site": {text, keep}, "twitter_creator": {text, keep}, "json_ld": {text, keep}, "body": {text, keep},
	"robots_rule": {text, keep}, "etag": {text, keep}, "rel": {text, keep}, "warnings": {text, keep}, "content_signal": {text, keep},
	"topics": {text, keep}, "terms": {text, keep}, "generator": {text, keep}, "robots": {text, keep},
}

// exceptions holds the rules of columns that mean something else in some files.
var exceptions = map[string]map[string]rule{
	"links":     {"source": {url, drop}},
	"linksets":  {"source": {url, drop}},
	"redirects": {"source": {url, drop}},
	"hostedges": {"source": {host, drop}, "target": {host, drop}},
}

// nameless lists the text columns that hold no names: closed vocabularies, digests, numbers and times as
// text, keys of files in the store, addresses, and parts of the URL of a row that goes if its URL goes. A SURT key is
// such a part: the URLs of others may have the same key, as http://example.org/a and http://www.example.org/A have. The
// column links of link sets holds names, and editLinks edits it.
var nameless = strings.Fields(`url_surtkey source_surtkey stage machine version outcome due_reason planned_for sent_from state kind reason change page_hint revisit purpose duplicate_kind document_kind robots_state
	content_digest capture_digest text_digest link_sketch robots_digest digest content_truncated content_mime_type content_mime_detected
	content_charset content_languages language language_source languages scripts last_modified warc_filename warc_segment
	payload_warc_filename robots_warc_filename error_class blocked_by price certificate address addresses networks position hreflang changefreq
	main_lines links first_seen last_planned captured_in listed_first_round listed_last_round representative_crawl previous_round robots_compared
	published_source modified_source og_type og_locale twitter_card url_host_tld url_host_2nd_last_part url_host_3rd_last_part
	url_host_4th_last_part url_host_5th_last_part url_host_registry_suffix url_host_private_suffix url_protocol url_path url_query`)

// cell is a text column of a row type.
type cell struct {
	name  string
	index []int
	list  bool // []string
	bytes bool // []byte
	rule  rule
}

// cellsOf returns the columns of T whose rules are not noName. dataset names the kind of file.
func cellsOf(dataset string, t reflect.Type) []cell {
	var cells []cell
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		if name == "" || f.Anonymous {
			continue
		}
		c := cell{name: name, index: f.Index}
		switch {
		case f.Type.Kind() == reflect.String:
		case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.String:
			c.list = true
		case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Uint8:
			c.bytes = true
		default:
			continue
		}
		r, special := exceptions[dataset][name]
		if !special {
			r = columns[name]
		}
		if c.rule = r; r.form != noName {
			cells = append(cells, c)
		}
	}
	return cells
}

// names reports whether a text in the given form names a target.
func (f form) names(m *takedown.Matcher, s string) bool {
	switch {
	case s == "":
		return false
	case f == url && (strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://")):
		return m.URL(s)
	case f == origin: // not a URL: the origin of a home page that goes stays
		_, host, _ := strings.Cut(s, "://")
		return m.Host(host)
	case f == host:
		return m.Host(s)
	case f == reversed:
		return m.ReversedHost(s)
	}
	return m.Mentions([]byte(s))
}

// changed says what happened to a row.
type changed struct {
	dropped  bool
	cleared  int // cells
	adjusted bool
	mentions int // cells of others that name a target and stay
	links    int // links that went from a set
}

// apply clears the cells of a row that refer to a target. row is a pointer to the row's struct.
func apply(m *takedown.Matcher, cells []cell, row reflect.Value) (c changed) {
	for _, cl := range cells {
		if cl.rule.effect == drop && cl.rule.form.names(m, row.FieldByIndex(cl.index).String()) {
			return changed{dropped: true}
		}
	}
	for _, cl := range cells {
		if cl.rule.effect == drop {
			continue
		}
		v := row.FieldByIndex(cl.index)
		switch {
		case cl.bytes:
			if m.Mentions(v.Bytes()) {
				c.mentions++
			}
		case cl.list:
			c = cl.editList(m, v, c)
		case !cl.rule.form.names(m, v.String()):
		case cl.rule.effect == keep:
			c.mentions++
		default:
			v.SetString("")
			c.cleared++
		}
	}
	return c
}

// editList removes the elements of a list that refer to a target. Lists of content stay.
func (cl *cell) editList(m *takedown.Matcher, v reflect.Value, c changed) changed {
	kept := v.Slice(0, 0)
	for i := range v.Len() {
		if !cl.rule.form.names(m, v.Index(i).String()) {
			kept = reflect.Append(kept, v.Index(i))
			continue
		}
		if cl.rule.effect == keep {
			c.mentions++
			kept = reflect.Append(kept, v.Index(i))
			continue
		}
		c.cleared++
	}
	if kept.Len() != v.Len() {
		if kept.Len() == 0 {
			kept = reflect.Zero(v.Type())
		}
		v.Set(kept)
	}
	return c
}

// unclassified returns an error that names the text columns of t without a rule.
func unclassified(dataset string, t reflect.Type) error {
	known := map[string]bool{}
	for _, n := range nameless {
		known[n] = true
	}
	var missing []string
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		elem := f.Type
		if elem.Kind() == reflect.Slice {
			elem = elem.Elem()
		}
		if name == "" || f.Anonymous || elem.Kind() != reflect.String && elem.Kind() != reflect.Uint8 {
			continue
		}
		_, ruled := columns[name]
		if _, special := exceptions[dataset][name]; !ruled && !special && !known[name] {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		return fmt.Errorf("columns of %s that takedowns do not classify: %s", dataset, strings.Join(missing, ", "))
	}
	return nil
}
