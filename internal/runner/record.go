package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"ductor/internal/proctree"
)

// The files of a run.
const (
	recordFile = "run.json"
	logFile    = "log"
	outFile    = "out"
	errFile    = "err"
)

// record is the content of run.json: what is known about a run before its agent starts.
type record struct {
	Version int               `json:"version"`
	ID      string            `json:"id"`
	Boot    string            `json:"boot"`
	Started time.Time         `json:"started"`
	Command []string          `json:"command"` // command line without secrets
	Dir     string            `json:"dir,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Limits  Limits            `json:"limits"`
	Group   string            `json:"group,omitempty"` // control group
	// Socket is the inode of the runner's end of standard input. The agent has a duplicate of this end.
	Socket uint64 `json:"socket,omitempty"`
	// OOMKills is the number of OOM kills in the runner's control group at the start of the run. It is nil if the
	// kernel does not count them.
	OOMKills *int64 `json:"oom_kills,omitempty"`
}

func readRecord(dir, id string) (rec record, err error) {
	raw, err := os.ReadFile(filepath.Join(dir, id, recordFile))
	if err != nil {
		return rec, err
	}
	if err := json.Unmarshal(raw, &rec); err != nil {
		return rec, fmt.Errorf("read %s of run %s: %w", recordFile, id, err)
	}
	if rec.ID != id {
		return rec, fmt.Errorf("%s of run %s is of run %q", recordFile, id, rec.ID)
	}
	return rec, nil
}

func (r record) write(dir string) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode %s: %w", recordFile, err)
	}
	return os.WriteFile(filepath.Join(dir, r.ID, recordFile), append(raw, '\n'), 0o600)
}

// Kinds of lines in a run's log. The comments list the fields after the kind.
const (
	lineAgent  = "agent"  // PID, start time
	lineBegin  = "begin"  // a write to the input begins: number of the request, number of bytes to write
	lineEnd    = "end"    // the write is complete: number of bytes
	lineClosed = "closed" // the input was closed
	lineTime   = "time"   // offset in the output, time of the write in microseconds since 1970
	lineAge    = "age"    // base of Limits.MaxAge (nanoseconds since boot), Limits in JSON
	lineBy     = "by"     // reason for ending the agent (a By constant)
	lineFreed  = "freed"  // offset before which output was deleted
	lineStatus = "status" // exit status of the run, in JSON
)

type history struct {
	agent       proctree.ID
	input       int64
	torn        bool // a write began and did not end
	inputClosed bool
	freed       int64
	times       []int64
	ageFrom     time.Duration
	limits      *Limits
	by          string
	status      *Status
}

// readHistory reads the log of a run. It ignores an incomplete last line.
func readHistory(dir, id string) (h history, err error) {
	raw, err := os.ReadFile(filepath.Join(dir, id, logFile))
	if err != nil {
		return h, err
	}
	for line := range bytes.Lines(raw) {
		text, whole := strings.CutSuffix(string(line), "\n")
		kind, rest, _ := strings.Cut(text, " ")
		if whole {
			h.add(kind, rest)
		}
	}
	return h, nil
}

func (h *history) add(kind, rest string) {
	first, second, _ := strings.Cut(rest, " ")
	a, _ := strconv.ParseInt(first, 10, 64)
	b, _ := strconv.ParseInt(second, 10, 64) // not every kind has a second number
	switch kind {
	case lineAgent:
		h.agent = proctree.ID{PID: int(a), Start: uint64(b)}
	case lineBegin:
		h.input, h.torn = h.input+b, true
	case lineEnd:
		h.torn = false
	case lineFreed:
		h.freed = max(h.freed, a)
	case lineClosed:
		h.inputClosed = true
	case lineTime:
		h.times = append(h.times, a, b)
	case lineAge:
		h.ageFrom = time.Duration(a)
		var l Limits
		if json.Unmarshal([]byte(second), &l) == nil {
			h.limits = &l
		}
	case lineBy:
		h.by = rest
	case lineStatus:
		var s Status
		if json.Unmarshal([]byte(rest), &s) == nil {
			h.status = &s
		}
	}
}

// runLog is the log of a run. Only the next runner reads it.
type runLog struct{ file *os.File }

// append appends a line. It ignores errors, because the run can continue without its log.
func (l runLog) append(kind string, fields ...any) {
	line := []byte(kind)
	for _, f := range fields {
		line = append(line, ' ')
		switch f := f.(type) {
		case int64:
			line = strconv.AppendInt(line, f, 10)
		case string:
			line = append(line, f...)
		default:
			raw, err := json.Marshal(f)
			if err != nil {
				return
			}
			line = append(line, raw...)
		}
	}
	_, _ = l.file.Write(append(line, '\n'))
}

// sinceBoot returns the time since boot, including times in which the machine was suspended. Changes of the clock do
// not affect the result.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0 // cannot happen, because all supported Linux versions have this clock
	}
	return time.Duration(t.Nano())
}

// adoptAll takes over the runs of the previous runner.
func (s *server) adoptAll() error {
	entries, err := os.ReadDir(s.dir.path)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if e.IsDir() && checkID(e.Name()) == nil {
			errs = append(errs, s.adopt(e.Name()))
		}
	}
	errs = append(errs, sweepGroups(s.dir.path, s.runs.contains))
	return errors.Join(errs...)
}

// adopt takes over a run of the previous runner. If the previous runner died before it logged the agent's start, no
// client knows the run. In this case, adopt ends and deletes the run.
func (s *server) adopt(id string) error {
	rec, err := readRecord(s.dir.path, id)
	h, logErr := readHistory(s.dir.path, id)
	if err != nil || logErr != nil || h.agent.PID == 0 {
		return s.abandon(id, rec)
	}
	files, err := openRunFiles(s.dir.of(id), 0)
	if err != nil {
		return fmt.Errorf("adopt run %s: %w", id, err)
	}
	a := s.newAgent(rec, files, nil)
	a.root = h.agent
	a.out.Restore(h.times, h.freed)
	a.checkJournal()
	s.add(a)
	a.restore(h)
	return nil
}

// continueWithoutClient waits for reattachWithin. If no client has attached by then, it resumes an agent that the
// previous runner may have paused.
func (a *agent) continueWithoutClient() {
	select {
	case <-time.After(reattachWithin):
		a.updateFlow()
	case <-a.life.dead:
	case <-a.s.life.ctx.Done():
	}
}

// restore continues the run of the previous runner. It reads the log, and checks whether the agent's process is
// running.
func (a *agent) restore(h history) {
	alive := a.record.Boot == proctree.BootID() && a.root.Running()
	a.life.restore(h, time.Since(a.record.Started), alive)
	switch {
	case h.status != nil:
	case alive:
		a.in = recoverInput(a.root.PID, a.record.Socket, a.s.holder.inputs[a.record.ID])
		a.s.life.Go(a.continueWithoutClient)
		if !a.s.children.parentOf(a) {
			a.s.life.Go(func() { a.watchExit(a.s.life.ctx) })
		}
	default:
		// If the agent is a child of this process, reap records its exit with the exit status.
		if !a.s.children.parentOf(a) {
			a.recordExit(Exit{})
		}
	}
	a.in.sent, a.in.torn, a.in.closed = h.input, h.torn, h.inputClosed
	if h.torn && alive {
		a.s.life.Go(func() { _ = a.terminate(ByTornInput, a.life.grace()) })
	}
}

func (s *server) abandon(id string, rec record) error {
	group := record{ID: id, Boot: rec.Boot, Group: rec.Group}.group(s.dir.path)
	err := kill(func() *proctree.Tree { return proctree.New(proctree.ID{}, Mark(id)).Within(group) })
	if err != nil {
		return err
	}
	return errors.Join(group.Remove(), os.RemoveAll(s.dir.of(id)))
}

// groupPrefix returns the prefix of the control groups of the runs in root.
func groupPrefix(root string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(root, &st); err != nil {
		return "", err
	}
	return fmt.Sprintf("ductor-%x-%x-", st.Dev, st.Ino), nil
}

// group returns the control group of the run. It returns the zero Group if the record contains no group, or if the
// recorded path does not belong to this run.
func (r record) group(root string) proctree.Group {
	prefix, err := groupPrefix(root)
	if r.Boot != proctree.BootID() || err != nil || filepath.Base(r.Group) != prefix+r.ID || !filepath.IsAbs(r.Group) ||
		!proctree.IsGroup(r.Group) {
		return proctree.Group{}
	}
	return proctree.Group{Path: r.Group}
}

// sweepGroups kills the processes in control groups of runs that no longer exist, and removes these groups.
func sweepGroups(root string, exists func(id string) bool) error {
	own, err := proctree.OwnGroup()
	if err != nil {
		return nil // this process has no control group
	}
	prefix, err := groupPrefix(root)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(own)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if id, ours := strings.CutPrefix(e.Name(), prefix); ours && !exists(id) {
			g := proctree.Group{Path: filepath.Join(own, e.Name())}
			if err := kill(func() *proctree.Tree { return proctree.In(g) }); err != nil {
				errs = append(errs, err)
				continue
			}
			errs = append(errs, g.Remove())
		}
	}
	return errors.Join(errs...)
}
