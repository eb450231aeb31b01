package real

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"ductor/internal/sim/telegram"
	"ductor/test/ordeal/judge"
	"ductor/test/ordeal/scenario"
)

// gather collects the events in Telegram and the actions of the agents.
func (o *ordeal) gather() {
	e := &o.evidence
	e.Ended = time.Now()
	e.Calls = o.srv.Calls()
	for i, c := range e.Calls {
		answered := c.Fault == telegram.NoFault || c.Fault == telegram.TooMany
		lost := o.line.mayHaveLost(c.Done, e.Scenario.Latest()) || o.diedAfter(c.Done) || o.diedBefore(c)
		if !answered && c.RetryAfter > 0 || answered && lost {
			e.Calls[i].Fault = telegram.DropAfter // ductor may not know that the call took effect
		}
	}
	e.Pending, e.Faults.Cuts = o.srv.PendingUpdates(), o.line.breaks()
	e.Agents = o.agentEvents()
	e.Documents = map[string]string{}
	for _, name := range o.places.order {
		chat := o.places.chats[name]
		c := judge.Chat{Name: name, ID: chat.ID(), Topics: map[telegram.TopicID]scenario.Place{},
			History: chat.History(), Hurt: o.places.hurt[name]}
		for place, topic := range o.places.topics {
			if whole, _, _ := strings.Cut(string(place), "/"); whole == string(name) {
				c.Topics[topic] = place
			}
		}
		for _, m := range c.History {
			if m.From.Bot && m.Media != nil {
				if data, ok := o.srv.FileData(m.Media.FileID); ok {
					e.Documents[m.Media.FileID] = string(data)
				}
			}
		}
		e.Chats = append(e.Chats, c)
	}
	e.Files = map[string]string{}
	o.trouble(filepath.WalkDir(o.project(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		below, _ := filepath.Rel(o.project(), path)
		e.Files[below] = string(raw)
		return err
	}))
}

// diedAfter reports whether ductor ended so soon after a response that the next process may not know the response.
// There are two reasons. On a busy machine, ductor may not have read the response before it ended. Or the disk may have
// lost the data of the response, because it was not flushed.
func (o *ordeal) diedAfter(answered time.Time) bool {
	const reading, flushing = 3 * time.Second, 30 * time.Second
	return slices.ContainsFunc(o.evidence.Stops, func(s judge.Stop) bool {
		since := s.At.Sub(answered)
		return since >= 0 && (since < reading || since < flushing && s.How == scenario.Power && o.disk.kind == diskExt4)
	})
}

// diedBefore reports whether the ductor process that made the call c had ended when Telegram received c. In this case,
// Telegram received c shortly after the end of the process, and before getMe, which is the first call of the next
// process.
func (o *ordeal) diedBefore(c telegram.Call) bool {
	return slices.ContainsFunc(o.evidence.Stops, func(s judge.Stop) bool {
		began := func(next telegram.Call) bool {
			return next.Method == "getMe" && next.At.After(s.At) && !next.At.After(c.At)
		}
		since := c.At.Sub(s.At)
		return since >= 0 && since < transit && !slices.ContainsFunc(o.evidence.Calls, began)
	})
}

// gatherLeftovers collects everything that is left after ductor has ended.
func (o *ordeal) gatherLeftovers() {
	e := &o.evidence
	if err := eventually("the end of all processes", func() bool { return len(processes()) == 0 }); err != nil {
		for _, p := range processes() {
			e.Left = append(e.Left, p.String())
		}
	}
	e.Stored.Damage = o.checkDatabase() // checkDatabase also sets the other fields of Stored
	e.Left = append(e.Left, o.leftFiles()...)
	e.Texts = o.leaks()
	log, _ := os.ReadFile(o.log())
	for line := range strings.Lines(string(log)) {
		if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") ||
			strings.HasPrefix(line, "WARNING: DATA RACE") {
			e.Troubles = append(e.Troubles, "ductor: "+strings.TrimSpace(line))
		}
	}
	if err := o.disk.check(); err != nil {
		e.Left = append(e.Left, err.Error())
	}
}

func (o *ordeal) checkDatabase() (found []string) {
	db, err := sql.Open("sqlite3", "file:"+o.database()+"?mode=ro&immutable=1")
	if err != nil {
		return []string{err.Error()}
	}
	defer db.Close()
	var said string
	if err := db.QueryRow(`PRAGMA integrity_check`).Scan(&said); err != nil || said != "ok" {
		found = append(found, fmt.Sprintf("integrity_check: %q %v", said, err))
	}
	var broken int
	if err := db.QueryRow(`SELECT count(*) FROM pragma_foreign_key_check`).Scan(&broken); err != nil || broken > 0 {
		found = append(found, fmt.Sprintf("%d rows name rows that are not there: %v", broken, err))
	}
	e := &o.evidence
	if e.Stored, err = judge.Read(db); err != nil {
		found = append(found, err.Error())
	}
	return found
}

// allowedFiles lists files that may remain in ductor's state directory after a normal end: the database, backups, keys,
// recent files of users, and files for locks and sockets.
var allowedFiles = []string{
	"ductor.db", "crash*.log", "ductor.lock", "attach.sock", "mcp.key", "mcp.sock", "mcp-tokens.json", "socket.secret",
	"terminal.sock", "runner/lock", "runner/sock", "locks/*.lock",
	"started/*.json", "uploads/*/*", "prompts/append-*", "backups/ductor-*.db",
}

// leftFiles returns temporary files, journals, and lock files that are still locked.
func (o *ordeal) leftFiles() (left []string) {
	for _, dir := range []string{o.state(), o.path("tmp")} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() && dir == o.state() && strings.Count(path[len(dir):], "/") < 2 ||
				path == dir {
				return err
			}
			below, _ := filepath.Rel(dir, path)
			known := dir == o.state() && slices.ContainsFunc(allowedFiles, func(pattern string) bool {
				ok, _ := filepath.Match(pattern, below)
				return ok
			})
			switch {
			case entry.IsDir() && strings.HasPrefix(below, "uploads"):
			case strings.HasPrefix(below, "claude-tasks"): // files that Claude itself leaves behind if it is killed
			case !known:
				left = append(left, "the file "+path[len(o.dir):])
			case strings.HasSuffix(path, "lock") && isLocked(path):
				left = append(left, "the lock "+path[len(o.dir):])
			}
			return nil
		})
		if err != nil {
			left = append(left, err.Error())
		}
	}
	return left
}

// isLocked reports whether a process has locked a file.
func isLocked(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// leaks finds files and calls to Telegram that contain one of the secrets (world.secrets), although they must not. The
// result has the format of Evidence.Texts. Each key describes the file or call, and names the secret. Each value is
// evidence.Secret, whichever secret was found, so that the judge reports the leak.
func (o *ordeal) leaks() map[string]string {
	found := map[string]string{}
	err := filepath.WalkDir(o.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || path == o.config() || path == o.path("image") ||
			strings.HasPrefix(path, o.path("opt")) {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for name, value := range o.secrets {
			if bytes.Contains(raw, []byte(value)) {
				found[fmt.Sprintf("%s (%s)", path[len(o.dir):], name)] = o.evidence.Secret
			}
		}
		return nil
	})
	o.trouble(err)
	for _, call := range o.evidence.Calls {
		for field, text := range call.Params {
			for name, value := range o.secrets {
				if strings.Contains(text, value) {
					found[fmt.Sprintf("the field %s of a call of %s (%s)", field, call.Method,
						name)] = o.evidence.Secret
				}
			}
		}
	}
	return found
}
