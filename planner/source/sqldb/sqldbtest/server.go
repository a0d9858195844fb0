// Package sqldbtest starts real MariaDB and PostgreSQL servers on loopback for tests.
//
// The servers run only if an environment variable asks for them. The package looks for their
// programs where Debian's packages install them. Each server has one database. A test may kill a
// server and start it again. The servers end when the test ends. Package sqldbtest imports only
// database drivers.
package sqldbtest

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver of MariaDB
	_ "github.com/lib/pq"              // the driver of PostgreSQL
)

// Wanted is the environment variable that asks for servers.
const Wanted = "CRAWLBATCH_SQL"

// The user and the database that every server has.
const (
	User     = "crawler"
	Password = "p@ss/w?rd#1'" // has the characters with a meaning in addresses and in SQL
	Database = "crawldb"
)

// Server is a database server.
type Server struct {
	Scheme string // mysql or postgres
	Port   int

	t       testing.TB
	dir     string
	command func() *exec.Cmd
	running *exec.Cmd
	ended   chan struct{} // closed when the running command has ended
}

// Need skips the test if the environment does not ask for servers.
func Need(t testing.TB) {
	t.Helper()
	if os.Getenv(Wanted) == "" {
		t.Skipf("%s is not set, so there is no database server to test against; `make test-sql` runs this", Wanted)
	}
}

// Each runs a test with a server of each kind.
func Each(t *testing.T, test func(t *testing.T, s *Server)) {
	t.Run("mariadb", func(t *testing.T) { test(t, StartMariaDB(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, StartPostgreSQL(t)) })
}

// newServer makes a directory that the server's user may write.
func newServer(t testing.TB, scheme string) *Server {
	t.Helper()
	Need(t)
	dir, err := os.MkdirTemp("", "crawlbatch-sql-")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Scheme: scheme, t: t, dir: dir}
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			t.Logf("%s said at last:\n%s", scheme, s.tail())
		}
		_ = os.RemoveAll(dir)
	})
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Port = l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	return s
}

// nobody is the user of the servers if root runs the tests, because servers refuse to run as root.
const nobody = 65534

// cmd returns a command that runs as an unprivileged user and writes into the file output.
func (s *Server) cmd(name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir = s.dir
	if os.Geteuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	c.Env = append(os.Environ(), "HOME="+s.dir, "LC_ALL=C")
	return c
}

