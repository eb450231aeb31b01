package supervisor

import (
	"ductor/internal/proctree"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	smallHeap  = 20       // percent the heap may grow: of a megabyte, not of much
	softMemory = 24 << 20 // bytes; beyond it the collector works harder
)

// Main is a whole supervisor process: it talks to the client that started it over the socket that is its
// standard input, and to later ones over the run's own. It returns an exit code when nothing keeps it. args hold root=DIR,
// and may hold protocol=VERSION:MIN for drills of upgrades and oom=N, its oom_score_adj once it has an agent; what to run is
// never in args. complaints gets what no client can be told.
//
// With bridge as the first of args it is the proxy of a Place instead, see Place.Dial; with hold alone it is the
// first process of a container that has no other.
func Main(args []string, complaints io.Writer) int {
	debug.SetGCPercent(smallHeap)
	debug.SetMemoryLimit(softMemory)
	err := perform(args)
	if err != nil {
		fmt.Fprintln(complaints, "supervise:", err)
		return 1
	}
	return 0
}

// The parts that Main plays other than a supervisor's.
const (
	partProxy = "bridge"
	partHold  = "hold"
)

func perform(args []string) error {
	part := ""
	if len(args) > 0 && (args[0] == partProxy || args[0] == partHold) {
		part, args = args[0], args[1:]
	}
	if part == partHold {
		return hold()
	}
	a, err := parseArgs(args)
	if err != nil {
		return err
	}
	if part == partProxy {
		return runProxy(a, os.Stdin, os.Stdout)
	}
	return supervise(a)
}

type arguments struct {
	root   string
	proto  Protocol
	oomAdj *int // what is to be ours again once we have an agent; nil when it is
}

const oomArg = "oom="

func parseArgs(args []string) (arguments, error) {
	a := arguments{proto: ours()}
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		var err error
		switch name {
		case "root":
			a.root = value
		case "protocol":
			a.proto, err = parseProtocol(value)
		case strings.TrimSuffix(oomArg, "="):
			a.oomAdj = new(int)
			*a.oomAdj, err = strconv.Atoi(value)
		default:
			err = errors.New("unknown")
		}
		if err != nil {
			return a, fmt.Errorf("argument %q: %w", arg, err)
		}
	}
	if !filepath.IsAbs(a.root) {
		return a, fmt.Errorf("argument root=DIR: %q is not an absolute path", a.root)
	}
	return a, nil
}

func parseProtocol(text string) (p Protocol, err error) {
	version, oldest, _ := strings.Cut(text, ":")
	if p.Version, err = strconv.Atoi(version); err != nil {
		return p, err
	}
	p.Min, err = strconv.Atoi(oldest)
	return p, err
}

// supervise waits for a spec, and serves the run to its end.
func supervise(a arguments) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT) // not Ignore: the agent would inherit that
	conn, err := firstClient()
	if err != nil {
		return err
	}
	tr := unixTransport{}
	pid, err := tr.admit(conn)
	if err != nil {
		return err
	}
	n, stagingErr := makeStaging(a.root, tr, pid)
	rehearse(a.proto)
	r, w := newFrameReader(conn), frameWriter{w: conn}
	h, err := readHello(r)
	if err != nil {
		return unneeded(n, err)
	}
	if stagingErr != nil { // long ago, perhaps, such as on a disk that was full: there may be room by now
		n, stagingErr = makeStaging(a.root, tr, pid)
	}
	if stagingErr != nil {
		return w.json(kindRefused, refused{Protocol: a.proto, Error: stagingErr.Error(), Errno: errnoOf(stagingErr)})
	}
	if n.client.dead() || hungUp(conn) { // no client reads an answer: its successor must be able to rely on what it finds
		return unneeded(n, nil)
	}
	s, no := startFor(h, a.proto, tr, n)
	if no != nil {
		err := n.discard()
		return errors.Join(err, w.json(kindRefused, no))
	}
	if a.oomAdj != nil {
		_ = setOOMAdj(*a.oomAdj) // one that is worth more to the kernel supervises all the same
	}
	signal.Notify(signals, syscall.SIGTERM)
	return s.run(conn, r, h, pid, signals)
}

// run serves the first client and those that follow, until nothing keeps the supervisor.
func (s *server) run(conn net.Conn, r *frameReader, h hello, pid int, signals <-chan os.Signal) error {
	s.wg.Go(func() {
		defer conn.Close()
		defer s.tellOnce() // whatever happened
		s.serve(conn, r, h, pid)
	})
	err := s.publish()
	if err != nil { // a run that cannot be found again must not be
		s.noteTrouble(err)
		err = errors.Join(err, s.end(ByTerminated, 0))
	}
	runtime.GOMAXPROCS(1) // from here on one thing leads to the next, and a hand-over costs more than it brings
	s.keep(signals)
	s.leave()
	return err
}

// unneeded ends a supervisor that got no spec.
func unneeded(n *staging, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		err = nil // a spare that was not needed
	}
	if n != nil {
		err = errors.Join(err, n.discard())
	}
	return err
}

// hungUp says whether the other side of a unix socket is gone.
func hungUp(conn net.Conn) bool {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return true
	}
	n := 0
	var peekErr error
	err = raw.Control(func(fd uintptr) {
		n, _, peekErr = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
	})
	return err != nil || n <= 0 && !errors.Is(peekErr, unix.EAGAIN)
}

// startFor does what the first hello asks for.
func startFor(h hello, proto Protocol, tr transport, n *staging) (*server, *refused) {
	if _, err := agree(h.Protocol, proto); err != nil {
		return nil, &refused{Protocol: proto, Kind: refusedVersion, Error: err.Error()}
	}
	if h.Role != roleStart || h.Spec == nil {
		return nil, &refused{Protocol: proto, Error: "nothing was started yet"}
	}
	s, err := newServer(*h.Spec, proto, tr, n)
	if err != nil {
		return nil, &refused{Protocol: proto, Error: err.Error(), Errno: errnoOf(err)}
	}
	return s, nil
}

// rehearse does once what a start will do, so that a spare has its pages in memory and its tables made.
func rehearse(proto Protocol) {
	self, _ := proctree.LookUp(os.Getpid())
	h := hello{Protocol: proto, Role: roleStart, Spec: &Spec{ID: "rehearsal", Path: "/", Args: []string{"-"}, Env: []string{"A=1"}}}
	raw, err := json.Marshal(h)
	if err != nil {
		return
	}
	var again hello
	_ = json.Unmarshal(raw, &again)
	rec := record{Protocol: proto, ID: h.Spec.ID, Boot: proctree.BootID(), Supervisor: self, Agent: self, Started: time.Now(), Command: again.Spec.shown(), Labels: map[string]string{"a": "b"}}
	_ = (&frameWriter{w: io.Discard}).json(kindWelcome, welcome{Protocol: proto, Info: rec.info()})
	if raw, err := json.Marshal(rec); err == nil {
		_ = json.Unmarshal(raw, &rec)
	}
	_ = again.Spec.check()
}

// firstClient is the connection on standard input, which becomes /dev/null.
func firstClient() (net.Conn, error) {
	conn, err := net.FileConn(os.Stdin)
	if err != nil {
		return nil, fmt.Errorf("standard input is not a client: %w", err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	if err := unix.Dup3(int(null.Fd()), 0, 0); err != nil {
		return nil, fmt.Errorf("close standard input: %w", err)
	}
	return conn, nil
}
