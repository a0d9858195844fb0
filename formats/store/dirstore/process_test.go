package dirstore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/formats/store"
	"crawlbatch.io/crawlbatch/formats/store/localfile"
	"crawlbatch.io/crawlbatch/formats/store/storetest"
)

// childRole is the environment variable that makes the test binary play one role on a store and
// exit.
const childRole = "CRAWLBATCH_DIRSTORE_CHILD"

func TestMain(m *testing.M) {
	if role := os.Getenv(childRole); role != "" {
		if err := child(role, os.Args[1], os.Args[2]); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child prints "ready", waits for a line from its parent and plays its role.
func child(role, root, who string) error {
	s, err := Open(root, Options{})
	if err != nil {
		return err
	}
	in := bufio.NewReader(os.Stdin)
	fmt.Println("ready")
	if _, err := in.ReadString('\n'); err != nil {
		return err
	}
	ctx := context.Background()
	switch role {
	case "create":
		for i := range 20 {
			_, err := store.CreateBytes(ctx, s, fmt.Sprintf("race/%d/k", i), []byte(who))
			switch {
			case err == nil:
				fmt.Println("won", i)
			case !errors.Is(err, store.ErrExists):
				return err
			}
		}
	case "append":
		return storetest.Append(ctx, s, "marks", who, 25)
	case "lock":
		_, ok, err := s.Lock("l")
		if err != nil {
			return err
		}
		fmt.Println("locked", ok)
		_, _ = in.ReadString('\n') // waits with the lock until the parent kills the process
	case "cut create", "cut swap":
		// killAt is the number of the sync at which the parent kills the process. That sync has no
		// effect.
		var killAt int
		if _, err := fmt.Sscanf(who, "process-%d", &killAt); err != nil {
			return err
		}
		s.fsync = func(f *os.File) error {
			if killAt--; killAt == 0 {
				fmt.Println("cut")
				select {}
			}
			return f.Sync()
		}
		if role == "cut create" {
			_, err = store.CreateBytes(ctx, s, cutKey, []byte("new"))
		} else {
			_, err = store.SwapBytes(ctx, s, cutKey, []byte("new"), localfile.VersionOf([]byte("old")))
		}
		fmt.Println("done")
		return err
	case "endless":
		_, err := s.Create(ctx, "tables/endless", endless{}, 1<<50)
		return err
	}
	return nil
}

// cutKey is the key that a killed process writes.
const cutKey = "tables/x/k"

// endless is a body without end that prints "writing" when its first bytes are read.
type endless struct{}

func (endless) ReadAt(p []byte, off int64) (int, error) {
	if off == 0 {
		fmt.Println("writing")
	}
	if off > 1<<20 {
		select {} // waits in the middle of the body until the parent kills the process
	}
	return len(p), nil
}

type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(t *testing.T, role, root string, who int) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, root, fmt.Sprint("process-", who))
	cmd.Env = append(os.Environ(), childRole+"="+role)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	p := &process{cmd, in, bufio.NewReader(out)}
	p.expect(t, "ready")
	return p
}

func (p *process) expect(t *testing.T, want string) {
	t.Helper()
	if line, err := p.out.ReadString('\n'); err != nil || strings.TrimSpace(line) != want {
		t.Fatalf("child said %q (%v), want %q", line, err, want)
	}
}

func (p *process) goOn(t *testing.T) {
	t.Helper()
	if _, err := fmt.Fprintln(p.in); err != nil {
		t.Fatal(err)
	}
}

func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait()
}

func TestCreateHasOneWinnerAmongProcesses(t *testing.T) {
	root := filepath.Join(t.TempDir(), "data") // root does not exist, so all processes find the object missing
	var all []*process
	for i := range 4 {
		all = append(all, start(t, "create", root, i))
	}
	for _, p := range all {
		p.goOn(t)
	}
	winners := map[string]string{}
	for i, p := range all {
		said, err := io.ReadAll(p.out)
		if err != nil || strings.Contains(string(said), "error") {
			t.Fatalf("child %d: %s %v", i, said, err)
		}
		for line := range strings.Lines(string(said)) {
			key := fmt.Sprintf("race/%s/k", strings.TrimSpace(strings.TrimPrefix(line, "won ")))
			if winners[key] != "" {
				t.Errorf("%s has two winners", key)
			}
			winners[key] = fmt.Sprint("process-", i)
		}
	}
	s := openDir(t, root)
	for i := range 20 {
		key := fmt.Sprintf("race/%d/k", i)
		body, _, err := s.Get(t.Context(), key, 100)
		if err != nil || string(body) != winners[key] || winners[key] == "" {
			t.Errorf("%s holds %q (%v), the winner was %q", key, body, err, winners[key])
		}
	}
}

