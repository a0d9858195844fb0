package segments

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Disk watches the room in scratch space, so that nothing is begun that could not be
// recorded. Its methods may be called by several goroutines at a time.
type Disk struct {
	free    func() (int64, error) // bytes
	reserve int64                 // bytes

	mu      sync.Mutex
	looked  time.Time
	short   bool
	since   time.Time // of being short
	unknown bool      // the file system does not tell; writing will fail instead
}

// NewDisk watches a directory that is short of room once less than reserve bytes are free.
// free, if not nil, replaces the question of the file system.
func NewDisk(dir string, reserve int64, free func(dir string) (int64, error)) *Disk {
	if free == nil {
		free = freeSpace
	}
	return &Disk{free: func() (int64, error) { return free(dir) }, reserve: reserve}
}

// Short reports whether there is too little room, and since when. It asks the file system
// at most once a second.
func (d *Disk) Short(now time.Time) (short bool, since time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unknown || now.Sub(d.looked) < time.Second && !d.looked.IsZero() {
		return d.short, d.since
	}
	d.looked = now
	free, err := d.free()
	if err != nil {
		d.unknown, d.short = true, false
		return false, time.Time{}
	}
	if short := free < d.reserve; short != d.short {
		d.short, d.since = short, now
	}
	return d.short, d.since
}

func freeSpace(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}
