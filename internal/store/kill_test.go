package store

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"ductor/cli"
	"ductor/internal/store/sqlite"
	"ductor/internal/testprogram"
	"ductor/orchestrator"
)

// childEnv names the database that a child process of the kill tests writes to.
const childEnv = "DUCTOR_STORE_TEST_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		work := writeUntilKilled
		if jobs, ok := strings.CutPrefix(path, "jobs:"); ok {
			work, path = workOnJobs, jobs
		}
		if err := work(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	testprogram.Checks(25)
	testprogram.Main(m)
}

const killWorkers = 2

// TestKilledAtAnyTime repeatedly kills a process that writes to one database. After each kill, all acknowledged steps
// are stored, an update is handled if and only if its turn or its notice exists, and a session counts each of its ended
// turns once.
func TestKilledAtAnyTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ductor.db")
	const rounds = 8
	for round := range rounds {
		acknowledged := runAndKill(t, path, 2+rand.IntN(150))
		if t.Failed() {
			return
		}
		checkAfterKill(t, path, acknowledged)
		if t.Failed() {
			t.Fatalf("in round %d, after %d acknowledged steps", round, len(acknowledged))
		}
	}
}

// TestKilledWhileCreatingTheDatabase tests that the next start can continue.
func TestKilledWhileCreatingTheDatabase(t *testing.T) {
	for range 6 {
		path := filepath.Join(t.TempDir(), "ductor.db")
		acknowledged := runAndKill(t, path, 1) // the child prints the first line before it opens the database
		checkAfterKill(t, path, acknowledged)
	}
}

// runAndKill runs the child until it has acknowledged some steps, kills it and returns all steps that it acknowledged.
func runAndKill(t *testing.T, path string, steps int) []string {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childEnv+"="+path)
	var stderr strings.Builder
	child.Stderr = &stderr
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	var lines []string
	scan := bufio.NewScanner(out)
	for scan.Scan() {
		lines = append(lines, scan.Text())
		if len(lines) == steps {
			must(t, child.Process.Kill())
		}
	}
	err = child.Wait()
	if status, ok := child.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Errorf("the child ended before it was killed: %v\n%s", err, stderr.String())
	}
	return lines
}

func checkAfterKill(t *testing.T, path string, acknowledged []string) {
	t.Helper()
	db := openAt(t, path)
	defer db.Close()
	for _, line := range acknowledged {
		step, id, _ := strings.Cut(line, " ")
		query := map[string]string{
			"opening":   `SELECT ? = '0'`,
			"appended":  `SELECT count(*) FROM inbox WHERE id = ?`,
			"answered":  `SELECT count(*) FROM messages WHERE CAST(content AS TEXT) = ?`,
			"enqueued":  `SELECT count(*) FROM turns WHERE id = ?`,
			"started":   `SELECT count(*) FROM turns WHERE id = ? AND state <> 'queued'`,
			"asked":     `SELECT count(*) FROM asks WHERE id = ?`,
			"decided":   `SELECT count(*) FROM asks WHERE id = ? AND state = 'allowed'`,
			"finished":  `SELECT count(*) FROM turns WHERE id = ? AND state = 'done'`,
			"delivered": `SELECT count(*) FROM turns WHERE id = ? AND delivered = 1`,
		}[step]
		if n := count(t, db, query, id); n != 1 {
			t.Errorf("%q was acknowledged, but %d rows show it", line, n)
		}
	}
	torn := `SELECT count(*) FROM inbox WHERE id > 0 AND (handled > 0) <>
		((SELECT count(*) FROM turns WHERE id = CAST(inbox.id AS TEXT)) +
		 (SELECT count(*) FROM messages WHERE CAST(content AS TEXT) = CAST(inbox.id AS TEXT)))`
	if n := count(t, db, torn); n != 0 {
		t.Errorf("%d updates are handled without a turn or a notice, or vice versa", n)
	}
	halves := `SELECT count(*) FROM asks a WHERE
		(SELECT count(*) FROM ask_requests WHERE ask = a.id) <> 1 OR
		(SELECT count(*) FROM audit WHERE ask = a.id) <> (a.state = 'allowed') OR
		(SELECT count(*) FROM rules WHERE id = a.id) <> (a.state = 'allowed') OR
		(SELECT handled > 0 FROM inbox WHERE id = -CAST(a.id AS INTEGER)) <> (a.state = 'allowed')`
	if n := count(t, db, halves); n != 0 {
		t.Errorf("%d approvals are decided without their audit, rule and update, or vice versa", n)
	}
	miscounted := `SELECT count(*) FROM sessions s WHERE messages <>
		(SELECT count(*) FROM turns WHERE session = s.id AND state = 'done') OR tokens <> 10 * messages`
	if n := count(t, db, miscounted); n != 0 {
		t.Errorf("%d sessions have not counted each ended turn once", n)
	}
}

