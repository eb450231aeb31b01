package supervisor

import (
	"ductor/internal/proctree"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxTrouble = 8
	reserved   = 4 << 10 // bytes kept free for status.json on a disk that fills up
	lastWords  = time.Second
)

// server is a supervisor that has its agent. One per process.
type server struct {
	proto      Protocol
	dir        string
	net        transport
	agent      *agent
	publisher  *publisher
	terminator *proctree.Terminator
	input      chan inputItem
	clock      func() time.Duration // since boot, sleep included
	oom        proctree.OOMCounter
	cg         proctree.Group

	kick    chan struct{} // the keeper looks again; one is enough
	changed chan struct{} // the record is to be written; one is enough
	told    chan struct{} // closed when the first client was told that the agent runs, or left
	noted   chan struct{} // closed when the agent's exit was noted
	done    chan struct{} // closed when the supervisor is about to leave
	wg      sync.WaitGroup

	mu        sync.Mutex
	listener  net.Listener
	record    record
	owner     *session
	sessions  map[*session]bool
	status    Status
	exited    bool
	endedBy   string
	ageFrom   time.Duration // all of these by clock
	idleFrom  time.Duration // when the last owner left
	exitedAt  time.Duration
	collected bool
	inputEnd  int64
	inputDone bool // end of file was asked for

	diskMu  sync.Mutex // over status.json and spec.json; taken after mu
	removed bool       // the directory

	troubleMu sync.Mutex // taken last
	trouble   []string
}

// newServer makes the staging directory a run's and starts the agent. It leaves nothing behind when it fails.
func newServer(spec Spec, proto Protocol, tr transport, n *staging) (*server, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	spec.Limits = spec.Limits.withDefaults()
	if err := n.settle(spec.ID); err != nil {
		return nil, err
	}
	s := &server{
		proto: proto, dir: n.dir, net: tr, clock: sinceBoot, oom: n.oom, cg: n.cg, listener: n.listener,
		input: make(chan inputItem, inputQueue), kick: make(chan struct{}, 1), changed: make(chan struct{}, 1),
		told: make(chan struct{}), noted: make(chan struct{}), done: make(chan struct{}),
		sessions: map[*session]bool{},
	}
	s.publisher = newPublisher(newJournal(n.dir, spec.Limits.MaxSpool, time.Now, n.journal), newTail(n.dir), s.noteTrouble)
	s.record = record{
		Protocol: proto, ID: spec.ID, Boot: n.boot, Supervisor: n.owner, OOMKills: n.oom.Mark(),
		Command: spec.shown(), Dir: spec.Dir, Labels: spec.Labels, Limits: spec.Limits,
	}
	return s, s.begin(spec)
}

// begin starts the agent. Until publish, only the first client knows of it; it dies with us.
func (s *server) begin(spec Spec) error {
	var err error
	if s.agent, err = startAgent(spec, s.cg); err != nil {
		return err
	}
	s.record.Agent, s.record.Started = s.agent.id, time.Now()
	s.terminator = &proctree.Terminator{Tree: s.tree}
	s.ageFrom = s.clock()
	s.idleFrom = s.ageFrom
	s.wg.Go(s.pumpStdout)
	s.wg.Go(s.pumpStderr)
	s.wg.Go(s.pumpStdin)
	s.wg.Go(s.awaitExit)
	return nil
}

// tree is the agent and all it left behind.
func (s *server) tree() *proctree.Tree { return proctree.Below(s.agent.id, s.agent.alone).Within(s.cg) }

// publish makes the run known to other clients, as soon as the first one was told: it writes to the disk.
func (s *server) publish() error {
	<-s.told
	if err := s.writeRecord(); err != nil {
		return err
	}
	s.wg.Go(s.scribe)
	s.mu.Lock()
	l := s.listener
	s.mu.Unlock()
	s.wg.Go(func() { s.accept(l) })
	return nil
}

// writeRecord writes spec.json; one goroutine at a time. No write to the agent waits for the disk.
func (s *server) writeRecord() error {
	s.mu.Lock()
	rec := s.record
	s.mu.Unlock()
	return s.write(specFile, rec)
}

// tellOnce lets publish begin. One goroutine calls it, perhaps twice.
func (s *server) tellOnce() {
	select {
	case <-s.told:
	default:
		close(s.told)
	}
}

func (s *server) pumpStdout() {
	buf := make([]byte, chunkSize)
	for {
		n, err := s.agent.out.Read(buf)
		if err != nil {
			break
		}
		s.publisher.output(buf[:n])
	}
	s.noteEnd()
	s.publisher.end()
}

func (s *server) pumpStderr() {
	buf := make([]byte, stderrKept)
	for {
		n, err := s.agent.err.Read(buf)
		if err != nil {
			return
		}
		s.publisher.stderr(buf[:n])
	}
}

