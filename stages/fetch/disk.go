package fetch

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// disk watches the room in scratch space, so that nothing is begun that could not
// be recorded.
type disk struct {
	free    func() (int64, error) // bytes
	reserve int64                 // to keep free for what is in flight

	mu      sync.Mutex
	looked  time.Time
	short   bool
	since   time.Time // of being short
	strange bool      // it cannot be asked; what fails then fails on writing
}

// newDisk watches a directory. free replaces the question of its file system, if not nil.
func newDisk(dir string, cfg *Config, free func(dir string) (int64, error)) disk {
	if free == nil {
		free = freeSpace
	}
	return disk{free: func() (int64, error) { return free(dir) }, reserve: reserve(cfg)}
}

// isShort reports whether there is too little room, and since when.
func (d *disk) isShort(now time.Time) (short bool, since time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.strange || now.Sub(d.looked) < time.Second && !d.looked.IsZero() {
		return d.short, d.since
	}
	d.looked = now
	free, err := d.free()
	if err != nil {
		d.strange, d.short = true, false
		return false, time.Time{}
	}
	if short := free < d.reserve; short != d.short {
		d.short, d.since = short, now
	}
	return d.short, d.since
}

// Bounds of the reserve, in bytes.
const (
	leastReserve = 1 << 20
	mostReserve  = 256 << 20
)

// reserve is what the requests in flight may yet record: each a compressed body
// and its rows.
func reserve(cfg *Config) int64 {
	return min(max(int64(cfg.Slots)*cfg.MaxBody/4, leastReserve), mostReserve)
}

func freeSpace(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}
