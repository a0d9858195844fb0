package simhash

import "context"

// visitor receives the items of a list, sorted by the bits of a mask. A run is all items of the list
// that agree in these bits.
type visitor struct {
	// sorted receives one or more whole runs that are in memory. It may reorder the items of a run.
	sorted func(runs []item, mask uint64) error
	// large receives a run that does not fit into memory. It may reorder the items, and returns them.
	large func(run list, mask uint64) (list, error)
}

// arrange sorts a list stably by each mask in turn, passes the sorted items to the visitor each time,
// and returns the list in its last order. The caller must not use the old list. A list in memory is
// sorted in place. A list in a scratch file is divided into shards, which are sorted one by one. The
// items of a sorted shard are then written to the shards of the next mask.
func (s *Search) arrange(ctx context.Context, l list, masks []uint64, v visitor) (list, error) {
	if l.spool == nil {
		for _, mask := range masks {
			radixSort(l.items, s.spare[:len(l.items)], mask)
			if err := v.sorted(l.items, mask); err != nil {
				return l, err
			}
		}
		return l, nil
	}
	n := l.len()
	d, err := s.divide(l.spool, masks[0])
	if err != nil {
		return l, err
	}
	for _, mask := range masks[1:] {
		next, err := s.newShards(mask, n)
		if err != nil {
			return l, err
		}
		if err := s.drain(ctx, d, masks[0], v, next.add); err != nil {
			return l, err
		}
		d, masks = next, masks[1:]
	}
	if l.spool, err = s.newSpool(); err != nil {
		return l, err
	}
	return l, s.drain(ctx, d, masks[0], v, func(items []item) error { return l.spool.append(items...) })
}

// drain sorts the items of each shard by the mask, passes them to the visitor and then to out, and
// removes the shards.
func (s *Search) drain(ctx context.Context, d *shards, mask uint64, v visitor, out func([]item) error) error {
	for _, p := range d.spools {
		if err := ctx.Err(); err != nil {
			return err
		}
		l, err := list{spool: p}, error(nil)
		switch {
		case p.n <= s.memory:
			l, err = s.sortShard(p, d.rest, mask, v)
		case d.rest != 0: // many items have similar keys, so this shard is divided again
			finer, err := s.divide(p, d.rest)
			if err != nil {
				return err
			}
			if err := s.drain(ctx, finer, mask, v, out); err != nil {
				return err
			}
			continue
		default:
			l, err = v.large(l, mask)
		}
		if err != nil {
			return err
		}
		if err := l.each(out); err != nil {
			return err
		}
		if l.spool != nil {
			if err := s.remove(l.spool); err != nil {
				return err
			}
		}
	}
	return nil
}

// sortShard loads and sorts a shard, and passes its items to the visitor. The returned items are valid
// until the next shard is loaded.
func (s *Search) sortShard(p *spool, rest, mask uint64, v visitor) (list, error) {
	items, err := p.load(s.buffer[:0])
	if err != nil {
		return list{}, err
	}
	if err := s.remove(p); err != nil {
		return list{}, err
	}
	radixSort(items, s.spare[:len(items)], rest)
	return list{items: items}, v.sorted(items, mask)
}

// divide distributes the items of a spool to new shards, by the highest bits of the mask, and removes
// the spool.
func (s *Search) divide(p *spool, mask uint64) (*shards, error) {
	d, err := s.newShards(mask, p.n)
	if err != nil {
		return nil, err
	}
	if err := p.each(d.add); err != nil {
		return nil, err
	}
	return d, s.remove(p)
}