// awaitExit notes how the agent ended.
func (s *server) awaitExit() {
	<-s.agent.dead
	<-s.agent.err.caught
	left, _ := s.tree().Members() // the count is for people
	exit := s.agent.exit()
	s.mu.Lock()
	exit.By = s.endedBy
	exit.OOM = exit.Code == -int(unix.SIGKILL) && exit.By == "" && s.oom.Grew()
	s.status.Exit, s.status.Exited, s.status.Leftover = exit, time.Now(), len(left)
	s.exited, s.exitedAt = true, s.clock()
	s.status.Trouble = s.troubles()
	s.report(s.write(statusFile, s.status))
	status := s.status
	s.mu.Unlock()
	s.publisher.exited(status)
	close(s.noted)
	s.look()
}

// noteEnd notes where the output ended.
func (s *server) noteEnd() {
	s.publisher.mu.Lock()
	end, missing := s.publisher.out.end, s.publisher.out.missing()
	s.publisher.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.OutputEnd, s.status.Missing, s.status.Ended = end, missing, true
	s.status.Trouble = s.troubles()
	if s.exited {
		s.report(s.write(statusFile, s.status))
		s.publisher.exited(s.status)
	}
}

// noteTrouble keeps the first few failures of our own. It takes no other lock: many are held by its callers.
func (s *server) noteTrouble(err error) {
	s.troubleMu.Lock()
	defer s.troubleMu.Unlock()
	if len(s.trouble) < maxTrouble {
		s.trouble = append(s.trouble, err.Error())
	}
}

func (s *server) troubles() []string {
	s.troubleMu.Lock()
	defer s.troubleMu.Unlock()
	return slices.Clone(s.trouble)
}

// write writes a file of the run, unless it was collected. When the disk is full it gives back what was reserved.
func (s *server) write(name string, v any) error {
	s.diskMu.Lock()
	defer s.diskMu.Unlock()
	if s.removed {
		return nil
	}
	err := writeJSON(s.dir, name, v)
	if err != nil && full(err) && removeIfThere(filepath.Join(s.dir, spareFile)) == nil {
		err = writeJSON(s.dir, name, v)
	}
	return err
}

// end ends the agent and all below it, and notes on whose behalf when the agent still ran.
func (s *server) end(by string, grace time.Duration) error {
	s.mu.Lock()
	select {
	case <-s.agent.dead: // it may not have been noted yet
	default:
		if s.endedBy == "" {
			s.endedBy = by
		}
	}
	s.mu.Unlock()
	if err := s.terminator.End(grace); err != nil {
		return fmt.Errorf("stop run: %w", err)
	}
	<-s.agent.dead
	return nil
}

// look makes the keeper look again.
func (s *server) look() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// info is what can be told now.
func (s *server) info() Info {
	members, _ := s.tree().Members()
	var memory int64
	var named []Member
	for i, id := range members {
		memory += proctree.Resident(id.PID)
		if i < mostMembers {
			named = append(named, Member{PID: id.PID, Name: proctree.Name(id.PID)})
		}
	}
	s.publisher.mu.Lock()
	stored, end := s.publisher.out.stored(), s.publisher.out.end
	s.publisher.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	info := s.record.info()
	info.Supervised, info.Alive, info.Processes, info.Memory = true, !s.exited, len(members), memory
	info.Members = named
	info.Spooled, info.OutputEnd = stored, end
	info.InputEnd, info.InputClosed = s.inputEnd, s.inputDone
	if s.owner != nil {
		info.Attached, info.AttachedBy = true, s.owner.pid
	}
	if s.exited {
		status := s.status
		status.Trouble = s.troubles()
		info.Status = &status
	}
	return info
}

// info is what a record alone tells.
func (r record) info() Info {
	return Info{
		ID: r.ID, Labels: maps.Clone(r.Labels), Command: r.Command, Dir: r.Dir, PID: r.Agent.PID, Supervisor: r.Supervisor.PID,
		Started: r.Started, Protocol: r.Protocol, Limits: r.Limits,
	}
}

// collect removes what is on disk, once the agent is dead. What it left running is ended first.
func (s *server) collect() error {
	select {
	case <-s.agent.dead:
	default:
		return errors.New("collect run: the agent still runs")
	}
	if err := s.end(ByStop, defaultGrace); err != nil {
		return err
	}
	_ = s.cg.Remove() // one that stays is swept as soon as we are gone
	s.mu.Lock()
	defer s.mu.Unlock()
	s.diskMu.Lock()
	defer s.diskMu.Unlock()
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("collect run: %w", err)
	}
	s.collected, s.removed = true, true
	return nil
}

// leave closes every connection and waits a moment for what is being said.
func (s *server) leave() {
	_ = s.cg.Remove() // unless something in it would not end: who collects the run tries again
	s.mu.Lock()
	close(s.done)
	_ = s.listener.Close()
	for c := range s.sessions {
		_ = c.conn.SetDeadline(time.Now().Add(lastWords))
		_ = closeRead(c.conn)
	}
	s.mu.Unlock()
	quiet := make(chan struct{})
	go func() { s.wg.Wait(); close(quiet) }()
	select {
	case <-quiet:
	case <-time.After(2 * lastWords): // the process ends now, and its goroutines with it
	}
}

// closeRead makes a session end as if its client had left, without cutting off what it is told.
func closeRead(c net.Conn) error {
	if half, ok := c.(interface{ CloseRead() error }); ok {
		return half.CloseRead()
	}
	return nil
}
