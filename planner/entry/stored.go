package entry

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"crawlbatch.io/crawlbatch/formats/manifest"
	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/table"
	"crawlbatch.io/crawlbatch/formats/urlkey"
	"crawlbatch.io/crawlbatch/planner/pack"
	"crawlbatch.io/crawlbatch/planner/spool"
)

// Stored is a List in the store.
type Stored struct {
	Rows   manifest.File // records, by cell
	Groups manifest.File // its groups, in their order
}

// StoredGroup is a group of a Stored.
type StoredGroup struct {
	pack.Group
	Address uint64
}

var groupCodec = table.MustCodec[StoredGroup]()

// Store stores a List: its records by their cells, and its groups. The scratch file path is for what it encodes.
func (l *List) Store(ctx context.Context, d spool.Depot, path, name string, cells int) (s Stored, err error) {
	if s.Rows, err = l.storeCells(ctx, d, path, name, cells); err != nil {
		return s, err
	}
	s.Groups, err = spool.StoreRows(ctx, d, path+"-groups", name+"-groups", groupCodec, func(yield func(StoredGroup, error) bool) {
		for i, g := range l.Groups {
			stored := StoredGroup{Group: g}
			if l.Addresses != nil {
				stored.Address = l.Addresses[i]
			}
			if !yield(stored, nil) {
				return
			}
		}
	}, func(*StoredGroup) int { return 0 })
	return s, err
}

// Fetch returns the groups of lists that lie in the cells from first to end (exclusive). The scratch file path holds
// them.
func Fetch(ctx context.Context, b store.Bucket, path string, lists []Stored, first, end, cells int) (_ *List, err error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("create scratch file: %w", err)
	}
	l := &List{File: f}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	for _, s := range lists {
		n, err := spool.Fetch(ctx, b, &s.Rows, first, end, f)
		if err != nil {
			return nil, err
		}
		if n == 0 { // every group has records, so no group lies in these cells
			continue
		}
		shift, kept := int64(0), false
		if err := s.Each(ctx, b, func(g *StoredGroup) {
			if cell := urlkey.BucketOf(g.Hash, cells); cell < first || cell >= end {
				return
			}
			if !kept {
				shift, kept = l.Size-g.Off, true
			}
			g.Off += shift
			l.Groups = append(l.Groups, g.Group)
		}); err != nil {
			return nil, err
		}
		l.Size += n
	}
	return l, nil
}

// Each visits the groups of a list.
func (s *Stored) Each(ctx context.Context, b store.Bucket, visit func(*StoredGroup)) error {
	packed, err := spool.FetchBytes(ctx, b, &s.Groups)
	if err != nil {
		return err
	}
	in := groupCodec.Reader(bufio.NewReader(bytes.NewReader(packed)))
	for {
		var g StoredGroup
		switch err := in.Next(&g); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		visit(&g)
	}
}
