package planner

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/formats/schema"
	"crawlbatch.io/crawlbatch/planner/source"
)

// maxFileNames bounds the memory for the names of files, in bytes.
const maxFileNames = 64 << 20

// fileNames holds the names of the files of all sources by their first entries, so that records need
// no names. Once the names take maxFileNames, the name of its source stands for a file.
type fileNames struct {
	files []fileName
	bytes int
	last  string // file of the last entry, as the source names it
}

// fileName is the name of the file whose entries begin at a place.
type fileName struct {
	first seq
	name  string
}

// note notes the file of an entry. Entries come in the order of their places.
func (f *fileNames) note(s seq, e *source.Entry, from source.Source) {
	n := len(f.files)
	same := n > 0 && f.files[n-1].first.source() == s.source()
	if !e.Listed || same && e.File == f.last {
		return
	}
	f.last = e.File
	name := excerpt(e.File)
	if f.bytes >= maxFileNames {
		name = excerpt(from.Name())
	}
	if same && name == f.files[n-1].name {
		return
	}
	f.bytes += len(name) + 32 // the size of an element
	f.files = append(f.files, fileName{s, name})
}

// of returns the name of the file of an entry.
func (f *fileNames) of(s seq) string {
	i, found := slices.BinarySearchFunc(f.files, s, func(n fileName, s seq) int { return cmp.Compare(n.first, s) })
	if !found {
		i--
	}
	return f.files[i].name
}

// listing returns the listings of a URL in earlier plans and in the plan of the given round.
func (f *fileNames) listing(u *record, round string) schema.Listing {
	l := unpackListing(u.Known)
	if !u.Listed {
		return l
	}
	l.ListedLastSource, l.ListedLastAt, l.ListedLastRound = f.of(u.LastSeq), placeText(u.LastLine, u.LastKey), round
	if l.ListedFirstRound != "" {
		return l
	}
	l.ListedFirstSource, l.ListedFirstAt, l.ListedFirstRound = l.ListedLastSource, l.ListedLastAt, round
	if u.FirstSeq != u.LastSeq {
		l.ListedFirstSource, l.ListedFirstAt = f.of(u.FirstSeq), placeText(u.FirstLine, u.FirstKey)
	}
	return l
}

// packListing packs a listing into one text. For nil, the text is empty.
func packListing(l *schema.Listing) string {
	if l == nil {
		return ""
	}
	return strings.Join([]string{l.ListedFirstSource, l.ListedFirstAt, l.ListedFirstRound, l.ListedLastSource, l.ListedLastAt, l.ListedLastRound}, "\x00")
}

func unpackListing(s string) (l schema.Listing) {
	for _, field := range []*string{&l.ListedFirstSource, &l.ListedFirstAt, &l.ListedFirstRound, &l.ListedLastSource, &l.ListedLastAt, &l.ListedLastRound} {
		*field, s, _ = strings.Cut(s, "\x00")
	}
	return l
}

// placeText returns the place of an entry in its file.
func placeText(line int64, key string) string {
	if key != "" {
		return excerpt(key)
	}
	return strconv.FormatInt(line, 10)
}
