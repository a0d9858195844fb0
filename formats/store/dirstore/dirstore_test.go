package dirstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/localfile"
	"crawlbatch.io/crawlbatch/formats/store/storetest"
)

func openDir(t *testing.T, root string) *Store {
	t.Helper()
	s, err := Open(root, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Bucket { return openDir(t, filepath.Join(t.TempDir(), "not", "yet")) })
}

func TestContractOfAFolderThatStands(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Bucket { return store.Count(openDir(t, t.TempDir())) })
}

func TestReadingMakesNothing(t *testing.T) {
	root := filepath.Join(t.TempDir(), "crawl-data")
	s := openDir(t, root)
	_, _, _ = s.Get(t.Context(), "a", 1)
	_, _ = s.Open(t.Context(), "a")
	_ = s.Delete(t.Context(), "a")
	for _, err := range s.List(t.Context(), "a/") {
		t.Fatal(err)
	}
	if _, err := os.Lstat(root); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%s was made: %v", root, err)
	}
}

// tree lists all files below root, including temporary files but not lock files.
func tree(t *testing.T, root string) []string {
	t.Helper()
	files := []string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.Contains(path, "/"+lockFolder+"/") {
			path, err = filepath.Rel(root, path)
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestWritesLeaveNoTemporaryFiles(t *testing.T) {
	root := t.TempDir()
	s := openDir(t, root)
	v, err := store.CreateBytes(t.Context(), s, "t/a", []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = store.CreateBytes(t.Context(), s, "t/a", []byte("two"))
	_, _ = store.SwapBytes(t.Context(), s, "t/a", []byte("three"), v)
	_, _ = store.SwapBytes(t.Context(), s, "t/a", []byte("four"), v)
	_, _ = s.Create(t.Context(), "t/b", strings.NewReader("short"), 99)
	if got := tree(t, root); !slices.Equal(got, []string{"t/a"}) {
		t.Fatalf("files: %q, want only t/a", got)
	}
}

// TestSyncOrder shows that a file gets its name only after its bytes are synced. All folders, even
// new ones, are synced before the call returns.
func TestSyncOrder(t *testing.T) {
	base := t.TempDir()
	root := filepath.Join(base, "data")
	s := openDir(t, root)
	var log []string
	s.fsync = func(f *os.File) error {
		name, err := filepath.Rel(base, f.Name())
		if err != nil {
			return err
		}
		if strings.Contains(name, tmpPrefix) {
			name = "temporary"
			for _, key := range []string{"x/y/k", "x/y/l"} {
				if body, err := os.ReadFile(filepath.Join(root, key)); err == nil && string(body) != "one" {
					t.Errorf("%s holds %q before its bytes are synced", key, body)
				}
			}
		}
		log = append(log, name)
		return nil
	}
	step := func(what string, want ...string) {
		t.Helper()
		if !slices.Equal(log, want) {
			t.Errorf("%s synced %q, want %q", what, log, want)
		}
		log = nil
	}
	v, err := store.CreateBytes(t.Context(), s, "x/y/k", []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	step("the first Create", "temporary", "data/x/y", "data/x", "data", ".")
	if _, err := store.CreateBytes(t.Context(), s, "x/y/l", []byte("one")); err != nil {
		t.Fatal(err)
	}
	step("a Create in a known folder", "temporary", "data/x/y")
	if _, err := store.CreateBytes(t.Context(), s, "x/y/l", []byte("one")); err != nil {
		t.Fatal(err)
	}
	step("a Create of what is there", "data/x/y")
	if _, err := store.SwapBytes(t.Context(), s, "x/y/k", []byte("two"), v); err != nil {
		t.Fatal(err)
	}
	step("a Swap", "temporary", "data/x/y")
	if err := errors.Join(s.Delete(t.Context(), "x/y/k"), s.Delete(t.Context(), "x/y/l")); err != nil {
		t.Fatal(err)
	}
	step("deletes of all", "data/x/y", "data")
	for range 2 { // before the second pass, another process removes the folders
		if _, err := store.CreateBytes(t.Context(), s, "x/y/k", []byte("one")); err != nil {
			t.Fatal(err)
		}
		step("a Create in removed folders", "temporary", "data/x/y", "data/x", "data", ".")
		if err := os.RemoveAll(filepath.Join(root, "x")); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFailedSyncIsNoSuccessAndTheNextTryWritesAnew(t *testing.T) {
	root := t.TempDir()
	s := openDir(t, root)
	failures, staged := 1, 0
	s.fsync = func(f *os.File) error {
		if strings.Contains(f.Name(), tmpPrefix) {
			staged++
			if failures > 0 {
				failures--
				return &os.PathError{Op: "fsync", Path: f.Name(), Err: syscall.EIO}
			}
		}
		return f.Sync()
	}
	_, err := store.CreateBytes(t.Context(), s, "k", []byte("body"))
	if !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("Create with a failing disk: %v, want %v", err, store.ErrUnavailable)
	}
	if got := tree(t, root); len(got) != 0 {
		t.Fatalf("the failed Create left %q", got)
	}
	if _, err := store.CreateBytes(t.Context(), s, "k", []byte("body")); err != nil || staged != 2 {
		t.Fatalf("second try: %v, %d files staged, want 2", err, staged)
	}
}

func TestSystemErrorsAreToldApart(t *testing.T) {
	for _, c := range []struct {
		cause error
		want  error
		says  string
	}{
		{syscall.ENOSPC, store.ErrFull, "free some space"},
		{syscall.EDQUOT, store.ErrFull, "quota"},
		{syscall.EROFS, store.ErrDenied, "read-only"},
		{syscall.EACCES, store.ErrDenied, "permission"},
		{syscall.EXDEV, store.ErrUnsupported, "one file system"},
		{syscall.EIO, store.ErrUnavailable, "input/output"},
	} {
		s := openDir(t, t.TempDir())
		s.fsync = func(f *os.File) error { return &os.PathError{Op: "fsync", Path: f.Name(), Err: c.cause} }
		_, err := store.CreateBytes(t.Context(), s, "tables/k", []byte("x"))
		if !errors.Is(err, c.want) || !errors.Is(err, c.cause) || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), `create "tables/k": `) {
			t.Errorf("%v: %q, want %q that says %q", c.cause, err, c.want, c.says)
		}
	}
}

func TestOpenRefusesWhatIsNoFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{"", file, filepath.Join(file, "below")} {
		if _, err := Open(root, Options{}); err == nil {
			t.Errorf("Open(%q) succeeded", root)
		}
	}
}

func TestKeyThatIsAFolderOfAnother(t *testing.T) {
	s := openDir(t, t.TempDir())
	for _, key := range []string{"a/b", "f"} {
		if _, err := store.CreateBytes(t.Context(), s, key, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	for key, says := range map[string]string{"a": "but a folder", "f/g": "needs for a folder"} {
		_, err := store.CreateBytes(t.Context(), s, key, []byte("x"))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Create(%q): %v, want %q", key, err, says)
		}
		_, err = store.SwapBytes(t.Context(), s, key, []byte("x"), "")
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Swap(%q): %v, want %q", key, err, says)
		}
	}
}

func TestSweepRemovesOnlyWhatDeadWritersLeft(t *testing.T) {
	root := t.TempDir()
	writer := openDir(t, root)
	living, err := writer.stage(t.Context(), bytes.NewReader([]byte("x")), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer living.discard()
	dead := filepath.Join(root, store.Reserved, tmpPrefix+"dead")
	if err := os.WriteFile(dead, []byte("half"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := store.CreateBytes(t.Context(), openDir(t, root), "k", []byte("x")); err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(store.Reserved, filepath.Base(living.f.Name())), "k"}
	if got := tree(t, root); !slices.Equal(got, want) {
		t.Fatalf("files %q, want %q", got, want)
	}
}

func TestReleasedLocksLeaveNoFiles(t *testing.T) {
	s := openDir(t, t.TempDir())
	l, ok, err := s.Lock("fetch@2026-11.0:17")
	if !ok || err != nil {
		t.Fatalf("Lock: %t, %v", ok, err)
	}
	l.Release()
	if left, _ := filepath.Glob(filepath.Join(s.tmp(), lockFolder, "hold-*")); len(left) != 0 {
		t.Errorf("lock files left: %q", left)
	}
}

// TestALockWhoseFileIsRemovedStandsNoMore removes the file of a held lock, or all of .tmp. Later
// calls by the first holder must not end the next holder's lock.
func TestALockWhoseFileIsRemovedStandsNoMore(t *testing.T) {
	for _, gone := range []string{"", lockFolder, lockFolder + "/hold-l"} {
		t.Run(gone, func(t *testing.T) {
			root := t.TempDir()
			s, other := openDir(t, root), openDir(t, root)
			first, ok, err := s.Lock("l")
			if !ok || err != nil || !first.Stands() {
				t.Fatalf("first Lock: %t, %v", ok, err)
			}
			if err := os.RemoveAll(filepath.Join(s.tmp(), gone)); err != nil {
				t.Fatal(err)
			}
			if first.Stands() {
				t.Error("a lock stands although its file is gone")
			}
			second, ok, err := other.Lock("l")
			if !ok || err != nil {
				t.Fatalf("second Lock: %t, %v", ok, err)
			}
			if first.Stands() || !second.Stands() {
				t.Errorf("the first stands %t, the second %t", first.Stands(), second.Stands())
			}
			first.Release()
			if !second.Stands() {
				t.Error("the first holder removed the lock of the second")
			}
			if _, ok, err := s.Lock("l"); ok || err != nil {
				t.Errorf("Lock while the second holder has the lock: %t, %v", ok, err)
			}
			second.Release()
			again, ok, err := s.Lock("l")
			if !ok || err != nil {
				t.Fatalf("Lock after both locks ended: %t, %v", ok, err)
			}
			again.Release()
		})
	}
}

// TestASwapWhoseLockIsRemovedDoesNotOverwriteAnothers removes the lock files while a swap stages
// its body, and then lets another process swap. Only one of the two swaps may succeed.
func TestASwapWhoseLockIsRemovedDoesNotOverwriteAnothers(t *testing.T) {
	root := t.TempDir()
	s, other := openDir(t, root), openDir(t, root)
	v, err := store.CreateBytes(t.Context(), s, "k", []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	s.fsync = func(f *os.File) error {
		if strings.Contains(f.Name(), tmpPrefix) {
			s.fsync = (*os.File).Sync
			if err := os.RemoveAll(filepath.Join(root, store.Reserved, lockFolder)); err != nil {
				t.Error(err)
			}
			if _, err := store.SwapBytes(t.Context(), other, "k", []byte("theirs"), v); err != nil {
				t.Errorf("the other's swap: %v", err)
			}
		}
		return f.Sync()
	}
	if _, err := store.SwapBytes(t.Context(), s, "k", []byte("ours"), v); !errors.Is(err, store.ErrConflict) {
		t.Errorf("the swap whose lock is gone: %v, want %v", err, store.ErrConflict)
	}
	if body, _, err := s.Get(t.Context(), "k", 100); string(body) != "theirs" {
		t.Errorf("the object is %q, %v", body, err)
	}
}

// TestTheFirstWriteOutlivesTheRemovalOfTheTemporaryFolder makes the first write of many processes
// while somebody removes .tmp repeatedly.
func TestTheFirstWriteOutlivesTheRemovalOfTheTemporaryFolder(t *testing.T) {
	root := t.TempDir()
	if _, err := store.CreateBytes(t.Context(), openDir(t, root), "k", nil); err != nil {
		t.Fatal(err)
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			default:
				_ = os.RemoveAll(filepath.Join(root, store.Reserved)) // fails if a file was created meanwhile
			}
		}
	}()
	for n := range 40 {
		key := fmt.Sprintf("probe/%d", n)
		if _, err := store.CreateBytes(t.Context(), openDir(t, root), key, []byte(key)); err != nil && !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v", key, err)
		}
	}
	close(done)
	<-ended
}

func BenchmarkLockStands(b *testing.B) {
	s, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	l, ok, err := s.Lock("fetch/part-00017/checkpoint.json")
	if err != nil || !ok {
		b.Fatal(ok, err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if !l.Stands() {
			b.Fatal("the lock does not stand")
		}
	}
}

func TestLockHasOneHolderWhileManyTakeAndRelease(t *testing.T) {
	root := t.TempDir()
	held := make(chan struct{}, 1)
	done := make(chan error)
	for range 8 {
		go func() {
			done <- func() error {
				s, err := Open(root, Options{})
				if err != nil {
					return err
				}
				for range 200 {
					l, ok, err := s.Lock("l")
					if err != nil {
						return err
					}
					if !ok {
						continue
					}
					select {
					case held <- struct{}{}:
						<-held
					default:
						return errors.New("two hold the lock")
					}
					l.Release()
				}
				return nil
			}()
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestRemovedRootIsNoMissingObject(t *testing.T) {
	root := filepath.Join(t.TempDir(), "data")
	s := openDir(t, root)
	for range 2 {
		if _, err := store.CreateBytes(t.Context(), s, "k", []byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(root); err != nil {
			t.Fatal(err)
		}
		_, err := store.SwapBytes(t.Context(), s, "k", []byte("y"), "")
		if !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("Swap below a removed root: %v, want %v", err, store.ErrUnavailable)
		}
	}
}

func TestLinkToNowhereInTheWayIsAnError(t *testing.T) {
	root := t.TempDir()
	if err := os.Symlink(filepath.Join(root, "nowhere"), filepath.Join(root, "tables")); err != nil {
		t.Fatal(err)
	}
	_, err := store.CreateBytes(t.Context(), openDir(t, root), "tables/k", []byte("x"))
	if err == nil || errors.Is(err, store.ErrNotFound) {
		t.Fatalf("Create: %v", err)
	}
}

// cancelReader is a reader whose reads cancel the context.
type cancelReader struct{ cancel context.CancelFunc }

func (c cancelReader) ReadAt(p []byte, _ int64) (int, error) {
	c.cancel()
	return len(p), nil
}

func TestContextEndsALongCreate(t *testing.T) {
	root := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := openDir(t, root).Create(ctx, "k", cancelReader{cancel}, 1<<40)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("Create: %v", err)
	}
	if got := tree(t, root); len(got) != 0 {
		t.Fatalf("left %q", got)
	}
}

func ExampleOpen() {
	root, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	s, err := Open(root, Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	_, err = store.CreateBytes(ctx, s, "crawl=2026-11/crawl.json", []byte("{}\n"))
	fmt.Println(err)
	_, err = store.CreateBytes(ctx, s, "crawl=2026-11/crawl.json", []byte("[]\n"))
	fmt.Println(err)
	body, _, _ := s.Get(ctx, "crawl=2026-11/crawl.json", 1<<20)
	_, _ = io.Copy(os.Stdout, bytes.NewReader(body))
	// Output:
	// <nil>
	// create "crawl=2026-11/crawl.json": object exists already: its 3 bytes differ
	// {}
}

// TestAWholeFileIsLinkedAndNotCopied shows when an object shares a file with the caller. An object never
// does if a sync of such a file has failed: the next sync would succeed although pages are lost.
func TestAWholeFileIsLinkedAndNotCopied(t *testing.T) {
	root := t.TempDir()
	s := openDir(t, root)
	body := []byte("rows of a table")
	create := func(key string, mode os.FileMode) (linked bool, err error) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "scratch")
		if err := os.WriteFile(path, body, 0o666); err != nil {
			t.Fatal(err)
		}
		if mode != 0 {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		v, err := s.Create(t.Context(), key, store.File{File: f, SHA256: string(localfile.VersionOf(body))}, int64(len(body)))
		if err != nil {
			return false, err
		}
		if got, now, err := s.Get(t.Context(), key, 100); string(got) != string(body) || now != v || err != nil {
			t.Errorf("%s is %q at version %s, %v; want version %s", key, got, now, err, v)
		}
		a, aerr := os.Stat(path)
		b, berr := os.Stat(filepath.Join(root, key))
		if err := errors.Join(aerr, berr); err != nil {
			t.Fatal(err)
		}
		return os.SameFile(a, b), nil
	}
	var synced []string
	s.fsync = func(f *os.File) error {
		synced = append(synced, filepath.Base(f.Name()))
		return f.Sync()
	}
	if linked, err := create("t/a", 0); !linked || err != nil || synced[0] != "scratch" {
		t.Errorf("a file in the same file system: linked %t, %v; synced %q first", linked, err, synced[0])
	}
	if linked, err := create("t/a", 0); linked || err != nil {
		t.Errorf("a file with the bytes of an object: linked %t, %v", linked, err)
	}
	if linked, err := create("t/b", 0o640); linked || err != nil {
		t.Errorf("a file with a mode of its own: linked %t, %v", linked, err)
	}
	s.fsync = func(f *os.File) error {
		if filepath.Base(f.Name()) == "scratch" {
			return &os.PathError{Op: "fsync", Path: f.Name(), Err: syscall.EIO}
		}
		return f.Sync()
	}
	if _, err := create("t/c", 0); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a file that cannot be synced: %v, want %v", err, store.ErrUnavailable)
	}
	s.fsync = (*os.File).Sync
	if linked, err := create("t/c", 0); linked || err != nil {
		t.Errorf("a file after a failed sync: linked %t, %v", linked, err)
	}
	if got := tree(t, root); !slices.Equal(got, []string{"t/a", "t/b", "t/c"}) {
		t.Errorf("files: %q", got)
	}
}