func (s *Server) run(name string, args ...string) {
	s.t.Helper()
	if out, err := s.cmd(name, args...).CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// find returns the path of a program, in PATH or in the folders.
func find(t testing.TB, packageName string, names []string, folders ...string) string {
	t.Helper()
	for _, name := range names {
		for _, pattern := range folders {
			found, _ := filepath.Glob(filepath.Join(pattern, name)) // the patterns are valid
			if len(found) > 0 {
				return found[len(found)-1]
			}
		}
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatalf("%s is missing: as root, apt-get install %s", names[0], packageName)
	return ""
}

// StartMariaDB starts a MariaDB server.
func StartMariaDB(t testing.TB) *Server {
	t.Helper()
	s := newServer(t, "mysql")
	server := find(t, "mariadb-server", []string{"mariadbd", "mysqld"}, "/usr/sbin")
	install := find(t, "mariadb-server", []string{"mariadb-install-db", "mysql_install_db"})
	data := filepath.Join(s.dir, "data")
	s.run(install, "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db", "--tmpdir="+s.dir)
	s.command = func() *exec.Cmd {
		return s.cmd(server, "--no-defaults", "--datadir="+data, "--socket="+s.socket(), "--pid-file="+filepath.Join(s.dir, "pid"), "--tmpdir="+s.dir,
			"--bind-address=127.0.0.1", "--port="+strconv.Itoa(s.Port), "--skip-name-resolve", "--general-log", "--general-log-file="+s.log(),
			"--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=128M", "--local-infile=0")
	}
	s.launch("mysql", s.root())
	s.exec("mysql", s.root(), "CREATE DATABASE "+Database,
		fmt.Sprintf("CREATE USER %s@'127.0.0.1' IDENTIFIED BY '%s'", User, strings.ReplaceAll(Password, "'", "''")),
		fmt.Sprintf("GRANT ALL ON %s.* TO %s@'127.0.0.1'", Database, User))
	return s
}

// StartPostgreSQL starts a PostgreSQL server.
func StartPostgreSQL(t testing.TB) *Server {
	t.Helper()
	s := newServer(t, "postgres")
	const folders = "/usr/lib/postgresql/*/bin"
	server, initdb := find(t, "postgresql", []string{"postgres"}, folders), find(t, "postgresql", []string{"initdb"}, folders)
	data, secret := filepath.Join(s.dir, "data"), filepath.Join(s.dir, "secret")
	if err := os.WriteFile(secret, []byte(Password), 0o644); err != nil {
		t.Fatal(err)
	}
	s.run(initdb, "-D", data, "-U", User, "--auth=scram-sha-256", "--pwfile="+secret, "-E", "UTF8", "--locale=C", "--no-sync")
	s.command = func() *exec.Cmd {
		return s.cmd(server, "-D", data, "-p", strconv.Itoa(s.Port), "-h", "127.0.0.1", "-k", s.dir, "-c", "log_statement=all", "-c", "fsync=off")
	}
	s.launch("postgres", s.dsn("postgres"))
	s.exec("postgres", s.dsn("postgres"), "CREATE DATABASE "+Database)
	return s
}

// dsn returns a data source name of the driver.
func (s *Server) dsn(database string) string {
	if s.Scheme == "mysql" {
		return fmt.Sprintf("%s:%s@tcp(127.0.0.1:%d)/%s", User, Password, s.Port, database)
	}
	return fmt.Sprintf("host=127.0.0.1 port=%d user=%s password='%s' dbname=%s sslmode=disable", s.Port, User, strings.ReplaceAll(Password, "'", `\'`), database)
}

func (s *Server) socket() string { return filepath.Join(s.dir, "socket") }

// root returns the data source name of MariaDB's administrator.
func (s *Server) root() string { return "root@unix(" + s.socket() + ")/" }

// Limit replaces the rights of the user of a MariaDB server by rights such as "SELECT, UPDATE ON url_queue".
func (s *Server) Limit(rights ...string) {
	s.t.Helper()
	user := User + "@'127.0.0.1'"
	s.exec("mysql", s.root(), "REVOKE ALL ON "+Database+".* FROM "+user)
	for _, r := range rights {
		s.exec("mysql", s.root(), "GRANT "+strings.Replace(r, " ON ", " ON "+Database+".", 1)+" TO "+user)
	}
}

func (s *Server) log() string { return filepath.Join(s.dir, "log") }

// launch starts the server and waits until it answers. If the server ends, launch starts it again:
// PostgreSQL does not start before all processes of a killed server have ended.
func (s *Server) launch(driver, dsn string) {
	s.t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if s.running == nil || s.hasEnded() {
			s.start()
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		err := db.PingContext(ctx)
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(limit) {
			s.t.Fatalf("%s does not answer: %v\n%s", s.Scheme, err, s.tail())
		}
	}
}

func (s *Server) start() {
	s.t.Helper()
	out, err := os.OpenFile(filepath.Join(s.dir, "out"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		s.t.Fatal(err)
	}
	defer out.Close()
	c, ended := s.command(), make(chan struct{})
	c.Stdout, c.Stderr = out, out
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		defer close(ended)
		_ = c.Wait() // the exit status does not matter
	}()
	s.running, s.ended = c, ended
}

func (s *Server) hasEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

func (s *Server) exec(driver, dsn string, statements ...string) {
	s.t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	for _, text := range statements {
		if _, err := db.Exec(text); err != nil {
			s.t.Fatalf("%.300s: %v", text, err)
		}
	}
}

// Exec runs statements in the database.
func (s *Server) Exec(statements ...string) {
	s.t.Helper()
	s.exec(s.Scheme, s.dsn(Database), statements...)
}

// Query returns the rows of a query, one line each, with a bar between values.
func (s *Server) Query(query string) (lines []string) {
	s.t.Helper()
	db, err := sql.Open(s.Scheme, s.dsn(Database))
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(query)
	if err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		s.t.Fatal(err)
	}
	values, into := make([]sql.NullString, len(names)), make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			s.t.Fatal(err)
		}
		texts := make([]string, len(values))
		for i, v := range values {
			if texts[i] = v.String; !v.Valid {
				texts[i] = "-"
			}
		}
		lines = append(lines, strings.Join(texts, "|"))
	}
	if err := rows.Err(); err != nil {
		s.t.Fatal(err)
	}
	return lines
}

