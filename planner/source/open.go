package source

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"crawlbatch.io/crawlbatch/formats/store"
)

// Options are what Open needs beside the name of a source.
type Options struct {
	// Stdin is the content of the source "-".
	Stdin io.Reader
	// Bucket opens a store that is only read, such as s3://bucket. Its errors say what to do.
	Bucket func(ctx context.Context, address string) (store.Bucket, error)
	// Schemes holds, by scheme in lower case, the openers of sources in other packages, such as
	// databases. The key "mysql" stands for all names that begin with mysql:// or, unless a file has
	// the name, mysql:. Letter case does not matter (RFC 3986, section 3.1).
	Schemes map[string]Opener
	// Tell gets a text about each long wait for a database, perhaps from another goroutine. It may be
	// nil.
	Tell func(host, why string)
}

// Opener opens the source that a name with the opener's scheme describes. It gets the whole name as
// the user gave it. Errors are one line, say what to do, and hold no password of the name. If the
// name is wrong, the error wraps ErrMissing.
type Opener func(ctx context.Context, name string, o Options) (Source, error)

// scheme matches the beginning of a name that is not the name of a file.
var scheme = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*)://`)

// Open returns the source that a name describes. Names without a scheme are names of files (see
// Files). s3://bucket/key names objects. For other schemes, Open calls the scheme's opener. Errors do
// not quote a name with an unknown scheme, because the name may hold a password.
func Open(ctx context.Context, name string, o Options) (Source, error) {
	m := scheme.FindStringSubmatch(name)
	if m == nil {
		word, _, colon := strings.Cut(name, ":")
		if open := o.Schemes[strings.ToLower(word)]; open != nil && colon {
			if _, err := os.Stat(name); err != nil {
				return open(ctx, name, o)
			}
		}
		return Files(name, o.Stdin)
	}
	word := strings.ToLower(m[1])
	if word == s3Scheme {
		return openObjects(ctx, name, o)
	}
	if open := o.Schemes[word]; open != nil {
		return open(ctx, name, o)
	}
	if _, err := os.Stat(name); err == nil {
		return Files(name, o.Stdin)
	}
	known := append(slices.Sorted(maps.Keys(o.Schemes)), s3Scheme)
	known = slices.DeleteFunc(known, func(s string) bool { return strings.HasPrefix(s, "http") }) // the openers of http and https only say what to write instead
	return nil, fmt.Errorf("source %q: %w (the known schemes are %s)", m[0]+"…", ErrMissing, strings.Join(known, ", "))
}

// OpenAll opens the named sources in their order. It leaves out FrontierName and reports whether
// the list holds that name.
func OpenAll(ctx context.Context, names []string, o Options) (sources []Source, frontier bool, err error) {
	for _, name := range names {
		if name == FrontierName {
			frontier = true
			continue
		}
		s, err := Open(ctx, name, o)
		if err != nil {
			return nil, false, err
		}
		sources = append(sources, s)
	}
	return sources, frontier, nil
}