func count(t *testing.T, db *DB, query string, args ...any) int {
	t.Helper()
	n, err := sqlite.One(t.Context(), db.file, sqlite.Value[int], query, args...)
	must(t, err)
	return n
}

// writeUntilKilled is the child process. Each worker takes updates through all their steps and prints a line after
// each.
func writeUntilKilled(path string) error {
	fmt.Println("opening 0")
	db, err := Open(context.Background(), path, Options{})
	if err != nil {
		return err
	}
	last, err := sqlite.One(context.Background(), db.file, sqlite.Value[int64],
		`SELECT coalesce(max(id), 0) FROM inbox`)
	if err != nil {
		return err
	}
	fails := make(chan error)
	for w := range killWorkers {
		go func() { fails <- writeAs(db, int64(w), last, os.Stdout) }()
	}
	return <-fails
}

func writeAs(db *DB, w, last int64, out io.Writer) error {
	ctx := context.Background()
	session := orchestrator.SessionID(fmt.Sprintf("s%d.%d", last, w))
	if err := db.CreateSession(ctx, orchestrator.Session{ID: session, Conversation: chatA}); err != nil {
		return err
	}
	done := "" // not acknowledged yet: it shares a transaction with the next step
	for id := last + 1 + w; ; id += killWorkers {
		name := strconv.FormatInt(id, 10)
		turn := newTurn(cli.TurnID(name), id)
		turn.Session = session
		outcome := orchestrator.Outcome{State: orchestrator.TurnDone, Usage: cli.Usage{Output: 10}}
		steps := []killStep{
			{"appended", func() error {
				_, err := db.AppendUpdates(ctx, []orchestrator.Update{{ID: id, Raw: []byte(name)}})
				return err
			}},
			{"enqueued", func() error { return db.EnqueueTurn(ctx, turn) }},
			{"started", func() error { _, err := db.StartTurn(ctx, turn, cli.Start{}); return err }},
			{"asked", func() error {
				_, err := db.AppendUpdates(ctx, []orchestrator.Update{{ID: pressUpdate(id), Raw: []byte("{}")}})
				if err == nil {
					_, err = db.OpenApproval(ctx, newApproval(orchestrator.ApprovalID(name), turn.ID, "1"), "d")
				}
				return err
			}},
			{"decided", func() error {
				d := allowed(orchestrator.ApprovalID(name))
				d.Updates = []int64{pressUpdate(id)}
				d.Rule = &orchestrator.Rule{ID: orchestrator.RuleID(name), Kind: orchestrator.RuleSame}
				_, _, err := db.DecideApproval(ctx, d)
				return err
			}},
			{"finished", func() error { return db.FinishTurn(ctx, turn.ID, noon, outcome) }},
			{"delivered", func() error { return db.MarkDelivered(ctx, turn.ID) }},
		}
		if id%5 < killWorkers {
			steps = append(steps[:1], killStep{"answered", func() error {
				return db.FinishUpdates(ctx, []int64{id}, orchestrator.Message{Key: "notice/" + name,
					State: orchestrator.Pending, Content: []byte(name)})
			}})
		}
		for _, s := range steps {
			if err := s.do(); err != nil {
				return fmt.Errorf("update %d, %s: %w", id, s.name, err)
			}
			done += fmt.Sprintf("%s %d\n", s.name, id)
			if s.name == "appended" || s.name == "enqueued" || s.name == "finished" || s.name == "delivered" {
				continue
			}
			if _, err := io.WriteString(out, done); err != nil {
				return err
			}
			done = ""
		}
	}
}

// pressUpdate returns the ID of the update in which a user decides the approval of the turn of update id. No turn has a
// negative update ID.
func pressUpdate(id int64) int64 { return -id }

type killStep struct {
	name string
	do   func() error
}