// Kill ends the server and all its processes immediately, as a crash does.
func (s *Server) Kill() {
	if s.running == nil {
		return
	}
	// PostgreSQL's processes outlive the first one for a moment, and keep its memory.
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", s.running.Process.Pid))
	_ = s.running.Process.Kill()
	<-s.ended
	for _, child := range strings.Fields(string(children)) {
		if pid, err := strconv.Atoi(child); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended already
		}
	}
	s.running = nil
}

// Restart starts the server again after Kill.
func (s *Server) Restart() {
	s.t.Helper()
	s.launch(s.Scheme, s.dsn(Database))
}

// Address returns the address of the database for crawlbatch, with options such as "where=id<5".
func (s *Server) Address(options ...string) string {
	return fmt.Sprintf("%s://%s:${SQL_PASSWORD}@127.0.0.1:%d/%s?%s", s.Scheme, User, s.Port, Database, strings.Join(options, "&"))
}

// Lookup returns the password to which Address refers.
func Lookup(name string) (string, bool) { return Password, name == "SQL_PASSWORD" }

// Fill makes the table url_queue with n rows. Row i has the URL that URL(i) returns.
func (s *Server) Fill(n int) {
	s.t.Helper()
	if s.Scheme == "mysql" {
		s.Exec(`CREATE TABLE url_queue (id BIGINT PRIMARY KEY AUTO_INCREMENT, url TEXT NOT NULL, status VARCHAR(32) NOT NULL DEFAULT 'pending',
			http_status INT, fetched_at DATETIME, content_digest VARCHAR(64))`,
			fmt.Sprintf("INSERT INTO url_queue (id, url) SELECT seq, CONCAT('http://h', seq MOD 7, '.d', seq MOD 997, '.example/page/', seq) FROM seq_1_to_%d", n))
		return
	}
	s.Exec(`CREATE TABLE url_queue (id BIGINT PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, url TEXT NOT NULL, status VARCHAR(32) NOT NULL DEFAULT 'pending',
		http_status INT, fetched_at TIMESTAMPTZ, content_digest VARCHAR(64))`,
		fmt.Sprintf("INSERT INTO url_queue (id, url) SELECT n, concat('http://h', n %% 7, '.d', n %% 997, '.example/page/', n) FROM generate_series(1, %d) n", n),
		fmt.Sprintf("ALTER TABLE url_queue ALTER id RESTART WITH %d", n+1))
}

// URL returns the URL of row i of Fill.
func URL(i int) string { return fmt.Sprintf("http://h%d.d%d.example/page/%d", i%7, i%997, i) }

// Statements returns the server's log, which holds its statements.
func (s *Server) Statements() string {
	s.t.Helper()
	name := s.log()
	if s.Scheme == "postgres" {
		name = filepath.Join(s.dir, "out")
	}
	text, err := os.ReadFile(name)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// tail returns the end of the server's output.
func (s *Server) tail() []byte {
	text, _ := os.ReadFile(filepath.Join(s.dir, "out")) // a read error only shortens the message
	lines := bytes.Split(text, []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-20):], []byte("\n"))
}