func TestSwapsOfProcessesLoseNothing(t *testing.T) {
	root := t.TempDir()
	var all []*process
	for i := range 4 {
		all = append(all, start(t, "append", root, i))
	}
	for _, p := range all {
		p.goOn(t)
	}
	for i, p := range all {
		if said, err := io.ReadAll(p.out); err != nil || len(said) != 0 {
			t.Fatalf("child %d: %s %v", i, said, err)
		}
	}
	storetest.CheckMarks(t, openDir(t, root), "marks", 100)
}

func TestKilledHolderFreesItsLock(t *testing.T) {
	root := t.TempDir()
	p := start(t, "lock", root, 0)
	p.goOn(t)
	p.expect(t, "locked true")
	s := openDir(t, root)
	if _, ok, err := s.Lock("l"); ok || err != nil {
		t.Fatalf("Lock while the child lives: %t, %v", ok, err)
	}
	p.kill(t)
	l, ok, err := s.Lock("l")
	if !ok || err != nil {
		t.Fatalf("Lock after the child was killed: %t, %v", ok, err)
	}
	l.Release()
}

func TestKilledWriterLeavesNothingVisible(t *testing.T) {
	root := t.TempDir()
	p := start(t, "endless", root, 0)
	p.goOn(t)
	p.expect(t, "writing")
	p.kill(t)
	s := openDir(t, root)
	for info, err := range s.List(t.Context(), "") {
		t.Fatalf("visible: %+v, %v", info, err)
	}
	if _, err := store.CreateBytes(t.Context(), s, "tables/endless", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if got := tree(t, root); len(got) != 1 {
		t.Fatalf("left: %q", got)
	}
}

// TestAWriterKilledAtAnySyncLeavesOneWholeState kills a process at each sync of a write in turn.
// The object must then be as before or after the write. A repeated write must sync all folders,
// even if the killed process had already named the file.
func TestAWriterKilledAtAnySyncLeavesOneWholeState(t *testing.T) {
	for _, role := range []string{"cut create", "cut swap"} {
		states := map[string]int{}
		for at := 1; ; at++ {
			root := filepath.Join(t.TempDir(), "data")
			if role == "cut swap" {
				if _, err := store.CreateBytes(t.Context(), openDir(t, root), cutKey, []byte("old")); err != nil {
					t.Fatal(err)
				}
			}
			p := start(t, role, root, at)
			p.goOn(t)
			said, err := p.out.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if said == "done\n" {
				break // the write ended before the process could be killed
			}
			p.kill(t)
			checkAndRepeat(t, role, root, at, states)
		}
		before := "old"
		if role == "cut create" {
			before = ""
		}
		if states[before] != 1 || states["new"] == 0 || len(states) != 2 {
			t.Errorf("%s: states after a kill: %v", role, states)
		}
	}
}

// checkAndRepeat checks the store that a killed writer left, and repeats the write.
func checkAndRepeat(t *testing.T, role, root string, at int, states map[string]int) {
	t.Helper()
	s := openDir(t, root)
	body, v, err := s.Get(t.Context(), cutKey, 100)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	states[string(body)]++
	synced := map[string]bool{}
	s.fsync = func(f *os.File) error {
		synced[f.Name()] = true
		return f.Sync()
	}
	if role == "cut create" {
		_, err = store.CreateBytes(t.Context(), s, cutKey, []byte("new"))
	} else {
		_, err = store.SwapBytes(t.Context(), s, cutKey, []byte("new"), localfile.VersionOf([]byte("old")))
	}
	if err != nil {
		t.Fatalf("%s, killed at sync %d: again: %v", role, at, err)
	}
	for _, folder := range []string{filepath.Join(root, "tables/x"), filepath.Join(root, "tables"), root} {
		if !synced[folder] {
			t.Errorf("%s, killed at sync %d: the repeated write did not sync %s", role, at, folder)
		}
	}
	if _, err := store.CreateBytes(t.Context(), s, "tables/x/other", nil); err != nil { // the write of a second object removes temporary files
		t.Fatal(err)
	}
	if got := tree(t, root); len(got) != 2 {
		t.Errorf("%s, killed at sync %d: left %q", role, at, got)
	}
	if got, now, err := s.Get(t.Context(), cutKey, 100); err != nil || string(got) != "new" || string(body) == "new" && now != v {
		t.Errorf("%s, killed at sync %d: %q at %s, %v", role, at, got, now, err)
	}
}
